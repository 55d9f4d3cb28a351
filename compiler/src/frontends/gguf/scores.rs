//! What metadata say of the factors of scores, and with them the sizes of latent attention and rotary embedding.

use super::{
    Result,
    file::unsupported,
    heads::Attends,
    keys::Keys,
    latent::Latent,
    rope::{Rope, Scaling, yarn_size},
    ropes::{ropes, yarn_multiplier},
};

/// What tells scores, of layers that attend to all keys and of those that attend to a window: rotary embedding, the sizes of latent
/// attention, if it is that, and factors.
pub(super) type Placing = ([Rope; 2], [Option<Latent>; 2], [f64; 2]);

/// Reads what the metadata say of them.
pub(super) fn placing(
    keys: &Keys<'_>,
    sizes: [u64; 2],
    attends: &[Attends],
    first: usize,
) -> Result<Placing> {
    let mut both = ropes(keys, attends)?;
    let (latents, scales) = match keys.family.latent_windows {
        true => {
            let of = |windowed: bool| {
                attends.iter().find(|own| own.windowed == windowed).map_or(attends[0].heads, |own| own.heads)
            };
            let latents = [
                Latent::read(keys, &of(false), both[0].turned, "")?,
                Latent::read(keys, &of(true), both[1].turned, "_swa")?,
            ];
            (latents, latents.map(|own| 1.0 / (own.map_or(1, |own| own.key()) as f64).sqrt()))
        }
        false => {
            let latent = Latent::read(keys, &attends[first].heads, both[0].turned, "")?;
            ([latent; 2], [scale(keys, sizes, attends, latent.as_ref(), &both[0])?; 2])
        }
    };
    if keys.family.scales_scores {
        for own in &mut both {
            (own.scaling, own.magnitude) = (Scaling::None, 1.0);
        }
    }
    Ok((both, latents, scales))
}

/// The factor of scores.
fn scale(
    keys: &Keys<'_>,
    [layers, width]: [u64; 2],
    attends: &[Attends],
    latent: Option<&Latent>,
    rope: &Rope,
) -> Result<f64> {
    if keys.family.unscaled {
        return Ok(1.0);
    }
    let heads = attends[0].heads;
    if attends.iter().any(|own| own.heads.key != heads.key) {
        let key = keys.key("attention.key_length_swa");
        return Err(unsupported(format!(
            "keys of other sizes in other layers ('{key}'), whose scores are scaled"
        )));
    }
    let by_width = layers == keys.family.scaled_by_width_at;
    let own = if by_width { width / heads.count } else { heads.key };
    let own = latent.map_or(own, Latent::key);
    if keys.family.grok {
        return Ok(keys.factor("attention.output_scale")?.unwrap_or(0.088_388_347_648_318_45));
    }
    let size = own.max(1) as f64;
    let usual = if keys.family.scaled_by_size { 1.0 / size } else { 1.0 / size.sqrt() };
    let scale = keys.factor("attention.scale")?.unwrap_or(usual);
    // These models have what a longer context makes of states in the scores, and not in the rotary embedding alone.
    Ok(match (keys.family.yarn_scale, &rope.scaling) {
        (Some(_), Scaling::Yarn { factor, size, .. }) => {
            scale * (rope.magnitude * size * yarn_size(*factor, yarn_multiplier(keys)?)).powi(2)
        }
        (Some(_), Scaling::Linear(factor)) => {
            let size = yarn_size(*factor, 1.0);
            scale * (rope.magnitude * size * yarn_size(*factor, yarn_multiplier(keys)?)).powi(2)
        }
        (Some(_), Scaling::None) => scale * rope.magnitude.powi(2),
        _ => scale,
    })
}
