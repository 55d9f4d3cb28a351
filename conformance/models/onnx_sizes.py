#!/usr/bin/env python3
"""Exports small networks of random weights whose sizes are open, and asks Halite and ONNX Runtime for their results at several sizes
in one session each: decoders with caches, detectors with suppression, speech of predicted length, loops, branches, pools.

    onnx_sizes.py make FOLDER [NAME...]
    onnx_sizes.py check [--device vulkan] [--log FILE] FOLDER [NAME...]

`make` needs torch, transformers and onnx, and writes NAME.EXPORTER.onnx for each exporter that takes it, with calls in NAME.EXPORTER.npz.
`check` needs the package `halite` and onnxruntime, and prints a line for each file: right, refused or wrong.
"""
import argparse
import json
import pathlib
import sys
import traceback

import numpy as np
import onnx_sizes_decoders  # noqa: F401: it adds cases, as the next two do.
import onnx_sizes_graphs  # noqa: F401
import onnx_sizes_torch  # noqa: F401
from onnx_sizes_base import CASES

TOLERANCE = 2e-4


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


def difference(found, wanted):
    """The largest, relative to the largest number; infinite where types or sizes differ."""
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return float("inf")
    if wanted.size == 0:
        return 0.0
    if wanted.dtype.kind != "f":
        return 0.0 if (found == wanted).all() else float("inf")
    return float(np.abs(found - wanted).max() / max(float(np.abs(wanted).max()), 1e-6))


def check(path, device):
    """A verdict on a file."""
    import halite
    import onnxruntime

    calls = calls_of(path.with_suffix(".npz"))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    try:
        other = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        names = [value.name for value in other.get_outputs()]
        taken = {value.name for value in other.get_inputs()}
    except Exception as error:  # noqa: BLE001
        return {"verdict": "not by ONNX Runtime", "why": str(error)[:200]}
    try:
        session = halite.Session(str(path), device=device, cache=False, max_loaded_versions=256)
    except halite.Error as error:
        return {"verdict": "refused", "why": str(error)[:500]}
    worst, compared, bad = 0.0, 0, []
    for index, call in enumerate(calls):
        call = {name: value for name, value in call.items() if name in taken}
        try:
            wanted = other.run(None, call)
        except Exception:  # noqa: BLE001: it has fixed this size.
            continue
        sizes = {name: list(value.shape) for name, value in list(call.items())[:4]}
        try:
            out = session.run(call)
        except halite.Error as error:
            return {"verdict": "refused", "why": str(error)[:500], "call": index, "sizes": sizes}
        compared += 1
        for name, value in zip(names, wanted):
            apart = difference(np.asarray(out[name]), value)
            worst = max(worst, apart if apart != float("inf") else 0)
            if apart > TOLERANCE:
                bad.append([index, name, list(np.shape(out[name])), list(value.shape), apart, sizes])
    verdict = "not by ONNX Runtime" if compared == 0 else "wrong" if bad else "right"
    return {"verdict": verdict, "calls": compared, "worst": worst, "versions": session.loaded_versions, "bad": bad[:4]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["make", "check"])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--device", default="vulkan")
    parser.add_argument("--log", type=pathlib.Path)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    if args.what == "make":
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
        found = {"file": path.name, **check(path, args.device)}
        counts[found["verdict"]] = counts.get(found["verdict"], 0) + 1
        print(json.dumps(found), flush=True)
        if args.log:
            with args.log.open("a") as log:
                log.write(json.dumps(found) + "\n")
    print(json.dumps(counts))
    sys.exit(1 if counts.get("wrong") or counts.get("refused") else 0)


if __name__ == "__main__":
    main()
