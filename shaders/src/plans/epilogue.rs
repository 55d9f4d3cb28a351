//! Epilogues in plans: how much of one a kernel of a linear operation does, and the dispatch that does the rest.

use halite_ops::{
    Activation, DType, Operation,
    elementwise::Elementwise,
    expression::{Expression, Function, Operand},
};
use halite_sizes::Size;

use crate::{Params, Plan, Slot, Unfit, Variant, plans::runs::Around, variants_of};

/// What is added to sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Added {
    /// A value for each filter of a convolution, or for each column of a product.
    pub bias: bool,
    /// A tensor like the result.
    pub residual: bool,
    /// A value for each place of a convolution of 1x1.
    pub place_bias: bool,
    /// A float for each filter, for sums of integers that were scaled.
    pub scaled_bias: bool,
    /// A value for each row of a product.
    pub row_bias: bool,
    /// The residual is added behind the activation.
    pub behind: bool,
}

impl Added {
    /// The bit of the residual in the number.
    pub const RESIDUAL: u32 = 2;

    /// The number by which kernels know it.
    pub fn code(self) -> u32 {
        let all = [self.bias, self.residual, self.place_bias, self.scaled_bias, self.row_bias, self.behind];
        all.into_iter().enumerate().map(|(bit, there)| u32::from(there) << bit).sum()
    }
}

/// The number by which kernels know an activation: `include/activation.glsl`.
pub(crate) fn activation_code(activation: Activation) -> u32 {
    match activation {
        Activation::None => 0,
        Activation::Relu => 1,
        Activation::Relu6 => 2,
        Activation::Silu => 3,
        Activation::Sigmoid => 4,
        Activation::HardSwish => 5,
        Activation::Tanh => 6,
        Activation::Gelu => 7,
        Activation::GeluTanh => 8,
        Activation::QuickGelu => 9,
        Activation::Mish => 10,
        // No slope has its sign bit set.
        Activation::LeakyRelu(slope) => slope.value().to_bits() | LEAKY,
    }
}

/// What is set in the number of a leaky ReLU beside the bits of its slope.
const LEAKY: u32 = 1 << 31;

/// How much of what becomes of sums a kernel does. All add a bias.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Epilogue {
    /// It adds a residual and applies every function.
    Everything,
    /// It applies every function, and adds no residual.
    Functions,
    /// It applies the functions up to hard-swish, and the leaky ReLU.
    Few,
    /// It applies functions that are limits.
    Limits,
}

impl Epilogue {
    /// That of the kernels of a template with these parameters.
    pub fn of(template: &str, params: &Params) -> Self {
        let flag = |name| params.get(name).is_ok_and(|flag| flag == 1);
        match template {
            "pointwise" if flag("finishes") => Epilogue::Everything,
            "bytes" | "depthwise_patches" | "patches" | "pointwise" | "rows" => Epilogue::Limits,
            "few_last" => Epilogue::Functions,
            "depthwise" | "depthwise_columns" | "depthwise_square" | "depthwise_window" => Epilogue::Few,
            "depthwise_last" | "direct" | "strips" if flag("few") => Epilogue::Few,
            _ => Epilogue::Everything,
        }
    }

    /// Whether the kernels of a template add a residual behind the activation: those of `coop.comp`.
    pub fn adds_behind(template: &str) -> bool {
        matches!(
            template,
            "coop" | "fragments" | "image" | "image_fragments" | "points" | "taps" | "unfolded"
        )
    }

    /// Whether kernels add a residual where there is one, and apply the function.
    pub fn does(self, residual: bool, activation: Activation) -> bool {
        match self {
            Epilogue::Everything => true,
            Epilogue::Functions => !residual,
            Epilogue::Few => {
                let most = activation_code(Activation::HardSwish);
                let is_leaky = matches!(activation, Activation::LeakyRelu(_));
                !residual && (is_leaky || activation_code(activation) <= most)
            }
            Epilogue::Limits => !residual && activation.limits().is_some(),
        }
    }
}

/// What a dispatch does with results.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rest {
    /// What is added.
    pub residual: Option<Slot>,
    /// Whether that is added behind the activation.
    pub behind: bool,
    /// The function of results.
    pub activation: Activation,
}

/// A plan whose results of `elements` elements are finished by one more dispatch, in place: the residual is added and the
/// function applied. For kernels on devices where more code in them costs more than this does.
pub(crate) fn afterwards(
    mut plan: Plan,
    (elements, dtype): (Size, DType),
    Rest { residual, behind, activation }: Rest,
) -> Result<Plan, Unfit> {
    let mut program = Expression::default();
    let mut inputs = vec![(dtype, vec![elements])];
    let mut value = Operand::Input(0);
    if behind {
        value = applied(&mut program, value, activation);
    }
    if residual.is_some() {
        inputs.push((dtype, vec![elements]));
        value = program.call(Function::Add, &[value, Operand::Input(1)]);
    }
    if !behind {
        value = applied(&mut program, value, activation);
    }
    program.store(value, dtype);
    let operation = Operation::Elementwise(Elementwise::new(inputs, program));
    let baseline = |v: &&Variant| v.needs.is_baseline() && v.signatures.contains(&operation.signature());
    let variant = variants_of(operation.name()).filter(baseline).min_by_key(|v| v.order);
    let variant = variant.ok_or_else(|| Unfit("finds no elementwise kernel".to_owned()))?;
    let mut steps = variant.plan(&operation)?.steps;
    for step in &mut steps {
        for slot in &mut step.bindings {
            *slot = match (*slot, residual) {
                (Slot::Input(1), Some(residual)) => residual,
                _ => Slot::Output(0),
            };
        }
    }
    plan.steps.extend(steps);
    Ok(plan)
}

/// The plan of a variant that leaves the residual and the activation to a dispatch of their own: for devices that cannot bind
/// both a bias and a residual. `None` where there is no residual.
pub(crate) fn apart(operation: &Operation, variant: &Variant) -> Option<Result<Plan, Unfit>> {
    if let Some((alone, around)) = Around::all(operation) {
        return apart(&alone, variant).map(|plan| around.plan(plan?));
    }
    let mut plain = operation.clone();
    let (residual, activation, bias, dtype, behind) = match &mut plain {
        Operation::Conv1d(c) => (&mut c.residual, &mut c.activation, c.bias, c.dtype, false),
        Operation::Conv2d(c) => {
            let behind = std::mem::take(&mut c.residual_behind);
            (&mut c.residual, &mut c.activation, c.bias, c.dtype, behind)
        }
        Operation::MatMul(op) => {
            let behind = std::mem::take(&mut op.residual_behind);
            (&mut op.residual, &mut op.activation, op.bias, op.out, behind)
        }
        _ => return None,
    };
    if !std::mem::take(residual) {
        return None;
    }
    let activation = std::mem::take(activation);
    let residual = Slot::Input(2 + usize::from(bias));
    let plan = variant.plan(&plain);
    let elements = plain.outputs()[0].elements();
    let rest = Rest { residual: Some(residual), behind, activation };
    Some(plan.and_then(|plan| afterwards(plan, (elements, dtype), rest)))
}

/// An activation in an expression.
fn applied(program: &mut Expression, x: Operand, activation: Activation) -> Operand {
    let function = match activation {
        Activation::None => return x,
        Activation::Relu6 => return program.call(Function::Clip, &[x, 0.0.into(), 6.0.into()]),
        Activation::LeakyRelu(slope) => {
            return program.call(Function::Prelu, &[x, slope.value().into()]);
        }
        Activation::QuickGelu => {
            let scaled = program.call(Function::Mul, &[x, 1.702.into()]);
            let gate = program.call(Function::Sigmoid, &[scaled]);
            return program.call(Function::Mul, &[x, gate]);
        }
        Activation::Mish => Function::Mish,
        Activation::HardSwish => Function::HardSwish,
        Activation::Relu => Function::Relu,
        Activation::Silu => Function::Silu,
        Activation::Sigmoid => Function::Sigmoid,
        Activation::Tanh => Function::Tanh,
        Activation::Gelu => Function::Gelu,
        Activation::GeluTanh => Function::GeluTanh,
    };
    program.call(function, &[x])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_is_the_same_in_an_expression() {
        for activation in Activation::ALL.into_iter().chain(["leaky_relu_0.1".parse().unwrap()]) {
            let mut program = Expression::default();
            let value = applied(&mut program, Operand::Input(0), activation);
            program.store(value, DType::F32);
            let operation = Operation::Elementwise(Elementwise::new(vec![(DType::F32, vec![4])], program));
            let x = [-3.5, -0.25, 0.75, 8.0];
            let got = operation.reference(&[halite_ops::Values::Float(x.to_vec())]);
            let got = got[0].floats();
            assert!(
                x.iter().zip(got).all(|(x, got)| (activation.apply(*x) - got).abs() < 1e-5),
                "{activation:?}"
            );
        }
    }
}
