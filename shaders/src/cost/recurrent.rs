//! Estimates for recurrent networks: whether all steps in one dispatch, which one processor works at, are faster than a dispatch
//! for each step, which all work at.
//!
//! The numbers are not fitted to many measurements on GPUs: they are what a dispatch with its barrier takes on an H100
//! (`docs/results/benchmarks-gpu-networks.md`), and latencies and rates of its memory; the rate of all units is that of two layers of 256 for
//! eight sequences on an H200. Those of processors come of a few shapes on llvmpipe.

use halite_ops::recurrent::Recurrent;
use halite_targets::Capabilities;

use crate::{Plan, Step, Variant};

/// Microseconds of the parts of a step, and rates for each.
struct Rates {
    /// A dispatch and the barrier before it.
    dispatch: f64,
    /// What a step takes in a workgroup beside its sums.
    step: f64,
    /// Until weights that each invocation reads together are there.
    round: f64,
    /// Bytes of weights for a unit in a microsecond.
    unit: f64,
    /// Bytes of weights for all units in a microsecond.
    all: f64,
    /// Products of a unit in a microsecond.
    products: f64,
    /// Units, where their number is not known.
    units: f64,
    /// Invocations of a unit at a time.
    resident: f64,
}

const GPU: Rates = Rates {
    dispatch: 2.8,
    step: 0.9,
    round: 0.5,
    unit: 9e4,
    all: 4e6,
    products: 1.5e5,
    units: 16.0,
    resident: 1024.0,
};
const PROCESSOR: Rates = Rates {
    dispatch: 20.0,
    step: 0.5,
    round: 0.0,
    unit: 2e4,
    all: 2e4,
    products: 1.5e3,
    units: 2.0,
    resident: 8.0,
};

/// How much longer kernels that are not made for processors take there.
const BARRIERS: f64 = 4.0;

/// Quads of weights that an invocation reads together, where registers have no room for more.
const QUADS_AT_ONCE: f64 = 4.0;

/// Registers of an invocation beside weights that stay there, and those of a unit. The first is a guess by which the faster of 128 and 256
/// invocations is found for layers of 256, 384 and 512 on an H200.
const REGISTERS: (f64, f64) = (48.0, 65536.0);

/// Microseconds that a plan takes.
pub(super) fn estimate(op: &Recurrent, variant: &Variant, plan: &Plan, target: &Capabilities) -> Option<f64> {
    let rates = if target.target.is_processor() { &PROCESSOR } else { &GPU };
    let units = target.hints.compute_units.map_or(rates.units, f64::from);
    let (whole, layers) = (variant.template == "whole", variant.template == "layers");
    let mut time = 0.0;
    for step in &plan.steps {
        time += rates.dispatch;
        // Steps from the sixth to the seventh number; other dispatches of these plans multiply rows at once, which is fast.
        time += match step.push.get(5..7) {
            Some([from, to]) if whole => (*to - *from).as_f64() * turn(op, step, 0, rates, units)?,
            Some(_) if layers => turn(op, step, 0, rates, units)?,
            Some(_) => turn(op, step, op.layers - 1, rates, units)?,
            None => projection(op, rates, units),
        };
    }
    // Barriers between many invocations: two layers of 256 took 43 ms on llvmpipe where 12 were estimated.
    let barriers = target.target.is_processor() && !variant.needs.processor;
    Some(if barriers { time * BARRIERS } else { time })
}

/// Microseconds in which the rows of all steps are multiplied at once, eight for each weight that is read.
fn projection(op: &Recurrent, rates: &Rates, units: f64) -> f64 {
    let products = op.steps.as_f64() * op.batch.as_f64() * (op.rows() * op.hidden) as f64;
    products / (rates.products * 4.0 * units)
}

/// Microseconds of one step in all workgroups of a dispatch, in the layer whose sums are longest.
fn turn(op: &Recurrent, step: &Step, layer: u64, rates: &Rates, units: f64) -> Option<f64> {
    let constant = |index: usize| step.constants.get(index).map(|value| f64::from(*value));
    let (lanes, rows, pass, slices, held) =
        (constant(0)?, constant(3)?, constant(4)?, constant(5)?, constant(6)?);
    let whole = constant(2)? != 0.0;
    let depth = op.depth(layer) as f64;
    let passes = if whole { (op.blocks() as f64 / pass).ceil() } else { 1.0 };
    // What stays in registers is read once for all steps of a dispatch, and at once where that is one step.
    let (kept, at_once) = if whole { (held, QUADS_AT_ONCE) } else { (0.0, held.max(QUADS_AT_ONCE)) };
    let left = ((depth / slices).ceil() - kept).max(0.0) * passes;
    let bytes = left * lanes * 4.0 * op.dtype.size() as f64;
    let products = (depth / slices).ceil() * passes * lanes * 4.0 * rows;
    let sums = ((left / at_once).ceil() * rates.round).max(bytes / rates.unit).max(products / rates.products);
    let workgroups: f64 = step.grid.iter().map(|count| count.value() as f64).product();
    let registers = REGISTERS.0 + held * op.dtype.size() as f64;
    let together = units * (rates.resident.min(REGISTERS.1 / registers) / lanes).floor().max(1.0);
    let waves = (workgroups / together).ceil();
    Some(waves * rates.step + (waves * sums).max(bytes * workgroups / rates.all))
}
