"""Small random GGUF models whose indexer compares one key of a group of neighbours, of random sizes, for comparisons with llama.cpp.

    python gguf_pooled.py FOLDER LIBRARIES COUNT SEED ARCHITECTURE

does what gguf_plamo2.py does for its own: `qwen4exp` and `glm5-next`. Tokens have several states.
"""

import sys

import gguf_families as families
import gguf_plamo2
import numpy as np


def both(random, least=2):
    """Which layers attend, of each kind one at least."""
    attends = [bool(random.integers(2)) for _ in range(int(random.integers(least, 6)))]
    if all(attends) or not any(attends):
        attends[int(random.integers(len(attends)))] ^= True
    return attends


def drawn_qwen(random):
    """Keys, layers and what stands outside of layers, at random."""
    one = lambda *of: of[int(random.integers(len(of)))]
    width, states, rank, inner, expert_inner = one(32, 64, 96), one(2, 3, 4), one(32, 64), one(32, 64), one(32, 64)
    kv, dim, turned = one(1, 2), one(32, 64), one(16, 32)
    heads, experts, used = kv * one(1, 2, 3), one(4, 6, 8), one(1, 2, 3)
    index_heads, index_key, size = one(16, 24, 32), one(32, 64), one(2, 4, 8)
    groups, each, state, taps = one(1, 2), one(1, 2), one(16, 32, 64), one(2, 3, 4)
    ssm_heads = groups * each
    ssm_inner = ssm_heads * state
    attends = both(random)
    recurrent = [layer for layer, own in enumerate(attends) if not own]
    connected = lambda part: [
        [f"hc_{part}_norm", states * width], [f"hc_{part}_down", rank, states * width], [f"hc_{part}_up", states * width, rank],
        [f"hc_{part}_inject", states, states * width],
    ]  # fmt: skip
    attention = [
        ["attn_q", 2 * heads * dim, width], ["attn_k", kv * dim, width], ["attn_v", kv * dim, width], ["attn_output", width, heads * dim], ["attn_q_norm", dim],
        ["attn_k_norm", dim], ["indexer.q_proj", index_heads * index_key, width], ["indexer.k_proj", index_key, width], ["indexer.q_norm", index_key],
        ["indexer.k_norm", index_key],
    ]  # fmt: skip
    convolved = 2 * groups * state + ssm_inner
    delta = [
        ["attn_qkv", convolved, width], ["attn_gate", ssm_inner, width], ["ssm_conv1d", convolved, taps], ["ssm_dt.bias", ssm_heads], ["ssm_a", ssm_heads],
        ["ssm_beta", ssm_heads, width], ["ssm_alpha", ssm_heads, width], ["ssm_norm", state], ["ssm_out", width, ssm_inner],
    ]  # fmt: skip
    net = lambda kind, rows: [[f"ffn_{name}{kind}", *([width, rows] if name == "down" else [rows, width])] for name in ("gate", "up", "down")]
    routed = [[name, experts, *dims] for name, *dims in net("_exps", expert_inner)]
    if random.integers(3) == 0:
        routed = [["ffn_gate_up_exps", experts, 2 * expert_inner, width], routed[2]]
    mixture = [["ffn_gate_inp", experts, width], *routed, ["ffn_gate_inp_shexp", width], *net("_shexp", inner)]
    keys = {
        "embedding_length": width, "feed_forward_length": inner, "attention.head_count": heads, "attention.head_count_kv": kv, "attention.key_length": dim,
        "attention.value_length": dim, "rope.dimension_count": turned, "rope.dimension_sections": [turned // 4, turned // 8, turned // 8, 0],
        "attention.layer_norm_rms_epsilon": one(1e-5, 1e-6), "ssm.conv_kernel": taps, "ssm.inner_size": ssm_inner, "ssm.state_size": state,
        "ssm.time_step_rank": ssm_heads, "ssm.group_count": groups, "hyper_connection.count": states, "hyper_connection.low_rank": rank,
        "attention.indexer.head_count": index_heads, "attention.indexer.key_length": index_key, "attention.indexer.top_k": size * one(1, 2, 3, 40),
        "attention.recurrent_layers": [not own for own in attends], "expert_count": experts, "expert_used_count": used,
        "expert_feed_forward_length": expert_inner, "expert_shared_feed_forward_length": inner,
        **({"rope.freq_base": one(500.0, 1e6)} if random.integers(2) else {}),
    }  # fmt: skip
    keys["attention.compress_ratios"] = [size if own and random.integers(4) else 0 for own in attends]
    layers = [[*connected("attn"), *connected("ffn"), *(attention if own else delta), *mixture] for own in attends]
    model = [["output_hc_norm", states * width], ["output_hc_down", rank, states * width], ["output_hc_up", states * width, rank]]
    model += [["output", "vocabulary", width]] if random.integers(2) else []
    if random.integers(4):
        ngram, rows, taps = one(2, 3, 4), one(1, 2), one(1, 2, 4)
        count = (ngram - 1) * rows
        if width % count:
            return drawn_qwen(random)
        # llama.cpp takes rows of all groups that are as long as a state.
        length = width // count
        sizes = [int(random.integers(20, 90)) for _ in range(count)]
        ends = [int(end) for end in np.cumsum(sizes)]
        place = recurrent[int(random.integers(len(recurrent)))]
        keys |= {
            "ple.layers": [place], "ple.ngram_size": ngram, "ple.heads_per_ngram": rows, "ple.conv_kernel": taps, "ple.eos_token_id": int(random.integers(3, 250)),
            "embedding_length_per_layer_input": length, "ple.layer_multipliers": random.integers(1, 1 << 63, ngram, np.uint64),
            "ple.head_offsets": np.array([0, *ends[:-1]], np.uint64), "ple.head_vocab_sizes": np.array(sizes, np.uint64),
        }  # fmt: skip
        layers[place] = [*layers[place], ["ple_key", states * width, width], ["ple_value", width, width]]
        layers[place] += [[f"ple_norm_{name}", states * width] for name in ("key", "query", "conv")] + [["ple_conv1d", states * width, taps]]
        model += [["per_layer_token_embd", ends[-1] + one(0, 5), length]]
    return keys, layers, model, {"rate": one(0.2, 1.0)}


def drawn_glm(random):
    """The same of delta nets beside latent attention, where states go into each other."""
    one = lambda *of: of[int(random.integers(len(of)))]
    width, states, heads, size, taps = one(32, 64, 96), 4, one(1, 2, 3, 4), one(16, 32, 64), one(2, 3, 4)
    heads *= 1 if heads * size % 32 == 0 else 2
    rank, q_rank, bare, value = one(32, 64, 128), one(32, 64), one(32, 64), one(32, 64)
    inner, expert_inner, experts, used, shared = one(32, 64), one(32, 64), one(4, 6, 8), one(1, 2, 3), one(1, 2)
    index_heads, index_key, pool = one(16, 24, 32), one(64, 128), one(2, 4, 8)
    attends = both(random)
    leading = int(random.integers(len(attends) + 1))
    connected = lambda part: [[f"hc_{part}_fn", (2 + states) * states, states * width], [f"hc_{part}_base", (2 + states) * states], [f"hc_{part}_scale", 3]]
    latent = [
        ["attn_norm", width], ["attn_q_a", q_rank, width], ["attn_q_a_norm", q_rank], ["attn_q_b", heads * bare, q_rank], ["attn_kv_a_mqa", rank, width],
        ["attn_kv_a_norm", rank], ["attn_k_b", heads, rank, bare], ["attn_v_b", heads, value, rank], ["attn_output", width, heads * value],
    ]  # fmt: skip
    index = [
        ["indexer.k_norm", index_key], ["indexer.k_norm.bias", index_key], ["indexer.proj", index_heads, width], ["indexer.attn_k", index_key, width],
        ["indexer.attn_q_b", index_heads * index_key, q_rank], ["indexer_compressor_gate", index_key, width], ["indexer_compressor_ape", pool, index_key],
    ]  # fmt: skip
    delta = [["ssm_a", heads] if part[0] == "ssm_a" else part for part in families.kda(width, heads, size, taps)]
    net = lambda kind, rows: [[f"ffn_{name}{kind}", *([width, rows] if name == "down" else [rows, width])] for name in ("gate", "up", "down")]
    routed = [[name, experts, *dims] for name, *dims in net("_exps", expert_inner)]
    mixture = [["ffn_gate_inp", experts, width], *routed, *net("_shexp", shared * expert_inner), ["exp_probs_b.bias", experts]]
    keys = {
        "embedding_length": width, "feed_forward_length": inner, "attention.head_count": heads, "attention.head_count_kv": [int(own) for own in attends],
        "attention.key_length": rank, "attention.value_length": rank, "attention.key_length_mla": bare, "attention.value_length_mla": value,
        "attention.q_lora_rank": q_rank, "attention.kv_lora_rank": rank, "rope.dimension_count": 0, "kda.head_dim": size, "ssm.conv_kernel": taps,
        "hyper_connection.count": states, "hyper_connection.sinkhorn_iterations": one(1, 2, 5), "hyper_connection.epsilon": one(1e-6, 1e-2),
        "attention.indexer.head_count": index_heads, "attention.indexer.key_length": index_key, "attention.indexer.top_k": pool * one(1, 2, 3, 40),
        "attention.indexer.kpool": pool, "attention.indexer.kpool_select_tail": True, "expert_count": experts, "expert_used_count": used,
        "expert_feed_forward_length": expert_inner, "expert_shared_count": shared, "leading_dense_block_count": leading,
        "attention.layer_norm_rms_epsilon": one(1e-5, 1e-6), "attention.layer_norm_epsilon": one(1e-5, 1e-6),
        **({"expert_weights_scale": 2.446} if random.integers(2) else {}), **({"expert_weights_norm": one(True, False)} if random.integers(2) else {}),
        **({"expert_gating_func": one(1, 2)} if random.integers(2) else {}), **({"kda.gate_lower_bound": one(-5.0, -1.0)} if random.integers(2) else {}),
        **({"swiglu_clamp_exp": one(0.3, 7.0)} if random.integers(3) == 0 else {}),
        **({"swiglu_clamp_shexp": one(0.3, 7.0)} if random.integers(3) == 0 else {}),
    }  # fmt: skip
    own = [True] * len(attends)
    if random.integers(2):
        first = attends.index(True)
        own = [layer <= first or bool(random.integers(2)) for layer in range(len(attends))]
        keys["attention.indexer.types"] = own
    layers = [
        [
            *connected("attn"), *connected("ffn"), *([*latent, *(index if own[layer] else [])] if attends[layer] else delta), ["ffn_norm", width],
            *(net("", inner) if layer < leading else mixture),
        ]
        for layer in range(len(attends))
    ]  # fmt: skip
    return keys, layers, [["output_norm", width], ["output", "vocabulary", width]], {"rate": one(0.2, 1.0, 16.0)}


DRAWN = {"qwen4exp": drawn_qwen, "glm5-next": drawn_glm}

if __name__ == "__main__":
    *given, arch = sys.argv[1:]
    gguf_plamo2.main(*given, arch, DRAWN[arch])
