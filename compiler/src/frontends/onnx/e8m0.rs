//! The type FLOAT8E8M0, which has powers of two alone: scales of blocks. Held in `f32`, the least of them as a denormal, which
//! devices may take for 0.

use halite_ops::{
    DType,
    expression::{Expression, Function, Operand},
};

use super::Result;
use crate::{build::Builder, graph::TensorId};

/// The largest power, and the least one that is a normal `f32`.
const EXPONENTS: [i32; 2] = [127, -126];
/// 2^-127, the least number.
const LEAST_BITS: u32 = 1 << 22;

/// Which of two neighbours a number between becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounding {
    Up,
    Down,
    /// In the middle, the larger one.
    Nearest,
}

impl Rounding {
    /// The one of a name.
    ///
    /// # Errors
    /// Lists those that there are.
    pub(super) fn named(name: &[u8]) -> Result<Self, String> {
        match name {
            b"up" => Ok(Rounding::Up),
            b"down" => Ok(Rounding::Down),
            b"nearest" => Ok(Rounding::Nearest),
            other => {
                let other = String::from_utf8_lossy(other);
                Err(format!("there is no round_mode '{other}'; there are up, down and nearest"))
            }
        }
    }
}

/// The number of a code.
pub(super) fn decode(code: u8) -> f32 {
    match code {
        255 => f32::NAN,
        0 => f32::from_bits(LEAST_BITS),
        code => f32::from_bits(u32::from(code) << 23),
    }
}

/// A power of two that is a normal number, by its bits: `powi` promises no precision.
fn two_to(exponent: i32) -> f32 {
    f32::from_bits(((127 + exponent) as u32) << 23)
}

/// Numbers as powers of two. What is beyond the largest or below the least becomes that, or NaN where it does not saturate; what
/// comes of negative numbers the standard leaves open.
pub(super) fn cast(b: &mut Builder, x: TensorId, rounding: Rounding, saturates: bool) -> Result<TensorId> {
    let x = b.as_f32(x)?;
    b.map(&[x], DType::F32, |p, x| power(p, x[0], rounding, saturates))
}

fn power(p: &mut Expression, x: Operand, rounding: Rounding, saturates: bool) -> Operand {
    let [largest, least_normal] = EXPONENTS.map(two_to);
    let least = f32::from_bits(LEAST_BITS);
    // The largest power of two that is not above, and not below the least normal one.
    let mut below: Operand = least_normal.into();
    for step in [64, 64, 64, 32, 16, 8, 4, 2, 1] {
        let next = p.call(Function::Mul, &[below, two_to(step).into()]);
        let is_reached = p.call(Function::Ge, &[x, next]);
        below = p.call(Function::Select, &[is_reached, next, below]);
    }
    let next = p.call(Function::Mul, &[below, 2f32.into()]);
    let rounded = match rounding {
        Rounding::Down => below,
        Rounding::Up | Rounding::Nearest => {
            let least_up = if rounding == Rounding::Up { 1.0 } else { 1.5 };
            let bound = p.call(Function::Mul, &[below, least_up.into()]);
            let compare = if rounding == Rounding::Up { Function::Gt } else { Function::Ge };
            let is_up = p.call(compare, &[x, bound]);
            p.call(Function::Select, &[is_up, next, below])
        }
    };
    let bound = if rounding == Rounding::Down { least_normal } else { least };
    let compare = if rounding == Rounding::Down { Function::Lt } else { Function::Le };
    let is_least = p.call(compare, &[x, bound.into()]);
    let rounded = p.call(Function::Select, &[is_least, least.into(), rounded]);
    let is_large = p.call(Function::Gt, &[rounded, largest.into()]);
    let is_small = p.call(Function::Lt, &[x, least.into()]);
    let [large, small] = if saturates { [largest, least] } else { [f32::NAN; 2] };
    let limited = p.call(Function::Select, &[is_large, large.into(), rounded]);
    let limited = p.call(Function::Select, &[is_small, small.into(), limited]);
    let is_nan = p.call(Function::IsNan, &[x]);
    p.call(Function::Select, &[is_nan, f32::NAN.into(), limited])
}

#[cfg(test)]
mod tests {
    use halite_ops::Values;

    use super::*;

    fn cast_all(given: &[f64], rounding: Rounding, saturates: bool) -> Vec<f64> {
        let mut b = Builder::new();
        let x = b.values(DType::F32, &[given.len() as u64], &Values::Float(given.to_vec())).unwrap();
        let y = cast(&mut b, x, rounding, saturates).unwrap();
        b.floats(y).unwrap()
    }

    #[test]
    fn powers_stay_and_others_are_rounded() {
        let powers: Vec<f64> = (0..255u8).map(|code| f64::from(decode(code))).collect();
        assert_eq!(powers[127], 1.0);
        for rounding in [Rounding::Up, Rounding::Down, Rounding::Nearest] {
            assert_eq!(cast_all(&powers, rounding, true), powers, "{rounding:?}");
            assert_eq!(cast_all(&powers, rounding, false), powers, "{rounding:?}");
        }
        let between = [1.1, 1.5, 3.9, 5e37, 0.0];
        let least = 2f64.powi(-127);
        assert_eq!(cast_all(&between, Rounding::Up, true), [2.0, 2.0, 4.0, 2f64.powi(126), least]);
        assert_eq!(cast_all(&between, Rounding::Down, true), [1.0, 1.0, 2.0, 2f64.powi(125), least]);
        assert_eq!(cast_all(&between, Rounding::Nearest, true), [1.0, 2.0, 4.0, 2f64.powi(125), least]);
    }

    #[test]
    fn what_is_beyond_is_the_last_or_no_number() {
        let beyond = [f64::INFINITY, 3e38, f64::from(f32::MAX)];
        assert_eq!(cast_all(&beyond, Rounding::Up, true), [2f64.powi(127); 3]);
        let made = cast_all(&[f64::INFINITY, 3e38, 0.0, f64::NAN], Rounding::Nearest, false);
        assert!(made.iter().all(|x| x.is_nan()), "{made:?}");
        assert!(cast_all(&[f64::NAN], Rounding::Up, true)[0].is_nan());
    }
}
