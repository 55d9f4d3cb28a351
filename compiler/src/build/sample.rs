//! The values of images between their places: what is at coordinates that tensors give.

use halite_ops::{
    DType,
    expression::{Expression, Function, Operand, Scalar, Type},
};

use halite_sizes::Size;

use super::{Builder, Result};
use crate::graph::TensorId;

/// What is outside of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outside {
    /// Zeros.
    Zeros,
    /// The nearest element.
    Border,
    /// The image mirrored, at the middle of its outermost elements or at their outer edge.
    Mirror {
        /// Whether at the middle.
        middle: bool,
    },
}

/// How elements between places come about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Between {
    /// The nearest one; halves to the even place.
    Nearest,
    /// Linear in each dimension.
    Linear,
    /// Cubic convolution in each dimension, with a coefficient of -0.75.
    Cubic,
}

/// The neighbours of coordinates in one dimension: indices, `i32`, and weights, `f32`.
type Neighbours = Vec<(TensorId, TensorId)>;

fn number(value: f64) -> Operand {
    Operand::Constant(Scalar::Float(value))
}

/// A size that maps compute with: a constant, or where it is open one more tensor, of one element.
#[derive(Clone, Copy)]
pub struct SizeOperand {
    size: Size,
    dtype: DType,
    tensor: Option<TensorId>,
}

impl SizeOperand {
    /// A size as a number of a type.
    ///
    /// # Errors
    /// As [`Builder::push`].
    pub fn new(b: &mut Builder, size: Size, dtype: DType) -> Result<Self> {
        if size.is_constant() {
            return Ok(SizeOperand { size, dtype, tensor: None });
        }
        let number = b.sizes_constant(&[size])?;
        Ok(SizeOperand { size, dtype, tensor: Some(b.cast(number, dtype)?) })
    }

    /// What a map takes of one tensor with this size.
    pub fn with(self, tensor: TensorId) -> Vec<TensorId> {
        [tensor].into_iter().chain(self.tensor).collect()
    }

    /// The size in a map that takes [`SizeOperand::with`].
    pub fn operand(self, inputs: &[Operand]) -> Operand {
        match (self.tensor, self.dtype.is_float()) {
            (Some(_), _) => inputs[1],
            (None, true) => number(self.size.as_f64()),
            (None, false) => Operand::Constant(Scalar::Int(self.size.signed_value(), self.dtype)),
        }
    }
}

impl Builder {
    /// What is around coordinates in images `[images, places…, channels]`: for each neighbour its elements times its weight,
    /// `[images, points, channels]` of `f32`. The sum of them is the value at the coordinates. There is a tensor
    /// `[images, points]` of coordinates for each dimension, counted in places. `bases` are the images' numbers, `[images,
    /// 1]` of `i32`, where each point's image is not that of its place.
    ///
    /// # Errors
    /// The sizes do not go together.
    pub fn neighbours(
        &mut self,
        images: TensorId,
        coordinates: &[TensorId],
        bases: Option<TensorId>,
        between: Between,
        outside: Outside,
    ) -> Result<Vec<TensorId>> {
        let dims = self.sizes(images).to_vec();
        let (Some(channels), rank) = (dims.last(), coordinates.len()) else {
            return Err(self.invalid("no channels to sample"));
        };
        let count = self.tensor(images).count();
        if dims.len() != rank + 2 || count.is_zero() == Some(true) || !count.is_at_most(i32::MAX as u64) {
            let what = self.describe(&[images]);
            return Err(self.unsupported(format!("{what} is sampled at points of {rank} coordinates")));
        }
        let sizes = dims[1..=rank].to_vec();
        let flat = self.as_f32(images)?;
        let rows = sizes.iter().fold(dims[0], |rows, size| rows * *size);
        let flat = self.reshape_to(flat, &[rows, *channels])?;
        let bases = match bases {
            Some(bases) => bases,
            None => {
                let line = self.line_of_places(DType::I32, dims[0])?;
                self.reshape_to(line, &[dims[0], 1.into()])?
            }
        };
        let mut each = Vec::new();
        for (coordinate, size) in coordinates.iter().zip(&sizes) {
            each.push(self.neighbours_along(*coordinate, *size, between, outside)?);
        }
        // Indices and weights of all combinations, dimension by dimension.
        let mut all: Vec<(TensorId, Option<TensorId>)> = vec![(bases, None)];
        for (neighbours, size) in each.iter().zip(&sizes) {
            let size = SizeOperand::new(self, *size, DType::I32)?;
            let mut next = Vec::new();
            for (index, weight) in &all {
                for (own, own_weight) in neighbours {
                    let ids = [&size.with(*index)[..], &[*own]].concat();
                    let index = self.map(&ids, DType::I32, |p, x| {
                        let start = p.call(Function::Mul, &[x[0], size.operand(x)]);
                        p.call(Function::Add, &[start, x[x.len() - 1]])
                    })?;
                    let weight = match weight {
                        None => *own_weight,
                        Some(weight) => self.binary(Function::Mul, *weight, *own_weight)?,
                    };
                    next.push((index, Some(weight)));
                }
            }
            all = next;
        }
        let mut results = Vec::new();
        for (index, weight) in all {
            let picked = self.gather(flat, index, 0)?;
            let Some(weight) = weight else { continue };
            let column = [self.sizes(weight), &[1.into()]].concat();
            let weight = self.reshape_to(weight, &column)?;
            results.push(self.binary(Function::Mul, picked, weight)?);
        }
        Ok(results)
    }

    fn neighbours_along(
        &mut self,
        coordinate: TensorId,
        size: Size,
        between: Between,
        outside: Outside,
    ) -> Result<Neighbours> {
        let size = SizeOperand::new(self, size, DType::F32)?;
        let ids = size.with(coordinate);
        // Cubic neighbours of a coordinate outside are those of the coordinate itself, as PyTorch and ONNX Runtime have it.
        let stays = between == Between::Cubic && outside == Outside::Border;
        let first = |p: &mut Expression, limits: &Limits, x: Operand| {
            let at = if stays { x } else { limits.inside(p, x) };
            let whole = p.call(Function::Floor, &[at]);
            let rest = p.call(Function::Sub, &[at, whole]);
            (whole, rest)
        };
        let taps: &[i64] = match between {
            Between::Nearest => &[0],
            Between::Linear => &[0, 1],
            Between::Cubic => &[-1, 0, 1, 2],
        };
        let mut all = Vec::new();
        for tap in taps {
            let place = |p: &mut Expression, limits: &Limits, x: Operand| {
                if between == Between::Nearest {
                    let rounded = p.call(Function::Round, &[x]);
                    return (limits.inside(p, rounded), number(0.0));
                }
                let (whole, rest) = first(p, limits, x);
                (p.call(Function::Add, &[whole, number(*tap as f64)]), rest)
            };
            let index = self.map(&ids, DType::I32, |p, x| {
                let limits = Limits::new(p, size.operand(x), outside);
                let (at, _) = place(p, &limits, x[0]);
                limits.index(p, at)
            })?;
            let weight = self.map(&ids, DType::F32, |p, x| {
                let limits = Limits::new(p, size.operand(x), outside);
                let (at, rest) = place(p, &limits, x[0]);
                let weight = weight_of(p, between, *tap, rest);
                limits.weight(p, at, weight)
            })?;
            all.push((index, weight));
        }
        Ok(all)
    }
}

/// The weight of the neighbour `tap` places behind the last one before a coordinate, which is `rest` behind that.
fn weight_of(p: &mut Expression, between: Between, tap: i64, rest: Operand) -> Operand {
    let distance = match (between, tap) {
        (Between::Nearest, _) => return number(1.0),
        (_, ..=0) => p.call(Function::Add, &[rest, number(-tap as f64)]),
        _ => p.call(Function::Sub, &[number(tap as f64), rest]),
    };
    if between == Between::Linear {
        return p.call(Function::Sub, &[number(1.0), distance]);
    }
    // Keys, 1981: one polynomial up to a distance of 1, another up to 2.
    let a = -0.75;
    let factors =
        if matches!(tap, 0 | 1) { [a + 2.0, -(a + 3.0), 0.0, 1.0] } else { [a, -5.0 * a, 8.0 * a, -4.0 * a] };
    let mut value = number(factors[0]);
    for factor in &factors[1..] {
        let product = p.call(Function::Mul, &[value, distance]);
        value = p.call(Function::Add, &[product, number(*factor)]);
    }
    value
}

/// The places of a dimension.
struct Limits {
    outside: Outside,
    last: Operand,
    least: f64,
    /// From the least coordinate to the largest.
    range: Operand,
}

impl Limits {
    fn new(p: &mut Expression, size: Operand, outside: Outside) -> Self {
        let edge = if outside == (Outside::Mirror { middle: false }) { 0.5 } else { 0.0 };
        let (last, range) = match size {
            Operand::Constant(Scalar::Float(size)) => {
                let last = (size - 1.0).max(0.0);
                (number(last), number(last + 2.0 * edge))
            }
            size => {
                let last = p.call(Function::Sub, &[size, number(1.0)]);
                let last = p.call(Function::Max, &[last, number(0.0)]);
                (last, p.call(Function::Add, &[last, number(2.0 * edge)]))
            }
        };
        Limits { outside, last, least: -edge, range }
    }

    /// A coordinate brought into the image.
    fn inside(&self, p: &mut Expression, x: Operand) -> Operand {
        match self.outside {
            Outside::Zeros => x,
            Outside::Border => p.call(Function::Clip, &[x, number(0.0), self.last]),
            Outside::Mirror { .. } => self.mirrored(p, x),
        }
    }

    fn mirrored(&self, p: &mut Expression, x: Operand) -> Operand {
        if let Operand::Constant(Scalar::Float(0.0)) = self.range {
            return number(0.0);
        }
        // An image of one place is no range to come back in.
        let range = p.call(Function::Max, &[self.range, number(f64::from(f32::EPSILON))]);
        let there_and_back = p.call(Function::Mul, &[range, number(2.0)]);
        let from = p.call(Function::Sub, &[x, number(self.least)]);
        let from = p.call(Function::Abs, &[from]);
        let from = p.call(Function::Fmod, &[from, there_and_back]);
        let back = p.call(Function::Sub, &[there_and_back, from]);
        let nearer = p.call(Function::Min, &[from, back]);
        p.call(Function::Add, &[nearer, number(self.least)])
    }

    /// The index of a place, which may be outside of the image.
    fn index(&self, p: &mut Expression, at: Operand) -> Operand {
        let at = if self.outside == Outside::Zeros { at } else { self.inside(p, at) };
        let kept = p.call(Function::Clip, &[at, number(0.0), self.last]);
        p.cast(Type::Of(DType::I32), kept)
    }

    /// The weight of a place: none outside of the image where there are zeros.
    fn weight(&self, p: &mut Expression, at: Operand, weight: Operand) -> Operand {
        if self.outside != Outside::Zeros {
            return weight;
        }
        let behind = p.call(Function::Ge, &[at, number(0.0)]);
        let before = p.call(Function::Le, &[at, self.last]);
        let there = p.call(Function::And, &[behind, before]);
        p.call(Function::Select, &[there, weight, number(0.0)])
    }
}
