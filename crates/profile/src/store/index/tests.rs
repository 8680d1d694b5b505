use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use super::super::sealed::tests::{QUERIES, assert_equal, in_memory, stored, trace};
use super::super::stored::memory::{self, MemoryStorage};
use super::*;
use crate::query::Query;
use crate::reports::{HotspotOptions, SummaryOptions, hotspots, summary};
use crate::scope::Scope;

fn limit() -> MemoryLimit {
    MemoryLimit {
        bytes: 64 << 20,
        create: memory::create(),
    }
}

fn bytes_of(storage: &dyn Storage, len: u64) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(len).unwrap()];
    storage.read_at(0, &mut bytes).unwrap();
    bytes
}

/// The length of what was written, and the storage.
fn written(profile: &Profile) -> (u64, Arc<dyn Storage>) {
    let answers = [("summary".to_owned(), b"an answer".to_vec())];
    let create = || (memory::create())();
    let storage = profile.write_index(b"identity", &answers, create).unwrap();
    let len = storage.append(&[]).unwrap();
    (len, storage)
}

fn open(bytes: Vec<u8>) -> io::Result<Index> {
    let len = bytes.len() as u64;
    Index::open(Arc::new(MemoryStorage(Mutex::new(bytes))), len)
}

#[test]
fn indexed_profiles_answer_as_others_do() {
    let trace = trace(400_000, 1);
    let in_memory = in_memory(&trace);
    for profile in [&in_memory, &stored(&trace, 4)] {
        let (len, storage) = written(profile);
        let index = Index::open(Arc::clone(&storage), len).unwrap();
        assert_eq!(index.trace(), b"identity");
        assert_eq!(index.answer("summary").unwrap().unwrap(), b"an answer");
        assert_eq!(index.answer("other").unwrap(), None);
        let indexed = index.profile(limit()).unwrap();
        assert_equal(&indexed, &in_memory, &QUERIES[..4]);
    }
}

#[test]
fn damaged_traces_have_damaged_indexes() {
    let mut trace = trace(2_000, 1);
    let middle = trace.len() / 2;
    trace[middle..middle + 2000].fill(0xff);
    let in_memory = in_memory(&trace);
    assert!(!in_memory.damage().is_empty());
    let (len, storage) = written(&in_memory);
    let index = Index::open(storage, len).unwrap();
    assert_eq!(index.damage(), *in_memory.damage());
    assert_equal(&index.profile(limit()).unwrap(), &in_memory, &QUERIES[..1]);
}

/// Changed and missing bytes lead to an error or to the right answer.
#[test]
fn damage_of_an_index_is_noticed() {
    let trace = trace(3_000, 1);
    let in_memory = in_memory(&trace);
    let (len, storage) = written(&in_memory);
    let whole = bytes_of(&*storage, len);
    let report = |profile: &Profile| {
        let scope = Scope::new(profile, &Query::default(), Estimator::default());
        let summary = summary(&scope, &SummaryOptions::default());
        (summary, hotspots(&scope, &HotspotOptions::default()))
    };
    let expected = report(&in_memory);
    let mut state = 1_u64;
    let mut random = move |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        usize::try_from(state >> 33).unwrap() % below
    };
    let mut noticed = [0; 3];
    for round in 0..300 {
        let mut bytes = whole.clone();
        match round % 3 {
            0 => bytes.truncate(random(whole.len())),
            1 => bytes[random(whole.len())] ^= 1 << random(8),
            _ => {
                let end = whole.len() - random(200.min(whole.len()));
                bytes[end - 1] = bytes[end - 1].wrapping_add(1);
            }
        }
        let result = catch_unwind(AssertUnwindSafe(|| {
            let profile = open(bytes)?.profile(limit())?;
            let found = report(&profile);
            match profile.failure() {
                Some(failure) => Err(io::Error::other(failure.to_owned())),
                None => Ok(found),
            }
        }));
        match result.expect("no panic") {
            Ok(found) => assert!(found == expected, "round {round}"),
            Err(_) => noticed[round % 3] += 1,
        }
    }
    // An answer that was changed is noticed when it is read.
    assert!(noticed.iter().all(|&n| n > 80), "{noticed:?}");
}
