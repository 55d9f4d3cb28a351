"""Writes the model of halite/tests/open_sizes.rs: a small encoder whose batch and length are open, with the shape arithmetic that
exporters write. Usage: onnx_open.py FILE"""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WIDTH, HEADS = 16, 2


def main(path):
    random = np.random.default_rng(7)
    nodes, constants = [], []

    def constant(name, array):
        constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def weights(name, *dims):
        return constant(name, (random.standard_normal(dims) / np.sqrt(dims[0])).astype(np.float32))

    def node(op, inputs, output, **attributes):
        nodes.append(helper.make_node(op, inputs, [output], **attributes))
        return output

    def norm(x, name):
        ones = constant(name + ".scale", np.ones(WIDTH, np.float32))
        zeros = constant(name + ".bias", np.zeros(WIDTH, np.float32))
        return node("LayerNormalization", [x, ones, zeros], name, axis=-1)

    shape = node("Shape", ["x"], "shape")
    zero, one = constant("zero", np.int64(0)), constant("one", np.int64(1))
    first = constant("first", np.array([0], np.int64))
    batch = node("Unsqueeze", [node("Gather", [shape, zero], "batch0"), first], "batch")
    length = node("Unsqueeze", [node("Gather", [shape, one], "length0"), first], "length")
    heads = constant("heads", np.array([HEADS], np.int64))
    dim = constant("dim", np.array([WIDTH // HEADS], np.int64))
    width = constant("width", np.array([WIDTH], np.int64))
    split = node("Concat", [batch, length, heads, dim], "split_shape", axis=0)
    joined = node("Concat", [batch, length, width], "joined_shape", axis=0)

    x = norm("x", "before")
    parts = []
    for part in "qkv":
        y = node("MatMul", [x, weights("w" + part, WIDTH, WIDTH)], "m" + part)
        y = node("Reshape", [y, split], "r" + part)
        parts.append(node("Transpose", [y], "t" + part, perm=[0, 2, 3, 1] if part == "k" else [0, 2, 1, 3]))
    q, k, v = parts
    scores = node("MatMul", [q, k], "products")
    scores = node("Mul", [scores, constant("scale", np.float32((WIDTH // HEADS) ** -0.5))], "scores")
    attended = node("MatMul", [node("Softmax", [scores], "softmax", axis=-1), v], "attended")
    y = node("Reshape", [node("Transpose", [attended], "back", perm=[0, 2, 1, 3]), joined], "rejoined")
    y = node("Add", [node("MatMul", [y, weights("wo", WIDTH, WIDTH)], "projected"), "x"], "residual")
    z = node("MatMul", [norm(y, "between"), weights("w1", WIDTH, 2 * WIDTH)], "wide")
    z = node("MatMul", [node("Relu", [z], "relu"), weights("w2", 2 * WIDTH, WIDTH)], "narrow")
    y = node("Add", [z, y], "encoded")
    node("ReduceMean", [y, constant("axes", np.array([1], np.int64))], "pooled", keepdims=0)
    node("Slice", [y, first, constant("ends", np.array([2], np.int64)), constant("axis", np.array([1], np.int64))], "head")

    value = lambda name, dims: helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
    outputs = [value("encoded", ["batch", "length", WIDTH]), value("pooled", ["batch", WIDTH]), value("head", ["batch", "h", WIDTH])]
    graph = helper.make_graph(nodes, "open_encoder", [value("x", ["batch", "length", WIDTH])], outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.checker.check_model(model)
    onnx.save(model, path)


main(sys.argv[1])
