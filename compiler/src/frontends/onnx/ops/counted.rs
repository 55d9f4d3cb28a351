//! Operators whose results have as many elements as data say. What is known when the graph is built is computed then; the rest on
//! the device, and the host reads the number.

use halite_ops::{
    DType, Operation, Values,
    expression::{Function, Operand, Scalar, Type},
    suppress::Suppress,
};
use halite_sizes::Size;

use super::{Import, NodeView, Result, known};
use crate::{
    build::Builder,
    graph::{ElementType, TensorId},
};

pub(super) const OPS: &[(&str, Import)] = &[
    ("Compress", compress),
    ("NonMaxSuppression", non_max_suppression),
    ("NonZero", non_zero),
    ("Unique", unique),
];

/// Whether the elements of a tensor are known now.
fn is_known(b: &Builder, id: TensorId) -> bool {
    b.tensor(id).constant.is_some() || b.tensor(id).values.is_some()
}

/// Coordinates of the elements that are not 0.
fn non_zero(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let data = node.input(0)?;
    if is_known(b, data) {
        return known::non_zero(b, node);
    }
    let holds = match b.element(data) {
        ElementType::Bool => data,
        ElementType::Of(_) => b.cast(data, ElementType::Bool)?,
    };
    if b.rank(data) == 0 {
        // A scalar has no coordinates.
        let places = b.places_where(holds)?;
        let count = b.sizes(places)[0];
        return Ok(vec![b.reshape_to(places, &[Size::constant(0), count])?]);
    }
    let mut rows = Vec::new();
    for places in b.coordinates_where(holds)? {
        let count = b.sizes(places)[0];
        rows.push(b.reshape_to(places, &[Size::constant(1), count])?);
    }
    Ok(vec![b.concat(&rows, 0)?])
}

fn by_size(b: &mut Builder, function: Function, a: TensorId, size: Size) -> Result<TensorId> {
    let size = b.computed(DType::I64, &[], vec![size])?;
    b.binary(function, a, size)
}

fn quotient(b: &mut Builder, a: TensorId, size: Size) -> Result<TensorId> {
    by_size(b, Function::Div, a, size)
}

fn remainder(b: &mut Builder, a: TensorId, size: Size) -> Result<TensorId> {
    by_size(b, Function::Mod, a, size)
}

/// Places along an axis, or of all elements, for which a condition holds.
fn compress(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (mut data, condition) = (node.input(0)?, node.input(1)?);
    let axis = match node.int_if("axis")? {
        Some(axis) => node.axis(axis, b.rank(data))?,
        None => {
            let count = b.tensor(data).count();
            data = b.reshape_to(data, &[count])?;
            0
        }
    };
    if b.tensor(condition).count() > b.sizes(data)[axis] {
        return Err(node.invalid("the condition has more places than the data"));
    }
    let places = match is_known(b, condition) {
        true => {
            let condition = b.need_ints(condition, "the condition")?;
            let chosen = condition.iter().enumerate().filter(|(_, holds)| **holds != 0);
            let places: Vec<i64> = chosen.map(|(place, _)| place as i64).collect();
            b.ints_constant(&places)?
        }
        false => b.places_where(condition)?,
    };
    Ok(vec![b.gather(data, places, axis)?])
}

/// The best boxes of each class that do not overlap better ones, as (batch, class, box).
fn non_max_suppression(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (boxes, scores) = (node.input(0)?, node.input(1)?);
    if (0..5).filter_map(|index| node.optional(index)).all(|id| is_known(b, id)) {
        return known::non_max_suppression(b, node);
    }
    let (of_boxes, of_scores) = (b.sizes(boxes).to_vec(), b.sizes(scores).to_vec());
    let (&[batch, count, four], &[score_batch, classes, scored]) = (&of_boxes[..], &of_scores[..]) else {
        return Err(node.invalid(format!("no boxes and scores: {}", b.describe(&[boxes, scores]))));
    };
    if !four.agrees(4) || !batch.agrees(score_batch) || !count.agrees(scored) {
        return Err(node.invalid("there is not one score for each box, which has four numbers"));
    }
    let most = match node.optional(2) {
        Some(id) => b.need_sizes(id, "the most boxes of a class")?.first().copied().unwrap_or_default(),
        None => Size::constant(0),
    };
    // Below 0 is none, and there are never more than there are boxes.
    let most = most.max(0).min(count);
    let thresholds = thresholds(b, node)?;
    let (boxes, scores) = (b.as_f32(boxes)?, b.as_f32(scores)?);
    let center = node.flag("center_point_box", false)?;
    let made = Operation::Suppress(Suppress { batch, classes, boxes: count, most, center });
    let chosen =
        b.kernel1(made, &[boxes, scores, thresholds], DType::I32.into(), &[batch * classes * most])?;
    let is_box = b.map(&[chosen], ElementType::Bool, |program, x| {
        program.call(Function::Ge, &[x[0], Operand::Constant(Scalar::Int(0, DType::I32))])
    })?;
    let places = b.places_where(is_box)?;
    let found = b.gather(chosen, places, 0)?;
    let found = b.cast(found, DType::I64)?;
    let line = quotient(b, places, most)?;
    let (of_batch, class) = (quotient(b, line, classes)?, remainder(b, line, classes)?);
    let shape = [b.sizes(places)[0], 1.into()];
    let mut columns = Vec::new();
    for column in [of_batch, class, found] {
        columns.push(b.reshape_to(column, &shape)?);
    }
    Ok(vec![b.concat(&columns, 1)?])
}

/// The overlap from which on boxes are left out, and the score below which they are, as one tensor.
fn thresholds(b: &mut Builder, node: &NodeView<'_>) -> Result<TensorId> {
    let mut both = Vec::new();
    for (index, default) in [(3, 0.0), (4, f64::NEG_INFINITY)] {
        let one = match node.optional(index) {
            Some(id) => b.as_f32(id)?,
            None => b.values(DType::F32, &[], &Values::Float(vec![default]))?,
        };
        both.push(b.reshape(one, &[1])?);
    }
    b.concat(&both, 0)
}

/// Elements without repetition: the values, where each is first, for each place which of them it has, and how often each is
/// there.
fn unique(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let data = node.input(0)?;
    if is_known(b, data) {
        return known::unique(b, node);
    }
    let rank = b.rank(data);
    if node.int_if("axis")?.is_some() && rank != 1 {
        // Values that callers bind make it known.
        return known::unique(b, node);
    }
    let element = b.element(data);
    let count = b.tensor(data).count();
    let mut line = b.reshape_to(data, &[count])?;
    if element == ElementType::Bool {
        line = b.cast(line, DType::U8)?;
    }
    let [sorted, from] = b.sort(line, 0, false)?;
    // Where another value begins.
    let places = b.line_of_places(DType::I64, count)?;
    let before = b.map(&[places], DType::I64, |program, x| {
        let int = |value: i64| Operand::Constant(Scalar::Int(value, DType::I64));
        let last = program.call(Function::Sub, &[x[0], int(1)]);
        program.call(Function::Max, &[last, int(0)])
    })?;
    let before = b.gather(sorted, before, 0)?;
    let begins = b.map(&[sorted, before, places], ElementType::Bool, |program, x| {
        let other = program.call(Function::Ne, &[x[0], x[1]]);
        let first = program.call(Function::Eq, &[x[2], Operand::Constant(Scalar::Int(0, DType::I64))]);
        program.call(Function::Or, &[other, first])
    })?;
    let starts = b.places_where(begins)?;
    let groups = Groups { begins, starts, count };
    let (mut inverse, mut counts) = (groups.of_each(b, from)?, groups.counts(b)?);
    let mut firsts = b.gather(from, starts, 0)?;
    let mut values = b.gather(sorted, starts, 0)?;
    if !node.flag("sorted", true)? {
        // In the order in which they are first.
        let [ordered, order] = b.sort(firsts, 0, false)?;
        firsts = ordered;
        values = b.gather(values, order, 0)?;
        counts = b.gather(counts, order, 0)?;
        let [_, rank] = b.sort(order, 0, false)?;
        inverse = b.gather(rank, inverse, 0)?;
    }
    let values = b.cast(values, element)?;
    Ok(vec![values, firsts, inverse, counts])
}

/// Groups of equal elements that lie side by side.
struct Groups {
    begins: TensorId,
    starts: TensorId,
    count: Size,
}

impl Groups {
    /// For each element, which came from the place in `from`, its group.
    fn of_each(&self, b: &mut Builder, from: TensorId) -> Result<TensorId> {
        let ones =
            b.map(&[self.begins], DType::I32, |program, x| program.cast(Type::Of(DType::I32), x[0]))?;
        let numbers = b.cumulative_sum(ones, 0, false, false)?;
        let numbers = b.map(&[numbers], DType::I64, |program, x| {
            let last = program.call(Function::Sub, &[x[0], Operand::Constant(Scalar::Int(1, DType::I32))]);
            program.cast(Type::Of(DType::I64), last)
        })?;
        let [_, back] = b.sort(from, 0, false)?;
        b.gather(numbers, back, 0)
    }

    /// How many elements each group has.
    fn counts(&self, b: &mut Builder) -> Result<TensorId> {
        let count = b.sizes(self.starts)[0];
        let places = b.line_of_places(DType::I64, count)?;
        let one = b.ints_constant(&[1])?;
        let next = b.binary(Function::Add, places, one)?;
        let end = b.computed(DType::I64, &[1], vec![self.count])?;
        let ends = b.concat(&[self.starts, end], 0)?;
        let ends = b.gather(ends, next, 0)?;
        b.binary(Function::Sub, ends, self.starts)
    }
}
