"""What onnx_sizes.py exports of the kind that is written node by node: loops, scans, sequences, branches, what is found."""

import numpy as np
from onnx_sizes_base import Drawn, case


def graph(nodes, inputs, outputs, constants=(), opset=18):
    from onnx import TensorProto, helper, numpy_helper

    types = {"f": TensorProto.FLOAT, "i": TensorProto.INT64, "b": TensorProto.BOOL}
    value = lambda name, kind, dims: helper.make_tensor_value_info(name, types[kind], dims)  # noqa: E731
    made = helper.make_graph(nodes, "g", [value(*one) for one in inputs], [value(*one) for one in outputs], [numpy_helper.from_array(np.asarray(v), k) for k, v in constants])
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def inner(nodes, inputs, outputs):
    from onnx import TensorProto, helper

    types = {"f": TensorProto.FLOAT, "i": TensorProto.INT64, "b": TensorProto.BOOL}
    value = lambda name, kind, dims: helper.make_tensor_value_info(name, types[kind], dims)  # noqa: E731
    return helper.make_graph(nodes, "body", [value(*one) for one in inputs], [value(*one) for one in outputs])


@case
def loop_grows():
    """A loop whose number of runs is an input, and whose results grow by a row each."""
    from onnx import helper

    n = helper.make_node
    body = inner(
        [n("MatMul", ["state", "w"], ["m"]), n("Tanh", ["m"], ["next"]), n("Identity", ["next"], ["row"]), n("Identity", ["go"], ["more"])],
        [("i", "i", []), ("go", "b", []), ("state", "f", ["b", 4])], [("more", "b", []), ("next", "f", ["b", 4]), ("row", "f", ["b", 4])])
    draw = Drawn()
    model = graph([n("Loop", ["count", "yes", "x"], ["last", "rows"], body=body), n("ReduceSum", ["rows", "axis"], ["sum"], keepdims=0)],
                  [("count", "i", []), ("x", "f", ["b", 4])], [("last", "f", ["b", 4]), ("rows", "f", ["t", "b", 4]), ("sum", "f", ["b", 4])],
                  [("yes", np.array(True)), ("w", draw.floats(4, 4)), ("axis", np.array([0], np.int64))])
    return model, [[np.array(count, np.int64), draw.floats(b, 4)] for count, b in [(3, 2), (5, 1), (1, 3), (9, 2), (17, 1)]]


@case
def loop_concat():
    """A loop that carries what grows by Concat."""
    from onnx import helper

    n = helper.make_node
    body = inner(
        [n("Slice", ["all", "minus", "end", "zero1"], ["last"]), n("Mul", ["last", "w"], ["m"]), n("Concat", ["all", "m"], ["longer"], axis=0), n("Identity", ["go"], ["more"])],
        [("i", "i", []), ("go", "b", []), ("all", "f", ["t", 4])], [("more", "b", []), ("longer", "f", ["t2", 4])])
    draw = Drawn()
    model = graph([n("Loop", ["count", "yes", "x"], ["y"], body=body)],
                  [("count", "i", []), ("x", "f", ["t", 4])], [("y", "f", ["u", 4])],
                  [("yes", np.array(True)), ("w", draw.floats(1, 4)), ("minus", np.array([-1], np.int64)), ("end", np.array([2**62], np.int64)), ("zero1", np.array([0], np.int64))])
    return model, [[np.array(count, np.int64), draw.floats(t, 4)] for count, t in [(3, 2), (5, 1), (1, 3), (4, 7)]]


@case
def scan():
    """A scan over an open length, forwards and back."""
    from onnx import helper

    n = helper.make_node

    def body(k):
        nodes = [n("Add", [k + "s", k + "r"], [k + "a"]), n("Tanh", [k + "a"], [k + "t"]), n("Identity", [k + "t"], [k + "o"])]
        both = lambda a, b: [(k + name, "f", ["b", 3]) for name in (a, b)]  # noqa: E731
        return inner(nodes, both("s", "r"), both("t", "o"))

    draw = Drawn()
    model = graph([n("Scan", ["s0", "x"], ["s1", "y"], body=body("f"), num_scan_inputs=1), n("Scan", ["s1", "y"], ["s2", "z"], body=body("g"), num_scan_inputs=1, scan_input_directions=[1], scan_output_directions=[1])],
                  [("s0", "f", ["b", 3]), ("x", "f", ["t", "b", 3])], [("s2", "f", ["b", 3]), ("z", "f", ["t", "b", 3])])
    return model, [[draw.floats(b, 3), draw.floats(t, b, 3)] for t, b in [(4, 2), (5, 2), (9, 1), (33, 3), (1, 2)]]


@case
def sequences():
    """An input split in pieces of 3, turned around, put together."""
    from onnx import helper

    n = helper.make_node
    model = graph([n("SplitToSequence", ["x", "three"], ["s"], axis=0), n("SequenceLength", ["s"], ["count"]), n("SequenceAt", ["s", "zero"], ["first"]),
                   n("SequenceAt", ["s", "minus"], ["last"]), n("SequenceInsert", ["s", "first"], ["longer"]), n("ConcatFromSequence", ["longer"], ["y"], axis=0)],
                  [("x", "f", ["n", 4])], [("count", "i", []), ("last", "f", ["m", 4]), ("y", "f", ["k", 4])],
                  [("three", np.array(3, np.int64)), ("zero", np.array(0, np.int64)), ("minus", np.array(-1, np.int64))])
    draw = Drawn()
    return model, [[draw.floats(length, 4)] for length in (6, 7, 9, 12, 20)]


@case
def branches():
    """A branch by what is found, with results of other sizes."""
    from onnx import helper

    n = helper.make_node
    yes = inner([n("Concat", ["x", "x"], ["t"], axis=0)], [], [("t", "f", ["p", 4])])
    no = inner([n("Slice", ["x", "zero1", "one1"], ["e"])], [], [("e", "f", ["q", 4])])
    model = graph([n("ReduceSum", ["x"], ["sum"], keepdims=0), n("Greater", ["sum", "zero"], ["is"]), n("If", ["is"], ["y"], then_branch=yes, else_branch=no), n("Relu", ["y"], ["z"])],
                  [("x", "f", ["n", 4])], [("z", "f", ["m", 4])], [("zero", np.float32(0)), ("zero1", np.array([0], np.int64)), ("one1", np.array([1], np.int64))])
    draw = Drawn()
    return model, [[draw.floats(length, 4) + shift] for length, shift in [(3, 1), (3, -1), (5, 1), (8, -1), (17, 1), (2, -1)]]


@case
def found():
    """What is above a mean, counted, made unique, sorted out: sizes that data decide, and open ones beside them."""
    from onnx import helper

    n = helper.make_node
    model = graph([n("ReduceMean", ["x"], ["mean"], keepdims=0), n("Greater", ["x", "mean"], ["above"]), n("NonZero", ["above"], ["places"]), n("Transpose", ["places"], ["pairs"]),
                   n("GatherND", ["x", "pairs"], ["values"]), n("Compress", ["x", "rows"], ["some"], axis=0), n("Unique", ["ids"], ["each", "", "", "times"], sorted=1), n("TopK", ["values", "two"], ["top", "at"])],
                  [("x", "f", ["n", 5]), ("rows", "b", ["n"]), ("ids", "i", ["m"])], [("values", "f", ["v"]), ("some", "f", ["s", 5]), ("each", "i", ["u"]), ("times", "i", ["u"]), ("top", "f", [2])], [("two", np.array([2], np.int64))])
    draw = Drawn()
    return model, [[draw.floats(length, 5), draw.floats(length) > 0, draw.ints(6, length + 3)] for length in (3, 4, 9, 17, 40)]
