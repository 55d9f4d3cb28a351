"""The stand-in for ONNX Runtime."""

from __future__ import annotations

import json
import subprocess
import sys
import threading

import models
import numpy as np
import pytest

import halite.onnxruntime as ort

A = np.arange(6, dtype=np.float32).reshape(2, 3)
B = np.full((2, 3), 10, np.float32)


@pytest.fixture(autouse=True)
def on_device(device, monkeypatch):
    monkeypatch.setenv("HALITE_ONNXRUNTIME_DEVICE", device.uri)


@pytest.fixture
def split(on_device):
    return ort.InferenceSession(models.split(), providers=["CPUExecutionProvider"])


def test_the_module_is_onnxruntime():
    import onnxruntime
    from onnxruntime.capi.onnxruntime_inference_collection import InferenceSession
    from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidArgument, NoSuchFile

    assert onnxruntime is ort and ort.is_installed() and InferenceSession is ort.InferenceSession
    assert issubclass(NoSuchFile, Exception) and onnxruntime.capi.onnxruntime_pybind11_state.Fail is Fail
    assert InvalidArgument is ort.InvalidArgument and ort.__version__.count(".") == 2
    assert ort.get_device() == "CPU" and "CPUExecutionProvider" in ort.get_available_providers()
    ort.uninstall()
    try:
        assert "onnxruntime" not in sys.modules and not ort.is_installed()
    finally:
        assert ort.install() and sys.modules["onnxruntime"] is ort


def test_an_onnxruntime_that_is_there_stays():
    code = """
import sys, types
own = sys.modules["onnxruntime"] = types.ModuleType("onnxruntime")
import halite.onnxruntime as ort
assert sys.modules["onnxruntime"] is own and not ort.is_installed()
assert ort.install() and sys.modules["onnxruntime"] is ort
ort.uninstall()
assert sys.modules["onnxruntime"] is own
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_programs_run_unchanged(tmp_path):
    (tmp_path / "beside.py").write_text("import onnxruntime\nNAME = onnxruntime.__name__\n")
    program = tmp_path / "program.py"
    program.write_text("import sys, beside\nprint(beside.NAME, __name__, *sys.argv[1:])\n")
    run = [sys.executable, "-m", "halite.onnxruntime"]
    out = subprocess.run([*run, program, "-m", "x"], check=True, capture_output=True, text=True)
    assert out.stdout.split() == ["halite.onnxruntime", "__main__", "-m", "x"]
    out = subprocess.run([*run, "-m", "json.tool", "--help"], check=True, capture_output=True, text=True)
    assert "json" in out.stdout
    assert "usage" in subprocess.run(run, capture_output=True, text=True).stderr


def test_sessions_run(split):
    total, difference = split.run(None, {"a": A, "b": B})
    assert np.array_equal(total, A + B) and np.array_equal(difference, A - B)
    (only,) = split.run(["difference"], {"a": A, "b": B.tolist()})
    assert np.array_equal(only, A - B) and only.dtype == np.float32
    assert [np.array_equal(x, A + B) for x in split.run(["sum", "sum"], {"a": A, "b": B})] == [True, True]


def test_what_a_session_says(split, tmp_path):
    session = ort.InferenceSession(models.doubled())
    (x,), (y,) = session.get_inputs(), session.get_outputs()
    assert (x.name, x.type, x.shape) == ("x", "tensor(float)", ["n"]) and y.name == "y"
    assert ort.InferenceSession(models.doubled(models.INT64)).get_inputs()[0].type == "tensor(int64)"
    assert [arg.shape for arg in split.get_inputs()] == [[2, 3], [2, 3]]
    about = session.get_modelmeta()
    assert about.custom_metadata_map == {"names": "a,b", "empty": ""} and about.version == 3
    assert (about.producer_name, about.domain, about.description) == ("halite tests", "test.halite", "what it is")
    assert about.graph_name == "graph of a test"
    path = tmp_path / "model.onnx"
    path.write_bytes(models.doubled())
    assert ort.InferenceSession(str(path)).get_modelmeta().custom_metadata_map["names"] == "a,b"
    assert ort.InferenceSession(path).get_providers() == ["VulkanExecutionProvider", "CPUExecutionProvider"]
    assert session.get_overridable_initializers() == []


def test_mistakes_raise_what_onnxruntime_raises(split, tmp_path):
    with pytest.raises(ValueError, match="missing from input feed"):
        split.run(None, {"a": A})
    with pytest.raises(ort.InvalidArgument, match="no input 'c'"):
        split.run(None, {"a": A, "b": B, "c": B})
    with pytest.raises(ort.InvalidArgument, match="there is no output 'x'"):
        split.run(["x"], {"a": A, "b": B})
    for wrong in (A.astype(np.float64), A[:1], np.array(["a"])):
        with pytest.raises(ort.InvalidArgument):
            split.run(None, {"a": wrong, "b": B})
    with pytest.raises(ort.NoSuchFile):
        ort.InferenceSession(str(tmp_path / "none.onnx"))
    with pytest.raises(ort.InvalidProtobuf):
        ort.InferenceSession(b"no model")
    with pytest.raises(TypeError):
        ort.InferenceSession(7)
    with pytest.raises(ort.Fail, match="no library"):
        ort.SessionOptions().register_custom_ops_library("x.so")
    with pytest.raises(AttributeError, match="stands in for"):
        ort.TrainingSession


def test_providers(device):
    with pytest.warns(UserWarning, match="'CUDAExecutionProvider' does not exist here"):
        session = ort.InferenceSession(models.split(), providers=["CUDAExecutionProvider", "CPUExecutionProvider"])
    assert session.get_providers() == ["CPUExecutionProvider"]
    given = [("VulkanExecutionProvider", {"device": device.uri}), "CPUExecutionProvider"]
    session = ort.InferenceSession(models.split(), providers=given)
    assert session.get_provider_options()["VulkanExecutionProvider"] == {"device": device.uri}
    with pytest.raises(ort.InvalidArgument, match="'device' and 'device_id'"):
        ort.InferenceSession(models.split(), providers=[("VulkanExecutionProvider", {"gpu": 1})])
    with pytest.warns(UserWarning, match="same length"):
        ort.InferenceSession(models.split(), providers=["CPUExecutionProvider"], provider_options=[{}, {}])
    ort.set_default_device("vulkan://no-such-device")
    try:
        with pytest.raises(Exception, match="no-such-device"):
            ort.InferenceSession(models.split())
    finally:
        ort.set_default_device(None)


def test_options():
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.intra_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"
    options.add_free_dimension_override_by_name("n", 4)
    session = ort.InferenceSession(models.doubled(), options)
    assert (session.get_inputs()[0].shape, session.get_outputs()[0].shape) == ([4], [4])
    assert session.run(None, {"x": np.ones(4, np.float32)})[0].shape == (4,)
    with pytest.raises(ort.InvalidArgument):
        session.run(None, {"x": np.ones(5, np.float32)})
    with pytest.raises(TypeError, match="two texts"):
        options.add_session_config_entry("session.intra_op.allow_spinning", 0)
    with pytest.raises(RuntimeError, match="no entry 'x'"):
        options.get_session_config_entry("x")


def test_runs_are_terminated():
    session = ort.InferenceSession(models.rounds())
    options = ort.RunOptions()
    threading.Timer(0.2, setattr, (options, "terminate", True)).start()
    with pytest.raises(ort.Fail, match="cancelled"):
        session.run(None, {"count": np.array(1 << 40), "x": np.zeros(1, np.float32)}, options)
    options.terminate = False
    assert session.run(None, {"count": np.array(2), "x": np.zeros(1, np.float32)}, options)[0] == [2.0]


def test_runs_on_other_threads(split):
    done, got = threading.Event(), []

    def callback(results, user_data, error):
        got.append((results, user_data, error))
        done.set()

    split.run_async(["sum"], {"a": A, "b": B}, callback, "mine")
    assert done.wait(60)
    (results, user_data, error) = got[0]
    assert np.array_equal(results[0], A + B) and user_data == "mine" and error == ""


def test_values_stay_on_the_device(split):
    a = ort.OrtValue.ortvalue_from_numpy(A, "vulkan", 0)
    (total,) = split.run_with_ort_values(["sum"], {"a": a, "b": ort.OrtValue.ortvalue_from_numpy(B)})
    assert total.device_name() == "vulkan" and total.shape() == [2, 3] and total.data_type() == "tensor(float)"
    assert np.array_equal(total.numpy(), A + B) and total.element_type() == 1 and total.is_tensor()
    (again,) = split.run_with_ort_values(["difference"], {"a": total, "b": ort.OrtValue.ortvalue_from_numpy(B)})
    assert np.array_equal(again.numpy(), A) and np.array_equal(np.from_dlpack(again), A)
    with pytest.raises(ort.NotImplemented, match="no address"):
        total.data_ptr()
    with pytest.raises(ort.NotImplemented, match="'cuda'"):
        ort.OrtValue.ortvalue_from_numpy(A, "cuda", 0)


def test_binding(split):
    binding = split.io_binding()
    binding.bind_cpu_input("a", A)
    held = B.copy()
    binding.bind_input("b", "cpu", 0, np.float32, held.shape, held.ctypes.data)
    target = np.zeros((2, 3), np.float32)
    binding.bind_output("sum", "cpu", 0, np.float32, target.shape, target.ctypes.data)
    binding.bind_output("difference", "vulkan")
    split.run_with_iobinding(binding)
    assert np.array_equal(target, A + B)
    assert binding.get_outputs()[1].device_name() == "vulkan"
    assert np.array_equal(binding.copy_outputs_to_cpu()[1], A - B)
    held[:] = 1
    split.run_with_iobinding(binding)
    assert np.array_equal(target, A + 1)
    room = ort.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32)
    binding.clear_binding_outputs()
    binding.bind_ortvalue_output("sum", room)
    split.run_with_iobinding(binding)
    assert np.array_equal(room.numpy(), A + 1) and len(binding.get_outputs()) == 1
    with pytest.raises(ort.InvalidArgument, match="no 'x' to bind"):
        binding.bind_output("x")
    with pytest.raises(ort.InvalidArgument, match="address of the buffer is 0"):
        binding.bind_input("b", "cpu", 0, np.float32, [2, 3], 0)


def test_names_for_several_values_at_once(split):
    from onnxruntime.capi.onnxruntime_pybind11_state import OrtValueVector

    feeds, fetches = OrtValueVector(), OrtValueVector()
    for array in (A, B):
        feeds.push_back(ort.OrtValue.ortvalue_from_numpy(array)._ortvalue)
    split._sess.run_with_ortvaluevector(ort.RunOptions(), ["a", "b"], feeds, ["sum"], fetches, [])
    assert len(fetches) == 1 and np.array_equal(fetches[0].numpy(), A + B)
    assert split.get_tuning_results() == [] and [info.name for info in split.get_input_memory_infos()] == ["Cpu", "Cpu"]
    with pytest.raises(RuntimeError, match="not of texts"):
        ort.OrtValue.ortvalue_from_numpy(np.array(["a"]))


def test_making_a_session_is_stopped(capsys):
    options = ort.SessionOptions()
    options.set_load_cancellation_flag(True)
    with pytest.raises(ort.ModelLoadCanceled, match="cancelled"):
        ort.InferenceSession(models.split(), options)
    options.set_load_cancellation_flag(False)
    assert ort.InferenceSession(models.split(), options).run(["sum"], {"a": A, "b": B})
    ort.print_debug_info()
    assert "Halite" in capsys.readouterr().out


def test_profiles_are_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = ort.SessionOptions()
    options.enable_profiling = True
    session = ort.InferenceSession(models.split(), options)
    for _ in range(2):
        session.run(None, {"a": A, "b": B})
    path = session.end_profiling()
    events = json.loads((tmp_path / path).read_text())
    assert any(event.get("dur") for event in events)
    assert ort.InferenceSession(models.split()).end_profiling() == ""


def test_metadata_of_damaged_files_is_empty():
    from halite.onnxruntime import _metadata

    whole = models.doubled()
    for cut in range(len(whole)):
        assert "custom" in _metadata.read(whole[:cut])
    for place in range(0, len(whole), 3):
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        assert "custom" in _metadata.read(bytes(damaged))
