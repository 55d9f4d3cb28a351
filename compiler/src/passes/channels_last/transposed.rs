//! Transposed convolutions with the channels last. What lies in one cell of strides is computed from the same places of the image, so that a
//! convolution gives all results of a cell as channels, and a copy puts these beside one another.

use halite_ops::{
    DType, Op, Operation, conv_transpose2d::ConvTranspose2d, conv2d::Conv2d, copy::StridedCopy,
    matmul::MatMul, window::Layout,
};
use halite_sizes::Size;

use super::{
    convolutions::FILTERS,
    kind::{Kind, known},
    widened::{new, zeros_behind},
};
use crate::{
    graph::{Node, TensorId},
    passes::images::Images,
};

/// Picoseconds that it gains of each byte of its results, and of a million arithmetic operations: three of a U-Net, of 2,147 million each and
/// 59 MB, took 276 microseconds with the channels first on an H200. The estimates of products and copies in their place are 65 and 35.
const GAINED: u64 = 2;
const COMPUTED: u64 = 8_000;
/// So many times the products that there are would take longer than what it gains: filters smaller than strides leave most of a cell to the bias.
const MOST_PRODUCTS: u64 = 4;
/// Results of a cell are whole words of that many.
const WORDS: u64 = 8;

/// One dimension: place `y` of the results is number `r` of cell `j` where `y + first = stride * j + r`, and tap `r + stride * t` of it meets
/// place `j - before + (taps - 1 - t)` of the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Axis {
    /// Results of a cell.
    stride: u64,
    /// Taps of each result, counted with those that the filter does not have.
    taps: u64,
    /// Zeros around the image.
    before: u64,
    after: u64,
    /// Cells.
    cells: u64,
    /// Results of the first cell that are cut off.
    first: u64,
    /// Results.
    results: u64,
}

/// How results of a dimension are copied out of cells: to `stride` results behind each other `count` times, of which the first is at `start`,
/// the next one of the same cell `step` from there. A result is at a cell and at a number in it.
struct Walk {
    count: u64,
    start: [i64; 2],
    step: [i64; 2],
    /// What of these results comes before the first one that is wanted.
    skipped: u64,
}

impl Axis {
    fn of(op: &ConvTranspose2d, d: usize) -> Option<Axis> {
        let (places, results) = (known(op.input[d + 2])?, known(op.output_dims()[d + 2])?);
        let (stride, pad) = (op.strides[d], op.pads[d]);
        let taps = op.filter[d + 2].div_ceil(stride);
        // Copies write whole strides of results.
        let last = (results.next_multiple_of(stride).checked_sub(1)? + pad) / stride;
        let before = (taps - 1).checked_sub(pad / stride)?;
        let after = last.saturating_sub(places.checked_sub(1)?);
        let cells = (places + before + after).checked_sub(taps - 1)?;
        Some(Axis { stride, taps, before, after, cells, first: pad % stride, results })
    }

    /// With one cut where the results of a cell and of the next one lie at one distance, as two always do.
    fn walk(self) -> Walk {
        let at = |y: u64| [(y + self.first) / self.stride, (y + self.first) % self.stride].map(|n| n as i64);
        let (start, next) = (at(0), at(1.min(self.stride - 1)));
        let step = [next[0] - start[0], next[1] - start[1]];
        let follows = |y: u64| (0..2).all(|i| at(y)[i] == start[i] + y as i64 * step[i]);
        match (0..self.stride).all(follows) {
            true => Walk { count: self.results.div_ceil(self.stride), start, step, skipped: 0 },
            false => Walk { count: self.cells, start: [0, 0], step: [0, 1], skipped: self.first },
        }
    }
}

/// A transposed convolution as a convolution and a copy.
pub(super) struct Cells {
    rows: Axis,
    columns: Axis,
    /// The convolution with channels first. Its filters are those of the results of a cell: rows, columns, filters of the transposed one.
    convolution: Conv2d,
    kind: Kind,
    /// The transposed one's filter.
    filter: [u64; 4],
    gains: u64,
}

impl Cells {
    /// Those of a transposed convolution of halves, if matrix units compute them.
    pub(super) fn of(op: &ConvTranspose2d) -> Option<Cells> {
        if op.dtype != DType::F16 || op.groups != 1 || op.dilations != [1, 1] {
            return None;
        }
        let (rows, columns) = (Axis::of(op, 0)?, Axis::of(op, 1)?);
        // As many filters of zeros behind as make whole words.
        let places = rows.stride.checked_mul(columns.stride)?;
        let least = WORDS / WORDS.min(1 << places.trailing_zeros());
        let filters = op.filter[1].checked_next_multiple_of(least)?.checked_mul(places)?;
        let computed = filters.checked_mul(rows.taps)?.checked_mul(columns.taps)?;
        let wanted = op.filter[1].checked_mul(op.filter[2])?.checked_mul(op.filter[3])?;
        if computed >= wanted.checked_mul(MOST_PRODUCTS)? {
            return None;
        }
        let convolution = Conv2d {
            pads: [rows.before, columns.before, rows.after, columns.after],
            bias: op.bias,
            activation: op.activation,
            ..Conv2d::new(op.input, [filters, op.filter[0], rows.taps, columns.taps], op.dtype)
        };
        let kind = Kind::of(&convolution).filter(|kind| matches!(kind, Kind::Product | Kind::Window))?;
        let written = op.outputs()[0].elements().value().saturating_mul(op.dtype.size());
        let computed = ((op.flops() / 1e6) as u64).saturating_mul(COMPUTED);
        let gains = written.saturating_mul(GAINED).saturating_add(computed);
        Some(Cells { rows, columns, convolution, kind, filter: op.filter, gains })
    }

    /// Picoseconds that it gains.
    pub(super) fn gains(&self) -> u64 {
        self.gains
    }

    /// Filters of the transposed convolution, with those of zeros.
    fn filters(&self) -> u64 {
        self.convolution.filter[0] / (self.rows.stride * self.columns.stride)
    }

    /// The nodes in the place of a transposed convolution.
    pub(super) fn write(&self, images: &mut Images<'_>, node: &Node) -> Option<()> {
        let here = &node.location;
        let op = &self.convolution;
        let ([count, channels, rows, columns], filters) = (op.input, op.filter[0]);
        let mut inputs = vec![images.in_new_order(*node.inputs.first()?, here), self.weights(images, node)?];
        if op.bias {
            inputs.push(self.bias(images, node)?);
        }
        let cells = [count, self.rows.cells.into(), self.columns.cells.into(), filters.into()];
        let operation = match self.kind {
            Kind::Product => {
                let places = count * rows * columns;
                inputs[0] = images.view(inputs[0], &[places, channels], here);
                let product = MatMul::new(places, Size::from(filters), channels, DType::F16, DType::F16);
                Operation::MatMul(MatMul { bias: op.bias, activation: op.activation, ..product })
            }
            _ => Operation::Conv2d(Conv2d {
                input: [count, rows, columns, channels],
                filter: FILTERS.map(|d| op.filter[d]),
                layout: Layout::Nhwc,
                ..op.clone()
            }),
        };
        let made = new(images, node, node.outputs[0], &cells, operation, inputs);
        self.put_beside(images, node, made);
        Some(())
    }

    /// The filters of a cell: rows, columns, channels, and all filters of each of its results.
    fn weights(&self, images: &mut Images<'_>, node: &Node) -> Option<TensorId> {
        let filter = *node.inputs.get(1)?;
        images.in_old_order(filter, &node.location);
        let (channels, filters) = (self.convolution.filter[1], self.filters());
        let [down, right] = [self.rows.taps * self.rows.stride, self.columns.taps * self.columns.stride];
        let whole = zeros_behind(images, node, filter, &self.filter, &[channels, filters, down, right]);
        // Taps come the other way around.
        let turns = [(down, self.rows), (right, self.columns)].map(|(taps, axis)| taps - axis.stride);
        let back = |axis: Axis, tap: u64| Size::constant(0) - Size::from(axis.stride * tap);
        let (one, tap) = (Size::constant(1), Size::from(down * right));
        let sizes =
            [self.rows.taps, self.columns.taps, channels, self.rows.stride, self.columns.stride, filters];
        let copy = StridedCopy {
            source: (channels * filters * down * right).into(),
            shape: sizes.map(Size::from).to_vec(),
            strides: vec![
                back(self.rows, right),
                back(self.columns, 1),
                tap * filters,
                right.into(),
                one,
                tap,
            ],
            offset: (turns[0] * right + turns[1]).into(),
            dtype: DType::F16,
        };
        let all = self.convolution.filter[0];
        let sizes = match self.kind {
            Kind::Product => vec![channels, all],
            _ => vec![self.rows.taps, self.columns.taps, channels, all],
        };
        let sizes: Vec<Size> = sizes.into_iter().map(Size::from).collect();
        Some(new(images, node, filter, &sizes, Operation::StridedCopy(copy), vec![whole]))
    }

    /// The bias of each result of a cell.
    fn bias(&self, images: &mut Images<'_>, node: &Node) -> Option<TensorId> {
        let bias = *node.inputs.get(2)?;
        images.in_old_order(bias, &node.location);
        let (all, filters) = (self.convolution.filter[0], self.filters());
        let bias = zeros_behind(images, node, bias, &[self.filter[1]], &[filters]);
        let copy = StridedCopy {
            source: filters.into(),
            shape: vec![(all / filters).into(), filters.into()],
            strides: vec![0.into(), 1.into()],
            offset: 0.into(),
            dtype: DType::F16,
        };
        Some(new(images, node, bias, &[all.into()], Operation::StridedCopy(copy), vec![bias]))
    }

    /// Results of cells at their places of the image.
    fn put_beside(&self, images: &mut Images<'_>, node: &Node, cells: TensorId) {
        let (count, filters, one) =
            (self.convolution.input[0], Size::from(self.filter[1]), Size::constant(1));
        let wide = Size::from(self.filters());
        let [down, right] = [self.rows.walk(), self.columns.walk()];
        let all = Size::from(self.convolution.filter[0]);
        let line = all * self.columns.cells;
        // From a cell to the next one, and from a number in it to the next one.
        let far = [[line, wide * self.columns.stride], [all, wide]];
        let at =
            |place: [i64; 2], d: usize| far[d][0] * Size::from(place[0]) + far[d][1] * Size::from(place[1]);
        let whole = [down.count * self.rows.stride, right.count * self.columns.stride];
        let copy = StridedCopy {
            source: count * self.rows.cells * line,
            shape: vec![
                count,
                down.count.into(),
                self.rows.stride.into(),
                right.count.into(),
                self.columns.stride.into(),
                filters,
            ],
            strides: vec![line * self.rows.cells, line, at(down.step, 0), all, at(right.step, 1), one],
            offset: at(down.start, 0) + at(right.start, 1),
            dtype: DType::F16,
        };
        let copy = Operation::StridedCopy(copy);
        if whole == [self.rows.results, self.columns.results] {
            return images.push(copy, vec![cells], node);
        }
        let sizes = [count, whole[0].into(), whole[1].into(), filters];
        let made = new(images, node, node.outputs[0], &sizes, copy, vec![cells]);
        let first = [0, down.skipped, right.skipped, 0].map(Size::from);
        let shape = [count, self.rows.results.into(), self.columns.results.into(), filters];
        let part = StridedCopy::slice(&sizes, &first, &shape, &[1; 4], DType::F16);
        images.push(Operation::StridedCopy(part), vec![made], node);
    }
}

#[cfg(test)]
mod tests {
    use halite_ops::expression::Function;

    use super::*;
    use crate::{
        build::{Builder, Sliding},
        passes::tests::{constant, kernels, optimized},
    };

    fn half(b: &mut Builder, dims: &[u64], seed: u64) -> TensorId {
        let made = constant(b, dims, seed);
        b.cast(made, DType::F16).unwrap()
    }

    /// What is left of a transposed convolution with a rectifier between two convolutions: 16 to 8 channels and back.
    fn between(sliding: &Sliding, filter: [u64; 2], more: [u64; 2], matrix_units: bool) -> Vec<Operation> {
        let (channels, filters) = (16, 8);
        let mut b = Builder::new();
        let x = b.input("x", DType::F16.into(), &[2, 5, 7, channels]).unwrap();
        let x = b.transpose(x, &[0, 3, 1, 2]).unwrap();
        let same = Sliding { strides: vec![1; 2], dilations: vec![1; 2], pads: vec![(1, 1); 2] };
        let taps = half(&mut b, &[channels, channels, 3, 3], 1);
        let y = b.conv(x, taps, None, &same, 1).unwrap();
        let taps = half(&mut b, &[channels, filters, filter[0], filter[1]], 2);
        let bias = half(&mut b, &[filters], 3);
        let y = b.conv_transpose(y, taps, Some(bias), sliding, &more, 1).unwrap();
        let y = b.unary(Function::Relu, y).unwrap();
        let taps = half(&mut b, &[channels, filters, 3, 3], 4);
        let y = b.conv(y, taps, None, &same, 1).unwrap();
        let y = b.transpose(y, &[0, 2, 3, 1]).unwrap();
        b.output("y", y);
        let mut graph = b.finish().unwrap();
        graph.matrix_units = matrix_units;
        kernels(&optimized(graph)).into_iter().cloned().collect()
    }

    /// Strides, pads at each side, rows and columns of the filter, and what is added behind.
    type Case = ([u64; 2], [(u64, u64); 2], [u64; 2], [u64; 2]);

    #[test]
    fn cells_are_results_of_one_convolution() {
        let cases: [Case; 13] = [
            ([2, 2], [(0, 0), (0, 0)], [2, 2], [0, 0]),
            ([2, 2], [(1, 1), (1, 1)], [4, 4], [0, 0]),
            ([2, 2], [(1, 1), (1, 1)], [3, 3], [1, 1]),
            ([2, 2], [(1, 1), (1, 1)], [3, 3], [0, 0]),
            ([2, 2], [(0, 0), (0, 0)], [3, 3], [0, 0]),
            ([1, 1], [(1, 1), (2, 1)], [3, 4], [0, 0]),
            ([4, 4], [(2, 2), (2, 2)], [8, 8], [0, 0]),
            ([3, 2], [(1, 0), (2, 1)], [5, 4], [1, 0]),
            ([2, 4], [(2, 3), (0, 5)], [6, 4], [0, 3]),
            ([1, 2], [(0, 0), (1, 1)], [1, 4], [0, 0]),
            ([3, 3], [(0, 0), (0, 0)], [2, 2], [2, 1]),
            ([2, 2], [(0, 0), (0, 0)], [2, 2], [1, 1]),
            ([2, 2], [(3, 3), (3, 3)], [4, 4], [0, 0]),
        ];
        for (strides, pads, filter, more) in cases {
            let sliding = Sliding { strides: strides.to_vec(), dilations: vec![1; 2], pads: pads.to_vec() };
            let all = between(&sliding, filter, more, true);
            let is = |op: &&Operation| op.name() == "conv_transpose2d";
            assert_eq!(all.iter().filter(is).count(), 0, "{strides:?} {filter:?} in {all:?}");
            let first = |op: &&Operation| matches!(op, Operation::Conv2d(op) if op.layout == Layout::Nchw);
            assert_eq!(all.iter().filter(first).count(), 0, "{strides:?} {filter:?} in {all:?}");
            let others = between(&sliding, filter, more, false);
            assert_eq!(others.iter().filter(is).count(), 1, "{others:?}");
        }
    }

    #[test]
    fn one_product_and_one_copy_is_what_strides_as_wide_as_filters_are() {
        let sliding = Sliding { strides: vec![2; 2], dilations: vec![1; 2], pads: vec![(0, 0); 2] };
        let all = between(&sliding, [2, 2], [0, 0], true);
        let on_images = |op: &&Operation| op.inputs()[0].elements().value() > 2 * 5 * 7 * 8;
        let names: Vec<_> = all.iter().filter(on_images).map(Operation::name).collect();
        assert_eq!(names, ["conv2d", "matmul", "copy", "conv2d"]);
    }

    #[test]
    fn others_have_no_cells() {
        let plain = ConvTranspose2d::new([1, 16, 5, 5], [16, 8, 2, 2], [2, 2], DType::F16);
        assert!(Cells::of(&plain).is_some());
        let others = [
            ConvTranspose2d { dtype: DType::F32, ..plain.clone() },
            ConvTranspose2d { dilations: [2, 1], ..plain.clone() },
            ConvTranspose2d { groups: 2, ..plain.clone() },
            ConvTranspose2d { filter: [16, 8, 1, 1], strides: [4, 4], ..plain.clone() },
            ConvTranspose2d {
                input: [1, 12, 5, 5].map(Size::constant),
                filter: [12, 8, 2, 2],
                ..plain.clone()
            },
            ConvTranspose2d { pads: [4, 4, 0, 0], output_padding: [1, 1], ..plain },
        ];
        for op in others {
            assert!(Cells::of(&op).is_none(), "{op:?}");
        }
    }
}
