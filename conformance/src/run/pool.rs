//! Spreading cases over processes, or running them in this one.

use std::{
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Instant,
};

use halite_hal::Result;

use super::child::{Caller, Recipe};
use crate::suites::{Case, Report, Runner};

/// Where cases are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// In this process.
    None,
    /// In other processes, each for many cases until one kills it.
    Shared,
    /// Each in a process of its own.
    Each,
}

/// Whether it is too late to begin another case.
fn is_over(end: Option<Instant>) -> bool {
    end.is_some_and(|end| Instant::now() >= end)
}

/// Runs cases in this process until `end`, telling `observer` about each as it ends.
///
/// # Errors
/// The device does not open.
pub fn here(
    runner: &Runner,
    cases: &[&Case],
    end: Option<Instant>,
    mut observer: impl FnMut(Report),
) -> Result<()> {
    let mut lane = runner.lane()?;
    cases.iter().take_while(|_| !is_over(end)).for_each(|case| observer(lane.run(case)));
    Ok(())
}

/// Runs cases in `jobs` processes at a time until `end`, telling `observer` about each as it ends. They are begun in order.
pub fn elsewhere(
    recipe: &Recipe,
    alone: bool,
    jobs: usize,
    cases: &[&Case],
    end: Option<Instant>,
    mut observer: impl FnMut(Report),
) {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        let (sender, reports) = mpsc::channel();
        for _ in 0..jobs.min(cases.len()).max(1) {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                let mut caller = Caller::new(recipe.clone(), alone);
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if is_over(end) {
                        return;
                    }
                    if sender.send(caller.run(&case.name)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        reports.iter().for_each(&mut observer);
    });
}
