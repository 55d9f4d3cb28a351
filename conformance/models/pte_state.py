#!/usr/bin/env python3
"""Exports ExecuTorch programs that keep state, runs them in order on one session, and compares each call with eager PyTorch.

usage: pte_state.py make FOLDER [NAME...]
       pte_state.py check [--device vulkan] FOLDER [NAME...]

Decoders of transformers with its static caches (no back end, XNNPACK whole, and XNNPACK with weights of 4 bits and tokens left outside), a stream of convolutions and a
GRU whose buffers are written in place, and a running mean and a ring that count their calls. Weights are random. `make`
needs executorch==1.5.1, torch, torchao and transformers, `check` the package `halite`.
"""
import argparse
import pathlib
import sys

import numpy as np
from onnx_sizes import difference

STEPS = 24


def causal(name, **more):
    """A decoder with a static cache, and the calls of a sequence: a token and its place."""
    import torch
    import transformers
    from transformers.integrations.executorch import TorchExportableModuleWithStaticCache

    common = dict(vocab_size=64, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64, pad_token_id=0)
    config = getattr(transformers, name + "Config")(**common | more)
    config._attn_implementation = "eager"
    torch.manual_seed(3)
    model = getattr(transformers, name + "ForCausalLM")(config).eval()
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.15) if weight.dim() > 1 else None
    model.generation_config = transformers.GenerationConfig(use_cache=True, cache_implementation="static", max_length=32, cache_config={"batch_size": 1, "max_cache_len": 32})
    module = TorchExportableModuleWithStaticCache(model, batch_size=1, max_cache_len=32)
    draw = np.random.default_rng(5)
    calls = [(torch.tensor([[int(draw.integers(1, 64))]]), torch.tensor([step])) for step in range(STEPS)]
    return Positioned(module), calls


def Positioned(module):
    import torch

    class Call(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = module

        def forward(self, ids, at):
            return self.inner(input_ids=ids, cache_position=at)

    return Call()


def stream():
    """Chunks of sound: the end of each is kept for the next, and the GRU's memory."""
    import torch
    from torch import nn

    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.gru, self.out = nn.Conv1d(4, 12, 5), nn.GRU(12, 12, batch_first=True), nn.Linear(12, 3)
            self.register_buffer("end", torch.zeros(1, 4, 4))
            self.register_buffer("memory", torch.zeros(1, 1, 12))

        def forward(self, x):
            x = torch.cat([self.end, x], 2)
            self.end.copy_(x[:, :, -4:])
            y, memory = self.gru(torch.relu(self.conv(x)).transpose(1, 2), self.memory)
            self.memory.copy_(memory)
            return self.out(y).softmax(-1)

    torch.manual_seed(1)
    return Module().eval(), [(torch.randn(1, 4, 16),) for _ in range(STEPS)]


def counted():
    """A mean of all calls so far, the rows of the last eight in a ring, and which of them are the largest."""
    import torch
    from torch import nn

    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(6, 6)
            self.register_buffer("mean", torch.zeros(6))
            self.register_buffer("ring", torch.zeros(8, 6))
            self.register_buffer("count", torch.zeros(1, dtype=torch.long))

        def forward(self, x):
            y = torch.tanh(self.layer(x))
            self.ring.index_copy_(0, self.count % 8, y[None])
            self.count.add_(1)
            self.mean.add_((y - self.mean) / self.count)
            return self.mean * 2, self.ring.sum(0), self.ring.argmax(1)

    torch.manual_seed(1)
    return Module().eval(), [(torch.randn(6),) for _ in range(STEPS)]


DECODERS = {"olmo2": ("Olmo2", {}), "granite": ("Granite", {}), "phi3": ("Phi3", {}), "helium": ("Helium", {"head_dim": 16})}
BACK_ENDS = {"none": None, "xnn": "xnnpack", "vk": "vulkan", "xnn_8da4w": "xnnpack"}
CASES = {f"{name}-{kind}": (lambda own=own: causal(own[0], **own[1]), kind) for name, own in DECODERS.items() for kind in ("none", "xnn", "vk", "xnn_8da4w")}
CASES |= {f"{make.__name__}-{kind}": (make, kind) for make in (stream, counted) for kind in ("none", "xnn", "vk")}
# Vulkan's exporter copies a counter that is read inside and outside of its delegate, and writes the copy alone.
del CASES["counted-vk"]


def make(name, folder):
    import copy

    import torch
    from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import to_edge_transform_and_lower

    build, kind = CASES[name]
    module, calls = build()
    if kind == "xnn_8da4w":
        from torchao.quantization import Int8DynamicActivationIntxWeightConfig, quantize_
        from torchao.quantization.granularity import PerGroup

        quantize_(module, Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int4, weight_granularity=PerGroup(32)))
    with torch.no_grad():
        program = torch.export.export(copy.deepcopy(module), calls[0], strict=True)
        parts = {"xnnpack": [XnnpackPartitioner()], "vulkan": [VulkanPartitioner({})]}.get(BACK_ENDS[kind], [])
        lowered = to_edge_transform_and_lower(program, partitioner=parts).to_executorch()
        (folder / f"{name}.pte").write_bytes(lowered.buffer)
        arrays = {}
        for step, call in enumerate(calls):
            given = [value.numpy() for value in call]
            found = module(*call)
            found = [value.numpy() for value in (found if isinstance(found, tuple) else (found,))]
            arrays |= {f"{step}/in{i}": value for i, value in enumerate(given)} | {f"{step}/out{i}": value for i, value in enumerate(found)}
    np.savez(folder / f"{name}.npz", **arrays)
    print(f"{name}: {len(calls)} calls", flush=True)


def check(path, device):
    """How many calls are right, the largest difference as a part of the largest number, and how many have the same largest place."""
    import halite

    arrays = np.load(path.with_suffix(".npz"))
    session = halite.Session(str(path), device=device, cache=False)
    worst, same, calls = 0.0, 0, 0
    while f"{calls}/in0" in arrays:
        given = [arrays[f"{calls}/in{i}"] for i in range(9) if f"{calls}/in{i}" in arrays]
        out = session.run(given)
        firsts = []
        for i, port in enumerate(session.outputs):
            found, wanted = np.asarray(out[port.name]), arrays[f"{calls}/out{i}"]
            worst = max(worst, difference(found.astype(np.float64), wanted.astype(np.float64)))
            firsts.append(found.shape == wanted.shape and found.reshape(-1).argmax() == wanted.reshape(-1).argmax())
        same += all(firsts)
        calls += 1
    return calls, worst, same, session.loaded_versions


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["make", "check"])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--device", default="vulkan")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    if args.what == "make":
        for name in args.names or CASES:
            try:
                make(name, args.folder)
            except Exception as error:  # noqa: BLE001: exporters fail in many ways.
                print(f"{name}: not exported: {type(error).__name__}: {str(error).splitlines()[0][:160] if str(error) else ''}", flush=True)
        return
    import halite

    wrong = 0
    for path in sorted(args.folder.glob("*.pte")):
        if args.names and path.stem not in args.names:
            continue
        try:
            calls, worst, same, versions = check(path, args.device)
            # Codes that fall the other way move what is computed of them.
            is_right = worst <= (3e-2 if "8da4w" in path.stem else 2e-4)
            print(f"{path.stem}: {'right' if is_right else 'wrong'}, {calls} calls, largest difference {worst:.1e}, {same} with the same largest place, {versions} versions", flush=True)
            wrong += not is_right
        except halite.Error as error:
            print(f"{path.stem}: refused: {str(error)[:300]}", flush=True)
            wrong += 1
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
