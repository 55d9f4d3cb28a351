#!/usr/bin/env python3
"""Exports small networks of random weights whose sizes are open, and asks Halite and ONNX Runtime for their results at several sizes
in one session each: decoders with caches, detectors with suppression, speech of predicted length, loops, branches, pools.

    onnx_sizes.py make FOLDER [NAME...]
    onnx_sizes.py expect FOLDER [NAME...]
    onnx_sizes.py check [--device vulkan] [--again] [--log FILE] [--module FILE.vmfb] FOLDER [NAME...]

`make` needs torch, transformers and onnx, and writes NAME.EXPORTER.onnx for each exporter that takes it, with calls in NAME.EXPORTER.npz.
`check` needs the package `halite` and onnxruntime, and prints a line for each file: right, refused or wrong. `expect` writes what ONNX Runtime gives to
NAME.expected.npz; where that is, `check` needs no onnxruntime. `--module` is what was compiled of the model before. `--again` asks each size once more, the last one
first, with other floats.
"""
import argparse
import json
import pathlib
import sys
import time
import traceback

import numpy as np
from onnx_sizes_base import CASES

TOLERANCE = 2e-4
# ONNX Runtime computes half floats as floats between casts that it puts where it likes.
HALF = 5e-3


def export(name, folder):
    """The files of a case: what each exporter gives."""
    made = CASES[name]()
    if len(made) == 2:
        model, calls = made
        path = folder / f"{name}.written.onnx"
        path.write_bytes(model.SerializeToString())
        save(path, [value.name for value in model.graph.input], calls)
        return
    import torch

    module, example, inputs, results, calls = made
    names = [name for name, _ in inputs]
    example = tuple(torch.from_numpy(np.asarray(value)) for value in example)
    for exporter in ("torchscript", "dynamo"):
        path = folder / f"{name}.{exporter}.onnx"
        try:
            with torch.no_grad():
                if exporter == "torchscript":
                    torch.onnx.export(module, example, str(path), dynamo=False, opset_version=17, input_names=names, output_names=results, dynamic_axes=dict(inputs))
                else:
                    shapes = [{axis: torch.export.Dim.DYNAMIC for axis in axes} for _, axes in inputs]
                    shapes = shapes if len(module.forward.__code__.co_varnames[: module.forward.__code__.co_argcount]) - 1 == len(inputs) else (*shapes[:2], tuple(shapes[2:]))
                    torch.onnx.export(module, example, dynamo=True, input_names=names, output_names=results, dynamic_shapes=tuple(shapes), verbose=False).save(str(path))
            save(path, names, calls)
        except Exception as error:  # noqa: BLE001: exporters fail in many ways.
            path.unlink(missing_ok=True)
            print(f"{name}.{exporter}: not exported: {type(error).__name__}: {str(error).splitlines()[0][:160] if str(error) else ''}", flush=True)


def save(path, names, calls):
    arrays = {f"{index}/{name}": value for index, call in enumerate(calls) for name, value in zip(names, call)}
    np.savez(path.with_suffix(".npz"), **arrays)
    print(f"{path.name}: {len(calls)} calls", flush=True)


def calls_of(path):
    calls = {}
    for key, value in np.load(path).items():
        index, name = key.split("/", 1)
        calls.setdefault(int(index), {})[name] = value
    return [calls[index] for index in sorted(calls)]


def difference(found, wanted, least=1e-3):
    """The largest, relative to the largest number, or `least` if all are smaller; infinite where types or sizes differ, or one is no number and the other is."""
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return float("inf")
    if wanted.size == 0:
        return 0.0
    if wanted.dtype.kind != "f":
        return 0.0 if (found == wanted).all() else float("inf")
    finite = np.isfinite(wanted)
    if not np.array_equal(found[~finite], wanted[~finite], equal_nan=True) or not np.isfinite(found[finite]).all():
        return float("inf")
    found, wanted = found[finite], wanted[finite]
    if not wanted.size:
        return 0.0
    return float(np.abs(found - wanted).max() / max(float(np.abs(wanted).max()), least))


def in_other_order(found, wanted):
    """How many rows of all results are equal in another order than that of ONNX Runtime, as they have scores that are as good as equal; none where results differ."""
    if any(a.ndim == 0 or a.shape != b.shape or len(a) != len(wanted[0]) for a, b in zip(found, wanted)):
        return None
    same = lambda a, b, scale: np.abs(a.astype(np.float64) - b).max(initial=0) <= TOLERANCE * scale  # noqa: E731
    scales = [max(float(np.abs(own.astype(np.float64)).max(initial=0)), 1e-6) if own.dtype.kind == "f" else 0 for own in wanted]
    left, moved = list(range(len(wanted[0]))), 0
    for row in range(len(wanted[0])):
        place = next((other for other in left if all(same(a[other], b[row], scale) for a, b, scale in zip(found, wanted, scales))), None)
        if place is None:
            return None
        left.remove(place)
        moved += place != row
        # Rows are in the order of what one of the results says.
        near = [abs(float(b[place]) - float(b[row])) <= 1e-5 * scale for b, scale in zip(wanted, scales) if b.ndim == 1 and scale]
        if place != row and not any(near):
            return None
    return moved


class Unknown(Exception):
    """ONNX Runtime does not say what is right."""


class Reference:
    """What ONNX Runtime gives for calls of a model."""

    def __init__(self, path):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = 1, 4
        try:
            self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # noqa: BLE001
            raise Unknown(str(error)[:200]) from error
        self.names = [value.name for value in self.session.get_outputs()]
        self.taken = {value.name for value in self.session.get_inputs()}

    def run(self, _, call):
        """The results; none where it has fixed a size that the call does not have."""
        try:
            return self.session.run(None, call)
        except Exception:  # noqa: BLE001
            return None


class Expected:
    """The same as it was written."""

    def __init__(self, path):
        self.calls, self.names, self.taken = {}, [], set()
        for key, value in np.load(path).items():
            index, name = key.split("/", 1)
            if index == "taken":
                self.taken.add(name)
                continue
            self.calls.setdefault(int(index), []).append(value)
            self.names += [] if name in self.names else [name]

    def run(self, index, _):
        return self.calls.get(index)


def expected_at(path):
    return path.with_name(f"{path.stem}.expected.npz")


def expect(path):
    """Writes what is right."""
    other, made = Reference(path), {}
    for index, call in enumerate(calls_of(path.with_suffix(".npz"))):
        results = other.run(index, {name: value for name, value in call.items() if name in other.taken})
        made.update({f"{index}/{name}": value for name, value in zip(other.names, results or [])})
    made.update({f"taken/{name}": np.array(1) for name in other.taken})
    np.savez_compressed(expected_at(path), **made)


def turned(call):
    """A call of the same sizes with other floats."""
    return {name: value[..., ::-1].copy() if value.ndim and value.dtype.kind == "f" else value for name, value in call.items()}


def tolerance(value):
    return HALF if value.dtype == np.float16 else TOLERANCE


def check(path, device, module=None, again=False):
    """A verdict on a file."""
    import halite

    calls = calls_of(path.with_suffix(".npz"))
    calls += [turned(call) for call in reversed(calls)] if again else []
    try:
        other = Expected(expected_at(path)) if expected_at(path).exists() and not again else Reference(path)
    except Unknown as error:
        return {"verdict": "not by ONNX Runtime", "why": str(error)}
    names, begun = other.names, time.monotonic()
    try:
        session = halite.Session(str(module or path), device=device, cache=False, max_loaded_versions=256)
    except halite.Error as error:
        return {"verdict": "refused", "why": str(error)[:500]}
    worst, compared, bad, moved, took, rows_of, theirs = 0.0, 0, [], 0, [], [], []
    took.append(round(time.monotonic() - begun, 2))
    for index, call in enumerate(calls):
        call = {name: value for name, value in call.items() if name in other.taken}
        begun = time.monotonic()
        wanted = other.run(index, call)
        theirs.append(round(time.monotonic() - begun, 4))
        if wanted is None:
            continue
        sizes, begun = {name: list(value.shape) for name, value in list(call.items())[:4]}, time.monotonic()
        try:
            out = session.run(call)
        except halite.Error as error:
            return {"verdict": "refused", "why": str(error)[:500], "call": index, "sizes": sizes}
        compared += 1
        rows_of.append(len(wanted[0]) if np.ndim(wanted[0]) else 1)
        took.append(round(time.monotonic() - begun, 4))
        rows = in_other_order([np.asarray(out[name]) for name in names], wanted)
        if rows:
            moved += rows
            continue
        for name, value in zip(names, wanted):
            apart = difference(np.asarray(out[name]), value)
            worst = max(worst, apart if apart != float("inf") else 0)
            if apart > tolerance(value):
                bad.append([index, name, list(np.shape(out[name])), list(value.shape), apart, sizes])
    verdict = "not by ONNX Runtime" if compared == 0 else "wrong" if bad else "right"
    return {"verdict": verdict, "calls": compared, "worst": worst, "versions": session.loaded_versions, "seconds": took, "seconds of ONNX Runtime": theirs, "rows": rows_of, "rows in another order": moved, "bad": bad[:4]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["make", "expect", "check"])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--device", default="vulkan")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--log", type=pathlib.Path)
    parser.add_argument("--module", type=pathlib.Path)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    if args.what == "make":
        # They add cases.
        import onnx_sizes_control  # noqa: F401
        import onnx_sizes_counts  # noqa: F401
        import onnx_sizes_decoders  # noqa: F401
        import onnx_sizes_drawn  # noqa: F401
        import onnx_sizes_fresh  # noqa: F401
        import onnx_sizes_graphs  # noqa: F401
        import onnx_sizes_kinds  # noqa: F401
        import onnx_sizes_kinds_more  # noqa: F401
        import onnx_sizes_late  # noqa: F401
        import onnx_sizes_library  # noqa: F401
        import onnx_sizes_more  # noqa: F401
        import onnx_sizes_ragged  # noqa: F401
        import onnx_sizes_rare  # noqa: F401
        import onnx_sizes_strange  # noqa: F401
        import onnx_sizes_suppressed  # noqa: F401
        import onnx_sizes_torch  # noqa: F401
        import onnx_sizes_unnamed  # noqa: F401
        import onnx_sizes_unseen  # noqa: F401

        for name in args.names or CASES:
            try:
                export(name, args.folder)
            except Exception:  # noqa: BLE001
                print(f"{name}: not made: {traceback.format_exc().splitlines()[-1][:200]}", flush=True)
        return
    counts = {}
    for path in sorted(args.folder.glob("*.onnx")):
        if args.names and path.name.split(".")[0] not in args.names and path.stem not in args.names:
            continue
        if args.what == "expect":
            expect(path)
            continue
        found = {"file": path.name, **check(path, args.device, args.module, args.again)}
        counts[found["verdict"]] = counts.get(found["verdict"], 0) + 1
        print(json.dumps(found), flush=True)
        if args.log:
            with args.log.open("a") as log:
                log.write(json.dumps(found) + "\n")
    print(json.dumps(counts))
    sys.exit(1 if counts.get("wrong") or counts.get("refused") else 0)


if __name__ == "__main__":
    main()
