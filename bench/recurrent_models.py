"""Language models whose layers keep a state of one size, with the shapes of known ones and random weights, for language_models.py's
`llama` and `halite bench --generate`.

    python recurrent_models.py FOLDER lfm2_1b-q4_k granite_h_1b-q4_k qwen35_2b-q4_k

Writes FOLDER/SHAPE-TYPE.gguf. Shapes are those of LFM2-1.2B, of Granite-4.0-H-1B, and about those of a Qwen3.5 of 2B. Needs `numpy` and
`gguf` 0.19.
"""

import os
import sys

import numpy as np
from gguf import GGMLQuantizationType as Type, GGUFWriter

from language_models import weights


def dense(width, inner):
    """A feed-forward network with a gate."""
    return [("ffn_gate", inner, width), ("ffn_up", inner, width), ("ffn_down", width, inner)]


def attention(width, heads, kv_heads, dim, queries=1):
    """Products of attention; `queries` 2 has a gate beside each query."""
    sizes = (("q", queries * heads), ("k", kv_heads), ("v", kv_heads))
    return [(f"attn_{name}", count * dim, width) for name, count in sizes] + [("attn_output", width, heads * dim)]


def lfm2():
    width, inner, taps = 2048, 8192, 3
    conv = [("shortconv.in_proj", 3 * width, width), ("shortconv.conv", width, taps), ("shortconv.out_proj", width, width)]
    attends = [*attention(width, 32, 8, 64), ("attn_q_norm", 64), ("attn_k_norm", 64)]
    rest = [("attn_norm", width), ("ffn_norm", width), *dense(width, inner)]
    places = {2, 5, 8, 10, 12, 14}
    layers = [[*(attends if layer in places else conv), *rest] for layer in range(16)]
    keys = {
        "embedding_length": width, "feed_forward_length": inner, "attention.head_count": 32, "shortconv.l_cache": taps,
        "attention.head_count_kv": [8 if layer in places else 0 for layer in range(16)], "rope.dimension_count": 64,
    }  # fmt: skip
    return "lfm2", 65536, keys, layers, [("token_embd_norm", width)]


def granite():
    width, inner, states, heads, head, taps = 1536, 4096, 128, 48, 64, 4
    conv = heads * head + 2 * states
    scan = [
        ("ssm_in", heads * head + conv + heads, width), ("ssm_conv1d", conv, taps), ("ssm_conv1d.bias", conv), ("ssm_dt.bias", heads),
        ("ssm_a", heads, 1), ("ssm_d", heads, 1), ("ssm_norm", 1, heads * head), ("ssm_out", width, heads * head),
    ]  # fmt: skip
    rest = [("attn_norm", width), ("ffn_norm", width), *dense(width, inner)]
    places = {5, 15, 25, 35}
    layers = [[*(attention(width, 12, 4, 128) if layer in places else scan), *rest] for layer in range(40)]
    keys = {
        "embedding_length": width, "feed_forward_length": inner, "attention.head_count": 12, "rope.dimension_count": 128,
        "attention.head_count_kv": [4 if layer in places else 0 for layer in range(40)], "embedding_scale": 12.0, "residual_scale": 0.22,
        "logit_scale": 6.0, "attention.scale": 0.0078125, "rope.scaling.finetuned": False, "ssm.conv_kernel": taps, "ssm.inner_size": heads * head,
        "ssm.state_size": states, "ssm.time_step_rank": heads, "ssm.group_count": 1,
    }  # fmt: skip
    return "granitehybrid", 100352, keys, layers, []


def qwen35():
    width, inner, groups, heads, states, taps, count = 2048, 6144, 16, 16, 128, 4, 24
    conv = heads * states + 2 * groups * states
    delta = [
        ("attn_qkv", conv, width), ("attn_gate", heads * states, width), ("ssm_beta", heads, width), ("ssm_alpha", heads, width),
        ("ssm_conv1d", conv, taps), ("ssm_dt.bias", heads), ("ssm_a", heads), ("ssm_norm", states), ("ssm_out", width, heads * states),
    ]  # fmt: skip
    attends = [*attention(width, 8, 2, 256, queries=2), ("attn_q_norm", 256), ("attn_k_norm", 256)]
    rest = [("attn_norm", width), ("post_attention_norm", width), *dense(width, inner)]
    layers = [[*(attends if layer % 4 == 3 else delta), *rest] for layer in range(count)]
    keys = {
        "embedding_length": width, "feed_forward_length": inner, "attention.head_count": 8, "attention.head_count_kv": 2,
        "attention.key_length": 256, "attention.value_length": 256, "rope.dimension_count": 64, "rope.dimension_sections": [11, 11, 10, 0],
        "full_attention_interval": 4, "ssm.conv_kernel": taps, "ssm.inner_size": heads * states, "ssm.state_size": states,
        "ssm.time_step_rank": heads, "ssm.group_count": groups,
    }  # fmt: skip
    return "qwen35", 151936, keys, layers, []


SHAPES = {"lfm2_1b": lfm2, "granite_h_1b": granite, "qwen35_2b": qwen35}


def tensor(w, name, dims, kind, random):
    """A matrix in blocks; what is small, and what scales, as f32."""
    stem = name.rsplit(".", 2)[-2] if name.endswith((".weight", ".bias")) else name.rsplit(".", 1)[-1]
    if stem == "ssm_a":
        return w.add_tensor(name, -1 - np.abs(random.standard_normal(dims)).astype(np.float32))
    if len(dims) == 1 or dims[0] == 1 or dims[-1] < 32:
        value = np.full(dims, 0.0 if name.endswith(".bias") else 1.0, np.float32)
        return w.add_tensor(name, value + 0.1 * random.standard_normal(dims).astype(np.float32))
    return w.add_tensor(name, weights(kind, *dims, random), raw_dtype=None if kind in (Type.F16, Type.F32) else kind)


def make(folder, name):
    """Writes a file."""
    shape, kind = name.rsplit("-", 1)
    arch, tokens, keys, layers, more = SHAPES[shape]()
    kind, random = Type[kind.upper()], np.random.default_rng(1)
    w = GGUFWriter(os.path.join(folder, name + ".gguf"), arch)
    keys = {"context_length": 8192, "block_count": len(layers), "attention.layer_norm_rms_epsilon": 1e-5, "rope.freq_base": 1e6, "vocab_size": tokens, **keys}
    adds = {bool: w.add_bool, int: w.add_uint32, float: w.add_float32, list: w.add_array}
    for key, value in keys.items():
        adds[type(value)](f"{arch}.{key}", value)
    w.add_tokenizer_model("llama")
    w.add_token_list(["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)] + [f"t{i}" for i in range(tokens - 259)])
    w.add_token_scores([0.0] * tokens)
    w.add_token_types([2, 3, 3] + [6] * 256 + [1] * (tokens - 259))
    w.add_bos_token_id(1)
    w.add_eos_token_id(2)
    width = keys["embedding_length"]
    parts = [("token_embd", (tokens, width)), *((part, tuple(dims)) for part, *dims in more)]
    if arch != "lfm2":
        parts.append(("output_norm", (width,)))
    parts += [(f"blk.{layer}.{part}", tuple(dims)) for layer, of_layer in enumerate(layers) for part, *dims in of_layer]
    for part, dims in parts:
        bare = part.endswith((".bias", "ssm_a", "ssm_d"))
        tensor(w, part if bare else part + ".weight", dims, kind, random)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


if __name__ == "__main__":
    for wanted in sys.argv[2:]:
        make(sys.argv[1], wanted)
