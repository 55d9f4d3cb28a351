"""Small random GGUF models of architecture `deepseek4`, whose layers attend to rows that stand for groups of tokens, of random sizes, for
gguf_matrix.py.
"""

from gguf import RopeScalingType


def drawn(random, arch="deepseek4"):
    """Keys, layers and what stands outside of layers, at random."""
    one = lambda *of: of[int(random.integers(len(of)))]
    width, states, outputs, dim, turned = one(96, 128, 256), 4, one(1, 2), one(64, 96, 128), one(16, 32)
    heads, row, rank, inner, index, index_heads = outputs * one(1, 2, 4), one(32, 64, 96), one(32, 64), one(32, 64, 96), one(64, 128), one(8, 16)
    experts, used, shared = one(4, 6, 8), one(1, 2, 3), 1
    # llama.cpp ends where there are not both kinds of groups.
    ratios = [one(0, 4, 4, 128) for _ in range(int(random.integers(0, 3)))]
    ratios = [[4, 128, *ratios][place] for place in random.permutation(len(ratios) + 2)]
    told = int(random.integers(0, len(ratios) + 1)) if random.integers(2) else 0
    mixes = (2 + states) * states
    keys = {
        "embedding_length": width, "feed_forward_length": inner, "attention.head_count": heads, "attention.head_count_kv": 1, "attention.key_length": dim,
        "attention.value_length": dim, "rope.dimension_count": turned, "attention.q_lora_rank": row, "attention.sliding_window": one(4, 8, 33, 64),
        "attention.layer_norm_rms_epsilon": 1e-6, "expert_count": experts, "expert_used_count": used, "expert_feed_forward_length": inner,
        "expert_shared_count": shared, "expert_weights_scale": one(1.0, 1.5, 2.5), "expert_weights_norm": one(True, False), "expert_gating_func": 4,
        "swiglu_clamp_exp": one(0.5, 7.0), "attention.indexer.head_count": index_heads, "attention.indexer.key_length": index,
        "attention.indexer.top_k": one(2, 5, 16, 200), "attention.output_group_count": outputs, "attention.output_lora_rank": rank,
        "attention.compress_rope_freq_base": one(160000.0, 500.0), "rope.freq_base": one(10000.0, 500.0), "hyper_connection.count": states,
        "hyper_connection.sinkhorn_iterations": one(1, 4, 20), "hyper_connection.epsilon": one(1e-6, 1e-3), "hash_layer_count": told,
        "attention.compress_ratios": ratios,
    }  # fmt: skip
    if random.integers(2):
        keys |= {"swiglu_clamp_shexp": one(0.7, 5.0)}
    if random.integers(2):
        keys |= {"rope.scaling.type": RopeScalingType.YARN.value, "rope.scaling.factor": one(4.0, 16.0), "rope.scaling.original_context_length": one(32, 128)}
    spread = [
        [f"hc_{part}_{name}", *dims] for part in ("attn", "ffn") for name, dims in (("fn", [mixes, states * width]), ("base", [mixes]), ("scale", [3]))
    ]  # fmt: skip
    attention = [
        ["attn_norm", width], ["attn_sinks", heads], ["attn_q_a", row, width], ["attn_q_a_norm", row], ["attn_q_b", heads * dim, row], ["attn_kv", dim, width],
        ["attn_kv_a_norm", dim], ["attn_output_a", outputs * rank, heads // outputs * dim], ["attn_output_b", width, outputs * rank],
    ]  # fmt: skip
    made_of = lambda part, size, length: [
        [f"{part}_kv", length, width], [f"{part}_gate", length, width], [f"{part}_ape", size, length], [f"{part}_norm", dim if part == "attn_compressor" else index],
    ]  # fmt: skip

    def groups(size):
        """What makes rows of groups, and what chooses them."""
        if size != 4:
            return made_of("attn_compressor", size, dim) if size else []
        chooses = [["indexer.proj", index_heads, width], ["indexer.attn_q_b", index_heads * index, row], *made_of("indexer_compressor", size, 2 * index)]
        return [*made_of("attn_compressor", size, 2 * dim), *chooses]

    def feed(layer):
        """Experts, which tokens tell in the first layers."""
        net = lambda kind, count: [[f"ffn_{name}_{kind}", *count, *([width, inner] if name == "down" else [inner, width])] for name in ("gate", "up", "down")]
        choice = ["ffn_gate_tid2eid", "vocabulary", used] if layer < told else ["exp_probs_b.bias", experts]
        return [["ffn_norm", width], ["ffn_gate_inp", experts, width], choice, *net("exps", [experts]), *net("shexp", [])]

    layers = [[*spread, *attention, *groups(size), *feed(layer)] for layer, size in enumerate(ratios)]
    last = [["output_hc_fn", states, states * width], ["output_hc_base", states], ["output_hc_scale", 1]]
    return keys, layers, [["output_norm", width], ["output", "vocabulary", width], *last]
