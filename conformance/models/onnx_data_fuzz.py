"""Random small models whose sizes data decide, node by node: filters, counts, loops that grow, sequences, branches, one behind the other and
inside of each other; Halite beside ONNX Runtime over many sizes, one session each.

    onnx_data_fuzz.py [--seed N] [--count N] [--device URI] [--keep FOLDER]
"""
import argparse
import pathlib
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh
from onnx_sizes import difference


class Model:
    """Nodes in the making. Every tensor that is passed on is [rows, 4] of floats."""

    def __init__(self, random):
        self.random, self.count, self.constants = random, 0, {}

    def name(self):
        self.count += 1
        return f"t{self.count}"

    def constant(self, value):
        name = "c" + self.name()
        self.constants[name] = np.asarray(value)
        return name

    def ints(self, *values):
        return self.constant(np.array(values, np.int64))


class Graph:
    """A graph or the body of one."""

    def __init__(self, model):
        self.model, self.nodes = model, []

    def __call__(self, op, *inputs, outputs=1, **attributes):
        names = [self.model.name() for _ in range(outputs)]
        self.nodes.append(h.make_node(op, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def rows(self, x):
        """How many rows there are, as [1]."""
        return self("Shape", x, start=0, end=1)

    def scalar(self, x):
        return self("Squeeze", x, self.model.ints(0))

    def mark(self, x):
        """A number of each row."""
        return self("ReduceSum", x, self.model.ints(1), keepdims=0)

    def flat(self, x):
        return self("Reshape", x, self.model.ints(-1, 4))

    def sub(self):
        return Graph(self.model)


def above(g, x):
    level = g.model.constant(np.float32(g.model.random.choice([-1.0, 0.0, 0.7])))
    return g("Greater", g.mark(x), level)


def count_of(g, x, most):
    """A number of runs that data decide, from 0 to `most`, a scalar."""
    found = g("ReduceSum", g("Cast", above(g, x), to=T.INT64), g.model.ints(0), keepdims=0)
    return g("Min", found, g.model.constant(np.array(most, np.int64)))


def nonzero(g, x):
    places = g("NonZero", above(g, x))
    return g("Gather", x, g("Squeeze", places, g.model.ints(0)), axis=0)


def compress(g, x):
    return g("Compress", x, above(g, x), axis=0)


def gather_nd(g, x):
    places = g("Transpose", g("NonZero", above(g, x)), perm=[1, 0])
    return g("GatherND", x, places)


def few(g, x):
    """How many: at most so many, half of them, one less than all, or as many as are found."""
    rows, r = g.rows(x), g.model.random
    kind = r.randrange(4)
    if kind == 0:
        return g("Min", rows, g.model.ints(r.randint(1, 6)))
    if kind == 1:
        return g("Div", rows, g.model.ints(2))
    if kind == 2:
        return g("Max", g("Sub", rows, g.model.ints(1)), g.model.ints(0))
    return g("Unsqueeze", count_of(g, x, 5), g.model.ints(0))


def topk(g, x):
    _, places = g("TopK", g.mark(x), few(g, x), outputs=2, axis=0, largest=g.model.random.randint(0, 1))
    return g("Gather", x, places, axis=0)


def ranged(g, x):
    zero, step = g.model.constant(np.array(0, np.int64)), g.model.constant(np.array(g.model.random.randint(1, 3), np.int64))
    return g("Gather", x, g("Range", zero, g.scalar(few(g, x)), step), axis=0)


def sliced(g, x):
    r = g.model.random
    start, end = (few(g, x), g.rows(x)) if r.random() < 0.5 else (g.model.ints(0), few(g, x))
    if r.random() < 0.3:
        return g("Slice", x, g.model.ints(-1), g.model.ints(-(2**62)), g.model.ints(0), g.model.ints(-r.randint(1, 2)))
    return g("Slice", x, start, end, g.model.ints(0), g.model.ints(r.randint(1, 2)))


def tiled(g, x):
    times = g("Concat", g("Min", few(g, x), g.model.ints(3)), g.model.ints(1), axis=0)
    return g("Tile", x, times)


def expanded(g, x):
    shape = g("Concat", g("Min", few(g, x), g.model.ints(3)), g("Shape", x), axis=0)
    return g.flat(g("Expand", x, shape))


def padded(g, x):
    zero = g.model.ints(0)
    pads = g("Concat", g("Min", few(g, x), g.model.ints(3)), zero, g("Min", few(g, x), g.model.ints(2)), zero, axis=0)
    return g("Pad", x, pads, g.model.constant(np.float32(0.5)))


def unique(g, x):
    ids = g("Cast", g("Floor", g.mark(x)), to=T.INT64)
    _, first, _, times = g("Unique", ids, outputs=4, sorted=g.model.random.randint(0, 1))
    rows = g("Gather", x, first, axis=0)
    return g("Mul", rows, g("Unsqueeze", g("Cast", times, to=T.FLOAT), g.model.ints(1)))


def suppressed(g, x):
    corner, size = g("Split", x, outputs=2, axis=1, num_outputs=2)
    boxes = g("Concat", corner, g("Add", corner, g("Abs", size)), axis=1)
    zero = g.model.ints(0)
    scores = g("Unsqueeze", g("Unsqueeze", g.mark(x), zero), zero)
    most = g.model.ints(g.model.random.randint(1, 9)) if g.model.random.random() < 0.5 else g.rows(x)
    kept = g("NonMaxSuppression", g("Unsqueeze", boxes, zero), scores, most, g.model.constant(np.array([0.3], np.float32)), g.model.constant(np.array([-0.5], np.float32)))
    return g("Gather", x, g("Squeeze", g("Slice", kept, g.model.ints(2), g.model.ints(3), g.model.ints(1)), g.model.ints(1)), axis=0)


def resized(g, x):
    """To as many rows as a float of their number says."""
    one = g.model.ints(1)
    rows = g("Cast", g.rows(x), to=T.FLOAT)
    scaled = g("Floor", g("Mul", rows, g.model.constant(np.array([g.model.random.choice([0.6, 1.5, 2.3])], np.float32))))
    rows = g("Max", g("Cast", scaled, to=T.INT64), one)
    image = g("Unsqueeze", g("Concat", x, x, axis=0), g.model.ints(0, 1))
    # Nearest places are no comparison: ONNX Runtime rounds its scale.
    made = g("Resize", image, "", "", g("Concat", one, one, rows, g.model.ints(4), axis=0), mode="linear", coordinate_transformation_mode="half_pixel")
    return g("Squeeze", made, g.model.ints(0, 1))


def scattered(g, x):
    places = g("Squeeze", g("NonZero", above(g, x)), g.model.ints(0))
    updates = g("Gather", x, places, axis=0)
    return g("ScatterND", x, g("Unsqueeze", places, g.model.ints(1)), g("Neg", updates))


def summed(g, x):
    return g("CumSum", x, g.model.constant(np.array(0, np.int64)), reverse=g.model.random.randint(0, 1))


def mixed(g, x):
    w = g.model.constant(np.random.default_rng(g.model.random.randrange(99)).standard_normal((4, 4)).astype(np.float32) * 0.5)
    return g("Tanh", g("MatMul", x, w))


def sorted_rows(g, x):
    _, places = g("TopK", g.mark(x), g.rows(x), outputs=2, axis=0)
    wide = g("Expand", g("Unsqueeze", places, g.model.ints(1)), g("Shape", x))
    return g("GatherElements", x, wide, axis=0)


def value(name, kind, dims):
    return h.make_tensor_value_info(name, kind, dims)


def loop(g, x, depth, grows):
    """A loop that data end, whose state changes its size, or that gives a row each time."""
    b, m = g.sub(), g.model
    i, go, state = m.name(), m.name(), m.name()
    if grows:
        new = b("Concat", state, chain(b, state, depth - 1, 1), axis=0)
        new = b("Slice", new, m.ints(0), m.ints(24), m.ints(0))
        results, scanned = [value(new, T.FLOAT, [None, 4])], []
    else:
        new = mixed(b, state)
        row = b("ReduceMax", b("Concat", new, m.constant(np.zeros((1, 4), np.float32)), axis=0), m.ints(0), keepdims=0)
        results, scanned = [value(new, T.FLOAT, [None, 4])], [value(row, T.FLOAT, [4])]
    more = b("Less", i, m.constant(np.array(3, np.int64))) if m.random.random() < 0.5 else b("Identity", go)
    body = h.make_graph(b.nodes, "body", [value(i, T.INT64, []), value(go, T.BOOL, []), value(state, T.FLOAT, [None, 4])], [value(more, T.BOOL, []), *results, *scanned])
    made = g("Loop", count_of(g, x, 4), m.constant(np.array(True)), x, outputs=2 - len(scanned == [] and [1] or []), body=body)
    return made if grows else g("Concat", made[0], made[1], axis=0)


def growing(g, x, depth):
    return loop(g, x, depth, True)


def rows_of_loop(g, x, depth):
    return loop(g, x, depth, False)


def scan(g, x, depth):
    b, m = g.sub(), g.model
    s, r = m.name(), m.name()
    new = b("Tanh", b("Add", s, r))
    out = b("Identity", new)
    body = h.make_graph(b.nodes, "body", [value(s, T.FLOAT, [4]), value(r, T.FLOAT, [4])], [value(new, T.FLOAT, [4]), value(out, T.FLOAT, [4])])
    made = g("Scan", m.constant(np.zeros(4, np.float32)), x, outputs=2, body=body, num_scan_inputs=1)
    return made[1]


def branch(g, x, depth):
    m = g.model
    condition = g("Greater", g("ReduceSum", x, keepdims=0), m.constant(np.float32(0.3)))
    bodies = []
    for _ in range(2):
        b = g.sub()
        made = chain(b, x, depth - 1, 1)
        bodies.append(h.make_graph(b.nodes, "branch", [], [value(made, T.FLOAT, [None, 4])]))
    return g("If", condition, then_branch=bodies[0], else_branch=bodies[1])


def sequence(g, x, depth):
    """Pieces, one of which is changed and put in again."""
    m = g.model
    x = g("Concat", x, m.constant(np.ones((1, 4), np.float32)), axis=0)
    pieces = g("SplitToSequence", x, m.constant(np.array(m.random.randint(1, 3), np.int64)), axis=0)
    first = g("SequenceAt", pieces, m.constant(np.array(0, np.int64)))
    last = g("SequenceAt", pieces, m.constant(np.array(-1, np.int64)))
    pieces = g("SequenceInsert", pieces, chain(g, first, depth - 1, 1))
    pieces = g("SequenceInsert", pieces, last, m.constant(np.array(0, np.int64)))
    if m.random.random() < 0.5:
        pieces = g("SequenceErase", pieces, m.constant(np.array(1, np.int64)))
    return g("ConcatFromSequence", pieces, axis=0)


def collected(g, x, depth):
    """A loop that puts what it finds in a sequence."""
    b, m = g.sub(), g.model
    i, go, state = m.name(), m.name(), m.name()
    empty = g("SequenceConstruct", g("Slice", x, m.ints(0), m.ints(2), m.ints(0)))
    part = chain(b, b("Mul", x, b("Cast", b("Add", i, m.constant(np.array(1, np.int64))), to=T.FLOAT)), depth - 1, 1)
    new = b("SequenceInsert", state, part)
    more = b("Identity", go)
    kind = h.make_sequence_type_proto(h.make_tensor_type_proto(T.FLOAT, [None, 4]))
    seq = lambda name: h.make_value_info(name, kind)  # noqa: E731
    body = h.make_graph(b.nodes, "body", [value(i, T.INT64, []), value(go, T.BOOL, []), seq(state)], [value(more, T.BOOL, []), seq(new)])
    made = g("Loop", count_of(g, x, 3), m.constant(np.array(True)), empty, body=body)
    return g("ConcatFromSequence", made, axis=0)


PLAIN = [nonzero, compress, gather_nd, topk, ranged, sliced, tiled, expanded, padded, unique, suppressed, resized, scattered, summed, mixed, sorted_rows]
DEEP = [growing, rows_of_loop, scan, branch, sequence, collected]


def bounded(g, x):
    """No more than 40 rows, so that nothing grows without end."""
    return g("Slice", x, g.model.ints(0), g.model.ints(40), g.model.ints(0))


def chain(g, x, depth, length):
    for _ in range(length):
        r = g.model.random
        x = r.choice(DEEP)(g, x, depth) if depth > 0 and r.random() < 0.45 else r.choice(PLAIN)(g, x)
        if depth == 2:
            x = bounded(g, x)
    return x


def draw(random):
    m = Model(random)
    g = Graph(m)
    out = chain(g, "x", 2, random.randint(2, 4))
    g.nodes.append(h.make_node("Identity", [out], ["y"]))
    constants = [nh.from_array(v, k) for k, v in m.constants.items()]
    made = h.make_graph(g.nodes, "g", [value("x", T.FLOAT, ["n", 4])], [value("y", T.FLOAT, ["m", 4])], constants)
    return h.make_model(made, opset_imports=[h.make_opsetid("", 18)], ir_version=9)


def operators(graph):
    for node in graph.node:
        yield node.op_type
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from operators(attribute.g)


def check(model, sizes, seed, device):
    """What is wrong, as a list; how many calls were compared; how many versions there are."""
    import halite
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    other = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    drawn, bad, compared = np.random.default_rng(seed), [], 0
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "m.onnx"
        path.write_bytes(model.SerializeToString())
        try:
            session = halite.Session(str(path), device=device, cache=False, max_loaded_versions=64)
        except halite.Error as error:
            return [("refused", str(error)[:600])], 0, 0
        for rows in sizes:
            x = drawn.standard_normal((rows, 4)).astype(np.float32)
            try:
                wanted = other.run(None, {"x": x})[0]
            except Exception:  # noqa: BLE001: it refuses empty tensors here and there.
                continue
            try:
                found = np.asarray(session.run({"x": x})["y"])
            except halite.Error as error:
                bad.append(("refused", rows, str(error)[:600]))
                break
            compared += 1
            if found.shape != wanted.shape:
                bad.append(("size", rows, found.shape, wanted.shape))
            elif (apart := difference(found, wanted, 1.0)) > 1e-4:
                bad.append(("wrong", rows, apart))
        return bad, compared, session.loaded_versions


def main():
    import random

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--device", default="vulkan")
    parser.add_argument("--keep", type=pathlib.Path)
    args = parser.parse_args()
    sizes, failed, calls, versions, drawn = [5, 9, 6, 1, 17, 2, 33, 12, 4, 0], 0, 0, 0, 0
    for seed in range(args.seed, args.seed + args.count):
        model = draw(random.Random(seed))
        try:
            bad, compared, made = check(model, sizes, seed, args.device)
        except Exception as error:  # noqa: BLE001: ONNX Runtime does not take the model.
            print(f"{seed}: not by ONNX Runtime: {str(error)[:160]}", flush=True)
            continue
        drawn, calls, versions = drawn + 1, calls + compared, versions + made
        if bad:
            failed += 1
            print(f"{seed}: {bad[:3]} after {compared} calls; {sorted(set(operators(model.graph)))}", flush=True)
            if args.keep:
                args.keep.mkdir(parents=True, exist_ok=True)
                onnx.save(model, args.keep / f"{seed}.onnx")
    print(f"{drawn} models, {failed} of them not right, {calls} calls compared, {versions} versions")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
