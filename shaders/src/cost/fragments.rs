//! What products with weights in fragments cost besides.

use crate::{Step, plans::epilogue::Added};

/// How much longer turns take where the last one is no whole one, and results to leave where a tensor is added to them: of 44 shapes on
/// an H200.
const UNEVEN: f64 = 1.2;
const WITH_RESIDUAL: f64 = 2.6;

/// Places of constants of `coop.comp`.
const ADDED: usize = 12;
const IS_EVEN: usize = 16;

/// Both for a step of `coop.comp`.
pub(super) fn longer(step: &Step) -> [f64; 2] {
    let constant = |at: usize| step.constants.get(at).copied().unwrap_or_default();
    let turns = if constant(IS_EVEN) == 0 { UNEVEN } else { 1.0 };
    let leave = if constant(ADDED) & Added::RESIDUAL == 0 { 1.0 } else { WITH_RESIDUAL };
    [turns, leave]
}
