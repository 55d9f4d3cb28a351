#!/usr/bin/env python3
"""Exports small quantized networks as ExecuTorch programs of the Vulkan delegate, for tests of quantized operators.

usage: export_pte_quantized.py OUT_DIR [--only a,b]

For each: NAME.pte, NAME.in0.npy, NAME.out0.npy (what the quantized module computes in eager mode), and a line for OUT_DIR/manifest.jsonl,
printed. Weights are random but seeded. Needs: executorch==1.5.1 torchao==0.18.0 torch.
"""
import argparse, json, pathlib
import numpy as np
import torch
from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
from executorch.backends.vulkan.quantizer.vulkan_quantizer import VulkanQuantizer
from executorch.backends.vulkan.quantizer.vulkan_quantizer import get_symmetric_quantization_config as vulkan_config
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import XNNPACKQuantizer
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import get_symmetric_quantization_config as xnnpack_config
from executorch.exir import to_edge_transform_and_lower
from torch import nn
from torchao.quantization import Int8DynamicActivationIntxWeightConfig, IntxWeightOnlyConfig, quantize_
from torchao.quantization.granularity import PerGroup
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e


class Block(nn.Module):
    """Convolutions of all kinds, a residual, a pool and a product."""

    def __init__(self):
        super().__init__()
        self.first, self.deep = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.point, self.last = nn.Conv2d(8, 8, 1), nn.Linear(8, 10)

    def forward(self, x):
        x = torch.relu(self.first(x))
        x = x + self.point(torch.relu(self.deep(x)))
        return self.last(nn.functional.adaptive_avg_pool2d(x, 1).flatten(1))


def calibrated(quantizer):
    def quantize(model, inputs):
        module = prepare_pt2e(torch.export.export(model, inputs).module(), quantizer)
        with torch.no_grad():
            for given in [inputs] + [tuple(torch.randn_like(x) for x in inputs) for _ in range(3)]:
                module(*given)
        return convert_pt2e(module)

    return quantize


def by_torchao(config, which=None):
    def quantize(model, inputs):
        quantize_(model, config, which)
        return model

    return quantize


def vulkan(bits, dynamic=False):
    return lambda *a: calibrated(VulkanQuantizer().set_global(vulkan_config(is_dynamic=dynamic, weight_bits=bits)))(*a)


def xnnpack(*a):
    return calibrated(XNNPACKQuantizer().set_global(xnnpack_config(is_per_channel=True)))(*a)


def groups(size):
    return by_torchao(IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(size)))


def dynamic_groups(size):
    return by_torchao(Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int4, weight_granularity=PerGroup(size)))


TABLE = by_torchao(IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(32)), lambda module, _: isinstance(module, nn.Embedding))
INDICES = (torch.tensor([[1, 5, 19], [0, 2, 7]]),)

# Network, inputs or their dimensions, quantizer, tolerance beside that of a float.
CASES = {
    "quant_w4_group32": (lambda: nn.Linear(64, 12), (5, 64), groups(32), 1e-3),
    "quant_w4_group16": (lambda: nn.Linear(32, 12), (3, 32), groups(16), 1e-3),
    "quant_dynamic_w4": (lambda: nn.Linear(64, 12), (3, 64), dynamic_groups(32), 2e-2),
    "quant_w8": (lambda: nn.Linear(40, 12), (3, 40), vulkan(8), 1e-3),
    "quant_w4": (lambda: nn.Linear(40, 12), (3, 40), vulkan(4), 1e-3),
    # The exporter leaves the quantization of activations out of the program.
    "quant_dequantized_w8": (lambda: nn.Linear(40, 12), (3, 40), vulkan(8, True), 2e-2),
    "quant_rows": (lambda: nn.Sequential(nn.Linear(40, 22), nn.ReLU(), nn.Linear(22, 10)), (3, 40), xnnpack, 2e-2),
    "quant_block": (Block, (1, 3, 8, 9), xnnpack, 2e-2),
    "quant_transposed": (lambda: nn.Sequential(nn.Conv2d(4, 8, 1), nn.ConvTranspose2d(8, 8, 4, 2, 1, groups=2)), (1, 4, 4, 5), xnnpack, 2e-2),
    "quant_shuffle": (lambda: nn.Sequential(nn.Conv2d(4, 16, 3, padding=1), nn.PixelShuffle(2), nn.Conv2d(4, 4, 1)), (1, 4, 4, 5), xnnpack, 2e-2),
    "quant_table": (lambda: nn.Embedding(20, 64), INDICES, TABLE, 1e-3),
}


def export(name, out):
    make, given, quantize, tolerance = CASES[name]
    torch.manual_seed(11)
    model = make().eval()
    inputs = given if isinstance(given[0], torch.Tensor) else (torch.randn(given),)
    module = quantize(model, inputs)
    with torch.no_grad():
        wanted = module(*inputs)
    lowered = to_edge_transform_and_lower(torch.export.export(module, inputs), partitioner=[VulkanPartitioner({})])
    (out / f"{name}.pte").write_bytes(lowered.to_executorch().buffer)
    np.save(out / f"{name}.in0.npy", inputs[0].numpy())
    np.save(out / f"{name}.out0.npy", wanted.numpy())
    sets = [{"inputs": [f"{name}.in0.npy"], "outputs": [f"{name}.out0.npy"]}]
    return json.dumps({"name": name, "pte": f"{name}.pte", "sets": sets, "atol": tolerance, "rtol": tolerance})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--only", default=",".join(CASES))
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in arguments.only.split(","):
        print(export(name, arguments.out), flush=True)


if __name__ == "__main__":
    main()
