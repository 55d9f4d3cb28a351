//! Texels: what reads, writes and measures images, and components as numbers.

use spirv::{GlslStd450Op, Op};

use super::{
    code::Code,
    what::{Image, Numbers},
};
use crate::{
    error::{ChangeError, unsupported},
    module::Inst,
};

/// Image operands that need a value each; all others of `OpImageRead` say how memory is seen by others.
const LOD: u32 = 2;
const CONST_OFFSET: u32 = 8;
const OFFSET: u32 = 16;
/// Visibility and signedness, which change nothing here, and their operands.
const HARMLESS: u32 = 0x3F00;

/// What stands behind the coordinates of an instruction on an image.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Extra {
    /// The level of detail.
    pub lod: Option<u32>,
    /// Texels that are added to coordinates.
    pub offset: Option<u32>,
}

impl Extra {
    /// Of the words from the mask on.
    ///
    /// # Errors
    /// There is an operand that is not supported.
    pub fn of(words: &[u32]) -> Result<Extra, ChangeError> {
        let Some((mask, mut rest)) = words.split_first() else { return Ok(Extra::default()) };
        if mask & !(LOD | CONST_OFFSET | OFFSET | HARMLESS) != 0 {
            return unsupported(format!("image operands {mask:#x}"));
        }
        let mut next = |bit: u32| {
            let (value, behind) = rest.split_first().filter(|_| mask & bit != 0)?;
            rest = behind;
            Some(*value)
        };
        Ok(Extra { lod: next(LOD), offset: next(CONST_OFFSET).or_else(|| next(OFFSET)) })
    }
}

/// The instructions instead of one whose first operand is an image.
pub(super) fn replace(
    code: &mut Code<'_, '_, '_>,
    inst: &Inst,
    variable: u32,
    image: &Image,
) -> Result<(), ChangeError> {
    let operands = code.module.operands(inst);
    match inst.op {
        Op::ImageFetch | Op::ImageRead => {
            let extra = Extra::of(&operands[2..])?;
            let at = coordinates(code, operands[1], extra)?;
            let (inside, index) = texel(code, image, at);
            let parts = read(code, variable, image, index);
            give(code, inst, image, inside, &parts)
        }
        Op::ImageWrite => {
            Extra::of(&operands[3..])?;
            let at = coordinates(code, operands[1], Extra::default())?;
            write(code, variable, image, at, operands[2])
        }
        Op::ImageQuerySize | Op::ImageQuerySizeLod => {
            let ints = code.type_def(inst.ty);
            let Some((Op::TypeVector, &[part, 2])) = ints else {
                return unsupported("the size of an image that has not two dimensions");
            };
            let sizes = image.size.map(|size| code.word(size));
            let sizes = sizes.map(|size| code.as_type(part, size));
            code.named(Op::CompositeConstruct, inst.ty, inst.id, &sizes);
            Ok(())
        }
        Op::ImageQueryLevels | Op::ImageQuerySamples => {
            let one = code.word(1);
            code.named(Op::Bitcast, inst.ty, inst.id, &[one]);
            Ok(())
        }
        other => unsupported(format!("{other:?} of an image")),
    }
}

/// The texel that coordinates name, moved by an offset.
fn coordinates(code: &mut Code<'_, '_, '_>, at: u32, extra: Extra) -> Result<[u32; 2], ChangeError> {
    let Some(Ok(mut at)) = code.coordinates(at, 2).map(<[u32; 2]>::try_from) else {
        return unsupported("an image that has not two dimensions");
    };
    if let Some(offset) = extra.offset {
        let Some(by) = code.coordinates(offset, 2) else { return unsupported("an offset of other types") };
        at = [0, 1].map(|axis| code.ints2(Op::IAdd, at[axis], by[axis]));
    }
    Ok(at)
}

/// Whether coordinates are in the image, and the number of the texel, which always is in it.
pub(super) fn texel(code: &mut Code<'_, '_, '_>, image: &Image, at: [u32; 2]) -> (u32, u32) {
    let uint = code.uint();
    let at = at.map(|at| code.as_type(uint, at));
    let inside = [0, 1].map(|axis| {
        let size = code.word(image.size[axis]);
        code.test(Op::ULessThan, at[axis], size)
    });
    let inside = code.test(Op::LogicalAnd, inside[0], inside[1]);
    let [x, y] = [0, 1].map(|axis| {
        let last = code.word(image.size[axis].saturating_sub(1));
        code.ext(GlslStd450Op::UMin, uint, &[at[axis], last])
    });
    let width = code.word(image.size[0]);
    let row = code.words2(Op::IMul, y, width);
    (inside, code.words2(Op::IAdd, row, x))
}

/// The components of a texel, as many as the image has.
pub(super) fn read(code: &mut Code<'_, '_, '_>, variable: u32, image: &Image, texel: u32) -> Vec<u32> {
    let count = code.word(image.components);
    let first = code.words2(Op::IMul, texel, count);
    let component = |i| {
        let by = code.word(i);
        let index = code.words2(Op::IAdd, first, by);
        let bits = code.bits_at(variable, index, image.bits);
        decode(code, image, bits)
    };
    (0..image.components).map(component).collect()
}

/// The type of a component's value: f32, or an integer of 32 bits.
pub(super) fn value_type(code: &mut Code<'_, '_, '_>, numbers: Numbers) -> u32 {
    match numbers {
        Numbers::Unorm | Numbers::Snorm | Numbers::Float => code.float(),
        Numbers::Uint => code.uint(),
        Numbers::Sint => code.int(),
    }
}

/// The largest normalized number as an integer.
fn largest(image: &Image) -> f32 {
    let bits = image.bits - u32::from(image.numbers == Numbers::Snorm);
    ((1u64 << bits) - 1) as f32
}

/// Bits as a value.
fn decode(code: &mut Code<'_, '_, '_>, image: &Image, bits: u32) -> u32 {
    let (float, int) = (code.float(), code.int());
    let signed = |code: &mut Code<'_, '_, '_>| {
        let (zero, count) = (code.word(0), code.word(image.bits));
        let bits = code.as_type(int, bits);
        code.value(Op::BitFieldSExtract, int, &[bits, zero, count])
    };
    match image.numbers {
        Numbers::Uint => bits,
        Numbers::Sint => signed(code),
        Numbers::Float if image.bits == 32 => code.as_type(float, bits),
        Numbers::Float => {
            let pair = code.vector(float, 2);
            let pair = code.ext(GlslStd450Op::UnpackHalf2x16, pair, &[bits]);
            code.value(Op::CompositeExtract, float, &[pair, 0])
        }
        Numbers::Unorm => {
            let (value, by) = (code.value(Op::ConvertUToF, float, &[bits]), code.real(largest(image)));
            code.floats2(Op::FDiv, value, by)
        }
        Numbers::Snorm => {
            let value = signed(code);
            let (value, by) = (code.value(Op::ConvertSToF, float, &[value]), code.real(largest(image)));
            let (value, least) = (code.floats2(Op::FDiv, value, by), code.real(-1.0));
            code.ext(GlslStd450Op::FMax, float, &[value, least])
        }
    }
}

/// A value as bits, zeros above them.
fn encode(code: &mut Code<'_, '_, '_>, image: &Image, value: u32) -> u32 {
    let (float, int, uint) = (code.float(), code.int(), code.uint());
    let bits = match image.numbers {
        Numbers::Uint => value,
        Numbers::Sint => code.as_type(uint, value),
        Numbers::Float if image.bits == 32 => code.as_type(uint, value),
        Numbers::Float => {
            let (pair, zero) = (code.vector(float, 2), code.real(0.0));
            let pair = code.value(Op::CompositeConstruct, pair, &[value, zero]);
            code.ext(GlslStd450Op::PackHalf2x16, uint, &[pair])
        }
        Numbers::Unorm | Numbers::Snorm => {
            let is_signed = image.numbers == Numbers::Snorm;
            let limits = [if is_signed { -1.0 } else { 0.0 }, 1.0].map(|limit| code.real(limit));
            let value = code.ext(GlslStd450Op::FClamp, float, &[value, limits[0], limits[1]]);
            let by = code.real(largest(image));
            let value = code.floats2(Op::FMul, value, by);
            let value = code.ext(GlslStd450Op::RoundEven, float, &[value]);
            let value = code.value(Op::ConvertFToS, int, &[value]);
            code.as_type(uint, value)
        }
    };
    if image.bits == 32 {
        return bits;
    }
    let mask = code.word((1 << image.bits) - 1);
    code.words2(Op::BitwiseAnd, bits, mask)
}

/// Gives four components as the result of an instruction: zeros outside, and 0, 0, 1 for those that the image has not.
pub(super) fn give(
    code: &mut Code<'_, '_, '_>,
    inst: &Inst,
    image: &Image,
    inside: u32,
    parts: &[u32],
) -> Result<(), ChangeError> {
    let ty = value_type(code, image.numbers);
    if !matches!(code.type_def(inst.ty), Some((Op::TypeVector, [part, 4])) if *part == ty) {
        return unsupported("texels of other types than those of the image's format");
    }
    let word = |code: &mut Code<'_, '_, '_>, one: bool| {
        let word = match image.numbers {
            Numbers::Uint | Numbers::Sint => u32::from(one),
            _ => if one { 1.0f32 } else { 0.0 }.to_bits(),
        };
        code.edit.global(Op::Constant, Some(ty), &[word])
    };
    let mut all = Vec::new();
    for i in 0..4 {
        let missing = word(code, i == 3);
        let part = parts.get(i).copied().unwrap_or(missing);
        let zero = word(code, false);
        all.push(code.select(ty, inside, part, zero));
    }
    code.named(Op::CompositeConstruct, inst.ty, inst.id, &all);
    Ok(())
}

/// Writes a texel where it is in the image.
fn write(
    code: &mut Code<'_, '_, '_>,
    variable: u32,
    image: &Image,
    at: [u32; 2],
    value: u32,
) -> Result<(), ChangeError> {
    let ty = value_type(code, image.numbers);
    let has = match code.type_of(value).and_then(|of| code.type_def(of)) {
        Some((Op::TypeVector, &[part, count])) if part == ty => count,
        Some(_) if code.type_of(value) == Some(ty) => 1,
        _ => return unsupported("texels of other types than those of the image's format"),
    };
    if has < image.components {
        return unsupported("texels with fewer components than the image has");
    }
    let (inside, texel) = texel(code, image, at);
    let count = code.word(image.components);
    let first = code.words2(Op::IMul, texel, count);
    let parts = code.parts(value, ty, has);
    for (i, part) in (0..image.components).zip(parts) {
        let by = code.word(i);
        let index = code.words2(Op::IAdd, first, by);
        let bits = encode(code, image, part);
        code.put_bits(variable, inside, index, image.bits, bits);
    }
    Ok(())
}
