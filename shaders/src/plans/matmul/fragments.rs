//! Products whose right operand is in fragments, by kernels that take none.

use halite_ops::{Operation, fragments, matmul::MatMul};
use halite_sizes::Size;

use crate::{Params, Plan, Unfit, plans::Lower};

/// The plan of kernels of other templates: those that every device runs have a dispatch before that puts rows of the right operand side
/// by side. Plans choose fragments only where kernels take them, so that its time does not matter.
pub(super) fn elsewhere(op: &MatMul, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
    if !op.rhs_fragments {
        return Err(Unfit("takes right operands in fragments only".into()));
    }
    if template != "tiled" {
        return Err(Unfit("takes no right operands in fragments".into()));
    }
    let plain = MatMul { rhs_fragments: false, rhs_transposed: true, ..op.clone() };
    let plan = plain.lower(template, build, params)?;
    let [terms, columns] = [op.k, op.n].map(Size::exact);
    super::behind(plan, op, 1, &Operation::StridedCopy(fragments::back(terms, columns)))
}
