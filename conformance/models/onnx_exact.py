#!/usr/bin/env python3
"""How far Halite and ONNX Runtime are from what a model gives in 64-bit floats: where single precision decides little, as for phases that add up over
a whole clip, two right programs differ by more than any tolerance, and only this says which of them is nearer.

    onnx_exact.py [--device vulkan] [--log FILE] MODEL.onnx...

MODEL.npz has the calls, as onnx_sizes.py writes them. Needs onnx, onnxruntime and the package `halite`. The reference evaluator of the package onnx computes the model with
all floats widened; operators that it lacks, or is slow or single in, are below, for what speech models use of them.
"""
import argparse
import itertools
import json
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun
from onnx_sizes import Reference, calls_of

SINGLE, DOUBLE = TensorProto.FLOAT, TensorProto.DOUBLE


class FastGelu(OpRun):
    op_domain = "com.microsoft"

    def _run(self, x, bias=None):
        x = x if bias is None else x + bias
        return (0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),)


class SkipLayerNormalization(OpRun):
    op_domain = "com.microsoft"

    def _run(self, x, skip, scale, shift=None, bias=None, epsilon=None):
        whole = x + skip + (0 if bias is None else bias)
        mean = whole.mean(-1, keepdims=True)
        inverse = 1 / np.sqrt(((whole - mean) ** 2).mean(-1, keepdims=True) + epsilon)
        made = (whole - mean) * inverse * scale + (0 if shift is None else shift)
        return (made, mean, inverse, whole)[: len(self.onnx_node.output)]


class FusedMatMul(OpRun):
    op_domain = "com.microsoft"

    def _run(self, a, b, alpha=None, transA=None, transB=None, transBatchA=None, transBatchB=None):
        a, b = (np.swapaxes(x, -1, -2) if turned else x for x, turned in ((a, transA), (b, transB)))
        return ((1.0 if alpha is None else alpha) * (a @ b),)


def taps(shape, dilations, strides, counts):
    """The places of a kernel, each with the slices of an input that it meets at all places of an output."""
    for tap in itertools.product(*map(range, shape)):
        yield tap, tuple(slice(k * d, k * d + (n - 1) * s + 1, s) for k, d, s, n in zip(tap, dilations, strides, counts))


def window(filters, dilations, strides, pads):
    rank = filters.ndim - 2
    return dilations or [1] * rank, strides or [1] * rank, pads or [0] * 2 * rank


class Conv(OpRun):
    op_domain = ""

    def _run(self, x, filters, bias=None, auto_pad=None, dilations=None, group=None, kernel_shape=None, pads=None, strides=None):
        dilations, strides, pads = window(filters, dilations, strides, pads)
        rank, groups, shape = len(strides), group or 1, filters.shape[2:]
        x = np.pad(x, [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:])])
        counts = [(size - d * (k - 1) - 1) // s + 1 for size, k, d, s in zip(x.shape[2:], shape, dilations, strides)]
        made = []
        for own, weights in zip(np.split(x, groups, 1), np.split(filters, groups, 0)):
            parts = (np.einsum("oc,nc...->no...", weights[(..., *tap)], own[(..., *there)], optimize=True) for tap, there in taps(shape, dilations, strides, counts))
            made.append(sum(parts))
        made = np.concatenate(made, 1)
        return (made if bias is None else made + bias.reshape(-1, *[1] * rank),)


class ConvTranspose(OpRun):
    op_domain = ""

    def _run(self, x, filters, bias=None, auto_pad=None, dilations=None, group=None, kernel_shape=None, output_padding=None, output_shape=None, pads=None, strides=None):
        dilations, strides, pads = window(filters, dilations, strides, pads)
        rank, groups, shape, counts = len(strides), group or 1, filters.shape[2:], x.shape[2:]
        more = output_padding or [0] * rank
        whole = [(n - 1) * s + d * (k - 1) + 1 + m for n, k, d, s, m in zip(counts, shape, dilations, strides, more)]
        made = []
        for own, weights in zip(np.split(x, groups, 1), np.split(filters, groups, 0)):
            part = np.zeros((x.shape[0], filters.shape[1], *whole))
            for tap, there in taps(shape, dilations, strides, counts):
                part[(..., *there)] += np.einsum("co,nc...->no...", weights[(..., *tap)], own, optimize=True)
            made.append(part)
        kept = tuple(slice(first, size - last) for first, last, size in zip(pads[:rank], pads[rank:], whole))
        made = np.concatenate(made, 1)[(..., *kept)]
        return (made if bias is None else made + bias.reshape(-1, *[1] * rank),)


class LSTM(OpRun):
    op_domain = ""

    def _run(self, x, weights, back, bias=None, lengths=None, hidden=None, cell=None, peepholes=None, direction=None, hidden_size=None, **_):
        steps, batch, directions, size = x.shape[0], x.shape[1], weights.shape[0], back.shape[2]
        sigmoid = lambda value: 1 / (1 + np.exp(-value))  # noqa: E731
        made, last = np.zeros((steps, directions, batch, size)), []
        for way in range(directions):
            h, c = (np.zeros((batch, size)) if first is None else first[way] for first in (hidden, cell))
            given = x @ weights[way].T + (0 if bias is None else bias[way].reshape(2, -1).sum(0))
            order = range(steps)[:: -1 if way or direction == "reverse" else 1]
            for step in order:
                i, o, f, g = np.split(given[step] + h @ back[way].T, 4, -1)
                c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
                h = sigmoid(o) * np.tanh(c)
                made[step, way] = h
            last.append((h, c))
        return (made, *(np.stack(all) for all in zip(*last)))[: len(self.onnx_node.output)]


class Resize(OpRun):
    """By scales along the last dimension: to the nearest place below, or linearly between middles."""

    op_domain = ""

    def _run(self, x, roi=None, scales=None, sizes=None, **given):
        mode = next(own.s.decode() for own in self.onnx_node.attribute if own.name == "mode")
        scale, size = float(scales[-1]), x.shape[-1]
        assert (scales[:-1] == 1).all() and mode in ("nearest", "linear")
        places = np.arange(int(np.floor(size * scales[-1])))
        if mode == "nearest":
            return (x[..., np.minimum(np.floor(places / scale).astype(int), size - 1)],)
        at = np.clip((places + 0.5) / scale - 0.5, 0, size - 1)
        low = np.floor(at).astype(int)
        return (x[..., low] * (1 - at + low) + x[..., np.minimum(low + 1, size - 1)] * (at - low),)


class GatherElements(OpRun):
    op_domain = ""

    def _run(self, data, indices, axis=0):
        return (np.take_along_axis(data, indices, axis or 0),)


class Pow(OpRun):
    op_domain = ""

    def _run(self, a, b):
        return (a**b,)


class STFT(OpRun):
    op_domain = ""

    def _run(self, x, step, shape=None, length=None, onesided=None):
        x, step = x.reshape(x.shape[0], -1), int(step)
        length = int(length) if length is not None else len(shape)
        places = np.arange(1 + (x.shape[1] - length) // step)[:, None] * step + np.arange(length)
        found = np.fft.rfft(x[:, places] * (1 if shape is None else shape), axis=-1)
        return (np.stack([found.real, found.imag], -1),)


OWN = [FastGelu, SkipLayerNormalization, FusedMatMul, Conv, ConvTranspose, LSTM, Resize, GatherElements, Pow, STFT]


def widened(model):
    """The model with all of its floats in 64 bits."""
    double = lambda tensor: numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name)  # noqa: E731
    for tensor in model.graph.initializer:
        if tensor.data_type == SINGLE:
            tensor.CopyFrom(double(tensor))
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR and attribute.t.data_type == SINGLE:
                attribute.t.CopyFrom(double(attribute.t))
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i == SINGLE:
                attribute.i = DOUBLE
    for value in [*model.graph.input, *model.graph.output]:
        if value.type.tensor_type.elem_type == SINGLE:
            value.type.tensor_type.elem_type = DOUBLE
    del model.graph.value_info[:]
    return model


def apart(found, exact):
    """Largest and rms difference, of the largest number."""
    if found.shape != exact.shape:
        return [list(found.shape), list(exact.shape)]
    difference, most = np.abs(found.astype(np.float64) - exact), max(float(np.abs(exact).max(initial=0)), 1e-30)
    return [float(difference.max(initial=0)) / most, float(np.sqrt((difference**2).mean())) / most]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=pathlib.Path)
    parser.add_argument("--device", default="vulkan")
    parser.add_argument("--log", type=pathlib.Path)
    args = parser.parse_args()
    import halite

    for path in args.paths:
        exact, other = ReferenceEvaluator(widened(onnx.load(path)), new_ops=OWN), Reference(path)
        session = halite.Session(str(path), device=args.device, cache=False)
        for index, call in enumerate(calls_of(path.with_suffix(".npz"))):
            wide = {name: value.astype(np.float64) if value.dtype == np.float32 else value for name, value in call.items()}
            wanted, theirs, ours = exact.run(None, wide), other.run(index, call), session.run(call)
            for name, right, their in zip(other.names, wanted, theirs):
                line = json.dumps({"file": path.name, "call": index, "output": name, "halite": apart(np.asarray(ours[name]), right),
                                   "onnxruntime": apart(their, right), "between": apart(np.asarray(ours[name]), their.astype(np.float64))})
                print(line, flush=True)
                if args.log:
                    with args.log.open("a") as log:
                        log.write(line + "\n")


if __name__ == "__main__":
    main()
