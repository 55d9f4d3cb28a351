//! What is told of a file whose architecture is not known: which of its tensors no known architecture has, and what they are for.

use std::collections::BTreeSet;

use super::{families::FAMILIES, file::File, file::unsupported};
use crate::CompileError;

/// Tensors by the beginnings of their names within a layer or the model, and what they are for, of ideas that are not known.
const IDEAS: &[(&str, &str)] = &[
    ("ssm_", "state-space layers of another kind"),
    ("indexer.", "attention to keys that an indexer chooses"),
    ("enc.", "an encoder in front of a decoder"),
    ("dec.", "a decoder behind an encoder"),
    ("cls", "a classifier of texts"),
    ("v.", "a tower for pictures"),
    ("a.", "a tower for sound"),
    ("mm.", "a projection of pictures or sound"),
];

/// Architectures that are known, and why they are refused.
const REASONS: &[(&str, &str)] = &[
    ("clef", DECIDES),
    ("vllm-decision2", DECIDES),
    ("qwen3tts", SPEAKS),
    ("pockettts", SPEAKS),
    ("dream", DIFFUSION),
    ("llada", DIFFUSION),
    ("llada-moe", DIFFUSION),
    ("rnd1", DIFFUSION),
    ("clip", "it sees and hears beside a language model, and writes nothing"),
    ("wavtokenizer-dec", "it makes sound of tokens"),
    ("gemma4-assistant", DRAFTS),
    ("eagle3", DRAFTS),
    ("dflash", DRAFTS),
];
const DIFFUSION: &str =
    "it writes all of a text's tokens at once, in steps that take noise away (diffusion), and not one by one";
const DECIDES: &str =
    "it tells how good answers to questions are, which a caller marks in a text, and writes nothing";
const SPEAKS: &str = "it makes sound of texts";
const DRAFTS: &str = "it guesses tokens for another model, whose states it reads";

/// Beginnings of names of tensors that known architectures have.
const KNOWN: &[&str] = &[
    "token_embd",
    "position_embd",
    "token_types",
    "output",
    "dense_2",
    "dense_3",
    "rope_f",
    "attn_norm",
    "attn_q",
    "attn_k",
    "attn_v",
    "attn_output",
    "attn_gate",
    "attn_sinks",
    "attn_compressor_",
    "attn_rot_embd",
    "post_attention_norm",
    "post_ffw_norm",
    "layer_output_norm",
    "ffn_norm",
    "ffn_gate.",
    "ffn_up.",
    "ffn_down.",
    "ffn_gate_inp",
    "ffn_gate_tid2eid",
    "ffn_gate_exps",
    "ffn_gate_up_exps",
    "ffn_up_exps",
    "ffn_down_exps",
    "ffn_latent_",
    "ffn_gate_shexp",
    "ffn_up_shexp",
    "ffn_down_shexp",
    "exp_probs_b",
    "ffn_norm_exps",
    "ffn_gate_chexps",
    "ffn_up_chexps",
    "ffn_down_chexps",
    "vis_",
    "time_mix_",
    "channel_mix_",
    "nextn.",
    "shortconv.",
    "ssm_in",
    "ssm_conv1d",
    "ssm_dt.",
    "ssm_a",
    "ssm_d",
    "ssm_norm",
    "ssm_out",
    "ssm_b",
    "ssm_c_norm",
    "ssm_f_",
    "ssm_g_",
    "ssm_dt_norm",
    "ssm_x",
    "per_layer_",
    "inp_gate",
    "proj.",
    "post_norm",
    "altup_",
    "laurel_",
    "layer_output_scale",
    "pre_ffw_norm_2",
    "attn_sub_norm",
    "ffn_sub_norm",
    "enc.output_norm",
    "dec.output_norm",
    "cross_attn_",
    "attn_o.",
    "attn_rel_b",
    "hrm.z_l_init",
    "ffn_routed_",
    "attn_res_score",
    "ffn_res_score",
    "ssm_g.",
    "output_hc",
    "hc_attn_",
    "hc_ffn_",
    "ple_",
    "indexer_compressor_",
    "attn_q.lora_",
    "attn_k.lora_",
    "attn_v.lora_",
    "attn_output.lora_",
    "ffn_gate.lora_",
    "ffn_up.lora_",
    "ffn_down.lora_",
    "indexer.k_norm",
    "indexer.k_proj",
    "indexer.q_norm",
    "indexer.q_proj",
    "indexer.proj",
    "indexer.attn_k",
    "indexer.attn_q_b",
];

/// Most names of tensors in the message.
const MOST_NAMES: usize = 6;

/// The name of a tensor within its layer, or in the model.
fn part(name: &str) -> &str {
    let inner = ["enc.", "dec."].iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
    let in_layer = inner.strip_prefix("blk.").and_then(|rest| rest.split_once('.'));
    in_layer.filter(|(layer, _)| layer.parse::<u64>().is_ok()).map_or(name, |(_, part)| part)
}

/// The error that a file's architecture is not known.
pub(super) fn refused(name: &str, file: &File) -> CompileError {
    let begins = |part: &str, list: &[&str]| list.iter().any(|own| part.starts_with(own));
    let foreign: BTreeSet<&str> = file.names().filter(|name| !begins(part(name), KNOWN)).collect();
    let ideas: BTreeSet<&str> = foreign
        .iter()
        .filter_map(|name| IDEAS.iter().find(|(own, _)| part(name).starts_with(own)))
        .map(|(_, what)| *what)
        .collect();
    // One name stands for those of all layers.
    let named = |name: &&str| match part(name) {
        part if part.len() == name.len() => part.to_owned(),
        part => format!("blk.*.{part}"),
    };
    let names: BTreeSet<String> = foreign.iter().map(named).collect();
    let shown: Vec<&str> = names.iter().take(MOST_NAMES).map(String::as_str).collect();
    let shown = format!("{}{}", shown.join(", "), if names.len() > MOST_NAMES { ", …" } else { "" });
    let reason = REASONS.iter().find(|(own, _)| *own == name).map(|(_, reason)| *reason);
    let missing = match (names.is_empty(), ideas.is_empty()) {
        _ if reason.is_some() => reason.unwrap_or_default().to_owned(),
        (true, _) => "its tensors are of known kinds, but not how it puts them together".to_owned(),
        (_, true) => format!("no known architecture has its tensors {shown}"),
        _ => {
            let ideas: Vec<&str> = ideas.into_iter().collect();
            format!("what is missing: {} ({shown})", ideas.join("; "))
        }
    };
    let known = FAMILIES.iter().map(|family| family.name).collect::<Vec<_>>().join(", ");
    unsupported(format!("the architecture '{name}' ('general.architecture'); {missing}; there are: {known}"))
}
