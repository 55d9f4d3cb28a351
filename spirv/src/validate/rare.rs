//! The type rules of rarer instructions that drivers crash on all the same: matrix products, copies, bit fields,
//! classification, dynamic indices, wide arithmetic.

use spirv::Op;

use super::operands::{Operands, is_bool, is_float, is_int};
use crate::{error::SpirvError, program::ParsedModule, types::Type};

/// Checks all instructions.
pub(crate) fn check(program: &ParsedModule<'_>) -> Result<(), SpirvError> {
    for inst in program.module.insts() {
        let ops = Operands { program, inst, words: program.module.operands(inst) };
        // Element-wise arithmetic on cooperative matrices is legal too; its types are opaque here.
        if !matches!(program.types.get(inst.ty), Some(Type::Other)) {
            products(&ops)?;
            bits(&ops)?;
        }
        rest(&ops)?;
    }
    Ok(())
}

fn fits(ops: &Operands<'_, '_>, yes: bool) -> Result<(), SpirvError> {
    if yes { Ok(()) } else { Err(ops.bad("the types of result and operands do not fit")) }
}

/// (type of a column, columns) of a matrix.
fn matrix(ops: &Operands<'_, '_>, ty: u32) -> Result<(u32, u32), SpirvError> {
    match ops.program.types.get(ty) {
        Some(Type::Matrix { column, count }) => Ok((*column, *count)),
        _ => Err(ops.bad(format!("type {ty} is no matrix"))),
    }
}

/// (type of a lane, lanes) of a vector of floats.
fn vector(ops: &Operands<'_, '_>, ty: u32) -> Result<(u32, u32), SpirvError> {
    match ops.program.types.get(ty) {
        Some(Type::Vector { elem, count }) if ops.program.types.get(*elem).is_some_and(is_float) => {
            Ok((*elem, *count))
        }
        _ => Err(ops.bad(format!("type {ty} is no vector of floats"))),
    }
}

fn products(ops: &Operands<'_, '_>) -> Result<(), SpirvError> {
    let ty = ops.inst.ty;
    match ops.inst.op {
        Op::VectorTimesScalar => {
            ops.same_as_result(0)?;
            fits(ops, ops.type_of(1)? == vector(ops, ty)?.0)
        }
        Op::MatrixTimesScalar => {
            ops.same_as_result(0)?;
            let (column, _) = matrix(ops, ty)?;
            fits(ops, ops.type_of(1)? == vector(ops, column)?.0)
        }
        Op::VectorTimesMatrix => {
            let (column, columns) = matrix(ops, ops.type_of(1)?)?;
            let (lane, lanes) = vector(ops, ty)?;
            fits(ops, ops.type_of(0)? == column && lanes == columns && vector(ops, column)?.0 == lane)
        }
        Op::MatrixTimesVector => {
            let (column, columns) = matrix(ops, ops.type_of(0)?)?;
            let (lane, lanes) = vector(ops, ops.type_of(1)?)?;
            fits(ops, ty == column && lanes == columns && vector(ops, column)?.0 == lane)
        }
        Op::MatrixTimesMatrix => {
            let (left, left_columns) = matrix(ops, ops.type_of(0)?)?;
            let (right, right_columns) = matrix(ops, ops.type_of(1)?)?;
            let result = matrix(ops, ty)?;
            fits(ops, result == (left, right_columns) && vector(ops, right)?.1 == left_columns)
        }
        Op::OuterProduct => {
            let (_, lanes) = vector(ops, ops.type_of(1)?)?;
            fits(ops, matrix(ops, ty)? == (ops.type_of(0)?, lanes))
        }
        Op::Transpose => {
            let (column, columns) = matrix(ops, ops.type_of(0)?)?;
            let (result, count) = matrix(ops, ty)?;
            let (from, to) = (vector(ops, column)?, vector(ops, result)?);
            fits(ops, from.0 == to.0 && from.1 == count && to.1 == columns)
        }
        _ => Ok(()),
    }
}

fn bits(ops: &Operands<'_, '_>) -> Result<(), SpirvError> {
    let ty = ops.inst.ty;
    match ops.inst.op {
        Op::BitReverse | Op::BitCount | Op::BitFieldSExtract | Op::BitFieldUExtract | Op::BitFieldInsert => {
            let values = if ops.inst.op == Op::BitFieldInsert { 2 } else { 1 };
            let lanes = ops.expect(ty, "integer", is_int)?;
            for operand in 0..values {
                let given = ops.expect(ops.type_of(operand)?, "integer", is_int)?;
                let width = ops.program.types.size(ops.type_of(operand)?);
                let counts = ops.inst.op == Op::BitCount;
                fits(ops, given == lanes && (counts || width == ops.program.types.size(ty)))?;
            }
            (values..ops.words.len())
                .try_for_each(|i| fits(ops, ops.expect(ops.type_of(i)?, "integer", is_int)? == 1))
        }
        Op::Any | Op::All => {
            let one = ops.expect(ty, "boolean", is_bool)? == 1;
            fits(ops, one && ops.expect(ops.type_of(0)?, "boolean", is_bool)? > 1)
        }
        Op::IsNan | Op::IsInf => {
            let lanes = ops.expect(ty, "boolean", is_bool)?;
            fits(ops, ops.expect(ops.type_of(0)?, "float", is_float)? == lanes)
        }
        Op::IAddCarry | Op::ISubBorrow | Op::UMulExtended | Op::SMulExtended => {
            let value = ops.type_of(0)?;
            ops.expect(value, "integer", is_int)?;
            let pair = matches!(ops.program.types.get(ty), Some(Type::Struct { members }) if **members == [value; 2]);
            fits(ops, pair && ops.type_of(1)? == value)
        }
        Op::QuantizeToF16 => {
            ops.expect(ty, "float", is_float)?;
            ops.same_as_result(0)
        }
        _ => Ok(()),
    }
}

fn rest(ops: &Operands<'_, '_>) -> Result<(), SpirvError> {
    let types = &ops.program.types;
    match ops.inst.op {
        Op::CopyMemory => fits(ops, ops.pointer(0)?.1 == ops.pointer(1)?.1),
        Op::VectorExtractDynamic => {
            let elem = match types.get(ops.type_of(0)?) {
                Some(Type::Vector { elem, .. }) => Some(*elem),
                _ => None,
            };
            fits(ops, elem == Some(ops.inst.ty) && ops.expect(ops.type_of(1)?, "integer", is_int)? == 1)
        }
        Op::VectorInsertDynamic => {
            ops.same_as_result(0)?;
            let elem = match types.get(ops.inst.ty) {
                Some(Type::Vector { elem, .. }) => Some(*elem),
                _ => None,
            };
            let index = ops.expect(ops.type_of(2)?, "integer", is_int)? == 1;
            fits(ops, elem == Some(ops.type_of(1)?) && index)
        }
        Op::ConvertPtrToU => {
            ops.pointer(0)?;
            ops.expect(ops.inst.ty, "integer", is_int).map(|_| ())
        }
        Op::ConvertUToPtr => {
            ops.expect(ops.type_of(0)?, "integer", is_int)?;
            fits(ops, matches!(types.get(ops.inst.ty), Some(Type::Pointer { .. })))
        }
        _ => Ok(()),
    }
}
