//! Generated fleets, with known differences between versions.
#![allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "each test uses a part"
)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "small numbers that are generated here"
)]

pub mod cluster;
mod ports;

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
};
use datafusion::parquet::arrow::ArrowWriter;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, LogNormal, Normal};
use rand_xoshiro::Xoshiro256PlusPlus;

pub use ports::{free_port, wait_for};

/// The estimates that both `runs` and `sites` have, each with a variance.
const ESTIMATES: [(&str, f64); 8] = [
    ("allocated_bytes", 1.0),
    ("allocated_blocks", 1.0 / 32.0),
    ("live_at_peak_bytes", 0.4),
    ("live_at_peak_blocks", 0.4 / 32.0),
    ("live_at_end_bytes", 0.2),
    ("live_at_end_blocks", 0.2 / 32.0),
    ("promoted_bytes", 0.3),
    ("promoted_blocks", 0.3 / 32.0),
];

/// Services with two versions each, 1.0 and 1.1.
#[derive(Clone, Copy, Debug)]
pub struct Fleet {
    pub seed: u64,
    pub services: usize,
    pub runs_per_version: usize,
    pub sites: usize,
    /// The standard deviation of a site between runs, as a share.
    pub variation: f64,
    /// The standard deviation of an estimate of a run, as a share.
    pub sampling: f64,
    /// The factor by which the first sites of version 1.1 are larger, and how many they are.
    pub growth: (f64, usize),
}

impl Default for Fleet {
    fn default() -> Self {
        Self {
            seed: 1,
            services: 1,
            runs_per_version: 10,
            sites: 50,
            variation: 0.02,
            sampling: 0.01,
            growth: (1.0, 0),
        }
    }
}

/// A run, with the amounts of its sites.
struct Run {
    id: String,
    service: String,
    day: String,
    version: &'static str,
    started_us: i64,
    /// By index of the site: the estimate of allocated bytes and its variance.
    sites: Vec<(usize, f64, f64)>,
}

impl Fleet {
    fn runs(&self) -> Vec<Run> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(self.seed);
        let size = LogNormal::new(10.0, 1.5).unwrap();
        let mut runs = Vec::new();
        for service in 0..self.services {
            let means: Vec<f64> = (0..self.sites).map(|_| size.sample(&mut random)).collect();
            for (number, version) in ["1.0", "1.1"].into_iter().enumerate() {
                for run in 0..self.runs_per_version {
                    let mut sites = Vec::new();
                    for (site, size) in means.iter().enumerate() {
                        // Every fifth site is only used by half of the runs.
                        if site % 5 == 4 && random.random_bool(0.5) {
                            continue;
                        }
                        let grown = if number == 1 && site < self.growth.1 {
                            self.growth.0
                        } else {
                            1.0
                        };
                        let varied = Normal::new(1.0, self.variation)
                            .unwrap()
                            .sample(&mut random);
                        let truth = size * grown * varied;
                        let deviation = truth * self.sampling;
                        let error = Normal::new(0.0, deviation).unwrap().sample(&mut random);
                        sites.push((site, (truth + error).max(0.0), deviation * deviation));
                    }
                    let index = runs.len();
                    runs.push(Run {
                        id: format!(
                            "{:016x}",
                            (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
                        ),
                        service: format!("service-{service}"),
                        day: format!("2026-11-{:02}", 1 + number * 14 + run % 14),
                        version,
                        started_us: 1_790_000_000_000_000 + index as i64 * 1_000_000,
                        sites,
                    });
                }
            }
        }
        runs
    }

    /// The tables `runs` and `sites`, for memory.
    pub fn tables(&self) -> (RecordBatch, RecordBatch) {
        let runs = self.runs();
        (runs_table(&runs), sites_table(&runs))
    }

    /// Writes a dataset.
    pub fn write(&self, folder: &Path) {
        fs::create_dir_all(folder).unwrap();
        let marker = r#"{"format": "heapline-dataset", "version": 1}"#;
        fs::write(folder.join("heapline-dataset.json"), marker).unwrap();
        for run in self.runs() {
            let folder = folder.join(format!(
                "service={}/day={}/run={}",
                run.service, run.day, run.id
            ));
            fs::create_dir_all(&folder).unwrap();
            let run = [run];
            for (name, table) in [
                ("sites", sites_table(&run)),
                ("blocks", blocks_table(&run[0])),
                ("stacks", stacks_table(&run[0])),
                ("frames", frames_table(&run[0])),
                ("runs", runs_table(&run)),
            ] {
                let file = File::create(folder.join(format!("{name}.parquet"))).unwrap();
                let mut writer = ArrowWriter::try_new(file, table.schema(), None).unwrap();
                writer.write(&table).unwrap();
                writer.close().unwrap();
            }
        }
    }
}

fn texts<T: AsRef<str>>(values: impl IntoIterator<Item = T>) -> ArrayRef {
    // Arrow wants to know how many there are.
    let values: Vec<T> = values.into_iter().collect();
    Arc::new(StringArray::from_iter_values(values))
}

fn integers(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

fn small(values: impl IntoIterator<Item = i32>) -> ArrayRef {
    Arc::new(Int32Array::from_iter_values(values))
}

fn numbers(values: impl IntoIterator<Item = f64>) -> ArrayRef {
    Arc::new(Float64Array::from_iter_values(values))
}

fn table(columns: Vec<(String, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(
        columns
            .into_iter()
            .map(|(name, column)| (name, column, true)),
    )
    .unwrap()
}

/// Columns of all estimates from amounts and variances of allocated bytes.
fn estimates(amounts: &[(f64, f64)]) -> Vec<(String, ArrayRef)> {
    let mut columns = Vec::new();
    for (name, scale) in ESTIMATES {
        columns.push((
            name.to_owned(),
            numbers(amounts.iter().map(|amount| amount.0 * scale)),
        ));
        let variance = amounts.iter().map(|amount| amount.1 * scale * scale);
        columns.push((format!("{name}_variance"), numbers(variance)));
    }
    columns
}

fn runs_table(runs: &[Run]) -> RecordBatch {
    let totals: Vec<(f64, f64)> = runs
        .iter()
        .map(|run| {
            run.sites
                .iter()
                .fold((0.0, 0.0), |(a, b), site| (a + site.1, b + site.2))
        })
        .collect();
    let mut columns = vec![
        ("run".to_owned(), texts(runs.iter().map(|run| &run.id))),
        (
            "service".to_owned(),
            texts(runs.iter().map(|run| &run.service)),
        ),
        ("day".to_owned(), texts(runs.iter().map(|run| &run.day))),
        (
            "version".to_owned(),
            texts(runs.iter().map(|run| run.version)),
        ),
        ("program".to_owned(), texts(runs.iter().map(|_| "server"))),
        ("host".to_owned(), texts(runs.iter().map(|_| "host"))),
        (
            "started_us".to_owned(),
            integers(runs.iter().map(|run| run.started_us)),
        ),
        ("duration_s".to_owned(), numbers(runs.iter().map(|_| 10.0))),
        (
            "damaged".to_owned(),
            Arc::new(BooleanArray::from(vec![false; runs.len()])),
        ),
    ];
    columns.extend(estimates(&totals));
    table(columns)
}

fn function(site: usize) -> String {
    // A quote, for those who write SQL.
    format!("Module{}.f'{site}", site % 7)
}

fn site_id(site: usize) -> i64 {
    (site as i64 + 1).wrapping_mul(0x1234_5678_9abc_def1)
}

fn sites_table(runs: &[Run]) -> RecordBatch {
    let all = || {
        runs.iter()
            .flat_map(|run| run.sites.iter().map(move |site| (run, site.0)))
    };
    let amounts: Vec<(f64, f64)> = runs
        .iter()
        .flat_map(|run| run.sites.iter().map(|site| (site.1, site.2)))
        .collect();
    let mut columns = vec![
        ("run".to_owned(), texts(all().map(|(run, _)| &run.id))),
        (
            "site".to_owned(),
            integers(all().map(|(_, site)| site_id(site))),
        ),
        (
            "function".to_owned(),
            texts(all().map(|(_, site)| function(site))),
        ),
        (
            "file".to_owned(),
            texts(all().map(|(_, site)| format!("src/module{}.ml", site % 7))),
        ),
        (
            "line".to_owned(),
            small(all().map(|(_, site)| site as i32 + 1)),
        ),
        (
            "module".to_owned(),
            texts(all().map(|(_, site)| format!("Module{}", site % 7))),
        ),
        (
            "space".to_owned(),
            texts(all().map(|(_, site)| if site % 3 == 0 { "native" } else { "minor" })),
        ),
        ("sampled_blocks".to_owned(), integers(all().map(|_| 10))),
    ];
    columns.extend(estimates(&amounts));
    table(columns)
}

/// Ten blocks of each site.
fn blocks_table(run: &Run) -> RecordBatch {
    let all = || {
        run.sites
            .iter()
            .flat_map(|site| (0..10).map(move |block| (site, block)))
    };
    table(vec![
        ("run".to_owned(), texts(all().map(|_| &run.id))),
        (
            "allocated_us".to_owned(),
            integers(all().map(|(_, block)| block)),
        ),
        (
            "collected_us".to_owned(),
            integers(all().map(|(_, block)| block + 1000)),
        ),
        (
            "size_bytes".to_owned(),
            integers(all().map(|(site, _)| 8 * (site.0 as i64 + 1))),
        ),
        ("samples".to_owned(), integers(all().map(|_| 1))),
        ("space".to_owned(), texts(all().map(|_| "minor"))),
        (
            "site".to_owned(),
            integers(all().map(|(site, _)| site_id(site.0))),
        ),
        (
            "stack_id".to_owned(),
            integers(all().map(|(site, _)| site_id(site.0) ^ 1)),
        ),
        (
            "estimated_bytes".to_owned(),
            numbers(all().map(|(site, _)| site.1 / 10.0)),
        ),
        (
            "estimated_bytes_variance".to_owned(),
            numbers(all().map(|(site, _)| site.2 / 10.0)),
        ),
    ])
}

fn stacks_table(run: &Run) -> RecordBatch {
    table(vec![
        ("run".to_owned(), texts(run.sites.iter().map(|_| &run.id))),
        (
            "stack_id".to_owned(),
            integers(run.sites.iter().map(|site| site_id(site.0) ^ 1)),
        ),
        ("depth".to_owned(), small(run.sites.iter().map(|_| 0))),
        (
            "frame_id".to_owned(),
            integers(run.sites.iter().map(|site| site_id(site.0))),
        ),
    ])
}

fn frames_table(run: &Run) -> RecordBatch {
    table(vec![
        ("run".to_owned(), texts(run.sites.iter().map(|_| &run.id))),
        (
            "frame_id".to_owned(),
            integers(run.sites.iter().map(|site| site_id(site.0))),
        ),
        (
            "function".to_owned(),
            texts(run.sites.iter().map(|site| function(site.0))),
        ),
        (
            "line".to_owned(),
            small(run.sites.iter().map(|site| site.0 as i32 + 1)),
        ),
    ])
}
