#!/usr/bin/env python3
"""Compiles the programs of conformance/vmvx and conformance/multi_device and records what IREE returns for them.

    conformance/record.py [SET...]

Needs IREE's compiler and runtime packages (3.13.0 made the committed files). For each set it writes the modules and
`manifest.jsonl`, which `conformance` and the crate's tests replay.

Expected values of multi_device are those of two CPU devices: with devices of different kinds the original fails, with
two Vulkan devices of different drivers it crashes.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

import iree.compiler
import iree.runtime
import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
COMPILE = [sys.executable, "-m", "iree.compiler.tools.scripts.iree_compile"]
RUN = [pathlib.Path(iree.runtime.__file__).parent.parent / "_runtime_libs" / "iree-run-module"]
VMVX = "--iree-hal-local-target-device-backends=vmvx"
DTYPES = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "f32": np.float32}


def compile_module(source, flags, output):
    # Modules carry the name of their source as it was given: without folders.
    subprocess.run([*COMPILE, *flags, source.name, "-o", output], check=True, cwd=source.parent)


def call(module, devices, function, inputs):
    """Results of the original, in the form of --input. Only what it printed counts: some runs crash at the end."""
    flags = [f"--device={d}" for d in devices] + [f"--input={i}" for i in inputs]
    limit = "--output_max_element_count=1000000"
    ran = subprocess.run([*RUN, f"--module={module}", f"--function={function}", limit, *flags],
                         capture_output=True, text=True)
    results = re.findall(r"^\d[^\n]*=.*$", ran.stdout, re.MULTILINE)
    if not results:
        raise RuntimeError(f"{module} {function}: {ran.stderr}")
    return results


def tensor(shape, kind, seed):
    """A tensor in the form of --input, of numbers in no pattern, none zero."""
    count = int(np.prod(shape))
    numbers = (np.arange(1, count + 1) * 2654435761 * (seed + 1) >> 7) % 251 + 1
    if kind == "f32":
        values = [f"{v:.9g}" for v in (numbers.astype(np.float32) / 16)]
    else:
        signs = np.where(numbers % 3 == 0, -1, 1) if kind != "i8" else 1
        values = [str(v) for v in (numbers % 100 * signs).tolist()]
    return "x".join(map(str, shape)) + f"x{kind}=" + ",".join(values)


def row(name, source, module, flags, devices, calls, **more):
    return {"name": name, "source": source, "vmfb": module, "flags": flags, "devices": devices, **more, "calls": [
        {"function": f, "inputs": i, "expected": [{"flag": e} for e in expected], "rtol": 2e-5, "atol": 1e-6}
        for f, i, expected in calls]}


def vmvx_inputs(source):
    """Functions of the source and inputs for each, from their declarations. Open dimensions are 5."""
    for name, arguments in re.findall(r"func\.func @(\w+)\(([^)]*)\)", source):
        types = re.findall(r"tensor<([^>]*)x(\w+)>", arguments)
        inner = 9 if name.startswith("mat") else 5
        shapes = [[int(d) if d != "?" else None for d in dims.split("x")] for dims, _ in types]
        open_sizes = [[6, inner], [inner, 7]] if name.startswith("mat") else [[5, 5], [5, 5]]
        shapes = [[d or open_sizes[n][axis] for axis, d in enumerate(s)] for n, s in enumerate(shapes)]
        kinds = [kind for _, kind in types]
        if name.startswith("sh"):
            amounts = "5x7xi32=" + ",".join(str(n % 32) for n in range(35))
            yield name, [tensor(shapes[0], kinds[0], 0), amounts]
        else:
            yield name, [tensor(s, k, n) for n, (s, k) in enumerate(zip(shapes, kinds))]


def record_vmvx():
    """All microkernels: element by element, and matrix products in tiles whose sizes are asked for at run time."""
    folder = HERE / "vmvx"
    flags = ["--iree-hal-target-device=local", VMVX, "--iree-vmvx-enable-microkernels"]
    source = (folder / "kernels.mlir").read_text()
    for name, extra in {"kernels": [], "kernels_tiled": ["--iree-opt-data-tiling"]}.items():
        module = folder / f"{name}.vmfb"
        compile_module(folder / "kernels.mlir", flags + extra, module)
        calls = [(f, i, call(module, ["local-sync"], f, i)) for f, i in vmvx_inputs(source)]
        if extra:
            calls = [c for c in calls if c[0].startswith(("mat", "tiles"))]
        yield row(name, "vmvx/kernels.mlir", f"vmvx/{name}.vmfb", flags + extra, ["local"], calls)


TOPOLOGY = "(@d0 -> @d1 = {transparent_access = true}), (@d1 -> @d0 = {transparent_access = true})"
MULTI_DEVICE = {
    "round_trip": [("main", ["4xf32=1,2,3,4", "4xf32=5,6,7,8"])],
    "ping_pong": [("main", ["3xf32=1,0.5,-1.25", str(times)]) for times in (0, 1, 3)],
    "arguments_elsewhere": [("main", ["4xf32=1,2,3,4", "4xf32=5,6,7,8"])],
    "layers": [("main", [tensor([2, 8], "f32", 3)])],
    "state": [("add", ["4xf32=1,2,3,4"]), ("add_twice", ["4xf32=1,2,3,4", "4xf32=5,6,7,8"])],
}
PLACES = {
    "two_local": (["local", "local"], ["d0=local[0]", "d1=local[1]"]),
    "two_vulkan": (["vulkan", "vulkan"], ["d0=vulkan[0]", "d1=vulkan[1]"]),
    "vulkan_local": (["vulkan", "local"], ["d0=vulkan", "d1=local"]),
    "local_vulkan": (["local", "vulkan"], ["d0=local", "d1=vulkan"]),
}


def with_topology(source):
    """The program, with the promise that the devices reach each other's memory: without it the compiler refuses to
    let devices of different kinds share tensors."""
    body, separator, resources = source.partition("{-#")
    return f"module attributes {{stream.topology = #hal.device.topology<links = [{TOPOLOGY}]>}} {{\n{body}}}\n" + \
        separator + resources


def record_multi_device():
    folder = HERE / "multi_device"
    for program, calls in MULTI_DEVICE.items():
        source = (folder / f"{program}.mlir").read_text()
        expected = None
        for place, (devices, targets) in PLACES.items():
            flags = [f"--iree-hal-target-device={t}" for t in targets] + ([VMVX] if "local" in devices else [])
            variants = {"": []}
            if program == "round_trip":
                variants["_async"] = ["--iree-execution-model=async-external"]
            for suffix, extra in variants.items():
                name = f"{program}_{place}{suffix}"
                module = folder / f"{name}.vmfb"
                mixed = len(set(devices)) > 1
                with tempfile.TemporaryDirectory() as scratch:
                    path = pathlib.Path(scratch) / f"{program}.mlir"
                    path.write_text(with_topology(source) if mixed else source)
                    compile_module(path, flags + extra, module)
                if expected is None:
                    expected = [call(module, ["local-sync", "local-task"], f, i) for f, i in calls]
                rows = [(f, i, e) for (f, i), e in zip(calls, expected)]
                yield row(name, f"multi_device/{program}.mlir", f"multi_device/{name}.vmfb", flags + extra, devices,
                          rows, **({"topology": TOPOLOGY} if mixed else {}))


def main():
    sets = {"vmvx": record_vmvx, "multi_device": record_multi_device}
    for name in sys.argv[1:] or sets:
        with open(HERE / name / "manifest.jsonl", "w") as manifest:
            for line in sets[name]():
                manifest.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
