//! What metadata say of rotary embedding.

use halite_formats::gguf::Value;

use super::{
    Result,
    family::{LocalRope, Sections, Turn, TurnedAs},
    file::{invalid, unsupported},
    heads::Attends,
    keys::Keys,
    rope::{Rope, Scaling, Still, yarn_size},
};

/// The base of rotary embedding where the metadata say none.
const BASE: f64 = 10_000.0;

/// The rotary embedding of layers that attend to all keys, and of those that attend to a window.
pub(super) fn ropes(keys: &Keys<'_>, attends: &[Attends]) -> Result<[Rope; 2]> {
    let key_of = |windowed: bool| attends.iter().find(|own| own.windowed == windowed).unwrap_or(&attends[0]);
    let global = rope(keys, key_of(false).heads.key)?;
    if keys.family.condenses {
        return of_condensed(keys, global);
    }
    let turned = match attends.iter().any(|own| own.windowed) {
        true => local_turned(keys, global.turned, key_of(true).heads.key)?,
        false => global.turned,
    };
    let mut both = [global.clone(), local_rope(keys, &global, turned)?];
    if keys.family.half_turned {
        both[0].turned = both[0].turned / 4 * 2;
    }
    let first = both[usize::from(attends[0].windowed)].turned;
    let like_first = match keys.family.turned_as {
        TurnedAs::First => 2,
        TurnedAs::FirstBesideWindows => 1,
        TurnedAs::Own => 0,
    };
    both[..like_first].iter_mut().for_each(|own| own.turned = first);
    Ok(both)
}

/// The rotary embedding of layers with rows that stand for groups of neighbours, whose base is another, and that of layers without, which
/// nothing makes longer. Cosines and sines stay as they are.
fn of_condensed(keys: &Keys<'_>, global: Rope) -> Result<[Rope; 2]> {
    let name = "attention.compress_rope_freq_base";
    let base = keys.float(name)?.ok_or_else(|| keys.missing(name))?;
    if base.is_nan() || base <= 1.0 {
        return Err(invalid(format!("'{}' is {base}", keys.key(name))));
    }
    let alone = Rope { scaling: Scaling::None, magnitude: 1.0, ..global.clone() };
    let mut grouped = Rope { base, magnitude: 1.0, ..global };
    if let Scaling::Yarn { size, .. } = &mut grouped.scaling {
        *size = 1.0;
    }
    Ok([grouped, alone])
}

/// Elements of a head that layers with a window turn, of so many.
fn local_turned(keys: &Keys<'_>, global: u64, key: u64) -> Result<u64> {
    let name = "rope.dimension_count_swa";
    match keys.optional(name)? {
        Some(own) if own > key || !own.is_multiple_of(2) => {
            Err(invalid(format!("'{}' is {own}, of {key} elements", keys.key(name))))
        }
        Some(own) => Ok(own),
        None => Ok(global.min(key)),
    }
}

/// The rotary embedding of layers that attend to a window.
fn local_rope(keys: &Keys<'_>, rope: &Rope, turned: u64) -> Result<Rope> {
    let own = keys.float("rope.freq_base_swa")?;
    let base = own.unwrap_or(BASE);
    let unscaled = Rope { turned, scaling: Scaling::None, ..rope.clone() };
    Ok(match keys.family.local_rope {
        LocalRope::Global => Rope { turned, ..rope.clone() },
        LocalRope::Unscaled => Rope { magnitude: 1.0, ..unscaled },
        LocalRope::Own => Rope { base, ..unscaled },
        LocalRope::OwnUnscaled => Rope { base, magnitude: 1.0, ..unscaled },
        LocalRope::OwnOrGlobal => Rope { base: own.unwrap_or(rope.base), magnitude: 1.0, ..unscaled },
        LocalRope::OwnScaled => {
            // Of a factor that other layers do not have, as the metadata name no kind for it, these have what divides places.
            let scaling = match (&rope.scaling, factor(keys)?) {
                (Scaling::None, Some(factor)) => Scaling::Linear(factor),
                (scaling, _) => scaling.clone(),
            };
            Rope { base: own.unwrap_or(rope.base), scaling, ..unscaled }
        }
    })
}

/// The sections of rotary embedding, where the architecture has such.
pub(super) fn sections(keys: &Keys<'_>) -> Result<Option<[u64; 4]>> {
    let name = "rope.dimension_sections";
    let kind = keys.family.sections;
    let Some(Value::Array(all)) = keys.value(name).filter(|_| kind != Sections::Unread) else {
        return Ok(None);
    };
    let count = |value: Value| match value {
        Value::Int(count) => u64::try_from(count).ok().filter(|count| *count < 1 << 16),
        _ => None,
    };
    let all: Option<Vec<u64>> = all.scalars().take(5).map(count).collect();
    let all = all.and_then(|all| <[u64; 4]>::try_from(all).ok());
    let all = all.ok_or_else(|| invalid(format!("'{}' is no list of four counts", keys.key(name))))?;
    Ok(Some(all).filter(|all| match kind {
        Sections::RunsByKey => all[0] > 0 && all[1] > 0,
        _ => all.iter().sum::<u64>() > 0,
    }))
}

/// What a model's rotary embedding turns.
pub(super) fn turn(keys: &Keys<'_>) -> Result<Turn> {
    let by_key = keys.family.sections == Sections::RunsByKey && sections(keys)?.is_some();
    Ok(if by_key { Turn::Halves } else { keys.family.turn })
}

/// The factor of YaRN's logarithm that states are made smaller by again; 0 where there is none.
pub(super) fn yarn_multiplier(keys: &Keys<'_>) -> Result<f64> {
    let unit = keys.family.yarn_scale.unwrap_or(1.0);
    Ok(keys.float("rope.scaling.yarn_log_multiplier")?.unwrap_or(0.0) / unit)
}

/// How many times longer contexts are made.
fn factor(keys: &Keys<'_>) -> Result<Option<f64>> {
    match keys.value("rope.scaling.factor") {
        None => keys.factor("rope.scale_linear"),
        Some(_) => keys.factor("rope.scaling.factor"),
    }
}

/// How angles differ from those of the base, and a factor of cosines and sines.
fn scaling(keys: &Keys<'_>, trained: Option<u64>) -> Result<(Scaling, f64)> {
    let name = "rope.scaling.type";
    let kind = match keys.value(name) {
        None => "linear",
        Some(Value::Text(kind)) => kind.as_str(),
        Some(_) => return Err(invalid(format!("'{}' is no text", keys.key(name)))),
    };
    if !["none", "linear", "yarn", "longrope"].contains(&kind) {
        let key = keys.key(name);
        return Err(unsupported(format!("'{key}' is {kind}; there are none, linear, yarn and longrope")));
    }
    let factor = factor(keys)?.filter(|_| kind != "none");
    // How much of what YaRN keeps counts, in whatever kind there is.
    let kept = keys.float("rope.scaling.yarn_ext_factor")?.filter(|own| *own >= 0.0);
    let kept = kept.unwrap_or(if kind == "yarn" { 1.0 } else { 0.0 });
    let own = keys.float("rope.scaling.yarn_attn_factor")?.filter(|own| *own >= 0.0 && kept == 0.0);
    let scaling = match factor {
        Some(factor) if kept != 0.0 => Scaling::Yarn {
            size: match yarn_multiplier(keys)? {
                multiplier if keys.family.bare_yarn && multiplier != 0.0 => 1.0,
                multiplier => yarn_size(factor, 1.0) / yarn_size(factor, multiplier),
            },
            factor,
            kept,
            trained: trained.ok_or_else(|| keys.missing("rope.scaling.original_context_length"))?,
            fast: keys.float("rope.scaling.yarn_beta_fast")?.unwrap_or(32.0),
            slow: keys.float("rope.scaling.yarn_beta_slow")?.unwrap_or(1.0),
        },
        Some(factor) => Scaling::Linear(factor),
        None => Scaling::None,
    };
    Ok((scaling, own.unwrap_or(1.0)))
}

fn rope(keys: &Keys<'_>, key_dim: u64) -> Result<Rope> {
    if keys.family.turn == Turn::Nothing {
        let scaling = Scaling::None;
        return Ok(Rope { turned: 0, base: 1.0, scaling, magnitude: 1.0, trained: None, still: None });
    }
    let turned = keys.optional("rope.dimension_count")?.unwrap_or(key_dim);
    if turned > key_dim || !turned.is_multiple_of(2) {
        return Err(invalid(format!("'{}' is {turned}", keys.key("rope.dimension_count"))));
    }
    let trained = keys.optional("rope.scaling.original_context_length")?;
    let trained = trained.or(keys.optional("context_length")?);
    let (scaling, size) = scaling(keys, trained)?;
    let base = keys.float("rope.freq_base")?.unwrap_or(BASE);
    if base.is_nan() || base <= 1.0 {
        return Err(invalid(format!("'{}' is {base}", keys.key("rope.freq_base"))));
    }
    let magnitude = keys.factor("rope.scaling.attn_factor")?.unwrap_or(1.0) * size;
    let in_turn = keys.family.sections == Sections::Turns;
    let still = sections(keys)?.map(|sections| Still { sections, in_turn });
    Ok(Rope { turned, base, scaling, magnitude, trained, still })
}

#[cfg(test)]
mod tests {
    use halite_formats::gguf::Value;

    use super::*;
    use crate::frontends::gguf::{families::FAMILIES, file::File, heads::Heads};

    fn both(name: &str, metadata: &[(&str, f64)], windowed: [bool; 2]) -> [Rope; 2] {
        let family = FAMILIES.iter().find(|family| family.name == name).expect("a family");
        let value = |(key, value): &(&str, f64)| match value.fract() {
            0.0 => (format!("{name}.{key}"), Value::Int(*value as i128)),
            _ => (format!("{name}.{key}"), Value::Float(*value)),
        };
        let file = File::of_metadata(metadata.iter().map(value).collect());
        let heads = Heads { count: 2, kv: 1, key: 32, value: 32 };
        let attends = windowed.map(|windowed| Attends { heads, windowed, shares: None });
        ropes(&Keys { file: &file, family }, &attends).expect("rotary embedding")
    }

    #[test]
    fn windows_have_the_base_and_the_factor_that_llama_cpp_takes() {
        let keys = [("rope.freq_base", 5e5), ("rope.freq_base_swa", 3e3), ("rope.scaling.factor", 4.0)];
        let scaled = Scaling::Linear(4.0);
        for (name, base, scaling) in [
            ("cohere2", 5e5, &scaled),
            ("olmo2", 5e5, &Scaling::None),
            ("mellum", 3e3, &Scaling::None),
            ("gemma3", 3e3, &Scaling::None),
            ("gemma2", 3e3, &scaled),
        ] {
            let [global, local] = both(name, &keys, [true, false]);
            assert_eq!((global.base, &global.scaling), (5e5, &scaled), "{name}");
            assert_eq!((local.base, &local.scaling), (base, scaling), "{name}");
        }
    }

    #[test]
    fn layers_turn_what_the_first_one_does() {
        let keys = [("rope.dimension_count", 32.0), ("rope.dimension_count_swa", 16.0)];
        let turned = |name, windowed| both(name, &keys, windowed).map(|own| own.turned);
        assert_eq!(turned("gemma2", [true, false]), [16, 16]);
        assert_eq!(turned("gemma2", [false, true]), [32, 32]);
        assert_eq!(turned("gemma4", [false, true]), [32, 16]);
        assert_eq!(turned("laguna", [true, false]), [16, 16]);
        // Nothing is said of windows where there are none.
        assert_eq!(turned("gemma2", [false, false]), [32, 32]);
    }
}
