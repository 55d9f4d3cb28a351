//! GGUF models that programs draw by lot, on the host beside llama.cpp.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::{fs, path::PathBuf};

use crate::gguf::{apart_from_llama_cpp, bytes, graph, open};

/// More models, in a folder that a variable names, such as those that `conformance/models/gguf_plamo2.py` draws.
#[test]
fn named_models_have_the_logits_of_llama_cpp() {
    let Some(folder) = std::env::var_os("HALITE_GGUF_MODELS") else {
        eprintln!("SKIPPED: HALITE_GGUF_MODELS names no folder");
        return;
    };
    let mut all: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    all.retain(|path| path.extension().is_some_and(|end| end == "gguf"));
    all.sort();
    let apart = |path: &PathBuf| {
        let apart =
            apart_from_llama_cpp(fs::read(path).unwrap(), &fs::read(path.with_extension("json")).unwrap());
        println!("{}: {apart:?}", path.display());
        apart
    };
    let wrong: Vec<&PathBuf> =
        all.iter().filter(|path| !apart(path).iter().all(|apart| *apart < 0.08)).collect();
    assert!(!all.is_empty() && wrong.is_empty(), "{} of {}: {wrong:?}", wrong.len(), all.len());
}

/// What is told of a file in which a text is another, as long.
fn told(name: &str, from: &str, to: &str) -> String {
    let mut file = bytes(name);
    assert_eq!(from.len(), to.len());
    let at = file.windows(from.len()).position(|own| own == from.as_bytes()).unwrap();
    file[at..at + to.len()].copy_from_slice(to.as_bytes());
    match open(file).and_then(|model| graph(&model, 1)) {
        Ok(_) => panic!("{name} is taken with {to}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn what_layers_with_states_and_loops_lack_is_told_by_its_name() {
    for (name, from, to) in [
        ("kimi-linear", "kimi-linear.kda.head_dim", "kimi-linear.kda.head_dix"),
        ("kimi-linear", "kimi-linear.ssm.conv_kernel", "kimi-linear.ssm.conv_kernex"),
        ("kimi-linear", "blk.2.ssm_conv1d_v.weight", "blk.2.ssm_conv1d_x.weight"),
        ("kimi-linear", "blk.0.ssm_f_b.weight", "blk.0.ssm_f_x.weight"),
        ("kimi-k3", "blk.1.ffn_res_score.weight", "blk.1.ffn_res_scorx.weight"),
        ("kimi-k3", "kimi-k3.activation.situ_beta", "kimi-k3.activation.situ_betx"),
        ("bailingmoe3", "bailingmoe3.kda.gate_lower_bound", "bailingmoe3.kda.gate_lower_bounx"),
        ("bailingmoe3", "blk.0.ssm_g_a.weight", "blk.0.ssm_g_x.weight"),
        ("minimax-01", "minimax-01.residual_scale", "minimax-01.residual_scalx"),
        ("minimax-01", "blk.0.attn_gate.weight", "blk.0.attn_gatx.weight"),
        ("muse-glimmer", "blk.1.post_ffw_norm.weight", "blk.1.post_ffw_norx.weight"),
        (
            "k2-horizon",
            "k2-horizon.attention.value_expert_used_count",
            "k2-horizon.attention.value_expert_used_counx",
        ),
        ("k2-horizon", "blk.1.attn_v_gate.weight", "blk.1.attn_v_gatx.weight"),
        ("dots3note", "dots3note.attention.kv_lora_rank_swa", "dots3note.attention.kv_lora_rank_swx"),
        ("deepseek32", "deepseek32.attention.indexer.top_k", "deepseek32.attention.indexer.top_x"),
        ("deepseek32", "blk.1.indexer.k_norm.weight", "blk.1.indexer.k_norx.weight"),
        ("glm-dsa", "blk.0.indexer.attn_q_b.weight", "blk.0.indexer.attn_q_x.weight"),
        ("hy_v4", "hy_v4.hyper_connection.magnitude", "hy_v4.hyper_connection.magnitudx"),
        ("hy_v4", "blk.0.hc_ffn_fn.weight", "blk.0.hc_ffn_fx.weight"),
        ("hy_v4", "output_hc_base.weight", "output_hc_basx.weight"),
        ("minimax-m3", "minimax-m3.attention.indexer.block_size", "minimax-m3.attention.indexer.block_sizx"),
        ("minimax-m3", "blk.1.indexer.q_proj.weight", "blk.1.indexer.q_prox.weight"),
        ("nanbeige", "nanbeige.num_loops", "nanbeige.num_loopx"),
        ("maion-coder", "blk.1.ffn_latent_up.weight", "blk.1.ffn_latent_ux.weight"),
        ("talkie", "blk.1.layer_output_scale.weight", "blk.1.layer_output_scalx.weight"),
    ] {
        let text = told(&format!("{name}.gguf"), from, to);
        assert!(text.contains(from) || text.contains(to), "{name}: {text}");
    }
}
