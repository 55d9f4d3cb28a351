"""Small random GGUF models whose attention reads the keys that an indexer chooses, of random sizes, for comparisons with llama.cpp.

    python gguf_indexed.py FOLDER LIBRARIES COUNT SEED ARCHITECTURE

does what gguf_plamo2.py does for its own.
"""

import sys

import gguf_plamo2


def drawn_blocks(random):
    """The same where blocks of keys are chosen."""
    one = lambda *of: of[int(random.integers(len(of)))]
    kv, dim, inner, width = one(1, 2, 3), one(32, 64), one(32, 64, 96), one(32, 64, 96)
    heads, index_key, turned = kv * one(1, 2, 3), one(32, 64), one(8, 16, 32)
    experts, used, expert_inner, shared = one(4, 6, 8), one(1, 2, 3), one(32, 64), one(1, 2)
    count, leading = int(random.integers(1, 5)), int(random.integers(0, 3))
    attention = [
        ["attn_norm", width], ["attn_q", heads * dim, width], ["attn_k", kv * dim, width], ["attn_v", kv * dim, width], ["attn_output", width, heads * dim],
        ["attn_q_norm", dim], ["attn_k_norm", dim], ["ffn_norm", width],
    ]  # fmt: skip
    index = [["indexer.q_proj", kv * index_key, width], ["indexer.k_proj", index_key, width], ["indexer.q_norm", index_key], ["indexer.k_norm", index_key]]
    net = lambda kind, rows: [[f"ffn_{name}{kind}", *([width, rows] if name == "down" else [rows, width])] for name in ("gate", "up", "down")]
    routed = [[name, experts, *dims] for name, *dims in net("_exps", expert_inner)]
    mixture = [["ffn_gate_inp", experts, width], *routed, *net("_shexp", shared * expert_inner), ["exp_probs_b.bias", experts]]
    keys = {
        "embedding_length": width, "feed_forward_length": inner, "attention.head_count": heads, "attention.head_count_kv": kv, "attention.key_length": dim,
        "attention.value_length": dim, "rope.dimension_count": turned, "attention.layer_norm_rms_epsilon": one(1e-5, 1e-6),
        "attention.indexer.head_count": kv, "attention.indexer.key_length": index_key, "attention.indexer.top_k": one(1, 2, 3, 16),
        "attention.indexer.block_size": one(4, 8, 16), "attention.indexer.local_blocks": one(0, 1, 2), "expert_count": experts,
        "expert_used_count": used, "expert_feed_forward_length": expert_inner, "expert_shared_count": shared, "leading_dense_block_count": leading,
        "expert_weights_scale": one(1.0, 2.5), "expert_gating_func": 2, **({"expert_weights_norm": one(True, False)} if random.integers(2) else {}),
        **({"rope.freq_base": one(500.0, 1e6)} if random.integers(2) else {}),
    }  # fmt: skip
    layers = [[*attention, *(net("", inner) if layer < leading else [*index, *mixture])] for layer in range(count)]
    return keys, layers, [["output_norm", width], ["output", "vocabulary", width]]


def drawn_windows(random):
    """The same where layers with windows have latent attention of other sizes, and no indexer."""
    one = lambda *of: of[int(random.integers(len(of)))]
    width, q_rank, turned, inner, expert_inner = one(32, 64, 96), one(32, 64), one(16, 32), one(32, 64), one(32, 64)
    experts, used, shared, count, leading = one(4, 6, 8), one(1, 2, 3), one(1, 2), int(random.integers(2, 6)), int(random.integers(0, 3))
    index_heads, index_key, top_k = one(16, 24, 32), one(64, 128), one(1, 3, 8, 16, 33, 64, 200)
    windows = [bool(random.integers(2)) for _ in range(count)]
    # Of each kind there is one at least.
    if all(windows) or not any(windows):
        windows[int(random.integers(count))] ^= True
    ranks, bares, values = [[one(32, 64, 128), one(32, 64, 128)], [one(32, 64), one(32, 64)], [one(32, 64), one(32, 64)]]
    heads = [one(1, 2, 4) for _ in range(2)]
    net = lambda kind, rows: [[f"ffn_{name}{kind}", *([width, rows] if name == "down" else [rows, width])] for name in ("gate", "up", "down")]
    routed = [[name, experts, *dims] for name, *dims in net("_exps", expert_inner)]
    mixture = [["ffn_gate_inp", experts, width], *routed, *net("_shexp", shared * expert_inner), ["exp_probs_b.bias", experts]]
    index = [
        ["indexer.k_norm", index_key], ["indexer.k_norm.bias", index_key], ["indexer.proj", index_heads, width], ["indexer.attn_k", index_key, width],
        ["indexer.attn_q_b", index_heads * index_key, q_rank],
    ]  # fmt: skip

    def attention(own):
        """Latent attention with a gate for each head."""
        rank, bare, value, count = ranks[own], bares[own], values[own], heads[own]
        return [
            ["attn_norm", width], ["attn_q_a", q_rank, width], ["attn_q_a_norm", q_rank], ["attn_q_b", count * (bare + turned), q_rank],
            ["attn_kv_a_mqa", rank + turned, width], ["attn_kv_a_norm", rank], ["attn_k_norm", turned], ["attn_k_b", count, rank, bare],
            ["attn_v_b", count, value, rank], ["attn_output", width, count * value], ["attn_gate", count, width], ["ffn_norm", width],
        ]  # fmt: skip

    keys = {
        "embedding_length": width, "feed_forward_length": inner, "attention.head_count": [heads[own] for own in windows], "attention.head_count_kv": 1,
        "attention.q_lora_rank": q_rank, "rope.dimension_count": turned, "rope.dimension_count_swa": turned, "attention.sliding_window": one(4, 8, 16),
        "attention.sliding_window_pattern": windows, "attention.indexer.types": [not own for own in windows], "rope.freq_base_swa": one(300.0, 5e4),
        "attention.indexer.head_count": index_heads, "attention.indexer.key_length": index_key, "attention.indexer.top_k": top_k,
        "expert_count": experts, "expert_used_count": used, "expert_feed_forward_length": expert_inner, "expert_shared_count": shared,
        "leading_dense_block_count": leading, "expert_weights_scale": one(1.0, 2.5), "attention.layer_norm_rms_epsilon": one(1e-5, 1e-6),
        "expert_gating_func": one(1, 2), **({"expert_weights_norm": one(True, False)} if random.integers(2) else {}),
        **({"rope.freq_base": one(500.0, 1e6)} if random.integers(2) else {}),
    }  # fmt: skip
    for end, own in (("", 0), ("_swa", 1)):
        keys |= {f"attention.kv_lora_rank{end}": ranks[own], f"attention.key_length{end}": ranks[own] + turned, f"attention.value_length{end}": ranks[own]}
        keys |= {f"attention.key_length_mla{end}": bares[own] + turned, f"attention.value_length_mla{end}": values[own]}
    layers = [[*attention(own), *([] if own else index), *(net("", inner) if layer < leading else mixture)] for layer, own in enumerate(windows)]
    return keys, layers, [["output_norm", width], *([["output", "vocabulary", width]] if random.integers(2) else [])]


def drawn(random, arch):
    """Keys, layers and what stands outside of layers, at random."""
    if arch == "minimax-m3":
        return drawn_blocks(random)
    if arch == "dots3note":
        return drawn_windows(random)
    one = lambda *of: of[int(random.integers(len(of)))]
    width, heads, kv_rank, q_rank = one(32, 64, 96), one(1, 2, 3, 4), one(32, 64, 128), one(32, 64)
    bare, turned, value = one(32, 64), one(8, 16, 32), one(32, 64)
    inner, expert_inner, experts, used = one(32, 64), one(32, 64), one(4, 6, 8), one(1, 2, 3)
    count, leading, shared = int(random.integers(1, 5)), int(random.integers(0, 3)), one(1, 2)
    index_heads, index_key, top_k = one(16, 24, 32), one(64, 128), one(1, 3, 8, 16, 33, 64, 200)
    attention = [
        ["attn_norm", width], ["attn_q_a", q_rank, width], ["attn_q_a_norm", q_rank], ["attn_q_b", heads * (bare + turned), q_rank],
        ["attn_kv_a_mqa", kv_rank + turned, width], ["attn_kv_a_norm", kv_rank], ["attn_k_b", heads, kv_rank, bare], ["attn_v_b", heads, value, kv_rank],
        ["attn_output", width, heads * value], ["ffn_norm", width],
    ]  # fmt: skip
    index = [
        ["indexer.k_norm", index_key], ["indexer.k_norm.bias", index_key], ["indexer.proj", index_heads, width], ["indexer.attn_k", index_key, width],
        ["indexer.attn_q_b", index_heads * index_key, q_rank],
    ]  # fmt: skip
    net = lambda kind, rows: [[f"ffn_{name}{kind}", *([width, rows] if name == "down" else [rows, width])] for name in ("gate", "up", "down")]
    routed = [[name, experts, *dims] for name, *dims in net("_exps", expert_inner)]
    mixture = [["ffn_gate_inp", experts, width], *routed, *net("_shexp", shared * expert_inner)]
    mixture += [["exp_probs_b.bias", experts]] if random.integers(2) else []
    keys = {
        "embedding_length": width, "feed_forward_length": inner, "attention.head_count": heads, "attention.head_count_kv": 1, "attention.q_lora_rank": q_rank,
        "attention.kv_lora_rank": kv_rank, "attention.key_length": kv_rank + turned, "attention.value_length": kv_rank,
        "attention.key_length_mla": bare + turned, "attention.value_length_mla": value, "rope.dimension_count": turned,
        "attention.indexer.head_count": index_heads, "attention.indexer.key_length": index_key, "attention.indexer.top_k": top_k,
        "expert_count": experts, "expert_used_count": used, "expert_feed_forward_length": expert_inner, "expert_shared_count": shared,
        "leading_dense_block_count": leading, "expert_weights_scale": one(1.0, 2.5), "attention.layer_norm_rms_epsilon": one(1e-5, 1e-6),
        **({"expert_weights_norm": one(True, False)} if random.integers(2) else {}),
        **({"expert_gating_func": one(1, 2)} if random.integers(2) or arch == "deepseek32" else {}),
        **({"rope.freq_base": one(500.0, 1e6)} if random.integers(2) else {}),
    }  # fmt: skip
    if arch != "hy_v4" and random.integers(2):
        keys |= {"rope.scaling.type": "yarn", "rope.scaling.factor": one(2.0, 40.0), "rope.scaling.original_context_length": one(16, 64), **({"rope.scaling.yarn_log_multiplier": one(0.1, 0.07)} if random.integers(2) else {})}
    own = [True] * count
    if arch == "glm-dsa":
        if random.integers(2):
            own = [True, *[bool(random.integers(2)) for _ in range(count - 1)]]
            keys["attention.indexer.types"] = own
        elif random.integers(2):
            keys["context_length"] = 1 << 20
            count = one(4, 7)
            own = [layer < 2 or layer % 4 == 2 for layer in range(count)]
    more, whole = [], []
    if arch == "hy_v4":
        states = one(1, 2, 4)
        keys |= {
            "hyper_connection.count": states, "hyper_connection.epsilon": one(1e-6, 1e-2), "hyper_connection.magnitude": one(0.5, 1.0, 2.0),
            "expert_gating_func": one(1, 2), **({"swiglu_clamp_exp": one(0.3, 10.0)} if random.integers(2) else {}),
        }  # fmt: skip
        own = [True, *[bool(random.integers(2)) for _ in range(count - 1)]]
        keys["attention.indexer.types"] = own
        if random.integers(4) == 0:
            own = [False] * count
            for name in ("head_count", "key_length", "top_k", "types"):
                keys.pop(f"attention.indexer.{name}")
        parts = [[f"hc_{part}_{name}", *dims] for part in ("attn", "ffn") for name, dims in (("fn", [2 * states, states * width]), ("base", [2 * states]), ("scale", [2]))]
        more = [["attn_sinks", heads], ["attn_gate", heads * value, width], *parts]
        whole = [["output_hc_fn", states, states * width], ["output_hc_base", states], ["output_hc_scale", 1]]
    layers = [[*attention, *more, *(index if own[layer] else []), *(net("", inner) if layer < leading else mixture)] for layer in range(count)]
    tied = arch == "glm-dsa" and random.integers(2)
    return keys, layers, [["output_norm", width], *whole, *([] if tied else [["output", "vocabulary", width]])]


if __name__ == "__main__":
    *given, arch = sys.argv[1:]
    gguf_plamo2.main(*given, arch, lambda random: drawn(random, arch))
