//! Writes the fixtures that are made, not recorded. `cargo xtask fixtures` runs it.

use std::io;

use heapline_testkit::fixtures;

fn main() -> io::Result<()> {
    for (name, bytes) in fixtures::generated() {
        let path = fixtures::folder().join(name);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(path, bytes)?;
    }
    Ok(())
}
