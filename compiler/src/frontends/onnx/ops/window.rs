//! What convolutions and pools share: windows by their attributes, with automatic padding.

use halite_sizes::Size;

use super::{NodeView, Result};
use crate::build::Sliding;

/// How a window that is called `auto_pad` in ONNX is padded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AutoPad {
    /// As `pads` says.
    NotSet,
    /// Not at all.
    Valid,
    /// As many places as the stride makes of the size; an odd one is behind.
    SameUpper,
    /// The same; an odd one is before.
    SameLower,
}

impl AutoPad {
    pub(super) fn of(node: &NodeView<'_>) -> Result<AutoPad> {
        match node.string("auto_pad", "NOTSET")?.as_str() {
            "" | "NOTSET" => Ok(AutoPad::NotSet),
            "VALID" => Ok(AutoPad::Valid),
            "SAME_UPPER" => Ok(AutoPad::SameUpper),
            "SAME_LOWER" => Ok(AutoPad::SameLower),
            other => Err(node.invalid(format!("auto_pad '{other}' is none that ONNX has"))),
        }
    }

    /// Padding of which there is so much in all.
    pub(super) fn halves(self, total: u64) -> (u64, u64) {
        let half = total / 2;
        if self == AutoPad::SameUpper { (half, total - half) } else { (total - half, half) }
    }
}

/// Largest stride, dilation or border: products with sizes of tensors can be counted.
const LARGEST: u64 = i32::MAX as u64;

/// Sizes that are at least 0, one for each dimension.
pub(super) fn sizes(node: &NodeView<'_>, name: &str, rank: usize, default: u64) -> Result<Vec<u64>> {
    let Some(list) = node.ints(name)? else { return Ok(vec![default; rank]) };
    let sizes: Option<Vec<u64>> =
        list.iter().map(|v| u64::try_from(*v).ok().filter(|v| *v <= LARGEST)).collect();
    sizes
        .filter(|sizes| sizes.len() == rank)
        .ok_or_else(|| node.invalid(format!("'{name}' is {list:?}, not {rank} sizes")))
}

/// The window of a node over spatial dimensions `input` with `kernel` taps.
pub(super) fn window(
    node: &NodeView<'_>,
    input: &[impl Into<Size> + Copy + std::fmt::Debug],
    kernel: &[u64],
) -> Result<Sliding> {
    let rank = kernel.len();
    let strides = sizes(node, "strides", rank, 1)?;
    let dilations = sizes(node, "dilations", rank, 1)?;
    if input.len() != rank || strides.contains(&0) || dilations.contains(&0) || kernel.contains(&0) {
        let reason = format!("a window of {kernel:?} by {strides:?} does not slide over {input:?}");
        return Err(node.invalid(reason));
    }
    let auto = AutoPad::of(node)?;
    let pads = match auto {
        AutoPad::NotSet => {
            let all = sizes(node, "pads", 2 * rank, 0)?;
            (0..rank).map(|d| (all[d], all[d + rank])).collect()
        }
        AutoPad::Valid => vec![(0, 0); rank],
        AutoPad::SameUpper | AutoPad::SameLower => {
            let mut pads = Vec::new();
            for d in 0..rank {
                let reach = dilations[d].saturating_mul(kernel[d] - 1).saturating_add(1);
                if strides[d] == 1 {
                    pads.push(auto.halves(reach - 1));
                    continue;
                }
                let size = input[d].into().exact();
                let places = size.div_ceil(strides[d]);
                let whole = places.saturating_sub(1).saturating_mul(strides[d]).saturating_add(reach);
                // Implementations do not agree on where windows begin that leave more than a place over.
                if size > whole.saturating_add(1) {
                    let reason = format!(
                        "auto_pad SAME of {size} places by {}, of which some are left over",
                        strides[d]
                    );
                    return Err(node.unsupported(reason));
                }
                pads.push(auto.halves(whole.saturating_sub(size)));
            }
            pads
        }
    };
    Ok(Sliding { strides, dilations, pads })
}
