//! Tells the build script of `heapline-cli`, which builds this crate as a shared library, where it is.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::metadata=dir={}", env!("CARGO_MANIFEST_DIR"));
}
