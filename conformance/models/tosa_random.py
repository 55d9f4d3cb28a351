#!/usr/bin/env python3
"""Draws random TOSA graphs of several operators, with what the reference model computes of them.

usage: tosa_random.py FOLDER [--count N] [--seed S] [--steps N]

Writes FOLDER/manifest.jsonl, which `conformance run --suite=models --vgf-models=FOLDER` takes. Each graph starts with an image of bytes or of
f32 and goes on by operators that change its values, sizes and order, with branches that come together again; its last tensors are
the outputs. Where Arm's model converter takes the `.tosa` file, the `.vgf` that it makes is tried too. Integers are exact; floats may be
off by `part` of the largest value. Needs tosa-tools and ai-ml-sdk-model-converter from PyPI, whose programs have to be on the PATH.
"""
import argparse, json, pathlib, random, subprocess

import numpy as np
from serializer import tosa_serializer as ts
from tosa.Op import Op

I8, I32, F32, SHAPE = ts.DType.INT8, ts.DType.INT32, ts.DType.FP32, ts.DType.SHAPE
PART = 2e-5
MOST = 6000  # elements of a tensor
MOST_CHANNELS = 64  # of what weights are for
PROPAGATE, SINGLE = 1, 1
NEAREST, BILINEAR = 1, 2
ARRAYS = {I8: np.int8, I32: np.int32, F32: np.float32}


class Drawing:
    """A graph that grows."""

    def __init__(self, pick, folder):
        self.pick, self.noise = pick, np.random.default_rng(pick.randrange(2**32))
        self.serializer = ts.TosaSerializer(str(folder))
        self.done = []  # all values so far
        self.names = []

    def const(self, dtype, values, shape=None):
        if dtype == SHAPE:
            return self.serializer.addConst([len(values)], SHAPE, list(values))
        array = np.array(values, ARRAYS[dtype]).reshape(np.shape(values) if shape is None else shape)
        return self.serializer.addConst(list(array.shape), dtype, array)

    def zero(self, dtype):
        return self.const(dtype, [0])

    def node(self, op, inputs, shape, dtype, attribute=None, *values):
        made = self.serializer.addIntermediate([int(size) for size in shape], dtype)
        told = None
        if attribute:
            told = ts.TosaSerializerAttribute()
            getattr(told, attribute)(*values)
        self.serializer.addOperator(getattr(Op, op), [t.name for t in inputs], [made.name], told)
        self.names.append(op)
        return made

    def weights(self, dtype, shape):
        if dtype == I8:
            return self.const(I8, self.noise.integers(-127, 128, shape))
        fan = max(1, int(np.prod(shape)) // shape[0])
        return self.const(F32, self.noise.normal(size=shape) / fan**0.5)

    def bias(self, dtype, count):
        values = self.noise.integers(-5000, 5000, count) if dtype == I8 else self.noise.normal(size=count)
        return self.const(I32 if dtype == I8 else F32, values)

    def narrow(self, x, terms, per_channel=False):
        """i32 sums of so many products to i8."""
        count = x.shape[-1] if per_channel else 1
        multipliers = self.noise.integers(2**30, 2**31 - 1, count)
        shift = 31 + 6 + int(np.ceil(np.log2(max(terms, 1)) / 2))
        inputs = [x, self.const(I32, multipliers), self.const(I8, [shift] * count), self.zero(I32), self.const(I8, [self.pick.randrange(-20, 20)])]
        return self.node("RESCALE", inputs, x.shape, I8, "RescaleAttribute", True, SINGLE, per_channel, False, False)

    def wide(self, x):
        inputs = [x, self.const(I32, [1 << 30]), self.const(I8, [30 - self.pick.randrange(8)]), self.const(I8, [self.pick.randrange(-9, 9)]), self.zero(I32)]
        return self.node("RESCALE", inputs, x.shape, I32, "RescaleAttribute", True, SINGLE, False, False, False)

    def window(self, size, taps, stride, dilation=1):
        """Pads that make a window end where the image does, and the number of its places."""
        before = self.pick.randrange(taps)
        reach = (taps - 1) * dilation
        after = self.pick.randrange(taps)
        while size - 1 + before + after - reach < 0 or (size - 1 + before + after - reach) % stride:
            after += 1
        return before, after, (size - 1 + before + after - reach) // stride + 1


def conv(d, x):
    n, h, w, c = x.shape
    ky, kx, filters = d.pick.choice([(1, 1), (3, 3), (2, 1), (1, 4), (5, 3)]) + (d.pick.choice([1, 3, 8, 16]),)
    sy, sx, by, bx = d.pick.choice([1, 1, 2, 3]), d.pick.choice([1, 1, 2]), d.pick.choice([1, 1, 2]), d.pick.choice([1, 1, 3])
    top, bottom, oh = d.window(h, ky, sy, by)
    left, right, ow = d.window(w, kx, sx, bx)
    depthwise = d.pick.random() < 0.4
    each = d.pick.choice([1, 2])
    shape = (ky, kx, c, each) if depthwise else (filters, ky, kx, c)
    out = (n, oh, ow, c * each if depthwise else filters)
    zeros = [d.const(I8, [d.pick.randrange(-128, 128)]), d.const(I8, [d.pick.choice([0, 0, 7])])] if x.dtype == I8 else [d.zero(F32)] * 2
    inputs = [x, d.weights(x.dtype, shape), d.bias(x.dtype, out[-1]), *zeros]
    kept = I32 if x.dtype == I8 else F32
    name, told = ("DEPTHWISE_CONV2D", "DepthwiseConv2dAttribute") if depthwise else ("CONV2D", "Conv2dAttribute")
    made = d.node(name, inputs, out, kept, told, [top, bottom, left, right], [sy, sx], [by, bx], False, kept)
    return d.narrow(made, ky * kx * (1 if depthwise else c), d.pick.random() < 0.7) if x.dtype == I8 else made


def transposed(d, x):
    n, h, w, c = x.shape
    ky, kx, sy, sx, filters = *d.pick.choice([(2, 2, 2, 2), (3, 3, 2, 2), (4, 3, 2, 1), (1, 2, 1, 3)]), d.pick.choice([2, 5])
    pads = [d.pick.randrange(1 - ky, 2), d.pick.randrange(0, 2), d.pick.randrange(1 - kx, 2), d.pick.randrange(0, 2)]
    out = (n, (h - 1) * sy + pads[0] + pads[1] + ky, (w - 1) * sx + pads[2] + pads[3] + kx, filters)
    if min(out) < 1:
        return None
    zeros = [d.const(I8, [d.pick.randrange(-128, 128)]), d.zero(I8)] if x.dtype == I8 else [d.zero(F32)] * 2
    kept = I32 if x.dtype == I8 else F32
    inputs = [x, d.weights(x.dtype, (filters, ky, kx, c)), d.bias(x.dtype, filters), *zeros]
    made = d.node("TRANSPOSE_CONV2D", inputs, out, kept, "TransposeConv2dAttribute", pads, [sy, sx], False, kept)
    return d.narrow(made, ky * kx * c) if x.dtype == I8 else made


def pool(d, x):
    n, h, w, c = x.shape
    ky, kx, sy, sx = d.pick.choice([(2, 2, 2, 2), (3, 3, 1, 2), (1, 3, 1, 1)])
    top, bottom, oh = d.window(h, ky, sy)
    left, right, ow = d.window(w, kx, sx)
    if max(top, bottom) >= ky or max(left, right) >= kx:
        return None
    place = [ky, kx], [sy, sx], [top, bottom, left, right]
    if d.pick.random() < 0.5:
        return d.node("MAX_POOL2D", [x], (n, oh, ow, c), x.dtype, "MaxPool2dAttribute", *place, PROPAGATE)
    zeros = [d.const(I8, [d.pick.randrange(-128, 128)]) for _ in range(2)] if x.dtype == I8 else [d.zero(F32)] * 2
    return d.node("AVG_POOL2D", [x, *zeros], (n, oh, ow, c), x.dtype, "AvgPool2dAttribute", *place, I32 if x.dtype == I8 else F32)


def function(d, x):
    if x.dtype == I8:
        return d.node("TABLE", [x, d.const(I8, d.noise.integers(-128, 128, 256))], x.shape, I8, "TableAttribute")
    name = d.pick.choice(["TANH", "SIGMOID", "ABS", "FLOOR", "ERF", "SIN"])
    # A step would make an error of the last bit a large one.
    name = "CEIL" if name == "FLOOR" and len(d.names) == 0 else "ERF" if name == "FLOOR" else name
    return d.node(name, [x], x.shape, F32, name.title() + "Attribute")


def clamp(d, x):
    ends = [np.int8(-90), np.int8(70)] if x.dtype == I8 else [np.float32(-0.7), np.float32(1.2)]
    ends = [list(end.tobytes()) for end in ends]
    return d.node("CLAMP", [x], x.shape, x.dtype, "ClampAttribute", d.serializer.builder, *ends, PROPAGATE)


def both(d, x):
    """With an earlier value of the same size, or of a size that broadcasts."""
    fits = [y for y in d.done if y.dtype == x.dtype and len(y.shape) == 4 and all(b in (a, 1) for a, b in zip(x.shape, y.shape))]
    y = d.pick.choice(fits)
    if x.dtype == F32:
        name = d.pick.choice(["ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM"])
        if name == "MUL":
            return d.node(name, [x, y, d.zero(I8)], x.shape, F32, "MulAttribute")
        more = [PROPAGATE] if name in ("MAXIMUM", "MINIMUM") else []
        return d.node(name, [x, y], x.shape, F32, name.title() + "Attribute", *more)
    if d.pick.random() < 0.3:
        return d.narrow(d.node("MUL", [x, y, d.zero(I8)], x.shape, I32, "MulAttribute"), 1)
    a, b = d.wide(x), d.wide(y)
    return d.narrow(d.node(d.pick.choice(["ADD", "SUB"]), [a, b], x.shape, I32, "AddAttribute"), 4)


def select(d, x):
    fits = [y for y in d.done if y.dtype == x.dtype and y.shape == x.shape]
    y, wide = d.pick.choice(fits), x.dtype == I8
    a, b = (d.wide(x), d.wide(y)) if wide else (x, y)
    asked = d.node("GREATER", [a, b], x.shape, ts.DType.BOOL, "GreaterAttribute")
    return d.node("SELECT", [asked, x, d.node("REVERSE", [x], x.shape, x.dtype, "ReverseAttribute", 2)], x.shape, x.dtype, "SelectAttribute")


def concat(d, x):
    axis = d.pick.randrange(4)
    fits = [y for y in d.done if y.dtype == x.dtype and len(y.shape) == 4 and all(i == axis or a == b for i, (a, b) in enumerate(zip(x.shape, y.shape)))]
    parts = [x, *d.pick.choices(fits, k=d.pick.choice([1, 2]))]
    shape = [sum(p.shape[axis] for p in parts) if i == axis else size for i, size in enumerate(x.shape)]
    return d.node("CONCAT", parts, shape, x.dtype, "ConcatAttribute", axis)


def moved(d, x):
    how = d.pick.randrange(6)
    shape = list(x.shape)
    if how == 0:
        perms = d.pick.choice([[0, 2, 1, 3], [0, 3, 1, 2], [0, 2, 3, 1]])
        return d.node("TRANSPOSE", [x], [shape[p] for p in perms], x.dtype, "TransposeAttribute", perms)
    if how == 1:
        pads = [d.pick.randrange(3) if 2 <= i < 8 else 0 for i in range(8)]
        grown = [size + pads[2 * i] + pads[2 * i + 1] for i, size in enumerate(shape)]
        return d.node("PAD", [x, d.const(SHAPE, pads), d.const(x.dtype, [3])], grown, x.dtype, "PadAttribute")
    if how == 2:
        size = [d.pick.randrange(max(1, s // 2), s + 1) for s in shape]
        start = [d.pick.randrange(s - n + 1) for s, n in zip(shape, size)]
        return d.node("SLICE", [x, d.const(SHAPE, start), d.const(SHAPE, size)], size, x.dtype, "SliceAttribute")
    if how == 3:
        return d.node("REVERSE", [x], shape, x.dtype, "ReverseAttribute", d.pick.randrange(4))
    if how == 4:
        times = d.pick.choice([[1, 2, 1, 1], [1, 1, 1, 2], [1, 1, 3, 1]])
        return d.node("TILE", [x, d.const(SHAPE, times)], [a * b for a, b in zip(shape, times)], x.dtype, "TileAttribute")
    other = [shape[0], shape[2], shape[1], shape[3]]
    return d.node("RESHAPE", [x, d.const(SHAPE, other)], other, x.dtype, "ReshapeAttribute")


def resize(d, x):
    n, h, w, c = x.shape
    scale = d.pick.choice([[2, 1, 2, 1], [4, 2, 2, 1], [6, 2, 4, 2], [3, 2, 1, 1]])
    offset, border, out = [0, 0], [0, 0], []
    for i, size in enumerate([h, w]):
        over, under = scale[2 * i], scale[2 * i + 1]
        while ((size - 1) * over - offset[i] + border[i]) % under:
            border[i] += 1
        out.append(((size - 1) * over - offset[i] + border[i]) // under + 1)
    mode = d.pick.choice([NEAREST, BILINEAR])
    kept = I32 if x.dtype == I8 and mode == BILINEAR else x.dtype
    made = d.node("RESIZE", [x, *(d.const(SHAPE, v) for v in (scale, offset, border))], (n, *out, c), kept, "ResizeAttribute", mode)
    return d.narrow(made, 1) if kept != x.dtype else made


def product(d, x):
    n, h, w, c = x.shape
    rows = d.node("RESHAPE", [x, d.const(SHAPE, [n, h * w, c])], (n, h * w, c), x.dtype, "ReshapeAttribute")
    width = d.pick.choice([4, 7, 16])
    kept = I32 if x.dtype == I8 else F32
    zeros = [d.const(I8, [d.pick.randrange(-128, 128)]) for _ in range(2)] if x.dtype == I8 else [d.zero(F32)] * 2
    weights = d.weights(x.dtype, (n, c, width))
    made = d.node("MATMUL", [rows, weights, *zeros], (n, h * w, width), kept, "MatMulAttribute")
    made = d.narrow(made, c) if x.dtype == I8 else made
    return d.node("RESHAPE", [made, d.const(SHAPE, [n, h, w, width])], (n, h, w, width), x.dtype, "ReshapeAttribute")


def reduced(d, x):
    axis = d.pick.choice([1, 2, 3])
    shape = [1 if i == axis else size for i, size in enumerate(x.shape)]
    name = d.pick.choice(["REDUCE_MAX", "REDUCE_MIN", "REDUCE_SUM"])
    if name == "REDUCE_SUM":
        wide = d.wide(x) if x.dtype == I8 else x
        made = d.node(name, [wide], shape, wide.dtype, "ReduceSumAttribute", axis)
        return d.narrow(made, x.shape[axis] * 16) if x.dtype == I8 else made
    return d.node(name, [x], shape, x.dtype, name.title().replace("_", "") + "Attribute", axis, PROPAGATE)


STEPS = [conv, conv, conv, transposed, pool, function, function, clamp, both, both, select, concat, moved, moved, resize, product, reduced]


def draw(pick, folder, name, steps):
    """A case's line of the manifest, or None where the reference model refuses the graph."""
    d = Drawing(pick, folder)
    dtype = pick.choice([I8, I8, F32])
    shape = [1, pick.randrange(3, 13), pick.randrange(3, 13), pick.choice([1, 2, 3, 4, 8, 12])]
    given = d.noise.integers(-128, 128, shape) if dtype == I8 else d.noise.normal(size=shape)
    np.save(folder / f"{name}.in0.npy", given.astype(ARRAYS[dtype]))
    x = d.serializer.addPlaceholder(shape, dtype, None)
    x.placeholderFilename = f"{name}.in0.npy"
    inputs = [x.name]
    d.done.append(x)
    for _ in range(steps):
        step = pick.choice(STEPS)
        if np.prod(x.shape) > MOST // 4 and step in (transposed, resize, concat):
            continue
        if x.shape[3] > MOST_CHANNELS and step in (conv, transposed, product):
            continue
        made = step(d, x)
        if made is not None and 0 < np.prod(made.shape) <= MOST:
            x = made
            d.done.append(x)
            if pick.random() < 0.1:
                x = pick.choice(d.done[-3:])
    outputs = d.done[-1:] if len(d.done) < 4 or pick.random() < 0.5 else [d.done[-1], d.done[-3]]
    outputs = [out for out in outputs if out.name not in inputs]
    if not outputs:
        return None
    for out in outputs:
        d.serializer.addOutputTensor(out)
    tosa = folder / f"{name}.tosa"
    tosa.write_bytes(d.serializer.serialize())
    outs = [f"{name}.out{n}.npy" for n in range(len(outputs))]
    command = ["tosa_reference_model", f"--tosa_file={tosa.name}", f"--flatbuffer_dir={folder}", f"--output_dir={folder}", "--ifm_name", inputs[0]]
    command += ["--ifm_file", f"{name}.in0.npy", "--ofm_name", ",".join(o.name for o in outputs), "--ofm_file", ",".join(outs)]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if ran.returncode:
        print("the reference model refuses", name, d.names, " ".join((ran.stdout + ran.stderr).split())[:200], flush=True)
        return None
    files = [tosa.name]
    if converted(tosa):
        files.append(f"{name}.vgf")
    return {"name": name, "files": files, "inputs": [f"{name}.in0.npy"], "outputs": outs, "part": PART}


def converted(tosa):
    """Whether Arm's converter makes a `.vgf` of the file: some graphs keep it busy without an end."""
    try:
        command = ["model-converter", "--input", tosa, "--output", tosa.with_suffix(".vgf")]
        return subprocess.run(command, capture_output=True, timeout=10).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=8)
    args = parser.parse_args()
    folder = args.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for n in range(args.count):
        if line := draw(random.Random(args.seed * 100003 + n), folder, f"random_{args.seed}_{n}", args.steps):
            lines.append(json.dumps(line) + "\n")
    (folder / "manifest.jsonl").write_text("".join(lines))
    both = sum(".vgf" in line for line in lines)
    print(f"{len(lines)} of {args.count} graphs, {both} of them as .vgf too")


if __name__ == "__main__":
    main()
