//! What architectures of GGUF files differ in that their metadata and tensors do not say. `families.rs` has them.

/// What rotary embedding turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Nothing: there is none.
    Nothing,
    /// Neighbours.
    Neighbours,
    /// An element of the first half and one of the second.
    Halves,
}

/// The rotary embedding of layers that attend to a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LocalRope {
    /// That of the others.
    Global,
    /// With their base, and nothing that makes contexts longer.
    Unscaled,
    /// With a base of its own, the metadata's or 10,000, and their factor of cosines and sines alone.
    Own,
    /// With a base of its own, the metadata's or 10,000, and nothing that makes contexts longer.
    OwnUnscaled,
    /// With a base of its own, the metadata's or theirs, and nothing that makes contexts longer.
    OwnOrGlobal,
    /// With a base of its own, the metadata's or theirs, and what makes contexts longer.
    OwnScaled,
}

/// How many elements of a head layers turn, where the metadata tell it of those with windows and of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TurnedAs {
    /// All as many as the first.
    First,
    /// Those with windows what the metadata say, others as many as the first.
    FirstBesideWindows,
    /// Each what the metadata say.
    Own,
}

/// Which layers have no rotary embedding where a family has such and a model has no windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unwindowed {
    /// The same.
    Same,
    /// None.
    Nowhere,
    /// The last alone.
    Last,
}

/// What sections of rotary embedding mean, whose places are the same in a text, but for the fourth, whose place is always 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sections {
    /// Nothing.
    Unread,
    /// Pairs of a section are neighbours.
    Runs,
    /// The same, and halves are turned, where the first two sections have some pairs.
    RunsByKey,
    /// Three sections share pairs in turn.
    Turns,
}

/// What is between the products of a feed-forward network. Where there are two factors it is the gate's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activation {
    Silu,
    Gelu,
    /// Of a gate the same; numbers without one are cut at 0.
    GeluOfGates,
    ReluSquared,
    Relu,
    /// A parabola above 0 and a bent exponential below, with numbers of each layer (Huang and Schlag, xIELU).
    XIelu,
    /// A SiLU whose first factor is bent by a hyperbolic tangent, as the other factor is, perhaps, with numbers of the metadata.
    Situ,
    /// A SiLU with a factor of 1.702 between limits, and one more than the other factor.
    LimitedSilu,
}

/// How parts of layers take sums of several states of a token, and add to each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Connected {
    /// By a weight of each.
    Weighed,
    /// By gates of their elements, whose mean they take.
    Gated,
    /// By a weight of each, and states go into each other; in front of the output they are weighed, or their mean is taken.
    Spread { mean: bool },
}

/// How the states of a layer's parts come together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// A norm before each part; perhaps one behind.
    Before,
    /// A norm behind each part, before its result is added.
    Behind,
    /// The same, by the norms that other layers have before their parts.
    BehindByOwn,
    /// A norm behind each part and the state that it is added to.
    BehindSum,
    /// Both parts take the same state, with one norm before them or one for each.
    Parallel,
    /// Both, if a key of the metadata says so.
    ParallelByKey,
    /// Both, where a layer has no second norm.
    ParallelWithoutNorm,
}

/// How a model's layers are made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Family {
    /// Its name in `general.architecture`.
    pub name: &'static str,
    pub turn: Turn,
    pub activation: Activation,
    pub flow: Flow,
    /// Whether norms take the mean away; else they divide by the root of the mean of squares.
    pub centred: bool,
    /// Whether norms have no weights.
    pub bare_norms: bool,
    /// Whether the model reads all tokens at once and writes none.
    pub encoder: bool,
    /// Whether state-space layers whose heads decay tell behind their convolution where they write and read, and how much.
    pub late_places: bool,
    /// The encoder in front of it, whose states its layers attend to behind those of its own tokens.
    pub front: Option<&'static Family>,
    /// Whether the metadata's factor of logits divides them.
    pub divided_logits: bool,
    /// Whether embeddings are multiplied by the root of the width.
    pub scaled_embedding: bool,
    /// Of so many layers one, the last, attends to all keys and the others to a window; 0 where all do.
    pub local_of: u64,
    /// Whether it is the first of them that attends to all keys.
    pub first_is_global: bool,
    /// What windows are pieces of, in the place of those that move with each token: of so many tokens, whatever the metadata say.
    pub piece: Option<u64>,
    /// How queries grow in layers without rotary embedding, by a factor and a length.
    pub plain_temperature: Option<(f64, u64)>,
    /// The window where the metadata say none.
    pub window: Option<u64>,
    /// The window where the metadata say any.
    pub own_window: Option<u64>,
    /// Whether there is always a window: one of 0 tokens has none.
    pub always_windowed: bool,
    /// Whether all layers attend to the window where there is one, whatever the metadata's pattern.
    pub all_windowed: bool,
    /// Number of layers with which alone there are windows, whatever the metadata say; 0 where any number of layers has them.
    pub windows_at: u64,
    /// The rotary embedding of layers that attend to a window.
    pub local_rope: LocalRope,
    /// How many elements layers turn.
    pub turned_as: TurnedAs,
    /// Whether what makes contexts longer counts for the size of scores alone.
    pub scales_scores: bool,
    /// What sections of rotary embedding mean.
    pub sections: Sections,
    /// Of so many layers one, the last, has no rotary embedding; 0 where all have one.
    pub plain_of: u64,
    /// Which have none where a model has no windows.
    pub unwindowed: Unwindowed,
    /// Number of layers with which heads are scaled by the width and not by their own size.
    pub scaled_by_width_at: u64,
    /// Whether the long or the short factors of rotary embedding are tensors of the file.
    pub long_factors: bool,
    /// The bias of distances where the metadata say none.
    pub distance_bias: Option<f64>,
    /// Number of layers with which a bias of distances tells places.
    pub biased_at: u64,
    /// Number of layers with which alone there is rotary embedding; 0 where any number of layers has it.
    pub turned_at: u64,
    /// Whether the weights of chosen experts are made to be 1 in sum.
    pub normed_experts: bool,
    /// Whether experts are chosen by what a layer takes, before attention.
    pub routed_before: bool,
    /// Whether each expert is weighed for itself, by the logistic function, where the metadata say nothing.
    pub sigmoid_experts: bool,
    /// Whether they are chosen by a router's numbers as they are, and weighed by a softmax over the chosen.
    pub weighed_chosen: bool,
    /// Whether experts are given rows times their weights, and not results multiplied.
    pub weighed_before: bool,
    /// How many tokens, the first, are written, where not all are.
    pub written: Option<u64>,
    /// Whether layers add to what their norms make, times a factor of the metadata, and may have sums that fade by a factor of each head.
    pub carries_norms: bool,
    /// Whether embeddings have a norm without weights.
    pub bare_embedding_norm: bool,
    /// What norms behind the parts of layers add to squares, where that is not what others add.
    pub post_epsilon: Option<f32>,
    /// Whether queries and keys have norms without weights behind rotary embedding, unless there are so many experts.
    pub bare_head_norms_but: Option<u64>,
    /// Whether norms of queries and keys take the mean away, whatever others do, and add so much to squares.
    pub centred_heads: Option<f32>,
    /// The first token of pictures, which are never written, and the one behind them.
    pub pictures: [u64; 2],
    /// Whether norms of queries and keys come behind rotary embedding.
    pub norms_turned: bool,
    /// What the metadata's factor of YaRN's logarithm is a multiple of; `None` where it leaves attention's scale alone.
    pub yarn_scale: Option<f64>,
    /// Whether cosines and sines stay as they are where the metadata have such a factor, whatever it is.
    pub bare_yarn: bool,
    /// Whether layers attend to a window of keys, and to rows that stand for groups of neighbours.
    pub condenses: bool,
    /// What rotary embedding turns in the keys of an indexer, where one chooses what layers attend to.
    pub indexer: Option<Turn>,
    /// Whether it chooses blocks of keys, for each head of keys.
    pub chooses_blocks: bool,
    /// Whether rotary embedding turns the last elements of its keys, and not the first.
    pub late_index: bool,
    /// Where the metadata do not say which layers have an indexer: so many, the first, then every fourth, of models with a context of so
    /// many tokens or more.
    pub some_indexers: Option<(u64, u64)>,
    /// How parts of layers take sums of several states of a token, and add to each, where they do.
    pub connections: Option<Connected>,
    /// Whether scores have no factor.
    pub unscaled: bool,
    /// Whether values have a norm without weights; those of layers without weights for values are keys before theirs.
    pub bare_value_norm: bool,
    /// How many layers, the first, have keys and values of their own where the metadata do not say.
    pub own_caches: Option<u64>,
    /// Whether factors of rotary embedding that are a tensor are not those of layers that attend to a window.
    pub global_factors: bool,
    /// Whether layers that attend to all keys turn half of what the metadata say.
    pub half_turned: bool,
    /// Whether a token has several states.
    pub streams: bool,
    /// Of how many layers, the first, feed-forward networks keep the largest of a gate's numbers alone where the metadata do not say,
    /// and how many deviations above their mean these are.
    pub sparse: Option<(u64, f64)>,
    /// What logits are between, where the metadata do not say; the same of scores.
    pub logit_cap: Option<f64>,
    pub score_cap: Option<f64>,
    /// Whether layers with windows have latent attention of sizes of their own, and no indexer.
    pub latent_windows: bool,
    /// Whether there may be no attention at all.
    pub recurrent: bool,
    /// The norm before the feed-forward network.
    pub feed_norm: &'static str,
    /// Whether a layer is attention, a state or a feed-forward network alone.
    pub lone_parts: bool,
    /// Whether a key of the metadata may say that there is no rotary embedding.
    pub turns_by_key: bool,
    /// Whether heads of values share those of keys in turn, and not neighbours.
    pub tiled_heads: bool,
    /// The norm in front of what makes logits.
    pub output_norm: &'static str,
    /// Factors of embeddings, of what layers add and of logits that the metadata need not say.
    pub minicpm: bool,
    /// Whether layers may lack attention, have a product in its place, or lack a feed-forward network.
    pub gaps: bool,
    /// Whether layers with windows alone have rotary embedding, where there are such.
    pub turned_windows: bool,
    /// Whether the layers in front that have no experts have it, too.
    pub turned_leading: bool,
    /// Whether an encoder's tokens see those behind them only where the metadata say so.
    pub ahead_by_key: bool,
    /// Whether norms divide by the root of the mean of squares where the metadata say what they add to that.
    pub squares_by_key: bool,
    /// Whether scores are divided by the size of a head, and not by its root.
    pub scaled_by_size: bool,
    /// Factor of what chosen experts and those that all rows share make together.
    pub shared_scale: Option<f64>,
    /// What the names of layers' tensors begin with.
    pub prefix: &'static str,
    /// The weights behind attention.
    pub attention_output: &'static str,
    /// The norm behind attention.
    pub attention_norm: &'static str,
    /// Whether delta nets make decays and gates of whole rows by one product each, and the metadata bound decays, whose rates are above 0.
    pub whole_gates: bool,
    /// What tensors of layers begin with that no text needs.
    pub unread: Option<&'static str>,
    /// The base of the softplus by which gates of what attention finds are without a bound, where they are not within 1.
    pub open_gates: Option<f64>,
    /// Whether norms of states may be those of groups of neighbours, and norms of all heads in one row are those of each.
    pub grouped_norms: bool,
    /// Factors of embeddings, of scores and of logits that the metadata need not say, and what scores are between.
    pub grok: bool,
    /// Whether tokens go through all layers as often as the metadata say.
    pub loops: bool,
    /// Whether there are two stacks of layers, each with a state of a token.
    pub stacks: bool,
    /// Whether what the factors of experts are within is that of other networks, where the metadata say nothing of these.
    pub one_limit: bool,
    /// Whether gates of delta nets are logistic functions whatever their decays are.
    pub logistic_gates: bool,
    /// Whether an indexer compares one key for a group of neighbours: their mean, or (true) a sum that keys weigh.
    pub pools: Option<bool>,
    /// Whether a layer may add embeddings of groups of tokens.
    pub ngrams: bool,
    /// Whether tokens of a text tell which adapter's products are added to those of layers.
    pub switched: bool,
    /// Whether weights of logits' name make vectors of states.
    pub projects: bool,
    /// Whether embeddings have a norm without weights, and layers add them again, each times a number of its own.
    pub adds_embeddings: bool,
    /// What the factors of experts are within where the metadata say nothing.
    pub gate_limit: Option<f64>,
    /// Whether a gate with a limit is cut before its activation, and not behind it.
    pub cuts_gates: bool,
}
