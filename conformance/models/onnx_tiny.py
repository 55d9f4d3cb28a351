#!/usr/bin/env python3
"""Makes the cases in `conformance/tests/data/onnx`: tiny models of several operators, and single operators that models of PyPI
packages have and whose form was wrong once; with the results of ONNX Runtime.

    onnx_tiny.py conformance/tests/data/onnx

Weights are random numbers from fixed seeds. The files do not change from run to run.
"""
import argparse
import pathlib
import shutil

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

TYPES = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.int64): TensorProto.INT64,
         np.dtype(np.int32): TensorProto.INT32, np.dtype(np.uint8): TensorProto.UINT8}


class Model:
    """Nodes and constants as they come."""

    def __init__(self, name, seed):
        self.name, self.random = name, np.random.default_rng(seed)
        self.nodes, self.constants, self.inputs = [], [], {}

    def floats(self, *dims, size=1.0):
        return (self.random.standard_normal(dims) * size).astype(np.float32)

    def input(self, name, array):
        self.inputs[name] = np.asarray(array)
        return name

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def add(self, op, *inputs, outputs=1, domain="", **attributes):
        """A node; arrays among the inputs become constants."""
        names = [x if isinstance(x, str) else "" if x is None else self.constant(x) for x in inputs]
        made = [f"v{len(self.nodes)}_{index}" for index in range(outputs)]
        self.nodes.append(helper.make_node(op, names, made, domain=domain, **attributes))
        return made[0] if outputs == 1 else made

    def run(self, *outputs):
        """The model, and what ONNX Runtime computes."""
        infos = [helper.make_tensor_value_info(name, TYPES[x.dtype], x.shape) for name, x in self.inputs.items()]
        graph = helper.make_graph(self.nodes, self.name, infos, [onnx.ValueInfoProto(name=o) for o in outputs],
                                  self.constants)
        opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        return model, lambda: onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, self.inputs)

    def write(self, folder, *outputs, results=None):
        """Writes the case; with the results of another model where ONNX Runtime has no kernel on the processor."""
        model, run = self.run(*outputs)
        results = run() if results is None else results
        for info, x in zip(model.graph.output, results):
            info.CopyFrom(helper.make_tensor_value_info(info.name, TYPES[x.dtype], x.shape))
        data = folder / self.name / "test_data_set_0"
        data.mkdir(parents=True)
        (data.parent / "model.onnx").write_bytes(model.SerializeToString(deterministic=True))
        for kind, arrays in (("input", self.inputs.values()), ("output", results)):
            for index, x in enumerate(arrays):
                (data / f"{kind}_{index}.pb").write_bytes(numpy_helper.from_array(np.asarray(x)).SerializeToString())


def convolutions(folder):
    """A block of MobileNet and a classifier behind it."""
    m = Model("convolutions", 1)
    x = m.input("image", m.floats(1, 3, 12, 12))
    x = m.add("Conv", x, m.floats(8, 3, 3, 3, size=0.3), pads=[1, 1, 1, 1], strides=[2, 2])
    x = m.add("BatchNormalization", x, m.floats(8), m.floats(8), m.floats(8), np.abs(m.floats(8)) + np.float32(0.5))
    x = m.add("Clip", x, np.float32(0), np.float32(6))
    y = m.add("Conv", x, m.floats(8, 1, 3, 3, size=0.3), m.floats(8), pads=[1, 1, 1, 1], group=8)
    x = m.add("Add", x, m.add("Conv", m.add("HardSwish", y), m.floats(8, 8, 1, 1, size=0.3)))
    x = m.add("Flatten", m.add("GlobalAveragePool", x))
    m.write(folder, m.add("Softmax", m.add("Gemm", x, m.floats(5, 8), m.floats(5), transB=1)))


def decoder(folder):
    """A step of a decoder as exporters for ONNX Runtime write it: weights of four bits, grouped heads, a cache."""
    m, own = Model("decoder", 2), {"domain": "com.microsoft"}
    width, heads, kv, dim, past = 32, 2, 1, 16, 3
    x = m.input("hidden", m.floats(2, 1, width))
    cache = [m.input(f"past_{part}", m.floats(2, kv, past, dim)) for part in ("key", "value")]
    lengths = m.input("seqlens_k", np.array([3, 2], np.int32))
    total = m.constant(np.array(past + 1, np.int32))

    def linear(x, rows, columns):
        packed = m.random.integers(0, 256, (rows, columns // 32, 16)).astype(np.uint8)
        scales = (np.abs(m.floats(rows * columns // 32)) * np.float32(0.03) + np.float32(0.01)).astype(np.float32)
        return m.add("MatMulNBits", x, packed, scales, K=columns, N=rows, bits=4, block_size=32, **own)

    norm = m.add("SimplifiedLayerNormalization", x, m.floats(width), axis=-1, epsilon=1e-5)
    packed = linear(norm, (heads + 2 * kv) * dim, width)
    angles = m.floats(8, dim // 2)
    made, key, value = m.add("GroupQueryAttention", packed, None, None, *cache, lengths, total, np.cos(angles),
                             np.sin(angles), outputs=3, num_heads=heads, kv_num_heads=kv, do_rotary=1, **own)
    y, _, _, x = m.add("SkipSimplifiedLayerNormalization", linear(made, width, heads * dim), x, m.floats(width),
                       outputs=4, epsilon=1e-5, **own)
    x = m.add("Add", x, linear(m.add("QuickGelu", linear(y, 64, width), **own), width, 64))
    m.write(folder, x, key, value)


def encoder(folder):
    """A layer of a transformer as ONNX Runtime's optimizer writes it."""
    m, own = Model("encoder", 3), {"domain": "com.microsoft"}
    words = m.input("words", m.random.integers(0, 20, (2, 5)).astype(np.int32))
    mask = m.input("mask", np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], np.int32))
    tables = [m.floats(20, 16), m.floats(8, 16), None, m.floats(16), m.floats(16)]
    x, lengths = m.add("EmbedLayerNormalization", words, None, *tables, mask, outputs=2, **own)
    y = m.add("Attention", x, m.floats(16, 48, size=0.3), m.floats(48), lengths, num_heads=2, **own)
    x = m.add("SkipLayerNormalization", y, x, m.floats(16), m.floats(16), m.floats(16), **own)
    y = m.add("BiasGelu", m.add("MatMul", x, m.floats(16, 32, size=0.3)), m.floats(32), **own)
    y = m.add("MatMul", y, m.floats(32, 16, size=0.3))
    x = m.add("SkipLayerNormalization", y, x, m.floats(16), m.floats(16), m.floats(16), **own)
    q, k, v = (m.add("MatMul", x, m.floats(16, 16, size=0.3)) for _ in range(3))
    m.write(folder, m.add("MultiHeadAttention", q, k, v, m.floats(48), mask, num_heads=2, **own))


def of_bytes(folder):
    """Convolution, recurrence and product of bytes whose scales and zero points are those of the data."""
    m = Model("of_bytes", 4)
    x = m.input("x", m.floats(1, 3, 8, 8))
    x, scale, zero = m.add("DynamicQuantizeLinear", x, outputs=3)
    weights = m.random.integers(-128, 128, (4, 3, 3, 3)).astype(np.int8)
    x = m.add("ConvInteger", x, weights, zero, pads=[1, 1, 1, 1], strides=[2, 2])
    x = m.add("Mul", m.add("Cast", x, to=TensorProto.FLOAT), m.add("Mul", scale, np.float32(0.01)))
    x = m.add("Reshape", x, np.array([4, 1, 16]))
    signed = lambda *dims: m.random.integers(-128, 128, dims).astype(np.int8)  # noqa: E731
    own = [signed(1, 16, 24), signed(1, 6, 24), m.floats(1, 48, size=0.2), None, None, None, None]
    own += [np.array([0.01], np.float32), np.array([0], np.int8)] * 2
    x = m.add("DynamicQuantizeLSTM", x, *own, hidden_size=6, domain="com.microsoft")
    m.write(folder, m.add("Reshape", x, np.array([4, 6])))


def spectrum(folder):
    """A transform of real signals without a dimension for their parts."""
    m = Model("spectrum", 5)
    x = m.input("signals", m.floats(2, 40))
    m.write(folder, m.add("STFT", x, np.array(8), m.floats(16), np.array(16)))


def packed(folder):
    """Queries, keys and values in one tensor, and keys and values in one, which ONNX Runtime takes on GPUs only: it is asked for
    them apart."""
    m, own = Model("packed", 6), {"num_heads": 2, "domain": "com.microsoft"}
    whole = m.floats(2, 4, 2, 3, 8)
    apart = [whole[:, :, :, part].reshape(2, 4, 16) for part in range(3)]
    other = Model("apart", 6)
    names = [other.input(name, x) for name, x in zip("qkv", apart)]
    _, run = other.run(other.add("MultiHeadAttention", *names, **own))
    one = m.add("MultiHeadAttention", m.input("qkv", whole), **own)
    two = m.add("MultiHeadAttention", m.input("q", apart[0]), m.input("kv", whole[:, :, :, 1:].copy()), **own)
    m.write(folder, one, two, results=run() * 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    folder = parser.parse_args().folder
    shutil.rmtree(folder, ignore_errors=True)
    for make in (convolutions, decoder, encoder, of_bytes, packed, spectrum):
        make(folder)


if __name__ == "__main__":
    main()
