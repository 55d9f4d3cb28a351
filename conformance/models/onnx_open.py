"""Writes the models of halite/tests/open_sizes.rs: `open_encoder.onnx`, a small encoder whose batch and length are open, with the
shape arithmetic that exporters write; `open_decoder.onnx`, a small decoder as onnxruntime-genai's builder writes them, whose keys
and values grow by every call; and `open_biased.onnx`, attention whose number of keys is in the data, with a bias for each. Usage: onnx_open.py halite/tests/data"""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WIDTH, HEADS = 16, 2
WORDS, KV, DIM, ROOM = 24, 1, 16, 96


def save(nodes, name, inputs, outputs, constants, path):
    graph = helper.make_graph(nodes, name, inputs, outputs, constants)
    others = sorted({node.domain for node in nodes} - {""})
    opsets = [helper.make_opsetid("", 18), *(helper.make_opsetid(domain, 1) for domain in others)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)


def decoder(path):
    random = np.random.default_rng(12)
    nodes, constants = [], []

    def constant(array):
        constants.append(numpy_helper.from_array(np.asarray(array), f"c{len(constants)}"))
        return constants[-1].name

    def node(op, inputs, outputs=None, domain="", **attributes):
        names = [constant(x) if isinstance(x, (np.ndarray, np.generic)) else x for x in inputs]
        outputs = outputs or [f"v{len(nodes)}"]
        nodes.append(helper.make_node(op, names, outputs, domain=domain, **attributes))
        return outputs[0]

    weight = lambda *dims: random.standard_normal(dims).astype(np.float32)

    def product(x, inside, columns):
        codes = random.integers(0, 256, (columns, inside // 16, 8)).astype(np.uint8)
        scales = random.uniform(0.05, 0.1, columns * (inside // 16)).astype(np.float32)
        return node("MatMulNBits", [x, codes, scales], domain="com.microsoft", K=inside, N=columns, bits=4, block_size=16)

    scale = np.ones(WIDTH, np.float32)
    norm = lambda x: node("SimplifiedLayerNormalization", [x, scale], axis=-1, epsilon=1e-5)
    total = node("Gather", [node("Shape", ["attention_mask"]), np.int64(1)], axis=0)
    total = node("Cast", [total], to=TensorProto.INT32)
    last = node("ReduceSum", ["attention_mask", np.int64([1])], keepdims=1)
    last = node("Cast", [node("Sub", [last, np.int64([1])])], to=TensorProto.INT32)
    angles = np.outer(np.arange(ROOM), 100.0 ** (-np.arange(DIM // 2) / (DIM // 2))).astype(np.float32)
    tables = [constant(np.cos(angles)), constant(np.sin(angles))]
    x = node("Gather", [weight(WORDS, WIDTH), "input_ids"])
    ints, floats = TensorProto.INT64, TensorProto.FLOAT
    value = helper.make_tensor_value_info
    inputs = [value("input_ids", ints, ["batch", "length"]), value("attention_mask", ints, ["batch", "total"])]
    outputs = [value("logits", floats, ["batch", "length", WORDS])]
    for layer in range(2):
        past = [f"past_key_values.{layer}.{part}" for part in ("key", "value")]
        present = [f"present.{layer}.{part}" for part in ("key", "value")]
        inputs += [value(name, floats, ["batch", KV, "past", "size"]) for name in past]
        outputs += [value(name, floats, ["batch", KV, "total", "size"]) for name in present]
        packed = product(norm(x), WIDTH, (HEADS + 2 * KV) * DIM)
        made = node("GroupQueryAttention", [packed, "", "", *past, last, total, *tables], [f"attended.{layer}", *present],
                    domain="com.microsoft", num_heads=HEADS, kv_num_heads=KV, do_rotary=1)
        x = node("Add", [x, product(made, HEADS * DIM, WIDTH)])
    node("MatMul", [norm(x), weight(WIDTH, WORDS)], ["logits"])
    save(nodes, "open_decoder", inputs, outputs, constants, path)


def encoder(path):
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
    save(nodes, "open_encoder", [value("x", ["batch", "length", WIDTH])], outputs, constants, path)


def biased(path):
    value = helper.make_tensor_value_info
    ints, floats, width = TensorProto.INT32, TensorProto.FLOAT, (HEADS + 2 * KV) * DIM
    inputs = [value("qkv", floats, ["batch", "length", width]), *(value(f"past_{x}", floats, ["batch", KV, "past", DIM]) for x in "kv"),
              value("last", ints, ["batch"]), value("total", ints, []), value("bias", floats, ["one", HEADS, "length", "keys"])]
    outputs = [value("y", floats, ["batch", "length", HEADS * DIM]), *(value(f"present_{x}", floats, ["batch", KV, "all", DIM]) for x in "kv")]
    names = ["qkv", "", "", "past_k", "past_v", "last", "total", "", "", "", "bias"]
    node = helper.make_node("GroupQueryAttention", names, [output.name for output in outputs], domain="com.microsoft", num_heads=HEADS, kv_num_heads=KV)
    save([node], "open_biased", inputs, outputs, [], path)


encoder(f"{sys.argv[1]}/open_encoder.onnx")
biased(f"{sys.argv[1]}/open_biased.onnx")
decoder(f"{sys.argv[1]}/open_decoder.onnx")
