"""Writes the small GGUF models of the tests, with what llama.cpp makes of them.

    python gguf_tiny.py compiler/tests/data/gguf LIBRARIES

LIBRARIES is a folder with llama.cpp's libggml-base, libggml, libggml-cpu and libllama, such as that of the package
`cyllama-vulkan` 0.7.0. Needs `gguf` 0.19 and `numpy`.

Each NAME.gguf has random weights of several types. NAME.json has tokens of texts, logits behind some tokens, and tokens that
always taking the most likely one gives. Logits are those of the same model with all weights as f32: with packed weights
llama.cpp rounds activations to 8 bits.
"""

import ctypes as C
import glob
import json
import os
import sys
import tempfile

import numpy as np
from gguf import GGMLQuantizationType as Type, GGUFWriter, dequantize, quantize

WIDTH, HEADS, KV_HEADS, DIM, INNER, CONTEXT = 32, 2, 1, 16, 64, 128
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<|turn|>{{ message['role'] }}\n{{ message['content'] | trim }}<|end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|turn|>assistant\n{% endif %}"
)
TEXTS = [
    ("", False),
    ("the then  in the", False),
    ("Hello, the world's 12345 è€\n\n  end", False),
    ("a<|end|>the", False),
    ("<|turn|>user\nin the<|end|>\n", True),
    ("\tin\r\n the", True),
]


def scores_vocabulary(w):
    """SentencePiece with scores: bytes, letters and pairs of them."""
    texts = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    kinds = [2, 3, 3] + [6] * 256
    pieces = ["▁", "t", "h", "e", "n", "i", "r", "▁t", "he", "▁the", "in", "▁in", "▁▁", "then", "er", "wor", "o", "w", "l", "ll"]
    texts += pieces + ["<|turn|>", "<|end|>", "\n\n"]
    kinds += [1] * len(pieces) + [3, 3, 4]
    w.add_tokenizer_model("llama")
    w.add_token_list(texts)
    w.add_token_scores([0.0] * 259 + [-float(i) for i in range(len(pieces))] + [0.0] * 3)
    w.add_token_types(kinds)
    w.add_bos_token_id(1)
    w.add_eos_token_id(2)
    w.add_unk_token_id(0)
    return len(texts)


def characters():
    """The character of each byte, as GPT-2 has them."""
    own = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    others = [byte for byte in range(256) if byte not in own]
    table = {byte: chr(byte) for byte in own}
    table.update({byte: chr(256 + i) for i, byte in enumerate(others)})
    return table


def merges_vocabulary(w):
    """Byte pairs with merges."""
    texts = sorted(characters().values())
    merges = ["t h", "th e", "Ġ the", "i n", "Ġ in", "Ġ Ġ", "e n", "the n", "w o", "r l", "wo rl", "worl d", "Ġ world", "Ċ Ċ"]
    texts += [merge.replace(" ", "") for merge in merges]
    kinds = [1] * len(texts) + [3, 3, 3]
    texts += ["<|endoftext|>", "<|turn|>", "<|end|>"]
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("qwen2")
    w.add_token_list(texts)
    w.add_token_merges(merges)
    w.add_token_types(kinds)
    w.add_bos_token_id(len(texts) - 3)
    w.add_eos_token_id(len(texts) - 1)
    w.add_chat_template(TEMPLATE)
    return len(texts)


def model(path, arch, layers, types, vocabulary, gemma, as_floats):
    """One file. `types` are those of the parts."""
    random = np.random.default_rng(1)
    w = GGUFWriter(path, arch)
    w.add_name(f"tiny {arch}")
    w.add_context_length(CONTEXT)
    w.add_embedding_length(WIDTH)
    w.add_block_count(layers)
    w.add_feed_forward_length(INNER)
    w.add_head_count(HEADS)
    w.add_head_count_kv(KV_HEADS)
    w.add_key_length(DIM)
    w.add_value_length(DIM)
    w.add_rope_dimension_count(DIM)
    w.add_layer_norm_rms_eps(1e-5)
    if gemma:
        w.add_sliding_window(4)
        w.add_rope_freq_base(1e6)
    count = vocabulary(w)

    def matrix(name, kind, rows, columns, size=1.0):
        made = (size * random.standard_normal((rows, columns)) / np.sqrt(columns)).astype(np.float32)
        packed = quantize(made, kind)
        if as_floats:
            w.add_tensor(name, dequantize(packed, kind).astype(np.float32))
        else:
            w.add_tensor(name, packed, raw_dtype=kind)

    def vector(name, length):
        w.add_tensor(name, (1 + 0.2 * random.standard_normal(length)).astype(np.float32))

    matrix("token_embd.weight", types["embedding"], count, WIDTH, 4.0)
    vector("output_norm.weight", WIDTH)
    if not gemma:
        matrix("output.weight", types["output"], count, WIDTH, 4.0)
    for layer in range(layers):
        at = f"blk.{layer}."
        vector(at + "attn_norm.weight", WIDTH)
        for name, heads in (("q", HEADS), ("k", KV_HEADS), ("v", KV_HEADS)):
            matrix(f"{at}attn_{name}.weight", types["attention"], heads * DIM, WIDTH)
        matrix(at + "attn_output.weight", types["attention"], WIDTH, HEADS * DIM)
        vector(at + "ffn_norm.weight", WIDTH)
        for name in ("gate", "up"):
            matrix(f"{at}ffn_{name}.weight", types["inner"], INNER, WIDTH)
        matrix(at + "ffn_down.weight", types["down"], WIDTH, INNER)
        if gemma:
            for name, length in (("attn_q", DIM), ("attn_k", DIM), ("post_attention", WIDTH), ("post_ffw", WIDTH)):
                vector(f"{at}{name}_norm.weight", length)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


class Params(C.Structure):
    """Parameters of llama.cpp, which are left as they are but for the first numbers."""

    _fields_ = [("bytes", C.c_uint8 * 512)]


# Nothing of what llama.cpp tells is of interest.
SILENT = C.CFUNCTYPE(None, C.c_int, C.c_char_p, C.c_void_p)(lambda level, text, data: None)


class Batch(C.Structure):
    _fields_ = [("count", C.c_int32)] + [(name, C.c_void_p) for name in ("token", "embd", "pos", "n_seq", "seq", "logits")]


class Llama:
    """A model in llama.cpp's processor back end."""

    def __init__(self, libraries, path):
        load = lambda name: C.CDLL(glob.glob(os.path.join(libraries, name))[0], mode=C.RTLD_GLOBAL)
        load("libggml-base*.so*")
        ggml, self.lib = load("libggml-[!bcv]*.so*"), load("libllama*.so*")
        self.lib.llama_log_set(SILENT, None)
        ggml.ggml_backend_load.restype = C.c_void_p
        assert ggml.ggml_backend_load(glob.glob(os.path.join(libraries, "libggml-cpu*.so"))[0].encode())
        f = self.lib
        for name, result, arguments in (
            ("llama_model_default_params", Params, []),
            ("llama_context_default_params", Params, []),
            ("llama_model_load_from_file", C.c_void_p, [C.c_char_p, Params]),
            ("llama_init_from_model", C.c_void_p, [C.c_void_p, Params]),
            ("llama_model_get_vocab", C.c_void_p, [C.c_void_p]),
            ("llama_vocab_n_tokens", C.c_int32, [C.c_void_p]),
            ("llama_batch_get_one", Batch, [C.c_void_p, C.c_int32]),
            ("llama_decode", C.c_int32, [C.c_void_p, Batch]),
            ("llama_get_logits_ith", C.POINTER(C.c_float), [C.c_void_p, C.c_int32]),
            ("llama_tokenize", C.c_int32, [C.c_void_p, C.c_char_p, C.c_int32, C.c_void_p, C.c_int32, C.c_bool, C.c_bool]),
        ):
            getattr(f, name).restype, getattr(f, name).argtypes = result, arguments
        self.model = f.llama_model_load_from_file(path.encode(), f.llama_model_default_params())
        assert self.model, path
        params = f.llama_context_default_params()
        numbers = C.cast(C.byref(params), C.POINTER(C.c_uint32))
        numbers[0] = numbers[1] = numbers[2] = CONTEXT
        self.context = f.llama_init_from_model(self.model, params)
        self.vocabulary = f.llama_model_get_vocab(self.model)

    def tokens(self, text, with_control):
        text = text.encode()
        made = (C.c_int32 * (len(text) + 16))()
        count = self.lib.llama_tokenize(self.vocabulary, text, len(text), made, len(made), True, with_control)
        return list(made[:count])

    def logits(self, tokens):
        given = (C.c_int32 * len(tokens))(*tokens)
        assert self.lib.llama_decode(self.context, self.lib.llama_batch_get_one(given, len(tokens))) == 0
        count = self.lib.llama_vocab_n_tokens(self.vocabulary)
        return np.ctypeslib.as_array(self.lib.llama_get_logits_ith(self.context, -1), shape=(count,)).copy()


def main(out, libraries):
    os.makedirs(out, exist_ok=True)
    mixed = dict(embedding=Type.Q8_0, output=Type.Q5_1, attention=Type.Q4_0, inner=Type.F16, down=Type.BF16)
    small = dict(embedding=Type.Q8_0, attention=Type.Q4_1, inner=Type.Q4_0, down=Type.Q5_0)
    for name, arch, layers, types, vocabulary in (
        ("llama", "llama", 2, mixed, scores_vocabulary),
        ("gemma3", "gemma3", 6, small, merges_vocabulary),
    ):
        gemma = arch == "gemma3"
        model(os.path.join(out, name + ".gguf"), arch, layers, types, vocabulary, gemma, False)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "floats.gguf")
            model(path, arch, layers, types, vocabulary, gemma, True)
            llama = Llama(libraries, path)
            texts = [{"text": t, "with_control": c, "tokens": llama.tokens(t, c)} for t, c in TEXTS]
            prompt = [int(token) for token in np.random.default_rng(2).integers(3, 250, 40)]
            logits, greedy, margin = llama.logits(prompt), [], []
            first = logits
            for _ in range(16):
                best = int(logits.argmax())
                margin.append(float(np.diff(np.partition(logits, -2)[-2:])[0]))
                greedy.append(best)
                logits = llama.logits([best])
        print(name, os.path.getsize(os.path.join(out, name + ".gguf")), "bytes; least margin", min(margin), "largest logit", abs(first).max())
        made = {"texts": texts, "prompt": prompt, "logits": [round(float(x), 5) for x in first], "greedy": greedy}
        with open(os.path.join(out, name + ".json"), "w") as file:
            json.dump(made, file, ensure_ascii=False)
            file.write("\n")


if __name__ == "__main__":
    main(*sys.argv[1:3])
