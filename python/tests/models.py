"""Small ONNX models, written without the package `onnx`: protobuf.dev, "Encoding"; numbers of fields from onnx/onnx.proto."""

from __future__ import annotations

import struct

FLOAT, INT64, TEXT, BOOL, DOUBLE = 1, 7, 8, 9, 11


class Bytes(bytes):
    """A text of an attribute that is no UTF-8."""


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def message(field: int, content: bytes | str) -> bytes:
    content = content.encode() if isinstance(content, str) else content
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _attribute(name: str, value) -> bytes:
    """An attribute: a whole number, a text, a graph as bytes, or a list of texts, whole numbers or floats."""
    if isinstance(value, int):
        held = number(3, value) + number(20, 2)
    elif isinstance(value, Bytes):
        held = message(4, value) + number(20, 3)
    elif isinstance(value, bytes):
        held = message(6, value) + number(20, 5)
    elif isinstance(value, str):
        held = message(4, value) + number(20, 3)
    elif isinstance(value[0], str):
        held = b"".join(message(9, one) for one in value) + number(20, 8)
    elif isinstance(value[0], int):
        held = b"".join(number(8, one) for one in value) + number(20, 7)
    else:
        held = message(7, struct.pack(f"<{len(value)}f", *value)) + number(20, 6)
    return message(5, message(1, name) + held)


def node(kind: str, inputs: list[str], outputs: list[str], domain: str = "", **attributes) -> bytes:
    """A node."""
    names = b"".join(message(1, name) for name in inputs) + b"".join(message(2, name) for name in outputs)
    own = b"".join(_attribute(name, value) for name, value in attributes.items())
    return message(1, names + message(4, kind) + (message(7, domain) if domain else b"") + own)


def classic(kind: str, inputs: list[str], outputs: list[str], **attributes) -> bytes:
    """A node of `ai.onnx.ml`."""
    return node(kind, inputs, outputs, "ai.onnx.ml", **attributes)


def texts(name: str, values: list[str]) -> bytes:
    """A constant list of texts."""
    held = b"".join(message(6, value) for value in values)
    return message(5, number(1, len(values)) + number(2, TEXT) + held + message(8, name))


def constant(name: str, shape: list[int], values: list[float]) -> bytes:
    dims = b"".join(number(1, size) for size in shape)
    data = struct.pack(f"<{len(values)}f", *values)
    return message(5, dims + number(2, FLOAT) + message(8, name) + message(9, data))


def _value(field: int, name: str, shape: list[int | str], element: int) -> bytes:
    def dimension(size):
        return message(1, number(1, size) if isinstance(size, int) else message(2, size))

    tensor = number(1, element) + message(2, b"".join(dimension(size) for size in shape))
    return message(field, message(1, name) + message(2, message(1, tensor)))


def beside(name: str, shape: list[int], file: str, offset: int, length: int) -> bytes:
    """A constant whose elements are in another file."""
    dims = b"".join(number(1, size) for size in shape)
    entries = {"location": file, "offset": str(offset), "length": str(length)}
    held = b"".join(message(13, message(1, key) + message(2, value)) for key, value in entries.items())
    return message(5, dims + number(2, FLOAT) + message(8, name) + held + number(14, 1))


def takes(name: str, shape: list[int | str], element: int = FLOAT) -> bytes:
    return _value(11, name, shape, element)


def gives(name: str, shape: list[int | str], element: int = FLOAT) -> bytes:
    return _value(12, name, shape, element)


def model(*parts: bytes, metadata: dict[str, str] | None = None, version: int = 8) -> bytes:
    graph = message(2, "graph of a test") + b"".join(parts)
    entries = b"".join(message(14, message(1, k) + message(2, v)) for k, v in (metadata or {}).items())
    opsets = message(8, number(2, 20)) + message(8, message(1, "ai.onnx.ml") + number(2, 3))
    opsets += message(8, message(1, "com.microsoft") + number(2, 1))
    about = message(2, "halite tests") + message(4, "test.halite") + number(5, 3) + message(6, "what it is")
    return number(1, version) + about + message(7, graph) + opsets + entries


def doubled(element: int = FLOAT) -> bytes:
    """`y = x + x` for vectors of any length `n`."""
    return model(
        node("Add", ["x", "x"], ["y"]),
        takes("x", ["n"], element),
        gives("y", ["n"], element),
        metadata={"names": "a,b", "empty": ""},
    )


def accumulator() -> bytes:
    """`y = 2 * (state + x)`, and the sum replaces the state."""
    return model(
        node("Add", ["state", "x"], ["stateN"]),
        node("Mul", ["stateN", "two"], ["y"]),
        constant("two", [1], [2.0]),
        takes("x", [4]),
        takes("state", [4]),
        gives("y", [4]),
        gives("stateN", [4]),
    )


def split() -> bytes:
    """Two inputs, two outputs: sum and difference."""
    return model(
        node("Add", ["a", "b"], ["sum"]),
        node("Sub", ["a", "b"], ["difference"]),
        takes("a", [2, 3]),
        takes("b", [2, 3]),
        gives("sum", [2, 3]),
        gives("difference", [2, 3]),
    )


def scaled(weight: bytes | None = None, is_input: bool = True, version: int = 8) -> bytes:
    """`y = x * w + b`: `w` is 2, `b` is 1, and both are inputs too."""
    inputs = [takes("w", [1]), takes("b", [1])] if is_input else []
    return model(
        node("Mul", ["x", "w"], ["t"]),
        node("Add", ["t", "b"], ["y"]),
        weight or constant("w", [1], [2.0]),
        constant("b", [1], [1.0]),
        takes("x", ["n"]),
        *inputs,
        gives("y", ["n"]),
        version=version,
    )


def cubed() -> bytes:
    """`y = x @ x @ x` for square matrices of any size."""
    return model(
        node("MatMul", ["x", "x"], ["squared"]),
        node("MatMul", ["squared", "x"], ["y"]),
        takes("x", ["n", "n"]),
        gives("y", ["n", "n"]),
    )


def shares_by_label(labels: list[str] | list[int]) -> bytes:
    """A classifier of two features as the converter of scikit-learn writes it: a label, and a dictionary of shares, for each line."""
    kind = "classlabels_strings" if isinstance(labels[0], str) else "classlabels_int64s"
    own = kind if kind == "classlabels_strings" else "classlabels_ints"
    key = TEXT if isinstance(labels[0], str) else INT64
    coefficients = [1.0, 0.0, 0.0, 1.0, -1.0, -1.0]
    dictionary = number(1, key) + message(2, message(1, number(1, FLOAT)))
    line = message(4, message(1, message(5, dictionary)))
    return model(
        classic("LinearClassifier", ["x"], ["l", "s"], **{"coefficients": coefficients, "intercepts": [0.0] * 3, own: labels}),
        node("Identity", ["l"], ["label"]),
        classic("ZipMap", ["s"], ["shares"], **{kind: labels}),
        takes("x", ["n", 2]),
        gives("label", ["n"], key),
        message(12, message(1, "shares") + message(2, line)),
    )


def looked_up() -> bytes:
    """The text of a list at each place, and the place as it is."""
    return model(
        texts("names", ["ox", "emu", "naïve"]),
        classic("ArrayFeatureExtractor", ["names", "x"], ["line"]),
        node("Cast", ["line"], ["y"], to=TEXT),
        takes("x", ["n"], INT64),
        gives("y", [1, "n"], TEXT),
    )


def rounds() -> bytes:
    """Takes the number of rounds of a loop, which adds 1 in each."""
    body = (
        message(2, "body")
        + node("Identity", ["go"], ["goes_on"])
        + node("Add", ["carried", "one"], ["more"])
        + constant("one", [1], [1.0])
        + takes("round", [], INT64)
        + takes("go", [], BOOL)
        + takes("carried", [1])
        + gives("goes_on", [], BOOL)
        + gives("more", [1])
    )
    return model(
        node("Loop", ["count", "", "x"], ["y"], body=body),
        takes("count", [], INT64),
        takes("x", [1]),
        gives("y", [1]),
    )
