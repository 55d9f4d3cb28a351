"""Small random GGUF models of several architectures, of random sizes, for comparisons with llama.cpp.

    python gguf_drawn.py FOLDER LIBRARIES COUNT SEED ARCHITECTURE

does what gguf_plamo2.py does for its own.
"""

import sys

import gguf_plamo2


def drawn(random, arch):
    """Keys, layers and what stands outside of layers, at random."""
    one = lambda *of: of[int(random.integers(len(of)))]
    kv, dim, inner, width = one(1, 2), one(8, 16, 32, 64), one(32, 64, 96), one(32, 64, 96)
    heads = kv * one(*[times for times in (1, 2, 4, 8) if kv * times * dim % 32 == 0])
    count, experts, used, expert_inner, short = int(random.integers(1, 5)), one(4, 6, 8), one(1, 2, 3), one(32, 64), one(32, 64, 96)
    attention = [
        ["attn_norm", width], ["attn_q", heads * dim, width], ["attn_k", kv * dim, width], ["attn_v", kv * dim, width], ["attn_output", width, heads * dim],
    ]  # fmt: skip
    head_norms = [["attn_q_norm", dim], ["attn_k_norm", dim]]
    feed = [["ffn_gate", inner, width], ["ffn_up", inner, width], ["ffn_down", width, inner]]

    def mixture(row):
        """Experts on rows of so many elements."""
        return [["ffn_gate_inp", experts, width]] + [
            [f"ffn_{name}_exps", experts, *([row, expert_inner] if name == "down" else [expert_inner, row])] for name in ("gate", "up", "down")
        ]

    keys = {
        "embedding_length": width, "feed_forward_length": inner, "attention.head_count": heads, "attention.head_count_kv": kv, "attention.key_length": dim,
        "attention.value_length": dim, "rope.dimension_count": dim, "attention.layer_norm_rms_epsilon": one(1e-5, 1e-6),
        **({"rope.freq_base": one(500.0, 1e6)} if random.integers(2) else {}),
    }  # fmt: skip
    tied = random.integers(2)
    model = [["output_norm", width], *([] if tied else [["output", "vocabulary", width]])]
    norm, post = [["ffn_norm", width]], [["post_attention_norm", width], ["post_ffw_norm", width]]
    # llama.cpp wants a layer with a window.
    windows = [bool(random.integers(2)) for _ in range(count)]
    windows[int(random.integers(count))] = True
    mixed = {
        "attention.sliding_window": one(4, 8, 16), "attention.sliding_window_pattern": windows, "expert_count": experts,
        "expert_used_count": used, "expert_feed_forward_length": expert_inner,
    }  # fmt: skip
    if arch == "nanbeige":
        keys |= {"num_loops": one(1, 2, 3), **({"skip_loop_final_norm": one(True, False)} if random.integers(2) else {})}
        return keys, [[*attention, *norm, *feed]] * count, model
    if arch == "talkie":
        layer = [*attention[1:], ["attn_q_norm", heads, 1], *feed, ["layer_output_scale", 1]]
        return {**keys, "logit_scale": one(0.5, 1.0, 2.0)}, [layer] * count, [["output", "vocabulary", width]]
    whole = [["output_norm", width], ["output", "vocabulary", width]]
    if arch == "maple":
        more = {"swiglu_clamp_exp": one(0.3, 0.5, 7.0)}
        more |= {"rope.freq_base_swa": one(300.0, 5e4)} if random.integers(2) else {}
        return {**keys, **mixed, **more}, [[*attention, *head_norms, *norm, *mixture(width)]] * count, whole
    step = one(1, 2)
    experts_of = lambda layer: (layer + 1) % step == 0
    last = [*mixture(short), ["ffn_latent_down", short, width], ["ffn_latent_up", width, short]]
    layers = [[*attention, *head_norms, *post, *norm, *(last if experts_of(layer) else feed)] for layer in range(count)]
    return {**keys, **mixed, "interleave_moe_layer_step": step, "moe_latent_size": short}, layers, whole


if __name__ == "__main__":
    gguf_plamo2.main(*sys.argv[1:5], sys.argv[5], lambda random: drawn(random, sys.argv[5]))
