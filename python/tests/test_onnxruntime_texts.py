"""Inputs of texts of the stand-in for ONNX Runtime."""

from __future__ import annotations

import models
import numpy as np
import pytest
from models import FLOAT, INT64, TEXT

import halite.onnxruntime as ort


@pytest.fixture(autouse=True)
def on_device(device, monkeypatch):
    monkeypatch.setenv("HALITE_ONNXRUNTIME_DEVICE", device.uri)


def columns() -> bytes:
    """Columns for the cities of a text, and a number for another text."""
    return models.model(
        models.node("Identity", ["city"], ["there"]),
        models.classic("OneHotEncoder", ["there"], ["one"], cats_strings=["Rom", "Köln", "b"]),
        models.classic("LabelEncoder", ["kind"], ["code"], keys_strings=["a", "b"], values_int64s=[7, 8]),
        models.takes("city", ["n"], TEXT),
        models.takes("kind", ["n"], TEXT),
        models.gives("one", ["n", 3]),
        models.gives("code", ["n"], INT64),
    )


@pytest.mark.parametrize("kind", ["U", "O", "S"])
def test_texts_are_looked_up(kind):
    session = ort.InferenceSession(columns())
    assert [(arg.name, arg.type, arg.shape) for arg in session.get_inputs()] == [
        ("city", "tensor(string)", ["n"]),
        ("kind", "tensor(string)", ["n"]),
    ]
    cities, kinds = ["Köln", "nowhere", "b", "a"], ["b", "a", "", "Rom"]

    def array(words):
        return np.array([word.encode() for word in words]) if kind == "S" else np.array(words, kind)

    feed = {"city": array(cities), "kind": array(kinds)}
    one, code = session.run(None, feed)
    assert one.dtype == np.float32 and one.tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 1], [0, 0, 0]]
    assert code.tolist() == [8, 7, -1, -1] and feed["city"].dtype.kind == kind
    binding = session.io_binding()
    for name, value in feed.items():
        binding.bind_cpu_input(name, value)
    binding.bind_output("code")
    session.run_with_iobinding(binding)
    assert binding.copy_outputs_to_cpu()[0].tolist() == [8, 7, -1, -1]
    with pytest.raises(ort.InvalidArgument, match="takes texts"):
        session.run(None, {**feed, "city": np.ones(4, np.float32)})


def test_texts_are_mapped_to_numbers_and_to_texts():
    def run(*nodes, element):
        model = models.model(*nodes, models.takes("s", ["n"], TEXT), models.gives("y", ["n"], element))
        return ort.InferenceSession(model).run(None, {"s": np.array(["y", "?", "x"])})[0].tolist()

    mapped = models.classic("CategoryMapper", ["s"], ["y"], cats_strings=["x", "y"], cats_int64s=[5, -6])
    assert run(mapped, element=INT64) == [-6, -1, 5]
    values = {"keys_strings": ["x", "y"], "values_floats": [0.5, 1.5]}
    assert run(models.classic("LabelEncoder", ["s"], ["y"], **values), element=FLOAT)[::2] == [1.5, 0.5]
    renamed = models.classic("LabelEncoder", ["s"], ["y"], keys_strings=["x", "y"], values_strings=["ex", "why"])
    assert run(renamed, element=TEXT) == ["why", "_Unused", "ex"]


def test_what_computes_with_texts_is_refused():
    def model(node, element=INT64):
        return models.model(node, models.takes("s", ["n"], TEXT), models.gives("y", ["n"], element))

    with pytest.raises(ort.NotImplemented, match="operator 'Cast'"):
        ort.InferenceSession(model(models.node("Cast", ["s"], ["y"], to=FLOAT), FLOAT))
    with pytest.raises(ort.NotImplemented, match="'y' is the texts of an input"):
        ort.InferenceSession(model(models.node("Identity", ["s"], ["y"]), TEXT))
    with pytest.raises(ort.NotImplemented, match="no list of texts 'keys_strings'"):
        ort.InferenceSession(model(models.classic("LabelEncoder", ["s"], ["y"], keys_int64s=[1], values_int64s=[2])))


def test_damaged_files_are_left_as_they_are():
    from halite.onnxruntime import _text_inputs

    whole = columns()
    for cut in range(0, len(whole), 3):
        try:
            _text_inputs.numbered(whole[:cut])
        except ort.NotImplemented:
            pass
