"""The tokenizers of BERT among the operators of onnxruntime-extensions, character by character as that library has them.

It knows letters, signs and spaces of fewer scripts than Unicode: so this is no tokenizer of the crate `text`.
"""

from __future__ import annotations

import re
import unicodedata

import numpy as np

from ._errors import Fail, InvalidArgument, NotImplemented
from ._nodes import Node

_LONGEST = 200
"""Characters of a word; a longer one has no tokens."""
_CHINESE = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)
_GREEK = dict(zip("ΙΚΛΜΝΟΠ", "ικλμνοπ"))


def without(node: Node, place: int, what: str) -> None:
    """Refuses a node whose output at a place is wanted."""
    if node.outputs[place : place + 1] not in ([], [""]):
        raise NotImplemented(f"the operator '{node.operator}' gives no {what} here; no other output is missing")


def small(c: str) -> str:
    """A letter in lower case: of ASCII, Latin 1, Russian, and some of Greek."""
    if c <= "Þ" or "А" <= c <= "Я":
        return c.lower()
    return _GREEK.get(c, c)


def _is_space(c: str) -> bool:
    return c in "\t\n\r" or unicodedata.category(c) == "Zs"


def _is_sign(c: str) -> bool:
    if c < "\x80":
        return "!" <= c <= "~" and not c.isalnum()
    has_signs = c <= "ÿ" or c in ";·" or "\u2000" <= c <= "\u206f" or "\u3000" <= c <= "\u303f"
    return has_signs and unicodedata.category(c)[0] == "P"


def _is_control(c: str) -> bool:
    kind = unicodedata.category(c)
    return (kind == "Cc" and c != "\x7f") or (kind == "Cf" and (c <= "ÿ" or "\u2000" <= c <= "\u206f"))


def _is_chinese(c: str) -> bool:
    return any(first <= ord(c) <= last for first, last in _CHINESE)


def _plain(c: str) -> str:
    """A letter of Latin 1 without its accent."""
    return unicodedata.normalize("NFD", c)[0] if "À" <= c <= "ÿ" else c


def vocabulary(node: Node) -> dict[str, int]:
    """Words with their numbers, of lines; empty lines do not count."""
    if "words" not in node.kept:
        lines = filter(None, re.split("[\r\n]", node.text("vocab_file")))
        node.kept["words"] = {word: number for number, word in enumerate(lines)}
    return node.kept["words"]


class _Bert:
    """What a node says of its tokenizer."""

    def __init__(self, node: Node):
        self.words, self.suffix = vocabulary(node), node.text("suffix_indicator", "##")
        self.is_basic = node.number("do_basic_tokenize", 1)
        self.lowers, self.strips = node.number("do_lower_case", 1), node.number("strip_accents", 0)
        self.parts_chinese, self.most = node.number("tokenize_chinese_chars", 1), node.number("max_length", -1)
        named = [node.text(f"{name}_token", f"[{name.upper()}]") for name in ("unk", "sep", "pad", "cls", "mask")]
        missing = [name for name in named if name not in self.words]
        if missing:
            raise Fail(f"the vocabulary of the operator '{node.operator}' lacks {', '.join(missing)}")
        self.unknown, self.end, _, self.begin, _ = (self.words[name] for name in named)

    def _basic(self, text: str) -> list[str]:
        """Words of a text: signs and Chinese characters are words of their own."""
        text = "".join(map(_plain, text)) if self.strips else text
        text = "".join(map(small, text)) if self.lowers else text
        words, word = [], ""
        for c in text:
            alone = (self.parts_chinese and _is_chinese(c)) or _is_sign(c)
            if alone or _is_space(c):
                words += [own for own in (word, c if alone else "") if own]
                word = ""
            elif not (self.strips and "\u0300" <= c <= "\u036f") and not _is_control(c):
                word += c
        return words + [word] * bool(word)

    def _spaced(self, text: str) -> list[str]:
        """Words between spaces; of spaces in a row all but the first are a part of the word."""
        words, word = [], ""
        for c in text:
            if c == " " and word:
                words.append(word)
                word = ""
            else:
                word += c
        return words + [word] * bool(word)

    def _tokens(self, word: str) -> list[int]:
        """The longest tokens, one after the other; where there is none, one for all that is left."""
        if len(word) > _LONGEST:
            return [self.unknown]
        tokens, at = [], 0
        while at < len(word):
            prefix = self.suffix if at else ""
            end = next((end for end in range(len(word), at, -1) if prefix + word[at:end] in self.words), None)
            if end is None:
                return [*tokens, self.unknown]
            tokens.append(self.words[prefix + word[at:end]])
            at = end
        return tokens

    def tokens(self, text: str) -> list[int]:
        """The tokens of a text."""
        return [token for word in (self._basic if self.is_basic else self._spaced)(text) for token in self._tokens(word)]

    def rows(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Tokens of one text or two with what is around them, and which text they are of."""
        rows = [self.tokens(text) for text in x.ravel()]
        if len(rows) == 1:
            # Lengths that leave no room for tokens are no limit.
            own = rows[0][: self.most - 2] if self.most > 2 else rows[0]
            return np.array([self.begin, *own, self.end], np.int64), np.zeros(len(own) + 2, np.int64)
        first, second = rows
        made = np.array([self.begin, *first, self.end, *second, self.end], np.int64)
        return made, np.repeat([0, 1], [len(first) + 2, len(second) + 1])


def _rows(node: Node, x: np.ndarray, counts: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    without(node, 3, "places of tokens in texts")
    if x.size not in counts:
        raise InvalidArgument(f"the operator '{node.operator}' takes {' or '.join(map(str, counts))} texts, not {x.size}")
    if "bert" not in node.kept:
        node.kept["bert"] = _Bert(node)
    return node.kept["bert"].rows(x)


def _bert(node, x):
    tokens, kinds = _rows(node, x, (1, 2))
    return [tokens, kinds, np.ones_like(tokens)]


def _bert_pair(node, x):
    tokens, kinds = _rows(node, x, (2,))
    return [tokens[None], np.ones_like(tokens)[None], kinds[None]]


BERT = {"BertTokenizer": _bert, "HfBertTokenizer": _bert_pair}
