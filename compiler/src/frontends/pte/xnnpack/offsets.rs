//! Zero points that a delegate cannot have. XNNPACK has none for weights, and ExecuTorch's runtime refuses files with some. Its exporter
//! writes them all the same, and codes without a sign as codes with one; which of the two they are, the file does not say.

use halite_formats::pte::{XnnGraph, XnnOperator as Op, XnnQuantization as Quantization, XnnType, XnnValue};
use halite_ops::DType;

use super::{Result, numbers::element_of};
use crate::{build::Builder, graph::ElementType};

/// Refuses zero points that no code stands for, and those of weights.
pub(super) fn check(b: &Builder, graph: &XnnGraph) -> Result<()> {
    for value in &graph.values {
        let Quantization::Tensor { zero, .. } = value.quantization else { continue };
        let (least, most) = match value.datatype {
            XnnType::I8 => (-128, 127),
            XnnType::U8 => (0, 255),
            XnnType::I32 => (0, 0),
            XnnType::F32 | XnnType::F16 | XnnType::BF16 | XnnType::U4 => {
                let what = described(value);
                return Err(
                    b.unsupported(format!("{what}, has a scale and a zero point of the whole tensor"))
                );
            }
        };
        if !(least..=most).contains(&zero) {
            let hint = match value.datatype {
                XnnType::I8 => {
                    "; exporters write codes without a sign like this, which XNNPACK does not have"
                }
                _ => "",
            };
            let what = described(value);
            return Err(b.unsupported(format!(
                "{what}, has the zero point {zero}, which is not between {least} and {most}{hint}"
            )));
        }
    }
    for node in &graph.nodes {
        let weighted = matches!(
            node.operator,
            Op::FullyConnected
                | Op::Convolution(_)
                | Op::DepthwiseConvolution(_)
                | Op::TransposedConvolution(_)
        );
        let filter = node.inputs.get(1).copied().flatten().filter(|_| weighted);
        let Some(value) = filter.map(|id| &graph.values[id]).filter(|value| value.constant.is_some()) else {
            continue;
        };
        if let Quantization::Tensor { zero, .. } = value.quantization
            && zero != 0
        {
            let (what, operator) = (described(value), node.operator.name());
            return Err(b.unsupported(format!(
                "{what}, the weights of {operator}, has the zero point {zero}; XNNPACK's weights have none"
            )));
        }
    }
    Ok(())
}

/// Refuses codes that are handed in with another sign than the file says.
pub(super) fn check_handed(b: &Builder, value: &XnnValue, given: ElementType) -> Result<()> {
    let own = element_of(value.datatype);
    let bytes = |element| matches!(element, ElementType::Of(DType::I8 | DType::U8));
    let Quantization::Tensor { zero, .. } = value.quantization else { return Ok(()) };
    if own == given || !bytes(own) || !bytes(given) {
        return Ok(());
    }
    let what = described(value);
    Err(b.unsupported(format!(
        "{what}, has the zero point {zero} and is {own}, and {given} is handed in: codes of another sign"
    )))
}

fn described(value: &XnnValue) -> String {
    let (id, element, dims) = (value.id, element_of(value.datatype), &value.dims);
    format!("value {id}, {element}{dims:?}")
}
