#!/usr/bin/env python3
"""Exports small ExecuTorch programs, all or most of whose work is the XNNPACK delegate's: operators as floats and as 8-bit
and 4-bit numbers.

usage: export_pte_xnnpack.py OUT_DIR [--only a,b]

For each case: NAME.pte, inputs and what PyTorch computes as .npy, and a line of OUT_DIR/manifest.jsonl. Of quantized cases
that is the result of the converted module, and the tolerance is one step of the result's scale. Fails when no delegate is
made. Needs: executorch==1.5.1 torch torchao.
"""
import argparse, json, pathlib, sys
import numpy as np
import torch
import torch.nn.functional as F
from executorch.backends.xnnpack.partition.config.xnnpack_config import ConfigPrecisionType
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import XNNPACKQuantizer, get_symmetric_quantization_config
from executorch.exir import to_edge_transform_and_lower
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e


class Call(nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


class Blocks(nn.Module):
    """Convolutions as networks have them: with a residual, a depthwise one, a mean and a product."""

    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU6())
        self.each = nn.Sequential(nn.Conv2d(8, 8, 3, 1, 1, groups=8, bias=False), nn.BatchNorm2d(8), nn.Hardswish())
        self.last = nn.Sequential(nn.Conv2d(8, 8, 1), nn.BatchNorm2d(8))
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        x = self.first(x)
        x = F.relu(x + self.last(self.each(x)))
        return self.head(x.mean((2, 3)))


class Attention(nn.Module):
    """Attention as a model of language has it."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(32, 32) for _ in range(4))

    def forward(self, x):
        def heads(y):
            return y.view(1, 6, 4, 8).transpose(1, 2)

        q, k, v = heads(self.q(x)), heads(self.k(x)), heads(self.v(x))
        w = torch.softmax(q @ k.transpose(-1, -2) / 8**0.5, -1)
        return self.o((w @ v).transpose(1, 2).reshape(1, 6, 32))


def r(*dims):
    return torch.randn(dims)


def positive(*dims):
    return torch.rand(dims) + 0.1


def conv(*args, **more):
    return nn.Conv2d(*args, **more)


LAST = torch.channels_last

# Module or function, inputs, how numbers are held.
CASES = {
    "add": (lambda x, y: x + y, [r(2, 3, 4), r(3, 1)]),
    "arithmetic": (lambda x, y: torch.maximum((x - y) * x, x) / torch.minimum(y, x * y).abs(), [positive(2, 5), positive(1, 5)]),
    "functions": (lambda x: torch.sin(x).abs() + torch.cos(-x).exp() + torch.tanh(x).square() + torch.floor(x) * torch.ceil(x), [r(3, 7)]),
    "roots": (lambda x: torch.sqrt(x) + torch.rsqrt(x) + torch.log(x), [positive(4, 5)]),
    "activations": (lambda x: F.elu(x, 0.7) + F.leaky_relu(x, 0.2) + F.gelu(x) + F.hardswish(x) + torch.sigmoid(x), [r(4, 9)]),
    "clamp": (lambda x: torch.clamp(x, -0.5, 0.75) + F.relu(x) + F.hardtanh(x), [r(4, 9)]),
    "prelu": (nn.PReLU(4, 0.3), [r(1, 4, 3, 5)]),
    "softmax": (lambda x: torch.softmax(x, -1), [r(2, 3, 9)]),
    "conv": (conv(3, 4, 3, 2, 1), [r(2, 3, 9, 8)]),
    "conv_groups": (conv(4, 6, 3, 1, (0, 1), dilation=(2, 1), groups=2, bias=False), [r(1, 4, 9, 8)]),
    "conv_relu": (nn.Sequential(conv(3, 4, 3), nn.ReLU(), conv(4, 4, 1), nn.ReLU6()), [r(1, 3, 7, 8)]),
    "conv1d": (nn.Conv1d(3, 4, 3, 1, 1), [r(1, 3, 11)]),
    "conv_depthwise": (conv(4, 8, 3, 1, 1, groups=4), [r(1, 4, 6, 7)]),
    "conv_transposed": (nn.ConvTranspose2d(4, 6, 3, 2, 1, 1, groups=2), [r(1, 4, 5, 4)]),
    "channels_last": (nn.Sequential(conv(3, 4, 3), nn.ReLU(), conv(4, 5, 1)), [r(1, 3, 7, 8).to(memory_format=LAST)]),
    "pools": (lambda x: F.max_pool2d(x, 3, 2, 1)[:, :, :3, :3] + F.avg_pool2d(x, 3, 2, 1, count_include_pad=False)[:, :, :3, :3], [r(1, 3, 8, 9)]),
    "pool_ceil": (lambda x: F.max_pool2d(x, 3, 2, 0, ceil_mode=True), [r(1, 3, 8, 9)]),
    "mean": (lambda x: x.mean((2, 3), keepdim=True), [r(2, 3, 4, 5)]),
    "bilinear": (lambda x: F.interpolate(x, (7, 9), mode="bilinear"), [r(1, 2, 4, 5)]),
    "bilinear_corners": (lambda x: F.interpolate(x, (7, 9), mode="bilinear", align_corners=True), [r(1, 2, 4, 5)]),
    "linear": (nn.Linear(7, 5), [r(2, 3, 7)]),
    "linear_relu": (nn.Sequential(nn.Linear(7, 5, bias=False), nn.ReLU()), [r(3, 7)]),
    "bmm": (lambda x, y: torch.bmm(x, y), [r(3, 2, 4), r(3, 4, 5)]),
    "moves": (lambda x, y: torch.cat((x.permute(0, 2, 1), y, y * 2, y - 1, y + x.permute(0, 2, 1)), 2)[:, 1:3].reshape(2, -1), [r(2, 3, 4), r(2, 4, 3)]),
    "pad": (lambda x: F.pad(x, (1, 2, 0, 3), value=1.5), [r(2, 3, 4)]),
    "joined_images": (lambda x: torch.cat((F.max_pool2d(x, 2), F.avg_pool2d(x, 2)), 1), [r(1, 3, 6, 4)]),
    "attention": (Attention(), [r(1, 6, 32)]),
    "blocks": (Blocks(), [r(1, 3, 16, 16)]),
    "half": (nn.Sequential(nn.Linear(8, 6), nn.Tanh()), [r(3, 8)], "half"),
    "q8_conv": (conv(3, 4, 3, 2, 1), [r(1, 3, 9, 8)], "channels"),
    "q8_conv_relu": (nn.Sequential(conv(3, 4, 3), nn.ReLU()), [r(1, 3, 7, 8)], "channels"),
    "q8_conv_tensor": (nn.Sequential(conv(3, 4, 3), nn.ReLU6(), conv(4, 4, 1)), [r(1, 3, 7, 8)], "tensor"),
    "q8_depthwise": (conv(4, 4, 3, 1, 1, groups=4), [r(1, 4, 6, 7)], "channels"),
    "q8_conv_transposed": (nn.ConvTranspose2d(4, 6, 3, 2, 1), [r(1, 4, 5, 4)], "channels"),
    "q8_linear": (nn.Linear(7, 5), [r(3, 7)], "channels"),
    "q8_linear_relu": (nn.Sequential(nn.Linear(7, 5), nn.ReLU()), [r(3, 7)], "tensor"),
    "q8_add_relu": (lambda x, y: F.relu(x + y), [r(2, 3, 4, 5), r(2, 3, 4, 5)], "channels"),
    "q8_mul": (lambda x, y: x * y, [r(2, 3, 4, 5), r(2, 3, 4, 5)], "channels"),
    "q8_pools": (lambda x: F.max_pool2d(torch.add(x, x), 2), [r(1, 3, 6, 4)], "channels"),
    "q8_blocks": (Blocks(), [r(1, 3, 16, 16)], "channels", 3),
    "d8_linear": (nn.Linear(32, 5), [r(3, 32)], "dynamic"),
    "d8_conv": (conv(3, 4, 3, 1, 1), [r(1, 3, 7, 8)], "dynamic", 4),
    "d8_attention": (Attention(), [r(1, 6, 32)], "dynamic", 4),
    "d4_groups": (nn.Linear(64, 5), [r(3, 64)], "groups4"),
    "d4_groups_bias_free": (nn.Linear(128, 7, bias=False), [r(1, 2, 128)], "groups4"),
    "d4_channels": (nn.Linear(96, 4), [r(2, 96)], "channels4"),
}


def quantized(module, inputs, kind):
    """The module with integers in it, and the largest step of its results."""
    if kind in ("groups4", "channels4"):
        from torchao.quantization import quantize_
        from torchao.quantization.granularity import PerAxis, PerGroup
        from torchao.quantization.quant_api import Int8DynamicActivationIntxWeightConfig
        from torchao.utils import unwrap_tensor_subclass

        granularity = PerGroup(32) if kind == "groups4" else PerAxis(0)
        quantize_(module, Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int4, weight_granularity=granularity))
        unwrap_tensor_subclass(module)
        return module, float(inputs[0].abs().max()) / 127
    quantizer = XNNPACKQuantizer()
    quantizer.set_global(get_symmetric_quantization_config(is_per_channel=kind != "tensor", is_dynamic=kind == "dynamic"))
    prepared = prepare_pt2e(torch.export.export(module, tuple(inputs)).module(), quantizer)
    for k in range(4):
        prepared(*(x * (1 - k / 8) for x in inputs))
    converted = convert_pt2e(prepared)
    steps = [n.args[1] for n in converted.graph.nodes if "dequantize_per_tensor.default" in str(n.target)]
    return converted, max([s for s in steps[-1:] if isinstance(s, float)], default=float(inputs[0].abs().max()) / 127)


def prepared(name):
    torch.manual_seed(5)
    what, inputs, *more = CASES[name]
    kind, steps = (list(more) + [None, 1][len(more):])[:2] if more else (None, 1)
    module = what if isinstance(what, nn.Module) else Call(what)
    module.train()
    for _ in range(3):
        module(*(torch.randn_like(x) if name == "blocks" or name == "q8_blocks" else x for x in inputs))
    return module.eval(), list(inputs), kind, steps


def export(name, out):
    module, inputs, kind, steps = prepared(name)
    bound, rtol = 1e-4, 1e-4
    precisions = None
    if kind == "half":
        module, inputs, bound, rtol = module.half(), [x.half() for x in inputs], 5e-3, 5e-3
    elif kind:
        module, step = quantized(module, inputs, kind)
        # Results of sums of dynamically quantized numbers differ by parts of the inputs' steps.
        bound, rtol = 1.02 * steps * step, 0.0 if kind in ("channels", "tensor") else 1e-2
        if kind in ("groups4", "channels4"):
            precisions = ConfigPrecisionType.DYNAMIC_QUANT
    with torch.no_grad():
        expected = module(*inputs)
    program = torch.export.export(module, tuple(inputs), strict=False)
    partitioner = XnnpackPartitioner(config_precisions=precisions, per_op_mode=True) if precisions else XnnpackPartitioner()
    lowered = to_edge_transform_and_lower(program, partitioner=[partitioner]).to_executorch()
    plan = lowered.executorch_program.execution_plan[0]
    if not plan.delegates:
        return f"{name}: nothing is delegated"
    files = {"in": [f"{name}.in{n}.npy" for n in range(len(inputs))], "out": [f"{name}.out0.npy"]}
    for path, tensor in zip(files["in"] + files["out"], inputs + [expected]):
        np.save(out / path, tensor.detach().contiguous().numpy())
    (out / f"{name}.pte").write_bytes(lowered.buffer)
    outside = sorted({f"{op.name}.{op.overload}" for op in plan.operators})
    return {"name": name, "pte": f"{name}.pte", "sets": [{"inputs": files["in"], "outputs": files["out"]}], "atol": bound, "rtol": rtol,
            "outside": outside}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--only", default=",".join(CASES))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    failed = []
    with (args.out / "manifest.jsonl").open("w") as manifest:
        for name in args.only.split(","):
            try:
                case = export(name, args.out)
            except Exception as error:
                case = f"{name}: {type(error).__name__} {(str(error).splitlines() or [''])[0]}"
            if isinstance(case, str):
                failed.append(case)
                continue
            manifest.write(json.dumps(case) + "\n")
            print(name, case["outside"], flush=True)
    print("\n".join(failed))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
