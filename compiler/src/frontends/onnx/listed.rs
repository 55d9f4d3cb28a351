//! Lists of as many tensors as data decide, which loops carry: all elements in a line, and the sizes of each tensor.

use halite_ops::{
    DType, Values,
    expression::{Function, Operand, Scalar, Type},
    reduce::ReduceKind,
};
use halite_sizes::Size;

use super::Result;
use crate::{
    build::{Builder, MOST_SIZE, Range},
    graph::{ElementType, TensorId},
};

/// A list whose length is known when data are. All of its tensors have one type and number of dimensions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listed {
    /// The elements of all tensors, one behind the other.
    pub(super) elements: TensorId,
    /// `[tensors, dimensions]`: sizes, as `i64`.
    pub(super) sizes: TensorId,
    /// The tensors along a first axis, where all are known to have the same sizes: what is asked of them needs no number that is read.
    pub(super) rows: Option<TensorId>,
}

/// Most places of an axis that is split into a list.
pub(super) const MOST_PARTS: u64 = 1 << 16;

/// Type and number of dimensions of the tensors of a list.
pub(super) type Kind = (ElementType, usize);

impl Listed {
    /// Of tensors that are known.
    pub(super) fn of(b: &mut Builder, all: &[TensorId], (element, rank): Kind) -> Result<Listed> {
        let none = b.constant("", element, &[0], bytes::Bytes::new())?;
        let no_sizes = b.values(DType::I64, &[0, rank as u64], &Values::Int(Vec::new()))?;
        let mut made = Listed { elements: none, sizes: no_sizes, rows: None };
        for one in all {
            made = made.with(b, *one)?;
        }
        Ok(made)
    }

    /// What its tensors are.
    pub(super) fn kind(&self, b: &Builder) -> Kind {
        (b.element(self.elements), self.rank(b))
    }

    /// Number of dimensions of each tensor.
    fn rank(&self, b: &Builder) -> usize {
        b.sizes(self.sizes)[1].exact_usize()
    }

    /// Number of tensors.
    pub(super) fn count(&self, b: &Builder) -> Size {
        b.sizes(self.sizes)[0]
    }

    /// The list with another tensor at its end.
    pub(super) fn with(&self, b: &mut Builder, added: TensorId) -> Result<Listed> {
        if b.element(added) != b.element(self.elements) || b.rank(added) != self.rank(b) {
            let reason = format!("{} is of another type than those of the list", b.describe(&[added]));
            return Err(b.invalid(reason));
        }
        let (count, sizes) = (b.tensor(added).count(), b.sizes(added).to_vec());
        let line = b.reshape_to(added, &[count])?;
        let elements = b.concat(&[self.elements, line], 0)?;
        let row = b.computed(DType::I64, &[1, sizes.len() as u64], sizes)?;
        Ok(Listed { elements, sizes: b.concat(&[self.sizes, row], 0)?, rows: None })
    }

    /// One size of each tensor, a line.
    fn column(&self, b: &mut Builder, axis: usize) -> Result<TensorId> {
        let count = self.count(b);
        let own = Range { start: Size::from(axis), step: 1, count: 1.into() };
        let column = b.slice(self.sizes, &[Range::all(count), own])?;
        b.reshape_to(column, &[count])
    }

    /// The number of elements of each tensor that lie in some of its dimensions, a line.
    fn products(&self, b: &mut Builder, axes: std::ops::Range<usize>) -> Result<TensorId> {
        let one = b.values(DType::I64, &[], &Values::Int(vec![1]))?;
        let count = self.count(b);
        let mut product = b.expand_to(one, &[count])?;
        for axis in axes {
            let column = self.column(b, axis)?;
            product = b.binary(Function::Mul, product, column)?;
        }
        Ok(product)
    }

    /// The first element of each tensor, a line.
    fn starts(&self, b: &mut Builder) -> Result<TensorId> {
        let rank = self.rank(b);
        let counts = self.products(b, 0..rank)?;
        sums_before(b, counts)
    }

    /// A place, which may count from the end, as a scalar that counts from the beginning.
    fn place(&self, b: &mut Builder, place: TensorId) -> Result<TensorId> {
        let place = b.cast(place, DType::I64)?;
        let place = b.reshape(place, &[])?;
        let count = self.count(b);
        let count = b.computed(DType::I64, &[], vec![count])?;
        b.map(&[place, count], DType::I64, |p, x| {
            let below = p.call(Function::Lt, &[x[0], int(0)]);
            let from_end = p.call(Function::Add, x);
            p.call(Function::Select, &[below, from_end, x[0]])
        })
    }

    /// The list up to a place, and from `skipped` tensors behind it on.
    fn cut(&self, b: &mut Builder, place: TensorId, skipped: u64) -> Result<[Listed; 2]> {
        let place = self.place(b, place)?;
        let (starts, all, count) = (self.starts(b)?, b.sizes(self.elements)[0], self.count(b));
        let end = b.computed(DType::I64, &[1], vec![all])?;
        let starts = b.concat(&[starts, end], 0)?;
        let next = b.map(&[place], DType::I64, |p, x| p.call(Function::Add, &[x[0], int(skipped as i64)]))?;
        let mut scalars = vec![(place, 0, MOST_SIZE)];
        for of in [place, next] {
            scalars.push((b.gather(starts, of, 0)?, 0, MOST_SIZE));
        }
        let read = b.read_scalars(&scalars, "a place in a list")?;
        let mut part = |rows: [Size; 2], elements: [Size; 2]| -> Result<Listed> {
            let range = |[from, to]: [Size; 2]| Range { start: from, step: 1, count: (to - from).max(0) };
            let rank = self.rank(b);
            let sizes = b.slice(self.sizes, &[range(rows), Range::all(rank.into())])?;
            Ok(Listed { elements: b.slice(self.elements, &[range(elements)])?, sizes, rows: None })
        };
        let zero = Size::constant(0);
        let before = part([zero, read[0]], [zero, read[1]])?;
        Ok([before, part([read[0] + skipped, count], [read[2], all])?])
    }

    /// One list behind the other.
    fn joined_to(&self, b: &mut Builder, other: Listed) -> Result<Listed> {
        let elements = b.concat(&[self.elements, other.elements], 0)?;
        Ok(Listed { elements, sizes: b.concat(&[self.sizes, other.sizes], 0)?, rows: None })
    }

    /// The list with another tensor before that at a place, which may count from the end.
    pub(super) fn inserted(&self, b: &mut Builder, added: TensorId, place: TensorId) -> Result<Listed> {
        let [before, behind] = self.cut(b, place, 0)?;
        before.with(b, added)?.joined_to(b, behind)
    }

    /// The list without the tensor at a place, which may count from the end.
    pub(super) fn erased(&self, b: &mut Builder, place: TensorId) -> Result<Listed> {
        let [before, behind] = self.cut(b, place, 1)?;
        before.joined_to(b, behind)
    }

    /// Pieces along the first axis of a tensor, as many places each as a line says that is computed; a call fails where these are not all
    /// places.
    pub(super) fn parts(b: &mut Builder, data: TensorId, parts: TensorId) -> Result<Listed> {
        let (sizes, count, elements) = (b.sizes(data).to_vec(), b.sizes(parts)[0], b.tensor(data).count());
        let lengths = b.cast(parts, DType::I64)?;
        covers(b, lengths, sizes[0])?;
        let mut table = b.reshape_to(lengths, &[count, 1.into()])?;
        if let [_, rest @ ..] = &sizes[..]
            && !rest.is_empty()
        {
            let row = b.computed(DType::I64, &[1, rest.len() as u64], rest.to_vec())?;
            let rows = b.expand_to(row, &[count, rest.len().into()])?;
            table = b.concat(&[table, rows], 1)?;
        }
        Ok(Listed { elements: b.reshape_to(data, &[elements])?, sizes: table, rows: None })
    }

    /// Single places along an axis of a tensor, which they keep or lack.
    pub(super) fn places_of(b: &mut Builder, data: TensorId, axis: usize, keeps: bool) -> Result<Listed> {
        let mut own = b.sizes(data).to_vec();
        let count = own.remove(axis);
        let order: Vec<usize> =
            std::iter::once(axis).chain((0..=own.len()).filter(|other| *other != axis)).collect();
        if keeps {
            own.insert(axis, 1.into());
        }
        let rows = b.transpose(data, &order)?;
        let all: Vec<Size> = std::iter::once(count).chain(own.iter().copied()).collect();
        let rows = b.reshape_to(rows, &all)?;
        let row = b.computed(DType::I64, &[1, own.len() as u64], own.clone())?;
        let sizes = b.expand_to(row, &[count, own.len().into()])?;
        let elements = b.tensor(rows).count();
        Ok(Listed { elements: b.reshape_to(rows, &[elements])?, sizes, rows: Some(rows) })
    }

    /// The tensors one by one, where all have the same sizes and data do not decide their number; it is fixed.
    pub(super) fn one_by_one(&self, b: &mut Builder) -> Result<Option<Vec<TensorId>>> {
        let Some(rows) = self.rows.filter(|rows| !b.sizes(*rows)[0].is_data()) else { return Ok(None) };
        let sizes = b.sizes(rows).to_vec();
        let count = sizes[0].exact();
        if count > MOST_PARTS {
            let reason = format!("a list of the parts of {count} places; {MOST_PARTS} are supported");
            return Err(b.unsupported(reason));
        }
        let mut all = Vec::new();
        for place in 0..count {
            let mut ranges: Vec<Range<Size>> = sizes.iter().map(|size| Range::all(*size)).collect();
            ranges[0] = Range { start: place.into(), step: 1, count: 1.into() };
            let row = b.slice(rows, &ranges)?;
            all.push(b.reshape_to(row, &sizes[1..])?);
        }
        Ok(Some(all))
    }

    /// Pieces of `each` places along the first axis of a tensor, whose length data decide; the last may have fewer.
    pub(super) fn pieces(b: &mut Builder, data: TensorId, each: u64) -> Result<Listed> {
        let sizes = b.sizes(data).to_vec();
        let count = sizes[0].div_ceil(each);
        let line = b.line_of_places(DType::I64, count)?;
        let all = b.computed(DType::I64, &[], vec![sizes[0]])?;
        let first = b.map(&[line, all], DType::I64, |p, x| {
            let before = p.call(Function::Mul, &[x[0], int(each as i64)]);
            let left = p.call(Function::Sub, &[x[1], before]);
            p.call(Function::Min, &[left, int(each as i64)])
        })?;
        let mut columns = vec![b.reshape_to(first, &[count, 1.into()])?];
        if sizes.len() > 1 {
            let rest = sizes[1..].to_vec();
            let row = b.computed(DType::I64, &[1, rest.len() as u64], rest.clone())?;
            columns.push(b.expand_to(row, &[count, rest.len().into()])?);
        }
        let table = b.concat(&columns, 1)?;
        let elements = b.tensor(data).count();
        Ok(Listed { elements: b.reshape_to(data, &[elements])?, sizes: table, rows: None })
    }

    /// The tensor at a place, which may count from the end.
    pub(super) fn at(&self, b: &mut Builder, place: TensorId) -> Result<TensorId> {
        let place = self.place(b, place)?;
        if let Some(rows) = self.rows {
            return b.gather(rows, place, 0);
        }
        let starts = self.starts(b)?;
        let (start, row) = (b.gather(starts, place, 0)?, b.gather(self.sizes, place, 0)?);
        let mut scalars = vec![(start, 0, MOST_SIZE)];
        for axis in 0..self.rank(b) {
            let one = b.slice(row, &[Range { start: axis as u64, step: 1, count: 1 }])?;
            scalars.push((b.reshape(one, &[])?, 0, MOST_SIZE));
        }
        let read = b.read_scalars(&scalars, "the place and the sizes of a tensor in a list")?;
        let (start, sizes) = (read[0], &read[1..]);
        let count: Size = sizes.iter().product();
        let line = b.slice(self.elements, &[Range { start, step: 1, count }])?;
        b.reshape_to(line, sizes)
    }

    /// All tensors joined along an axis, in which alone they differ; along a new one, in none.
    pub(super) fn joined(&self, b: &mut Builder, axis: usize, is_new: bool) -> Result<TensorId> {
        if let Some(rows) = self.rows {
            return rows_joined(b, rows, axis, is_new);
        }
        if is_new {
            let one = b.values(DType::I64, &[], &Values::Int(vec![1]))?;
            let ones = b.expand_to(one, &[self.count(b), 1.into()])?;
            let (rank, count) = (self.rank(b), self.count(b));
            let columns = |start: usize, end: usize| {
                [
                    Range::all(count),
                    Range { start: Size::from(start), step: 1, count: Size::from(end - start) },
                ]
            };
            let mut parts = Vec::new();
            if axis > 0 {
                parts.push(b.slice(self.sizes, &columns(0, axis))?);
            }
            parts.push(ones);
            if axis < rank {
                parts.push(b.slice(self.sizes, &columns(axis, rank))?);
            }
            let sizes = b.concat(&parts, 1)?;
            return Listed { sizes, rows: None, ..*self }.joined(b, axis, false);
        }
        let rank = self.rank(b);
        // The sizes of the first tensor are those of all; along the axis their sum counts.
        let along = self.column(b, axis)?;
        let total = b.reduce(ReduceKind::Sum, along, &[0], false)?;
        let first = b.values(DType::I64, &[], &Values::Int(vec![0]))?;
        let mut scalars = Vec::new();
        for other in 0..rank {
            let own = if other == axis {
                total
            } else {
                let column = self.column(b, other)?;
                b.gather(column, first, 0)?
            };
            scalars.push((b.reshape(own, &[])?, 0, MOST_SIZE));
        }
        let sizes = b.read_scalars(&scalars, "the sizes of tensors that are joined")?;
        if axis == 0 {
            return b.reshape_to(self.elements, &sizes);
        }
        let index = self.places(b, along, &sizes, axis)?;
        let made = b.gather(self.elements, index, 0)?;
        b.reshape_to(made, &sizes)
    }

    /// Where the elements of the joined tensor lie, `[before, along, behind]` the axis.
    fn places(&self, b: &mut Builder, along: TensorId, sizes: &[Size], axis: usize) -> Result<TensorId> {
        let before: Size = sizes[..axis].iter().product();
        let behind: Size = sizes[axis + 1..].iter().product();
        let (count, total) = (self.count(b), sizes[axis]);
        let (starts, firsts) = (self.starts(b)?, sums_before(b, along)?);
        // The tensor that a place along the axis is of: as many as begin before it, less one.
        let line = b.line_of_places(DType::I64, total)?;
        let column = b.reshape_to(line, &[total, 1.into()])?;
        let row = b.reshape_to(firsts, &[1.into(), count])?;
        let begun = b.compare(Function::Ge, column, row)?;
        let begun = b.map(&[begun], DType::I64, |p, x| p.cast(Type::Of(DType::I64), x[0]))?;
        let owner = b.reduce(ReduceKind::Sum, begun, &[1], false)?;
        let owner = b.map(&[owner], DType::I64, |p, x| p.call(Function::Sub, &[x[0], int(1)]))?;
        let mut of = Vec::new();
        for each in [starts, firsts, along] {
            let picked = b.gather(each, owner, 0)?;
            of.push(b.reshape_to(picked, &[1.into(), total, 1.into()])?);
        }
        let line = b.reshape_to(line, &[1.into(), total, 1.into()])?;
        let outer = b.line_of_places(DType::I64, before)?;
        let outer = b.reshape_to(outer, &[before, 1.into(), 1.into()])?;
        let inner = b.line_of_places(DType::I64, behind)?;
        let unit = b.computed(DType::I64, &[], vec![behind])?;
        // start + ((outer * size + place - first) * behind) + inner
        b.map(&[of[0], of[1], of[2], line, outer, inner, unit], DType::I64, |p, x| {
            let rows = p.call(Function::Mul, &[x[4], x[2]]);
            let own = p.call(Function::Sub, &[x[3], x[1]]);
            let rows = p.call(Function::Add, &[rows, own]);
            let rows = p.call(Function::Mul, &[rows, x[6]]);
            let at = p.call(Function::Add, &[rows, x[5]]);
            p.call(Function::Add, &[at, x[0]])
        })
    }
}

/// The tensors along the first axis of one, joined along another.
fn rows_joined(b: &mut Builder, rows: TensorId, axis: usize, is_new: bool) -> Result<TensorId> {
    let mut order: Vec<usize> = (1..b.rank(rows)).collect();
    order.insert(axis, 0);
    let moved = b.transpose(rows, &order)?;
    let mut sizes = b.sizes(moved).to_vec();
    if !is_new {
        let count = sizes.remove(axis);
        sizes[axis] *= count;
    }
    b.reshape_to(moved, &sizes)
}

/// Has a call fail where lengths that are computed are negative or do not add up to a number of places.
fn covers(b: &mut Builder, lengths: TensorId, places: Size) -> Result<()> {
    let total = b.reduce(ReduceKind::Sum, lengths, &[0], false)?;
    let negative = b.map(&[lengths], DType::I64, |p, x| {
        let is_below = p.call(Function::Lt, &[x[0], int(0)]);
        p.cast(Type::Of(DType::I64), is_below)
    })?;
    let negative = b.reduce(ReduceKind::Sum, negative, &[0], false)?;
    let read = b.read_scalars(
        &[(total, 0, MOST_SIZE), (negative, 0, MOST_SIZE)],
        "the sum of the sizes of parts, and how many are negative,",
    )?;
    if read[0].agrees(places) && read[1].agrees(0) {
        return Ok(());
    }
    let reason = format!("the sizes of parts, which are computed, cannot add up to {places} places");
    Err(b.invalid(reason))
}

fn int(value: i64) -> Operand {
    Operand::Constant(Scalar::Int(value, DType::I64))
}

/// The sums of all numbers of a line before each.
fn sums_before(b: &mut Builder, line: TensorId) -> Result<TensorId> {
    let narrow = b.cast(line, DType::I32)?;
    let sums = b.cumulative_sum(narrow, 0, true, false)?;
    b.cast(sums, DType::I64)
}
