"""Small random GGUF models of architectures that gguf_tiny.py's do not stand for, as data: keys and tensors of each, with what
llama.cpp makes of them. gguf_tiny.py writes them too.

A layer is a list of `NAME ROWS COLUMNS` (matrices), `NAME COUNT ROWS COLUMNS` (of experts, or heads) and `NAME LENGTH` (vectors).
"""

import json
import os
import tempfile

import numpy as np
from gguf import GGMLQuantizationType as Type, GGUFWriter, RopeScalingType, dequantize, quantize

WIDTH, HEADS, KV_HEADS, DIM, INNER, CONTEXT = 32, 2, 1, 32, 64, 128
EXPERTS, EXPERT_INNER = 8, 32
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
DENSE = [["ffn_gate", INNER, WIDTH], ["ffn_up", INNER, WIDTH], ["ffn_down", WIDTH, INNER]]
ROUTED = [["ffn_gate_inp", EXPERTS, WIDTH]] + [
    [f"ffn_{name}_exps", EXPERTS, *([WIDTH, EXPERT_INNER] if name == "down" else [EXPERT_INNER, WIDTH])] for name in ("gate", "up", "down")
]
SHARED = [["ffn_gate_shexp", EXPERT_INNER, WIDTH], ["ffn_up_shexp", EXPERT_INNER, WIDTH], ["ffn_down_shexp", WIDTH, EXPERT_INNER]]
CHOICE = [["exp_probs_b.bias", EXPERTS]]
FEED_NORM = [["ffn_norm", WIDTH]]
POST_NORM = [["post_attention_norm", WIDTH]]
# What is kept of a layer that guesses tokens further on, which no text needs.
NEXT = [["nextn.eh_proj", WIDTH, 2 * WIDTH], ["nextn.enorm", WIDTH], ["nextn.hnorm", WIDTH]]

MIXTURE = {"expert_count": EXPERTS, "expert_used_count": 2, "expert_feed_forward_length": EXPERT_INNER, "expert_shared_count": 1}
LATE_EXPERTS = {**MIXTURE, "leading_dense_block_count": 1}
YARN = {"rope.scaling.type": RopeScalingType.YARN.value, "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 16}
SECTIONS = {"rope.dimension_sections": [8, 4, 4, 0]}

# Latent attention: ranks, the part of a head without and with rotary embedding, and values of heads.
Q_RANK, RANK, BARE, TURNED, VALUE = 32, 32, 32, 16, 32
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
    "mistral4": (
        "mistral4",
        {**MIXTURE, **LATENT_KEYS, **YARN, "rope.scaling.yarn_log_multiplier": 0.1, "attention.temperature_scale": 0.1, "attention.temperature_length": 16, "expert_weights_norm": True, "expert_weights_scale": 1.0},
        [[*LATENT, *ROUTED, *SHARED]],
    ),
}  # fmt: skip


def put(w, name, value):
    """A key of metadata."""
    if isinstance(value, list):
        w.add_array(name, value)
    else:
        adds = {bool: w.add_bool, int: w.add_uint32, float: w.add_float32, str: w.add_string}
        adds[type(value)](name, value)


def write(path, case, vocabulary, as_floats):
    """A file, with matrices in Q8_0; or with the same numbers as f32."""
    arch, own, layers = CASES[case]
    random = np.random.default_rng(5)
    w = GGUFWriter(path, arch)
    w.add_name(f"tiny {case}")
    count = vocabulary(w)
    keys = {
        "context_length": CONTEXT, "embedding_length": WIDTH, "block_count": len(layers), "feed_forward_length": INNER,
        "attention.head_count": HEADS, "attention.head_count_kv": KV_HEADS, "attention.key_length": DIM, "attention.value_length": DIM,
        "rope.dimension_count": DIM, "attention.layer_norm_rms_epsilon": 1e-5, "vocab_size": count,
    }  # fmt: skip
    for name, value in {**keys, **own}.items():
        put(w, f"{arch}.{name}", value)

    def tensor(name, dims, size=1.0):
        if len(dims) == 1:
            # Biases are around 0, scales of norms around 1.
            w.add_tensor(name, ((0 if name.endswith(".bias") else 1) + 0.2 * random.standard_normal(dims)).astype(np.float32))
            return
        made = (size * random.standard_normal(dims) / np.sqrt(dims[-1])).astype(np.float32)
        if "ffn_gate_inp" in name:
            w.add_tensor(name, made)
            return
        packed = quantize(made, Type.Q8_0)
        if as_floats:
            w.add_tensor(name, dequantize(packed, Type.Q8_0).astype(np.float32).reshape(made.shape))
        else:
            w.add_tensor(name, packed, raw_dtype=Type.Q8_0)

    tensor("token_embd.weight", [count, WIDTH], 4.0)
    tensor("output_norm.weight", [WIDTH])
    tensor("output.weight", [count, WIDTH], 4.0)
    for layer, parts in enumerate(layers):
        for name, *dims in parts:
            tensor(f"blk.{layer}.{name}" + ("" if name.endswith(".bias") else ".weight"), dims)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def reference(llama_of, case, vocabulary):
    """The logits behind a prompt, and behind some tokens more that come one by one."""
    tokens = [int(token) for token in np.random.default_rng(6).integers(3, 250, PROMPT + STEPS)]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "floats.gguf")
        write(path, case, vocabulary, True)
        llama = llama_of(path)
        first = llama.logits(tokens[:PROMPT])
        for token in tokens[PROMPT:]:
            last = llama.logits([token])
    rounded = lambda logits: [round(float(x), 5) for x in logits]
    return {"prompt": tokens[:PROMPT], "logits": rounded(first), "further": tokens[PROMPT:], "last": rounded(last)}


def write_all(out, llama_of, vocabulary, names=CASES):
    """Files and references of all cases."""
    for case in names:
        write(os.path.join(out, case + ".gguf"), case, vocabulary, False)
        made = reference(llama_of, case, vocabulary)
        print(case, os.path.getsize(os.path.join(out, case + ".gguf")), "bytes; largest logit", max(map(abs, made["logits"])))
        with open(os.path.join(out, case + ".json"), "w") as file:
            json.dump(made, file)
            file.write("\n")
