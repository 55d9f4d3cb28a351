//! What metadata say of attention to keys that an indexer chooses (DeepSeek-AI, DeepSeek-V3.2, section 2): small heads of its own compare
//! a token with those before it, and attention reads the keys that they like most.

use super::{
    Result, condensed,
    family::Turn,
    file::{invalid, unsupported},
    heads::Attends,
    keys::Keys,
};
use crate::graph::TensorId;

/// Most heads.
const MOST_HEADS: u64 = 1 << 10;
/// Most elements of a key.
const MOST_ELEMENTS: u64 = 1 << 10;
/// Most keys of a block.
const MOST_BLOCK: u64 = 1 << 16;
/// Of so many layers one has an indexer, where not all do.
const EVERY: u64 = 4;
/// What the norm of keys adds to squares, in architectures that do not say.
const EPSILON: f32 = 1e-6;

/// Keys that an indexer chose for tokens.
#[derive(Clone, Copy, Debug)]
pub(super) enum Chosen {
    /// All of them.
    All,
    /// What is added to scores, `f32[sequences, 1 or heads, len, keys]`.
    Masked(TensorId),
    /// Of one token for each sequence: where they are among those of all sequences, `i64[sequences * count]`, and what is added to their
    /// scores, `f32[sequences, 1, 1, count]`.
    Listed { places: TensorId, mask: TensorId, count: u64 },
}

/// Blocks of keys, which are chosen as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Blocks {
    /// Keys of a block.
    pub size: u64,
    /// How many blocks, the last up to the token's own, are always chosen.
    pub local: u64,
}

/// Groups of neighbouring keys, of which one key each is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pools {
    /// Keys of a group.
    pub size: u64,
    /// Whether that key is a sum by weights of each element, and not their mean.
    pub weighed: bool,
}

/// An indexer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Indexer {
    pub heads: u64,
    /// Elements of a key, which all heads share.
    pub key: u64,
    /// How many keys a token attends to, or blocks of keys.
    pub top_k: u64,
    /// What rotary embedding turns in its keys.
    pub turn: Turn,
    /// The first element that it turns.
    pub first: u64,
    /// What the norm of keys adds to squares.
    pub epsilon: f32,
    /// The blocks, where those are chosen: heads choose each for itself, and layers without an indexer attend to all keys.
    pub blocks: Option<Blocks>,
    /// The groups of neighbours that it compares one key of each of, where it does.
    pub pools: Option<Pools>,
    /// Whether it compares rows of groups that overlap, of which caches hold what tokens tell.
    pub overlaps: bool,
    /// Which layers have one. The others attend to what the last of those before them chose.
    pub own: Vec<bool>,
}

impl Indexer {
    /// Reads what the metadata say of it, in an architecture that has one. Rotary embedding turns so many elements of a key,
    /// and `others` is what other norms add to squares.
    pub fn read(keys: &Keys<'_>, attends: &[Attends], turned: u64, others: f32) -> Result<Option<Indexer>> {
        let (Some(turn), layers) = (keys.family.indexer, attends.len() as u64) else { return Ok(None) };
        let is_late = keys.family.late_index;
        // Some models of these have none.
        if is_late && keys.optional("attention.indexer.top_k")?.unwrap_or(0) == 0 {
            return Ok(None);
        }
        let count = |name: &str| keys.count(&format!("attention.indexer.{name}"));
        let (heads, key, top_k) = (count("head_count")?, count("key_length")?, count("top_k")?);
        if heads > MOST_HEADS || key > MOST_ELEMENTS || key < turned {
            return Err(unsupported(format!(
                "an indexer of {heads} heads with keys of {key} elements ('{}', '{}'); there are at most {MOST_HEADS}, and {turned} to \
                 {MOST_ELEMENTS} elements",
                keys.key("attention.indexer.head_count"),
                keys.key("attention.indexer.key_length")
            )));
        }
        let blocks = Blocks::read(keys, heads)?;
        let (pools, pooled) = Pools::read(keys, layers, top_k)?;
        let overlaps = keys.family.condenses;
        let own = match blocks {
            _ if pooled.is_some() => pooled.unwrap_or_default(),
            _ if overlaps => condensed::indexed(keys, layers)?,
            Some(_) => (0..layers)
                .map(|layer| keys.file.has(&format!("blk.{layer}.indexer.k_proj.weight")))
                .collect(),
            None => owners(keys, layers)?,
        };
        // Layers with windows may have none, whatever the metadata say.
        let apart = |own: &Attends| own.windowed && keys.family.latent_windows;
        let own: Vec<bool> = own.iter().zip(attends).map(|(own, of)| *own && !apart(of)).collect();
        let first = attends.iter().position(|own| !apart(own));
        let goes_alone = overlaps || blocks.is_some() || keys.family.pools == Some(false);
        let first = first.filter(|_| keys.family.pools.is_none());
        if !goes_alone && first.is_some_and(|first| !own[first]) {
            return Err(invalid(format!(
                "the first layer that attends to all keys has no indexer ('{}'), and none before it has one",
                keys.key("attention.indexer.types")
            )));
        }
        let (first, epsilon) = if is_late { (key - turned, others) } else { (0, EPSILON) };
        let epsilon = match keys.float("attention.layer_norm_epsilon")? {
            Some(own) if keys.family.pools.is_some() => own as f32,
            _ => epsilon,
        };
        Ok(Some(Indexer { heads, key, top_k, turn, first, epsilon, blocks, pools, overlaps, own }))
    }
}

impl Indexer {
    /// Elements of what caches hold of a token.
    pub fn held(&self) -> u64 {
        match self.pools {
            _ if self.overlaps => 4 * self.key,
            Some(Pools { weighed: true, .. }) => 2 * self.key,
            _ => self.key,
        }
    }
}

impl Pools {
    /// Reads what the metadata say of them, in an architecture that has them, with the layers that choose for themselves where these are
    /// named with them.
    fn read(keys: &Keys<'_>, layers: u64, top_k: u64) -> Result<(Option<Pools>, Option<Vec<bool>>)> {
        let Some(weighed) = keys.family.pools else { return Ok((None, None)) };
        let (name, sizes) = match weighed {
            true => ("attention.indexer.kpool", vec![keys.count("attention.indexer.kpool")?]),
            false => {
                let name = "attention.compress_ratios";
                (name, keys.each(name, layers)?.unwrap_or_else(|| vec![0; layers as usize]))
            }
        };
        let tail = "attention.indexer.kpool_select_tail";
        if weighed && keys.flag(tail)? != Some(true) {
            return Err(unsupported(format!(
                "tokens that do not attend to the keys behind the last group ('{}')",
                keys.key(tail)
            )));
        }
        let own = (!weighed).then(|| sizes.iter().map(|size| *size > 0).collect());
        let Some(size) = sizes.iter().copied().find(|size| *size > 0) else { return Ok((None, own)) };
        let is_other = |own: &u64| *own != 0 && *own != size;
        if size == 1 || size > MOST_BLOCK || !top_k.is_multiple_of(size) || sizes.iter().any(is_other) {
            return Err(invalid(format!(
                "groups of {size} keys of {top_k} in all ('{}', '{}'); all groups are alike, of 2 to {MOST_BLOCK}",
                keys.key(name),
                keys.key("attention.indexer.top_k")
            )));
        }
        Ok((Some(Pools { size, weighed }), own))
    }
}

impl Blocks {
    /// Reads what the metadata say of them, in an architecture that has them.
    fn read(keys: &Keys<'_>, heads: u64) -> Result<Option<Blocks>> {
        if !keys.family.chooses_blocks {
            return Ok(None);
        }
        let size = keys.count("attention.indexer.block_size")?;
        let local = keys.optional("attention.indexer.local_blocks")?.unwrap_or(0);
        let kv = keys.optional("attention.head_count_kv")?.unwrap_or(0);
        match heads == kv && size <= MOST_BLOCK {
            true => Ok(Some(Blocks { size, local })),
            false => Err(unsupported(format!(
                "an indexer of {heads} heads for {kv} of keys, with blocks of {size} ('{}', '{}'); there is one for each, and at most \
                 {MOST_BLOCK}",
                keys.key("attention.indexer.head_count"),
                keys.key("attention.indexer.block_size")
            ))),
        }
    }
}

/// Which layers have an indexer: what the metadata say, else what the architecture is known for.
fn owners(keys: &Keys<'_>, layers: u64) -> Result<Vec<bool>> {
    if let Some(all) = keys.each("attention.indexer.types", layers)? {
        return Ok(all.iter().map(|own| *own > 0).collect());
    }
    let context = keys.optional("context_length")?.unwrap_or(0);
    let leading =
        keys.family.some_indexers.filter(|(_, least)| context >= *least).map(|(leading, _)| leading);
    let has = |layer: u64| match leading {
        None => true,
        Some(leading) => layer < leading || (layer - leading).is_multiple_of(EVERY),
    };
    Ok((0..layers).map(has).collect())
}
