//! The settings of property tests.

use proptest::test_runner::{Config, RngSeed};

/// Runs so many cases, the same ones every time: CI is no place for surprises. `PROPTEST_RNG_SEED` chooses
/// others.
#[must_use]
pub fn property_config(cases: u32) -> Config {
    let default = Config::default();
    Config {
        cases,
        failure_persistence: None,
        rng_seed: match default.rng_seed {
            RngSeed::Random => RngSeed::Fixed(1),
            chosen @ RngSeed::Fixed(_) => chosen,
        },
        ..default
    }
}
