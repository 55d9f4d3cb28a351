//! What float operations should compute: exactly where IEEE 754 says so, else within some units in the last place of double
//! precision.

use halite_vm::isa::Op;

/// The bits of a result by those of the operands.
pub type Exactly = Box<dyn Fn(&[u64]) -> u64 + Send + Sync>;

/// What a float operation should give.
pub enum Rule {
    /// These bits by those of the operands.
    Exact(Exactly),
    /// A number near this one, by the numbers of the operands, and how many units in the last place it may be off.
    Near(fn(&[f64]) -> f64, f64),
}

/// How far a function of the C library may be off, in units in the last place.
const SLACK: f64 = 4.0;
/// How far the series for `erf` may be off.
const SERIES_SLACK: f64 = 16.0;

/// Operations that are exact, for one width.
macro_rules! exact {
    ($name:ident, $float:ty, $bits:ty, [$($op:ident),*]) => {
        fn $name(op: Op) -> Option<Exactly> {
            type F = $float;
            #[allow(non_camel_case_types, reason = "names of operations, once for each width")]
            enum Here { $($op),* }
            let v = |x: u64| F::from_bits(x as $bits);
            let b = |x: F| u64::from(x.to_bits());
            let one = |f: fn(F) -> F| -> Option<Exactly> {
                Some(Box::new(move |x| b(f(v(x[0])))))
            };
            let two = |f: fn(F, F) -> F| -> Option<Exactly> {
                Some(Box::new(move |x| b(f(v(x[0]), v(x[1])))))
            };
            let test = |f: fn(F, F) -> bool| -> Option<Exactly> {
                Some(Box::new(move |x| u64::from(f(v(x[0]), v(*x.last().unwrap_or(&0))))))
            };
            let here = match op {
                $(Op::$op => Here::$op,)*
                _ => return None,
            };
            table!(here, F, one, two, test, v, b, [$($op),*])
        }
    };
}

/// The table that both widths share; the names come in the order of the list below.
macro_rules! table {
    ($here:ident, $f:ident, $one:ident, $two:ident, $test:ident, $v:ident, $b:ident,
     [$zero:ident, $constant:ident, $add:ident, $sub:ident, $mul:ident, $div:ident, $rem:ident, $fma:ident, $abs:ident,
      $neg:ident, $ceil:ident, $floor:ident, $round:ident, $even:ident, $sqrt:ident, $min:ident, $max:ident, $eqo:ident,
      $equ:ident, $neo:ident, $neu:ident, $lto:ident, $ltu:ident, $lteo:ident, $lteu:ident, $nan:ident]) => {
        match $here {
            Here::$zero => Some(Box::new(|_| 0)),
            Here::$constant => Some(Box::new(|x| x[0])),
            Here::$add => $two(|a, b| a + b),
            Here::$sub => $two(|a, b| a - b),
            Here::$mul => $two(|a, b| a * b),
            Here::$div => $two(|a, b| a / b),
            Here::$rem => $two(|a, b| {
                // The remainder to the nearest multiple, even on a tie. The first step is exact.
                if !a.is_finite() || b.is_nan() || b == 0.0 {
                    return $f::NAN;
                }
                if b.is_infinite() {
                    return a;
                }
                let (r, size) = (a % b, b.abs());
                let (over, odd) = (r.abs() > size - r.abs(), ((a - r) / b) % 2.0 != 0.0);
                let tie = r.abs() == size - r.abs();
                if over || tie && odd { if r > 0.0 { r - size } else { r + size } } else { r }
            }),
            // Rounded twice, as the original does it.
            Here::$fma => Some(Box::new(move |x| $b($v(x[0]) * $v(x[1]) + $v(x[2])))),
            Here::$abs => $one($f::abs),
            Here::$neg => $one(|a| -a),
            Here::$ceil => $one($f::ceil),
            Here::$floor => $one($f::floor),
            Here::$round => $one($f::round),
            Here::$even => $one($f::round_ties_even),
            Here::$sqrt => $one($f::sqrt),
            // The first operand wins when there is no order.
            Here::$min => $two(|a, b| if b < a { b } else { a }),
            Here::$max => $two(|a, b| if b > a { b } else { a }),
            Here::$eqo => $test(|a, b| a == b),
            Here::$equ => $test(|a, b| a == b || a.is_nan() || b.is_nan()),
            // True without an order in both forms: programs rely on what the original does.
            Here::$neo | Here::$neu => $test(|a, b| a != b),
            Here::$lto => $test(|a, b| a < b),
            Here::$ltu => $test(|a, b| a < b || a.is_nan() || b.is_nan()),
            Here::$lteo => $test(|a, b| a <= b),
            Here::$lteu => $test(|a, b| a <= b || a.is_nan() || b.is_nan()),
            Here::$nan => $test(|a, _| a.is_nan()),
        }
    };
}

exact!(
    exact32,
    f32,
    u32,
    [
        ConstF32Zero,
        ConstF32,
        AddF32,
        SubF32,
        MulF32,
        DivF32,
        RemF32,
        FmaF32,
        AbsF32,
        NegF32,
        CeilF32,
        FloorF32,
        RoundF32,
        RoundF32Even,
        SqrtF32,
        MinF32,
        MaxF32,
        CmpEqF32O,
        CmpEqF32U,
        CmpNeF32O,
        CmpNeF32U,
        CmpLtF32O,
        CmpLtF32U,
        CmpLteF32O,
        CmpLteF32U,
        CmpNanF32
    ]
);
exact!(
    exact64,
    f64,
    u64,
    [
        ConstF64Zero,
        ConstF64,
        AddF64,
        SubF64,
        MulF64,
        DivF64,
        RemF64,
        FmaF64,
        AbsF64,
        NegF64,
        CeilF64,
        FloorF64,
        RoundF64,
        RoundF64Even,
        SqrtF64,
        MinF64,
        MaxF64,
        CmpEqF64O,
        CmpEqF64U,
        CmpNeF64O,
        CmpNeF64U,
        CmpLtF64O,
        CmpLtF64U,
        CmpLteF64O,
        CmpLteF64U,
        CmpNanF64
    ]
);

/// The rule of an operation, if it is one of floats.
pub fn rule(op: Op) -> Option<Rule> {
    let exact = exact32(op).or_else(|| exact64(op)).or_else(|| convert(op));
    exact.map(Rule::Exact).or_else(|| near(op))
}

fn near(op: Op) -> Option<Rule> {
    let formula: fn(&[f64]) -> f64 = match op {
        Op::AtanF32 | Op::AtanF64 => |x| x[0].atan(),
        Op::Atan2F32 | Op::Atan2F64 => |x| x[0].atan2(x[1]),
        Op::CosF32 | Op::CosF64 => |x| x[0].cos(),
        Op::SinF32 | Op::SinF64 => |x| x[0].sin(),
        Op::ExpF32 | Op::ExpF64 => |x| x[0].exp(),
        Op::Exp2F32 | Op::Exp2F64 => |x| x[0].exp2(),
        Op::Expm1F32 | Op::Expm1F64 => |x| x[0].exp_m1(),
        Op::LogF32 | Op::LogF64 => |x| x[0].ln(),
        Op::Log10F32 | Op::Log10F64 => |x| x[0].log10(),
        Op::Log1pF32 | Op::Log1pF64 => |x| x[0].ln_1p(),
        Op::Log2F32 | Op::Log2F64 => |x| x[0].log2(),
        Op::PowF32 | Op::PowF64 => |x| x[0].powf(x[1]),
        Op::RsqrtF32 | Op::RsqrtF64 => |x| 1.0 / x[0].sqrt(),
        Op::TanhF32 | Op::TanhF64 => |x| x[0].tanh(),
        Op::ErfF32 | Op::ErfF64 => |x| erf(x[0]),
        _ => return None,
    };
    let slack = if matches!(op, Op::ErfF32 | Op::ErfF64) { SERIES_SLACK } else { SLACK };
    Some(Rule::Near(formula, slack))
}

/// Abramowitz and Stegun, 7.1.6: a series of positive terms, which loses nothing to cancellation.
fn erf(x: f64) -> f64 {
    if x.is_nan() || x.abs() > 6.0 {
        return if x.is_nan() { x } else { x.signum() };
    }
    let (mut term, mut sum, mut n) = (x, x, 0.0);
    while term.abs() > sum.abs() * 1e-18 {
        n += 1.0;
        term *= 2.0 * x * x / (2.0 * n + 1.0);
        sum += term;
    }
    std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp() * sum
}

/// Conversions. Floats become integers half away from zero; what does not fit is the least 64-bit integer, of which narrow
/// results keep the low bits. Negative numbers become unsigned ones through signed ones.
fn convert(op: Op) -> Option<Exactly> {
    let f = |x: &[u64]| f64::from(f32::from_bits(x[0] as u32));
    let d = |x: &[u64]| f64::from_bits(x[0]);
    let of32 = |v: f32| u64::from(v.to_bits());
    Some(match op {
        Op::CastSi32F32 => Box::new(move |x| of32(x[0] as u32 as i32 as f32)),
        Op::CastUi32F32 => Box::new(move |x| of32(x[0] as u32 as f32)),
        Op::CastSi64F32 => Box::new(move |x| of32(x[0] as i64 as f32)),
        Op::CastUi64F32 => Box::new(move |x| of32(x[0] as f32)),
        Op::CastSi32F64 => Box::new(|x| f64::from(x[0] as u32 as i32).to_bits()),
        Op::CastUi32F64 => Box::new(|x| f64::from(x[0] as u32).to_bits()),
        Op::CastSi64F64 => Box::new(|x| (x[0] as i64 as f64).to_bits()),
        Op::CastUi64F64 => Box::new(|x| (x[0] as f64).to_bits()),
        Op::CastF32Si32 | Op::CastF32Ui32 => Box::new(move |x| u64::from(signed(f(x)) as u32)),
        Op::CastF64Si32 | Op::CastF64Ui32 => Box::new(move |x| u64::from(signed(d(x)) as u32)),
        Op::CastF32Si64 => Box::new(move |x| signed(f(x)) as u64),
        Op::CastF64Si64 => Box::new(move |x| signed(d(x)) as u64),
        Op::CastF32Ui64 => Box::new(move |x| unsigned(f(x))),
        Op::CastF64Ui64 => Box::new(move |x| unsigned(d(x))),
        Op::TruncF64F32 => Box::new(move |x| of32(d(x) as f32)),
        Op::ExtF32F64 => Box::new(move |x| f(x).to_bits()),
        Op::FpowiF32 => Box::new(move |x| of32(powi(f(x), x[1]) as f32)),
        Op::FpowiF64 => Box::new(move |x| powi(d(x), x[1]).to_bits()),
        _ => return None,
    })
}

/// Through 128 bits, in which every float that can be in range is.
fn signed(value: f64) -> i64 {
    let wide = value.round() as i128;
    if value.is_nan() { i64::MIN } else { i64::try_from(wide).unwrap_or(i64::MIN) }
}

fn unsigned(value: f64) -> u64 {
    let wide = value.round() as i128;
    if wide > 0 { u64::try_from(wide).unwrap_or(u64::MAX) } else { signed(value) as u64 }
}

/// Powers of two, one and zero, of which every product is exact: the exponent counts modulo 2^32.
fn powi(base: f64, exponent: u64) -> f64 {
    base.powi(exponent as u32 as i32)
}
