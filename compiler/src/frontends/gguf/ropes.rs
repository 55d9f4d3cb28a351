//! What metadata say of rotary embedding.

use halite_formats::gguf::Value;

use super::{
    Result,
    family::Turn,
    file::{invalid, unsupported},
    heads::Attends,
    keys::Keys,
    rope::{Rope, Scaling, yarn_size},
};

/// The rotary embedding of layers that attend to all keys, and of those that attend to a window.
pub(super) fn ropes(keys: &Keys<'_>, attends: &[Attends]) -> Result<[Rope; 2]> {
    let global = attends.iter().find(|own| !own.windowed).unwrap_or(&attends[0]);
    let mut rope = rope(keys, global.heads.key)?;
    let local = local_rope(keys, &rope, attends)?;
    if keys.family.half_turned {
        rope.turned = rope.turned / 4 * 2;
    }
    Ok([rope, local])
}

/// The rotary embedding of layers that attend to a window.
fn local_rope(keys: &Keys<'_>, rope: &Rope, attends: &[Attends]) -> Result<Rope> {
    let base = keys.float("rope.freq_base_swa")?.or(keys.family.local_base);
    let turned = keys.optional("rope.dimension_count_swa")?.unwrap_or(rope.turned);
    let key = attends.iter().find(|own| own.windowed).map_or(turned, |own| own.heads.key);
    if turned > key || !turned.is_multiple_of(2) {
        return Err(invalid(format!(
            "'{}' is {turned}, of {key} elements",
            keys.key("rope.dimension_count_swa")
        )));
    }
    Ok(match base {
        Some(base) => Rope { base, turned, scaling: Scaling::None, ..rope.clone() },
        None if keys.family.local_scaled => Rope { turned, ..rope.clone() },
        None => Rope { turned, scaling: Scaling::None, magnitude: 1.0, ..rope.clone() },
    })
}

/// Refuses rotary embedding whose sections have places that texts do not: of each token the first three are the same, the fourth is 0.
fn check_sections(keys: &Keys<'_>) -> Result<()> {
    let name = "rope.dimension_sections";
    let Some(Value::Array(sections)) = keys.value(name) else { return Ok(()) };
    match sections.scalars().skip(3).all(|section| section == Value::Int(0)) {
        true => Ok(()),
        false => Err(unsupported(format!("'{}' with a fourth section", keys.key(name)))),
    }
}

/// The factor of YaRN's logarithm that states are made smaller by again; 0 where there is none.
pub(super) fn yarn_multiplier(keys: &Keys<'_>) -> Result<f64> {
    let unit = keys.family.yarn_scale.unwrap_or(1.0);
    Ok(keys.float("rope.scaling.yarn_log_multiplier")?.unwrap_or(0.0) / unit)
}

fn rope(keys: &Keys<'_>, key_dim: u64) -> Result<Rope> {
    if keys.family.turn == Turn::Nothing {
        return Ok(Rope { turned: 0, base: 1.0, scaling: Scaling::None, magnitude: 1.0, trained: None });
    }
    check_sections(keys)?;
    let turned = keys.optional("rope.dimension_count")?.unwrap_or(key_dim);
    if turned > key_dim || !turned.is_multiple_of(2) {
        return Err(invalid(format!("'{}' is {turned}", keys.key("rope.dimension_count"))));
    }
    let factor = match keys.factor("rope.scaling.factor")? {
        None => keys.factor("rope.scale_linear")?,
        factor => factor,
    };
    let trained = keys.optional("rope.scaling.original_context_length")?;
    let trained = trained.or(keys.optional("context_length")?);
    let kind = match keys.value("rope.scaling.type") {
        None => "linear",
        Some(Value::Text(kind)) => kind.as_str(),
        Some(_) => return Err(invalid(format!("'{}' is no text", keys.key("rope.scaling.type")))),
    };
    let scaling = match (kind, factor) {
        ("none", _) | ("linear" | "longrope" | "yarn", None) => Scaling::None,
        ("linear" | "longrope", Some(factor)) => Scaling::Linear(factor),
        ("yarn", Some(factor)) => Scaling::Yarn {
            size: match yarn_multiplier(keys)? {
                multiplier if keys.family.bare_yarn && multiplier != 0.0 => 1.0,
                multiplier => yarn_size(factor, 1.0) / yarn_size(factor, multiplier),
            },
            factor,
            trained: trained.ok_or_else(|| keys.missing("rope.scaling.original_context_length"))?,
            fast: keys.float("rope.scaling.yarn_beta_fast")?.unwrap_or(32.0),
            slow: keys.float("rope.scaling.yarn_beta_slow")?.unwrap_or(1.0),
        },
        (other, _) => {
            let key = keys.key("rope.scaling.type");
            return Err(unsupported(format!(
                "'{key}' is {other}; there are none, linear, yarn and longrope"
            )));
        }
    };
    let base = keys.float("rope.freq_base")?.unwrap_or(10_000.0);
    if base.is_nan() || base <= 1.0 {
        return Err(invalid(format!("'{}' is {base}", keys.key("rope.freq_base"))));
    }
    let magnitude = keys.factor("rope.scaling.attn_factor")?.unwrap_or(1.0);
    Ok(Rope { turned, base, scaling, magnitude, trained })
}
