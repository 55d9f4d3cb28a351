#!/usr/bin/env python3
"""Makes `conformance/tests/data/state`: a decoder of two layers whose keys and values live in caches with room for all tokens, and
what ONNX Runtime says through a sequence.

    onnx_state.py conformance/tests/data/state

`decoder.onnx` takes a token, how many there were before (`seqlens_k`) and the caches; `tokens.npy` has those that it chooses one
after another, greedily, `logits.npy` and `key.npy` the scores and the keys of the last layer at the end. Weights are random
numbers from a fixed seed.
"""
import argparse
import pathlib

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

WORDS, WIDTH, HEADS, KV, DIM, ROOM, LAYERS, STEPS = 50, 32, 4, 2, 16, 96, 2, 80
OWN = "com.microsoft"


class Graph:
    """Nodes and constants as they come."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.constants = [], []

    def weight(self, *dims, size):
        return (self.random.standard_normal(dims) * size).astype(np.float32)

    def add(self, op, *inputs, outputs=1, domain="", **attributes):
        """A node; `outputs` are names, or how many there are."""
        names = []
        for value in inputs:
            if isinstance(value, np.ndarray):
                self.constants.append(numpy_helper.from_array(value, f"c{len(self.constants)}"))
                value = self.constants[-1].name
            names.append(value or "")
        made = outputs if isinstance(outputs, list) else [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, names, made, domain=domain, **attributes))
        return made[0] if len(made) == 1 else made


def decoder():
    g = Graph(13)
    angles = np.outer(np.arange(ROOM), 10000.0 ** (-np.arange(DIM // 2) / (DIM // 2))).astype(np.float32)
    tables = [np.cos(angles), np.sin(angles)]
    cache = [1, KV, ROOM, DIM]
    floats = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, cache)  # noqa: E731
    inputs = [helper.make_tensor_value_info("token", TensorProto.INT64, [1, 1]),
              helper.make_tensor_value_info("seqlens_k", TensorProto.INT32, [1]),
              helper.make_tensor_value_info("total_sequence_length", TensorProto.INT32, [])]
    outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, 1, WORDS]),
               helper.make_tensor_value_info("next", TensorProto.INT64, [1, 1])]
    norm = lambda x: g.add("SimplifiedLayerNormalization", x, np.ones(WIDTH, np.float32), axis=-1, epsilon=1e-5)  # noqa: E731
    x = g.add("Gather", g.weight(WORDS, WIDTH, size=1.0), "token")
    for layer in range(LAYERS):
        past = [f"past_key_values.{layer}.{part}" for part in ("key", "value")]
        present = [f"present.{layer}.{part}" for part in ("key", "value")]
        inputs += [floats(name) for name in past]
        outputs += [floats(name) for name in present]
        packed = g.add("MatMul", norm(x), g.weight(WIDTH, (HEADS + 2 * KV) * DIM, size=0.3))
        made = g.add("GroupQueryAttention", packed, None, None, *past, "seqlens_k", "total_sequence_length", *tables,
                     outputs=[f"attended.{layer}", *present], num_heads=HEADS, kv_num_heads=KV, do_rotary=1, domain=OWN)
        x = g.add("Add", x, g.add("MatMul", made[0], g.weight(HEADS * DIM, WIDTH, size=0.3)))
        wide = g.add("Relu", g.add("MatMul", norm(x), g.weight(WIDTH, 64, size=0.3)))
        x = g.add("Add", x, g.add("MatMul", wide, g.weight(64, WIDTH, size=0.3)))
    g.add("MatMul", norm(x), g.weight(WIDTH, WORDS, size=0.5), outputs=["logits"])
    g.add("ArgMax", "logits", outputs=["next"], axis=-1, keepdims=0)
    graph = helper.make_graph(g.nodes, "decoder", inputs, outputs, g.constants)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(OWN, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def sequence(model):
    """The tokens of a sequence, and what is there at its end."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [f"{layer}.{part}" for layer in range(LAYERS) for part in ("key", "value")]
    caches = {name: np.zeros([1, KV, ROOM, DIM], np.float32) for name in names}
    token, tokens, logits = 1, [1], None
    for step in range(STEPS):
        feeds = {"token": np.array([[token]]), "seqlens_k": np.array([step], np.int32),
                 "total_sequence_length": np.array(step + 1, np.int32)}
        feeds |= {f"past_key_values.{name}": cache for name, cache in caches.items()}
        logits, chosen, *new = session.run(None, feeds)
        caches = dict(zip(names, new))
        token = int(chosen[0, 0])
        tokens.append(token)
    return {"tokens": np.array(tokens), "logits": logits, **{f"present.{name}": x for name, x in caches.items()}}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    model = decoder()
    (folder / "decoder.onnx").write_bytes(model.SerializeToString(deterministic=True))
    expected = sequence(model)
    np.save(folder / "tokens.npy", expected["tokens"])
    np.save(folder / "logits.npy", expected["logits"])
    np.save(folder / "key.npy", expected["present.1.key"])
    print(f"{len(set(expected['tokens'].tolist()))} different tokens of {STEPS}")


if __name__ == "__main__":
    main()
