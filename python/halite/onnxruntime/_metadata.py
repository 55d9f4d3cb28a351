"""What an ONNX file says of itself: reads the fields of `ModelProto` that are beside the graph.

Protocol buffers: a message is a line of fields, each with its number, its kind and its bytes (protobuf.dev, "Encoding"). Numbers of
the fields: onnx/onnx.proto.
"""

from __future__ import annotations

import contextlib
import mmap

_MOST = 1 << 24
"""Most bytes of a text or entry that are taken."""


def varint(data, at: int, end: int) -> tuple[int, int]:
    """A number and where it ends."""
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("a number goes beyond the end")


def encoded(value: int) -> bytes:
    """A number as it is written."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def message(number: int, content: bytes) -> bytes:
    """A field of bytes as it is written."""
    return encoded(number << 3 | 2) + encoded(len(content)) + content


def pieces(data, at: int, end: int):
    """Number, value or range (`None` of numbers of fixed length), start and end of each field."""
    while at < end:
        start = at
        key, at = varint(data, at, end)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = varint(data, at, end)
        elif kind == 2:
            length, at = varint(data, at, end)
            if length > end - at:
                raise ValueError("a field goes beyond the end")
            value, at = (at, at + length), at + length
        elif kind in (1, 5):
            value, at = None, at + (8 if kind == 1 else 4)
        else:
            raise ValueError(f"there are no fields of the kind {kind}")
        yield number, value, start, at


def fields(data, at: int, end: int):
    """Number, value or range, of each field but numbers of fixed length."""
    for number, value, _, _ in pieces(data, at, end):
        if value is not None:
            yield number, value


def text(data, place) -> str:
    """The text at a place."""
    start, end = place
    return bytes(data[start : min(end, start + _MOST)]).decode("utf-8", "replace")


def _read(data) -> dict:
    found = {"custom": {}}
    names = {2: "producer_name", 3: "producer_version", 4: "domain", 6: "description"}
    for number, value in fields(data, 0, len(data)):
        if number in names and isinstance(value, tuple):
            found[names[number]] = text(data, value)
        elif number == 5 and isinstance(value, int):
            found["version"] = value if value < 1 << 63 else value - (1 << 64)
        elif number == 7 and isinstance(value, tuple):
            for inner, name in fields(data, *value):
                if inner in (2, 10) and isinstance(name, tuple):
                    found["graph_name" if inner == 2 else "graph_description"] = text(data, name)
        elif number == 14 and isinstance(value, tuple):
            entry = {inner: text(data, own) for inner, own in fields(data, *value) if isinstance(own, tuple)}
            if 1 in entry:
                found["custom"][entry[1]] = entry.get(2, "")
    return found


@contextlib.contextmanager
def opened(model):
    """The bytes of a path or bytes."""
    if isinstance(model, (bytes, bytearray, memoryview)):
        yield memoryview(model).cast("B")
    else:
        with open(model, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            yield mapped


def has_external_data(model) -> bool:
    """Whether weights of a path lie in files beside it."""
    try:
        with opened(model) as data:
            for number, value in fields(data, 0, len(data)):
                if number == 7 and isinstance(value, tuple):
                    tensors = (place for field, place in fields(data, *value) if field == 5)
                    # The field `data_location` is 1: external.
                    return any((14, 1) in fields(data, *place) for place in tensors)
    except (OSError, ValueError, TypeError):
        pass
    return False


def read(model) -> dict:
    """The fields that were found in a path or bytes; none where it is no ONNX file."""
    try:
        with opened(model) as data:
            return _read(data)
    except (OSError, ValueError, TypeError):
        return {"custom": {}}
