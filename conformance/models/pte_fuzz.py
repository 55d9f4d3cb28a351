#!/usr/bin/env python3
"""Runs random small ExecuTorch programs of the portable library's operators, several in each, and compares with eager PyTorch.

usage: pte_fuzz.py COUNT SEED [--halite PROGRAM] [--back-end port|vk|xnn] [--only TEXT] [--keep DIR] [--each 4] [-- FLAGS of halite run]

Operators that are not in ExecuTorch's own set are taken apart by its exporter, so that what reaches the program may be others; at the
end the operators that the programs had outside of delegates are counted beside those of `kernels/portable/functions.yaml`.
A program that is refused or wrong is taken apart to find the operator. Needs: executorch==1.5.1 torch.
"""
import argparse, collections, json, pathlib, random, re, subprocess, sys, tempfile
import numpy as np
import torch
import executorch.exir
from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
from torch import nn

A = torch.ops.aten
R = random.Random()
FLOATS, INTS = [torch.float32], [torch.int32, torch.int64, torch.int8, torch.uint8, torch.int16]


def ri(low, high):
    return R.randint(low, high)


def ch(*of):
    return R.choice(of)


def shape(rank=None, most=9):
    return [ri(1, most) for _ in range(rank if rank is not None else ri(0, 4))]


def f(dims, scale=2.0):
    return torch.randn(dims) * scale


def positive(dims):
    return torch.rand(dims) * 3 + 0.1


def within(dims):
    return torch.rand(dims) * 1.8 - 0.9


def ints(dims, low=-50, high=50, kind=None):
    kind = kind or R.choice(INTS)
    return torch.randint(max(low, 0) if kind == torch.uint8 else low, high, dims, dtype=kind)


def truth(dims):
    return torch.rand(dims) > 0.5


def any_of(dims):
    return R.choice([f, f, ints, truth, lambda d: f(d).half()])(dims)


def number(dims):
    return R.choice([f, f, ints, lambda d: f(d).half()])(dims)


def beside(dims):
    """Sizes that go with others by repetition."""
    kept = [d if ri(0, 2) else 1 for d in dims]
    return kept[ri(0, len(kept)) :]


def axis(dims):
    return ri(-len(dims), len(dims) - 1)


def axes(dims):
    return R.sample(range(len(dims)), ri(1, len(dims)))


def unary(op, make):
    return lambda: (op, [make(shape())], [], {})


def pair(op, make, other=None):
    def made():
        dims = shape()
        first = make(dims)
        second = (other or (lambda d: ints(d, kind=first.dtype) if first.dtype in INTS else truth(d) if first.dtype == torch.bool else f(d).to(first.dtype)))
        return op, [first, second(beside(dims))], [], {}

    return made


def scalar(op, make, values):
    return lambda: (op, [make(shape())], [R.choice(values)], {})


def divisor(dims):
    x = ints(dims, -9, 10, torch.int32)
    return torch.where(x == 0, 3, x) if ri(0, 1) else f(dims) + 0.01


def with_axis(op, make, *more, **named):
    def made():
        dims = shape(ri(1, 4))
        return op, [make(dims)], [axis(dims), *(m() if callable(m) else m for m in more)], named

    return made


def reduced(op, make, ranked=True):
    def made():
        dims = shape(ri(1, 4))
        return op, [make(dims)], ([axes(dims)] if ranked else [axis(dims)]) + [bool(ri(0, 1))], {}

    return made


def pool():
    k = [ri(1, 4), ri(1, 4)]
    x = f([ri(1, 2), ri(1, 5), ri(5, 14), ri(5, 14)])
    return ch(
        lambda: (A.max_pool2d_with_indices, [x], [k, [ri(1, 3), ri(1, 3)], [k[0] // 2, k[1] // 2], [ri(1, 2), 1], bool(ri(0, 1))], {}),
        lambda: (A.avg_pool2d, [x], [k, [ri(1, 3), ri(1, 3)], [k[0] // 2, k[1] // 2], bool(ri(0, 1)), bool(ri(0, 1)), ch(None, ri(1, 7))], {}),
        lambda: (A._adaptive_avg_pool2d, [x], [[ri(1, 5), ri(1, 5)]], {}),
    )()


def conv():
    rank, g = ch(1, 2, 2), ch(1, 1, 2, 3)
    ci, co, k, turned = g * ri(1, 4), g * ri(1, 4), [ri(1, 3) for _ in range(ch(1, 2, 2))], ch(False, False, True)
    rank = len(k)
    s, d, p = [ri(1, 3) for _ in k], [ri(1, 2) for _ in k], [ri(0, 2) for _ in k]
    x = f([ri(1, 2), ci] + [ri(6, 12) for _ in k])
    w = f([ci, co // g] + k) if turned else f([co, ci // g] + k)
    if turned:
        p = [min(a, (b - 1) * c) for a, b, c in zip(p, k, d)]
    return A.convolution, [x, w, f([co])], [s, p, d, turned, [ri(0, min(a, 1) if a > 1 else 0) for a in s] if turned else [0] * rank, g], {}


def gradients():
    _, (x, w, b), (s, p, d, turned, more, g), _ = conv()
    if turned:
        return pool()
    y = A.convolution(x, w, b, s, p, d, turned, more, g)
    k = [ri(1, 4), ri(1, 4)]
    images = f([ri(1, 2), ri(1, 5), ri(5, 14), ri(5, 14)])
    slide = (k, [ri(1, 3), ri(1, 3)], [k[0] // 2, k[1] // 2], [ri(1, 2), 1], bool(ri(0, 1)))
    return ch(
        lambda: (A.convolution_backward, [f(y.shape), x, w], [list(b.shape), s, p, d, turned, more, g, [True] * 3], {}),
        lambda: (lambda x, slope: A.max_pool2d_with_indices_backward(A.max_pool2d_with_indices(x, *slide)[0] * slope, x, *slide, A.max_pool2d_with_indices(x, *slide)[1]), [images, f([1])], [], {}),
        lambda: (A.native_dropout, [images], [0.3, False], {}),
    )()


def norm():
    x = f([ri(1, 3), 6, ri(2, 6), ri(2, 6)])
    c, dims = x.shape[1], list(x.shape)
    a, groups = ri(1, 3), ch(1, 2, 3)
    return ch(
        lambda: (A.native_layer_norm, [x, f(dims[a:]), f(dims[a:])], [1e-5], {"order": lambda x, w, b, e: (x, dims[a:], w, b, e)}),
        lambda: (A.native_group_norm, [x, f([c]), f([c])], [], {"order": lambda x, w, b: (x, w, b, dims[0], c, dims[2] * dims[3], groups, 1e-5)}),
        lambda: (A._native_batch_norm_legit_no_training, [x, f([c]), f([c]), f([c]), positive([c])], [0.1, 1e-5], {}),
        lambda: (A._native_batch_norm_legit.no_stats, [x, f([c]), f([c])], [True, 0.1, 1e-5], {}),
    )()


def moves():
    dims = shape(ri(1, 4))
    x, a = any_of(dims), axis(dims)
    at = a % len(dims)
    part = lambda: sorted([ri(0, dims[at] - 1), ri(1, dims[at])])
    start, end = part()
    end = max(end, start + 1)
    order = list(range(len(dims)))
    R.shuffle(order)
    step = ri(1, 3)
    kept = list(dims)
    kept[at] = len(range(start, end, step))
    like = lambda d: x.flip(0).new_ones(d)
    total = x.numel()
    return ch(
        lambda: (A.permute_copy, [x], [order], {}),
        lambda: (A.slice_copy.Tensor, [x], [a, start, end, step], {}),
        lambda: (A.select_copy.int, [x], [a, start], {}),
        lambda: (A.cat, [x, x], [], {"order": lambda x, y: ([x, y, x], a)}),
        lambda: (A.stack, [x, x], [], {"order": lambda x, y: ([x, y], a)}),
        lambda: (A.flip, [x], [axes(dims)], {}),
        lambda: (A.roll, [x], [[ri(-5, 5)], [at]], {}),
        lambda: (A.repeat, [x], [[ri(1, 3) for _ in range(ri(0, 1))] + [ri(1, 3) for _ in dims]], {}),
        lambda: (A.expand_copy, [x.new_ones(dims) if total == 1 else x], [[ri(1, 3)] + dims], {}),
        lambda: (A.unbind_copy.int, [x], [a], {}),
        lambda: (A.split_copy.Tensor, [x], [ri(1, 4), a], {}),
        lambda: (A.split_with_sizes_copy, [x], [[1] * dims[at], a], {}),
        lambda: (A.unsqueeze_copy, [x], [ri(0, len(dims))], {}),
        lambda: (A.squeeze_copy.dims, [x], [axes(dims)], {}),
        lambda: (A.view_copy, [x], [[total]], {}),
        lambda: (A.t_copy, [any_of(shape(2))], [], {}),
        lambda: (A.transpose_copy.int, [x], [a, axis(dims)], {}),
        lambda: (A.narrow_copy, [x], [a, start, end - start], {}),
        lambda: (A.unfold_copy, [x], [a, ri(1, dims[at]), ri(1, 3)], {}),
        lambda: (A.as_strided_copy, [x], [[min(total, 2), 2], [0, 0] if total < 4 else [1, 1], ri(0, max(total - 3, 0)) if total > 3 else 0], {}),
        lambda: (A.select_scatter, [x, like(dims[:at] + dims[at + 1 :])], [a, start], {}),
        lambda: (A.slice_scatter, [x, like(kept)], [a, start, end, step], {}),
        lambda: (A.diagonal_copy, [any_of(shape(ri(2, 4)))], [ri(-2, 2)], {}),
        lambda: (A.constant_pad_nd, [x], [[ri(-1 if dims[-1] > 2 else 0, 2), ri(0, 3)], ch(0, 1, 1.5) if x.dtype.is_floating_point else ch(0, 1)], {}),
        lambda: (A.tril, [any_of(shape(ri(2, 4)))], [ri(-3, 3)], {}),
        lambda: (A.clone, [x], [], {}),
        lambda: (A.pixel_shuffle, [number([ri(1, 2), 4 * ri(1, 3), ri(1, 5), ri(1, 5)])], [2], {}),
        lambda: (A.pixel_unshuffle, [number([ri(1, 2), ri(1, 3), 2 * ri(1, 5), 2 * ri(1, 5)])], [2], {}),
        lambda: (A.detach_copy, [x], [], {}),
    )()


def picks():
    dims = shape(ri(1, 3))
    x, a = number(dims), axis(dims)
    at = a % len(dims)
    small = [ri(1, d) for d in dims]
    places = lambda: torch.randint(0, dims[at], small)
    distinct = torch.argsort(torch.rand(small[:at] + [dims[at]] + small[at + 1 :]), at).narrow(at, 0, small[at]).contiguous()
    source, adds = f(small).to(x.dtype), ch(False, True)
    return ch(
        lambda: (A.gather, [x, places()], [], {"order": lambda x, i: (x, a, i)}),
        lambda: (A.index_select, [x, torch.randint(0, dims[at], [ri(1, 7)], dtype=ch(torch.int32, torch.int64))], [], {"order": lambda x, i: (x, a, i)}),
        lambda: (A.index.Tensor, [x, torch.randint(-dims[0], dims[0], shape(ri(1, 2)))], [], {"order": lambda x, i: (x, [i])}),
        lambda: (A.index_put, [x, torch.randperm(dims[0])[: ri(1, dims[0])]], [], {"order": lambda x, i: (x, [i], x.new_ones([]), adds)}),
        lambda: (A.scatter.src, [x, distinct, source], [], {"order": lambda x, i, s: (x, a, i, s)}),
        lambda: (A.scatter.value, [x, places()], [], {"order": lambda x, i: (x, a, i, 3)}),
        lambda: (A.scatter_add, [x.float(), places(), source.float()], [], {"order": lambda x, i, s: (x, a, i, s)}),
        lambda: (A.embedding, [f([ri(1, 20), ri(1, 9)]), torch.zeros(shape(ri(1, 3)), dtype=torch.int64)], [], {}),
        lambda: (A.masked_fill.Scalar, [x, truth(beside(dims))], [ch(0, 1, -2)], {}),
        lambda: (A.masked_select, [x, truth(dims)], [], {}),
        lambda: (A.masked_scatter, [x, truth(dims), f([x.numel()]).to(x.dtype)], [], {}),
        lambda: (A.nonzero, [truth(dims)], [], {}),
        lambda: (A.where.self, [truth(dims), x, f(beside(dims)).to(x.dtype)], [], {}),
        lambda: (A.topk, [f(dims)], [ri(1, dims[at]), a, bool(ri(0, 1))], {}),
        lambda: (A.argmax, [f(dims)], [ch(a, None)], {}),
        lambda: (A.argmin, [f(dims)], [a, True], {}),
        lambda: (A.max.dim, [f(dims)], [a, bool(ri(0, 1))], {}),
        lambda: (A.min.dim, [f(dims)], [a], {}),
        lambda: (A.cumsum, [number(dims)], [a], {}),
        lambda: (A.repeat_interleave.Tensor, [torch.randint(0, 4, [ri(1, 6)])], [], {}),
    )()


def products():
    m, k, n, b = ri(1, 9), ri(1, 20), ri(1, 9), ri(1, 4)
    return ch(
        lambda: (A.mm, [f([m, k]), f([k, n])], [], {}),
        lambda: (A.bmm, [f([b, m, k]), f([b, k, n])], [], {}),
        lambda: (A.addmm, [f(ch([n], [m, n], [1, n])), f([m, k]), f([k, n])], [], {"beta": ch(1, 0.5), "alpha": ch(1, 2)}),
        lambda: (A._cdist_forward, [f([m, k]), f([n, k])], [ch(1.0, 2.0, 0.5, 3.0), None], {}),
        lambda: (A._pdist_forward, [f([m + 1, k])], [ch(1.0, 2.0)], {}),
    )()


def images():
    x = f([ri(1, 2), ri(1, 3), ri(3, 9), ri(3, 9)])
    out = [ri(2, 14), ri(2, 14)]
    return ch(
        lambda: (A.upsample_bilinear2d.vec, [x], [out, bool(ri(0, 1)), None], {}),
        lambda: (A.upsample_nearest2d.vec, [x], [out, None], {}),
        lambda: (A._upsample_bilinear2d_aa, [x], [out, bool(ri(0, 1))], {}),
        lambda: (A.grid_sampler_2d, [x, within([x.shape[0], *out, 2]) * 1.3], [ri(0, 2), ri(0, 2), bool(ri(0, 1))], {}),
        lambda: (A.reflection_pad1d, [x[0]], [[ri(0, 2), ri(0, 2)]], {}),
        lambda: (A.reflection_pad2d, [x], [[ri(0, 2) for _ in range(4)]], {}),
        lambda: (A.reflection_pad3d, [x], [[0 if n > 3 else ri(0, 2) for n in range(6)]], {}),
        lambda: (A.replication_pad1d, [x[0]], [[ri(0, 3), ri(0, 3)]], {}),
        lambda: (A.replication_pad2d, [x], [[ri(0, 3) for _ in range(4)]], {}),
        lambda: (A.replication_pad3d, [x], [[ri(0, 3) for _ in range(6)]], {}),
    )()


def made_of_numbers():
    dims = shape(ri(0, 3))
    x = any_of(dims)
    return ch(
        lambda: (A.full_like, [x], [ch(0, 1)], {}),
        lambda: (A.fill.Scalar, [x], [1], {}),
        lambda: (A.fill.Tensor, [x, x.new_ones([])], [], {}),
        lambda: (A.copy, [f(dims), number(beside(dims))], [], {}),
        lambda: (A.add.Tensor, [f([7])], [], {"order": lambda x: (x, torch.arange(1, 15, 2))}),
        lambda: (A._to_copy, [number(dims)], [], {"dtype": R.choice([torch.float32, torch.int32, torch.int64, torch.bool, torch.float16])}),
    )()


UNARY = "abs neg sign ceil floor round trunc relu isnan isinf sin cos tan tanh sinh cosh asinh atan erf exp expm1 sigmoid reciprocal"
FAMILIES = (
    [unary(getattr(A, name), f) for name in UNARY.split()]
    + [unary(getattr(A, name), ints) for name in "abs neg sign bitwise_not relu logical_not sin exp sigmoid rsqrt ceil trunc isnan erf".split()]
    + [unary(getattr(A, name), positive) for name in "log log2 log10 log1p sqrt rsqrt reciprocal".split()]
    + [unary(getattr(A, name), within) for name in "acos asin atanh".split()]
    + [unary(A.acosh, lambda d: positive(d) + 1), unary(A.logical_not, any_of), unary(A.bitwise_not, truth), unary(A.isinf, lambda d: f(d) / 0.0)]
    + [unary(A.gelu, f), lambda: (A.gelu, [f(shape())], [], {"approximate": "tanh"}), unary(A.logit, lambda d: torch.rand(d)), unary(A._conj_physical, f)]
    + [pair(getattr(A, name).Tensor, number) for name in "add sub mul eq ne lt le gt ge".split()]
    + [pair(getattr(A, name), number) for name in "maximum minimum".split()]
    + [pair(getattr(A, name), any_of) for name in "logical_and logical_or logical_xor".split()]
    + [pair(getattr(A, name).Tensor, ch) for name, ch in zip("bitwise_and bitwise_or bitwise_xor".split(), [ints, truth, ints])]
    + [pair(getattr(A, name).Tensor, lambda d: ints(d, 0, 50, torch.int32), lambda d: ints(d, 0, 6, torch.int32)) for name in ("bitwise_left_shift", "bitwise_right_shift")]
    + [pair(A.add.Tensor, ints, f), pair(A.mul.Tensor, f, ints), pair(A.sub.Tensor, ints, lambda d: ints(d, kind=torch.int64))]
    + [pair(getattr(A, name), number, divisor) for name in ("floor_divide",)]
    + [pair(getattr(A, name).Tensor, lambda d: ch(f(d), ints(d, kind=torch.int32)), divisor) for name in ("div", "fmod", "remainder")]
    + [lambda: (A.div.Tensor_mode, [ch(f([5, 4]), ints([5, 4], kind=torch.int32)), divisor([4])], [], {"rounding_mode": ch("floor", "trunc", None)})]
    + [pair(A.atan2, f, f), pair(A.pow.Tensor_Tensor, positive, within), unary(lambda x: A.pow.Scalar(2.5, x), f)]
    + [scalar(A.pow.Tensor_Scalar, positive, [2, 0.5, -1.5, 3, 0]), scalar(A.pow.Tensor_Scalar, ints, [2, 3])]
    + [scalar(getattr(A, name).Scalar, number, [2, -1, 3]) for name in "add sub mul eq ne lt le gt ge rsub".split()]
    + [scalar(getattr(A, name).Scalar, f, [0.5, -1.5]) for name in "add mul div fmod remainder eq rsub".split()]
    + [scalar(getattr(A, name).Scalar, ints, [3, 5]) for name in "fmod remainder div bitwise_and bitwise_or bitwise_xor".split()]
    + [lambda: (A.div.Scalar_mode, [number(shape())], [ch(2, 3)], {"rounding_mode": ch("floor", "trunc")})]
    + [scalar(A.leaky_relu, f, [0.1, 0.5]), scalar(A.elu, f, [1.0, 0.5]), lambda: (A.hardtanh, [f(shape())], [-1.0, 1.5], {})]
    + [lambda: (A.clamp, [number(shape())], [ch(None, -1), ch(1, 3)], {}), lambda: (A.clamp.Tensor, [f([3, 4]), f([4]), f([3, 1]) + 3], [], {})]
    + [lambda: (A.glu, [f([3, 6])], [1], {}), lambda: (A.round, [f(shape()) * 4], [], {})]
    + [with_axis(A._softmax, f, False), with_axis(A._log_softmax, f, False)]
    + [reduced(A.amax, number), reduced(A.amin, number), reduced(A.sum.dim_IntList, any_of), reduced(A.mean.dim, f), reduced(A.any.dims, any_of)]
    + [reduced(A.any.dim, any_of, False), reduced(A.prod.dim_int, number, False), unary(A.any, any_of), unary(A.prod, within), unary(A.mean, f), unary(A.max, number), unary(A.min, number)]
    + [lambda: (ch(A.var.correction, A.var_mean.correction), [f([3, 5, 4])], [[ch(0, 1, 2)]], {"correction": ri(0, 2), "keepdim": bool(ri(0, 1))}), lambda: (A.var.dim, [f([6, 4])], [[1], bool(ri(0, 1))], {})]
    + [pool] * 8 + [conv] * 8 + [norm] * 6 + [gradients] * 6 + [moves] * 60 + [picks] * 40 + [products] * 8 + [images] * 20 + [made_of_numbers] * 8
)


class Calls(nn.Module):
    """Several operators, each of inputs of its own."""

    def __init__(self, calls):
        super().__init__()
        self.calls = calls

    def forward(self, *tensors):
        made, at = [], 0
        for op, own, rest, named in self.calls:
            given, at = tensors[at : at + len(own)], at + len(own)
            order = named.get("order")
            named = {k: v for k, v in named.items() if k != "order"}
            args = order(*given, *rest) if order else (*given, *rest)
            made += [x for x in torch.utils._pytree.tree_leaves(op(*args, **named)) if isinstance(x, torch.Tensor)]
        return tuple(made)


def text(call):
    op, own, rest, named = call
    return f"{op} {[f'{str(x.dtype)[6:]}{list(x.shape)}' for x in own]} {rest} { {k: v for k, v in named.items() if k != 'order'} }"


def partitioners(back_end):
    if back_end == "vk":
        from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner

        return [VulkanPartitioner({})]
    if back_end == "xnn":
        from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

        return [XnnpackPartitioner()]
    return []


class Fuzz:
    def __init__(self, args, flags):
        self.args, self.flags, self.tally, self.operators = args, flags, collections.Counter(), collections.Counter()

    def program(self, calls):
        model, inputs = Calls(calls), [x for call in calls for x in call[1]]
        wanted = model(*inputs)
        exported = torch.export.export(model, tuple(inputs), strict=False)
        lowered = to_edge_transform_and_lower(exported, partitioner=partitioners(self.args.back_end), compile_config=EdgeCompileConfig(_check_ir_validity=False))
        program = lowered.to_executorch()
        return program, inputs, wanted

    def check(self, calls, folder):
        """What went otherwise than it should, or None."""
        try:
            program, inputs, wanted = self.program(calls)
        except Exception as error:
            return "not exported: " + (str(error).splitlines() or [""])[0][:150]
        for op in program.executorch_program.execution_plan[0].operators:
            self.operators[f"{op.name}.{op.overload}".removeprefix("aten::").rstrip(".")] += 1
        path = folder / "p.pte"
        path.write_bytes(program.buffer)
        command = [self.args.halite, "run", str(path), "--compile-cache=off", *self.flags]
        for n, x in enumerate(inputs):
            np.save(folder / f"in{n}.npy", x.contiguous().numpy())
            command.append(f"--input=@{folder}/in{n}.npy")
        command += [f"--output=@{folder}/out{n}.npy" for n in range(len(wanted))]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=180)
        except subprocess.TimeoutExpired:
            return "slow"
        if done.returncode:
            return "refused: " + " ".join(done.stderr.split())[-400:]
        for n, x in enumerate(wanted):
            got, x = np.load(folder / f"out{n}.npy"), x.numpy()
            if got.shape != x.shape or got.dtype != x.dtype:
                return f"wrong: output {n} is {got.dtype}{got.shape} for {x.dtype}{x.shape}"
            loose = 4e-3 if x.dtype == np.float16 else 3e-5
            if not np.allclose(got.astype(np.float64), x.astype(np.float64), rtol=loose, atol=loose, equal_nan=True):
                return f"wrong: output {n} is {got.ravel()[:6]} for {x.ravel()[:6]}"
        return None

    def one(self, calls, folder):
        why = self.check(calls, folder)
        if why and len(calls) > 1:
            for call in calls:
                self.one([call], folder)
            return
        self.tally["right" if why is None else why.split(":")[0]] += len(calls)
        if why:
            print(why, "|", text(calls[0]), flush=True)
            if self.args.keep and not why.startswith("not"):
                kept = self.args.keep / f"{sum(self.tally.values())}.pte"
                kept.write_bytes((folder / "p.pte").read_bytes())


def portable():
    """Names of the portable library's operators."""
    listed = pathlib.Path(executorch.exir.__file__).parents[1] / "kernels" / "portable" / "functions.yaml"
    return re.findall(r"^- (?:op|func): ([\w:.]+)", listed.read_text(), re.M)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int)
    parser.add_argument("seed", type=int)
    parser.add_argument("--halite", default="halite")
    parser.add_argument("--back-end", default="port", choices=["port", "vk", "xnn"])
    parser.add_argument("--each", type=int, default=4, help="operators in a program")
    parser.add_argument("--only", default="", help="a text that the calls have")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for programs that are refused or wrong")
    own, flags = sys.argv[1:], []
    if "--" in own:
        own, flags = own[: own.index("--")], own[own.index("--") + 1 :]
    args = parser.parse_args(own)
    fuzz = Fuzz(args, flags)
    R.seed(args.seed), torch.manual_seed(args.seed)
    calls = []
    while len(calls) < args.count:
        family = R.choice(FAMILIES)
        call = family()
        try:
            call[0](*(call[3]["order"](*call[1], *call[2]) if "order" in call[3] else (*call[1], *call[2])), **{k: v for k, v in call[3].items() if k != "order"})
        except (RuntimeError, IndexError, TypeError, NotImplementedError):
            continue
        if args.only in text(call):
            calls.append(call)
    with tempfile.TemporaryDirectory() as folder:
        for at in range(0, len(calls), args.each):
            fuzz.one(calls[at : at + args.each], pathlib.Path(folder))
    names = portable()
    never = [name for name in names if name not in fuzz.operators]
    print(f"{dict(fuzz.tally)}; {len(names) - len(never)} of {len(names)} of the portable library's operators; never: {' '.join(never)}")


if __name__ == "__main__":
    main()
