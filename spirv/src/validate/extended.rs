//! The rules of extended instructions: known sets, known numbers, operand counts and types.

use spirv::Op;

use super::operands::{Operands, is_float, is_int};
use crate::{error::SpirvError, module::GLSL, program::ParsedModule, types::Type, words::literal_text};

/// Sets with this prefix mean nothing to a driver, which skips their instructions.
const NON_SEMANTIC: &str = "NonSemantic.";

/// Checks all imports of sets and all extended instructions.
pub(crate) fn check(program: &ParsedModule<'_>) -> Result<(), SpirvError> {
    let module = &program.module;
    let first_function = program.functions.first().map_or(0, |f| module.insts()[f.first].at);
    for inst in module.insts() {
        let ops = Operands { program, inst, words: module.operands(inst) };
        match inst.op {
            Op::ExtInstImport => match literal_text(ops.words).unwrap_or_default() {
                name if name == GLSL || name.starts_with(NON_SEMANTIC) => {}
                name => {
                    return Err(
                        ops.bad(format!("the instruction set '{}' is not known", name.escape_debug()))
                    );
                }
            },
            Op::ExtInst => {
                let set = module.def(ops.words[0]).filter(|d| d.op == Op::ExtInstImport);
                let set = set.ok_or_else(|| ops.bad(format!("id {} is no instruction set", ops.words[0])))?;
                if literal_text(module.operands(set)).is_some_and(|name| name == GLSL) {
                    if inst.at < first_function {
                        return Err(ops.bad("stands outside a function"));
                    }
                    glsl(&ops)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Checks an instruction of GLSL.std.450. Its own operands begin at word 2.
fn glsl(ops: &Operands<'_, '_>) -> Result<(), SpirvError> {
    let number = ops.words[1];
    let count = match number {
        1..=24 | 27..=34 | 36 | 52 | 54..=66 | 69 | 73..=75 => 1,
        25 | 26 | 35 | 37..=42 | 48 | 51 | 53 | 67 | 68 | 71 | 79 | 80 => 2,
        43..=46 | 49 | 50 | 70 | 72 | 81 => 3,
        _ => return Err(ops.bad(format!("{GLSL} has no instruction {number} for kernels"))),
    };
    if ops.words.len() != 2 + count {
        let found = ops.words.len() - 2;
        return Err(ops.bad(format!("{GLSL} instruction {number} has {count} operands, not {found}")));
    }
    match number {
        5 | 7 | 38 | 39 | 41 | 42 | 44 | 45 | 73..=75 => integers(ops),
        33..=36 | 51..=53 => composed(ops, number),
        54..=65 => packing(ops, number),
        66 | 67 => {
            ops.expect(ops.inst.ty, "float", is_float)?;
            let vector = ops.type_of(2)?;
            ops.expect(vector, "float", is_float)?;
            let one_length = ops.words.len() == 3 || ops.type_of(3)? == vector;
            fits(ops, one_length && element(ops, vector) == Some(ops.inst.ty))
        }
        72 => {
            ops.expect(ops.inst.ty, "float", is_float)?;
            (2..4).try_for_each(|i| ops.same_as_result(i))?;
            ops.expect(ops.type_of(4)?, "float", is_float).and_then(|lanes| fits(ops, lanes == 1))
        }
        _ => {
            let lanes = ops.expect(ops.inst.ty, "float", is_float)?;
            (2..ops.words.len()).try_for_each(|i| ops.same_as_result(i))?;
            fits(ops, number != 68 || lanes == 3)
        }
    }
}

fn fits(ops: &Operands<'_, '_>, yes: bool) -> Result<(), SpirvError> {
    if yes { Ok(()) } else { Err(ops.bad(format!("{GLSL} instruction {}: types do not fit", ops.words[1]))) }
}

/// The type of one lane of a scalar or vector.
fn element(ops: &Operands<'_, '_>, ty: u32) -> Option<u32> {
    match ops.program.types.get(ty)? {
        Type::Vector { elem, .. } => Some(*elem),
        Type::Int { .. } | Type::Float { .. } => Some(ty),
        _ => None,
    }
}

/// Operands are integers as wide and with as many lanes as the result; signedness may differ.
fn integers(ops: &Operands<'_, '_>) -> Result<(), SpirvError> {
    let lanes = ops.expect(ops.inst.ty, "integer", is_int)?;
    let size = ops.program.types.size(ops.inst.ty);
    (2..ops.words.len()).try_for_each(|i| {
        let ty = ops.type_of(i)?;
        let found = ops.expect(ty, "integer", is_int)?;
        fits(ops, found == lanes && ops.program.types.size(ty) == size)
    })
}

/// Instructions on matrices, and those with a second result.
fn composed(ops: &Operands<'_, '_>, number: u32) -> Result<(), SpirvError> {
    let types = &ops.program.types;
    let first = ops.type_of(2)?;
    match number {
        33 => {
            let column = match types.get(first) {
                Some(Type::Matrix { column, .. }) => element(ops, *column),
                _ => None,
            };
            fits(ops, column == Some(ops.inst.ty))
        }
        34 => fits(ops, first == ops.inst.ty && matches!(types.get(first), Some(Type::Matrix { .. }))),
        36 | 52 => {
            ops.expect(first, "float", is_float)?;
            let Some(Type::Struct { members }) = types.get(ops.inst.ty) else { return fits(ops, false) };
            fits(ops, members.len() == 2 && members[0] == first && second_fits(ops, number == 36, members[1]))
        }
        35 | 51 => {
            ops.expect(ops.inst.ty, "float", is_float)?;
            ops.same_as_result(2)?;
            let (_, pointee) = ops.pointer(3)?;
            fits(ops, second_fits(ops, number == 35, pointee))
        }
        _ => {
            let lanes = ops.expect(ops.inst.ty, "float", is_float)?;
            ops.same_as_result(2)?;
            ops.expect(ops.type_of(3)?, "integer", is_int).and_then(|found| fits(ops, found == lanes))
        }
    }
}

/// The second result: of the operand's type for modf, integers with as many lanes for frexp.
fn second_fits(ops: &Operands<'_, '_>, modf: bool, ty: u32) -> bool {
    let Ok(first) = ops.type_of(2) else { return false };
    let lanes = |ty| ops.lanes_of(ty).map(|(_, n)| n);
    let integers = ops.lanes_of(ty).is_some_and(|(t, _)| *t == Type::Int { width: 32 });
    if modf { ty == first } else { integers && lanes(ty) == lanes(first) }
}

/// Packing: (kind and lanes of the packed side, kind and lanes of the unpacked side).
fn packing(ops: &Operands<'_, '_>, number: u32) -> Result<(), SpirvError> {
    let (result, operand) = (ops.inst.ty, ops.type_of(2)?);
    let (packed, unpacked) = if number < 60 { (result, operand) } else { (operand, result) };
    let is = |ty, wanted: Type, lanes| ops.lanes_of(ty).is_some_and(|(t, n)| *t == wanted && n == lanes);
    let lanes = if matches!(number, 54 | 55 | 63 | 64) { 4 } else { 2 };
    let yes = if matches!(number, 59 | 65) {
        is(packed, Type::Float { width: 64 }, 1) && is(unpacked, Type::Int { width: 32 }, 2)
    } else {
        is(packed, Type::Int { width: 32 }, 1) && is(unpacked, Type::Float { width: 32 }, lanes)
    };
    fits(ops, yes)
}
