//! The functions that expressions are made of: names, numbers of operands, types of results.

use std::fmt;

use crate::DType;

/// Type of a value in an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Type {
    /// True or false. In memory it is a `u8`, 1 or 0.
    Bool,
    /// A number. Floats are computed as `f32` whatever they are in memory, so no value is of type `f16`,
    /// `bf16` or `f64`.
    Of(DType),
    /// A table, which only [`Function::Lookup`] reads.
    Table,
}

impl Type {
    /// The type that values read from, or rounded to, this type have.
    pub fn computed(self) -> Type {
        if self.is_float() { Type::Of(DType::F32) } else { self }
    }

    /// Whether it is a number of a float type.
    pub fn is_float(self) -> bool {
        matches!(self, Type::Of(t) if t.is_float())
    }

    /// Whether it is a number of an integer type.
    pub fn is_int(self) -> bool {
        matches!(self, Type::Of(t) if !t.is_float())
    }

    /// Whether it is a number of a signed integer type.
    pub fn is_signed(self) -> bool {
        matches!(self, Type::Of(t) if t.is_signed())
    }

    /// A type by its name; `bool` or that of a [`DType`].
    pub(crate) fn parse(text: &str) -> Option<Type> {
        if text == "bool" {
            return Some(Type::Bool);
        }
        DType::ALL.into_iter().find(|t| t.name() == text).map(Type::Of)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Bool => f.write_str("bool"),
            Type::Of(dtype) => f.write_str(dtype.name()),
            Type::Table => f.write_str("table"),
        }
    }
}

/// What the operands and the result of a function are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Floats to a float.
    Float,
    /// Numbers of one type to that type.
    Number,
    /// Integers of one type to that type.
    Int,
    /// Booleans, or integers of one type, to that type.
    Bits,
    /// Numbers of one type to a boolean.
    Compare,
    /// The same, also of booleans.
    Equal,
    /// A float to a boolean.
    Test,
    /// A boolean and two of any one type to that type.
    Select,
    /// Anything to the type of the node.
    Cast,
    /// See [`Function::Quantize`].
    Quantize,
    /// See [`Function::Dequantize`].
    Dequantize,
    /// See [`Function::Lookup`].
    Lookup,
}

macro_rules! functions {
    ($($(#[$doc:meta])* $variant:ident $name:literal $arity:literal $kind:ident,)*) => {
        /// A function of an expression. Rules that hold for all of them: floats follow IEEE 754 as far as the device does,
        /// denormals may count as zero; integers wrap; nothing has an undefined result.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Function { $($(#[$doc])* $variant,)* }

        impl Function {
            /// All of them.
            pub const ALL: &'static [Function] = &[$(Function::$variant,)*];

            /// Its name.
            pub fn name(self) -> &'static str {
                match self { $(Function::$variant => $name,)* }
            }

            /// Number of operands.
            pub fn arity(self) -> usize {
                match self { $(Function::$variant => $arity,)* }
            }

            fn kind(self) -> Kind {
                match self { $(Function::$variant => Kind::$kind,)* }
            }
        }
    };
}

functions! {
    /// `|x|`.
    Abs "abs" 1 Number,
    /// The angle from 0 to pi with the cosine x; NaN beyond 1.
    Acos "acos" 1 Float,
    /// The number from 0 on with the hyperbolic cosine x; NaN below 1.
    Acosh "acosh" 1 Float,
    /// `a + b`.
    Add "add" 2 Number,
    /// Of booleans, or of the bits of integers.
    And "and" 2 Bits,
    /// Conversion: `cast:i8 x`. To an integer from a float: towards zero, saturating, NaN to 0; from an integer: wraps. To a
    /// float: rounds to it, and to `f32` where it is `f64`, as all floats are computed as `f32`.
    Cast "cast" 1 Cast,
    /// The angle from -pi / 2 to pi / 2 with the sine x; NaN beyond 1.
    Asin "asin" 1 Float,
    /// The number with the hyperbolic sine x.
    Asinh "asinh" 1 Float,
    /// The angle from -pi / 2 to pi / 2 with the tangent x.
    Atan "atan" 1 Float,
    /// The number with the hyperbolic tangent x; infinite at 1 and -1, NaN beyond.
    Atanh "atanh" 1 Float,
    /// Towards infinity.
    Ceil "ceil" 1 Float,
    /// `min(max(x, low), high)`.
    Clip "clip" 3 Number,
    /// Of an angle in radians; exact to about `2^-22` up to 10,000, worse beyond.
    Cos "cos" 1 Float,
    /// The hyperbolic cosine.
    Cosh "cosh" 1 Float,
    /// `(x - zero) * scale` of operands x, scale, zero; x and zero are of an integer type of at most 32 bits but `u32`.
    Dequantize "dequantize" 3 Dequantize,
    /// `a / b`. Integers: towards zero; by zero gives zero.
    Div "div" 2 Number,
    /// `x` where positive, else `alpha * (exp(x) - 1)`; operands x, alpha.
    Elu "elu" 2 Float,
    /// `a == b`.
    Eq "eq" 2 Equal,
    /// The error function.
    Erf "erf" 1 Float,
    /// `e^x`.
    Exp "exp" 1 Float,
    /// Towards minus infinity.
    Floor "floor" 1 Float,
    /// Remainder with the sign of a, as C's `fmod`; exact while `|a / b| < 2^22`. Integers: by zero gives zero.
    Fmod "fmod" 2 Number,
    /// `a >= b`.
    Ge "ge" 2 Compare,
    /// `x / 2 * (1 + erf(x / sqrt(2)))`.
    Gelu "gelu" 1 Float,
    /// `x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))`.
    GeluTanh "gelu_tanh" 1 Float,
    /// `a > b`.
    Gt "gt" 2 Compare,
    /// `clip(alpha * x + beta, 0, 1)`; operands x, alpha, beta.
    HardSigmoid "hard_sigmoid" 3 Float,
    /// `x * clip(x / 6 + 1 / 2, 0, 1)`.
    HardSwish "hard_swish" 1 Float,
    /// Whether infinite.
    IsInf "isinf" 1 Test,
    /// Whether not a number.
    IsNan "isnan" 1 Test,
    /// `a <= b`.
    Le "le" 2 Compare,
    /// The natural logarithm.
    Log "log" 1 Float,
    /// `lookup:i8 n @0`: the entry n of a table, n being an `i32`; the last one where n is below 0 or behind the end. The
    /// node's type is that of the entries, of which floats are computed as all floats are.
    Lookup "lookup" 2 Lookup,
    /// `a < b`.
    Lt "lt" 2 Compare,
    /// The larger one; NaN when one is.
    Max "max" 2 Number,
    /// The smaller one; NaN when one is.
    Min "min" 2 Number,
    /// `x * tanh(softplus(x))`.
    Mish "mish" 1 Float,
    /// Remainder with the sign of b, as Python's `%`; see `fmod`.
    Mod "mod" 2 Number,
    /// `a * b`.
    Mul "mul" 2 Number,
    /// `a != b`.
    Ne "ne" 2 Equal,
    /// `-x`.
    Neg "neg" 1 Number,
    /// Of a boolean, or of the bits of an integer.
    Not "not" 1 Bits,
    /// Of booleans, or of the bits of integers.
    Or "or" 2 Bits,
    /// `a^b`; a negative a only with an integral b. Integers: wraps; with a negative b 0, unless a is 1 or -1.
    Pow "pow" 2 Number,
    /// `x` where not negative, else `slope * x`; operands x, slope. Also leaky ReLU.
    Prelu "prelu" 2 Float,
    /// `quantize:i8 x scale zero`: `round(x / scale) + zero`, saturating, NaN to 0; zero is of the node's type, an
    /// integer type of 8 or 16 bits.
    Quantize "quantize" 3 Quantize,
    /// `1 / x`.
    Reciprocal "reciprocal" 1 Float,
    /// `max(x, 0)`.
    Relu "relu" 1 Number,
    /// To the nearest integer, ties to even.
    Round "round" 1 Float,
    /// `1 / sqrt(x)`.
    Rsqrt "rsqrt" 1 Float,
    /// `a` where the condition holds, else `b`; operands condition, a, b.
    Select "select" 3 Select,
    /// Scaled ELU with the constants of Klambauer et al., 2017.
    Selu "selu" 1 Float,
    /// `x << n`; 0 when n is not below the width.
    Shl "shl" 2 Int,
    /// `x >> n`, filling with the sign of signed types, for any n.
    Shr "shr" 2 Int,
    /// `1 / (1 + exp(-x))`.
    Sigmoid "sigmoid" 1 Float,
    /// -1, 0 or 1; NaN of NaN.
    Sign "sign" 1 Number,
    /// `x * sigmoid(x)`, also called swish.
    Silu "silu" 1 Float,
    /// Of an angle in radians; see `cos`.
    Sin "sin" 1 Float,
    /// The hyperbolic sine.
    Sinh "sinh" 1 Float,
    /// `log(1 + exp(x))`.
    Softplus "softplus" 1 Float,
    /// The square root.
    Sqrt "sqrt" 1 Float,
    /// `a - b`.
    Sub "sub" 2 Number,
    /// `sin(x) / cos(x)`.
    Tan "tan" 1 Float,
    /// The hyperbolic tangent.
    Tanh "tanh" 1 Float,
    /// Of booleans, or of the bits of integers.
    Xor "xor" 2 Bits,
}

impl Function {
    /// Whether its node names a type.
    pub fn names_type(self) -> bool {
        matches!(self, Function::Cast | Function::Lookup | Function::Quantize)
    }

    /// The type of the result, `to` being the type that the node names.
    ///
    /// # Errors
    /// Says what is wrong with the operands.
    pub(crate) fn result(self, operands: &[Type], to: Option<Type>) -> Result<Type, String> {
        let wrong = |wants: &str| {
            let list: Vec<_> = operands.iter().map(Type::to_string).collect();
            Err(format!("'{}' of ({}): {wants}", self.name(), list.join(", ")))
        };
        if operands.len() != self.arity() {
            return wrong(&format!("takes {} operands", self.arity()));
        }
        if to.is_some() != self.names_type() {
            return wrong(if to.is_none() { "names no type, such as cast:i32" } else { "takes no type" });
        }
        let first = operands[0];
        let tables = operands.iter().filter(|t| **t == Type::Table).count();
        if self != Function::Lookup && tables > 0 {
            return wrong("tables are only for 'lookup'");
        }
        let same = operands.iter().all(|t| *t == first);
        let not_bool = same && first != Type::Bool;
        match self.kind() {
            Kind::Float if same && first.is_float() => Ok(first),
            Kind::Float => wrong("takes floats; cast them to f32"),
            Kind::Number if not_bool => Ok(first),
            Kind::Number => wrong("takes numbers of one type; cast one"),
            Kind::Int if same && first.is_int() => Ok(first),
            Kind::Int => wrong("takes integers of one type"),
            Kind::Bits if same && !first.is_float() => Ok(first),
            Kind::Bits => wrong("takes booleans, or integers of one type"),
            Kind::Compare if not_bool => Ok(Type::Bool),
            Kind::Equal if same => Ok(Type::Bool),
            Kind::Compare | Kind::Equal => wrong("takes numbers of one type; cast one"),
            Kind::Test if first.is_float() => Ok(Type::Bool),
            Kind::Test => wrong("takes a float"),
            Kind::Select if first == Type::Bool && operands[1] == operands[2] => Ok(operands[1]),
            Kind::Select => wrong("takes a bool and two of one type"),
            Kind::Lookup => match (operands, to) {
                ([Type::Of(DType::I32), Type::Table], Some(to @ Type::Of(_))) => Ok(to.computed()),
                _ => wrong("takes an i32 and a table, such as @0, and names the type of its entries"),
            },
            Kind::Cast if to == Some(Type::Table) => wrong("names a type of values"),
            Kind::Cast => Ok(to.map_or(first, Type::computed)),
            Kind::Quantize => match to {
                Some(t @ Type::Of(dtype))
                    if t.is_int()
                        && dtype.size() <= 2
                        && first.is_float()
                        && operands[1].is_float()
                        && operands[2] == t =>
                {
                    Ok(t)
                }
                _ => wrong("takes a float, a float scale and a zero point of its own type, of 8 or 16 bits"),
            },
            Kind::Dequantize
                if first.is_int()
                    && operands[1].is_float()
                    && operands[2] == first
                    && !matches!(first, Type::Of(DType::I64 | DType::U64 | DType::U32)) =>
            {
                Ok(Type::Of(DType::F32))
            }
            Kind::Dequantize => {
                wrong("takes an i8, u8, i16, u16 or i32, a float scale and a zero point like the first")
            }
        }
    }
}
