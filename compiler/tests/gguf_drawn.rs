//! GGUF models that programs draw by lot, on the host beside llama.cpp.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::{fs, path::PathBuf};

use halite_compiler::{
    Control, Precision,
    frontends::CacheFormats,
    graph::Graph,
    passes::{Pass, optimize_with},
};
use halite_ops::{Values, blocks::BlockFormat};

use crate::gguf::{apart_from_llama_cpp, bytes, furthest, graph, open};

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

/// Models, and what is another text in them.
const LACKING: [(&str, &str, &str); 45] = [
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
    ("qwen4exp", "qwen4exp.hyper_connection.low_rank", "qwen4exp.hyper_connection.low_ranx"),
    ("qwen4exp", "blk.1.indexer.k_proj.weight", "blk.1.indexer.k_prox.weight"),
    ("qwen4exp", "blk.2.ple_norm_conv.weight", "blk.2.ple_norm_conx.weight"),
    ("qwen4exp", "qwen4exp.ple.layer_multipliers", "qwen4exp.ple.layer_multiplierx"),
    ("qwen4exp", "output_hc_up.weight", "output_hc_ux.weight"),
    (
        "glm5-next",
        "glm5-next.attention.indexer.kpool_select_tail",
        "glm5-next.attention.indexer.kpool_select_taix",
    ),
    ("glm5-next", "blk.1.indexer_compressor_ape.weight", "blk.1.indexer_compressor_apx.weight"),
    ("deepseek4", "deepseek4.attention.output_lora_rank", "deepseek4.attention.output_lora_ranx"),
    (
        "deepseek4",
        "deepseek4.attention.compress_rope_freq_base",
        "deepseek4.attention.compress_rope_freq_basx",
    ),
    ("deepseek4", "deepseek4.hash_layer_count", "deepseek4.hash_layer_counx"),
    ("deepseek4", "blk.1.attn_compressor_gate.weight", "blk.1.attn_compressor_gatx.weight"),
    ("deepseek4", "blk.3.indexer_compressor_norm.weight", "blk.3.indexer_compressor_norx.weight"),
    ("deepseek4", "blk.0.ffn_gate_tid2eid.weight", "blk.0.ffn_gate_tid2eix.weight"),
    ("deepseek4", "blk.2.attn_sinks.weight", "blk.2.attn_sinkx.weight"),
    (
        "glm5-next",
        "glm5-next.hyper_connection.sinkhorn_iterations",
        "glm5-next.hyper_connection.sinkhorn_iterationx",
    ),
    ("graniteswitch", "graniteswitch.adapters.lora_rank", "graniteswitch.adapters.lora_ranx"),
    (
        "graniteswitch",
        "graniteswitch.adapters.token_ids_substitute",
        "graniteswitch.adapters.token_ids_substitutx",
    ),
    ("graniteswitch", "blk.1.ffn_down.lora_b", "blk.1.ffn_down.lora_x"),
    ("nanbeige", "nanbeige.num_loops", "nanbeige.num_loopx"),
    ("hrm_text", "hrm_text.hrm.l_cycles", "hrm_text.hrm.l_cyclex"),
    ("hrm_text", "hrm.z_l_init", "hrm.z_l_inix"),
    ("maion-coder", "blk.1.ffn_latent_up.weight", "blk.1.ffn_latent_ux.weight"),
    ("talkie", "blk.1.layer_output_scale.weight", "blk.1.layer_output_scalx.weight"),
];

#[test]
fn what_layers_with_states_and_loops_lack_is_told_by_its_name() {
    for (name, from, to) in LACKING {
        let text = told(&format!("{name}.gguf"), from, to);
        assert!(text.contains(from) || text.contains(to), "{name}: {text}");
    }
}

#[test]
fn caches_in_blocks_of_rows_that_are_no_whole_blocks_are_refused_by_their_sizes() {
    let in_blocks = |name: &str| {
        let formats = CacheFormats { keys: Some(BlockFormat::Q8_0), values: Some(BlockFormat::Q8_0) };
        open(bytes(&format!("{name}.gguf"))).unwrap().hold_caches(formats).map_err(|error| error.to_string())
    };
    for name in ["deepseek32", "glm-dsa", "kimi-linear", "bailingmoe3", "dots3note"] {
        let text = in_blocks(name).unwrap_err();
        assert!(
            text.contains("rows of 48 elements are no blocks of 32, as a cache in q8_0"),
            "{name}: {text}"
        );
    }
    for name in ["minimax-m3", "deepseek4"] {
        assert_eq!(in_blocks(name), Ok(()), "{name}");
    }
}

/// How far logits of a graph are from those before passes, with the first pass behind which they are further than that.
fn moved_by_passes(name: &str, file: Vec<u8>) -> Option<String> {
    let tokens: Vec<i64> = (0..9).map(|place| (place * 37 + 5) % 250 + 3).collect();
    let model = open(file).unwrap();
    let mut whole = graph(&model, tokens.len() as u64).unwrap();
    let count = tokens.len() as i64;
    let mut inputs =
        vec![Values::Int(tokens), Values::Int((0..count).collect()), Values::Int(vec![count - 1])];
    inputs.extend(
        whole.inputs[3..]
            .iter()
            .map(|port| Values::Float(vec![0.0; whole.tensor(port.tensor).elements() as usize])),
    );
    let wanted = whole.evaluate(&inputs).unwrap().remove(0).floats();
    let mut moved = None;
    let mut look = |pass: Option<&Pass>, graph: &Graph| {
        if moved.is_some() || pass.is_none() {
            return;
        }
        let found = graph.evaluate(&inputs).unwrap().remove(0).floats();
        let apart = furthest(&found, &wanted);
        if apart.is_nan() || apart >= 0.05 {
            moved = pass.map(|pass| format!("{name}: {apart} behind {}", pass.name));
        }
    };
    optimize_with(&mut whole, Precision::Model, &Control::default(), &mut look).unwrap();
    moved
}

#[test]
fn passes_leave_logits_as_they_are() {
    let named = std::env::var("HALITE_GGUF_MODEL").ok();
    let all: Vec<(String, Vec<u8>)> = match named {
        Some(path) => vec![(path.clone(), fs::read(path).unwrap())],
        None => ["bailingmoe3", "kimi-k3", "minimax-01", "k2-horizon", "dots3note", "spark2_5"]
            .map(|name| (name.to_owned(), bytes(&format!("{name}.gguf"))))
            .into(),
    };
    let moved: Vec<String> =
        all.into_iter().filter_map(|(name, file)| moved_by_passes(&name, file)).collect();
    assert!(moved.is_empty(), "{moved:?}");
}

#[test]
fn experts_that_there_are_not_are_refused() {
    let mut file = bytes("deepseek4.gguf");
    // Two numbers of experts for each token, of which there are eight.
    let table = |own: &[u8]| {
        let small = own.chunks_exact(4).all(|one| one[0] < 8 && one[1..] == [0, 0, 0]);
        small && (0..8).all(|expert| own.chunks_exact(4).any(|one| one[0] == expert))
    };
    let place = (0..file.len() - 512).step_by(32).find(|at| table(&file[*at..at + 512])).unwrap();
    assert!(graph(&open(file.clone()).unwrap(), 3).is_ok());
    file[place] = 8;
    let text = graph(&open(file).unwrap(), 3).unwrap_err().to_string();
    assert!(text.contains("'blk.0.ffn_gate_tid2eid.weight' has the number 8"), "{text}");
}

#[test]
fn counts_of_any_size_are_taken_or_refused() {
    for name in ["qwen4exp", "glm5-next", "graniteswitch", "gemma-embedding2", "deepseek4"] {
        let file = bytes(&format!("{name}.gguf"));
        // Keys have their length and their text, the type of a count, 4, and the count.
        let key = format!("{name}.");
        let places = file.windows(key.len()).enumerate().filter(|(_, own)| *own == key.as_bytes());
        for start in places.map(|(at, _)| at) {
            let length = u64::from_le_bytes(file[start - 8..start].try_into().unwrap()) as usize;
            let kind = start + length;
            if file[kind..kind + 4] != 4_u32.to_le_bytes() {
                continue;
            }
            for count in [0_u32, 3, u32::MAX] {
                let mut other = file.clone();
                other[kind + 4..kind + 8].copy_from_slice(&count.to_le_bytes());
                // None of them ends the program.
                let _either = open(other).and_then(|model| graph(&model, 9));
            }
        }
    }
}
