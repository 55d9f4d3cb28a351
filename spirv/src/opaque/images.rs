//! What reads, writes, samples and measures images.

use spirv::Op;

use super::{
    Image,
    code::Code,
    sample,
    texels::{Extra, encode, give, read, texel, value_type},
};
use crate::{
    error::{ChangeError, unsupported},
    module::Inst,
};

/// The instructions instead of one whose first operand is an image.
pub(super) fn replace(
    code: &mut Code<'_, '_, '_>,
    inst: &Inst,
    variable: u32,
    image: &Image,
) -> Result<(), ChangeError> {
    let operands = code.module.operands(inst);
    match inst.op {
        Op::ImageSampleExplicitLod => sample::replace(code, inst, variable, image),
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
