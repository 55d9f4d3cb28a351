#!/usr/bin/env python3
"""Makes ONNX models that are wrong in ways that single bytes rarely are, as seeds for the fuzz target `onnx`.

usage: onnx_mutants.py OUT_DIR [--count N] [--seed S]

OUT_DIR gets each of onnx.backend.test's node tests of up to 8 KiB, the models of onnx_contrib.py, and N mutants of them: extreme sizes,
attributes and constants, inputs that become constants, other types, operators and versions, values that are read elsewhere. The same seed
gives the same files. Needs: numpy onnx. Then:

    RUSTC_BOOTSTRAP=1 cargo fuzz run onnx OUT_DIR -- -runs=0 -timeout=25 -rss_limit_mb=2048
"""
import argparse, copy, pathlib, random, warnings
import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, numpy_helper

import onnx_contrib

SIZES = [0, -1, 1, 2, 3, 7, 65536, 1000003, 2**24, 2**24 + 1, 2**28, 2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63 - 1,
         -2, -(2**31), -(2**63)]
FLOATS = [float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 1e30, -1e30, 1e-30, 0.5]
WORDS = [b"", b"linear", b"cubic", b"nearest", b"reflect", b"SAME_UPPER", b"VALID", b"add", b"ij,jk->ik", b"...i->i", b"\xff"]
CONTRIBUTED = 8  # how often a model of onnx_contrib.py is there for one of the node tests
LARGEST_CONSTANT = 256  # elements of an input that becomes a constant


def graphs(graph):
    """A graph and all inside of it."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield from graphs(attribute.g)


def number(pick, dtype):
    """A value of a type, often an extreme one."""
    if dtype.kind == "b":
        return pick.random() < 0.5
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        value = pick.choice(SIZES) if pick.random() < 0.5 else pick.randrange(1, 6)
        return max(info.min, min(info.max, value))
    return pick.choice(FLOATS) if pick.random() < 0.4 else pick.uniform(-4, 4)


def fix_input(pick, model, graph, _):
    """An input becomes a constant."""
    port = pick.choice(graph.input)
    kind = port.type.tensor_type
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
    dims = [dim.dim_value for dim in kind.shape.dim]
    count = int(np.prod(dims, dtype=np.int64))
    if dtype.kind in "biuf" and all(0 <= dim <= LARGEST_CONSTANT for dim in dims) and count <= LARGEST_CONSTANT:
        values = np.array([number(pick, dtype) for _ in range(count)], dtype=dtype).reshape(dims)
        graph.initializer.append(numpy_helper.from_array(values, port.name))
        graph.input.remove(port)


def resize_input(pick, model, graph, _):
    dims = pick.choice(graph.input).type.tensor_type.shape.dim
    if dims and pick.random() < 0.8:
        dim = pick.choice(dims)
        if pick.random() < 0.2:
            dim.dim_param = "n"
        else:
            dim.dim_value = pick.choice(SIZES) if pick.random() < 0.6 else pick.randrange(9)
    else:
        dims.add().dim_value = pick.choice(SIZES)


def retype_input(pick, model, graph, _):
    pick.choice(graph.input).type.tensor_type.elem_type = pick.choice(TensorProto.DataType.values()[1:])


def change_attribute(pick, model, graph, _):
    attribute = pick.choice(pick.choice(graph.node).attribute)
    if attribute.type == AttributeProto.INT:
        attribute.i = pick.choice(SIZES)
    elif attribute.type == AttributeProto.INTS:
        if attribute.ints and pick.random() < 0.7:
            attribute.ints[pick.randrange(len(attribute.ints))] = pick.choice(SIZES)
        else:
            attribute.ints.append(pick.choice(SIZES))
    elif attribute.type == AttributeProto.FLOAT:
        attribute.f = pick.choice(FLOATS)
    elif attribute.type == AttributeProto.STRING:
        attribute.s = pick.choice(WORDS)
    elif attribute.type == AttributeProto.TENSOR and attribute.t.dims:
        attribute.t.dims[0] = abs(pick.choice(SIZES)) % 2**62


def read_elsewhere(pick, model, graph, _):
    node = pick.choice(graph.node)
    names = [name for other in graph.node for name in [*other.input, *other.output]] + [""]
    node.input[pick.randrange(len(node.input))] = pick.choice(names)


def know(model, domain):
    """A model whose operators are of another domain, too."""
    if domain not in [known.domain for known in model.opset_import]:
        model.opset_import.add(domain=domain, version=1)


def change_operator(pick, model, graph, models):
    node, other = pick.choice(graph.node), pick.choice(pick.choice(models).graph.node)
    node.op_type, node.domain = other.op_type, other.domain
    know(model, node.domain)
    if pick.random() < 0.5:
        del node.attribute[:]
        node.attribute.extend(other.attribute)


def append_operator(pick, model, graph, models):
    node = copy.deepcopy(pick.choice(pick.choice(models).graph.node))
    values = [name for other in graph.node for name in other.output if name] + [port.name for port in graph.input]
    for place, name in enumerate(node.input):
        node.input[place] = pick.choice(values) if name else ""
    for place in range(len(node.output)):
        node.output[place] = f"appended_{len(graph.node)}_{place}"
    graph.node.append(node)
    know(model, node.domain)
    graph.output[0].name = node.output[0]


def change_version(pick, model, graph, _):
    pick.choice(model.opset_import).version = pick.randrange(1, 29)


MUTATIONS = [fix_input, fix_input, resize_input, retype_input, change_attribute, change_attribute, change_attribute,
             read_elsewhere, change_operator, append_operator, change_version]


def mutant(pick, models):
    """A model with some mutations; one that does not apply to it is left out."""
    model = copy.deepcopy(pick.choice(models))
    for _ in range(pick.choice([1, 1, 2, 3, 4])):
        graph = pick.choice(list(graphs(model.graph)))
        try:
            pick.choice(MUTATIONS)(pick, model, graph, models)
        except (IndexError, KeyError, ValueError, TypeError, OverflowError):
            continue
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    from onnx.backend.test.case.node import collect_testcases

    args.out.mkdir(parents=True, exist_ok=True)
    tests = [test for test in collect_testcases(None) if test.model and test.model.ByteSize() <= 8192]
    for test in tests:
        (args.out / test.name).write_bytes(test.model.SerializeToString())
    contributed = onnx_contrib.models()
    for name, model in contributed:
        (args.out / name).write_bytes(model.SerializeToString())
    models = [test.model for test in tests if test.model.graph.node]
    # They are few beside the others, and as much of what is read.
    models += [model for _, model in contributed] * CONTRIBUTED
    pick = random.Random(args.seed)
    for index in range(args.count):
        (args.out / f"mutant-{args.seed}-{index}").write_bytes(mutant(pick, models).SerializeToString())


if __name__ == "__main__":
    main()
