#!/usr/bin/env python3
"""What ONNX Runtime's `DynamicQuantizeLSTM` computes, beside Halite, over one and several lines, by arithmetic that is written out: one scale for all rows of a call's
input, and in each step one scale for the states of all lines.

    onnx_quantized_lstm.py [--device vulkan] [--threads 1]

With more threads, ONNX Runtime gives each thread some of the lines, and their states a scale of their own. Prints for weights of 8 and of 7 bits, and for each size, how far ONNX Runtime and Halite are from four kinds of arithmetic: scales of a whole call or of each line, and
sums of pairs that saturate at 16 bits, as a processor with AVX2 and without VNNI does it, or do not. Needs the packages `halite`, numpy, onnx and onnxruntime.
"""
import argparse
import pathlib
import tempfile

import numpy as np
from onnx import numpy_helper
from onnx_sizes_control import quantized_lstm


def codes(values):
    """Bytes, the zero among them, and the scale."""
    low, high = min(0, values.min()), max(0, values.max())
    scale = np.float32((high - low) / 255) if high > low else np.float32(1)
    zero = np.clip(np.rint(-low / scale), 0, 255)
    return np.clip(np.rint(values / scale) + zero, 0, 255), zero, scale


def product(rows, weights, scale, alone, saturates):
    if alone:
        return np.concatenate([product(row[None], weights, scale, False, saturates) for row in rows])
    bytes_, zero, own = codes(rows)
    if not saturates:
        return (bytes_ - zero) @ weights * own * scale
    odd = bytes_.shape[1] % 2
    a, b = np.pad(bytes_, ((0, 0), (0, odd))), np.pad(weights, ((0, odd), (0, 0)))
    pairs = [np.clip(a[:, k : k + 1] * b[k] + a[:, k + 1 : k + 2] * b[k + 1], -32768, 32767) for k in range(0, a.shape[1], 2)]
    return (sum(pairs) - zero * weights.sum(0)) * own * scale


def lstm(x, given, alone, saturates):
    weights, recurrent, bias = (given[name][0].astype(float) for name in ("w", "r", "b"))
    sigmoid = lambda v: 1 / (1 + np.exp(-v))  # noqa: E731
    width = len(recurrent)
    state, cell, made = np.zeros((x.shape[1], width), np.float32), np.zeros((x.shape[1], width)), []
    lines = [x[:, line] for line in range(x.shape[1])] if alone else [x.reshape(-1, x.shape[2])]
    inner = np.stack([product(line, weights, given["ws"], False, saturates) for line in lines], 1).reshape(*x.shape[:2], -1)
    for step in inner:
        gates = step + product(state, recurrent, given["rs"], alone, saturates) + bias[: 4 * width] + bias[4 * width :]
        i, o, f, c = np.split(gates, 4, -1)
        cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(c)
        state = (sigmoid(o) * np.tanh(cell)).astype(np.float32)
        made.append(state)
    return np.stack(made)[:, None]


def compare(given, calls, other, own):
    far = lambda a, b: f"{float(np.abs(a - b).max()):.5f}"  # noqa: E731
    for (x,) in calls:
        theirs, ours = other.run(["y"], {"x": x})[0], np.asarray(own.run({"x": x})["y"])
        print(f"{x.shape[0]} steps, {x.shape[1]} lines: Halite and ONNX Runtime {far(theirs, ours)} apart")
        for alone in (False, True):
            for saturates in (False, True):
                told = lstm(x, given, alone, saturates)
                kind = f"{'each line' if alone else 'a call'}, {'saturating' if saturates else 'exact'}"
                print(f"    scales of {kind}: ONNX Runtime {far(told, theirs)}, Halite {far(told, ours)}")


def main():
    import halite
    import onnxruntime

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="vulkan")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = args.threads
    for bits, factor in ((8, 2), (7, 1)):
        print(f"weights of {bits} bits")
        model, calls = quantized_lstm()
        for weights in model.graph.initializer:
            if weights.name in ("w", "r"):
                weights.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weights) * np.int8(factor), weights.name))
        given = {value.name: numpy_helper.to_array(value) for value in model.graph.initializer}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "lstm.onnx"
            path.write_bytes(model.SerializeToString())
            other, own = onnxruntime.InferenceSession(str(path), options), halite.Session(str(path), device=args.device, cache=False)
            compare(given, calls, other, own)


if __name__ == "__main__":
    main()
