//! The architectures of GGUF files, as data.

use super::{
    families_base::LLAMA,
    families_latent::{
        BAILINGMOE3, DEEPSEEK2, DEEPSEEK4, DEEPSEEK32, DOTS3NOTE, GLM_DSA, GLM5_NEXT, HY_V4, KIMI_K3,
        KIMI_LINEAR,
    },
    family::{Activation, Connected, Family, Flow, LocalRope, Sections, Turn, TurnedAs, Unwindowed},
};

const QWEN: Family = Family { name: "qwen", turn: Turn::Halves, ..LLAMA };
const GEMMA: Family = Family { name: "gemma", activation: Activation::Gelu, scaled_embedding: true, ..QWEN };
const GEMMA3: Family =
    Family { name: "gemma3", local_of: 6, local_rope: LocalRope::Own, scaled_by_width_at: 62, ..GEMMA };
/// Layers whose values have a norm and whose scores have no factor; layers at the end may share the caches of others.
const GEMMA4: Family = Family {
    name: "gemma4",
    unscaled: true,
    bare_value_norm: true,
    global_factors: true,
    scaled_by_width_at: 0,
    always_windowed: true,
    turned_as: TurnedAs::Own,
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
    turned_as: TurnedAs::First,
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
/// The encoder of T5.
const T5_ENCODER: Family = Family {
    name: "t5encoder",
    turn: Turn::Nothing,
    activation: Activation::GeluOfGates,
    encoder: true,
    unscaled: true,
    prefix: "enc.",
    attention_output: "attn_o",
    output_norm: "enc.output_norm",
    ..LLAMA
};
/// Short convolutions beside attention.
const LFM2: Family = Family {
    name: "lfm2",
    output_norm: "token_embd_norm",
    local_of: 1,
    all_windowed: true,
    local_rope: LocalRope::Global,
    ..QWEN
};
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
/// Time mixing in each layer.
const RWKV: Family = Family { name: "rwkv6", turn: Turn::Nothing, centred: true, recurrent: true, ..LLAMA };
/// Gated delta nets beside attention.
const QWEN_NEXT: Family = Family { name: "qwen3next", feed_norm: "post_attention_norm", ..QWEN };
const QWEN35: Family = Family { name: "qwen35", tiled_heads: true, sections: Sections::Turns, ..QWEN_NEXT };
/// Three layers with windows and rotary embedding, then one without either.
const LOCAL_TURNED: Family = Family {
    name: "exaone4",
    local_of: 4,
    always_windowed: true,
    turned_windows: true,
    local_rope: LocalRope::Global,
    ..QWEN
};
/// Layers with windows as the metadata list them, and rotary embedding in these alone.
const WINDOWS_TURNED: Family = Family {
    name: "maion-coder",
    local_of: 1,
    always_windowed: true,
    turned_windows: true,
    local_rope: LocalRope::Global,
    ..QWEN
};
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
        always_windowed: true,
        scaled_by_width_at: 46,
        local_rope: LocalRope::OwnScaled,
        logit_cap: Some(30.0),
        score_cap: Some(50.0),
        ..GEMMA
    },
    GEMMA3,
    GEMMA3N,
    GEMMA4,
    PHI3,
    Family { name: "granite", turns_by_key: true, ..LLAMA },
    Family { name: "graniteswitch", turns_by_key: true, switched: true, ..LLAMA },
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
        always_windowed: true,
        local_rope: LocalRope::OwnScaled,
        weighed_chosen: true,
        ..QWEN
    },
    Family { name: "qwen3vlmoe", sections: Sections::Turns, ..QWEN },
    Family { name: "ernie4_5-moe", ..LLAMA },
    Family { name: "hunyuan-moe", ..HUNYUAN },
    Family {
        name: "glm4moe",
        sections: Sections::RunsByKey,
        feed_norm: "post_attention_norm",
        normed_experts: false,
        sigmoid_experts: true,
        ..QWEN
    },
    Family { name: "minimax-m2", ..QWEN },
    Family {
        name: "k2-horizon",
        grouped_norms: true,
        open_gates: Some(2.0),
        sigmoid_experts: true,
        normed_experts: false,
        ..QWEN
    },
    Family { name: "minimax-01", carries_norms: true, written: Some(200_032), ..QWEN },
    Family {
        name: "muse-glimmer",
        local_of: 4,
        always_windowed: true,
        turned_windows: true,
        local_rope: LocalRope::OwnOrGlobal,
        divided_logits: false,
        bare_embedding_norm: true,
        logit_cap: Some(30.0),
        post_epsilon: Some(1e-8),
        ..LLAMA
    },
    Family {
        name: "minimax-m3",
        activation: Activation::LimitedSilu,
        indexer: Some(Turn::Halves),
        chooses_blocks: true,
        normed_experts: false,
        ..QWEN
    },
    Family {
        name: "mimo2",
        local_of: 2,
        always_windowed: true,
        local_rope: LocalRope::Own,
        sigmoid_experts: true,
        ..QWEN
    },
    Family {
        name: "step35",
        local_of: 2,
        always_windowed: true,
        local_rope: LocalRope::Own,
        turned_as: TurnedAs::Own,
        sigmoid_experts: true,
        normed_experts: false,
        global_factors: true,
        half_turned: true,
        ..QWEN
    },
    Family { name: "mellum", local_of: 4, local_rope: LocalRope::OwnOrGlobal, ..QWEN },
    Family { name: "hy_v3", normed_experts: false, sigmoid_experts: true, ..QWEN },
    Family {
        name: "laguna",
        local_of: 4,
        first_is_global: true,
        local_rope: LocalRope::OwnUnscaled,
        turned_as: TurnedAs::FirstBesideWindows,
        global_factors: true,
        normed_experts: false,
        sigmoid_experts: true,
        open_gates: Some(std::f64::consts::E),
        ..QWEN
    },
    Family {
        name: "spark2_5",
        activation: Activation::Gelu,
        local_of: 2,
        always_windowed: true,
        local_rope: LocalRope::OwnScaled,
        turned_as: TurnedAs::Own,
        ..QWEN
    },
    Family {
        name: "granite_swa",
        local_of: 1,
        always_windowed: true,
        local_rope: LocalRope::Global,
        ..LLAMA
    },
    Family {
        name: "deepseek2-ocr",
        normed_experts: false,
        yarn_scale: Some(1.0),
        scales_scores: true,
        ..QWEN
    },
    Family { name: "bailingmoe", normed_experts: false, ..LLAMA },
    Family { name: "bailingmoe2", normed_experts: false, sigmoid_experts: true, ..QWEN },
    Family { name: "dbrx", centred: true, feed_norm: "attn_output_norm", ..QWEN },
    DEEPSEEK2,
    Family { name: "mistral4", bare_yarn: false, ..DEEPSEEK2 },
    // The same, where an indexer chooses the keys.
    DEEPSEEK32,
    DEEPSEEK4,
    GLM_DSA,
    HY_V4,
    DOTS3NOTE,
    // Others with norms by squares.
    QWEN,
    // Of models that see, what writes: the places of a text's tokens are the same in all sections.
    Family { name: "qwen2vl", sections: Sections::Runs, ..QWEN },
    Family { name: "qwen3vl", sections: Sections::Turns, ..QWEN },
    Family { name: "paddleocr", sections: Sections::Runs, ..QWEN },
    Family { name: "hunyuan_vl", sections: Sections::RunsByKey, ..HUNYUAN },
    Family { name: "mistral3", ..LLAMA },
    HUNYUAN,
    Family { name: "pangu-embedded", ..QWEN },
    Family { name: "maincoder", norms_turned: true, ..LLAMA },
    Family { name: "internlm2", ..LLAMA },
    Family { name: "baichuan", biased_at: 40, turned_at: 32, ..LLAMA },
    Family { name: "xverse", ..LLAMA },
    Family { name: "minicpm", minicpm: true, ..LLAMA },
    Family { name: "minicpm3", minicpm: true, divided_logits: false, long_factors: true, ..QWEN },
    Family { name: "openelm", ..QWEN },
    Family { name: "bitnet", ..QWEN },
    Family { name: "chatglm", ..LLAMA },
    Family { name: "glm4", sections: Sections::RunsByKey, ..LLAMA },
    Family { name: "ernie4_5", ..LLAMA },
    Family { name: "arcee", activation: Activation::ReluSquared, ..LLAMA },
    Family { name: "exaone", ..QWEN },
    // The text part.
    Family { name: "chameleon", centred_heads: Some(1e-5), pictures: [4, 8196], ..LLAMA },
    Family { name: "seed_oss", feed_norm: "post_attention_norm", ..QWEN },
    // The smaller of these models have no windows.
    Family { flow: Flow::Behind, window: Some(4096), windows_at: 64, ..LOCAL_TURNED },
    Family { name: "olmo2", flow: Flow::Behind, local_of: 4, ..QWEN },
    // With a state of one size in some or all layers.
    LFM2,
    Family { name: "lfm2moe", local_of: 0, all_windowed: false, ..LFM2 },
    Family { name: "granitehybrid", turns_by_key: true, ..LLAMA },
    Family { name: "falcon-h1", ..QWEN },
    NEMOTRON_H,
    Family { name: "nemotron_h_moe", sigmoid_experts: true, normed_experts: false, ..NEMOTRON_H },
    QWEN_NEXT,
    QWEN35,
    Family { name: "qwen35moe", ..QWEN35 },
    Family {
        name: "qwen4exp",
        feed_norm: "ffn_norm",
        indexer: Some(Turn::Halves),
        pools: Some(false),
        connections: Some(Connected::Gated),
        logistic_gates: true,
        ngrams: true,
        ..QWEN35
    },
    // Delta nets with a decay of each place, beside latent attention without rotary embedding.
    KIMI_LINEAR,
    KIMI_K3,
    BAILINGMOE3,
    GLM5_NEXT,
    // States alone.
    Family { name: "mamba", ..MAMBA },
    MAMBA,
    RWKV,
    Family { name: "rwkv7", ..RWKV },
    Family { name: "rwkv6qwen2", centred: false, ..RWKV },
    Family { name: "arwkv7", centred: false, ..RWKV },
    Family { name: "plamo2", late_places: true, ..QWEN },
    Family { name: "jamba", turn: Turn::Nothing, normed_experts: false, ..LLAMA },
    Family { name: "apertus", activation: Activation::XIelu, ..QWEN },
    Family { name: "plamo3", local_of: 8, local_rope: LocalRope::Own, ..QWEN },
    Family { name: "exaone-moe", normed_experts: false, ..LOCAL_TURNED },
    Family {
        name: "smallthinker",
        activation: Activation::Relu,
        local_of: 4,
        plain_of: 4,
        unwindowed: Unwindowed::Nowhere,
        own_window: Some(4096),
        first_is_global: true,
        local_rope: LocalRope::OwnScaled,
        routed_before: true,
        ..QWEN
    },
    // The text part.
    Family {
        name: "llama4",
        local_of: 4,
        plain_of: 4,
        unwindowed: Unwindowed::Last,
        local_rope: LocalRope::OwnScaled,
        piece: Some(8192),
        plain_temperature: Some((0.1, 8192)),
        normed_experts: false,
        sigmoid_experts: true,
        weighed_before: true,
        bare_head_norms_but: Some(128),
        ..LLAMA
    },
    // With gates of what attention finds.
    Family {
        name: "afmoe",
        scaled_embedding: true,
        normed_experts: false,
        sigmoid_experts: true,
        local_of: 4,
        plain_of: 4,
        local_rope: LocalRope::OwnScaled,
        ..QWEN
    },
    // Layers without attention, or without a feed-forward network.
    Family { name: "deci", gaps: true, ..LLAMA },
    Family { name: "arctic", ..LLAMA },
    Family {
        name: "cohere2moe",
        local_of: 4,
        first_is_global: true,
        always_windowed: true,
        local_rope: LocalRope::Global,
        turned_windows: true,
        turned_leading: true,
        squares_by_key: true,
        sigmoid_experts: true,
        normed_experts: false,
        shared_scale: Some(0.5),
        ..COMMAND_R
    },
    Family { name: "plm", activation: Activation::ReluSquared, ..LLAMA },
    Family { name: "plamo", flow: Flow::Parallel, ..QWEN },
    // The text part.
    Family { name: "cogvlm", unread: Some("vis_"), ..QWEN },
    Family {
        name: "grok",
        activation: Activation::Gelu,
        attention_norm: "attn_output_norm",
        divided_logits: false,
        grok: true,
        score_cap: Some(30.0),
        ..QWEN
    },
    Family { name: "grovemoe", ..QWEN },
    Family { name: "nanbeige", loops: true, ..LLAMA },
    Family { name: "hrm_text", stacks: true, bare_norms: true, ..QWEN },
    Family {
        name: "talkie",
        bare_norms: true,
        bare_head_norms_but: Some(0),
        adds_embeddings: true,
        divided_logits: false,
        ..QWEN
    },
    WINDOWS_TURNED,
    Family {
        name: "maple",
        local_rope: LocalRope::OwnScaled,
        gate_limit: Some(7.0),
        cuts_gates: true,
        ..WINDOWS_TURNED
    },
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
    Family { name: "gptj", turn: Turn::Neighbours, flow: Flow::Parallel, ..NEOX },
    Family { name: "nemotron", activation: Activation::ReluSquared, flow: Flow::Before, ..NEOX },
    Family { name: "jais", activation: Activation::Silu, scaled_by_size: true, ..GPT2 },
    Family { name: "jais2", turn: Turn::Halves, activation: Activation::ReluSquared, ..GPT2 },
    Family { name: "orion", centred: true, ..QWEN },
    Family { name: "stablelm", centred: true, flow: Flow::ParallelWithoutNorm, ..QWEN },
    Family { name: "olmo", centred: true, bare_norms: true, ..LLAMA },
    COMMAND_R,
    Family {
        name: "cohere2",
        local_of: 4,
        always_windowed: true,
        turned_windows: true,
        local_rope: LocalRope::Global,
        ..COMMAND_R
    },
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
        local_rope: LocalRope::Own,
        ..BERT
    },
    T5_ENCODER,
    // The whole of T5.
    Family {
        name: "t5",
        encoder: false,
        front: Some(&Family { name: "t5", ..T5_ENCODER }),
        prefix: "dec.",
        output_norm: "dec.output_norm",
        ..T5_ENCODER
    },
    Family { name: "eurobert", encoder: true, ..QWEN },
    Family { name: "llama-embed", encoder: true, ahead_by_key: true, ..LLAMA },
    Family { name: "neo-bert", encoder: true, output_norm: "enc.output_norm", ..LLAMA },
    Family { name: "gemma-embedding", encoder: true, always_windowed: true, scaled_by_width_at: 0, ..GEMMA3 },
    Family { name: "gemma-embedding2", encoder: true, projects: true, local_of: 6, ..GEMMA4 },
];
