"""Sessions, values, devices."""

from __future__ import annotations

import collections.abc
import io
import pickle
import threading

import models
import numpy as np
import pytest

import halite


@pytest.fixture(scope="module")
def doubled(device):
    return halite.Session(models.doubled(), device=device, cache=False)


@pytest.fixture(scope="module")
def split(device):
    return halite.Session(models.split(), device=device, cache=False)


A = np.arange(6, dtype=np.float32).reshape(2, 3)
B = np.full((2, 3), 10, np.float32)


def test_models_come_from_paths_bytes_and_files(device, digits):
    content = digits.read_bytes()
    picture = np.zeros((1, 1, 16, 16), np.float32)
    results = []
    for model in (digits, str(digits), content, bytearray(content), memoryview(content), io.BytesIO(content), open(digits, "rb")):
        session = halite.Session(model, device=device, cache=False)
        results.append(session.run({"picture": picture})["probabilities"])
    assert all(np.array_equal(results[0], other) for other in results[1:])
    assert results[0].shape == (1, 10) and abs(results[0].sum() - 1) < 1e-5
    with pytest.raises(halite.Error, match="open it with mode 'rb'"):
        halite.Session(io.StringIO("text"))
    with pytest.raises(halite.Error, match="not a int"):
        halite.Session(7)


def test_inputs_by_name_by_place_and_alone(split, doubled):
    for given in ({"a": A, "b": B}, [A, B], (A, B), {"b": B, "a": A}):
        out = split.run(given)
        assert np.array_equal(out["sum"], A + B) and np.array_equal(out[1], A - B)
    assert np.array_equal(doubled.run(A[0])["y"], 2 * A[0])
    with pytest.raises(halite.Error, match="no input 'c'; its inputs are 'a', 'b'") as caught:
        split.run({"a": A, "c": B})
    assert caught.value.kind == "invalid_input" and caught.value.code == "INVALID_ARGUMENT"
    with pytest.raises(halite.Error, match="missing: 'b'"):
        split.run({"a": A})


def test_outputs_are_a_mapping(split):
    out = split.run([A, B])
    assert isinstance(out, collections.abc.Mapping)
    assert list(out) == ["sum", "difference"] == list(out.keys()) and len(out) == 2
    assert "sum" in out and "other" not in out and 0 not in out
    assert out[-1] is out["difference"] and out.get("other") is None and out.get("other", 1) == 1
    assert [name for name, _ in out.items()] == list(dict(out))
    with pytest.raises(KeyError, match="'sum', 'difference'"):
        out["other"]
    with pytest.raises(IndexError, match="there are 2"):
        out[2]
    with pytest.raises(TypeError):
        out[1.5]
    # They are arrays of their own: writing to one changes nothing else.
    out["sum"][:] = 0
    assert np.array_equal(split.run([A, B])["sum"], A + B)


def test_arrays_of_any_layout_give_the_same(split):
    want = split.run([A, B])["sum"]
    wide = np.zeros((2, 6), np.float32)
    wide[:, ::2] = A
    unaligned = np.frombuffer(b"\0" + A.tobytes(), np.uint8)[1:].view(np.float32).reshape(2, 3)
    read_only = A.copy()
    read_only.flags.writeable = False
    for given in (np.asfortranarray(A), wide[:, ::2], A.astype(">f4"), A.T.copy().T, unaligned, read_only, A[::-1][::-1]):
        assert np.array_equal(split.run([given, B])["sum"], want), given.flags


def test_plain_numbers_take_the_declared_type(split, doubled):
    assert np.array_equal(split.run([A.tolist(), B.tolist()])["sum"], A + B)
    assert doubled.run([[1, 2, 3]])["y"].dtype == np.float32
    # Arrays have types of their own.
    with pytest.raises(halite.Error, match="its elements are f32"):
        doubled.run([np.array([1.0, 2.0])])
    for wrong in ("text", b"bytes", {"a": 1}, np.array(["a"]), np.array([object()]), np.array([1j])):
        with pytest.raises(halite.Error):
            doubled.run([wrong])


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 4), (2, 3, 4)])
def test_tensors_keep_types_and_shapes(device, dtype, shape):
    count = int(np.prod(shape))
    array = (np.arange(count) % 2 if dtype == "bool" else np.arange(count)).astype(dtype).reshape(shape)
    for place in (None, device):
        tensor = halite.Tensor(array, device=place)
        assert (tensor.shape, tensor.dtype, tensor.device) == (shape, np.dtype(dtype), place)
        back = tensor.numpy()
        assert isinstance(back, np.ndarray) and back.dtype == dtype and back.shape == shape and np.array_equal(back, array)
        assert np.array_equal(np.asarray(tensor), array)


def test_bfloat16_comes_with_ml_dtypes(device):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = np.array([1.5, -2.0, 3.25], ml_dtypes.bfloat16)
    tensor = halite.Tensor(array, device=device)
    assert tensor.dtype == ml_dtypes.bfloat16 and np.array_equal(tensor.numpy(), array)


def test_tensors_reshape_and_read_into(device):
    tensor = halite.Tensor(A, device=device)
    assert tensor.reshape(3, 2).shape == (3, 2) == tensor.reshape((3, -1)).shape and tensor.reshape(-1).shape == (6,)
    assert (tensor.ndim, tensor.size, tensor.nbytes, len(tensor)) == (2, 6, 24, 2)
    for wrong in ((4, 2), (-1, -1), (-2, 3), (-1, 4)):
        with pytest.raises(halite.Error, match="cannot become"):
            tensor.reshape(*wrong)
    target = np.zeros_like(A)
    tensor.read_into(target)
    assert np.array_equal(target, A)
    for wrong in (np.zeros((3, 2), np.float32), np.zeros((2, 3)), np.zeros((2, 6), np.float32)[:, ::2]):
        with pytest.raises(halite.Error, match="same type and shape"):
            tensor.read_into(wrong)
    assert halite.Tensor([7]).item() == 7 and halite.Tensor([[1, 2]]).tolist() == [[1, 2]]
    with pytest.raises(halite.Error, match="not one element"):
        tensor.item()


def test_dlpack_goes_both_ways(doubled):
    out = doubled.run(A[0])
    assert np.array_equal(np.from_dlpack(out.tensor("y")), 2 * A[0])

    class Foreign:
        def __dlpack__(self, **options):
            return A[0].copy().__dlpack__(**options)

        def __dlpack_device__(self):
            return (1, 0)

    assert np.array_equal(doubled.run({"x": Foreign()})["y"], 2 * A[0])


def test_results_go_into_the_next_call_without_a_copy(doubled):
    device = doubled.device
    x = halite.Tensor(A[0], device=device)
    before = device.transfers()
    for _ in range(3):
        x = doubled.run({"x": x}).tensor("y")
    assert device.transfers() == before
    assert np.array_equal(x.numpy(), 8 * A[0])
    assert device.transfers()["downloads"] == before["downloads"] + 1


def test_what_a_session_says_of_itself(doubled, device):
    (x,), (y,) = doubled.inputs, doubled.outputs
    assert (x.name, x.kind, x.dtype, x.shape, x.optional) == ("x", "tensor", "float32", ("n",), False)
    assert y.shape == ("n",) and doubled.device == device and doubled.functions[0].name == "main"
    assert halite.inspect(models.doubled())[0].inputs[0].name == "x"
    assert doubled.function("main").run([A[0]])["y"][1] == 2
    with pytest.raises(halite.Error, match="exported functions: main") as caught:
        doubled.function("other")
    assert caught.value.kind == "not_found"


def test_sizes_that_are_given(device):
    session = halite.Session(models.doubled(), device=device, dimensions={"n": 4}, cache=False)
    assert session.run([np.ones(4, np.float32)])["y"].shape == (4,)
    with pytest.raises(halite.Error):
        session.run([np.ones(5, np.float32)])
    bounded = halite.Session(models.doubled(), device=device, dimensions={"n": (1, 8)}, cache=False)
    assert [bounded.run([np.ones(n, np.float32)])["y"].shape for n in (1, 8)] == [(1,), (8,)]
    for wrong in ({"n": "4"}, {"n": (8, 1)}, {"n": (1, 2, 3)}):
        with pytest.raises(halite.Error):
            halite.Session(models.doubled(), device=device, dimensions=wrong)


def test_calls_that_go_on(split):
    call = split.start([A, B])
    assert np.array_equal(call.wait(timeout=60)["sum"], A + B) and call.done
    assert np.array_equal(call.wait()["sum"], A + B)


def test_many_threads_share_a_session(split):
    wrong = []

    def work(k):
        for _ in range(20):
            out = split.run([A * k, B])
            if not np.array_equal(out["sum"], A * k + B):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_state_lives_between_calls(device):
    session = halite.Session(models.accumulator(), device=device, states={"state": "stateN"}, cache=False)
    state, x = session.state(), np.ones(4, np.float32)
    assert state.keys() == ["state"] == list(state) and len(state) == 1
    assert [state.run({"x": x})["y"][0] for _ in range(3)] == [2.0, 4.0, 6.0]
    other = state.fork()
    assert np.array_equal(state["state"], [3.0] * 4)
    saved = state.save()
    state.reset()
    assert state.run([x])["y"][0] == 2.0 and other.run([x])["y"][0] == 8.0
    state.load(saved)
    assert state.run([x])["y"][0] == 8.0
    state["state"] = np.zeros(4, np.float32)
    assert state.run([x])["y"][0] == 2.0 and state.nbytes == 16
    with pytest.raises(halite.Error, match="there is no state 'other'"):
        state["other"]


def test_compiled_modules_run(device, tmp_path, digits):
    compiled = halite.compile(digits, targets=device)
    assert compiled.nbytes == len(compiled.to_bytes())
    compiled.save(tmp_path / "digits.vmfb")
    session = halite.Session(tmp_path / "digits.vmfb", device=device)
    picture = np.zeros((1, 1, 16, 16), np.float32)
    want = halite.Session(digits, device=device).run([picture])[0]
    assert np.allclose(session.run([picture])[0], want, atol=1e-6)
    assert compiled.report["targets"][0]["functions"][0]["name"] == "main"
    assert "conv2d" in halite.explain(digits, device=device) and "kernels serve" in halite.explain(digits)
    with pytest.raises(halite.Error, match="no target|similar|known"):
        halite.compile(digits, targets="no-such-gpu")
    with pytest.raises(FileNotFoundError):
        compiled.save(tmp_path / "no" / "folder")


def test_profiles_tell_where_time_goes(device, digits):
    session = halite.Session(digits, device=device)
    session.prewarm()
    out, profile = session.profile()
    assert out[0].shape == (1, 10)
    assert profile["total"] >= profile["run"] > 0 and profile["devices"][0]["uri"] == session.device.uri
    kernels = [c for c in profile["commands"] if c["kind"] == "dispatch"]
    assert any("Conv" in c["operation"]["location"] for c in kernels)
    assert '"traceEvents"' in profile["trace"]


def test_errors_have_kinds_and_survive_pickling(tmp_path):
    with pytest.raises(halite.Error) as caught:
        halite.Session(tmp_path / "nothing.onnx")
    assert caught.value.kind == "not_found" and "nothing.onnx" in str(caught.value)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.kind, str(again)) == ("not_found", str(caught.value))
    with pytest.raises(halite.Error) as caught:
        halite.Session(b"no model at all")
    assert caught.value.kind == "invalid_model"
    with pytest.raises(halite.Error, match="there are: model, f16"):
        halite.Session(models.doubled(), precision="f8")
    with pytest.raises(halite.Error, match="no-such-driver"):
        halite.Device("no-such-driver")


def test_devices_are_listed():
    found = halite.devices()
    assert found and all(info.uri and info.name and info.kind for info in found)
    assert isinstance(halite.unavailable_drivers(), dict)
    with pytest.raises(halite.Error, match="off, error, warn"):
        halite.set_log_level("loud")
