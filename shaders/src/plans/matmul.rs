//! The dispatches of the kernels of `matmul`, by template.

mod few_rows;
mod fragments;
mod normalized;
mod parts;
mod row_sums;
pub(super) mod runs;
mod tiles;

pub(super) use few_rows::vector;
pub(crate) use normalized::adding;
pub(crate) use tiles::tile_needs;

use halite_ops::{
    Activation, DType, Op, Operation,
    convolution::Convolution,
    matmul::MatMul,
    window::{Layout, Window},
};

use halite_sizes::{Size, is_worth};

use tiles::Tiles;

use crate::{
    Params, Plan, Slot, Step, Unfit,
    plan::{fixed, groups, module, narrow},
    plans::{
        Lower,
        convolution::{self, KernelInputs},
        epilogue::{self, Added, Epilogue, Rest, activation_code},
    },
    variants_of,
};

impl Lower for MatMul {
    fn lower(&self, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
        if self.rhs_fragments != (template == FRAGMENTS) {
            return fragments::elsewhere(self, template, build, params);
        }
        if let Some((own, around)) = runs::left(self, template, params) {
            return around.plan(own.lower(template, build, params)?);
        }
        if self.lhs_norm.is_some() && !normalized::is_taken(self, template, params) {
            return normalized::before(self, template, build, params);
        }
        if self.row_sums && template != FRAGMENTS {
            return row_sums::behind(self, template, build, params);
        }
        if self.norm.is_some() {
            let plan = dispatches(self, template, build, params)?;
            let whole = plan.steps.iter().all(|step| !step.bindings.contains(&Slot::Output(1)));
            return if whole {
                Err(Unfit("normalizes rows only where sums are cut".into()))
            } else {
                Ok(plan)
            };
        }
        let does_all = Epilogue::of(template, params).does(self.residual, self.activation);
        if does_all && (!self.residual_behind || Epilogue::adds_behind(template)) {
            return dispatches(self, template, build, params);
        }
        let plain =
            MatMul { residual: false, residual_behind: false, activation: Activation::None, ..self.clone() };
        let plan = dispatches(&plain, template, build, params)?;
        let residual = self.residual.then_some(Slot::Input(2 + usize::from(self.bias)));
        let rest = Rest { residual, behind: self.residual_behind, activation: self.activation };
        epilogue::afterwards(plan, (self.outputs()[0].elements(), self.out), rest)
    }
}

/// The template of the kernels of `coop.comp` that read the right operand in fragments.
const FRAGMENTS: &str = "fragments";

/// Whether kernels of a template are those of `coop.comp` for products.
fn is_coop(template: &str) -> bool {
    matches!(template, "coop" | FRAGMENTS)
}

/// A plan of an operation, with one of its inputs made by another operation, of one input and one dispatch, before.
pub(super) fn behind(mut plan: Plan, op: &impl Op, input: usize, before: &Operation) -> Result<Plan, Unfit> {
    let between = Slot::Scratch(plan.scratch.len());
    plan.scratch.push(op.inputs()[input].bytes().max(4));
    for slot in plan.steps.iter_mut().flat_map(|step| &mut step.bindings) {
        *slot = if *slot == Slot::Input(input) { between } else { *slot };
    }
    let signature = before.signature();
    let mut all = variants_of(before.name())
        .filter(|variant| variant.needs.is_baseline() && variant.signatures.contains(&signature));
    let steps = all.find_map(|variant| variant.plan(before).ok().filter(|plan| plan.steps.len() == 1));
    let Some(mut step) = steps.and_then(|plan| plan.steps.into_iter().next()) else {
        return Err(Unfit(format!("finds no single dispatch for {before}")));
    };
    for slot in &mut step.bindings {
        *slot = match *slot {
            Slot::Output(0) => between,
            Slot::Input(0) => Slot::Input(input),
            other => other,
        };
    }
    plan.steps.insert(0, step);
    Ok(Plan { independent: false, ..plan })
}

/// What is added to sums.
fn added(op: &MatMul) -> Added {
    Added { bias: op.bias, residual: op.residual, behind: op.residual_behind, ..Added::default() }
}

/// The dispatches of kernels that do all that becomes of the sums themselves.
fn dispatches(op: &MatMul, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
    match template {
        "bytes" => bytes(op, build, params),
        "coop" | FRAGMENTS => coop(op, build, params),
        "exchange" => exchange(op, build, params),
        "octets" => few_rows::octets(op, build, params),
        "pointwise" => pointwise(op, build, params),
        "rows" => rows(op, build, params),
        "tiled" => tiled(op, build, params),
        "vector" => vector(op, build, params),
        "wide" => wide(op, build, params),
        other => Err(Unfit(format!("uses the unknown template '{other}'"))),
    }
}

/// Workgroups that keep a large GPU busy; sums are cut into parts until there are about as many.
const ENOUGH_WORKGROUPS: u64 = 264;

/// The same for matrix units: on an H200, 24 tiles with sums of 3,072 terms took 12.3 µs in 8 parts and 15.4 in 4, 48 tiles 16.3 in
/// 4 and 20.5 in 6.
const MATRIX_WORKGROUPS: u64 = 192;

/// The shape as kernels count it: m, n, k, and elements from one right operand to the next.
fn shape(op: &MatMul) -> Result<[Size; 4], Unfit> {
    for tensor in op.inputs().iter().chain(&op.outputs()) {
        narrow("a number of elements", tensor.elements())?;
    }
    let stride = if op.rhs_shared { 0.into() } else { narrow("a matrix", op.n * op.k)? };
    Ok([narrow("m", op.m)?, narrow("n", op.n)?, narrow("k", op.k)?, stride])
}

/// Whether rows of a length are whole quads, as kernels take it.
fn quads(length: Size) -> u32 {
    is_worth(|| length.is_multiple_of(4)).into()
}

/// What is added to sums, where it lies, and the function of results: two constants and two bindings. What is not there has
/// the right operand's place, and nothing reads it.
fn epilogue(op: &MatMul) -> ([u32; 2], [Slot; 2]) {
    let bias = Slot::Input(if op.bias { 2 } else { 1 });
    let residual = Slot::Input(if op.residual { 2 + usize::from(op.bias) } else { 1 });
    ([added(op).code(), activation_code(op.activation)], [bias, residual])
}

fn bindings(op: &MatMul) -> Vec<Slot> {
    [&[Slot::Input(0), Slot::Input(1), Slot::Output(0)][..], &epilogue(op).1].concat()
}

/// One element at a time, sums in a tile of registers.
pub(super) fn tiled(op: &MatMul, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let p = |name| params.get(name);
    let (lanes, bm, bn, bk, tm, tn) = (p("lanes")?, p("bm")?, p("bn")?, p("bk")?, p("tm")?, p("tn")?);
    if lanes * tm * tn != bm * bn || bm % tm != 0 || bn % tn != 0 {
        return Err(Unfit(format!("has tiles of {bm}x{bn} that {lanes} invocations do not cover")));
    }
    Ok(Plan::of(Step {
        module: module(build)?,
        constants: [&[lanes, bm, bn, bk, tm, tn, op.rhs_transposed.into()][..], &epilogue(op).0].concat(),
        push: shape(op)?.to_vec(),
        bindings: bindings(op),
        grid: [groups(op.n, bn)?, groups(op.m, bm)?, narrow("the batch", op.batch)?],
        subgroup_size: 0,
    }))
}

/// Nothing shared: an invocation computes eight rows of two quads of columns.
pub(super) fn rows(op: &MatMul, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let lanes = params.get("lanes")?;
    let right = if op.rhs_transposed { 0 } else { quads(op.n) };
    Ok(Plan::of(Step {
        module: module(build)?,
        constants: [&[lanes, op.rhs_transposed.into(), right, quads(op.n)][..], &epilogue(op).0].concat(),
        push: shape(op)?.to_vec(),
        bindings: bindings(op),
        grid: [groups(op.n, lanes * 8)?, groups(op.m, 8)?, narrow("the batch", op.batch)?],
        subgroup_size: 0,
    }))
}

/// The same of bytes, four terms of a sum as a word.
fn bytes(op: &MatMul, build: &str, params: &Params) -> Result<Plan, Unfit> {
    if !op.k.is_multiple_of(4) || !(op.rhs_transposed || op.n.is_multiple_of(4)) {
        return Err(Unfit("reads rows of both operands in words of four, and these are no multiples".into()));
    }
    let plan = rows(op, build, params)?;
    let constants =
        [&[params.get("lanes")?, op.rhs_transposed.into(), quads(op.n)][..], &epilogue(op).0].concat();
    let steps = plan.steps.into_iter().map(|step| Step { constants: constants.clone(), ..step }).collect();
    Ok(Plan::new(steps, Vec::new()))
}

/// The kernel of convolutions of 1x1: rows of the left operand are filters, columns are places, the batch is groups. Of one product,
/// callers and data may decide the number of rows.
pub(super) fn pointwise(op: &MatMul, build: &str, params: &Params) -> Result<Plan, Unfit> {
    if op.rhs_transposed || op.rhs_shared {
        return Err(Unfit("wants a right operand of its own for each product, not transposed".into()));
    }
    if op.batch.is_constant() && op.batch == 1 && !op.m.is_constant() {
        let (images, kernel) = as_convolution(op, [likely(op.m), 1], build, params)?;
        let plan = convolution::pointwise(&images, kernel)?;
        return convolution::exchange::opened(plan, params.get("filters")?, op.m);
    }
    known(&[op.m, op.batch])?;
    let (images, kernel) = as_convolution(op, [op.m, op.batch].map(Size::exact), build, params)?;
    convolution::pointwise(&images, kernel)
}

/// The same in equal parts of the rows, with the right operand either way; products that share it are one.
pub(super) fn exchange(op: &MatMul, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let rows = if op.rhs_shared { op.m * op.batch } else { op.m };
    let one = op.rhs_shared || (op.batch.is_constant() && op.batch == 1);
    if one && !rows.is_constant() {
        let (images, kernel) = as_convolution(op, [likely(rows), 1], build, params)?;
        let part = convolution::exchange::part(images.filters, params.get("rows")?)?;
        let plan = convolution::exchange::products(&images, kernel, op.rhs_transposed)?;
        return convolution::exchange::opened(plan, part, rows);
    }
    known(&[op.m, op.batch])?;
    let groups = if op.rhs_shared { 1 } else { op.batch.exact() };
    let (images, kernel) = as_convolution(op, [rows.exact(), groups], build, params)?;
    convolution::exchange::products(&images, kernel, op.rhs_transposed)
}

/// A number of rows that kernels suit. Of one that data decide the example says little: there is one part for a few rows then.
fn likely(rows: Size) -> u64 {
    if rows.is_data() { rows.value().max(few_rows::FEW_ROWS) } else { rows.value() }
}

/// Refuses sizes that callers or data decide.
fn known(sizes: &[Size]) -> Result<(), Unfit> {
    let all = sizes.iter().all(|size| size.is_constant());
    all.then_some(()).ok_or_else(|| Unfit("wants sizes that are known when it is chosen".into()))
}

/// The product of so many rows, and so many of them, as a convolution of 1x1.
fn as_convolution<'a>(
    op: &MatMul,
    [rows, batch]: [u64; 2],
    build: &'a str,
    params: &'a Params,
) -> Result<(Convolution, KernelInputs<'a>), Unfit> {
    known(&[op.n, op.k])?;
    shape(op)?;
    let (kernel, strides, dilations) = ([1, 1], [1, 1], [1, 1]);
    let window = Window { input: [1.into(), op.n], kernel, strides, dilations, pads: [0; 4], ceil: false };
    let images = Convolution {
        images: 1.into(),
        groups: batch,
        channels: op.k.exact(),
        filters: rows,
        window,
        layout: Layout::Nchw,
    };
    // Columns are places here.
    let added = Added { bias: false, place_bias: op.bias, ..added(op) };
    let [bias, residual] = epilogue(op).1;
    let bindings = vec![Slot::Input(1), Slot::Input(0), bias, Slot::Output(0), residual];
    let kernel = KernelInputs { build, params, added, activation: op.activation, bindings, more: Vec::new() };
    Ok((images, kernel))
}

/// Four elements at a time. With `parts` of `most` more than 1, sums are cut and added by a second step.
pub(super) fn wide(op: &MatMul, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let p = |name| params.get(name);
    let (lanes, bm, bn, bk, tm, tn) = (p("lanes")?, p("bm")?, p("bn")?, p("bk")?, p("tm")?, p("tn")?);
    let unrolled = p("unrolled")?;
    let even = |quads: u32| quads.is_multiple_of(lanes);
    let covered = lanes * tm * tn == bm * bn && tm % 4 == 0 && tn % 4 == 0 && bm % tm == 0 && bn % tn == 0;
    if !covered || bk % 4 != 0 || bk % unrolled != 0 || !even(bm * bk / 4) || !even(bn * bk / 4) {
        return Err(Unfit(format!("has tiles of {bm}x{bn}x{bk} that {lanes} invocations do not cover")));
    }
    let tiles = op.m.div_ceil(bm) * op.n.div_ceil(bn) * op.batch;
    let most = p("parts")?;
    let parts = if most > 1 { cut(op, tiles, bk, most, ENOUGH_WORKGROUPS)? } else { 1 };
    let part = narrow("k", op.k.div_ceil(parts).next_multiple_of(bk))?;
    let rhs_row = if op.rhs_transposed { op.k } else { op.n };
    let divides = |length: Size, tile: u32| is_worth(|| length.is_multiple_of(tile));
    let rows = part * Size::from(parts) == op.k && divides(op.m, bm) && divides(op.n, bn);
    let mut constants = vec![lanes, bm, bn, bk, tm, tn, op.rhs_transposed.into()];
    constants.extend([quads(op.k), quads(rhs_row), quads(op.n), rows.into(), parts, unrolled]);
    constants.extend(if parts == 1 { epilogue(op).0 } else { [0, 0] });
    let batch = narrow("the batch", op.batch)?;
    let mut push = shape(op)?.to_vec();
    push.extend([part, batch]);
    let z = narrow("the batch", op.batch * u64::from(parts))?;
    let grid = [groups(op.n, bn)?, groups(op.m, bm)?, z];
    let step =
        Step { module: module(build)?, constants, push, bindings: bindings(op), grid, subgroup_size: 0 };
    if parts == 1 {
        return Ok(Plan::of(step));
    }
    parts::summed(op, step, parts)
}

/// Parts to cut the sums into, so that a device with many units has work for all.
fn cut(op: &MatMul, tiles: Size, bk: u32, most: u32, enough: u64) -> Result<u32, Unfit> {
    // Any number of parts computes the product.
    let wanted = enough.div_ceil(tiles.value().max(1)).min(most.into());
    let longest = op.k / (4 * u64::from(bk));
    let parts = if longest >= wanted { wanted } else { longest.exact() };
    if parts < 2 {
        return Err(Unfit(format!(
            "cuts long sums of small results, and sums of {} with {tiles} tiles need no cut",
            op.k
        )));
    }
    fixed("a number of parts", parts)
}

/// What kernels of cooperative matrices are given besides the shape.
pub(super) struct Sides {
    /// Elements from one left operand of the batch to the next.
    pub lhs_stride: Size,
    /// The same of the right operand, and how many of its bytes are read at a time.
    pub rhs: (Size, u32),
    /// Where operands lie that are runs of larger tensors.
    pub reads: Option<runs::Reads>,
    /// Products whose rows of results lie side by side.
    pub across: Size,
    /// What is added to sums.
    pub added: Added,
    /// Buffers in the order of bindings.
    pub bindings: Vec<Slot>,
    /// Constants and push constants behind the others.
    pub more: (Vec<u32>, Vec<Size>),
}

/// Cooperative matrices. Cuts sums as `wide` does.
pub(super) fn coop(op: &MatMul, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let [_, _, _, stride] = shape(op)?;
    let pack = fixed("a word", 16 / op.lhs.size())?;
    let (reads, matrix) = runs::reads(op).unzip();
    let sides = Sides {
        lhs_stride: narrow("a matrix", matrix.unwrap_or(op.m * op.k))?,
        rhs: (stride, rhs_bytes(op)?),
        reads,
        across: 1.into(),
        added: added(op),
        bindings: row_sums::bindings(op, params),
        more: (constants(op, params), Vec::new()),
    };
    row_sums::check(op, &Tiles::of(params, pack)?)?;
    coop_of(op, build, params, sides)
}

/// Constants behind those of all kernels of `coop.comp`.
fn constants(op: &MatMul, params: &Params) -> Vec<u32> {
    let normalized = op.lhs_norm.map(|epsilon| [1, epsilon.0.to_bits()]);
    match params.get("ring") {
        Ok(ring) => {
            let sums = [ring, op.lhs_sums.into(), op.row_sums.into()];
            [normalized.unwrap_or([0, 0]).as_slice(), &sums].concat()
        }
        Err(_) => normalized.map_or(Vec::new(), Vec::from),
    }
}

/// Whether results are whole quads, as kernels take it.
fn quads_of_results(op: &MatMul, columns: Size, are_runs: bool) -> u32 {
    if are_runs && !runs::in_quads(op) { 0 } else { quads(columns) }
}

/// Whether results leave by strips of each subgroup. 1576 x 3072 x 768 with GELU takes 29.1 µs by strips of `fragments160x256x64` on an
/// H200, and 33.1 by pieces.
fn leaves_by_strips(op: &MatMul) -> bool {
    op.out == DType::F16 && runs::in_octets(op)
}

/// Bytes of the right operand that are read at a time.
pub(super) fn rhs_bytes(op: &MatMul) -> Result<u32, Unfit> {
    bytes_at_a_time(op, if op.rhs_transposed { op.k } else { op.n })
}

/// Bytes of an operand with rows of a length that are read at a time.
fn bytes_at_a_time(op: &MatMul, row: Size) -> Result<u32, Unfit> {
    let pack = fixed("a word", 16 / op.lhs.size())?;
    match () {
        () if is_worth(|| row.is_multiple_of(pack)) => Ok(16),
        () if op.lhs.size() != 2 => Err(no_words(pack)),
        () if is_worth(|| row.is_multiple_of(4)) => Ok(8),
        () => Ok(4),
    }
}

fn no_words(pack: u32) -> Unfit {
    Unfit(format!("reads rows in 16-byte words of {pack} elements, and these are no multiples"))
}

/// The same with other sides.
pub(super) fn coop_of(op: &MatMul, build: &str, params: &Params, sides: Sides) -> Result<Plan, Unfit> {
    let pack = fixed("a word", 16 / op.lhs.size())?;
    let tiles = Tiles::of(params, pack)?;
    let Tiles { bm, bn, bk, wm, wn, .. } = tiles;
    let bytes = op.lhs == DType::I8;
    let lanes = tiles.lanes_that_fit(bytes && !op.rhs_transposed)?;
    let lhs_bytes = bytes_at_a_time(op, op.k)?;
    let most = params.get("parts")?;
    let count = op.m.div_ceil(bm) * op.n.div_ceil(bn) * op.batch;
    let parts = if most > 1 { cut(op, count, bk / 4, most, MATRIX_WORKGROUPS)? } else { 1 };
    let part = narrow("k", op.k.div_ceil(parts).next_multiple_of(bk))?;
    // Operands may have other elements than the product: those of windows lie in images, several times.
    let [m, n, k] = [narrow("m", op.m)?, narrow("n", op.n)?, narrow("k", op.k)?];
    narrow("a number of results", op.batch * op.m * op.n)?;
    let divides = |length: Size, tile: u32| is_worth(|| length.is_multiple_of(tile));
    let whole = divides(m, bm) && divides(n, bn) && divides(k, bk);
    let mut constants = vec![lanes, bm, bn, bk, wm, wn, op.rhs_transposed.into(), whole.into()];
    constants.push(tiles.stages);
    constants.extend(tiles.matrix);
    let whole_sums = parts == 1;
    constants.extend(if whole_sums { [sides.added.code(), activation_code(op.activation)] } else { [0, 0] });
    constants.extend([parts, tiles.ahead, divides(k, bk).into()]);
    let shared = tiles.words(bytes || op.rhs_transposed);
    // Kernels are told of both sides, or of none.
    let dense = || sides.reads.is_some().then(|| runs::dense(op, sides.across));
    let writes = runs::writes(op, sides.across).filter(|_| whole_sums).or_else(dense);
    let by_strips = whole_sums && tiles.are_strips() && leaves_by_strips(op);
    let results = if by_strips { 2 } else { quads_of_results(op, n, writes.is_some()) };
    constants.extend([tiles.slices, tiles.pieces, shared, results, sides.rhs.1, lhs_bytes]);
    constants.extend([u32::from(sides.reads.is_some() || writes.is_some()), tiles.interleaved.into()]);
    constants.extend(sides.more.0);
    let (batch, z) = (narrow("the batch", op.batch)?, narrow("the batch", op.batch * u64::from(parts))?);
    let stride = |elements: Size, bytes| if bytes == 16 { elements / Size::from(pack) } else { elements };
    let (rhs_stride, lhs_stride) = (stride(sides.rhs.0, sides.rhs.1), stride(sides.lhs_stride, lhs_bytes));
    let mut push = vec![m, n, k, rhs_stride, part, batch, lhs_stride];
    push.extend(runs::push(sides.reads, writes, k, [lhs_bytes, sides.rhs.1])?);
    push.extend(sides.more.1);
    let step = Step {
        module: module(build)?,
        constants,
        push,
        bindings: sides.bindings,
        grid: [groups(op.n, bn)?, groups(op.m, bm)?, z],
        subgroup_size: tiles.wave,
    };
    if parts == 1 { Ok(Plan::of(step)) } else { parts::summed(op, step, parts) }
}
