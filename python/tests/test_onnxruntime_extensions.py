"""Operators of onnxruntime-extensions in the stand-in for ONNX Runtime. What is expected is what that library (0.15.2) gave."""

from __future__ import annotations

import base64
import json
import struct

import models
import numpy as np
import pytest
from models import INT64, TEXT

import halite.onnxruntime as ort

BOOL, INT32 = 9, 6
DOMAIN = "ai.onnx.contrib"


@pytest.fixture(autouse=True)
def on_device(device, monkeypatch):
    monkeypatch.setenv("HALITE_ONNXRUNTIME_DEVICE", device.uri)


def run(operator: str, inputs: dict, outputs: dict, attributes: dict, **feed):
    """A model of one operator; `inputs` and `outputs` are the types of elements."""
    own = models.node(operator, list(inputs), list(outputs), DOMAIN, **attributes)
    takes = [models.takes(name, [f"{name}0"], element) for name, element in inputs.items()]
    gives = [models.gives(name, [f"{name}0"], element) for name, element in outputs.items()]
    return ort.InferenceSession(models.model(own, *takes, *gives)).run(None, feed)


def words(*own: str) -> np.ndarray:
    return np.array(own, object)


def sentencepiece() -> bytes:
    """A model of SentencePiece: unknown, beginning, end, and five pieces with their scores."""
    pieces = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3)]
    pieces += [("▁", -4.0, 1), ("▁a", -2.0, 1), ("b", -3.0, 1), ("▁ab", -2.5, 1), ("▁b", -3.5, 1)]
    made = b""
    for text, score, kind in pieces:
        made += models.message(1, models.message(1, text) + b"\x15" + struct.pack("<f", score) + models.number(3, kind))
    return made


@pytest.mark.parametrize("packed", [False, True])
def test_sentencepiece_gives_tokens_and_texts(packed):
    file = sentencepiece()
    attributes = {"model": base64.b64encode(file).decode() if packed else models.Bytes(file)}
    flags = {name: BOOL for name in ("begin", "end", "backwards", "fairseq")}
    inputs = {"x": TEXT, "best": INT64, "alpha": models.FLOAT, **flags}
    given = {"best": np.zeros(1, np.int64), "alpha": np.zeros(1, np.float32)}

    def tokens(*on, **more):
        feed = {name: np.array([name in on]) for name in flags}
        return run("SentencepieceTokenizer", inputs, {"y": INT32, "at": INT64}, attributes, **given, **feed, **more)

    x = words("ab b", "", "a z")
    y, at = tokens(x=x)
    assert y.dtype == np.int32 and y.tolist() == [6, 7, 4, 3, 0] and at.tolist() == [0, 2, 2, 5]
    y, at = tokens("begin", "end", x=x)
    assert y.tolist() == [1, 6, 7, 2, 1, 2, 1, 4, 3, 0, 2] and at.tolist() == [0, 4, 6, 11]
    assert tokens("begin", "backwards", x=x)[0].tolist() == [7, 6, 1, 1, 0, 3, 4, 1]
    assert tokens("end", "fairseq", x=x)[0].tolist() == [7, 8, 2, 2, 5, 4, 3, 2]

    if packed:
        return
    back = run("SentencepieceDecoder", {"x": INT64}, {"y": TEXT}, attributes, x=np.array([1, 6, 7, 2]))
    assert back[0].tolist() == ["ab b"]
    with pytest.raises(ort.Fail, match="has 8 tokens"):
        run("SentencepieceDecoder", {"x": INT64}, {"y": TEXT}, attributes, x=np.array([8]))
    with pytest.raises(ort.NotImplemented, match="places of tokens"):
        run("SentencepieceTokenizer", inputs, {"y": INT32, "at": INT64, "place": INT32}, attributes, x=x, **given, **dict.fromkeys(flags, np.array([False])))


def test_bert_parts_words():
    lines = "[PAD] [UNK] [CLS] [SEP] [MASK] the qu ##ick ##est fox ! 東 é e ##E".split()
    attributes = {"vocab_file": "\n".join(lines)}
    outputs = {"tokens": INT64, "kinds": INT64, "mask": INT64}

    def tokens(*texts, **more):
        return run("BertTokenizer", {"x": TEXT}, outputs, {**attributes, **more}, x=words(*texts))

    own, kinds, mask = tokens("The  quickest\u200b fox!東 É")
    assert own.tolist() == [2, 5, 6, 7, 8, 9, 10, 11, 12, 3] and not kinds.any() and mask.all()
    assert tokens("the fox é dog", strip_accents=1)[0].tolist() == [2, 5, 9, 13, 1, 3]
    assert tokens("the fox ! é", max_length=5)[0].tolist() == [2, 5, 9, 10, 3]
    assert tokens("The eE", do_lower_case=0)[0].tolist() == [2, 1, 13, 14, 3]
    own, kinds, _ = tokens("fox", "the !")
    assert own.tolist() == [2, 9, 3, 5, 10, 3] and kinds.tolist() == [0, 0, 0, 1, 1, 1]
    assert tokens("fox  the !", do_basic_tokenize=0)[0].tolist() == [2, 9, 1, 10, 3]
    with pytest.raises(ort.InvalidArgument, match="1 or 2 texts"):
        tokens("a", "b", "c")
    with pytest.raises(ort.Fail, match="lacks \\[MASK\\]"):
        tokens("a", vocab_file="\n".join(word for word in lines if word != "[MASK]"))


def test_byte_pairs_are_filled_up():
    merges = ["h e", "l l", "he ll", "Ġ he", "Ġhe ll", "Ġhell o"]
    vocabulary = ["<|endoftext|>", "h", "e", "l", "o", "Ġ", "!", "he", "ll", "hell", "Ġhe", "Ġhell", "Ġhello"]
    attributes = {
        "vocab": json.dumps({word: number for number, word in enumerate(vocabulary)}),
        "merges": "\n".join(["#version: 0.2", *merges]),
    }
    own = models.node("GPT2Tokenizer", ["x"], ["tokens", "mask"], DOMAIN, **attributes)
    parts = [models.takes("x", ["n"], TEXT), models.gives("tokens", ["n", "m"], INT64), models.gives("mask", ["n", "m"], INT64)]
    tokens, mask = ort.InferenceSession(models.model(own, *parts)).run(None, {"x": words("hello!<|endoftext|>", " hello")})
    # A word that is a token is that token, whatever the order of the pairs.
    assert tokens.tolist() == [[9, 4, 6, 0], [12, 0, 0, 0]] and mask.tolist() == [[1, 1, 1, 1], [1, 0, 0, 0]]


def test_texts_are_changed():
    def changed(operator, *texts, kind=TEXT, **attributes):
        return run(operator, {"x": TEXT}, {"y": kind}, attributes, x=words(*texts))[0].tolist()

    assert changed("StringLower", "ÀB", "ДΛ", "İ") == ["àb", "дλ", "İ"]
    assert changed("StringUpper", "aé", "д") == ["Aé", "д"]
    assert changed("StringStrip", " \ta\u00a0", "  ") == ["a\u00a0", "  "]
    assert changed("StringLength", "é東", "", kind=INT64) == [2, 0]
    assert changed("StringMapping", "a", "b", map="a\tone\nc\ttwo") == ["one", "b"]
    two = {"x": TEXT, "y": TEXT}
    assert run("StringEqual", two, {"z": BOOL}, {}, x=words("a", "b"), y=words("a", "c"))[0].tolist() == [True, False]
    assert run("StringConcat", two, {"z": TEXT}, {}, x=words("a", "b"), y=words("c", "d"))[0].tolist() == ["ac", "bd"]
    joined = run("StringJoin", {**two, "axis": INT64}, {"z": TEXT}, {}, x=words("a", "b"), y=words("-"), axis=np.zeros(1, np.int64))
    assert joined[0].tolist() == ["a-b"]


def test_what_is_not_there_is_refused(tmp_path):
    with pytest.raises(ort.NotImplemented, match="ai.onnx.contrib.AudioDecoder.*there are: BertTokenizer"):
        run("AudioDecoder", {"x": 2}, {"y": models.FLOAT}, {}, x=np.zeros(1, np.uint8))
    options = ort.SessionOptions()
    with pytest.raises(ort.Fail, match="no library"):
        options.register_custom_ops_library(str(tmp_path / "_extensions_pydll.so"))
    for name in ("_extensions_pydll.cpython-313-x86_64-linux-gnu.so", "libortextensions.so", "ortextensions.dll"):
        (tmp_path / name).write_bytes(b"")
        options.register_custom_ops_library(str(tmp_path / name))
    (tmp_path / "libother.so").write_bytes(b"")
    with pytest.raises(ort.NotImplemented, match="machine code"):
        options.register_custom_ops_library(str(tmp_path / "libother.so"))
