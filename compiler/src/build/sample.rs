//! The values of images between their places: what is at coordinates that tensors give.

use halite_ops::{
    DType,
    expression::{Expression, Function, Operand, Scalar, Type},
};

use super::{Builder, Result};
use crate::graph::{TensorId, elements};

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
        let dims = self.dims(images).to_vec();
        let (Some(channels), rank) = (dims.last(), coordinates.len()) else {
            return Err(self.invalid("no channels to sample"));
        };
        if dims.len() != rank + 2 || elements(&dims) == 0 || elements(&dims) > i32::MAX as u64 {
            let what = self.describe(&[images]);
            return Err(self.unsupported(format!("{what} is sampled at points of {rank} coordinates")));
        }
        let sizes = dims[1..=rank].to_vec();
        let flat = self.as_f32(images)?;
        let flat = self.reshape(flat, &[elements(&dims[..=rank]), *channels])?;
        let bases = match bases {
            Some(bases) => bases,
            None => self.places(DType::I32, &[dims[0], 1])?,
        };
        let mut each = Vec::new();
        for (coordinate, size) in coordinates.iter().zip(&sizes) {
            each.push(self.neighbours_along(*coordinate, *size, between, outside)?);
        }
        // Indices and weights of all combinations, dimension by dimension.
        let mut all: Vec<(TensorId, Option<TensorId>)> = vec![(bases, None)];
        for (neighbours, size) in each.iter().zip(&sizes) {
            let mut next = Vec::new();
            for (index, weight) in &all {
                for (own, own_weight) in neighbours {
                    let size = Operand::Constant(Scalar::Int(*size as i64, DType::I32));
                    let index = self.map(&[*index, *own], DType::I32, |p, x| {
                        let start = p.call(Function::Mul, &[x[0], size]);
                        p.call(Function::Add, &[start, x[1]])
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
            let column = [self.dims(weight), &[1]].concat();
            let weight = self.reshape(weight, &column)?;
            results.push(self.binary(Function::Mul, picked, weight)?);
        }
        Ok(results)
    }

    fn neighbours_along(
        &mut self,
        coordinate: TensorId,
        size: u64,
        between: Between,
        outside: Outside,
    ) -> Result<Neighbours> {
        let limits = Limits::new(size, outside);
        // Cubic neighbours of a coordinate outside are those of the coordinate itself, as PyTorch and ONNX Runtime have it.
        let stays = between == Between::Cubic && outside == Outside::Border;
        let first = |p: &mut Expression, x: Operand| {
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
            let place = |p: &mut Expression, x: Operand| {
                if between == Between::Nearest {
                    let rounded = p.call(Function::Round, &[x]);
                    return (limits.inside(p, rounded), number(0.0));
                }
                let (whole, rest) = first(p, x);
                (p.call(Function::Add, &[whole, number(*tap as f64)]), rest)
            };
            let index = self.map(&[coordinate], DType::I32, |p, x| {
                let (at, _) = place(p, x[0]);
                limits.index(p, at)
            })?;
            let weight = self.map(&[coordinate], DType::F32, |p, x| {
                let (at, rest) = place(p, x[0]);
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
#[derive(Clone, Copy)]
struct Limits {
    outside: Outside,
    last: f64,
    least: f64,
    most: f64,
}

impl Limits {
    fn new(size: u64, outside: Outside) -> Self {
        let last = size.saturating_sub(1) as f64;
        let edge = if outside == (Outside::Mirror { middle: false }) { 0.5 } else { 0.0 };
        Limits { outside, last, least: -edge, most: last + edge }
    }

    /// A coordinate brought into the image.
    fn inside(&self, p: &mut Expression, x: Operand) -> Operand {
        match self.outside {
            Outside::Zeros => x,
            Outside::Border => p.call(Function::Clip, &[x, number(0.0), number(self.last)]),
            Outside::Mirror { .. } => self.mirrored(p, x),
        }
    }

    fn mirrored(&self, p: &mut Expression, x: Operand) -> Operand {
        let range = self.most - self.least;
        if range <= 0.0 {
            return number(0.0);
        }
        let from = p.call(Function::Sub, &[x, number(self.least)]);
        let from = p.call(Function::Abs, &[from]);
        let from = p.call(Function::Fmod, &[from, number(2.0 * range)]);
        let back = p.call(Function::Sub, &[number(2.0 * range), from]);
        let nearer = p.call(Function::Min, &[from, back]);
        p.call(Function::Add, &[nearer, number(self.least)])
    }

    /// The index of a place, which may be outside of the image.
    fn index(&self, p: &mut Expression, at: Operand) -> Operand {
        let at = if self.outside == Outside::Zeros { at } else { self.inside(p, at) };
        let kept = p.call(Function::Clip, &[at, number(0.0), number(self.last)]);
        p.cast(Type::Of(DType::I32), kept)
    }

    /// The weight of a place: none outside of the image where there are zeros.
    fn weight(&self, p: &mut Expression, at: Operand, weight: Operand) -> Operand {
        if self.outside != Outside::Zeros {
            return weight;
        }
        let behind = p.call(Function::Ge, &[at, number(0.0)]);
        let before = p.call(Function::Le, &[at, number(self.last)]);
        let there = p.call(Function::And, &[behind, before]);
        p.call(Function::Select, &[there, weight, number(0.0)])
    }
}
