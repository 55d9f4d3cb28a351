//! What metadata say of mixtures of experts.

use super::{
    Result,
    file::{invalid, unsupported},
    keys::Keys,
};

/// Most experts of a layer.
const MOST_EXPERTS: u64 = 1 << 12;

/// How weights come of a router's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gating {
    /// Each for itself, by the logistic function.
    Sigmoid,
    /// By a softmax over all experts.
    Softmax,
}

/// The experts of a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Experts {
    pub count: u64,
    /// How many a token has.
    pub used: u64,
    pub gating: Gating,
    /// Whether the weights of those that are chosen are made to be 1 in sum.
    pub normed: bool,
    /// Factor of their weights.
    pub scale: Option<f64>,
}

impl Experts {
    /// Reads what the metadata say of them.
    pub fn read(keys: &Keys<'_>) -> Result<Option<Experts>> {
        let Some(count) = keys.optional("expert_count")?.filter(|count| *count > 0) else { return Ok(None) };
        let used = keys.count("expert_used_count")?;
        if used > count || count > MOST_EXPERTS {
            return Err(invalid(format!("{used} of {count} experts; there are at most {MOST_EXPERTS}")));
        }
        if let Some(groups) = keys.optional("expert_group_count")?.filter(|groups| *groups > 1) {
            let key = keys.key("expert_group_count");
            return Err(unsupported(format!("experts in {groups} groups ('{key}')")));
        }
        // A softmax of those that are chosen is one of all whose weights are made to be 1 in sum.
        let (gating, normed) = match keys.optional("expert_gating_func")? {
            None | Some(0 | 1) => (Gating::Softmax, None),
            Some(2) => (Gating::Sigmoid, None),
            Some(3) => (Gating::Softmax, Some(true)),
            Some(other) => {
                let key = keys.key("expert_gating_func");
                return Err(unsupported(format!(
                    "'{key}' is {other}; there are 1 (softmax), 2 (sigmoid), 3 (softmax of the chosen)"
                )));
            }
        };
        let normed = normed.or(keys.flag("expert_weights_norm")?).unwrap_or(keys.family.normed_experts);
        Ok(Some(Experts { count, used, gating, normed, scale: keys.factor("expert_weights_scale")? }))
    }
}
