//! What products of few rows without matrix units take.

use halite_ops::matmul::MatMul;
use halite_targets::HardwareHints;

use crate::Params;

use super::from_memory;

/// Microseconds of a dispatch of products of up to eight rows by `vector.comp`.
struct FewRows {
    launch: f64,
    /// Of each row.
    row: f64,
    /// Of a million bytes of weights, and the same for each row.
    weights: f64,
    row_weights: f64,
    /// Of a thousand terms of a sum, and the same for each row.
    terms: f64,
    row_terms: f64,
}

/// Fitted by least squares of relative differences to times of 12 transposed right operands of 20 x 480 to 4096 x 4096, 1 to 8 rows, 16 bits,
/// in caches, on an H200 (driver 580.159.04). The root mean square of the differences is 9 % here.
const SPREAD: FewRows =
    FewRows { launch: 3.344, row: 0.5845, weights: 0.0765, row_weights: 0.0615, terms: 0.0, row_terms: 0.0 };

/// The same for invocations whose number does not follow the sums: 8 %.
const WHOLE: FewRows =
    FewRows { launch: 2.696, row: 0.328, weights: 0.04, row_weights: 0.028, terms: 1.674, row_terms: 0.205 };

/// The same for sums in parts: 19 %.
const CUT: FewRows =
    FewRows { launch: 5.689, row: 0.826, weights: 0.111, row_weights: 0.078, terms: 0.0, row_terms: 0.0 };

/// Those of right operands that are not transposed, as models without `Gemm` have them: fitted in the same way to times of seven of 784 x 196 to
/// 4096 x 4096 with 2 and 8 rows and a bias; 5 %, 4 % for sums in parts, and 6 %.
const SPREAD_ACROSS: FewRows =
    FewRows { launch: 3.435, row: 0.279, weights: 0.135, row_weights: 0.006, terms: 1.536, row_terms: 0.326 };
const CUT_ACROSS: FewRows =
    FewRows { launch: 6.91, row: 0.312, weights: 0.213, row_weights: 0.047, terms: 0.0, row_terms: 0.0 };
const WHOLE_ACROSS: FewRows =
    FewRows { launch: 1.839, row: 0.224, weights: 0.117, row_weights: 0.001, terms: 8.842, row_terms: 0.405 };

/// Microseconds more of products of so many rows on matrix units whose sums are in parts: by the same measurements, 0.7 to 2.1.
pub(super) const SECOND_DISPATCH: (f64, f64) = (8.0, 1.8);

/// Microseconds; `None` where nothing was measured: one row of right operands that are not transposed, several products, open sizes.
pub(super) fn estimate(op: &MatMul, params: &Params, hints: &HardwareHints) -> Option<f64> {
    let known = [op.m, op.n, op.k].iter().all(|size| size.is_constant()) && op.batch.is(1.into());
    if !known || !op.rhs_transposed && op.m == 1 {
        return None;
    }
    let [spread, whole, cut] = match op.rhs_transposed {
        true => [&SPREAD, &WHOLE, &CUT],
        false => [&SPREAD_ACROSS, &WHOLE_ACROSS, &CUT_ACROSS],
    };
    let few = match (params.get("parts").ok()?, params.get(slices(op)).ok()?) {
        (1, 0) => spread,
        (1, _) => whole,
        _ => cut,
    };
    let [rows, columns, terms] = [op.m, op.n, op.k].map(|size| size.value() as f64);
    let bytes = columns * terms * op.rhs.size() as f64;
    let time = few.launch
        + few.row * rows
        + (few.weights + few.row_weights * rows) * bytes / 1e6
        + (few.terms + few.row_terms * rows) * terms / 1e3;
    Some(time.max(from_memory(bytes, hints)))
}

/// Microseconds of a dispatch of `octets.comp`, of each row but the first, and of a million bytes of weights: read off times of six shapes of 8 to
/// 117 MB with one row and two with four, from memory, on an H200; 15 % off at most.
const OCTETS: (f64, f64, f64) = (4.0, 1.5, 0.238);

/// Microseconds of products of whole octets of several rows; `None` where there is one row, which others were not measured with, several
/// products, or open sizes.
pub(super) fn octets(op: &MatMul) -> Option<f64> {
    let known = [op.m, op.n, op.k].iter().all(|size| size.is_constant()) && op.batch.is(1.into());
    if !known || op.m == 1 {
        return None;
    }
    let [rows, columns, terms] = [op.m, op.n, op.k].map(|size| size.value() as f64);
    Some(OCTETS.0 + OCTETS.1 * (rows - 1.0) + OCTETS.2 * columns * terms * op.rhs.size() as f64 / 1e6)
}

/// The parameter that says how many invocations share a sum.
fn slices(op: &MatMul) -> &'static str {
    if op.rhs_transposed { "along" } else { "across" }
}
