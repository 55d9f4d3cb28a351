//! Operators that read or write elements by index.

use halite_ops::{DType, Values, expression::Function, scatters::Reduction};

use super::{Import, NodeView, Result};
use crate::{
    build::Builder,
    graph::{TensorId, elements},
};

pub(super) const OPS: &[(&str, Import)] = &[
    ("Gather", gather),
    ("GatherElements", gather_elements),
    ("GatherND", gather_nd),
    ("Scatter", scatter_elements),
    ("ScatterElements", scatter_elements),
    ("ScatterND", scatter_nd),
    ("TensorScatter", tensor_scatter),
];

fn gather(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let data = node.input(0)?;
    let axis = node.axis(node.int("axis", 0)?, b.rank(data))?;
    check_places(b, node, axis)?;
    let made = b.gather(data, node.input(1)?, axis)?;
    if axis == 0 {
        b.remember_picked(made, data, node.input(1)?);
    }
    Ok(vec![made])
}

/// Fails for constant indices that lie outside of a dimension that is known; others are for the device to bound.
fn check_places(b: &Builder, node: &NodeView<'_>, axis: usize) -> Result<()> {
    let (size, indices) = (b.sizes(node.input(0)?)[axis], node.input(1)?);
    if !size.is_constant() || b.tensor(indices).constant.is_none() {
        return Ok(());
    }
    let size = i64::try_from(size.value()).unwrap_or(i64::MAX);
    let wrong = b.ints(indices).into_iter().flatten().find(|index| !(-size..size).contains(index));
    match wrong {
        None => Ok(()),
        Some(index) => {
            Err(node.invalid(format!("the index {index} lies outside of the dimension {axis} of {size}")))
        }
    }
}

fn gather_elements(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let data = node.input(0)?;
    let axis = node.axis(node.int("axis", 0)?, b.rank(data))?;
    check_places(b, node, axis)?;
    Ok(vec![b.gather_elements(data, node.input(1)?, axis)?])
}

pub(super) fn gather_nd(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let batch = node.int("batch_dims", 0)?;
    let batch = usize::try_from(batch).map_err(|_| node.invalid(format!("{batch} shared dimensions")))?;
    Ok(vec![b.gather_nd(node.input(0)?, node.input(1)?, batch)?])
}

fn reduction(node: &NodeView<'_>) -> Result<Reduction> {
    Ok(match node.string("reduction", "none")?.as_str() {
        "none" => Reduction::None,
        "add" => Reduction::Add,
        "mul" => Reduction::Mul,
        "min" => Reduction::Min,
        "max" => Reduction::Max,
        other => return Err(node.invalid(format!("there is no reduction '{other}'"))),
    })
}

fn scatter_elements(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let data = node.input(0)?;
    let axis = node.axis(node.int("axis", 0)?, b.rank(data))?;
    let reduction = reduction(node)?;
    Ok(vec![b.scatter_elements([data, node.input(1)?, node.input(2)?], axis, reduction)?])
}

fn scatter_nd(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let reduction = reduction(node)?;
    Ok(vec![b.scatter_nd([node.input(0)?, node.input(1)?, node.input(2)?], reduction)?])
}

/// New places of a cache along an axis, from a place of its own for each of the batch.
fn tensor_scatter(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (cache, update) = (node.input(0)?, node.input(1)?);
    let (dims, sizes) = (b.dims(cache).to_vec(), b.dims(update).to_vec());
    let axis = node.axis(node.int("axis", -2)?, dims.len())?;
    let others = |(i, size): (usize, &u64)| i == axis || *size == dims[i];
    if axis == 0 || sizes.len() != dims.len() || !sizes.iter().enumerate().all(others) {
        return Err(node.invalid(format!("no update: {}", b.describe(&[cache, update]))));
    }
    let circular = match node.string("mode", "linear")?.as_str() {
        "linear" => false,
        "circular" => true,
        other => return Err(node.invalid(format!("there is no mode '{other}'"))),
    };
    if !circular && b.element(cache).is_float() && b.element(cache).storage().is_small_float() {
        return Ok(vec![rows_behind(b, [cache, update], node.optional(2), axis)?]);
    }
    let mut line = vec![1; dims.len()];
    line[axis] = sizes[axis];
    let steps = b.places(DType::I64, &line)?;
    let mut places = steps;
    if let Some(starts) = node.optional(2) {
        let mut rows = vec![1; dims.len()];
        rows[0] = dims[0];
        let starts = b.cast(starts, DType::I64)?;
        let starts = b.reshape(starts, &rows)?;
        places = b.binary(Function::Add, starts, steps)?;
    }
    if circular {
        let size = b.float(DType::I64, dims[axis] as f64)?;
        places = b.binary(Function::Mod, places, size)?;
    }
    let places = b.expand(places, &sizes)?;
    Ok(vec![b.scatter_elements([cache, places, update], axis, Reduction::None)?])
}

/// A cache with the rows of an update along an axis, from where each sequence says: as caches of keys and values are written.
fn rows_behind(
    b: &mut Builder,
    [cache, update]: [TensorId; 2],
    starts: Option<TensorId>,
    axis: usize,
) -> Result<TensorId> {
    let dims = b.dims(cache).to_vec();
    let rows = |b: &Builder, id: TensorId| {
        let own = b.dims(id);
        [own[0], elements(&own[1..axis]), own[axis], elements(&own[axis + 1..])]
    };
    let (from, to) = (rows(b, update), rows(b, cache));
    let starts = match starts {
        Some(starts) => starts,
        None => b.values(DType::I64, &[dims[0]], &Values::Int(vec![0; dims[0] as usize]))?,
    };
    let (update, cache) = (b.reshape(update, &from)?, b.reshape(cache, &to)?);
    let made = b.append(update, cache, starts)?;
    b.reshape(made, &dims)
}
