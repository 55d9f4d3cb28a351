//! Mixtures of experts as `com.microsoft` has them: a router's numbers for each row, and each expert's weights, floats or codes.

use bytes::Bytes;
use halite_ops::{
    DType, Values,
    blocks::BlockFormat,
    expert_matmul::RowLayout,
    expression::{Expression, Function, Operand, Scalar},
    reduce::ReduceKind,
};
use halite_sizes::Size;

use super::{Import, NodeView, Result, microsoft_quantized::nibbles};
use crate::{
    build::{Builder, ExpertMatrices, QuantWeights, Range},
    graph::{ElementType, TensorId},
};

pub(super) const MICROSOFT: &[(&str, Import)] = &[("MoE", plain), ("QMoE", quantized)];

/// Elements of the blocks that kernels know.
const BLOCK: u64 = 32;

/// The weights of a layer of all experts: `[experts, rows, length]`, floats, or codes with scales.
#[derive(Clone, Copy)]
struct Layer {
    weights: TensorId,
    coded: Option<Codes>,
    /// `[experts, rows]`.
    bias: Option<TensorId>,
    dims: [u64; 3],
}

/// What codes stand for: `(code - zero) * scale`.
#[derive(Clone, Copy)]
struct Codes {
    bits: u32,
    /// `[experts, rows]`, or with a third dimension for blocks.
    scales: TensorId,
    zeros: Option<TensorId>,
    /// Codes that share a scale.
    block: u64,
}

/// The weights of a layer as a product takes them.
enum Matrices {
    /// Where they stay packed and those that a row needs are read, with factors for the rows of the matrices.
    Few(ExpertMatrices, Option<TensorId>),
    /// `f32[experts, rows, length]`, of which each row has products with all.
    All(TensorId),
}

/// Which experts rows have, `[rows, used]`, and how much of each.
struct Routing {
    rows: Size,
    experts: u64,
    used: u64,
    chosen: TensorId,
    weights: TensorId,
}

fn plain(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let layer = |b: &Builder, at: usize| layer(b, node, [at, at + 1], None);
    let third = node.optional(6).map(|_| layer(b, 6)).transpose()?;
    let layers = [Some(layer(b, 2)?), Some(layer(b, 4)?), third];
    experts(b, node, layers)
}

fn quantized(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let bits = node.int("expert_weight_bits", 4)?;
    let kind = node.string("quant_type", "int")?;
    if !matches!(bits, 4 | 8) || kind != "int" || node.optional(14).is_some() {
        return Err(node.unsupported(format!(
            "weights of {bits} bits of the kind '{kind}', or with weights of the router apart; there are codes of 4 and 8 bits \
             ('int')"
        )));
    }
    let block = u64::try_from(node.int("block_size", 0)?).unwrap_or(0);
    let layer = |b: &Builder, index: usize| {
        let at = 2 + 3 * index;
        let scales = node.input(at + 1)?;
        let codes = Codes { bits: bits as u32, scales, zeros: node.optional(11 + index), block };
        layer(b, node, [at, at + 2], Some(codes))
    };
    let third = node.optional(8).map(|_| layer(b, 2)).transpose()?;
    let layers = [Some(layer(b, 0)?), Some(layer(b, 1)?), third];
    experts(b, node, layers)
}

fn layer(b: &Builder, node: &NodeView<'_>, [at, bias]: [usize; 2], coded: Option<Codes>) -> Result<Layer> {
    let weights = node.input(at)?;
    let wrong = |b: &Builder| node.invalid(format!("{} are no weights of experts", b.describe(&[weights])));
    let [experts, rows, bytes] = *b.dims(weights) else { return Err(wrong(b)) };
    let per_byte = coded.map_or(1, |codes| u64::from(8 / codes.bits));
    let length = bytes.checked_mul(per_byte).filter(|length| *length > 0).ok_or_else(|| wrong(b))?;
    let dims = [experts, rows, length];
    if let Some(codes) = coded {
        let blocks = if codes.block == 0 { 1 } else { length.div_ceil(codes.block) };
        let wanted = experts.saturating_mul(rows).saturating_mul(blocks);
        if b.tensor(codes.scales).elements() != wanted || b.element(weights) != ElementType::Of(DType::U8) {
            return Err(node.invalid(format!("{} do not go together", b.describe(&[weights, codes.scales]))));
        }
    }
    Ok(Layer { weights, coded, bias: node.optional(bias), dims })
}

fn experts(b: &mut Builder, node: &NodeView<'_>, layers: [Option<Layer>; 3]) -> Result<Vec<TensorId>> {
    if node.flag("use_sparse_mixer", false)? {
        return Err(node.unsupported("use_sparse_mixer; there are softmaxes"));
    }
    let [Some(up), Some(down), third] = layers else { return Err(node.invalid("weights are missing")) };
    let x = node.input(0)?;
    let (element, dims) = (b.element(x), b.sizes(x).to_vec());
    let width = up.dims[2];
    if dims.last() != Some(&width.into()) || down.dims[0] != up.dims[0] || down.dims[1] != width {
        let what = b.describe(&[x, up.weights, down.weights]);
        return Err(node.invalid(format!("{what} are no rows and weights of experts")));
    }
    let routing = routed(b, node, up.dims[0])?;
    let rows = b.reshape_to(x, &[routing.rows, width.into()])?;
    let mut rows = b.as_f32(rows)?;
    let given: Vec<Layer> = [Some(up), third, Some(down)].into_iter().flatten().collect();
    let few = given.iter().all(|layer| layer.is_packed(b));
    if !few {
        rows = b.reshape_to(rows, &[1.into(), routing.rows, width.into()])?;
    }
    let inner = up.product(b, rows, &routing, few)?;
    let other = third.map(|layer| layer.product(b, rows, &routing, few)).transpose()?;
    let inner = activated(b, node, inner, other)?;
    let made = down.product(b, inner, &routing, few)?;
    let made = if few { routing.sum(b, made, width)? } else { routing.sum_of_all(b, made)? };
    let made = b.reshape_to(made, &dims)?;
    Ok(vec![b.cast(made, element)?])
}

/// The experts of each row by a softmax over all of them.
fn routed(b: &mut Builder, node: &NodeView<'_>, experts: u64) -> Result<Routing> {
    let router = node.input(1)?;
    let used = node.int("k", 1)?;
    let used = u64::try_from(used).ok().filter(|used| (1..=experts).contains(used));
    let used = used.ok_or_else(|| node.invalid(format!("k of {experts} experts is no number of them")))?;
    let [rows, count] = *b.sizes(router) else {
        return Err(node.invalid(format!("{} is no router's result", b.describe(&[router]))));
    };
    if count != Size::from(experts) {
        return Err(node.invalid(format!("{} is not for {experts} experts", b.describe(&[router]))));
    }
    let scores = b.as_f32(router)?;
    let shares = b.softmax(scores, 1, false)?;
    let [mut weights, chosen] = b.top_k(shares, 1, used, false)?;
    if node.flag("normalize_routing_weights", false)? {
        let sum = b.reduce(ReduceKind::Sum, weights, &[1], true)?;
        weights = b.binary(Function::Div, weights, sum)?;
    }
    Ok(Routing { rows, experts, used, chosen, weights })
}

impl Routing {
    /// Numbers of the chosen experts in a line.
    fn line(&self, b: &mut Builder) -> Result<TensorId> {
        let ids = b.cast(self.chosen, DType::I32)?;
        b.reshape_to(ids, &[self.rows * self.used])
    }

    /// The weighted sum of `[rows * used, width]`.
    fn sum(&self, b: &mut Builder, made: TensorId, width: u64) -> Result<TensorId> {
        let made = b.reshape_to(made, &[self.rows, self.used.into(), width.into()])?;
        let weights = b.reshape_to(self.weights, &[self.rows, self.used.into(), 1.into()])?;
        let made = b.binary(Function::Mul, made, weights)?;
        b.reduce(ReduceKind::Sum, made, &[1], false)
    }

    /// The weighted sum of `[experts, rows, width]`.
    fn sum_of_all(&self, b: &mut Builder, made: TensorId) -> Result<TensorId> {
        let (one, used, rows) = (Size::constant(1), Size::from(self.used), self.rows);
        let chosen = b.cast(self.chosen, DType::I64)?;
        let chosen = b.reshape_to(chosen, &[one, rows, used])?;
        let weights = b.reshape_to(self.weights, &[one, rows, used])?;
        let all = b.count_from(0, self.experts)?;
        let all = b.reshape_to(all, &[self.experts.into(), one, one])?;
        let own = b.map(&[chosen, all, weights], DType::F32, |p, x| {
            let is_own = p.call(Function::Eq, &x[..2]);
            p.call(Function::Select, &[is_own, x[2], float(0.0)])
        })?;
        let own = b.reduce(ReduceKind::Sum, own, &[2], true)?;
        let made = b.binary(Function::Mul, made, own)?;
        b.reduce(ReduceKind::Sum, made, &[0], false)
    }
}

fn float(value: f64) -> Operand {
    Operand::Constant(Scalar::Float(value))
}

impl Layer {
    /// Whether the weights are known and in rows that kernels take.
    fn is_packed(&self, b: &Builder) -> bool {
        let known = |id: TensorId| b.tensor(id).constant.is_some();
        let floats = matches!(b.element(self.weights), ElementType::Of(DType::F32 | DType::F16));
        let all = match self.coded {
            None => floats,
            Some(codes) => known(codes.scales) && codes.zeros.is_none_or(known),
        };
        all && known(self.weights) && self.dims[2].is_multiple_of(BLOCK)
    }

    /// Products of rows and the weights of their experts, with the bias.
    fn product(&self, b: &mut Builder, x: TensorId, routing: &Routing, few: bool) -> Result<TensorId> {
        let bias = self.bias.map(|bias| b.as_f32(bias)).transpose()?;
        let [experts, rows, _] = self.dims;
        match if few { self.packed(b)? } else { self.apart(b)? } {
            Matrices::Few(matrices, factors) => {
                let mut made = b.expert_product(x, routing.chosen, &matrices)?;
                for (function, values) in [(Function::Mul, factors), (Function::Add, bias)] {
                    if let Some(values) = values {
                        let (values, line) = (b.reshape(values, &[experts, rows])?, routing.line(b)?);
                        let values = b.gather(values, line, 0)?;
                        made = b.binary(function, made, values)?;
                    }
                }
                Ok(made)
            }
            Matrices::All(weights) => {
                let made = b.product(x, weights, true)?;
                let Some(bias) = bias else { return Ok(made) };
                let bias = b.reshape(bias, &[experts, 1, rows])?;
                b.binary(Function::Add, made, bias)
            }
        }
    }

    /// All weights as floats.
    fn apart(&self, b: &mut Builder) -> Result<Matrices> {
        let Some(codes) = self.coded else { return Ok(Matrices::All(b.as_f32(self.weights)?)) };
        let [experts, rows, length] = self.dims;
        let (all, bits) = (experts.saturating_mul(rows), codes.bits);
        let packed = b.tensor(self.weights).elements() / all.max(1);
        let packed = b.reshape(self.weights, &[all, packed])?;
        let group = if codes.block == 0 { length } else { codes.block };
        let groups = length.div_ceil(group);
        let scales = b.as_f32(codes.scales)?;
        let scales = b.reshape(scales, &[all, groups])?;
        let zeros = match codes.zeros {
            None => None,
            Some(zeros) => {
                let bytes = b.tensor(zeros).elements() / all.max(1);
                let zeros = b.reshape(zeros, &[all, bytes])?;
                let zeros = if bits == 4 { nibbles(b, zeros)? } else { zeros };
                let own = Range { start: 0, step: 1, count: groups };
                Some(b.slice(zeros, &[Range::all(all), own])?)
            }
        };
        let made = b.dequantized(&QuantWeights { packed, bits, length, scales, zeros, group })?;
        Ok(Matrices::All(b.reshape(made, &self.dims)?))
    }

    /// The weights in the layout of their rows that a kernel takes.
    fn packed(&self, b: &mut Builder) -> Result<Matrices> {
        let bytes = b.tensor(self.weights).constant.clone().unwrap_or_default();
        let name = b.tensor(self.weights).name.clone();
        let Some(codes) = self.coded else {
            let dtype = b.element(self.weights).storage();
            let layout = BlockFormat::of_floats(dtype).map_or(RowLayout::Floats(dtype), RowLayout::Blocks);
            return Ok(Matrices::Few(b.expert_matrices(&name, layout, self.dims, &bytes)?, None));
        };
        let scales = b.known(codes.scales).map(|values| values.floats()).unwrap_or_default();
        let scales: Vec<f32> = scales.into_iter().map(|scale| scale as f32).collect();
        let zeros = match codes.zeros {
            Some(zeros) => b.tensor(zeros).constant.clone(),
            None => None,
        };
        let own = Known { bytes, scales, zeros, bits: codes.bits, block: codes.block, length: self.dims[2] };
        let of_rows = codes.block == 0 && own.zeros.is_none();
        let (layout, bytes) = match of_rows || own.is_exact() {
            true => own.blocks(of_rows),
            false => (RowLayout::Floats(DType::F32), own.floats()),
        };
        let factors = if of_rows { Some(b.as_f32(codes.scales)?) } else { None };
        Ok(Matrices::Few(b.expert_matrices(&name, layout, self.dims, &bytes)?, factors))
    }
}

/// Codes that are known, and what they stand for.
struct Known {
    bytes: Bytes,
    scales: Vec<f32>,
    zeros: Option<Bytes>,
    bits: u32,
    block: u64,
    length: u64,
}

impl Known {
    /// Whether blocks with 16-bit scales hold the same numbers.
    fn is_exact(&self) -> bool {
        let halves = Values::from_bytes(DType::F16, &self.halves()).floats();
        let exact = halves.iter().zip(&self.scales).all(|(half, scale)| *half == f64::from(*scale));
        self.zeros.is_none() && self.block.is_multiple_of(BLOCK) && exact
    }

    /// The scales in 16 bits.
    fn halves(&self) -> Vec<u8> {
        let scales = self.scales.iter().map(|scale| f64::from(*scale)).collect();
        Values::Float(scales).to_bytes(DType::F16)
    }

    /// A code by its number, the lower half of a byte first.
    fn code(&self, bytes: &[u8], at: usize) -> u8 {
        match self.bits {
            4 => bytes.get(at / 2).map_or(0, |byte| byte >> (at % 2 * 4) & 15),
            _ => bytes.get(at).copied().unwrap_or(0),
        }
    }

    /// The scale of a code by its number.
    fn place(&self, at: usize) -> (usize, usize) {
        let length = self.length as usize;
        let block = if self.block == 0 { length } else { self.block as usize };
        (at / length, at % length / block)
    }

    fn blocks_of_row(&self) -> usize {
        if self.block == 0 { 1 } else { self.length.div_ceil(self.block) as usize }
    }

    fn count(&self) -> usize {
        self.bytes.len() * 8 / self.bits as usize
    }

    /// Blocks with their scales, or with scales of 1.
    fn blocks(&self, ones: bool) -> (RowLayout, Bytes) {
        let size = BLOCK as usize;
        let one = Values::Float(vec![1.0]).to_bytes(DType::F16);
        let halves = if ones { Vec::new() } else { self.halves() };
        let mut made = Vec::with_capacity(self.count() / size * (2 + size * self.bits as usize / 8));
        for first in (0..self.count()).step_by(size) {
            let (row, block) = self.place(first);
            let at = 2 * (row * self.blocks_of_row() + block);
            made.extend(halves.get(at..at + 2).unwrap_or(&one));
            match self.bits {
                4 => made.extend((0..size / 2).map(|at| {
                    self.code(&self.bytes, first + at) | self.code(&self.bytes, first + at + size / 2) << 4
                })),
                _ => made.extend((0..size).map(|at| self.code(&self.bytes, first + at) ^ 0x80)),
            }
        }
        let format = if self.bits == 4 { BlockFormat::Q4_0 } else { BlockFormat::Q8_0 };
        (RowLayout::Blocks(format), made.into())
    }

    /// The numbers themselves.
    fn floats(&self) -> Bytes {
        let each = self.blocks_of_row();
        // The codes of a row's zero points begin at a byte.
        let row_of_zeros = (each * self.bits as usize).div_ceil(8);
        let number = |at: usize| {
            let (row, block) = self.place(at);
            let zero = match &self.zeros {
                Some(zeros) => self.code(zeros.get(row * row_of_zeros..).unwrap_or_default(), block),
                None => 1 << (self.bits - 1),
            };
            let code = f32::from(self.code(&self.bytes, at)) - f32::from(zero);
            code * self.scales[row * each + block]
        };
        (0..self.count()).flat_map(|at| number(at).to_le_bytes()).collect::<Vec<u8>>().into()
    }
}

/// Every second element of the last dimension, or a half of it.
fn part(b: &mut Builder, x: TensorId, [start, step, count]: [u64; 3]) -> Result<TensorId> {
    let mut ranges: Vec<Range<Size>> = b.sizes(x).iter().map(|size| Range::all(*size)).collect();
    if let Some(last) = ranges.last_mut() {
        *last = Range { start: start.into(), step: step as i64, count: count.into() };
    }
    b.slice(x, &ranges)
}

/// What a layer's results become before the next; `other` is a factor of its own.
fn activated(b: &mut Builder, node: &NodeView<'_>, x: TensorId, other: Option<TensorId>) -> Result<TensorId> {
    let name = node.string("activation_type", "relu")?;
    if name == "swiglu" {
        return gated(b, node, x, other);
    }
    let apply: fn(&mut Expression, Operand) -> Operand = match name.as_str() {
        "relu" => |p, x| p.call(Function::Relu, &[x]),
        "gelu" => |p, x| p.call(Function::GeluTanh, &[x]),
        "silu" => |p, x| {
            let part = p.call(Function::Sigmoid, &[x]);
            p.call(Function::Mul, &[x, part])
        },
        "identity" => |_, x| x,
        other => return Err(node.unsupported(format!("the activation '{other}'"))),
    };
    let made = b.map(&[x], DType::F32, |p, x| apply(p, x[0]))?;
    other.map_or(Ok(made), |other| b.binary(Function::Mul, made, other))
}

/// The gate's numbers through a steep sigmoid, times the others; both may lie in one tensor.
fn gated(b: &mut Builder, node: &NodeView<'_>, x: TensorId, other: Option<TensorId>) -> Result<TensorId> {
    let half = b.sizes(x).last().map_or(0, |size| size.exact()) / 2;
    let (gate, linear) = match (other, node.int("swiglu_fusion", 0)?) {
        (Some(other), 0) => (x, other),
        (None, 1) => (part(b, x, [0, 2, half])?, part(b, x, [1, 2, half])?),
        (None, 2) => (part(b, x, [0, 1, half])?, part(b, x, [half, 1, half])?),
        (_, fusion) => return Err(node.invalid(format!("swiglu_fusion {fusion} with these weights"))),
    };
    let number = |value: f32| float(value.into());
    let (alpha, beta) = (node.float("activation_alpha", 1.0)?, node.float("activation_beta", 0.0)?);
    let limit = node.float_if("swiglu_limit")?;
    b.map(&[gate, linear], DType::F32, |p, x| {
        let (mut gate, mut linear) = (x[0], x[1]);
        if let Some(limit) = limit {
            gate = p.call(Function::Min, &[gate, number(limit)]);
            linear = p.call(Function::Clip, &[linear, number(-limit), number(limit)]);
        }
        let turned = p.call(Function::Mul, &[gate, number(alpha)]);
        let share = p.call(Function::Sigmoid, &[turned]);
        let made = p.call(Function::Mul, &[gate, share]);
        let more = p.call(Function::Add, &[linear, number(beta)]);
        p.call(Function::Mul, &[made, more])
    })
}
