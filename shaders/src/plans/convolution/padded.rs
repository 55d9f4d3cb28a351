//! Convolutions as products on matrix units over a copy of the image with its padding: the copy, the product, and the sum of its
//! parts where sums are cut.

use halite_ops::{
    convolution::Convolution,
    window::{Layout, Window},
};
use halite_sizes::Size;

use super::KernelInputs;
use crate::{
    Params, Plan, Slot, Step, Unfit,
    plan::{fixed, groups, module, narrow},
    plans::{
        epilogue::activation_code,
        moves::{flat_grid, items_for},
    },
};

/// Most bytes of copies.
const MOST_BYTES: u64 = 1 << 27;
/// Columns of a kernel: filters' taps of a row have room in shared memory.
const MOST_COLUMNS: u64 = 8;
/// Channels of a block, unless fewer leave fewer zeros behind the last one.
const CHANNELS: u32 = 32;
/// Invocations of the kernels that copy and add.
const LANES: u32 = 128;
/// Workgroups that keep a large GPU busy; sums are cut until there are about as many.
const ENOUGH_WORKGROUPS: u64 = 264;
/// Turns of a part at least: parts of fewer take longer to add than they save.
const PART_TURNS: u64 = 8;

/// Results of a workgroup and of its subgroups, and the pieces in which sums leave.
struct Tiles {
    bm: u32,
    bn: u32,
    wm: u32,
    wn: u32,
    pieces: u32,
}

impl Tiles {
    fn of(params: &Params) -> Result<Tiles, Unfit> {
        let p = |name| params.get(name);
        let tiles = Tiles { bm: p("bm")?, bn: p("bn")?, wm: p("wm")?, wn: p("wn")?, pieces: p("pieces")? };
        let Tiles { bm, bn, wm, wn, pieces } = tiles;
        if [bm % wm, bn % wn, wm % (16 * pieces), wn % 16] != [0; 4] {
            return Err(Unfit(format!("has tiles of {bm}x{bn} that subgroups with {wm}x{wn} do not cover")));
        }
        Ok(tiles)
    }

    fn lanes(&self) -> u32 {
        self.bm / self.wm * (self.bn / self.wn) * 32
    }

    /// 16-byte words of shared memory: both tiles, and later a piece of the sums.
    fn words(&self, channels: u32, columns: u32, dilation: u32) -> Option<u32> {
        let place = channels / 8;
        let left = self.bm.checked_mul((columns * place) | 1)?;
        let span = dilation.checked_mul(columns - 1)?.checked_add(self.bn)?;
        let tiles = span.checked_mul(place + 1)?.checked_add(left)?;
        Some(tiles.max(self.bm / self.pieces * (self.bn / 4 + 1)))
    }
}

/// The copy, and sizes of both operands in it.
struct Copied {
    step: Step,
    bytes: [Size; 2],
    channels: u32,
    blocks: u64,
    pitch: Size,
    places: Size,
}

/// Whether a size is known to be even, so that rows of results begin at words.
fn even(size: Size) -> bool {
    size.is_constant() && size.is_multiple_of(2)
}

/// Places from one row to the next. The padding behind a row is also the one in front of the next row.
fn pitch(w: &Window) -> Size {
    let reach = w.dilations[1] * (w.kernel[1] - 1);
    let more = (w.pads[1] + w.pads[3]).saturating_sub(reach);
    let pitch = w.input[1] + w.pads[1].max(w.pads[3]).max(more);
    if even(w.output()[1]) { pitch.next_multiple_of(2u64) } else { pitch }
}

/// The image with its padding, and filters tap by tap, in blocks of channels.
fn copied(shape: &Convolution, tiles: &Tiles, bindings: &[Slot]) -> Result<Copied, Unfit> {
    let w = &shape.window;
    let [rows, _] = w.output();
    let pitch = pitch(w);
    let row_step = pitch * w.dilations[0];
    let reach = row_step * (w.kernel[0] - 1) + w.dilations[1] * (w.kernel[1] - 1);
    let places = (rows * pitch).div_ceil(tiles.bn) * u64::from(tiles.bn) + reach;
    let half = u64::from(CHANNELS / 2);
    let few = shape.channels.next_multiple_of(half) % (2 * half) != 0 && shape.channels <= 4 * half;
    let channels = if few { CHANNELS / 2 } else { CHANNELS };
    let blocks = shape.channels.div_ceil(channels.into());
    let taps = w.kernel[0] * w.kernel[1];
    let place = u64::from(channels / 8);
    let words = [places * blocks * shape.images * place, Size::from(shape.filters * blocks * taps * place)];
    let bytes = words.map(|count| count * 16);
    if !(bytes[0] + bytes[1]).is_at_most(MOST_BYTES) {
        return Err(Unfit(format!("copies {} bytes, more than {MOST_BYTES}", bytes[0] + bytes[1])));
    }
    let sizes = [shape.channels.into(), w.input[0], w.input[1], w.pads[0].into(), w.pads[1].into()];
    let rest = [pitch, places, blocks.into(), taps.into(), words[0], words[1]];
    let push =
        sizes.into_iter().chain(rest).map(|value| narrow("a size", value)).collect::<Result<_, _>>()?;
    let total = narrow("words of both operands", words[0] + words[1])?;
    let items = items_for(total, LANES, 1);
    let step = Step {
        module: module("conv2d_padded_image_f16")?,
        constants: vec![LANES, channels, items],
        push,
        bindings: vec![bindings[0], bindings[1], Slot::Scratch(0), Slot::Scratch(1)],
        grid: flat_grid(total, LANES * items)?,
        subgroup_size: 0,
    };
    Ok(Copied { step, bytes, channels, blocks, pitch, places })
}

/// How many parts of how many blocks of channels make about enough workgroups of `tiles` tiles.
fn parts(tiles: Size, blocks: u64, rows: u64, most: u32) -> (u64, u64) {
    // Any number of parts computes the sums.
    let wanted = ENOUGH_WORKGROUPS.div_ceil(tiles.value().max(1)).min(most.into());
    let parts = wanted.min(blocks * rows / PART_TURNS).max(1);
    let part = blocks.div_ceil(parts);
    (blocks.div_ceil(part), part)
}

/// The dispatches of `padded.comp`; `params` say whether sums are cut.
pub(in crate::plans) fn padded(shape: &Convolution, kernel: KernelInputs<'_>) -> Result<Plan, Unfit> {
    let (w, tiles) = (&shape.window, Tiles::of(kernel.params)?);
    if shape.groups != 1 || shape.layout != Layout::Nchw || w.strides != [1, 1] || shape.channels == 0 {
        return Err(Unfit("wants channels, channels first, one group and strides of 1".into()));
    }
    if w.kernel == [1, 1] || w.kernel[1] > MOST_COLUMNS {
        return Err(Unfit(format!("wants kernels of more than one tap and at most {MOST_COLUMNS} columns")));
    }
    // Tells of sizes that kernels cannot count.
    super::push(shape)?;
    let copied = copied(shape, &tiles, &kernel.bindings)?;
    let [rows, _] = w.output();
    let [across, down] = [groups(rows * copied.pitch, tiles.bn)?, groups(shape.filters, tiles.bm)?];
    let most = kernel.params.get("parts")?;
    let (parts, part) = parts(across * down * shape.images, copied.blocks, w.kernel[0], most);
    if most > 1 && parts < 2 {
        return Err(Unfit("shares blocks of channels among workgroups, and there are tiles enough".into()));
    }
    let grid = [across, down, narrow("images and parts", shape.images * parts)?];
    let product = Step { grid, ..product(shape, &kernel, &tiles, &copied, [parts, part])? };
    let (mut steps, mut scratch) = (vec![copied.step, product], copied.bytes.to_vec());
    if parts > 1 {
        let (add, bytes) = summed(shape, &kernel, parts)?;
        steps.push(add);
        scratch.push(bytes);
    }
    Ok(Plan::new(steps, scratch))
}

/// The dispatch of the product, without its grid.
fn product(
    shape: &Convolution,
    kernel: &KernelInputs<'_>,
    tiles: &Tiles,
    copied: &Copied,
    [parts, part]: [u64; 2],
) -> Result<Step, Unfit> {
    let w = &shape.window;
    let (columns, dilation) = (fixed("the kernel", w.kernel[1])?, fixed("a dilation", w.dilations[1])?);
    let room = kernel.params.get("shared")? / 16;
    let words = tiles.words(copied.channels, columns, dilation).filter(|words| *words <= room);
    let words = words.ok_or_else(|| Unfit("has tiles that need more shared memory".into()))?;
    let whole = [kernel.added.code(), activation_code(kernel.activation)];
    let [added, activation] = if parts > 1 { [0, 0] } else { whole };
    let &Tiles { bm, bn, wm, wn, pieces } = tiles;
    let mut constants =
        vec![tiles.lanes(), bm, bn, wm, wn, copied.channels, columns, dilation, pieces, words];
    let [out_rows, out_columns] = w.output();
    constants.extend([fixed("parts", parts)?, added, activation, if even(out_columns) { 2 } else { 1 }]);
    let sizes = [shape.filters.into(), out_rows, out_columns, copied.pitch, copied.places];
    let row_step = copied.pitch * w.dilations[0];
    let rest = [copied.blocks.into(), part.into(), w.kernel[0].into(), row_step];
    let push =
        sizes.into_iter().chain(rest).map(|value| narrow("a size", value)).collect::<Result<_, _>>()?;
    let [_, filters, bias, result, residual] = kernel.bindings[..] else {
        return Err(Unfit("has other bindings than convolutions have".into()));
    };
    let operands = [Slot::Scratch(0), Slot::Scratch(1)];
    let results = if parts > 1 { [Slot::Scratch(2), filters, filters] } else { [result, bias, residual] };
    let bindings = [&operands[..], &results].concat();
    Ok(Step {
        module: module(kernel.build)?,
        constants,
        push,
        bindings,
        grid: [Size::constant(0); 3],
        subgroup_size: 32,
    })
}

/// The sum of the parts, and the bytes that they take.
fn summed(shape: &Convolution, kernel: &KernelInputs<'_>, parts: u64) -> Result<(Step, Size), Unfit> {
    let [rows, columns] = shape.window.output();
    let results = rows * columns * shape.filters * shape.images;
    narrow("a number of sums", results * parts)?;
    let (added, activation) = (kernel.added.code(), activation_code(kernel.activation));
    let sizes = [shape.images, shape.filters.into(), rows * columns];
    let add = Step {
        module: module("conv2d_matrix_add_f16")?,
        constants: vec![LANES, added, activation, fixed("parts", parts)?],
        push: sizes.into_iter().map(|value| narrow("a size", value)).collect::<Result<_, _>>()?,
        bindings: vec![Slot::Scratch(2), kernel.bindings[2], kernel.bindings[3], kernel.bindings[4]],
        grid: [groups(results, LANES)?, 1.into(), 1.into()],
        subgroup_size: 0,
    };
    Ok((add, results * parts * 4))
}
