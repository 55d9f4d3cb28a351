"""Small random GGUF models of architectures `kimi-linear`, `kimi-k3` and `bailingmoe3`, of random sizes, for comparisons with llama.cpp.

    python gguf_kimi.py FOLDER LIBRARIES COUNT SEED [ARCHITECTURE]

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


def drawn_k3(random):
    """The same of the later models: layers attend to the states before, experts work on shorter rows, and gates are whole."""
    one = lambda *of: of[int(random.integers(len(of)))]
    keys, layers, model, given = drawn(random)
    width, heads, size = keys["embedding_length"], keys["attention.head_count"], keys["kda.head_dim"]
    value, short, block, q_rank = keys["attention.value_length_mla"], one(0, 32, 64), one(0, 1, 2, 3), one(32, 64)
    keys |= {"activation.situ_beta": one(0.5, 4.0), "activation.situ_linear_beta": one(0.0, 0.7, 25.0), "attn_res.block_size": block}
    keys |= {"expert_latent_length": short} if short else {}
    keys |= {"kda.gate_lower_bound": one(-5.0, -1.0)} if random.integers(2) else {}
    keys |= {"expert_weights_norm": one(True, False)} if random.integers(2) else {}
    is_normed, is_gated, is_low = (random.integers(2) for _ in range(3))
    keys |= {"attention.q_lora_rank": q_rank} if is_low else {}

    def later(layer):
        """The parts of a layer."""
        made = []
        for name, *dims in layer:
            if name == "ssm_g_a":
                made.append(["ssm_g", heads * size, width])
            elif name.endswith("_exps") and short:
                dims[1 if name == "ffn_down_exps" else 2] = short
                made.append([name, *dims])
            elif name == "attn_q" and is_low and any(own[0] == "attn_kv_a_mqa" for own in layer):
                made += [["attn_q_a", q_rank, width], ["attn_q_a_norm", q_rank], ["attn_q_b", dims[0], q_rank]]
            elif name == "ssm_a":
                made.append([name, heads])
            elif name != "ssm_g_b":
                made.append([name, *dims])
        names = [own[0] for own in made]
        made += [["attn_gate", heads * value, width]] if is_gated and "attn_kv_a_mqa" in names else []
        if "ffn_gate_inp" in names and short:
            made += [["ffn_routed_down", short, width], ["ffn_routed_up", width, short], *([["ffn_routed_norm", short]] if is_normed else [])]
        return made + ([["attn_res_score", width], ["ffn_res_score", width]] if block else [])

    whole = [*model, *([["output_res_score", width]] if block else [])]
    return keys, [later(layer) for layer in layers], whole, given


def drawn_bailing(random):
    """The same where decays and gates come of whole rows, and latent attention has rotary embedding and a gate for each head."""
    one = lambda *of: of[int(random.integers(len(of)))]
    keys, layers, model, given = drawn(random)
    width, heads, size, q_rank = keys["embedding_length"], keys["attention.head_count"], keys["kda.head_dim"], one(32, 64)
    keys |= {"kda.gate_lower_bound": one(-5.0, -1.0), "rope.freq_base": one(500.0, 1e6)}
    keys |= {"kda.safe_gate": True} if random.integers(2) else {}
    keys |= {"expert_weights_norm": one(True, False)} if random.integers(2) else {}
    keys |= {"attention.q_lora_rank": q_rank} if random.integers(2) else {}
    keys |= {"swiglu_clamp_exp": one(0.2, 7.0)} if random.integers(3) == 0 else {}
    keys |= {"swiglu_clamp_shexp": [one(0.0, 0.2, 7.0) for _ in layers]} if random.integers(3) == 0 else {}

    def whole(layer):
        """The parts of a layer."""
        attends = any(own[0] == "attn_kv_a_mqa" for own in layer)
        made = [["attn_gate", heads, width]] if attends else []
        for name, *dims in layer:
            if name in ("ssm_f_a", "ssm_g_a"):
                made.append([name, heads * size, width])
            elif name == "attn_q" and attends and "attention.q_lora_rank" in keys:
                made += [["attn_q_a", q_rank, width], ["attn_q_a_norm", q_rank], ["attn_q_b", dims[0], q_rank]]
            elif name not in ("ssm_f_b", "ssm_g_b"):
                made.append([name, *dims])
        return made

    tied = random.integers(3) == 0
    return keys, [whole(layer) for layer in layers], model[:1] if tied else model, given


DRAWN = {"kimi-linear": drawn, "kimi-k3": drawn_k3, "bailingmoe3": drawn_bailing}

if __name__ == "__main__":
    arch = sys.argv[5] if len(sys.argv) > 5 else "kimi-linear"
    gguf_plamo2.main(*sys.argv[1:5], arch, DRAWN[arch])
