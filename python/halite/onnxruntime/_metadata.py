"""What an ONNX file says of itself: reads the fields of `ModelProto` that are beside the graph.

Protocol buffers: a message is a line of fields, each with its number, its kind and its bytes (protobuf.dev, "Encoding"). Numbers of
the fields: onnx/onnx.proto.
"""

from __future__ import annotations

import mmap

_MOST = 1 << 24
"""Most bytes of a text or entry that are taken."""


def _varint(data, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("a number goes beyond the end")


def _fields(data, at: int, end: int):
    """Number, value or range, of each field."""
    while at < end:
        key, at = _varint(data, at, end)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = _varint(data, at, end)
            yield number, value
        elif kind == 2:
            length, at = _varint(data, at, end)
            if length > end - at:
                raise ValueError("a field goes beyond the end")
            yield number, (at, at + length)
            at += length
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        else:
            raise ValueError(f"there are no fields of the kind {kind}")


def _text(data, place) -> str:
    start, end = place
    return bytes(data[start : min(end, start + _MOST)]).decode("utf-8", "replace")


def _read(data) -> dict:
    found = {"custom": {}}
    names = {2: "producer_name", 3: "producer_version", 4: "domain", 6: "description"}
    for number, value in _fields(data, 0, len(data)):
        if number in names and isinstance(value, tuple):
            found[names[number]] = _text(data, value)
        elif number == 5 and isinstance(value, int):
            found["version"] = value if value < 1 << 63 else value - (1 << 64)
        elif number == 7 and isinstance(value, tuple):
            for inner, name in _fields(data, *value):
                if inner in (2, 10) and isinstance(name, tuple):
                    found["graph_name" if inner == 2 else "graph_description"] = _text(data, name)
        elif number == 14 and isinstance(value, tuple):
            entry = {inner: _text(data, text) for inner, text in _fields(data, *value) if isinstance(text, tuple)}
            if 1 in entry:
                found["custom"][entry[1]] = entry.get(2, "")
    return found


def read(model) -> dict:
    """The fields that were found in a path or bytes; none where it is no ONNX file."""
    try:
        if isinstance(model, (bytes, bytearray, memoryview)):
            return _read(memoryview(model).cast("B"))
        with open(model, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            return _read(mapped)
    except (OSError, ValueError, TypeError):
        return {"custom": {}}
