//! The value of a function on the host, in `f64` and `i128`: what kernels are compared with, and what constants are
//! folded with. Simple on purpose; shares nothing with the code that is emitted.

use super::{
    function::{Function, Type},
    program::{Expression, Node, Operand, Scalar},
    text::range,
};
use crate::DType;

/// The results of all nodes for one element of each input; `entry` gives the entry of a table for a number, whatever it is.
pub fn evaluate(
    expression: &Expression,
    inputs: &[Scalar],
    entry: &dyn Fn(usize, i128) -> Scalar,
) -> Vec<Scalar> {
    let mut results: Vec<Scalar> = Vec::with_capacity(expression.nodes.len());
    for node in &expression.nodes {
        if let (Function::Lookup, [number, Operand::Table(table)]) = (node.function, &node.operands[..]) {
            results.push(entry(*table, value(*number, inputs, &results).whole()));
            continue;
        }
        let operands: Vec<Scalar> = node.operands.iter().map(|o| value(*o, inputs, &results)).collect();
        results.push(apply(node, &operands));
    }
    results
}

/// The value of an operand.
pub fn value(operand: Operand, inputs: &[Scalar], results: &[Scalar]) -> Scalar {
    match operand {
        Operand::Input(i) => inputs[i],
        Operand::Node(i) => results[i],
        Operand::Constant(scalar) => scalar,
        // Only look-ups have tables, and no value is one.
        Operand::Table(_) => Scalar::Float(f64::NAN),
    }
}

/// A node's result; its operands have the types that [`Function::result`] accepts.
pub(crate) fn apply(node: &Node, operands: &[Scalar]) -> Scalar {
    match (node.function, operands) {
        (Function::Cast, [x]) => cast(*x, node.to.unwrap_or_else(|| x.type_of())),
        (Function::Select, [condition, a, b]) => {
            if *condition == Scalar::Bool(true) {
                *a
            } else {
                *b
            }
        }
        (Function::Quantize, [Scalar::Float(x), Scalar::Float(scale), Scalar::Int(zero, dtype)]) => {
            let quotient = DType::F32.round(x / scale).round_ties_even();
            cast(Scalar::Float(quotient + *zero as f64), Type::Of(*dtype))
        }
        (Function::Dequantize, [Scalar::Int(x, _), Scalar::Float(scale), Scalar::Int(zero, _)]) => {
            single(f64::from((x - zero) as i32) * scale)
        }
        (function, [Scalar::Float(x)]) => float1(function, *x),
        (function, [Scalar::Float(a), Scalar::Float(b)]) => float2(function, *a, *b),
        (Function::Clip, [Scalar::Float(x), Scalar::Float(low), Scalar::Float(high)]) => {
            Scalar::Float(least(most(*x, *low), *high))
        }
        (_, [Scalar::Float(x), Scalar::Float(alpha), Scalar::Float(beta)]) => {
            single(least(most(alpha * x + beta, 0.0), 1.0))
        }
        (Function::Not, [Scalar::Bool(x)]) => Scalar::Bool(!x),
        (function, [Scalar::Bool(a), Scalar::Bool(b)]) => Scalar::Bool(match function {
            Function::And => *a && *b,
            Function::Or => *a || *b,
            Function::Eq => a == b,
            _ => a != b,
        }),
        (Function::Clip, [Scalar::Int(_, dtype), ..]) => {
            let [x, low, high] = [0, 1, 2].map(|i| operands[i].whole());
            wrapped(x.max(low).min(high), *dtype)
        }
        (function, [x @ Scalar::Int(_, dtype)]) => wrapped(int1(function, x.whole()), *dtype),
        (function, [a @ Scalar::Int(_, dtype), b]) => int2(function, a.whole(), b.whole(), *dtype),
        _ => Scalar::Float(f64::NAN),
    }
}

/// Rounded as kernels hold it.
fn single(value: f64) -> Scalar {
    Scalar::Float(DType::F32.round(value))
}

fn wrapped(value: i128, dtype: DType) -> Scalar {
    Scalar::Int(wrap(value, dtype), dtype)
}

fn wrap(value: i128, dtype: DType) -> i64 {
    match dtype {
        DType::I16 => (value as i16).into(),
        DType::U16 => (value as u16).into(),
        DType::I8 => (value as i8).into(),
        DType::U8 => (value as u8).into(),
        DType::I32 => (value as i32).into(),
        DType::U32 => (value as u32).into(),
        _ => value as i64,
    }
}

/// Conversion of a value.
pub(crate) fn cast(x: Scalar, to: Type) -> Scalar {
    let number = if let Scalar::Float(value) = x { value } else { x.whole() as f64 };
    match (x, to) {
        (Scalar::Bool(_), Type::Bool) => x,
        (Scalar::Int(value, _), Type::Bool) => Scalar::Bool(value != 0),
        (_, Type::Bool) => Scalar::Bool(number != 0.0),
        // No cast is to a table.
        (_, Type::Table) => x,
        (_, Type::Of(dtype)) if dtype.is_float() => single(dtype.round(number)),
        (Scalar::Int(..), Type::Of(dtype)) => wrapped(x.whole(), dtype),
        (_, Type::Of(dtype)) => {
            let (least, most) = range(dtype);
            // `as` goes towards zero, saturates, and makes 0 of NaN.
            wrapped((number as i128).clamp(least, most), dtype)
        }
    }
}

fn most(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}

fn least(a: f64, b: f64) -> f64 {
    -most(-a, -b)
}

fn gelu_tanh(x: f64) -> f64 {
    let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3));
    x / 2.0 * (1.0 + inner.tanh())
}

fn float1(function: Function, x: f64) -> Scalar {
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let softplus = |x: f64| x.max(0.0) + (-x.abs()).exp().ln_1p();
    single(match function {
        Function::IsNan => return Scalar::Bool(x.is_nan()),
        Function::IsInf => return Scalar::Bool(x.is_infinite()),
        Function::Abs => x.abs(),
        Function::Acos => x.acos(),
        Function::Acosh => x.acosh(),
        Function::Asin => x.asin(),
        Function::Asinh => x.asinh(),
        Function::Atan => x.atan(),
        Function::Atanh => x.atanh(),
        Function::Ceil => x.ceil(),
        Function::Cos => x.cos(),
        Function::Cosh => x.cosh(),
        Function::Erf => libm::erf(x),
        Function::Exp => x.exp(),
        Function::Floor => x.floor(),
        Function::Gelu => x / 2.0 * (1.0 + libm::erf(x / 2f64.sqrt())),
        Function::GeluTanh => gelu_tanh(x),
        Function::HardSwish => x * (x / 6.0 + 0.5).clamp(0.0, 1.0),
        Function::Log => x.ln(),
        Function::Mish => x * if x.is_nan() { x } else { softplus(x).tanh() },
        Function::Neg => -x,
        Function::Reciprocal => 1.0 / x,
        Function::Relu => most(x, 0.0),
        Function::Round => x.round_ties_even(),
        Function::Rsqrt => 1.0 / x.sqrt(),
        Function::Selu => {
            let (alpha, gamma) = (1.673_263_242_354_377_2, 1.050_700_987_355_480_5);
            gamma * if x > 0.0 { x } else { alpha * x.exp_m1() }
        }
        Function::Sigmoid => sigmoid(x),
        Function::Sign => {
            if x == 0.0 || x.is_nan() {
                x
            } else {
                x.signum()
            }
        }
        Function::Silu => x * sigmoid(x),
        Function::Sin => x.sin(),
        Function::Sinh => x.sinh(),
        Function::Softplus => {
            if x.is_nan() {
                x
            } else {
                softplus(x)
            }
        }
        Function::Sqrt => x.sqrt(),
        Function::Tan => x.tan(),
        _ => x.tanh(),
    })
}

fn float2(function: Function, a: f64, b: f64) -> Scalar {
    single(match function {
        Function::Eq => return Scalar::Bool(a == b),
        Function::Ne => return Scalar::Bool(a != b),
        Function::Lt => return Scalar::Bool(a < b),
        Function::Le => return Scalar::Bool(a <= b),
        Function::Gt => return Scalar::Bool(a > b),
        Function::Ge => return Scalar::Bool(a >= b),
        Function::Add => a + b,
        Function::Sub => a - b,
        Function::Mul => a * b,
        Function::Div => a / b,
        Function::Elu if a > 0.0 => a,
        Function::Elu => b * a.exp_m1(),
        Function::Prelu if a < 0.0 => a * b,
        Function::Prelu => a,
        Function::Max => most(a, b),
        Function::Min => least(a, b),
        Function::Pow => a.powf(b),
        Function::Fmod => a % b,
        _ => {
            let rest = a % b;
            if rest != 0.0 && (rest < 0.0) != (b < 0.0) { rest + b } else { rest }
        }
    })
}

fn int1(function: Function, x: i128) -> i128 {
    match function {
        Function::Abs => x.abs(),
        Function::Neg => -x,
        Function::Not => !x,
        Function::Relu => x.max(0),
        _ => x.signum(),
    }
}

/// By squaring; of a negative exponent what integers there are among the results, and 0 of others.
fn int_power(a: i128, b: i128) -> i128 {
    if b < 0 {
        return if a.abs() == 1 { int_power(a, -b) } else { 0 };
    }
    let (mut power, mut base, mut rest) = (1i128, a, b);
    while rest > 0 {
        if rest % 2 == 1 {
            power = power.wrapping_mul(base);
        }
        (base, rest) = (base.wrapping_mul(base), rest / 2);
    }
    power
}

fn int2(function: Function, a: i128, b: i128, dtype: DType) -> Scalar {
    let bits = i128::from(dtype.size() * 8);
    let value = match function {
        Function::Eq => return Scalar::Bool(a == b),
        Function::Ne => return Scalar::Bool(a != b),
        Function::Lt => return Scalar::Bool(a < b),
        Function::Le => return Scalar::Bool(a <= b),
        Function::Gt => return Scalar::Bool(a > b),
        Function::Ge => return Scalar::Bool(a >= b),
        Function::Add => a + b,
        Function::Sub => a - b,
        Function::Mul => a.wrapping_mul(b),
        Function::Max => a.max(b),
        Function::Min => a.min(b),
        Function::And => a & b,
        Function::Or => a | b,
        Function::Xor => a ^ b,
        // Signed types count a negative amount as a large one, as the bits of an unsigned number.
        Function::Shl if (0..bits).contains(&b) => a << b,
        Function::Shl => 0,
        Function::Shr if (0..bits).contains(&b) => a >> b,
        Function::Shr => a >> 127,
        Function::Pow => int_power(a, b),
        _ if b == 0 => 0,
        Function::Div => a / b,
        Function::Fmod => a % b,
        _ => {
            let rest = a % b;
            if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest }
        }
    };
    wrapped(value, dtype)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(text: &str, inputs: &[Scalar]) -> Scalar {
        let expression: Expression = text.parse().unwrap();
        // Entries that tell which was asked for.
        let entry = |table: usize, number: i128| Scalar::Int(number as i64 * 10 + table as i64, DType::I8);
        let results = evaluate(&expression, inputs, &entry);
        value(expression.outputs[0].value, inputs, &results)
    }

    #[test]
    fn values() {
        let i8 = |v| Scalar::Int(v, DType::I8);
        assert_eq!(run("add $0 $1 -> %0:i8", &[i8(127), i8(1)]), i8(-128));
        assert_eq!(run("div $0 $1 -> %0:i8", &[i8(-128), i8(-1)]), i8(-128));
        assert_eq!(run("mod $0 $1 -> %0:i8", &[i8(-7), i8(3)]), i8(2));
        assert_eq!(run("fmod $0 $1 -> %0:i8", &[i8(-7), i8(3)]), i8(-1));
        assert_eq!(run("div $0 $1 -> %0:i8", &[i8(5), i8(0)]), i8(0));
        assert_eq!(run("quantize:i8 $0 0.5 1i8 -> %0:i8", &[Scalar::Float(0.25)]), i8(1));
        assert_eq!(run("quantize:i8 $0 0.5 1i8 -> %0:i8", &[Scalar::Float(0.75)]), i8(3));
        assert_eq!(run("quantize:i8 $0 0.5 1i8 -> %0:i8", &[Scalar::Float(1e9)]), i8(127));
        assert_eq!(run("cast:i8 $0 -> %0:i8", &[Scalar::Float(f64::NAN)]), i8(0));
        assert_eq!(run("relu $0 -> %0:f32", &[Scalar::Float(-3.0)]), Scalar::Float(0.0));
        assert_eq!(run("cast:i32 $0; lookup:i8 %0 @2 -> %1:i8", &[i8(-7)]), i8(-68));
    }

    /// The integers of the standard library are another way to the same.
    #[test]
    fn integers_are_those_of_the_language() {
        let of = |text: &str, a: Scalar, b: Scalar| match run(text, &[a, b]) {
            Scalar::Int(value, _) => value,
            other => panic!("{other:?} is no integer"),
        };
        let values = [0, 1, 2, 3, 7, 31, 1000, 65_535, i64::MAX, i64::MIN, -1, -2, -5];
        for (a, b) in values.iter().flat_map(|a| values.map(|b| (*a, b))) {
            let (x, y) = (a as u64, b as u64);
            let u64s = |text: &str| of(text, Scalar::Int(a, DType::U64), Scalar::Int(b, DType::U64)) as u64;
            assert_eq!(u64s("add $0 $1 -> %0:u64"), x.wrapping_add(y));
            assert_eq!(u64s("mul $0 $1 -> %0:u64"), x.wrapping_mul(y));
            assert_eq!(u64s("div $0 $1 -> %0:u64"), x.checked_div(y).unwrap_or(0));
            assert_eq!(u64s("mod $0 $1 -> %0:u64"), x.checked_rem(y).unwrap_or(0));
            assert_eq!(u64s("max $0 $1 -> %0:u64"), x.max(y));
            assert_eq!(u64s("shr $0 $1 -> %0:u64"), if y < 64 { x >> y } else { 0 });
            let short = Scalar::Int((a as i16).into(), DType::I16);
            let small = |text: &str| of(text, short, Scalar::Int(b, DType::I16));
            if let Ok(exponent) = u32::try_from(b) {
                let power = Scalar::Int(i64::from(exponent), DType::I64);
                assert_eq!(
                    of("pow $0 $1 -> %0:i64", Scalar::Int(a, DType::I64), power),
                    a.wrapping_pow(exponent)
                );
                assert_eq!(small("pow $0 $1 -> %0:i16"), i64::from((a as i16).wrapping_pow(exponent)));
            }
        }
    }

    #[test]
    fn f64_is_computed_as_f32() {
        let third = Scalar::Float(1.0 / 3.0);
        assert_eq!(run("cast:f64 $0 -> %0:f64", &[third]), Scalar::Float(f64::from(1.0f32 / 3.0)));
        let wide = Scalar::Int(-1, DType::U64);
        assert_eq!(run("cast:f64 $0 -> %0:f64", &[wide]), Scalar::Float(2f64.powi(64)));
        assert_eq!(run("cast:u64 $0 -> %0:u64", &[Scalar::Float(2f64.powi(70))]), wide);
        assert_eq!(run("cast:u16 $0 -> %0:u16", &[Scalar::Float(-3.0)]), Scalar::Int(0, DType::U16));
    }
}
