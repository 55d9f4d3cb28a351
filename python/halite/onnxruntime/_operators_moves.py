"""Operators that move texts, or tell something of arrays of texts."""

from __future__ import annotations

import re

import numpy as np

from ._errors import InvalidArgument
from ._nodes import STRING, Node, dtype, texts


def _axis(axis: int, rank: int) -> int:
    if not -rank <= axis < max(rank, 1):
        raise InvalidArgument(f"there is no axis {axis} of {rank}")
    return axis + rank if axis < 0 else axis


def _list(value) -> list[int]:
    return [int(number) for number in np.asarray(value).ravel()]


def _axes(node: Node, given) -> list[int] | None:
    if given is not None:
        return _list(given)
    return node.numbers("axes") if node.has("axes") else None


def _identity(_node, x):
    return [x]


def _reshape(node, x, shape=None):
    wanted = _list(shape) if shape is not None else node.numbers("shape")
    if not node.number("allowzero", 0):
        wanted = [x.shape[i] if size == 0 and i < x.ndim else size for i, size in enumerate(wanted)]
    return [x.reshape(wanted)]


def _flatten(node, x):
    axis = node.number("axis", 1)
    axis = axis + x.ndim if axis < 0 else axis
    return [x.reshape(int(np.prod(x.shape[:axis], dtype=np.int64)), -1 if x.size else int(np.prod(x.shape[axis:], dtype=np.int64)))]


def _transpose(node, x):
    return [x.transpose(node.numbers("perm") if node.has("perm") else None)]


def _squeeze(node, x, axes=None):
    found = _axes(node, axes)
    return [x.squeeze() if found is None else x.squeeze(tuple(_axis(axis, x.ndim) for axis in found))]


def _unsqueeze(node, x, axes=None):
    found = _axes(node, axes) or []
    rank = x.ndim + len(found)
    return [np.expand_dims(x, tuple(sorted(_axis(axis, rank) for axis in found)))]


def _expand(_node, x, shape):
    return [np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(_list(shape)))).copy()]


def _tile(_node, x, repeats):
    return [np.tile(x, _list(repeats))]


def _gather(node, x, indices):
    axis = _axis(node.number("axis", 0), x.ndim)
    indices = np.asarray(indices)
    if indices.size and not (-x.shape[axis] <= indices.min() and indices.max() < x.shape[axis]):
        raise InvalidArgument(f"indices from {indices.min()} to {indices.max()} are out of {x.shape[axis]} texts")
    return [x.take(indices, axis)]


def _gather_elements(node, x, indices):
    return [np.take_along_axis(x, np.asarray(indices), _axis(node.number("axis", 0), x.ndim))]


def _gather_nd(node, x, indices):
    if node.number("batch_dims", 0):
        batch = node.number("batch_dims")
        lead = x.shape[:batch]
        flat = x.reshape(-1, *x.shape[batch:])
        places = indices.reshape(-1, *indices.shape[batch:])
        made = np.stack([own[tuple(np.moveaxis(at, -1, 0))] for own, at in zip(flat, places)])
        return [made.reshape(*lead, *made.shape[1:])]
    return [x[tuple(np.moveaxis(np.asarray(indices), -1, 0))]]


def _slice(node, x, starts=None, ends=None, axes=None, steps=None):
    starts = node.numbers("starts") if starts is None else _list(starts)
    ends = node.numbers("ends") if ends is None else _list(ends)
    axes = _axes(node, axes)
    axes = list(range(len(starts))) if axes is None else axes
    steps = [1] * len(starts) if steps is None else _list(steps)
    cut = [slice(None)] * x.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps):
        axis = _axis(axis, x.ndim)
        size = x.shape[axis]
        if step > 0:
            bounds = [min(max(at + size if at < 0 else at, 0), size) for at in (start, end)]
            cut[axis] = slice(*bounds, step)
        else:
            start = min(max(start + size if start < 0 else start, 0), size - 1)
            end = min(max(end + size if end < 0 else end, -1), size)
            cut[axis] = slice(start, None if end == -1 else end, step) if size else slice(0, 0)
    return [x[tuple(cut)]]


def _split(node, x, sizes=None):
    axis = _axis(node.number("axis", 0), x.ndim)
    sizes = _list(sizes) if sizes is not None else node.numbers("split")
    if not sizes:
        each = -(-x.shape[axis] // len(node.outputs))
        sizes = [min(each, x.shape[axis] - at * each) for at in range(len(node.outputs))]
    return np.split(x, np.cumsum(sizes)[:-1], axis)


def _concat(node, *parts):
    return [np.concatenate(parts, _axis(node.number("axis", 0), parts[0].ndim))]


def _where(_node, condition, a, b):
    return [np.where(condition, a, b)]


def _compress(node, x, condition):
    axis = node.number("axis") if node.has("axis") else None
    return [np.compress(condition, x, axis)]


def _extract(_node, x, places):
    """ArrayFeatureExtractor: columns of the last dimension."""
    places = np.asarray(places).ravel()
    if places.size and not (0 <= places.min() and places.max() < x.shape[-1]):
        raise InvalidArgument(f"there is no place {places.max()} of {x.shape[-1]}")
    return [x[None, places] if x.ndim == 1 else x[..., places]]


def _pad(node, x, pads=None, value=None, axes=None):
    if node.text("mode", "constant") not in ("constant", ""):
        raise InvalidArgument("texts are padded with a text")
    pads = node.numbers("pads") if pads is None else _list(pads)
    own = list(range(x.ndim)) if axes is None else _list(axes)
    widths = [(0, 0)] * x.ndim
    for at, axis in enumerate(own):
        widths[_axis(axis, x.ndim)] = (pads[at], pads[at + len(own)])
    filler = "" if value is None else np.asarray(value).ravel()[0]
    made = np.full([size + before + behind for size, (before, behind) in zip(x.shape, widths)], filler, object)
    made[tuple(slice(before, before + size) for size, (before, _) in zip(x.shape, widths))] = x
    return [made]


def _scatter_elements(node, x, indices, updates):
    made, places = x.copy(), list(np.indices(np.shape(indices)))
    places[_axis(node.number("axis", 0), x.ndim)] = np.asarray(indices)
    made[tuple(places)] = updates
    return [made]


def _scatter_nd(_node, x, indices, updates):
    made = x.copy()
    made[tuple(np.moveaxis(np.asarray(indices), -1, 0))] = updates
    return [made]


def _rows(x):
    """What lies at each place of the first dimension."""
    return x.reshape(len(x), int(np.prod(x.shape[1:], dtype=np.int64))).tolist()


def _unique(node, x):
    """The different ones, sorted or in the order in which they come; where each is first; which one each is; how many there are."""
    axis = _axis(node.number("axis"), x.ndim) if node.has("axis") else None
    lines = [(word,) for word in x.ravel()] if axis is None else list(map(tuple, _rows(np.moveaxis(x, axis, 0))))
    first: dict[tuple, int] = {}
    for place, line in enumerate(lines):
        first.setdefault(line, place)
    order = sorted(first) if node.number("sorted", 1) else list(first)
    number = {line: at for at, line in enumerate(order)}
    indices = np.array([first[line] for line in order], np.int64)
    inverse = np.array([number[line] for line in lines], np.int64)
    made = x.ravel()[indices] if axis is None else x.take(indices, axis)
    return [made, indices, inverse, np.bincount(inverse, minlength=len(order)).astype(np.int64)]


def _shape(node, x):
    sizes = np.array(x.shape, np.int64)
    end = node.number("end") if node.has("end") else len(sizes)
    return [sizes[slice(node.number("start", 0), end)]]


def _size(_node, x):
    return [np.array(x.size, np.int64)]


def _equal(_node, a, b):
    return [np.asarray(np.equal(a, b), bool)]


def _as_text(value: float) -> str:
    """A float as ONNX Runtime writes it, of either length."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "INF" if value > 0 else "-INF"
    return f"{value:.8g}"


_FLOAT = re.compile(r"[ \t-\r]*([+-]?(?:0x[0-9a-f]+(?:\.[0-9a-f]*)?(?:p[+-]?[0-9]+)?|[0-9]+\.?[0-9]*(?:e[+-]?[0-9]+)?|\.[0-9]+(?:e[+-]?[0-9]+)?|inf|nan))", re.I)
_WHOLE = re.compile(r"[ \t-\r]*([+-]?[0-9]+)")


def _as_number(word: str, kind: np.dtype):
    """The number that a text begins with."""
    found = (_FLOAT if kind.kind == "f" else _WHOLE).match(word)
    refused = InvalidArgument(f"the text '{word}' is no number of the type {kind}")
    if found is None:
        raise refused
    number = found.group(1).lower()
    if kind.kind != "f":
        number = int(number)
        limits = np.iinfo(np.int64 if kind.kind == "i" else np.uint64)
        if not limits.min <= number <= limits.max and kind != np.bool_:
            raise refused
        return bool(number) if kind == np.bool_ else number
    value = float.fromhex(number) if "x" in number else float(number)
    if value in (float("inf"), float("-inf")) and "inf" not in number:
        raise refused
    return value


def cast(x, number: int):
    """Texts as numbers, or numbers as texts."""
    x = np.asarray(x)
    if x.dtype == object:
        if number == STRING:
            return x
        kind = dtype(number)
        held = {"i": np.dtype(np.int64), "u": np.dtype(np.uint64)}.get(kind.kind, kind)
        return np.array([_as_number(word, kind) for word in x.ravel()], held).astype(kind).reshape(x.shape)
    if x.dtype.kind == "f":
        return texts(map(_as_text, x.ravel().tolist()), x.shape)
    return texts((str(int(value)) for value in x.ravel()), x.shape)


def _cast(node, x):
    return [cast(x, node.number("to", STRING))]


def _sequence(_node, *parts):
    return [list(parts)]


def _place(place, count: int) -> int:
    place = int(np.asarray(place).ravel()[0])
    if not -count <= place < count:
        raise InvalidArgument(f"there is no place {place} in a sequence of {count}")
    return place


def _sequence_at(_node, parts, place):
    return [parts[_place(place, len(parts))]]


def _sequence_length(_node, parts):
    return [np.array(len(parts), np.int64)]


def _sequence_insert(_node, parts, value, place=None):
    made = list(parts)
    made.insert(len(made) if place is None else _place(place, len(made) + 1), value)
    return [made]


def _sequence_erase(_node, parts, place=None):
    made = list(parts)
    del made[-1 if place is None else _place(place, len(made))]
    return [made]


def _concat_sequence(node, parts):
    axis = node.number("axis", 0)
    return [np.stack(parts, axis) if node.number("new_axis", 0) else np.concatenate(parts, axis)]


def _split_to_sequence(node, x, sizes=None):
    axis = _axis(node.number("axis", 0), x.ndim)
    if sizes is None:
        parts = np.split(x, x.shape[axis], axis) if x.shape[axis] else []
        return [[part if node.number("keepdims", 1) else part.squeeze(axis) for part in parts]]
    if np.ndim(sizes) == 0:
        each = int(sizes)
        return [np.split(x, range(each, x.shape[axis], each), axis)]
    return [np.split(x, np.cumsum(_list(sizes))[:-1], axis)]


MOVED = {
    "ArrayFeatureExtractor": _extract,
    "Cast": _cast,
    "Compress": _compress,
    "Concat": _concat,
    "ConcatFromSequence": _concat_sequence,
    "Equal": _equal,
    "Expand": _expand,
    "Flatten": _flatten,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "Identity": _identity,
    "Pad": _pad,
    "Reshape": _reshape,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
    "SequenceAt": _sequence_at,
    "SequenceConstruct": _sequence,
    "SequenceErase": _sequence_erase,
    "SequenceInsert": _sequence_insert,
    "SequenceLength": _sequence_length,
    "Shape": _shape,
    "Size": _size,
    "Slice": _slice,
    "Split": _split,
    "SplitToSequence": _split_to_sequence,
    "Squeeze": _squeeze,
    "Tile": _tile,
    "Transpose": _transpose,
    "Unique": _unique,
    "Unsqueeze": _unsqueeze,
    "Where": _where,
}
