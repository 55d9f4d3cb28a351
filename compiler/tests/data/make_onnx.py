#!/usr/bin/env python3
"""Makes the ONNX models of this folder, which tests and fuzzing read: `make_onnx.py [FOLDER]`."""
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def value(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


def constant(name, array):
    return numpy_helper.from_array(np.asarray(array), name)


def save(folder, name, nodes, inputs, outputs, initializers=(), functions=(), opsets=(("", 18),)):
    graph = helper.make_graph(nodes, name, inputs, outputs, list(initializers))
    opsets = [helper.make_opsetid(domain, version) for domain, version in opsets]
    model = helper.make_model(graph, opset_imports=opsets, functions=list(functions), ir_version=9)
    onnx.checker.check_model(model)
    (folder / f"{name}.onnx").write_bytes(model.SerializeToString())


def symbols(folder):
    """y = softmax(x w) over a batch of unknown size, reshaped by the shape of x."""
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "first"], ["batch"]),
        helper.make_node("Concat", ["batch", "rest"], ["sizes"], axis=0),
        helper.make_node("MatMul", ["x", "w"], ["xw"]),
        helper.make_node("Softmax", ["xw"], ["s"], axis=-1),
        helper.make_node("Reshape", ["s", "sizes"], ["y"], name="last"),
    ]
    weights = [
        constant("w", np.eye(4, dtype=np.float32)),
        constant("first", np.array([0], np.int64)),
        constant("rest", np.array([2, -1], np.int64)),
    ]
    save(folder, "symbols", nodes, [value("x", FLOAT, ["n", 4])], [value("y", FLOAT, ["n", 2, 2])], weights)


def loops(folder):
    """Runs a loop `count` times that doubles, and gathers what it carries; a list of the results is joined."""
    body = helper.make_graph(
        [
            helper.make_node("Add", ["carried", "carried"], ["doubled"]),
            helper.make_node("Identity", ["go"], ["goes_on"]),
            helper.make_node("Identity", ["doubled"], ["seen"]),
        ],
        "body",
        [value("run", INT64, []), value("go", BOOL, []), value("carried", FLOAT, [2])],
        [value("goes_on", BOOL, []), value("doubled", FLOAT, [2]), value("seen", FLOAT, [2])],
    )
    nodes = [
        helper.make_node("Loop", ["count", "", "x"], ["last", "all"], body=body),
        helper.make_node("SplitToSequence", ["all"], ["list"], axis=0, keepdims=1),
        helper.make_node("SequenceInsert", ["list", "row"], ["longer"]),
        helper.make_node("ConcatFromSequence", ["longer"], ["y"], axis=0),
    ]
    row = constant("row", np.array([[7, 8]], np.float32))
    inputs = [value("count", INT64, []), value("x", FLOAT, [2])]
    save(folder, "loops", nodes, inputs, [value("last", FLOAT, [2]), value("y", FLOAT, [None, 2])], [row])


def branches(folder):
    """A branch by an input, of a shape that both sides have."""
    def side(name, op):
        return helper.make_graph([helper.make_node(op, ["x", "x"], [name])], name, [], [value(name, FLOAT, [3])])

    nodes = [helper.make_node("If", ["c"], ["y"], then_branch=side("sum", "Add"), else_branch=side("product", "Mul"))]
    save(folder, "branches", nodes, [value("c", BOOL, []), value("x", FLOAT, [3])], [value("y", FLOAT, [3])])


def functions(folder):
    """A function of the model with an attribute, called by another one."""
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    leaky = helper.make_node("LeakyRelu", ["x"], ["y"])
    reference = onnx.AttributeProto(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
    leaky.attribute.append(reference)
    inner = helper.make_function("own", "Leaky", ["x"], ["y"], [leaky], opsets, attributes=["slope"])
    call = helper.make_node("Leaky", ["a"], ["b"], domain="own", slope=0.5)
    outer = helper.make_function("own", "Twice", ["a"], ["c"], [call, helper.make_node("Add", ["b", "b"], ["c"])], opsets)
    nodes = [helper.make_node("Twice", ["x"], ["y"], domain="own")]
    save(
        folder, "functions", nodes, [value("x", FLOAT, [2])], [value("y", FLOAT, [2])],
        functions=[inner, outer], opsets=(("", 18), ("own", 1)),
    )


def endless(folder):
    """A function that calls itself."""
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    again = helper.make_node("Again", ["x"], ["y"], domain="own")
    function = helper.make_function("own", "Again", ["x"], ["y"], [again], opsets)
    graph = helper.make_graph([again], "endless", [value("x", FLOAT, [1])], [value("y", FLOAT, [1])])
    model = helper.make_model(
        graph, opset_imports=opsets, functions=[function], ir_version=9
    )
    (folder / "endless.onnx").write_bytes(model.SerializeToString())


def external(folder):
    """Adds a tensor that lies in a file of its own, behind four other bytes."""
    (folder / "external.bin").write_bytes(b"...." + np.array([1, 2], np.float32).tobytes())
    tensor = TensorProto(name="w", data_type=FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
    for key, text in (("location", "external.bin"), ("offset", "4"), ("length", "8")):
        tensor.external_data.add(key=key, value=text)
    nodes = [helper.make_node("Add", ["x", "w"], ["y"])]
    graph = helper.make_graph(nodes, "external", [value("x", FLOAT, [2])], [value("y", FLOAT, [2])], [tensor])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    (folder / "external.onnx").write_bytes(model.SerializeToString())


def unreasonable(folder):
    """Sizes that fuzzing came up with: one that overflowed, and one whose table of weights took too long."""
    for name, op, inputs, sizes, attributes in (
        ("crop", "CenterCropPad", ["x", "sizes"], [1, 1, 2, -(2**63)], {}),
        ("enlarge", "Resize", ["x", "", "", "sizes"], [2**24 + 1, 2**24, 5, 7], dict(mode="cubic")),
    ):
        tensor = helper.make_tensor("sizes", TensorProto.INT64, [4], sizes)
        nodes = [helper.make_node(op, inputs, ["y"], **attributes)]
        graph = helper.make_graph(nodes, name, [value("x", FLOAT, [1, 1, 4, 4])], [value("y", FLOAT, sizes)], [tensor])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
        (folder / f"{name}.onnx").write_bytes(model.SerializeToString())


def windows(folder):
    """Attention to a window of four keys, with a cache of all keys and with one of the last."""
    angles = np.outer(np.arange(16), 10.0 ** (-np.arange(8) / 8)).astype(np.float32)
    constants = [constant("cos", np.cos(angles)), constant("sin", np.sin(angles))]
    inputs = [value("qkv", FLOAT, [2, "length", 64]), value("last", TensorProto.INT32, [2]), value("total", TensorProto.INT32, [])]
    nodes, outputs = [], []
    for name, room, more in (("all", 16, {}), ("some", "room", {"sliding_window_cache": 1})):
        past, present = ([f"{kind}_{name}_{part}" for part in "kv"] for kind in ("past", "present"))
        inputs += [value(one, FLOAT, [2, 1, room, 16]) for one in past]
        outputs += [value(f"y_{name}", FLOAT, [2, "length", 32]), *(value(one, FLOAT, [2, 1, None, 16]) for one in present)]
        own = ["qkv", "", "", *past, "last", "total", "cos", "sin"]
        nodes.append(helper.make_node("GroupQueryAttention", own, [f"y_{name}", *present], domain="com.microsoft", num_heads=2, kv_num_heads=1, do_rotary=1, local_window_size=4, **more))
    save(folder, "windows", nodes, inputs, outputs, constants, opsets=(("", 18), ("com.microsoft", 1)))


def batches(folder):
    """Products of matrices whose rows are the first dimension and whose batch is behind it, as ONNX Runtime's optimizer writes `MatMul` of `Transpose`."""
    inputs = [value("x", FLOAT, [3, 2, "n", 4]), value("y", FLOAT, [4, 2, "n", 5]), value("u", FLOAT, [4, 2, "n", 3]), value("v", FLOAT, [5, 2, "n", 4])]
    outputs = [value(name, FLOAT, [2, "n", 3, 5]) for name in ("straight", "turned")]
    nodes = [
        helper.make_node("FusedMatMul", ["x", "y"], ["straight"], domain="com.microsoft", transBatchA=1, transBatchB=1),
        helper.make_node("FusedMatMul", ["u", "v"], ["turned"], domain="com.microsoft", transBatchA=1, transBatchB=1, transA=1, transB=1, alpha=0.5),
    ]
    save(folder, "batches", nodes, inputs, outputs, opsets=(("", 18), ("com.microsoft", 1)))


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    for make in (symbols, loops, branches, functions, endless, external, unreasonable, windows, batches):
        make(folder)


if __name__ == "__main__":
    main()
