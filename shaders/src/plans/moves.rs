//! What operations that only move elements share: how an index falls into coordinates, strided walks over tensors, units
//! larger than an element, and grids. `include/moves.glsl` is the other half.

use halite_ops::{
    DType, TensorDesc,
    moves::{MOST_DIMS, product},
};

use halite_sizes::{Size, is_worth};

use crate::{
    Params, Slot, Step, Unfit,
    divider::{Divider, LIMIT},
    plan::{groups, module, narrow},
};

/// Workgroups in a row of the grid where one row is not enough.
const GRID_WIDTH: u32 = 32768;

/// Workgroups beyond which each invocation makes more, up to `MOST_ITEMS` words: an H200 starts some 1,500 workgroups in a microsecond,
/// whatever they do.
const MANY_GROUPS: u64 = 16_384;
const MOST_ITEMS: u32 = 8;

/// How many of `total` pieces each of `lanes` invocations makes, `least` of them unless they are very many.
pub(super) fn items_for(total: Size, lanes: u32, least: u32) -> u32 {
    let mut items = least;
    while total.is_constant() && items < MOST_ITEMS && total > u64::from(lanes * items) * MANY_GROUPS {
        items *= 2;
    }
    items
}

/// 32-bit words of an index.
pub(super) fn index_words(dtype: DType) -> u32 {
    (dtype.size() / 4) as u32
}

/// Units of `unit` bytes for each element of `dtype`.
pub(super) fn factor(unit: u32, dtype: DType) -> Result<u64, Unfit> {
    let (unit, size) = (u64::from(unit), dtype.size());
    if unit < size || unit % size != 0 {
        return Err(Unfit(format!("moves {unit} bytes at a time, elements have {size}")));
    }
    Ok(unit / size)
}

/// What a kernel with `PLACES` is told of the sizes of its result in units, the innermost last: their product, and shifts,
/// sizes and factors to divide by them.
pub(super) fn places(sizes: &[Size]) -> Result<Vec<Size>, Unfit> {
    if sizes.len() > MOST_DIMS {
        return Err(Unfit(format!("counts up to {MOST_DIMS} dimensions, there are {}", sizes.len())));
    }
    let count = product(sizes);
    let is_few = |size: &Size| size.stays_in_limit(LIMIT - 1);
    if !is_few(&count) || !sizes.iter().all(is_few) {
        return Err(Unfit(format!("counts fewer than 2^31 units, there are {count}")));
    }
    let (mut shifts, mut small, mut factors) =
        (Size::constant(0), [Size::constant(1); 5], [Size::constant(0); 5]);
    for (d, size) in sizes.iter().rev().take(sizes.len().saturating_sub(1)).enumerate() {
        small[d] = *size;
        let divider = Divider::of(*size);
        factors[d] = divider.factor;
        // Five bits each.
        shifts += divider.shift * (1 << (5 * d));
    }
    Ok([count, shifts].into_iter().chain(small).chain(factors).collect())
}

/// Numbers for a fixed array of 6, the innermost first, wrapped to 32 bits.
pub(super) fn six(values: &[Size]) -> [Size; MOST_DIMS] {
    let mut all = [Size::constant(0); MOST_DIMS];
    for (slot, value) in all.iter_mut().zip(values.iter().rev()) {
        *slot = *value;
    }
    all
}

/// The step of a kernel that counts its results by `PLACES`.
#[derive(Clone)]
pub(super) struct Mover<'a> {
    build: &'a str,
    lanes: u32,
    items: u32,
    unit: u32,
    sizes: &'a [Size],
    words: bool,
}

impl<'a> Mover<'a> {
    /// `build` for results of `sizes` in units, the innermost last, one at least, six at most. `params` have `lanes`, `unit`
    /// in bytes, and perhaps `items`. An invocation makes whole words, even of smaller units.
    pub(super) fn new(build: &'a str, params: &Params, sizes: &'a [Size]) -> Result<Self, Unfit> {
        let items = if params.iter().any(|(name, _)| name == "items") { params.get("items")? } else { 1 };
        let (lanes, unit) = (params.get("lanes")?, params.get("unit")?);
        Ok(Mover { build, lanes, items, unit, sizes, words: true })
    }

    /// An invocation makes single units.
    pub(super) fn by_unit(self) -> Self {
        Mover { words: false, ..self }
    }

    /// With specialization constants from the fourth on, push constants behind `PLACES`, and bindings.
    pub(super) fn step(self, constants: &[u32], push: &[Size], bindings: Vec<Slot>) -> Result<Step, Unfit> {
        let mut all = places(self.sizes)?;
        all.extend(push);
        let (units, unit) = (product(self.sizes), self.unit);
        let pieces = if self.words { (units * u64::from(unit)).div_ceil(unit.max(4)) } else { units };
        let dims = self.sizes.len() as u32;
        // Kernels for single units may know no more than one.
        let items = if self.words { items_for(pieces, self.lanes, self.items) } else { self.items };
        Ok(Step {
            module: module(self.build)?,
            constants: [self.lanes, items, dims].iter().chain(constants).copied().collect(),
            push: all,
            bindings,
            grid: flat_grid(pieces, self.lanes * items)?,
            subgroup_size: 0,
        })
    }
}

/// The step that copies a whole tensor, with the padding behind it.
pub(super) fn whole_copy(tensor: &TensorDesc, from: Slot, to: Slot) -> Result<Step, Unfit> {
    let bytes = tensor.bytes().next_multiple_of(4);
    // Words of four bytes are right for all sizes.
    let wide = is_worth(|| bytes.is_multiple_of(16));
    let (build, items, unit) = if wide { ("copy_strided_16", 2, 16) } else { ("copy_strided_4", 4, 4) };
    let sizes = [bytes / u64::from(unit)];
    let mover = Mover { build, lanes: 128, items, unit, sizes: &sizes, words: true };
    mover.step(&[], &[0, 1, 0, 0, 0, 0, 0].map(Size::constant), vec![from, to])
}

/// Workgroups for `total` in pieces of `piece`, in rows that every device takes.
pub(super) fn flat_grid(total: Size, piece: u32) -> Result<[Size; 3], Unfit> {
    let groups = groups(total, piece)?;
    let one = Size::constant(1);
    Ok(if groups.is_data() && !groups.is_at_most(65535) {
        let across = groups.min(GRID_WIDTH);
        [across, groups.div_ceil(across.max(1)), one]
    } else if groups <= 65535 {
        [groups, one, one]
    } else {
        [GRID_WIDTH.into(), groups.div_ceil(GRID_WIDTH), one]
    })
}

/// Fails when a tensor's places need more than 32 bits.
pub(super) fn narrow_all(tensors: impl IntoIterator<Item = TensorDesc>) -> Result<(), Unfit> {
    tensors.into_iter().try_for_each(|t| narrow("a number of elements", t.elements()).map(|_| ()))
}

/// A walk over a tensor: sizes with a stride each, the innermost last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Walk {
    /// Places in each dimension.
    pub(super) sizes: Vec<Size>,
    /// Distance of neighbours in each dimension.
    pub(super) strides: Vec<Size>,
    /// Where the first place is.
    pub(super) offset: Size,
}

impl Walk {
    /// The same walk with as few dimensions as possible, one at least.
    pub(super) fn merged(&self) -> Walk {
        let offset = self.offset;
        if self.sizes.iter().any(|size| *size == 0) {
            return Walk { sizes: vec![0.into()], strides: vec![1.into()], offset };
        }
        let (mut sizes, mut strides) = (Vec::<Size>::new(), Vec::<Size>::new());
        for (size, stride) in self.sizes.iter().zip(&self.strides).filter(|(size, _)| **size > 1) {
            match (sizes.last_mut(), strides.last_mut()) {
                (Some(outer), Some(step)) if *step == *stride * *size => {
                    *outer *= size;
                    *step = *stride;
                }
                _ => {
                    sizes.push(*size);
                    strides.push(*stride);
                }
            }
        }
        if sizes.is_empty() {
            return Walk { sizes: vec![1.into()], strides: vec![1.into()], offset };
        }
        Walk { sizes, strides, offset }
    }

    /// The walk in steps of `factor` elements, where the innermost lie side by side and everything divides.
    pub(super) fn widened(mut self, factor: u64) -> Result<Walk, Unfit> {
        let whole = |value: Size| {
            let distance = if value < 0 { -value } else { value };
            distance.is_multiple_of(factor)
        };
        let last = self.sizes.len() - 1;
        let inner = self.strides[last] == 1 && self.sizes[last].is_multiple_of(factor);
        if factor > 1 && !(inner && self.strides[..last].iter().all(|s| whole(*s)) && whole(self.offset)) {
            return Err(Unfit(format!("moves {factor} elements at a time, which do not lie side by side")));
        }
        self.sizes[last] /= factor;
        for stride in &mut self.strides[..last] {
            *stride = if *stride < 0 { -(-*stride / factor) } else { *stride / factor };
        }
        self.offset /= factor;
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_merge_and_widen() {
        let walk = |sizes: &[u64], strides: &[i64], offset: u64| Walk {
            sizes: sizes.iter().map(Size::from).collect(),
            strides: strides.iter().map(|stride| Size::from(*stride)).collect(),
            offset: offset.into(),
        };
        assert_eq!(walk(&[2, 1, 3, 4], &[12, 7, 4, 1], 5).merged(), walk(&[24], &[1], 5));
        let rows = walk(&[3, 8], &[16, 1], 4);
        assert_eq!(rows.merged(), rows);
        assert_eq!(rows.clone().widened(4), Ok(walk(&[3, 2], &[4, 1], 1)));
        assert!(rows.widened(8).is_err());
        assert!(walk(&[8], &[-1], 0).widened(2).is_err());
        assert_eq!(walk(&[4, 0], &[1, 1], 0).merged().sizes, [0]);
    }

    #[test]
    fn invocations_make_more_of_very_many() {
        assert_eq!(items_for((64 * 16_384).into(), 64, 1), 1);
        assert_eq!(items_for((64 * 16_384 + 1).into(), 64, 1), 2);
        assert_eq!(items_for((1 << 30).into(), 64, 1), 8);
        assert_eq!(items_for((1 << 30).into(), 64, 16), 16);
    }

    #[test]
    fn large_grids_have_rows() {
        assert_eq!(flat_grid((65535 * 128).into(), 128).unwrap(), [65535, 1, 1]);
        assert_eq!(flat_grid((65536 * 128).into(), 128).unwrap(), [32768, 2, 1]);
    }
}
