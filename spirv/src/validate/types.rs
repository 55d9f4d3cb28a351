//! The type rules of the instructions that kernels are made of: memory, arithmetic, composites, branches. Some rarer ones
//! are in `rare`; others are let through once their ids exist.

use spirv::{Op, StorageClass};

use super::operands::{Operands, is_bool, is_float, is_int};
use crate::{error::SpirvError, program::ParsedModule, types::Type};

/// Checks all instructions.
pub(crate) fn check(program: &ParsedModule<'_>) -> Result<(), SpirvError> {
    for inst in program.module.insts() {
        let ops = Operands { program, inst, words: program.module.operands(inst) };
        memory(&ops)?;
        arithmetic(&ops)?;
        composite(&ops)?;
        control(&ops)?;
    }
    for function in &program.functions {
        check_function(program, function)?;
    }
    Ok(())
}

fn check_function(program: &ParsedModule<'_>, function: &crate::cfg::Function) -> Result<(), SpirvError> {
    let module = &program.module;
    let inst = &module.insts()[function.first];
    let ops = Operands { program, inst, words: module.operands(inst) };
    let Some(Type::Function { ret, params }) = program.types.get(ops.words[1]) else {
        return Err(ops.bad("the function type is no function type"));
    };
    let head = &module.insts()[function.first + 1..function.blocks[0].first];
    let given: Vec<u32> = head.iter().filter(|i| i.op == Op::FunctionParameter).map(|i| i.ty).collect();
    if *ret != inst.ty || *params != given {
        return Err(ops.bad("result or parameters differ from the function type"));
    }
    for block in &function.blocks {
        let end = &module.insts()[block.last];
        let ops = Operands { program, inst: end, words: module.operands(end) };
        let void = program.types.get(*ret) == Some(&Type::Void);
        let fits = match end.op {
            Op::Return => void,
            Op::ReturnValue => ops.type_of(0)? == *ret,
            _ => true,
        };
        if !fits {
            return Err(ops.bad("does not fit the function's return type"));
        }
        let mut body = module.insts()[block.first + 1..=block.last].iter();
        body.by_ref().find(|i| !matches!(i.op, Op::Phi | Op::Line | Op::NoLine));
        if let Some(late) = body.find(|i| i.op == Op::Phi) {
            return Err(SpirvError::at(late.at, "OpPhi must stand at the start of its block"));
        }
    }
    Ok(())
}

fn memory(ops: &Operands<'_, '_>) -> Result<(), SpirvError> {
    let (program, inst) = (ops.program, ops.inst);
    match inst.op {
        Op::Variable => variable(ops),
        Op::Load => match ops.program.types.get(ops.type_of(0)?) {
            Some(Type::Pointer { pointee, .. }) if *pointee != inst.ty => {
                Err(ops.bad("loads another type than it points to"))
            }
            Some(Type::Pointer { .. } | Type::Other) => Ok(()),
            _ => Err(ops.bad("the operand is no pointer")),
        },
        Op::Store => match ops.program.types.get(ops.type_of(0)?) {
            Some(Type::Pointer { pointee, .. }) if *pointee != ops.type_of(1)? => {
                Err(ops.bad("stores another type than it points to"))
            }
            Some(Type::Pointer {
                class: StorageClass::Input | StorageClass::PushConstant | StorageClass::Uniform,
                ..
            }) => Err(ops.bad("stores to read-only memory")),
            Some(Type::Pointer { .. } | Type::Other) => Ok(()),
            _ => Err(ops.bad("the operand is no pointer")),
        },
        Op::AccessChain | Op::InBoundsAccessChain => access_chain(ops, 1),
        Op::PtrAccessChain | Op::InBoundsPtrAccessChain => {
            ops.expect(ops.type_of(1)?, "integer", is_int)?;
            access_chain(ops, 2)
        }
        Op::ArrayLength => match program.types.get(ops.pointer(0)?.1) {
            Some(Type::Struct { members }) if members.len() == ops.words[1] as usize + 1 => Ok(()),
            _ => Err(ops.bad("needs the last member of a struct")),
        },
        _ if (227..=242).contains(&(inst.op as u32)) => {
            let (_, pointee) = ops.pointer(0)?;
            ops.expect(pointee, "number", |t| is_int(t) || is_float(t))?;
            if inst.ty != 0 && inst.ty != pointee {
                return Err(ops.bad("the result has another type than the pointer points to"));
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn access_chain(ops: &Operands<'_, '_>, first_index: usize) -> Result<(), SpirvError> {
    let (class, mut at) = ops.pointer(0)?;
    for operand in first_index..ops.words.len() {
        ops.expect(ops.type_of(operand)?, "integer", is_int)?;
        let constant = ops.program.module.constant_u32(ops.words[operand]);
        at = step_into(ops, at, constant)?;
    }
    match ops.program.types.get(ops.inst.ty) {
        Some(Type::Pointer { class: c, pointee }) if *c == class && *pointee == at => Ok(()),
        _ => Err(ops.bad("the result type does not fit what the indices lead to")),
    }
}

/// The type one index deeper; `index` is `None` where it is not a constant.
fn step_into(ops: &Operands<'_, '_>, ty: u32, index: Option<u32>) -> Result<u32, SpirvError> {
    let past = |count: u32| index.is_some_and(|i| i >= count);
    match ops.program.types.get(ty) {
        Some(Type::Struct { members }) => {
            let index = index.ok_or_else(|| ops.bad("a struct needs a constant index"))?;
            members.get(index as usize).copied().ok_or_else(|| ops.bad("struct index past the end"))
        }
        Some(Type::Array { elem, len }) if !len.is_some_and(past) => Ok(*elem),
        Some(Type::RuntimeArray { elem }) => Ok(*elem),
        Some(Type::Vector { elem, count }) if !past(*count) => Ok(*elem),
        Some(Type::Matrix { column, count }) if !past(*count) => Ok(*column),
        // Only its component type can come out of a cooperative matrix; the loads and stores check the rest.
        Some(Type::Other) => match ops.program.module.def(ty) {
            Some(d) if d.op == Op::TypeCooperativeMatrixKHR => Ok(ops.program.module.operands(d)[0]),
            _ => Err(ops.bad("indexes into a type that has no parts")),
        },
        _ => Err(ops.bad("an index is out of bounds, or the type has no parts")),
    }
}

fn variable(ops: &Operands<'_, '_>) -> Result<(), SpirvError> {
    let (program, inst) = (ops.program, ops.inst);
    let Some(Type::Pointer { class, pointee }) = program.types.get(inst.ty) else {
        return Err(ops.bad("the result type is no pointer"));
    };
    let in_function = inst.at > program.module.insts()[program.first_function].at;
    if *class as u32 != ops.words[0] || in_function != (*class == StorageClass::Function) {
        return Err(ops.bad("the storage class does not fit the pointer type or the place"));
    }
    if matches!(program.types.get(*pointee), None | Some(Type::Void | Type::Function { .. })) {
        return Err(ops.bad("points to no value type"));
    }
    Ok(())
}

fn arithmetic(ops: &Operands<'_, '_>) -> Result<(), SpirvError> {
    let (ty, op) = (ops.inst.ty, ops.inst.op);
    // Element-wise arithmetic on cooperative matrices is legal too; its types are opaque here.
    let opaque = matches!(ops.program.types.get(ty), Some(Type::Other));
    match op {
        Op::FAdd | Op::FSub | Op::FMul | Op::FDiv | Op::FRem | Op::FMod | Op::FNegate => {
            if !opaque {
                ops.expect(ty, "float", is_float)?;
            }
            (0..ops.words.len()).try_for_each(|i| ops.same_as_result(i))
        }
        _ if opaque => Ok(()),
        Op::IAdd
        | Op::ISub
        | Op::IMul
        | Op::UDiv
        | Op::SDiv
        | Op::UMod
        | Op::SRem
        | Op::SMod
        | Op::SNegate => same_lanes_and_width(ops, ops.words.len()),
        Op::BitwiseOr | Op::BitwiseXor | Op::BitwiseAnd | Op::Not => {
            same_lanes_and_width(ops, ops.words.len())
        }
        Op::ShiftRightLogical | Op::ShiftRightArithmetic | Op::ShiftLeftLogical => {
            ops.expect(ops.type_of(1)?, "integer", is_int)?;
            same_lanes_and_width(ops, 1)
        }
        Op::LogicalOr | Op::LogicalAnd | Op::LogicalNot | Op::LogicalEqual | Op::LogicalNotEqual => {
            ops.expect(ty, "boolean", is_bool)?;
            (0..ops.words.len()).try_for_each(|i| ops.same_as_result(i))
        }
        _ if (170..=191).contains(&(op as u32)) => comparison(ops),
        Op::Select => select(ops),
        Op::ConvertFToU | Op::ConvertFToS | Op::ConvertSToF | Op::ConvertUToF => convert(ops),
        Op::UConvert | Op::SConvert | Op::FConvert => convert(ops),
        Op::Dot => {
            let (left, right) = (ops.type_of(0)?, ops.type_of(1)?);
            let fits = left == right
                && matches!(ops.program.types.get(left), Some(Type::Vector { elem, .. }) if *elem == ty);
            fits.then_some(()).ok_or_else(|| ops.bad("needs two equal vectors of the result type"))
        }
        Op::Bitcast => {
            let size = (ops.program.types.size(ty), ops.program.types.size(ops.type_of(0)?));
            (size.0 == size.1).then_some(()).ok_or_else(|| ops.bad("sizes differ"))
        }
        _ => Ok(()),
    }
}

fn comparison(ops: &Operands<'_, '_>) -> Result<(), SpirvError> {
    let lanes = ops.expect(ops.inst.ty, "boolean", is_bool)?;
    let accept = if (ops.inst.op as u32) < Op::FOrdEqual as u32 { is_int } else { is_float };
    let left = ops.expect(ops.type_of(0)?, "number", accept)?;
    let right = ops.expect(ops.type_of(1)?, "number", accept)?;
    let widths = (scalar_width(ops, 0)?, scalar_width(ops, 1)?);
    let fits = lanes == left && lanes == right && widths.0 == widths.1;
    fits.then_some(()).ok_or_else(|| ops.bad("compares values of different shapes"))
}

fn select(ops: &Operands<'_, '_>) -> Result<(), SpirvError> {
    (1..3).try_for_each(|i| ops.same_as_result(i))?;
    let lanes = ops.expect(ops.type_of(0)?, "boolean", is_bool)?;
    let fits = lanes == 1 || ops.lanes_of(ops.inst.ty).is_some_and(|(_, n)| n == lanes);
    fits.then_some(()).ok_or_else(|| ops.bad("the condition has another number of lanes"))
}

fn scalar_width(ops: &Operands<'_, '_>, operand: usize) -> Result<u32, SpirvError> {
    match ops.lanes_of(ops.type_of(operand)?) {
        Some((Type::Int { width } | Type::Float { width }, _)) => Ok(*width),
        _ => Ok(0),
    }
}

/// Integer operands need the result's lanes and width; signedness may differ.
fn same_lanes_and_width(ops: &Operands<'_, '_>, operands: usize) -> Result<(), SpirvError> {
    let lanes = ops.expect(ops.inst.ty, "integer", is_int)?;
    let width = ops.program.types.size(ops.inst.ty);
    for operand in 0..operands {
        let ty = ops.type_of(operand)?;
        if ops.expect(ty, "integer", is_int)? != lanes || ops.program.types.size(ty) != width {
            return Err(ops.bad("operands have another width or lane count than the result"));
        }
    }
    Ok(())
}

fn convert(ops: &Operands<'_, '_>) -> Result<(), SpirvError> {
    let from_float = matches!(ops.inst.op, Op::ConvertFToU | Op::ConvertFToS | Op::FConvert);
    let to_float = matches!(ops.inst.op, Op::ConvertSToF | Op::ConvertUToF | Op::FConvert);
    let kind = |float: bool| if float { is_float } else { is_int };
    let from = ops.expect(ops.type_of(0)?, "number", kind(from_float))?;
    let to = ops.expect(ops.inst.ty, "number", kind(to_float))?;
    (from == to).then_some(()).ok_or_else(|| ops.bad("lane counts differ"))
}

fn composite(ops: &Operands<'_, '_>) -> Result<(), SpirvError> {
    let ty = ops.inst.ty;
    let walk = |start: u32, path: &[u32]| path.iter().try_fold(start, |at, i| step_into(ops, at, Some(*i)));
    match ops.inst.op {
        Op::CompositeExtract => {
            let part = walk(ops.type_of(0)?, &ops.words[1..])?;
            (part == ty).then_some(()).ok_or_else(|| ops.bad("the part has another type than the result"))
        }
        Op::CompositeInsert => {
            ops.same_as_result(1)?;
            let part = walk(ty, &ops.words[2..])?;
            (part == ops.type_of(0)?).then_some(()).ok_or_else(|| ops.bad("the object does not fit the part"))
        }
        Op::CompositeConstruct | Op::ConstantComposite | Op::SpecConstantComposite => construct(ops),
        Op::VectorShuffle => {
            let lanes = |i| Ok::<_, SpirvError>(ops.lanes_of(ops.type_of(i)?).map_or(0, |(_, n)| n));
            let available = lanes(0)? + lanes(1)?;
            let wanted = ops.lanes_of(ty).map_or(0, |(_, n)| n);
            let picks = &ops.words[2..];
            let fits =
                picks.len() == wanted as usize && picks.iter().all(|p| *p < available || *p == u32::MAX);
            fits.then_some(()).ok_or_else(|| ops.bad("picks lanes that do not exist"))
        }
        Op::Constant | Op::SpecConstant => {
            let words = match ops.program.types.get(ty) {
                Some(Type::Int { width } | Type::Float { width }) => width.div_ceil(32) as usize,
                _ => 0,
            };
            (words == ops.words.len()).then_some(()).ok_or_else(|| ops.bad("the value does not fit the type"))
        }
        Op::CopyObject => ops.same_as_result(0),
        _ => Ok(()),
    }
}

fn construct(ops: &Operands<'_, '_>) -> Result<(), SpirvError> {
    let count = ops.words.len();
    let types = &ops.program.types;
    let fits = match types.get(ops.inst.ty) {
        Some(Type::Struct { members }) => {
            members.len() == count && (0..count).all(|i| ops.type_of(i).is_ok_and(|t| t == members[i]))
        }
        Some(Type::Array { elem, len }) => {
            len.is_none_or(|n| n as usize == count)
                && (0..count).all(|i| ops.type_of(i).is_ok_and(|t| t == *elem))
        }
        Some(Type::Matrix { column, count: n }) => {
            *n as usize == count && (0..count).all(|i| ops.type_of(i).is_ok_and(|t| t == *column))
        }
        Some(Type::Vector { elem, count: n }) => {
            let mut lanes = 0;
            for i in 0..count {
                lanes += match types.get(ops.type_of(i)?) {
                    Some(Type::Vector { elem: e, count }) if e == elem => *count,
                    Some(_) if ops.type_of(i)? == *elem => 1,
                    _ => return Err(ops.bad("a part has another type than the vector's components")),
                };
            }
            lanes == *n
        }
        Some(Type::Other) => count == 1,
        _ => false,
    };
    fits.then_some(()).ok_or_else(|| ops.bad("the parts do not make up the result type"))
}

fn control(ops: &Operands<'_, '_>) -> Result<(), SpirvError> {
    match ops.inst.op {
        Op::BranchConditional => {
            let lanes = ops.expect(ops.type_of(0)?, "boolean", is_bool)?;
            let weights = ops.words.len() - 3;
            (lanes == 1 && (weights == 0 || weights == 2))
                .then_some(())
                .ok_or_else(|| ops.bad("needs one boolean, and two weights or none"))
        }
        Op::Switch => ops.expect(ops.type_of(0)?, "integer", is_int).map(|_| ()),
        Op::ControlBarrier | Op::MemoryBarrier => {
            (0..ops.words.len()).try_for_each(|i| ops.expect(ops.type_of(i)?, "integer", is_int).map(|_| ()))
        }
        Op::FunctionCall => {
            let module = &ops.program.module;
            let callee = module.def(ops.words[0]).filter(|d| d.op == Op::Function);
            let callee = callee.ok_or_else(|| ops.bad("calls no function"))?;
            let Some(Type::Function { ret, params }) = ops.program.types.get(module.operands(callee)[1])
            else {
                return Err(ops.bad("the callee has no function type"));
            };
            let given = (1..ops.words.len()).map(|i| ops.type_of(i)).collect::<Result<Vec<_>, _>>()?;
            (*ret == ops.inst.ty && *params == given)
                .then_some(())
                .ok_or_else(|| ops.bad("arguments or result do not fit the callee"))
        }
        _ => Ok(()),
    }
}
