//! Attribution of memory to the innermost function outside of libraries.
#![expect(clippy::float_cmp, reason = "what is exact is to be exact")]

use std::collections::BTreeMap;

use heapline_formats::{Options, Reader};
use heapline_profile::query::Pattern;
use heapline_profile::reports::{
    DiffOptions, HotspotOptions, LeakOptions, SummaryOptions, TreeOptions, diff, hotspots, leaks,
    summary, tree,
};
use heapline_profile::{
    Estimator, GroupBy, Look, OwnCode, Profile, Query, Scope, Share, StoreOptions,
};
use heapline_testkit::lives::{self, Life};

fn load(lives: &[Life]) -> Profile {
    let bytes = std::io::Cursor::new(lives::trace(lives, 1.0, 0));
    let mut reader = Reader::new(bytes, Options::default()).unwrap();
    Profile::load(&mut reader, StoreOptions::default()).unwrap()
}

fn own() -> Look {
    Look {
        own_code: true,
        ..Look::default()
    }
}

fn mine(patterns: &[&str]) -> Look {
    Look {
        mine: patterns.iter().map(|text| Pattern::glob(text)).collect(),
        ..Look::default()
    }
}

/// The bytes and the bytes with callees of each row, and what counts as own code.
fn table(profile: &Profile, by: GroupBy, look: Look) -> (BTreeMap<String, (f64, f64)>, OwnCode) {
    let scope = Scope::new(profile, &Query::default(), Estimator::default());
    let options = HotspotOptions {
        by,
        look,
        ..HotspotOptions::default()
    };
    let report = hotspots(&scope, &options);
    let rows = report.rows.iter().map(|row| {
        let inclusive = row.inclusive.map_or(0.0, |figures| figures.bytes.value);
        (
            row.label.name.clone(),
            (row.own.allocated.bytes.value, inclusive),
        )
    });
    (rows.collect(), report.subject.own_code.unwrap())
}

fn rows(expected: &[(&str, f64, f64)]) -> BTreeMap<String, (f64, f64)> {
    let rows = expected.iter();
    rows.map(|&(name, own, inclusive)| (name.to_owned(), (own, inclusive)))
        .collect()
}

/// A program that calls libraries, which call it back.
fn ocaml() -> Vec<Life> {
    vec![
        Life::new(
            16,
            1,
            &["Main.run", "Stdlib__Map.Make.add", "Stdlib__Map.Make.bal"],
        ),
        Life::new(
            32,
            2,
            &["Main.run", "Lwt.bind", "Cache.add", "Base__List.map"],
        ),
        Life::new(64, 3, &["Main.run", "Lwt.bind", "Cache.add"]),
        // The program's own module only begins like a library.
        Life::new(128, 4, &["Main.run", "Basement.dig", "caml_alloc_string"]),
        Life::new(256, 5, &["Lwt_main.run", "Stdlib__Queue.add"]),
        Life::new(512, 6, &["Main.run", "Stdlib__List.iter", "Main.run.(fun)"]),
    ]
}

#[test]
fn memory_of_ocaml_libraries_is_attributed_to_their_callers() {
    let profile = load(&ocaml());
    let (found, own_code) = table(&profile, GroupBy::Function, own());
    assert_eq!(
        found,
        rows(&[
            ("Main.run", 16.0, 752.0),
            ("Cache.add", 96.0, 96.0),
            ("Basement.dig", 128.0, 128.0),
            ("(no own code)", 256.0, 256.0),
            ("Main.run.(fun)", 512.0, 512.0),
        ])
    );
    assert_eq!(own_code.libraries, ["Base", "Lwt", "Lwt_main", "Stdlib"]);
    assert_eq!(own_code.mine, [""; 0]);
    let (found, _) = table(&profile, GroupBy::Module, own());
    assert_eq!(found["Main"], (528.0, 752.0));

    let (found, own_code) = table(&profile, GroupBy::Function, mine(&["Cache.*", "Lwt_main"]));
    assert_eq!(
        found,
        rows(&[
            ("Cache.add", 96.0, 96.0),
            ("Lwt_main.run", 256.0, 256.0),
            ("(no own code)", 656.0, 656.0),
        ])
    );
    assert_eq!(own_code.libraries, [""; 0]);
    assert_eq!(own_code.mine.len(), 2);
}

/// Programs that dune builds: all of their modules are in one that nobody writes.
#[test]
fn functions_of_dune_executables_have_the_names_of_their_source() {
    let lives = [
        Life::new(
            16,
            1,
            &["Dune__exe__Main.run", "Dune__exe__Registry.open_session"],
        ),
        Life::new(32, 2, &["Dune__exe__Main.run", "Stdlib__List.map"]),
        // The program's own module has the name of a library.
        Life::new(64, 3, &["Dune__exe__Logs.write"]),
    ];
    let profile = load(&lives);
    let (found, own_code) = table(&profile, GroupBy::Function, own());
    assert_eq!(
        found,
        rows(&[
            ("Registry.open_session", 16.0, 16.0),
            ("Main.run", 32.0, 48.0),
            ("Logs.write", 64.0, 64.0),
        ])
    );
    assert_eq!(own_code.libraries, ["Stdlib"]);
    let (found, _) = table(&profile, GroupBy::Crate, own());
    assert_eq!(found["Dune.exe"].0, 112.0);
    let (found, _) = table(&profile, GroupBy::Module, own());
    assert_eq!(found["Registry"].0, 16.0);
}

/// A module in place of a function, and a word that is part of a name, are what was meant.
#[test]
fn a_word_that_names_contain_is_suggested() {
    let profile = load(&[Life::new(16, 1, &["Typexp.transl", "Stdlib__List.map"])]);
    let unmatched = |query: &str| Query::parse(query).unwrap().unmatched(&profile);
    assert_eq!(
        unmatched("inside typexp"),
        [r#"function "typexp"; did you mean module "Typexp"?"#]
    );
    assert_eq!(
        unmatched("inside list"),
        [r#"function "list"; did you mean module "Stdlib.List"?"#]
    );
    assert_eq!(
        unmatched("inside rans"),
        [r#"function "rans"; did you mean /rans/i?"#]
    );
    assert_eq!(unmatched("inside nowhere"), [r#"function "nowhere""#]);
}

/// The end of a name stands for it, unless there is a function of that name itself.
#[test]
fn names_can_be_given_by_their_last_parts() {
    let lives = [
        Life::new(16, 1, &["Main.run", "Stdlib__List.map"]),
        Life::new(32, 2, &["Main.run", "Base__List.map", "Base__List.init"]),
        Life::new(64, 3, &["Main.run", "init"]),
        Life::new(128, 4, &["Main.run", "core::slice::sort"]),
    ];
    let profile = load(&lives);
    let bytes = |query: &str| {
        let query = Query::parse(query).unwrap();
        let unmatched = query.unmatched(&profile);
        let scope = Scope::new(&profile, &query, Estimator::default());
        (scope.total().bytes.value, unmatched.len())
    };
    for (query, expected) in [
        ("inside List.map", (48.0, 0)),
        ("inside map", (48.0, 0)),
        ("site = slice::sort", (128.0, 0)),
        ("site = init", (64.0, 0)),
        ("module = List", (48.0, 0)),
        ("function = List.init called by List.map", (32.0, 0)),
        ("inside \"L*.map\"", (48.0, 0)),
        ("inside ist.map", (0.0, 1)),
        ("inside /^List/", (0.0, 1)),
    ] {
        assert_eq!(bytes(query), expected, "{query}");
    }
    let (found, _) = table(&profile, GroupBy::Function, mine(&["List.map"]));
    assert_eq!(found["Stdlib.List.map"].0, 16.0);
    assert_eq!(found["Base.List.map"].0, 32.0);
    let scope = Scope::new(&profile, &Query::default(), Estimator::default());
    let options = HotspotOptions {
        look: Look {
            hide: vec![Pattern::glob("List.map"), Pattern::glob("slice::*")],
            all_code: true,
            ..Look::default()
        },
        ..HotspotOptions::default()
    };
    let names = hotspots(&scope, &options).rows.into_iter();
    let mut names: Vec<String> = names.map(|row| row.label.name).collect();
    names.sort();
    assert_eq!(names, ["Base.List.init", "Main.run", "init"]);
    let focused = |pattern: &str| {
        let options = TreeOptions {
            focus: vec![Pattern::glob(pattern)],
            ..TreeOptions::default()
        };
        tree(&scope, &options).focus_total.unwrap().bytes.value
    };
    assert_eq!(focused("List.map"), 48.0);
    assert_eq!(focused("init"), 64.0);
}

#[test]
fn dependencies_of_rust_programs_are_libraries() {
    let lives = [
        Life::new(
            16,
            1,
            &[
                "std::rt::lang_start",
                "app::main@src/main.rs",
                "app::load@src/main.rs",
                "serde_json::de::from_str@/home/me/.cargo/registry/src/x/serde_json-1.0.1/src/de.rs",
                // Nothing but another function tells that this is a dependency.
                "serde_json::de::grow@",
                "alloc::vec::Vec<T,A>::push@/rustc/9fc6/library/alloc/src/vec/mod.rs",
            ],
        ),
        Life::new(
            32,
            2,
            &[
                "app::main@src/main.rs",
                "<app::Val as serde::de::Deserialize>::deserialize@src/val.rs",
                "__rust_alloc@",
            ],
        ),
    ];
    let (found, own_code) = table(&load(&lives), GroupBy::Function, own());
    assert_eq!(
        found,
        rows(&[
            ("app::load", 16.0, 16.0),
            (
                "<app::Val as serde::de::Deserialize>::deserialize",
                32.0,
                32.0
            ),
        ])
    );
    assert_eq!(own_code.libraries, ["alloc", "serde_json", "std"]);
}

/// Names that only begin like those of libraries.
#[test]
fn own_modules_are_not_taken_for_libraries_by_the_beginning_of_their_names() {
    let lives = [
        Life::new(16, 1, &["CClosure.inject"]),
        Life::new(
            32,
            2,
            &["CClosure.inject", "CCVector.push", "CCArray.append"],
        ),
        Life::new(64, 3, &["Batch.run", "BatList.map", "Batteries.input"]),
        Life::new(128, 4, &["Lwtest.run", "Lwt_main.run", "Lwt.bind"]),
    ];
    let (found, own_code) = table(&load(&lives), GroupBy::Function, own());
    assert_eq!(
        found,
        rows(&[
            ("CClosure.inject", 48.0, 48.0),
            ("Batch.run", 64.0, 64.0),
            ("Lwtest.run", 128.0, 128.0),
        ])
    );
    let libraries = [
        "BatList",
        "Batteries",
        "CCArray",
        "CCVector",
        "Lwt",
        "Lwt_main",
    ];
    assert_eq!(own_code.libraries, libraries);
}

#[test]
fn paths_of_ocaml_files_tell_libraries_whatever_their_names() {
    let lives = [
        Life::new(
            16,
            1,
            &[
                "Main.run@bin/main.ml",
                "Ptree.add@/home/me/.opam/5.3/lib/ptree/ptree.ml",
            ],
        ),
        Life::new(
            32,
            2,
            &["Main.run@bin/main.ml", "Trie.add@vendor/trie/src/trie.ml"],
        ),
        // The program's own module has the name of a library.
        Life::new(
            64,
            3,
            &["Main.run@bin/main.ml", "Logs.write@/home/me/app/logs.ml"],
        ),
        Life::new(128, 4, &["Main.run@bin/main.ml", "Fmt.pr@src/fmt.ml"]),
    ];
    let (found, own_code) = table(&load(&lives), GroupBy::Function, own());
    assert_eq!(
        found,
        rows(&[("Main.run", 176.0, 240.0), ("Logs.write", 64.0, 64.0)])
    );
    assert_eq!(own_code.libraries, ["Fmt", "Ptree", "Trie"]);
}

#[test]
fn the_module_of_the_program_is_own_code_whatever_its_name() {
    let lives = [
        Life::new(16, 1, &["Lwt_server.serve", "Lwt.bind", "Stdlib__List.map"]),
        Life::new(32, 2, &["Lwt_main.run", "Lwt_server.answer"]),
    ];
    for executable in [
        "lwt_server",
        "/srv/bin/lwt_server.exe",
        "./lwt_server.native",
    ] {
        let bytes = std::io::Cursor::new(lives::trace_of(executable, &lives, 1.0, 0));
        let mut reader = Reader::new(bytes, Options::default()).unwrap();
        let profile = Profile::load(&mut reader, StoreOptions::default()).unwrap();
        let (found, own_code) = table(&profile, GroupBy::Function, own());
        assert_eq!(
            found,
            rows(&[
                ("Lwt_server.serve", 16.0, 16.0),
                ("Lwt_server.answer", 32.0, 32.0)
            ])
        );
        assert_eq!(own_code.libraries, ["Lwt", "Lwt_main", "Stdlib"]);
    }
    let (_, own_code) = table(&load(&lives), GroupBy::Function, own());
    assert!(own_code.libraries.contains(&"Lwt_server".to_owned()));
}

/// All of its files are in the package manager's directories.
#[test]
fn programs_that_a_package_manager_built_have_own_code() {
    let lives = [
        Life::new(
            16,
            1,
            &["Main.run@/home/me/.opam/5.3/.opam-switch/build/app/main.ml"],
        ),
        Life::new(
            32,
            2,
            &[
                "Main.run@/home/me/.opam/5.3/.opam-switch/build/app/main.ml",
                "Lwt.bind@/home/me/.opam/5.3/.opam-switch/build/lwt/lwt.ml",
                "Stdlib__List.map@list.ml",
            ],
        ),
    ];
    let (found, own_code) = table(&load(&lives), GroupBy::Function, own());
    assert_eq!(found, rows(&[("Main.run", 48.0, 48.0)]));
    assert_eq!(own_code.libraries, ["Lwt", "Stdlib"]);
}

/// All reports attribute the same memory to the same functions.
#[test]
fn trees_comparisons_and_summaries_agree_with_the_table() {
    let profile = load(&ocaml());
    let scope = Scope::new(&profile, &Query::default(), Estimator::default());
    let (expected, _) = table(&profile, GroupBy::Function, own());
    let options = TreeOptions {
        look: own(),
        min: Share(0.0),
        ..TreeOptions::default()
    };
    let report = tree(&scope, &options);
    let mut found: BTreeMap<&str, f64> = BTreeMap::new();
    for node in &report.nodes {
        *found.entry(&node.label.name).or_default() += node.own.bytes.value;
    }
    for (name, (bytes, _)) in &expected {
        assert_eq!(found[&**name], *bytes, "{name}");
    }
    assert!(report.subject.own_code.is_some());
    let bottom_up = TreeOptions {
        bottom_up: true,
        ..options
    };
    let report = tree(&scope, &bottom_up);
    let roots = report.nodes.iter().filter(|node| node.parent.is_none());
    for root in roots {
        let (bytes, _) = expected[&root.label.name];
        assert_eq!(root.total.bytes.value, bytes, "{}", root.label.name);
    }

    let options = DiffOptions {
        look: own(),
        ..DiffOptions::default()
    };
    let report = diff(&scope.live_at(profile.before(3)), &scope, &options);
    for row in &report.rows {
        let (bytes, _) = expected[&row.label.name];
        assert_eq!(row.change.after.bytes.value, bytes, "{}", row.label.name);
    }
    assert!(report.before.own_code.is_some() && report.after.own_code.is_some());
    let options = SummaryOptions {
        by: GroupBy::Function,
        look: own(),
        ..SummaryOptions::default()
    };
    for row in &summary(&scope, &options).lists[2].rows {
        let (bytes, _) = expected[&row.label.name];
        assert_eq!(row.figures.bytes.value, bytes, "{}", row.label.name);
    }
}

/// Leaks also name the function of the library.
#[test]
fn leaks_name_own_code_and_the_library() {
    let lives: Vec<Life> = (0..1000)
        .map(|i| {
            Life::new(
                16,
                i * 10,
                &["Main.run", "Cache.add", "Lwt.bind", "Stdlib__List.map"],
            )
        })
        .collect();
    let profile = load(&lives);
    let scope = Scope::new(&profile, &Query::default(), Estimator::default());
    let label = |look: Look| {
        let options = LeakOptions {
            by: GroupBy::Site,
            look,
            ..LeakOptions::default()
        };
        let report = leaks(&scope, &options, None);
        let label = report.rows[0].label.clone();
        (label.name, label.via.unwrap())
    };
    let names = |name: &str, via: &str| (name.to_owned(), via.to_owned());
    assert_eq!(
        label(Look::default()),
        names("Cache.add", "Stdlib.List.map")
    );
    // Among all functions, the standard library's callers are named, whoever they are.
    let all = Look {
        all_code: true,
        ..Look::default()
    };
    assert_eq!(label(all), names("Lwt.bind", "Stdlib.List.map"));
    assert_eq!(
        label(mine(&["Main.*"])),
        names("Main.run", "Stdlib.List.map")
    );
}

/// Whichever functions of libraries it calls, a function is one row.
#[test]
fn leaks_are_of_whole_functions() {
    let libraries = ["Stdlib__List.map", "Stdlib__Buffer.add", "Lwt.bind"];
    let lives: Vec<Life> = (0..1000)
        .zip(libraries.iter().cycle())
        .map(|(i, library)| Life::new(16, i * 10, &["Main.run", "Cache.add", library]))
        .collect();
    let profile = load(&lives);
    let scope = Scope::new(&profile, &Query::default(), Estimator::default());
    let options = LeakOptions {
        by: GroupBy::Function,
        ..LeakOptions::default()
    };
    let report = leaks(&scope, &options, None);
    let rows: Vec<_> = report.rows.iter().map(|row| &row.label).collect();
    assert_eq!((rows.len(), &*rows[0].name), (1, "Cache.add"), "{rows:?}");
    assert_eq!(rows[0].via, None);
    assert_eq!(report.rows[0].growth, report.growth);
}

/// Reports that name the code to look at attribute to own code by default, but not by module or crate.
#[test]
fn lists_of_functions_are_of_own_code_by_default() {
    let lives: Vec<Life> = (0..1000)
        .map(|i| Life::new(16, i * 10, &["Main.run", "Cache.add", "Stdlib__List.map"]))
        .collect();
    let profile = load(&lives);
    let scope = Scope::new(&profile, &Query::default(), Estimator::default());
    let largest = |by: GroupBy, look: Look| {
        let options = SummaryOptions {
            by,
            look,
            ..SummaryOptions::default()
        };
        let report = summary(&scope, &options);
        assert_eq!(
            report.subject.own_code.is_some(),
            report.lists[0].rows[0].label.name.starts_with("Cache")
        );
        report.lists[0].rows[0].label.name.clone()
    };
    let all = Look {
        all_code: true,
        ..Look::default()
    };
    assert_eq!(largest(GroupBy::Site, Look::default()), "Cache.add");
    assert_eq!(largest(GroupBy::Function, Look::default()), "Cache.add");
    assert_eq!(largest(GroupBy::Function, all), "Stdlib.List.map");
    assert_eq!(largest(GroupBy::Module, Look::default()), "Stdlib.List");
    assert_eq!(largest(GroupBy::Module, own()), "Cache");
}
