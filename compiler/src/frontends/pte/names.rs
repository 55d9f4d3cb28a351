//! What parts of a program are called in messages, and which operators outside of delegates are known.

use halite_formats::pte::Plan;

use super::kernels;
use crate::{SourceLocation, UnsupportedOperator};

/// Name of the back end whose graphs are understood.
pub(super) const BACK_END: &str = "VulkanBackend";
/// Why operators outside of delegates are refused.
pub(super) const OUTSIDE: &str =
    "it was left outside of the delegate; only methods whose work the Vulkan delegate does are compiled";
/// Operators outside of delegates that change nothing but the shape, the type or the order in memory. What they give has
/// the sizes of their last argument.
pub(super) const COPIES: &[&str] = &[
    "executorch_prim::et_view.default",
    "aten::view_copy.out",
    "aten::clone.out",
    "aten::alias_copy.out",
    "aten::detach_copy.out",
    "dim_order_ops::_to_dim_order_copy.out",
    "dim_order_ops::_clone_dim_order.out",
    "aten::_to_copy.out",
    "aten::squeeze_copy.dims_out",
    "aten::unsqueeze_copy.out",
];

/// Where an instruction is.
pub(super) fn instruction_location(index: usize, plan: &Plan) -> SourceLocation {
    SourceLocation::new(format!("instruction {index} of method '{}'", plan.name))
}

/// A delegate by name.
pub(super) fn delegate_name(index: usize, plan: &Plan) -> String {
    format!("delegate {index} of method '{}'", plan.name)
}

/// Where a call is, without the operator.
pub(super) fn call_location(index: usize, delegate: &str) -> SourceLocation {
    SourceLocation::new(format!("call {index} of {delegate}"))
}

/// Whether an operator outside of delegates is supported, at least with some arguments.
pub(super) fn is_known(name: &str) -> bool {
    COPIES.contains(&name) || kernels::is_known(name)
}

/// An operator outside of delegates that is not supported.
pub(super) fn outside(name: &str, first: SourceLocation) -> UnsupportedOperator {
    let reason = Some(OUTSIDE.to_owned());
    UnsupportedOperator { name: name.to_owned(), domain: None, count: 1, first, reason }
}
