//! Names of the models that tests of GGUF files take.

/// Architectures of `conformance/models/gguf_families.py`.
pub(crate) const FAMILIES: [&str; 48] = [
    "mamba",
    "mamba-normed",
    "mamba2",
    "jamba",
    "mimo2",
    "step35",
    "openelm",
    "minicpm3",
    "bitnet",
    "paddleocr",
    "hunyuan_vl",
    "jais2",
    "gemma3n",
    "gemma4",
    "gemma4-moe",
    "apertus",
    "plamo3",
    "smallthinker",
    "llama4",
    "exaone-moe",
    "afmoe",
    "granitehybrid",
    "granitehybrid-moe",
    "falcon-h1",
    "nemotron_h",
    "nemotron_h_moe",
    "qwen3next",
    "qwen35",
    "qwen35moe",
    "lfm2",
    "lfm2moe",
    "qwen2vl",
    "qwen3vl",
    "qwen3vlmoe",
    "hunyuan-dense",
    "hunyuan-moe",
    "ernie4_5-moe",
    "glm4moe",
    "mistral3",
    "minimax-m2",
    "bailingmoe",
    "bailingmoe2",
    "pangu-embedded",
    "dbrx",
    "deepseek2",
    "deepseek2-unfolded",
    "mistral4",
    "maincoder",
];

/// Models whose layers keep a state, one of each kind.
pub(crate) const RECURRENT: [&str; 6] = ["lfm2", "falcon-h1", "nemotron_h", "qwen3next", "mamba", "jamba"];

/// Encoders of `conformance/models/gguf_families.py`.
pub(crate) const ENCODERS: [&str; 6] =
    ["gemma-embedding", "jina-bert-v3", "modern-bert", "eurobert", "llama-embed", "neo-bert"];

/// Decoders without states, one of each kind of attention, of experts and of layers that share caches.
pub(crate) const STEPPED: [&str; 18] = [
    "llama",
    "gemma3",
    "gemma4",
    "qwen3moe",
    "deepseek2",
    "deepseek2-unfolded",
    "mistral4",
    "glm4moe",
    "ernie4_5-moe",
    "hunyuan-moe",
    "bailingmoe2",
    "exaone-moe",
    "afmoe",
    "llama4",
    "apertus",
    "smallthinker",
    "mimo2",
    "step35",
];
