#!/usr/bin/env python3
"""Exports seeded networks as ExecuTorch programs whose whole work is the Vulkan delegate's, for tests of the .pte front end.

usage: export_pte.py OUT_DIR [--models a,b]
       HALITE_PTE_MODELS=OUT_DIR cargo test -p halite-conformance --test compiler executorch

For each network and type: NAME.pte, NAME.in0.npy, NAME.out0.npy (torch eager in f32), listed in OUT_DIR/manifest.jsonl.
Weights are random but seeded; batch-norm statistics come from one seeded batch. The `tiny_*` networks are those of
formats/tests/data. Needs: executorch==1.5.1 torch torchvision.
"""
import argparse, json, pathlib
import numpy as np
import torch
import torchvision.models as tv
from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
from executorch.exir import to_edge_transform_and_lower
from torch import nn

IMAGE = (1, 3, 224, 224)


class Accumulate(nn.Module):
    """A state that a call changes, and work that the delegate does not do."""

    def __init__(self):
        super().__init__()
        self.register_buffer("sum", torch.zeros(2, 3))

    def forward(self, x):
        self.sum.add_(x)
        return torch.cumsum(self.sum * 2, 1)


def tiny_convolution():
    return nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16, 3))


def encoder():
    layer = nn.TransformerEncoderLayer(64, 4, 256, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


# Network, dimensions of its input, dynamic dimensions of its input.
MODELS = {
    "mobilenet_v2": (tv.mobilenet_v2, IMAGE, None),
    "resnet18": (tv.resnet18, IMAGE, None),
    "squeezenet1_1": (tv.squeezenet1_1, IMAGE, None),
    "shufflenet_v2": (tv.shufflenet_v2_x0_5, IMAGE, None),
    "efficientnet_b0": (tv.efficientnet_b0, IMAGE, None),
    "encoder": (encoder, (1, 24, 64), None),
    "tiny_convolution": (tiny_convolution, (1, 2, 4, 4), None),
    "tiny_dynamic": (lambda: nn.Sequential(nn.Linear(4, 3), nn.Softmax(-1)), (5, 4), {0: torch.export.Dim("rows", min=1, max=8)}),
    "tiny_partial": (Accumulate, (2, 3), None),
}


def export(name, half, out):
    make, shape, dynamic = MODELS[name]
    torch.manual_seed(7)
    model = make()
    model.train()
    with torch.no_grad():
        if shape == IMAGE:
            model(torch.randn(8, *IMAGE[1:]))
    model.eval()
    x = torch.randn(shape)
    program = torch.export.export(model, (x,), dynamic_shapes=(dynamic,) if dynamic else None)
    with torch.no_grad():
        expected = make_expected(make, model, x)
    options = {"force_fp16": True} if half else {}
    if dynamic:
        options["require_dynamic_shapes"] = True
    lowered = to_edge_transform_and_lower(program, partitioner=[VulkanPartitioner(options)]).to_executorch()
    label = name + ("_f16" if half else "")
    (out / f"{label}.pte").write_bytes(lowered.buffer)
    np.save(out / f"{label}.in0.npy", x.numpy())
    np.save(out / f"{label}.out0.npy", expected.numpy())
    bound = 1e-2 if half else 1e-4
    sets = [{"inputs": [f"{label}.in0.npy"], "outputs": [f"{label}.out0.npy"]}]
    return {"name": label, "pte": f"{label}.pte", "sets": sets, "atol": bound * float(expected.abs().max()), "rtol": bound,
            "bytes": len(lowered.buffer)}


def make_expected(make, model, x):
    """Eager, of a copy where the model keeps state, so that the exported one starts anew."""
    copy = make()
    copy.load_state_dict(model.state_dict())
    return copy.eval()(x)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--models", default=",".join(MODELS))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    with (args.out / "manifest.jsonl").open("w") as manifest:
        for name in args.models.split(","):
            for half in (False, True) if MODELS[name][1] == IMAGE else (False,):
                case = export(name, half, args.out)
                manifest.write(json.dumps(case) + "\n")
                manifest.flush()
                print(case["name"], case["bytes"], "bytes")


if __name__ == "__main__":
    main()
