//! The functions and variables of the runtime that a snapshot needs.
//!
//! They are looked up before the process is copied: another thread may hold the lock of the dynamic linker
//! then, and never release it in the copy.

use std::ffi::{CStr, c_int, c_void};
use std::sync::OnceLock;

use crate::runtime::{Kind, Runtime, symbol};

/// The types of OCaml 4's functions.
pub(super) mod single {
    use super::c_int;
    pub(in super::super) type Action = extern "C" fn(usize, *mut usize);
    pub(in super::super) type DoRoots = extern "C" fn(Action, c_int);
    pub(in super::super) type Scan = extern "C" fn(Action);
    pub(in super::super) type Lookup = extern "C" fn(usize) -> c_int;
}

/// The types of OCaml 5's functions.
pub(super) mod domains {
    use super::{c_int, c_void};
    pub(in super::super) type Action = extern "C" fn(*mut c_void, usize, *mut usize);
    pub(in super::super) type DoRoots = extern "C" fn(Action, c_int, *mut c_void, usize, c_int);
    pub(in super::super) type ScanGlobal = extern "C" fn(Action, *mut c_void);
    pub(in super::super) type Hook = extern "C" fn(Action, c_int, *mut c_void, usize);
    pub(in super::super) type ScanSampler = extern "C" fn(Action, c_int, *mut c_void, usize, bool);
    pub(in super::super) type ScanStack = extern "C" fn(Action, c_int, *mut c_void, usize, usize);
    pub(in super::super) type Descriptors = extern "C" fn() -> *const c_void;
}

/// Functions and variables of all versions.
#[derive(Debug)]
pub(super) struct Functions {
    /// `caml_globals`
    pub(super) modules: usize,
    /// `caml_scan_roots_hook`
    pub(super) hook: usize,
    /// `caml_ephe_none`
    pub(super) no_key: Option<usize>,
    /// 4.11, whose closures do not say where their environment begins.
    pub(super) is_oldest: bool,
    pub(super) of_kind: OfKind,
}

/// Functions and variables of some versions.
#[derive(Debug)]
pub(super) enum OfKind {
    Single {
        all: single::DoRoots,
        registered: single::Scan,
        finalisers: single::Scan,
        sampler: single::Scan,
        lookup: single::Lookup,
        /// `caml_ephe_list_head`
        ephemerons: usize,
        /// `caml_frame_descriptors`, `caml_frame_descriptors_mask`
        descriptors: (usize, usize),
    },
    Domains {
        all: domains::DoRoots,
        registered: domains::ScanGlobal,
        finalisers: domains::DoRoots,
        sampler: domains::ScanSampler,
        scan_stack: domains::ScanStack,
        descriptors: domains::Descriptors,
    },
}

/// The functions of the runtime; the error is the name of one that it does not have.
pub(super) fn find(runtime: &Runtime) -> Result<&'static Functions, &'static CStr> {
    static FOUND: OnceLock<Result<Functions, &CStr>> = OnceLock::new();
    let found = FOUND.get_or_init(|| Functions::find(runtime.kind));
    found.as_ref().map_err(|name| *name)
}

fn variable(name: &'static CStr) -> Result<usize, &'static CStr> {
    symbol(name).ok_or(name)
}

/// # Safety
///
/// `F` is the type of the function.
unsafe fn function<F: Copy>(name: &'static CStr) -> Result<F, &'static CStr> {
    const { assert!(size_of::<F>() == size_of::<usize>()) };
    let address = variable(name)?;
    // SAFETY: the caller promises the type, and it has the size of an address.
    Ok(unsafe { std::mem::transmute_copy(&address) })
}

impl Functions {
    fn find(kind: Kind) -> Result<Self, &'static CStr> {
        // SAFETY: these are their types in OCaml 4.11 to 4.14, and in 5.3.
        let of_kind = unsafe {
            match kind {
                Kind::Single => OfKind::Single {
                    all: function(c"caml_do_roots")?,
                    registered: function(c"caml_scan_global_roots")?,
                    finalisers: function(c"caml_final_do_roots")?,
                    sampler: function(c"caml_memprof_do_roots")?,
                    lookup: function(c"caml_page_table_lookup")?,
                    ephemerons: variable(c"caml_ephe_list_head")?,
                    descriptors: (
                        variable(c"caml_frame_descriptors")?,
                        variable(c"caml_frame_descriptors_mask")?,
                    ),
                },
                Kind::Domains { .. } => OfKind::Domains {
                    all: function(c"caml_do_roots")?,
                    registered: function(c"caml_scan_global_roots")?,
                    finalisers: function(c"caml_final_do_roots")?,
                    sampler: function(c"caml_memprof_scan_roots")?,
                    scan_stack: function(c"caml_scan_stack")?,
                    descriptors: function(c"caml_get_frame_descrs")?,
                },
            }
        };
        Ok(Self {
            modules: variable(c"caml_globals")?,
            hook: variable(c"caml_scan_roots_hook")?,
            no_key: symbol(c"caml_ephe_none"),
            is_oldest: symbol(c"caml_memprof_suspended").is_some(),
            of_kind,
        })
    }
}
