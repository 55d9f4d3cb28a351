"""GPT-J as a GGUF file, beside transformers: llama.cpp knows the architecture's name (`gptj`) and does not compute it.

    python gguf_gptj.py OUT            writes OUT/gptj.gguf and gptj.json, the model of the tests
    python gguf_gptj.py OUT COUNT SEED  writes COUNT models of random sizes, NNN.gguf and NNN.json

Needs `gguf`, `numpy`, `torch` and `transformers`.
"""

import json
import os
import sys

import gguf_families as families
import gguf_tiny
import numpy as np
import torch
from gguf import GGUFWriter
from transformers import GPTJConfig, GPTJForCausalLM

TOKENS = families.PROMPT + families.STEPS
# Of transformers' names within a layer, those of a GGUF file.
NAMES = {
    "ln_1": "attn_norm", "attn.q_proj": "attn_q", "attn.k_proj": "attn_k", "attn.v_proj": "attn_v", "attn.out_proj": "attn_output",
    "mlp.fc_in": "ffn_up", "mlp.fc_out": "ffn_down",
}  # fmt: skip
OF_MODEL = {"transformer.wte": "token_embd", "transformer.ln_f": "output_norm", "lm_head": "output"}


def write(path, config, vocabulary):
    """A random model of these sizes, in both forms."""
    w = GGUFWriter(path, "gptj")
    w.add_name("tiny gptj")
    config["vocab_size"] = gguf_tiny.scores_vocabulary(w, vocabulary)
    model = GPTJForCausalLM(GPTJConfig(**config, attn_implementation="eager")).eval()
    w.add_context_length(config["n_positions"])
    w.add_embedding_length(config["n_embd"])
    w.add_block_count(config["n_layer"])
    w.add_feed_forward_length(config["n_inner"])
    w.add_head_count(config["n_head"])
    w.add_layer_norm_eps(1e-5)
    w.add_rope_dimension_count(config["rotary_dim"])
    random = np.random.default_rng(config["n_embd"])
    with torch.no_grad():
        for name, value in model.state_dict().items():
            size = 1.0 if value.dim() == 1 else 4.0 / np.sqrt(value.shape[-1]) if "wte" not in name else 4.0
            made = random.standard_normal(tuple(value.shape)) * (0.2 if value.dim() == 1 else size)
            made = (made + ("ln" in name and name.endswith("weight"))).astype(np.float32)
            value.copy_(torch.tensor(made))
            part, kind = name.rsplit(".", 1)
            if part.startswith("transformer.h."):
                layer, part = part.split(".", 3)[2:]
                part = f"blk.{layer}.{NAMES[part]}"
            else:
                part = OF_MODEL[part]
            w.add_tensor(f"{part}.{kind}", made)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    tokens = [int(token) for token in random.integers(3, 250, TOKENS)]
    with torch.no_grad():
        logits = model(torch.tensor([tokens])).logits[0].numpy()
    made = {"prompt": tokens[: families.PROMPT], "further": tokens[families.PROMPT :]}
    made |= {"logits": families.rounded(logits[families.PROMPT - 1]), "last": families.rounded(logits[-1])}
    with open(path.removesuffix("gguf") + "json", "w") as file:
        json.dump(made, file)


def drawn(random):
    """Sizes by lot."""
    one = lambda *of: of[int(random.integers(len(of)))]
    heads, dim = one(1, 2, 3, 4), one(16, 32, 64, 80)
    rotary = one(*(turned for turned in (8, 16, 32, 64) if turned <= dim))
    return {"n_embd": heads * dim, "n_head": heads, "n_layer": one(1, 2, 3), "n_inner": one(64, 96, 256), "rotary_dim": rotary, "n_positions": 128}


def main(out, count=None, seed=0):
    os.makedirs(out, exist_ok=True)
    if count is None:
        config = {"n_embd": 32, "n_head": 2, "n_layer": 2, "n_inner": 64, "rotary_dim": 8, "n_positions": 128}
        return write(os.path.join(out, "gptj.gguf"), config, 7)
    for number in range(int(count)):
        random = np.random.default_rng([int(seed), number])
        write(os.path.join(out, f"{number:03}.gguf"), drawn(random), int(random.integers(100)))


if __name__ == "__main__":
    main(*sys.argv[1:])
