//! Soak runs: calls from several threads while sessions come and go, with every result checked, and memory watched. Owns
//! the run and its samples; does not own what a call does (`work`) or what growth is allowed (`growth`).

mod growth;
mod memory;
mod work;

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow};
use halite_hal::{Deadline, Device};

pub use growth::{Growth, Verdict, judge};
pub use memory::resident_bytes;
pub use work::{CallFn, ModuleWork, TransferWork, Work};

/// Longest time that the device may need to come to rest between rounds.
const REST_LIMIT: Duration = Duration::from_secs(60);

/// How much to do.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Calls in all.
    pub calls: u64,
    /// Threads that call at the same time.
    pub threads: u64,
    /// Sessions in all, at least one for each thread and round.
    pub sessions: u64,
    /// Rounds: memory is looked at between them, when no session is alive and the device is idle.
    pub rounds: u64,
}

/// What was seen in the quiet moment after a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Calls made so far.
    pub calls: u64,
    /// Sessions so far.
    pub sessions: u64,
    /// Time since the beginning.
    pub time: Duration,
    /// Resident memory of the process; `None` where the system does not tell.
    pub resident: Option<u64>,
    /// Bytes in live buffers of the device.
    pub used: u64,
    /// Most bytes in live buffers so far.
    pub peak_used: u64,
    /// Bytes that the device holds.
    pub reserved: u64,
}

/// Runs the plan. The first wrong result or error ends it. `observer` is told after each round.
pub fn run(work: &dyn Work, plan: &Plan, mut observer: impl FnMut(&Sample)) -> Result<Vec<Sample>> {
    let start = Instant::now();
    let (mut samples, mut calls, mut sessions) = (Vec::new(), 0, 0);
    for round in 1..=plan.rounds {
        // What is done after a round is the round's share of the whole, so that remainders are not lost.
        let share = |all: u64, done: u64| (all * round / plan.rounds).saturating_sub(done);
        let (new_calls, new_sessions) = (share(plan.calls, calls), share(plan.sessions, sessions));
        self::round(work, plan.threads, new_calls, new_sessions)
            .with_context(|| format!("in round {round} of {}", plan.rounds))?;
        (calls, sessions) = (calls + new_calls, sessions + new_sessions);
        work.device().wait_idle(Deadline::after(REST_LIMIT))?;
        let stats = work.device().memory_stats();
        let sample = Sample {
            calls,
            sessions,
            time: start.elapsed(),
            resident: resident_bytes(),
            used: stats.used,
            peak_used: stats.peak_used,
            reserved: stats.reserved,
        };
        observer(&sample);
        samples.push(sample);
    }
    Ok(samples)
}

/// Every thread makes its share of the calls, in at least one session.
fn round(work: &dyn Work, threads: u64, calls: u64, sessions: u64) -> Result<()> {
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|thread| {
                let share = |all: u64| all * (thread + 1) / threads - all * thread / threads;
                let (calls, sessions) = (share(calls), share(sessions).max(1));
                scope.spawn(move || in_sessions(work, calls, sessions))
            })
            .collect();
        workers.into_iter().enumerate().try_for_each(|(thread, worker)| {
            let ended = worker.join().map_err(|_| anyhow!("it panicked"));
            ended.and_then(|result| result).with_context(|| format!("thread {thread}"))
        })
    })
}

fn in_sessions(work: &dyn Work, calls: u64, sessions: u64) -> Result<()> {
    for session in 0..sessions {
        let mut call = work.session()?;
        let count = calls * (session + 1) / sessions - calls * session / sessions;
        (0..count).try_for_each(|n| call(n).with_context(|| format!("call {n} of session {session}")))?;
    }
    Ok(())
}

/// Whether memory of the device came back: what is in use must not differ between quiet moments after the warm-up. What is
/// held may grow in the second half of them by one thread's share of the most that was in use: a pool has its full size only
/// after all threads have needed most of it at the same moment, and that comes by chance.
pub fn device_complaint(samples: &[Sample], threads: u64) -> Option<String> {
    let quiet = &samples[samples.len() / 4..];
    let (first, rest) = quiet.split_first()?;
    if let Some(other) = rest.iter().find(|s| s.used > first.used) {
        return Some(format!(
            "{} bytes are in live buffers after {} calls, {} after {}",
            first.used, first.calls, other.used, other.calls
        ));
    }
    let most = |part: &[Sample]| part.iter().map(|s| s.reserved).max().unwrap_or(0);
    let (early, late) = quiet.split_at(quiet.len().div_ceil(2));
    let (early, late) = (most(early), most(late));
    let share = samples.last().map_or(0, |s| s.peak_used / threads.max(1));
    (late > early + share)
        .then(|| format!("the device held {early} bytes at most in the first half and {late} in the second"))
}

/// The device that a plan's work is for, in words.
pub fn describe(device: &Arc<dyn Device>, work: &dyn Work, plan: &Plan) -> String {
    format!(
        "{} on {} ({}): {} calls from {} threads in {} sessions",
        work.name(),
        device.info().uri(),
        device.info().name,
        plan.calls,
        plan.threads,
        plan.sessions
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(used: u64, reserved: u64) -> Sample {
        Sample { calls: 0, sessions: 0, time: Duration::ZERO, resident: None, used, peak_used: 80, reserved }
    }

    #[test]
    fn device_memory_may_grow_while_warming_up_and_not_later() {
        let warm = [sample(0, 100), sample(0, 400)];
        let steady = vec![sample(64, 500); 6];
        let run = |last: Sample| device_complaint(&[&warm[..], &steady, &[last]].concat(), 4);
        assert_eq!(run(sample(64, 500)), None);
        assert!(run(sample(65, 500)).unwrap_or_default().contains("live buffers"));
        assert_eq!(run(sample(64, 520)), None, "one thread's share of 80 bytes");
        assert!(run(sample(64, 521)).unwrap_or_default().contains("held"));
        assert_eq!(device_complaint(&[], 4), None);
    }
}
