"""Results of the stand-in for ONNX Runtime that are no tensors of numbers, and what packages find below its interface."""

from __future__ import annotations

import json
import sys

import models
import numpy as np
import pytest

import halite.onnxruntime as ort

X = np.array([[3, 1], [0, 2], [-4, -5]], np.float32)
SCORES = np.stack([X[:, 0], X[:, 1], -X.sum(1)], 1)


@pytest.fixture(autouse=True)
def on_device(device, monkeypatch):
    monkeypatch.setenv("HALITE_ONNXRUNTIME_DEVICE", device.uri)


@pytest.mark.parametrize("labels", [["cat", "dog", "cow"], [7, 3, 5]])
def test_labels_and_dictionaries_are_those_of_the_file(labels):
    session = ort.InferenceSession(models.shares_by_label(labels))
    key = "string" if isinstance(labels[0], str) else "int64"
    types = [output.type for output in session.get_outputs()]
    assert types == [f"tensor({key})", f"seq(map({key},tensor(float)))"]
    label, shares = session.run(None, {"x": X})
    assert label.tolist() == labels and label.dtype == (object if key == "string" else np.int64)
    assert shares == [dict(zip(labels, line)) for line in SCORES.tolist()]
    assert session.run(["shares"], {"x": X[:1]}) == [shares[:1]]
    values = session.run_with_ort_values(None, {"x": ort.OrtValue.ortvalue_from_numpy(X)})
    assert values[0].numpy().tolist() == labels and not values[1].is_tensor()
    binding = session.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_output("shares")
    session.run_with_iobinding(binding)
    assert binding.copy_outputs_to_cpu() == [shares]


def test_texts_are_looked_up_in_the_list_of_the_file():
    session = ort.InferenceSession(models.looked_up())
    (found,) = session.run(None, {"x": np.array([2, 0, 2, 1])})
    assert found.tolist() == [["naïve", "ox", "naïve", "emu"]] and session.get_outputs()[0].type == "tensor(string)"


def test_damaged_files_have_no_labels():
    from halite.onnxruntime import _labels

    whole = models.shares_by_label(["a", "b", "c"])
    for cut in range(len(whole)):
        _labels.read(whole[:cut])
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        _labels.read(bytes(damaged))


def test_names_below_the_interface():
    from onnxruntime.capi.onnxruntime_inference_collection import Session

    data = models.split()
    session = ort.InferenceSession(data, enable_fallback=1, whatever=2)
    assert isinstance(session, Session) and session._sess.get_inputs()[0].name == "a"
    assert session._model_path == "" and session._model_bytes is data and session._model_meta.domain == "test.halite"
    with pytest.raises(TypeError, match="list of names"):
        session.run("sum", {})
    with pytest.raises(AttributeError):
        session.run(None, [X])
    with pytest.warns(UserWarning, match="default device is used"):
        assert ort.InferenceSession(data, providers=[3]).get_providers()
    with pytest.raises(RuntimeError, match="not bound"):
        session.run_with_iobinding(session.io_binding())
    with pytest.raises(RuntimeError):
        ort.OrtValue.ortvalue_from_numpy(X, "cuda")
    assert ort.get_ep_devices() == [] and ort.OrtArenaCfg(0, -1, -1, -1).sizes == (0, -1, -1, -1)


def test_the_optimized_model_is_the_given_one(tmp_path):
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    ort.InferenceSession(models.split(), options)
    assert (tmp_path / "optimized.onnx").read_bytes() == models.split()
    options.optimized_model_filepath = str(tmp_path / "again.onnx")
    ort.InferenceSession(str(tmp_path / "optimized.onnx"), options)
    assert (tmp_path / "again.onnx").read_bytes() == models.split()


def test_packages_in_python_of_an_installed_onnxruntime_are_found(tmp_path, monkeypatch):
    package = tmp_path / "onnxruntime"
    (package / "part_of_a_test").mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemError('not to be imported')")
    (package / "part_of_a_test" / "__init__.py").write_text("import onnxruntime\nRUNTIME = onnxruntime.__name__\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(ort, "__path__", list(ort.__path__))
    ort.uninstall()
    assert ort.install()
    try:
        from onnxruntime.part_of_a_test import RUNTIME

        assert RUNTIME == "halite.onnxruntime"
    finally:
        sys.modules.pop("onnxruntime.part_of_a_test", None)


def test_profiles_are_lists_of_events(tmp_path):
    options = ort.SessionOptions()
    options.enable_profiling, options.profile_file_prefix = True, str(tmp_path / "profile")
    session = ort.InferenceSession(models.split(), options)
    session.run(None, {"a": np.ones((2, 3), np.float32), "b": np.ones((2, 3), np.float32)})
    with open(session.end_profiling(), encoding="utf-8") as file:
        assert {"name", "ph"} <= json.load(file)[0].keys()
