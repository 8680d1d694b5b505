//! A cache that nobody empties. `heapline leaks` names the line.
#![allow(clippy::print_stdout, reason = "it is a program that prints")]

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

#[global_allocator]
static ALLOC: heapline::Alloc = heapline::Alloc::system();

static CACHE: LazyLock<Mutex<HashMap<u64, String>>> = LazyLock::new(Mutex::default);

fn answer(question: u64) -> usize {
    let answer = format!("the answer to {question} is {:0200}", question * 2);
    let len = answer.len();
    CACHE.lock().unwrap().insert(question, answer); // And never removes it.
    len
}

fn main() {
    heapline::trace_if_requested();
    println!("{}", (0..200_000).map(answer).sum::<usize>());
}
