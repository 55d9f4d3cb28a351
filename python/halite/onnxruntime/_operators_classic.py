"""Operators of `ai.onnx.ml` that look up texts, or make dictionaries of numbers and the other way round."""

from __future__ import annotations

import numpy as np

from ._errors import Fail, InvalidArgument
from ._nodes import STRING, Node, texts

_LISTS = ("strings", "int64s", "floats")
_DTYPES = {"int64s": np.int64, "floats": np.float32}


def _list(node: Node, name: str):
    """The list of an attribute whose type is in its name: the values, and the type's name."""
    for kind in _LISTS:
        found = {"strings": node.texts, "int64s": node.numbers, "floats": node.floats}[kind](f"{name}_{kind}")
        if found:
            return found, kind
    tensor = node.tensor(f"{name}_tensor")
    if tensor is None:
        raise Fail(f"the operator '{node.operator}' has no list '{name}'")
    return tensor.ravel().tolist(), "strings" if tensor.dtype == object else tensor.dtype


def _default(node: Node, kind):
    given = node.tensor("default_tensor")
    if given is not None and given.size:
        return given.ravel()[0]
    if kind == "strings":
        return node.text("default_string", "_Unused")
    if kind == "int64s":
        return node.number("default_int64", -1)
    if kind == "floats":
        return node.float("default_float", -0.0)
    return {"f": -0.0}.get(np.dtype(kind).kind, -1)


def _mapped(x, words: list, values: list, default, kind):
    """The value of each element: of `values`, at the place that it has in `words`."""
    places = {}
    for place, word in enumerate(words):
        places.setdefault("nan" if word != word else word, place)
    flat = np.asarray(x).ravel().tolist()
    found = (places.get("nan" if word != word else word) for word in flat)
    made = [default if place is None else values[place] for place in found]
    if kind == "strings":
        return texts(made, np.shape(x))
    return np.array(made, dtype=_DTYPES.get(kind, kind) if isinstance(kind, str) else kind).reshape(np.shape(x))


def _label_encoder(node, x):
    if node.has("classes_strings"):
        words = node.texts("classes_strings")
        places = list(range(len(words)))
        if np.asarray(x).dtype == object:
            return [_mapped(x, words, places, node.number("default_int64", -1), "int64s")]
        return [_mapped(x, places, words, node.text("default_string", "_Unused"), "strings")]
    keys, own = _list(node, "keys")
    values, kind = _list(node, "values")
    if (own == "strings") != (np.asarray(x).dtype == object):
        raise InvalidArgument("a LabelEncoder's keys and what it looks up are of different types")
    return [_mapped(x, keys, values, _default(node, kind), kind)]


def _category_mapper(node, x):
    words, numbers = node.texts("cats_strings"), node.numbers("cats_int64s")
    if len(words) != len(numbers):
        raise Fail(f"a CategoryMapper has {len(words)} texts and {len(numbers)} numbers")
    if np.asarray(x).dtype == object:
        return [_mapped(x, words, numbers, node.number("default_int64", -1), "int64s")]
    return [_mapped(x, numbers, words, node.text("default_string", "_Unused"), "strings")]


def _one_hot(node, x):
    words = node.texts("cats_strings")
    if not words:
        raise Fail("the operator 'OneHotEncoder' has no list of texts 'cats_strings'")
    places = _mapped(x, words, list(range(len(words))), -1, "int64s")
    if not node.number("zeros", 1) and (places < 0).any():
        raise Fail("a text is in no category, and 'zeros' is 0")
    return [(places[..., None] == np.arange(len(words))).astype(np.float32)]


def _dict_vectorizer(node, entries):
    words = node.texts("string_vocabulary") or node.numbers("int64_vocabulary")
    values = [entries.get(word) for word in words]
    given = next((value for value in values if value is not None), 0.0)
    if isinstance(given, str):
        return [texts(("" if value is None else value for value in values), (1, len(words)))]
    dtype = np.int64 if isinstance(given, (int, np.integer)) else np.float32
    return [np.array([[0 if value is None else value for value in values]], dtype)]


def _cast_map(node, entries):
    from ._operators_moves import cast

    entries = {int(key): value for key, value in entries.items()}
    if node.text("map_form", "DENSE") == "SPARSE":
        count = node.number("max_map", 1)
        if entries and not (0 <= min(entries) and max(entries) < count):
            raise InvalidArgument(f"the keys of a map reach from {min(entries)} to {max(entries)}; there is room for {count}")
        values = [entries.get(place) for place in range(count)]
    else:
        values = [entries[key] for key in sorted(entries)]
    kind = node.text("cast_to", "TO_FLOAT")
    is_text = any(isinstance(value, str) for value in values)
    filled = [("0" if is_text else 0) if value is None else value for value in values]
    array = texts(filled) if is_text else np.array(filled, np.float32)
    number = {"TO_STRING": STRING, "TO_FLOAT": 1, "TO_INT64": 7}.get(kind, 1)
    made = array.astype(np.int64 if number == 7 else np.float32) if not is_text and number != STRING else cast(array, number)
    return [made.reshape(1, -1)]


def _zip_map(node, shares):
    keys = node.texts("classlabels_strings") or node.numbers("classlabels_int64s")
    shares = np.asarray(shares)
    if shares.shape[-1:] != (len(keys),):
        raise InvalidArgument(f"{shares.shape[-1:]} numbers in a line, and {len(keys)} keys")
    return [[dict(zip(keys, line)) for line in shares.reshape(-1, len(keys)).tolist()]]


CLASSIC = {
    "CastMap": _cast_map,
    "CategoryMapper": _category_mapper,
    "DictVectorizer": _dict_vectorizer,
    "LabelEncoder": _label_encoder,
    "OneHotEncoder": _one_hot,
    "ZipMap": _zip_map,
}
