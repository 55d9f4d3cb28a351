"""Small random GGUF models of architecture `kimi-linear`, of random sizes, for comparisons with llama.cpp.

    python gguf_kimi.py FOLDER LIBRARIES COUNT SEED

does what gguf_plamo2.py does for its own.
"""

import sys

import gguf_families as families
import gguf_plamo2


def drawn(random):
    """Keys, layers, what stands outside of layers and how fast states decay, at random."""
    one = lambda *of: of[int(random.integers(len(of)))]
    width, heads, size, taps = one(32, 64, 96), one(1, 2, 3, 4), one(16, 32, 64), one(2, 3, 4)
    heads *= 1 if heads * size % 32 == 0 else 2
    rank, bare, turned, value = one(32, 64, 128), one(32, 64), one(16, 32), one(32, 64)
    inner, expert_inner, experts, used = one(32, 64), one(32, 64), one(4, 6, 8), one(1, 2, 3)
    attends = [bool(random.integers(2)) for _ in range(int(random.integers(2, 6)))]
    # Of each kind there is one at least.
    if all(attends) or not any(attends):
        attends[int(random.integers(len(attends)))] ^= True
    leading = int(random.integers(len(attends) + 1))
    latent = [
        ["attn_norm", width], ["attn_q", heads * (bare + turned), width], ["attn_kv_a_mqa", rank + turned, width], ["attn_kv_a_norm", rank], ["attn_k_b", heads, rank, bare],
        ["attn_v_b", heads, value, rank], ["attn_output", width, heads * value],
    ]  # fmt: skip
    shared = int(random.integers(1, 3))
    net = lambda kind, rows: [[f"ffn_{name}{kind}", *([width, rows] if name == "down" else [rows, width])] for name in ("gate", "up", "down")]
    routed = [[name, experts, *dims] for name, *dims in net("_exps", expert_inner)]
    mixture = [["ffn_gate_inp", experts, width], *routed, *net("_shexp", shared * expert_inner), ["exp_probs_b.bias", experts]]
    keys = {
        "embedding_length": width, "feed_forward_length": inner, "attention.head_count": heads, "attention.head_count_kv": [int(own) for own in attends],
        "attention.key_length": rank + turned, "attention.value_length": one(24, rank), "attention.key_length_mla": bare + turned, "attention.value_length_mla": value,
        "attention.kv_lora_rank": rank, "rope.dimension_count": turned, "kda.head_dim": size, "ssm.conv_kernel": taps,
        "expert_count": experts, "expert_used_count": used, "expert_feed_forward_length": expert_inner, "expert_shared_count": shared,
        "leading_dense_block_count": leading, "expert_gating_func": one(1, 2), "attention.layer_norm_rms_epsilon": one(1e-5, 1e-6),
        **({"expert_weights_scale": 2.446} if random.integers(2) else {}),
        **({"rope.freq_base": 500.0} if random.integers(2) else {}),
    }  # fmt: skip
    layers = [
        [*(latent if own else families.kda(width, heads, size, taps)), ["ffn_norm", width], *(net("", inner) if layer < leading else mixture)]
        for layer, own in enumerate(attends)
    ]
    return keys, layers, [["output_norm", width], ["output", "vocabulary", width]], {"rate": one(0.2, 1.0, 16.0)}


if __name__ == "__main__":
    gguf_plamo2.main(*sys.argv[1:], "kimi-linear", drawn)
