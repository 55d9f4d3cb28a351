//! What metadata say of adapters, whose products come to those of layers (IBM, Granite Switch): `switched` has the graph.

use halite_formats::gguf::Value;

use super::{
    Result,
    file::invalid,
    heads::{Attends, Heads},
    keys::Keys,
    recurrent::Mixer,
    tokens::vocabulary,
};

/// Most adapters.
const MOST_ADAPTERS: u64 = 1 << 10;
/// Most elements of the short row between the two products of an adapter.
const MOST_RANK: u64 = 1 << 16;
/// The size of scores where the metadata do not say.
const GAIN: f64 = 15.0;

/// The adapters of a model.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Adapters {
    /// Elements of the short row between the two products of one.
    pub rank: u64,
    /// The score of tokens of control; that of others is as much below 0.
    pub gain: f64,
    /// The token of control of each, and the one that is embedded in its place.
    pub tokens: Vec<[u64; 2]>,
}

impl Adapters {
    /// Reads what the metadata say of them, in an architecture that has them.
    pub fn read(keys: &Keys<'_>) -> Result<Option<Adapters>> {
        if !keys.family.switched {
            return Ok(None);
        }
        let (count, rank) = (keys.count("adapters.count")?, keys.count("adapters.lora_rank")?);
        if count > MOST_ADAPTERS || rank > MOST_RANK {
            return Err(invalid(format!(
                "{count} adapters with rows of {rank} elements ('{}', '{}'); there are at most {MOST_ADAPTERS}, and {MOST_RANK}",
                keys.key("adapters.count"),
                keys.key("adapters.lora_rank")
            )));
        }
        let all = vocabulary(keys.file)?;
        let list = |name: &str| tokens(keys, name, count, all);
        let (own, instead) = (list("adapters.token_ids_activate")?, list("adapters.token_ids_substitute")?);
        let tokens = own.into_iter().zip(instead).map(|(own, instead)| [own, instead]).collect();
        let gain = keys.float("adapters.router_gain")?.unwrap_or(GAIN);
        Ok(Some(Adapters { rank, gain, tokens }))
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.tokens.len() as u64
    }

    /// A number for each token of a vocabulary, which each adapter's token of control may have another of, by the adapter's place.
    pub fn table<T>(&self, vocabulary: u64, usual: impl Fn(u64) -> T, own: impl Fn(usize) -> T) -> Vec<T> {
        let mut all: Vec<T> = (0..vocabulary).map(usual).collect();
        for (place, [token, _]) in self.tokens.iter().enumerate() {
            if let Some(of_token) = all.get_mut(*token as usize) {
                *of_token = own(place);
            }
        }
        all
    }
}

/// Tokens of a list of the metadata, one for each adapter.
fn tokens(keys: &Keys<'_>, name: &str, count: u64, all: u64) -> Result<Vec<u64>> {
    let Some(value) = keys.value(name) else { return Err(keys.missing(name)) };
    let token = |value: Value| match value {
        Value::Int(token) => u64::try_from(token).ok().filter(|token| *token < all),
        _ => None,
    };
    let own: Option<Vec<u64>> = match value {
        Value::Array(array) => array.scalars().take(MOST_ADAPTERS as usize + 1).map(token).collect(),
        _ => None,
    };
    own.filter(|own| own.len() as u64 == count).ok_or_else(|| {
        invalid(format!("the metadata key '{}' is no list of {count} tokens of {all}", keys.key(name)))
    })
}

/// The head that tells adapters, which is one layer more for caches: its keys are as long as those of other layers.
pub(super) fn one_more(attends: &[Attends]) -> Option<(Attends, Mixer)> {
    let Heads { key, value, .. } = attends.first()?.heads;
    let heads = Heads { count: 1, kv: 1, key, value };
    let mixer = Mixer { attends: true, recurrent: None, feeds: false };
    Some((Attends { heads, windowed: false, shares: None }, mixer))
}
