//! Rotary position embedding: pairs of elements turned by angles that grow with the position.

use halite_sizes::Size;
use serde::{Deserialize, Serialize};

#[cfg(any(test, feature = "testing"))]
use crate::Samples;
use crate::{DType, Exact, Op, TensorDesc, Tolerance, Values};

/// Where the positions of rows come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Positions {
    /// Row i is at `start + i`.
    #[default]
    Start,
    /// A tensor `[batch, len]` of `i32`.
    I32,
    /// A tensor `[batch, len]` of `i64`, whose low words are read.
    I64,
}

/// Rotary embedding (Su et al., RoFormer, section 3.2.2) of `[batch, heads, len, head_dim]`. Pair i at position p turns by
/// `p * base^(-2i / rotary_dim)`, or by what row p of the tables of cosines and sines says. Positions are at least 0 and
/// less than 2^31; those beyond the tables use the last row.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rotary {
    /// Number of sequences.
    #[serde(default = "one")]
    pub batch: Size,
    /// Heads.
    pub heads: u64,
    /// Rows of a head.
    pub len: Size,
    /// Elements of a row.
    pub head_dim: u64,
    /// How many of them, the first, are turned; even, at most 256. Absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotary_dim: Option<u64>,
    /// Type of all float tensors.
    #[serde(default = "f32")]
    pub dtype: DType,
    /// Type of the result, if another: `f16` of `f32`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out: Option<DType>,
    /// Whether pairs are neighbours (2i, 2i + 1), and not halves (i, i + rotary_dim / 2).
    #[serde(default)]
    pub interleaved: bool,
    /// Position of the first row, where there is no tensor of positions.
    #[serde(default)]
    pub start: Size,
    /// Where positions come from.
    #[serde(default)]
    pub positions: Positions,
    /// Rows of the tables `[tables, rotary_dim / 2]` of cosines and sines. Absent: angles are computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tables: Option<Size>,
    /// Base of the angles, more than 1.
    #[serde(default = "base")]
    pub base: Exact<f64>,
}

fn one() -> Size {
    Size::constant(1)
}

fn f32() -> DType {
    DType::F32
}

fn base() -> Exact<f64> {
    Exact(10000.0)
}

/// Error of a kernel's own sine and cosine: a few roundings of `f32`.
const DIRECTION_ERROR: f64 = 1.0 / (1u64 << 21) as f64;

impl Rotary {
    /// Rotary embedding of all elements, at positions from 0 on.
    pub fn new(heads: u64, len: impl Into<Size>, head_dim: u64, dtype: DType) -> Self {
        Rotary {
            batch: one(),
            heads,
            len: len.into(),
            head_dim,
            rotary_dim: None,
            dtype,
            out: None,
            interleaved: false,
            start: Size::constant(0),
            positions: Positions::Start,
            tables: None,
            base: base(),
        }
    }

    /// Type of the result.
    pub fn out(&self) -> DType {
        self.out.unwrap_or(self.dtype)
    }

    /// Pairs of elements that are turned in a row.
    pub fn pairs(&self) -> u64 {
        self.rotary_dim.unwrap_or(self.head_dim) / 2
    }
}

#[cfg(any(test, feature = "testing"))]
impl Rotary {
    fn samples_of(dtype: DType) -> Vec<Rotary> {
        let of = |heads, len, head_dim| Rotary::new(heads, len, head_dim, dtype);
        let [start, i32, i64] = [Positions::Start, Positions::I32, Positions::I64];
        vec![
            of(3, 9, 32),
            Rotary { start: 131_000.into(), interleaved: true, ..of(5, 3, 64) },
            Rotary { batch: 2.into(), rotary_dim: Some(10), positions: i32, ..of(2, 5, 15) },
            Rotary {
                batch: 2.into(),
                positions: i64,
                base: Exact(500_000.0),
                interleaved: true,
                ..of(6, 4, 256)
            },
            Rotary { tables: Some(40.into()), positions: i64, ..of(2, 7, 16) },
            Rotary {
                tables: Some(11.into()),
                start: 3.into(),
                positions: start,
                interleaved: true,
                ..of(2, 8, 6)
            },
            Rotary { rotary_dim: Some(0), ..of(1, 2, 3) },
            of(2, 0, 8),
        ]
    }

    /// Samples of results that are rounded.
    fn rounded_samples() -> Vec<Rotary> {
        let rounded = |op: Rotary| Rotary { out: Some(DType::F16), ..op };
        Rotary::samples_of(DType::F32).into_iter().map(rounded).collect()
    }
}

impl Rotary {
    /// (cosine, sine) of a pair at a position.
    fn direction(&self, inputs: &[Values], pair: u64, position: u64) -> (f64, f64) {
        match self.tables {
            Some(rows) => {
                let at = (position.min(rows.exact() - 1) * self.pairs() + pair) as usize;
                let first = if self.positions == Positions::Start { 1 } else { 2 };
                (inputs[first].float(at), inputs[first + 1].float(at))
            }
            None => {
                let exponent = -2.0 * pair as f64 / (2 * self.pairs()) as f64;
                let (sin, cos) = (position as f64 * self.base.0.powf(exponent)).sin_cos();
                (cos, sin)
            }
        }
    }

    /// One row of the result; `at` is its first element.
    fn row(&self, inputs: &[Values], at: u64, position: u64) -> Vec<f64> {
        let mut row: Vec<f64> = (0..self.head_dim).map(|e| inputs[0].float((at + e) as usize)).collect();
        for pair in 0..self.pairs() {
            let place = if self.interleaved { (2 * pair, 2 * pair + 1) } else { (pair, pair + self.pairs()) };
            let (a, b) = (place.0 as usize, place.1 as usize);
            let (cos, sin) = self.direction(inputs, pair, position);
            let (x, y) = (row[a], row[b]);
            row[a] = x * cos - y * sin;
            row[b] = x * sin + y * cos;
        }
        row.into_iter().map(|value| self.out().round(value)).collect()
    }
}

impl Op for Rotary {
    fn check(&self) -> Result<(), String> {
        let rotary_dim = self.rotary_dim.unwrap_or(self.head_dim);
        if !self.dtype.is_small_float() {
            return Err(format!(
                "rotary embedding of {} is not defined; there are f32, f16, bf16",
                self.dtype
            ));
        }
        if self.out() != self.dtype && (self.dtype, self.out()) != (DType::F32, DType::F16) {
            return Err(format!("rotary embedding does not make {} of {}", self.out(), self.dtype));
        }
        if self.head_dim == 0 || rotary_dim > self.head_dim.min(256) || !rotary_dim.is_multiple_of(2) {
            return Err(format!("a rotary_dim of {rotary_dim} is not an even part of {}", self.head_dim));
        }
        if self.tables.is_some_and(|rows| rows == 0) {
            return Err("tables have at least one row".into());
        }
        if self.start + self.len > 1u64 << 31 {
            return Err(format!("positions from {} on are not less than 2^31", self.start));
        }
        if self.base.0.is_finite() && self.base.0 > 1.0 { Ok(()) } else { Err("base is more than 1".into()) }
    }

    fn inputs(&self) -> Vec<TensorDesc> {
        let of_type = |dtype| TensorDesc::new("positions", dtype, [self.batch, self.len]);
        let positions = match self.positions {
            Positions::Start => None,
            Positions::I32 => Some(of_type(DType::I32)),
            Positions::I64 => Some(of_type(DType::I64)),
        };
        let x =
            TensorDesc::new("x", self.dtype, [self.batch, self.heads.into(), self.len, self.head_dim.into()]);
        let table = |rows, name| TensorDesc::new(name, self.dtype, [rows, self.pairs().into()]);
        let tables = self.tables.into_iter().flat_map(|rows| ["cos", "sin"].map(|name| table(rows, name)));
        [x].into_iter().chain(positions).chain(tables).collect()
    }

    fn outputs(&self) -> Vec<TensorDesc> {
        vec![TensorDesc::new(
            "out",
            self.out(),
            [self.batch, self.heads.into(), self.len, self.head_dim.into()],
        )]
    }

    fn types(&mut self) -> Vec<&mut DType> {
        [&mut self.dtype].into_iter().chain(&mut self.out).collect()
    }

    fn signature(&self) -> String {
        if self.out() == self.dtype {
            self.dtype.to_string()
        } else {
            format!("{}_{}", self.dtype, self.out())
        }
    }

    fn flops(&self) -> f64 {
        6.0 * self.batch.as_f64() * self.heads as f64 * self.len.as_f64() * self.pairs() as f64
    }

    fn reference(&self, inputs: &[Values]) -> Vec<Values> {
        let len = self.len.exact();
        let heads = (0..self.batch.exact()).flat_map(|b| (0..self.heads).map(move |h| (b, h)));
        let rows = heads.flat_map(|(b, h)| (0..len).map(move |i| (b, h, i)));
        let row = |(b, h, i)| {
            let position = match self.positions {
                Positions::Start => self.start.exact() + i,
                Positions::I32 | Positions::I64 => inputs[1].int((b * len + i) as usize) as u64,
            };
            self.row(inputs, ((b * self.heads + h) * len + i) * self.head_dim, position)
        };
        vec![Values::Float(rows.flat_map(row).collect())]
    }

    /// Two products and their sum, with cosines and sines from tables, or with errors of their own.
    fn tolerance(&self, magnitudes: &[f64]) -> Tolerance {
        let (factor, direction) = match self.tables {
            // Those of the last two inputs.
            Some(_) => (magnitudes[magnitudes.len() - 2..].iter().copied().fold(0.0, f64::max), 0.0),
            None => (1.0, 2.0 * DIRECTION_ERROR * magnitudes[0]),
        };
        let sum = Tolerance::of_sum(2, magnitudes[0] * factor, DType::F32, self.out());
        Tolerance { absolute: sum.absolute + direction, relative: sum.relative }
    }
}

#[cfg(any(test, feature = "testing"))]
impl Samples for Rotary {
    fn samples() -> Vec<Rotary> {
        let each = [DType::F32, DType::F16, DType::BF16].into_iter().flat_map(Rotary::samples_of);
        each.chain(Rotary::rounded_samples()).collect()
    }

    /// Positions up to a million, or within the tables and a little beyond.
    fn sample_input(&self, index: usize, random: &mut dyn FnMut() -> u64) -> Option<Values> {
        if index != 1 || self.positions == Positions::Start {
            return None;
        }
        let end = self.tables.map_or(1 << 20, |rows| rows.exact() + 2);
        Some(Values::Int((0..(self.batch * self.len).exact()).map(|_| (random() % end) as i64).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_turns_pairs() {
        let op = Rotary { start: 1.into(), ..Rotary::new(1, 1, 4, DType::F32) };
        let x = [Values::Float(vec![1.0, 0.0, 0.0, 1.0])];
        let near = |op: &Rotary, expected: [f64; 4]| {
            let [Values::Float(got)] = &op.reference(&x)[..] else { panic!("floats") };
            assert!(got.iter().zip(expected).all(|(g, e)| (g - e).abs() < 1e-6), "{got:?}");
        };
        // Pair 0 turns by 1, pair 1 by 10000^(-1/2).
        let (sin, cos) = 1.0f64.sin_cos();
        let (sin1, cos1) = 0.01f64.sin_cos();
        near(&op, [cos, -sin1, sin, cos1]);
        near(&Rotary { interleaved: true, ..op }, [cos, sin, -sin1, cos1]);
    }
}
