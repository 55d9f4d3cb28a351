"""Writes small GGUF models whose matrices are in types that the package gguf reads and does not write, with what llama.cpp makes of them.

    python gguf_blocks.py compiler/tests/data/gguf LIBRARIES [NAME...]

LIBRARIES is a folder as for gguf_tiny.py. Needs `gguf` 0.19 and `numpy`. Blocks are random bytes with scales that give weights of moderate
size. NAME.json is as gguf_families.py writes it: logits behind a prompt, and behind tokens that come one by one, of the same model with all
weights as f32. How far llama.cpp with packed weights is from these is printed.
"""

import json
import os
import sys
import tempfile

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType as Type, GGUFWriter, dequantize

from gguf_families import PROMPT, STEPS
from gguf_tiny import Llama, scores_vocabulary

# Rows of whole blocks of 256.
WIDTH, HEADS, KV_HEADS, DIM, CONTEXT, EXPERTS = 256, 4, 2, 64, 128, 4

# Where blocks have their 16-bit float.
SCALES = {Type.TQ1_0: 52, Type.TQ2_0: 64}

# All in blocks of 64, and narrower.
NARROW = 128
EXPERTS_IN_FP4 = {name: Type.NVFP4 for name in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps")}

# File, architecture, types of matrices by name, those of each layer, experts, width, whether products have factors (`.scale`).
MODELS = (
    ("blocks", "llama", {"token_embd": Type.IQ3_S, "output": Type.IQ2_S}, (
        {"attn_q": Type.IQ2_XXS, "attn_k": Type.IQ2_XS, "attn_v": Type.IQ3_XXS, "attn_output": Type.IQ1_S,
         "ffn_gate": Type.IQ1_M, "ffn_up": Type.TQ2_0, "ffn_down": Type.TQ1_0},
        {"attn_q": Type.IQ2_S, "attn_k": Type.NVFP4, "attn_v": Type.Q1_0, "attn_output": Type.IQ3_S,
         "ffn_gate": Type.IQ2_XXS, "ffn_up": Type.IQ2_XXS, "ffn_down": Type.IQ3_XXS},
    ), 0, WIDTH, False),
    ("blocks-moe", "qwen3moe", {"token_embd": Type.IQ1_M, "output": Type.IQ2_XS}, (
        {"attn_q": Type.IQ3_XXS, "attn_k": Type.IQ3_XXS, "attn_v": Type.IQ3_XXS, "attn_output": Type.IQ2_XXS,
         "ffn_gate_exps": Type.IQ2_XXS, "ffn_up_exps": Type.IQ2_XXS, "ffn_down_exps": Type.IQ3_XXS},
    ), EXPERTS, WIDTH, False),
    ("nvfp4", "qwen3moe", {"token_embd": Type.NVFP4, "output": Type.NVFP4}, (EXPERTS_IN_FP4,) * 2, EXPERTS, NARROW, True),
)  # fmt: skip


def floats(packed, kind):
    """The weights of rows of blocks. The package has none for signs of a scale."""
    if kind != Type.Q1_0:
        return dequantize(packed, kind).astype(np.float32)
    blocks = packed.reshape(-1, 18)
    signs = np.unpackbits(blocks[:, 2:], axis=1, bitorder="little").astype(np.float32) * 2 - 1
    made = signs * blocks[:, :2].copy().view(np.float16).astype(np.float32)
    return made.reshape(*packed.shape[:-1], -1)


def with_scales(blocks, kind, numbers):
    """Sets the scales of blocks."""
    if kind == Type.NVFP4:
        # Floats of 8 bits that are no lower than 2^-5.
        blocks[:, :4] = 16 + blocks[:, :4] % 8
        return
    bits = numbers.astype(np.float16).view(np.uint16)
    if kind == Type.IQ1_M:
        for part in range(4):
            blocks[:, 49 + 2 * part] = (blocks[:, 49 + 2 * part] & 15) | (((bits >> (4 * part)) & 15) << 4)
        return
    place = SCALES.get(kind, 0)
    blocks[:, place : place + 2] = bits.reshape(-1, 1).view(np.uint8)


def random_rows(random, kind, rows, length, size=1.0):
    """Rows of random blocks whose weights are about as large as those of a trained matrix."""
    elements, width = GGML_QUANT_SIZES[kind]
    count = rows * length // elements
    blocks = random.integers(0, 256, (count, width), dtype=np.uint8)
    with_scales(blocks, kind, np.ones(count))
    large = float(np.sqrt(np.mean(floats(blocks.copy(), kind) ** 2)))
    with_scales(blocks, kind, size / np.sqrt(length) / large * random.uniform(0.7, 1.3, count))
    return blocks.reshape(rows, -1)


def write(path, arch, ends, layers, experts, width, scaled, as_floats):
    """One file."""
    random = np.random.default_rng(7)
    w = GGUFWriter(path, arch)
    w.add_name(f"random blocks, {arch}")
    w.add_context_length(CONTEXT)
    w.add_embedding_length(width)
    w.add_block_count(len(layers))
    w.add_feed_forward_length(width)
    w.add_head_count(HEADS)
    w.add_head_count_kv(KV_HEADS)
    w.add_key_length(DIM)
    w.add_value_length(DIM)
    w.add_rope_dimension_count(DIM)
    w.add_layer_norm_rms_eps(1e-5)
    if experts:
        w.add_expert_count(experts)
        w.add_expert_used_count(2)
        w.add_expert_feed_forward_length(width)
    count = scores_vocabulary(w)

    def matrix(name, kind, rows, length, size=1.0, many=()):
        packed = random_rows(random, kind, int(np.prod(many, initial=rows)), length, size)
        packed = packed.reshape(*many, rows, -1)
        scale = np.float32(1)
        if scaled and name != "token_embd":
            # A factor of the whole matrix, of each expert's; and what activations would be rounded by.
            scale = random.uniform(0.5, 1.5, many or 1).astype(np.float32)
        if scaled and name != "token_embd" and not as_floats:
            w.add_tensor(f"{name}.scale", scale)
            w.add_tensor(f"{name}.input_scale", 0.01 * scale)
        if as_floats:
            w.add_tensor(f"{name}.weight", floats(packed, kind) * (scale.reshape(-1, 1, 1) if many else scale))
        else:
            w.add_tensor(f"{name}.weight", packed, raw_dtype=kind)

    def vector(name, length):
        w.add_tensor(f"{name}.weight", (1 + 0.2 * random.standard_normal(length)).astype(np.float32))

    matrix("token_embd", ends["token_embd"], count, width, 4.0)
    vector("output_norm", width)
    matrix("output", ends["output"], count, width, 4.0)
    sizes = {"attn_q": HEADS * DIM, "attn_k": KV_HEADS * DIM, "attn_v": KV_HEADS * DIM}
    for number, types in enumerate(layers):
        at = f"blk.{number}."
        vector(at + "attn_norm", width)
        vector(at + "ffn_norm", width)
        if experts:
            vector(at + "attn_q_norm", DIM)
            vector(at + "attn_k_norm", DIM)
            w.add_tensor(at + "ffn_gate_inp.weight", (0.2 * random.standard_normal((experts, width))).astype(np.float32))
        for name, kind in types.items():
            many = (experts,) if name.endswith("_exps") else ()
            matrix(at + name, kind, sizes.get(name, width), HEADS * DIM if name == "attn_output" else width, 1.0, many)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def main(out, libraries, *names):
    prompt = [int(token) for token in np.random.default_rng(2).integers(3, 250, PROMPT)]
    further = [int(token) for token in np.random.default_rng(5).integers(3, 250, STEPS)]
    for name, *model in MODELS:
        if names and name not in names:
            continue
        path = os.path.join(out, name + ".gguf")
        write(path, *model, False)

        def logits(path):
            llama = Llama(libraries, path)
            first = last = llama.logits(prompt)
            for token in further:
                last = llama.logits([token])
            return first, last

        packed = logits(path)
        with tempfile.TemporaryDirectory() as folder:
            plain = os.path.join(folder, "floats.gguf")
            write(plain, *model, True)
            first, last = logits(plain)
        apart = [float(abs(one - other).max()) for one, other in zip(packed, (first, last))]
        print(name, os.path.getsize(path), "bytes; packed weights", apart, "apart; largest logit", float(abs(first).max()))
        made = {"prompt": prompt, "logits": [round(float(x), 5) for x in first], "further": further, "last": [round(float(x), 5) for x in last]}
        with open(os.path.join(out, name + ".json"), "w") as file:
            json.dump(made, file)
            file.write("\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
