//! The fixtures in the project are those that its code makes.

use heapline_testkit::fixtures;

#[test]
fn generated_fixtures_are_up_to_date() {
    for (name, bytes) in fixtures::generated() {
        let found = std::fs::read(fixtures::folder().join(name));
        assert!(
            found.is_ok_and(|found| found == bytes),
            "fixtures/{name} is not what the code makes: run `cargo xtask fixtures`, and say why in the commit"
        );
    }
}
