//! Turns that the loops of kernels take. llvmpipe ends the loops of an invocation once they have turned 65,535 times, all together,
//! and says nothing: what they would have added is lost. Plans whose loops turn more often are not for it.
//!
//! The figures are estimates from above, from the loops of the kernels' sources; loops whose number of turns is a constant of the
//! code are unrolled, and count as nothing where they are short. `conformance` holds them: it runs every variant on sums of tens of
//! thousands of terms.

use halite_ops::{Operation, convolution::Convolution};
use halite_sizes::Size;

use crate::{
    Params, Plan, Variant,
    plans::{expert_matmul::turns_of_a_tile, norm_last, scatters, suppress::turns_of_a_box},
};

/// Turns of the short loops that every kernel may have beside those that sizes decide.
const OTHERS: u64 = 64;

/// The most turns that all loops of an invocation take, of any step of a plan.
pub(crate) fn turns(variant: &Variant, operation: &Operation, plan: &Plan) -> Size {
    let loops = Loops { template: &variant.template, params: &variant.params, plan };
    let turns = match operation {
        Operation::Reduce(_) => loops.lines(2),
        Operation::Softmax(_) => loops.lines(2),
        Operation::LineCodes(_) => loops.lines(2),
        Operation::ArgReduce(_) => loops.lines(5),
        Operation::Norm(_) if variant.template == "last" => norm_last::turns(plan),
        Operation::Norm(_) if variant.template != "by_channel" => loops.lines(3),
        Operation::CumulativeSum(_) => loops.lines(2 + u64::from(loops.param("along").max(1).ilog2())),
        Operation::MatMul(op) => loops.product(op.k),
        Operation::Conv2d(op) => loops.convolution(op.shape().ok()),
        Operation::Conv1d(op) => loops.convolution(op.images().shape().ok()),
        Operation::Conv2dInt8(op) => loops.convolution(op.shape().ok()),
        Operation::ConvTranspose2d(op) => {
            let [channels, _, rows, columns] = op.filter;
            let each = if variant.template == "direct" { columns * (1 + channels) } else { columns };
            (rows * (1 + each)).max(channels).into()
        }
        Operation::Attention(op) => loops.attention(op.kv_len),
        Operation::QuantMatMul(op) => loops.chunks(op.k.into()),
        Operation::BlockMatMul(op) => loops.chunks(op.k.into()),
        Operation::ExpertMatMul(op) => {
            const PIECE: usize = 6;
            let [bm, bn, lanes] = ["bm", "bn", "lanes"].map(|name| loops.param(name));
            match variant.template.as_str() {
                "tiled" => {
                    loops.pushed(PIECE).div_ceil(u64::from(bm)) * turns_of_a_tile(op.k, [bm, bn, lanes])
                }
                _ => loops.chunks(op.k.into()),
            }
        }
        // Cut into dispatches, of which the last may have the more to do the more data decide.
        Operation::ScatterNd(op) => {
            scatters::turns(op.slices).last().map_or(Size::constant(0), |[first, end]| *end - *first)
        }
        Operation::Suppress(op) => {
            let last = plan.steps.last().and_then(|step| step.push.last_chunk::<2>());
            let chosen = last.map_or(Size::constant(0), |[first, end]| *end - *first);
            chosen * turns_of_a_box(op.boxes, loops.param("lanes"))
        }
        Operation::Pool2d(op) => {
            let pace = if variant.template == "wide" { loops.param("lanes") } else { 1 };
            (op.kernel[0] * (1 + op.kernel[1].div_ceil(u64::from(pace.max(1))))).into()
        }
        _ => return Size::constant(0),
    };
    turns + OTHERS
}

/// What tells how often loops turn.
struct Loops<'a> {
    template: &'a str,
    params: &'a Params,
    plan: &'a Plan,
}

impl Loops<'_> {
    /// A parameter of the variant, 1 where it has none of that name.
    fn param(&self, name: &str) -> u32 {
        self.params.get(name).unwrap_or(1)
    }

    /// A push constant of the first step.
    fn pushed(&self, index: usize) -> Size {
        self.plan.steps.first().and_then(|step| step.push.get(index)).copied().unwrap_or(Size::constant(0))
    }

    /// Elements of a line, or of a piece of one, `4 * along` at a time, `passes` times.
    fn lines(&self, passes: u64) -> Size {
        const CHUNK: usize = 3;
        self.pushed(CHUNK).div_ceil(4 * u64::from(self.param("along"))) * passes
    }

    /// Terms of a sum of a product of matrices.
    fn product(&self, k: Size) -> Size {
        /// Where kernels that cut sums get the terms of a part.
        const PART: usize = 4;
        /// Where `vector` gets the number of invocations that share a sum.
        const SLICES: usize = 1;
        let bk = u64::from(self.param("bk"));
        match self.template {
            "vector" | "product" => {
                let first = self.plan.steps.first();
                let slices = first.and_then(|step| step.constants.get(SLICES)).map_or(1, |slices| *slices);
                self.pushed(PART).div_ceil(4 * u64::from(slices.max(1)))
            }
            "wide" => self.pushed(PART).div_ceil(bk) * (1 + bk / u64::from(self.param("unrolled").max(1))),
            "tiled" => k.div_ceil(bk) * (1 + bk + self.tile_reads(bk)),
            "bytes" => k.div_ceil(2u64),
            "exchange" | "pointwise" => quads_of(k),
            "rows" => k,
            // Matrix units, which devices with such a limit lack.
            _ => Size::constant(0),
        }
    }

    /// Turns of the loops that read tiles of `bk` terms of both operands.
    fn tile_reads(&self, bk: u64) -> u64 {
        let [bm, bn, lanes] = ["bm", "bn", "lanes"].map(|name| u64::from(self.param(name)));
        (bm * bk).div_ceil(lanes) + (bn * bk).div_ceil(lanes)
    }

    fn convolution(&self, shape: Option<Convolution>) -> Size {
        let Some(shape) = shape else { return Size::constant(0) };
        let (channels, [rows, columns]) = (shape.channels, shape.window.kernel);
        let (depth, bk) = (shape.depth(), u64::from(self.param("bk")));
        let turns = match self.template {
            "product" => return self.product(depth.into()),
            "direct" => rows * (1 + columns * (1 + channels)),
            "exchange" | "pointwise" => return quads_of(channels.into()),
            "strips" => 3 * (1 + channels),
            "patches" => channels,
            "rows" | "written" | "spans" => rows * (2 + 2 * channels),
            "gemm" => depth.div_ceil(bk) * (1 + bk + self.tile_reads(bk)),
            "wide" | "wide_cut" => 2 * self.part(depth).div_ceil(bk),
            "dots" => depth.div_ceil(u64::from(self.param("slices") * self.param("kw")).max(1)) * 4,
            "depthwise" | "depthwise_rows" => rows * (1 + columns),
            _ => 0,
        };
        turns.into()
    }

    /// Terms of a part of a convolution's sums: where they are cut, the last constant tells.
    fn part(&self, depth: u64) -> u64 {
        let first = self.plan.steps.first().filter(|_| self.template == "wide_cut");
        first.and_then(|step| step.constants.last()).map_or(depth, |part| u64::from(*part))
    }

    /// Keys that an invocation, or its workgroup, goes through.
    fn attention(&self, keys: Size) -> Size {
        /// Measured on llvmpipe: 84 in tiles of 64x32, 70 in tiles of 32x32.
        const TILE_TURNS: u64 = 96;
        match self.template {
            "exchange" => keys.div_ceil(u64::from(self.param("lanes"))),
            "slices" => keys * 5u64 / 2u64,
            "flash" => keys.div_ceil(u64::from(self.param("bk"))) * TILE_TURNS,
            // Long rows of keys are cut into as many parts as there may be.
            "split" | "decode" => {
                let tile = u64::from(self.params.get("bk").or_else(|_| self.params.get("kb")).unwrap_or(1));
                keys.div_ceil(u64::from(self.param("max_splits"))).div_ceil(tile) * TILE_TURNS
            }
            _ => Size::constant(0),
        }
    }

    /// Terms of a sum with packed weights, 32 at a time.
    fn chunks(&self, k: Size) -> Size {
        let chunks = k.div_ceil(32u64);
        match self.template {
            "tiled" => chunks * (33 + self.tile_reads(8)),
            "rows" => chunks * 10u64,
            "given" => chunks * 4u64,
            "quads" => chunks.div_ceil(u64::from(self.param("span") / 4).max(1)),
            "vector" => chunks.div_ceil(u64::from(self.param("span"))),
            _ => Size::constant(0),
        }
    }
}

/// Turns of loops that take four terms at a time where there is a multiple of four, else one.
fn quads_of(terms: Size) -> Size {
    let whole = terms % 4u64;
    if whole.is_constant() && whole == 0 { terms.div_ceil(4u64) } else { terms }
}
