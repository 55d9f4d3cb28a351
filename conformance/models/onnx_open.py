"""Writes the models of halite/tests/open_sizes.rs: `open_encoder.onnx`, a small encoder whose batch and length are open, with the
shape arithmetic that exporters write; `open_decoder.onnx`, a small decoder as onnxruntime-genai's builder writes them, whose keys
and values grow by every call; `open_biased.onnx`, attention whose number of keys is in the data, with a bias for each; `open_picture.onnx`, which
scales a picture by a float of its size, as detectors do; `open_bits.onnx`, products with weights of few bits; `open_lists.onnx`, loops and lists whose lengths data decide; `open_repeats.onnx`, rows that are
repeated in a loop over lists of open lengths; `open_merged.onnx`, the decoder as Optimum merges it with one that has no past; `open_uneven.onnx`, borders and rows of uneven sizes; `open_pixels.onnx`, attention between
channels and places of pixels as floats; `open_joined.onnx`, rows that two loops collect beside each other; `open_recurrent.onnx`, recurrent layers over sequences of any length; and `codes.onnx`, operators between codes as ONNX Runtime's quantizer writes them. Usage: onnx_open.py halite/tests/data"""

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


def merged(decoder, path):
    """`use_cache_branch` says which of two graphs runs, over the same weights: the decoder, and one that reads no past."""
    model = onnx.load(decoder)
    own, floats = model.graph, TensorProto.FLOAT
    past = {value.name for value in own.input if value.name.startswith("past")}
    shared = {value.name for value in [*own.input, *own.initializer]}
    empty = numpy_helper.from_array(np.zeros((1, KV, 0, DIM), np.float32), "empty")
    branches = []
    for prefix, of in [("then_", lambda name: name), ("first_", lambda name: "empty" if name in past else name)]:
        rename = lambda name: of(name) if not name or name in shared else prefix + name  # noqa: E731, B023
        nodes = []
        for node in own.node:
            nodes.append(onnx.NodeProto())
            nodes[-1].CopyFrom(node)
            nodes[-1].input[:], nodes[-1].output[:] = map(rename, node.input), map(rename, node.output)
        branches.append(helper.make_graph(nodes, prefix, [], [helper.make_tensor_value_info(prefix + value.name, floats, None) for value in own.output]))
    node = helper.make_node("If", ["use_cache_branch"], [value.name for value in own.output], then_branch=branches[0], else_branch=branches[1])
    inputs = [*own.input, helper.make_tensor_value_info("use_cache_branch", TensorProto.BOOL, [1])]
    graph = helper.make_graph([node], "open_merged", inputs, own.output, [*own.initializer, empty])
    onnx.save(helper.make_model(graph, opset_imports=model.opset_import, ir_version=9), path)


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


class Made:
    """Nodes and constants in the making."""

    def __init__(self, name="", constants=None):
        self.name, self.nodes, self.constants = name, [], [] if constants is None else constants

    def constant(self, array):
        self.constants.append(numpy_helper.from_array(np.asarray(array), f"c{len(self.constants)}"))
        return self.constants[-1].name

    def ints(self, *values):
        return self.constant(np.array(values, np.int64))

    def scalar(self, value):
        return self.constant(np.array(value, np.int64))

    def __call__(self, op, *inputs, outputs=1, **attributes):
        names = [f"{self.name}{op.lower()}{len(self.nodes)}_{index}" for index in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names


def picture(path):
    """The short side becomes 24, or the long side 40; then borders up to multiples of 8, a convolution and a pool."""
    m, value = Made(), helper.make_tensor_value_info
    random = np.random.default_rng(4)
    size = m("Shape", "picture", start=1)
    single = lambda x: m("Cast", x, to=TensorProto.FLOAT)  # noqa: E731
    number = lambda x: m.constant(np.float32(x))  # noqa: E731
    sides = [single(m(op, size, keepdims=0)) for op in ("ReduceMin", "ReduceMax")]
    scales = [m("Mul", m("Reciprocal", side), number(most)) for side, most in zip(sides, (24, 40))]
    scaled = m("Floor", m("Mul", single(size), m("Min", *scales)))
    image = m("Unsqueeze", "picture", m.ints(0))
    sizes = m("Concat", m.ints(1, 3), m("Cast", scaled, to=TensorProto.INT64), axis=0)
    image = m("Resize", image, "", "", sizes, mode="linear", coordinate_transformation_mode="half_pixel")
    whole = m("Mul", m("Ceil", m("Div", scaled, number(8))), number(8))
    more = m("Cast", m("Sub", whole, scaled), to=TensorProto.INT64)
    image = m("Pad", image, m("Concat", m.ints(0, 0, 0, 0, 0, 0), more, axis=0))
    image = m("Conv", image, m.constant(random.standard_normal((4, 3, 3, 3)).astype(np.float32) / 4), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    m.nodes.append(helper.make_node("MaxPool", [image], ["features"], kernel_shape=[2, 2], strides=[2, 2]))
    inputs = [value("picture", TensorProto.FLOAT, [3, "height", "width"])]
    save(m.nodes, "open_picture", inputs, [value("features", TensorProto.FLOAT, [1, 4, "rows", "columns"])], m.constants, path)


def lists(path):
    """A loop in a loop that grows by rows, lists that are added to in front and cut, pieces, and every other row."""
    m, value = Made(), helper.make_tensor_value_info
    floats, ints, truth = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
    above = m("Greater", m("ReduceMax", "x", m.ints(1), keepdims=0), m.constant(np.float32(0)))
    count = m("Min", m("ReduceSum", m("Cast", above, to=ints), m.ints(0), keepdims=0), m.scalar(3))
    inner = Made("inner_", m.constants)
    new = inner("Add", "v", m.constant(np.float32(1)))
    row, more = inner("Gather", new, m.scalar(0)), inner("Less", "j", m.scalar(1))
    grows = helper.make_graph(inner.nodes, "inner", [value("j", ints, []), value("on", truth, []), value("v", floats, [None, 2])],
                              [value(more, truth, []), value(new, floats, [None, 2]), value(row, floats, [2])])
    outer = Made("outer_", m.constants)
    times = outer("Cast", outer("Add", "i", m.scalar(1)), to=floats)
    last, rows = outer("Loop", count, m.constant(np.array(True)), outer("Mul", "x", times), outputs=2, body=grows)
    longer = outer("SequenceInsert", "list", outer("Concat", last, rows, axis=0), m.scalar(0))
    go = outer("Identity", "go")
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(floats, [None, 2]))
    body = helper.make_graph(outer.nodes, "outer", [value("i", ints, []), value("go", truth, []), helper.make_value_info("list", kind)],
                             [value(go, truth, []), helper.make_value_info(longer, kind)])
    all = m("Loop", count, m.constant(np.array(True)), m("SequenceConstruct", "x"), body=body)
    y = m("ConcatFromSequence", m("SequenceErase", all, m.scalar(-1)), axis=0)
    pieces = m("SplitToSequence", y, m.scalar(3), axis=0)
    pieces = m("SequenceInsert", pieces, m("SequenceAt", pieces, m.scalar(-1)), m.scalar(0))
    places = m("Range", m.scalar(0), m("Squeeze", m("Shape", y, start=0, end=1)), m.scalar(2))
    m.nodes.append(helper.make_node("ConcatFromSequence", [pieces], ["joined"], axis=0))
    m.nodes.append(helper.make_node("Gather", [y, places], ["others"]))
    outputs = [value("joined", floats, ["all", 2]), value("others", floats, ["half", 2])]
    save(m.nodes, "open_lists", [value("x", floats, ["rows", 2])], outputs, m.constants, path)


def repeats(path):
    """Each row as often as a number says, as exporters write `repeat_interleave`: a loop over lists of as many tensors as there are rows; a convolution and regions of that. And two parts of sizes
    that are inputs, the other way round."""
    m, value = Made(), helper.make_tensor_value_info
    floats, ints, truth = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
    rows = m("SplitToSequence", "x", m.scalar(1), axis=0)
    counts = m("SplitToSequence", "times", m.scalar(1), axis=0)
    last = m("Squeeze", m("SequenceAt", m("SplitToSequence", "x", axis=1, keepdims=0), m.scalar(-1)))
    inner = Made("inner_", m.constants)
    size = inner("Concat", inner("SequenceAt", counts, "i"), m.ints(2), axis=0)
    ones = inner("ConstantOfShape", inner("Shape", size), value=numpy_helper.from_array(np.array([1], np.int64)))
    size = inner("Where", inner("Equal", size, inner("Mul", ones, m.scalar(-1))), ones, size)
    longer = inner("SequenceInsert", "list", inner("Expand", inner("SequenceAt", rows, "i"), size))
    go = inner("Identity", "go")
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(floats, [None, 2]))
    body = helper.make_graph(inner.nodes, "inner", [value("i", ints, []), value("go", truth, []), helper.make_value_info("list", kind)],
                             [value(go, truth, []), helper.make_value_info(longer, kind)])
    count = m("Squeeze", m("Shape", "times"))
    all = m("Loop", count, m.constant(np.array(True)), m("SequenceEmpty"), body=body)
    parts = m("SplitToSequence", "x", "parts", axis=0)
    m.nodes.append(helper.make_node("ConcatFromSequence", [all], ["repeated"], axis=0))
    corner = m("Mul", "repeated", m.constant(np.float32(0)))
    boxes = m("Concat", corner, m("Add", corner, m.constant(np.float32(4))), axis=1)
    ramp = m.constant(np.tile(np.arange(8, dtype=np.float32), (1, 1, 8, 1)))
    first = m("ConstantOfShape", m("Shape", "repeated", start=0, end=1), value=numpy_helper.from_array(np.array([0], np.int64)))
    m.nodes.append(helper.make_node("RoiAlign", [ramp, boxes, first], ["regions"], output_height=2, output_width=2, sampling_ratio=2))
    image = m("Unsqueeze", m("Transpose", "repeated", perm=[1, 0]), m.ints(0))
    m.nodes.append(helper.make_node("Conv", [image, m.constant(np.ones((1, 2, 1), np.float32))], ["sums"], kernel_shape=[1]))
    m.nodes.append(helper.make_node("Concat", [m("SequenceAt", parts, m.scalar(place)) for place in (1, 0)], ["swapped"], axis=0))
    m.nodes.append(helper.make_node("Neg", [last], ["last"]))
    # For each part its sum, and the part in units of its number of rows.
    each = Made("each_", m.constants)
    total, count = each("ReduceSum", "part", m.ints(0), keepdims=1), each("Cast", each("Shape", "part", start=0, end=1), to=floats)
    results = [value(total, floats, [1, 2]), value(each("Mul", each("Div", "part", count), "unit"), floats, [None, 2])]
    body = helper.make_graph(each.nodes, "each", [value("part", floats, [None, 2]), value("unit", floats, [])], results)
    m.nodes.append(helper.make_node("SequenceMap", [parts, m.constant(np.float32(2))], ["total_list", "unit_list"], body=body))
    for name in ("total", "unit"):
        m.nodes.append(helper.make_node("ConcatFromSequence", [f"{name}_list"], [f"{name}s"], axis=0))
    outputs = [value("totals", floats, [None, 2]), value("units", floats, ["n", 2]), value("repeated", floats, ["all", 2]), value("swapped", floats, ["n", 2]), value("last", floats, ["n"]), value("sums", floats, [1, 1, "all"]), value("regions", floats, ["all", 1, 2, 2])]
    inputs = [value("x", floats, ["n", 2]), value("times", ints, ["n"]), value("parts", ints, [2])]
    save(m.nodes, "open_repeats", inputs, outputs, m.constants, path)


def values(path):
    """What needs numbers that sizes or data decide: scales that are quotients of sizes, no rows of an open width, a size without what is found, labels, parts of computed sizes, and
    what has to be 1 or 4 by data alone."""
    m, value = Made(), helper.make_tensor_value_info
    floats, ints = TensorProto.FLOAT, TensorProto.INT64
    rows, one, four = m("Shape", "x", start=0, end=1), m.ints(1), m.ints(4)
    single = lambda x: m("Cast", x, to=floats)  # noqa: E731
    more = m("Sub", m("Mul", rows, m.ints(2)), m.ints(3))
    ones = m.constant(np.ones(2, np.float32))
    scales = m("Concat", ones, m("Div", single(more), single(rows)), m.constant(np.ones(1, np.float32)), axis=0)
    image = m("Unsqueeze", "x", m.ints(0, 1))
    above = m("Greater", "x", m.constant(np.float32(0)))
    any_above = m("Reshape", m("ReduceMax", m("Cast", above, to=ints), keepdims=0), one)
    found = m("Reshape", m("ReduceSum", m("Cast", above, to=ints), keepdims=0), one)
    # At most half of the elements of a row are above 0.
    left = m("Sub", m("Mul", rows, four), found)
    is_number = m("Reshape", m("ReduceMax", m("Cast", m("Less", "x", m.constant(np.float32(1e9))), to=ints), keepdims=0), one)
    start = m.ints(0)
    corner = m("Slice", "x", start, m("Mul", is_number, m.ints(2)), one)
    boxes = m("Concat", corner, m("Add", corner, m.constant(np.float32(1))), axis=1)
    scores = m("Unsqueeze", m("ReduceSum", "x", one, keepdims=0), m.ints(0, 1))
    limits = [m.ints(3), m.constant(np.array([0.5], np.float32)), m.constant(np.array([-9], np.float32))]
    column = m("Squeeze", m("Slice", "x", start, is_number, one), one)
    # As many rows as begin with a number above -2 are one part, the others another.
    begins = m("Greater", m("Slice", "x", start, one, one), m.constant(np.float32(-2)))
    front = m("Reshape", m("ReduceSum", m("Cast", begins, to=ints), keepdims=0), one)
    parts = m("SplitToSequence", "x", m("Concat", front, m("Sub", rows, front), axis=0), axis=0)
    parts = [m("SequenceAt", parts, m.scalar(place)) for place in (1, 0)]

    def give(name, op, *inputs, **attributes):
        m.nodes.append(helper.make_node(op, list(inputs), [name], **attributes))

    give("scaled", "Resize", image, "", scales, mode="linear", coordinate_transformation_mode="half_pixel")
    m.nodes.append(helper.make_node("TopK", [m("Slice", "x", start, one, one), any_above], ["top", "places"], axis=1))
    give("left", "Expand", m.constant(np.ones(1, np.float32)), left)
    give("joined", "Concat", m("ConstantOfShape", m("Concat", start, rows, axis=0)), m("Transpose", "x"), axis=0)
    give("products", "Einsum", "x", "x", equation="ij,kj->ik")
    give("kept", "NonMaxSuppression", m("Unsqueeze", boxes, start), scores, *limits)
    give("column", "Neg", column)
    give("parted", "Concat", *parts, axis=0)
    give("weighted", "MatMul", m("Slice", "x", start, m("Mul", is_number, four), one), m.constant(np.array([[1], [2], [3], [4]], np.float32)))
    outputs = [value("scaled", floats, [1, 1, "s", 4]), value("top", floats, ["n", "k"]), value("left", floats, ["l"]), value("joined", floats, [4, "n"]),
               value("products", floats, ["n", "n"]), value("kept", ints, ["boxes", 3]), value("column", floats, ["n"]),
               value("parted", floats, ["all", 4]), value("weighted", floats, ["n", 1])]
    save(m.nodes, "open_values", [value("x", floats, ["n", 4])], outputs, m.constants, path)


def uneven(path):
    """Rows whose kernels are faster for multiples of 2 and 4; and borders that data decide on both sides of four and of six dimensions."""
    m, floats = Made(), TensorProto.FLOAT
    value = helper.make_tensor_value_info

    def give(name, op, *inputs, **attributes):
        m.nodes.append(helper.make_node(op, list(inputs), [name], **attributes))

    def borders(x):
        """One before and behind where the last place of a number that is not 0 is odd."""
        last = m("ReduceMax", m("NonZero", x), m.ints(1), keepdims=0)
        odd = m("Mod", last, m.ints(2))
        return m("Concat", odd, odd, axis=0)

    give("put", "ScatterND", "x", m.constant(np.array([[0], [1]], np.int64)), m.constant(np.full((2, 3), 9, np.float32)))
    give("turned", "Transpose", m("Concat", "x", "x", axis=1), perm=[1, 0])
    give("products", "Pad", m("MatMul", "x", m("Transpose", "x", perm=[1, 0])), m.ints(0, 1, 0, 0))
    four, six = m("Reshape", "x", m.ints(1, -1, 3, 1)), m("Reshape", "x", m.ints(1, 1, -1, 1, 3, 1))
    give("four", "Pad", four, borders(four))
    give("six", "Pad", six, borders(six))
    outputs = [value("put", floats, ["n", 3]), value("turned", floats, [6, "n"]), value("products", floats, ["n", "m"]), value("four", floats, ["a", "b", "c", "d"]),
               value("six", floats, ["e", "f", "g", "h", "i", "j"])]
    save(m.nodes, "open_uneven", [value("x", floats, ["n", 3])], outputs, m.constants, path)


def pixels(path):
    """Attention between the channels of a picture, whose lines are all pixels; places as floats of its sizes (`torch.arange(w, dtype=torch.float32)`), on which
    a window of the picture's own size is cut out of one with borders."""
    m, floats = Made(), TensorProto.FLOAT
    value = helper.make_tensor_value_info

    def give(name, op, *inputs, **attributes):
        m.nodes.append(helper.make_node(op, list(inputs), [name], **attributes))

    shape = m("Shape", "x")
    height, width = (m("Gather", shape, m.scalar(axis)) for axis in (1, 2))
    line = lambda start, size, step: m("Range", *(m.constant(np.float32(start)), m("Cast", size, to=floats), m.constant(np.float32(step))))  # noqa: E731
    pixels = m("Mul", m("Reshape", "x", m.ints(1, 1, 2, -1)), m.constant(np.float32(0.125)))
    weights = m("Softmax", m("MatMul", pixels, m("Transpose", pixels, perm=[0, 1, 3, 2])), axis=-1)
    give("attended", "Reshape", m("MatMul", weights, pixels), shape)
    placed = m("Add", m("Add", "x", line(0, width, 1)), m("Reshape", line(0, height, 1), m.ints(-1, 1)))
    bordered = m("Pad", placed, m.ints(0, 1, 1, 0, 1, 1))
    give("moved", "Slice", bordered, m.ints(0, 0), m("Concat", m("Reshape", height, m.ints(1)), m("Reshape", width, m.ints(1)), axis=0), m.ints(1, 2))
    give("halves", "Range", m.constant(np.float32(-1)), m("Cast", width, to=floats), m.constant(np.float32(0.5)))
    outputs = [value("attended", floats, [2, "height", "width"]), value("moved", floats, [2, "height", "width"]), value("halves", floats, ["halves"])]
    save(m.nodes, "open_pixels", [value("x", floats, [2, "height", "width"])], outputs, m.constants, path)


def codes(path):
    """What ONNX Runtime's static quantizer writes: codes of 16 and 4 bits of `com.microsoft`, and operators between codes."""
    m, floats, own = Made(), TensorProto.FLOAT, {"domain": "com.microsoft"}
    value = helper.make_tensor_value_info
    number = lambda scale, zero: [m.constant(np.float32(scale)), m.constant(zero)]  # noqa: E731

    def give(name, op, *inputs, **attributes):
        m.nodes.append(helper.make_node(op, list(inputs), [name], **attributes))

    wide, byte, part = number(0.001, np.uint16(32768)), number(0.05, np.uint8(128)), number(1 / 256, np.uint8(0))
    give("wide", "DequantizeLinear", m("QuantizeLinear", "x", *wide, **own), *wide, **own)
    m.constants.append(helper.make_tensor("nibble", TensorProto.INT4, [], [-1]))
    narrow = [m.constant(np.float32(0.5)), "nibble"]
    give("narrow", "DequantizeLinear", m("QuantizeLinear", "x", *narrow, **own), *narrow, **own)
    code = m("QuantizeLinear", "x", *byte)
    give("shares", "DequantizeLinear", m("QLinearSoftmax", code, *byte, *part, axis=-1, opset=13, **own), *part)
    image = m("Reshape", code, m.ints(1, 1, 2, 4))
    give("pooled", "DequantizeLinear", m("QLinearAveragePool", image, *byte, *byte, kernel_shape=[2, 2], strides=[2, 2], **own), *byte)
    image = m("Reshape", code, m.ints(1, 2, 2, 2))
    give("last", "DequantizeLinear", m("QLinearAveragePool", image, *byte, *byte, kernel_shape=[2, 1], channels_last=1, **own), *byte)
    above = m("Greater", "x", m.constant(np.float32(0)))
    give("above", "DequantizeLinear", m("QLinearWhere", above, code, *byte, m.constant(np.uint8(8)), *part, *byte, **own), *byte)
    outputs = [value(name, floats, [2, 4]) for name in ("wide", "narrow", "shares", "above")] + [value("pooled", floats, [1, 1, 1, 2]), value("last", floats, [1, 1, 2, 2])]
    save(m.nodes, "codes", [value("x", floats, [2, 4])], outputs, m.constants, path)


def joined(path):
    """Rows that two loops collect, side by side: each collects as many as are above 0, whose number the loops find. And rows counted by their whole numbers, as PyTorch's exporter
    writes `index_add`: ones in the shape of a first row, where data decide both how many there are and how many kinds."""
    m, value = Made(), helper.make_tensor_value_info
    floats, ints, truth = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
    first = m("Gather", "x", m.scalar(0), axis=1)
    places = m("NonZero", m("Greater", first, m.constant(np.float32(0))))
    count = m("Size", places)
    found = m("Gather", "x", m("Squeeze", places, m.ints(0)), axis=0)
    yes = m.constant(np.array(True))

    def collect(name, op):
        inner = Made(name, m.constants)
        row = inner(op, inner("Gather", found, name + "i", axis=0))
        # Known only where the loop is, so that no pass sees that it goes on.
        go = inner("Cast", yes, to=truth)
        body = helper.make_graph(inner.nodes, name, [value(name + "i", ints, []), value(name + "go", truth, [])], [value(go, truth, []), value(row, floats, [2])])
        return m("Loop", count, yes, body=body)

    m.nodes.append(helper.make_node("Concat", [collect("a_", "Neg"), collect("b_", "Abs")], ["joined"], axis=1))
    m.nodes.append(helper.make_node("Unique", [m("Floor", m("Gather", found, m.scalar(0), axis=1))], ["kinds", "", "which", ""], sorted=1))
    zeros = m("ConstantOfShape", m("Shape", "kinds"))
    ones = m("ConstantOfShape", m("Shape", "which"), value=numpy_helper.from_array(np.array([1], np.float32)))
    ones = m("Expand", ones, m("Shape", m("Slice", zeros, m.ints(0), m.ints(1), m.ints(0))))
    m.nodes.append(helper.make_node("ScatterElements", [zeros, m("Expand", "which", m("Shape", ones)), ones], ["counts"], axis=0, reduction="add"))
    outputs = [value("joined", floats, ["found", 4]), value("kinds", floats, ["kinds"]), value("counts", floats, ["kinds"])]
    save(m.nodes, "open_joined", [value("x", floats, ["n", 2])], outputs, m.constants, path)


def bits(path):
    """Products of an open number of rows with weights of 2, 4 and 8 bits in blocks, whose zero points are bytes, floats or none."""
    random, m, value, floats = np.random.default_rng(21), Made(), helper.make_tensor_value_info, TensorProto.FLOAT

    def product(name, bits, block, *zeros):
        packed = m.constant(random.integers(0, 256, (24, 64 // block, block * bits // 8)).astype(np.uint8))
        scales = m.constant(random.uniform(0.01, 0.1, 24 * 64 // block).astype(np.float32))
        inputs = ["x", packed, scales, *(m.constant(zero) for zero in zeros)]
        m.nodes.append(helper.make_node("MatMulNBits", inputs, [name], domain="com.microsoft", K=64, N=24, bits=bits, block_size=block))

    product("two", 2, 32)
    product("four", 4, 16, random.integers(0, 256, 24 * 2).astype(np.uint8))
    product("eight", 8, 64)
    product("moved", 4, 32, random.uniform(0, 15, 48).astype(np.float32))
    outputs = [value(name, floats, ["rows", 24]) for name in ("two", "four", "eight", "moved")]
    save(m.nodes, "open_bits", [value("x", floats, ["rows", 64])], outputs, m.constants, path)


def recurrent(path):
    """An LSTM both ways over sequences with lengths of their own, a GRU backwards and a plain layer, of steps and sequences that are open."""
    m, value, floats = Made(), helper.make_tensor_value_info, TensorProto.FLOAT
    random, below, width = np.random.default_rng(31), "x", 5
    for index, (kind, gates, units, direction) in enumerate((("LSTM", 4, 12, "bidirectional"), ("GRU", 3, 20, "reverse"), ("RNN", 1, 8, "forward"))):
        count = 2 if direction == "bidirectional" else 1
        own = [m.constant((random.standard_normal(dims) / 3).astype(np.float32)) for dims in ((count, gates * units, width), (count, gates * units, units), (count, 2 * gates * units))]
        lengths = ["lengths"] if index == 0 else []
        attributes = {"linear_before_reset": 1} if kind == "GRU" else {}
        names = [f"all{index}", f"last{index}", *(["cells"] if kind == "LSTM" else [])]
        m.nodes.append(helper.make_node(kind, [below, *own, *lengths], names, hidden_size=units, direction=direction, **attributes))
        width = count * units
        below = m("Reshape", m("Transpose", names[0], perm=[0, 2, 1, 3]), m.ints(0, 0, width))
    m.nodes.append(helper.make_node("Identity", [below], ["y"]))
    inputs = [value("x", floats, ["length", "batch", 5]), value("lengths", TensorProto.INT32, ["batch"])]
    outputs = [value("y", floats, ["length", "batch", 8]), value("cells", floats, [2, "batch", 12]), value("last1", floats, [1, "batch", 20])]
    save(m.nodes, "open_recurrent", inputs, outputs, m.constants, path)


bits(f"{sys.argv[1]}/open_bits.onnx")
recurrent(f"{sys.argv[1]}/open_recurrent.onnx")
codes(f"{sys.argv[1]}/codes.onnx")
joined(f"{sys.argv[1]}/open_joined.onnx")
pixels(f"{sys.argv[1]}/open_pixels.onnx")
picture(f"{sys.argv[1]}/open_picture.onnx")
uneven(f"{sys.argv[1]}/open_uneven.onnx")
values(f"{sys.argv[1]}/open_values.onnx")
lists(f"{sys.argv[1]}/open_lists.onnx")
repeats(f"{sys.argv[1]}/open_repeats.onnx")
encoder(f"{sys.argv[1]}/open_encoder.onnx")
biased(f"{sys.argv[1]}/open_biased.onnx")
decoder(f"{sys.argv[1]}/open_decoder.onnx")
merged(f"{sys.argv[1]}/open_decoder.onnx", f"{sys.argv[1]}/open_merged.onnx")
