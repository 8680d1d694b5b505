//! A heap profile as all protocols have it: stacks with their amounts, and tables of names.

use hashbrown::HashMap;
use heapline_profile::{ContextId, Estimate, FrameId, FunctionId, IdVec, Scope};

/// The types and units of the amounts of a sample, in their order.
pub const SAMPLE_TYPES: [(&str, &str); 4] = [
    ("alloc_objects", "count"),
    ("alloc_space", "bytes"),
    ("inuse_objects", "count"),
    ("inuse_space", "bytes"),
];

/// The number of leading [`SAMPLE_TYPES`] that are about a window of time. The others are about its end.
pub(crate) const ALLOCATED: usize = 2;

/// The name of a function that is not known, and of a stack without frames.
const UNKNOWN: &str = "(unknown)";

/// A profile of allocated and of live memory.
#[derive(Clone, Debug)]
pub struct HeapProfile {
    /// The executable.
    pub(crate) program: String,
    /// The machine.
    pub(crate) host: String,
    pub(crate) pid: u64,
    /// The window, in nanoseconds since the Unix epoch.
    pub(crate) from: u64,
    pub(crate) until: u64,
    /// The average number of bytes between two samples.
    pub(crate) period: i64,
    /// The types that the source does not tell are left out.
    pub(crate) columns: Vec<usize>,
    /// The totals of each type with their errors.
    pub(crate) totals: [Estimate; 4],
    pub(crate) tables: Tables,
    pub(crate) samples: Vec<Sample>,
}

/// The amounts of a stack.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// Locations in [`Tables::locations`], innermost first.
    pub(crate) stack: Vec<u32>,
    pub(crate) values: [i64; 4],
}

/// Names. Ids are places in these lists, without gaps: Parca insists on that.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tables {
    pub(crate) locations: Vec<Location>,
    pub(crate) functions: Vec<Function>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Location {
    /// Its function, in [`Tables::functions`].
    pub(crate) function: u32,
    /// 0 if unknown.
    pub(crate) line: u32,
    /// 1 is the first column; 0 if unknown.
    pub(crate) column: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// The name in the trace.
    pub(crate) system_name: String,
    pub(crate) file: String,
}

impl HeapProfile {
    /// The number of stacks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Returns true if nothing was allocated, and nothing is live.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// The total of a type of samples with its error, by its place in [`SAMPLE_TYPES`].
    #[must_use]
    pub fn total(&self, column: usize) -> Estimate {
        self.totals[column]
    }

    /// The length of the window in nanoseconds.
    pub(crate) fn duration(&self) -> u64 {
        self.until - self.from
    }

    /// The program without its directory.
    pub(crate) fn program_name(&self) -> &str {
        let name = self.program.rsplit('/').next().unwrap_or_default();
        if name.is_empty() { UNKNOWN } else { name }
    }

    /// A sentence on the errors of the numbers, for people.
    pub(crate) fn note(&self, columns: &[usize]) -> String {
        let totals: Vec<String> = columns
            .iter()
            .map(|&column| {
                let (name, unit) = SAMPLE_TYPES[column];
                let Estimate { value, error, .. } = self.totals[column];
                format!("{name} {value:.0} ± {error:.0} {unit}")
            })
            .collect();
        format!(
            "heapline: one sample per {} bytes; totals with 95 % intervals: {}",
            self.period,
            totals.join(", ")
        )
    }
}

/// Collects the stacks of a profile. Stacks that differ only in hidden frames are merged.
pub(crate) struct Builder<'a> {
    scope: &'a Scope<'a>,
    tables: Tables,
    /// Places in the tables plus one; 0 for what is not in them.
    locations: IdVec<FrameId, u32>,
    functions: IdVec<FunctionId, u32>,
    unknown: Option<u32>,
    samples: Vec<Sample>,
    by_stack: HashMap<Vec<u32>, usize>,
}

impl<'a> Builder<'a> {
    pub(crate) fn new(scope: &'a Scope<'a>) -> Self {
        let symbols = scope.profile().symbols();
        Self {
            scope,
            tables: Tables::default(),
            locations: IdVec::like(symbols.frames(), 0),
            functions: IdVec::like(symbols.functions(), 0),
            unknown: None,
            samples: Vec::new(),
            by_stack: HashMap::new(),
        }
    }

    pub(crate) fn add(&mut self, stack: ContextId, values: [i64; 4]) {
        if values == [0; 4] {
            return;
        }
        let frames = self.scope.stack(stack);
        let mut stack: Vec<u32> = frames
            .into_iter()
            .map(|frame| self.location(frame))
            .collect();
        if stack.is_empty() {
            stack.push(self.unknown());
        }
        let next = self.samples.len();
        let place = *self.by_stack.entry_ref(&stack[..]).or_insert(next);
        match self.samples.get_mut(place) {
            Some(sample) => {
                for (sum, value) in sample.values.iter_mut().zip(values) {
                    *sum = sum.saturating_add(value);
                }
            }
            None => self.samples.push(Sample { stack, values }),
        }
    }

    pub(crate) fn finish(self) -> (Tables, Vec<Sample>) {
        (self.tables, self.samples)
    }

    fn location(&mut self, frame: FrameId) -> u32 {
        if let Some(known) = self.locations[frame].checked_sub(1) {
            return known;
        }
        let info = self.scope.profile().symbols().frames()[frame];
        let location = Location {
            function: self.function(info.function),
            line: info.line,
            column: if info.line > 0 {
                u32::from(info.start_char) + 1
            } else {
                0
            },
        };
        let place = push(&mut self.tables.locations, location);
        self.locations[frame] = place + 1;
        place
    }

    fn function(&mut self, id: FunctionId) -> u32 {
        if let Some(known) = self.functions[id].checked_sub(1) {
            return known;
        }
        let symbols = self.scope.profile().symbols();
        let function = &symbols.functions()[id];
        let is_named = !function.name.trim().is_empty();
        let place = push(
            &mut self.tables.functions,
            Function {
                name: if is_named { &function.name } else { UNKNOWN }.to_owned(),
                system_name: function.raw.clone(),
                file: symbols.files()[function.file].clone(),
            },
        );
        self.functions[id] = place + 1;
        place
    }

    /// The location of stacks without frames.
    fn unknown(&mut self) -> u32 {
        if let Some(unknown) = self.unknown {
            return unknown;
        }
        let function = Function {
            name: UNKNOWN.to_owned(),
            system_name: String::new(),
            file: String::new(),
        };
        let function = push(&mut self.tables.functions, function);
        let location = Location {
            function,
            line: 0,
            column: 0,
        };
        *self
            .unknown
            .insert(push(&mut self.tables.locations, location))
    }
}

/// Appends an entry, and returns its place.
fn push<T>(list: &mut Vec<T>, entry: T) -> u32 {
    let place = u32::try_from(list.len()).unwrap_or_else(|_| unreachable!("ids have 32 bits"));
    list.push(entry);
    place
}
