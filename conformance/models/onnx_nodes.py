#!/usr/bin/env python3
"""Compiles ONNX's own backend node tests with the real iree-compile, as a corpus that `conformance` replays.

usage: onnx_nodes.py OUT_DIR [--jobs N] [--match REGEX] [--targets default,llvmpipe] [--count N]

For each test of onnx.backend.test (kind `node`): the graph, imported in-process with iree-import-onnx's importer and
named `predict`; inputs and expected results as .npy (or raw .bin where numpy's format lacks the type); one .vmfb per
target. OUT_DIR/manifest.jsonl gets one object per test and target, in the form that conformance/src/corpus.rs reads;
what cannot be expressed (strings, sequences, sub-byte types) or compiled is recorded with its reason and no module.
A second run continues where the first stopped. Replay: conformance --corpus OUT_DIR --sets . --device vulkan

Needs: numpy ml_dtypes onnx iree-base-compiler.
"""
import argparse, contextlib, json, multiprocessing, os, pathlib, re, signal, subprocess, sys, time, traceback, warnings, zlib
from multiprocessing.connection import wait
import numpy as np
import onnx

# Targets are names that iree-compile knows; `default` gives none. Only `llvmpipe` has f64, so only there it stays f64.
# Elsewhere iree-compile demotes it to f32 by default, but in ONNX graphs not in the checks of the arguments' types:
# such modules fail with every runtime.
TARGET_FLAGS = {"default": [], "llvmpipe": ["--iree-vulkan-target=llvmpipe", "--iree-input-demote-f64-to-f32=false"]}
KEEPS_F64 = {"llvmpipe"}

# What the tools call a type; those with a second value `raw` are no part of the .npy format.
TYPES = {
    "float32": ("f32", ""), "float64": ("f64", ""), "float16": ("f16", ""), "bfloat16": ("bf16", "raw"),
    "float8_e4m3fn": ("f8E4M3FN", "raw"), "float8_e5m2": ("f8E5M2", "raw"), "float8_e4m3fnuz": ("f8E4M3FNUZ", "raw"),
    "float8_e5m2fnuz": ("f8E5M2FNUZ", "raw"), "float8_e8m0fnu": ("f8E8M0FNU", "raw"), "bool": ("i1", ""),
    "complex64": ("cf64", "raw"), "complex128": ("cf128", "raw"),
    **{f"{u}int{n}": (f"{'ui' if u else 'i'}{n}", "") for u in ("", "u") for n in (8, 16, 32, 64)},
}
# Relative and absolute tolerance by the coarsest floating-point type among inputs and results.
TOLERANCE = {"f32": (1e-3, 1e-5), "f64": (1e-3, 1e-5), "f16": (1e-2, 1e-3), "bf16": (3e-2, 1e-2)}


class Unsupported(Exception):
    """A test that the tools' --input and --output flags cannot express."""


def tensor(value, stem, target, out):
    """Writes one tensor; returns its manifest entry."""
    if isinstance(value, onnx.TensorProto):  # how the tests carry types that are not numpy's own
        value = onnx.numpy_helper.to_array(value)
    if not isinstance(value, (np.ndarray, np.generic)):
        raise Unsupported(f"a {type(value).__name__} instead of a tensor")
    array = np.asarray(value, order="C")
    if array.dtype == np.float64 and target not in KEEPS_F64:
        with np.errstate(over="ignore"):
            array = array.astype(np.float32)
    if array.dtype.name not in TYPES:
        raise Unsupported(f"element type {array.dtype.name}")
    name, raw = TYPES[array.dtype.name]
    path = f"{stem}.{'bin' if raw else 'npy'}"
    if raw:
        (out / path).write_bytes(array.tobytes())
    else:
        np.save(out / path, array)
    flag = "x".join([*map(str, array.shape), name]) + f"=@{path}" if raw else f"@{path}"
    return dict(dtype=array.dtype.name, shape=list(array.shape), path=path, flag=flag)


def call(case, target, out):
    """Writes the first data set of a test; returns the manifest's call."""
    inputs, outputs = case.data_sets[0]
    stem = f"{case.name}/{target}"
    optional = sum(x is None for x in inputs)
    if optional:
        raise Unsupported(f"{optional} absent optional inputs")
    ins = [tensor(x, f"{stem}_in{i}", target, out) for i, x in enumerate(inputs)]
    outs = [tensor(x, f"{stem}_out{i}", target, out) for i, x in enumerate(outputs)]
    names = [TYPES[e["dtype"]][0] for e in ins + outs]
    rtol, atol = max((TOLERANCE[n] for n in names if n in TOLERANCE), default=(0.0, 0.0))
    return dict(function="predict", inputs=ins, expected=outs, rtol=max(rtol, case.rtol), atol=max(atol, case.atol))


def import_model(case, path):
    """Writes the graph as MLIR, as iree-import-onnx does."""
    from iree.compiler.extras import onnx_importer
    from iree.compiler.ir import Context
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    model.graph.name = "predict"  # the importer names the entry point after the graph
    info = onnx_importer.ModelInfo(onnx.shape_inference.infer_shapes(model, data_prop=True))
    module = info.create_module(context=Context()).operation
    onnx_importer.NodeImporter.define_function(info.main_graph, module).import_all()
    module.verify()
    path.write_text(module.get_asm(assume_verified=True))


def compile_model(mlir, vmfb, target, limit):
    """Returns (whether it worked, first words of what went wrong)."""
    tool = pathlib.Path(sys.executable).parent / "iree-compile"
    flags = ["--iree-hal-target-device=vulkan", *TARGET_FLAGS.get(target, [f"--iree-vulkan-target={target}"])]
    process = subprocess.Popen([tool, mlir, "-o", vmfb, *flags], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               text=True, start_new_session=True)
    try:
        _, errors = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return False, f"iree-compile took longer than {limit} s"
    if process.returncode:
        vmfb.unlink(missing_ok=True)
    return process.returncode == 0, (re.search(r"error: (.*)", errors) or [None, errors])[1][:300]


def export(case, targets, out, limit):
    """Makes the rows of one test; runs in a process of its own, for the importer may die."""
    folder, rows = out / case.name, []
    folder.mkdir(exist_ok=True)
    mlir = folder / "model.mlir"
    ops = sorted({node.op_type for node in case.model.graph.node})
    imported, frontend = None, None  # an operator that the front end cannot lower fails for every target
    for target in targets:
        row, start = dict(name=case.name, target=target, function="predict", ops=ops), time.time()
        try:
            row["calls"] = [call(case, target, out)]
            if imported is None:
                import_model(case, mlir)
                imported = True
            if frontend is None:
                ok, error = compile_model(mlir, folder / f"{target}.vmfb", target, limit)
            else:
                ok, error = False, frontend
            frontend = error if not ok and "'torch" in error else None
            row.update(ok=ok, stage="compile", error=error if not ok else "")
            row.update(vmfb=f"{case.name}/{target}.vmfb") if ok else None
        except Unsupported as e:
            row.update(ok=False, stage="tensors", error=str(e))
        except Exception as e:
            row.update(ok=False, stage="import", error=f"{type(e).__name__}: {e}"[:300])
        rows.append(row | dict(seconds=round(time.time() - start, 2)))
    (folder / "rows.json").write_text(json.dumps(rows))


def child(case, targets, out, limit):
    with open(os.devnull, "w") as null, contextlib.redirect_stdout(null), contextlib.redirect_stderr(null):
        try:
            export(case, targets, out, limit)
        except Exception:
            (out / case.name / "rows.json").write_text(json.dumps([
                dict(name=case.name, target=t, ok=False, stage="export", error=traceback.format_exc()[-300:])
                for t in targets]))


def cases(match):
    """The tests: operators first, their expansions into simpler operators last; in a fixed mixed order."""
    from onnx.backend.test.loader import load_model_tests
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = load_model_tests(kind="node")
    unique = {case.name: case for case in found if case.model is not None and re.search(match, case.name)}
    return sorted(unique.values(), key=lambda c: ("_expanded" in c.name, zlib.crc32(c.name.encode())))


def collect(case, targets, out, exitcode):
    """What the process of one test left, or how it died."""
    path = out / case.name / "rows.json"
    if path.exists():
        rows = json.loads(path.read_text())
        path.unlink()
        return rows
    return [dict(name=case.name, target=t, ok=False, stage="import", error=f"the importer died: {exitcode}")
            for t in targets]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("out", type=pathlib.Path)
    ap.add_argument("--jobs", type=int, default=1)
    ap.add_argument("--match", default="", help="only tests whose name has this regular expression")
    ap.add_argument("--targets", default="default,llvmpipe")
    ap.add_argument("--limit", type=float, default=60, help="longest time for one compilation, in seconds")
    ap.add_argument("--count", type=int, default=None, help="stop after so many tests")
    args = ap.parse_args()
    args.out = args.out.resolve()
    args.out.mkdir(parents=True, exist_ok=True)
    targets, path = args.targets.split(","), args.out / "manifest.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    done = {(row["name"], row["target"]) for row in map(json.loads, filter(str.strip, lines))}
    todo = [(c, [t for t in targets if (c.name, t) not in done]) for c in cases(args.match)]
    todo = [(c, t) for c, t in todo if t][:args.count]
    import iree.compiler.extras.onnx_importer  # noqa: F401 - once here, not in every child
    fork, live, counts, total = multiprocessing.get_context("fork"), {}, {}, len(todo)
    with path.open("a") as manifest:
        while todo or live:
            while todo and len(live) < args.jobs:
                case, missing = todo.pop(0)
                process = fork.Process(target=child, args=(case, missing, args.out, args.limit))
                process.start()
                live[process.sentinel] = (process, case, missing)
            for sentinel in wait(list(live)):
                process, case, missing = live.pop(sentinel)
                process.join()
                for row in collect(case, missing, args.out, process.exitcode):
                    manifest.write(json.dumps(row) + "\n")
                    key = (row["target"], "ok" if row["ok"] else f"no: {row['stage']}")
                    counts[key] = counts.get(key, 0) + 1
                manifest.flush()
                print(f"{total - len(todo) - len(live)}/{total}", case.name, counts, flush=True)


if __name__ == "__main__":
    main()
