//! Arithmetic of floats of sizes: what is exact stays an expression of whole numbers, of which more is known.

use crate::{
    arena::{Arena, MOST_TERMS},
    arithmetic::quotient,
    atom::Atom,
    current::{self, with},
    float::{Float, FloatFunction},
    poly::Poly,
    size::{Size, extreme},
};

/// Most operations and operands of one.
const MOST: usize = 64;

/// Whole numbers up to this are floats without rounding.
const EXACT: i128 = 1 << 24;

/// The quotient of a whole number below this by another rounds down to what that of whole numbers is.
const EXACT_QUOTIENT: i128 = 1 << 22;

/// Largest denominator of a number that is taken for a fraction.
const MOST_PARTS: u32 = 4096;

/// The largest whole number that becomes a float, or comes of one: modules convert numbers of 32 bits.
const LARGEST: i128 = i32::MAX as i128;

impl Float {
    /// A size as a float; none of one that data decide, or that can be too large to be converted.
    pub fn of(size: Size) -> Option<Float> {
        if size.is_constant() {
            return Some(Float::number(size.signed_value() as f32));
        }
        with(|arena| {
            let poly = size.poly(arena);
            let range = arena.range(&poly);
            let fits = range.low >= -LARGEST && range.high <= LARGEST;
            (fits && !arena.of_data(&poly)).then_some(Float::Of(poly))
        })
    }

    /// What a function gives for floats; none where it can be anything but a finite number, or has become too long.
    pub fn call(function: FloatFunction, operands: Vec<Float>) -> Option<Float> {
        let numbers: Option<Vec<f32>> = operands.iter().map(Float::as_number).collect();
        if let Some(numbers) = numbers {
            return Some(Float::number(function.of(&numbers))).filter(|made| made.as_number().is_some());
        }
        if operands.iter().map(Float::count).sum::<usize>() >= MOST {
            return None;
        }
        entered(|arena| {
            if let Some(known) = whole(arena, function, &operands) {
                return Some(known);
            }
            let made = Float::Call(function, operands);
            let (low, high) = made.range(&|poly| arena.range(poly))?;
            let is_whole =
                matches!(function, FloatFunction::Floor | FloatFunction::Ceil | FloatFunction::Round);
            // What is computed of a whole number can be exact again.
            if is_whole && low >= 0.0 && high <= EXACT as f32 {
                return arena.of_atom(Atom::Truncated(made)).map(Float::Of);
            }
            Some(made)
        })
        .flatten()
    }

    /// The whole number that is left without what is behind the point, as a size; none where a fraction can be negative or too large.
    pub fn truncated(&self) -> Option<Size> {
        if let Some(number) = self.as_number() {
            return (number.abs() < LARGEST as f32).then(|| Size::from(number as i64));
        }
        entered(|arena| {
            if let Float::Of(poly) = self {
                return Some(Size::of_poly(arena, poly.clone()));
            }
            let (low, high) = self.range(&|poly| arena.range(poly))?;
            if low < 0.0 || i128::from(high as i64) > LARGEST {
                return None;
            }
            let poly = arena.of_atom(Atom::Truncated(self.clone()))?;
            Some(Size::of_poly(arena, poly))
        })
        .flatten()
    }

    /// It as a fraction of whole numbers, what its steps round set aside; none where it is no fraction, such as of a root. Which of two is the
    /// smaller is a guard.
    pub fn fraction(&self) -> Option<(Size, Size)> {
        match self {
            Float::Of(poly) => entered(|arena| (Size::of_poly(arena, poly.clone()), 1.into())),
            Float::Number(bits) => number_fraction(f32::from_bits(*bits)),
            Float::Call(function, operands) => {
                let parts: Option<Vec<_>> = operands.iter().map(Float::fraction).collect();
                let parts = parts?;
                let [(a, of_a), (b, of_b)] = parts[..] else { return None };
                let is_less = || a * of_b <= b * of_a;
                match function {
                    FloatFunction::Mul => Some((a * b, of_a * of_b)),
                    FloatFunction::Div if b > 0 => Some((a * of_b, of_a * b)),
                    FloatFunction::Min => Some(if is_less() { (a, of_a) } else { (b, of_b) }),
                    FloatFunction::Max => Some(if is_less() { (b, of_b) } else { (a, of_a) }),
                    _ => None,
                }
            }
        }
    }

    /// The polynomial that it is without rounding, as what it is in lies within the bound.
    fn exact(&self, arena: &Arena, bound: i128) -> Option<Poly> {
        let poly = match self {
            Float::Of(poly) => poly.clone(),
            Float::Number(bits) => {
                let number = f32::from_bits(*bits);
                if number.fract() != 0.0 || number.abs() > EXACT as f32 {
                    return None;
                }
                Poly::constant(number as i64)
            }
            Float::Call(..) => return None,
        };
        let range = arena.range(&poly);
        (range.low >= -bound && range.high <= bound).then_some(poly)
    }

    /// It as a fraction of a whole number by another that is not open, where rounding down or up gives what it does for whole numbers.
    fn quotient(&self, arena: &Arena) -> Option<(Poly, i64)> {
        let Float::Call(function, operands) = self else { return None };
        let [a, b] = &operands[..] else { return None };
        let (of, by) = match (function, a.as_number(), b.as_number()) {
            (FloatFunction::Div, _, Some(by)) => (a, by),
            // What is divided by a power of two.
            (FloatFunction::Mul, _, Some(by)) if by.to_bits().trailing_zeros() >= 23 => (a, 1.0 / by),
            (FloatFunction::Mul, Some(by), _) if by.to_bits().trailing_zeros() >= 23 => (b, 1.0 / by),
            _ => return None,
        };
        let whole = by.fract() == 0.0 && (1.0..EXACT_QUOTIENT as f32).contains(&by);
        let of = of.exact(arena, EXACT_QUOTIENT).filter(|of| whole && arena.range(of).low >= 0)?;
        Some((of, by as i64))
    }
}

/// The fraction with the smallest denominator that a number of single precision is, above 0.
fn number_fraction(number: f32) -> Option<(Size, Size)> {
    (1..=MOST_PARTS).find_map(|parts| {
        let of = (f64::from(number) * f64::from(parts)).round();
        let same = (of / f64::from(parts)) as f32 == number;
        (same && (1.0..1e9).contains(&of)).then(|| (Size::from(of as u64), Size::from(parts)))
    })
}

/// Works with the trace that is entered, if one is.
fn entered<T>(work: impl FnOnce(&mut Arena) -> T) -> Option<T> {
    current::entered().map(|arena| work(&mut arena.lock()))
}

/// What a function gives for operands that are whole numbers, where nothing is rounded: the same computation on sizes, of which more
/// is known.
fn whole(arena: &mut Arena, function: FloatFunction, operands: &[Float]) -> Option<Float> {
    let made = match (function, operands) {
        (FloatFunction::Floor | FloatFunction::Ceil | FloatFunction::Round, [a]) => {
            if let (Float::Of(poly), Some(_)) = (a, a.exact(arena, LARGEST)) {
                return Some(Float::Of(poly.clone()));
            }
            let (of, by) = a.quotient(arena)?;
            let add = match function {
                FloatFunction::Floor => 0,
                FloatFunction::Ceil => by - 1,
                _ => return None,
            };
            let of = of.plus(&Poly::constant(add))?;
            quotient(arena, &of, &Poly::constant(by))?
        }
        (_, [a, b]) => {
            let (a, b) = (a.exact(arena, EXACT)?, b.exact(arena, EXACT)?);
            match function {
                FloatFunction::Add => a.plus(&b)?,
                FloatFunction::Sub => a.minus(&b)?,
                FloatFunction::Mul => a.times(&b, MOST_TERMS)?,
                FloatFunction::Min => extreme(arena, &a, &b, true)?,
                FloatFunction::Max => extreme(arena, &a, &b, false)?,
                _ => return None,
            }
        }
        _ => return None,
    };
    let range = arena.range(&made);
    (range.low >= -EXACT && range.high <= EXACT).then_some(Float::Of(made))
}
