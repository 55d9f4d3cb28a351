"""Weights that a caller gives to the stand-in for ONNX Runtime."""

from __future__ import annotations

import struct

import models
import numpy as np
import pytest

import halite.onnxruntime as ort

X = np.array([1, 2, 3], np.float32)


def of(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def value(*values: float) -> ort.OrtValue:
    return ort.OrtValue.ortvalue_from_numpy(of(*values))


@pytest.fixture(autouse=True)
def on_device(device, monkeypatch):
    monkeypatch.setenv("HALITE_ONNXRUNTIME_DEVICE", device.uri)


def test_an_initializer_that_is_an_input_can_be_given():
    session = ort.InferenceSession(models.scaled())
    assert [arg.name for arg in session.get_inputs()] == ["x"]
    told = session.get_overridable_initializers()
    assert [(arg.name, arg.type, arg.shape) for arg in told] == [("w", "tensor(float)", [1]), ("b", "tensor(float)", [1])]
    for feed, expected in [({}, X * 2 + 1), ({"w": of(5)}, X * 5 + 1), ({"b": of(0), "w": of(1)}, X), ({}, X * 2 + 1)]:
        assert np.array_equal(session.run(None, {"x": X, **feed})[0], expected)
    (y,) = session.run_with_ort_values(["y"], {"x": ort.OrtValue.ortvalue_from_numpy(X), "w": value(3)})
    assert np.array_equal(y.numpy(), X * 3 + 1)
    for wrong, why in [(of(1, 2), "dimension 0 is 1, not 2"), (of(1).astype(np.float64), "its elements are f32")]:
        with pytest.raises(ort.InvalidArgument, match=why):
            session.run(None, {"x": X, "w": wrong})


def test_a_given_initializer_is_bound_as_a_value():
    session = ort.InferenceSession(models.scaled())
    binding = session.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_ortvalue_input("w", value(7))
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    assert np.array_equal(binding.copy_outputs_to_cpu()[0], X * 7 + 1)


@pytest.mark.parametrize("model", [models.scaled(is_input=False), models.scaled(version=3)])
def test_others_are_no_inputs(model):
    session = ort.InferenceSession(model)
    assert session.get_overridable_initializers() == []
    with pytest.raises(ort.InvalidArgument, match="no input 'w'"):
        session.run(None, {"x": X, "w": of(1)})


def test_more_sets_of_given_initializers_than_are_kept():
    inputs = [f"w{place}" for place in range(4)]
    model = models.model(
        models.node("Sum", ["x", *inputs], ["y"]),
        *(models.constant(name, [1], [1.0]) for name in inputs),
        models.takes("x", ["n"]),
        *(models.takes(name, [1]) for name in inputs),
        models.gives("y", ["n"]),
    )
    session = ort.InferenceSession(model)
    for chosen in [*range(16), 1]:
        feed = {name: of(10) for place, name in enumerate(inputs) if chosen >> place & 1}
        assert np.array_equal(session.run(None, {"x": X, **feed})[0], X + 4 + 9 * len(feed))
    assert len(session._variants) == 8


def test_options_replace_weights():
    options = ort.SessionOptions()
    options.add_initializer("w", value(4))
    options.add_initializer("nobody has it", value(4))
    session = ort.InferenceSession(models.scaled(is_input=False), options)
    assert np.array_equal(session.run(None, {"x": X})[0], X * 4 + 1)
    options.add_initializer("w", value(4, 5))
    with pytest.raises(ort.InvalidArgument, match="cannot replace it"):
        ort.InferenceSession(models.scaled(is_input=False), options)


def test_weights_beside_the_model_are_given_or_read(tmp_path):
    (tmp_path / "w.bin").write_bytes(b"...." + struct.pack("<f", 6.0))
    model = models.scaled(models.beside("w", [1], "w.bin", 4, 4), is_input=False)
    (tmp_path / "m.onnx").write_bytes(model)
    options = ort.SessionOptions()
    options.add_external_initializers(["w"], [value(8)])
    for source in (model, str(tmp_path / "m.onnx")):
        assert np.array_equal(ort.InferenceSession(source, options).run(None, {"x": X})[0], X * 8 + 1)
    # Where another weight is replaced, this one is read from its file.
    options = ort.SessionOptions()
    options.add_external_initializers(["b"], [value(0)])
    assert np.array_equal(ort.InferenceSession(str(tmp_path / "m.onnx"), options).run(None, {"x": X})[0], X * 6)
    with pytest.raises(ort.Fail, match="'w' is in a file beside the model"):
        ort.InferenceSession(model, options)
    (tmp_path / "m.onnx").write_bytes(models.scaled(models.beside("w", [1], "../w.bin", 4, 4), is_input=False))
    with pytest.raises(ort.Fail, match="not in the model's folder"):
        ort.InferenceSession(str(tmp_path / "m.onnx"), options)
    options.add_external_initializers(["nobody has it"], [value(0)])
    with pytest.raises(ort.Fail, match="no initializers nobody has it"):
        ort.InferenceSession(models.scaled(is_input=False), options)


def test_damaged_files_have_none():
    from halite.onnxruntime import _initializers

    whole = models.scaled()
    for cut in range(len(whole)):
        assert set(_initializers.overridable(whole[:cut])) <= {"w", "b", ""}
