//! `heapline attach --explain`: describes the runtime, and what was found in it.

use heapline_recorder::contained;
use heapline_recorder::control::{Outcome, State};

use crate::attach::{self, Control};
use crate::collector;
use crate::layout;

/// The description: what `heapline attach --explain` reads in the memory of the program.
#[unsafe(export_name = "heapline_explain_control")]
pub static CONTROL: Control = Control::new();

/// Describes the runtime.
#[unsafe(no_mangle)]
pub extern "C" fn heapline_explain(_: *const u8, _: usize) -> usize {
    contained(Outcome::Failed, explain) as usize
}

/// Describes the runtime, in [`CONTROL`].
pub(crate) fn explain() -> Outcome {
    let runtime = match attach::find_runtime() {
        Ok(runtime) => runtime,
        Err(unfit) => {
            CONTROL.fail(&unfit.to_string());
            return Outcome::Failed;
        }
    };
    if let Err(refusal) = attach::check_layout(runtime) {
        CONTROL.fail(&refusal);
        return Outcome::Failed;
    }
    collector::find(runtime);
    let text = if attach::has_domains(runtime) {
        // SAFETY: it is OCaml 5.3 or later, and its layout was looked for.
        unsafe { layout::explain() }
    } else {
        "OCaml 4: the runtime exports all that is needed".to_owned()
    };
    CONTROL.tell(State::Idle, &format!("{text}\n{}", collector::explain()));
    Outcome::Done
}
