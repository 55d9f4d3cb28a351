"""Two graphs over the same inputs as one, as Optimum merges decoders for onnx_sizes.py."""


def branches(parts, results):
    """An `If` by `use_cache_branch` over two exported graphs, whose weights stay those of the graph outside."""
    from onnx import TensorProto, helper

    for part, prefix in zip(parts, ("first_", "then_")):
        kept = {value.name for value in part.graph.input}
        rename = lambda name: name if not name or name in kept else prefix + name  # noqa: E731, B023
        for node in part.graph.node:
            node.input[:], node.output[:] = map(rename, node.input), map(rename, node.output)
            assert not any(attribute.HasField("g") for attribute in node.attribute)
        for own in [*part.graph.initializer, *part.graph.output]:
            own.name = rename(own.name)
        del part.graph.value_info[:]
    first, then = parts
    made = [helper.make_graph(part.graph.node, name, [], [helper.make_tensor_value_info(value.name, TensorProto.FLOAT, None) for value in part.graph.output]) for part, name in [(then, "with_past"), (first, "no_past")]]
    node = helper.make_node("If", ["use_cache_branch"], results, then_branch=made[0], else_branch=made[1])
    ports = [*then.graph.input, helper.make_tensor_value_info("use_cache_branch", TensorProto.BOOL, [1])]
    given = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [f"d{i}_{axis}" for axis in range(3 if name == "logits" else 4)]) for i, name in enumerate(results)]
    graph = helper.make_graph([node], "merged", ports, given, [*first.graph.initializer, *then.graph.initializer])
    return helper.make_model(graph, opset_imports=then.opset_import, ir_version=9)
