//! The library that is preloaded into OCaml programs to record them without a rebuild.
//!
//! OCaml's runtime has a sampler, `Gc.Memprof`, that calls five OCaml closures when a sampled block
//! is allocated, promoted, or found dead. This library starts it in programs that do not use it
//! themselves:
//!
//! 1. `preload`: the constructor runs before `main`. It reads the settings from the environment, and
//!    removes them from it.
//! 2. `runtime`: finds OCaml's runtime in the program, which exports its symbols even when it is
//!    stripped, and determines its version from them.
//! 3. `patch`, `arch`: overwrites the first instructions of `caml_start_program`, which the runtime
//!    calls to start OCaml code, with a jump to our hook. The hook restores them, starts the sampler, and
//!    continues with the original function.
//! 4. `tracker`: the closures, in memory outside of OCaml's heap, whose code calls our functions.
//! 5. `callbacks`: these functions, which pass the events to the recorder (`heapline_recorder`).
//! 6. `stacks`, `walker`, `frame_table`: call stacks, found at the cost of what has changed, in place
//!    of the sampler's.
//!
//! 7. `attach`, `safe_point`, `profile`: entry points for programs that already run, the moments at which
//!    their samplers can be started and stopped, and whether there is one; `own_sampler`: programs that
//!    start one themselves.
//! 8. `snapshot`: writes all blocks of the heap, and what holds them, in a copy of the process.
//! 9. `layout`: the offsets of the runtime's data that all of these need; `explain`: prints them.
//! 10. `collector`: what the garbage collector does, by `hook`s of the runtime, and its counters; `exit`: the end of
//!     the program, where they are read for the last time.
//! 11. `dormant`: a preloaded program that is not recorded until `heapline attach` asks it to, by a socket.
//!
//! It must never harm the program: any error silently ends the recording. So it uses its own memory
//! (`memory`), catches panics, and writes nothing but the trace, and a message if the recording cannot
//! start.

mod arch;
pub mod attach;
mod callbacks;
mod check;
mod collector;
mod domains;
mod dormant;
mod exit;
pub mod explain;
mod frame_table;
mod hook;
mod layout;
mod memory;
mod own_sampler;
mod patch;
mod preload;
mod profile;
mod runtime;
mod safe_point;
pub mod snapshot;
mod stacks;
mod tracker;
mod walker;

#[global_allocator]
static MEMORY: memory::Memory = memory::Memory::new();
