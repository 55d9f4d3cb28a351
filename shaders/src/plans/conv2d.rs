//! The dispatches of the kernels of `conv2d`, by template.

use halite_ops::{Activation, Op, conv2d::Conv2d, convolution::Convolution, matmul::MatMul, window::Layout};

use crate::{
    Params, Plan, Slot, Unfit,
    plans::{
        Lower,
        convolution::{self, KernelInputs, exchange, matrix, window},
        epilogue::{self, Added, Epilogue},
        matmul,
    },
};

impl Lower for Conv2d {
    fn lower(&self, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
        if Epilogue::of(template, params).does(self.residual, self.activation) {
            return dispatches(self, template, build, params);
        }
        if template == "depthwise_patches" {
            return Err(Unfit("knows activations only that are limits, and adds no residual".into()));
        }
        let plain = Conv2d { residual: false, activation: Activation::None, ..self.clone() };
        let plan = dispatches(&plain, template, build, params)?;
        let residual = self.residual.then_some(Slot::Input(2 + usize::from(self.bias)));
        let elements = self.outputs()[0].elements();
        epilogue::afterwards(plan, (elements, self.dtype), residual, self.activation)
    }
}

/// Bindings of inputs and output; without a bias or a residual, its place has the filters, and nothing reads it.
pub(super) fn bindings(added: Added) -> Vec<Slot> {
    let bias = Slot::Input(if added.bias { 2 } else { 1 });
    let residual = Slot::Input(if added.residual { 2 + usize::from(added.bias) } else { 1 });
    vec![Slot::Input(0), Slot::Input(1), bias, Slot::Output(0), residual]
}

/// The product that a convolution with one place is: images by filters. Their tensors lie alike.
fn product(op: &Conv2d, shape: &Convolution) -> Result<MatMul, Unfit> {
    let w = &shape.window;
    // Taps lie as elements do where there are as many of them.
    let covers =
        (0..2).all(|d| w.input[d].is(w.kernel[d].into()) && (w.kernel[d] == 1 || w.dilations[d] == 1));
    if shape.groups != 1 || w.pads != [0; 4] || !covers {
        return Err(Unfit("wants one group and a kernel that covers the image, without padding".into()));
    }
    Ok(MatMul {
        rhs_transposed: shape.layout == Layout::Nchw,
        bias: op.bias,
        residual: op.residual,
        activation: op.activation,
        ..MatMul::new(shape.images, shape.filters, shape.depth(), op.dtype, op.dtype)
    })
}

/// A convolution of 1x1 as a product on matrix units: filters by places, for each image.
fn points(op: &Conv2d, shape: &Convolution, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let w = &shape.window;
    let plain = (w.kernel, w.strides, w.pads) == ([1, 1], [1, 1], [0; 4]);
    if !plain || shape.groups != 1 || shape.layout != Layout::Nchw {
        return Err(Unfit(
            "wants channels first, one group, a kernel of 1x1, strides of 1 and no padding".into(),
        ));
    }
    let product = MatMul {
        batch: shape.images,
        residual: op.residual,
        activation: op.activation,
        ..MatMul::new(shape.filters, w.input[0] * w.input[1], shape.channels, op.dtype, op.dtype)
    };
    let added = Added { bias: op.bias, residual: op.residual, ..Added::default() };
    let [data, weights, bias, result, residual] = bindings(added)[..] else {
        return Err(Unfit("has other bindings than convolutions have".into()));
    };
    let sides = matmul::Sides {
        lhs_stride: 0.into(),
        added: Added { row_bias: op.bias, residual: op.residual, ..Added::default() },
        bindings: vec![weights, data, result, bias, residual],
    };
    matmul::coop_of(&product, build, params, sides)
}

/// The dispatches of kernels that do all that becomes of the sums themselves.
fn dispatches(op: &Conv2d, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let shape = op.shape().map_err(Unfit)?;
    let added = Added { bias: op.bias, residual: op.residual, ..Added::default() };
    if template == "product" {
        return matmul::vector(&product(op, &shape)?, build, params);
    }
    if template == "points" {
        return points(op, &shape, build, params);
    }
    let (bindings, activation) = (bindings(added), op.activation);
    let kernel = KernelInputs { build, params, added, activation, bindings, more: Vec::new() };
    let add = format!("conv2d_matrix_add_{}", op.dtype);
    match template {
        "depthwise" => convolution::depthwise(&shape, kernel),
        "depthwise_patches" => convolution::depthwise_patches(&shape, kernel),
        "depthwise_square" => window::depthwise_square(&shape, kernel),
        "depthwise_window" => window::depthwise(&shape, kernel),
        "direct" => convolution::direct(&shape, kernel),
        "exchange" => exchange::pointwise(&shape, kernel),
        "gemm" => matrix::gemm(&shape, kernel),
        "matrix" => matrix::matrix(&shape, kernel),
        "matrix_cut" => matrix::matrix_cut(&shape, kernel, &add),
        "patches" => convolution::patches(&shape, kernel),
        "pointwise" => convolution::pointwise(&shape, kernel),
        "rows" => convolution::rows(&shape, kernel),
        "strips" => convolution::strips(&shape, kernel),
        "wide" => matrix::wide(&shape, kernel),
        "wide_cut" => matrix::wide_cut(&shape, kernel, &add),
        other => Err(Unfit(format!("uses the unknown template '{other}'"))),
    }
}
