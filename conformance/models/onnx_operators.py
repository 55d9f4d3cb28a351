#!/usr/bin/env python3
"""Makes cases for `conformance onnx --tests DIR` of single ONNX operators: random shapes, attributes and inputs, and the
outputs that ONNX Runtime gives. They cover combinations that the onnx package's own node tests leave out.

    onnx_operators.py DIR [FAMILY]... [--seed N]

Families are the functions below; without any, all of them. What ONNX Runtime does not run is told and left out.
Where it is known to leave the specification there are no cases; see below.

Needs: numpy onnx onnxruntime.
"""
import argparse
import pathlib

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

# Not tried: ConvTranspose with SAME padding, whose result ONNX Runtime makes smaller than size * stride where the filter
# is smaller than the stride; pools with SAME padding and dilations, which it leaves out of the sizes; Resize by
# align_corners to a size that is not a whole multiple, where it rounds the size first.

TYPES = {
    np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.float16): TensorProto.FLOAT16,
    np.dtype(np.float64): TensorProto.DOUBLE, np.dtype(np.bool_): TensorProto.BOOL,
    np.dtype(np.int8): TensorProto.INT8, np.dtype(np.uint8): TensorProto.UINT8,
    np.dtype(np.int16): TensorProto.INT16, np.dtype(np.uint16): TensorProto.UINT16,
    np.dtype(np.int32): TensorProto.INT32, np.dtype(np.int64): TensorProto.INT64,
}


class Cases:
    """The cases of one run: a folder, random numbers, and how many there are."""

    def __init__(self, folder, seed):
        self.folder, self.random, self.count = folder, np.random.default_rng(seed), 0

    def floats(self, *dims):
        return self.random.standard_normal(dims).astype(np.float32)

    def bytes(self, *dims):
        return self.random.integers(0, 256, dims).astype(np.uint8)

    def signed(self, *dims):
        return self.random.integers(-128, 128, dims).astype(np.int8)

    def pick(self, *values):
        return values[int(self.random.integers(len(values)))]

    def sizes(self, count, low, high):
        return [int(n) for n in self.random.integers(low, high, count)]

    def add(self, op, inputs, outputs, attributes=None, opset=18, domain=""):
        """One node of an operator; `outputs` is their number, or a list with names that may be empty."""
        names = [f"i{k}" if x is not None else "" for k, x in enumerate(inputs)]
        outputs = [f"o{k}" for k in range(outputs)] if isinstance(outputs, int) else outputs
        node = helper.make_node(op, names, outputs, domain=domain, **(attributes or {}))
        feeds = {name: x for name, x in zip(names, inputs) if x is not None}
        infos = [helper.make_tensor_value_info(name, TYPES[x.dtype], x.shape) for name, x in feeds.items()]
        graph = helper.make_graph([node], "operator", infos, [onnx.ValueInfoProto(name=o) for o in outputs if o])
        opsets = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 1)] if domain else [])
        model = helper.make_model(graph, opset_imports=opsets)
        model.ir_version = 8
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 4
        try:
            session = onnxruntime.InferenceSession(model.SerializeToString(), options)
            results = session.run(None, feeds)
        except Exception as error:  # noqa: BLE001: every refusal of ONNX Runtime is told
            print(f"{op} {attributes}: {str(error)[:120]}")
            return
        for info, x in zip(model.graph.output, results):
            info.CopyFrom(helper.make_tensor_value_info(info.name, TYPES[x.dtype], x.shape))
        self.count += 1
        data = self.folder / f"test_{op.lower()}_{self.count:04}" / "test_data_set_0"
        data.mkdir(parents=True, exist_ok=True)
        onnx.save(model, data.parent / "model.onnx")
        for kind, values in (("input", feeds.values()), ("output", results)):
            for k, x in enumerate(values):
                (data / f"{kind}_{k}.pb").write_bytes(numpy_helper.from_array(np.asarray(x)).SerializeToString())


def scalar(value, dtype=np.float32):
    return np.array(value, dtype)


def trimmed(inputs):
    """Without what is left out at the end."""
    while inputs[-1] is None:
        inputs = inputs[:-1]
    return inputs


def recurrent(c):
    for op, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
        for direction, count in (("forward", 1), ("reverse", 1), ("bidirectional", 2)):
            for v in range(4):
                steps, batch, width, hidden = 5, 3, 4, 6
                attributes = {"hidden_size": hidden, "direction": direction}
                state = c.floats(count, batch, hidden)
                inputs = [
                    c.floats(steps, batch, width), c.floats(count, gates * hidden, width),
                    c.floats(count, gates * hidden, hidden), c.floats(count, 2 * gates * hidden) if v else None,
                    np.array([5, 2, 3], np.int32) if v in (1, 3) else None, state if v > 1 else None,
                ]
                if op == "LSTM":
                    inputs += [c.floats(count, batch, hidden) if v > 1 else None]
                    inputs += [c.floats(count, 3 * hidden) if v == 3 else None]
                    attributes |= {"input_forget": 1} if v == 2 else {}
                if op == "GRU" and v % 2:
                    attributes["linear_before_reset"] = 1
                if v == 3:
                    attributes["clip"] = 0.7
                if v == 2 and op == "RNN":
                    attributes["activations"] = ["Relu", "LeakyRelu"][:count]
                if v == 1 and op == "GRU":
                    attributes |= {"activations": ["HardSigmoid", "Softsign"] * count,
                                   "activation_alpha": [0.3] * count, "activation_beta": [0.4] * count}
                if v == 1 and op == "LSTM":
                    attributes |= {"activations": ["Sigmoid", "Elu", "Softplus"] * count,
                                   "activation_alpha": [0.5] * count}
                while inputs[-1] is None:
                    inputs.pop()
                c.add(op, inputs, 3 if op == "LSTM" else 2, attributes)


def convolutions(c):
    for v in range(40):
        rank, groups = c.pick(1, 2, 3), c.pick(1, 1, 2)
        channels, filters = 2 * groups, 4
        kernel, places = c.sizes(rank, 1, 4), c.sizes(rank, 5, 9)
        attributes = {"strides": c.sizes(rank, 1, 3), "dilations": c.sizes(rank, 1, 3), "group": groups}
        padding = c.pick("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
        if padding == "NOTSET":
            attributes["pads"] = c.sizes(2 * rank, 0, 2)
        else:
            attributes["auto_pad"] = padding
        if padding.startswith("SAME"):
            attributes["dilations"] = [1] * rank
        x = c.floats(2, channels, *places)
        bias = [c.floats(filters)] if v % 2 else []
        c.add("Conv", [x, c.floats(filters, channels // groups, *kernel), *bias], 1, attributes)
        if padding.startswith("SAME"):
            continue
        if v % 3 == 0 and padding == "NOTSET":
            attributes["output_padding"] = [stride - 1 for stride in attributes["strides"]]
        c.add("ConvTranspose", [x, c.floats(channels, filters // groups, *kernel), *bias], 1, attributes)


def pools(c):
    for v in range(60):
        rank = c.pick(1, 2, 3)
        kernel = c.sizes(rank, 1, 4)
        attributes = {"kernel_shape": kernel, "strides": c.sizes(rank, 1, 4)}
        padding = c.pick("NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
        if padding == "NOTSET":
            attributes |= {"pads": [c.sizes(1, 0, (size + 1) // 2 or 1)[0] for size in kernel * 2],
                           "ceil_mode": c.pick(0, 1)}
        else:
            attributes["auto_pad"] = padding
        op = ("MaxPool", "AveragePool", "LpPool")[v % 3]
        if op == "MaxPool" and v % 2 and padding == "NOTSET":
            attributes["dilations"] = c.sizes(rank, 1, 3)
        if op == "AveragePool":
            attributes["count_include_pad"] = c.pick(0, 1)
        if op == "LpPool":
            attributes["p"] = c.pick(1, 2, 3)
        x = c.floats(2, 3, *c.sizes(rank, 5, 9))
        c.add(op, [x], 2 if op == "MaxPool" else 1, attributes, opset=18 if op == "LpPool" else 19)


def products(c):
    shapes = [((3, 4), (4, 5)), ((4,), (4, 5)), ((3, 4), (4,)), ((4,), (4,)), ((2, 1, 3, 4), (5, 4, 2)),
              ((2, 3, 4), (4, 2)), ((3, 4), (2, 4, 2)), ((1, 3, 4), (5, 4, 2)), ((2, 3, 4), (4,))]
    for left, right in shapes:
        c.add("MatMul", [c.floats(*left), c.floats(*right)], 1)
        c.add("MatMul", [c.floats(*left).astype(np.float64), c.floats(*right).astype(np.float64)], 1)
        integers = [c.random.integers(-9, 9, dims).astype(np.int32) for dims in (left, right)]
        c.add("MatMul", integers, 1)
        for own, zero in ((c.bytes(*left), scalar(7, np.uint8)), (c.signed(*left), scalar(-7, np.int8))):
            c.add("MatMulInteger", [own, c.bytes(*right), zero, scalar(100, np.uint8)], 1, opset=13)
    for v in range(8):
        x, y = c.floats(*((3, 4) if v & 1 else (4, 3))), c.floats(*((5, 4) if v & 2 else (4, 5)))
        more = [[], [c.floats(3, 5)], [c.floats(5)], [c.floats(3, 1)]][v % 4]
        attributes = {"transA": int(not v & 1), "transB": int(v & 2 > 0), "alpha": 0.5, "beta": 2.0}
        c.add("Gemm", [x, y, *more], 1, attributes)
        c.add("Det", [c.floats(3, 1 + v, 1 + v)], 1)


def resizes(c):
    for v in range(120):
        mode = c.pick("nearest", "linear", "cubic")
        rank = 2 if mode == "cubic" else c.pick(1, 2, 3)
        places = c.pick("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")
        attributes = {"mode": mode, "coordinate_transformation_mode": places}
        if mode == "nearest":
            attributes["nearest_mode"] = c.pick("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
        if mode == "cubic" and v % 2:
            attributes["exclude_outside"] = 1
        if v % 7 == 0 and mode != "nearest" and rank == 2 and places != "align_corners":
            attributes["antialias"] = 1
        x = c.floats(1, 2, *c.sizes(rank, 3, 8))
        if v % 2 and places != "align_corners":
            scales = [c.pick(0.5, 0.6, 0.8, 1.0, 1.5, 2.0, 2.7, 3.0) for _ in range(rank)]
            c.add("Resize", [x, None, np.array([1, 1, *scales], np.float32)], 1, attributes, opset=19)
        else:
            sizes = np.array([1, 2, *c.sizes(rank, 1, 14)])
            c.add("Resize", [x, None, None, sizes], 1, attributes, opset=19)


def attention(c):
    for v in range(30):
        batch, heads, kv_heads, queries, keys, dim, value_dim = 2, 4, (4, 2, 1)[v % 3], 3, 5 if v % 2 else 3, 8, (8, 6, 10)[v % 3]
        masks = [None, c.floats(queries, keys), c.floats(batch, 1, queries, keys),
                 c.floats(batch, heads, queries, keys), c.random.random((queries, keys)) > 0.3]
        past = v % 7 == 3
        attributes = {"is_causal": 1} if past or v % 5 == 2 else {}
        attributes |= {"scale": 0.3} if v % 2 else {}
        attributes |= {"softcap": 1.5} if v % 4 == 1 else {}
        inputs = [c.floats(batch, heads, queries, dim), c.floats(batch, kv_heads, keys, dim),
                  c.floats(batch, kv_heads, keys, value_dim), None if past else masks[v % 5]]
        if past:
            inputs += [c.floats(batch, kv_heads, 4, dim), c.floats(batch, kv_heads, 4, value_dim)]
        while inputs[-1] is None:
            inputs.pop()
        c.add("Attention", inputs, 3 if past else 1, attributes, opset=23)


def quantized(c):
    for v in range(20):
        dtype = (np.uint8, np.int8)[v % 2]
        zeros = c.random.integers(0, 100, 4).astype(dtype)
        x, scales, blocks = c.floats(3, 4, 8) * 20, np.abs(c.floats(4)) + 0.1, np.abs(c.floats(3, 4, 2)) + 0.1
        whole = c.random.integers(0, 127, (3, 4, 8)).astype(dtype)
        of_blocks = c.random.integers(0, 100, (3, 4, 2)).astype(dtype)
        for op, own in (("QuantizeLinear", x), ("DequantizeLinear", whole)):
            c.add(op, [own, scales.astype(np.float32), zeros], 1, {"axis": 1}, opset=13)
            c.add(op, [own, blocks.astype(np.float32), of_blocks], 1, {"axis": 2, "block_size": 4}, opset=21)
        c.add("DynamicQuantizeLinear", [c.floats(3, 5) * (1, 50)[v % 2] + scalar((0, 3, -9)[v % 3])], 3, opset=11)
        groups = 1 + v % 2
        x, weights = c.bytes(2, 2 * groups, 7, 6), (c.bytes, c.signed)[v // 2 % 2](4, 2, 3, 2)
        zero = scalar(0 if v % 3 and weights.dtype == np.int8 else 5, weights.dtype)
        attributes = {"group": groups, "pads": [1, 0, 1, 1]}
        c.add("ConvInteger", [x, weights, scalar(9, np.uint8), zero], 1, attributes, opset=10)
        bias = [c.random.integers(-500, 500, 4).astype(np.int32)] if v % 2 else []
        scale = (np.abs(c.floats(4)) * 0.02 + 0.01).astype(np.float32)
        own = [x, scalar(0.02), scalar(9, np.uint8), weights, scale, np.full(4, zero)]
        c.add("QLinearConv", [*own, scalar(0.3), scalar(77, np.uint8), *bias], 1, {"group": groups}, opset=10)
        left, right = c.bytes(2, 3, 4), c.bytes(4, 5)
        own = [left, scalar(0.05), scalar(100, np.uint8), right, scalar(0.07), scalar(120, np.uint8)]
        c.add("QLinearMatMul", [*own, scalar(0.4), scalar(10, np.uint8)], 1, opset=10)


def samples(c):
    for v in range(60):
        attributes = {"mode": c.pick("linear", "nearest", "cubic"), "align_corners": c.pick(0, 1),
                      "padding_mode": c.pick("zeros", "border", "reflection")}
        c.add("GridSample", [c.floats(2, 3, 4, 5), c.floats(2, 3, 3, 2) * scalar(1.3)], 1, attributes, opset=20)
        rois = np.abs(c.floats(3, 4)) * 4 + np.array([0, 0, 3, 3], np.float32)
        attributes = {"mode": ("avg", "max")[v % 2], "output_height": 3, "output_width": 2, "spatial_scale": 0.7,
                      "sampling_ratio": 1 + v % 3,
                      "coordinate_transformation_mode": ("half_pixel", "output_half_pixel")[v // 2 % 2]}
        c.add("RoiAlign", [c.floats(2, 3, 8, 9), rois, np.array([0, 1, 1])], 1, attributes, opset=16)


def microsoft(c):
    domain = "com.microsoft"
    for bits in (4, 8):
        for length, block in ((64, 32), (70, 32), (64, 16), (128, 64)):
            for zeros in (0, 1):
                blocks, rows = -(-length // block), 5
                inputs = [c.floats(2, 3, length), c.bytes(rows, blocks, block * bits // 8),
                          np.abs(c.floats(rows * blocks)) + scalar(0.01)]
                inputs += [c.bytes(rows, -(-blocks * bits // 8))] if zeros else []
                attributes = {"K": length, "N": rows, "bits": bits, "block_size": block}
                c.add("MatMulNBits", inputs, 1, attributes, domain=domain)
    for op in ("QLinearAdd", "QLinearMul"):
        inputs = [c.bytes(3, 4), scalar(0.03), scalar(9, np.uint8), c.bytes(4), scalar(0.05), scalar(99, np.uint8)]
        c.add(op, [*inputs, scalar(0.1), scalar(40, np.uint8)], 1, domain=domain)
    for op in ("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"):
        inputs = [c.floats(2, 3, 8), c.floats(2, 3, 8), c.floats(8)]
        c.add(op, inputs, 1, {"epsilon": 1e-5}, domain=domain)
        inputs += [c.floats(8)] * (2 if op == "SkipLayerNormalization" else 1)
        c.add(op, inputs, ["y", "", "", "sum"], {"epsilon": 1e-5}, domain=domain)
    for name in ("Relu", "Tanh", "Sigmoid", "LeakyRelu"):
        attributes = {"pads": [1, 1, 1, 1], "activation": name}
        attributes |= {"activation_params": [0.2]} if name == "LeakyRelu" else {}
        c.add("FusedConv", [c.floats(1, 2, 5, 5), c.floats(3, 2, 3, 3), c.floats(3)], 1, attributes, domain=domain)
    tables = c.floats(20, 4)
    for positions in (np.array([[0, 1, 2], [5, 6, 7]]), np.array([4])):
        inputs = [c.floats(2, 3, 16), positions, np.cos(tables), np.sin(tables)]
        c.add("RotaryEmbedding", inputs, 1, domain=domain)


def microsoft_attention(c):
    domain, batch, heads, dim = "com.microsoft", 2, 4, 8
    width = heads * dim
    ints = lambda *values: np.array(values, np.int32)  # noqa: E731
    for v in range(12):
        queries, past = 5, (0, 3)[v % 4 == 3]
        keys = queries + past
        masks = [None, ints(5, 3), ints(5, 4, 0, 1), (c.random.random((batch, keys)) > 0.3).astype(np.int32),
                 (c.random.random((batch, queries, keys)) > 0.3).astype(np.int32), None]
        mask = None if past else masks[v % 6]
        bias = c.floats(1, heads, queries, keys) if v % 3 == 0 else None
        old = c.floats(2, batch, heads, past, dim) if past else None
        inputs = [c.floats(batch, queries, width), c.floats(width, 3 * width) * scalar(0.2), c.floats(3 * width), mask, old]
        attributes = {"num_heads": heads} | ({"unidirectional": 1} if v % 2 else {}) | ({"scale": 0.3} if v == 5 else {})
        c.add("Attention", trimmed([*inputs, bias]), 2 if past else 1, attributes, domain=domain)
        if bias is None and v % 2 == 0:
            x, weights = c.bytes(batch, queries, width), c.signed(width, 3 * width)
            own = [x, weights, c.floats(3 * width), scalar(0.01), scalar(0.005), mask, scalar(100, np.uint8)]
            c.add("QAttention", own + [scalar(0, np.int8)], 1, {"num_heads": heads}, domain=domain)
    for v in range(12):
        queries, keys, past = 3, (3, 6)[v % 2], (0, 4)[v % 5 == 4]
        q, k, value = c.floats(batch, queries, width), c.floats(batch, keys, width), c.floats(batch, keys, width + 8 * (v % 3))
        bias = c.floats(2 * width + value.shape[2]) if v % 2 else None
        mask = [None, ints(keys + past, 2), (c.random.random((batch, keys + past)) > 0.3).astype(np.int32)][v % 3]
        more = c.floats(batch, heads, queries, keys + past) if v % 4 == 2 else None
        inputs = [q, k, value, bias, mask, more]
        if past:
            inputs += [c.floats(batch, heads, past, dim), c.floats(batch, heads, past, value.shape[2] // heads)]
        c.add("MultiHeadAttention", trimmed(inputs), 3 if past else 1, {"num_heads": heads}, domain=domain)
    attributes = {"num_heads": heads}
    c.add("MultiHeadAttention", [c.floats(batch, 3, heads, 3, dim)], 1, attributes, domain=domain)
    c.add("MultiHeadAttention", [c.floats(batch, 3, width), c.floats(batch, 5, heads, 2, dim)], 1, attributes, domain=domain)
    own = [c.floats(batch, 3, width), c.floats(batch, heads, 5, dim), c.floats(batch, heads, 5, dim)]
    c.add("MultiHeadAttention", own, 1, attributes, domain=domain)
    c.add("MultiHeadAttention", [c.floats(batch, 3, width) for _ in range(3)], 1, attributes | {"unidirectional": 1},
          domain=domain)
    words = [c.random.integers(0, 20, (batch, 5)).astype(np.int32), c.random.integers(0, 2, (batch, 5)).astype(np.int32)]
    tables = [c.floats(20, 16), c.floats(9, 16), c.floats(2, 16), c.floats(16), c.floats(16)]
    c.add("EmbedLayerNormalization", [*words, *tables], 2, domain=domain)
    c.add("EmbedLayerNormalization", [*words, *tables, (words[0] > 5).astype(np.int32)], 3, domain=domain)
    c.add("EmbedLayerNormalization", [words[0], None, *tables[:2], None, *tables[3:]], 1, domain=domain)


def microsoft_group(c):
    """Prompts, single steps, sequences of several lengths, and rooms for more keys than there are."""
    domain, heads, kv, dim = "com.microsoft", 4, 2, 16
    angles = c.floats(32, dim // 2)
    for v in range(24):
        batch = 1 + v % 2
        queries, past = ((4, 0), (1, 6), (1, 5), (3, 4))[v // 2 % 4]
        if queries > 1 and past and batch > 1:
            continue
        total, room = queries + past, past + (7 if v % 3 == 2 and past else 0)
        lengths = np.array([total - 1, total - 1 - (batch > 1 and past > 0) * 2][:batch], np.int32)
        q, k = c.floats(batch, queries, heads * dim), c.floats(batch, queries, kv * dim)
        value = c.floats(batch, queries, kv * dim)
        own = [np.concatenate([q, k, value], 2), None, None] if v % 5 == 1 else [q, k, value]
        # Places behind the counted keys are what they are: other rooms for them have zeros.
        old = [c.floats(batch, kv, room, dim), c.floats(batch, kv, room, dim)] if past else [None, None]
        inputs = [*own, *old, lengths, np.array(total, np.int32)]
        attributes = {"num_heads": heads, "kv_num_heads": kv}
        if v % 4 > 1:
            inputs += [np.cos(angles), np.sin(angles)]
            attributes |= {"do_rotary": 1, "rotary_interleaved": v // 4 % 2}
        if v % 6 == 5:
            attributes |= {"local_window_size": 3}
        if v % 7 == 3:
            attributes |= {"softcap": 2.0, "scale": 0.4}
        c.add("GroupQueryAttention", trimmed(inputs), 3, attributes, domain=domain)


FAMILIES = [attention, convolutions, microsoft, microsoft_attention, microsoft_group, pools, products, quantized, recurrent, resizes, samples]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("families", nargs="*", choices=[[], *(f.__name__ for f in FAMILIES)])
    parser.add_argument("--seed", type=int, default=1)
    flags = parser.parse_args()
    cases = Cases(flags.folder, flags.seed)
    for family in FAMILIES:
        if not flags.families or family.__name__ in flags.families:
            family(cases)
    print(f"{cases.count} cases in {flags.folder}")


if __name__ == "__main__":
    main()
