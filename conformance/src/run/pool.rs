//! Owns spreading cases over processes, or running them in this one. Does not own: what becomes of the results.

use std::{
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
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

/// Runs cases in this process, telling `observer` about each as it ends.
///
/// # Errors
/// The device does not open.
pub fn here(runner: &Runner, cases: &[&Case], mut observer: impl FnMut(Report)) -> Result<()> {
    let mut lane = runner.lane()?;
    cases.iter().for_each(|case| observer(lane.run(case)));
    Ok(())
}

/// Runs cases in `jobs` processes at a time, telling `observer` about each as it ends. They are begun in order.
pub fn elsewhere(
    recipe: &Recipe,
    alone: bool,
    jobs: usize,
    cases: &[&Case],
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
