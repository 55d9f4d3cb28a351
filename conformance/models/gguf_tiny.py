"""Writes the small GGUF models of the tests, with what llama.cpp makes of them.

    python gguf_tiny.py compiler/tests/data/gguf LIBRARIES

LIBRARIES is a folder with llama.cpp's libggml-base, libggml, libggml-cpu and libllama, such as that of the package
`cyllama-vulkan` 0.7.0. Needs `gguf` 0.19 and `numpy`.

Each NAME.gguf has random weights of several types. NAME.json has tokens of texts, logits behind some tokens, and tokens that
always taking the most likely one gives; of the encoder the vector of a text; of qwen3 the logits with each type of caches. Logits are those of the same model with all weights as f32: with packed weights
llama.cpp rounds activations to 8 bits. gguf_families.py has more architectures, as data, and gguf_variants.py more of their keys.
"""

import ctypes as C
import json
import os
import sys
import tempfile

import numpy as np
from gguf import GGMLQuantizationType as Type, GGUFWriter, PoolingType, dequantize, quantize

import gguf_families
import gguf_t5
import gguf_variants
from llama_cpp import SILENT, libraries as libraries_of

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


def scores_vocabulary(w, more=0):
    """SentencePiece with scores: bytes, letters and pairs of them; `more` tokens that no text has."""
    texts = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    kinds = [2, 3, 3] + [6] * 256
    pieces = ["▁", "t", "h", "e", "n", "i", "r", "▁t", "he", "▁the", "in", "▁in", "▁▁", "then", "er", "wor", "o", "w", "l", "ll"]
    texts += pieces + ["<|turn|>", "<|end|>", "\n\n"]
    kinds += [1] * len(pieces) + [3, 3, 4]
    texts += [f"<{i}>" for i in range(more)]
    kinds += [5] * more
    w.add_tokenizer_model("llama")
    w.add_token_list(texts)
    w.add_token_scores([0.0] * 259 + [-float(i) for i in range(len(pieces))] + [0.0] * (3 + more))
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


def pieces_vocabulary(w):
    """WordPiece: letters, signs and some words."""
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    texts = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + ["▁" + c for c in letters + ".,'!?"] + list(letters)
    texts += ["▁the", "▁un", "ing", "able", "▁play", "ed", "er", "▁中"]
    w.add_tokenizer_model("bert")
    w.add_token_list(texts)
    w.add_token_types([3] * 5 + [1] * (len(texts) - 5))
    w.add_token_type_count(2)
    for name, token in (("bos", 2), ("eos", 3), ("unknown", 1), ("seperator", 3), ("padding", 0), ("cls", 2), ("mask", 4)):
        w.add_uint32(f"tokenizer.ggml.{name}_token_id", token)
    return len(texts)


def encoder(path, kind, as_floats):
    """A file of an encoder with matrices of a type."""
    random = np.random.default_rng(3)
    w = GGUFWriter(path, "bert")
    w.add_name("tiny bert")
    w.add_context_length(CONTEXT)
    w.add_embedding_length(WIDTH)
    w.add_block_count(2)
    w.add_feed_forward_length(INNER)
    w.add_head_count(HEADS)
    w.add_layer_norm_eps(1e-5)
    w.add_causal_attention(False)
    w.add_pooling_type(PoolingType.MEAN)
    count = pieces_vocabulary(w)

    def vector(name, length, one=0.0):
        w.add_tensor(name, (one + 0.2 * random.standard_normal(length)).astype(np.float32))

    def matrix(name, rows, columns, kind):
        made = (random.standard_normal((rows, columns)) / np.sqrt(columns)).astype(np.float32)
        packed = quantize(made, kind)
        if as_floats or kind == Type.F32:
            w.add_tensor(name, dequantize(packed, kind).astype(np.float32))
        else:
            w.add_tensor(name, packed, raw_dtype=kind)

    def norm(name):
        vector(name + ".weight", WIDTH, 1.0)
        vector(name + ".bias", WIDTH)

    matrix("token_embd.weight", count, WIDTH, kind)
    matrix("position_embd.weight", CONTEXT, WIDTH, Type.F32)
    matrix("token_types.weight", 2, WIDTH, Type.F32)
    norm("token_embd_norm")
    for layer in range(2):
        at = f"blk.{layer}."
        parts = [(f"attn_{name}", WIDTH, WIDTH) for name in ("q", "k", "v", "output")]
        for name, rows, columns in parts + [("ffn_up", INNER, WIDTH), ("ffn_down", WIDTH, INNER)]:
            matrix(f"{at}{name}.weight", rows, columns, kind)
            vector(f"{at}{name}.bias", rows)
        norm(at + "attn_output_norm")
        norm(at + "layer_output_norm")
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def model(path, arch, layers, types, vocabulary, gemma, as_floats, experts=0, dim=DIM):
    """One file. `types` are those of the parts, `dim` the elements of a head."""
    random = np.random.default_rng(1)
    w = GGUFWriter(path, arch)
    w.add_name(f"tiny {arch}")
    w.add_context_length(CONTEXT)
    w.add_embedding_length(WIDTH)
    w.add_block_count(layers)
    w.add_feed_forward_length(INNER)
    w.add_head_count(HEADS)
    w.add_head_count_kv(KV_HEADS)
    w.add_key_length(dim)
    w.add_value_length(dim)
    w.add_rope_dimension_count(dim)
    w.add_layer_norm_rms_eps(1e-5)
    if gemma:
        w.add_sliding_window(4)
        w.add_rope_freq_base(1e6)
    if experts:
        w.add_expert_count(experts)
        w.add_expert_used_count(2)
        w.add_expert_feed_forward_length(INNER // 2)
    count = vocabulary(w)

    def matrix(name, kind, rows, columns, size=1.0):
        made = (size * random.standard_normal((rows, columns)) / np.sqrt(columns)).astype(np.float32)
        packed = quantize(made, kind)
        if as_floats:
            w.add_tensor(name, dequantize(packed, kind).astype(np.float32))
        else:
            w.add_tensor(name, packed, raw_dtype=kind)

    def experts_of(at):
        w.add_tensor(at + "ffn_gate_inp.weight", (0.4 * random.standard_normal((experts, WIDTH))).astype(np.float32))
        for name, rows, columns in (("gate", INNER // 2, WIDTH), ("up", INNER // 2, WIDTH), ("down", WIDTH, INNER // 2)):
            kind = types["down" if name == "down" else "inner"]
            made = (random.standard_normal((experts, rows, columns)) / np.sqrt(columns)).astype(np.float32)
            packed = quantize(made, kind)
            if as_floats:
                w.add_tensor(f"{at}ffn_{name}_exps.weight", dequantize(packed, kind).astype(np.float32).reshape(made.shape))
            else:
                w.add_tensor(f"{at}ffn_{name}_exps.weight", packed, raw_dtype=kind)

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
            matrix(f"{at}attn_{name}.weight", types["attention"], heads * dim, WIDTH)
        matrix(at + "attn_output.weight", types["attention"], WIDTH, HEADS * dim)
        vector(at + "ffn_norm.weight", WIDTH)
        if experts:
            experts_of(at)
        else:
            for name in ("gate", "up"):
                matrix(f"{at}ffn_{name}.weight", types["inner"], INNER, WIDTH)
            matrix(at + "ffn_down.weight", types["down"], WIDTH, INNER)
        norms = [("attn_q", dim), ("attn_k", dim)] if gemma or arch.startswith("qwen3") else []
        if gemma:
            norms += [("post_attention", WIDTH), ("post_ffw", WIDTH)]
        if norms:
            for name, length in norms:
                vector(f"{at}{name}_norm.weight", length)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


class Llama:
    """A model in llama.cpp's processor back end."""

    def __init__(self, libraries, path, caches=None, at_once=CONTEXT, keys=None):
        f = self.lib = libraries_of(libraries, ["cpu"])
        f.llama_log_set(SILENT, None)
        self.model = f.llama_model_load_from_file(path.encode(), f.llama_model_default_params())
        assert self.model, path
        params = f.llama_context_default_params()
        numbers = C.cast(C.byref(params), C.POINTER(C.c_uint32))
        numbers[0], numbers[1], numbers[2] = CONTEXT, at_once, at_once
        if caches:
            # The types of keys and values; those of values other than F16 need the attention that reads them as they are.
            assert numbers[26] == numbers[27] == Type.F16 and numbers[13] == 0xFFFFFFFF, "another llama.cpp"
            numbers[13], numbers[26], numbers[27] = 1, caches, caches
        if keys:
            numbers[13], numbers[26] = 0, keys
        self.context = f.llama_init_from_model(self.model, params)
        assert self.context, path
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


    def vector(self, tokens):
        self.lib.llama_set_embeddings(self.context, True)
        given = (C.c_int32 * len(tokens))(*tokens)
        assert self.lib.llama_decode(self.context, self.lib.llama_batch_get_one(given, len(tokens))) == 0
        # Models that have logits have states of tokens; of others vectors may have another length.
        count = self.lib.llama_model_n_embd_out(self.model)
        return np.ctypeslib.as_array(self.lib.llama_get_embeddings_seq(self.context, 0), shape=(count,)).copy()


# Texts for the encoder's tokenizer.
WORDS = ["", "the unplayable play", "Thé  ÜNed, 12 é!", "中the x中", "ing [SEP] the", "~ played"]


def write_encoder(out, libraries):
    """The encoder, tokens of texts and the vector of one."""
    encoder(os.path.join(out, "bert.gguf"), Type.Q8_0, False)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "floats.gguf")
        encoder(path, Type.Q8_0, True)
        llama = Llama(libraries, path)
        texts = [{"text": text, "with_control": False, "tokens": llama.tokens(text, False)} for text in WORDS]
        vector = llama.vector(texts[2]["tokens"])
    with open(os.path.join(out, "bert.json"), "w") as file:
        json.dump({"texts": texts, "text": WORDS[2], "vector": [round(float(x), 6) for x in vector]}, file, ensure_ascii=False)
        file.write("\n")


def write_caches(out, libraries):
    """A model with heads of whole blocks, and its logits with caches of each type."""
    types = dict(embedding=Type.Q8_0, output=Type.Q8_0, attention=Type.Q8_0, inner=Type.Q8_0, down=Type.Q8_0)
    model(os.path.join(out, "qwen3.gguf"), "qwen3", 2, types, scores_vocabulary, False, False, dim=32)
    prompt = [int(token) for token in np.random.default_rng(4).integers(3, 250, 90)]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "floats.gguf")
        model(path, "qwen3", 2, types, scores_vocabulary, False, True, dim=32)
        logits = lambda kind: [round(float(x), 5) for x in Llama(libraries, path, kind).logits(prompt)]
        caches = {kind.name.lower(): logits(kind) for kind in (Type.F16, Type.Q8_0, Type.Q4_0)}
    with open(os.path.join(out, "qwen3.json"), "w") as file:
        json.dump({"prompt": prompt, "caches": caches}, file)
        file.write("\n")


def main(out, libraries):
    os.makedirs(out, exist_ok=True)
    write_encoder(out, libraries)
    write_caches(out, libraries)
    gguf_families.write_all(out, lambda path, **given: Llama(libraries, path, **given), scores_vocabulary, [name for name in (*gguf_families.CASES, *gguf_families.ENCODERS) if name != gguf_variants.LONG])
    llama_of = lambda path, **given: Llama(libraries, path, **given)
    gguf_families.write_all(out, llama_of, lambda w: scores_vocabulary(w, gguf_variants.PICTURES), [gguf_variants.LONG])
    gguf_t5.write_model(out, "t5", {}, llama_of, scores_vocabulary)
    gguf_t5.write_caches(out, "t5-caches", llama_of, scores_vocabulary)
    mixed = dict(embedding=Type.Q8_0, output=Type.Q5_1, attention=Type.Q4_0, inner=Type.F16, down=Type.BF16)
    small = dict(embedding=Type.Q8_0, attention=Type.Q4_1, inner=Type.Q4_0, down=Type.Q5_0)
    chosen = dict(embedding=Type.Q8_0, output=Type.Q8_0, attention=Type.Q4_0, inner=Type.Q4_0, down=Type.MXFP4)
    for name, arch, layers, types, vocabulary, experts in (
        ("llama", "llama", 2, mixed, scores_vocabulary, 0),
        ("gemma3", "gemma3", 6, small, merges_vocabulary, 0),
        ("qwen3moe", "qwen3moe", 2, chosen, scores_vocabulary, 6),
    ):
        gemma = arch == "gemma3"
        model(os.path.join(out, name + ".gguf"), arch, layers, types, vocabulary, gemma, False, experts)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "floats.gguf")
            model(path, arch, layers, types, vocabulary, gemma, True, experts)
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
