//! The heads of each layer's attention, which layers attend to a window, and which read the caches of others.

use super::{
    Result,
    file::{invalid, unsupported},
    keys::Keys,
};

/// Most heads.
const MOST_HEADS: u64 = 1 << 16;
/// Most elements of a head: tables of rotary embedding grow with it before any weights are looked at.
const MOST_DIM: u64 = 1024;
/// Most kinds of distances: with more, the near ones would reach to where all are of one kind.
pub(super) const MOST_BUCKETS: u64 = 254;

/// The heads of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Heads {
    pub count: u64,
    /// Those of keys and values, which the others share evenly.
    pub kv: u64,
    /// Elements of a query and a key.
    pub key: u64,
    /// Elements of a value.
    pub value: u64,
}

/// How a layer attends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attends {
    pub heads: Heads,
    /// Whether it is one of those that attend to a window, where there is one.
    pub windowed: bool,
    /// The layer whose keys and values it attends to, where they are not its own.
    pub shares: Option<u64>,
}

impl Heads {
    fn check(&self, keys: &Keys<'_>) -> Result<()> {
        let Heads { count, kv, key, value } = *self;
        if count > MOST_HEADS || !count.is_multiple_of(kv) {
            return Err(invalid(format!(
                "{count} heads that share {kv} of keys ('{}', '{}'); there are at most {MOST_HEADS}, and heads share evenly",
                keys.key("attention.head_count"),
                keys.key("attention.head_count_kv")
            )));
        }
        let possible = 1..=MOST_DIM;
        if !possible.contains(&key) || !possible.contains(&value) {
            return Err(unsupported(format!(
                "heads of {key} elements in keys and {value} in values ('{}', '{}'); there are 1 to {MOST_DIM}",
                keys.key("attention.key_length"),
                keys.key("attention.value_length")
            )));
        }
        Ok(())
    }
}

impl Attends {
    /// Reads what the metadata say of all layers of a model of this width. Layers without heads have those of another: nothing attends
    /// there.
    pub fn of_layers(keys: &Keys<'_>, width: u64, layers: u64) -> Result<Vec<Attends>> {
        let counts = keys.each("attention.head_count", layers)?;
        let counts = counts.ok_or_else(|| keys.missing("attention.head_count"))?;
        let most = counts.iter().copied().max().unwrap_or(0);
        if most == 0 && !keys.family.recurrent {
            return Err(invalid(format!("the metadata key '{}' is 0", keys.key("attention.head_count"))));
        }
        if most == 0 {
            // Nothing attends: these are the sizes of nothing.
            let heads = Heads { count: 1, kv: 1, key: 2, value: 2 };
            return Ok(vec![Attends { heads, windowed: false, shares: None }; layers as usize]);
        }
        let kv_counts = keys.each("attention.head_count_kv", layers)?.unwrap_or_else(|| counts.clone());
        let some_kv = kv_counts.iter().copied().max().filter(|kv| *kv > 0).unwrap_or(most);
        let dim = |name: &str, usual: u64| {
            keys.optional(&format!("attention.{name}")).map(|own| own.unwrap_or(usual))
        };
        let first = counts.first().copied().filter(|count| *count > 0).unwrap_or(most);
        let (key, value) = (dim("key_length", width / first)?, dim("value_length", width / first)?);
        let value = folded_rank(keys)?.unwrap_or(value);
        let (local_key, local_value) = (dim("key_length_swa", key)?, dim("value_length_swa", value)?);
        let local_value =
            if keys.family.latent_windows { keys.count("attention.kv_lora_rank_swa")? } else { local_value };
        let windowed = windowed(keys, layers, &kv_counts)?;
        let own = own_caches(keys, layers)?;
        let mut all: Vec<Attends> = Vec::new();
        for (layer, (count, kv)) in counts.iter().zip(&kv_counts).enumerate() {
            let windowed = windowed[layer];
            let [key, value] = if windowed { [local_key, local_value] } else { [key, value] };
            let or = |own: u64, other: u64| if own == 0 { other } else { own };
            let heads = Heads { count: or(*count, most), kv: or(*kv, some_kv), key, value };
            heads.check(keys)?;
            let alike = |other: &Attends| other.shares.is_none() && other.windowed == windowed;
            let shares = match (layer as u64) < own {
                true => None,
                // The last of those before that is of the same kind.
                false => Some(all.iter().rposition(alike).ok_or_else(|| {
                    invalid(format!(
                        "no layer has keys for layer {layer} ('{}')",
                        keys.key("attention.shared_kv_layers")
                    ))
                })? as u64),
            };
            if shares.is_some_and(|of| all[of as usize].heads.kv != heads.kv) {
                return Err(invalid(format!("layer {layer} shares keys of another number of heads")));
            }
            all.push(Attends { heads, windowed, shares });
        }
        Ok(all)
    }
}

/// Elements of the row that caches hold for all heads, where they do: whatever else the metadata say of values, these are as long.
fn folded_rank(keys: &Keys<'_>) -> Result<Option<u64>> {
    let is_folded = keys.optional("attention.key_length_mla")?.is_some_and(|length| length > 0);
    Ok(keys.optional("attention.kv_lora_rank")?.filter(|rank| is_folded && *rank > 0))
}

/// Which layers attend to a window, where there is one: what the metadata say, else what the architecture is known for.
fn windowed(keys: &Keys<'_>, layers: u64, kv_counts: &[u64]) -> Result<Vec<bool>> {
    let (family, name) = (keys.family, "attention.sliding_window_pattern");
    let every = |of: u64| {
        let global = if family.first_is_global { 0 } else { of.saturating_sub(1) };
        (0..layers).map(|layer| of == 0 || layer % of != global).collect()
    };
    if family.condenses {
        // Those without groups have another rotary embedding.
        let name = "attention.compress_ratios";
        let groups = keys.each(name, layers)?.ok_or_else(|| keys.missing(name))?;
        return Ok(groups.iter().map(|size| *size == 0).collect());
    }
    if window(keys, layers)?.is_none() {
        return Ok(vec![false; layers as usize]);
    }
    if family.all_windowed {
        // Layers without keys keep states.
        return Ok(kv_counts.iter().map(|kv| *kv > 0).collect());
    }
    match keys.value(name) {
        Some(halite_formats::gguf::Value::Array(_)) => {
            let all = keys.each(name, layers)?.unwrap_or_default();
            Ok(all.iter().map(|own| *own > 0).collect())
        }
        Some(_) => Ok(every(keys.optional(name)?.unwrap_or(0))),
        None => Ok(every(family.local_of)),
    }
}

/// Keys that layers with windows attend to, where there are such.
pub(super) fn window(keys: &Keys<'_>, layers: u64) -> Result<Option<u64>> {
    let family = keys.family;
    let own = keys.optional("attention.sliding_window")?;
    let has_none = family.local_of == 0 || (family.windows_at != 0 && family.windows_at != layers);
    Ok(match own.or(family.window) {
        _ if has_none => None,
        Some(0) if !family.always_windowed => None,
        own if family.piece.is_none() => own.map(|own| family.own_window.unwrap_or(own)),
        _ => family.piece,
    })
}

/// How many layers, the first, have keys and values of their own.
fn own_caches(keys: &Keys<'_>, layers: u64) -> Result<u64> {
    match keys.optional("attention.shared_kv_layers")? {
        Some(shared) => layers.checked_sub(shared).ok_or_else(|| {
            invalid(format!("'{}' is {shared} of {layers} layers", keys.key("attention.shared_kv_layers")))
        }),
        None => Ok(keys.family.own_caches.map_or(layers, |own| own.min(layers))),
    }
}

/// How many kinds of distances add to scores, where the metadata say so.
pub(super) fn buckets(keys: &Keys<'_>) -> Result<Option<u64>> {
    let name = "attention.relative_buckets_count";
    match keys.optional(name)? {
        None if keys.family.front.is_some() => Err(keys.missing(name)),
        Some(_) if !keys.family.encoder && keys.family.front.is_none() => {
            Err(unsupported(format!("'{}', which encoders alone have", keys.key(name))))
        }
        Some(count) if !(4..=MOST_BUCKETS).contains(&count) || count % 2 != 0 => {
            Err(invalid(format!("'{}' is {count}; there are 4 to {MOST_BUCKETS}", keys.key(name))))
        }
        count => Ok(count),
    }
}
