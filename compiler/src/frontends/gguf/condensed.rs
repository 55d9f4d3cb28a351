//! What metadata say of attention to keys that stand for groups of neighbours (DeepSeek-AI, DeepSeek-V4): each layer attends to a window of
//! tokens' keys, which are their values as well, and to one such row for each group that ended before a token.

use super::{
    Result,
    file::{invalid, unsupported},
    heads::Attends,
    keys::Keys,
};

/// Tokens of a group whose row is made of those of the group before, too, and which an indexer chooses.
const OVERLAPPING: u64 = 4;
/// Tokens of the other groups.
const LONG: u64 = 128;
/// Most elements of the shorter rows that results are made of.
const MOST_RANK: u64 = 1 << 16;

/// The numbers of such attention.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Condensed {
    /// Tokens of a group, for each layer; 0 where there are no groups.
    pub groups: Vec<u64>,
    /// How many keys of tokens are attended to.
    pub window: u64,
    /// Of how many groups of heads results are made shorter, each for itself.
    pub outputs: u64,
    /// Elements of each shorter row.
    pub rank: u64,
    /// How many layers, the first, have experts that tokens tell.
    pub told: u64,
}

impl Condensed {
    /// Reads them, in an architecture that has such attention, with how layers attend.
    pub fn of(keys: &Keys<'_>, mut attends: Vec<Attends>) -> Result<(Vec<Attends>, Option<Condensed>)> {
        let own = Self::read(keys, attends.len() as u64)?;
        own.iter().try_for_each(|own| own.hold(&mut attends, keys))?;
        Ok((attends, own))
    }

    fn read(keys: &Keys<'_>, layers: u64) -> Result<Option<Condensed>> {
        if !keys.family.condenses {
            return Ok(None);
        }
        let groups = groups(keys, layers)?;
        if let Some(other) = groups.iter().find(|size| ![0, OVERLAPPING, LONG].contains(size)) {
            return Err(unsupported(format!(
                "groups of {other} tokens ('{}'); there are groups of {OVERLAPPING} and of {LONG}",
                keys.key("attention.compress_ratios")
            )));
        }
        let heads = keys.count("attention.head_count")?;
        let (outputs, rank) =
            (keys.count("attention.output_group_count")?, keys.count("attention.output_lora_rank")?);
        if !heads.is_multiple_of(outputs) || rank > MOST_RANK {
            return Err(invalid(format!(
                "{heads} heads in {outputs} groups with rows of {rank} elements ('{}', '{}'); groups are alike, with rows of up to \
                 {MOST_RANK}",
                keys.key("attention.output_group_count"),
                keys.key("attention.output_lora_rank")
            )));
        }
        let told = keys.optional("hash_layer_count")?.ok_or_else(|| keys.missing("hash_layer_count"))?;
        Ok(Some(Condensed { groups, window: keys.count("attention.sliding_window")?, outputs, rank, told }))
    }

    /// Tokens of a group of a layer, where it has groups.
    pub fn group_of(&self, layer: u64) -> Option<u64> {
        Some(self.groups[layer as usize]).filter(|size| *size > 0)
    }

    /// Of how many groups of so many tokens a row is made: its own, and perhaps the one before.
    pub fn parts(size: u64) -> u64 {
        if size == OVERLAPPING { 2 } else { 1 }
    }

    /// What caches hold of the groups of a layer, whose keys have so many elements as those of its indexer, if it has one: names, and
    /// elements for each token.
    pub fn held(&self, layer: u64, key: u64, index: Option<u64>) -> Vec<(&'static str, u64)> {
        let Some(size) = self.group_of(layer) else { return Vec::new() };
        let index = index.map(|key| ("index_groups", key));
        [("groups", key)].into_iter().chain(index).map(|(name, key)| (name, key.div_ceil(size))).collect()
    }

    /// Heads whose values are what caches hold of a token beside its key: what rows of groups are made of.
    fn hold(&self, attends: &mut [Attends], keys: &Keys<'_>) -> Result<()> {
        for (own, size) in attends.iter_mut().zip(&self.groups) {
            let key = own.heads.key;
            if own.heads.kv != 1 || own.heads.value != key || own.shares.is_some() {
                return Err(invalid(format!(
                    "{} heads of keys, of {key} elements, and of {} in values ('{}', '{}', '{}'); all heads share one, whose values \
                     are its keys",
                    own.heads.kv,
                    own.heads.value,
                    keys.key("attention.head_count_kv"),
                    keys.key("attention.key_length"),
                    keys.key("attention.value_length")
                )));
            }
            // Something is held even where nothing needs it: a block.
            own.heads.value = if *size == 0 { key.min(32) } else { 2 * Self::parts(*size) * key };
        }
        Ok(())
    }
}

/// Tokens of a group of each layer.
fn groups(keys: &Keys<'_>, layers: u64) -> Result<Vec<u64>> {
    let name = "attention.compress_ratios";
    keys.each(name, layers)?.ok_or_else(|| keys.missing(name))
}

/// Which layers have an indexer.
pub(super) fn indexed(keys: &Keys<'_>, layers: u64) -> Result<Vec<bool>> {
    Ok(groups(keys, layers)?.iter().map(|size| *size == OVERLAPPING).collect())
}
