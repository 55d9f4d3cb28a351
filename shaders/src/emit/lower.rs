//! Turning an expression into instructions, given its inputs in registers and its tables in buffers.

use halite_ops::{
    DType,
    expression::{Expression, Function, Node, Operand, Scalar, Type, operand_type},
};
use halite_spirv::Id;
use spirv::GlslStd450Op;

use super::{
    lanes::{Lanes, Register},
    memory::{Buffers, gather},
};

/// The tables of a kernel.
#[derive(Debug)]
pub(crate) struct Tables<'a> {
    pub(crate) buffers: &'a Buffers,
    /// The binding of the first; the others follow.
    pub(crate) first: u32,
    /// The type of each, and the number of its last entry.
    pub(crate) tables: &'a [(DType, Id)],
}

impl Tables<'_> {
    /// Entries by their numbers, held within the table: behind the end, and below 0, is the last.
    fn entries(&self, lanes: &mut Lanes, table: usize, numbers: Id) -> Register {
        let (dtype, last) = self.tables[table];
        let last = lanes.splat(last);
        let held = lanes.uext(GlslStd450Op::UMin, &[numbers, last]);
        gather(lanes, self.buffers, self.first + table as u32, dtype, held)
    }
}

/// Appends the instructions of an expression whose nodes have the types `types`. `inputs` are in registers of the computed
/// types of `dtypes`. Gives the values of the outputs, in order.
pub(crate) fn lower(
    lanes: &mut Lanes,
    expression: &Expression,
    types: &[Type],
    dtypes: &[DType],
    inputs: &[Register],
    tables: &Tables<'_>,
) -> Result<Vec<Register>, String> {
    let mut results: Vec<Register> = Vec::with_capacity(expression.nodes.len());
    for node in &expression.nodes {
        if let (Function::Lookup, [number, Operand::Table(table)]) = (node.function, &node.operands[..]) {
            let Register::Word(numbers) = operand(lanes, *number, inputs, &results) else {
                return Err(format!("'{node}' has no number"));
            };
            results.push(tables.entries(lanes, *table, numbers));
            continue;
        }
        let operands: Vec<Register> =
            node.operands.iter().map(|o| operand(lanes, *o, inputs, &results)).collect();
        let first = operand_type(node.operands[0], dtypes, types)?;
        let value = apply(lanes, node, first, &operands)?;
        results.push(value);
    }
    Ok(expression.outputs.iter().map(|output| operand(lanes, output.value, inputs, &results)).collect())
}

fn operand(lanes: &mut Lanes, operand: Operand, inputs: &[Register], results: &[Register]) -> Register {
    match operand {
        Operand::Input(i) => inputs[i],
        Operand::Node(i) => results[i],
        Operand::Constant(Scalar::Bool(value)) => Register::Bool(lanes.b(value)),
        Operand::Constant(Scalar::Float(value)) => Register::Float(lanes.f(value as f32)),
        Operand::Constant(Scalar::Int(value, DType::I64 | DType::U64)) => {
            Register::Pair(lanes.u(value as u32), lanes.u((value >> 32) as u32))
        }
        Operand::Constant(Scalar::Int(value, _)) => Register::Word(lanes.u(value as u32)),
        // Only look-ups have tables, and no value is one.
        Operand::Table(_) => Register::Word(lanes.u(0)),
    }
}

/// A node's instructions; `first` is the type of its first operand. Operands have the types that
/// [`Function::result`] accepts.
fn apply(lanes: &mut Lanes, node: &Node, first: Type, operands: &[Register]) -> Result<Register, String> {
    let function = node.function;
    let dtype = if let Type::Of(dtype) = first { dtype } else { DType::U8 };
    Ok(match *operands {
        [x] if function == Function::Cast => lanes.convert(x, first, node.to.unwrap_or(first)),
        [Register::Bool(condition), yes, no] => lanes.select(condition, yes, no),
        [x, Register::Float(scale), zero] if function == Function::Quantize => {
            quantize(lanes, node, x, Register::Float(scale), zero)
        }
        [Register::Word(x), Register::Float(scale), Register::Word(zero)] => {
            let difference = Register::Word(lanes.usub(x, zero));
            // The difference of unsigned numbers needs a sign.
            let wide = if dtype.is_signed() { first } else { Type::Of(DType::I32) };
            let number = lanes.convert(difference, wide, Type::Of(DType::F32));
            let Register::Float(number) = number else { return Err("a float was made".to_owned()) };
            Register::Float(lanes.mul(number, scale))
        }
        [Register::Float(x)] => match function {
            Function::IsNan => Register::Bool(lanes.is_nan(x)),
            Function::IsInf => Register::Bool(lanes.is_inf(x)),
            _ => Register::Float(lanes.float1(function, x)),
        },
        [Register::Float(a), Register::Float(b)] => match (float_compare(function), exponent(node)) {
            (Some(op), _) => Register::Bool(lanes.bop(op, &[a, b])),
            (None, Some(exponent)) => match lanes.power_by(a, exponent) {
                Some(power) => Register::Float(power),
                None => Register::Float(lanes.float2(function, a, b)),
            },
            (None, None) => Register::Float(lanes.float2(function, a, b)),
        },
        [Register::Float(x), Register::Float(alpha), Register::Float(beta)]
            if function == Function::HardSigmoid =>
        {
            Register::Float(lanes.hard_sigmoid(x, alpha, beta))
        }
        [x, low, high] => {
            let above = two(lanes, Function::Max, dtype, x, low)?;
            two(lanes, Function::Min, dtype, above, high)?
        }
        [Register::Bool(x)] => Register::Bool(lanes.bop(spirv::Op::LogicalNot, &[x])),
        [Register::Word(x)] => Register::Word(lanes.word1(function, x, dtype)),
        [Register::Pair(low, high)] => lanes.pair1(function, low, high, dtype.is_signed()),
        [x, _] if let Some(exponent) = whole_exponent(node) => whole_power(lanes, dtype, x, exponent)?,
        [a, b] => two(lanes, function, dtype, a, b)?,
        _ => return Err(format!("'{node}' has no operands")),
    })
}

/// The exponent of a power, when it is a constant.
fn exponent(node: &Node) -> Option<f64> {
    match (node.function, &node.operands[..]) {
        (Function::Pow, [_, Operand::Constant(Scalar::Float(value))]) => Some(*value),
        _ => None,
    }
}

/// The exponent of a power of integers, when it is a constant and not negative.
fn whole_exponent(node: &Node) -> Option<u64> {
    match (node.function, &node.operands[..]) {
        (Function::Pow, [_, Operand::Constant(exponent @ Scalar::Int(..))]) => {
            exponent.whole().try_into().ok()
        }
        _ => None,
    }
}

/// A power of an integer by squaring, with the multiplications that the exponent needs.
fn whole_power(lanes: &mut Lanes, dtype: DType, x: Register, exponent: u64) -> Result<Register, String> {
    let one = Operand::Constant(Scalar::Int(1, dtype));
    let mut power: Option<Register> = None;
    for bit in (0..u64::BITS - exponent.leading_zeros()).rev() {
        if let Some(root) = power {
            power = Some(two(lanes, Function::Mul, dtype, root, root)?);
        }
        if exponent >> bit & 1 == 1 {
            power = Some(match power {
                Some(root) => two(lanes, Function::Mul, dtype, root, x)?,
                None => x,
            });
        }
    }
    Ok(power.unwrap_or_else(|| operand(lanes, one, &[], &[])))
}

fn two(
    lanes: &mut Lanes,
    function: Function,
    dtype: DType,
    a: Register,
    b: Register,
) -> Result<Register, String> {
    let compares = float_compare(function).is_some();
    Ok(match (a, b) {
        (Register::Float(a), Register::Float(b)) => Register::Float(lanes.float2(function, a, b)),
        (Register::Bool(a), Register::Bool(b)) => Register::Bool(lanes.bool2(function, a, b)),
        (Register::Word(a), Register::Word(b)) if compares => {
            Register::Bool(lanes.word_compare(function, a, b, dtype))
        }
        (Register::Word(a), Register::Word(b)) => Register::Word(lanes.word2(function, a, b, dtype)),
        (Register::Pair(a, b), Register::Pair(c, d)) if compares => {
            Register::Bool(lanes.pair_compare(function, (a, b), (c, d), dtype.is_signed()))
        }
        (Register::Pair(a, b), Register::Pair(c, d)) => {
            lanes.pair2(function, (a, b), (c, d), dtype.is_signed())
        }
        _ => return Err(format!("'{}' has operands of two kinds", function.name())),
    })
}

/// The instruction that compares floats.
fn float_compare(function: Function) -> Option<spirv::Op> {
    Some(match function {
        Function::Eq => spirv::Op::FOrdEqual,
        Function::Ne => spirv::Op::FUnordNotEqual,
        Function::Lt => spirv::Op::FOrdLessThan,
        Function::Le => spirv::Op::FOrdLessThanEqual,
        Function::Gt => spirv::Op::FOrdGreaterThan,
        Function::Ge => spirv::Op::FOrdGreaterThanEqual,
        _ => return None,
    })
}

fn quantize(lanes: &mut Lanes, node: &Node, x: Register, scale: Register, zero: Register) -> Register {
    let to = node.to.unwrap_or(Type::Of(DType::I8));
    let zero = lanes.convert(zero, to, Type::Of(DType::F32));
    let (Register::Float(x), Register::Float(scale), Register::Float(zero)) = (x, scale, zero) else {
        return x;
    };
    let quotient = lanes.quotient_to_nearest(x, scale);
    let rounded = lanes.float1(Function::Round, quotient);
    let sum = lanes.add(rounded, zero);
    lanes.convert(Register::Float(sum), Type::Of(DType::F32), to)
}
