//! The dispatches of the kernels of `conv_transpose2d`, by template.

use halite_ops::{
    Activation, DType, Op, Operation, conv_transpose2d::ConvTranspose2d, conv2d::Conv2d, copy::StridedCopy,
};
use halite_sizes::Size;

use crate::{
    Params, Plan, Slot, Step, Unfit,
    plan::{fixed, fixed_groups, groups, module, narrow},
    plans::{
        Lower,
        conv2d::{self, bindings},
        convolution::{KernelInputs, lanes_for, matrix},
        epilogue::{self, Added, Epilogue, Rest, activation_code},
        matmul,
        moves::{flat_grid, items_for},
    },
    variants_of,
};

impl Lower for ConvTranspose2d {
    fn lower(&self, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
        match template {
            "direct" => direct(self, build, params),
            "folded" | "folded_wide" => folded(self, template, build, params),
            "patches" if Epilogue::of(template, params).does(false, self.activation) => {
                patches(self, build, params)
            }
            "patches" => {
                let plain = ConvTranspose2d { activation: Activation::None, ..self.clone() };
                let plan = Plan { independent: false, ..patches(&plain, build, params)? };
                let elements = self.outputs()[0].elements();
                let rest = Rest { residual: None, behind: false, activation: self.activation };
                epilogue::afterwards(plan, (elements, self.dtype), rest)
            }
            other => Err(Unfit(format!("uses the unknown template '{other}'"))),
        }
    }
}

/// The block of `include/convolution.glsl`.
fn push(op: &ConvTranspose2d) -> Result<Vec<Size>, Unfit> {
    let ([_, all, height, width], [_, filters, rows, columns]) = (op.input, op.filter.map(Size::from));
    let ([_, total, out_height, out_width], channels) = (op.output_dims(), Size::from(op.channels()));
    let one = Size::constant(1);
    for tensor in op.inputs().iter().chain(&op.outputs()) {
        narrow("a number of elements", tensor.elements())?;
    }
    let (pixels, places, taps) = (height * width, out_height * out_width, rows * columns);
    let sizes = [channels, height, width, filters, rows, columns, out_height, out_width];
    let window = op.strides.into_iter().chain(op.dilations).chain([op.pads[0], op.pads[1]]).map(Size::from);
    let weights = [channels * filters * taps, taps, filters * taps, one];
    let steps = [all * pixels, pixels, one].into_iter().chain(weights).chain([total * places, places, one]);
    sizes.into_iter().chain(window).chain(steps).map(|value| narrow("a size", value)).collect()
}

fn direct(op: &ConvTranspose2d, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let p = |name| params.get(name);
    let (channels, pixels, least) = (p("channels")?, p("pixels")?, p("min_filters")?);
    if !Epilogue::of("direct", params).does(false, op.activation) {
        return Err(Unfit(format!("does not know the activation {:?}", op.activation)));
    }
    if op.filter[1] < u64::from(least) {
        return Err(Unfit(format!("wants at least {least} filters in a group, there are {}", op.filter[1])));
    }
    let module = module(build)?;
    let [images, _, rows, columns] = op.output_dims();
    // A workgroup has places that are a stride apart: as many kinds of them as strides multiply to.
    let places = rows.div_ceil(op.strides[0]) * columns.div_ceil(op.strides[1]);
    let lanes = lanes_for(places, pixels, p("lanes")?);
    let kinds = op.strides[0] * op.strides[1];
    let blocks = u64::from(fixed_groups(op.filter[1], channels)?) * op.groups;
    let grid = [
        groups(places, lanes * pixels)?,
        narrow("a number of filters", blocks)?,
        narrow("a number of images and strides", images * kinds)?,
    ];
    let added = Added { bias: op.bias, ..Added::default() };
    let constants = vec![lanes, added.code(), activation_code(op.activation)];
    let (push, bindings) = (push(op)?, bindings(added));
    Ok(Plan::of(Step { module, constants, push, bindings, grid, subgroup_size: 0 }))
}

/// Results of an invocation of `patches.comp`: rows and columns, a stride apart.
const PATCH: [u64; 2] = [4, 2];

/// The places of a kernel that are first taps of results, in one dimension: how many taps such results have, the first place and the
/// number of places.
fn first_taps(kernel: u64, stride: u64) -> Result<Vec<[u32; 3]>, Unfit> {
    if !(stride..=2 * stride).contains(&kernel) {
        return Err(Unfit("wants one or two taps a stride apart in each dimension".into()));
    }
    let twice = fixed("the kernel", kernel - stride)?;
    let once = fixed("the stride", stride)? - twice;
    Ok([[2, 0, twice], [1, twice, once]].into_iter().filter(|kind| kind[2] > 0).collect())
}

/// An invocation for `filters` filters at four rows of two places a stride apart; a dispatch for all results of as many taps.
fn patches(op: &ConvTranspose2d, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let (lanes, filters) = (params.get("lanes")?, params.get("filters")?);
    if op.dilations != [1, 1] {
        return Err(Unfit("wants no dilation".into()));
    }
    // Half of the filters and places may be lost: other kernels take three times as long.
    let computed = op.filter[1].next_multiple_of(u64::from(filters.max(1)));
    if computed > 2 * op.filter[1] {
        return Err(Unfit(format!("computes {filters} filters at a time, and there are {}", op.filter[1])));
    }
    let [images, _, rows, columns] = op.output_dims();
    let kinds = [0, 1].map(|d| first_taps(op.filter[d + 2], op.strides[d]));
    let [kinds_y, kinds_x] = kinds;
    let [down, across] = [rows.div_ceil(op.strides[0]), columns.div_ceil(op.strides[1])];
    let workgroups = groups(images * down.div_ceil(PATCH[0]) * across.div_ceil(PATCH[1]), lanes)?;
    let (places, there) = (workgroups * u64::from(lanes) * (PATCH[0] * PATCH[1]), images * down * across);
    // Either computes the convolution.
    if places.value() > 2 * there.value() {
        return Err(Unfit(format!("computes {places} places for {there}")));
    }
    let blocks = narrow("a number of filters", u64::from(fixed_groups(op.filter[1], filters)?) * op.groups)?;
    let added = Added { bias: op.bias, ..Added::default() };
    let limits = op.activation.limits().unwrap_or([f32::NEG_INFINITY, f32::INFINITY]).map(f32::to_bits);
    let (mut push, mut steps, kinds_x) = (push(op)?, Vec::new(), kinds_x?);
    push.push(narrow("a number of images", images)?);
    for [taps_y, first_y, count_y] in kinds_y? {
        for &[taps_x, first_x, count_x] in &kinds_x {
            let kinds = u64::from(count_y) * u64::from(count_x);
            let constants = [lanes, added.code(), activation_code(op.activation), limits[0], limits[1]];
            let taps = [taps_y, taps_x, first_y, first_x, count_y, count_x];
            steps.push(Step {
                module: module(build)?,
                constants: constants.into_iter().chain(taps).collect(),
                push: push.clone(),
                bindings: bindings(added),
                grid: [workgroups, blocks, narrow("a number of strides", kinds)?],
                subgroup_size: 0,
            });
        }
    }
    Ok(Plan { independent: true, ..Plan::new(steps, Vec::new()) })
}

/// Most bytes of products in memory.
const MOST_PRODUCTS: u64 = 1 << 26;
/// Terms of all sums from which three dispatches save time: on an H100, 19 million took 0.33 times what one dispatch took, and
/// 134 million 0.09 to 0.85 times. Fewer were not measured.
const WORTH_TERMS: u64 = 1 << 22;
/// Products in 32 bits of few channels, written and read, take longer than one dispatch: 2 million of 64 channels took 120 µs on
/// an H100 and 63 in one dispatch, with operands that were not in caches; a million of 128 channels 25 and 35.
const MANY_PRODUCTS: u64 = 1 << 20;
const FEW_CHANNELS: u64 = 96;
/// Invocations of the kernel that folds.
const FOLD_LANES: u32 = 128;

/// A product of matrices and what becomes of it: filters lie as rows first, each tap of each filter is multiplied with all places,
/// and what meets in a result is added.
fn folded(op: &ConvTranspose2d, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
    if op.groups != 1 {
        return Err(Unfit("wants one group".into()));
    }
    let ([images, _, height, width], [channels, filters, rows, columns]) = (op.input, op.filter);
    let (taps, results) = (filters * rows * columns, op.outputs()[0].elements());
    let terms = height * width * images * channels * taps;
    if terms.is_at_most(WORTH_TERMS) {
        return Err(Unfit(format!("saves time for more than {WORTH_TERMS} terms, and these are {terms}")));
    }
    let products = height * width * images * taps;
    narrow("a number of products", products)?;
    if !(products * 4).is_at_most(MOST_PRODUCTS) {
        return Err(Unfit(format!("writes {} bytes of products, more than {MOST_PRODUCTS}", products * 4)));
    }
    if op.dtype == DType::F32 && channels < FEW_CHANNELS && !products.is_at_most(MANY_PRODUCTS) {
        return Err(Unfit(format!("writes many products of few terms: {products} of {channels} channels")));
    }
    let points = Conv2d::new([images, channels.into(), height, width], [taps, channels, 1, 1], op.dtype);
    let product = if template == "folded" {
        on_matrix_units(&points, build, params)?
    } else {
        let [turned, made] = [Slot::Scratch(0), Slot::Scratch(1)];
        let bindings = vec![Slot::Input(0), turned, turned, made, turned];
        let (added, activation) = (Added::default(), points.activation);
        let kernel = KernelInputs { build, params, added, activation, bindings, more: Vec::new() };
        matrix::wide(&points.shape().map_err(Unfit)?, kernel)?
    };
    let steps = [turned(op)?, product.steps, vec![fold(op, results)?]].concat();
    let weights = (channels * taps).next_multiple_of(2) * op.dtype.size();
    Ok(Plan::new(steps, vec![weights.into(), (products * 4).max(4)]))
}

/// The product of 16-bit operands, with 32-bit results.
fn on_matrix_units(points: &Conv2d, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let (mut product, mut sides) = conv2d::points(points, &points.shape().map_err(Unfit)?)?;
    product.out = DType::F32;
    let turned = Slot::Scratch(0);
    sides.bindings = vec![turned, Slot::Input(0), Slot::Scratch(1), turned, turned];
    matmul::coop_of(&product, build, params, sides)
}

/// The dispatches that write filters as rows: taps of filters by channels.
fn turned(op: &ConvTranspose2d) -> Result<Vec<Step>, Unfit> {
    let [channels, filters, rows, columns] = op.filter;
    let taps = filters * rows * columns;
    let stride = i64::try_from(taps).map_err(|_| Unfit("has too many taps".into()))?;
    let copy = StridedCopy {
        source: (channels * taps).into(),
        shape: vec![taps.into(), channels.into()],
        strides: vec![Size::constant(1), stride.into()],
        offset: 0.into(),
        dtype: op.dtype,
    };
    let operation = Operation::StridedCopy(copy);
    let mut variants: Vec<_> = variants_of(operation.name())
        .filter(|v| v.needs.is_baseline() && v.signatures.contains(&operation.signature()))
        .collect();
    variants.sort_by_key(|v| v.order);
    let plan = variants.iter().find_map(|v| v.plan(&operation).ok());
    let mut steps = plan.ok_or_else(|| Unfit("finds no kernel that copies".to_owned()))?.steps;
    for slot in steps.iter_mut().flat_map(|step| &mut step.bindings) {
        *slot = if *slot == Slot::Input(0) { Slot::Input(1) } else { Slot::Scratch(0) };
    }
    Ok(steps)
}

/// The dispatch that adds products.
fn fold(op: &ConvTranspose2d, results: Size) -> Result<Step, Unfit> {
    let ([_, _, height, width], [_, filters, rows, columns]) = (op.input, op.filter);
    let [_, _, out_height, out_width] = op.output_dims();
    let added = Added { bias: op.bias, ..Added::default() };
    let mut constants = vec![FOLD_LANES, added.code(), activation_code(op.activation)];
    for value in [rows, columns, op.strides[0], op.strides[1]] {
        constants.push(fixed("the kernel", value)?);
    }
    let items = items_for(results, FOLD_LANES, 1);
    constants.push(items);
    let sizes = [filters.into(), height, width, out_height, out_width];
    let numbers = [op.dilations[0], op.dilations[1], op.pads[0], op.pads[1]].map(Size::from);
    let all = sizes.into_iter().chain(numbers).chain([results]);
    Ok(Step {
        module: module(&format!("conv_transpose2d_fold_{}", op.dtype))?,
        constants,
        push: all.map(|value| narrow("a size", value)).collect::<Result<_, _>>()?,
        bindings: vec![Slot::Scratch(1), Slot::Input(if op.bias { 2 } else { 1 }), Slot::Output(0)],
        grid: flat_grid(results, FOLD_LANES * items)?,
        subgroup_size: 0,
    })
}
