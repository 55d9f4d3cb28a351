"""Language models of well-known shapes with random weights, and llama.cpp's speed on them, to compare `halite bench --generate` with.

    python language_models.py make FOLDER SHAPE-TYPE…     # llama1b-q4_0, llama8b-q4_k, qwen3_4b-f16 and so on
    python language_models.py llama FOLDER LIBRARIES pp512 tg128 tg128x8
    python language_models.py llama-cpu FOLDER LIBRARIES tg16x4

`make` writes FOLDER/SHAPE-TYPE.gguf. `llama` prints tokens per second of each file by llama.cpp's Vulkan back end, all layers on
the device, as llama-bench measures: the mean of five repetitions, after half a second of calls. `tg128x8` is a batch with a token of each of
eight sequences, as llama-batched-bench measures; the host chooses the most likely token of each where `CHOOSE=1` is set, and else any tokens are decoded.
`llama-cpu` is its processor back end. LIBRARIES is a folder of its libraries, with
those of both back ends (../conformance/models/llama_cpp.py). Needs `numpy` and `gguf` 0.19.
"""

import ctypes as C
import glob
import json
import os
import pathlib
import sys
import time

import numpy as np
from gguf import GGMLQuantizationType as Type, GGUFWriter
from gguf.quants import dequantize

sys.path.append(str(pathlib.Path(__file__).parents[1] / "conformance" / "models"))
from llama_cpp import Batch, libraries  # noqa: E402

# Architecture, layers, width, heads, heads of keys and values, elements of a head, inner width, tokens, whether the table is the output.
SHAPES = {
    "llama1b": ("llama", 16, 2048, 32, 8, 64, 8192, 128256, True),
    "llama1b_untied": ("llama", 16, 2048, 32, 8, 64, 8192, 128256, False),
    "llama3b": ("llama", 28, 3072, 24, 8, 128, 8192, 128256, True),
    "llama8b": ("llama", 32, 4096, 32, 8, 128, 14336, 128256, False),
    "qwen3_4b": ("qwen3", 36, 2560, 32, 8, 128, 9728, 151936, True),
    "qwen2_05b": ("qwen2", 24, 896, 14, 2, 64, 4864, 151936, True),
    "llama100m": ("llama", 12, 768, 12, 4, 64, 2048, 32000, True),
    "small": ("llama", 4, 512, 8, 4, 64, 1536, 2048, True),
    # Of 48 and of 32 layers.
    "qwen3_30b_8layers": ("qwen3moe", 8, 2048, 32, 4, 128, 768, 151936, False),
    "mixtral_2layers": ("llama", 2, 4096, 32, 8, 128, 14336, 32000, False),
    "small_experts": ("qwen3moe", 2, 512, 8, 4, 64, 256, 2048, True),
}
# Experts of a layer, and of a token: their inner width is the shape's.
EXPERTS = {"qwen3_30b_8layers": (128, 8), "mixtral_2layers": (8, 2), "small_experts": (16, 4)}
# Bytes of a block, its elements, and where 16-bit scales stand in it.
BLOCKS = {
    Type.Q4_0: (18, 32, [0]),
    Type.Q5_0: (22, 32, [0]),
    Type.Q8_0: (34, 32, [0]),
    Type.Q2_K: (84, 256, [80, 82]),
    Type.Q3_K: (110, 256, [108]),
    Type.Q4_K: (144, 256, [0, 2]),
    Type.Q5_K: (176, 256, [0, 2]),
    Type.Q6_K: (210, 256, [208]),
    Type.IQ4_NL: (18, 32, [0]),
    Type.IQ4_XS: (136, 256, [0]),
    Type.IQ1_S: (50, 256, [0]),
    Type.IQ2_XXS: (66, 256, [0]),
    Type.IQ2_XS: (74, 256, [0]),
    Type.IQ2_S: (82, 256, [0]),
    Type.IQ3_XXS: (98, 256, [0]),
    Type.IQ3_S: (110, 256, [0]),
    Type.TQ1_0: (54, 256, [52]),
    Type.TQ2_0: (66, 256, [64]),
    # Its scales are powers of two, a byte each.
    Type.MXFP4: (17, 32, []),
}


def weights(kind, rows, columns, random):
    """Random weights of about 1/sqrt(columns); one block of rows, repeated, which no runtime can make use of."""
    some = min(rows, 512)
    if kind in (Type.F16, Type.F32):
        values = random.standard_normal((some, columns), dtype=np.float32) / np.sqrt(columns)
        made = values.astype(np.float16 if kind == Type.F16 else np.float32)
    else:
        size, elements, scales = BLOCKS[kind]
        blocks = random.integers(0, 256, (some, columns // elements, size), dtype=np.uint8)

        def scaled(scale):
            for at in scales:
                blocks[:, :, at : at + 2] = np.array([scale], np.float16).view(np.uint8)
            if kind == Type.MXFP4:
                blocks[:, :, 0] = 128 + round(np.log2(scale))
            return blocks.reshape(some, -1)

        spread = np.sqrt(np.mean(dequantize(scaled(1.0)[:16], kind) ** 2))
        made = scaled(1 / np.sqrt(columns) / spread)
    return np.resize(made, (rows, made.shape[1]))


def make(folder, name):
    """Writes a file."""
    shape, kind = name.rsplit("-", 1)
    arch, layers, width, heads, kv_heads, dim, inner, tokens, tied = SHAPES[shape]
    kind, random = Type[kind.upper()], np.random.default_rng(1)
    w = GGUFWriter(os.path.join(folder, name + ".gguf"), arch)
    for set_to, value in (
        (w.add_block_count, layers), (w.add_context_length, 8192), (w.add_embedding_length, width), (w.add_feed_forward_length, inner),
        (w.add_head_count, heads), (w.add_head_count_kv, kv_heads), (w.add_key_length, dim), (w.add_value_length, dim),
        (w.add_rope_dimension_count, dim), (w.add_layer_norm_rms_eps, 1e-5), (w.add_rope_freq_base, 500000.0), (w.add_vocab_size, tokens),
    ):  # fmt: skip
        set_to(value)
    experts, used = EXPERTS.get(shape, (0, 0))
    if experts:
        w.add_expert_count(experts)
        w.add_expert_used_count(used)
        w.add_expert_feed_forward_length(inner)
    w.add_tokenizer_model("llama")
    w.add_token_list(["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)] + [f"t{i}" for i in range(tokens - 259)])
    w.add_token_scores([0.0] * tokens)
    w.add_token_types([2, 3, 3] + [6] * 256 + [1] * (tokens - 259))
    w.add_bos_token_id(1)
    w.add_eos_token_id(2)

    def matrix(name, rows, columns, experts=None):
        values = weights(kind, rows * (experts or 1), columns, random)
        values = values.reshape(experts, rows, -1) if experts else values
        w.add_tensor(name + ".weight", values, raw_dtype=None if kind in (Type.F16, Type.F32) else kind)

    def vector(name, length, value=1.0):
        w.add_tensor(name, np.full(length, value, np.float32))

    matrix("token_embd", tokens, width)
    vector("output_norm.weight", width)
    if not tied:
        matrix("output", tokens, width)
    for layer in range(layers):
        block = f"blk.{layer}."
        for name, rows, columns in (
            ("attn_q", heads * dim, width), ("attn_k", kv_heads * dim, width), ("attn_v", kv_heads * dim, width),
            ("attn_output", width, heads * dim), ("ffn_gate", inner, width), ("ffn_up", inner, width), ("ffn_down", width, inner),
        ):  # fmt: skip
            if experts and name.startswith("ffn"):
                matrix(block + name + "_exps", rows, columns, experts)
                continue
            matrix(block + name, rows, columns)
            if arch == "qwen2" and name in ("attn_q", "attn_k", "attn_v"):
                vector(block + name + ".bias", rows, 0.01)
        if experts:
            w.add_tensor(block + "ffn_gate_inp.weight", random.standard_normal((experts, width), dtype=np.float32) * np.float32(width**-0.5))
        vector(block + "attn_norm.weight", width)
        vector(block + "ffn_norm.weight", width)
        if arch in ("qwen3", "qwen3moe"):
            vector(block + "attn_q_norm.weight", dim)
            vector(block + "attn_k_norm.weight", dim)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


class Together:
    """A batch with a token of each of several sequences."""

    def __init__(self, count):
        ids = (C.c_int32 * count)(*range(count))
        own = C.sizeof(C.c_int32)
        self.tokens, self.places = (C.c_int32 * count)(*(300 + i * 7919 % 1000 for i in range(count))), (C.c_int32 * count)()
        self.ones, self.logits = (C.c_int32 * count)(*[1] * count), (C.c_int8 * count)(*[1] * count)
        self.ids, self.pointers = ids, (C.c_void_p * count)(*(C.addressof(ids) + i * own for i in range(count)))
        of = C.addressof
        self.batch = Batch(count, of(self.tokens), None, of(self.places), of(self.ones), of(self.pointers), of(self.logits))

    def step(self, lib, context, place, vocabulary):
        for i in range(self.batch.count):
            self.places[i] = place
        assert lib.llama_decode(context, self.batch) == 0
        lib.llama_synchronize(context)
        if os.environ.get("CHOOSE"):
            for i in range(self.batch.count):
                logits = np.ctypeslib.as_array(lib.llama_get_logits_ith(context, i), (vocabulary,))
                self.tokens[i] = int(logits.argmax())


def measure(lib, path, tests, layers):
    """Tokens per second of each test, `pp512` or `tg128`, or of all sequences together, `tg128x8`."""
    sequences = max([int(test.split("x")[1]) for test in tests if "x" in test] or [1])
    params = lib.llama_model_default_params()
    C.cast(C.byref(params), C.POINTER(C.c_int32))[4] = layers  # n_gpu_layers
    model = lib.llama_model_load_from_file(path.encode(), params)
    assert model, path
    params = lib.llama_context_default_params()
    numbers = C.cast(C.byref(params), C.POINTER(C.c_uint32))
    numbers[0], numbers[1], numbers[2] = max(4096, 512 * sequences), 512, 512  # n_ctx, n_batch, n_ubatch
    numbers[3] = sequences  # n_seq_max
    context = lib.llama_init_from_model(model, params)
    assert context, path
    vocabulary = lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(model))
    speeds = {}
    for test in tests:
        count, *several = map(int, test[2:].split("x"))
        together = Together(several[0]) if several else None
        sizes = [count] if test.startswith("pp") else [1] * count

        def turn():
            lib.llama_memory_clear(lib.llama_get_memory(context), True)
            begin = time.perf_counter()
            for place, size in enumerate(sizes):
                if together:
                    together.step(lib, context, place, vocabulary)
                    continue
                given = (C.c_int32 * size)(*(300 + (i * 7919) % 1000 for i in range(size)))
                assert lib.llama_decode(context, lib.llama_batch_get_one(given, size)) == 0
                lib.llama_synchronize(context)
            return count * (several[0] if several else 1) / (time.perf_counter() - begin)

        begin = time.perf_counter()
        while time.perf_counter() - begin < 0.5:
            turn()
        speeds[test] = sum(turn() for _ in range(5)) / 5
    lib.llama_free(context)
    lib.llama_model_free(model)
    return speeds


def main(what, folder, *others):
    if what == "make":
        os.makedirs(folder, exist_ok=True)
        for name in others:
            make(folder, name)
        return
    lib, layers = libraries(others[0], ["cpu"] if what == "llama-cpu" else ["cpu", "vulkan"]), 0 if what == "llama-cpu" else 999
    for path in sorted(glob.glob(os.path.join(folder, "*.gguf"))):
        print(json.dumps({"model": os.path.basename(path)[:-5], **measure(lib, path, others[1:], layers)}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
