//! Sampling of images: coordinates of 0 to 1, filters and address modes as Vulkan defines them, with weights in f32.

use spirv::{GlslStd450Op, Op};

use super::{
    code::Code,
    texels::{Extra, give, read, texel, value_type},
    what::{Image, Numbers, Outside, Sampler},
};
use crate::{
    error::{ChangeError, unsupported},
    module::Inst,
};

/// The instructions instead of `OpImageSampleExplicitLod`.
pub(super) fn replace(
    code: &mut Code<'_, '_, '_>,
    inst: &Inst,
    variable: u32,
    image: &Image,
) -> Result<(), ChangeError> {
    let operands = code.module.operands(inst);
    let Some(sampler) = image.sampler else {
        return unsupported("sampling of an image that has no sampler");
    };
    let extra = Extra::of(&operands[2..])?;
    let float = code.float();
    let at = match code.type_of(operands[1]).and_then(|ty| code.type_def(ty)) {
        Some((Op::TypeVector, &[part, count])) if part == float && count >= 2 => {
            code.parts(operands[1], float, 2)
        }
        _ => return unsupported("coordinates that are not two floats"),
    };
    let offset = match extra.offset {
        Some(offset) => match code.coordinates(offset, 2) {
            Some(offset) => offset,
            None => return unsupported("an offset of other types"),
        },
        None => vec![code.number(0); 2],
    };
    if sampler.linear[0] && matches!(image.numbers, Numbers::Uint | Numbers::Sint) {
        return unsupported("a linear filter of integers");
    }
    let sizes = image.size.map(|size| code.real(size as f32));
    let at = [0, 1].map(|axis| code.floats2(Op::FMul, at[axis], sizes[axis]));
    let offset = [offset[0], offset[1]];
    let source = Source { variable, image, sampler: &sampler };
    let mut parts = source.filtered(code, at, offset, sampler.linear[0]);
    if sampler.linear[0] != sampler.linear[1] {
        let Some(lod) = extra.lod else { return unsupported("a level of detail that is not given") };
        let small = source.filtered(code, at, offset, sampler.linear[1]);
        let zero = code.real(0.0);
        let is_small = code.test(Op::FOrdGreaterThan, lod, zero);
        let ty = value_type(code, image.numbers);
        parts =
            parts.iter().zip(small).map(|(large, small)| code.select(ty, is_small, small, *large)).collect();
    }
    let always = code.boolean();
    let always = code.edit.global(Op::ConstantTrue, Some(always), &[]);
    give(code, inst, image, always, &parts)
}

/// What is sampled.
struct Source<'a> {
    variable: u32,
    image: &'a Image,
    sampler: &'a Sampler,
}

impl Source<'_> {
    /// The components at coordinates in texels.
    fn filtered(
        &self,
        code: &mut Code<'_, '_, '_>,
        at: [u32; 2],
        offset: [u32; 2],
        linear: bool,
    ) -> Vec<u32> {
        let (float, int) = (code.float(), code.int());
        let whole = |code: &mut Code<'_, '_, '_>, value: u32| {
            let floor = code.ext(GlslStd450Op::Floor, float, &[value]);
            // Beyond these no image has texels; conversions of what is larger are not defined.
            let limits = [-1e9, 1e9].map(|limit| code.real(limit));
            let held = code.ext(GlslStd450Op::FClamp, float, &[floor, limits[0], limits[1]]);
            (code.value(Op::ConvertFToS, int, &[held]), floor)
        };
        if !linear {
            let at = at.map(|at| whole(code, at).0);
            let at = [0, 1].map(|axis| code.ints2(Op::IAdd, at[axis], offset[axis]));
            return self.texel(code, at);
        }
        let (half, one) = (code.real(0.5), code.number(1));
        let (mut low, mut high, mut weight) = ([0; 2], [0; 2], [0; 2]);
        for axis in 0..2 {
            let at = code.floats2(Op::FSub, at[axis], half);
            let (first, floor) = whole(code, at);
            weight[axis] = code.floats2(Op::FSub, at, floor);
            low[axis] = code.ints2(Op::IAdd, first, offset[axis]);
            high[axis] = code.ints2(Op::IAdd, low[axis], one);
        }
        let rows = [low[1], high[1]].map(|y| {
            let ends = [low[0], high[0]].map(|x| self.texel(code, [x, y]));
            mix(code, &ends, weight[0])
        });
        mix(code, &rows, weight[1])
    }

    /// The components of a texel, which may be outside.
    fn texel(&self, code: &mut Code<'_, '_, '_>, at: [u32; 2]) -> Vec<u32> {
        let at = [0, 1].map(|axis| moved(code, self.sampler.outside[axis], at[axis], self.image.size[axis]));
        let (inside, index) = texel(code, self.image, at);
        let parts = read(code, self.variable, self.image, index);
        let ty = value_type(code, self.image.numbers);
        let border = |code: &mut Code<'_, '_, '_>, i: usize| {
            let one = self.sampler.border[usize::from(i == 3)];
            let word = match self.image.numbers {
                Numbers::Uint | Numbers::Sint => one,
                _ => (one as f32).to_bits(),
            };
            code.edit.global(Op::Constant, Some(ty), &[word])
        };
        let mut all = Vec::new();
        for (i, part) in parts.into_iter().enumerate() {
            let border = border(code, i);
            all.push(code.select(ty, inside, part, border));
        }
        all
    }
}

/// `a + (b - a) * weight` as the sum of weighted ends, so that infinite texels that have no weight do not count as a difference.
fn mix(code: &mut Code<'_, '_, '_>, ends: &[Vec<u32>; 2], weight: u32) -> Vec<u32> {
    let one = code.real(1.0);
    let rest = code.floats2(Op::FSub, one, weight);
    let mut all = Vec::new();
    for (a, b) in ends[0].iter().zip(&ends[1]) {
        let (a, b) = (code.floats2(Op::FMul, *a, rest), code.floats2(Op::FMul, *b, weight));
        all.push(code.floats2(Op::FAdd, a, b));
    }
    all
}

/// Where a coordinate leads: inside of the image, except with a border.
fn moved(code: &mut Code<'_, '_, '_>, outside: Outside, at: u32, size: u32) -> u32 {
    let int = code.int();
    let size = i32::try_from(size).unwrap_or(i32::MAX / 2).min(i32::MAX / 2);
    let (zero, last, whole) = (code.number(0), code.number(size - 1), code.number(size));
    match outside {
        Outside::Border => at,
        Outside::Edge => code.ext(GlslStd450Op::SClamp, int, &[at, zero, last]),
        Outside::Repeat => code.ints2(Op::SMod, at, whole),
        Outside::Mirror => {
            let twice = code.number(2 * size);
            let within = code.ints2(Op::SMod, at, twice);
            let end = code.number(2 * size - 1);
            let back = code.ints2(Op::ISub, end, within);
            let is_first = code.test(Op::SLessThan, within, whole);
            code.select(int, is_first, within, back)
        }
        Outside::MirrorOnce => {
            let back = code.value(Op::Not, int, &[at]);
            let is_left = code.test(Op::SLessThan, at, zero);
            let once = code.select(int, is_left, back, at);
            code.ext(GlslStd450Op::SClamp, int, &[once, zero, last])
        }
    }
}
