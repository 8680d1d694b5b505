//! Location events, which define the codes in stacks.

use super::events::Cursor;
use crate::format::{MTF_LEN, code63};
use crate::location::{Locations, StoredFrame, StringId};
use crate::mtf::Mtf;

/// The move-to-front tables of one domain: files, and for each file its functions.
#[derive(Debug, Default)]
pub(super) struct NameTables {
    files: Mtf<File>,
    frames: Vec<StoredFrame>,
}

#[derive(Clone, Debug)]
struct File {
    name: StringId,
    functions: Mtf<StringId>,
}

impl File {
    fn unknown() -> Self {
        Self {
            name: StringId::UNKNOWN_FILE,
            functions: Mtf::filled_with(StringId::UNKNOWN_NAME),
        }
    }
}

/// The result of decoding a location event.
pub(super) enum Named {
    Yes,
    /// The code has other frames already.
    Conflict(u64),
    /// It refers to a name that was lost earlier.
    Unknown,
    /// It refers to a name that the tables never had: they are out of step with the writer's, and
    /// forgotten.
    OutOfStep,
}

impl NameTables {
    /// Forgets all names: what the writer's tables hold is unknown until it names things anew.
    pub(super) fn forget(&mut self) {
        self.files = Mtf::filled_with(File::unknown());
    }

    /// Reads one location event. `None` if the packet ends inside it.
    pub(super) fn read(
        &mut self,
        cursor: &mut Cursor<'_>,
        locations: &mut Locations,
    ) -> Option<Named> {
        let code = code63(cursor.u64()?);
        let count = cursor.u8()?;
        let (mut in_step, mut known) = (true, true);
        self.frames.clear();
        for _ in 0..count {
            let low = cursor.u32()?;
            let high = cursor.u16()?;
            let packed = u64::from(low) | u64::from(high) << 32;
            let field = |shift: u32, bits: u32| (packed >> shift) & ((1 << bits) - 1);
            let (file, file_in_step) = self.file(field(38, 5), cursor, locations)?;
            let name = match usize::try_from(field(43, 5)).ok()? {
                MTF_LEN => {
                    let name = locations.intern_string(cursor.string()?);
                    file.functions.push(name);
                    Some(name)
                }
                index => file.functions.touch(index).copied(),
            };
            in_step &= file_in_step && name.is_some();
            let (file, name) = (file.name, name.unwrap_or(StringId::UNKNOWN_NAME));
            known &= file != StringId::UNKNOWN_FILE && name != StringId::UNKNOWN_NAME;
            self.frames.push(StoredFrame {
                file,
                name,
                line: u32::try_from(field(0, 20)).ok()?,
                start_char: u16::try_from(field(20, 8)).ok()?,
                end_char: u16::try_from(field(28, 10)).ok()?,
            });
        }
        let consistent = locations.define(code, &self.frames);
        Some(if !in_step {
            self.forget();
            Named::OutOfStep
        } else if !known {
            Named::Unknown
        } else if !consistent {
            Named::Conflict(code)
        } else {
            Named::Yes
        })
    }

    /// The file in front after moving or adding the one that `index` calls for, and whether the
    /// tables had it.
    fn file(
        &mut self,
        index: u64,
        cursor: &mut Cursor<'_>,
        locations: &mut Locations,
    ) -> Option<(&mut File, bool)> {
        let index = usize::try_from(index).ok()?;
        let mut in_step = true;
        if index == MTF_LEN {
            let name = locations.intern_string(cursor.string()?);
            // Version 1 wrote traces that rely on a new file taking over the functions of the
            // one that it pushes out. Later versions do not care.
            let functions = self
                .files
                .about_to_drop()
                .map_or_else(Mtf::default, |file| std::mem::take(&mut file.functions));
            self.files.push(File { name, functions });
        } else if self.files.touch(index).is_none() {
            in_step = false;
            self.files.push(File::unknown());
        }
        Some((self.files.touch(0)?, in_step))
    }
}
