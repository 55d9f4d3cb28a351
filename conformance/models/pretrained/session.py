"""Sessions that take the place of ONNX Runtime's: one writes down what a model is given and gives, one runs `run-module`."""
import contextlib
import json
import pathlib
import shutil
import subprocess
import tempfile

import numpy as np
import onnxruntime
from onnx import numpy_helper

TYPES = {
    "tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(double)": np.float64, "tensor(bool)": np.bool_,
    "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(int8)": np.int8, "tensor(uint8)": np.uint8,
}
ORIGINAL = onnxruntime.InferenceSession


class Recorder(ORIGINAL):
    """ONNX Runtime, writing each call as a data set of a case for `conformance onnx`."""

    folder = None  # Where cases go.
    prefix = ""  # Before the model's own name.
    most = 4  # Data sets of a model.

    def __init__(self, path, *args, **kwargs):
        kwargs["providers"] = ["CPUExecutionProvider"]
        super().__init__(path, *args, **kwargs)
        self.source = pathlib.Path(path)
        self.case = Recorder.folder / f"{Recorder.prefix}{self.source.stem}"

    def run(self, names, feeds, options=None):
        feeds = taken(self, feeds)
        results = super().run(None, feeds, options)
        sets = len(list(self.case.glob("test_data_set_*")))
        if sets < Recorder.most:
            data = self.case / f"test_data_set_{sets}"
            data.mkdir(parents=True)
            if not sets:
                shutil.copy(self.source, self.case / "model.onnx")
            for kind, arrays in (("input", feeds.values()), ("output", results)):
                for index, array in enumerate(arrays):
                    proto = numpy_helper.from_array(np.asarray(array, order="C"))
                    (data / f"{kind}_{index}.pb").write_bytes(proto.SerializeToString())
        return pick(self, results, names)


class Module(ORIGINAL):
    """The tools of this project behind ONNX Runtime's interface: each call is a run of `run-module`."""

    command = []  # run-module and its flags.
    calls = 0

    def __init__(self, path, *args, **kwargs):
        kwargs["providers"] = ["CPUExecutionProvider"]
        super().__init__(path, *args, **kwargs)
        self.source = pathlib.Path(path)

    def run(self, names, feeds, options=None):
        Module.calls += 1
        feeds = taken(self, feeds)
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            command = [*Module.command, f"--module={self.source}"]
            for index, array in enumerate(feeds.values()):
                np.save(folder / f"in{index}.npy", array)
                command.append(f"--input=@{folder / f'in{index}.npy'}")
            outputs = [folder / f"out{index}.npy" for index in range(len(self.get_outputs()))]
            command += [f"--output=@{path}" for path in outputs]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(f"{' '.join(map(str, command))}: {done.stderr}")
            return pick(self, [np.load(path) for path in outputs], names)


def taken(session, feeds):
    """The feeds in the order and with the types of the model's inputs: packages give lists, too. Some forms of Silero VAD take
    no sampling rate, which its package gives."""
    infos = [info for info in session.get_inputs() if info.name in feeds]
    return {info.name: np.asarray(feeds[info.name], TYPES[info.type], order="C") for info in infos}


def pick(session, results, names):
    """Those of the results that are asked for."""
    if names is None:
        return results
    own = [info.name for info in session.get_outputs()]
    return [results[own.index(name)] for name in names]


def use(session):
    """Everything that makes sessions from now on makes these. Has to be called before packages are imported."""
    onnxruntime.InferenceSession = session


@contextlib.contextmanager
def using(session):
    """The same for a while."""
    before = onnxruntime.InferenceSession
    use(session)
    yield
    use(before)


def plain(value):
    """What a package says, as JSON keeps it; numbers to three digits, which decide nothing beyond."""
    if isinstance(value, dict):
        return {str(key): plain(own) for key, own in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(own) for own in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (float, np.floating)):
        return float(f"{value:.2g}")
    if isinstance(value, np.integer):
        return int(value)
    return value


def save(path, decisions):
    path.write_text(json.dumps(decisions, indent=1, ensure_ascii=False) + "\n")
