//! What architectures of GGUF files differ in that their metadata and tensors do not say.

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

/// What is between the products of a feed-forward network. Where there are two factors it is the gate's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activation {
    Silu,
    Gelu,
    ReluSquared,
    Relu,
    /// A parabola above 0 and a bent exponential below, with numbers of each layer (Huang and Schlag, xIELU).
    XIelu,
    /// A SiLU with a factor of 1.702 between limits, and one more than the other factor.
    LimitedSilu,
}

/// How the states of a layer's parts come together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// A norm before each part; perhaps one behind.
    Before,
    /// A norm behind each part, before its result is added.
    Behind,
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
    /// The base of rotary embedding in layers that attend to a window, where it is another.
    pub local_base: Option<f64>,
    /// Whether those layers have the same rotary embedding, with what makes contexts longer.
    pub local_scaled: bool,
    /// Of so many layers one, the last, has no rotary embedding; 0 where all have one.
    pub plain_of: u64,
    /// Number of layers with which heads are scaled by the width and not by their own size.
    pub scaled_by_width_at: u64,
    /// Whether the long or the short factors of rotary embedding are tensors of the file.
    pub long_factors: bool,
    /// The bias of distances where the metadata say none.
    pub distance_bias: Option<f64>,
    /// Number of layers with which a bias of distances, and no rotary embedding, tells places.
    pub biased_at: u64,
    /// Whether the weights of chosen experts are made to be 1 in sum.
    pub normed_experts: bool,
    /// Whether experts are chosen by what a layer takes, before attention.
    pub routed_before: bool,
    /// Whether each expert is weighed for itself, by the logistic function, where the metadata say nothing.
    pub sigmoid_experts: bool,
    /// Whether experts are given rows times their weights, and not results multiplied.
    pub weighed_before: bool,
    /// Whether queries and keys have norms without weights behind rotary embedding, unless there are so many experts.
    pub bare_head_norms_but: Option<u64>,
    /// Whether norms of queries and keys come behind rotary embedding.
    pub norms_turned: bool,
    /// What the metadata's factor of YaRN's logarithm is a multiple of; `None` where it leaves attention's scale alone.
    pub yarn_scale: Option<f64>,
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
    /// What logits are between, where the metadata do not say.
    pub logit_cap: Option<f64>,
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
}

const LLAMA: Family = Family {
    name: "llama",
    turn: Turn::Neighbours,
    activation: Activation::Silu,
    flow: Flow::Before,
    centred: false,
    bare_norms: false,
    encoder: false,
    divided_logits: true,
    scaled_embedding: false,
    local_of: 0,
    first_is_global: false,
    piece: None,
    plain_temperature: None,
    window: None,
    local_base: None,
    local_scaled: false,
    plain_of: 0,
    scaled_by_width_at: 0,
    long_factors: false,
    distance_bias: None,
    biased_at: 0,
    normed_experts: true,
    routed_before: false,
    sigmoid_experts: false,
    weighed_before: false,
    bare_head_norms_but: None,
    norms_turned: false,
    yarn_scale: None,
    unscaled: false,
    bare_value_norm: false,
    own_caches: None,
    global_factors: false,
    half_turned: false,
    streams: false,
    sparse: None,
    logit_cap: None,
    recurrent: false,
    feed_norm: "ffn_norm",
    lone_parts: false,
    turns_by_key: false,
    tiled_heads: false,
    output_norm: "output_norm",
    minicpm: false,
};

const QWEN: Family = Family { name: "qwen", turn: Turn::Halves, ..LLAMA };
const GEMMA: Family = Family { name: "gemma", activation: Activation::Gelu, scaled_embedding: true, ..QWEN };
const GEMMA3: Family =
    Family { name: "gemma3", local_of: 6, local_base: Some(10_000.0), scaled_by_width_at: 62, ..GEMMA };
/// Layers whose values have a norm and whose scores have no factor; layers at the end may share the caches of others.
const GEMMA4: Family = Family {
    name: "gemma4",
    unscaled: true,
    bare_value_norm: true,
    global_factors: true,
    scaled_by_width_at: 0,
    ..GEMMA3
};
/// The same, with several states of each token.
const GEMMA3N: Family = Family {
    name: "gemma3n",
    local_of: 5,
    own_caches: Some(20),
    streams: true,
    sparse: Some((10, 1.644_853_353_500_366_2)),
    logit_cap: Some(30.0),
    ..GEMMA4
};
const PHI3: Family = Family { name: "phi3", long_factors: true, ..QWEN };
/// Decoders with norms that take the mean away, and one factor in feed-forward networks.
const GPT2: Family =
    Family { name: "gpt2", turn: Turn::Nothing, activation: Activation::Gelu, centred: true, ..LLAMA };
const NEOX: Family = Family { name: "gptneox", turn: Turn::Halves, flow: Flow::ParallelByKey, ..GPT2 };
const COMMAND_R: Family =
    Family { name: "command-r", flow: Flow::Parallel, centred: true, divided_logits: false, ..LLAMA };
const HUNYUAN: Family = Family { name: "hunyuan-dense", norms_turned: true, ..QWEN };
/// Decoders with latent attention. Converters write a tenth of the factor of YaRN's logarithm.
const DEEPSEEK2: Family = Family { name: "deepseek2", normed_experts: false, yarn_scale: Some(0.1), ..LLAMA };
/// Short convolutions beside attention.
const LFM2: Family = Family { name: "lfm2", output_norm: "token_embd_norm", ..QWEN };
const NEMOTRON_H: Family = Family {
    name: "nemotron_h",
    turn: Turn::Nothing,
    activation: Activation::ReluSquared,
    lone_parts: true,
    ..LLAMA
};
/// A state in each layer, and nothing else.
const MAMBA: Family =
    Family { name: "mamba2", turn: Turn::Nothing, lone_parts: true, recurrent: true, ..LLAMA };
/// Gated delta nets beside attention.
const QWEN_NEXT: Family = Family { name: "qwen3next", feed_norm: "post_attention_norm", ..QWEN };
const QWEN35: Family = Family { name: "qwen35", tiled_heads: true, ..QWEN_NEXT };
/// Three layers with windows and rotary embedding, then one without either.
const LOCAL_TURNED: Family = Family { name: "exaone4", local_of: 4, plain_of: 4, local_scaled: true, ..QWEN };
const BERT: Family = Family { name: "bert", encoder: true, flow: Flow::BehindSum, ..GPT2 };

/// All of them, in the order of messages.
pub(super) const FAMILIES: &[Family] = &[
    LLAMA,
    Family { name: "qwen2", ..QWEN },
    Family { name: "qwen3", ..QWEN },
    GEMMA,
    Family {
        name: "gemma2",
        local_of: 2,
        window: Some(4096),
        scaled_by_width_at: 46,
        local_scaled: true,
        ..GEMMA
    },
    GEMMA3,
    GEMMA3N,
    GEMMA4,
    PHI3,
    Family { name: "granite", ..LLAMA },
    Family { name: "smollm3", plain_of: 4, ..LLAMA },
    // Mixtures of experts; those of `llama` are Mixtral's.
    Family { name: "qwen2moe", normed_experts: false, ..QWEN },
    Family { name: "qwen3moe", ..QWEN },
    Family { name: "olmoe", normed_experts: false, ..QWEN },
    Family { name: "granitemoe", ..LLAMA },
    Family { name: "phimoe", ..PHI3 },
    Family { name: "deepseek", normed_experts: false, ..LLAMA },
    Family { name: "dots1", normed_experts: false, ..QWEN },
    Family {
        name: "gpt-oss",
        feed_norm: "post_attention_norm",
        activation: Activation::LimitedSilu,
        local_of: 2,
        local_scaled: true,
        ..QWEN
    },
    Family { name: "qwen3vlmoe", ..QWEN },
    Family { name: "ernie4_5-moe", ..LLAMA },
    Family { name: "hunyuan-moe", ..HUNYUAN },
    Family {
        name: "glm4moe",
        feed_norm: "post_attention_norm",
        normed_experts: false,
        sigmoid_experts: true,
        ..QWEN
    },
    Family { name: "minimax-m2", ..QWEN },
    Family { name: "mimo2", local_of: 2, local_scaled: true, sigmoid_experts: true, ..QWEN },
    Family {
        name: "step35",
        local_of: 2,
        local_scaled: true,
        sigmoid_experts: true,
        normed_experts: false,
        global_factors: true,
        half_turned: true,
        ..QWEN
    },
    Family { name: "bailingmoe", normed_experts: false, ..LLAMA },
    Family { name: "bailingmoe2", normed_experts: false, sigmoid_experts: true, ..QWEN },
    Family { name: "dbrx", centred: true, feed_norm: "attn_output_norm", ..QWEN },
    DEEPSEEK2,
    Family { name: "mistral4", ..DEEPSEEK2 },
    // Others with norms by squares.
    QWEN,
    // Of models that see, what writes: the places of a text's tokens are the same in all sections.
    Family { name: "qwen2vl", ..QWEN },
    Family { name: "qwen3vl", ..QWEN },
    Family { name: "paddleocr", ..QWEN },
    Family { name: "hunyuan_vl", ..HUNYUAN },
    Family { name: "mistral3", ..LLAMA },
    HUNYUAN,
    Family { name: "pangu-embedded", ..QWEN },
    Family { name: "maincoder", norms_turned: true, ..LLAMA },
    Family { name: "internlm2", ..LLAMA },
    Family { name: "baichuan", biased_at: 40, ..LLAMA },
    Family { name: "xverse", ..LLAMA },
    Family { name: "minicpm", minicpm: true, ..LLAMA },
    Family { name: "minicpm3", minicpm: true, divided_logits: false, long_factors: true, ..QWEN },
    Family { name: "openelm", ..QWEN },
    Family { name: "bitnet", ..QWEN },
    Family { name: "chatglm", ..LLAMA },
    Family { name: "glm4", ..LLAMA },
    Family { name: "ernie4_5", ..LLAMA },
    Family { name: "arcee", activation: Activation::ReluSquared, ..LLAMA },
    Family { name: "exaone", ..QWEN },
    Family { name: "seed_oss", feed_norm: "post_attention_norm", ..QWEN },
    Family { flow: Flow::Behind, ..LOCAL_TURNED },
    Family { name: "olmo2", flow: Flow::Behind, local_of: 4, ..QWEN },
    // With a state of one size in some or all layers.
    LFM2,
    Family { name: "lfm2moe", ..LFM2 },
    Family { name: "granitehybrid", turns_by_key: true, ..LLAMA },
    Family { name: "falcon-h1", ..QWEN },
    NEMOTRON_H,
    Family { name: "nemotron_h_moe", sigmoid_experts: true, normed_experts: false, ..NEMOTRON_H },
    QWEN_NEXT,
    QWEN35,
    Family { name: "qwen35moe", ..QWEN35 },
    // States alone.
    Family { name: "mamba", ..MAMBA },
    MAMBA,
    Family { name: "jamba", turn: Turn::Nothing, normed_experts: false, ..LLAMA },
    Family { name: "apertus", activation: Activation::XIelu, ..QWEN },
    Family { name: "plamo3", local_of: 8, ..QWEN },
    Family { name: "exaone-moe", normed_experts: false, ..LOCAL_TURNED },
    Family {
        name: "smallthinker",
        activation: Activation::Relu,
        local_of: 4,
        plain_of: 4,
        first_is_global: true,
        local_scaled: true,
        routed_before: true,
        ..QWEN
    },
    // The text part.
    Family {
        name: "llama4",
        local_of: 4,
        plain_of: 4,
        local_scaled: true,
        piece: Some(8192),
        plain_temperature: Some((0.1, 8192)),
        normed_experts: false,
        sigmoid_experts: true,
        weighed_before: true,
        bare_head_norms_but: Some(128),
        ..LLAMA
    },
    // With gates of what attention finds.
    Family { name: "afmoe", scaled_embedding: true, normed_experts: false, ..LOCAL_TURNED },
    Family { name: "refact", turn: Turn::Nothing, distance_bias: Some(8.0), ..LLAMA },
    // With norms that take the mean away.
    GPT2,
    NEOX,
    Family { name: "starcoder", ..GPT2 },
    Family { name: "starcoder2", turn: Turn::Halves, ..GPT2 },
    Family { name: "codeshell", turn: Turn::Halves, ..GPT2 },
    Family { name: "mpt", ..GPT2 },
    Family { name: "bloom", distance_bias: Some(8.0), ..GPT2 },
    Family { name: "falcon", flow: Flow::Parallel, ..NEOX },
    Family { name: "phi2", flow: Flow::Parallel, ..NEOX },
    Family { name: "nemotron", activation: Activation::ReluSquared, flow: Flow::Before, ..NEOX },
    Family { name: "jais2", turn: Turn::Halves, activation: Activation::ReluSquared, ..GPT2 },
    Family { name: "orion", centred: true, ..QWEN },
    Family { name: "stablelm", centred: true, flow: Flow::ParallelWithoutNorm, ..QWEN },
    Family { name: "olmo", centred: true, bare_norms: true, ..LLAMA },
    COMMAND_R,
    Family { name: "cohere2", local_of: 4, plain_of: 4, local_scaled: true, ..COMMAND_R },
    // Encoders.
    BERT,
    Family { name: "nomic-bert", turn: Turn::Halves, activation: Activation::Silu, ..BERT },
    Family { name: "nomic-bert-moe", turn: Turn::Halves, normed_experts: false, ..BERT },
    Family { name: "jina-bert-v2", distance_bias: Some(8.0), ..BERT },
    Family { name: "jina-bert-v3", turn: Turn::Halves, ..BERT },
    Family {
        name: "modern-bert",
        flow: Flow::Before,
        turn: Turn::Halves,
        local_of: 3,
        first_is_global: true,
        local_scaled: true,
        ..BERT
    },
    Family { name: "eurobert", encoder: true, ..QWEN },
    Family { name: "llama-embed", encoder: true, ..LLAMA },
    Family { name: "neo-bert", encoder: true, output_norm: "enc.output_norm", ..LLAMA },
    Family { name: "gemma-embedding", encoder: true, scaled_by_width_at: 0, ..GEMMA3 },
];
