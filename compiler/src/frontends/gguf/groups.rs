//! What metadata say of embeddings of a token with those before it, which a layer adds to the states of tokens (Qwen4): `ngrams` has the
//! graph.

use halite_formats::gguf::Value;

use super::{
    Result,
    adapters::Adapters,
    file::{invalid, unsupported},
    keys::Keys,
    paths::Connections,
    recurrent::State,
};

/// The table of their rows.
pub(super) const TABLE: &str = "per_layer_token_embd.weight";
/// Most tokens of a group.
const MOST_TOKENS: u64 = 8;
/// Most rows of a token.
const MOST_HEADS: u64 = 64;
/// Most taps of the convolution behind it.
const MOST_TAPS: u64 = 16;

/// Embeddings of groups of tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ngrams {
    /// The layer that adds them.
    pub layer: u64,
    /// Tokens of the largest group; the smallest has two.
    pub size: u64,
    /// Rows of the table for each size of groups.
    pub each: u64,
    /// Tokens that the convolution behind it sees, each so many from the next as the largest group has.
    pub taps: u64,
    /// The token that ends a text: groups do not go beyond it.
    pub end: u64,
    /// What tokens are multiplied by, the last first.
    pub factors: Vec<u64>,
    /// Of each row of a token the first in the table, and of how many it is one.
    pub ranges: Vec<[u64; 2]>,
    /// Elements of a row.
    pub length: u64,
    /// Elements of all states of a token.
    pub all: u64,
}

impl Ngrams {
    /// Reads what the metadata say of them, in an architecture that has them.
    pub fn read(keys: &Keys<'_>, layers: u64, all: u64) -> Result<Option<Ngrams>> {
        if !keys.family.ngrams {
            return Ok(None);
        }
        let name = "ple.layers";
        let layer = match numbers(keys, name, None)?.as_slice() {
            [] => return Ok(None),
            [layer] if *layer < layers => *layer,
            [layer] => return Err(invalid(format!("'{}' is {layer} of {layers}", keys.key(name)))),
            _ => return Err(unsupported(format!("several layers in '{}'", keys.key(name)))),
        };
        let (size, each) = (keys.count("ple.ngram_size")?, keys.count("ple.heads_per_ngram")?);
        let taps = keys.count("ple.conv_kernel")?;
        let heads = size.saturating_sub(1).saturating_mul(each);
        if !(2..=MOST_TOKENS).contains(&size) || heads > MOST_HEADS || !(1..=MOST_TAPS).contains(&taps) {
            return Err(invalid(format!(
                "{each} rows of groups of up to {size} tokens, with {taps} taps ('{}'); there are 2 to {MOST_TOKENS} tokens, at most \
                 {MOST_HEADS} rows of all groups, and {MOST_TAPS} taps",
                keys.key("ple.*")
            )));
        }
        let end = keys.optional("ple.eos_token_id")?.ok_or_else(|| keys.missing("ple.eos_token_id"))?;
        let factors = numbers(keys, "ple.layer_multipliers", Some(size))?;
        let first = numbers(keys, "ple.head_offsets", Some(heads))?;
        let counts = numbers(keys, "ple.head_vocab_sizes", Some(heads))?;
        let rows = keys.file.dims(TABLE).and_then(|dims| dims.first().copied()).unwrap_or(0);
        let ranges: Vec<[u64; 2]> =
            first.into_iter().zip(counts).map(|(first, count)| [first, count]).collect();
        let fits = |[first, count]: &[u64; 2]| {
            *count > 0 && first.checked_add(*count).is_some_and(|end| end <= rows && end <= i32::MAX as u64)
        };
        if !ranges.iter().all(fits) {
            return Err(invalid(format!(
                "rows of '{}' and '{}' are not among the {rows} of '{TABLE}'",
                keys.key("ple.head_offsets"),
                keys.key("ple.head_vocab_sizes")
            )));
        }
        let length = keys.count("embedding_length_per_layer_input")?;
        Ok(Some(Ngrams { layer, size, each, taps, end, factors, ranges, length, all }))
    }

    /// Tokens that the convolution needs of those before.
    fn reach(&self) -> u64 {
        (self.taps - 1) * self.size
    }

    /// What its layer keeps beside what it keeps already.
    pub fn states(&self) -> [State; 2] {
        [
            State { name: "ngram_conv", elements: self.reach().max(1) * self.all },
            State { name: "ngram_tokens", elements: self.size - 1 },
        ]
    }
}

/// The numbers of a list of the metadata, the first so many of them; none where it is not there and need not be.
fn numbers(keys: &Keys<'_>, name: &str, count: Option<u64>) -> Result<Vec<u64>> {
    let wrong = || {
        invalid(format!("the metadata key '{}' is no list of {} counts", keys.key(name), count.unwrap_or(1)))
    };
    let number = |value: Value| match value {
        Value::Int(value) => u64::try_from(value).ok(),
        _ => None,
    };
    let most = count.unwrap_or(MOST_HEADS) as usize;
    let own: Option<Vec<u64>> = match keys.value(name) {
        None if count.is_none() => return Ok(Vec::new()),
        None => return Err(keys.missing(name)),
        Some(Value::Array(array)) => array.scalars().take(most).map(number).collect(),
        Some(_) => None,
    };
    own.filter(|own| count.is_none_or(|count| own.len() as u64 == count)).ok_or_else(wrong)
}

/// What few models add to the states of tokens.
#[derive(Clone, Debug)]
pub(super) struct Additions {
    /// Embeddings of groups of tokens, where a layer adds some.
    pub ngrams: Option<Ngrams>,
    /// What tokens of a text may have added to the products of layers.
    pub adapters: Option<Adapters>,
}

impl Additions {
    /// Reads what the metadata say of them, in a model with so many layers and elements of a state.
    pub fn read(keys: &Keys<'_>, layers: u64, width: u64) -> Result<Additions> {
        let states = Connections::read(keys)?.map_or(1, |own| own.count);
        let ngrams = Ngrams::read(keys, layers, states * width)?;
        Ok(Additions { ngrams, adapters: Adapters::read(keys)? })
    }
}
