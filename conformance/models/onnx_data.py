#!/usr/bin/env python3
"""Makes the cases in `conformance/tests/data/onnx_data`: small models whose sizes data decide, each with several sets of inputs and
the results of ONNX Runtime.

    onnx_data.py conformance/tests/data/onnx_data

Numbers are random from fixed seeds. The files do not change from run to run.
"""
import argparse
import pathlib
import shutil

import numpy as np
import onnxruntime
from onnx import TensorProto as T, helper, numpy_helper

F, I, B = T.FLOAT, T.INT64, T.BOOL
CASES = {}


def case(make):
    CASES[make.__name__] = make
    return make


class Graph:
    """Nodes and constants as they come; names of results are given."""

    def __init__(self):
        self.nodes, self.constants = [], []
        self.opset = 18

    def const(self, value):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def add(self, op, inputs, outputs, **attributes):
        names = [x if isinstance(x, str) else self.const(x) for x in inputs]
        outputs = [outputs] if isinstance(outputs, str) else outputs
        self.nodes.append(helper.make_node(op, names, outputs, **attributes))
        return outputs[0]

    def body(self, name, inputs, outputs):
        return helper.make_graph(self.nodes, name, [value(*x) for x in inputs], [value(*x) for x in outputs], self.constants)


def value(name, kind, dims):
    if kind == "list":
        return helper.make_tensor_sequence_value_info(name, F, dims)
    return helper.make_tensor_value_info(name, kind, dims)


def floats(seed, *dims):
    return np.random.default_rng(seed).standard_normal(dims).astype(np.float32)


def mask(*places):
    return np.array(places, bool)


LOOP = [("i", I, []), ("go", B, [])]
MASKS = [mask(1, 0, 1, 1, 0, 1, 0, 1), mask(0, 0, 0, 1, 0, 0, 0, 0), mask(1, 1, 1, 1, 1, 1, 1, 1)]


@case
def loop_grows():
    """Tokens of a greedy loop: as many as a computed number says."""
    inner = Graph()
    inner.add("ReduceSum", ["t", np.int64([1])], "s", keepdims=1)
    inner.add("Mod", ["s", np.int64(7)], "next")
    inner.add("Concat", ["t", "next"], "t2", axis=1)
    inner.add("Identity", ["go"], "go2")
    g = Graph()
    g.add("ReduceSum", ["n"], "count", keepdims=0)
    body = inner.body("body", LOOP + [("t", I, [1, None])], [("go2", B, []), ("t2", I, [1, None])])
    g.add("Loop", ["count", "", "x"], "y", body=body)
    sets = [dict(x=np.int64([[3, 1]]), n=np.int64(n)) for n in ([2, 3], [0, 0], [1, 0], [9, 4])]
    return g, [("x", I, [1, 2]), ("n", I, [2])], [("y", I, [1, None])], sets


@case
def loop_stops():
    """A loop that ends by a condition, whose runs each give a row, and which carries what grows in its first dimension."""
    inner = Graph()
    inner.add("Mul", ["a", np.float32(1.5)], "a2")
    inner.add("Concat", ["all", "a2"], "all2", axis=0)
    inner.add("ReduceMax", ["a2"], "most", keepdims=0)
    inner.add("Less", ["most", np.float32(20)], "go2")
    inner.add("Add", ["a2", np.float32(1)], "row")
    body = inner.body("body", LOOP + [("a", F, [1, 3]), ("all", F, [None, 3])],
                      [("go2", B, []), ("a2", F, [1, 3]), ("all2", F, [None, 3]), ("row", F, [1, 3])])
    g = Graph()
    g.add("Loop", [np.int64(9), np.bool_(True), "x", "x"], ["last", "y", "rows"], body=body)
    sets = [dict(x=np.float32([row])) for row in ([1, 2, 3], [50, 1, 1], [0, 0, 0])]
    return g, [("x", F, [1, 3])], [("last", F, [1, 3]), ("y", F, [None, 3]), ("rows", F, [None, 1, 3])], sets


@case
def loops_nest():
    """A loop in a loop, both of which grow."""
    inmost = Graph()
    inmost.add("Cast", ["i"], "f", to=F)
    inmost.add("Unsqueeze", ["f", np.int64([0])], "u")
    inmost.add("Concat", ["r", "u"], "r2", axis=0)
    inmost.add("Identity", ["go"], "go2")
    inner = Graph()
    first = inmost.body("first", LOOP + [("r", F, [None])], [("go2", B, []), ("r2", F, [None])])
    inner.add("Add", ["i", np.int64(1)], "j")
    inner.add("Loop", ["j", "", "v"], "w", body=first)
    inner.add("Identity", ["go"], "again")
    second = inner.body("second", LOOP + [("v", F, [None])], [("again", B, []), ("w", F, [None])])
    g = Graph()
    g.add("Loop", ["n", "", "x"], "y", body=second)
    sets = [dict(x=floats(1, 2), n=np.array(n, np.int64)) for n in (3, 0, 1)]
    return g, [("x", F, [2]), ("n", I, [])], [("y", F, [None])], sets


def list_loop(axis, new_axis, shape, rows):
    inner = Graph()
    inner.add("Compress", ["x", "m"], "part", axis=0)
    inner.add("Cast", ["i"], "f", to=F)
    inner.add("Add", ["part", "f"], "scaled")
    if axis == 1:
        inner.add("Transpose", ["scaled"], "turned", perm=[1, 0])
    added = "turned" if axis == 1 else "scaled"
    inner.add("SequenceInsert", ["l", added], "l2")
    inner.add("Identity", ["go"], "go2")
    body = inner.body("body", LOOP + [("l", "list", None)], [("go2", B, []), ("l2", "list", None)])
    g = Graph()
    g.add("SequenceEmpty", [], "none", dtype=F)
    g.add("Loop", ["n", "", "none"], "list", body=body)
    g.add("ConcatFromSequence", ["list"], "y", axis=axis, new_axis=new_axis)
    g.add("SequenceAt", ["list", "k"], "z")
    g.add("SequenceLength", ["list"], "count")
    sets = [dict(x=floats(3, *shape), m=m, n=np.array(n, np.int64), k=np.array(k, np.int64))
            for m, n, k in zip([MASKS[0], MASKS[1], MASKS[2]], (3, 1, 4), (1, 0, -1))]
    return g, [("x", F, list(shape)), ("m", B, [8]), ("n", I, []), ("k", I, [])], rows, sets


@case
def list_rows():
    return list_loop(0, 0, (8, 3), [("y", F, [None, 3]), ("z", F, [None, 3]), ("count", I, [])])


@case
def list_columns():
    return list_loop(1, 0, (8, 3), [("y", F, [3, None]), ("z", F, [3, None]), ("count", I, [])])


@case
def list_stacked():
    return list_loop(0, 1, (8, 3), [("y", F, [None, None, 3]), ("z", F, [None, 3]), ("count", I, [])])


@case
def scan_of_data():
    """A scan as long as data decide, backwards too."""
    inner = Graph()
    inner.add("Add", ["s", "r"], "s2")
    inner.add("Tanh", ["s2"], "o")
    inner.add("Mul", ["q", "s2"], "p")
    body = inner.body("body", [("s", F, [3]), ("r", F, [3]), ("q", F, [3])], [("s2", F, [3]), ("o", F, [3]), ("p", F, [3])])
    g = Graph()
    g.add("Compress", ["x", "m"], "part", axis=0)
    g.add("Scan", [np.zeros(3, np.float32), "part", "part"], ["last", "y", "z"], body=body, num_scan_inputs=2,
          scan_input_directions=[0, 1], scan_output_directions=[0, 1], scan_output_axes=[0, 1])
    sets = [dict(x=floats(4, 8, 3), m=m) for m in MASKS]
    return g, [("x", F, [8, 3]), ("m", B, [8])], [("last", F, [3]), ("y", F, [None, 3]), ("z", F, [3, None])], sets


@case
def branches_differ():
    """Branches of different sizes, both of data; what follows has the size of the one that is taken."""
    some, other = Graph(), Graph()
    some.add("Compress", ["x", "m"], "a", axis=1)
    other.add("Not", ["m"], "rest")
    other.add("Compress", ["x", "rest"], "b", axis=1)
    g = Graph()
    g.add("ReduceSum", ["x"], "sum", keepdims=0)
    g.add("Greater", ["sum", np.float32(0)], "which")
    g.add("If", ["which"], "y", then_branch=some.body("some", [], [("a", F, [2, None])]),
          else_branch=other.body("other", [], [("b", F, [2, None])]))
    g.add("Softmax", ["y"], "z", axis=1)
    g.add("Shape", ["y"], "shape")
    sets = [dict(x=floats(s, 2, 8), m=m) for s, m in zip((1, 2, 3, 5), MASKS[:2] * 2)]
    return g, [("x", F, [2, 8]), ("m", B, [8])], [("z", F, [2, None]), ("shape", I, [2])], sets


@case
def one_repeats():
    """A size that data decide and that may be 1: it is repeated, and repeats the other."""
    g = Graph()
    g.add("Compress", ["x", "m"], "a", axis=1)
    g.add("Compress", ["x", "o"], "b", axis=1)
    g.add("Add", ["a", "b"], "both")
    g.add("Mul", ["a", floats(9, 3, 5)], "known")
    five = mask(1, 1, 1, 1, 1, 0, 0, 0)
    sets = [dict(x=floats(6, 3, 8), m=five, o=MASKS[0]), dict(x=floats(7, 3, 8), m=MASKS[1], o=MASKS[0]),
            dict(x=floats(8, 3, 8), m=five, o=MASKS[1])]
    sets[0]["o"] = five[::-1].copy()
    return g, [("x", F, [3, 8]), ("m", B, [8]), ("o", B, [8])], [("both", F, [3, None]), ("known", F, [3, 5])], sets


@case
def windows():
    """Pools, convolutions and resizing of a length that data decide."""
    g = Graph()
    g.add("Compress", ["x", "m"], "a", axis=2)
    g.add("MaxPool", ["a"], "p", kernel_shape=[3], strides=[2], pads=[1, 1], ceil_mode=1)
    g.add("AveragePool", ["a"], "q", kernel_shape=[3], pads=[1, 1])
    g.add("Conv", ["a", floats(1, 4, 3, 3)], "c", pads=[2, 0], strides=[2])
    g.add("Resize", ["a", "", np.float32([1, 1, 2])], "r", mode="linear")
    g.add("Shape", ["a"], "s")
    g.add("Slice", ["s", np.int64([2]), np.int64([3])], "w")
    g.add("Add", ["w", np.int64([3])], "w3")
    g.add("Slice", ["s", np.int64([0]), np.int64([2])], "lead")
    g.add("Concat", ["lead", "w3"], "to", axis=0)
    g.add("Resize", ["a", "", "", "to"], "n", mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    g.add("GlobalMaxPool", ["a"], "g")
    sets = [dict(x=floats(s, 2, 3, 8), m=m) for s, m in enumerate(MASKS)]
    outs = [(n, F, [2, c, None]) for n, c in (("p", 3), ("q", 3), ("c", 4), ("r", 3), ("n", 3))] + [("g", F, [2, 3, 1])]
    return g, [("x", F, [2, 3, 8]), ("m", B, [8])], outs, sets


@case
def recurrent():
    """Recurrent networks over as many steps as data decide."""
    g = Graph()
    g.add("Compress", ["x", "m"], "a", axis=0)
    h = 5
    size = lambda gates: [floats(1, 2, gates * h, 4) * 0.5, floats(2, 2, gates * h, h) * 0.5, floats(3, 2, 2 * gates * h) * 0.5]
    g.add("LSTM", ["a", *size(4)], ["l", "lh", "lc"], hidden_size=h, direction="bidirectional")
    g.add("GRU", ["a", *size(3)], ["u", "uh"], hidden_size=h, direction="bidirectional", linear_before_reset=1)
    sets = [dict(x=floats(s, 8, 2, 4), m=m) for s, m in enumerate(MASKS)]
    outs = [("l", F, [None, 2, 2, h]), ("lh", F, [2, 2, h]), ("lc", F, [2, 2, h]), ("u", F, [None, 2, 2, h]), ("uh", F, [2, 2, h])]
    return g, [("x", F, [8, 2, 4]), ("m", B, [8])], outs, sets


@case
def picked_rows():
    """What a detector's last step does: rows by coordinates, one of their parts without elements, suppressed, padded to a number."""
    g = Graph()
    g.add("Gather", ["scores", np.int64(0)], "best", axis=0)
    g.add("Greater", ["best", np.float32(0)], "holds")
    g.add("NonZero", ["holds"], "found")
    g.add("Transpose", ["found"], "places", perm=[1, 0])
    g.add("GatherND", ["boxes", "places"], "b")
    g.add("GatherND", ["best", "places"], "s")
    g.add("Slice", ["boxes", np.int64([4]), np.int64([99]), np.int64([1])], "none")
    g.add("GatherND", ["none", "places"], "rest")
    g.add("Unsqueeze", ["b", np.int64([0])], "b3")
    g.add("Unsqueeze", ["s", np.int64([0, 1])], "s3")
    g.add("NonMaxSuppression", ["b3", "s3", np.int64([6]), np.float32([0.4])], "kept")
    g.add("Gather", ["kept", np.int64(2)], "index", axis=1)
    g.add("Slice", ["index", np.int64([0]), np.int64([6]), np.int64([0])], "index6")
    g.add("Unsqueeze", ["s", np.int64([1])], "column")
    parts = [g.add("Gather", [x, "index6"], f"{x}6", axis=0) for x in ("b", "column", "rest")]
    g.add("Concat", parts, "rows", axis=1)
    g.add("Shape", ["rows"], "shape")
    g.add("Slice", ["shape", np.int64([0]), np.int64([1])], "count")
    g.add("Sub", [np.int64([6]), "count"], "missing")
    g.add("Concat", [np.int64([0, 0]), "missing", np.int64([0])], "borders", axis=0)
    g.add("Pad", ["rows", "borders", np.float32(-1)], "y")
    g.add("Concat", [np.int64([1, 0]), "count", np.int64([0])], "other", axis=0)
    g.add("Pad", ["rows", "other"], "z")
    sets = []
    for seed in range(4):
        random = np.random.default_rng(seed)
        corner = random.uniform(0, 4, (12, 2)).astype(np.float32)
        boxes = np.concatenate([corner, corner + random.uniform(1, 3, (12, 2)).astype(np.float32)], 1)
        sets.append(dict(boxes=boxes, scores=random.standard_normal((1, 12)).astype(np.float32) - [0, 0.8, 9, -2][seed]))
    for one in sets:
        one["scores"] = one["scores"].astype(np.float32)
    return g, [("boxes", F, [12, 4]), ("scores", F, [1, 12])], [("y", F, [6, 5]), ("z", F, [None, 5])], sets


@case
def regions():
    """Regions that data choose, with as many samples as the model says and as their sizes ask for; none among the sets."""
    g = Graph()
    g.add("Compress", ["boxes", "m"], "chosen", axis=0)
    g.add("Compress", ["images", "m"], "of", axis=0)
    common = dict(output_height=2, output_width=3, spatial_scale=0.5)
    for name, more in (("two", dict(sampling_ratio=2)), ("asked", {}), ("most", dict(mode="max", sampling_ratio=2)),
                       ("asked_most", dict(mode="max")), ("old", dict(coordinate_transformation_mode="output_half_pixel"))):
        g.add("RoiAlign", ["x", "chosen", "of"], name, **common, **more)
    random = np.random.default_rng(3)
    corner = random.uniform(0, 12, (8, 2))
    boxes = np.concatenate([corner, corner + random.uniform(0.5, 10, (8, 2))], 1).astype(np.float32)
    images = np.int64([0, 1, 1, 0, 1, 0, 0, 1])
    sets = [dict(x=floats(s, 2, 4, 8, 9), boxes=boxes, images=images, m=m) for s, m in enumerate([*MASKS, mask(*[0] * 8)])]
    outs = [(n, F, [None, 4, 2, 3]) for n in ("two", "asked", "most", "asked_most", "old")]
    return g, [("x", F, [2, 4, 8, 9]), ("boxes", F, [8, 4]), ("images", I, [8]), ("m", B, [8])], outs, sets


@case
def sampled():
    """Samples of images whose sizes data decide, by each of the ways, and deformed convolutions of them."""
    g = Graph()
    g.opset = 22
    g.add("Compress", ["x", "m"], "a", axis=2)
    g.add("Compress", ["grid", "m"], "places", axis=1)
    outs = []
    for mode in ("linear", "cubic", "nearest"):
        for outside in ("zeros", "border", "reflection"):
            name = f"{mode}_{outside}"
            g.add("GridSample", ["a", "places"], name, mode=mode, padding_mode=outside, align_corners=int(outside == "border"))
            outs.append((name, F, [2, 3, None, 4]))
    g.add("Compress", ["offset", "m"], "off", axis=2)
    g.add("DeformConv", ["a", floats(1, 4, 3, 3, 3), "off"], "d", pads=[1, 1, 1, 1], offset_group=1)
    outs.append(("d", F, [2, 4, None, 5]))
    sets = [dict(x=floats(s, 2, 3, 8, 5), grid=floats(s + 9, 2, 8, 4, 2) * np.float32(0.7), offset=floats(s + 5, 2, 18, 8, 5), m=m)
            for s, m in enumerate(MASKS)]
    return g, [("x", F, [2, 3, 8, 5]), ("grid", F, [2, 8, 4, 2]), ("offset", F, [2, 18, 8, 5]), ("m", B, [8])], outs, sets


def write(folder, name, make):
    graph, inputs, outputs, sets = make()
    body = graph.body(name, inputs, outputs)
    model = helper.make_model(body, opset_imports=[helper.make_opsetid("", graph.opset)], ir_version=9 if graph.opset < 21 else 10)
    path = folder / name
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    (path / "model.onnx").write_bytes(model.SerializeToString())
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for index, feeds in enumerate(sets):
        data = path / f"test_data_set_{index}"
        data.mkdir()
        results = session.run(None, feeds)
        given = [(f"input_{i}", feeds[n]) for i, (n, *_) in enumerate(inputs)]
        for stem, array in given + [(f"output_{i}", r) for i, r in enumerate(results)]:
            (data / f"{stem}.pb").write_bytes(numpy_helper.from_array(np.asarray(array)).SerializeToString())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    folder = parser.parse_args().folder
    for name, make in CASES.items():
        write(folder, name, make)
        print(name)


if __name__ == "__main__":
    main()
