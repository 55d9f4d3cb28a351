"""What onnx_sizes.py exports of the kind that is written node by node and that came last: stacks, trees and tables that loops keep, loops that a value ends,
letters and boxes that are found, operators whose counts, places and lengths are inputs."""

import numpy as np
from onnx_sizes_base import Drawn, case
from onnx_sizes_graphs import graph, inner


def node(kind, inputs, outputs, **more):
    from onnx import helper

    return helper.make_node(kind, inputs.split(" "), outputs.split(" "), **more)


def integers(**named):
    return [(name, np.array(value, np.int64)) for name, value in named.items()]


@case
def stack():
    """A parser that shifts and reduces: a loop keeps a sequence of vectors, and an `If` in it takes two from its end and puts one there."""
    draw = Drawn()
    from onnx import TensorProto, helper

    vectors = lambda name: helper.make_tensor_sequence_value_info(name, TensorProto.FLOAT, [4])  # noqa: E731
    reduce = helper.make_graph(
        [node("SequenceAt", "kept last", "b"), node("SequenceErase", "kept last", "one"), node("SequenceAt", "one last", "a"), node("SequenceErase", "one last", "none"),
         node("Concat", "a b", "ab", axis=0), node("MatMul", "ab w", "m"), node("Tanh", "m", "ab1"), node("SequenceInsert", "none ab1", "reduced")], "reduce", [], [vectors("reduced")])
    shift = helper.make_graph([node("Gather", "words at", "word", axis=0), node("SequenceInsert", "kept word", "shifted")], "shift", [], [vectors("shifted")])
    scalar = lambda name, kind: helper.make_tensor_value_info(name, kind, [])  # noqa: E731
    body = helper.make_graph(
        [node("Gather", "actions i", "action", axis=0), node("Equal", "action one0", "is_reduce"), helper.make_node("If", ["is_reduce"], ["after"], then_branch=reduce, else_branch=shift),
         node("Sub", "one0 action", "step"), node("Add", "at step", "next"), node("Identity", "go", "more")],
        "body", [scalar("i", TensorProto.INT64), scalar("go", TensorProto.BOOL), vectors("kept"), scalar("at", TensorProto.INT64)], [scalar("more", TensorProto.BOOL), vectors("after"), scalar("next", TensorProto.INT64)])
    nodes = [helper.make_node("SequenceEmpty", [], ["empty"]), node("Size", "actions", "count"), helper.make_node("Loop", ["count", "yes", "empty", "zero0"], ["whole", "read"], body=body),
             node("SequenceLength", "whole", "depth"), node("ConcatFromSequence", "whole", "rows", axis=0, new_axis=1)]
    model = graph(nodes, [("words", "f", ["n", 4]), ("actions", "i", ["m"])], [("rows", "f", ["k", 4]), ("depth", "i", []), ("read", "i", [])],
                  [("yes", np.array(True)), ("w", draw.floats(8, 4)), *integers(one0=1, zero0=0, last=-1)])
    lines = ([0, 0, 1], [0, 0, 1, 0, 1], [0, 0, 0, 1, 1], [0, 0, 0, 0], [0, 0, 1, 0, 0, 1, 1, 0, 0, 1, 1])
    return model, [[draw.floats(line.count(0), 4), np.array(line, np.int64)] for line in lines]


@case
def tree():
    """Sums of a tree over its parents, the last node first: a scan that writes rows of its state where data say."""
    body = inner([node("Gather", "state id", "own", axis=0), node("Tanh", "own", "t"), node("Gather", "state up", "parent", axis=0), node("Add", "parent t", "sum"), node("Unsqueeze", "up axis0", "u1"),
                  node("Unsqueeze", "u1 axis0", "place"), node("Unsqueeze", "sum axis0", "row"), node("ScatterND", "state place row", "new"), node("Identity", "t", "out")],
                 [("state", "f", ["n", 5]), ("id", "i", []), ("up", "i", [])], [("new", "f", ["n", 5]), ("out", "f", [5])])
    model = graph([node("Scan", "x ids ups", "y given", body=body, num_scan_inputs=2, scan_input_directions=[1, 1], scan_output_directions=[1])],
                  [("x", "f", ["n", 5]), ("ids", "i", ["m"]), ("ups", "i", ["m"])], [("y", "f", ["n", 5]), ("given", "f", ["m", 5])], integers(axis0=[0]))
    draw = Drawn()

    def call(count):
        return [draw.floats(count, 5), np.arange(1, count), np.array([draw.random.integers(0, i) for i in range(1, count)], np.int64)]

    return model, [call(count) for count in (4, 2, 7, 20, 33)]


@case
def until():
    """Newton's steps until all are near, at most 50: a loop without a count, whose end data decide, and what it found on its way."""
    from onnx import helper

    body = inner([node("Mul", "s s", "ss"), node("Sub", "ss x", "f"), node("Div", "f s", "fs"), node("Mul", "fs half", "step"), node("Sub", "s step", "next"), node("Abs", "step", "far"),
                  node("ReduceMax", "far", "most", keepdims=0), node("Identity", "most", "was"), node("Greater", "most near", "more")],
                 [("i", "i", []), ("go", "b", []), ("s", "f", ["n"])], [("more", "b", []), ("next", "f", ["n"]), ("was", "f", [])])
    nodes = [node("Abs", "given", "a"), node("Add", "a one", "x"), helper.make_node("Loop", ["", "yes", "x"], ["root", "steps"], body=body), node("Size", "steps", "count")]
    model = graph(nodes, [("given", "f", ["n"])], [("root", "f", ["n"]), ("count", "i", [])], [("yes", np.array(True)), ("half", np.float32(0.5)), ("near", np.float32(0.05)), ("one", np.float32(1))])
    draw = Drawn()
    return model, [[draw.floats(count) * scale] for count, scale in [(3, 1), (3, 1000), (8, 0.1), (1, 30), (40, 5)]]


@case
def edits():
    """The distance of two words by a table whose rows two loops make, one in the other."""
    from onnx import helper

    cell = inner([node("Gather", "row j", "up_left", axis=0), node("Add", "j one0", "j1"), node("Gather", "row j1", "up", axis=0), node("Gather", "b j", "letter", axis=0), node("Equal", "letter own", "same"),
                  node("Where", "same zero0 one0", "price"), node("Add", "up_left price", "c1"), node("Add", "up one0", "c2"), node("Add", "left one0", "c3"), node("Min", "c1 c2 c3", "c"),
                  node("Identity", "c", "kept"), node("Identity", "go2", "more2")],
                 [("j", "i", []), ("go2", "b", []), ("left", "i", [])], [("more2", "b", []), ("c", "i", []), ("kept", "i", [])])
    body = inner([node("Gather", "a i", "own", axis=0), node("Add", "i one0", "first"), helper.make_node("Loop", ["columns", "yes", "first"], ["end", "cells"], body=cell), node("Unsqueeze", "first axis0", "f1"),
                  node("Concat", "f1 cells", "next", axis=0), node("Identity", "go", "more")],
                 [("i", "i", []), ("go", "b", []), ("row", "i", ["n"])], [("more", "b", []), ("next", "i", ["n"])])
    nodes = [node("Size", "a", "rows"), node("Size", "b", "columns"), node("Add", "columns one0", "width"), node("Range", "zero0 width one0", "start"), helper.make_node("Loop", ["rows", "yes", "start"], ["last"], body=body),
             node("Gather", "last columns", "distance", axis=0)]
    model = graph(nodes, [("a", "i", ["n"]), ("b", "i", ["m"])], [("last", "i", ["k"]), ("distance", "i", [])], [("yes", np.array(True)), *integers(one0=1, zero0=0, axis0=[0])])
    draw = Drawn()
    return model, [[draw.ints(3, n), draw.ints(3, m)] for n, m in [(3, 4), (4, 4), (1, 6), (9, 5), (12, 12)]]


@case
def letters():
    """The letters that a line of scores says: the best of each place, what repeats and blanks left out, where each began."""
    nodes = [node("ArgMax", "scores", "best", axis=1, keepdims=0), node("Slice", "best start end axis0", "before"), node("Concat", "minus before", "shifted", axis=0), node("Equal", "best shifted", "same"),
             node("Not", "same", "other"), node("Equal", "best zero0", "blank"), node("Not", "blank", "letter"), node("And", "other letter", "kept"), node("Compress", "best kept", "line", axis=0),
             node("NonZero", "kept", "n0"), node("Squeeze", "n0 axis0", "at"), node("Softmax", "scores", "p", axis=1), node("ReduceMax", "p axis1", "sure", keepdims=0), node("Compress", "sure kept", "how", axis=0),
             node("Log", "how", "logs"), node("CumSum", "logs zero0", "sums")]
    model = graph(nodes, [("scores", "f", ["t", 6])], [("line", "i", ["k"]), ("at", "i", ["k"]), ("sums", "f", ["k"])], integers(start=[0], end=[-1], axis0=[0], axis1=[1], minus=[-1], zero0=0))
    draw = Drawn()
    return model, [[draw.floats(t, 6)] for t in (5, 8, 1, 30, 77)]


@case
def regions_found():
    """Boxes of several pictures and classes that are suppressed, with centres, and what `RoiAlign` reads under those that are left."""
    nodes = [node("NonMaxSuppression", "boxes scores most over least", "found", center_point_box=1), node("Gather", "found col0", "picture", axis=1), node("Gather", "found places", "pairs", axis=1),
             node("GatherND", "boxes pairs", "own"), node("Split", "own", "centre size", axis=1, num_outputs=2), node("Mul", "size half", "halves"), node("Sub", "centre halves", "low"), node("Add", "centre halves", "high"),
             node("Concat", "low high", "corners", axis=1), node("RoiAlign", "x corners picture", "read", output_height=2, output_width=2, sampling_ratio=2, spatial_scale=0.5),
             node("ReduceMean", "read axes", "means", keepdims=0)]
    model = graph(nodes, [("x", "f", ["b", 3, "h", "w"]), ("boxes", "f", ["b", "n", 4]), ("scores", "f", ["b", 2, "n"])], [("found", "i", ["k", 3]), ("means", "f", ["k", 3])],
                  [("over", np.float32([0.4])), ("least", np.float32([0.2])), ("half", np.float32(0.5)), *integers(most=[5], col0=0, places=[0, 2], axes=[2, 3])])
    draw = Drawn()

    def call(b, n, h, w):
        return [draw.floats(b, 3, h, w), np.abs(draw.floats(b, n, 4)) * 8 + 1, draw.random.random((b, 2, n)).astype(np.float32)]

    return model, [call(*one) for one in [(1, 5, 8, 8), (2, 9, 12, 10), (1, 30, 20, 16), (3, 12, 9, 9), (1, 1, 8, 8)]]


@case
def counts():
    """Counts, places and steps that are inputs: repeats, cuts, borders, a diagonal, a table of one, a shape, a range that goes down."""
    nodes = [node("Tile", "x repeats", "tiled"), node("Slice", "x from to axes steps", "cut"), node("Pad", "x border", "framed", mode="reflect"), node("Trilu", "x k", "upper", upper=1),
             node("OneHot", "ids depth ends", "hot"), node("Range", "high low down", "line"), node("ConstantOfShape", "shape", "nothing"), node("Expand", "row shape", "wide"), node("TopK", "x some", "top at", axis=1, largest=0),
             node("Resize", "image   new", "scaled", mode="linear")]
    inputs = [("x", "f", ["n", "m"]), ("repeats", "i", [2]), ("from", "i", [2]), ("to", "i", [2]), ("steps", "i", [2]), ("border", "i", [4]), ("k", "i", []), ("ids", "i", ["t"]), ("depth", "i", []),
              ("high", "i", []), ("low", "i", []), ("down", "i", []), ("shape", "i", [2]), ("row", "f", ["w"]), ("some", "i", [1]), ("image", "f", [1, 2, "h", "v"]), ("new", "i", [4])]
    results = [("tiled", "f", ["a", "b"]), ("cut", "f", ["c", "d"]), ("framed", "f", ["e", "f"]), ("upper", "f", ["n", "m"]), ("hot", "f", ["t", "g"]), ("line", "i", ["i"]), ("nothing", "f", ["j", "l"]), ("wide", "f", ["j", "o"]),
               ("top", "f", ["n", "p"]), ("scaled", "f", [1, 2, "q", "r"])]
    model = graph(nodes, inputs, results, [("ends", np.float32([-1, 2])), *integers(axes=[0, 1])])
    draw = Drawn()

    def call(n, m, repeats, low, high, steps, border, k, depth, line, shape, some, new):
        return [draw.floats(n, m), *(np.array(v, np.int64) for v in (repeats, low, high, steps, border, k)), draw.ints(depth, n + 2), *(np.array(v, np.int64) for v in (depth, *line, shape)), draw.floats(shape[1]), np.array([some]), draw.floats(1, 2, n, m),
                np.array([1, 2, *new], np.int64)]

    far = -(2**40)
    sets = [(4, 5, (2, 1), (0, 1), (3, 5), (1, 2), (1, 0, 2, 1), 0, 4, (5, 0, -1), (2, 3), 2, (8, 7)), (4, 5, (1, 3), (3, 4), (far, 0), (-1, -2), (0, 2, 0, 1), -1, 6, (9, 2, -3), (1, 4), 5, (3, 9)),
            (3, 9, (1, 1), (1, 8), (2**40, far), (1, -3), (2, 3, 1, 0), 2, 3, (1, 0, -1), (5, 1), 1, (6, 18)), (8, 2, (3, 2), (-3, 0), (-1, 2), (1, 1), (0, 0, 0, 1), 1, 9, (20, -4, -5), (3, 3), 2, (5, 5))]
    return model, [call(*one) for one in sets]


@case
def lengths():
    """Recurrences over lines of different lengths, forward and back, with holes that look at the cell, and lines that are turned around."""
    draw, width = Drawn(), 4
    weights = lambda gates, inp: draw.floats(2, gates * width, inp) * np.float32(0.5)  # noqa: E731
    from onnx import helper

    nodes = [helper.make_node("LSTM", ["x", "w", "r", "b", "lengths", "h0", "c0", "p"], ["y", "h", "c"], hidden_size=width, direction="bidirectional"),
             helper.make_node("GRU", ["x", "gw", "gr", "", "lengths"], ["z", "zh"], hidden_size=width, direction="bidirectional", linear_before_reset=1), helper.make_node("ReverseSequence", ["x", "wide"], ["back"], batch_axis=1, time_axis=0),
             node("Cast", "lengths", "wide", to=7)]
    model = graph([nodes[3], *nodes[:3]], [("x", "f", ["t", "b", 3]), ("h0", "f", [2, "b", width]), ("c0", "f", [2, "b", width])],
                  [("y", "f", ["t", 2, "b", width]), ("h", "f", [2, "b", width]), ("c", "f", [2, "b", width]), ("z", "f", ["t", 2, "b", width]), ("zh", "f", [2, "b", width]), ("back", "f", ["t", "b", 3])],
                  [("w", weights(4, 3)), ("r", weights(4, width)), ("b", draw.floats(2, 8 * width)), ("p", draw.floats(2, 3 * width)), ("gw", weights(3, 3)), ("gr", weights(3, width))])
    model.graph.input.append(helper.make_tensor_value_info("lengths", 6, ["b"]))
    return model, [[draw.floats(t, b, 3), draw.floats(2, b, width), draw.floats(2, b, width), np.concatenate([[t], draw.random.integers(1, t + 1, b - 1)]).astype(np.int32)] for t, b in [(5, 2), (7, 3), (1, 1), (20, 4), (33, 2)]]


@case
def quantized_lstm():
    """`DynamicQuantizeLSTM` over one and several lines. Weights have 7 bits: ONNX Runtime saturates sums of pairs on a processor with AVX2 alone (`onnx_quantized_lstm.py`)."""
    from onnx import helper

    draw, width = Drawn(), 8
    codes = lambda rows: draw.random.integers(-64, 64, (1, rows, 4 * width)).astype(np.int8)  # noqa: E731
    names = ["x", "w", "r", "b", "", "", "", "", "ws", "wz", "rs", "rz"]
    model = graph([helper.make_node("DynamicQuantizeLSTM", names, ["y", "h", "c"], domain="com.microsoft", hidden_size=width)], [("x", "f", ["t", "b", 6])], [("y", "f", ["t", 1, "b", width]), ("h", "f", [1, "b", width]), ("c", "f", [1, "b", width])],
                  [("w", codes(6)), ("r", codes(width)), ("b", draw.floats(1, 8 * width)), ("ws", np.float32([0.01])), ("rs", np.float32([0.008])), ("wz", np.int8([0])), ("rz", np.int8([0]))])
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return model, [[draw.floats(t, b, 6) * np.float32(np.arange(1, b + 1))[None, :, None]] for t, b in [(1, 1), (5, 1), (1, 2), (1, 3), (5, 2), (9, 4), (20, 3)]]
