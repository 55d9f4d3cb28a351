//! What metadata say of how large the factors of feed-forward networks get.

use halite_formats::gguf::Value;

use super::{Result, file::invalid, keys::Keys};

/// Which numbers of gates each layer keeps: of a list of the metadata those above 0 count.
pub(super) fn sparsity(keys: &Keys<'_>, layers: u64) -> Result<Vec<Option<f64>>> {
    let name = "activation_sparsity_scale";
    match keys.family.sparse {
        None => Ok(vec![None; layers as usize]),
        Some(_) if matches!(keys.value(name), Some(Value::Array(_))) => limits(keys, name, layers),
        Some((first, usual)) => Ok((0..layers).map(|layer| (layer < first).then_some(usual)).collect()),
    }
}

/// What factors are within, of networks that all tokens have and of experts.
pub(super) fn both_limits(keys: &Keys<'_>, layers: u64) -> Result<[Vec<Option<f64>>; 2]> {
    let of_experts = match keys.value("swiglu_clamp_exp") {
        None => vec![keys.family.gate_limit; layers as usize],
        Some(_) => limits(keys, "swiglu_clamp_exp", layers)?,
    };
    Ok([limits(keys, "swiglu_clamp_shexp", layers)?, of_experts])
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
