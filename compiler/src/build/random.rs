//! Random numbers: Philox 4x32-10 as an expression over the places of elements, so that every device and the host make the same.
//!
//! The generator counts: each element's number is a function of the key, the stream and the element's place, and of nothing
//! else. It is that of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011. The key is the
//! seed, the counter's words are the place, 0, the stream and 0. Words and uniform numbers are the same bits everywhere; normal
//! numbers are within `2e-6 * (1 + |x|)` of those of exact arithmetic.

use halite_ops::{
    DType,
    expression::{Expression, Function, Operand, Scalar, Type},
};

use halite_sizes::Size;

use super::{Builder, Range, Result};
use crate::graph::TensorId;

/// What multiplies words 0 and 2 of the counter.
const MULTIPLIERS: [u32; 2] = [0xd251_1f53, 0xcd9e_8d57];
/// What is added to the key after each round.
const STEPS: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];
const ROUNDS: usize = 10;

/// Elements of a line: places are made of the numbers of lines and those within a line.
const LINE: u64 = 4096;

/// Stream and key of a node with a seed of its own; others count their streams.
const OWN_STREAM: u32 = u32::MAX;

/// The state of a graph's generator.
#[derive(Clone, Debug, Default)]
pub(super) struct Random {
    seed: u64,
    streams: u32,
}

/// Where the numbers of one tensor come from.
#[derive(Clone, Copy, Debug)]
struct Source {
    key: [u32; 2],
    stream: u32,
}

impl Builder {
    /// Sets the seed of the random numbers of nodes that have none.
    pub fn seed(&mut self, seed: u64) {
        self.random = Random { seed, streams: 0 };
    }

    /// How many tensors of random numbers were drawn, but for those of nodes with a seed of their own.
    pub fn drawn(&self) -> u32 {
        self.random.streams
    }

    /// Draws again what came after the first so many tensors.
    pub fn draw_again(&mut self, after: u32) {
        self.random.streams = after;
    }

    /// Random numbers from `low` to below `high`, each of the 2^24 steps between as likely; `f32`. `seed` is the node's own.
    /// Two nodes with the same seed of their own get the same numbers, nodes without one get others.
    ///
    /// # Errors
    /// There are more than 2^32 elements.
    pub fn uniform<N: Into<Size> + Copy>(
        &mut self,
        dims: &[N],
        [low, high]: [f32; 2],
        seed: Option<f32>,
    ) -> Result<TensorId> {
        let source = self.source(seed);
        self.random(dims, source, |p, words| {
            let unit = unit(p, words[0]);
            let part = p.call(Function::Mul, &[unit, (high - low).into()]);
            p.call(Function::Add, &[part, low.into()])
        })
    }

    /// Random numbers of the normal distribution, by the method of Box and Muller; `f32`. See [`Builder::uniform`].
    ///
    /// # Errors
    /// There are more than 2^32 elements.
    pub fn normal<N: Into<Size> + Copy>(
        &mut self,
        dims: &[N],
        [mean, scale]: [f32; 2],
        seed: Option<f32>,
    ) -> Result<TensorId> {
        let source = self.source(seed);
        self.random(dims, source, |p, words| {
            let square = minus_two_log(p, words[0]);
            let radius = p.call(Function::Sqrt, &[square]);
            let cosine = cosine_of_turns(p, words[1]);
            let unit = p.call(Function::Mul, &[radius, cosine]);
            let scaled = p.call(Function::Mul, &[unit, scale.into()]);
            p.call(Function::Add, &[scaled, mean.into()])
        })
    }

    fn source(&mut self, seed: Option<f32>) -> Source {
        match seed {
            Some(seed) => Source { key: [seed.to_bits(), 0], stream: OWN_STREAM },
            None => {
                let stream = self.random.streams;
                self.random.streams += 1;
                let seed = self.random.seed;
                Source { key: [seed as u32, (seed >> 32) as u32], stream }
            }
        }
    }

    /// What `compute` makes of the four words of each element.
    fn random(
        &mut self,
        dims: &[impl Into<Size> + Copy],
        source: Source,
        compute: impl FnOnce(&mut Expression, [Operand; 4]) -> Operand,
    ) -> Result<TensorId> {
        let dims: Vec<Size> = dims.iter().map(|size| (*size).into()).collect();
        let count: Size = dims.iter().product();
        if !count.stays_within(1i64 << 32) {
            return Err(
                self.unsupported(format!("{count} random numbers in one tensor; there are up to 2^32"))
            );
        }
        let line = if count.is_constant() { count.exact().clamp(1, LINE) } else { LINE };
        let lines = count.div_ceil(line);
        let down = self.line_of_places(DType::U32, lines)?;
        let down = self.reshape_to(down, &[lines, 1.into()])?;
        let right = self.places(DType::U32, &[1, line])?;
        let made = self.map(&[down, right], DType::F32, |p, x| {
            let start = p.call(Function::Mul, &[x[0], word(line as u32)]);
            let place = p.call(Function::Add, &[start, x[1]]);
            let words = philox(p, source.key, [place, word(0), word(source.stream), word(0)]);
            compute(p, words)
        })?;
        let all = self.reshape_to(made, &[lines * line])?;
        let own = if count.is_constant() {
            self.slice(all, &[Range { start: 0.into(), step: 1, count }])?
        } else {
            // There are as many, or up to a line more.
            self.first(all, count)?
        };
        self.reshape_to(own, &dims)
    }
}

fn word(value: u32) -> Operand {
    Operand::Constant(Scalar::Int(value.into(), DType::U32))
}

fn shifted(p: &mut Expression, x: Operand, bits: u32) -> Operand {
    p.call(Function::Shr, &[x, word(bits)])
}

fn low_half(p: &mut Expression, x: Operand) -> Operand {
    p.call(Function::And, &[x, word(0xffff)])
}

/// The high and the low word of a product. Expressions have 32 bits everywhere, so the high one is made of halves.
fn product(p: &mut Expression, x: Operand, by: u32) -> [Operand; 2] {
    let [by_low, by_high] = [word(by & 0xffff), word(by >> 16)];
    let (x_low, x_high) = (low_half(p, x), shifted(p, x, 16));
    let lowest = p.call(Function::Mul, &[x_low, by_low]);
    let carry = shifted(p, lowest, 16);
    let times = |p: &mut Expression, a, b, more| {
        let made = p.call(Function::Mul, &[a, b]);
        p.call(Function::Add, &[made, more])
    };
    let first = times(p, x_low, by_high, carry);
    let first_low = low_half(p, first);
    let second = times(p, x_high, by_low, first_low);
    let (first_high, second_high) = (shifted(p, first, 16), shifted(p, second, 16));
    let sum = p.call(Function::Add, &[first_high, second_high]);
    let high = times(p, x_high, by_high, sum);
    [high, p.call(Function::Mul, &[x, word(by)])]
}

/// The words of a counter.
fn philox(p: &mut Expression, mut key: [u32; 2], mut counter: [Operand; 4]) -> [Operand; 4] {
    for _ in 0..ROUNDS {
        let [high0, low0] = product(p, counter[0], MULTIPLIERS[0]);
        let [high1, low1] = product(p, counter[2], MULTIPLIERS[1]);
        let mut mixed = |high, other, key| {
            let both = p.call(Function::Xor, &[high, other]);
            p.call(Function::Xor, &[both, word(key)])
        };
        counter = [mixed(high1, counter[1], key[0]), low1, mixed(high0, counter[3], key[1]), low0];
        key = [key[0].wrapping_add(STEPS[0]), key[1].wrapping_add(STEPS[1])];
    }
    counter
}

/// A word of at most 24 bits as a float, exactly.
fn float(p: &mut Expression, x: Operand) -> Operand {
    p.cast(Type::Of(DType::F32), x)
}

/// The upper 24 bits of a word as a number from 0 to below 1.
fn unit(p: &mut Expression, x: Operand) -> Operand {
    let upper = shifted(p, x, 8);
    let whole = float(p, upper);
    p.call(Function::Mul, &[whole, f32::powi(2.0, -24).into()])
}

/// A polynomial, its highest coefficient first.
fn polynomial(p: &mut Expression, x: Operand, coefficients: &[f64]) -> Operand {
    let mut sum: Operand = (coefficients[0] as f32).into();
    for coefficient in &coefficients[1..] {
        let scaled = p.call(Function::Mul, &[sum, x]);
        sum = p.call(Function::Add, &[scaled, (*coefficient as f32).into()]);
    }
    sum
}

/// `-2 ln u` for u the upper 24 bits of a word and one, of `2^24`. With u a power of two times v near 1, the logarithm of v is
/// `2 artanh((v - 1) / (v + 1))`, whose series is short.
fn minus_two_log(p: &mut Expression, x: Operand) -> Operand {
    let upper = shifted(p, x, 8);
    let count = p.call(Function::Add, &[upper, word(1)]);
    let whole = float(p, count);
    let mut v = p.call(Function::Mul, &[whole, f32::powi(2.0, -24).into()]);
    let mut exponent: Operand = 0f32.into();
    for step in [16, 8, 4, 2, 1, 0] {
        let (bound, by) = match step {
            0 => (std::f32::consts::FRAC_1_SQRT_2, 1),
            step => (f32::powi(2.0, -step), step),
        };
        let is_below = p.call(Function::Lt, &[v, bound.into()]);
        let raised = p.call(Function::Mul, &[v, f32::powi(2.0, by).into()]);
        let counted = p.call(Function::Add, &[exponent, (by as f32).into()]);
        v = p.call(Function::Select, &[is_below, raised, v]);
        exponent = p.call(Function::Select, &[is_below, counted, exponent]);
    }
    let (below, above) = (p.call(Function::Sub, &[v, 1f32.into()]), p.call(Function::Add, &[v, 1f32.into()]));
    let s = p.call(Function::Div, &[below, above]);
    let square = p.call(Function::Mul, &[s, s]);
    let series = polynomial(p, square, &[1.0 / 11.0, 1.0 / 9.0, 1.0 / 7.0, 1.0 / 5.0, 1.0 / 3.0, 1.0]);
    let artanh = p.call(Function::Mul, &[s, series]);
    let part = p.call(Function::Mul, &[artanh, 4f32.into()]);
    let powers = p.call(Function::Mul, &[exponent, (2.0 * std::f32::consts::LN_2).into()]);
    p.call(Function::Sub, &[powers, part])
}

/// The cosine of a word as a part of a turn: a quadrant, and the sine of an angle within it by its Taylor series.
fn cosine_of_turns(p: &mut Expression, x: Operand) -> Operand {
    let quadrant = shifted(p, x, 30);
    let within = p.call(Function::And, &[x, word((1 << 30) - 1)]);
    let within = shifted(p, within, 6);
    let whole = float(p, within);
    let part = p.call(Function::Mul, &[whole, f32::powi(2.0, -24).into()]);
    let rest = p.call(Function::Sub, &[1f32.into(), part]);
    let low_bit = p.call(Function::And, &[quadrant, word(1)]);
    let is_odd = p.call(Function::Eq, &[low_bit, word(1)]);
    let chosen = p.call(Function::Select, &[is_odd, part, rest]);
    let angle = p.call(Function::Mul, &[chosen, std::f32::consts::FRAC_PI_2.into()]);
    let square = p.call(Function::Mul, &[angle, angle]);
    let coefficients = [-1.0 / 39_916_800.0, 1.0 / 362_880.0, -1.0 / 5040.0, 1.0 / 120.0, -1.0 / 6.0, 1.0];
    let series = polynomial(p, square, &coefficients);
    let sine = p.call(Function::Mul, &[angle, series]);
    let minus = p.call(Function::Neg, &[sine]);
    // Quadrants 1 and 2 are the negative ones.
    let turned = p.call(Function::Add, &[quadrant, word(1)]);
    let second_bit = p.call(Function::And, &[turned, word(2)]);
    let is_negative = p.call(Function::Eq, &[second_bit, word(2)]);
    p.call(Function::Select, &[is_negative, minus, sine])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The generator in plain arithmetic.
    fn words(mut key: [u32; 2], mut counter: [u32; 4]) -> [u32; 4] {
        for _ in 0..ROUNDS {
            let product = |by: u32, x: u32| {
                let all = u64::from(by) * u64::from(x);
                ((all >> 32) as u32, all as u32)
            };
            let (high0, low0) = product(MULTIPLIERS[0], counter[0]);
            let (high1, low1) = product(MULTIPLIERS[1], counter[2]);
            counter = [high1 ^ counter[1] ^ key[0], low1, high0 ^ counter[3] ^ key[1], low0];
            key = [key[0].wrapping_add(STEPS[0]), key[1].wrapping_add(STEPS[1])];
        }
        counter
    }

    #[test]
    fn words_are_those_of_the_authors() {
        // Known answers that come with the authors' library, Random123.
        let known = [
            ([0; 2], [0; 4], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
            ([u32::MAX; 2], [u32::MAX; 4], [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
            (
                [0xa409_3822, 0x299f_31d0],
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
            ),
        ];
        for (key, counter, wants) in known {
            assert_eq!(words(key, counter), wants);
            let mut b = Builder::new();
            let inputs = counter.map(|value| b.float(DType::U32, value.into()).unwrap());
            for (index, want) in wants.into_iter().enumerate() {
                let made = b
                    .map(&inputs, DType::U32, |p, x| philox(p, key, [x[0], x[1], x[2], x[3]])[index])
                    .unwrap();
                assert_eq!(b.ints(made).unwrap(), [i64::from(want)]);
            }
        }
    }

    #[test]
    fn numbers_are_functions_of_the_words() {
        let mut b = Builder::new();
        b.seed(0x1234_5678_9abc_def0);
        let uniform = b.uniform(&[3, 1500], [-2.0, 6.0], None).unwrap();
        let normal = b.normal(&[4500], [1.0, 3.0], None).unwrap();
        let (uniform, normal) = (b.floats(uniform).unwrap(), b.floats(normal).unwrap());
        let key = [0x9abc_def0, 0x1234_5678];
        for place in 0..4500u32 {
            let word = words(key, [place, 0, 0, 0])[0];
            assert_eq!(uniform[place as usize], f64::from(word >> 8) / f64::from(1 << 24) * 8.0 - 2.0);
            let [first, second, ..] = words(key, [place, 0, 1, 0]);
            let u = f64::from((first >> 8) + 1) / f64::from(1 << 24);
            let turn = f64::from(second >> 6) / f64::from(1 << 26);
            let exact = 1.0 + 3.0 * (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * turn).cos();
            let got = normal[place as usize];
            assert!((got - exact).abs() < 2e-6 * (1.0 + exact.abs()), "{place}: {got} {exact}");
        }
        let mean = normal.iter().sum::<f64>() / 4500.0;
        let variance = normal.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 4500.0;
        assert!((mean - 1.0).abs() < 0.15 && (variance - 9.0).abs() < 0.8, "{mean} {variance}");
    }

    #[test]
    fn seeds_of_nodes_repeat_and_streams_do_not() {
        let mut b = Builder::new();
        let mut made = |seed| {
            let id = b.uniform(&[8], [0.0, 1.0], seed).unwrap();
            b.floats(id).unwrap()
        };
        assert_eq!(made(Some(5.0)), made(Some(5.0)));
        assert_ne!(made(Some(5.0)), made(Some(6.0)));
        assert_ne!(made(None), made(None));
        let error = b.uniform(&[1u64 << 33], [0.0, 1.0], None).unwrap_err();
        assert!(error.to_string().contains("2^32"), "{error}");
        let none = b.normal(&[0, 3], [0.0, 1.0], None).unwrap();
        assert_eq!(b.dims(none), [0, 3]);
    }
}
