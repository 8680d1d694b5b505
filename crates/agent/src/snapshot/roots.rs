//! The roots: values from which the program can go on to all others.

use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering};

use heapline_heapfile::RootKind;

use super::block::{Header, is_pointer};
use super::functions::{Functions, OfKind, domains, single};
use super::images::Mappings;
use super::raw::Raw;
use crate::layout::{self, sampler::entry, single::tracked};

/// Modules of a program, and blocks of a module, at most.
const MANY: usize = 1 << 20;

/// A value that a root holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Root {
    pub(super) kind: RootKind,
    pub(super) value: usize,
    /// The address of the variable.
    pub(super) slot: usize,
    /// The owner of the stack that it is on, if it is on one.
    pub(super) stack: Owner,
}

/// The owner of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// That of the thread which runs the program, or this domain of it.
    Domain(usize),
    /// That of a thread that waits.
    Thread,
}

/// A block that a running recording has sampled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sampled {
    pub(super) block: usize,
    /// The value that the sampler keeps for it.
    pub(super) data: usize,
    pub(super) samples: usize,
    pub(super) words: usize,
}

/// All roots.
#[derive(Debug, Default)]
pub(super) struct Roots {
    /// Blocks of the program's modules.
    pub(super) modules: Vec<usize>,
    pub(super) others: Vec<Root>,
    pub(super) sampled: Vec<Sampled>,
}

/// The values that the runtime has passed, and where it has them.
type Found = Vec<(usize, usize)>;

/// OCaml 4 passes no data to its callbacks.
static FOUND: AtomicPtr<Found> = AtomicPtr::new(std::ptr::null_mut());

extern "C" fn add_single(value: usize, slot: *mut usize) {
    // SAFETY: it is that of `collect`, which waits for this.
    let found = unsafe { &mut *FOUND.load(Ordering::Relaxed) };
    found.push((value, slot.addr()));
}

extern "C" fn add(found: *mut c_void, value: usize, slot: *mut usize) {
    // SAFETY: it is what was passed with this function.
    unsafe { (*found.cast::<Found>()).push((value, slot.addr())) };
}

/// The roots that OCaml 4's functions find.
fn collect(f: impl FnOnce(single::Action)) -> Found {
    let mut found = Found::new();
    FOUND.store(&raw mut found, Ordering::Relaxed);
    f(add_single);
    found
}

impl Roots {
    /// Finds the roots of the runtime; `None` if it has others than expected.
    ///
    /// # Safety
    ///
    /// At a safe point, or in a copy of the process that was made there. `domains` are the states of all
    /// domains.
    pub(super) unsafe fn find(
        raw: Raw,
        functions: &Functions,
        mappings: &Mappings,
        domains: &[usize],
    ) -> Option<Self> {
        let mut roots = Self {
            modules: modules(raw, functions.modules),
            ..Self::default()
        };
        match functions.of_kind {
            OfKind::Single { .. } => roots.add_single(raw, functions, mappings)?,
            OfKind::Domains { .. } => roots.add_domains(raw, functions, mappings, domains)?,
        }
        Some(roots)
    }

    fn add(&mut self, kind: RootKind, found: &[(usize, usize)]) {
        self.add_stack(kind, Owner::Thread, found);
    }

    fn add_stack(&mut self, kind: RootKind, stack: Owner, found: &[(usize, usize)]) {
        let values = found.iter().filter(|(value, _)| is_pointer(*value));
        self.others.extend(values.map(|(value, slot)| Root {
            kind,
            value: *value,
            slot: *slot,
            stack,
        }));
    }

    fn add_single(&mut self, raw: Raw, functions: &Functions, mappings: &Mappings) -> Option<()> {
        let OfKind::Single {
            all,
            registered,
            finalisers,
            sampler,
            ..
        } = functions.of_kind
        else {
            return None;
        };
        // SAFETY: it is a variable of this type.
        let hook: Option<single::Scan> =
            unsafe { *std::ptr::with_exposed_provenance(functions.hook) };
        let mut all = collect(|add| all(add, 0));
        let sampled = collect(|add| sampler(add));
        let finalisers = collect(|add| finalisers(add));
        let registered = collect(|add| registered(add));
        let threads = hook.map_or_else(Found::new, |hook| collect(|add| hook(add)));
        // What is left comes first: modules that were loaded later, and the stack of this thread.
        let rest = [&sampled, &finalisers, &registered, &threads];
        let rest: usize = rest.iter().map(|found| found.len()).sum();
        all.truncate(all.len().checked_sub(rest)?);
        let stack = self.take_loaded_modules(raw, mappings, &all);
        self.add_stack(RootKind::Stack, Owner::Domain(0), &stack);
        self.add(RootKind::Stack, &threads);
        self.add(RootKind::Registered, &registered);
        self.add(RootKind::Finaliser, &finalisers);
        self.add(RootKind::Sampler, &sampled);
        let field = |slot: usize, n: isize| raw.word(slot.wrapping_add_signed(8 * n));
        self.sampled
            .extend(sampled.iter().map(|(data, slot)| Sampled {
                block: field(*slot, tracked::BLOCK),
                samples: field(*slot, tracked::SAMPLES),
                words: field(*slot, tracked::WORDS),
                data: *data,
            }));
        Some(())
    }

    fn add_domains(
        &mut self,
        raw: Raw,
        functions: &Functions,
        mappings: &Mappings,
        domains: &[usize],
    ) -> Option<()> {
        let OfKind::Domains {
            all,
            registered,
            finalisers,
            sampler,
            ..
        } = functions.of_kind
        else {
            return None;
        };
        // SAFETY: it is a variable of this type.
        let hook: Option<domains::Hook> =
            unsafe { *std::ptr::with_exposed_provenance(functions.hook) };
        for (number, domain) in domains.iter().enumerate() {
            let collect = |scan: &dyn Fn(*mut c_void)| {
                let mut found = Found::new();
                scan((&raw mut found).cast());
                found
            };
            let mut found = collect(&|found| all(add, 0, found, *domain, 1));
            let final_count = collect(&|found| finalisers(add, 0, found, *domain, 1)).len();
            let threads = collect(&|found| {
                if let Some(hook) = hook {
                    hook(add, 0, found, *domain);
                }
            });
            let finalisers = found.split_off(found.len().checked_sub(final_count)?);
            found.truncate(found.len().checked_sub(threads.len())?);
            self.add_stack(RootKind::Stack, Owner::Domain(number), &found);
            self.add(RootKind::Stack, &threads);
            self.add(RootKind::Finaliser, &finalisers);
            let sampled = collect(&|found| sampler(add, 0, found, *domain, false));
            self.add(RootKind::Sampler, &sampled);
            // The table's configuration is among them.
            let entries = sampled.iter().filter(|(data, _)| !is_pointer(*data));
            let field = |slot: usize, n: isize| raw.word(slot.wrapping_add_signed(8 * n));
            self.sampled.extend(entries.map(|(data, slot)| Sampled {
                block: field(*slot, entry::BLOCK),
                samples: field(*slot, entry::SAMPLES),
                words: field(*slot, entry::WORDS),
                data: *data,
            }));
        }
        let mut found = Found::new();
        registered(add, (&raw mut found).cast());
        self.add_registered(raw, mappings, &found);
        Some(())
    }

    /// OCaml 5 tells of modules with the roots that C code has registered.
    fn add_registered(&mut self, raw: Raw, mappings: &Mappings, found: &[(usize, usize)]) {
        let mut modules = self.modules.clone();
        modules.sort_unstable();
        let is_field = |slot: usize| {
            let after = modules.partition_point(|module| *module <= slot);
            let module = after.checked_sub(1).map(|n| modules[n]);
            module.is_some_and(|module| slot < module + 8 * Header::of(raw, module).words())
        };
        let others = found.iter().filter(|(_, slot)| !is_field(*slot));
        let others: Vec<_> = others.copied().collect();
        let others = self.take_loaded_modules(raw, mappings, &others);
        self.add(RootKind::Registered, &others);
    }

    /// Adds the modules that were loaded while the program ran (`Dynlink`), of which the runtime passes all fields, one
    /// after the other. Returns the other roots.
    fn take_loaded_modules(
        &mut self,
        raw: Raw,
        mappings: &Mappings,
        found: &[(usize, usize)],
    ) -> Found {
        let mut others = Found::new();
        let mut rest = found;
        while let [(value, slot), after @ ..] = rest {
            match module_fields(raw, mappings, *slot, rest) {
                Some(fields) => {
                    self.modules.push(*slot);
                    rest = &rest[fields..];
                }
                None => {
                    others.push((*value, *slot));
                    rest = after;
                }
            }
        }
        others
    }
}

/// The number of fields of the module whose first field is in a slot, if the roots begin with all of them.
fn module_fields(
    raw: Raw,
    mappings: &Mappings,
    slot: usize,
    roots: &[(usize, usize)],
) -> Option<usize> {
    if !mappings.is_of_file(slot.checked_sub(8)?) {
        return None;
    }
    let header = Header::of(raw, slot);
    let is_module = header.tag() == 0 && header.is_static();
    let fields = header.words();
    let slots = roots.get(..fields)?.iter().map(|(_, slot)| *slot);
    let is_all = slots.eq((0..fields).map(|field| slot + 8 * field));
    (is_module && fields > 0 && is_all).then_some(fields)
}

/// The blocks of the program's modules.
fn modules(raw: Raw, globals: usize) -> Vec<usize> {
    let mut modules = Vec::new();
    let listed = |list: usize| {
        let entries = (0..MANY).map(move |n| raw.word(list + 8 * n));
        entries.take_while(|entry| *entry != 0)
    };
    for module in listed(globals) {
        modules.extend(listed(module).filter(|block| is_pointer(*block)));
    }
    modules
}

/// The beginnings of the runtime's lists of ephemerons; `None` if it is not known where they are.
pub(super) fn ephemerons(raw: Raw, functions: &Functions, domains: &[usize]) -> Option<Vec<usize>> {
    match functions.of_kind {
        OfKind::Single { ephemerons, .. } => Some(vec![raw.word(ephemerons)]),
        OfKind::Domains { .. } => {
            let ephe_info = layout::known()?.offsets().ephe_info;
            let infos = domains.iter().map(|state| raw.word(state + 8 * ephe_info));
            let infos = infos.filter(|info| is_pointer(*info));
            // struct caml_ephe_info: todo, live
            let lists = infos.flat_map(|info| [raw.word(info), raw.word(info + 8)]);
            Some(lists.collect())
        }
    }
}
