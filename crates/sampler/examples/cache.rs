//! A cache of bounded size. What is alive levels off, and `heapline leaks` finds nothing.
#![allow(clippy::print_stdout, reason = "it is a program that prints")]

use std::collections::{HashMap, VecDeque};

#[global_allocator]
static ALLOC: heapline::Alloc = heapline::Alloc::system();

/// Keeps the latest answers.
#[derive(Default)]
struct Cache {
    answers: HashMap<u64, String>,
    order: VecDeque<u64>,
}

impl Cache {
    const SIZE: usize = 20_000;

    fn get(&mut self, question: u64) -> usize {
        if let Some(answer) = self.answers.get(&question) {
            return answer.len();
        }
        if self.order.len() == Self::SIZE
            && let Some(oldest) = self.order.pop_front()
        {
            self.answers.remove(&oldest);
        }
        let answer = format!("the answer to {question} is {:0200}", question * 2);
        let len = answer.len();
        self.order.push_back(question);
        self.answers.insert(question, answer);
        len
    }
}

fn main() {
    heapline::trace_if_requested();
    let mut cache = Cache::default();
    let questions = (0..400_000_u64).map(|n| if n % 4 == 0 { n } else { n / 100 });
    println!(
        "{}",
        questions.map(|question| cache.get(question)).sum::<usize>()
    );
}
