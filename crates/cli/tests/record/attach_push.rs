//! Profiles of programs that are attached to are pushed while these run.

use heapline_testkit::collector::{Collector, Reply};
use serde_json::Value;

use crate::attach::{Running, assert_undisturbed, said};
use crate::pushed;
use crate::run::heapline;
use crate::toolchain::compilers;

#[test]
fn profiles_pushed_while_attached_sum_up_to_the_trace() {
    for compiler in compilers("profiles_pushed_while_attached_sum_up_to_the_trace") {
        let program = compiler.program("steady");
        let running = Running::start(&program, &[]);
        let trace = running.folder.path().join("trace.ctf");
        let server = Collector::start(|_, _| Reply::status(200));
        let push = format!("pyroscope={}", server.url());
        let output = running.attach(&[
            "--for",
            "2s",
            "--rate",
            "1e-3",
            "--push",
            &push,
            "--push-interval",
            "200ms",
            "-o",
            trace.to_str().unwrap(),
        ]);
        assert!(output.status.success(), "{output:?}");
        let received = server.received();
        let expected = format!("pushed {} profiles to pyroscope", received.len());
        assert!(said(&output).contains(&expected), "{}", said(&output));
        assert!(received.len() > 2, "{}", received.len());

        let (allocated, live) = pushed::sums(&received);
        for (sums, query) in [(allocated, "size >= 0"), (live, "live at end")] {
            let report = heapline()
                .args(["summary", "--json", "--where", query])
                .arg(&trace)
                .output()
                .unwrap();
            let summary: Value = serde_json::from_slice(&report.stdout).unwrap();
            let figures = &summary["allocated"];
            let figures = ["blocks", "bytes"].map(|unit| figures[unit]["value"].as_f64().unwrap());
            pushed::assert_close(sums, figures, 100.0);
        }
        assert!(allocated[1] > 1_000_000, "{allocated:?}");
        assert_undisturbed(&program, &running.finish(), 1);
    }
}
