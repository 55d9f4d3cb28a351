"""Writes small GGUF files with tokenizers that gguf_tiny.py's have not, and what llama.cpp makes of texts.

    python gguf_tokenizers.py compiler/tests/data/gguf LIBRARIES

LIBRARIES as for gguf_tiny.py. Needs `gguf` 0.19, `numpy` and `sentencepiece`, which makes the normalization of the unigram model.
"""

import io
import json
import os
import sys
import tempfile

import sentencepiece
from sentencepiece import sentencepiece_model_pb2

import gguf_families
import gguf_tiny

TEXTS = [
    "", " ", "the then  in the", "Hello, the world's 12345 è€\n\n  end", "a<|end|>the", "<s>the</s>", "in<extra_id_0> the <extra_id_1>", "\tin\r\n the ",
    "ＡＢＣ ﬁn ½", "Ａｂ\u3000ｃ  ①", "e\u0301 é n\u0303", "नमस्ते दुनिया", "中文字 123", "مرحبا بالعالم", "Привет, мир", "สวัสดี", "😀👩‍👩‍👧 the", "\u00a0the\u200bin", "x\u0000y",
    "   three   spaces   ", "ABC abc ＡＢＣ", "\u2581the\u2581in", "the\n", "é" * 5,
]  # fmt: skip
# Some texts that others stand for.
RULES = {"Ａ": "A", "Ｂ": "B", "Ｃ": "C", "ａ": "a", "ｂ": "b", "ｃ": "c", "\u3000": " ", "\u00a0": " ", "ﬁ": "fi", "½": "1⁄2", "①": "1", "e\u0301": "é", "\t": " ", "\n": " ", "\r": " ", "\u200b": "", "\u0000": ""}  # fmt: skip


def charsmap():
    """SentencePiece's form of these rules."""
    with tempfile.TemporaryDirectory() as folder:
        rules = os.path.join(folder, "rules.tsv")
        points = lambda text: " ".join(f"{ord(c):x}" for c in text)
        with open(rules, "w") as file:
            file.writelines(f"{points(text)}\t{points(own)}\n" for text, own in RULES.items() if text != "\0")
        out = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["the then in the world"] * 9), model_writer=out, vocab_size=20, hard_vocab_limit=False, minloglevel=2, normalization_rule_tsv=rules
        )
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(out.getvalue())
    return proto.normalizer_spec.precompiled_charsmap


def unigram(w):
    """A unigram model as those of T5 are: no bytes, tokens that stay whole, the end behind texts."""
    pieces = "▁ ▁the ▁then the th he in ▁in en er n t h e i r o w l d s ' , . a b c A B C fi f 1 2 3 12 123 é è ⁄ ▁H ello ▁world 中 文 字 中文 П р и в е т м ﻣ न म ् स ▁▁".split(" ")
    texts = ["<pad>", "</s>", "<unk>", *pieces, "<extra_id_0>", "<extra_id_1>"]
    w.add_tokenizer_model("t5")
    w.add_tokenizer_pre("default")
    w.add_token_list(texts)
    w.add_token_scores([0.0, 0.0, 0.0, *[-2.0 - 0.37 * ((i * 7) % 23) for i in range(len(pieces))], 0.0, 0.0])
    w.add_token_types([3, 3, 2, *[1] * len(pieces), 4, 3])
    w.add_precompiled_charsmap(charsmap())
    w.add_add_space_prefix(True)
    w.add_remove_extra_whitespaces(True)
    for name, token in (("eos", 1), ("unknown", 2), ("padding", 0)):
        w.add_uint32(f"tokenizer.ggml.{name}_token_id", token)
    w.add_add_bos_token(False)
    w.add_add_eos_token(True)
    return len(texts)


def escaped(token):
    """Bytes as Python writes them, without the signs around them."""
    return repr(token)[2:-1]


def world(w):
    """The longest tokens, as RWKV's: all bytes but two, and words of several scripts."""
    words = [" the", " then", "the", "th", "in", " in", "  ", "\n\n", "\r\n", "12", "123", "中", "中文", "文", "नम", "स्ते", "При", "вет", "😀", "é", "é é", "'s", "\\n"]
    tokens = [bytes([byte]) for byte in range(256) if byte not in (0xC0, 0xFF)] + [word.encode() for word in words]
    texts = ["<s>"] + [escaped(token) for token in tokens]
    w.add_tokenizer_model("rwkv")
    w.add_token_list(texts)
    w.add_token_types([3] + [1] * len(tokens))
    w.add_bos_token_id(0)
    w.add_eos_token_id(0)
    w.add_chat_template("rwkv-world")
    # Never written.
    w.add_array("tokenizer.ggml.suppress_tokens", [5, 7])
    return len(texts)


# Names of pre-tokenizers that are split by other patterns than those of other files of the tests.
PRETOKENIZERS = [
    "afmoe", "bailingmoe", "bloom", "chameleon", "cohere2moe", "dbrx", "deepseek-coder", "deepseek-llm", "deepseek-v3", "glm4", "gpt-2", "gpt-4o", "granite-embed-multi-97m", "grok-2",
    "hunyuan-dense", "hy_v4", "jais-2", "kimi-k2", "laguna", "llama-bpe", "minicpm5", "minimax-m2", "qwen2", "qwen35", "seed-coder", "smollm", "solar-open", "spark2_5", "superbpe",
    "talkie", "tekken", "tiny_aya", "ufakzeka", "viking", "youtu",
]  # fmt: skip
WORDS = [
    *TEXTS[:5], "HelloWorld's 1234567 12 1", "x=10;\r\n y", "don't WE'RE l'été", "中文字123中文 カタカナ ひらがな", "한국어 텍스트 42", "٣٤٥ ½ Ⅷ", "ภาษาไทย", "f(x)->y; // @the_in #tag $5.00",
    "\n\n\n  a\n", "tabs\t\tin", "...!? (the)", "Ünïcödé ABCdef", "。，中！the", "ＡＢＣ１２３", "e\u0301t 12!\n", "a1b22c333d4444",
]  # fmt: skip


def pairs(w):
    """Bytes, and all pairs of them that are neighbours in the texts: what joins them tells where texts were split."""
    own = gguf_tiny.characters()
    written = ["".join(own[byte] for byte in text.encode()) for text in WORDS]
    joined = sorted({text[at : at + 2] for text in written for at in range(len(text) - 1)})
    texts = [*sorted(own.values()), *joined, "<|endoftext|>"]
    w.add_tokenizer_model("gpt2")
    w.add_token_list(texts)
    w.add_token_merges([f"{pair[0]} {pair[1]}" for pair in joined])
    w.add_token_types([1] * (len(texts) - 1) + [3])
    w.add_bos_token_id(len(texts) - 1)
    w.add_eos_token_id(len(texts) - 1)
    w.add_add_bos_token(False)
    return len(texts)


def write_pairs(out, libraries):
    """The metadata alone, and the tokens of texts by the name of the pre-tokenizer."""
    w = gguf_tiny.GGUFWriter(os.path.join(out, "tokenizer-pairs.gguf"), "llama")
    pairs(w)
    w.add_tokenizer_pre("default")
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.close()
    made = {}
    for name in PRETOKENIZERS:

        def vocabulary(w):
            w.add_tokenizer_pre(name)
            return pairs(w)

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "pairs.gguf")
            gguf_families.write(path, "hunyuan-dense", vocabulary, False)
            llama = gguf_tiny.Llama(libraries, path)
            made[name] = [llama.tokens(text, False) for text in WORDS]
    with open(os.path.join(out, "tokenizer-pairs.json"), "w") as file:
        json.dump({"texts": WORDS, "tokens": made}, file)
        file.write("\n")


BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


def lines(w):
    """Gemma 4's pairs of characters: spaces have a mark, lines are words, some pairs are no tokens, and some bytes neither."""
    texts = [text.replace(" ", "▁") for text in TEXTS + WORDS]
    letters = sorted({letter for text in texts for letter in text if letter not in "\0中б😀"})
    joined = sorted({text[at : at + 2] for text in texts for at in range(len(text) - 1) if "\0" not in text[at : at + 2]})
    joined = [pair for pair in joined if "\n" not in pair] + ["\n\n", "\n\n\n"]
    head = ["<pad>", "<eos>", "<bos>", "<unk>", "<turn|>", "<|tool_response>", "</s>"]
    kept = [pair for place, pair in enumerate(joined) if place % 7 or "\n" in pair]
    made = [*head, *BYTES[:0xF0], *letters, *kept]
    w.add_tokenizer_model("gemma4")
    w.add_token_list(made)
    w.add_token_merges([f"{pair[:1]} {pair[1:]}" for pair in joined])
    w.add_token_types([3] * 4 + [1] * 3 + [6] * 0xF0 + [1] * (len(letters) + len(kept)))
    w.add_bos_token_id(2)
    w.add_eos_token_id(1)
    # llama.cpp begins texts with the token all the same.
    w.add_add_bos_token(False)
    return len(made)


def cheapest(w):
    """PLaMo 2's tokens with scores: equal ones, some below that of an unknown letter, and some that are never taken."""
    letters = sorted({letter for text in TEXTS + WORDS for letter in text if letter not in "\0中б😀"})
    words = sorted({text[at : at + length] for text in TEXTS + WORDS for length in (2, 3, 5) for at in range(0, len(text) - length + 1, 2)})
    words = [word for word in words if "\0" not in word]
    head = ["<|plamo:unk|>", "<|plamo:bos|>", "<|plamo:eos|>", "<|plamo:pad|>"]
    scores = [-1.0 - (place * 7) % 5 for place in range(len(letters))]
    scores += [(-2.0 - (place * 11) % 13, -1500.0, -2500.0)[0 if place % 29 else 1 + place // 29 % 2] for place in range(len(words))]
    w.add_tokenizer_model("plamo2")
    w.add_token_list([*head, *BYTES, *letters, *words])
    w.add_token_scores([0.0] * (len(head) + 256) + scores)
    w.add_token_types([2, 3, 3, 3] + [6] * 256 + [1] * len(scores))
    return len(head) + 256 + len(scores)


def main(out, libraries):
    write_pairs(out, libraries)
    for name, vocabulary in (("unigram", unigram), ("world", world), ("lines", lines), ("cheapest", cheapest)):
        path = os.path.join(out, f"tokenizer-{name}.gguf")
        gguf_families.write(path, "hunyuan-dense", vocabulary, False)
        llama = gguf_tiny.Llama(libraries, path)
        cases = [{"text": text, "with_control": control, "tokens": llama.tokens(text, control)} for text in TEXTS for control in (False, True)]
        with open(os.path.join(out, f"tokenizer-{name}.json"), "w") as file:
            json.dump({"texts": cases}, file)
            file.write("\n")


if __name__ == "__main__":
    main(*sys.argv[1:3])
