//! Random graphs of operations against a model: transfers, recordings, files, dispatches and queue memory on shared
//! buffers, ordered only where they touch the same bytes, submitted out of order by several threads.

mod build;
mod model;

use std::thread;

use halite_hal::{Fence, Result};
use halite_testing::{
    Random,
    hal::support::{ANY, soon},
};

use self::build::{Graph, Step};
use crate::suites::{Cases, Context, Outcome, Stop, case::same_bytes};

/// Adds the cases of this file.
pub(super) fn add(cases: &mut Cases, seed: u64, rounds: u64) {
    for seed in seed..seed + rounds {
        cases.add(format!("stress.graph:seed={seed}"), &[], move |t| graph(t, seed));
    }
}

fn graph(t: &Context, seed: u64) -> Outcome {
    let mut random = Random::new(seed);
    let kernels = t.kernels().ok().filter(|k| k.compute());
    let mut graph = Graph::new(t.device(), kernels, &mut random)?;
    for _ in 0..20 + random.below(60) {
        graph.grow(&mut random)?;
    }
    let mut steps = std::mem::take(&mut graph.steps);
    let ends: Vec<Fence> = steps.iter().map(|s| s.signal.clone()).collect();
    random.shuffle(&mut steps);
    submit(t, steps, 1 + random.index(3))?;
    graph.start.signal()?;
    for (index, end) in ends.iter().enumerate() {
        end.wait(soon()).map_err(|e| Stop::Fail(format!("step {index} of {}: {e}", ends.len())))?;
    }
    for (index, (found, wanted)) in graph.contents()?.into_iter().enumerate() {
        same_bytes(&format!("resource {index} after {} steps", ends.len()), &found, &wanted)?;
    }
    Ok(())
}

/// Deals the steps out to threads.
fn submit(t: &Context, steps: Vec<Step>, threads: usize) -> Outcome {
    let mut hands: Vec<Vec<Step>> = (0..threads).map(|_| Vec::new()).collect();
    for (index, step) in steps.into_iter().enumerate() {
        hands[index % threads].push(step);
    }
    thread::scope(|scope| {
        let players: Vec<_> = hands
            .into_iter()
            .map(|hand| {
                scope.spawn(move || -> Result<()> {
                    let device = t.device();
                    hand.into_iter()
                        .try_for_each(|s| device.queue_submit(s.affinity, &s.wait, &s.signal, s.op))?;
                    device.queue_flush(ANY)
                })
            })
            .collect();
        for player in players {
            player.join().map_err(|_| Stop::Fail("a submitting thread panicked".to_owned()))??;
        }
        Ok(())
    })
}
