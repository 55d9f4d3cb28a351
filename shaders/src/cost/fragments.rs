//! What products on matrix units cost besides.

use crate::{Step, plans::epilogue::Added};

/// How much longer turns take where the last one is no whole one, and results to leave where a tensor is added to them: of 44 shapes on
/// an H200.
const UNEVEN: f64 = 1.2;
const WITH_RESIDUAL: f64 = 2.6;

/// Places of constants of `coop.comp`.
const ADDED: usize = 12;
const IS_EVEN: usize = 16;

/// Both for a step of `coop.comp` with weights in fragments.
pub(super) fn longer(step: &Step) -> [f64; 2] {
    let turns = if constant(step, IS_EVEN) == 0 { UNEVEN } else { 1.0 };
    [turns, leave(step)]
}

/// How much longer results of a step of `coop.comp` take to leave.
pub(super) fn leave(step: &Step) -> f64 {
    if constant(step, ADDED) & Added::RESIDUAL == 0 { 1.0 } else { WITH_RESIDUAL }
}

fn constant(step: &Step, at: usize) -> u32 {
    step.constants.get(at).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What takes longer for a shape with 64x64x128, whose plan has the constants in the order that is read here.
    fn of(shape: &str) -> [f64; 2] {
        let text = format!("matmul:{shape},lhs=f16,rhs=f16,out=f16,rhs_fragments=true");
        let operation = crate::parse(&text).unwrap();
        let mut all = crate::variants_of("matmul");
        let variant = all.find(|variant| variant.name == "matmul.f16.fragments64x64x128").unwrap();
        longer(&variant.plan(&operation).unwrap().steps[0])
    }

    #[test]
    fn residuals_and_turns_that_are_no_whole_ones_take_longer() {
        assert_eq!(of("m=64,n=64,k=256"), [1.0, 1.0]);
        assert_eq!(of("m=64,n=64,k=256,bias=true"), [1.0, 1.0]);
        assert_eq!(of("m=64,n=64,k=272"), [UNEVEN, 1.0]);
        assert_eq!(of("m=64,n=64,k=256,bias=true,residual=true"), [1.0, WITH_RESIDUAL]);
    }
}
