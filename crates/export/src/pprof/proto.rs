//! The messages of pprof's `profile.proto`, as far as they are used here.
//!
//! Strings are numbers: places in [`Profile::string_table`]. Ids are not 0.

/// A profile.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Profile {
    /// The types of the values of each sample.
    #[prost(message, repeated, tag = "1")]
    pub sample_type: Vec<ValueType>,
    /// Values by stack.
    #[prost(message, repeated, tag = "2")]
    pub sample: Vec<Sample>,
    /// The programs that locations are in; the first one is the main program.
    #[prost(message, repeated, tag = "3")]
    pub mapping: Vec<Mapping>,
    /// Places in programs.
    #[prost(message, repeated, tag = "4")]
    pub location: Vec<Location>,
    /// Functions.
    #[prost(message, repeated, tag = "5")]
    pub function: Vec<Function>,
    /// All strings; the first one is empty.
    #[prost(string, repeated, tag = "6")]
    pub string_table: Vec<String>,
    /// The time of the profile, since 1970.
    #[prost(int64, tag = "9")]
    pub time_nanos: i64,
    /// Its duration.
    #[prost(int64, tag = "10")]
    pub duration_nanos: i64,
    /// The unit of the period.
    #[prost(message, optional, tag = "11")]
    pub period_type: Option<ValueType>,
    /// The average distance between two samples.
    #[prost(int64, tag = "12")]
    pub period: i64,
    /// Text for people.
    #[prost(int64, repeated, tag = "13")]
    pub comment: Vec<i64>,
    /// The type of sample to show first.
    #[prost(int64, tag = "14")]
    pub default_sample_type: i64,
}

/// The type and unit of a value.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct ValueType {
    /// The name of the quantity.
    #[prost(int64, tag = "1")]
    pub r#type: i64,
    /// In which unit.
    #[prost(int64, tag = "2")]
    pub unit: i64,
}

/// The values of a stack.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Sample {
    /// The stack, innermost first.
    #[prost(uint64, repeated, tag = "1")]
    pub location_id: Vec<u64>,
    /// One for each of [`Profile::sample_type`].
    #[prost(int64, repeated, tag = "2")]
    pub value: Vec<i64>,
    /// Additional labels.
    #[prost(message, repeated, tag = "3")]
    pub label: Vec<Label>,
}

/// A fact about a sample.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Label {
    /// Its name.
    #[prost(int64, tag = "1")]
    pub key: i64,
    /// The fact, if it is a string.
    #[prost(int64, tag = "2")]
    pub str: i64,
    /// The fact, if it is a number.
    #[prost(int64, tag = "3")]
    pub num: i64,
    /// The unit of the number.
    #[prost(int64, tag = "4")]
    pub num_unit: i64,
}

/// A program.
#[expect(clippy::struct_excessive_bools, reason = "the format has them")]
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Mapping {
    /// Its id.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// Its file.
    #[prost(int64, tag = "5")]
    pub filename: i64,
    /// True if locations have functions, so that tools need not symbolise them.
    #[prost(bool, tag = "7")]
    pub has_functions: bool,
    /// True if they have files.
    #[prost(bool, tag = "8")]
    pub has_filenames: bool,
    /// True if they have lines.
    #[prost(bool, tag = "9")]
    pub has_line_numbers: bool,
    /// True if inlined functions are included.
    #[prost(bool, tag = "10")]
    pub has_inline_frames: bool,
}

/// A place in a program.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Location {
    /// Its id.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// The program.
    #[prost(uint64, tag = "2")]
    pub mapping_id: u64,
    /// The lines there, innermost first if functions were inlined.
    #[prost(message, repeated, tag = "4")]
    pub line: Vec<Line>,
}

/// A line of a function.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Line {
    /// The function.
    #[prost(uint64, tag = "1")]
    pub function_id: u64,
    /// 1 is the first line; 0 if unknown.
    #[prost(int64, tag = "2")]
    pub line: i64,
    /// 1 is the first column; 0 if unknown.
    #[prost(int64, tag = "3")]
    pub column: i64,
}

/// A function.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Function {
    /// Its id.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// The name as in source code.
    #[prost(int64, tag = "2")]
    pub name: i64,
    /// The name in the trace.
    #[prost(int64, tag = "3")]
    pub system_name: i64,
    /// Its file.
    #[prost(int64, tag = "4")]
    pub filename: i64,
}
