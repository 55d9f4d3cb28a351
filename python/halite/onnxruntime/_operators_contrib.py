"""Operators on texts of onnxruntime-extensions (the domain `ai.onnx.contrib`), which the host computes: tokenizers and moves of texts.

Their results are those of that library's kernels. Tokenizers are those of the crate `text`; where the operator lists a vocabulary, it is
written as a `tokenizer.json` first.
"""

from __future__ import annotations

import base64
import binascii
import json
import re

import numpy as np

from .. import Error
from .._halite import _Tokenizer
from ._errors import Fail, InvalidArgument
from ._nodes import Node, texts
from ._operators_bert import BERT, small, without

DOMAINS = ("ai.onnx.contrib", "com.microsoft.extensions")
_SPACES = " \t\n\r\f\v"


def _made(node: Node, write) -> _Tokenizer:
    """The tokenizer of a node, which keeps it; `write` gives the bytes of its file."""
    if "tokenizer" not in node.kept:
        try:
            node.kept["tokenizer"] = _Tokenizer(write(node))
        except Error as error:
            raise Fail(f"the tokenizer in the operator '{node.operator}': {error}") from error
    return node.kept["tokenizer"]


def _one(value, default):
    """What an input of one element is, or what it is where it is not given."""
    return default if value is None or np.size(value) == 0 else np.ravel(value)[0].item()


def _sentencepiece_file(node: Node) -> bytes:
    data = node.bytes("model")
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error:
        return data


def _fairseq(tokens: np.ndarray) -> np.ndarray:
    """Numbers as fairseq has them: `<s>`, `<pad>`, `</s>`, `<unk>` are 0 to 3, and all others one more than SentencePiece's."""
    return np.where(tokens == 0, 3, np.where(tokens == 1, 0, np.where(tokens == 2, 2, tokens + 1)))


def _sentencepiece(node, x, _best=None, _alpha=None, begin=None, end=None, backwards=None, fairseq=None):
    without(node, 2, "places of tokens in texts")
    tokenizer = _made(node, _sentencepiece_file)
    mark = [[-1 if own is None else own] for own in (tokenizer.begin, tokenizer.end)]
    before, behind = mark[0] if _one(begin, False) else [], mark[1] if _one(end, False) else []
    rows = [before + row + behind for row in tokenizer.encode(x.ravel().tolist())]
    if _one(backwards, False):
        rows = [row[::-1] for row in rows]
    made = np.array([token for row in rows for token in row], np.int32)
    if _one(fairseq, False) and not _one(backwards, False):
        made = _fairseq(made).astype(np.int32)
    return [made, np.cumsum([0, *map(len, rows)], dtype=np.int64)]


def _row(node: Node, x: np.ndarray) -> np.ndarray:
    """Tokens as one row."""
    if x.ndim == 1 or (x.ndim == 2 and x.shape[0] == 1):
        return x.ravel()
    raise InvalidArgument(f"the operator '{node.operator}' takes [N] or [1, N] tokens, not {list(x.shape)}")


def _sentencepiece_back(node, x, fairseq=None):
    tokenizer, tokens = _made(node, _sentencepiece_file), _row(node, x)
    if _one(fairseq, False):
        tokens = np.where(tokens == 3, 0, np.where(tokens == 0, 1, np.where(tokens == 2, 2, tokens - 1)))
    if tokens.size and not 0 <= tokens.min() <= tokens.max() < len(tokenizer):
        raise Fail(f"the operator '{node.operator}' has {len(tokenizer)} tokens, and was given {tokens.min()} to {tokens.max()}")
    return [texts([tokenizer.decode(tokens.tolist())])]


_MARKS = {"GPT2Tokenizer": ["<|endoftext|>"] * 4, "RobertaTokenizer": ["<s>", "</s>", "<pad>", "<unk>"]}
"""The tokens of the beginning and the end, for filling, and for what has no token."""


def _bytes_file(node: Node) -> bytes:
    vocabulary = json.loads(node.text("vocab"))
    lines = node.text("merges").splitlines()
    merges = [line for line in lines if line.strip() and not line.startswith("#version")]
    whole = [word for word in dict.fromkeys(_MARKS[node.operator]) if word in vocabulary]
    added = [
        {"id": vocabulary[word], "content": word, "special": False, "normalized": False, "lstrip": False, "rstrip": False, "single_word": False}
        for word in whole
    ]
    splitter = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    model = {"type": "BPE", "vocab": vocabulary, "merges": merges, "ignore_merges": True}
    return json.dumps({"model": model, "added_tokens": added, "pre_tokenizer": splitter, "decoder": {"type": "ByteLevel"}}).encode()


def _bytes_pairs(node, x):
    without(node, 2, "places of tokens in texts")
    tokenizer, most = _made(node, _bytes_file), node.number("padding_length", -1)
    if "marks" not in node.kept:
        vocabulary = json.loads(node.text("vocab"))
        node.kept["marks"] = [vocabulary.get(word) for word in _MARKS[node.operator]]
    begin, end, filler, _ = node.kept["marks"]
    rows = tokenizer.encode(x.ravel().tolist())
    if node.operator == "RobertaTokenizer":
        rows = [[begin, *(row if most < 0 else row[: max(most - 2, 0)]), end] for row in rows]
    length = max(map(len, rows), default=0) if most < 0 else most
    rows = [row[:length] for row in rows]
    made = np.array([row + [filler] * (length - len(row)) for row in rows], np.int64).reshape(*x.shape, length)
    mask = np.array([[1] * len(row) + [0] * (length - len(row)) for row in rows], np.int64).reshape(*x.shape, length)
    return [made, mask]


def _each(change, kind=object):
    """An operator that changes each text by itself."""

    def compute(_node, x):
        return [np.array([change(word) for word in x.ravel()], kind).reshape(x.shape)]

    return compute


def _joined(_node, x, separator, axis):
    axis, between = int(_one(axis, 0)), str(np.ravel(separator)[0])
    if x.ndim == 0:
        return [texts([x.item()])]
    if not 0 <= axis < x.ndim:
        raise InvalidArgument(f"a StringJoin's axis is {axis}, and its texts have {x.ndim} dimensions")
    if x.size == 0:
        return [texts([""])]
    lines = np.moveaxis(x, axis, -1)
    made = [between.join(line) for line in lines.reshape(-1, lines.shape[-1])]
    return [texts(made, lines.shape[:-1] or None)]


def _parted(_node, x, separators, skips):
    """Parts of texts between characters, as a sparse matrix: places, parts, sizes."""
    if x.ndim != 1:
        raise InvalidArgument(f"a StringSplit takes texts of one dimension, not {x.ndim}")
    marks, skips = str(np.ravel(separators)[0]), bool(_one(skips, False))
    rows = []
    for word in x:
        parts = (re.split(f"[{re.escape(marks)}]", word) if marks else list(word)) if word else []
        rows.append([part for part in parts if part or not skips])
    places = [[row, column] for row, parts in enumerate(rows) for column in range(len(parts))]
    sizes = np.array([len(rows), max(map(len, rows), default=0)], np.int64)
    return [np.array(places, np.int64).reshape(-1, 2), texts(part for parts in rows for part in parts), sizes]


def _both(_node, x, y):
    if x.shape != y.shape:
        raise InvalidArgument(f"a StringConcat takes texts of equal sizes, not {list(x.shape)} and {list(y.shape)}")
    return [np.asarray(np.frompyfunc(lambda left, right: left + right, 2, 1)(x, y), object)]


def _mapped(node, x):
    if "words" not in node.kept:
        lines = [[part for part in line.split("\t") if part] for line in node.text("map").split("\n") if line]
        if any(len(line) != 2 for line in lines):
            raise Fail("a line of a StringMapping's 'map' does not have two parts")
        node.kept["words"] = dict(lines)
    words = node.kept["words"]
    return [texts((words.get(word, word) for word in x.ravel()), x.shape)]


CONTRIB = {
    **BERT,
    "GPT2Tokenizer": _bytes_pairs,
    "RobertaTokenizer": _bytes_pairs,
    "SentencepieceDecoder": _sentencepiece_back,
    "SentencepieceTokenizer": _sentencepiece,
    "StringConcat": _both,
    "StringEqual": lambda _node, x, y: [np.asarray(x == y, bool)],
    "StringJoin": _joined,
    "StringLength": _each(len, np.int64),
    "StringLower": _each(lambda word: "".join(map(small, word))),
    "StringMapping": _mapped,
    "StringSplit": _parted,
    "StringStrip": _each(lambda word: word.strip(_SPACES) or word),
    "StringUpper": _each(lambda word: "".join(c.upper() if c.isascii() else c for c in word)),
}
GIVE_TEXTS = {
    **dict.fromkeys("SentencepieceDecoder StringConcat StringJoin StringLower StringMapping StringStrip StringUpper".split(), (0,)),
    "StringSplit": (1,),
}
"""Which outputs are texts."""
