//! The metadata in the first packet of a trace.

/// Comes before the seed among the settings.
const SEED: &str = "seed=";

/// The facts in the first packet of a trace.
///
/// Strings are whatever bytes the traced program put there, replaced where they are not UTF-8.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct TraceInfo {
    /// The probability with which each allocated word, headers included, was sampled.
    /// See [`word_size`](Self::word_size) for the size of a word.
    pub sample_rate: f64,
    /// Bits of a word of the traced program: 32 or 64; or 8 if lengths are in bytes, and bytes
    /// were sampled.
    pub word_size: u8,
    /// The program that was traced.
    pub executable_name: String,
    /// The machine it ran on.
    pub host_name: String,
    /// The settings of OCaml's runtime, as `OCAMLRUNPARAM` would have them.
    pub ocaml_runtime_params: String,
    /// The seed of the samples. Recordings of one program are independent if their seeds differ.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub seed: Option<u64>,
    /// The traced process.
    pub pid: u64,
    /// Microseconds since the Unix epoch.
    #[cfg_attr(feature = "serde", serde(rename = "start_time_us"))]
    pub start_time: u64,
    /// The domain that started the trace.
    pub initial_domain: u16,
    /// A description that the program's author chose, since version 2 of the format.
    pub context: Option<String>,
}

impl TraceInfo {
    /// Bytes of a word.
    #[must_use]
    pub fn word_bytes(&self) -> u64 {
        u64::from(self.word_size / 8)
    }

    /// The settings of the runtime with the seed, for which the format has no field of its own.
    pub(crate) fn params_with_seed(&self) -> String {
        let params = self.ocaml_runtime_params.clone();
        let separator = if params.is_empty() { "" } else { "," };
        match self.seed {
            Some(seed) => format!("{params}{separator}{SEED}{seed}"),
            None => params,
        }
    }

    /// Takes the seed from what [`params_with_seed`](Self::params_with_seed) has returned.
    pub(crate) fn split_seed(params: String) -> (String, Option<u64>) {
        let (rest, last) = params.rsplit_once(',').unwrap_or(("", &params));
        match last.strip_prefix(SEED).and_then(|seed| seed.parse().ok()) {
            Some(seed) => (rest.to_owned(), Some(seed)),
            None => (params, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_is_told_from_the_settings() {
        let split = |params: &str| TraceInfo::split_seed(params.to_owned());
        assert_eq!(split("s=32k,seed=7"), ("s=32k".to_owned(), Some(7)));
        assert_eq!(split("seed=0"), (String::new(), Some(0)));
        for none in ["", "s=32k", "seed=x", "seed=", "s=1,seed=-1", "seed=1,s=2"] {
            assert_eq!(split(none), (none.to_owned(), None));
        }
    }
}
