"""Small random GGUF models of architectures that gguf_tiny.py's do not stand for, as data: keys and tensors of each, with what
llama.cpp makes of them. gguf_tiny.py writes them too.

A layer is a list of `NAME ROWS COLUMNS` (matrices), `NAME COUNT ROWS COLUMNS` (of experts, or heads) and `NAME LENGTH` (vectors).
"""

import json
import os
import tempfile

import numpy as np
from gguf import GGMLQuantizationType as Type, GGUFValueType, GGUFWriter, RopeScalingType, dequantize, quantize

from gguf_sizes import (
    BARE, CONTEXT, DIM, EXPERT_INNER, EXPERTS, HEADS, INNER, KDA, KDA_TAPS, KV_HEADS, Q_RANK, RANK, SHORT, SSM_GROUPS, SSM_HEADS, SSM_INNER, SSM_STATE,
    SSM_TAPS, TURNED, VALUE, WIDTH,
)  # fmt: skip

# Tokens of the prompt, and how many come one by one behind it.
PROMPT, STEPS = 40, 6

NORM = ["attn_norm", WIDTH]


def attention(dim, fused=False):
    """Queries, keys, values and what comes behind, with heads of `dim` elements."""
    parts = [[f"attn_{name}", heads * dim, WIDTH] for name, heads in (("q", HEADS), ("k", KV_HEADS), ("v", KV_HEADS))]
    if fused:
        parts = [["attn_qkv", (HEADS + 2 * KV_HEADS) * dim, WIDTH]]
    return [NORM, *parts, ["attn_output", WIDTH, HEADS * dim]]


def biases(dim):
    """Biases of queries, keys and values."""
    return [[f"attn_{name}.bias", heads * dim] for name, heads in (("q", HEADS), ("k", KV_HEADS), ("v", KV_HEADS))]


PLAIN, QKV_BIAS = attention(DIM), biases(DIM)
# Some of llama.cpp's models have no sizes of heads in their metadata.
SMALL = WIDTH // HEADS
SMALL_KEYS = {"attention.key_length": SMALL, "attention.value_length": SMALL, "rope.dimension_count": SMALL}
HEAD_NORMS = [["attn_q_norm", DIM], ["attn_k_norm", DIM]]
SMALL_NORMS = [["attn_q_norm", SMALL], ["attn_k_norm", SMALL]]
GEGLU = [["ffn_up", 2 * INNER, WIDTH], ["ffn_down", WIDTH, INNER]]
DENSE = [["ffn_gate", INNER, WIDTH], ["ffn_up", INNER, WIDTH], ["ffn_down", WIDTH, INNER]]
ROUTED = [["ffn_gate_inp", EXPERTS, WIDTH]] + [
    [f"ffn_{name}_exps", EXPERTS, *([WIDTH, EXPERT_INNER] if name == "down" else [EXPERT_INNER, WIDTH])] for name in ("gate", "up", "down")
]
ROUTED_WIDE = [["ffn_gate_inp", EXPERTS, WIDTH]] + [
    [f"ffn_{name}_exps", EXPERTS, *([WIDTH, INNER] if name == "down" else [INNER, WIDTH])] for name in ("gate", "up", "down")
]
SHARED = [["ffn_gate_shexp", EXPERT_INNER, WIDTH], ["ffn_up_shexp", EXPERT_INNER, WIDTH], ["ffn_down_shexp", WIDTH, EXPERT_INNER]]
CHOICE = [["exp_probs_b.bias", EXPERTS]]
FEED_NORM = [["ffn_norm", WIDTH]]
FUSED = [["attn_qkv", 3 * WIDTH, WIDTH], ["attn_output", WIDTH, WIDTH]]
POST_NORM = [["post_attention_norm", WIDTH]]
# What is kept of a layer that guesses tokens further on, which no text needs.
NEXT = [["nextn.eh_proj", WIDTH, 2 * WIDTH], ["nextn.enorm", WIDTH], ["nextn.hnorm", WIDTH]]

MIXTURE = {"expert_count": EXPERTS, "expert_used_count": 2, "expert_feed_forward_length": EXPERT_INNER, "expert_shared_count": 1}
LATE_EXPERTS = {**MIXTURE, "leading_dense_block_count": 1}
YARN = {"rope.scaling.type": RopeScalingType.YARN.value, "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 16}
SECTIONS = {"rope.dimension_sections": [8, 4, 4, 0]}

LATENT_KEYS = {
    "attention.q_lora_rank": Q_RANK, "attention.kv_lora_rank": RANK, "rope.dimension_count": TURNED,
    "attention.head_count_kv": 1, "attention.key_length": RANK + TURNED, "attention.value_length": RANK,
    "attention.key_length_mla": BARE + TURNED, "attention.value_length_mla": VALUE,
}  # fmt: skip
UNFOLDED_KEYS = {
    "attention.q_lora_rank": Q_RANK, "attention.kv_lora_rank": RANK, "rope.dimension_count": TURNED, "attention.head_count_kv": HEADS,
    "attention.key_length": BARE + TURNED, "attention.value_length": VALUE,
}  # fmt: skip
LATENT_KV = [["attn_kv_a_mqa", RANK + TURNED, WIDTH], ["attn_kv_a_norm", RANK], ["attn_output", WIDTH, HEADS * VALUE]]
LATENT_Q = [["attn_q_a", Q_RANK, WIDTH], ["attn_q_a_norm", Q_RANK], ["attn_q_b", HEADS * (BARE + TURNED), Q_RANK]]
FOLDED = [["attn_k_b", HEADS, RANK, BARE], ["attn_v_b", HEADS, VALUE, RANK]]
UNFOLDED = [["attn_kv_b", HEADS * (BARE + VALUE), RANK]]
LATENT = [NORM, *LATENT_Q, *LATENT_KV, *FOLDED, *FEED_NORM]
OLD_LATENT = [NORM, *LATENT_Q, *UNFOLDED, *LATENT_KV, *FEED_NORM]

# File, architecture, keys, layers. `vocab_size` and the like come with all.
CASES = {
    "qwen2vl": ("qwen2vl", {**SMALL_KEYS, "rope.dimension_sections": [2, 3, 3, 0]}, [[*attention(SMALL), *biases(SMALL), *FEED_NORM, *DENSE]]),
    "qwen3vl": ("qwen3vl", SECTIONS, [[*PLAIN, *HEAD_NORMS, *FEED_NORM, *DENSE]]),
    "qwen3vlmoe": ("qwen3vlmoe", {**SECTIONS, **MIXTURE}, [[*PLAIN, *HEAD_NORMS, *FEED_NORM, *ROUTED]]),
    "hunyuan-dense": ("hunyuan-dense", {}, [[*PLAIN, *HEAD_NORMS, *FEED_NORM, *DENSE]]),
    "hunyuan-moe": (
        "hunyuan-moe", {**MIXTURE, "feed_forward_length": EXPERT_INNER, "expert_shared_feed_forward_length": EXPERT_INNER},
        [[*PLAIN, *HEAD_NORMS, *FEED_NORM, *ROUTED, *SHARED]],
    ),
    "ernie4_5-moe": (
        "ernie4_5-moe", {**LATE_EXPERTS, "interleave_moe_layer_step": 1, "expert_shared_feed_forward_length": EXPERT_INNER},
        [[*PLAIN, *FEED_NORM, *DENSE], [*PLAIN, *FEED_NORM, *ROUTED, *SHARED, *CHOICE]],
    ),
    "glm4moe": (
        "glm4moe",
        {**LATE_EXPERTS, "expert_weights_norm": True, "expert_weights_scale": 1.5, "rope.dimension_count": DIM // 2, "nextn_predict_layers": 1},
        [
            [*PLAIN, *QKV_BIAS, *HEAD_NORMS, *POST_NORM, *DENSE],
            [*PLAIN, *QKV_BIAS, *HEAD_NORMS, *POST_NORM, *ROUTED, *SHARED, *CHOICE],
            [*PLAIN, *QKV_BIAS, *HEAD_NORMS, *POST_NORM, *ROUTED, *SHARED, *CHOICE, *NEXT],
        ],
    ),
    "mistral3": (
        "mistral3", {**YARN, "rope.scaling.yarn_log_multiplier": 1.0, "attention.temperature_scale": 0.1},
        [[*PLAIN, *FEED_NORM, *DENSE]] * 2,
    ),
    "minimax-m2": (
        "minimax-m2", {**MIXTURE, "feed_forward_length": EXPERT_INNER, "expert_gating_func": 2, "rope.dimension_count": DIM // 2},
        [[*PLAIN, ["attn_q_norm", HEADS * DIM], ["attn_k_norm", KV_HEADS * DIM], *FEED_NORM, *ROUTED, *CHOICE]],
    ),
    "bailingmoe": ("bailingmoe", {**MIXTURE, "expert_weights_norm": True, "expert_weights_scale": 1.0}, [[*PLAIN, *FEED_NORM, *ROUTED, *SHARED]]),
    "bailingmoe2": (
        "bailingmoe2",
        {
            **LATE_EXPERTS, "expert_group_count": 4, "expert_group_used_count": 2, "expert_weights_norm": True,
            "expert_weights_scale": 2.5, **SMALL_KEYS, "rope.dimension_count": SMALL // 2, "expert_shared_feed_forward_length": EXPERT_INNER,
            "expert_gating_func": 2,
        },
        [
            [*attention(SMALL, fused=True), *SMALL_NORMS, *FEED_NORM, *DENSE],
            [*attention(SMALL, fused=True), *SMALL_NORMS, *FEED_NORM, *ROUTED, *SHARED, *CHOICE],
        ],
    ),
    "pangu-embedded": ("pangu-embedded", {}, [[*PLAIN, *QKV_BIAS, ["attn_output.bias", WIDTH], *FEED_NORM, *DENSE]]),
    "maincoder": ("maincoder", {}, [[*PLAIN, *HEAD_NORMS, *FEED_NORM, *DENSE]]),
    "dbrx": (
        "dbrx", {**MIXTURE, **SMALL_KEYS, "feed_forward_length": EXPERT_INNER, "attention.clamp_kqv": 1.0, "attention.layer_norm_epsilon": 1e-5},
        [[*attention(SMALL, fused=True), ["attn_output_norm", WIDTH], *ROUTED]],
    ),
    "deepseek2": (
        "deepseek2",
        {
            **LATE_EXPERTS, **LATENT_KEYS, **YARN, "rope.scaling.yarn_log_multiplier": 0.1, "expert_gating_func": 2,
            "expert_weights_norm": True, "expert_weights_scale": 2.5, "expert_group_count": 4, "expert_group_used_count": 2,
        },
        [[*LATENT, *DENSE], [*LATENT, *ROUTED, *SHARED, *CHOICE]],
    ),
    "deepseek2-unfolded": (
        "deepseek2", {**LATE_EXPERTS, **UNFOLDED_KEYS, **YARN, "rope.scaling.yarn_log_multiplier": 0.0707, "expert_weights_scale": 1.0},
        [[*OLD_LATENT, *DENSE], [*OLD_LATENT, *ROUTED, *SHARED]],
    ),
    "deepseek2-yarn": ("deepseek2", {**LATE_EXPERTS, **UNFOLDED_KEYS, **YARN, "expert_weights_scale": 1.0}, [[*OLD_LATENT, *DENSE], [*OLD_LATENT, *ROUTED, *SHARED]]),
    "mistral4": (
        "mistral4",
        {**MIXTURE, **LATENT_KEYS, **YARN, "rope.scaling.yarn_log_multiplier": 0.1, "attention.temperature_scale": 0.1, "attention.temperature_length": 16, "expert_weights_norm": True, "expert_weights_scale": 1.0},
        [[*LATENT, *ROUTED, *SHARED]],
    ),
    "mistral4-yarn": (
        "mistral4", {**MIXTURE, **LATENT_KEYS, **YARN, "rope.scaling.yarn_log_multiplier": 0.05, "expert_weights_norm": True, "expert_weights_scale": 1.0},
        [[*LATENT, *ROUTED, *SHARED]],
    ),
    # Keys that llama.cpp reads in other architectures alone.
    "llama-unread": (
        "llama",
        {
            **YARN, "rope.scaling.yarn_log_multiplier": 0.2, "rope.scaling.yarn_beta_fast": 16.0, "attention.scale": 0.3, "logit_scale": 2.0,
            "residual_scale": 0.5, "embedding_scale": 2.0, "final_logit_softcapping": 5.0, "attn_logit_softcapping": 5.0, "attention.clamp_kqv": 0.5,
            "attention.max_alibi_bias": 8.0,
        },
        [[*PLAIN, *FEED_NORM, *DENSE]],
    ),
    # Windows are those of models of 64 layers.
    "exaone4": (
        "exaone4", {**SMALL_KEYS, "attention.sliding_window": 8},
        [[*attention(SMALL)[1:], *SMALL_NORMS, *POST_NORM, *DENSE, ["post_ffw_norm", WIDTH]]] * 4,
    ),
}  # fmt: skip

# Models with a state of one size in some layers: those have no heads of keys.
TAPS = 3
CONV = [NORM, ["shortconv.in_proj", 3 * WIDTH, WIDTH], ["shortconv.conv", WIDTH, TAPS], ["shortconv.out_proj", WIDTH, WIDTH]]
LFM2_KEYS = {"shortconv.l_cache": TAPS, **SMALL_KEYS, "attention.head_count_kv": [0, KV_HEADS, 0]}
SMALL_ATTENTION = [*attention(SMALL), *SMALL_NORMS]
LFM2_MODEL = [["token_embd_norm", WIDTH]]
CASES |= {
    "lfm2": ("lfm2", LFM2_KEYS, [[*CONV, *FEED_NORM, *DENSE], [*SMALL_ATTENTION, *FEED_NORM, *DENSE], [*CONV, *FEED_NORM, *DENSE]], LFM2_MODEL),
    "lfm2moe": (
        "lfm2moe", {**LFM2_KEYS, **LATE_EXPERTS, "expert_gating_func": 2},
        [[*CONV, *FEED_NORM, *DENSE], [*SMALL_ATTENTION, *FEED_NORM, *ROUTED, *CHOICE], [*CONV, *FEED_NORM, *ROUTED, *CHOICE]], LFM2_MODEL,
    ),
}  # fmt: skip
# State-space layers.
SSM_CONV = SSM_INNER + 2 * SSM_GROUPS * SSM_STATE
SSM_KEYS = {
    "ssm.conv_kernel": SSM_TAPS, "ssm.inner_size": SSM_INNER, "ssm.state_size": SSM_STATE, "ssm.time_step_rank": SSM_HEADS,
    "ssm.group_count": SSM_GROUPS,
}  # fmt: skip
SSM_TAIL = [["ssm_conv1d", SSM_CONV, SSM_TAPS], ["ssm_dt.bias", SSM_HEADS], ["ssm_out", WIDTH, SSM_INNER]]
SSM = [
    *SSM_TAIL, ["ssm_in", SSM_INNER + SSM_CONV + SSM_HEADS, WIDTH], ["ssm_conv1d.bias", SSM_CONV], ["ssm_a", SSM_HEADS, 1], ["ssm_d", SSM_HEADS, 1],
    ["ssm_norm", SSM_GROUPS, SSM_INNER // SSM_GROUPS],
]  # fmt: skip
DELTA = [NORM, *SSM_TAIL, ["ssm_a", SSM_HEADS], ["ssm_norm", SSM_STATE], *POST_NORM]
SPLIT_QKV = [["attn_qkv", SSM_CONV, WIDTH], ["attn_gate", SSM_INNER, WIDTH]]
GATED = [[name, *([2 * dims[0], *dims[1:]] if name == "attn_q" else dims)] for name, *dims in [*PLAIN, *HEAD_NORMS, *POST_NORM]]
STEPS_APART = [["ssm_beta", SSM_HEADS, WIDTH], ["ssm_alpha", SSM_HEADS, WIDTH]]
DELTA_KEYS = {**SSM_KEYS, "full_attention_interval": 2, "rope.dimension_count": DIM // 2}
SHARED_GATED = [*ROUTED, *SHARED, ["ffn_gate_inp_shexp", WIDTH]]
JOINED_GATED = [["ffn_gate_up_exps", EXPERTS, 2 * EXPERT_INNER, WIDTH], *(part for part in SHARED_GATED if part[0] not in ("ffn_gate_exps", "ffn_up_exps"))]
SHARED_KEYS = {**MIXTURE, "expert_shared_feed_forward_length": EXPERT_INNER}
GRANITE = {**SSM_KEYS, "attention.head_count_kv": [0, KV_HEADS], "embedding_scale": 3.0, "residual_scale": 0.5, "logit_scale": 2.0, "attention.scale": 0.1}
BARE_EXPERTS = [part for part in ROUTED + SHARED if part[0] not in ("ffn_gate_exps", "ffn_gate_shexp")]
CASES |= {
    "granitehybrid": ("granitehybrid", {**GRANITE, "rope.scaling.finetuned": False}, [[NORM, *SSM, *FEED_NORM, *DENSE], [*PLAIN, *FEED_NORM, *DENSE]]),
    "granitehybrid-moe": (
        "granitehybrid", {**GRANITE, **SHARED_KEYS, "feed_forward_length": EXPERT_INNER}, [[NORM, *SSM, *FEED_NORM, *ROUTED, *SHARED], [*PLAIN, *FEED_NORM, *ROUTED, *SHARED]],
    ),
    "falcon-h1": ("falcon-h1", SSM_KEYS, [[*PLAIN, *SSM, ["ffn_norm!", WIDTH], *DENSE]] * 2),
    "nemotron_h": (
        "nemotron_h", {**SSM_KEYS, "attention.layer_norm_epsilon": 1e-5, "attention.head_count_kv": [0, KV_HEADS, 0, 0], "feed_forward_length": [0, 0, INNER, 0]},
        [[NORM, *SSM], PLAIN, [NORM, *DENSE[1:]], [NORM, *SSM]],
    ),
    "nemotron_h_moe": (
        "nemotron_h_moe",
        {**SSM_KEYS, **SHARED_KEYS, "attention.layer_norm_epsilon": 1e-5, "expert_weights_norm": True, "expert_weights_scale": 2.5, "attention.head_count_kv": [0, KV_HEADS, 0], "feed_forward_length": [0, 0, INNER]},
        [[NORM, *SSM], PLAIN, [NORM, *BARE_EXPERTS, *CHOICE]],
    ),
    "qwen3next": (
        "qwen3next", {**DELTA_KEYS, **SHARED_KEYS},
        [[*DELTA, *SPLIT_QKV, ["ssm_ba", 2 * SSM_HEADS, WIDTH], *SHARED_GATED], [*GATED, *SHARED_GATED], [*DELTA, ["ssm_in", SSM_CONV + SSM_INNER, WIDTH], ["ssm_ba", 2 * SSM_HEADS, WIDTH], *SHARED_GATED]],
    ),
    "qwen35": ("qwen35", {**DELTA_KEYS, **SECTIONS}, [[*DELTA, *SPLIT_QKV, *STEPS_APART, *DENSE], [*GATED, *DENSE]]),
    "qwen35moe": (
        "qwen35moe", {**DELTA_KEYS, **SECTIONS, **SHARED_KEYS}, [[*DELTA, *SPLIT_QKV, *STEPS_APART, *SHARED_GATED], [*GATED, *JOINED_GATED]],
    ),
}  # fmt: skip
# Windows and rotary embedding in three layers of four, xIELU, gates with weights of their own.
LOCAL = {"attention.sliding_window": 8, **LATE_EXPERTS, "expert_gating_func": 2, "expert_weights_norm": True, "expert_weights_scale": 2.5}
XIELU = {f"xielu.{name}": values for name, values in (("alpha_p", [0.8, -0.3]), ("alpha_n", [0.5, 0.9]), ("beta", [0.5, 0.4]), ("eps", [-1e-6, -1e-6]))}
GATE = [["attn_gate", HEADS * DIM, WIDTH]]
AFMOE = [*PLAIN, *HEAD_NORMS, *GATE, *POST_NORM, *FEED_NORM, ["post_ffw_norm", WIDTH]]
EXAONE_MOE = [*PLAIN, *HEAD_NORMS, *FEED_NORM]
CASES |= {
    "apertus": ("apertus", XIELU, [[*PLAIN, *HEAD_NORMS, *FEED_NORM, *DENSE[1:]]] * 2),
    "plamo3": (
        "plamo3", {"attention.sliding_window": 8, "rope.freq_base_swa": 5000.0},
        [[*attention(DIM, fused=True), *HEAD_NORMS, ["post_attention_norm!", WIDTH], *FEED_NORM, *GEGLU, ["post_ffw_norm!", WIDTH]]] * 8,
    ),
    "smallthinker": (
        "smallthinker", {**MIXTURE, "attention.sliding_window": 4096, "expert_gating_func": 2, "feed_forward_length": EXPERT_INNER}, [[*PLAIN, *FEED_NORM, *ROUTED]] * 5,
    ),
    "llama4": (
        "llama4", {**MIXTURE, "interleave_moe_layer_step": 2},
        [[*PLAIN, *FEED_NORM, *DENSE], [*PLAIN, *FEED_NORM, *ROUTED, *SHARED]] * 2,
    ),
    "exaone-moe": ("exaone-moe", {**LOCAL, "expert_shared_feed_forward_length": EXPERT_INNER}, [[*EXAONE_MOE, *DENSE], *[[*EXAONE_MOE, *ROUTED, *SHARED, *CHOICE]] * 3]),
    "afmoe": ("afmoe", LOCAL, [[*AFMOE, *DENSE], *[[*AFMOE, *ROUTED, *SHARED, *CHOICE]] * 3]),
}  # fmt: skip
# Rows of tokens for each layer; layers at the end attend to keys of others. llama.cpp knows gemma3n with 256 elements of such a row, four
# states of a token, low-rank paths of 64 and 20 layers with keys of their own alone.
ROW, NARROW, STREAMS, PATH, ROWS = 256, 32, 4, 64, 16
GEMMA_LAYER = [*POST_NORM, *FEED_NORM, *DENSE, ["post_ffw_norm", WIDTH]]


def row_parts(length, layers):
    """The tensors of the rows that tokens have for each layer, in a model and in a layer."""
    model = [["per_layer_token_embd", ROWS, length * layers], ["per_layer_model_proj", length * layers, WIDTH], ["per_layer_proj_norm", length]]
    return model, [["inp_gate", length, WIDTH], ["proj", WIDTH, length], ["post_norm", WIDTH]]


def gemma4_layer(dim, kv_heads, parts):
    """A layer whose heads have `dim` elements; without heads of keys it shares those of another, and values may be keys."""
    keys = [["attn_k", kv_heads * dim, WIDTH], ["attn_k_norm", dim]] if kv_heads else []
    values = [["attn_v", kv_heads * dim, WIDTH]] if kv_heads and dim == DIM else []
    attention = [NORM, ["attn_q", HEADS * dim, WIDTH], ["attn_q_norm", dim], *keys, *values, ["attn_output", WIDTH, HEADS * dim]]
    return [*attention, *GEMMA_LAYER, *parts, ["layer_output_scale", 1]]


GEMMA3N_LAYERS, GEMMA4_LAYERS = 22, 6
GEMMA3N_MODEL, GEMMA3N_ROW = row_parts(ROW, GEMMA3N_LAYERS)
GEMMA4_MODEL, GEMMA4_ROW = row_parts(NARROW, GEMMA4_LAYERS)
GEMMA3N = [
    *PLAIN, *HEAD_NORMS, *GEMMA_LAYER, *GEMMA3N_ROW, ["altup_correct_coef", STREAMS, STREAMS], ["altup_correct_scale", WIDTH],
    ["altup_predict_coef", STREAMS**2, STREAMS], ["altup_router", STREAMS, WIDTH], ["altup_router_norm", WIDTH], ["laurel_l", PATH, WIDTH],
    ["laurel_r", WIDTH, PATH], ["laurel_post_norm", WIDTH],
]  # fmt: skip
# Whether layers attend to a window.
PATTERN = [True, False, True, False, True, False]
GEMMA4_KEYS = {
    "attention.sliding_window": 8, "attention.sliding_window_pattern": PATTERN, "attention.key_length": 2 * DIM, "attention.value_length": 2 * DIM,
    "attention.key_length_swa": DIM, "attention.value_length_swa": DIM, "rope.dimension_count": 2 * DIM, "rope.dimension_count_swa": DIM,
    "rope.freq_base": 1e6, "rope.freq_base_swa": 10000.0, "final_logit_softcapping": 30.0,
}  # fmt: skip
TURNS = [["rope_freqs", DIM]]
GEMMA4_EXPERTS = [
    ["ffn_gate_inp", EXPERTS, WIDTH], ["ffn_gate_inp.scale", WIDTH], ["ffn_gate_up_exps", EXPERTS, 2 * EXPERT_INNER, WIDTH], ["ffn_down_exps", EXPERTS, WIDTH, EXPERT_INNER],
    ["ffn_down_exps.scale", EXPERTS], *[[name, WIDTH] for name in ("pre_ffw_norm_2", "post_ffw_norm_1", "post_ffw_norm_2")],
]  # fmt: skip
CASES |= {
    "gemma3n": (
        "gemma3n",
        {
            "attention.sliding_window": 8, "rope.freq_base": 1e6, "embedding_length_per_layer_input": ROW, "altup.num_inputs": STREAMS,
            "altup.active_idx": 0, "attention.shared_kv_layers": 2,
        },
        [GEMMA3N] * GEMMA3N_LAYERS, [["output_norm", WIDTH], *[[f"altup_{name}", STREAMS - 1, WIDTH, WIDTH] for name in ("proj", "unembd_proj")], *GEMMA3N_MODEL],
    ),
    "gemma4": (
        "gemma4", {**GEMMA4_KEYS, "embedding_length_per_layer_input": NARROW, "attention.shared_kv_layers": 2, "attention.head_count_kv": [2, 1, 2, 1, 2, 1]},
        [gemma4_layer(DIM if local else 2 * DIM, (2 if local else 1) if layer < 4 else 0, GEMMA4_ROW) for layer, local in enumerate(PATTERN)],
        [["output_norm", WIDTH], *TURNS, *GEMMA4_MODEL],
    ),
    "gemma4-moe": (
        "gemma4", {**GEMMA4_KEYS, **MIXTURE, "expert_shared_count": 0, "embedding_length_per_layer_input": 0, "attention.sliding_window_pattern": PATTERN[:2]},
        [gemma4_layer(DIM if local else 2 * DIM, 1, GEMMA4_EXPERTS) for local in PATTERN[:2]], [["output_norm", WIDTH], *TURNS],
    ),
}  # fmt: skip
# State-space layers with a decay for each place of a channel, alone and beside attention.
STEP_RANK = 32
SELECTIVE_KEYS = {"ssm.conv_kernel": SSM_TAPS, "ssm.inner_size": SSM_INNER, "ssm.state_size": SSM_STATE, "ssm.time_step_rank": STEP_RANK}
SELECTIVE = [
    NORM, ["ssm_in", 2 * SSM_INNER, WIDTH], ["ssm_conv1d", SSM_INNER, SSM_TAPS], ["ssm_conv1d.bias", SSM_INNER], ["ssm_x", STEP_RANK + 2 * SSM_STATE, SSM_INNER],
    ["ssm_dt", SSM_INNER, STEP_RANK], ["ssm_dt.bias", SSM_INNER], ["ssm_a", SSM_INNER, SSM_STATE], ["ssm_d", SSM_INNER], ["ssm_out", WIDTH, SSM_INNER],
]  # fmt: skip
STEP_NORMS = [["ssm_dt_norm", STEP_RANK], ["ssm_b_norm", SSM_STATE], ["ssm_c_norm", SSM_STATE]]
JAMBA = {**SELECTIVE_KEYS, **SMALL_KEYS, "attention.head_count_kv": [0, KV_HEADS, 0], "expert_count": EXPERTS, "expert_used_count": 2}
CASES |= {
    "mamba": ("mamba", {**SELECTIVE_KEYS, "attention.head_count": 0}, [SELECTIVE] * 2),
    "mamba-normed": ("mamba", {**SELECTIVE_KEYS, "attention.head_count": 0, "ssm.dt_b_c_rms": True}, [SELECTIVE] * 2),
    "mamba2": ("mamba2", {**SSM_KEYS, "attention.head_count": 0}, [[NORM, *SSM]] * 2),
    "jamba": (
        "jamba", JAMBA,
        [[*SELECTIVE, *STEP_NORMS, *FEED_NORM, *DENSE], [*attention(SMALL), *FEED_NORM, *ROUTED_WIDE], [*SELECTIVE, *STEP_NORMS, *FEED_NORM, *DENSE]],
    ),
}  # fmt: skip
def grown(heads, kv_heads, dim=DIM, value=DIM):
    """Attention of so many heads."""
    return [NORM, ["attn_q", heads * dim, WIDTH], ["attn_k", kv_heads * dim, WIDTH], ["attn_v", kv_heads * value, WIDTH], ["attn_output", WIDTH, heads * value]]


# Windows beside layers that attend to all keys with a longer rotary embedding; gates that have no bound; sinks in all layers.
HY = [*PLAIN, *HEAD_NORMS, *FEED_NORM]
LAGUNA = {**LATE_EXPERTS, "expert_shared_feed_forward_length": EXPERT_INNER, "expert_weights_norm": True, "expert_weights_scale": 2.5}
LAGUNA_HEADS = {"attention.sliding_window": 8, "attention.head_count": [2, 4, 4, 4, 2], "rope.freq_base": 500000.0, "rope.freq_base_swa": 10000.0, "rope.dimension_count": DIM // 2, "rope.dimension_count_swa": DIM}


def laguna(heads, whole):
    """Attention with a gate of each head, or of each element."""
    parts = [NORM, ["attn_q", heads * DIM, WIDTH], ["attn_k", DIM, WIDTH], ["attn_v", DIM, WIDTH], ["attn_output", WIDTH, heads * DIM]]
    return [*parts, *HEAD_NORMS, ["attn_gate", heads * (DIM if whole else 1), WIDTH], *FEED_NORM]


CASES |= {
    "mellum": ("mellum", {**MIXTURE, "expert_shared_count": 0, "attention.sliding_window": 8, **YARN}, [[*HY, *ROUTED]] * 5),
    "hy_v3": (
        "hy_v3", {**LATE_EXPERTS, "expert_shared_feed_forward_length": EXPERT_INNER, "expert_weights_norm": True, "expert_weights_scale": 2.5},
        [[*HY, *DENSE], *[[*HY, *ROUTED, *SHARED, ["exp_probs_b!", EXPERTS]]] * 2],
    ),
    "laguna": ("laguna", {**LAGUNA, **LAGUNA_HEADS, **YARN}, [[*laguna(2, False), *DENSE], *[[*laguna(heads, False), *ROUTED, *SHARED, *CHOICE] for heads in (4, 4, 4, 2)]]),
    "laguna-global": ("laguna", {**LAGUNA, "expert_gating_func": 2}, [[*laguna(2, True), *DENSE], [*laguna(2, True), *ROUTED, *SHARED, *CHOICE]]),
    # Without caps, which llama.cpp takes for 50 and 30 then.
    "gemma2": ("gemma2", {}, [[*PLAIN, *POST_NORM, *FEED_NORM, *DENSE, ["post_ffw_norm", WIDTH]]] * 2, [["output_norm", WIDTH]]),
    "granite_swa": (
        "granite_swa",
        {"attention.sliding_window": 8, "attention.sliding_window_pattern": [True, False, True], "logit_scale": 4.0, "residual_scale": 0.5, "embedding_scale": 2.0, "attention.scale": 0.2},
        [[*PLAIN, ["attn_sinks", HEADS], *FEED_NORM, *DENSE]] * 3, [["output_norm", WIDTH]],
    ),
    "deepseek2-ocr": (
        "deepseek2-ocr", {**LATE_EXPERTS, **SMALL_KEYS, "attention.head_count_kv": HEADS, "expert_shared_count": 1},
        [[*grown(2, 2, SMALL, SMALL), *FEED_NORM, *DENSE], [*grown(2, 2, SMALL, SMALL), *FEED_NORM, *ROUTED, *SHARED]],
    ),
}  # fmt: skip
# Heads that differ from layer to layer.
MIMO2 = {**MIXTURE, "attention.sliding_window": 8, "attention.sliding_window_pattern": [False, True], "attention.head_count_kv": [1, 2], "attention.value_length": DIM // 2, "rope.freq_base": 1e6, "rope.freq_base_swa": 10000.0, "rope.dimension_count": DIM // 2}
STEP35 = {**MIXTURE, "attention.sliding_window": 8, "attention.sliding_window_pattern": [False, True], "attention.head_count": [2, 4], "rope.freq_base": 1e6, "rope.freq_base_swa": 10000.0, "expert_weights_norm": True, "expert_weights_scale": 2.5, "expert_shared_feed_forward_length": EXPERT_INNER, "swiglu_clamp_exp": [0.0, 0.5], "swiglu_clamp_shexp": [0.7, 0.5]}
OPENELM = {**SMALL_KEYS, "attention.head_count": [2, 4], "attention.head_count_kv": [1, 2], "feed_forward_length": [INNER, 2 * INNER]}


CASES |= {
    "mimo2": (
        "mimo2", MIMO2,
        [[*grown(2, 1, value=DIM // 2), *FEED_NORM, *DENSE], [*grown(2, 2, value=DIM // 2), ["attn_sinks", HEADS], *FEED_NORM, *ROUTED, *CHOICE]],
    ),
    "step35": (
        "step35", STEP35,
        [
            [*grown(2, 1), *HEAD_NORMS, ["attn_gate", 2, WIDTH], *FEED_NORM, *DENSE],
            [*grown(4, 1), *HEAD_NORMS, ["attn_gate", 4, WIDTH], *FEED_NORM, *ROUTED, *SHARED, *CHOICE],
        ],
    ),
    "openelm": (
        "openelm", OPENELM,
        [
            [NORM, ["attn_qkv", (heads + 2 * kv_heads) * SMALL, WIDTH], ["attn_output", WIDTH, heads * SMALL], *SMALL_NORMS, *FEED_NORM, ["ffn_gate", inner, WIDTH], ["ffn_up", inner, WIDTH], ["ffn_down", WIDTH, inner]]
            for heads, kv_heads, inner in ((2, 1, INNER), (4, 2, 2 * INNER))
        ],
        [["output_norm", WIDTH]],
    ),
    "minicpm3": ("minicpm3", UNFOLDED_KEYS, [[*OLD_LATENT, *DENSE]] * 2),
    "bitnet": ("bitnet", SMALL_KEYS, [[*attention(SMALL), ["attn_sub_norm", WIDTH], *FEED_NORM, ["ffn_sub_norm", INNER], *DENSE]] * 2, [["output_norm", WIDTH]]),
    "paddleocr": ("paddleocr", {**SMALL_KEYS, "rope.dimension_sections": [2, 3, 3, 0]}, [[*attention(SMALL), *FEED_NORM, *DENSE]]),
    "hunyuan_vl": ("hunyuan_vl", {**SECTIONS}, [[*PLAIN, *HEAD_NORMS, *FEED_NORM, *DENSE]]),
    "jais2": (
        "jais2", {**SMALL_KEYS, "attention.head_count_kv": HEADS, "attention.layer_norm_epsilon": 1e-5},
        [[NORM, ["attn_norm.bias", WIDTH], *[part for name in "qkv" for part in ([f"attn_{name}", WIDTH, WIDTH], [f"attn_{name}.bias", WIDTH])], ["attn_output", WIDTH, WIDTH], ["attn_output.bias", WIDTH], *FEED_NORM, ["ffn_norm.bias", WIDTH], ["ffn_up", INNER, WIDTH], ["ffn_up.bias", INNER], ["ffn_down", WIDTH, INNER], ["ffn_down.bias", WIDTH]]] * 2,
        [["output_norm", WIDTH], ["output_norm.bias", WIDTH]],
    ),
}  # fmt: skip
# Layers without attention, with a product in its place, or without anything; experts beside a network that all tokens have; norms, scores and
# logits of their own kinds.
DECI = {"attention.head_count": [2, 2, 0, 0, 4], "attention.head_count_kv": [1, 0, 0, 0, 2], "feed_forward_length": [INNER, INNER, 2 * INNER, 0, INNER], **SMALL_KEYS}
PRODUCT = [NORM, ["attn_output", WIDTH, WIDTH]]
WIDE = [["ffn_gate", 2 * INNER, WIDTH], ["ffn_up", 2 * INNER, WIDTH], ["ffn_down", WIDTH, 2 * INNER]]
COHERE = {"attention.sliding_window": 8, **LATE_EXPERTS, "logit_scale": 0.25, "expert_shared_feed_forward_length": EXPERT_INNER}
MANY = {**SMALL_KEYS, "attention.head_count_kv": HEADS}
LAYER_NORM = {**MANY, "attention.layer_norm_epsilon": 1e-5}
LATENT_PLM = [NORM, ["attn_q", HEADS * (BARE + TURNED), WIDTH], *UNFOLDED, *LATENT_KV, *FEED_NORM]
PICTURES = [["vis_attn_qkv", 3 * WIDTH, WIDTH], ["vis_attn_output", WIDTH, WIDTH], ["vis_gate", INNER, WIDTH], ["vis_up", INNER, WIDTH], ["vis_down", WIDTH, INNER]]
BIASED_DENSE = [part for name, *dims in DENSE for part in ([name, *dims], [name + ".bias", dims[0]])]
SHARERS = [[f"ffn_{name}_chexps", EXPERTS // 2, *([WIDTH, EXPERT_INNER] if name == "down" else [EXPERT_INNER, WIDTH])] for name in ("gate", "up", "down")]
CASES |= {
    "deci": (
        "deci", DECI,
        [[*attention(SMALL), *FEED_NORM, *DENSE], [*PRODUCT, *FEED_NORM, *DENSE], [*FEED_NORM, *WIDE], [], [*grown(4, 2, SMALL, SMALL), *FEED_NORM, *DENSE]],
        [["output_norm", WIDTH], ["output", "vocabulary", WIDTH], ["rope_freqs", SMALL // 2]],
    ),
    "arctic": ("arctic", {**MIXTURE, **SMALL_KEYS, "feed_forward_length": WIDTH}, [[*attention(SMALL), *FEED_NORM, *[["ffn_" + n, WIDTH, WIDTH] for n in ("gate", "up", "down")], ["ffn_norm_exps", WIDTH], *ROUTED]] * 2),
    "cohere2moe": (
        "cohere2moe", {**COHERE, "attention.layer_norm_epsilon": 1e-5, "attention.layer_norm_rms_epsilon": 0.0},
        [[*PLAIN, *DENSE], *[[*PLAIN, *ROUTED, *SHARED]] * 4], [["output_norm", WIDTH]],
    ),
    "plm": ("plm", UNFOLDED_KEYS, [[*LATENT_PLM, *DENSE[1:]]] * 2, [["output_norm", WIDTH]]),
    "plamo": ("plamo", MANY, [[*grown(2, 2, SMALL, SMALL), *DENSE]] * 2),
    "jais": (
        "jais", {**LAYER_NORM, "attention.max_alibi_bias": 8.0},
        [[NORM, ["attn_norm.bias", WIDTH], *FUSED, ["attn_qkv.bias", 3 * WIDTH], ["attn_output.bias", WIDTH], *FEED_NORM, ["ffn_norm.bias", WIDTH], *BIASED_DENSE]] * 2,
        [["output_norm", WIDTH], ["output_norm.bias", WIDTH], ["output", "vocabulary", WIDTH]],
    ),
    "cogvlm": ("cogvlm", MANY, [[NORM, *FUSED, *FEED_NORM, *DENSE, *PICTURES]] * 2),
    "grok": (
        "grok", {**MIXTURE, **SMALL_KEYS, "final_logit_softcapping": 50.0, "embedding_scale": 4.0},
        [[*attention(SMALL), ["attn_output_norm", WIDTH], *FEED_NORM, *DENSE, *ROUTED, ["post_ffw_norm", WIDTH]], [*attention(SMALL), ["attn_output_norm", WIDTH], *FEED_NORM, *ROUTED, ["layer_output_norm", WIDTH]]],
    ),
    "grovemoe": (
        "grovemoe", {**MIXTURE, "experts_per_group": 2, "expert_group_scale": 1.0, "expert_chunk_feed_forward_length": EXPERT_INNER},
        [[*PLAIN, *HEAD_NORMS, *FEED_NORM, *ROUTED, *SHARERS]] * 2,
    ),
}  # fmt: skip
# Time mixing: heads, ranks of what depends on tokens.
MIX_SIZE, MIX_RANK = 16, 32
# Of their matrices these are in blocks.
WHOLE_MIX = tuple(f"{name}.weight" for name in ("key", "value", "receptance", "output", "gate"))
MIX_HEADS = WIDTH // MIX_SIZE
MIX_KEYS = {"wkv.head_size": MIX_SIZE, "attention.head_count": 0, "attention.head_count_kv": 0, "attention.layer_norm_epsilon": 1e-5, "time_mix_extra_dim": MIX_RANK, "time_decay_extra_dim": MIX_RANK}
SHIFTED_TWICE, SHIFTED = {**MIX_KEYS, "token_shift_count": 2}, {**MIX_KEYS, "token_shift_count": 1}
RANKS = {"embedding_length": 128, "wkv.head_size": 64, **{f"attention.{name}_lora_rank": 8 for name in ("decay", "iclr", "value_residual_mix", "gate")}}
MIX = [[f"time_mix_{name}", WIDTH, WIDTH] for name in ("key", "value", "receptance", "output")]
PLAIN_MIX = [
    ["time_mix_w1", 5 * MIX_RANK, WIDTH], ["time_mix_w2", 5, WIDTH, MIX_RANK], ["time_mix_lerp_x", 1, 1, WIDTH], ["time_mix_decay", WIDTH],
    ["time_mix_decay_w1", MIX_RANK, WIDTH], ["time_mix_decay_w2", WIDTH, MIX_RANK], ["time_mix_gate", WIDTH, WIDTH],
]  # fmt: skip
FUSED_LERP, LERPS = [["time_mix_lerp_fused", 5, 1, 1, WIDTH]], [[f"time_mix_lerp_{name}", 1, 1, WIDTH] for name in "wkvrg"]
MIX_NORM = [["time_mix_ln", WIDTH], ["time_mix_ln.bias", WIDTH]]
CHANNELS = [["channel_mix_lerp_k", 1, 1, WIDTH], ["channel_mix_key", INNER, WIDTH], ["channel_mix_value", WIDTH, INNER]]
RECEPTANCE = [["channel_mix_lerp_r", 1, 1, WIDTH], ["channel_mix_receptance", WIDTH, WIDTH]]
FIRST = [["time_mix_first", MIX_HEADS, MIX_SIZE]]
BOTH_NORMS = [NORM, ["attn_norm.bias", WIDTH], ["attn_norm_2", WIDTH], ["attn_norm_2.bias", WIDTH]]
# llama.cpp's processor back end wants heads of 64 elements where tokens correct what the state has.
TALL, TALL_RANK = 128, 8
CORRECTING = [
    *[part for name in "wav" for part in ([f"time_mix_{name}0", TALL], [f"time_mix_{name}1", TALL_RANK, TALL], [f"time_mix_{name}2", TALL, TALL_RANK])],
    *[[f"time_mix_{name}", TALL] for name in ("k_k", "k_a", "r_k")],
]  # fmt: skip
MIX_GATE = [["time_mix_g1", TALL_RANK, TALL], ["time_mix_g2", TALL, TALL_RANK], ["time_mix_lerp_fused", 6, 1, 1, TALL]]


def tall(parts):
    """The same parts in a wider model."""
    return [[name, *(TALL if length == WIDTH else length for length in dims)] for name, *dims in parts]


MIX_MODEL = [["token_embd_norm", WIDTH], ["token_embd_norm.bias", WIDTH], ["output_norm", WIDTH], ["output_norm.bias", WIDTH], ["output", "vocabulary", WIDTH]]
NARROW_MIX = [[f"time_mix_{name}", MIX_SIZE, WIDTH] for name in ("key", "value")] + [[f"time_mix_{name}.bias", MIX_SIZE] for name in ("key", "value")]
CASES |= {
    "rwkv6": (
        "rwkv6", {**SHIFTED_TWICE, "rescale_every_n_layers": 2},
        [[*BOTH_NORMS, *MIX, *PLAIN_MIX, *lerps, *FIRST, *MIX_NORM, *CHANNELS, *RECEPTANCE] for lerps in (FUSED_LERP, LERPS, FUSED_LERP)], MIX_MODEL,
    ),
    "rwkv7": ("rwkv7", {**SHIFTED_TWICE, **RANKS}, [[*tall(BOTH_NORMS), *tall(MIX), *CORRECTING, *MIX_GATE, *tall(MIX_NORM), *tall(CHANNELS)]] * 2, tall(MIX_MODEL)),
    "rwkv6qwen2": (
        "rwkv6qwen2", {**SHIFTED, "attention.head_count_kv": 1},
        [[NORM, *MIX[2:], *NARROW_MIX, ["time_mix_receptance.bias", WIDTH], *PLAIN_MIX, *FUSED_LERP, *FEED_NORM, *DENSE]] * 2,
    ),
    "arwkv7": (
        "arwkv7", {**SHIFTED, **RANKS}, [[*tall([NORM, *MIX]), *CORRECTING, ["time_mix_lerp_fused", 5, 1, 1, TALL], *tall([*FEED_NORM, *DENSE])]] * 2,
        [["output_norm", TALL], ["output", "vocabulary", TALL]],
    ),
}  # fmt: skip
# Encoders: the same, with the tensors of the model besides the table of tokens.
TINY_HEADS = {"attention.head_count_kv": HEADS, "attention.key_length": SMALL, "attention.value_length": SMALL, "rope.dimension_count": SMALL}
BERT_NORMS = [[f"{name}_norm{kind}", WIDTH] for name in ("attn_output", "layer_output") for kind in ("", ".bias")]
VECTORS = {"pooling_type": 1, "attention.causal": False}
WINDOW = {"attention.sliding_window": 8}
EMBEDDING_NORM = [["token_embd_norm", WIDTH]]
GEMMA = [*PLAIN, *HEAD_NORMS, *POST_NORM, *FEED_NORM, *DENSE, ["post_ffw_norm", WIDTH]]
RELATIVE = [[f"attn_{name}", WIDTH, WIDTH] for name in "qkvo"]
ENCODERS = {
    "t5encoder": (
        "t5encoder", {**VECTORS, **TINY_HEADS, "attention.relative_buckets_count": 16},
        [[NORM, *RELATIVE, *rest, *FEED_NORM, *feed] for rest, feed in (([["attn_rel_b", 16, HEADS]], DENSE), ([], DENSE[1:]), ([["attn_rel_b", 16, HEADS]], DENSE))],
        [["enc.output_norm", WIDTH]],
    ),
    "gemma-embedding": (
        "gemma-embedding", {**VECTORS, **WINDOW, "rope.freq_base": 1e6, "dense_2_feat_in": WIDTH, "dense_2_feat_out": INNER, "dense_3_feat_in": INNER, "dense_3_feat_out": WIDTH},
        [GEMMA] * 6, [["output_norm", WIDTH], ["dense_2", INNER, WIDTH], ["dense_3", WIDTH, INNER]],
    ),
    "jina-bert-v3": (
        "jina-bert-v3", {**VECTORS, **TINY_HEADS, "tokenizer.ggml.token_type_count": 1, "attention.layer_norm_epsilon": 1e-5, "rope.freq_base": 20000.0},
        [[*FUSED, ["attn_qkv.bias", 3 * WIDTH], ["attn_output.bias", WIDTH], *BERT_NORMS, ["ffn_up", INNER, WIDTH], ["ffn_up.bias", INNER], ["ffn_down", WIDTH, INNER], ["ffn_down.bias", WIDTH]]] * 2,
        [*EMBEDDING_NORM, ["token_embd_norm.bias", WIDTH], ["token_types", WIDTH]],
    ),
    "eurobert": ("eurobert", {**VECTORS, **SMALL_KEYS}, [[*attention(SMALL), *FEED_NORM, *DENSE]] * 2, [["output_norm", WIDTH]]),
    "llama-embed": ("llama-embed", {**VECTORS, **SMALL_KEYS}, [[*attention(SMALL), *FEED_NORM, *DENSE]] * 2, [["output_norm", WIDTH]]),
    # Decoders whose tokens see those behind them: windows leave out what lies before alone.
    "llama-vectors": ("llama", {**VECTORS, **SMALL_KEYS}, [[*attention(SMALL), *FEED_NORM, *DENSE]] * 2, [["output_norm", WIDTH]]),
    "gemma2-vectors": (
        "gemma2", {**VECTORS, **WINDOW, "pooling_type": 3}, [[*PLAIN, *POST_NORM, *FEED_NORM, *DENSE, ["post_ffw_norm", WIDTH]]] * 2, [["output_norm", WIDTH]],
    ),
    "neo-bert": ("neo-bert", {**VECTORS, **TINY_HEADS}, [[NORM, *FUSED, *FEED_NORM, *GEGLU]] * 2, [["enc.output_norm", WIDTH]]),
    "modern-bert": (
        "modern-bert", {**VECTORS, **WINDOW, **TINY_HEADS, "attention.layer_norm_epsilon": 1e-5, "rope.freq_base": 160000.0, "rope.freq_base_swa": 10000.0},
        [[*FUSED, *FEED_NORM, *GEGLU], *[[NORM, *FUSED, *FEED_NORM, *GEGLU]] * 3], [*EMBEDDING_NORM, ["output_norm", WIDTH]],
    ),
}  # fmt: skip


# Of a call with several tokens llama.cpp ends, or gives the logits of the first: it takes values of all for those of one, or gives all logits.
ALONE = ["plm", "cogvlm"]


def put(w, name, value):
    """A key of metadata. Arrays have integers of a type of their own."""
    if isinstance(value, np.ndarray):
        w.add_key_value(name, value.tolist(), GGUFValueType.ARRAY, GGUFValueType[value.dtype.name.upper()])
    elif isinstance(value, list):
        w.add_array(name, value)
    else:
        adds = {bool: w.add_bool, int: w.add_uint32, float: w.add_float32, str: w.add_string}
        adds[type(value)](name, value)

# State-space layers with a decay for each head, which tell behind the convolution where they write and how much.
LATE_RANK = 64
LATE = [
    NORM, ["ssm_in", 2 * SSM_INNER, WIDTH], ["ssm_conv1d", SSM_INNER, SSM_TAPS], ["ssm_x", 2 * SSM_STATE + LATE_RANK, SSM_INNER], ["ssm_dt", SSM_HEADS, LATE_RANK],
    ["ssm_dt.bias", SSM_HEADS], ["ssm_a", SSM_HEADS], ["ssm_d", SSM_HEADS], ["ssm_out", WIDTH, SSM_INNER], ["ssm_dt_norm!", LATE_RANK], ["ssm_b_norm!", SSM_STATE],
    ["ssm_c_norm!", SSM_STATE],
]  # fmt: skip
PLAMO2 = [["post_attention_norm!", WIDTH], *FEED_NORM, *GEGLU, ["post_ffw_norm!", WIDTH]]
PLAMO2_ATTENTION = [*attention(SMALL, fused=True), ["attn_q_norm", HEADS, SMALL], ["attn_k_norm", KV_HEADS, SMALL]]
# Delta nets with a decay of each place, beside latent attention without rotary embedding. What the metadata say of values is not read.


def kda(width, heads, size, taps):
    """A delta net with so many heads of so many elements."""
    inner = heads * size
    parts = [[f"attn_{name}", inner, width] for name in "qkv"] + [[f"ssm_conv1d_{name}", inner, 1, taps] for name in "qkv"]
    narrow = [part for name in "fg" for part in ([f"ssm_{name}_a", size, width], [f"ssm_{name}_b", inner, size])]
    return [["attn_norm", width], *parts, *narrow, ["ssm_beta", heads, width], ["ssm_a", heads, 1], ["ssm_dt.bias", inner], ["ssm_norm", size], ["attn_output", width, inner]]


KIMI_KEYS = {
    **{key: value for key, value in LATENT_KEYS.items() if "q_lora" not in key}, **LATE_EXPERTS, "attention.head_count_kv": [0, 1, 0], "attention.value_length": 24,
    "kda.head_dim": KDA, "ssm.conv_kernel": KDA_TAPS, "expert_gating_func": 2, "expert_weights_scale": 2.5,
}  # fmt: skip
KIMI_KDA = [*kda(WIDTH, HEADS, KDA, KDA_TAPS), *FEED_NORM]
KIMI_MIXTURE = [*ROUTED, *SHARED, *CHOICE]
CASES["kimi-linear"] = (
    "kimi-linear", KIMI_KEYS,
    [[*KIMI_KDA, *DENSE], [NORM, ["attn_q", HEADS * (BARE + TURNED), WIDTH], *LATENT_KV, *FOLDED, *FEED_NORM, *KIMI_MIXTURE], [*KIMI_KDA, *KIMI_MIXTURE]],
)  # fmt: skip
# Attention to keys that an indexer chooses, of one layer or of several, and with several states of a token; and layers that attend to the
# states before.
INDEX_HEADS, INDEX = 16, 64
INDEX_KEYS = {"attention.indexer.head_count": INDEX_HEADS, "attention.indexer.key_length": INDEX, "attention.indexer.top_k": 8}
INDEXER = [
    ["indexer.k_norm", INDEX], ["indexer.k_norm.bias", INDEX], ["indexer.proj", INDEX_HEADS, WIDTH], ["indexer.attn_k", INDEX, WIDTH],
    ["indexer.attn_q_b", INDEX_HEADS * INDEX, Q_RANK],
]  # fmt: skip
STATES = 4
CONNECTED = [
    *[[f"hc_{part}_{name}", *dims] for part in ("attn", "ffn") for name, dims in (("fn", [2 * STATES, STATES * WIDTH]), ("base", [2 * STATES]), ("scale", [2]))],
    ["attn_sinks", HEADS], ["attn_gate", HEADS * VALUE, WIDTH],
]  # fmt: skip
K3_KDA = [["ssm_a", HEADS] if part[0] == "ssm_a" else ["ssm_g", HEADS * KDA, WIDTH] if part[0] == "ssm_g_a" else part for part in KIMI_KDA if part[0] != "ssm_g_b"]
K3_RES = [["attn_res_score", WIDTH], ["ffn_res_score", WIDTH]]
K3_ROUTED = [
    ["ffn_gate_inp", EXPERTS, WIDTH], *[[f"ffn_{name}_exps", EXPERTS, *([SHORT, EXPERT_INNER] if name == "down" else [EXPERT_INNER, SHORT])] for name in ("gate", "up", "down")],
    ["ffn_routed_down", SHORT, WIDTH], ["ffn_routed_up", WIDTH, SHORT], ["ffn_routed_norm", SHORT], *SHARED, *CHOICE,
]  # fmt: skip
CASES |= {
    "deepseek32": (
        "deepseek32", {**LATE_EXPERTS, **LATENT_KEYS, **YARN, **INDEX_KEYS, "rope.scaling.yarn_log_multiplier": 0.07, "expert_gating_func": 2, "expert_weights_norm": True, "expert_weights_scale": 2.5},
        [[*LATENT, *INDEXER, *DENSE], [*LATENT, *INDEXER, *ROUTED, *SHARED, *CHOICE]],
    ),
    "glm-dsa": (
        "glm-dsa", {**LATE_EXPERTS, **LATENT_KEYS, **INDEX_KEYS, "attention.indexer.types": [True, False], "expert_weights_norm": True, "expert_weights_scale": 2.5},
        [[*LATENT, *INDEXER, *DENSE], [*LATENT, *ROUTED, *SHARED, *CHOICE]],
    ),
    "hy_v4": (
        "hy_v4",
        {
            **LATE_EXPERTS, **LATENT_KEYS, **INDEX_KEYS, "attention.indexer.types": [True, False], "hyper_connection.count": STATES, "hyper_connection.epsilon": 1e-6,
            "hyper_connection.magnitude": 2.0, "swiglu_clamp_exp": 0.5, "expert_gating_func": 2, "expert_weights_norm": True, "expert_weights_scale": 2.5,
        },
        [[*LATENT, *CONNECTED, *INDEXER, *DENSE], [*LATENT, *CONNECTED, *ROUTED, *SHARED, *CHOICE]],
        [["output_norm", WIDTH], ["output", "vocabulary", WIDTH], ["output_hc_fn", STATES, STATES * WIDTH], ["output_hc_base", STATES], ["output_hc_scale", 1]],
    ),
    "minimax-m3": (
        "minimax-m3",
        {
            **LATE_EXPERTS, "attention.indexer.head_count": KV_HEADS, "attention.indexer.key_length": 32, "attention.indexer.top_k": 2, "attention.indexer.block_size": 4,
            "attention.indexer.local_blocks": 1, "rope.dimension_count": DIM // 2, "expert_gating_func": 2, "expert_weights_norm": True, "expert_weights_scale": 2.0,
        },
        [
            [*PLAIN, *HEAD_NORMS, *FEED_NORM, *DENSE],
            [*PLAIN, *HEAD_NORMS, ["indexer.q_proj", KV_HEADS * 32, WIDTH], ["indexer.k_proj", 32, WIDTH], ["indexer.q_norm", 32], ["indexer.k_norm", 32], *FEED_NORM, *ROUTED, *SHARED, *CHOICE],
        ],
    ),
    "kimi-k3": (
        "kimi-k3",
        {**KIMI_KEYS, "activation.situ_beta": 0.5, "activation.situ_linear_beta": 0.7, "attn_res.block_size": 2, "expert_latent_length": SHORT, "kda.gate_lower_bound": -5.0},
        [
            [*K3_KDA, *K3_RES, *DENSE],
            [NORM, ["attn_q", HEADS * (BARE + TURNED), WIDTH], *LATENT_KV, *FOLDED, ["attn_gate", HEADS * VALUE, WIDTH], *FEED_NORM, *K3_RES, *K3_ROUTED],
            [*K3_KDA, *K3_RES, *K3_ROUTED],
        ],
        [["output_norm", WIDTH], ["output", "vocabulary", WIDTH], ["output_res_score", WIDTH]],
    ),
}
# Layers gone through twice; embeddings that layers add again; experts on a shorter row, and with limits, in models whose layers have windows and
# rotary embedding or neither.
SHORT_ROUTED = [[f"ffn_{name}_exps", EXPERTS, *([SHORT, EXPERT_INNER] if name == "down" else [EXPERT_INNER, SHORT])] for name in ("gate", "up", "down")]
WINDOWS = {"attention.sliding_window": 8, "attention.sliding_window_pattern": [True, False]}
TURNED_IN_WINDOWS = [*attention(DIM), *HEAD_NORMS]
AGAIN = [*attention(DIM)[1:], ["attn_q_norm", HEADS, 1], *DENSE, ["layer_output_scale", 1]]
CASES |= {
    "nanbeige": ("nanbeige", {"num_loops": 2}, [[*PLAIN, *FEED_NORM, *DENSE]] * 2),
    "nanbeige-bare": ("nanbeige", {"num_loops": 3, "skip_loop_final_norm": True}, [[*PLAIN, *FEED_NORM, *DENSE]], [["output_norm", WIDTH]]),
    "talkie": ("talkie", {"logit_scale": 0.5}, [AGAIN] * 2, [["output", "vocabulary", WIDTH]]),
    "maple": ("maple", {**MIXTURE, **WINDOWS, "expert_shared_count": 0, "swiglu_clamp_exp": 0.5, "rope.freq_base_swa": 3000.0}, [[*TURNED_IN_WINDOWS, *FEED_NORM, *ROUTED]] * 2),
    "maion-coder": (
        "maion-coder", {**MIXTURE, **WINDOWS, "expert_shared_count": 0, "interleave_moe_layer_step": 2, "moe_latent_size": SHORT},
        [
            [*TURNED_IN_WINDOWS, *POST_NORM, *FEED_NORM, *DENSE, ["post_ffw_norm", WIDTH]],
            [*TURNED_IN_WINDOWS, *POST_NORM, *FEED_NORM, ROUTED[0], *SHORT_ROUTED, ["ffn_latent_down", SHORT, WIDTH], ["ffn_latent_up", WIDTH, SHORT], ["post_ffw_norm", WIDTH]],
        ],
    ),
}  # fmt: skip
# A gate for each head, in front of layers with and without windows; and norms without weights or of groups, values that experts make, sums
# that fade, delta nets of whole rows.
HEAD_GATE, WIDE_GATE = ["attn_gate", HEADS, WIDTH], ["attn_gate", HEADS * DIM, WIDTH]
WHOLE_KDA = [[name, HEADS * KDA, WIDTH] if name in ("ssm_f_a", "ssm_g_a") else [name, *dims] for name, *dims in KIMI_KDA if name not in ("ssm_f_b", "ssm_g_b")]
LIGHTNING = [NORM, ["attn_norm_2", HEADS * DIM], ["attn_qkv", 3 * HEADS * DIM, WIDTH], WIDE_GATE, ["attn_output", WIDTH, HEADS * DIM]]
VALUES = [*[part for part in PLAIN if part[0] != "attn_v"], ["attn_v_gate", 4, WIDTH], ["attn_v_gate.bias", 4], ["attn_v_exps", 4, KV_HEADS * DIM, WIDTH]]
FLAT_NORMS = [["attn_q_norm", HEADS * DIM], ["attn_k_norm", KV_HEADS * DIM]]
LOCAL_RANK, LOCAL_BARE, LOCAL_VALUE = 64, 32, 48
NARROW = [
    NORM, ["attn_q_a", Q_RANK, WIDTH], ["attn_q_a_norm", Q_RANK], ["attn_q_b", HEADS * (LOCAL_BARE + TURNED), Q_RANK], ["attn_kv_a_mqa", LOCAL_RANK + TURNED, WIDTH],
    ["attn_kv_a_norm", LOCAL_RANK], ["attn_k_b", HEADS, LOCAL_RANK, LOCAL_BARE], ["attn_v_b", HEADS, LOCAL_VALUE, LOCAL_RANK], ["attn_output", WIDTH, HEADS * LOCAL_VALUE],
    *FEED_NORM,
]  # fmt: skip
CASES |= {
    "bailingmoe3": (
        "bailingmoe3", {**KIMI_KEYS, "kda.gate_lower_bound": -5.0, "expert_weights_norm": True, "swiglu_clamp_exp": 0.5},
        [[*WHOLE_KDA, *DENSE], [NORM, ["attn_q", HEADS * (BARE + TURNED), WIDTH], *LATENT_KV, *FOLDED, HEAD_GATE, *FEED_NORM, *KIMI_MIXTURE], [*WHOLE_KDA, *KIMI_MIXTURE]],
    ),
    "spark2_5": ("spark2_5", {**WINDOWS, "rope.freq_base_swa": 3000.0, "rope.dimension_count_swa": DIM // 2}, [[*PLAIN, HEAD_GATE, *FEED_NORM, *DENSE]] * 2),
    "muse-glimmer": (
        "muse-glimmer", {**WINDOWS, "rope.freq_base_swa": 3000.0, "logit_scale": 0.5},
        [[*PLAIN, *HEAD_NORMS, WIDE_GATE, *POST_NORM, *FEED_NORM, *DENSE, ["post_ffw_norm", WIDTH]]] * 2,
    ),
    "k2-horizon": (
        "k2-horizon",
        {**LATE_EXPERTS, "attention.group_norm_groups": 2, "attention.value_expert_count": 4, "attention.value_expert_used_count": 2, "expert_weights_norm": True, "expert_weights_scale": 2.5},
        [[*PLAIN, *FLAT_NORMS, WIDE_GATE, *FEED_NORM, *DENSE], [*VALUES, *FLAT_NORMS, WIDE_GATE, *FEED_NORM, *ROUTED, *SHARED, *CHOICE]],
    ),
    "minimax-01": (
        "minimax-01", {"expert_count": EXPERTS, "expert_used_count": 2, "residual_scale": 1.5, "attention.recurrent_layers": [True, False, True], "rope.dimension_count": DIM // 2},
        [[*LIGHTNING, *FEED_NORM, *ROUTED_WIDE], [*PLAIN, *FEED_NORM, *ROUTED_WIDE], [*LIGHTNING, *FEED_NORM, *ROUTED_WIDE]],
    ),
    "dots3note": (
        "dots3note",
        {
            **LATE_EXPERTS, **LATENT_KEYS, **INDEX_KEYS, "attention.sliding_window": 8, "attention.sliding_window_pattern": [False, True], "attention.indexer.types": [True, False],
            "attention.kv_lora_rank_swa": LOCAL_RANK, "attention.key_length_swa": LOCAL_RANK + TURNED, "attention.value_length_swa": LOCAL_RANK, "rope.freq_base_swa": 3000.0,
            "attention.key_length_mla_swa": LOCAL_BARE + TURNED, "attention.value_length_mla_swa": LOCAL_VALUE, "rope.dimension_count_swa": TURNED, "expert_gating_func": 2,
            "expert_weights_norm": True, "expert_weights_scale": 2.5,
        },
        [[*LATENT, ["attn_k_norm", TURNED], HEAD_GATE, *INDEXER, *DENSE], [*NARROW, ["attn_k_norm", TURNED], HEAD_GATE, *ROUTED, *SHARED, *CHOICE]],
    ),
}  # fmt: skip
# Two stacks of layers, gone through in cycles.
STACK = [*PLAIN[1:], WIDE_GATE, *DENSE]
CASES["hrm_text"] = (
    "hrm_text", {"hrm.layers_per_stack": 2, "hrm.h_cycles": 2, "hrm.l_cycles": 2, "block_count": 12, "embedding_scale": 3.0}, [STACK] * 4,
    [["output", "vocabulary", WIDTH], ["hrm.z_l_init!", WIDTH]],
)  # fmt: skip
# Products beside those of layers, of the adapter that a token of control tells: two of the reference's text are such.


def switched(width, heads, inner, adapters):
    """A layer with adapters: their number, and elements of the short row between their products."""
    (count, kv, dim), (adapters, rank) = heads, adapters
    queries, keys = count * dim, kv * dim
    base = [
        ["attn_norm", width], ["attn_qkv", queries + 2 * keys, width], ["attn_output", width, queries], ["ffn_norm", width], ["ffn_gate", inner, width],
        ["ffn_up", inner, width], ["ffn_down", width, inner],
    ]  # fmt: skip
    products = [
        ("attn_q", queries, width), ("attn_k", keys, width), ("attn_v", keys, width), ("attn_output", width, queries), ("ffn_gate", inner, width),
        ("ffn_up", inner, width), ("ffn_down", width, inner),
    ]  # fmt: skip
    return base + [part for name, rows, length in products for part in ([f"{name}.lora_a!", adapters + 1, rank, length], [f"{name}.lora_b!", adapters + 1, rows, rank])]


# An encoder of the fourth kind: rows of embeddings alone for each layer, and weights that make vectors.
EMBEDDING2_LENGTH = 32
EMBEDDING2_MODEL, EMBEDDING2_ROW = row_parts(EMBEDDING2_LENGTH, 6)
EMBEDDING2 = lambda dim: [
    NORM, *[[f"attn_{name}", heads * dim, WIDTH] for name, heads in (("q", HEADS), ("k", 1), ("v", 1))], ["attn_q_norm", dim], ["attn_k_norm", dim],
    ["attn_output", WIDTH, HEADS * dim], *GEMMA_LAYER, *EMBEDDING2_ROW, ["layer_output_scale", 1],
]  # fmt: skip
EMBEDDING2_KEYS = {key: value for key, value in GEMMA4_KEYS.items() if key not in ("attention.sliding_window_pattern", "final_logit_softcapping")}
ENCODERS["gemma-embedding2"] = (
    "gemma-embedding2", {**EMBEDDING2_KEYS, "pooling_type": 1, "embedding_length_per_layer_input": EMBEDDING2_LENGTH, "embedding_length_out": INNER},
    [EMBEDDING2(DIM if layer < 5 else 2 * DIM) for layer in range(6)], [["output_norm", WIDTH], ["output", INNER, WIDTH], *EMBEDDING2_MODEL[1:]],
)  # fmt: skip
TEXT = [int(token) for token in np.random.default_rng(6).integers(3, 250, PROMPT + STEPS)]
CASES["graniteswitch"] = (
    "graniteswitch",
    {
        "adapters.count": 2, "adapters.lora_rank": 32, "adapters.token_ids_activate": [TEXT[PROMPT + 2], TEXT[PROMPT // 2]], "adapters.token_ids_substitute": [9, 17],
        "residual_scale": 0.5, "logit_scale": 2.0, "embedding_scale": 3.0, "attention.scale": 0.125,
    },
    [switched(WIDTH, [HEADS, KV_HEADS, DIM], INNER, [2, 32])] * 2,
)  # fmt: skip
# An indexer that compares one key of a group of neighbours, beside delta nets and states of tokens that gates weigh, with rows of groups of tokens;
# and beside delta nets with a decay of each place and states that go into each other.
POOL, GROUPED = 4, [7, 61, 83]
GATES = lambda part: [
    [f"hc_{part}_norm", STATES * WIDTH], [f"hc_{part}_down", SHORT, STATES * WIDTH], [f"hc_{part}_up", STATES * WIDTH, SHORT], [f"hc_{part}_inject", STATES, STATES * WIDTH],
]  # fmt: skip
POOLED = [
    ["attn_q", 2 * HEADS * DIM, WIDTH], *PLAIN[2:], *HEAD_NORMS, ["indexer.q_proj", INDEX_HEADS * INDEX, WIDTH], ["indexer.k_proj", INDEX, WIDTH], ["indexer.q_norm", INDEX],
    ["indexer.k_norm", INDEX],
]  # fmt: skip
CONVOLVED = 2 * SSM_GROUPS * SSM_STATE + SSM_HEADS * SSM_STATE
DELTA = [
    ["attn_qkv", CONVOLVED, WIDTH], ["attn_gate", SSM_HEADS * SSM_STATE, WIDTH], ["ssm_conv1d", CONVOLVED, SSM_TAPS], ["ssm_dt.bias", SSM_HEADS], ["ssm_a", SSM_HEADS],
    *STEPS_APART, ["ssm_norm", SSM_STATE], ["ssm_out", WIDTH, SSM_HEADS * SSM_STATE],
]  # fmt: skip
GROUPS = [
    ["ple_key", STATES * WIDTH, WIDTH], ["ple_value", WIDTH, WIDTH], *[[f"ple_norm_{name}", STATES * WIDTH] for name in ("key", "query", "conv")],
    ["ple_conv1d", STATES * WIDTH, 3],
]  # fmt: skip
WEIGHED = [["ffn_gate_inp_shexp", WIDTH], *SHARED]
SPREAD = [
    [f"hc_{part}_{name}", *dims]
    for part in ("attn", "ffn")
    for name, dims in (("fn", [(2 + STATES) * STATES, STATES * WIDTH]), ("base", [(2 + STATES) * STATES]), ("scale", [3]))
]  # fmt: skip
NEXT_LATENT = [
    NORM, ["attn_q_a", Q_RANK, WIDTH], ["attn_q_a_norm", Q_RANK], ["attn_q_b", HEADS * BARE, Q_RANK], ["attn_kv_a_mqa", RANK, WIDTH], ["attn_kv_a_norm", RANK],
    *FOLDED, ["attn_output", WIDTH, HEADS * VALUE],
]  # fmt: skip
NEXT_KDA = [["ssm_a", HEADS] if part[0] == "ssm_a" else part for part in KIMI_KDA]
CASES |= {
    "qwen4exp": (
        "qwen4exp",
        {
            **SSM_KEYS, "ssm.inner_size": SSM_HEADS * SSM_STATE, **MIXTURE, **SECTIONS, **INDEX_KEYS, "expert_shared_feed_forward_length": EXPERT_INNER,
            "hyper_connection.count": STATES, "hyper_connection.low_rank": SHORT, "attention.compress_ratios": [0, POOL, 0], "attention.recurrent_layers": [True, False, True],
            "ple.layers": [2], "ple.ngram_size": 3, "ple.heads_per_ngram": 1, "ple.conv_kernel": 3, "ple.eos_token_id": TEXT[11], "embedding_length_per_layer_input": WIDTH // 2,
            "ple.layer_multipliers": np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], np.uint64), "ple.head_offsets": np.array([0, GROUPED[1]], np.uint64),
            "ple.head_vocab_sizes": np.array(GROUPED[1:], np.uint64),
        },
        [[*GATES("attn"), *GATES("ffn"), *own, *ROUTED, *WEIGHED] for own in (DELTA, POOLED, [*DELTA, *GROUPS])],
        [["output", "vocabulary", WIDTH], *[["output_hc" + name[7:], *dims] for name, *dims in GATES("attn")[:3]], ["per_layer_token_embd", sum(GROUPED), WIDTH // 2]],
    ),
    "glm5-next": (
        "glm5-next",
        {
            **LATE_EXPERTS, **{key: value for key, value in LATENT_KEYS.items() if "length" not in key}, **INDEX_KEYS, "attention.head_count_kv": [0, 1, 0, 1],
            "attention.key_length": RANK, "attention.value_length": RANK, "attention.key_length_mla": BARE, "attention.value_length_mla": VALUE, "rope.dimension_count": 0,
            "kda.head_dim": KDA, "ssm.conv_kernel": KDA_TAPS, "hyper_connection.count": STATES, "hyper_connection.sinkhorn_iterations": 4, "hyper_connection.epsilon": 1e-3,
            "attention.indexer.kpool": POOL, "attention.indexer.kpool_select_tail": True, "attention.indexer.types": [True, True, True, False],
            "attention.layer_norm_epsilon": 1e-6, "expert_weights_norm": True, "expert_weights_scale": 2.5,
        },
        [
            [*SPREAD, *NEXT_KDA, *DENSE],
            [*SPREAD, *NEXT_LATENT, *FEED_NORM, *INDEXER, ["indexer_compressor_gate", INDEX, WIDTH], ["indexer_compressor_ape", POOL, INDEX], *ROUTED, *SHARED, *CHOICE],
            [*SPREAD, *NEXT_KDA, *ROUTED, *SHARED, *CHOICE],
            [*SPREAD, *NEXT_LATENT, *FEED_NORM, *ROUTED, *SHARED, *CHOICE],
        ],
    ),
}  # fmt: skip
# Rows that stand for groups of tokens, beside a window, with the same states; experts of the first layer are those that tokens tell.
GROUP_ROW = lambda part, size, length, row: [[f"{part}_kv", length, WIDTH], [f"{part}_gate", length, WIDTH], [f"{part}_ape", size, length], [f"{part}_norm", row]]
CONDENSED = [
    NORM, ["attn_sinks", HEADS], *LATENT_Q[:2], ["attn_q_b", HEADS * DIM, Q_RANK], ["attn_kv", DIM, WIDTH], ["attn_kv_a_norm", DIM],
    ["attn_output_a", 2 * RANK, HEADS // 2 * DIM], ["attn_output_b", WIDTH, 2 * RANK], *FEED_NORM, *ROUTED, *SHARED,
]  # fmt: skip
OVERLAPPING = [*GROUP_ROW("attn_compressor", 4, 2 * DIM, DIM), ["indexer.proj", INDEX_HEADS, WIDTH], ["indexer.attn_q_b", INDEX_HEADS * INDEX, Q_RANK]]
OVERLAPPING += GROUP_ROW("indexer_compressor", 4, 2 * INDEX, INDEX)
CASES["deepseek4"] = (
    "deepseek4",
    {
        **MIXTURE, **INDEX_KEYS, **YARN, "attention.indexer.top_k": 3, "attention.head_count_kv": 1, "attention.q_lora_rank": Q_RANK, "attention.sliding_window": 6,
        "rope.dimension_count": TURNED, "expert_gating_func": 4, "expert_weights_norm": True, "expert_weights_scale": 1.5, "swiglu_clamp_exp": 3.0,
        "attention.output_group_count": 2, "attention.output_lora_rank": RANK, "attention.compress_rope_freq_base": 160000.0, "hash_layer_count": 1,
        "hyper_connection.count": STATES, "hyper_connection.sinkhorn_iterations": 4, "hyper_connection.epsilon": 1e-6, "attention.compress_ratios": [0, 4, 128, 4],
    },
    [
        [*SPREAD, *CONDENSED, ["ffn_gate_tid2eid", "vocabulary", 2]], [*SPREAD, *CONDENSED, *OVERLAPPING, *CHOICE],
        [*SPREAD, *CONDENSED, *GROUP_ROW("attn_compressor", 128, DIM, DIM), *CHOICE], [*SPREAD, *CONDENSED, *OVERLAPPING, *CHOICE],
    ],
    [["output_norm", WIDTH], ["output", "vocabulary", WIDTH], ["output_hc_fn", STATES, STATES * WIDTH], ["output_hc_base", STATES], ["output_hc_scale", 1]],
)  # fmt: skip
CASES["plamo2"] = (
    "plamo2", {**SSM_KEYS, **SMALL_KEYS, "ssm.group_count": 0, "attention.head_count_kv": [0, KV_HEADS, 0]},
    [[*LATE, *PLAMO2], [*PLAMO2_ATTENTION, *PLAMO2], [*LATE, *PLAMO2]],
)  # fmt: skip

# Decoders whose metadata say how vectors are made: with norms of embeddings, rows of tokens for each layer, several states, two stacks.
for name in ("muse-glimmer", "gemma4", "hy_v4", "kimi-k3", "hrm_text"):
    arch, keys, *parts = CASES[name]
    ENCODERS[f"{name}-vectors"] = (arch, {**keys, "pooling_type": 3}, *parts)



def kind_of(name, length):
    """The type of a matrix with rows of so many elements."""
    return Type.Q4_0 if name.startswith("per_layer_token_embd") else Type.Q8_0


def write(path, case, vocabulary, as_floats, seed=5, added=None, rate=1.0, kind_of=kind_of, pack=quantize, unpack=dequantize, kept=()):
    """A file, with matrices of some types; or with the same numbers as f32. `added` is how much each part adds where norms are behind it,
    `rate` a factor of how fast states decay."""
    arch, own, layers, *model = {**CASES, **ENCODERS}[case]
    random = np.random.default_rng(seed)
    added = added or (0.2 if len(layers) > 12 else 1.0)
    w = GGUFWriter(path, arch)
    w.add_name(f"tiny {case}")
    count = vocabulary(w)
    keys = {
        "context_length": CONTEXT, "embedding_length": WIDTH, "block_count": len(layers), "feed_forward_length": INNER,
        "attention.head_count": HEADS, "attention.head_count_kv": KV_HEADS, "attention.key_length": DIM, "attention.value_length": DIM,
        "rope.dimension_count": DIM, "attention.layer_norm_rms_epsilon": 1e-5, "vocab_size": count,
    }  # fmt: skip
    for name, value in {**keys, **own}.items():
        put(w, name if name.startswith(("tokenizer.", "xielu.", "prism.")) else f"{arch}.{name}", value)

    def tensor(name, dims, size=1.0):
        if "ssm_a" in name and "alpha" not in name:
            # Most files have them below 0.
            sign = 1 if arch == "bailingmoe3" else -1
            w.add_tensor(name, (sign * rate * (0.2 + np.abs(random.standard_normal(dims)))).astype(np.float32))
            return
        if "ssm_d." not in name and "ssm_d" in name or "_norm" in name and len(dims) == 2:
            w.add_tensor(name, (1 + 0.2 * random.standard_normal(dims)).astype(np.float32))
            return
        if name.endswith(".bias") and len(dims) == 2:
            # Those of experts.
            w.add_tensor(name, (0.2 * random.standard_normal(dims)).astype(np.float32))
            return
        if "tid2eid" in name:
            # Experts that tokens tell.
            experts = own["expert_count"]
            w.add_tensor(name, np.array([random.permutation(experts)[: dims[1]] for _ in range(dims[0])], np.int32))
            return
        if len(dims) == 1:
            # Biases are around 0, scales of norms around 1. In many layers what each adds is less, so that rounding does not grow with them.
            made = (0 if name.endswith(".bias") else 1) + 0.2 * random.standard_normal(dims)
            less = added if "post_" in name else 1.0
            w.add_tensor(name, (less * made).astype(np.float32))
            return
        made = (size * random.standard_normal(dims) / np.sqrt(dims[-1])).astype(np.float32)
        if name.startswith("per_layer_token_embd"):
            # A few rows in turn, so that a file packs well.
            made = np.resize(made, (dims[0] if arch == "qwen4exp" else count, dims[-1]))
        if "ple_conv1d" in name:
            # Converters keep it in 16 bits.
            w.add_tensor(name, made.astype(np.float16))
            return
        is_small = "_mix_" in name and not name.endswith(WHOLE_MIX)
        if is_small or "ffn_gate_inp" in name or "attn_rel_b" in name or dims[-1] % 32 != 0:
            w.add_tensor(name, made)
            return
        kind = kind_of(name, dims[-1])
        packed = pack(made, kind)
        if as_floats and kind not in kept:
            w.add_tensor(name, unpack(packed, kind).astype(np.float32).reshape(made.shape))
        else:
            w.add_tensor(name, packed, raw_dtype=kind)

    tensor("token_embd.weight", [count, own.get("embedding_length", WIDTH)], 4.0)
    # Some names have no kind.
    whole = lambda name: name.rstrip("!") + ("" if name.endswith((".bias", ".scale", "!")) or name in ("ssm_a", "ssm_d") else ".weight")
    for name, *dims in model[0] if model else [["output_norm", WIDTH], ["output", count, WIDTH]]:
        dims = [count if length == "vocabulary" else length for length in dims]
        tensor(whole(name), dims, 4.0 if name == "output" else 1.0)
    for layer, parts in enumerate(layers):
        for name, *dims in parts:
            dims = [count if length == "vocabulary" else length for length in dims]
            tensor(f"{'enc.' if arch == 't5encoder' else ''}blk.{layer}.{whole(name)}", dims)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def rounded(numbers):
    """Numbers with five digits; none for what is as good as minus infinity."""
    return [round(float(x), 5) if x > -1e30 else None for x in numbers]


def vector_of(llama_of, case, vocabulary):
    """The vector of a text."""
    tokens = [int(token) for token in np.random.default_rng(7).integers(3, 250, PROMPT)]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "floats.gguf")
        write(path, case, vocabulary, True)
        return {"tokens": tokens, "vector": rounded(llama_of(path).vector(tokens))}


def reference(llama_of, case, vocabulary, **given):
    """The logits behind a prompt, and behind some tokens more that come one by one."""
    tokens = TEXT
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "floats.gguf")
        write(path, case, vocabulary, True, **given)
        if case in ALONE:
            llama = llama_of(path, at_once=1)
            for token in tokens[:PROMPT]:
                first = llama.logits([token])
        else:
            llama = llama_of(path)
            first = llama.logits(tokens[:PROMPT])
        for token in tokens[PROMPT:]:
            last = llama.logits([token])
    return {"prompt": tokens[:PROMPT], "logits": rounded(first), "further": tokens[PROMPT:], "last": rounded(last)}


def write_all(out, llama_of, vocabulary, names=(*CASES, *ENCODERS)):
    """Files and references of all cases."""
    for case in names:
        write(os.path.join(out, case + ".gguf"), case, vocabulary, False)
        made = (vector_of if case in ENCODERS else reference)(llama_of, case, vocabulary)
        print(case, os.path.getsize(os.path.join(out, case + ".gguf")), "bytes; largest", max(abs(x) for x in made.get("logits", made.get("vector")) if x is not None))
        with open(os.path.join(out, case + ".json"), "w") as file:
            json.dump(made, file)
            file.write("\n")
