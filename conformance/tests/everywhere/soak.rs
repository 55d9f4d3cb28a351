//! Short soak runs: results are checked, failures stop the run, and every call is made.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use halite_conformance::{
    corpus,
    soak::{self, CallFn, ModuleWork, Plan, TransferWork, Work},
};
use halite_hal::{Device, Options};
use halite_testing::drivers::{opener, registry};

const PLAN: Plan = Plan { calls: 205, threads: 3, sessions: 13, rounds: 4 };

fn device(driver: &str) -> Arc<dyn Device> {
    opener(registry(&[]), driver, Options::new())().unwrap()
}

#[test]
fn transfers_on_the_null_device() {
    let opener = opener(registry(&[]), "null", Options::new());
    for reopen in [None, Some(opener.clone())] {
        let work = TransferWork::new(opener().unwrap(), reopen);
        let samples = soak::run(&work, &PLAN, |_| ()).unwrap();
        let last = samples.last().unwrap();
        assert_eq!((samples.len(), last.calls, last.sessions, last.used), (4, 205, 13, 0));
        assert_eq!(soak::device_complaint(&samples, PLAN.threads), None);
    }
}

#[test]
fn a_network_on_the_processor() {
    let (root, mut program) = corpus::digits(true);
    // One call whose result is not told: the first one tells it.
    program.calls[1].expected.clear();
    let work = ModuleWork::new(device("local-task"), &root, program).unwrap();
    let samples = soak::run(&work, &PLAN, |_| ()).unwrap();
    assert_eq!(samples.last().unwrap().calls, 205);
}

#[test]
fn a_wrong_result_ends_the_run() {
    let (root, mut program) = corpus::digits(true);
    program.calls[1].expected = program.calls[0].expected.clone();
    let work = ModuleWork::new(device("local-sync"), &root, program).unwrap();
    let error = soak::run(&work, &PLAN, |_| ()).unwrap_err();
    assert!(format!("{error:#}").contains("gave a wrong result"), "{error:#}");
}

struct Counted {
    device: Arc<dyn Device>,
    calls: AtomicU64,
    sessions: AtomicU64,
}

impl Work for Counted {
    fn name(&self) -> String {
        "counting".to_owned()
    }

    fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    fn session(&self) -> anyhow::Result<CallFn<'_>> {
        self.sessions.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(|_| {
            self.calls.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }))
    }
}

#[test]
fn every_call_and_session_is_made() {
    for (calls, threads, sessions, rounds) in
        [(205, 3, 13, 4), (10_000, 4, 400, 40), (7, 1, 7, 7), (5, 4, 4, 1)]
    {
        let work = Counted { device: device("null"), calls: 0.into(), sessions: 0.into() };
        soak::run(&work, &Plan { calls, threads, sessions, rounds }, |_| ()).unwrap();
        assert_eq!(work.calls.into_inner(), calls);
        assert_eq!(work.sessions.into_inner(), sessions);
    }
}
