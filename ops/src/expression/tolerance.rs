//! How far a kernel's value of an expression may be from the host's: a running error bound along the nodes (Higham,
//! Accuracy and Stability of Numerical Algorithms, section 3.3).
//!
//! The own errors of functions are those of the Vulkan specification's tables "Precision of Core SPIR-V Instructions" and
//! "Precision of GLSL.std.450 Instructions" (addition and multiplication correctly rounded, division 2.5 ULP, `Exp`
//! 3 + 2|x| ULP, `InverseSqrt` 2 ULP, `Sqrt` that of `1 / InverseSqrt`), carried through the formulas of `float`.

use super::{
    function::{Function, Type},
    program::{Expression, Node, Operand, Scalar},
};
use crate::{DType, Tolerance};

/// Distance from 1 to the next `f32`: one unit in the last place, or a rounding of the kernel and one of the host.
const ULP: f64 = 1.0 / 8_388_608.0;

/// What is known of a value: `|value| <= most`, and the kernel is off by at most `absolute + relative * |value|`.
#[derive(Clone, Copy, Debug)]
struct Bound {
    most: f64,
    /// `|value| >= least`; only known of constants.
    least: f64,
    absolute: f64,
    relative: f64,
}

impl Bound {
    fn exact(most: f64) -> Bound {
        Bound { most, least: 0.0, absolute: 0.0, relative: 0.0 }
    }

    /// A value with an own error of `ulps` and one of `absolute`.
    fn of(most: f64, absolute: f64, ulps: f64) -> Bound {
        Bound { most, least: 0.0, absolute, relative: ulps * ULP }
    }

    /// The largest error.
    fn error(&self) -> f64 {
        times(self.relative, self.most) + self.absolute
    }
}

/// A product where nothing times anything is nothing.
fn times(a: f64, b: f64) -> f64 {
    if a == 0.0 || b == 0.0 { 0.0 } else { a * b }
}

/// How far outputs may be off when each input, and each entry of a table, is at most as large as its magnitude; the largest of
/// all outputs.
pub fn tolerance(expression: &Expression, magnitudes: &[f64], tables: &[f64]) -> Tolerance {
    let mut bounds: Vec<Bound> = Vec::new();
    let of = |operand: Operand, bounds: &[Bound]| match operand {
        Operand::Input(i) => Bound::exact(magnitudes[i]),
        Operand::Node(i) => bounds[i],
        Operand::Constant(Scalar::Float(value)) => Bound { least: value.abs(), ..Bound::exact(value.abs()) },
        Operand::Constant(scalar @ Scalar::Int(..)) => Bound::exact((scalar.whole() as f64).abs()),
        Operand::Constant(Scalar::Bool(_)) => Bound::exact(1.0),
        Operand::Table(i) => Bound::exact(tables[i]),
    };
    for node in &expression.nodes {
        let operands: Vec<Bound> = node.operands.iter().map(|o| of(*o, &bounds)).collect();
        bounds.push(bound(node, &operands));
    }
    let mut largest = Tolerance::EXACT;
    for output in expression.outputs.iter().filter(|output| output.dtype.is_float()) {
        let bound = of(output.value, &bounds);
        // An f64 was an f32, which may have been flushed.
        let flushed = output.dtype.min_normal().max(DType::F32.min_normal());
        largest.absolute = largest.absolute.max(bound.absolute + flushed);
        largest.relative = largest.relative.max(bound.relative + output.dtype.epsilon());
    }
    largest
}

fn bound(node: &Node, operands: &[Bound]) -> Bound {
    match *operands {
        [x] => one(node, x),
        [_, entries] if node.function == Function::Lookup => entries,
        [a, b] => two(node.function, a, b),
        [x, scale, _] if node.function == Function::Dequantize => {
            // A tiny scale may be flushed.
            Bound::of(2.0 * x.most * scale.most, 2.0 * x.most * DType::F32.min_normal(), 2.0)
        }
        [x, alpha, beta] if node.function == Function::HardSigmoid => {
            let line = times(alpha.most, x.most) + beta.most;
            Bound::of(1.0, alpha.most * x.error() + 2.0 * ULP * line, 1.0)
        }
        [x, low, high] if node.function == Function::Clip => worst(&[x, low, high]),
        [_, a, b] => worst(&[a, b]),
        _ => Bound::exact(f64::INFINITY),
    }
}

/// Of a value that is one of several, or lies between them.
fn worst(bounds: &[Bound]) -> Bound {
    let most = |of: fn(&Bound) -> f64| bounds.iter().map(of).fold(0.0, f64::max);
    Bound {
        most: most(|b| b.most),
        least: 0.0,
        absolute: most(|b| b.absolute),
        relative: most(|b| b.relative),
    }
}

fn one(node: &Node, x: Bound) -> Bound {
    let error = x.error();
    // What a function with a pole makes of a value with an absolute error.
    let pole = if x.absolute > 0.0 { f64::INFINITY } else { 0.0 };
    // What a function with an infinite slope at the end of its domain makes of an error there, as the root does at 0.
    let rooted = 1.2 * (2.0 * error).sqrt();
    match node.function {
        Function::Abs | Function::Neg | Function::Relu => x,
        Function::Cast => match node.to {
            Some(Type::Of(dtype)) if dtype.is_float() => Bound {
                absolute: x.absolute + if dtype.size() >= 4 { 0.0 } else { dtype.min_normal() },
                relative: x.relative + dtype.epsilon() + ULP,
                ..x
            },
            _ => Bound::exact(x.most),
        },
        Function::Acos => Bound::of(std::f64::consts::PI, rooted, 20.0),
        Function::Acosh => Bound::of(x.most.max(1.0).ln() + 1.0, rooted, 24.0),
        Function::Asin => Bound::of(std::f64::consts::FRAC_PI_2, rooted, 20.0),
        Function::Asinh => Bound::of(x.most.max(1.0).ln() + 1.0, error, 24.0),
        Function::Atan => Bound::of(std::f64::consts::FRAC_PI_2, error, 10.0),
        Function::Atanh => Bound::of(f64::INFINITY, if error > 0.0 { f64::INFINITY } else { 0.0 }, 24.0),
        Function::Ceil | Function::Floor | Function::Round => {
            Bound::of(x.most + 1.0, if error > 0.0 { 1.0 + error } else { 0.0 }, 0.0)
        }
        // What the reduction of larger ones loses may be all of it.
        Function::Cos | Function::Sin => {
            let lost = if x.most > 3e6 { 2.0 } else { 0.0 };
            Bound::of(1.0, (error + 3.0 * ULP + lost).min(2.0), 2.0)
        }
        Function::Cosh | Function::Sinh => {
            Bound::of(x.most.cosh(), 0.0, 16.0 + 2.0 * x.most.min(104.0) + 2.0 * error / ULP)
        }
        // What the reduction loses may be all of it.
        Function::Tan => {
            let lost = if x.most > 10_000.0 { f64::INFINITY } else { 0.0 };
            Bound::of(f64::INFINITY, 10.0 * error + 4.0 * ULP + lost, 12.0)
        }
        Function::Erf => Bound::of(1.0, 1.13 * error, 4.0),
        Function::Exp => Bound::of(x.most.exp(), 0.0, 4.0 + 2.0 * x.most + error / ULP),
        Function::Gelu => Bound::of(x.most, 1.13 * error + 3.0 * x.most * ULP, 4.0),
        Function::GeluTanh => Bound::of(x.most, 1.13 * error + 6.0 * x.most * ULP, 4.0),
        Function::HardSwish => {
            Bound::of(x.most, (1.0 + x.most / 3.0) * error + 4.0 * ULP * x.most * (1.0 + x.most / 6.0), 4.0)
        }
        Function::Log => Bound::of(x.most.max(1.0).ln().max(104.0), pole + x.relative, 4.0),
        Function::Mish => Bound::of(x.most, 1.1 * error, 16.0 + 4.0 * x.most.min(104.0)),
        Function::Reciprocal => Bound::of(f64::INFINITY, pole, 4.0 + x.relative / ULP),
        Function::Rsqrt => Bound::of(f64::INFINITY, pole, 3.0 + x.relative / ULP),
        Function::Selu => Bound::of(1.76 * x.most.max(1.0), 1.76 * error, 20.0),
        Function::Sigmoid => Bound::of(1.0, error / 4.0, 8.0 + 2.0 * x.most.min(104.0)),
        Function::Silu => Bound::of(x.most, 1.1 * error, 8.0 + 2.0 * x.most.min(104.0)),
        Function::Softplus => Bound::of(x.most + 1.0, error, 12.0 + 2.0 * x.most.min(104.0)),
        Function::Sqrt => Bound::of(x.most.sqrt(), x.absolute.sqrt(), 5.0 + x.relative / ULP),
        Function::Tanh => Bound::of(1.0, error, 9.0),
        _ => Bound::exact(x.most.max(1.0)),
    }
}

fn two(function: Function, a: Bound, b: Bound) -> Bound {
    let errors = a.error() + b.error();
    match function {
        Function::Add | Function::Sub => Bound::of(a.most + b.most, errors, 1.0),
        Function::Mul => Bound {
            most: times(a.most, b.most),
            least: 0.0,
            absolute: times(a.absolute, b.most) + times(b.absolute, a.most),
            relative: a.relative + b.relative + ULP,
        },
        Function::Div => {
            let most = if b.least > 0.0 { a.most / b.least } else { f64::INFINITY };
            let absolute = a.absolute + times(b.absolute, most);
            Bound {
                most,
                least: 0.0,
                absolute: if absolute > 0.0 { absolute / b.least } else { 0.0 },
                relative: a.relative + b.relative + 4.0 * ULP,
            }
        }
        Function::Elu => Bound::of(a.most.max(b.most), a.error() * b.most.max(1.0), 20.0),
        Function::Prelu => {
            let scale = b.most.max(1.0);
            Bound::of(a.most * scale, a.error() * scale, 2.0 + b.relative / ULP)
        }
        Function::Max | Function::Min => worst(&[a, b]),
        // The result is e^y; where it is finite and not 0, |y| < 104. The logarithm is off by 4 ULP.
        Function::Pow => {
            let y = (104.0 * b.most).min(104.0);
            let own = 4.0 + (2.0 + 4.0 + 2.0) * y;
            let pole = if a.absolute + b.absolute > 0.0 { f64::INFINITY } else { 0.0 };
            let carried = times(b.most, a.relative) + times(b.relative, y);
            Bound::of(f64::INFINITY, pole, own + carried / ULP)
        }
        Function::Fmod | Function::Mod => {
            Bound::of(a.most.min(b.most), if errors > 0.0 { b.most + errors } else { 0.0 }, 1.0)
        }
        _ => Bound::exact(a.most.max(b.most).max(1.0)),
    }
}
