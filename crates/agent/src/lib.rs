//! The library that is preloaded into OCaml programs to record them as they are.
//!
//! OCaml's runtime has a sampler, `Gc.Memprof`, that calls five OCaml closures: when a sampled block
//! is allocated, promoted, or found dead. A program asks for that itself, or does not. This library
//! asks for it on behalf of a program that does not:
//!
//! 1. `preload`: its constructor runs before `main`. It reads what is wanted from the
//!    environment, and removes that from it.
//! 2. `runtime`: it looks for OCaml's runtime in the program, which exports its symbols
//!    even when it is stripped, and tells by them what it can do.
//! 3. `patch`, `arch`: it overwrites the first instructions of `caml_start_program`, which
//!    the runtime calls when it is ready to run OCaml, with a jump to our hook. That
//!    restores them, starts the sampler, and goes on as if nothing had been.
//! 4. `tracker`: the closures, in memory that is not OCaml's, with code that leads to our functions.
//! 5. `callbacks`: these functions, which tell the recorder (`heapline_recorder`).
//!
//! What it must never do is to harm the program: whatever goes wrong ends the recording, quietly.
//! So all memory is our own (`memory`), panics are caught, and nothing is written but
//! the trace, and messages if the recording cannot begin.

mod arch;
mod callbacks;
mod domains;
mod memory;
mod patch;
mod preload;
mod runtime;
mod tracker;

#[global_allocator]
static MEMORY: memory::Memory = memory::Memory::new();
