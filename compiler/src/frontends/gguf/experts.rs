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
    /// By a softmax over those that are chosen, by the numbers as they are.
    Chosen,
    /// Each for itself, by the root of a softplus.
    Root,
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
    /// Groups of neighbours, of which a token's experts are in the best few.
    pub groups: Option<Groups>,
    /// Networks beside them that several share.
    pub sharers: Option<Sharers>,
}

/// Networks that neighbouring experts share, beside their own (Wu et al., GroveMoE).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sharers {
    pub count: u64,
    /// Factor of what they make.
    pub scale: f64,
}

impl Sharers {
    fn read(keys: &Keys<'_>, experts: u64) -> Result<Option<Sharers>> {
        let name = "experts_per_group";
        let Some(each) = keys.optional(name)?.filter(|each| *each > 0) else { return Ok(None) };
        if !experts.is_multiple_of(each) {
            return Err(invalid(format!("{experts} experts in groups of {each} ('{}')", keys.key(name))));
        }
        let scale = keys.float("expert_group_scale")?.ok_or_else(|| keys.missing("expert_group_scale"))?;
        Ok(Some(Sharers { count: experts / each, scale }))
    }
}

/// Groups of experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Groups {
    pub count: u64,
    /// How many a token has.
    pub used: u64,
}

impl Groups {
    /// How many of a group's experts, the best, tell how good it is.
    pub const JUDGED: u64 = 2;

    fn read(keys: &Keys<'_>, experts: u64, chosen: u64) -> Result<Option<Groups>> {
        let Some(count) = keys.optional("expert_group_count")?.filter(|count| *count > 1) else {
            return Ok(None);
        };
        let used = keys.count("expert_group_used_count")?;
        let fits = experts.is_multiple_of(count)
            && experts / count >= Self::JUDGED
            && used <= count
            && chosen <= experts / count * used;
        match fits {
            true => Ok(Some(Groups { count, used })),
            false => Err(invalid(format!(
                "{chosen} of {experts} experts, in {used} of {count} groups ('{}', '{}'); groups are alike, of at \
                 least {}",
                keys.key("expert_group_count"),
                keys.key("expert_group_used_count"),
                Self::JUDGED
            ))),
        }
    }
}

impl Experts {
    /// Those that make values, beside these: they are weighed alike.
    pub fn of_values(keys: &Keys<'_>, others: Option<Experts>) -> Result<Option<Experts>> {
        let name = "attention.value_expert_count";
        let (Some(count), Some(others)) = (keys.optional(name)?.filter(|count| *count > 0), others) else {
            return Ok(None);
        };
        let used = keys.count("attention.value_expert_used_count")?;
        match used <= count && count <= MOST_EXPERTS {
            true => Ok(Some(Experts { count, used, groups: None, sharers: None, ..others })),
            false => Err(invalid(format!("{used} of {count} experts of values ('{}')", keys.key(name)))),
        }
    }

    /// Reads what the metadata say of them.
    pub fn read(keys: &Keys<'_>) -> Result<Option<Experts>> {
        let Some(count) = keys.optional("expert_count")?.filter(|count| *count > 0) else { return Ok(None) };
        let used = keys.count("expert_used_count")?;
        if used > count || count > MOST_EXPERTS {
            return Err(invalid(format!("{used} of {count} experts; there are at most {MOST_EXPERTS}")));
        }
        let groups = Groups::read(keys, count, used)?;
        // A softmax of those that are chosen is one of all whose weights are made to be 1 in sum.
        let (gating, normed) = match keys.optional("expert_gating_func")? {
            None | Some(0) if keys.family.sigmoid_experts => (Gating::Sigmoid, None),
            _ if keys.family.weighed_chosen => (Gating::Chosen, Some(true)),
            None | Some(0 | 1) => (Gating::Softmax, None),
            Some(2) => (Gating::Sigmoid, None),
            Some(3) => (Gating::Chosen, Some(true)),
            Some(4) => (Gating::Root, None),
            Some(other) => {
                let key = keys.key("expert_gating_func");
                return Err(unsupported(format!(
                    "'{key}' is {other}; there are 1 (softmax), 2 (sigmoid), 3 (softmax of the chosen), 4 (root of a softplus)"
                )));
            }
        };
        let normed = normed.or(keys.flag("expert_weights_norm")?).unwrap_or(keys.family.normed_experts);
        let scale = keys.factor("expert_weights_scale")?;
        let sharers = Sharers::read(keys, count)?;
        Ok(Some(Experts { count, used, gating, normed, scale, groups, sharers }))
    }
}
