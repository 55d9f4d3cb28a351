"""Operators that compute with texts: cases, parts, patterns, counts of words."""

from __future__ import annotations

import numpy as np

from .. import Error
from .._halite import _Pattern
from ._errors import Fail, InvalidArgument
from ._nodes import Node, texts


def _pattern(node: Node, name: str, text: str) -> _Pattern:
    """A compiled pattern, which the node keeps."""
    if text not in node.kept:
        try:
            node.kept[text] = _Pattern(text)
        except Error as error:
            raise Fail(f"'{name}' of the operator '{node.operator}': {error}") from error
    return node.kept[text]


def _lower(c: str) -> str:
    """A character in lower case; the first of two, which are a letter and a mark."""
    return c.lower()[0]


def _upper(c: str) -> str:
    """A character in upper case, where that is one."""
    return next((made for made in (c.upper(), c.title()) if len(made) == 1), c)


def _cased(word: str, action: str) -> str:
    """Each character in another case: the one character that locales have for it."""
    change = {"LOWER": _lower, "UPPER": _upper}.get(action)
    return "".join(map(change, word)) if change else word


def _normalizer(node, x):
    if x.ndim not in (1, 2) or x.shape[-1] < 1 or (x.ndim == 2 and x.shape[0] != 1):
        raise InvalidArgument("a StringNormalizer takes [C] or [1, C] texts, and C is at least 1")
    action = node.text("case_change_action", "NONE")
    stops = node.texts("stopwords")
    words = x.ravel().tolist()
    if node.number("is_case_sensitive", 0):
        kept = [word for word in words if word not in set(stops)]
    else:
        own = "UPPER" if action == "UPPER" else "LOWER"
        stops = {_cased(stop, own) for stop in stops}
        kept = [word for word in words if not stops or _cased(word, own) not in stops]
    made = [_cased(word, action) for word in kept] or [""]
    return [texts(made, (1, -1) if x.ndim == 2 else None)]


def _concat(_node, a, b):
    joined = np.asarray(np.frompyfunc(lambda left, right: left + right, 2, 1)(a, b), object)
    return [joined]


def _rows(rows: list[list[str]], shape, filler: str) -> np.ndarray:
    """Rows of texts, filled up to the length of the longest one."""
    most = max((len(row) for row in rows), default=0)
    return texts((word for row in rows for word in row + [filler] * (most - len(row))), (*shape, most))


def _by_spaces(word: str, most: int) -> list[str]:
    """What lies between spaces, which are skipped as a whole; other white space is text."""
    parts, rest = [], word.strip(" ")
    while rest and len(parts) != most:
        part, _, rest = rest.partition(" ")
        parts.append(part)
        rest = rest.lstrip(" ")
    return parts + [rest] if rest else parts


def _string_split(node, x):
    delimiter = node.text("delimiter")
    most = node.number("maxsplit") if node.has("maxsplit") else -1
    # Between delimiters that follow each other is an empty text.
    rows = [(word.split(delimiter, most) if delimiter else _by_spaces(word, most)) if word else [] for word in x.ravel()]
    counts = np.array([len(row) for row in rows], np.int64).reshape(x.shape)
    return [_rows(rows, x.shape, ""), counts]


def _full_match(node, x):
    pattern = _pattern(node, "pattern", node.text("pattern"))
    return [np.array([pattern.is_whole(word) for word in x.ravel()], bool).reshape(x.shape)]


def _tokens(node: Node, word: str, least: int) -> list[str]:
    separators = node.texts("separators")
    if not separators:
        if len(word) < least:
            return []
        return _pattern(node, "tokenexp", node.text("tokenexp")).matches(word, least)
    parts = [word]
    for separator in separators:
        pattern = _pattern(node, "separators", separator)
        parts = [own for part in parts for own in pattern.between(part, least)]
    return parts


def _tokenizer(node, x):
    if x.ndim not in (1, 2):
        raise InvalidArgument("a Tokenizer takes [C] or [N, C] texts")
    if x.size == 0:
        return [texts([], (*x.shape[: x.ndim - 1], 0))]
    least = node.number("mincharnum", 1)
    separators = node.texts("separators")
    by_character = separators == [""] if separators else node.text("tokenexp") == "."
    if least < 1 or (by_character and least > 1):
        raise Fail(f"the attribute 'mincharnum' of a Tokenizer is {least}")
    rows = [list(word) if by_character else _tokens(node, word, least) for word in x.ravel()]
    if node.number("mark", 0) and any(rows):
        rows = [["\x02", *row, "\x03"] for row in rows]
    return [_rows(rows, x.shape, node.text("pad_value"))]


class _Counts:
    """The n-grams of a `TfIdfVectorizer` with their columns."""

    def __init__(self, node: Node):
        self.least, self.most = node.number("min_gram_length", 1), node.number("max_gram_length", 1)
        self.skips = node.number("max_skip_count", 0) + 1
        pool = node.texts("pool_strings") or node.numbers("pool_int64s")
        begins, columns = node.numbers("ngram_counts"), node.numbers("ngram_indexes")
        weights = np.array(node.floats("weights"), np.float32)
        self.mode = node.text("mode", "TF")
        if not columns or min(columns) < 0 or self.mode not in ("TF", "IDF", "TFIDF") or self.least < 1:
            raise Fail("a TfIdfVectorizer without columns, with negative ones, or of an unknown mode")
        if weights.size not in (0, len(columns)):
            raise Fail(f"a TfIdfVectorizer has {weights.size} weights for {len(columns)} n-grams")
        self.columns = max(columns) + 1
        self.places: dict[tuple, tuple[int, float]] = {}
        """The column and the weight of each n-gram."""
        number = 0
        for length, begin in enumerate(begins, 1):
            end = begins[length] if length < len(begins) else len(pool)
            if not 0 <= begin <= end <= len(pool) or (end - begin) % length:
                raise Fail(f"the n-grams of {length} of a TfIdfVectorizer are not whole")
            for at in range(begin, end, length):
                if number >= len(columns):
                    raise Fail("a TfIdfVectorizer has more n-grams than columns")
                if self.least <= length <= self.most:
                    weight = weights[number] if weights.size and self.mode != "TF" else np.float32(1)
                    self.places[tuple(pool[at : at + length])] = columns[number], weight
                number += 1

    def row(self, words: list) -> np.ndarray:
        """How often each n-gram is among words, with words skipped between, or whether it is; times its weight."""
        made = np.zeros(self.columns, np.float32)
        for length in range(self.least, self.most + 1):
            for distance in range(1, (self.skips if length > 1 else 1) + 1):
                for at in range(len(words) - (length - 1) * distance):
                    found = self.places.get(tuple(words[at : at + (length - 1) * distance + 1 : distance]))
                    if found is not None:
                        column, weight = found
                        made[column] = weight if self.mode == "IDF" else made[column] + weight
        return made


def _tf_idf(node, x):
    if "counts" not in node.kept:
        node.kept["counts"] = _Counts(node)
    counts = node.kept["counts"]
    if x.ndim not in (1, 2):
        raise InvalidArgument("a TfIdfVectorizer takes [C] or [N, C] texts or numbers")
    lines = [x.tolist()] if x.ndim == 1 else x.tolist()
    made = np.stack([counts.row(line) for line in lines]) if lines else np.zeros((0, counts.columns), np.float32)
    return [made[0] if x.ndim == 1 else made]


def _murmur(data: bytes, seed: int) -> int:
    """MurmurHash3 of 32 bits."""
    most, value = (1 << 32) - 1, seed & ((1 << 32) - 1)

    def turned(number, by):
        return (number << by | number >> (32 - by)) & most

    def mixed(word):
        return turned(word * 0xCC9E2D51 & most, 15) * 0x1B873593 & most

    whole = len(data) & ~3
    for at in range(0, whole, 4):
        value = turned(value ^ mixed(int.from_bytes(data[at : at + 4], "little")), 13) * 5 + 0xE6546B64 & most
    if whole < len(data):
        value ^= mixed(int.from_bytes(data[whole:], "little"))
    value ^= len(data)
    for by, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        value = (value ^ value >> by) * factor & most
    return value ^ value >> 16


def _hashed(node, x):
    seed = node.number("seed", 0)
    made = np.array([_murmur(word.encode(), seed) for word in x.ravel()], np.uint32).reshape(x.shape)
    return [made if node.number("positive", 1) else made.view(np.int32)]


TEXTS = {
    "MurmurHash3": _hashed,
    "RegexFullMatch": _full_match,
    "StringConcat": _concat,
    "StringNormalizer": _normalizer,
    "StringSplit": _string_split,
    "TfIdfVectorizer": _tf_idf,
    "Tokenizer": _tokenizer,
}
