//! The metadata in the first packet of a trace.

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
}
