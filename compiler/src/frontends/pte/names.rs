//! What parts of a program are called in messages, and what operators outside of delegates are called inside of them.

use halite_formats::pte::Plan;

use crate::SourceLocation;

/// The operator by which loops give a row of their result.
pub(super) const COPY_ROW: &str = "executorch_prim.et_copy_index.tensor";

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

/// Operators whose forms with and without a place for the result are not called alike.
const FUNCTIONAL: &[(&str, &str)] = &[
    ("aten::add.out", "aten.add.Tensor"),
    ("aten::sub.out", "aten.sub.Tensor"),
    ("aten::mul.out", "aten.mul.Tensor"),
    ("aten::div.out", "aten.div.Tensor"),
    ("aten::div.out_mode", "aten.div.Tensor_mode"),
    ("aten::any.all_out", "aten.any.default"),
    ("aten::any.out", "aten.any.dim"),
    ("aten::all.all_out", "aten.all.default"),
    ("aten::all.out", "aten.all.dim"),
    ("aten::arange.start_out", "aten.arange.start_step"),
    ("aten::copy_", "aten.copy.default"),
    ("aten::index_put_", "aten.index_put.default"),
    ("aten::max.dim_max", "aten.max.dim"),
    ("aten::max.unary_out", "aten.max.default"),
    ("aten::min.dim_min", "aten.min.dim"),
    ("aten::min.unary_out", "aten.min.default"),
    ("aten::mean.dtype_out", "aten.mean.default"),
    ("aten::mean.out", "aten.mean.dim"),
    ("aten::prod.int_out", "aten.prod.dim_int"),
    ("aten::sort.values", "aten.sort.default"),
    ("aten::sort.values_stable", "aten.sort.stable"),
    ("aten::sum.IntList_out", "aten.sum.dim_IntList"),
    ("aten::topk.values", "aten.topk.default"),
    ("aten::var.out", "aten.var.dim"),
    ("executorch_prim::et_view.default", "aten.view_copy.default"),
];

/// The name of an operator (`aten::mul.Scalar_out`) where it gives its result (`aten.mul.Scalar`).
pub(super) fn functional(name: &str) -> String {
    if let Some((_, functional)) = FUNCTIONAL.iter().find(|(out, _)| *out == name) {
        return (*functional).to_owned();
    }
    let (space, rest) = name.split_once("::").unwrap_or(("", name));
    let (operator, overload) = rest.split_once('.').unwrap_or((rest, ""));
    let overload = match overload {
        "" | "out" => "default",
        overload => overload.strip_suffix("_out").unwrap_or(overload),
    };
    match space {
        "" => format!("{operator}.{overload}"),
        _ => format!("{space}.{operator}.{overload}"),
    }
}

#[cfg(test)]
mod tests {
    use super::functional;

    #[test]
    fn places_of_results_are_not_in_names() {
        let pairs = [
            ("aten::mul.Scalar_out", "aten.mul.Scalar"),
            ("aten::relu.out", "aten.relu.default"),
            ("aten::add.out", "aten.add.Tensor"),
            ("aten::sym_size.int", "aten.sym_size.int"),
            ("aten::_local_scalar_dense", "aten._local_scalar_dense.default"),
            ("executorch_prim::add.Scalar", "executorch_prim.add.Scalar"),
            (
                "quantized_decomposed::quantize_per_tensor.out",
                "quantized_decomposed.quantize_per_tensor.default",
            ),
            ("plain", "plain.default"),
        ];
        for (name, wanted) in pairs {
            assert_eq!(functional(name), wanted);
        }
    }
}
