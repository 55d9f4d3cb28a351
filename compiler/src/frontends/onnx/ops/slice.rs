//! Parts of tensors along their dimensions, from and to places that the model knows, or that data decide.

use halite_ops::{
    DType,
    expression::{Function, Operand, Scalar},
};
use halite_sizes::Size;

use super::{Import, NodeView, Result};
use crate::{
    build::{Builder, MOST_SIZE, Number, Range},
    graph::TensorId,
};

pub(super) const OPS: &[(&str, Import)] = &[("Slice", slice)];

/// Places along an axis, of which more than this are all.
const END: i64 = 1 << 40;

/// Starts, ends, axes and steps are attributes before version 10, and inputs since.
fn slice(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let data = node.input(0)?;
    let dims = b.sizes(data).to_vec();
    let missing = || node.invalid("starts or ends are missing");
    let mut starts = numbers(b, node, "starts", 1, "where the slice starts")?.ok_or_else(missing)?;
    let mut ends = numbers(b, node, "ends", 2, "where the slice ends")?.ok_or_else(missing)?;
    let axes = match node.ints_of(b, "axes", 3, "the axes")? {
        Some(axes) => node.axes(&axes, dims.len())?,
        None => (0..starts.len()).collect(),
    };
    let steps = node.optional(4).map(|id| b.need_ints(id, "the steps")).transpose()?;
    let steps = steps.unwrap_or_else(|| vec![1; starts.len()]);
    if [ends.len(), axes.len(), steps.len()] != [starts.len(); 3] || axes.len() > dims.len() {
        return Err(node.invalid("starts, ends, axes and steps are not equally many"));
    }
    if steps.contains(&0) {
        return Err(node.invalid("a step is 0"));
    }
    let sizes: Option<Vec<Size>> = axes.iter().map(|axis| dims.get(*axis).copied()).collect();
    let sizes = sizes.ok_or_else(|| node.invalid(format!("there are no axes {axes:?}")))?;
    read_places(b, [&mut starts, &mut ends], &sizes, &steps)?;
    let mut ranges: Vec<Range<Size>> = dims.iter().map(|size| Range::all(*size)).collect();
    for (index, axis) in axes.iter().enumerate() {
        let (Number::Known(start), Number::Known(end)) = (starts[index], ends[index]) else { continue };
        ranges[*axis] = range(sizes[index], start, end, steps[index]);
    }
    Ok(vec![b.slice(data, &ranges)?])
}

fn numbers(
    b: &mut Builder,
    node: &NodeView<'_>,
    name: &str,
    input: usize,
    what: &str,
) -> Result<Option<Vec<Number>>> {
    match node.optional(input) {
        Some(id) => b.numbers_of(id, what).map(Some),
        None => {
            let known = |all: Vec<i64>| all.into_iter().map(|value| Number::Known(value.into())).collect();
            Ok(node.ints(name)?.map(known))
        }
    }
}

/// Makes known what data decide: the device brings each place into its dimension, and the host reads all of them at once.
fn read_places(b: &mut Builder, all: [&mut Vec<Number>; 2], sizes: &[Size], steps: &[i64]) -> Result<()> {
    let mut scalars = Vec::new();
    for numbers in &all {
        for ((number, size), step) in numbers.iter().zip(sizes).zip(steps) {
            let Number::Data(id) = number else { continue };
            // One more where a walk backwards ends before the first.
            let more = i64::from(*step < 0);
            let place = inside(b, *id, *size, more)?;
            scalars.push((place, 0, size.most().clamp(0, MOST_SIZE)));
        }
    }
    if scalars.is_empty() {
        return Ok(());
    }
    let mut read = b.read_scalars(&scalars, "the ends of a slice")?.into_iter();
    for numbers in all {
        for (number, step) in numbers.iter_mut().zip(steps) {
            if matches!(number, Number::Data(_)) {
                let place = read.next().unwrap_or_default();
                // Below the first is far below: those that count from the end have been brought in already.
                *number = Number::Known(if *step < 0 { place - 1 } else { place });
            }
        }
    }
    Ok(())
}

/// A place by NumPy's rules as a number from 0 to the size, which has `more` added to it.
fn inside(b: &mut Builder, place: TensorId, size: Size, more: i64) -> Result<TensorId> {
    let size = b.computed(DType::I64, &[], vec![size])?;
    b.map(&[place, size], DType::I64, |program, x| {
        let int = |value: i64| Operand::Constant(Scalar::Int(value, DType::I64));
        let from_end = program.call(Function::Add, &[x[0], x[1]]);
        let below = program.call(Function::Lt, &[x[0], int(0)]);
        let place = program.call(Function::Select, &[below, from_end, x[0]]);
        // What is far out of range stays in range with one more.
        let place = program.call(Function::Min, &[place, x[1]]);
        let place = program.call(Function::Add, &[place, int(more)]);
        let place = program.call(Function::Max, &[place, int(0)]);
        program.call(Function::Min, &[place, x[1]])
    })
}

/// What a slice of a dimension means, by NumPy's rules.
fn range(size: Size, start: Size, end: Size, step: i64) -> Range<Size> {
    if [size, start, end].iter().all(|number| number.is_constant()) {
        return known_range(size.signed_value(), start.signed_value(), end.signed_value(), step);
    }
    let far = |place: Size| match place.is_constant() {
        true => place.signed_value().clamp(-END, END).into(),
        false => place,
    };
    // From the end, where it is known to be; a read place never is.
    let from_end = |place: Size| {
        if place.is_constant() && place < 0 || is_negative(place) { place + size } else { place }
    };
    let (start, end) = (far(start), far(end));
    let by = Size::from(step.unsigned_abs());
    let (start, count) = if step > 0 {
        let inside = |place: Size| from_end(place).max(0).min(size);
        let (start, end) = (inside(start), inside(end));
        (start, (end - start).max(0).div_ceil(by))
    } else {
        let inside = |place: Size| place.max(-1).min(size - 1);
        let before = |place: Size| match place.is_data() && place.least() >= -1 {
            true => place,
            false => from_end(place),
        };
        let (start, end) = (inside(before(start)), inside(before(end)));
        (start, (start - end).max(0).div_ceil(by))
    };
    if count == 0 {
        return Range { start: 0.into(), step: 1, count };
    }
    Range { start: start.max(0), step, count }
}

/// Whether a size that stays open is below 0: for one that data decide, whether it always is.
fn is_negative(place: Size) -> bool {
    if place.is_data() { place.most() < 0 } else { place < 0 }
}

/// The same of plain numbers.
fn known_range(size: i64, start: i64, end: i64, step: i64) -> Range<Size> {
    let from_end = |value: i64| if value < 0 { value.saturating_add(size) } else { value };
    let (start, end) = (from_end(start), from_end(end));
    let (start, count) = if step > 0 {
        let (start, end) = (start.clamp(0, size), end.clamp(0, size));
        (start, (end - start).max(0).unsigned_abs().div_ceil(step.unsigned_abs()))
    } else {
        let (start, end) = (start.clamp(-1, size - 1), end.clamp(-1, size - 1));
        (start, (start - end).max(0).unsigned_abs().div_ceil(step.unsigned_abs()))
    };
    // The step from a single place to the next is never taken.
    let step = if count <= 1 { 1 } else { step };
    let start = if count == 0 { 0 } else { start };
    Range { start: start.into(), step, count: count.into() }
}

#[cfg(test)]
mod tests {
    use halite_sizes::Trace;

    use super::*;

    fn known(start: i64, step: i64, count: i64) -> Range<Size> {
        Range { start: start.into(), step, count: count.into() }
    }

    #[test]
    fn slices_are_numpys() {
        let of = |size: i64, start: i64, end: i64, step| range(size.into(), start.into(), end.into(), step);
        assert_eq!(of(5, 1, 4, 2), known(1, 2, 2));
        assert_eq!(of(5, -1, i64::MIN, -1), known(4, -1, 5));
        assert_eq!(of(5, 7, 2, -2), known(4, 1, 1));
        assert_eq!(of(5, 0, i64::MAX, 1), known(0, 1, 5));
        assert_eq!(of(5, 3, 1, 1).count, 0);
        assert_eq!(of(0, 0, 5, 1).count, 0);
        assert_eq!(of(0, -1, -5, -1).count, 0);
        assert_eq!(of(5, 0, 5, i64::MAX), known(0, 1, 1));
    }

    #[test]
    fn slices_of_sizes_that_data_decide_promise_nothing() {
        let trace = Trace::new();
        let _entered = trace.enter();
        let size = trace.data_symbol("n", 100, 0, 1000);
        for (start, end, step) in [(0, i64::MAX, 1), (-1, i64::MIN, -1), (2, -1, 1), (-3, i64::MAX, 2)] {
            let known = known_range(100, start, end, step);
            let open = range(size, start.into(), end.into(), step);
            assert_eq!(open.count.value(), known.count.value());
            assert_eq!(open.start.signed_value(), known.start.signed_value());
        }
        assert_eq!(trace.promises(), []);
        assert_eq!(halite_sizes::take_pinned(), None);
    }
}
