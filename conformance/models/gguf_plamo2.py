"""Small random GGUF models of architecture `plamo2`, of random sizes, for comparisons with llama.cpp.

    python gguf_plamo2.py FOLDER LIBRARIES COUNT SEED

writes COUNT models, each with what llama.cpp makes of it, as gguf_families.py does for its own. Sizes that llama.cpp fails with are told and
left out. HALITE_GGUF_MODELS=FOLDER makes two tests compare them: `cargo test -p halite-compiler --test compiler named_models` on the host, and
`cargo test -p halite --test generate recurrent::answers_of_named` on a device.
"""

import json
import os
import signal
import sys

import gguf_families as families
import gguf_tiny
import numpy as np

# Seconds that llama.cpp has for a model.
LIMIT = 60
# What each part adds beside the embedding: with as much as that, rounding grows from layer to layer, and all runtimes differ.
ADDED = 0.3


def drawn(random):
    """Keys, layers, and what stands outside of layers, at random."""
    one = lambda *of: of[int(random.integers(len(of)))]
    width = one(1088, 1280) if random.integers(12) == 0 else one(32, 64, 96)
    kv, dim = one(1, 2), one(8, 16, 32, 64)
    heads = kv * one(*[times for times in (1, 2, 3, 4, 8) if kv * times * dim % 32 == 0])
    inner, places, taps, ssm_heads = one(32, 64, 96), one(8, 16, 32), one(2, 3, 4, 6), one(1, 2, 4, 6)
    ssm_inner = ssm_heads * one(*[size for size in (8, 16, 32, 64) if ssm_heads * size % 32 == 0])
    rank = max(64, width // 16)
    attends = [bool(random.integers(2)) for _ in range(int(random.integers(2, 6)))]
    # Of each kind there is one at least.
    if all(attends) or not any(attends):
        attends[int(random.integers(len(attends)))] ^= True
    norm = ["attn_norm", width]
    behind = [["post_attention_norm!", width], ["ffn_norm", width], ["ffn_up", 2 * inner, width], ["ffn_down", width, inner], ["post_ffw_norm!", width]]
    attention = [
        norm, ["attn_qkv", (heads + 2 * kv) * dim, width], ["attn_output", width, heads * dim], ["attn_q_norm", heads, dim], ["attn_k_norm", kv, dim],
    ]  # fmt: skip
    states = [
        norm, ["ssm_in", 2 * ssm_inner, width], ["ssm_conv1d", ssm_inner, taps], ["ssm_x", 2 * places + rank, ssm_inner], ["ssm_dt", ssm_heads, rank],
        ["ssm_dt.bias", ssm_heads], ["ssm_a", ssm_heads], ["ssm_d", ssm_heads], ["ssm_out", width, ssm_inner], ["ssm_dt_norm!", rank],
        ["ssm_b_norm!", places], ["ssm_c_norm!", places],
    ]  # fmt: skip
    keys = {
        "embedding_length": width, "feed_forward_length": inner, "attention.head_count": heads, "attention.head_count_kv": [kv if own else 0 for own in attends],
        "attention.key_length": dim, "attention.value_length": dim, "rope.dimension_count": one(dim, dim // 2), "rope.freq_base": one(10000.0, 500.0, 1e6),
        "ssm.conv_kernel": taps, "ssm.inner_size": ssm_inner, "ssm.state_size": places, "ssm.time_step_rank": ssm_heads, "ssm.group_count": 0,
        "attention.layer_norm_rms_epsilon": one(1e-5, 1e-6),
    }  # fmt: skip
    model = [["output_norm", width], *([["output", "vocabulary", width]] if random.integers(2) else [])]
    return keys, [[*(attention if own else states), *behind] for own in attends], model


def write(path, libraries, seed, arch, drawn):
    """A model and its reference."""
    random = np.random.default_rng(seed)
    keys, layers, model, *more = drawn(random)
    families.CASES["drawn"] = (arch, keys, layers, model)
    number, given = int(random.integers(100)), {"seed": int(random.integers(1 << 30)), "added": ADDED, **(more[0] if more else {})}
    vocabulary = lambda w: gguf_tiny.scores_vocabulary(w, number)
    families.write(path, "drawn", vocabulary, False, **given)
    made = families.reference(lambda file, **how: gguf_tiny.Llama(libraries, file, **how), "drawn", vocabulary, **given)
    with open(path.removesuffix("gguf") + "json", "w") as file:
        json.dump(made, file)


def main(out, libraries, count, seed, arch="plamo2", drawn=drawn):
    os.makedirs(out, exist_ok=True)
    for number in range(int(count)):
        path = os.path.join(out, f"{number:03}.gguf")
        # llama.cpp ends the process that it does not like something in.
        process = os.fork()
        if process == 0:
            signal.alarm(LIMIT)
            write(path, libraries, [int(seed), number], arch, drawn)
            os._exit(0)
        status = os.waitpid(process, 0)[1]
        if status:
            print(path, "llama.cpp fails:", status, flush=True)
            os.unlink(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
