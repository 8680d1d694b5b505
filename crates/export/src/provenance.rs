//! The origin of exported numbers.

use heapline_model::Scheme;
use heapline_profile::{Estimator, Scope};

/// The name of the program that makes the files.
pub(crate) const PROGRAM: &str = concat!("heapline ", env!("CARGO_PKG_VERSION"));

/// The estimator's name, as everywhere.
pub(crate) fn estimator(scope: &Scope<'_>) -> &'static str {
    match scope.estimator() {
        Estimator::HorvitzThompson => "horvitz_thompson",
        Estimator::Count => "count",
    }
}

/// The properties of the trace that readers of a file need.
pub(crate) fn facts(scope: &Scope<'_>) -> Vec<(&'static str, String)> {
    let profile = scope.profile();
    let header = profile.header();
    let rate = match header.scheme {
        Scheme::PerUnit { rate, .. } => rate,
        Scheme::Exact | Scheme::Given => 1.0,
    };
    let mut facts = vec![
        ("heapline.executable_name", header.program.clone()),
        ("heapline.host_name", header.host.clone()),
        ("heapline.pid", header.pid.to_string()),
        ("heapline.start_time_us", header.start_time.to_string()),
        ("heapline.sample_rate", rate.to_string()),
        ("heapline.word_size", (header.word_bytes * 8).to_string()),
        ("heapline.estimator", estimator(scope).to_owned()),
    ];
    if let Some(context) = &header.context {
        facts.push(("heapline.context", context.clone()));
    }
    facts
}

/// A sentence with the origin of the numbers, for formats that people read.
pub(crate) fn sentence(scope: &Scope<'_>) -> String {
    let sampling = scope.profile().sampling();
    let estimator = match scope.estimator() {
        Estimator::HorvitzThompson => "weighted by the probability of being sampled",
        Estimator::Count => "by counting samples",
    };
    if sampling.is_exact() {
        "Every block was recorded: the numbers are exact.".to_owned()
    } else {
        format!(
            "The numbers are estimates from one sample in {:.0} bytes, {estimator} ({}).",
            sampling.bytes_per_sample(),
            self::estimator(scope)
        )
    }
}
