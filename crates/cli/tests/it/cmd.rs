//! The binary as a user meets it: the README, the documentation, and the commands under `cmd`, all
//! run in the project's folder.

use std::path::Path;

#[test]
fn documented_commands_print_what_is_documented() {
    std::env::set_current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap();
    let of_other_builds = if cfg!(recording) {
        "crates/cli/tests/cmd/record-unavailable.trycmd"
    } else {
        "crates/cli/tests/cmd/record.trycmd"
    };
    trycmd::TestCases::new()
        // What the documentation shows is drawn for this width, with these characters.
        .env("COLUMNS", "100")
        .env("LC_ALL", "C.UTF-8")
        .case("crates/cli/tests/cmd/*.trycmd")
        .case("README.md")
        .case("docs/*.md")
        .skip(of_other_builds)
        .run();
}
