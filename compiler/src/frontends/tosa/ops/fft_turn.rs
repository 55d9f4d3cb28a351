//! Matrices of cosines and sines that Fourier transforms multiply by.

use std::f64::consts::TAU;

use halite_ops::{DType, Values};

use super::super::Result;
use crate::{build::Builder, graph::TensorId};

/// Cosines and sines of the angles `2 pi * i * o / size`, with the sign of the direction.
pub(super) struct Turn {
    size: u64,
    out: u64,
    sign: f64,
}

impl Turn {
    /// Of `size` places, to the first `out` of them.
    pub(super) fn new(size: u64, out: u64, inverse: bool) -> Self {
        Turn { size, out, sign: if inverse { -1.0 } else { 1.0 } }
    }

    /// Exact where the angle is a multiple of a quarter turn.
    pub(super) fn of(&self, i: u64, o: u64) -> (f64, f64) {
        let place = i * o % self.size;
        match (4 * place / self.size, 4 * place % self.size) {
            (0, 0) => (1.0, 0.0),
            (1, 0) => (0.0, self.sign),
            (2, 0) => (-1.0, 0.0),
            (3, 0) => (0.0, -self.sign),
            _ => {
                let angle = TAU * place as f64 / self.size as f64;
                (angle.cos(), self.sign * angle.sin())
            }
        }
    }

    /// For rows of elements on the left: `[cos -sin; sin cos]`, or without the second row where nothing is imaginary.
    pub(super) fn beside(&self, b: &mut Builder, complex: bool) -> Result<TensorId> {
        let rows = if complex { 2 * self.size } else { self.size };
        b.countable(rows.saturating_mul(2 * self.out))?;
        let mut values = Vec::new();
        for row in 0..rows {
            let turns = (0..self.out).map(|o| self.of(row % self.size, o));
            let (cos, sin): (Vec<f64>, Vec<f64>) = turns.unzip();
            let negated = sin.iter().map(|sin| 0.0 - sin);
            if row < self.size {
                values.extend(cos.iter().copied().chain(negated));
            } else {
                values.extend(sin.iter().chain(&cos));
            }
        }
        b.values(DType::F32, &[rows, 2 * self.out], &Values::Float(values))
    }

    /// For columns on the right: `[cos sin; -sin cos]`.
    pub(super) fn above(&self, b: &mut Builder) -> Result<TensorId> {
        b.countable((2 * self.size).saturating_mul(2 * self.size))?;
        let mut values = Vec::new();
        for row in 0..2 * self.size {
            let turns = (0..self.size).map(|i| self.of(i, row % self.size));
            let (cos, sin): (Vec<f64>, Vec<f64>) = turns.unzip();
            let negated = sin.iter().map(|sin| 0.0 - sin);
            if row < self.size {
                values.extend(cos.iter().chain(&sin));
            } else {
                values.extend(negated.chain(cos));
            }
        }
        b.values(DType::F32, &[2 * self.size, 2 * self.size], &Values::Float(values))
    }
}
