//! The program and its libraries: where they are, and how their functions are unwound.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use framehop::{ExplicitModuleSectionInfo, Module, MustNotAllocateDuringUnwind, Unwinder};

use super::maps::{self, Mapping, read_memory};
use crate::lock::Lock;

/// The unwinder.
#[cfg(target_arch = "aarch64")]
pub(super) type Rules =
    framehop::aarch64::UnwinderAarch64<&'static [u8], MustNotAllocateDuringUnwind>;
#[cfg(target_arch = "x86_64")]
pub(super) type Rules =
    framehop::x86_64::UnwinderX86_64<&'static [u8], MustNotAllocateDuringUnwind>;

/// Nanoseconds for which one more refresh is allowed.
const PAUSE: u64 = 100_000_000;

/// Refreshes that are allowed at once, for programs that load libraries one after the other. Each
/// takes about half a millisecond.
const BURST: u64 = 50;

/// Pages of addresses without a module that are remembered.
const UNKNOWN: usize = 64;

/// The modules of the program at some time.
pub(super) struct Modules {
    pub(super) rules: Rules,
    /// In order of their addresses.
    list: Vec<Loaded>,
    /// Executable memory that is no file's.
    nameless: Vec<Range<u64>>,
}

/// A program or library.
#[derive(Clone, Debug)]
struct Loaded {
    addresses: Range<u64>,
    /// The difference between an address and that in the file.
    bias: u64,
    path: PathBuf,
    /// Copied, but for the program itself: libraries may be unloaded at any time.
    unwind_info: Option<UnwindInfo>,
}

#[derive(Clone, Debug)]
struct UnwindInfo {
    header_at: u64,
    header: &'static [u8],
    frames_at: u64,
    frames: &'static [u8],
}

/// The latest. Never freed: nobody knows when the last thread has left it.
static MODULES: AtomicPtr<Modules> = AtomicPtr::new(null_mut());
/// Locked, so that one thread refreshes at a time.
static REFRESH: Lock<Refresh> = Lock::new(Refresh {
    paid_until: 0,
    unknown: [None; UNKNOWN],
});

/// Limits how often modules are looked for: at once for a new library, whose locations are named once,
/// but not for each sample with an address that belongs to none.
struct Refresh {
    /// The time that refreshes so far have used up; it may be `BURST` pauses behind the clock.
    paid_until: u64,
    /// Pages of addresses that no module had, and when that was found.
    unknown: [Option<(u64, u64)>; UNKNOWN],
}

impl Refresh {
    /// Takes note of a refresh for an address. Returns false if it is too early for one.
    fn start(&mut self, address: u64, now: u64) -> bool {
        let page = address >> 12;
        let index = usize::try_from(page).unwrap_or(0) % UNKNOWN;
        let is_recent = |(unknown, at)| unknown == page && now.wrapping_sub(at) < PAUSE;
        let from = self.paid_until.max(now.saturating_sub(BURST * PAUSE));
        if self.unknown[index].is_some_and(is_recent) || from + PAUSE > now {
            return false;
        }
        self.paid_until = from + PAUSE;
        self.unknown[index] = Some((page, now));
        true
    }
}

/// The modules, as they are known.
#[inline]
pub(super) fn modules() -> Option<&'static Modules> {
    // SAFETY: they are never freed.
    unsafe { MODULES.load(Ordering::Acquire).as_ref() }
}

impl Modules {
    /// Returns true if an address is in a known module.
    fn knows(&self, address: u64) -> bool {
        self.range_of(address).is_some()
    }

    /// The first of these addresses that is in no known module.
    pub(super) fn first_unknown(&self, stack: &[u64]) -> Option<u64> {
        // Callers are mostly in the same module.
        let mut module = 0..0;
        stack.iter().copied().find(|address| {
            if !module.contains(address) {
                module = self.range_of(*address).unwrap_or(0..0);
            }
            !module.contains(address)
        })
    }

    /// The addresses of the module that an address is in.
    fn range_of(&self, address: u64) -> Option<Range<u64>> {
        let named = self.find(address).map(|loaded| &loaded.addresses);
        let nameless = || self.nameless.iter().find(|range| range.contains(&address));
        named.or_else(nameless).cloned()
    }

    /// The file that an address is in, and the address there.
    pub(super) fn locate(&self, address: u64) -> Option<(&Path, u64)> {
        let loaded = self.find(address)?;
        Some((&loaded.path, address.wrapping_sub(loaded.bias)))
    }

    /// Returns true if these are the modules.
    fn has(&self, list: &[Loaded], nameless: &[Range<u64>]) -> bool {
        let mapped = |loaded: &Loaded| (loaded.addresses.clone(), loaded.path.clone());
        self.nameless == nameless && self.list.iter().map(mapped).eq(list.iter().map(mapped))
    }

    fn find(&self, address: u64) -> Option<&Loaded> {
        let after = self
            .list
            .partition_point(|loaded| loaded.addresses.start <= address);
        let loaded = &self.list[after.checked_sub(1)?];
        loaded.addresses.contains(&address).then_some(loaded)
    }
}

/// Looks for modules anew because of an address that none has; whether there are others now.
pub(super) fn refresh_for(address: u64) -> bool {
    let mut refresh = REFRESH.lock();
    // Somebody else may have done so meanwhile.
    if modules().is_some_and(|modules| modules.knows(address)) {
        return true;
    }
    refresh.start(address, now()) && read()
}

/// Looks for modules.
pub(super) fn refresh() {
    let _refresh = REFRESH.lock();
    read();
}

fn now() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: it is a place for the time.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    (time.tv_sec.cast_unsigned())
        .wrapping_mul(1_000_000_000)
        .wrapping_add(time.tv_nsec.cast_unsigned())
}

/// Reads the mappings; whether there are other modules than before.
fn read() -> bool {
    let Ok(text) = std::fs::read_to_string("/proc/self/maps") else {
        return false;
    };
    let before = modules();
    let program = std::fs::read_link("/proc/self/exe").unwrap_or_default();
    let mut list = Vec::new();
    let mut nameless = Vec::new();
    let mut by_path: BTreeMap<&str, Vec<Mapping<'_>>> = BTreeMap::new();
    for mapping in text.lines().filter_map(maps::parse) {
        if !mapping.path.is_empty() {
            by_path.entry(mapping.path).or_default().push(mapping);
        } else if mapping.is_executable {
            nameless.push(mapping.addresses);
        }
    }
    for (path, mappings) in by_path {
        if !mappings.iter().any(|mapping| mapping.is_executable) {
            continue;
        }
        let addresses = mappings[0].addresses.start..mappings[mappings.len() - 1].addresses.end;
        let path = Path::new(path);
        let is_same = |loaded: &&Loaded| loaded.addresses == addresses && loaded.path == path;
        let known = before.and_then(|before| before.list.iter().find(is_same));
        let loaded = known.cloned().or_else(|| {
            let start = mappings.iter().find(|m| m.offset == 0 && m.is_readable)?;
            Loaded::read(
                addresses.clone(),
                start.addresses.start,
                path,
                path == program,
            )
        });
        match loaded {
            Some(loaded) => list.push(loaded),
            None => nameless.push(addresses),
        }
    }
    list.sort_by_key(|loaded| loaded.addresses.start);
    if before.is_some_and(|before| before.has(&list, &nameless)) {
        return false;
    }
    let mut rules = Rules::new();
    for loaded in &list {
        rules.add_module(loaded.rules());
    }
    let modules = Box::new(Modules {
        rules,
        list,
        nameless,
    });
    MODULES.store(Box::into_raw(modules), Ordering::Release);
    true
}

impl Loaded {
    /// Reads the headers of what is mapped at `start`. `None` if that is no program or library.
    fn read(addresses: Range<u64>, start: u64, path: &Path, in_place: bool) -> Option<Self> {
        let mut header = [0; 64];
        if !read_memory(start, &mut header) || !header.starts_with(b"\x7fELF\x02\x01") {
            return None;
        }
        let at = u64_at(&header, 32)?;
        let size = usize::from(u16_at(&header, 54)?);
        let count = usize::from(u16_at(&header, 56)?);
        let mut table = vec![0; size * count];
        if size < 56 || !read_memory(start.wrapping_add(at), &mut table) {
            return None;
        }
        let mut bias = None;
        let mut loads = Vec::new();
        let mut unwind_header = None;
        for entry in table.chunks_exact(size) {
            let kind = u32::from_le_bytes(*entry.first_chunk()?);
            let (offset, address) = (u64_at(entry, 8)?, u64_at(entry, 16)?);
            let len = u64_at(entry, 40)?;
            match kind {
                PT_LOAD => {
                    if offset == 0 {
                        bias = Some(start.wrapping_sub(address));
                    }
                    loads.push(address..address.wrapping_add(len));
                }
                PT_GNU_EH_FRAME => unwind_header = Some(address..address.wrapping_add(len)),
                _ => {}
            }
        }
        let bias = bias?;
        let unwind_info =
            unwind_header.and_then(|header| UnwindInfo::read(bias, &header, &loads, in_place));
        Some(Self {
            addresses,
            bias,
            path: path.to_owned(),
            unwind_info,
        })
    }

    fn rules(&self) -> Module<&'static [u8]> {
        let range = |start: u64, bytes: &[u8]| start..start + bytes.len() as u64;
        let info = self.unwind_info.as_ref();
        let sections = ExplicitModuleSectionInfo {
            eh_frame_hdr_svma: info.map(|info| range(info.header_at, info.header)),
            eh_frame_hdr: info.map(|info| info.header),
            eh_frame_svma: info.map(|info| range(info.frames_at, info.frames)),
            eh_frame: info.map(|info| info.frames),
            ..ExplicitModuleSectionInfo::default()
        };
        Module::new(String::new(), self.addresses.clone(), self.bias, sections)
    }
}

const PT_LOAD: u32 = 1;
const PT_GNU_EH_FRAME: u32 = 0x6474_e550;
/// The pointer encoding that all linkers use in this header: four bytes, relative to their own
/// address.
const RELATIVE: u8 = 0x1b;

impl UnwindInfo {
    /// Reads `.eh_frame_hdr`, which programs need for themselves, and `.eh_frame`, which it leads to.
    fn read(bias: u64, header: &Range<u64>, loads: &[Range<u64>], in_place: bool) -> Option<Self> {
        let bytes = bytes(bias, header, in_place)?;
        if bytes.get(1) != Some(&RELATIVE) {
            return None;
        }
        let offset = i32::from_le_bytes(*bytes.get(4..)?.first_chunk()?);
        let frames_at = (header.start + 4).wrapping_add_signed(i64::from(offset));
        // It has an end of its own, somewhere in what is loaded.
        let end = loads.iter().find(|load| load.contains(&frames_at))?.end;
        Some(Self {
            header_at: header.start,
            header: bytes,
            frames_at,
            frames: self::bytes(bias, &(frames_at..end), in_place)?,
        })
    }
}

/// The bytes of a module, for good.
fn bytes(bias: u64, range: &Range<u64>, in_place: bool) -> Option<&'static [u8]> {
    let address = bias.wrapping_add(range.start);
    let len = usize::try_from(range.end.checked_sub(range.start)?).ok()?;
    if in_place {
        let start = std::ptr::with_exposed_provenance(usize::try_from(address).ok()?);
        // SAFETY: the program itself says that this is loaded, which it stays.
        return Some(unsafe { std::slice::from_raw_parts(start, len) });
    }
    let mut copy = vec![0; len];
    read_memory(address, &mut copy).then(|| &*copy.leak())
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Before a fork.
pub(super) fn hold() {
    REFRESH.hold();
}

/// After a fork.
pub(super) fn release() {
    REFRESH.release();
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 1_000 * PAUSE;

    fn refresh() -> Refresh {
        Refresh {
            paid_until: 0,
            unknown: [None; UNKNOWN],
        }
    }

    #[test]
    fn libraries_that_are_loaded_one_after_the_other_are_found_at_once() {
        let mut refresh = refresh();
        for n in 0..BURST {
            assert!(refresh.start(n << 20, START));
        }
        assert!(!refresh.start(1 << 40, START));
        assert!(!refresh.start(1 << 40, START + PAUSE - 1));
        assert!(refresh.start(1 << 40, START + PAUSE));
    }

    #[test]
    fn an_address_without_a_module_is_not_looked_for_with_each_sample() {
        let mut refresh = refresh();
        assert!(refresh.start(0x1234, START));
        assert!(!refresh.start(0x1238, START + PAUSE - 1));
        assert!(refresh.start(0x7777_0000, START + PAUSE - 1));
        assert!(refresh.start(0x1234, START + PAUSE));
    }
}
