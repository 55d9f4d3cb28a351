//! What metadata say of how large the factors of feed-forward networks get.

use halite_formats::gguf::Value;

use super::{Result, family::Activation, file::invalid, keys::Keys, xielu::XIelu};

/// The numbers of feed-forward networks' activations.
#[derive(Clone, Debug)]
pub(super) struct Activations {
    /// Those of an activation that has some in each layer.
    pub xielu: Vec<XIelu>,
    /// What the factors are bent to be within; of the second perhaps nothing.
    pub bends: Option<(f64, Option<f64>)>,
    /// How many deviations above the mean a gate's numbers are that feed-forward networks keep, of layers that do not keep all.
    pub sparsity: Vec<Option<f64>>,
    /// What the factors are within, of each layer: of those that all tokens have, and of experts.
    pub limits: [Vec<Option<f64>>; 2],
}

impl Activations {
    /// Reads what the metadata say of them.
    pub fn read(keys: &Keys<'_>, layers: u64) -> Result<Activations> {
        Ok(Activations {
            xielu: xielu(keys, layers)?,
            bends: bends(keys)?,
            sparsity: sparsity(keys, layers)?,
            limits: both_limits(keys, layers)?,
        })
    }
}

/// The numbers of the activation, where it has some.
fn xielu(keys: &Keys<'_>, layers: u64) -> Result<Vec<XIelu>> {
    match keys.family.activation {
        Activation::XIelu => XIelu::of_layers(keys.file, layers),
        _ => Ok(Vec::new()),
    }
}

/// What the factors of feed-forward networks are bent to be within.
fn bends(keys: &Keys<'_>) -> Result<Option<(f64, Option<f64>)>> {
    if keys.family.activation != Activation::Situ {
        return Ok(None);
    }
    let name = "activation.situ_beta";
    let first = keys.factor(name)?.ok_or_else(|| keys.missing(name))?;
    Ok(Some((first, keys.float("activation.situ_linear_beta")?.filter(|own| *own > 0.0))))
}

/// Which numbers of gates each layer keeps: of a list of the metadata those above 0 count.
fn sparsity(keys: &Keys<'_>, layers: u64) -> Result<Vec<Option<f64>>> {
    let name = "activation_sparsity_scale";
    match keys.family.sparse {
        None => Ok(vec![None; layers as usize]),
        Some(_) if matches!(keys.value(name), Some(Value::Array(_))) => limits(keys, name, layers),
        Some((first, usual)) => Ok((0..layers).map(|layer| (layer < first).then_some(usual)).collect()),
    }
}

/// What factors are within, of networks that all tokens have and of experts.
fn both_limits(keys: &Keys<'_>, layers: u64) -> Result<[Vec<Option<f64>>; 2]> {
    let of_experts = match keys.value("swiglu_clamp_exp") {
        None => vec![keys.family.gate_limit; layers as usize],
        Some(_) => limits(keys, "swiglu_clamp_exp", layers)?,
    };
    let of_others = match keys.value("swiglu_clamp_shexp") {
        None if keys.family.one_limit => of_experts.clone(),
        _ => limits(keys, "swiglu_clamp_shexp", layers)?,
    };
    Ok([of_others, of_experts])
}

/// A number above 0 for each layer that has one.
fn limits(keys: &Keys<'_>, name: &str, layers: u64) -> Result<Vec<Option<f64>>> {
    let above = |value: Value| match value {
        Value::Float(value) => Some(value).filter(|value| value.is_finite() && *value > 0.0),
        _ => None,
    };
    match keys.value(name) {
        None => Ok(vec![None; layers as usize]),
        Some(Value::Array(array)) => {
            let all: Vec<Option<f64>> = array.scalars().take(layers as usize).map(above).collect();
            match all.len() as u64 == layers {
                true => Ok(all),
                false => Err(invalid(format!("'{}' has {} of {layers} numbers", keys.key(name), all.len()))),
            }
        }
        Some(value) => Ok(vec![above(value.clone()); layers as usize]),
    }
}
