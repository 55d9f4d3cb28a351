//! Pooling in any number of dimensions.

use halite_ops::{
    DType, Operation,
    expression::{Function, Operand, Scalar},
    pool2d::{Pool2d, Pooling},
};

use halite_sizes::Size;

use super::{Builder, Result, conv::Sliding};
use crate::graph::{TensorId, elements};
use halite_ops::{Values, pad::Border};

/// Types that kernels pool.
const POOLED: &[DType] = &[DType::F32, DType::F16];

/// Most taps of all windows over an image whose places are listed while a graph is built.
const MOST_TAPS: u64 = 1 << 22;

impl Builder {
    /// Pools the dimensions of a tensor behind the first two. Integers are pooled as `f32`, which is exact for 24 bits; so
    /// are `f64` and `bf16`. The result has the tensor's type.
    ///
    /// # Errors
    /// The window has other dimensions than the tensor, or a size is 0.
    pub fn pool(
        &mut self,
        tensor: TensorId,
        kind: Pooling,
        kernel: &[u64],
        sliding: &Sliding,
        ceil: bool,
    ) -> Result<TensorId> {
        let (element, dims) = (self.element(tensor), self.sizes(tensor).to_vec());
        let rank = kernel.len();
        if dims.len() < 2 || dims.len() != rank + 2 || !sliding.has_dims(rank) {
            return Err(self.invalid(format!(
                "a window of {kernel:?} does not slide over {}",
                self.describe(&[tensor])
            )));
        }
        let own = if element.is_float() {
            self.in_type_of(tensor, POOLED, "pooling")?
        } else {
            self.as_f32(tensor)?
        };
        // What is computed of a window is that of its lines, so that dimensions are pooled one or two at a time.
        let (mut made, mut current, mut end) = (own, dims, rank);
        while end > 0 {
            let first = end.saturating_sub(2);
            (made, current) = self.pool_two(made, &current, kind, kernel, sliding, ceil, first..end)?;
            end = first;
        }
        let made = self.reshape_to(made, &current)?;
        self.cast(made, element)
    }

    /// Pools spatial dimensions `range`, one or two.
    #[allow(clippy::too_many_arguments, reason = "a part of one function")]
    fn pool_two(
        &mut self,
        tensor: TensorId,
        dims: &[Size],
        kind: Pooling,
        kernel: &[u64],
        sliding: &Sliding,
        ceil: bool,
        range: std::ops::Range<usize>,
    ) -> Result<(TensorId, Vec<Size>)> {
        let dtype = self.element(tensor).storage();
        let at = range.start + 2;
        let (behind, outer): (Size, Size) =
            (dims[range.end + 2..].iter().product(), dims[..at].iter().product());
        // With dimensions behind, which have been pooled, one dimension at a time.
        let two = |list: &[u64], other: u64| match &list[range.clone()] {
            [rows, columns] => [*rows, *columns],
            [one] => [*one, other],
            _ => [other, other],
        };
        if range.len() == 2 && range.end < dims.len() - 2 {
            let last = range.start + 1..range.end;
            let (made, dims) = self.pool_two(tensor, dims, kind, kernel, sliding, ceil, last)?;
            return self.pool_two(made, &dims, kind, kernel, sliding, ceil, range.start..range.start + 1);
        }
        let [rows, columns] = match dims[2..][range.clone()] {
            [rows, columns] => [rows, columns],
            [one] => [one, behind],
            _ => [behind, behind],
        };
        let (before, after): (Vec<u64>, Vec<u64>) = sliding.pads.iter().copied().unzip();
        let ([top, left], [bottom, right]) = (two(&before, 0), two(&after, 0));
        let made = Pool2d {
            strides: two(&sliding.strides, 1),
            dilations: two(&sliding.dilations, 1),
            pads: [top, left, bottom, right],
            ceil,
            ..Pool2d::new([outer, 1.into(), rows, columns], two(kernel, 1), kind, dtype)
        };
        let operation = Operation::Pool2d(made);
        crate::backend::check(&operation).map_err(|reason| self.invalid(reason))?;
        let out = operation.outputs()[0].dims.clone();
        let mut result = dims.to_vec();
        for (i, size) in range.clone().zip([out[2], out[3]]) {
            result[i + 2] = size;
        }
        Ok((self.kernel1(operation, &[tensor], dtype.into(), &result)?, result))
    }

    /// The places of what is largest in each window, as `i64`: indices of elements of the whole tensor, counted with
    /// columns first where `column_major`. `out` are the sizes of the result behind the first two dimensions.
    ///
    /// # Errors
    /// The sizes do not go together.
    pub fn max_pool_indices(
        &mut self,
        tensor: TensorId,
        kernel: &[u64],
        sliding: &Sliding,
        out: &[u64],
        column_major: bool,
    ) -> Result<TensorId> {
        let dims = self.dims(tensor).to_vec();
        let (lead, spatial) = dims.split_at(2);
        let listed = elements(out).saturating_mul(elements(kernel)).max(elements(lead));
        if listed > MOST_TAPS {
            return Err(self.unsupported(format!(
                "places of what is largest in {kernel:?} windows of {}: {listed} taps are more than {MOST_TAPS}",
                self.describe(&[tensor])
            )));
        }
        let own = self.as_f32(tensor)?;
        // With a border that reaches as far as any window, every tap is an element.
        let reach = |d: usize| {
            (out[d].saturating_sub(1)) * sliding.strides[d] + (kernel[d] - 1) * sliding.dilations[d] + 1
        };
        let mut borders = vec![(0, 0); 2];
        for (d, size) in spatial.iter().enumerate() {
            let before = sliding.pads[d].0;
            let behind = reach(d) as i64 - (size + before) as i64;
            borders.push((before as i64, behind.max(0)));
        }
        let padded = self.pad(own, &borders, Border::Constant, f64::NEG_INFINITY)?;
        let padded_dims = self.dims(padded)[2..].to_vec();
        let (places, taps) = (elements(out), elements(kernel));
        let windows = |strides: &[u64], dilations: &[u64], sizes: &[u64]| {
            let starts = spread(out, strides, sizes);
            let steps = spread(kernel, dilations, sizes);
            (starts, steps)
        };
        let (starts, steps) = windows(&sliding.strides, &sliding.dilations, &row_major(&padded_dims));
        let all: Vec<i64> = starts.iter().flat_map(|s| steps.iter().map(move |t| s + t)).collect();
        let all = self.values(DType::I32, &[places * taps], &Values::Int(all))?;
        let flat = self.reshape(padded, &[elements(lead), elements(&padded_dims)])?;
        let picked = self.gather(flat, all, 1)?;
        let picked = self.reshape(picked, &[elements(lead), places, taps])?;
        let tap = self.arg_reduce(picked, 2, false, false)?;
        let sizes = if column_major { column_first(spatial) } else { row_major(spatial) };
        let (starts, steps) = windows(&sliding.strides, &sliding.dilations, &sizes);
        let first: i64 = (0..spatial.len()).map(|d| sliding.pads[d].0 as i64 * sizes[d] as i64).sum();
        let starts: Vec<i64> = starts.iter().map(|s| s - first).collect();
        self.places_of_taps(tap, starts, steps, elements(spatial), &[lead, out].concat())
    }

    /// Start of each window and step of the tap that was chosen, with what lies before each image.
    fn places_of_taps(
        &mut self,
        tap: TensorId,
        starts: Vec<i64>,
        steps: Vec<i64>,
        image: u64,
        dims: &[u64],
    ) -> Result<TensorId> {
        let images = elements(&dims[..2]);
        let starts = self.values(DType::I64, &[1, starts.len() as u64, 1], &Values::Int(starts))?;
        let steps = self.values(DType::I64, &[steps.len() as u64], &Values::Int(steps))?;
        let bases: Vec<i64> = (0..images).map(|i| (i * image) as i64).collect();
        let bases = self.values(DType::I64, &[images, 1, 1], &Values::Int(bases))?;
        let step = self.gather(steps, tap, 0)?;
        let made = self.map(&[step, starts, bases], DType::I64, |p, x| {
            let sum = p.call(Function::Add, &[x[0], x[1]]);
            p.call(Function::Add, &[sum, x[2]])
        })?;
        self.reshape(made, dims)
    }

    /// The `p`-norm of each window: the p-th root of the sum of p-th powers of magnitudes.
    ///
    /// # Errors
    /// As [`Builder::pool`].
    pub fn norm_pool(
        &mut self,
        tensor: TensorId,
        p: u64,
        kernel: &[u64],
        sliding: &Sliding,
        ceil: bool,
    ) -> Result<TensorId> {
        match p {
            0 => Err(self.invalid("a norm of order 0")),
            1 => self.pool(tensor, Pooling::L1, kernel, sliding, ceil),
            2 => self.pool(tensor, Pooling::L2, kernel, sliding, ceil),
            _ => {
                let element = self.element(tensor);
                let power = |p: f64| Operand::Constant(Scalar::Float(p));
                let powers = self.map(&[tensor], DType::F32, |e, x| {
                    let wide = e.cast(halite_ops::expression::Type::Of(DType::F32), x[0]);
                    let size = e.call(Function::Abs, &[wide]);
                    e.call(Function::Pow, &[size, power(p as f64)])
                })?;
                let sums = self.pool(powers, Pooling::L1, kernel, sliding, ceil)?;
                let root = f64::from(1.0 / p as f32);
                let roots =
                    self.map(&[sums], DType::F32, |e, x| e.call(Function::Pow, &[x[0], power(root)]))?;
                self.cast(roots, element)
            }
        }
    }
}

/// Elements from one place to the next in each dimension.
fn row_major(dims: &[u64]) -> Vec<u64> {
    (0..dims.len()).map(|d| elements(&dims[d + 1..])).collect()
}

/// The same when the first dimension is the innermost.
fn column_first(dims: &[u64]) -> Vec<u64> {
    (0..dims.len()).map(|d| elements(&dims[..d])).collect()
}

/// For every place of `dims`, the sum of its coordinates times `steps` and `sizes`.
fn spread(dims: &[u64], steps: &[u64], sizes: &[u64]) -> Vec<i64> {
    let mut all = vec![0i64];
    for ((size, step), unit) in dims.iter().zip(steps).zip(sizes) {
        let each = (*step * *unit) as i64;
        all = all.iter().flat_map(|base| (0..*size as i64).map(move |i| base + i * each)).collect();
    }
    all
}
