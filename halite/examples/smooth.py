#!/usr/bin/env python3
"""Makes smooth.onnx, the model of the examples: next = 0.5 * state + 0.5 * sample, for any number of elements.

usage: smooth.py   (writes smooth.onnx beside itself; needs the package onnx)
"""
import pathlib

from onnx import TensorProto, checker, helper

half = helper.make_tensor("half", TensorProto.FLOAT, [1], [0.5])
nodes = [
    helper.make_node("Mul", ["state", "half"], ["old"]),
    helper.make_node("Mul", ["sample", "half"], ["new"]),
    helper.make_node("Add", ["old", "new"], ["next"]),
]
value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"])
graph = helper.make_graph(nodes, "smooth", [value("state"), value("sample")], [value("next")], [half])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
checker.check_model(model, full_check=True)
(pathlib.Path(__file__).parent / "smooth.onnx").write_bytes(model.SerializeToString())
