#!/usr/bin/env python3
"""Exports one small ExecuTorch program for each of many uses of operators, all of it the Vulkan delegate's work.

usage: export_pte_operators.py OUT_DIR [--only a,b]

For each case: NAME.pte, inputs and torch eager's outputs as .npy, and a line of OUT_DIR/manifest.jsonl with what the
delegate's graph consists of. Fails when a case is not wholly delegated. Needs: executorch==1.5.1 torch.
"""
import argparse, json, pathlib, sys
import numpy as np
import torch
import torch.nn.functional as F
import executorch.backends.vulkan.custom_ops_lib  # noqa: F401 (registers torch.ops.et_vk)
from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
from executorch.exir import to_edge_transform_and_lower
from executorch.exir.dialects._ops import ops as exir_ops
from torch import nn

vk = torch.ops.et_vk
edge = exir_ops.edge


class Call(nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def r(*dims):
    return torch.randn(dims)


def positive(*dims):
    return torch.rand(dims) + 0.1


def i(high, *dims, dtype=torch.int64):
    return torch.randint(0, high, dims, dtype=dtype)


def truth(*dims):
    return torch.rand(dims) > 0.5


def drawn(x):
    """What random numbers have in common: means and squares, and how far dropped elements are from what they should be."""
    even, normal = torch.rand(64, 65), torch.randn(64, 65)
    left, stays = torch.ops.aten.native_dropout(x, 0.25, True)
    same, all_stay = torch.ops.aten.native_dropout(x, 0.25, False)
    parts = [even.mean(), (even * even).mean(), even.amin(), even.amax(), normal.mean(), (normal * normal).mean(), (even * normal).mean()]
    return torch.stack(parts), stays.float().mean(), left - x * stays / 0.75, same, all_stay


# Function or module, inputs, whether floats are stored as halves inside.
CASES = {
    "abs": (torch.abs, [r(2, 3, 5)]),
    "addmm": (lambda x, y: torch.addmm(torch.arange(4.0), x, y, beta=0.5, alpha=2.0), [r(3, 5), r(5, 4)]),
    "add_alpha": (lambda x, y: torch.add(x, y, alpha=2.5), [r(2, 3), r(3)]),
    "amin": (lambda x: torch.amin(x, 1), [r(4, 9)]),
    "arange": (lambda x: x + torch.arange(0, 6, dtype=torch.int32).to(torch.float32), [r(2, 6)]),
    "argmin": (lambda x: torch.argmin(x, -1), [r(3, 8)]),
    "avg_pool_no_pad_count": (nn.AvgPool2d(3, 2, 1, count_include_pad=False), [r(1, 4, 9, 10)]),
    "avg_pool_ceil": (nn.AvgPool2d(3, 2, 1, ceil_mode=True), [r(1, 4, 8, 10)]),
    "avg_pool_divisor_ceil": (nn.AvgPool2d((2, 3), 2, 1, ceil_mode=True, divisor_override=5), [r(1, 3, 8, 9)]),
    "batch_norm": (nn.BatchNorm2d(5), [r(1, 5, 4, 3)]),
    "bitwise_not": (torch.bitwise_not, [truth(3, 7)]),
    "bmm": (torch.bmm, [r(2, 3, 5), r(2, 5, 4)]),
    "cat_empty": (lambda x, y: torch.cat([x[:, :0], y, x], 1), [r(2, 3), r(2, 4)]),
    "clamp_min": (lambda x: torch.clamp(x, min=-0.2), [r(2, 9)]),
    "conv_groups": (nn.Conv2d(6, 9, 3, padding=(1, 2), groups=3), [r(1, 6, 7, 8)]),
    "conv_dilated": (nn.Conv2d(3, 4, 3, dilation=2, stride=(2, 1), bias=False), [r(1, 3, 11, 10)]),
    "conv_relu": (nn.Sequential(nn.Conv2d(3, 4, 1), nn.ReLU()), [r(1, 3, 5, 6)]),
    "conv_relu6": (nn.Sequential(nn.Conv2d(4, 4, 3, groups=4), nn.ReLU6()), [r(1, 4, 5, 6)]),
    "conv_transpose_groups": (nn.ConvTranspose2d(4, 6, 3, 2, 1, output_padding=1, groups=2), [r(1, 4, 5, 6)]),
    "conv1d": (nn.Conv1d(4, 6, 3, 2, padding=1, dilation=2, groups=2), [r(1, 4, 15)]),
    "div_trunc_constant": (lambda x: torch.div(x, 0.75, rounding_mode="floor"), [r(3, 5)]),
    "eq": (torch.eq, [i(3, 4, 5, dtype=torch.int32), i(3, 4, 5, dtype=torch.int32)]),
    "expand": (lambda x: x.expand(2, 3, 4) * 1.0, [r(3, 1)]),
    "exp": (torch.exp, [r(3, 4)]),
    "flip_two": (lambda x: torch.flip(x, [0, 2]), [r(2, 3, 5)]),
    "full_like": (lambda x: torch.full_like(x, 2.5) * x, [r(2, 3)]),
    "gather": (lambda x, y: torch.gather(x, 1, y), [r(4, 9), i(9, 4, 6)]),
    "ge_scalar": (lambda x: torch.ge(x, 0.25), [r(4, 5)]),
    "gelu_tanh": (nn.GELU("tanh"), [r(3, 7)]),
    "grid_priors": (lambda x: vk.grid_priors(x, 8, 0.5), [r(1, 2, 3, 5)]),
    "grid_sample": (lambda x, y: F.grid_sample(x, y, "bilinear", "border", True), [r(1, 4, 6, 5), r(1, 3, 7, 2)]),
    "group_norm_3d": (nn.GroupNorm(2, 6), [r(1, 6, 9, 5)]),
    "index_two": (lambda x, y: x[y], [r(6, 4), i(6, 3)]),
    "layer_norm_plain": (nn.LayerNorm(12, elementwise_affine=False), [r(2, 5, 12)]),
    "log10": (torch.log10, [positive(3, 4)]),
    "log_softmax": (nn.LogSoftmax(-1), [r(3, 11)]),
    "logical_and": (torch.logical_and, [truth(3, 5), truth(3, 5)]),
    "lt": (torch.lt, [r(3, 5), r(5)]),
    "max_pool_indices": (nn.MaxPool2d(3, 2, 1, return_indices=True), [r(1, 4, 9, 8)]),
    "max_pool_ceil": (nn.MaxPool2d((3, 2), (2, 3), (1, 0), dilation=(1, 2), ceil_mode=True), [r(1, 3, 10, 11)]),
    "mean_two": (lambda x: torch.mean(x, [2, 3], keepdim=True), [r(1, 4, 5, 6)]),
    "mean_half": (lambda x: torch.mean(x, [-1], keepdim=True), [r(2, 4, 40)], True),
    "neg_int": (lambda x: 3 - x, [i(9, 2, 5, dtype=torch.int32)]),
    "neg": (torch.neg, [r(3, 4)]),
    "ones": (lambda x: x + torch.ones(2, 3), [r(2, 3)]),
    "pad_four": (lambda x: F.pad(x, (1, 2, 0, 3), value=1.5), [r(1, 2, 4, 5)]),
    "pow_tensor": (torch.pow, [positive(3, 4), r(3, 4)]),
    "pow_three": (lambda x: torch.pow(x, 3), [r(3, 4)]),
    "repeat": (lambda x: x.repeat(2, 1, 3), [r(2, 3, 4)]),
    "repeat_lead": (lambda x: x.repeat(2, 3, 2), [r(3, 4)]),
    "rope": (vk.apply_rotary_emb, [r(1, 3, 2, 8), r(1, 3, 1, 8), r(3, 4), r(3, 4)]),
    "rope_hf": (lambda q, k, c, s: vk.apply_rotary_emb_hf(q, k, c, s, 2), [r(1, 3, 4, 8), r(1, 3, 2, 8), r(9, 6), r(9, 6)]),
    "rope_interleaved": (vk.apply_rotary_emb_interleaved, [r(2, 3, 8), r(3, 8)]),
    "round": (torch.round, [r(3, 9) * 4]),
    "rsqrt": (torch.rsqrt, [positive(3, 4)]),
    "rms_norm": (lambda x, w: vk.rms_norm(x, w, 1e-5), [r(2, 3, 16), r(16)]),
    "sdpa": (lambda q, k, v: vk.sdpa(q, k, v, None, None), [r(1, 3, 4, 16), r(1, 3, 7, 16), r(1, 3, 7, 16)]),
    "sdpa_mask": (lambda q, k, v, m: vk.sdpa(q, k, v, m, 0.3), [r(1, 2, 4, 8), r(1, 2, 6, 8), r(1, 2, 6, 8), r(1, 1, 4, 6)]),
    "select_int": (lambda x: x[:, -2], [i(50, 3, 4, 5, dtype=torch.int32)]),
    "sin": (torch.sin, [r(3, 4)]),
    "slice_step": (lambda x: x[:, 1:-1:2], [r(3, 10)]),
    "softmax_half": (nn.Softmax(-1), [r(4, 33)], True),
    "split": (lambda x: torch.split(x, [1, 4, 2], 1), [r(2, 7, 3)]),
    "sqrt": (torch.sqrt, [positive(3, 4)]),
    "stack": (lambda x, y: torch.stack([x, y], 1), [r(3, 4), r(3, 4)]),
    "sub_alpha": (lambda x, y: torch.sub(x, y, alpha=3), [i(9, 3, 4, dtype=torch.int32), i(9, 3, 4, dtype=torch.int32)]),
    "sum_two": (lambda x: torch.sum(x, [1, 2], keepdim=True), [r(1, 5, 6, 4)]),
    "sum_last": (lambda x: torch.sum(x, -1), [r(3, 9)]),
    "to_int": (lambda x: (x * 4).to(torch.int32), [r(3, 4)]),
    "upsample_nearest": (nn.Upsample(scale_factor=2), [r(1, 3, 4, 5)]),
    "upsample_nearest_size": (nn.Upsample(size=(8, 15)), [r(1, 3, 4, 5)]),
    "upsample_bilinear": (nn.Upsample(size=(7, 9), mode="bilinear"), [r(1, 3, 4, 5)]),
    "upsample_bilinear_corners": (nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True), [r(1, 3, 4, 5)]),
    "views_outside": (lambda x: torch.exp(torch.abs(x).view(3, 8).unsqueeze(0)).squeeze(0).view(2, 12), [r(4, 6)]),
    "mean_outside": (lambda x: torch.abs(x.mean([2, 3])), [r(1, 4, 5, 6)]),
    "attention_outside": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v), [r(1, 2, 5, 8), r(1, 2, 7, 8), r(1, 2, 7, 8)]),
    "resize_antialias_corners": (lambda x: torch.ops.aten._upsample_bilinear2d_aa(x, [5, 6], True), [r(1, 3, 9, 4)]),
    "norm_kept": (lambda x, m, v: torch.ops.aten._native_batch_norm_legit_no_training(x, None, None, m, v, 0.1, 1e-5), [r(2, 3, 4, 4), r(3), positive(3)]),
    "conv_gradients": (lambda g, x, w: torch.ops.aten.convolution_backward(g, x, w, [4], [2, 1], [1, 0], [1, 2], False, [0, 0], 2, [True] * 3),
                       [r(2, 4, 4, 5), r(2, 6, 8, 9), r(4, 3, 3, 3)]),
    "pool_gradients": (lambda g, x: torch.ops.aten.max_pool2d_with_indices_backward(g, x, [3, 3], [2, 2], [1, 1], [1, 1], False, F.max_pool2d(x, 3, 2, 1, return_indices=True)[1]),
                       [r(2, 3, 4, 4), r(2, 3, 8, 7)]),
    "random": (drawn, [r(16, 64)]),
    "where_broadcast": (lambda c, x: torch.where(c, x, torch.zeros(1)), [truth(3, 1), r(3, 4)]),
    "f16_mlp": (nn.Sequential(nn.Linear(16, 24), nn.GELU("tanh"), nn.LayerNorm(24), nn.Linear(24, 8)), [r(3, 16)], True),
    "f16_conv_clamp": (nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.Hardtanh(-0.3, 0.4), nn.Conv2d(8, 4, 1)), [r(1, 3, 9, 8)], True),
    "train_loss": (lambda x, labels: vk.fused_ce(x, labels, 4.0), [r(6, 20), torch.tensor([3, -1, 19, 0, -100, 7])]),
    "train_weights": (vk.linear_dW, [r(2, 3, 8), r(2, 3, 12)]),
}

# Cases in which not all is the delegate's: operators that only move or rename elements, kept out on purpose, and those that
# the partitioner leaves outside.
KEPT_OUT = {"views_outside": [edge.aten.view_copy.default, edge.aten.unsqueeze_copy.default, edge.aten.squeeze_copy.dims],
            **{name: [] for name in ("mean_outside", "attention_outside", "resize_antialias_corners", "norm_kept", "conv_gradients", "pool_gradients", "random")}}

# Of random numbers the means are about the same.
LOOSE = {"random": 0.1}


def export(name, out):
    torch.manual_seed(5)
    what, inputs, *half = CASES[name]
    module = (what if isinstance(what, nn.Module) else Call(what)).eval()
    half = bool(half and half[0])
    expected = module(*inputs)
    expected = list(expected) if isinstance(expected, (tuple, list)) else [expected]
    options = {"force_fp16": True} if half else {}
    program = torch.export.export(module, tuple(inputs), strict=False)
    lowered = to_edge_transform_and_lower(program, partitioner=[VulkanPartitioner(options, KEPT_OUT.get(name))])
    lowered = lowered.to_executorch()
    plan = lowered.executorch_program.execution_plan[0]
    outside = [f"{op.name}.{op.overload}" for op in plan.operators]
    if outside and name not in KEPT_OUT:
        return f"{name}: {outside} is not the delegate's"
    files = {}
    for kind, tensors in (("in", inputs), ("out", expected)):
        files[kind] = [f"{name}.{kind}{n}.npy" for n in range(len(tensors))]
        for path, tensor in zip(files[kind], tensors):
            np.save(out / path, tensor.detach().numpy())
    (out / f"{name}.pte").write_bytes(lowered.buffer)
    bound = LOOSE.get(name, 2e-2 if half else 1e-4)
    return {"name": name, "pte": f"{name}.pte", "sets": [{"inputs": files["in"], "outputs": files["out"]}], "atol": bound, "rtol": bound}


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
                case = f"{name}: {str(error).splitlines()[0]}"
            if isinstance(case, str):
                failed.append(case)
                continue
            manifest.write(json.dumps(case) + "\n")
    print("\n".join(failed))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
