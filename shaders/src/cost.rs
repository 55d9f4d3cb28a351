//! Estimates of the time of variants for shapes that nobody measured, which order variants of one template.
//!
//! The model: workgroups fill the units of the device in waves. In a wave, a workgroup takes turns in its tiles of the inner
//! dimension; a turn takes its own chain of waits and the work that all workgroups of a unit do meanwhile.
//! Memory bounds the whole from below, and sums in parts are added afterwards.

mod few_rows;
mod fragments;
mod models;
mod recurrent;
mod rows;

use halite_ops::Operation;
use halite_targets::{Capabilities, HardwareHints};

use crate::{Params, Plan, Step, Variant};

pub use models::{Matrices, Models};

use models::MODELS;

/// Microseconds of the dispatch that copies image and filters, bytes of both in a microsecond.
const COPY: (f64, f64) = (4.6289, 1.8384e6);

/// Bytes of sums in parts that are written and added in a microsecond: those of products, and of images.
const SUMS: (f64, f64) = (2.26e6, 4.7842e6);

/// What counts where neither a device nor the table tells it: a middling NVIDIA GPU of the years since 2018. Memory, registers and
/// invocations are of compute capability 8.6, by the table of Technical Specifications in NVIDIA's CUDA C++ Programming Guide; the
/// number of units is a guess.
struct Middling {
    units: u32,
    local_memory_bytes: u32,
    registers: u32,
    invocation_registers: u32,
    invocations: u32,
}

const MIDDLING: Middling = Middling {
    units: 64,
    local_memory_bytes: 102_400,
    registers: 65_536,
    invocation_registers: 255,
    invocations: 1536,
};

/// Most workgroups of a unit.
const WORKGROUPS: f64 = 16.0;
/// The part of a card's written bandwidth that copies reach.
const REACHED: f64 = 0.85;
/// Shared memory that a driver keeps for each workgroup.
const RESERVED_SHARED_BYTES: f64 = 1024.0;

/// Microseconds that a plan of a variant takes on a target; `None` where no model fits.
pub(crate) fn estimate(
    operation: &Operation,
    variant: &Variant,
    plan: &Plan,
    target: &Capabilities,
) -> Option<f64> {
    estimate_by(&MODELS, operation, variant, plan, target)
}

/// The same by other constants of products on matrix units.
fn estimate_by(
    models: &Models,
    operation: &Operation,
    variant: &Variant,
    plan: &Plan,
    target: &Capabilities,
) -> Option<f64> {
    if let Some((product, rest, more)) = rows::beside(operation, &variant.params, plan) {
        return Some(estimate_by(models, &product, variant, &rest, target)? + more);
    }
    let operand = match operation {
        Operation::MatMul(op) => op.lhs.size(),
        Operation::Conv1d(op) => op.dtype.size(),
        Operation::Conv2d(op) => op.dtype.size(),
        Operation::ConvTranspose2d(op) => op.dtype.size(),
        Operation::BlockMatMul(_) if variant.template == "unpacked" && variant.needs.matrix.is_some() => {
            return unpacked(models, variant, plan, target);
        }
        Operation::Recurrent(op) => return recurrent::estimate(op, variant, plan, target),
        _ => return None,
    };
    let nvidia = target.target.vendor().name == "nvidia";
    if !nvidia || operand != 2 {
        return None;
    }
    match variant.template.as_str() {
        "coop" => product(&variant.params, plan, &target.hints, models.of_product(operation)),
        "fragments" => in_fragments(&variant.params, plan, &target.hints, &models.fragments),
        "points" => matrices(&variant.params, plan, &target.hints, &models.unfolded),
        "image" => image(&models.images, operation, variant, plan, target),
        "image_fragments" => image(&models.image_fragments, operation, variant, plan, target),
        "taps" => matrices(&variant.params, plan, &target.hints, &models.taps),
        "padded" => padded(models, variant, plan, target),
        "unfolded" => unfolded(models, variant, plan, target),
        "folded" => folded(models, variant, plan, target),
        "product" => one_place(operation),
        template => match operation {
            Operation::MatMul(op) if template == "octets" => few_rows::octets(op),
            Operation::MatMul(op) if template == "vector" => {
                few_rows::estimate(op, &variant.params, &target.hints)
            }
            _ => None,
        },
    }
}

/// Microseconds of a dispatch that writes windows to memory, and words of them in a microsecond: fitted as `TAPS` are, to 168 times.
const UNFOLD: (f64, f64) = (2.85, 237_000.0);

/// Microseconds of the dispatch of a convolution whose images are one place each, of one more image, and bytes of weights in a
/// microsecond: from squeeze-and-excite blocks of RegNet-Y and a layer of VGG for one image and for eight, on an H200. Each image reads
/// all weights.
const PLACE: (f64, f64, f64) = (5.3, 0.95, 3.7e6);

fn one_place(operation: &Operation) -> Option<f64> {
    let Operation::Conv2d(op) = operation else { return None };
    let images = if op.input[0].is_constant() { op.input[0].as_f64() } else { return None };
    let bytes = op.filter.iter().map(|size| *size as f64).product::<f64>() * op.dtype.size() as f64;
    Some(PLACE.0 + images * (PLACE.1 + bytes / PLACE.2))
}

/// A product over an image whose channels lie last, which memory holds once. Of ten shapes of eight images on an H200 this choice
/// took 1.003 times the best tiling, in the geometric mean, and 1.03 at most; with as few registers as for products, 1.03 and 1.31.
fn image(
    constants: &Matrices,
    operation: &Operation,
    variant: &Variant,
    plan: &Plan,
    target: &Capabilities,
) -> Option<f64> {
    let bytes = operation.inputs().iter().chain(&operation.outputs()).map(|t| t.bytes().value() as f64).sum();
    matrices_beside_caches(Tiles::of(&variant.params)?, plan, &target.hints, constants, bytes)
}

/// A product of what a dispatch before it writes.
fn unfolded(models: &Models, variant: &Variant, plan: &Plan, target: &Capabilities) -> Option<f64> {
    let product = Plan::new(plan.steps.get(1..)?.to_vec(), Vec::new());
    let windows = plan.scratch.first()?.value() as f64 / 16.0;
    Some(
        matrices(&variant.params, &product, &target.hints, &models.unfolded)? + UNFOLD.0 + windows / UNFOLD.1,
    )
}

/// A product over a copy of the image with its padding.
fn padded(models: &Models, variant: &Variant, plan: &Plan, target: &Capabilities) -> Option<f64> {
    let product = plan.steps.get(1)?;
    let constant = |i: usize| product.constants.get(i).map(|value| f64::from(*value));
    let tiles = Tiles::of_taps(&variant.params, constant(5)?, constant(6)?)?;
    let pushed = |i: usize| product.push.get(i).map(|size| size.value() as f64);
    let turns = pushed(6)? * pushed(7)?;
    let bytes = |i: usize| plan.scratch.get(i).map_or(0.0, |bytes| bytes.value() as f64);
    let time = models.padded.launch + waves(&tiles, product, turns, &target.hints, &models.padded);
    let time = time + COPY.0 + (bytes(0) + bytes(1)) / COPY.1;
    Some(if plan.steps.len() > 2 { time + models.padded.add + bytes(2) / SUMS.1 } else { time })
}

/// Microseconds of the dispatches before and behind the product of a transposed convolution, and bytes of products that are folded in a
/// microsecond: from three shapes on an H100, by their best tiling.
const FOLD: (f64, f64) = (7.9, 1.28e6);

/// A product whose results are folded.
fn folded(models: &Models, variant: &Variant, plan: &Plan, target: &Capabilities) -> Option<f64> {
    let [.., product, _] = &plan.steps[..] else { return None };
    let bytes = plan.scratch.get(1)?.value() as f64;
    let time = matrices(&variant.params, &Plan::of(product.clone()), &target.hints, &models.unfolded)?;
    Some(time + FOLD.0 + bytes / FOLD.1)
}

/// Those of a product whose operands become 16-bit floats first, which all variants do alike.
fn unpacked(models: &Models, variant: &Variant, plan: &Plan, target: &Capabilities) -> Option<f64> {
    let product = Plan::new(plan.steps.get(1..)?.to_vec(), plan.scratch.get(2..)?.to_vec());
    let nvidia = target.target.vendor().name == "nvidia";
    nvidia.then(|| matrices(&variant.params, &product, &target.hints, &models.products)).flatten()
}

/// The tiles of a kernel: results of a workgroup, inner dimension, results of a subgroup.
struct Tiles {
    rows: f64,
    columns: f64,
    inner: f64,
    /// Elements of the right operand.
    right: f64,
    /// Steps of the right operand on their way in registers; 0 where it goes through shared memory.
    ring: f64,
    /// Columns of a subgroup.
    across: f64,
    subgroup: f64,
    lanes: f64,
    stages: f64,
    ahead: f64,
    /// Teams of subgroups that share the inner dimension.
    slices: f64,
    /// Pieces in which sums leave.
    pieces: f64,
    /// How much longer turns take, and how much longer sums take to leave, than those of the shapes that constants were fitted to.
    longer: [f64; 2],
}

impl Tiles {
    /// Those of a turn that takes a row of `taps` of `channels`, which read the same places.
    fn of_taps(params: &Params, channels: f64, taps: f64) -> Option<Tiles> {
        let get = |name| params.get(name).ok().map(f64::from);
        let (rows, columns, subgroup) = (get("bm")?, get("bn")?, get("wm")? * get("wn")?);
        Some(Tiles {
            rows,
            columns,
            inner: channels * taps,
            right: (columns + taps - 1.0) * channels,
            ring: 0.0,
            across: get("wn")?,
            subgroup,
            lanes: 32.0 * rows * columns / subgroup,
            stages: 1.0,
            ahead: 1.0,
            slices: 1.0,
            pieces: get("pieces")?,
            longer: [1.0; 2],
        })
    }

    fn of(params: &Params) -> Option<Tiles> {
        let get = |name| params.get(name).ok().map(f64::from);
        let (rows, columns, subgroup) = (get("bm")?, get("bn")?, get("wm")? * get("wn")?);
        let lanes = get("wave")? * rows * columns / subgroup;
        Some(Tiles {
            rows,
            columns,
            inner: get("bk")?,
            right: columns * get("bk")?,
            ring: get("ring").unwrap_or(0.0),
            across: get("wn")?,
            subgroup,
            lanes,
            stages: get("stages")?,
            ahead: get("ahead")?,
            slices: get("slices").unwrap_or(1.0),
            pieces: get("pieces").unwrap_or(1.0),
            longer: [1.0; 2],
        })
    }

    /// Elements of tiles in shared memory: of both operands, or of the left one.
    fn moved(&self) -> f64 {
        self.rows * self.inner + if self.ring > 0.0 { 0.0 } else { self.right }
    }

    /// Workgroups that a unit can hold at a time.
    fn resident(&self, hints: &HardwareHints, others: f64) -> f64 {
        let right = if self.ring > 0.0 { 0.0 } else { self.inner.max(self.columns) };
        let padded = (self.rows + right) * 16.0;
        let tiles = self.stages * (self.moved() * 2.0 + padded);
        let sums = self.rows * (self.columns + 4.0) * 4.0 / self.pieces;
        let shared = self.slices * tiles.max(sums) + RESERVED_SHARED_BYTES;
        let held =
            f64::from(hints.local_memory_per_unit_bytes.unwrap_or(MIDDLING.local_memory_bytes)) / shared;
        let lanes = self.lanes * self.slices;
        // Of a step of 16 terms, an invocation of 32 has half as many elements as there are columns, two in a register.
        let on_their_way = self.ring * self.across / 4.0;
        let registers =
            self.subgroup / 32.0 + self.moved() / 2.0 / self.lanes * self.ahead + on_their_way + others;
        let registers =
            registers.min(hints.max_registers_per_invocation.unwrap_or(MIDDLING.invocation_registers).into());
        let by_registers =
            f64::from(hints.registers_per_unit.unwrap_or(MIDDLING.registers)) / (registers * lanes);
        let by_lanes = f64::from(hints.max_invocations_per_unit.unwrap_or(MIDDLING.invocations)) / lanes;
        held.min(by_registers).min(by_lanes).clamp(1.0, WORKGROUPS).floor()
    }
}

fn matrices(params: &Params, plan: &Plan, hints: &HardwareHints, m: &Matrices) -> Option<f64> {
    matrices_over(&Tiles::of(params)?, plan, hints, m, [bytes_of(plan)?, 0.0])
}

/// The same of a product of matrices, to whose results a tensor may be added.
fn product(params: &Params, plan: &Plan, hints: &HardwareHints, m: &Matrices) -> Option<f64> {
    let longer = [1.0, fragments::leave(plan.steps.first()?)];
    matrices_over(&Tiles { longer, ..Tiles::of(params)? }, plan, hints, m, [bytes_of(plan)?, 0.0])
}

/// Bytes of the operands and results of a plan of products.
fn bytes_of(plan: &Plan) -> Option<f64> {
    let first = plan.steps.first()?;
    let pushed = |i: usize| first.push.get(i).map(|size| size.value() as f64);
    let [rows, columns, inner, batch] = [pushed(0)?, pushed(1)?, pushed(2)?, pushed(5)?];
    Some((rows * inner + inner * columns + rows * columns) * batch * 2.0)
}

/// The same with the right operand in fragments.
fn in_fragments(params: &Params, plan: &Plan, hints: &HardwareHints, m: &Matrices) -> Option<f64> {
    let longer = fragments::longer(plan.steps.first()?);
    matrices_beside_caches(Tiles { longer, ..Tiles::of(params)? }, plan, hints, m, bytes_of(plan)?)
}

/// The same by constants that were fitted beside the rate of caches, with operands and results of so many bytes.
fn matrices_beside_caches(
    tiles: Tiles,
    plan: &Plan,
    hints: &HardwareHints,
    m: &Matrices,
    bytes: f64,
) -> Option<f64> {
    let cached = from_caches(&tiles, plan.steps.first()?, hints)?;
    matrices_over(&tiles, plan, hints, m, [bytes, cached])
}

/// The same with operands and results of so many bytes, and microseconds that caches take.
fn matrices_over(
    tiles: &Tiles,
    plan: &Plan,
    hints: &HardwareHints,
    m: &Matrices,
    [bytes, cached]: [f64; 2],
) -> Option<f64> {
    let first = plan.steps.first()?;
    let turns = (first.push.get(4)?.value() as f64 / (tiles.inner * tiles.slices)).ceil();
    let rows = first.push.first()?.value() as f64;
    let computed = waves(tiles, first, turns, hints, m).max(from_memory(bytes, hints));
    let time = m.launch + together(computed, cached);
    let parts = plan.scratch.first().map_or(0.0, |bytes| bytes.value() as f64);
    let second = if rows <= few_rows::SECOND_DISPATCH.0 { few_rows::SECOND_DISPATCH.1 } else { 0.0 };
    Some(if plan.steps.len() > 1 { time + m.add + second + parts / SUMS.0 } else { time })
}

/// Microseconds in which the workgroups of a product take their turns.
fn waves(tiles: &Tiles, step: &Step, turns: f64, hints: &HardwareHints, m: &Matrices) -> f64 {
    let units = f64::from(hints.compute_units.unwrap_or(MIDDLING.units));
    let workgroups: f64 = step.grid.iter().map(|count| count.value() as f64).product();
    let resident = tiles.resident(hints, m.registers);
    let results = tiles.rows * tiles.columns;
    let waits = if results == tiles.subgroup { m.alone } else { m.turn }
        + m.turn_products * tiles.subgroup * tiles.inner / 32768.0;
    let moved = m.moved * tiles.rows * tiles.inner + m.moved_right * tiles.right;
    let work = (m.products * results * tiles.inner / 524_288.0 + moved / 16384.0) * tiles.slices;
    let leave = (m.results + m.slices * (tiles.slices - 1.0)) * results / 4096.0;
    let (turns, leave) = (turns * tiles.longer[0], leave * tiles.longer[1]);
    let wave = |held: f64| m.begin + turns * (waits + held * work) + held * leave;
    let full = (workgroups / (units * resident)).floor();
    let rest = workgroups - full * units * resident;
    let last = if rest > 0.0 { wave((rest / units).ceil()) } else { 0.0 };
    full * wave(resident) + last
}

/// Bytes that a unit reads of caches in a microsecond: on an H200, kernels of small tiles reach 7 to 10 TB/s with all 132 units.
const CACHED: f64 = 60_000.0;

/// Microseconds in which units read the tiles of all workgroups.
fn from_caches(tiles: &Tiles, step: &Step, hints: &HardwareHints) -> Option<f64> {
    let units = f64::from(hints.compute_units.unwrap_or(MIDDLING.units));
    let workgroups: f64 = step.grid.iter().map(|count| count.value() as f64).product();
    let part = step.push.get(4)?.value() as f64;
    let bytes = (tiles.rows * tiles.inner + tiles.right) * 2.0 * (part / tiles.inner).ceil();
    Some(workgroups * bytes / (units.min(workgroups).max(1.0) * CACHED))
}

/// Microseconds of two things that are done at a time and keep each other waiting where both take long.
fn together(one: f64, other: f64) -> f64 {
    (one.powi(3) + other.powi(3)).cbrt()
}

/// Microseconds that memory takes for these bytes, where its bandwidth is known.
fn from_memory(bytes: f64, hints: &HardwareHints) -> f64 {
    // 10^9 bytes a second are 10^3 bytes a microsecond.
    hints.memory_bandwidth_gbps.map_or(0.0, |rate| bytes / (f64::from(rate) * 1e3 * REACHED))
}

#[cfg(test)]
mod tests {
    use halite_targets::Target;

    use crate::{Tuning, rank};

    use super::*;

    fn first(shape: &str) -> String {
        let operation = crate::parse(&format!("matmul:{shape},lhs=f16,rhs=f16,out=f16")).unwrap();
        let target = Capabilities::of(Target::parse("hopper-h200-linux").unwrap());
        let ranked = rank(&operation, &target, Tuning::shipped());
        assert!(ranked[0].plan().is_some());
        ranked[0].variant.name.clone()
    }

    #[test]
    fn tiles_follow_the_shape() {
        assert_eq!(first("m=1,n=4096,k=4096"), "matmul.f16.octets");
        assert_eq!(first("m=2,n=48,k=1152,rhs_transposed=true"), "matmul.f16.vectorspread");
        assert_eq!(first("m=8,n=48,k=1152,rhs_transposed=true"), "matmul.f16.coop16x32x32s8");
        assert_eq!(first("m=8,n=1280,k=960,rhs_transposed=true"), "matmul.f16.coop16x32x32s8");
        assert_eq!(first("m=2,n=4096,k=4096"), "matmul.f16.coop16x32x32s8");
        assert_eq!(first("m=8,n=3200,k=3072"), "matmul.f16.coop16x32x32s8");
        assert_eq!(first("m=8,n=256,k=2048"), "matmul.f16.coop16x64x128cut16");
        assert!(first("m=16,n=4096,k=4096").contains("coop16x"));
        assert_eq!(first("m=128,n=768,k=3072"), "matmul.f16.coop64x64x64cut8");
        assert!(first("m=512,n=2048,k=2048").contains("coop64x"));
        assert_eq!(first("m=4096,n=4096,k=4096"), "matmul.f16.coop128x128x64");
        assert_eq!(first("m=8192,n=8192,k=1024"), "matmul.f16.coop192x256x32");
    }

    #[test]
    fn right_operands_in_fragments_are_for_many_rows() {
        let target = Capabilities::of(Target::parse("hopper-h200-linux").unwrap());
        let estimated = |shape: &str| {
            let text = format!("matmul:{shape},lhs=f16,rhs=f16,out=f16,bias=true");
            let operation = crate::parse(&text).unwrap();
            let first = rank(&operation, &target, Tuning::shipped()).remove(0);
            (first.variant.name.clone(), first.estimate(&operation, &target).unwrap())
        };
        for (shape, is_faster) in [
            ("m=1576,n=3072,k=768", true),
            ("m=13994,n=768,k=128", true),
            ("m=512,n=4096,k=4096", true),
            ("m=197,n=768,k=3072", true),
            ("m=240,n=1536,k=256", false),
            ("m=8,n=768,k=768", false),
        ] {
            let (name, time) = estimated(&format!("{shape},rhs_fragments=true"));
            assert!(name.starts_with("matmul.f16.fragments"), "{name}");
            let (_, plain) = estimated(&format!("{shape},rhs_transposed=true"));
            assert_eq!(time < plain, is_faster, "{shape}: {time}, {plain}");
        }
    }

    #[test]
    fn padded_tiles_follow_the_shape() {
        let target = Capabilities::of(Target::parse("hopper-h100-linux").unwrap());
        let first = |images: u64, channels: u64, filters: u64, side: u64| {
            let input = format!("input={images}x{channels}x{side}x{side},filter={filters}x{channels}x3x3");
            let text = format!("conv2d:{input},pads=1x1x1x1,dtype=f16");
            let ranked = rank(&crate::parse(&text).unwrap(), &target, Tuning::shipped());
            ranked[0].variant.name.clone()
        };
        assert_eq!(first(8, 2048, 512, 28), "conv2d.f16.padded128x256w64x64");
        assert_eq!(first(8, 320, 320, 64), "conv2d.f16.padded64x128w64x32");
        assert_eq!(first(1, 2048, 512, 28), "conv2d.f16.padded128x128w64x64cut");
        assert_eq!(first(8, 32, 32, 256), "conv2d.f16.padded32x128");
    }

    #[test]
    fn images_whose_channels_lie_last_go_to_matrix_units() {
        let target = Capabilities::of(Target::parse("hopper-h200-linux").unwrap());
        let first = |shape: &str| {
            let text = format!("conv2d:{shape},pads=1x1x1x1,layout=nhwc,dtype=f16");
            rank(&crate::parse(&text).unwrap(), &target, Tuning::shipped())[0].variant.name.clone()
        };
        assert_eq!(first("input=8x56x56x64,filter=3x3x64x64"), "conv2d.f16.image64x64x64");
        assert_eq!(first("input=8x56x56x128,filter=3x3x128x128"), "conv2d.f16.image192x128x64");
        assert_eq!(first("input=8x14x14x256,filter=3x3x256x256"), "conv2d.f16.image64x64x64s2");
        assert_eq!(first("input=8x7x7x512,filter=3x3x512x512"), "conv2d.f16.image128x128x64cut8");
        assert!(first("input=8x28x28x192,filter=3x3x64x192,groups=3").contains(".image"));
        for few in ["3x3x32x192,groups=6", "3x3x4x192,groups=48", "3x3x16x192,groups=12"] {
            assert_eq!(first(&format!("input=8x28x28x192,filter={few}")), "conv2d.f16.groupedlast");
        }
        assert!(!first("input=8x28x28x12,filter=3x3x12x12").contains(".image"));
        assert!(first("input=8x56x56x128,filter=3x3x128x128,filter_fragments=true").contains(".fragments"));
    }

    #[test]
    fn blocks_of_many_rows_go_to_matrix_units() {
        let target = Capabilities::of(Target::parse("hopper-h200-linux").unwrap());
        let first = |m: u64| {
            let text = format!("block_matmul:m={m},n=3072,k=2048,format=q4_k");
            rank(&crate::parse(&text).unwrap(), &target, Tuning::shipped())[0].variant.name.clone()
        };
        assert!(first(512).contains("coop"), "{}", first(512));
        assert!(first(33).contains("coop"), "{}", first(33));
        assert!([3, 8, 32].iter().all(|m| first(*m).ends_with(".several")), "{}", first(8));
        assert!(first(2).ends_with(".matrix16"), "{}", first(2));
    }

    #[test]
    fn a_target_without_known_units_is_taken_for_a_middling_one() {
        let operation = crate::parse("matmul:m=128,n=768,k=3072,lhs=f16,rhs=f16,out=f16").unwrap();
        for triple in ["hopper-h200-linux", "hopper-h100-linux", "ampere-unknown-linux", "ada-rtx4060-linux"]
        {
            let mut target = Capabilities::of(Target::parse(triple).unwrap());
            target.hints.compute_units = None;
            let ranked = rank(&operation, &target, Tuning::shipped());
            let first = &ranked[0].variant.name;
            assert!(first.ends_with("x64cut8"), "{triple}: {first}");
        }
    }
}
