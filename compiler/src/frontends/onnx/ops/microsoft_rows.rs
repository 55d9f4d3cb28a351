//! Rows of a table whose elements are codes in blocks, as onnxruntime-genai's builder writes embeddings that share the weights of the
//! last product.

use halite_ops::{DType, Values, pad::Border};
use halite_sizes::Size;

use super::{Import, NodeView, Result, microsoft_quantized::nibbles};
use crate::{
    build::{Builder, Range},
    graph::{ElementType, TensorId},
};

pub(super) const MICROSOFT: &[(&str, Import)] = &[("GatherBlockQuantized", gather)];

/// Codes of a table.
#[derive(Clone, Copy)]
struct Codes {
    /// Whether a byte holds two, the lower half first.
    packed: bool,
}

fn gather(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (table, indices, scales) = (node.input(0)?, node.input(1)?, node.input(2)?);
    let (bits, block) = (node.int("bits", 4)?, node.int("block_size", 128)?);
    let axes = [node.axis(node.int("gather_axis", 0)?, b.rank(table))?, {
        node.axis(node.int("quantize_axis", 1)?, b.rank(table))?
    }];
    let [_, bytes] = *b.dims(table) else {
        return Err(node.unsupported(format!("{} for a matrix of codes", b.describe(&[table]))));
    };
    if axes != [0, 1] || !matches!(bits, 4 | 8) || block < 1 {
        return Err(node.unsupported(format!(
            "codes of {bits} bits in blocks of {block} along axis {}, of which parts along axis {} are taken; there are rows \
             with blocks of 4 or 8 bits in them",
            axes[1], axes[0]
        )));
    }
    let is_byte = b.element(table) == ElementType::Of(DType::U8);
    let codes = Codes { packed: is_byte && bits == 4 };
    let block = block as u64;
    let length = if codes.packed { 2 * bytes } else { bytes };
    let groups = length.div_ceil(block);
    let whole = groups.checked_mul(block).ok_or_else(|| node.invalid(format!("block_size is {block}")))?;
    let mut dims = b.sizes(indices).to_vec();
    let count: Size = dims.iter().product();
    let flat = b.reshape_to(indices, &[count])?;
    let own = b.gather(table, flat, 0)?;
    let own = codes.apart(b, own)?;
    let own = b.pad(own, &[(0, 0), (0, (whole - length) as i64)], Border::Constant, 0.0)?;
    let own = b.reshape_to(own, &[count, groups.into(), block.into()])?;
    let line = [count, groups.into(), 1.into()];
    let scale = b.gather(scales, flat, 0)?;
    let scale = b.reshape_to(scale, &line)?;
    let zero = match node.optional(3) {
        Some(zeros) => codes.zeros(b, zeros, flat, &line)?,
        // Codes without a sign lie around the middle.
        None if is_byte => b.values(DType::U8, &[], &Values::Int(vec![1 << (bits - 1)]))?,
        None => b.float(b.element(table), 0.0)?,
    };
    let to = b.element(scales);
    let made = b.dequantize(own, scale, Some(zero), to)?;
    let made = b.reshape_to(made, &[count, whole.into()])?;
    let kept = [Range::all(count), Range { start: 0.into(), step: 1, count: length.into() }];
    let made = b.slice(made, &kept)?;
    dims.push(length.into());
    Ok(vec![b.reshape_to(made, &dims)?])
}

impl Codes {
    /// The codes of rows, each an element.
    fn apart(self, b: &mut Builder, rows: TensorId) -> Result<TensorId> {
        if self.packed { nibbles(b, rows) } else { Ok(rows) }
    }

    /// Zero points of the rows that are taken.
    fn zeros(self, b: &mut Builder, zeros: TensorId, flat: TensorId, line: &[Size; 3]) -> Result<TensorId> {
        let [count, groups, _] = *line;
        let own = b.gather(zeros, flat, 0)?;
        let own = self.apart(b, own)?;
        let own = b.slice(own, &[Range::all(count), Range { start: 0.into(), step: 1, count: groups }])?;
        b.reshape_to(own, line)
    }
}
