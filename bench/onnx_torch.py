"""Runs an ONNX model in PyTorch, for timing beside it.

Owns: the operators of convolutional networks in PyTorch's words, and recording a call as a CUDA graph. Does not own: models, or
what is compared (compare_models.py).
"""

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import numpy_helper


def attributes(node):
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}


def padded(x, pads, value=0.0):
    """The input, and PyTorch's padding for ONNX's: what PyTorch cannot say is put around the input."""
    begin, end = pads[: len(pads) // 2], pads[len(pads) // 2 :]
    if begin == end:
        return x, begin
    sides = [side for pair in zip(reversed(begin), reversed(end)) for side in pair]
    return F.pad(x, sides, value=value), [0] * len(begin)


def convolution(node, x, weight, bias=None):
    has = attributes(node)
    if has.get("auto_pad", b"NOTSET") not in (b"NOTSET", b"VALID"):
        raise NotImplementedError("auto_pad of a convolution")
    size = weight.dim() - 2
    x, padding = padded(x, list(has.get("pads", [0] * 2 * size)))
    return F.conv2d(x, weight, bias, list(has.get("strides", [1] * size)), padding, list(has.get("dilations", [1] * size)),
                    has.get("group", 1))


def largest(node, x):
    has = attributes(node)
    x, padding = padded(x, list(has.get("pads", [0] * 4)), float("-inf"))
    return F.max_pool2d(x, list(has["kernel_shape"]), list(has.get("strides", [1, 1])), padding)


def gemm(node, a, b, c=None):
    has = attributes(node)
    a = a.t() if has.get("transA") else a
    b = b.t() if has.get("transB") else b
    if has.get("alpha", 1.0) != 1.0 or has.get("beta", 1.0) != 1.0:
        raise NotImplementedError("factors of Gemm")
    return torch.mm(a, b) if c is None else torch.addmm(c, a, b)


def reshape(node, x, shape):
    keep = not attributes(node).get("allowzero")
    return x.reshape([x.shape[at] if size == 0 and keep else size for at, size in enumerate(shape.tolist())])


def mean(node, x, axes=None):
    has = attributes(node)
    axes = list(has["axes"]) if axes is None else axes.tolist()
    return x.mean(axes, keepdim=bool(has.get("keepdims", 1)))


OPERATORS = {
    "Add": lambda node, a, b: a + b,
    "Clip": lambda node, x, *bounds: torch.clamp(x, *(None if bound is None else bound.item() for bound in bounds)),
    "Conv": convolution,
    "Flatten": lambda node, x: x.flatten(attributes(node).get("axis", 1)),
    "Gemm": gemm,
    "GlobalAveragePool": lambda node, x: x.mean((2, 3), keepdim=True),
    "Identity": lambda node, x: x,
    "MaxPool": largest,
    "ReduceMean": mean,
    "Reshape": reshape,
    "Relu": lambda node, x: torch.relu(x),
}


class Recorded:
    """A model with one input and one output, as a CUDA graph."""

    def __init__(self, path, example, half, channels_last):
        torch.backends.cudnn.benchmark = True
        self.graph = onnx.load(path).graph
        missing = {node.op_type for node in self.graph.node} - OPERATORS.keys() - {"Constant"}
        if missing:
            raise NotImplementedError(f"operators that onnx_torch.py does not know: {', '.join(sorted(missing))}")
        kind = torch.float16 if half else torch.float32
        self.format = torch.channels_last if channels_last else torch.contiguous_format
        self.weights = {t.name: self.weight(numpy_helper.to_array(t), kind) for t in self.graph.initializer}
        for node in self.graph.node:
            if node.op_type == "Constant":
                self.weights[node.output[0]] = torch.from_numpy(np.array(numpy_helper.to_array(attributes(node)["value"])))
        self.host = torch.from_numpy(example).pin_memory()
        self.given = torch.empty(example.shape, dtype=torch.float32, device="cuda")
        self.kind = kind
        side = torch.cuda.Stream()
        with torch.no_grad(), torch.cuda.stream(side):
            for _ in range(3):
                self.compute()
        torch.cuda.synchronize()
        self.recorded = torch.cuda.CUDAGraph()
        with torch.no_grad(), torch.cuda.graph(self.recorded):
            self.result = self.compute()
        self.back = torch.empty(self.result.shape, dtype=torch.float32).pin_memory()

    def weight(self, array, kind):
        tensor = torch.from_numpy(np.array(array))
        # Bounds and axes are asked for on the host.
        if tensor.dim() == 0 or not tensor.is_floating_point():
            return tensor
        tensor = tensor.to("cuda", kind)
        return tensor.contiguous(memory_format=self.format) if tensor.dim() == 4 else tensor

    def compute(self):
        values = dict(self.weights)
        values[self.graph.input[0].name] = self.given.to(self.kind).contiguous(memory_format=self.format)
        for node in self.graph.node:
            if node.op_type != "Constant":
                given = [values[name] if name else None for name in node.input]
                values[node.output[0]] = OPERATORS[node.op_type](node, *given)
        return values[self.graph.output[0].name].float()

    def call(self):
        """Takes the input from host memory and gives the result there."""
        self.given.copy_(self.host, non_blocking=True)
        self.recorded.replay()
        self.back.copy_(self.result, non_blocking=True)
        torch.cuda.synchronize()
        return self.back.numpy()
