//! The sizes of latent attention: keys and values of all heads are made of one short row (DeepSeek-AI, DeepSeek-V2, section 2.1).
//!
//! Files have it in two forms. Folded, what makes keys of rows is applied to queries and what makes values to results, so that
//! caches hold a row for all heads; else each head has keys and values of its own.

use super::{Result, family::Turn, file::invalid, heads::Heads, keys::Keys};

/// The sizes of latent attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Latent {
    /// Elements of the row that keys and values are made of.
    pub rank: u64,
    /// Elements of a head's key without rotary embedding.
    pub bare: u64,
    /// Those behind them, with it.
    pub turned: u64,
    /// Elements of a head's value.
    pub value: u64,
    /// Whether caches hold that row, and no keys and values of heads.
    pub folded: bool,
}

impl Latent {
    /// Reads what the metadata say of it, if they do. Given are heads as the metadata have them, of which caches have the keys, and
    /// how many of a key turn; the names of keys end with `end`.
    pub fn read(keys: &Keys<'_>, heads: &Heads, turned: u64, end: &str) -> Result<Option<Latent>> {
        let name = |part: &str| format!("attention.{part}{end}");
        let Some(rank) = keys.optional(&name("kv_lora_rank"))?.filter(|rank| *rank > 0) else {
            return Ok(None);
        };
        let folded = keys.optional(&name("key_length_mla"))?.filter(|length| *length > 0);
        let key = folded.unwrap_or(heads.key);
        let value = match folded {
            Some(_) => keys.count(&name("value_length_mla"))?,
            None => heads.value,
        };
        let cached = [heads.kv, heads.key, heads.value];
        let wanted = match folded {
            Some(_) => [1, rank + turned, rank],
            None => [heads.count, key, value],
        };
        // Without rotary embedding there is nothing to turn.
        let has_turned = turned > 0 || keys.family.turn == Turn::Nothing && folded.is_some();
        if !has_turned || turned >= key || cached != wanted {
            let [heads, key, value] = cached;
            return Err(invalid(format!(
                "latent attention of {turned} turned elements in keys of {key} and values of {value} in {heads} heads \
                 ('{}' is {rank})",
                keys.key(&name("kv_lora_rank"))
            )));
        }
        Ok(Some(Latent { rank, bare: key - turned, turned, value, folded: folded.is_some() }))
    }

    /// Elements of a head's key.
    pub fn key(&self) -> u64 {
        self.bare + self.turned
    }
}
