#!/usr/bin/env python3
"""Times matrix products and convolutions in ncnn's Vulkan kernels, in turns with `bench kernels`.

Owns: networks of one operation for ncnn, and the table. Does not own: how Halite or the original are measured.

Both run on the same Vulkan driver (VK_DRIVER_FILES chooses it). ncnn's network has the operation many times on one input,
each with weights of its own, and a crop to one place behind each, so that next to nothing is read back; the difference to
the same network with one of them is the operation's time. ncnn computes in f32 with its other defaults (packed layouts,
Winograd for 3x3). Its result at that place is compared with NumPy's.

    python3 bench/compare_ncnn.py --ours target/release/bench --device=vulkan --rounds 3

needs PyPI's ncnn and numpy. With --iree-compile the original's code is measured too.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import ncnn
import numpy as np

# Times that an operation is in the longer network; fewer where weights and results are large or it takes long.
COPIES, COPIES_OF_LARGE, LARGE = 9, 3, 5e7
# Operations that one process of ours measures before ncnn has its turn with them.
TURN = 6


def parse(text):
    """An operation of `bench kernels`: its name and its fields, lists as lists."""
    name, rest = text.split(":", 1)
    fields = dict(field.split("=", 1) for field in rest.split(","))
    return name, {k: [int(n) for n in v.split("x")] if k in LISTS else v for k, v in fields.items()}


LISTS = ("input", "filter", "strides", "dilations", "pads")


class Operation:
    """What one operation is in ncnn's words; `ValueError` says why it is not measured."""

    def __init__(self, text):
        self.text = text
        name, f = parse(text)
        rng = np.random.default_rng(7)
        if name == "matmul":
            if any(f.get(k, "f32") != "f32" for k in ("lhs", "rhs", "out")) or f.get("batch", "1") != "1":
                raise ValueError("only f32 without a batch")
            m, n, k = (int(f[x]) for x in "mnk")
            transposed = f.get("rhs_transposed", "false") == "true"
            self.flops = 2.0 * m * n * k
            self.input, self.shape = rng.random((m, k), np.float32) - 0.5, f"0={k} 1={m}"
            self.weights = rng.random((n, k) if transposed else (k, n), np.float32) - 0.5
            self.layer = f"Gemm {{}} 5=1 3={int(transposed)} 8={n} 9={k}"
            self.crop = f"0=0 1=0 3={n} 4=1"
            self.expected = self.input[0] @ (self.weights.T if transposed else self.weights)
            return
        if name != "conv2d" or f.get("dtype", "f32") != "f32" or f.get("layout", "nchw") != "nchw":
            raise ValueError("only matmul and conv2d in f32, channels first")
        if f.get("bias", "false") == "true" or f.get("activation", "none") != "none" or f["input"][0] != 1:
            raise ValueError("only one image, without bias and activation")
        self.convolution(f, rng)

    def convolution(self, f, rng):
        _, c, h, w = f["input"]
        o, cg, kh, kw = f["filter"]
        (sy, sx), (dy, dx) = f.get("strides", [1, 1]), f.get("dilations", [1, 1])
        top, left, bottom, right = f.get("pads", [0, 0, 0, 0])
        groups = int(f.get("groups", "1"))
        self.flops = 2.0 * o * cg * kh * kw * (h // sy) * (w // sx)
        self.input, self.shape = rng.random((c, h, w), np.float32) - 0.5, f"0={w} 1={h} 2={c}"
        self.weights = rng.random((o, cg, kh, kw), np.float32) - 0.5
        kind = "Convolution" if groups == 1 else "ConvolutionDepthWise"
        self.layer = (
            f"{kind} {{}} 0={o} 1={kw} 11={kh} 2={dx} 12={dy} 3={sx} 13={sy} 4={left} 15={right} 14={top} "
            f"16={bottom} 5=0 6={self.weights.size}" + (f" 7={groups}" if groups > 1 else "")
        )
        self.crop = f"0=0 1=0 2=0 3=1 4=1 5={o}"
        padded = np.pad(self.input, ((0, 0), (top, bottom), (left, right)))
        window = padded[:, : (kh - 1) * dy + 1 : dy, : (kw - 1) * dx + 1 : dx]
        each = o // groups
        self.expected = np.array(
            [np.sum(window[g * cg : (g + 1) * cg] * self.weights[g * each + i]) for g in range(groups) for i in range(each)],
            np.float32,
        )


def network(operation, copies, folder):
    """A network with the operation `copies` times."""
    lines = [f"Input in 0 1 x {operation.shape}"]
    lines.append(f"Split split 1 {copies} x " + " ".join(f"x{i}" for i in range(copies)))
    for i in range(copies):
        lines.append(operation.layer.format(f"layer{i} 1 1 x{i} y{i}"))
        lines.append(f"Crop crop{i} 1 1 y{i} z{i} {operation.crop}")
    lines.append(f"Concat all {copies} 1 " + " ".join(f"z{i}" for i in range(copies)) + " out 0=0")
    text = f"7767517\n{len(lines)} {2 + 3 * copies}\n" + "\n".join(lines) + "\n"
    param, model = os.path.join(folder, f"{copies}.param"), os.path.join(folder, f"{copies}.bin")
    with open(param, "w", encoding="ascii") as file:
        file.write(text)
    with open(model, "wb") as file:
        # Weights as they are begin with a flag of 0.
        file.write((np.uint32(0).tobytes() + operation.weights.tobytes()) * copies)
    net = ncnn.Net()
    net.opt.use_vulkan_compute = True
    for option in ("use_fp16_packed", "use_fp16_storage", "use_fp16_arithmetic", "use_bf16_storage"):
        setattr(net.opt, option, False)
    if net.load_param(param) != 0 or net.load_model(model) != 0:
        raise RuntimeError(f"ncnn does not load {operation.text}")
    return net


def clock(kind):
    return time.process_time() if kind == "processor" else time.perf_counter()


def run(net, data, kind):
    start = clock(kind)
    extractor = net.create_extractor()
    extractor.input("x", data)
    status, out = extractor.extract("out")
    result = np.array(out)
    if status != 0:
        raise RuntimeError("ncnn fails")
    return clock(kind) - start, result


class Ncnn:
    """An operation ready to be timed."""

    def __init__(self, operation, kind):
        self.operation, self.kind = operation, kind
        # Channels of ncnn's images are apart by whole 16 bytes, so elements are copied, not the array taken as it is.
        self.data = ncnn.Mat(*operation.input.shape[::-1])
        np.asarray(self.data)[...] = operation.input
        with tempfile.TemporaryDirectory() as folder:
            self.copies = COPIES_OF_LARGE if operation.flops > LARGE else COPIES
            self.one, self.many = network(operation, 1, folder), network(operation, self.copies, folder)
        # The first run makes pipelines. Its result is checked.
        run(self.one, self.data, kind)
        _, result = run(self.many, self.data, kind)
        wanted = np.tile(operation.expected.ravel(), self.copies)
        scale = max(1.0, float(np.abs(wanted).max()))
        self.error = float(np.abs(result.ravel() - wanted).max()) / scale

    def sample(self):
        """Seconds of the operation."""
        one, many = run(self.one, self.data, self.kind)[0], run(self.many, self.data, self.kind)[0]
        return (many - one) / (self.copies - 1)


def ours(options, texts):
    """What `bench kernels` says of these operations."""
    command = [options.ours, "kernels", f"--device={options.device}", "--json"]
    command += [part for text in texts for part in ("--op", text)]
    command += ["--seconds", str(options.seconds), "--warm-up", "0.05", "--clock", options.clock]
    if options.variant:
        command += ["--variant", options.variant]
    if options.iree_compile:
        command += ["--against-iree", "--iree-compile", options.iree_compile]
    result = subprocess.run(command, capture_output=True, text=True, timeout=3600, check=False)
    if not result.stdout:
        raise RuntimeError(result.stderr.strip())
    return json.loads(result.stdout)["operations"]


def operations(options):
    if options.op:
        return options.op
    command = [options.ours, "kernels", f"--device={options.device}", "--list"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")
    wanted = [line for line in listed if line.startswith(("matmul:", "conv2d:")) and options.match in line]
    return [line for line in wanted if usable(line)]


def usable(text):
    try:
        Operation(text)
        return True
    except ValueError:
        return False


def measure(options, texts):
    """Rows of the table for some operations: medians over the rounds."""
    rounds = [{} for _ in texts]
    for _ in range(options.rounds):
        for kept, report in zip(rounds, ours(options, texts)):
            keep(kept, report)
        for kept, text in zip(rounds, texts):
            theirs = Ncnn(Operation(text), options.clock)
            kept.setdefault("ncnn", []).append(statistics.median(theirs.sample() for _ in range(options.samples)))
            kept["error"] = theirs.error
    return [row(text, kept) for text, kept in zip(texts, rounds)]


def keep(kept, report):
    """Adds what one round of ours says."""
    right = [v for v in report["variants"] if "failed" not in v]
    first, best = min(right, key=lambda v: v["place"]), min(right, key=lambda v: v["median"])
    kept["report"], kept["variant"] = report, first["variant"]
    kept.setdefault("first", []).append(first["median"])
    kept.setdefault("best", []).append((best["median"], best["variant"]))
    original = report.get("original") or {}
    if "median" in original:
        # It took turns with the first choice: the ratio is what counts.
        own = original["in_turns"].get(first["variant"], first["median"])
        kept.setdefault("original", []).append(original["median"] / own * first["median"])
    if report.get("peak"):
        kept.setdefault("peak", []).append(report["flops"] / first["median"] / report["peak"]["speed"])


def row(text, kept):
    lists = {name: kept[name] for name in ("first", "ncnn", "original", "peak") if name in kept}
    median = {name: statistics.median(values) for name, values in lists.items()}
    best, original = statistics.median_low(kept["best"]), kept["report"].get("original") or {}
    return {
        "operation": text, "variant": kept["variant"], "seconds": median["first"], "best": best[1],
        "best_seconds": best[0], "ncnn": median["ncnn"], "ncnn_error": kept["error"],
        "original": median.get("original"), "original_wrong": original.get("wrong"),
        "original_missing": original.get("why_not"), "peak": median.get("peak"), "flops": kept["report"]["flops"],
    }


def line(row):
    """A row as a line of a Markdown table."""

    def ratio(value):
        return f"{value * 1e3:.3g} ({value / row['seconds']:.1f})" if value else "-"

    original = ratio(row["original"]) + (" wrong" if row["original_wrong"] else "")
    best = "the same" if row["best"] == row["variant"] else f"{row['best']} {row['best_seconds'] * 1e3:.3g}"
    peak = f"{100 * row['peak']:.0f} %" if row["peak"] else "-"
    wrong = "" if row["ncnn_error"] < 1e-3 else f" off by {row['ncnn_error']:.1e}"
    return (
        f"| `{row['operation']}` | `{row['variant']}` | {row['seconds'] * 1e3:.3g} | {peak} | {best} "
        f"| {original} | {ratio(row['ncnn'])}{wrong} |"
    )


def blas(kind):
    """Operations a second of NumPy's matrix product, with as many threads as its environment allows."""
    a = np.random.default_rng(1).random((512, 512), np.float32)
    a @ a
    times = []
    for _ in range(9):
        start = clock(kind)
        for _ in range(10):
            a @ a
        times.append((clock(kind) - start) / 10)
    return 2 * 512**3 / statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", required=True, metavar="PROGRAM", help="the program bench, in release mode")
    parser.add_argument("--device", default="vulkan", help="device URI for it")
    parser.add_argument("--op", action="append", help="an operation; those of bench/kernels.txt when none is named")
    parser.add_argument("--match", default="", help="only operations of the list with this in their text")
    parser.add_argument("--variant", default="", help="only variants of ours with this in their name")
    parser.add_argument("--iree-compile", metavar="PROGRAM", help="measure the original's code too")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each operation")
    parser.add_argument("--samples", type=int, default=3, help="samples of ncnn in a turn")
    parser.add_argument("--seconds", type=float, default=0.2, help="for each of our variants in a turn")
    parser.add_argument("--clock", choices=("wall", "processor"), default="wall")
    parser.add_argument("--json", metavar="FILE", help="write the rows there too")
    options = parser.parse_args()
    if ncnn.get_gpu_count() < 1:
        sys.exit("ncnn finds no Vulkan device; VK_DRIVER_FILES names the driver's manifest")
    print(f"# {ncnn.get_gpu_info(0).device_name()}, ncnn {ncnn.__version__}, clock: {options.clock}")
    print(f"# NumPy's matmul 512^3: {blas(options.clock) / 1e9:.1f} GFLOP/s")
    print("\n| operation | first choice | ms | of peak | best | original ms (ratio) | ncnn ms (ratio) |")
    print("|---|---|---|---|---|---|---|")
    rows = []
    texts = operations(options)
    for start in range(0, len(texts), TURN):
        part = measure(options, texts[start : start + TURN])
        rows += part
        print("\n".join(line(each) for each in part), flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
