//! Owns operators that change or tell the shape of tensors.

use halite_shaders::{DType, Values};

use super::{Import, NodeView, Result};
use crate::{
    build::Builder,
    graph::{TensorId, elements},
};

pub(super) const OPS: &[(&str, Import)] = &[("Identity", identity), ("Reshape", reshape), ("Shape", shape)];

fn identity(_: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    Ok(vec![node.input(0)?])
}

fn shape(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let dims = b.dims(node.input(0)?).to_vec();
    let rank = dims.len() as i64;
    let bound =
        |value: i64| (if value < 0 { value.saturating_add(rank) } else { value }).clamp(0, rank) as usize;
    let (start, end) = (bound(node.int("start", 0)?), bound(node.int("end", rank)?));
    let part: Vec<i64> = dims.get(start..end).unwrap_or(&[]).iter().map(|d| *d as i64).collect();
    Ok(vec![b.values(DType::I64, &[part.len() as u64], &Values::Int(part))?])
}

fn reshape(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let data = node.input(0)?;
    let from = b.dims(data).to_vec();
    let wanted = b.need_ints(node.input(1)?, "the shape")?;
    let keep_zeros = node.flag("allowzero", false)?;
    let mut dims = Vec::new();
    for (index, size) in wanted.iter().enumerate() {
        dims.push(match *size {
            0 if !keep_zeros => *from
                .get(index)
                .ok_or_else(|| node.invalid(format!("there is no dimension {index} to copy")))?,
            -1 => 1,
            size => u64::try_from(size).map_err(|_| node.invalid(format!("{size} is no size")))?,
        });
    }
    if let Some(open) = wanted.iter().position(|size| *size == -1) {
        let known = elements(&dims);
        dims[open] = elements(&from).checked_div(known).unwrap_or(0);
    }
    Ok(vec![b.reshape(data, &dims)?])
}
