//! Which parts a layer has, and the sizes of those that keep a state of one size in place of keys and values.

use super::{
    Result,
    file::{File, invalid},
    keys::Keys,
};

/// Most taps of a convolution.
const MOST_TAPS: u64 = 16;
/// Most elements of a state along one dimension.
const MOST_ELEMENTS: u64 = 1 << 18;
/// Fewest elements of what tells how much is written, where the metadata do not say how many there are.
const FEWEST_RANK: u64 = 64;
/// States are rows of a multiple of so many elements: so those of several sequences begin at multiples of 256 bytes, which is the
/// most that Vulkan lets a device ask for.
const ROUND: u64 = 64;

/// What a layer does before its feed-forward network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mixer {
    /// Whether tokens attend to others.
    pub attends: bool,
    /// What carries a state from token to token, beside that or in its place.
    pub recurrent: Option<Recurrent>,
    /// Whether a feed-forward network comes behind it.
    pub feeds: bool,
}

/// What carries a state from token to token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recurrent {
    /// A gated convolution of a few tokens.
    ShortConv {
        /// Tokens that it sees.
        taps: u64,
    },
    StateSpace(StateSpace),
    Selective(Selective),
    DeltaNet(DeltaNet),
    Lightning(Lightning),
    Rwkv(Rwkv),
}

/// Sizes of time mixing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rwkv {
    pub heads: u64,
    /// Those of keys and values, which the others share evenly.
    pub kv: u64,
    /// Elements of a head.
    pub size: u64,
    /// Whether tokens correct what the state has for their keys.
    pub corrects: bool,
    /// Whether the feed-forward network mixes tokens, too.
    pub channels: bool,
}

impl Rwkv {
    fn read(keys: &Keys<'_>, file: &File, layer: u64) -> Result<Rwkv> {
        let has = |part: &str| file.has(&format!("blk.{layer}.{part}.weight"));
        let (width, size) = (keys.count("embedding_length")?, keys.count("wkv.head_size")?);
        let narrow = file.dims(&format!("blk.{layer}.time_mix_key.weight"));
        let narrow = narrow.and_then(|dims| dims.first().copied()).unwrap_or(width);
        let (heads, kv) = (width / size, narrow / size);
        let is_small = size <= MOST_ELEMENTS && width <= MOST_ELEMENTS;
        let is_even = width.is_multiple_of(size) && narrow.is_multiple_of(size);
        if !is_small || !is_even || kv == 0 || !heads.is_multiple_of(kv) {
            return Err(invalid(format!(
                "keys of {narrow} of {width} elements in heads of {size} ('{}')",
                keys.key("wkv.head_size")
            )));
        }
        let (corrects, channels) = (has("time_mix_r_k"), has("channel_mix_key"));
        Ok(Rwkv { heads, kv, size, corrects, channels })
    }

    /// What it keeps of heads.
    pub fn held(&self) -> State {
        State { name: "state", elements: self.heads * self.size * self.size }
    }

    /// All that it keeps, in a model of this width.
    fn states(&self, width: u64) -> Vec<State> {
        let shift = |name| State { name, elements: width };
        let channel = self.channels.then(|| shift("channel"));
        [shift("shift"), self.held()].into_iter().chain(channel).collect()
    }
}

/// Sizes of a state-space layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StateSpace {
    /// Tokens that its convolution sees.
    pub taps: u64,
    /// Elements of all heads.
    pub inner: u64,
    pub heads: u64,
    /// Groups of heads that write and read in the same places.
    pub groups: u64,
    /// Places of a state.
    pub state: u64,
    /// Elements of what tells how much is written, where that and the places come behind the convolution.
    pub rank: Option<u64>,
}

/// Sizes of a state-space layer whose decay differs from place to place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Selective {
    pub taps: u64,
    /// Channels.
    pub inner: u64,
    /// Elements of what tells how much is written.
    pub rank: u64,
    /// Places of a channel's state.
    pub state: u64,
    /// Whether what a token makes has norms, without weights where the file has none.
    pub normed: bool,
}

impl Selective {
    /// What it keeps behind the convolution.
    pub fn held(&self) -> State {
        State { name: "state", elements: self.inner * self.state }
    }
}

impl StateSpace {
    /// Elements of a head.
    pub fn head(&self) -> u64 {
        self.inner / self.heads
    }

    /// Channels of its convolution: what is written, and where it is written and read, unless that comes later.
    pub fn convolved(&self) -> u64 {
        self.inner + if self.rank.is_some() { 0 } else { 2 * self.groups * self.state }
    }

    /// What it keeps behind the convolution.
    pub fn held(&self) -> State {
        State { name: "state", elements: self.inner * self.state }
    }
}

/// Sizes of sums of products that fade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lightning {
    pub heads: u64,
    /// Elements of a query, a key and a value.
    pub size: u64,
}

impl Lightning {
    /// Those that the metadata say.
    fn read(keys: &Keys<'_>) -> Result<Lightning> {
        let (heads, width) = (keys.count("attention.head_count")?, keys.count("embedding_length")?);
        let size = keys.optional("attention.key_length")?.unwrap_or(width / heads);
        let is_small = size > 0 && heads.checked_mul(size).is_some_and(|all| all <= MOST_ELEMENTS);
        // How fast sums fade is told by how far a layer is from the last.
        match is_small && keys.count("block_count")? > 1 {
            true => Ok(Lightning { heads, size }),
            false => Err(invalid(format!(
                "{heads} heads of {size} elements in {} layers ('{}', '{}')",
                keys.count("block_count")?,
                keys.key("attention.head_count"),
                keys.key("block_count")
            ))),
        }
    }

    /// The same as a state-space layer each of whose heads writes and reads in places of its own.
    pub fn space(&self) -> StateSpace {
        let Lightning { heads, size } = *self;
        StateSpace { taps: 1, inner: heads * size, heads, groups: heads, state: size, rank: None }
    }
}

/// Sizes of a gated delta net.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DeltaNet {
    pub taps: u64,
    /// Heads of values.
    pub heads: u64,
    /// Heads of queries and keys.
    pub groups: u64,
    /// Elements of a key and of a value.
    pub state: u64,
    /// Whether each place of a key decays for itself, and not all of a head.
    pub by_place: bool,
}

impl DeltaNet {
    /// One whose places decay each for itself, with as many heads of keys as of values.
    fn by_place(keys: &Keys<'_>) -> Result<DeltaNet> {
        // Those of the first layer, as in llama.cpp.
        let all = keys.each("attention.head_count", 1)?.unwrap_or_default();
        let (heads, state) = (all.first().copied().unwrap_or(0), keys.count("kda.head_dim")?);
        if heads == 0 || heads.checked_mul(state).is_none_or(|all| all > MOST_ELEMENTS) {
            return Err(invalid(format!(
                "{heads} heads with states of {state} ('{}')",
                keys.key("kda.head_dim")
            )));
        }
        Ok(DeltaNet { taps: taps(keys, "ssm.conv_kernel")?, heads, groups: heads, state, by_place: true })
    }

    /// Channels of its convolution: queries, keys and values.
    pub fn convolved(&self) -> u64 {
        (2 * self.groups + self.heads) * self.state
    }

    /// What it keeps behind the convolution.
    pub fn held(&self) -> State {
        State { name: "state", elements: self.heads * self.state * self.state }
    }
}

/// A tensor that a layer keeps from call to call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub name: &'static str,
    pub elements: u64,
}

impl State {
    /// Elements of its row.
    pub fn row(&self) -> u64 {
        self.elements.next_multiple_of(ROUND)
    }
}

impl Recurrent {
    /// What it keeps, in a model of this width.
    pub fn states(&self, width: u64) -> Vec<State> {
        match self {
            Recurrent::ShortConv { taps } => vec![columns(*taps, width)],
            Recurrent::StateSpace(own) => vec![columns(own.taps, own.convolved()), own.held()],
            Recurrent::Selective(own) => vec![columns(own.taps, own.inner), own.held()],
            Recurrent::Rwkv(own) => own.states(width),
            Recurrent::DeltaNet(own) => vec![columns(own.taps, own.convolved()), own.held()],
            Recurrent::Lightning(own) => vec![own.space().held()],
        }
    }

    /// What a layer has of them, as its tensors tell.
    fn read(keys: &Keys<'_>, file: &File, layer: u64) -> Result<Option<Recurrent>> {
        let has = |part: &str| file.has(&format!("blk.{layer}.{part}"));
        if has("shortconv.conv.weight") {
            return Ok(Some(Recurrent::ShortConv { taps: taps(keys, "shortconv.l_cache")? }));
        }
        if has("time_mix_key.weight") {
            return Rwkv::read(keys, file, layer).map(|own| Some(Recurrent::Rwkv(own)));
        }
        if !has("ssm_a") {
            return Ok(None);
        }
        if has("ssm_conv1d_q.weight") {
            return DeltaNet::by_place(keys).map(|own| Some(Recurrent::DeltaNet(own)));
        }
        let count = |name: &str| keys.count(&format!("ssm.{name}"));
        let (inner, heads, state) = (count("inner_size")?, count("time_step_rank")?, count("state_size")?);
        let taps = taps(keys, "ssm.conv_kernel")?;
        let is_small = [inner, heads, state].iter().all(|size| *size <= MOST_ELEMENTS);
        let late = keys.family.late_places;
        if has("ssm_x.weight") && !late {
            let normed = keys.flag("ssm.dt_b_c_rms")?.unwrap_or(false);
            let own = Selective { taps, inner, rank: heads, state, normed };
            return match is_small {
                true => Ok(Some(Recurrent::Selective(own))),
                false => {
                    Err(invalid(format!("{inner} channels with states of {state} ('{}')", keys.key("ssm.*"))))
                }
            };
        }
        // Later places are those of all heads, whatever the metadata say.
        let groups = if late { 1 } else { count("group_count")? };
        let rank = if late { Some(FEWEST_RANK.max(keys.count("embedding_length")? / 16)) } else { None };
        let is_delta = has("ssm_ba.weight") || has("ssm_beta.weight");
        let fits = is_small
            && groups <= MOST_ELEMENTS
            && inner.is_multiple_of(heads)
            && heads.is_multiple_of(groups)
            && (!is_delta || inner / heads == state);
        let delta = DeltaNet { taps, heads, groups, state, by_place: false };
        match (fits, is_delta) {
            (true, true) => Ok(Some(Recurrent::DeltaNet(delta))),
            (true, false) => {
                Ok(Some(Recurrent::StateSpace(StateSpace { taps, inner, heads, groups, state, rank })))
            }
            _ => Err(invalid(format!(
                "{inner} elements in {heads} heads of {groups} groups, with states of {state} ('{}')",
                keys.key("ssm.*")
            ))),
        }
    }
}

impl Mixer {
    /// The parts of a layer, as its tensors tell.
    fn read(keys: &Keys<'_>, file: &File, layer: u64) -> Result<Mixer> {
        let fades = keys.family.carries_norms && file.has(&format!("blk.{layer}.attn_norm_2.weight"));
        let recurrent = match fades {
            true => Some(Recurrent::Lightning(Lightning::read(keys)?)),
            false => Recurrent::read(keys, file, layer)?,
        };
        let has = |part: &str| file.has(&format!("blk.{layer}.{part}.weight"));
        if keys.family.gaps {
            return Ok(Mixer { attends: has("attn_q"), recurrent, feeds: has("ffn_down") });
        }
        let lone = keys.family.lone_parts;
        // Without a state there has to be attention, unless a layer is one part alone: what is missing of it is told later.
        let is_whole = matches!(
            recurrent,
            Some(Recurrent::Lightning(_) | Recurrent::DeltaNet(DeltaNet { by_place: true, .. }))
        );
        let attends = has("attn_output") && !is_whole || recurrent.is_none() && !lone;
        Ok(Mixer { attends, recurrent, feeds: !lone || !attends && recurrent.is_none() })
    }

    /// Those of all layers.
    pub fn of_layers(keys: &Keys<'_>, file: &File, layers: u64) -> Result<Vec<Mixer>> {
        let all: Vec<Mixer> =
            (0..layers).map(|layer| Mixer::read(keys, file, layer)).collect::<Result<_>>()?;
        match keys.family.recurrent || all.iter().any(|mixer| mixer.attends) {
            true => Ok(all),
            false => Err(invalid("no layer has attention")),
        }
    }
}

/// The columns that a convolution needs of those before.
pub(super) fn columns(taps: u64, channels: u64) -> State {
    State { name: "conv", elements: (taps - 1) * channels }
}

/// The taps of a convolution.
fn taps(keys: &Keys<'_>, name: &str) -> Result<u64> {
    match keys.count(name)? {
        taps if (2..=MOST_TAPS).contains(&taps) => Ok(taps),
        taps => Err(invalid(format!("'{}' is {taps}; there are 2 to {MOST_TAPS}", keys.key(name)))),
    }
}
