//! Tensors in kernels: elements, and runs of elements along the last axis.

use spirv::Op;

use super::code::Code;
use crate::{
    error::{ChangeError, unsupported},
    module::Inst,
};

/// The tensor operand that gives a value for elements outside.
const OUTSIDE_VALUE: u32 = 2;

/// The instructions instead of one whose first operand is a tensor.
pub(super) fn replace(
    code: &mut Code<'_, '_, '_>,
    inst: &Inst,
    variable: u32,
    sizes: &[u32],
) -> Result<(), ChangeError> {
    let operands = code.module.operands(inst);
    match inst.op {
        Op::TensorQuerySizeARM => {
            let axis = code.module.constant_u32(operands[1]).and_then(|axis| sizes.get(axis as usize));
            let Some(size) = axis else { return unsupported("the size of an axis that the tensor has not") };
            let size = code.word(*size);
            code.named(Op::Bitcast, inst.ty, inst.id, &[size]);
            Ok(())
        }
        Op::TensorReadARM => read(code, inst, variable, sizes),
        Op::TensorWriteARM => write(code, inst, variable, sizes),
        other => unsupported(format!("{other:?} of a tensor")),
    }
}

/// An element's type: what holds it, and its bits.
#[derive(Clone, Copy)]
struct Element {
    ty: u32,
    op: Op,
    bits: u32,
    signed: bool,
}

impl Element {
    fn of(code: &Code<'_, '_, '_>, ty: u32) -> Result<Element, ChangeError> {
        let (op, bits, signed) = match code.type_def(ty) {
            Some((Op::TypeInt, &[bits, signed])) => (Op::TypeInt, bits, signed == 1),
            Some((Op::TypeFloat, &[bits])) => (Op::TypeFloat, bits, false),
            Some((Op::TypeBool, _)) => (Op::TypeBool, 8, false),
            _ => return unsupported("elements of a tensor that are no plain numbers"),
        };
        Ok(Element { ty, op, bits, signed })
    }

    /// Words of 32 bits, or less than one.
    fn words(self) -> u32 {
        self.bits.div_ceil(32)
    }

    /// The element at `index`.
    fn load(self, code: &mut Code<'_, '_, '_>, variable: u32, index: u32) -> u32 {
        let uint = code.uint();
        if self.words() == 2 {
            let one = code.word(1);
            let low = code.words2(Op::ShiftLeftLogical, index, one);
            let high = code.words2(Op::IAdd, low, one);
            let words = [low, high].map(|at| code.bits_at(variable, at, 32));
            let pair = code.vector(uint, 2);
            let pair = code.value(Op::CompositeConstruct, pair, &words);
            return code.as_type(self.ty, pair);
        }
        let bits = code.bits_at(variable, index, self.bits);
        match self.op {
            Op::TypeBool => {
                let zero = code.word(0);
                code.value(Op::INotEqual, self.ty, &[bits, zero])
            }
            Op::TypeInt if self.bits == 32 && !self.signed => bits,
            Op::TypeInt if self.bits < 32 && !self.signed => code.value(Op::UConvert, self.ty, &[bits]),
            Op::TypeInt if self.bits < 32 => {
                let (int, zero, count) = (code.int(), code.word(0), code.word(self.bits));
                let bits = code.as_type(int, bits);
                let wide = code.value(Op::BitFieldSExtract, int, &[bits, zero, count]);
                code.value(Op::SConvert, self.ty, &[wide])
            }
            Op::TypeFloat if self.bits == 16 => {
                let float = code.float();
                let pair = code.vector(float, 2);
                let pair = code.ext(spirv::GlslStd450Op::UnpackHalf2x16, pair, &[bits]);
                let wide = code.value(Op::CompositeExtract, float, &[pair, 0]);
                code.value(Op::FConvert, self.ty, &[wide])
            }
            _ => code.as_type(self.ty, bits),
        }
    }

    /// Puts an element where a condition holds.
    fn store(self, code: &mut Code<'_, '_, '_>, variable: u32, condition: u32, index: u32, value: u32) {
        let uint = code.uint();
        if self.words() == 2 {
            let pair = code.vector(uint, 2);
            let pair = code.as_type(pair, value);
            let (one, words) = (code.word(1), code.parts(pair, uint, 2));
            let low = code.words2(Op::ShiftLeftLogical, index, one);
            let high = code.words2(Op::IAdd, low, one);
            for (at, word) in [low, high].into_iter().zip(words) {
                code.put_bits(variable, condition, at, 32, word);
            }
            return;
        }
        let bits = match self.op {
            Op::TypeBool => {
                let (one, zero) = (code.word(1), code.word(0));
                code.select(uint, value, one, zero)
            }
            Op::TypeInt if self.bits == 32 && !self.signed => value,
            Op::TypeInt if self.bits < 32 => {
                let wide = match self.signed {
                    true => {
                        let int = code.int();
                        let wide = code.value(Op::SConvert, int, &[value]);
                        code.as_type(uint, wide)
                    }
                    false => code.value(Op::UConvert, uint, &[value]),
                };
                let mask = code.word((1 << self.bits) - 1);
                code.words2(Op::BitwiseAnd, wide, mask)
            }
            Op::TypeFloat if self.bits == 16 => {
                let (float, zero) = (code.float(), code.real(0.0));
                let (pair, wide) = (code.vector(float, 2), code.value(Op::FConvert, float, &[value]));
                let pair = code.value(Op::CompositeConstruct, pair, &[wide, zero]);
                code.ext(spirv::GlslStd450Op::PackHalf2x16, uint, &[pair])
            }
            _ => code.as_type(uint, value),
        };
        code.put_bits(variable, condition, index, self.bits, bits);
    }
}

/// Element types and their number: a scalar, or an array.
fn run(code: &Code<'_, '_, '_>, ty: u32) -> Result<(Element, Option<u32>), ChangeError> {
    match code.type_def(ty) {
        Some((Op::TypeArray, &[part, count])) => match code.module.constant_u32(count) {
            Some(count @ 1..=64) => Ok((Element::of(code, part)?, Some(count))),
            _ => unsupported("runs of more than 64 elements of a tensor"),
        },
        _ => Ok((Element::of(code, ty)?, None)),
    }
}

/// For each of `count` elements from coordinates on: whether it is in the tensor, and its number, which always is.
fn places(
    code: &mut Code<'_, '_, '_>,
    at: u32,
    sizes: &[u32],
    count: u32,
) -> Result<Vec<(u32, u32)>, ChangeError> {
    let (uint, rank) = (code.uint(), sizes.len() as u32);
    let Some(at) = code.coordinates(at, rank).filter(|_| rank > 0) else {
        return unsupported("coordinates of another rank than the tensor's");
    };
    let mut places = Vec::new();
    for step in 0..count {
        let (mut inside, mut index) = (None, code.word(0));
        for (axis, (at, size)) in at.iter().zip(sizes).enumerate() {
            let mut at = code.as_type(uint, *at);
            if axis + 1 == sizes.len() {
                let step = code.word(step);
                at = code.words2(Op::IAdd, at, step);
            }
            let (size, last) = (code.word(*size), code.word(size.saturating_sub(1)));
            let is_in = code.test(Op::ULessThan, at, size);
            inside = Some(inside.map_or(is_in, |all| code.test(Op::LogicalAnd, all, is_in)));
            let held = code.ext(spirv::GlslStd450Op::UMin, uint, &[at, last]);
            let row = code.words2(Op::IMul, index, size);
            index = code.words2(Op::IAdd, row, held);
        }
        places.push((inside.unwrap_or(0), index));
    }
    Ok(places)
}

fn read(code: &mut Code<'_, '_, '_>, inst: &Inst, variable: u32, sizes: &[u32]) -> Result<(), ChangeError> {
    let operands = code.module.operands(inst);
    let (element, count) = run(code, inst.ty)?;
    let outside = match operands.get(2..) {
        Some(&[mask, value, ..]) if mask & OUTSIDE_VALUE != 0 => value,
        _ => code.edit.null(element.ty),
    };
    let places = places(code, operands[1], sizes, count.unwrap_or(1))?;
    let mut all = Vec::new();
    for (inside, index) in places {
        let value = element.load(code, variable, index);
        all.push(code.select(element.ty, inside, value, outside));
    }
    let op = if count.is_some() { Op::CompositeConstruct } else { Op::CopyObject };
    code.named(op, inst.ty, inst.id, &all);
    Ok(())
}

fn write(code: &mut Code<'_, '_, '_>, inst: &Inst, variable: u32, sizes: &[u32]) -> Result<(), ChangeError> {
    let operands = code.module.operands(inst);
    let Some(ty) = code.type_of(operands[2]) else { return unsupported("a value without a type") };
    let (element, count) = run(code, ty)?;
    let places = places(code, operands[1], sizes, count.unwrap_or(1))?;
    for (i, (inside, index)) in (0u32..).zip(places) {
        let value = match count {
            Some(_) => code.value(Op::CompositeExtract, element.ty, &[operands[2], i]),
            None => operands[2],
        };
        element.store(code, variable, inside, index, value);
    }
    Ok(())
}
