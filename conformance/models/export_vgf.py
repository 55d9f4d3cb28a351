"""Exports small networks with ExecuTorch's Arm back end as .vgf and .tosa files, with what the TOSA reference model computes.

usage: python export_vgf.py FOLDER [NAME ...]

Names are those below, or a network of vgf_networks.py, each with how numbers are held: `pixels_int8`, `mv2_mix8`. Without names: all below.
Writes FOLDER/manifest.jsonl, which `conformance run --suite=models --vgf-models=FOLDER` takes; those in conformance/vgf were made so.
Needs executorch, torchao, tosa-tools and ai-ml-sdk-model-converter from PyPI, whose programs have to be on the PATH. Integers are
exact; floats may be off by `part` of the largest value of an output.
"""

import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from executorch.backends.arm.quantizer import (
    VgfQuantizer,
    get_symmetric_a16w8_quantization_config,
    get_symmetric_quantization_config,
)
from executorch.backends.arm.vgf import VgfCompileSpec, VgfPartitioner
from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
from tosa import DType
from tosa.TosaGraph import TosaGraph
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

import vgf_networks

# How weights and activations are held, by the last part of names.
SPECS = {"fp32": "TOSA-1.0+FP", "int8": "TOSA-1.0+INT", "int16": "TOSA-1.0+INT+int16", "mix8": None}
PART = 1e-5


class Functions(nn.Module):
    """Elementwise functions, reductions, padding; five outputs."""

    def forward(self, x, y):
        z = torch.where(x > y, x, torch.exp(-y.abs()))
        z = torch.maximum(z, torch.minimum(x, y))
        z = z + torch.log(y.abs() + 1.5) + torch.sin(x) * torch.cos(y) + torch.erf(x)
        sums = torch.softmax(z, 2).sum(1)
        return z.clamp(-2, 3), (x * y).amax(1, keepdim=True), sums, torch.rsqrt(x * x + 1), F.pad(z, (1, 2, 0, 1), value=0.5)


class Pixels(nn.Module):
    """Convolutions, depthwise and transposed ones, pooling, and pixels that change places."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(2, 8, 5, padding=2)
        self.depthwise = nn.Conv2d(8, 8, 3, stride=2, padding=1, groups=8)
        self.up = nn.ConvTranspose2d(8, 8, 2, 2)
        self.last = nn.Conv2d(8, 8, 3, padding=1)

    def forward(self, x):
        y = F.max_pool2d(torch.relu(self.first(x)), 3, 1, 1)
        y = self.up(F.hardtanh(self.depthwise(y), 0, 6)) + y
        return F.pixel_shuffle(self.last(y), 2), F.avg_pool2d(y, 3, 2, 1)


class Attention(nn.Module):
    """A normalization and attention of one head."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(12)
        self.qkv = nn.Linear(12, 36)
        self.out = nn.Linear(12, 12)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        return x + self.out(torch.softmax(q @ k.transpose(-1, -2) * 0.3, -1) @ v)


def models():
    """By name: a model and its inputs."""
    torch.manual_seed(15)
    return {
        "functions": (Functions(), (torch.randn(2, 5, 7), torch.randn(2, 5, 7))),
        "pixels": (Pixels(), (torch.rand(1, 2, 10, 8) * 2 - 1,)),
        "attention": (Attention(), (torch.randn(1, 9, 12),)),
    }


def lower(model, inputs, kind, folder):
    """Exports; the back end leaves its .tosa and .vgf in the folder."""
    spec = VgfCompileSpec(SPECS[kind]) if SPECS[kind] else VgfCompileSpec()
    spec.dump_intermediate_artifacts_to(folder)
    program = torch.export.export(model.eval(), inputs)
    if kind != "fp32":
        config = get_symmetric_a16w8_quantization_config if kind == "int16" else get_symmetric_quantization_config
        quantizer = VgfQuantizer(spec).set_global(config(is_per_channel=True))
        prepared = prepare_pt2e(program.module(check_guards=False), quantizer)
        with torch.no_grad():
            prepared(*inputs)
        program = torch.export.export(convert_pt2e(prepared), inputs)
    checks = EdgeCompileConfig(_check_ir_validity=False)
    to_edge_transform_and_lower(program, partitioner=[VgfPartitioner(spec)], compile_config=checks)
    (tosa,), (vgf,) = glob.glob(folder + "/*.tosa"), glob.glob(folder + "/*.vgf")
    return tosa, vgf


def refer(tosa, inputs, folder, name):
    """The reference model's results for a .tosa file: names of the arrays of inputs and outputs."""
    block = TosaGraph.GetRootAs(open(tosa, "rb").read(), 0).Regions(0).Blocks(0)
    tensors = {block.Tensors(i).Name(): block.Tensors(i) for i in range(block.TensorsLength())}
    takes = [block.Inputs(i) for i in range(block.InputsLength())]
    gives = [block.Outputs(i) for i in range(block.OutputsLength())]
    narrow = {DType.DType.INT8: np.int8, DType.DType.INT16: np.int16}
    noise = np.random.default_rng(15)
    ins = [f"{name}.in{i}.npy" for i in range(len(takes))]
    for path, given, tensor in zip(ins, inputs, (tensors[take] for take in takes)):
        of = narrow.get(tensor.Type())
        ends = np.iinfo(of) if of else None
        array = noise.integers(ends.min, ends.max + 1, given.shape).astype(of) if of else given.numpy()
        np.save(os.path.join(folder, path), array)
    outs = [f"{name}.out{i}.npy" for i in range(len(gives))]
    named = lambda names: ",".join(n.decode() for n in names)
    command = ["tosa_reference_model", "--tosa_file", tosa, "--flatbuffer_dir", folder, "--output_dir", folder]
    command += ["--ifm_name", named(takes), "--ifm_file", ",".join(ins), "--ofm_name", named(gives), "--ofm_file", ",".join(outs)]
    subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return ins, outs


def main():
    folder = os.path.abspath(sys.argv[1])
    os.makedirs(folder, exist_ok=True)
    wanted = sys.argv[2:] or [f"{name}_{kind}" for name in models() for kind in SPECS]
    with open(os.path.join(folder, "manifest.jsonl"), "w") as manifest:
        for full in wanted:
            name, kind = full.rsplit("_", 1)
            model, inputs = vgf_networks.network(name) or models()[name]
            with tempfile.TemporaryDirectory() as temporary:
                tosa, vgf = lower(model, inputs, kind, temporary)
                ins, outs = refer(tosa, inputs, folder, full)
                shutil.copy(vgf, os.path.join(folder, full + ".vgf"))
                shutil.copy(tosa, os.path.join(folder, full + ".tosa"))
            line = {"name": full, "files": [full + ".vgf", full + ".tosa"], "inputs": ins, "outputs": outs, "part": PART}
            manifest.write(json.dumps(line) + "\n")
            manifest.flush()


if __name__ == "__main__":
    main()
