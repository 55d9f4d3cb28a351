//! Operators on signals: Fourier transforms as products with matrices, windows, weights of mel bands.

use std::f64::consts::PI;

use halite_ops::{
    DType, Values,
    expression::{Function, Operand, Scalar},
    pad::Border,
};
use halite_sizes::Size;

use super::{Import, NodeView, Result};
use crate::{build::Builder, graph::TensorId};

pub(super) const OPS: &[(&str, Import)] = &[
    ("BlackmanWindow", |b, node| window(b, node, &[0.42, -0.5, 0.08])),
    ("DFT", fourier),
    ("HammingWindow", |b, node| window(b, node, &[25.0 / 46.0, -21.0 / 46.0])),
    ("HannWindow", |b, node| window(b, node, &[0.5, -0.5])),
    ("MelWeightMatrix", mel),
    ("STFT", short_time),
];

/// Most elements of a matrix or window that is made while a graph is built.
const MOST_MADE: u64 = 1 << 24;

/// Sine and cosine of a part of a turn. They are exact at quarters, so that parts which are zero have no sign of their own.
fn of_turn(step: u128, length: u128) -> (f64, f64) {
    const QUARTERS: [(f64, f64); 4] = [(0.0, 1.0), (1.0, 0.0), (0.0, -1.0), (-1.0, 0.0)];
    match (4 * step).is_multiple_of(length) {
        true => QUARTERS[(4 * step / length % 4) as usize],
        false => (2.0 * PI * (step as f64 / length as f64)).sin_cos(),
    }
}

/// A Fourier transform of lines.
#[derive(Clone, Copy)]
struct Fourier {
    /// Elements of a line of the input.
    input: u64,
    /// 1 for real numbers, 2 for complex ones.
    parts: u64,
    /// Length of the transform.
    length: u64,
    inverse: bool,
    onesided: bool,
}

impl Fourier {
    /// Places of the result, and 1 for real results, 2 for complex ones.
    fn output(&self) -> (u64, u64) {
        match (self.onesided, self.inverse) {
            (false, _) => (self.length, 2),
            (true, false) => (self.length / 2 + 1, 2),
            (true, true) => (self.length, 1),
        }
    }

    /// What element `[n, from]` of a line gives to element `[k, to]` of the result.
    fn weight(&self, (n, from): (u64, u64), (k, to): (u64, u64)) -> f64 {
        let half = self.onesided && self.inverse;
        let known = if half { self.length / 2 + 1 } else { self.length };
        if n >= known {
            return 0.0;
        }
        // The product is reduced before it becomes an angle, which keeps it exact.
        let step = u128::from(n) * u128::from(k) % u128::from(self.length);
        let (sine, cosine) = of_turn(step, u128::from(self.length));
        let sine = if self.inverse { sine } else { 0.0 - sine };
        let value = match (from, to) {
            (0, 0) | (1, 1) => cosine,
            (0, _) => sine,
            _ => 0.0 - sine,
        };
        // What is not given is the conjugate of what is.
        let twice = half && n > 0 && 2 * n != self.length;
        let value = if twice { 2.0 * value } else { value };
        if self.inverse { value / self.length as f64 } else { value }
    }

    /// Lines `[…, input, parts]` transformed.
    fn apply(&self, b: &mut Builder, node: &NodeView<'_>, x: TensorId) -> Result<TensorId> {
        let dims = b.sizes(x).to_vec();
        let outer = dims[..dims.len() - 2].to_vec();
        let (count, to) = self.output();
        let (rows, columns) = (self.input * self.parts, count * to);
        if self.length == 0 || rows.saturating_mul(columns) > MOST_MADE {
            let reason =
                format!("a Fourier transform of {} elements to {count}: it is a product", self.input);
            return Err(node.unsupported(format!("{reason} with a matrix, of up to {MOST_MADE} elements")));
        }
        let (parts, all) = (self.parts, (0..rows * columns));
        let values = all.map(|i| {
            let (row, column) = (i / columns, i % columns);
            self.weight((row / parts, row % parts), (column / to, column % to))
        });
        let matrix = b.values(DType::F32, &[rows, columns], &Values::Float(values.collect()))?;
        let element = b.element(x);
        let x = b.as_f32(x)?;
        let lines = b.reshape_to(x, &[outer.iter().product(), Size::from(rows)])?;
        let made = b.matmul(lines, matrix)?;
        let made = b.reshape_to(made, &[&outer[..], &[count.into(), to.into()]].concat())?;
        b.cast(made, element)
    }
}

fn parts(b: &Builder, node: &NodeView<'_>, x: TensorId) -> Result<u64> {
    match b.sizes(x) {
        [_, .., parts] if parts.is_constant() && [1, 2].contains(&parts.value()) => Ok(parts.value()),
        _ => Err(node.invalid(format!("{} holds neither real nor complex numbers", b.describe(&[x])))),
    }
}

/// A number that has to be known.
fn scalar(b: &Builder, node: &NodeView<'_>, input: usize, what: &str) -> Result<Option<i64>> {
    let Some(id) = node.optional(input) else { return Ok(None) };
    match b.need_ints(id, what)?[..] {
        [value] => Ok(Some(value)),
        _ => Err(node.invalid(format!("{what} is one number"))),
    }
}

fn length(node: &NodeView<'_>, value: i64, what: &str) -> Result<u64> {
    u64::try_from(value).map_err(|_| node.invalid(format!("{what} is {value}")))
}

fn fourier(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let x = node.input(0)?;
    let (rank, parts) = (b.rank(x), parts(b, node, x)?);
    let axis = if node.since(20) {
        scalar(b, node, 2, "the axis of a transform")?.unwrap_or(-2)
    } else {
        node.int("axis", 1)?
    };
    let axis = node.axis(axis, rank)?;
    if axis + 1 == rank {
        return Err(node.invalid("the last axis holds the parts of numbers"));
    }
    let (inverse, onesided) = (node.flag("inverse", false)?, node.flag("onesided", false)?);
    let input = b.sizes(x)[axis].exact();
    let default = if inverse && onesided { 2 * input.saturating_sub(1) } else { input };
    let wanted = scalar(b, node, 1, "the length of a transform")?;
    let length = wanted.map_or(Ok(default), |value| length(node, value, "the length of a transform"))?;
    let mut order: Vec<usize> = (0..rank).collect();
    order.swap(axis, rank - 2);
    let x = b.transpose(x, &order)?;
    let made = Fourier { input, parts, length, inverse, onesided }.apply(b, node, x)?;
    Ok(vec![b.transpose(made, &order)?])
}

fn short_time(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let mut x = node.input(0)?;
    // ONNX Runtime takes real signals without a last dimension of 1, and exporters write them so.
    if let [batch, signal] = *b.sizes(x) {
        x = b.reshape_to(x, &[batch, signal, 1.into()])?;
    }
    let parts = parts(b, node, x)?;
    let [_, signal, _] = *b.sizes(x) else {
        return Err(node.invalid(format!("{} is no batch of signals", b.describe(&[x]))));
    };
    let step = scalar(b, node, 1, "the step of frames")?.unwrap_or(0);
    let step = length(node, step, "the step of frames")?;
    let window = node.optional(2);
    let given = scalar(b, node, 3, "the length of frames")?;
    let frame = match (given, window) {
        (Some(value), _) => length(node, value, "the length of frames")?,
        (None, Some(window)) => b.tensor(window).elements(),
        (None, None) => signal.exact(),
    };
    if step == 0 || frame == 0 || !Size::from(frame).stays_within(signal) {
        return Err(node.invalid(format!("frames of {frame}, {step} apart, of {signal}")));
    }
    let frames = (signal - frame) / step + 1;
    let places = places_of_frames(b, node, frames, (frame, step))?;
    let mut framed = b.gather(x, places, 1)?;
    if let Some(window) = window {
        let missing = frame as i64 - b.tensor(window).elements() as i64;
        let own = b.tensor(window).elements();
        let flat = b.reshape(window, &[own])?;
        let whole = b.pad(flat, &[(0, missing)], Border::Constant, 0.0)?;
        let column = b.reshape(whole, &[frame, 1])?;
        let element = b.element(framed);
        let column = b.cast(column, element)?;
        framed = b.binary(Function::Mul, framed, column)?;
    }
    let onesided = node.flag("onesided", true)?;
    let made = Fourier { input: frame, parts, length: frame, inverse: false, onesided };
    Ok(vec![made.apply(b, node, framed)?])
}

/// The places of the signal of which frames are made, `[frames, frame]`.
fn places_of_frames(
    b: &mut Builder,
    node: &NodeView<'_>,
    frames: Size,
    (frame, step): (u64, u64),
) -> Result<TensorId> {
    if frames.is_constant() {
        let frames = frames.value();
        if frames.saturating_mul(frame) > MOST_MADE {
            return Err(node.unsupported(format!("{frames} frames of {frame}: more than {MOST_MADE} places")));
        }
        let places = (0..frames * frame).map(|i| (i / frame * step + i % frame) as i64).collect();
        return b.values(DType::I32, &[frames, frame], &Values::Int(places));
    }
    let starts = b.line_of_places(DType::I32, frames)?;
    let starts = b.reshape_to(starts, &[frames, 1.into()])?;
    let own = b.places(DType::I32, &[1, frame])?;
    let step = Operand::Constant(Scalar::Int(step as i64, DType::I32));
    b.map(&[starts, own], DType::I32, |p, x| {
        let start = p.call(Function::Mul, &[x[0], step]);
        p.call(Function::Add, &[start, x[1]])
    })
}

/// A window that is a sum of cosines with these factors.
fn window(b: &mut Builder, node: &NodeView<'_>, factors: &[f64]) -> Result<Vec<TensorId>> {
    let size = scalar(b, node, 0, "the size of a window")?.unwrap_or(0);
    let size = length(node, size, "the size of a window")?;
    if size > MOST_MADE {
        return Err(node.unsupported(format!("a window of {size} elements")));
    }
    let period = if node.flag("periodic", true)? { size } else { size.saturating_sub(1) }.max(1) as f64;
    let value = |i: u64| {
        let turn = 2.0 * PI * i as f64 / period;
        factors.iter().enumerate().map(|(n, factor)| factor * (turn * n as f64).cos()).sum()
    };
    let element = node.element("output_datatype")?.unwrap_or(DType::F32.into());
    let values = Values::Float((0..size).map(value).collect());
    Ok(vec![b.values(element, &[size], &values)?])
}

/// Weights of the places of a spectrum in bands that are as wide on the mel scale: triangles that overlap.
fn mel(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let mut sizes = [0; 3];
    for (i, size) in sizes.iter_mut().enumerate() {
        let value = scalar(b, node, i, "a size of the mel bands")?.unwrap_or(0);
        *size = length(node, value, "a size of the mel bands")?;
    }
    let [bands, dft, rate] = sizes;
    let edge = |input| -> Result<f64> {
        let all = b.need_floats(node.input(input)?, "an edge of the mel bands")?;
        all.first().copied().ok_or_else(|| node.invalid("an edge of the mel bands is missing"))
    };
    let (low, high) = (edge(3)?, edge(4)?);
    let bins = dft / 2 + 1;
    if bands.saturating_mul(bins) > MOST_MADE || bands > MOST_MADE || rate == 0 {
        return Err(node.unsupported(format!("{bands} mel bands of {bins} places at {rate} hertz")));
    }
    let to_mel = |hertz: f64| 2595.0 * (hertz / 700.0).ln_1p() / 10f64.ln();
    let to_hertz = |mel: f64| 700.0 * (mel / 2595.0 * 10f64.ln()).exp_m1();
    let step = (to_mel(high) - to_mel(low)) / (bands as f64 + 2.0);
    let place = |i: u64| {
        let hertz = to_hertz(i as f64 * step + to_mel(low));
        ((dft as f64 + 1.0) * hertz / rate as f64).floor() as i64
    };
    let mut weights = vec![0.0; (bins * bands) as usize];
    let mut set = |place: i64, band: u64, weight: f64| {
        if let Ok(place) = u64::try_from(place)
            && place < bins
        {
            weights[(place * bands + band) as usize] = weight;
        }
    };
    for band in 0..bands {
        let [left, center, right] = [0, 1, 2].map(|i| place(band + i).clamp(-1, bins as i64));
        if left == center {
            set(center, band, 1.0);
        }
        for j in left..=center {
            if center > left {
                set(j, band, (j - left) as f64 / (center - left) as f64);
            }
        }
        for j in center..right {
            set(j, band, (right - j) as f64 / (right - center) as f64);
        }
    }
    let element = node.element("output_datatype")?.unwrap_or(DType::F32.into());
    Ok(vec![b.values(element, &[bins, bands], &Values::Float(weights))?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quarters_of_a_turn_are_exact() {
        let line = |length, inverse| Fourier { input: length, parts: 1, length, inverse, onesided: false };
        for (length, k) in [(2, 1), (8, 4), (10, 5), (12, 3), (6, 0)] {
            for inverse in [false, true] {
                for n in 0..length {
                    let weights = [(0, 0), (0, 1), (1, 0), (1, 1)]
                        .map(|(from, to)| line(length, inverse).weight((n, from), (k, to)));
                    let whole = if inverse { 1.0 / length as f64 } else { 1.0 };
                    let exact = |value: f64| value == 0.0 && value.is_sign_positive() || value.abs() == whole;
                    assert!(weights.into_iter().all(exact), "{length} {k} {n}: {weights:?}");
                }
            }
        }
        let eighth = line(8, false).weight((1, 0), (1, 1));
        assert!((eighth + 0.5f64.sqrt()).abs() < 1e-15, "{eighth}");
    }
}
