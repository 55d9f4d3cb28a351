"""Small random GGUF models of architecture `graniteswitch`, of random sizes, for comparisons with llama.cpp.

    python gguf_adapters.py FOLDER LIBRARIES COUNT SEED

does what gguf_plamo2.py does for its own. Tokens of control are among those that texts have.
"""

import sys

import gguf_families as families
import gguf_plamo2


def drawn(random):
    """Keys, layers and what stands outside of layers, at random."""
    one = lambda *of: of[int(random.integers(len(of)))]
    kv, dim, inner, width, rank = one(1, 2), one(16, 32, 64), one(32, 64, 96), one(32, 64, 96), one(32, 64)
    heads = kv * one(*[times for times in (1, 2, 4) if kv * times * dim % 32 == 0])
    count, adapters = int(random.integers(1, 5)), one(1, 2, 3)
    tokens = [int(token) for token in random.permutation(range(3, 250))[: 2 * adapters]]
    keys = {
        "embedding_length": width, "feed_forward_length": inner, "attention.head_count": heads, "attention.head_count_kv": kv, "attention.key_length": dim,
        "attention.value_length": dim, "rope.dimension_count": dim, "attention.layer_norm_rms_epsilon": one(1e-5, 1e-6), "logit_scale": one(1.0, 4.0),
        "adapters.count": adapters, "adapters.lora_rank": rank, "adapters.token_ids_activate": tokens[:adapters],
        "adapters.token_ids_substitute": tokens[adapters:], **({"adapters.router_gain": one(8.0, 15.0, 20.0)} if random.integers(2) else {}),
        **({"residual_scale": one(0.22, 1.5)} if random.integers(2) else {}), **({"embedding_scale": one(0.5, 12.0)} if random.integers(2) else {}),
        **({"attention.scale": one(0.0625, 0.3)} if random.integers(2) else {}), **({"rope.freq_base": one(500.0, 1e6)} if random.integers(2) else {}),
        **({"rope.scaling.finetuned": one(True, False)} if random.integers(3) == 0 else {}),
    }  # fmt: skip
    model = [["output_norm", width], *([["output", "vocabulary", width]] if random.integers(2) else [])]
    return keys, [families.switched(width, [heads, kv, dim], inner, [adapters, rank])] * count, model


if __name__ == "__main__":
    gguf_plamo2.main(*sys.argv[1:5], "graniteswitch", drawn)
