"""Progress, deadlines, cancellation, Ctrl-C."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
import threading
import time

import models
import numpy as np
import pytest

import halite

FOREVER = {"count": np.array(1 << 40), "x": np.zeros(1, np.float32)}


def test_progress_is_told(device, digits):
    told = []
    halite.Session(digits, device=device, cache=False, progress=told.append)
    stages = {progress.stage for progress in told}
    assert {"importing", "optimizing", "choosing_kernels", "loading_weights"} <= stages
    assert all(progress.done <= progress.total and progress.detail for progress in told)


def test_what_a_progress_function_raises_stops_the_work(device, digits):
    def told(progress):
        raise RuntimeError(f"enough of {progress.stage}")

    with pytest.raises(RuntimeError, match="enough of"):
        halite.Session(digits, device=device, cache=False, progress=told)
    with pytest.raises(halite.Error, match="True, or a function"):
        halite.Session(digits, device=device, progress=7)


def test_the_bar_draws_on_terminals_only(device, digits):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    for stream, drawn in ((Terminal(), True), (io.StringIO(), False)):
        halite.Session(digits, device=device, cache=False, progress=halite.Bar(stream, delay=0.0))
        assert (("%" in stream.getvalue()) and stream.getvalue().endswith("\r")) == drawn


def test_deadlines_and_tokens_end_work(device):
    session = halite.Session(models.rounds(), device=device, cache=False)
    assert session.run({"count": 3, "x": [0.5]})["y"] == [3.5]
    begin = time.monotonic()
    with pytest.raises(halite.Error) as caught:
        session.run(FOREVER, timeout=0.2)
    assert caught.value.kind == "deadline_exceeded" and time.monotonic() - begin < 30
    token = halite.CancelToken()
    threading.Timer(0.2, token.cancel).start()
    with pytest.raises(halite.Error) as caught:
        session.run(FOREVER, cancel=token)
    assert caught.value.kind == "cancelled" and token.cancelled
    # A token that was set before says that nothing began.
    for call in (session.run, session.start):
        with pytest.raises(halite.Error, match="cancelled before the call began"):
            call({"count": 1, "x": [0.0]}, cancel=token)
    with pytest.raises(halite.Error, match="cancelled before the work began"):
        halite.Session(models.rounds(), device=device, cache=False, cancel=token)
    for wrong in (-1.0, float("nan")):
        with pytest.raises(halite.Error, match="number of seconds"):
            session.run(FOREVER, timeout=wrong)
    # It goes on after that.
    assert session.run({"count": 1, "x": [0.0]}, timeout=1e300)["y"] == [1.0]


SCRIPT = """
import signal, sys
import halite, numpy as np
# A shell that started the tests in the background has it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
session = halite.Session(sys.stdin.buffer.read(), device=sys.argv[1], cache=False)
def run(count):
    return session.run({"count": np.array(count), "x": np.zeros(1, np.float32)})
for _ in range(int(sys.argv[2])):
    run(2)
print("ready", flush=True)
try:
    run(1 << 40)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    assert session.run({"count": 2, "x": [0.0]})["y"] == [2.0]
    print("goes on", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent in another way there")
# A call of inputs whose last call was short is begun by the main thread itself: behind several, also the one that takes for ever.
@pytest.mark.parametrize("before", [1, 6])
def test_ctrl_c_stops_a_call(device, before):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    child = subprocess.Popen([sys.executable, "-c", SCRIPT, device.uri, str(before)], **pipes)
    watchdog = threading.Timer(120, child.kill)
    watchdog.start()
    try:
        child.stdin.write(models.rounds())
        child.stdin.close()
        assert child.stdout.readline() == b"ready\n"
        time.sleep(0.3)
        begin = time.monotonic()
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == b"interrupted\n"
        took = time.monotonic() - begin
        print(f"interrupted after {1000 * took:.0f} ms")
        assert child.stdout.readline() == b"goes on\n"
        assert child.wait(60) == 0
        # It would run for hours: that it ends is what is tested. Signals are looked at every 50 ms; how late that is on a busy
        # machine is printed and not asserted.
    finally:
        watchdog.cancel()
        child.kill()


@pytest.mark.skipif(sys.platform == "win32", reason="there are no timers that signal there")
def test_signals_are_seen_while_a_short_call_waits_behind_others(device):
    session = halite.Session(models.cubed(), device=device, cache=False)
    x = halite.Tensor(np.full((384, 384), 0.5, np.float32), device=session.device)
    session.run([x])
    begin = time.monotonic()
    assert np.all(session.run([x])["y"] == 0.125 * 384 * 384)
    queued = min(200, 1 + int(0.7 / (time.monotonic() - begin)))
    seen = []
    before = signal.signal(signal.SIGALRM, lambda *_: seen.append(time.monotonic()))
    # That calls are started makes them short, whatever the device has to do for them.
    calls = [session.start([x]) for _ in range(queued)]
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
        begin = time.monotonic()
        out = session.run([x])
        end = time.monotonic()
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert np.all(out["y"] == 0.125 * 384 * 384)
        moments = [begin, *(moment for moment in seen if moment < end), end]
        longest = max(b - a for a, b in zip(moments, moments[1:]))
        print(f"{len(moments) - 2} signals in {end - begin:.2f} s, the longest time without one {longest:.2f} s")
        if end - begin < 0.4:
            pytest.skip("the device is too fast to wait for")
        assert len(moments) > 3

        def enough(*_):
            raise RuntimeError("enough")

        signal.signal(signal.SIGALRM, enough)
        calls += [session.start([x]) for _ in range(queued)]
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        token = halite.CancelToken()
        with pytest.raises(RuntimeError, match="enough"):
            session.run([x], cancel=token)
        assert token.cancelled and not calls[-1].done
        assert np.all(session.run([x])["y"] == 0.125 * 384 * 384)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_what_ends_a_call_is_told_behind_short_ones_too(device):
    session = halite.Session(models.rounds(), device=device, cache=False)

    def run(count, **bounds):
        return session.run({"count": np.array(count), "x": np.zeros(1, np.float32)}, **bounds)

    for bounds in ({"timeout": 0.005}, {"timeout": 0.2}):
        for _ in range(6):
            assert run(2)["y"] == [2.0]
        with pytest.raises(halite.Error) as caught:
            run(1 << 40, **bounds)
        assert caught.value.kind == "deadline_exceeded"
    for _ in range(6):
        run(2)
    token = halite.CancelToken()
    threading.Timer(0.2, token.cancel).start()
    with pytest.raises(halite.Error) as caught:
        run(1 << 40, cancel=token)
    assert caught.value.kind == "cancelled"
    # One that takes longer than the main thread waits for the beginning is made by the other thread, from its inputs.
    for _ in range(6):
        run(2)
    assert run(3000)["y"] == [3000.0]


DAEMON = """
import sys, threading
import halite, numpy as np
session = halite.Session(sys.stdin.buffer.read(), device=sys.argv[1], cache=False)
session.run({"count": 2, "x": [0.0]})
forever = {"count": np.array(1 << 40), "x": np.zeros(1, np.float32)}
begun = threading.Event()
def call(session=session):
    begun.set()
    session.run(forever)
threading.Thread(target=call, daemon=True).start()
begun.wait()
del session
print("ends", flush=True)
"""


def test_the_end_of_the_program_stops_calls_of_daemon_threads(device):
    # Such a call held its device while the exit handlers of the Vulkan driver ran, which ended the process with SIGSEGV.
    command = [sys.executable, "-c", DAEMON, device.uri]
    child = subprocess.run(command, input=models.rounds(), capture_output=True, timeout=120)
    assert child.stdout == b"ends\n" and child.returncode == 0, child.stderr.decode()


BUSY = """
import logging, random, sys, threading, time
import halite, numpy as np
model = sys.stdin.buffer.read()
class Slow(logging.Handler):
    def emit(self, record):
        sum(range(2000))
log = logging.getLogger("halite")
log.addHandler(Slow())
log.propagate = False
log.setLevel(1)
halite.set_log_level("trace")
session = halite.Session(model, device=sys.argv[1], cache=False)
few = {"count": np.array(2), "x": np.zeros(1, np.float32)}
session.run(few)
sys.setswitchinterval(1e-4)
begun = threading.Barrier(5)
def for_ever(work):
    begun.wait()
    while True:
        try:
            work()
        except halite.Error:
            pass
def run(session=session):
    session.run(few)
def compile():
    halite.compile(model, progress=lambda progress: sum(range(5000)))
for work in (run, run, compile, compile):
    threading.Thread(target=for_ever, args=(work,), daemon=True).start()
begun.wait()
time.sleep(0.05 * random.random())
del session
print("ends", flush=True)
"""


def test_the_end_of_the_program_does_not_wait_for_functions_that_daemon_threads_are_told_by(device):
    # Before Python 3.14 a thread that asks for the interpreter's lock then is ended by unwinding. In a progress function, a handler of
    # messages or the making of an exception that went through the library, which ended the process (SIGABRT). One that made an exception
    # and another that wanted its lock waited for each other. Which one it was depended on time, so there are several.
    for _ in range(12):
        command = [sys.executable, "-c", BUSY, device.uri]
        child = subprocess.run(command, input=models.rounds(), capture_output=True, timeout=120)
        assert child.stdout == b"ends\n" and child.returncode == 0, child.stderr.decode()


def test_other_python_threads_go_on_meanwhile(device):
    session = halite.Session(models.rounds(), device=device, cache=False)
    counted = [0]
    stop = threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    before = counted[0]
    with pytest.raises(halite.Error):
        session.run(FOREVER, timeout=0.5)
    between = counted[0] - before
    stop.set()
    thread.join()
    assert between > 20


def test_messages_reach_logging(caplog):
    halite.set_log_level("debug")
    try:
        with caplog.at_level("DEBUG", logger="halite"):
            halite.Session(models.doubled())
        assert any(record.name == "halite" for record in caplog.records)
    except halite.Error as error:
        assert error.kind == "no_device"
    finally:
        halite.set_log_level("warn")
