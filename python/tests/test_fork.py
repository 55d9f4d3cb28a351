"""Processes that fork after a device was opened: the child gets an error where it cannot go on, and makes sessions of its own."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")

BEGIN = """
import multiprocessing, os, sys, threading
import numpy as np
import halite, models
import halite.onnxruntime as ort

DEVICE = sys.argv[1]
X = np.full(3, 2, np.float32)

def own():
    return halite.Session(models.doubled(), device=DEVICE, cache=False)

def in_child(work, end=os._exit):
    process = os.fork()
    if process == 0:
        try:
            work()
        except BaseException as error:
            print(type(error), error, file=sys.stderr, flush=True)
            os._exit(1)
        end(0)
    assert os.waitpid(process, 0)[1] == 0

def refused(work):
    try:
        work()
    except halite.Error as error:
        assert error.code == "FAILED_PRECONDITION" and "forked" in str(error) and "forkserver" in str(error), error
    except Exception as error:
        assert "forked" in str(error) and "forkserver" in str(error), error
    else:
        raise AssertionError("it was not refused")

def makes_own():
    # A driver whose threads all devices of a process share says so.
    try:
        assert own().run([X])["y"].tolist() == [4.0] * 3
    except halite.Error as error:
        assert "swiftshader-forks" in str(error), error

session = own()
assert session.run([X])["y"].tolist() == [4.0] * 3
"""

END = """
assert session.run([X])["y"].tolist() == [4.0] * 3
"""


def runs(device, code: str) -> None:
    """A process of its own: what waits for ever must not take the tests along."""
    folder = pathlib.Path(__file__).parent
    done = subprocess.run([sys.executable, "-c", BEGIN + code + END, device.uri], capture_output=True, text=True, cwd=folder, timeout=60)
    assert done.returncode == 0, done.stderr


def test_what_a_fork_inherits_is_refused_at_once(device):
    runs(
        device,
        """
tensor = session.run([X]).tensor("y")
call = session.start([X])
accumulator = halite.Session(models.accumulator(), device=session.device, states={"state": "stateN"}, cache=False)
state, ones = accumulator.state(), np.ones(4, np.float32)
state.run([ones])
other = ort.InferenceSession(models.doubled())
other.run(None, {"x": X})

def work():
    refused(lambda: session.run([X]))
    refused(lambda: session.start([X]))
    refused(lambda: session.prewarm([X]))
    refused(call.wait)
    refused(tensor.numpy)
    refused(lambda: halite.Tensor(X, device=session.device))
    refused(lambda: halite.Session(models.split(), device=session.device, cache=False).run([X, X]))
    refused(lambda: state.run([ones]))
    refused(state.save)
    refused(lambda: other.run(None, {"x": X}))

# By `sys.exit` everything is dropped that was inherited.
in_child(work, sys.exit)
assert state.run([ones])["y"].tolist() == [4.0] * 4
""",
    )


def test_a_fork_makes_sessions_of_its_own(device):
    runs(
        device,
        """
def work():
    for _ in range(3):
        makes_own()
    in_child(makes_own)

in_child(work)
""",
    )


def test_a_fork_waits_for_no_thread_of_its_parent(device):
    """Threads are in calls while the process forks; the child has none of them."""
    runs(
        device,
        """
over = threading.Event()

def busy():
    while not over.is_set():
        session.run([X])

threads = [threading.Thread(target=busy) for _ in range(3)]
for thread in threads:
    thread.start()

def work():
    refused(lambda: session.run([X]))
    makes_own()

for _ in range(8):
    in_child(work)
over.set()
for thread in threads:
    thread.join()
""",
    )


def test_workers_that_are_forked_make_sessions_of_their_own(device):
    runs(
        device,
        """
def work(value):
    refused(lambda: session.run([X]))
    makes_own()
    return value

with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map(work, range(4)) == [0, 1, 2, 3]
""",
    )
