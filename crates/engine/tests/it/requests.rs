//! Requests as text: parsing, keys, commands, and errors.

use heapline_engine::{EngineError, ErrorKind, Filter, Params, Request};
use heapline_profile::query::{Pattern, TimePoint};
use heapline_profile::reports::{HotspotOptions, SortBy};
use heapline_profile::{GroupBy, Look, Query};
use proptest::prelude::*;

fn parse(report: &str, pairs: &[(&str, &str)]) -> Result<Request, EngineError> {
    Request::from_pairs(report, pairs.iter().copied())
}

#[test]
fn a_request_has_one_key() {
    let written = parse(
        "hotspots",
        &[("where", "live at peak"), ("by", "site"), ("rows", "20")],
    );
    let built = Request::Hotspots(Params {
        filter: Filter {
            queries: vec![Query::live_at(TimePoint::Peak)],
            ..Filter::default()
        },
        options: HotspotOptions {
            by: GroupBy::Site,
            ..HotspotOptions::default()
        },
    });
    assert_eq!(written.as_ref(), Ok(&built));
    assert_eq!(built.key(), "hotspots?by=site&where=live+at+peak");
    assert_eq!(Request::Info.key(), "info");
    assert_eq!(parse("tree", &[("min", "0.01")]).unwrap().key(), "tree");
    let empty = [("where", " "), ("bottom-up", "false"), ("sites", "")];
    assert_eq!(parse("tree", &empty).unwrap().key(), "tree?sites=true");
}

#[test]
fn all_values_survive_being_written() {
    for (report, pairs) in [
        (
            "hotspots",
            &[
                ("by", "address"),
                ("estimator", "count"),
                ("hide", "Stdlib.*"),
                ("hide", "/tree/i"),
                ("keep-recursion", "true"),
                ("live", "90%"),
                ("mine", "Mix.*"),
                ("mine", "/^jaq/"),
                ("own-code", "true"),
                ("rows", "3"),
                ("sort", "inclusive"),
                ("split-anonymous", "true"),
                ("where", "size > 3"),
                ("where", "promoted"),
            ][..],
        ),
        (
            "flame",
            &[
                ("bottom-up", "true"),
                ("by", "module"),
                ("depth", "2"),
                ("details", "true"),
                ("max-nodes", "5"),
                ("min", "0.5%"),
                ("sites", "true"),
            ],
        ),
        ("tree", &[("focus", "Mix.words"), ("focus", "/a b/")]),
        (
            "series",
            &[
                ("by", "function"),
                ("callers-of", "f"),
                ("from", "0.01s"),
                ("measure", "allocation-rate"),
                ("points", "400"),
                ("to", "peak"),
                ("top", "3"),
            ],
        ),
        ("summary", &[("findings", "3"), ("rows", "2")]),
        ("stats", &[("bins", "5"), ("segments", "3")]),
        ("heatmap", &[("times", "7")]),
        ("leaks", &[("rows", "2"), ("tail", "20%")]),
        (
            "peak",
            &[
                ("by", "module"),
                ("rows", "7"),
                ("window", "1s..peak"),
                ("without", "site = \"a\""),
                ("without", "promoted"),
            ],
        ),
        (
            "blocks",
            &[("hide", "Stdlib.*"), ("rows", "3"), ("sort", "age")],
        ),
        (
            "source",
            &[
                ("all", "true"),
                ("context", "5"),
                ("mine", "Mix.*"),
                ("name", "Mix.words"),
            ],
        ),
        (
            "diff",
            &[
                ("of", "end"),
                ("only-real", "true"),
                ("window", "..50%"),
                ("window", "50%.."),
            ],
        ),
        ("diff", &[("per", "time")]),
        ("retained", &[("by", "closure"), ("rows", "3")]),
        ("retained", &[("at", "Cache.table > Hashtbl.t")]),
        ("dominators", &[("depth", "3"), ("min", "0.1%")]),
        (
            "why",
            &[
                ("address", "0x8000"),
                ("depth", "2"),
                ("held-by", "/Cache/"),
                ("rows", "1"),
                ("site", "Parser.*"),
                ("through", "/Cache/"),
                ("where", "size > 3"),
            ],
        ),
        ("why", &[("kind", "closure Cache.*")]),
        ("findings", &[("rows", "1")]),
        (
            "complete",
            &[("cursor", "3"), ("rows", "1"), ("text", "size > 1k")],
        ),
    ] {
        let request = parse(report, pairs).unwrap();
        assert_eq!(request.name(), report);
        let written = request.pairs();
        let written: Vec<(&str, &str)> = written.iter().map(|(n, v)| (&**n, &**v)).collect();
        assert_eq!(written, pairs, "{report}");
    }
}

#[test]
fn what_makes_no_sense_is_an_error_with_its_place() {
    for (report, pairs, message) in [
        ("summary", &[("row", "3")][..], "no such parameter: `row`"),
        ("summary", &[("help", "")], "no such parameter: `help`"),
        ("summary", &[("", "")], "no such parameter: ``"),
        ("summary", &[("rows", "many")], "a number from 0 to 100000"),
        ("summary", &[("rows", "-1")], "a number from 0 to 100000"),
        (
            "summary",
            &[("rows", "100001")],
            "a number from 0 to 100000",
        ),
        ("summary", &[("rows", "1"), ("rows", "2")], "more than once"),
        (
            "hotspots",
            &[("sort", "beauty")],
            "allocated, inclusive, peak",
        ),
        ("hotspots", &[("split-anonymous", "maybe")], "true or false"),
        ("tree", &[("by", "domain")], "function, site, file, module"),
        ("tree", &[("min", "101%")], "0% to 100%"),
        ("tree", &[("hide", "/(/")], "not a valid regular expression"),
        ("leaks", &[("tail", "60%")], "0% to 50%"),
        ("peak", &[("by", "age")], "site, address, function"),
        ("peak", &[("rows", "101")], "a number from 0 to 100"),
        ("why", &[("address", "here")], "expected an address"),
        ("retained", &[("by", "size")], "root, module, definition"),
        (
            "summary",
            &[("estimator", "guess")],
            "horvitz-thompson, count",
        ),
        ("complete", &[("cursor", "first")], "invalid digit"),
        (
            "info",
            &[("where", "promoted")],
            "no such parameter: `where`",
        ),
    ] {
        let error = parse(report, pairs).unwrap_err();
        assert_eq!(error.kind, ErrorKind::BadParameter, "{error:?}");
        assert!(error.message.contains(message), "{error:?}");
        let place = error.place.unwrap();
        let (name, value) = pairs[pairs.len() - 1];
        assert_eq!(place.parameter, name);
        if !message.contains("more than once") {
            assert_eq!(place.value, value, "{name}");
        }
    }
    let error = parse("nothing", &[]).unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound);
}

#[test]
fn queries_are_refused_where_they_are_wrong() {
    for (report, name, value, span) in [
        ("hotspots", "where", "size > 3 and lifetim > 2s", [13, 20]),
        ("hotspots", "live", "noon", [0, 4]),
        ("series", "from", "then", [0, 4]),
        ("peak", "without", "size > 3 or lifetim > 2s", [12, 19]),
        ("peak", "without", " ", [0, 1]),
        ("diff", "window", "1s..tomorrow", [4, 12]),
    ] {
        let error = parse(report, &[(name, value)]).unwrap_err();
        assert_eq!(error.kind, ErrorKind::BadQuery, "{error:?}");
        let place = error.place.unwrap();
        assert_eq!((&*place.parameter, &*place.value), (name, value));
        assert_eq!(place.span, Some(span));
        assert!(place.expected.is_some());
    }
}

#[test]
fn commands_print_the_same_numbers() {
    let command = |report, pairs: &[(&str, &str)], against| {
        let request = parse(report, pairs).unwrap();
        request.command_line("a b.ctf", against)
    };
    assert_eq!(
        command("info", &[], Some("old")).unwrap(),
        "heapline info 'a b.ctf'"
    );
    let crafted = [
        ("focus", "List.map'"),
        ("where", "size > 1k"),
        ("min", "0.1%"),
    ];
    assert_eq!(
        command("flame", &[("max-nodes", "5"), ("bottom-up", "true")], None).unwrap(),
        "heapline tree 'a b.ctf' --bottom-up"
    );
    assert_eq!(
        command(
            "diff-tree",
            &[("max-nodes", "5"), ("of", "end")],
            Some("old")
        )
        .unwrap(),
        "heapline diff old 'a b.ctf' --tree --of end"
    );
    let windows = [("window", "..50%"), ("window", "50%.."), ("per", "none")];
    assert_eq!(
        command("diff-tree", &windows, Some("old")).unwrap(),
        "heapline diff 'a b.ctf' --tree --window ..50% --window 50%.. --per none"
    );
    let words = shlex::split(&command("flame", &crafted, None).unwrap()).unwrap();
    assert_eq!(
        words,
        [
            "heapline",
            "tree",
            "a b.ctf",
            "--where",
            "size > 1k",
            "--focus",
            "List.map'",
            "--min",
            "0.1%"
        ]
    );
    assert_eq!(
        command("diff", &[("of", "end")], Some("old")).unwrap(),
        "heapline diff old 'a b.ctf' --of end"
    );
    let windows = [("window", "0s..1s"), ("window", "1s..2s")];
    assert_eq!(
        command("diff", &windows, Some("old")).unwrap(),
        "heapline diff 'a b.ctf' --window 0s..1s --window 1s..2s"
    );
    assert_eq!(
        command("hotspots", &[("hide", "-rf")], None).unwrap(),
        "heapline hotspots 'a b.ctf' --hide=-rf"
    );
    assert_eq!(
        command("source", &[("name", "f'"), ("all", "true")], None).unwrap(),
        "heapline source 'a b.ctf' \"f'\" --all"
    );
    assert_eq!(command("complete", &[], None), None);
}

proptest! {
    /// From a request to its text and back, whatever names it has in it.
    #[test]
    fn requests_survive_being_written(
        rows in 0_usize..=100_000,
        sort in 0_usize..5,
        // Those with control characters are for a shell itself: see the tests of `shell_quote`.
        names in proptest::collection::vec("[^\0-\u{1f}\u{7f}-\u{9f}]{0,8}", 0..3),
        split_anonymous: bool,
        keep_recursion: bool,
        micros in proptest::option::of(0..1_u64 << 40),
    ) {
        let sorts = [
            SortBy::Allocated,
            SortBy::Inclusive,
            SortBy::Peak,
            SortBy::End,
            SortBy::Blocks,
        ];
        let request = Request::Hotspots(Params {
            filter: Filter {
                keep_recursion,
                live: micros.map(TimePoint::Micros),
                ..Filter::default()
            },
            options: HotspotOptions {
                rows,
                sort: sorts[sort],
                look: Look {
                    hide: names
                        .iter()
                        .filter_map(|name| Pattern::parse(name).ok())
                        .collect(),
                    split_anonymous,
                    ..Look::default()
                },
                ..HotspotOptions::default()
            },
        });
        let pairs = request.pairs();
        let again = Request::from_pairs("hotspots", pairs.clone()).unwrap();
        prop_assert_eq!(&again, &request);
        prop_assert_eq!(again.pairs(), pairs);
        // A shell and the command line make the same of it.
        let command = request.command_line("trace.ctf", None).unwrap();
        let words = shlex::split(&command).unwrap();
        let mut found = Vec::new();
        let mut words = words.into_iter().skip(3).peekable();
        while let Some(word) = words.next() {
            let option = word.strip_prefix("--").unwrap().to_owned();
            found.push(match option.split_once('=') {
                Some((name, value)) => (name.to_owned(), value.to_owned()),
                None if option == "split-anonymous" || option == "keep-recursion" => {
                    (option, "true".to_owned())
                }
                None => (option, words.next().unwrap()),
            });
        }
        found.sort_by(|(a, _), (b, _)| a.cmp(b));
        prop_assert_eq!(found, request.pairs());
    }
}
