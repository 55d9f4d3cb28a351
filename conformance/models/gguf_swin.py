"""Chameleon with norms behind each part (`swin_norm`), beside transformers: llama.cpp gives feed-forward networks of such a model what the norm
behind attention makes, without the state that it is added to.

    python gguf_swin.py FILE.gguf                    tells what transformers makes of a file, with `swin_norm`: logits of what is no picture
    python gguf_swin.py FOLDER LIBRARIES COUNT SEED  writes COUNT models of random sizes, as gguf_plamo2.py does

With `LIBRARIES`, llama.cpp's, the logits of models without `swin_norm` are told to be near those of transformers, and how far others are.
Needs `gguf`, `numpy`, `torch` and `transformers`.
"""

import json
import os
import sys

import gguf_families as families
import gguf_tiny
import gguf_variants
import numpy as np
import torch
from gguf import GGUFReader, dequantize
from transformers import ChameleonConfig, ChameleonModel

# Tokens of pictures, which are never written.
FIRST, BEHIND = 4, 8196
TOKENS = 46


def apart(x, heads):
    """Rows whose pairs are neighbours as rows whose pairs are halves of a head."""
    dim = x.shape[0] // heads
    return x.reshape(heads, dim // 2, 2, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape)


def logits(path, tokens, swin):
    """What transformers makes of a file: the logits behind the prompt and behind all tokens."""
    reader = GGUFReader(path)
    weights = {t.name: dequantize(t.data, t.tensor_type).astype(np.float32).reshape(tuple(int(n) for n in reversed(t.shape))) for t in reader.tensors}
    number = lambda name: reader.fields["chameleon." + name].contents()
    heads, kv, layers, width = (number(name) for name in ("attention.head_count", "attention.head_count_kv", "block_count", "embedding_length"))
    vocabulary = weights["token_embd.weight"].shape[0]
    config = ChameleonConfig(
        vocab_size=vocabulary, hidden_size=width, intermediate_size=number("feed_forward_length"), num_hidden_layers=layers, num_attention_heads=heads,
        num_key_value_heads=kv, rms_norm_eps=number("attention.layer_norm_rms_epsilon"), swin_norm=swin, attn_implementation="eager",
        vq_config={"base_channels": 32, "channel_multiplier": [1], "num_res_blocks": 1, "resolution": 32, "attn_resolutions": None, "embed_dim": 8, "latent_channels": 8, "num_embeddings": 8},
        vocabulary_map={"<image>": 3},
    )  # fmt: skip
    model = ChameleonModel(config).eval()
    own = {"embed_tokens.weight": weights["token_embd.weight"], "norm.weight": weights["output_norm.weight"]}
    names = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
             "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj", "attn_norm": "input_layernorm",
             "ffn_norm": "post_attention_layernorm", "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm"}  # fmt: skip
    for name, value in weights.items():
        if name.startswith("blk."):
            layer, part, kind = name.split(".")[1:]
            if part in ("attn_q", "attn_k"):
                value = apart(value, heads if part == "attn_q" else kv)
            if part in ("attn_q_norm", "attn_k_norm"):
                value = np.stack([apart(row, 1) for row in value])
            own[f"layers.{layer}.{names[part]}.{kind}"] = value
    missing, unknown = model.load_state_dict({name: torch.tensor(value) for name, value in own.items()}, strict=False)
    assert not unknown and all(name.startswith("vqmodel") for name in missing), (missing, unknown)
    with torch.no_grad():
        states = model(input_ids=torch.tensor([tokens])).last_hidden_state[0].numpy()
    made = states[[families.PROMPT - 1, len(tokens) - 1]] @ weights.get("output.weight", weights["token_embd.weight"]).T
    made[:, FIRST:BEHIND] = -np.inf
    return made


def drawn(random):
    """Keys and layers, at random."""
    one = lambda *of: of[int(random.integers(len(of)))]
    kv, dim, inner = one(1, 2), one(8, 16, 32), one(32, 64, 96)
    heads = kv * one(*[times for times in (1, 2, 4) if kv * times * dim % 32 == 0])
    width = heads * dim
    part = [[f"attn_{name}", count * dim, width] for name, count in (("q", heads), ("k", kv), ("v", kv))]
    norms = [[f"attn_{name}_norm{kind}", count, dim] for name, count in (("q", heads), ("k", kv)) for kind in ("", ".bias")]
    feed = [["ffn_gate", inner, width], ["ffn_up", inner, width], ["ffn_down", width, inner]]
    layer = [["attn_norm", width], *part, ["attn_output", width, width], *norms, ["ffn_norm", width], *feed]
    keys = {
        "embedding_length": width, "feed_forward_length": inner, "attention.head_count": heads, "attention.head_count_kv": kv, "attention.key_length": dim,
        "attention.value_length": dim, "rope.dimension_count": dim, "attention.layer_norm_rms_epsilon": one(1e-5, 1e-6), "swin_norm": bool(random.integers(4)),
    }  # fmt: skip
    return keys, [layer] * int(random.integers(1, 5))


def main(out, libraries, count, seed):
    os.makedirs(out, exist_ok=True)
    for number in range(int(count)):
        random = np.random.default_rng([int(seed), number])
        keys, layers = drawn(random)
        families.CASES["drawn"] = ("chameleon", keys, layers, [["output_norm", keys["embedding_length"]]])
        path, given = os.path.join(out, f"{number:03}.gguf"), int(random.integers(1 << 30))
        families.write(path, "drawn", lambda w: gguf_tiny.scores_vocabulary(w, gguf_variants.PICTURES), True, given)
        tokens = [int(token) for token in random.integers(3, 250, TOKENS)]
        made = logits(path, tokens, keys["swin_norm"])
        llama = gguf_tiny.Llama(libraries, path)
        beside = llama.logits(tokens[: families.PROMPT])
        far = np.abs(beside - made[0])[[*range(FIRST), *range(BEHIND, len(beside))]].max()
        print(path, "swin_norm:", keys["swin_norm"], "llama.cpp is off by", far, flush=True)
        assert keys["swin_norm"] or far < 0.05
        first, last = (families.rounded(row) for row in made)
        with open(path.removesuffix("gguf") + "json", "w") as file:
            json.dump({"prompt": tokens[: families.PROMPT], "logits": first, "further": tokens[families.PROMPT :], "last": last}, file)


def tell(path):
    tokens = [int(token) for token in np.random.default_rng(6).integers(3, 250, TOKENS)]
    print(json.dumps({"tokens": tokens, "logits": [x for x in families.rounded(logits(path, tokens, True)[1]) if x is not None]}))


if __name__ == "__main__":
    (main if len(sys.argv) > 2 else tell)(*sys.argv[1:])
