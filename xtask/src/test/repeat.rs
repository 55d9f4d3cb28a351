//! Runs the same tests many times, on a machine that is busy with something else, and tells which of them fail now and then.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::SystemTime,
};

use anyhow::{Result, bail};

use super::{
    binaries::Binary,
    runner::{self, Failure, Manner},
};
use crate::clock::Clock;

/// Threads that only take time of the processor, until this is dropped.
pub struct Load {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    /// So many threads.
    pub fn start(threads: usize) -> Load {
        let over = Arc::new(AtomicBool::new(false));
        let spin = |over: Arc<AtomicBool>| {
            move || {
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            }
        };
        let threads = (0..threads).map(|_| std::thread::spawn(spin(over.clone()))).collect();
        Load { over, threads }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().expect("it only counts");
        }
    }
}

/// Runs test programs this often, in an order of chance if that is wanted: of this seed, or of a new one for each call. An error names
/// all that failed, and how often.
pub fn run(binaries: &[&Binary], manner: &Manner, rounds: u32, shuffle: Option<Option<u64>>) -> Result<()> {
    let mut binaries = binaries.to_vec();
    let mut state = shuffle.map(|seed| {
        let seed = seed.unwrap_or_else(of_now);
        println!("the order is that of --shuffle={seed}");
        seed
    });
    if rounds == 1 {
        state.iter_mut().for_each(|state| mix(&mut binaries, state));
        return runner::verdict(&runner::run(&binaries, manner)?, manner);
    }
    let manner = Manner { shown: false, ..manner.clone() };
    let mut flakes = Flakes::default();
    for round in 1..=rounds {
        let clock = Clock::start();
        state.iter_mut().for_each(|state| mix(&mut binaries, state));
        let failures = runner::run(&binaries, &manner)?;
        println!(
            "round {round} of {rounds}: {} programs, {} failed, {}",
            binaries.len(),
            failures.len(),
            clock.spent()
        );
        flakes.add(failures);
    }
    flakes.verdict(&manner, rounds)
}

/// A seed that nobody chose.
fn of_now() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::from(now.subsec_nanos())
}

/// Another order of a list, by numbers that go on from a seed (xorshift).
fn mix<T>(list: &mut [T], state: &mut u64) {
    for last in (1..list.len()).rev() {
        *state = (*state).max(1);
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        list.swap(last, (*state % (last as u64 + 1)) as usize);
    }
}

/// What failed, and how often.
#[derive(Default)]
struct Flakes(BTreeMap<(String, String), (u32, Option<Failure>)>);

impl Flakes {
    fn add(&mut self, failures: Vec<Failure>) {
        for failure in failures {
            let (program, mut tests) = (failure.binary.selection(), failure.tests.clone());
            if tests.is_empty() {
                tests.push(failure.why.clone());
            }
            for test in tests {
                let entry = self.0.entry((program.clone(), test)).or_default();
                entry.0 += 1;
                entry.1.get_or_insert_with(|| failure.clone());
            }
        }
    }

    fn verdict(&self, manner: &Manner, rounds: u32) -> Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        let line = |((program, test), (count, failure)): (&(String, String), &(u32, Option<Failure>))| {
            let again = failure.as_ref().map(|failure| failure.describe(manner)).unwrap_or_default();
            format!("{program}: {test}: failed in {count} of {rounds} rounds\n  {again}")
        };
        bail!("{}", self.0.iter().map(line).collect::<Vec<_>>().join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(tests: &[&str]) -> Failure {
        let binary = Binary {
            package: "p".to_owned(),
            target: "t".to_owned(),
            kind: "test".to_owned(),
            source: String::new(),
            folder: "/".into(),
            path: "/t".into(),
        };
        Failure { binary, why: "signal 9".to_owned(), tests: tests.iter().map(|t| (*t).to_owned()).collect() }
    }

    #[test]
    fn failures_are_counted_by_test() {
        let mut flakes = Flakes::default();
        let manner = Manner::default();
        flakes.add(Vec::new());
        assert!(flakes.verdict(&manner, 3).is_ok());
        flakes.add(vec![failure(&["a", "b"])]);
        flakes.add(vec![failure(&["a"]), failure(&[])]);
        let told = flakes.verdict(&manner, 3).unwrap_err().to_string();
        for part in [
            "a: failed in 2 of 3",
            "b: failed in 1 of 3",
            "signal 9: failed in 1 of 3",
            "cargo test -p p --test t",
        ] {
            assert!(told.contains(part), "'{part}' is missing from: {told}");
        }
    }

    #[test]
    fn orders_of_chance_are_those_of_their_seeds() {
        let order = |seed: u64| {
            let (mut list, mut state) = ((0..40).collect::<Vec<u32>>(), seed);
            mix(&mut list, &mut state);
            list
        };
        assert_eq!(order(7), order(7));
        assert_ne!(order(7), order(8));
        for seed in [0, 1, u64::MAX] {
            let mut list = order(seed);
            list.sort_unstable();
            assert!(list.into_iter().eq(0..40));
        }
    }

    #[test]
    fn load_ends() {
        drop(Load::start(2));
    }
}
