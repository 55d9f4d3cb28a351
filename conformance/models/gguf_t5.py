"""Small random GGUF models of architecture `t5`: an encoder, and a decoder that attends to what it read. gguf_tiny.py writes one.

    python gguf_t5.py FOLDER LIBRARIES COUNT SEED

writes COUNT models of random sizes and types for comparisons, each with what llama.cpp makes of it, as gguf_tiny.py does for its own.
HALITE_T5_MODELS=FOLDER makes two tests compare them: `cargo test -p halite-compiler --test compiler gguf_t5` on the host, and
`cargo test -p halite --test generate encoders` on a device.
"""

import ctypes as C
import json
import os
import sys
import tempfile

import numpy as np
from gguf import GGMLQuantizationType as Type, GGUFWriter, dequantize, quantize

CONTEXT, PROMPT, STEPS = 128, 21, 6
SMALL = {"width": 32, "inner": 64, "heads": 2, "dim": 24, "encoder": 3, "decoder": 2, "buckets": 16, "gated": True, "tied": False, "own_distances": False, "type": "Q8_0"}


def write(path, sizes, vocabulary, as_floats, seed=5):
    """A file of such a model, or of the same numbers as f32."""
    s, random = {**SMALL, **sizes}, np.random.default_rng(seed)
    width, inner, rows = s["width"], s["inner"], s["heads"] * s["dim"]
    w = GGUFWriter(path, "t5")
    w.add_name("tiny t5")
    count = vocabulary(w)
    keys = {
        "context_length": CONTEXT, "embedding_length": width, "block_count": s["encoder"], "feed_forward_length": inner,
        "attention.head_count": s["heads"], "attention.key_length": s["dim"], "attention.value_length": s["dim"],
        "attention.relative_buckets_count": s["buckets"], "decoder_start_token_id": s.get("start", 0), "vocab_size": count,
    }  # fmt: skip
    if s["decoder"] != s["encoder"]:
        keys["decoder_block_count"] = s["decoder"]
    for name, value in keys.items():
        w.add_uint32(f"t5.{name}", value)
    w.add_float32("t5.attention.layer_norm_rms_epsilon", 1e-6)

    def matrix(name, dims, size=1.0):
        made = (size * random.standard_normal(dims) / np.sqrt(dims[-1])).astype(np.float32)
        kind = Type[s["type"]]
        if "rel_b" in name or kind == Type.F32 or dims[-1] % 32 or (kind == Type.Q4_K and dims[-1] % 256):
            w.add_tensor(name, made)
            return
        packed = quantize(made, kind) if kind != Type.Q4_K else blocks_of_256(random, dims)
        if as_floats:
            w.add_tensor(name, dequantize(packed, kind).astype(np.float32).reshape(dims))
        else:
            w.add_tensor(name, packed, raw_dtype=kind)

    def norm(name):
        w.add_tensor(name, (1 + 0.2 * random.standard_normal(width)).astype(np.float32))

    def attention(at, cross=""):
        # Scores have no factor: queries are small instead.
        for name, dims, size in (("q", [rows, width], s["dim"] ** -0.5), ("k", [rows, width], 1.0), ("v", [rows, width], 1.0), ("o", [width, rows], 1.0)):
            matrix(f"{at}{cross}attn_{name}.weight", dims, size)

    matrix("token_embd.weight", [count, width], 4.0)
    if not s["tied"]:
        matrix("output.weight", [count, width], 4.0)
    for part in ("enc", "dec"):
        for layer in range(s["encoder" if part == "enc" else "decoder"]):
            at = f"{part}.blk.{layer}."
            norm(at + "attn_norm.weight")
            attention(at)
            if layer == 0 or s["own_distances"]:
                matrix(at + "attn_rel_b.weight", [s["buckets"], s["heads"]])
            if part == "dec":
                norm(at + "cross_attn_norm.weight")
                attention(at, "cross_")
            norm(at + "ffn_norm.weight")
            for name in ("gate", "up") if s["gated"] else ("up",):
                matrix(f"{at}ffn_{name}.weight", [inner, width])
            matrix(at + "ffn_down.weight", [width, inner])
        norm(f"{part}.output_norm.weight")
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def blocks_of_256(random, dims):
    """Rows in Q4_K with random codes and scales, which the package does not make."""
    blocks = int(np.prod(dims)) // 256
    made = random.integers(0, 256, (blocks, 144), dtype=np.uint8)
    scales = np.array([0.02, 0.16], np.float32) / 32 / np.sqrt(dims[-1] / 32)
    made[:, :4] = np.frombuffer(scales.astype(np.float16).tobytes(), np.uint8)
    return made.reshape(*dims[:-1], -1)


def further(llama, source, tokens):
    """Logits behind each of these tokens, of a text behind this source."""
    f = llama.lib
    f.llama_encode.restype, f.llama_encode.argtypes = C.c_int32, f.llama_decode.argtypes
    f.llama_memory_clear(f.llama_get_memory(llama.context), True)
    given = (C.c_int32 * len(source))(*source)
    assert f.llama_encode(llama.context, f.llama_batch_get_one(given, len(source))) == 0
    return [llama.logits([token]) for token in tokens]


def reference(llama, start=0, seed=6, prompt=PROMPT):
    """Logits behind the first token of an answer and behind some more, and the answer of always the most likely token."""
    known, random = llama.lib.llama_vocab_n_tokens(llama.vocabulary), np.random.default_rng(seed)
    source = [int(token) for token in random.integers(3, known, prompt)]
    tokens = [start, *(int(token) for token in random.integers(3, known, STEPS))]
    all = further(llama, source, tokens)
    logits, greedy, gaps = further(llama, source, [start])[0], [], []
    for _ in range(16):
        second, first = np.partition(logits, -2)[-2:]
        greedy, gaps = [*greedy, int(logits.argmax())], [*gaps, round(float(first - second), 5)]
        logits = llama.logits(greedy[-1:])
    numbers = lambda row: [round(float(x), 5) for x in row]
    return {"prompt": source, "tokens": tokens, "logits": numbers(all[0]), "last": numbers(all[-1]), "greedy": greedy, "gaps": gaps}


def write_model(out, name, sizes, llama_of, vocabulary, seed=5, **given):
    """A file with its reference."""
    write(os.path.join(out, name + ".gguf"), sizes, vocabulary, False, seed)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "floats.gguf")
        write(path, sizes, vocabulary, True, seed)
        made = reference(llama_of(path), sizes.get("start", 0), seed + 1, **given)
    with open(os.path.join(out, name + ".json"), "w") as file:
        json.dump({**made, "sizes": sizes}, file)
        file.write("\n")
    return made


def write_caches(out, name, llama_of, vocabulary):
    """A file with heads of whole blocks, and logits behind the last of an answer's tokens with keys in caches of each type. With values in
    blocks llama.cpp gives no usable numbers."""
    sizes = {"dim": 32, "encoder": 2, "decoder": 1}
    write(os.path.join(out, name + ".gguf"), sizes, vocabulary, False)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "floats.gguf")
        write(path, sizes, vocabulary, True)
        made = {kind.name.lower(): reference(llama_of(path, keys=kind), prompt=40) for kind in (Type.F16, Type.Q8_0, Type.Q4_0)}
    known = {key: made["f16"][key] for key in ("prompt", "tokens", "greedy")}
    with open(os.path.join(out, name + ".json"), "w") as file:
        json.dump({**known, "caches": {kind: own["last"] for kind, own in made.items()}}, file)
        file.write("\n")


def drawn(random):
    """Sizes of a model, at random."""
    one = lambda *of: of[int(random.integers(len(of)))]
    kind = one("F32", "F16", "Q8_0", "Q4_0", "Q4_K")
    # llama.cpp has no caches for more layers of the decoder than of the encoder.
    width, layers = 256 if kind == "Q4_K" else one(32, 64, 96), one(1, 2, 3, 5)
    return {
        "type": kind, "width": width, "inner": 256 if kind == "Q4_K" else one(32, 64, 160), "heads": one(1, 2, 3, 4, 6), "dim": one(8, 16, 24, 32, 40, 64),
        "encoder": layers, "decoder": int(random.integers(1, layers + 1)), "buckets": one(8, 16, 32, 48, 64), "gated": bool(random.integers(2)),
        "tied": bool(random.integers(2)), "own_distances": bool(random.integers(2)), "start": one(0, 0, 1, 7),
    }  # fmt: skip


def main(out, libraries, count, seed):
    import gguf_tiny

    os.makedirs(out, exist_ok=True)
    random = np.random.default_rng(int(seed))
    for place in range(int(count)):
        sizes = drawn(random)
        more, length = int(random.integers(0, 300)), int(random.integers(1, CONTEXT + 1))
        vocabulary = lambda w: gguf_tiny.scores_vocabulary(w, more)
        write_model(out, f"{place:03}", sizes, lambda path: gguf_tiny.Llama(libraries, path), vocabulary, int(seed) * 1000 + place, prompt=length)


if __name__ == "__main__":
    main(*sys.argv[1:5])
