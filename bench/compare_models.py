#!/usr/bin/env python3
"""Times whole networks beside ncnn's Vulkan kernels, and on NVIDIA GPUs beside PyTorch's CUDA graphs, in turns.

Owns: turning an ONNX model into ncnn's form, turns of all, the check of all against ONNX Runtime, and the table. Does not
own: single operations (compare_ncnn.py), the model in PyTorch (onnx_torch.py), or how Halite measures a call
(benchmark-module).

All take an input from host memory and give the result back there. Halite and ncnn run on the same Vulkan driver
(VK_DRIVER_FILES chooses it). ncnn computes in f32 with its other defaults (packed layouts, Winograd), or with --fp16 as it does by
default. A time is the median of all turns' medians; beside it stands the time that processors worked for a call, summed over
threads, which other load on the machine changes less.

    python3 bench/compare_models.py --ours target/release/benchmark-module --device=vulkan MODEL.onnx …

needs PyPI's ncnn, pnnx, numpy, onnx and onnxruntime, and with --pytorch torch. A machine without pnnx takes what --converted left
in a folder elsewhere.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import ncnn
import numpy as np
import onnxruntime

# How far a result may be from ONNX Runtime's, relative to the largest of it.
CLOSE = {"f32": 1e-3, "f16": 5e-2}


class Model:
    """An ONNX model with one float input and output, an input for it, and ONNX Runtime's result."""

    def __init__(self, path, folder, options):
        self.path, self.folder, self.options = pathlib.Path(path), pathlib.Path(folder), options
        self.name = f"{self.path.parent.name}.{self.path.stem}"
        session = onnxruntime.InferenceSession(str(self.path), providers=["CPUExecutionProvider"])
        self.given = session.get_inputs()[0]
        shape = [size if isinstance(size, int) else 1 for size in self.given.shape]
        self.input = np.random.default_rng(7).standard_normal(shape, np.float32)
        self.expected = session.run(None, {self.given.name: self.input})[0].reshape(-1)
        self.array = self.folder / f"{self.name}.npy"
        np.save(self.array, self.input)

    def check(self, who, result):
        """Fails unless a result is ONNX Runtime's."""
        off = np.abs(result.reshape(-1) - self.expected).max() / np.abs(self.expected).max()
        if not off < CLOSE["f16" if self.options.fp16 else "f32"]:
            raise RuntimeError(f"{who} computes {self.path} wrongly: off by {off:.2g} of the largest")


class InProcess:
    """A model that this process runs: `call` gives a result in host memory."""

    def turn(self, options):
        """Milliseconds of a call: the median of wall time, and the mean of the processors' time."""
        until = time.perf_counter() + options.warm_up
        while time.perf_counter() < until:
            self.call()
        walls, before = [], time.process_time()
        for _ in range(options.calls):
            start = time.perf_counter()
            self.call()
            walls.append(time.perf_counter() - start)
        return statistics.median(walls) * 1e3, (time.process_time() - before) / options.calls * 1e3


class Ncnn(InProcess):
    """A model in ncnn."""

    def __init__(self, model, options):
        folder = pathlib.Path(options.converted or model.folder) / "ncnn" / model.name
        if not (folder / "model.ncnn.bin").exists():
            self.convert(model, folder)
        self.model, self.net = model, ncnn.Net()
        self.net.opt.use_vulkan_compute = True
        if not options.fp16:
            for option in ("use_fp16_packed", "use_fp16_storage", "use_fp16_arithmetic", "use_bf16_storage"):
                setattr(self.net.opt, option, False)
        if self.net.load_param(str(folder / "model.ncnn.param")) or self.net.load_model(str(folder / "model.ncnn.bin")):
            raise RuntimeError(f"ncnn does not load {model.path}")
        model.check("ncnn", self.call())

    @staticmethod
    def convert(model, folder):
        folder.mkdir(parents=True, exist_ok=True)
        copy = folder / "model.onnx"
        shutil.copy(model.path, copy)
        shape = ",".join(map(str, model.input.shape))
        beside = pathlib.Path(sys.executable).parent
        pnnx = shutil.which("pnnx", path=f"{beside}{os.pathsep}{os.environ['PATH']}")
        if not pnnx:
            raise RuntimeError(f"no pnnx to turn {model.path} into ncnn's form (PyPI: pnnx), and {folder} does not have it")
        subprocess.run([pnnx, copy.name, f"inputshape=[{shape}]f32", "fp16=0"], cwd=folder, check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        for made in folder.iterdir():
            if made.suffix not in (".param", ".bin") or "ncnn" not in made.name:
                made.unlink()

    def call(self):
        extractor = self.net.create_extractor()
        extractor.input("in0", ncnn.Mat(self.model.input[0]))
        code, out = extractor.extract("out0")
        if code:
            raise RuntimeError(f"ncnn does not compute {self.model.path}: {code}")
        return np.array(out)


class Ours:
    """A model in Halite; benchmark-module keeps what it compiled."""

    def __init__(self, model, options):
        self.model, self.options = model, options
        run = pathlib.Path(options.ours).with_name("run-module")
        if run.exists():
            out = model.folder / "ours.npy"
            subprocess.run([run, *self.flags(), f"--output=@{out}"], check=True, stdout=subprocess.DEVNULL)
            model.check("Halite", np.load(out))
        else:
            print(f"SKIPPED: no {run} to check results with", file=sys.stderr)

    def flags(self):
        module = self.options.module or self.model.path
        return [f"--device={self.options.device}", f"--module={module}", "--function=" + self.options.function,
                f"--input=@{self.model.array}"]

    def turn(self, options):
        command = [options.ours, *self.flags(), f"--benchmark_min_time={options.calls}x", f"--warmup={options.warm_up}",
                   "--with-transfers", "--benchmark_format=json"]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        one = json.loads(done.stdout)["benchmarks"][0]
        return one["p50"], one["cpu_time"]


class PyTorch(InProcess):
    """A model in PyTorch on CUDA, recorded as a graph; in the layout of memory in which it is faster."""

    def __init__(self, model, options):
        from onnx_torch import Recorded
        kinds = [Recorded(model.path, model.input, half=options.fp16, channels_last=last) for last in (False, True)]
        for kind in kinds:
            model.check("PyTorch", kind.call())
        times = []
        for kind in kinds:
            self.call = kind.call
            times.append(self.turn(options)[0])
        self.call = kinds[times.index(min(times))].call


def compare(path, options):
    """A row of the table."""
    with tempfile.TemporaryDirectory() as folder:
        model = Model(path, folder, options)
        all_of_them = {"ours": Ours(model, options), "ncnn": Ncnn(model, options)}
        if options.pytorch:
            all_of_them["PyTorch"] = PyTorch(model, options)
        turns = {who: [] for who in all_of_them}
        for _ in range(options.rounds):
            for who, one in all_of_them.items():
                turns[who].append(one.turn(options))
    row = {"model": str(path)}
    for who, samples in turns.items():
        row[who] = {"ms": statistics.median(s[0] for s in samples), "processor_ms": statistics.median(s[1] for s in samples)}
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL.onnx")
    parser.add_argument("--ours", required=True, metavar="PROGRAM", help="the program benchmark-module, in release mode")
    parser.add_argument("--module", metavar="FILE", help="what to run instead of the model: it, compiled")
    parser.add_argument("--function", default="main", help="function of the module")
    parser.add_argument("--device", default="vulkan", help="device URI for it")
    parser.add_argument("--rounds", type=int, default=3, help="turns of both")
    parser.add_argument("--calls", type=int, default=5, help="calls in a turn")
    parser.add_argument("--warm-up", type=float, default=0.0, metavar="SECONDS",
                        help="how long a turn keeps the device busy before it measures")
    parser.add_argument("--fp16", action="store_true", help="ncnn and PyTorch compute in f16; give --module compiled so")
    parser.add_argument("--pytorch", action="store_true", help="PyTorch on CUDA takes turns too")
    parser.add_argument("--converted", metavar="FOLDER", help="where models in ncnn's form are kept, and looked for")
    parser.add_argument("--json", metavar="FILE", help="write the rows there too")
    options = parser.parse_args()
    if options.module and len(options.models) > 1:
        parser.error("--module is for one model")
    print(f"ncnn {ncnn.__version__}; {os.cpu_count()} processors; milliseconds, wall / of all processors")
    rows = []
    for path in options.models:
        row = compare(path, options)
        rows.append(row)
        ours = row["ours"]
        others = [f"{who} {one['ms']:.4g} / {one['processor_ms']:.4g}, ratio {one['ms'] / ours['ms']:.2f} / "
                  f"{one['processor_ms'] / ours['processor_ms']:.2f}" for who, one in row.items() if who not in ("model", "ours")]
        print(f"{path}: ours {ours['ms']:.4g} / {ours['processor_ms']:.4g}, " + "; ".join(others), flush=True)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
