"""Memory that a device shares with others: a second device, another process, the pages of an array."""

from __future__ import annotations

import gc
import mmap
import multiprocessing
import os
import pathlib
import pickle
import subprocess
import sys

import models
import numpy as np
import pytest

import halite

FLOATS = np.array([1.5, -2.0, 3.0], np.float32)


def needs(device, kind: str, *ways: str) -> dict:
    """What the device does with a kind of memory; the test is skipped, loudly, where that is not enough."""
    support = device.info.external_memory.get(kind, {"import": False, "export": False, "alignment": 1})
    if not all(support[way] for way in ways):
        print(f"SKIPPED: {device.name} does not {' and '.join(ways)} memory of the kind {kind}", file=sys.stderr)
        pytest.skip(f"{device.name} does not {' and '.join(ways)} memory of the kind {kind}")
    return support


def pages(count: int) -> np.ndarray:
    """Bytes that begin at a page and end at one."""
    return np.frombuffer(mmap.mmap(-1, count), np.uint8)


def test_a_descriptor_crosses_to_another_device(device):
    needs(device, "opaque-fd", "import", "export")
    other = halite.Device(device.uri)
    given = halite.SharedMemory(device, 1000)
    assert given.nbytes == 1024 and given.kind == "opaque-fd" and given.device == device and not given.closed
    with given.export() as handle:
        assert handle.size >= 1024 and handle.kind == "opaque-fd" and handle.memory_type is not None
        descriptor = os.dup(handle.fileno())
        again = halite.ExternalMemory(handle, handle.size, memory_type=handle.memory_type, dedicated=handle.dedicated)
        taken = halite.SharedMemory.open(other, handle)
        os.fstat(handle.fileno())
    assert handle.closed and "closed" in repr(handle)
    with pytest.raises(halite.Error, match="closed") as error:
        halite.SharedMemory.open(other, handle)
    assert error.value.kind == "invalid_input"
    taken.release()
    given.write(FLOATS, offset=256)
    given.release()
    with pytest.raises(halite.Error):
        given.tensor(3, offset=256).numpy()
    taken.acquire()
    seen = taken.tensor([3], offset=256)
    given.close(), taken.close(), taken.close()
    assert given.closed and "closed" in repr(given)
    assert seen.device == other and seen.numpy().tolist() == FLOATS.tolist(), "the tensor keeps the memory"
    for use in (given.acquire, given.release, given.export, lambda: given.tensor(1), lambda: given.write(FLOATS)):
        with pytest.raises(halite.Error, match="closed"):
            use()
    # A handle that is given away is not closed with its object.
    number = again.detach()
    assert again.closed
    again.close()
    os.close(number)
    os.close(descriptor)


def test_results_and_inputs_lie_in_shared_memory(device):
    needs(device, "opaque-fd", "export")
    session = halite.Session(models.doubled(), device=device, cache=False)
    with halite.SharedMemory(device, 512) as memory:
        memory.write(FLOATS)
        out = session.run([memory.tensor(3)])
        before = device.transfers()
        memory.write(out.tensor("y"), offset=256)
        assert device.transfers() == before, "nothing goes through the host"
        assert memory.tensor((3,), np.float32, offset=256).numpy().tolist() == (2 * FLOATS).tolist()
        assert memory.tensor((1, 3), "int32").shape == (1, 3)
        assert memory.tensor(2, "bfloat16").shape == (2,)
        with pytest.raises(halite.Error, match="multiple of 256"):
            memory.tensor(3, offset=4)
        with pytest.raises(halite.Error, match="does not lie in memory of 512 bytes"):
            memory.tensor(200)
        with pytest.raises(halite.Error, match="no elements of type"):
            memory.tensor(1, "complex64")
        with pytest.raises(halite.Error):
            memory.write(FLOATS, offset=510)
        with pytest.raises(OverflowError):
            memory.tensor(-1)
    with pytest.raises(halite.Error, match="no kind of memory 'pipe'"):
        halite.SharedMemory(device, 1, kind="pipe")


def test_the_pages_of_an_array_are_read_where_they_lie(device):
    alignment = needs(device, "host", "import")["alignment"]
    array = pages(2 * alignment).view(np.float32)
    array[:3] = FLOATS
    session = halite.Session(models.doubled(), device=device, cache=False)
    before = device.transfers()["uploaded_bytes"]
    memory = halite.SharedMemory.from_array(device, array)
    assert memory.kind == "host" and memory.nbytes == array.nbytes
    out = session.run([memory.tensor(3)])
    assert device.transfers()["uploaded_bytes"] == before, "nothing was copied to the device"
    assert out["y"].tolist() == (2 * FLOATS).tolist()
    memory.release()
    array[:3] = 7
    memory.acquire()
    assert session.run([memory.tensor(3)])["y"].tolist() == [14.0] * 3
    with pytest.raises(halite.Error) as error:
        memory.write(FLOATS)
    assert error.value.kind == "permission_denied"
    with pytest.raises(halite.Error):
        memory.export()
    tensor = memory.tensor(3)
    memory.close()
    del array, out
    gc.collect()
    assert tensor.numpy().tolist() == [7.0] * 3, "the array is held"


def test_an_array_is_let_go_of_with_the_memory(device):
    alignment = needs(device, "host", "import")["alignment"]
    area = mmap.mmap(-1, alignment)
    memory = halite.SharedMemory.from_array(device, np.frombuffer(area, np.uint8))
    with pytest.raises(BufferError):
        area.close()
    memory.close()
    del memory
    device.trim()
    gc.collect()
    area.close()


def test_arrays_that_cannot_be_shared_are_refused(device):
    alignment = needs(device, "host", "import")["alignment"]
    whole = pages(2 * alignment)
    for array, why in [
        (whole[:-4], "multiple"),
        (whole[64 : 64 + alignment], "multiple"),
        (whole[::2], "contiguous"),
        (whole[:0], "no elements"),
        (np.array([object()]), "objects"),
    ]:
        with pytest.raises(halite.Error, match=why) as error:
            halite.SharedMemory.from_array(device, array)
        assert error.value.kind == "invalid_input"
    with pytest.raises(TypeError):
        halite.SharedMemory.from_array(device, b"bytes")


def test_handles_that_are_none_are_refused():
    with pytest.raises(halite.Error, match="no such number"):
        halite.ExternalMemory(-1, 64)
    with pytest.raises(halite.Error, match="duplicated"):
        halite.ExternalMemory(1 << 20, 64, kind="dma-buf")
    with pytest.raises(halite.Error, match="from_array"):
        halite.ExternalMemory(0, 64, kind="host")
    for kind in ("android-hardware-buffer", "opaque-win32"):
        with pytest.raises(halite.Error):
            halite.ExternalMemory(0, 64, kind=kind)
    read, write = os.pipe()
    with halite.ExternalMemory(read, 64) as handle, pytest.raises((TypeError, RuntimeError)):
        pickle.dumps(handle)
    os.close(read), os.close(write)


def test_devices_say_what_they_share(device):
    assert all(set(support) == {"import", "export", "alignment"} for support in device.info.external_memory.values())
    own, driver = device.info.uuids
    assert len(own) == len(driver) == 16 and bytes(own) != bytes(16)
    processor = halite.Device("local-sync")
    assert processor.info.uuids is None and processor.info.external_memory == {}
    with pytest.raises(halite.Error, match="cannot export") as error:
        halite.SharedMemory(processor, 64)
    assert error.value.kind == "unsupported"


CHILD = """
import sys
import halite, models
from multiprocessing.connection import Client

with Client(sys.argv[2], authkey=b"halite") as parent:
    import multiprocessing
    multiprocessing.current_process().authkey = b"halite"
    device = halite.Device(sys.argv[1])
    inputs, results = (halite.SharedMemory.open(device, parent.recv()) for _ in range(2))
    session = halite.Session(models.doubled(), device=device, cache=False)
    results.write(session.run([inputs.tensor(3)]).tensor("y"))
    inputs.release(), results.release()
    parent.send(session.device.name)
"""


def test_another_process_computes_in_it(device, tmp_path):
    needs(device, "opaque-fd", "import", "export")
    from multiprocessing.connection import Listener

    # What duplicates descriptors asks with the key of the process.
    multiprocessing.current_process().authkey = b"halite"
    inputs, results = halite.SharedMemory(device, 64), halite.SharedMemory(device, 64)
    inputs.write(FLOATS)
    inputs.release(), results.release()
    with Listener(str(tmp_path / "socket"), "AF_UNIX", authkey=b"halite") as listener:
        command = [sys.executable, "-c", CHILD, device.uri, listener.address]
        folder = pathlib.Path(__file__).parent
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        with subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True) as child:
            with listener.accept() as connection:
                for memory in (inputs, results):
                    with memory.export() as handle:
                        connection.send(handle)
                try:
                    name = connection.recv()
                except EOFError:
                    name = child.stderr.read()
            child.wait(60)
    assert name == device.name
    results.acquire()
    assert results.tensor(3).numpy().tolist() == (2 * FLOATS).tolist()
