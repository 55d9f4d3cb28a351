//! The dispatches of the kernels of `conv2d`, by template.

use halite_ops::{
    Activation, Op, Operation, conv2d::Conv2d, convolution::Convolution, fragments, matmul::MatMul,
    runs::Runs, window::Layout,
};

use halite_sizes::Size;

use crate::{
    Params, Plan, Slot, Step, Unfit,
    plan::{fixed, module, narrow},
    plans::{
        Lower,
        convolution::{self, KernelInputs, exchange, few, grouped, image, matrix, padded, window, windows},
        epilogue::{self, Added, Epilogue, Rest},
        matmul,
        moves::flat_grid,
        runs::{Around, Taken},
    },
};

impl Lower for Conv2d {
    fn lower(&self, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
        if self.filter_fragments != (template == FRAGMENTS) {
            return elsewhere(self, template, build, params);
        }
        let does_all = Epilogue::of(template, params).does(self.residual, self.activation)
            && (!self.residual_behind || Epilogue::adds_behind(template));
        // What a dispatch of its own finishes lies by itself.
        let taken = if does_all { taken(self, template) } else { Taken::default() };
        let (own, other) = taken.split(self.read, self.written);
        let alone = Conv2d { read: None, written: None, ..self.clone() };
        if let Some(around) = Around::of(other, Operation::Conv2d(alone)) {
            let own = Conv2d { read: own[0], written: own[1], ..self.clone() };
            return around.plan(own.lower(template, build, params)?);
        }
        if does_all {
            return dispatches(self, template, build, params);
        }
        if template == "depthwise_patches" {
            return Err(Unfit("knows activations only that are limits, and adds no residual".into()));
        }
        let plain =
            Conv2d { residual: false, residual_behind: false, activation: Activation::None, ..self.clone() };
        let plan = dispatches(&plain, template, build, params)?;
        let residual = self.residual.then_some(Slot::Input(2 + usize::from(self.bias)));
        let elements = self.outputs()[0].elements();
        let rest = Rest { residual, behind: self.residual_behind, activation: self.activation };
        epilogue::afterwards(plan, (elements, self.dtype), rest)
    }
}

/// The template of the kernels of `coop.comp` over an image that read filters in fragments.
const FRAGMENTS: &str = "image_fragments";

/// The plan of kernels of other templates for filters in fragments: those that every device runs have a dispatch before that puts
/// filters side by side. Plans choose fragments only where kernels take them, so that its time does not matter.
fn elsewhere(op: &Conv2d, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
    if !op.filter_fragments {
        return Err(Unfit("takes filters in fragments only".into()));
    }
    if template != "direct" {
        return Err(Unfit("takes no filters in fragments".into()));
    }
    let shape = op.shape().map_err(Unfit)?;
    let plan = Conv2d { filter_fragments: false, ..op.clone() }.lower(template, build, params)?;
    let copies = fragments::back_by_terms(shape.depth(), shape.groups * shape.filters);
    let before = |plan, copy| matmul::behind(plan, op, 1, &Operation::StridedCopy(copy));
    copies.into_iter().rev().try_fold(plan, before)
}

/// Which runs the kernels of a template take: those of `coop.comp`, and channels of a place in fours.
fn taken(op: &Conv2d, template: &str) -> Taken {
    let Ok(shape) = op.shape() else { return Taken::default() };
    let [rows, columns] = shape.window.output();
    let pixels = shape.window.input[0] * shape.window.input[1];
    let (channels, filters) = (shape.groups * shape.channels, shape.groups * shape.filters);
    let is_read = |row| op.read.is_some_and(|runs| matmul::runs::is_read(runs, row));
    let is_written = |row: Size, of: u64| {
        op.written.is_some_and(|runs| runs.are_multiples_of(of) && row.is(runs.length.into()))
    };
    match template {
        "image" | FRAGMENTS => {
            Taken { read: is_read(channels.into()), written: is_written(filters.into(), 4) }
        }
        "points" | "taps" => {
            Taken { read: is_read(pixels * channels), written: is_written(rows * columns * filters, 1) }
        }
        "depthwise_last" => {
            let is_taken = |runs: Runs| runs.are_multiples_of(4) && runs.length == channels;
            Taken { read: op.read.is_some_and(is_taken), written: op.written.is_some_and(is_taken) }
        }
        "unfolded" => Taken { read: false, written: is_written(rows * columns * filters, 1) },
        _ => Taken::default(),
    }
}

/// What is added to sums.
fn added(op: &Conv2d) -> Added {
    Added { bias: op.bias, residual: op.residual, behind: op.residual_behind, ..Added::default() }
}

/// Bindings of inputs and output; without a bias or a residual, its place has the filters, and nothing reads it.
pub(super) fn bindings(added: Added) -> Vec<Slot> {
    let bias = Slot::Input(if added.bias { 2 } else { 1 });
    let residual = Slot::Input(if added.residual { 2 + usize::from(added.bias) } else { 1 });
    vec![Slot::Input(0), Slot::Input(1), bias, Slot::Output(0), residual]
}

/// A convolution with strides of 1 as a product on matrix units.
fn in_place(op: &Conv2d, shape: &Convolution) -> Result<(MatMul, matmul::Sides), Unfit> {
    if shape.window.strides != [1, 1] {
        return Err(Unfit("wants strides of 1".into()));
    }
    filters_by_places(op, shape)
}

/// A convolution as a product on matrix units: filters by places, for each image.
fn filters_by_places(op: &Conv2d, shape: &Convolution) -> Result<(MatMul, matmul::Sides), Unfit> {
    let w = &shape.window;
    if shape.groups != 1 || shape.layout != Layout::Nchw {
        return Err(Unfit("wants channels first and one group".into()));
    }
    // Tells of sizes that kernels cannot count.
    convolution::push(shape)?;
    let [rows, columns] = w.output();
    let product = MatMul {
        batch: shape.images,
        residual: op.residual,
        residual_behind: op.residual_behind,
        activation: op.activation,
        written: op.written,
        ..MatMul::new(shape.filters, rows * columns, shape.depth(), op.dtype, op.dtype)
    };
    let added = added(op);
    let [data, weights, bias, result, residual] = bindings(added)[..] else {
        return Err(Unfit("has other bindings than convolutions have".into()));
    };
    let sides = matmul::Sides {
        lhs_stride: 0.into(),
        rhs: (op.read.map_or(w.input[0] * w.input[1] * shape.channels, |runs| runs.pitch.into()), 16),
        reads: op.read.map(|runs| matmul::runs::Reads {
            lhs_first: 0.into(),
            rhs_first: runs.offset.into(),
            lhs_row: shape.depth().into(),
        }),
        across: 1.into(),
        added: Added { bias: false, row_bias: op.bias, ..added },
        bindings: vec![weights, data, result, bias, residual],
        more: Default::default(),
    };
    Ok((product, sides))
}

/// A convolution of 1x1.
pub(super) fn points(op: &Conv2d, shape: &Convolution) -> Result<(MatMul, matmul::Sides), Unfit> {
    if (shape.window.kernel, shape.window.pads) != ([1, 1], [0; 4]) {
        return Err(Unfit("wants a kernel of 1x1 and no padding".into()));
    }
    let (product, sides) = in_place(op, shape)?;
    let rhs = (sides.rhs.0, matmul::rhs_bytes(&product)?);
    Ok((product, matmul::Sides { rhs, ..sides }))
}

/// Rows and columns of a kernel that bits for each place have room for.
const MOST_TAPS: u64 = 8;

/// A convolution whose results have rows as wide as those of the image: each tap lies at one distance from all places.
fn taps(op: &Conv2d, shape: &Convolution) -> Result<(MatMul, matmul::Sides), Unfit> {
    let w = &shape.window;
    let [_, columns] = w.output();
    let fits = w.kernel != [1, 1] && w.kernel.iter().all(|taps| *taps <= MOST_TAPS);
    if !fits || !columns.is(w.input[1]) {
        return Err(Unfit(format!(
            "wants rows of results as wide as those of the image, and kernels from 1x2 up to {MOST_TAPS}x{MOST_TAPS}"
        )));
    }
    if !shape.channels.is_multiple_of(8) {
        return Err(Unfit("wants channels in eights".into()));
    }
    let (product, mut sides) = in_place(op, shape)?;
    let constant = |value| fixed("the kernel", value);
    sides.more.0 = vec![constant(w.kernel[1])?, constant(w.kernel[0] * w.kernel[1])?];
    let sizes = [w.input[1], w.input[0]];
    let numbers = [w.dilations[0], w.dilations[1], w.pads[0], w.pads[1]].map(Size::from);
    sides.more.1 = sizes.into_iter().chain(numbers).map(|v| narrow("a size", v)).collect::<Result<_, _>>()?;
    Ok((product, sides))
}

/// Most bytes of windows in memory.
const MOST_WINDOWS: u64 = 1 << 26;

/// Terms of a sum from which windows in memory save time where strides are more than 1: on an H200, sums of 27 and 48 terms took 1.2
/// and 1.7 times what tiles out of the image take, those of 147 as long, 11 of 240 to 4,608 terms 0.53 to 1.02 times.
const WORTH_TERMS: u64 = 128;

/// Any other convolution of one group: its windows are written to memory as columns, and the product is one of whole words.
fn unfolded(op: &Conv2d, shape: &Convolution, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let (w, lanes) = (&shape.window, params.get("unfold")?);
    if (w.kernel, w.strides, w.pads) == ([1, 1], [1, 1], [0; 4]) {
        return Err(Unfit("wants windows of more than one place, or strides".into()));
    }
    if w.strides != [1, 1] && shape.depth() < WORTH_TERMS {
        let depth = shape.depth();
        return Err(Unfit(format!("wants sums of at least {WORTH_TERMS} terms, these have {depth}")));
    }
    let (product, sides) = filters_by_places(op, shape)?;
    let depth = shape.depth().next_multiple_of(8);
    let product = MatMul { k: depth.into(), ..product };
    let image = product.n * depth;
    let bytes = image * shape.images * 2;
    if !bytes.is_at_most(MOST_WINDOWS) {
        return Err(Unfit(format!("writes {bytes} bytes of windows, more than {MOST_WINDOWS}")));
    }
    let padded = depth != shape.depth();
    let [windows, filters] = [Slot::Scratch(0), if padded { Slot::Scratch(1) } else { Slot::Input(1) }];
    let bindings = [&[filters, windows][..], &sides.bindings[2..]].concat();
    let sides = matmul::Sides { rhs: (image, matmul::rhs_bytes(&product)?), bindings, ..sides };
    let product = matmul::coop_of(&product, build, params, sides)?;

    let filter_words = if padded { depth / 8 } else { 0 };
    let words = narrow("windows in words", image * shape.images / 8)?;
    let total = narrow("words of both operands", words + shape.filters * filter_words)?;
    let mut push = convolution::push(shape)?;
    push.truncate(14);
    push.extend([narrow("windows in words", image / 8)?, words, filter_words.into()]);
    let unfold = Step {
        module: module("conv2d_unfold_f16")?,
        constants: vec![lanes],
        push,
        // Filters that stay have the place of the windows, where nothing is written through it.
        bindings: vec![Slot::Input(0), Slot::Input(1), windows, if padded { filters } else { windows }],
        grid: flat_grid(total, lanes)?,
        subgroup_size: 0,
    };
    let mut scratch = vec![bytes.max(4)];
    scratch.extend(padded.then(|| Size::from(shape.filters * depth * 2)));
    Ok(Plan::new([vec![unfold], product.steps].concat(), scratch))
}

/// The dispatches of kernels that do all that becomes of the sums themselves.
fn dispatches(op: &Conv2d, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let shape = op.shape().map_err(Unfit)?;
    let added = added(op);
    if template == "product" {
        let product = op.product().ok_or_else(|| {
            Unfit("wants one group and a kernel that covers the image, without padding".into())
        })?;
        return matmul::vector(&product, build, params);
    }
    if template == "points" {
        let (product, sides) = points(op, &shape)?;
        return matmul::coop_of(&product, build, params, sides);
    }
    if template == "taps" {
        let (product, sides) = taps(op, &shape)?;
        return matmul::coop_of(&product, build, params, sides);
    }
    if template == "unfolded" {
        return unfolded(op, &shape, build, params);
    }
    let (bindings, activation) = (bindings(added), op.activation);
    let kernel = KernelInputs { build, params, added, activation, bindings, more: Vec::new() };
    let add = format!("conv2d_matrix_add_{}", op.dtype);
    match template {
        "depthwise" => convolution::depthwise(&shape, kernel),
        "depthwise_columns" => convolution::depthwise_columns(&shape, kernel),
        "depthwise_last" => convolution::depthwise_last(&shape, kernel, [op.read, op.written]),
        "depthwise_patches" => convolution::depthwise_patches(&shape, kernel),
        "depthwise_square" => window::depthwise_square(&shape, kernel),
        "depthwise_window" => window::depthwise(&shape, kernel),
        "direct" => convolution::direct(&shape, kernel),
        "exchange" => exchange::pointwise(&shape, kernel),
        "gemm" => matrix::gemm(&shape, kernel),
        "few_last" => few::few_last(&shape, kernel),
        "grouped" => grouped::grouped(&shape, kernel),
        "grouped_last" => grouped::grouped_last(&shape, kernel),
        "image" | FRAGMENTS => image::image(op, &shape, kernel),
        "matrix" => matrix::matrix(&shape, kernel),
        "matrix_cut" => matrix::matrix_cut(&shape, kernel, &add),
        "padded" => padded::padded(&shape, kernel),
        "patches" => convolution::patches(&shape, kernel),
        "pointwise" => convolution::pointwise(&shape, kernel),
        "rows" => convolution::rows(&shape, kernel),
        "strips" => convolution::strips(&shape, kernel),
        "windows" => windows::windows(&shape, op.dtype, &kernel),
        "wide" => matrix::wide(&shape, kernel),
        "wide_cut" => matrix::wide_cut(&shape, kernel, &add),
        other => Err(Unfit(format!("uses the unknown template '{other}'"))),
    }
}
