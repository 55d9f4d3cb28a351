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

    def mixture(row, inner=expert_inner):
        """Experts on rows of so many elements."""
        return [["ffn_gate_inp", experts, width]] + [
            [f"ffn_{name}_exps", experts, *([row, inner] if name == "down" else [inner, row])] for name in ("gate", "up", "down")
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
    if arch == "spark2_5":
        turned = dim if random.integers(2) else max(8, dim // 2)
        more = {"attention.sliding_window": one(4, 8, 16), "attention.sliding_window_pattern": windows, "rope.dimension_count": turned}
        more |= {"rope.freq_base_swa": one(300.0, 5e4)} if random.integers(2) else {}
        more |= {"rope.dimension_count_swa": one(8, dim)} if random.integers(2) else {}
        more |= {"rope.scaling.type": "linear", "rope.scaling.factor": one(2.0, 8.0)} if random.integers(3) == 0 else {}
        counts = [kv * one(1, 2) for _ in range(count)] if random.integers(3) == 0 and heads == 4 * kv else [kv] * count
        of = lambda own: [[name, own * dim if name in ("attn_k", "attn_v") else dims[0], *dims[1:]] for name, *dims in attention]
        fused = lambda own: [attention[0], ["attn_qkv", (heads + 2 * own) * dim, width], attention[4]]
        gate = [["attn_gate", heads, width]]
        layers = [[*(fused(own) if random.integers(3) == 0 else of(own)), *gate, *norm, *feed] for own in counts]
        return {**keys, **more, "attention.head_count_kv": counts}, layers, model
    if arch == "muse-glimmer":
        gate = [["attn_gate", heads * dim, width]]
        more = {"attention.sliding_window": one(4, 8, 16), "attention.sliding_window_pattern": windows if random.integers(2) else one(1, 2, 4)}
        more |= {"rope.freq_base_swa": one(300.0, 5e4)} if random.integers(2) else {}
        more |= {"final_logit_softcapping": 8.0} if random.integers(2) else {}
        more |= {"rope.scaling.type": "linear", "rope.scaling.factor": one(2.0, 8.0)} if random.integers(3) == 0 else {}
        whole = [["output_norm", width], ["output", "vocabulary", width]]
        layers = [[*attention, *head_norms, *gate, *post, *norm, *feed] for _ in range(count)]
        return {**keys, **more, "logit_scale": one(0.5, 1.0, 2.0)}, layers, whole
    if arch == "k2-horizon":
        mixed = experts > 4
        leading, shared, values, chosen = int(random.integers(0, 3)), one(0, 1, 2), one(0, 4, 6), one(1, 2)
        more = {"attention.group_norm_groups": one(1, 2, 4)} if random.integers(2) else {}
        more |= {"rope.dimension_count": one(dim, max(8, dim // 2))}
        if random.integers(3) == 0:
            more |= {"rope.scaling.type": "yarn", "rope.scaling.factor": one(2.0, 40.0), "rope.scaling.original_context_length": one(16, 64)}
            more |= {"rope.scaling.yarn_beta_fast": 16.0} if random.integers(2) else {}
        if mixed:
            more |= {"expert_count": experts, "expert_used_count": used, "expert_feed_forward_length": expert_inner, "leading_dense_block_count": leading}
            more |= {"expert_shared_count": shared, **({"expert_weights_norm": one(True, False)} if random.integers(2) else {})}
            more |= {"expert_weights_scale": 2.5} if random.integers(2) else {}
            more |= {"expert_gating_func": one(1, 2)} if random.integers(2) else {}
            more |= {"attention.value_expert_count": values, "attention.value_expert_used_count": chosen} if values else {}
        else:
            values = 0
        net = lambda rows: [[f"ffn_{name}_shexp", *([width, rows] if name == "down" else [rows, width])] for name in ("gate", "up", "down")]
        late = [*mixture(width), *(net(shared * expert_inner) if shared else []), *([["exp_probs_b.bias", experts]] if random.integers(2) else [])]
        routed = [["attn_v_gate", values, width], ["attn_v_exps", values, kv * dim, width], *([["attn_v_gate.bias", values]] if random.integers(2) else [])]
        own_norms = [["attn_q_norm", heads * dim], ["attn_k_norm", kv * dim]] if random.integers(2) else []
        gate = [["attn_gate", heads * dim, width]] if random.integers(2) else []
        without = [part for part in attention if part[0] != "attn_v"]
        of = lambda late_layer: [*([*without, *routed] if late_layer and values else attention), *own_norms, *gate, *norm, *(late if late_layer else feed)]
        return {**keys, **more}, [of(mixed and layer >= leading) for layer in range(count)], model
    if arch == "minimax-01":
        count += 1
        recurrent = [bool(random.integers(2)) for _ in range(count)]
        # Of each kind there is one at least.
        if all(recurrent) or not any(recurrent):
            recurrent[int(random.integers(count))] ^= True
        lightning = [
            ["attn_norm", width], ["attn_norm_2", heads * dim], ["attn_qkv", 3 * heads * dim, width], ["attn_gate", heads * dim, width],
            ["attn_output", width, heads * dim],
        ]  # fmt: skip
        more = {"expert_count": experts, "expert_used_count": used, "residual_scale": one(0.5, 1.0, 3.5565588)}
        more |= {"attention.recurrent_layers": recurrent, "rope.dimension_count": one(dim, max(8, dim // 2))}
        layers = [[*(lightning if own else attention), *norm, *mixture(width, inner)] for own in recurrent]
        return {**keys, **more}, layers, model
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
