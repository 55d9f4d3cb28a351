//! Keys that some architectures read alone. Converters write them for others, too; there llama.cpp leaves them alone, and so do its users'
//! models.

/// Keys without what they begin with, and the architectures that read them.
const READ_BY: &[(&str, &[&str])] = &[
    ("attention.scale", GRANITE),
    (
        "residual_scale",
        &["granite", "granitemoe", "granitehybrid", "granite_swa", "graniteswitch", "minicpm", "minimax-01"],
    ),
    (
        "embedding_scale",
        &[
            "granite",
            "granitemoe",
            "granitehybrid",
            "granite_swa",
            "graniteswitch",
            "minicpm",
            "grok",
            "hrm_text",
        ],
    ),
    (
        "logit_scale",
        &[
            "granite",
            "granitemoe",
            "granitehybrid",
            "granite_swa",
            "graniteswitch",
            "minicpm",
            "grok",
            "command-r",
            "cohere2",
            "cohere2moe",
            "muse-glimmer",
            "talkie",
        ],
    ),
    ("final_logit_softcapping", &["gemma2", "gemma3", "gemma4", "grok", "muse-glimmer"]),
    ("attn_logit_softcapping", &["gemma2", "grok"]),
    ("attention.clamp_kqv", &["dbrx", "mpt", "olmo"]),
    ("attention.max_alibi_bias", &["mpt", "jais"]),
    ("attention.value_scale", &["mimo2"]),
    ("attention.temperature_scale", &["deepseek2", "mistral3", "mistral4"]),
    ("attention.temperature_length", &["deepseek2", "mistral4"]),
    ("attention.rope_pattern", &["granite_swa"]),
    ("swin_norm", &["chameleon"]),
    ("rope.scaling.yarn_ext_factor", &["grok"]),
    ("rope.scaling.yarn_attn_factor", &["grok"]),
    ("swiglu_clamp_exp", &["step35", "maple", "hy_v4", "bailingmoe3", "deepseek4", "glm5-next"]),
    ("swiglu_clamp_shexp", &["step35", "bailingmoe3", "deepseek4", "glm5-next"]),
    ("attn_res.block_size", &["kimi-k3"]),
    ("kda.gate_lower_bound", &["bailingmoe3", "glm5-next", "kimi-k3"]),
    ("rescale_every_n_layers", &["rwkv6", "rwkv6qwen2"]),
    ("rope.scaling.yarn_log_multiplier", &["deepseek2", "deepseek32", "mistral3", "mistral4"]),
    ("rope.scaling.yarn_beta_fast", &["grok", "k2-horizon", "laguna", "mistral3"]),
    ("rope.scaling.yarn_beta_slow", &["grok", "k2-horizon", "laguna", "mistral3"]),
    (
        "expert_weights_scale",
        &[
            "afmoe",
            "bailingmoe",
            "bailingmoe2",
            "bailingmoe3",
            "cohere2moe",
            "deepseek",
            "deepseek2",
            "deepseek32",
            "deepseek4",
            "deepseek2-ocr",
            "dots1",
            "dots3note",
            "exaone-moe",
            "glm-dsa",
            "glm5-next",
            "glm4moe",
            "hy_v3",
            "hy_v4",
            "kimi-k3",
            "kimi-linear",
            "k2-horizon",
            "laguna",
            "minimax-m3",
            "mistral4",
            "nemotron_h_moe",
            "step35",
        ],
    ),
    (
        "expert_weights_norm",
        &[
            "afmoe",
            "bailingmoe",
            "bailingmoe2",
            "bailingmoe3",
            "cohere2moe",
            "deepseek2",
            "deepseek32",
            "deepseek4",
            "deepseek2-ocr",
            "dots1",
            "dots3note",
            "exaone-moe",
            "glm-dsa",
            "glm5-next",
            "glm4moe",
            "hy_v3",
            "hy_v4",
            "kimi-k3",
            "k2-horizon",
            "laguna",
            "mellum",
            "minimax-m3",
            "mistral4",
            "nemotron_h_moe",
            "step35",
        ],
    ),
    (
        "expert_gating_func",
        &[
            "afmoe",
            "bailingmoe2",
            "bailingmoe3",
            "cohere2moe",
            "deepseek2",
            "deepseek32",
            "deepseek4",
            "deepseek2-ocr",
            "dots1",
            "dots3note",
            "exaone-moe",
            "glm-dsa",
            "glm5-next",
            "glm4moe",
            "hy_v3",
            "hy_v4",
            "kimi-k3",
            "kimi-linear",
            "k2-horizon",
            "laguna",
            "lfm2moe",
            "mellum",
            "minimax-m2",
            "minimax-m3",
            "mistral4",
            "smallthinker",
            "step35",
        ],
    ),
];
const GRANITE: &[&str] = &["granite", "granitemoe", "granitehybrid", "granite_swa", "graniteswitch"];

/// Tensors that may be in the files of some architectures and that llama.cpp leaves alone.
const LEFT_ALONE: &[(&str, &[&str])] = &[
    ("attn_output.bias", &["ernie4_5", "ernie4_5-moe", "falcon-h1"]),
    ("output.bias", &["qwen2vl"]),
    ("rope_freqs.weight", &["cogvlm", "falcon-h1", "pangu-embedded"]),
];

/// Whether nothing becomes of a tensor of a model or a layer.
pub(super) fn leaves_alone(family: &str, part: &str) -> bool {
    LEFT_ALONE.iter().any(|(own, families)| *own == part && families.contains(&family))
}

/// Whether an architecture reads a key.
pub(super) fn reads(family: &str, name: &str) -> bool {
    // The rotary embedding of the first is always the plain one, and the other's is always that of whole heads.
    let is_other = match family {
        "cogvlm" => name == "rope.freq_base" || name.starts_with("rope.scal"),
        "deepseek2-ocr" => name == "rope.dimension_count",
        _ => false,
    };
    if is_other {
        return false;
    }
    READ_BY.iter().find(|(key, _)| *key == name).is_none_or(|(_, families)| families.contains(&family))
}

#[cfg(test)]
mod tests {
    use super::{LEFT_ALONE, READ_BY, reads};
    use crate::frontends::gguf::families::FAMILIES;

    #[test]
    fn keys_are_those_of_the_architectures_that_read_them() {
        assert!(reads("granite", "attention.scale") && !reads("llama", "attention.scale"));
        assert!(reads("llama", "rope.freq_base") && !reads("cogvlm", "rope.freq_base"));
        for name in READ_BY.iter().chain(LEFT_ALONE).flat_map(|(_, families)| *families) {
            assert!(FAMILIES.iter().any(|family| family.name == *name), "{name}");
        }
    }
}
