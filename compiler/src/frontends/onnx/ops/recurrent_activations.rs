//! The functions of the gates of recurrent networks.

use halite_ops::expression::{Expression, Function, Operand, Scalar};

use super::{NodeView, Result};

/// A function of a gate, and the limit of its argument.
#[derive(Clone, Debug)]
pub(super) struct Activation {
    pub(super) name: String,
    alpha: f32,
    beta: f32,
    pub(super) clip: Option<f32>,
}

pub(super) fn number(value: f32) -> Operand {
    Operand::Constant(Scalar::Float(value.into()))
}

impl Activation {
    /// The function with the constants that it has when a model gives none, if there is one of the name.
    fn named(name: &str) -> Option<Activation> {
        let (alpha, beta) = match name.to_ascii_lowercase().as_str() {
            "relu" | "tanh" | "sigmoid" | "softsign" | "softplus" => (0.0, 0.0),
            "affine" => (1.0, 0.0),
            "leakyrelu" => (0.01, 0.0),
            "thresholdedrelu" | "elu" => (1.0, 0.0),
            "scaledtanh" => (1.0, 1.0),
            "hardsigmoid" => (0.2, 0.5),
            _ => return None,
        };
        Some(Activation { name: name.to_ascii_lowercase(), alpha, beta, clip: None })
    }

    /// The same without a limit of its argument.
    pub(super) fn unlimited(&self) -> Activation {
        Activation { clip: None, ..self.clone() }
    }

    /// The function of a gate's sum.
    pub(super) fn apply(&self, p: &mut Expression, x: Operand) -> Operand {
        let x = match self.clip {
            Some(most) => p.call(Function::Clip, &[x, number(-most), number(most)]),
            None => x,
        };
        let (alpha, beta) = (number(self.alpha), number(self.beta));
        match self.name.as_str() {
            "relu" => p.call(Function::Relu, &[x]),
            "sigmoid" => p.call(Function::Sigmoid, &[x]),
            "softplus" => p.call(Function::Softplus, &[x]),
            "elu" => p.call(Function::Elu, &[x, alpha]),
            "leakyrelu" => p.call(Function::Prelu, &[x, alpha]),
            "hardsigmoid" => p.call(Function::HardSigmoid, &[x, alpha, beta]),
            "affine" => {
                let product = p.call(Function::Mul, &[x, alpha]);
                p.call(Function::Add, &[product, beta])
            }
            "scaledtanh" => {
                let product = p.call(Function::Mul, &[x, beta]);
                let bent = p.call(Function::Tanh, &[product]);
                p.call(Function::Mul, &[bent, alpha])
            }
            "thresholdedrelu" => {
                let above = p.call(Function::Ge, &[x, alpha]);
                p.call(Function::Select, &[above, x, number(0.0)])
            }
            "softsign" => {
                let size = p.call(Function::Abs, &[x]);
                let sum = p.call(Function::Add, &[size, number(1.0)]);
                p.call(Function::Div, &[x, sum])
            }
            _ => p.call(Function::Tanh, &[x]),
        }
    }
}

/// The functions of the gates for each direction.
pub(super) fn activations(
    node: &NodeView<'_>,
    names: &[&str],
    directions: usize,
) -> Result<Vec<Vec<Activation>>> {
    let each = names.len();
    let default = names.repeat(directions);
    let names = node.strings("activations")?;
    let names = names.unwrap_or_else(|| default.iter().map(ToString::to_string).collect());
    if names.len() != each * directions {
        return Err(node.invalid(format!("{} activations for {directions} directions", names.len())));
    }
    let (alphas, betas) = (node.floats("activation_alpha")?, node.floats("activation_beta")?);
    let clip = node.float_if("clip")?.filter(|most| *most > 0.0);
    let mut all = Vec::new();
    // Constants are given for the functions that have any, in their order.
    let (mut alphas, mut betas) =
        (alphas.unwrap_or_default().into_iter(), betas.unwrap_or_default().into_iter());
    for name in &names {
        let known =
            Activation::named(name).ok_or_else(|| node.unsupported(format!("the activation '{name}'")))?;
        let has = |names: &[&str]| names.contains(&known.name.as_str());
        let alpha = has(&["affine", "leakyrelu", "thresholdedrelu", "scaledtanh", "hardsigmoid", "elu"]);
        let beta = has(&["affine", "scaledtanh", "hardsigmoid"]);
        all.push(Activation {
            alpha: if alpha { alphas.next().unwrap_or(known.alpha) } else { known.alpha },
            beta: if beta { betas.next().unwrap_or(known.beta) } else { known.beta },
            clip,
            ..known
        });
    }
    Ok(all.chunks(each).map(<[Activation]>::to_vec).collect())
}
