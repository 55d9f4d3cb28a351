//! The factors that metadata have of embeddings, of what layers add and of logits, and what scores are between.

use super::{Result, keys::Keys};

/// The factors of embeddings, of what layers add and of logits, and what scores are between.
pub(super) fn factors(keys: &Keys<'_>, width: u64, layers: u64) -> Result<[Option<f64>; 4]> {
    let family = keys.family;
    let own_scale = family.scaled_embedding.then(|| f64::from((width as f32).sqrt()));
    let grok = |value: f64| family.grok.then_some(value);
    let minicpm = |value: f64| family.minicpm.then_some(value);
    let own_residual = if family.carries_norms { None } else { keys.factor("residual_scale")? };
    let embedding = own_scale.or(keys.factor("embedding_scale")?).or(minicpm(12.0));
    Ok([
        embedding.or(grok(78.383_671_769_061_69)),
        own_residual.or(minicpm(1.4 / (layers as f64).sqrt())),
        logit_scale(keys, minicpm(256.0 / width as f64).or(grok(1.0 / 3_f64.sqrt())))?,
        cap(keys, "attn_logit_softcapping", family.score_cap)?,
    ])
}

/// What values are between: 0 stands for none, and a key that is not there for what is usual.
pub(super) fn cap(keys: &Keys<'_>, name: &str, usual: Option<f64>) -> Result<Option<f64>> {
    Ok(keys.float(name)?.or(usual).filter(|cap| *cap != 0.0))
}

/// The factor of logits, which the metadata of most models have as a divisor.
fn logit_scale(keys: &Keys<'_>, usual: Option<f64>) -> Result<Option<f64>> {
    let scale = keys.factor("logit_scale")?.or(usual);
    Ok(if keys.family.divided_logits { scale.map(|scale| 1.0 / scale) } else { scale })
}
