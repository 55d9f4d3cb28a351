//! Epilogues of linear operations: what is added to sums, and which function is applied, before they are stored.

use halite_sizes::Size;

use crate::{Activation, DType};

/// What is added before the activation, and behind it, of a residual.
pub(crate) fn sides(residual: f64, is_behind: bool) -> (f64, f64) {
    if is_behind { (0.0, residual) } else { (residual, 0.0) }
}

/// How far a result may be off where a dispatch of its own finishes it: the first one rounds a sum of so many terms of this
/// magnitude and random signs, which is four standard deviations at most.
pub(crate) fn rounded_between(
    dtype: DType,
    residual: bool,
    activation: Activation,
    terms: Size,
    largest: f64,
) -> f64 {
    if dtype == DType::F16 && (residual || activation.limits().is_none()) {
        return 4.0 * terms.as_f64().max(1.0).sqrt() * largest * dtype.epsilon();
    }
    0.0
}
