#!/usr/bin/env python3
"""Exports small networks of random weights whose sizes are open, and asks Halite and ONNX Runtime for their results at several sizes
in one session each: decoders with caches, detectors with suppression, speech of predicted length, loops, branches, pools.

    onnx_sizes.py make FOLDER [NAME...]
    onnx_sizes.py check FOLDER [--device vulkan] [--log FILE] [NAME...]

`make` needs torch, transformers and onnx, and writes NAME.EXPORTER.onnx for each exporter that takes it, with calls in NAME.EXPORTER.npz.
`check` needs the package `halite` and onnxruntime, and prints a line for each file: right, refused or wrong.
"""
import argparse
import json
import pathlib
import sys
import traceback

import numpy as np

CASES = {}
TOLERANCE = 2e-4


def case(make):
    CASES[make.__name__] = make
    return make


class Drawn:
    """Random inputs that are the same each time."""

    def __init__(self, seed=3):
        self.random = np.random.default_rng(seed)

    def floats(self, *dims):
        return self.random.standard_normal(dims).astype(np.float32)

    def ints(self, most, *dims):
        return self.random.integers(0, most, dims).astype(np.int64)


# What torch exports: a module, example inputs, for each the name and its open dimensions, names of results, and calls.


def decoder(config, kind, layers, heads, dim, words=60, seq2seq=False):
    """A decoder of transformers with its past as inputs; `seq2seq` attends to what an encoder gave."""
    import torch
    from transformers.cache_utils import DynamicCache, EncoderDecoderCache

    torch.manual_seed(1)
    config._attn_implementation = "eager" if config.model_type in ("t5",) else "sdpa"
    inner = kind(config).eval()
    for weight in inner.parameters():
        torch.nn.init.normal_(weight, std=0.15) if weight.dim() > 1 else None

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = inner

        def forward(self, ids, mask, *rest):
            states, past = (rest[0], rest[1:]) if seq2seq else (None, rest)
            cache = DynamicCache()
            for layer in range(layers):
                cache.update(past[2 * layer], past[2 * layer + 1], layer)
            if seq2seq:
                whole = EncoderDecoderCache(cache, DynamicCache())
                out = self.inner(input_ids=ids, attention_mask=mask, encoder_hidden_states=states, past_key_values=whole, use_cache=True)
                hidden, cache = out.last_hidden_state, whole.self_attention_cache
            else:
                out = self.inner(input_ids=ids, attention_mask=mask, past_key_values=cache, use_cache=True)
                hidden = out.logits
            given = [hidden]
            for layer in cache.layers:
                given += [layer.keys, layer.values]
            return tuple(given)

    width = getattr(config, "d_model", None) or config.hidden_size
    draw = Drawn()

    def call(batch, length, past, frames=9):
        made = [draw.ints(words, batch, length), np.ones((batch, past + length), np.int64)]
        made += [draw.floats(batch, frames, width)] if seq2seq else []
        return made + [draw.floats(batch, heads, past, dim) for _ in range(2 * layers)]

    inputs = [("input_ids", {0: "batch", 1: "length"}), ("attention_mask", {0: "batch", 1: "total"})]
    inputs += [("encoder_hidden_states", {0: "batch", 1: "frames"})] if seq2seq else []
    pairs = [f"{layer}.{part}" for layer in range(layers) for part in ("key", "value")]
    inputs += [(f"past_key_values.{pair}", {0: "batch", 2: "past"}) for pair in pairs]
    results = ["logits", *(f"present.{pair}" for pair in pairs)]
    sizes = [(1, 4, 3), (1, 1, 7), (1, 1, 8), (1, 1, 9), (2, 1, 5), (3, 2, 16), (1, 1, 33), (1, 6, 0), (2, 1, 100)]
    return Module().eval(), call(2, 3, 5), inputs, results, [call(*one) for one in sizes]


@case
def qwen2():
    from transformers import Qwen2Config, Qwen2ForCausalLM

    config = Qwen2Config(vocab_size=60, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2)
    return decoder(config, Qwen2ForCausalLM, 2, 2, 8)


@case
def gemma():
    from transformers import GemmaConfig, GemmaForCausalLM

    config = GemmaConfig(vocab_size=60, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=1, head_dim=8)
    return decoder(config, GemmaForCausalLM, 2, 1, 8)


@case
def phi():
    from transformers import PhiConfig, PhiForCausalLM

    config = PhiConfig(vocab_size=60, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4)
    return decoder(config, PhiForCausalLM, 2, 4, 8)


@case
def opt():
    from transformers import OPTConfig, OPTForCausalLM

    config = OPTConfig(vocab_size=60, hidden_size=32, ffn_dim=48, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=256, word_embed_proj_dim=32, pad_token_id=0)
    return decoder(config, OPTForCausalLM, 2, 4, 8)


@case
def gpt_neox():
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

    config = GPTNeoXConfig(vocab_size=60, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=256)
    return decoder(config, GPTNeoXForCausalLM, 2, 4, 8)


@case
def t5():
    from transformers import T5Config
    from transformers.models.t5.modeling_t5 import T5Stack

    config = T5Config(vocab_size=60, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4)
    config.is_decoder, config.use_cache = True, True
    return decoder(config, T5Stack, 2, 4, 8, seq2seq=True)


@case
def bart():
    from transformers import BartConfig
    from transformers.models.bart.modeling_bart import BartDecoder

    config = BartConfig(vocab_size=60, d_model=32, decoder_layers=2, decoder_attention_heads=4, decoder_ffn_dim=48, max_position_embeddings=256, pad_token_id=1)
    return decoder(config, BartDecoder, 2, 4, 8, seq2seq=True)


def torch_case(module, example, inputs, results, calls):
    """A module of torch, whose weights are drawn anew."""
    import torch

    torch.manual_seed(2)
    for weight in module.parameters():
        torch.nn.init.normal_(weight, std=0.2)
    return module.eval(), example, inputs, results, calls


@case
def yolo():
    """Cells whose boxes are decoded, one class each, suppression inside."""
    import torch
    import torchvision
    from torch import nn

    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = nn.Conv2d(3, 8, 3, 2, 1), nn.Conv2d(8, 16, 3, 2, 1), nn.Conv2d(16, 8, 1)

        def forward(self, x):
            x = torch.nn.functional.silu(self.b(torch.nn.functional.silu(self.a(x))))
            x = torch.nn.functional.max_pool2d(torch.cat([x, torch.nn.functional.interpolate(torch.nn.functional.max_pool2d(x, 3, 2, 1), size=x.shape[2:])], 1)[:, ::2], 3, 1, 1)
            x = self.c(x).flatten(2).transpose(1, 2)[0]
            boxes, scores = x[:, :4] * 8, x[:, 4:].sigmoid()
            boxes = torch.cat([boxes[:, :2], boxes[:, :2] + boxes[:, 2:].abs()], 1)
            best, label = scores.max(1)
            kept = torchvision.ops.nms(boxes, best, 0.5)
            return boxes[kept], best[kept], label[kept]

    draw = Drawn()
    sizes = [(32, 32), (48, 32), (33, 47), (64, 80), (100, 36)]
    calls = [[draw.floats(1, 3, *one)] for one in sizes]
    return torch_case(Module(), [draw.floats(1, 3, 40, 56)], [("image", {2: "height", 3: "width"})], ["boxes", "scores", "labels"], calls)


@case
def retinanet():
    """Two levels, those scores above a threshold, at most 20 of each level, suppression by class."""
    import torch
    import torchvision
    from torch import nn

    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = nn.Conv2d(3, 8, 3, 2, 1), nn.Conv2d(8, 8, 3, 2, 1), nn.Conv2d(8, 7, 3, 1, 1)

        def level(self, x, stride):
            found = self.c(x)
            height, width = found.shape[2], found.shape[3]
            ys, xs = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
            middle = torch.stack([xs, ys], -1).reshape(-1, 2).to(x.dtype) * stride
            found = found[0].flatten(1).t()
            scores = found[:, 4:].sigmoid().flatten()
            kept = torch.where(scores > 0.5)[0]
            count = min(20, kept.shape[0])
            best, order = scores[kept].topk(count)
            kept = kept[order]
            anchor = torch.div(kept, 3, rounding_mode="floor")
            at, size = middle[anchor], found[anchor, :4]
            return torch.cat([at - size[:, :2].exp() * 4, at + size[:, 2:].exp() * 4], 1), best, kept % 3

        def forward(self, x):
            x = torch.relu(self.a(x))
            y = torch.relu(self.b(x))
            parts = [self.level(x, 2), self.level(y, 4)]
            boxes, scores, labels = (torch.cat([part[i] for part in parts]) for i in range(3))
            kept = torchvision.ops.batched_nms(boxes, scores, labels, 0.4)[:15]
            return boxes[kept], scores[kept], labels[kept]

    draw = Drawn()
    calls = [[draw.floats(1, 3, *one)] for one in [(32, 32), (24, 48), (33, 47), (40, 64)]]
    return torch_case(Module(), [draw.floats(1, 3, 36, 52)], [("image", {2: "height", 3: "width"})], ["boxes", "scores", "labels"], calls)


@case
def fastspeech():
    """Each token is repeated as often as a predictor says."""
    import torch
    from torch import nn

    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.length, self.out = nn.Embedding(30, 16), nn.Linear(16, 1), nn.Conv1d(16, 8, 3, padding=1)
            self.layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)

        def forward(self, ids):
            x = self.layer(self.table(ids))
            times = (self.length(x).squeeze(-1).exp().clamp(max=6).ceil()).to(torch.int64)
            x = torch.repeat_interleave(x[0], times[0], dim=0)
            return self.out(x.t()[None]), times

    draw = Drawn()
    calls = [[draw.ints(30, 1, length)] for length in (4, 5, 9, 17, 40, 2)]
    return torch_case(Module(), [draw.ints(30, 1, 7)], [("ids", {1: "length"})], ["mel", "times"], calls)


@case
def vits():
    """Durations become a path by a comparison of sums, as VITS has it; then transposed convolutions."""
    import torch
    from torch import nn

    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.length = nn.Embedding(30, 12), nn.Conv1d(12, 1, 3, padding=1)
            self.up, self.out = nn.ConvTranspose1d(12, 6, 8, 4, 2), nn.Conv1d(6, 1, 7, padding=3)

        def forward(self, ids):
            x = self.table(ids).transpose(1, 2)
            times = torch.ceil(self.length(x).clamp(-2, 1.5).exp())
            frames = times.sum((1, 2)).clamp(min=1).long()
            ends = times.cumsum(-1)[0, 0]
            place = torch.arange(frames.max())[:, None]
            path = ((place < ends[None]) & (place >= (ends - times[0, 0])[None])).to(x.dtype)
            x = (path @ x[0].t()).t()[None]
            return torch.tanh(self.out(torch.nn.functional.leaky_relu(self.up(x), 0.1)))

    draw = Drawn()
    calls = [[draw.ints(30, 1, length)] for length in (4, 5, 9, 17, 40, 3)]
    return torch_case(Module(), [draw.ints(30, 1, 7)], [("ids", {1: "length"})], ["wave"], calls)


@case
def segmentation():
    """Pools of several sizes, resized to the size of the input, as PSPNet and SegFormer do."""
    import torch
    from torch import nn
    from torch.nn import functional as f

    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = nn.Conv2d(3, 8, 3, 2, 1), nn.Conv2d(8, 8, 3, 2, 1, groups=4), nn.Conv2d(16, 5, 1)
            self.norm = nn.GroupNorm(2, 8)

        def forward(self, x):
            y = torch.relu(self.a(x))
            z = self.norm(self.b(y))
            z = f.interpolate(z, size=y.shape[2:], mode="bilinear", align_corners=False)
            mean = f.adaptive_avg_pool2d(y, 1)
            z = torch.cat([z, y * mean], 1)
            return f.interpolate(self.c(z), size=x.shape[2:], mode="bilinear", align_corners=True).argmax(1), z

    draw = Drawn()
    calls = [[draw.floats(*one)] for one in [(1, 3, 32, 32), (2, 3, 33, 47), (1, 3, 64, 48), (1, 3, 50, 21)]]
    return torch_case(Module(), [draw.floats(2, 3, 36, 52)], [("image", {0: "batch", 2: "height", 3: "width"})], ["classes", "features"], calls)


@case
def pooled_lstm():
    """Convolutions, pools and an LSTM of both directions over open lengths."""
    import torch
    from torch import nn

    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.lstm, self.gru = nn.Conv1d(4, 12, 5, padding=2), nn.LSTM(12, 8, bidirectional=True, batch_first=True), nn.GRU(16, 6, batch_first=True)

        def forward(self, x):
            y = torch.nn.functional.max_pool1d(torch.relu(self.a(x)), 2, ceil_mode=True)
            y = torch.nn.functional.avg_pool1d(y, 3, 1, 1, count_include_pad=False)
            y, (h, _) = self.lstm(y.transpose(1, 2))
            y, _ = self.gru(y)
            return y, h, y.max(1).values

    draw = Drawn()
    calls = [[draw.floats(*one)] for one in [(1, 4, 10), (2, 4, 11), (1, 4, 40), (3, 4, 17), (1, 4, 2)]]
    return torch_case(Module(), [draw.floats(2, 4, 14)], [("x", {0: "batch", 2: "length"})], ["y", "h", "most"], calls)


@case
def broadcast():
    """Open sizes that are 1 beside such that are not."""
    import torch
    from torch import nn

    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(6, 6)

        def forward(self, x, y):
            z = self.a(x) * y + x
            return z.softmax(1), z.sum((0, 1)), torch.cat([z, z.flip(1)], 1)

    draw = Drawn()
    sizes = [(1, 5, 1), (1, 5, 5), (4, 1, 1), (3, 7, 7), (3, 8, 1), (1, 1, 1)]
    calls = [[draw.floats(b, n, 6), draw.floats(1, m, 6)] for b, n, m in sizes]
    inputs = [("x", {0: "batch", 1: "n"}), ("y", {1: "m"})]
    return torch_case(Module(), [draw.floats(2, 3, 6), draw.floats(1, 3, 6)], inputs, ["a", "b", "c"], calls)


@case
def beams():
    """A step of beam search: the best of all, caches in their order."""
    import torch
    from torch import nn

    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.out = nn.Linear(8, 20)

        def forward(self, scores, ids, cache):
            hidden = cache[:, :, -1].mean(1)
            all = scores[:, None] + self.out(hidden).log_softmax(-1)
            best, place = all.flatten().topk(scores.shape[0])
            row, word = torch.div(place, 20, rounding_mode="floor"), place % 20
            ids = torch.cat([ids.index_select(0, row), word[:, None]], 1)
            return best, ids, cache.index_select(0, row)

    draw = Drawn()
    calls = [[draw.floats(b), draw.ints(20, b, n), draw.floats(b, 2, n, 8)] for b, n in [(3, 4), (3, 5), (4, 6), (5, 17), (2, 40)]]
    inputs = [("scores", {0: "beams"}), ("ids", {0: "beams", 1: "n"}), ("cache", {0: "beams", 2: "n"})]
    return torch_case(Module(), [draw.floats(4), draw.ints(20, 4, 7), draw.floats(4, 2, 7, 8)], inputs, ["best", "next", "kept"], calls)


@case
def windows():
    """Windows of a Swin-like encoder: padded to a multiple, cut, attended to, put together; a mask of what was padded."""
    import torch
    from torch import nn

    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)

        def forward(self, x):
            n, h, w, c = x.shape
            y = torch.nn.functional.pad(x, (0, 0, 0, (4 - w % 4) % 4, 0, (4 - h % 4) % 4))
            hh, ww = y.shape[1] // 4, y.shape[2] // 4
            y = y.reshape(n, hh, 4, ww, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, c)
            y = self.layer(y).reshape(n, hh, ww, 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(n, hh * 4, ww * 4, c)
            return y[:, :h, :w].roll((1, 2), (1, 2))

    draw = Drawn()
    calls = [[draw.floats(*one, 8)] for one in [(1, 8, 8), (1, 9, 11), (2, 12, 7), (1, 20, 30)]]
    return torch_case(Module(), [draw.floats(2, 10, 13, 8)], [("x", {0: "n", 1: "h", 2: "w"})], ["y"], calls)


@case
def relative():
    """Relative positions by a shifted table, as Conformer and Transformer-XL have them; causal convolution; subsampling by 4."""
    import torch
    from torch import nn

    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Conv2d(1, 4, 3, 2), nn.Conv2d(4, 4, 3, 2)
            self.q, self.p, self.conv = nn.Linear(16, 16), nn.Linear(16, 16), nn.Conv1d(16, 16, 5, groups=16)

        def forward(self, x):
            y = torch.relu(self.b(torch.relu(self.a(x[:, None]))))
            y = y.transpose(1, 2).flatten(2)
            n = y.shape[1]
            place = torch.arange(n - 1, -n, -1, dtype=torch.float32)[:, None] / 2.0 ** torch.arange(8)[None]
            p = self.p(torch.cat([place.sin(), place.cos()], 1))
            s = self.q(y) @ p.t()
            s = torch.nn.functional.pad(s, (1, 0)).reshape(s.shape[0], -1, n)[:, 1:].reshape(s.shape[0], n, 2 * n - 1)[:, :, :n]
            z = (s / 4).softmax(-1) @ y
            z = self.conv(torch.nn.functional.pad(z.transpose(1, 2), (4, 0)))
            return torch.nn.functional.glu(z, 1)

    draw = Drawn()
    calls = [[draw.floats(b, n, 19)] for b, n in [(1, 20), (1, 21), (2, 40), (1, 97), (3, 11)]]
    return torch_case(Module(), [draw.floats(2, 31, 19)], [("x", {0: "batch", 1: "frames"})], ["y"], calls)


# Graphs that are written as they are.


def graph(nodes, inputs, outputs, constants=(), opset=18):
    from onnx import TensorProto, helper, numpy_helper

    types = {"f": TensorProto.FLOAT, "i": TensorProto.INT64, "b": TensorProto.BOOL}
    value = lambda name, kind, dims: helper.make_tensor_value_info(name, types[kind], dims)  # noqa: E731
    made = helper.make_graph(nodes, "g", [value(*one) for one in inputs], [value(*one) for one in outputs], [numpy_helper.from_array(np.asarray(v), k) for k, v in constants])
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def inner(nodes, inputs, outputs):
    from onnx import TensorProto, helper

    types = {"f": TensorProto.FLOAT, "i": TensorProto.INT64, "b": TensorProto.BOOL}
    value = lambda name, kind, dims: helper.make_tensor_value_info(name, types[kind], dims)  # noqa: E731
    return helper.make_graph(nodes, "body", [value(*one) for one in inputs], [value(*one) for one in outputs])


@case
def loop_grows():
    """A loop whose number of runs is an input, and whose results grow by a row each."""
    from onnx import helper

    n = helper.make_node
    body = inner(
        [n("MatMul", ["state", "w"], ["m"]), n("Tanh", ["m"], ["next"]), n("Identity", ["next"], ["row"]), n("Identity", ["go"], ["more"])],
        [("i", "i", []), ("go", "b", []), ("state", "f", ["b", 4])], [("more", "b", []), ("next", "f", ["b", 4]), ("row", "f", ["b", 4])])
    draw = Drawn()
    model = graph([n("Loop", ["count", "yes", "x"], ["last", "rows"], body=body), n("ReduceSum", ["rows", "axis"], ["sum"], keepdims=0)],
                  [("count", "i", []), ("x", "f", ["b", 4])], [("last", "f", ["b", 4]), ("rows", "f", ["t", "b", 4]), ("sum", "f", ["b", 4])],
                  [("yes", np.array(True)), ("w", draw.floats(4, 4)), ("axis", np.array([0], np.int64))])
    return model, [[np.array(count, np.int64), draw.floats(b, 4)] for count, b in [(3, 2), (5, 1), (1, 3), (9, 2), (17, 1)]]


@case
def loop_concat():
    """A loop that carries what grows by Concat."""
    from onnx import helper

    n = helper.make_node
    body = inner(
        [n("Slice", ["all", "minus", "end", "zero1"], ["last"]), n("Mul", ["last", "w"], ["m"]), n("Concat", ["all", "m"], ["longer"], axis=0), n("Identity", ["go"], ["more"])],
        [("i", "i", []), ("go", "b", []), ("all", "f", ["t", 4])], [("more", "b", []), ("longer", "f", ["t2", 4])])
    draw = Drawn()
    model = graph([n("Loop", ["count", "yes", "x"], ["y"], body=body)],
                  [("count", "i", []), ("x", "f", ["t", 4])], [("y", "f", ["u", 4])],
                  [("yes", np.array(True)), ("w", draw.floats(1, 4)), ("minus", np.array([-1], np.int64)), ("end", np.array([2**62], np.int64)), ("zero1", np.array([0], np.int64))])
    return model, [[np.array(count, np.int64), draw.floats(t, 4)] for count, t in [(3, 2), (5, 1), (1, 3), (4, 7)]]


@case
def scan():
    """A scan over an open length, forwards and back."""
    from onnx import helper

    n = helper.make_node

    def body(k):
        nodes = [n("Add", [k + "s", k + "r"], [k + "a"]), n("Tanh", [k + "a"], [k + "t"]), n("Identity", [k + "t"], [k + "o"])]
        both = lambda a, b: [(k + name, "f", ["b", 3]) for name in (a, b)]  # noqa: E731
        return inner(nodes, both("s", "r"), both("t", "o"))

    draw = Drawn()
    model = graph([n("Scan", ["s0", "x"], ["s1", "y"], body=body("f"), num_scan_inputs=1), n("Scan", ["s1", "y"], ["s2", "z"], body=body("g"), num_scan_inputs=1, scan_input_directions=[1], scan_output_directions=[1])],
                  [("s0", "f", ["b", 3]), ("x", "f", ["t", "b", 3])], [("s2", "f", ["b", 3]), ("z", "f", ["t", "b", 3])])
    return model, [[draw.floats(b, 3), draw.floats(t, b, 3)] for t, b in [(4, 2), (5, 2), (9, 1), (33, 3), (1, 2)]]


@case
def sequences():
    """An input split in pieces of 3, turned around, put together."""
    from onnx import helper

    n = helper.make_node
    model = graph([n("SplitToSequence", ["x", "three"], ["s"], axis=0), n("SequenceLength", ["s"], ["count"]), n("SequenceAt", ["s", "zero"], ["first"]),
                   n("SequenceAt", ["s", "minus"], ["last"]), n("SequenceInsert", ["s", "first"], ["longer"]), n("ConcatFromSequence", ["longer"], ["y"], axis=0)],
                  [("x", "f", ["n", 4])], [("count", "i", []), ("last", "f", ["m", 4]), ("y", "f", ["k", 4])],
                  [("three", np.array(3, np.int64)), ("zero", np.array(0, np.int64)), ("minus", np.array(-1, np.int64))])
    draw = Drawn()
    return model, [[draw.floats(length, 4)] for length in (6, 7, 9, 12, 20)]


@case
def branches():
    """A branch by what is found, with results of other sizes."""
    from onnx import helper

    n = helper.make_node
    yes = inner([n("Concat", ["x", "x"], ["t"], axis=0)], [], [("t", "f", ["p", 4])])
    no = inner([n("Slice", ["x", "zero1", "one1"], ["e"])], [], [("e", "f", ["q", 4])])
    model = graph([n("ReduceSum", ["x"], ["sum"], keepdims=0), n("Greater", ["sum", "zero"], ["is"]), n("If", ["is"], ["y"], then_branch=yes, else_branch=no), n("Relu", ["y"], ["z"])],
                  [("x", "f", ["n", 4])], [("z", "f", ["m", 4])], [("zero", np.float32(0)), ("zero1", np.array([0], np.int64)), ("one1", np.array([1], np.int64))])
    draw = Drawn()
    return model, [[draw.floats(length, 4) + shift] for length, shift in [(3, 1), (3, -1), (5, 1), (8, -1), (17, 1), (2, -1)]]


@case
def found():
    """What is above a mean, counted, made unique, sorted out: sizes that data decide, and open ones beside them."""
    from onnx import helper

    n = helper.make_node
    model = graph([n("ReduceMean", ["x"], ["mean"], keepdims=0), n("Greater", ["x", "mean"], ["above"]), n("NonZero", ["above"], ["places"]), n("Transpose", ["places"], ["pairs"]),
                   n("GatherND", ["x", "pairs"], ["values"]), n("Compress", ["x", "rows"], ["some"], axis=0), n("Unique", ["ids"], ["each", "", "", "times"], sorted=1), n("TopK", ["values", "two"], ["top", "at"])],
                  [("x", "f", ["n", 5]), ("rows", "b", ["n"]), ("ids", "i", ["m"])], [("values", "f", ["v"]), ("some", "f", ["s", 5]), ("each", "i", ["u"]), ("times", "i", ["u"]), ("top", "f", [2])], [("two", np.array([2], np.int64))])
    draw = Drawn()
    return model, [[draw.floats(length, 5), draw.floats(length) > 0, draw.ints(6, length + 3)] for length in (3, 4, 9, 17, 40)]


def export(name, folder):
    """The files of a case: what each exporter gives."""
    made = CASES[name]()
    if len(made) == 2:
        model, calls = made
        path = folder / f"{name}.written.onnx"
        path.write_bytes(model.SerializeToString())
        save(path, [value.name for value in model.graph.input], calls)
        return
    import torch

    module, example, inputs, results, calls = made
    names = [name for name, _ in inputs]
    example = tuple(torch.from_numpy(np.asarray(value)) for value in example)
    for exporter in ("torchscript", "dynamo"):
        path = folder / f"{name}.{exporter}.onnx"
        try:
            with torch.no_grad():
                if exporter == "torchscript":
                    torch.onnx.export(module, example, str(path), dynamo=False, opset_version=17, input_names=names, output_names=results, dynamic_axes=dict(inputs))
                else:
                    shapes = [{axis: torch.export.Dim.DYNAMIC for axis in axes} for _, axes in inputs]
                    shapes = shapes if len(module.forward.__code__.co_varnames[: module.forward.__code__.co_argcount]) - 1 == len(inputs) else (*shapes[:2], tuple(shapes[2:]))
                    torch.onnx.export(module, example, dynamo=True, input_names=names, output_names=results, dynamic_shapes=tuple(shapes), verbose=False).save(str(path))
            save(path, names, calls)
        except Exception as error:  # noqa: BLE001: exporters fail in many ways.
            path.unlink(missing_ok=True)
            print(f"{name}.{exporter}: not exported: {type(error).__name__}: {str(error).splitlines()[0][:160] if str(error) else ''}", flush=True)


def save(path, names, calls):
    arrays = {f"{index}/{name}": value for index, call in enumerate(calls) for name, value in zip(names, call)}
    np.savez(path.with_suffix(".npz"), **arrays)
    print(f"{path.name}: {len(calls)} calls", flush=True)


def calls_of(path):
    calls = {}
    for key, value in np.load(path).items():
        index, name = key.split("/", 1)
        calls.setdefault(int(index), {})[name] = value
    return [calls[index] for index in sorted(calls)]


def difference(found, wanted):
    """The largest, relative to the largest number; infinite where types or sizes differ."""
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return float("inf")
    if wanted.size == 0:
        return 0.0
    if wanted.dtype.kind != "f":
        return 0.0 if (found == wanted).all() else float("inf")
    return float(np.abs(found - wanted).max() / max(float(np.abs(wanted).max()), 1e-6))


def check(path, device):
    """A verdict on a file."""
    import halite
    import onnxruntime

    calls = calls_of(path.with_suffix(".npz"))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    try:
        other = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        names = [value.name for value in other.get_outputs()]
        taken = {value.name for value in other.get_inputs()}
    except Exception as error:  # noqa: BLE001
        return {"verdict": "not by ONNX Runtime", "why": str(error)[:200]}
    try:
        session = halite.Session(str(path), device=device, cache=False, max_loaded_versions=256)
    except halite.Error as error:
        return {"verdict": "refused", "why": str(error)[:500]}
    worst, compared, bad = 0.0, 0, []
    for index, call in enumerate(calls):
        call = {name: value for name, value in call.items() if name in taken}
        try:
            wanted = other.run(None, call)
        except Exception:  # noqa: BLE001: it has fixed this size.
            continue
        sizes = {name: list(value.shape) for name, value in list(call.items())[:4]}
        try:
            out = session.run(call)
        except halite.Error as error:
            return {"verdict": "refused", "why": str(error)[:500], "call": index, "sizes": sizes}
        compared += 1
        for name, value in zip(names, wanted):
            apart = difference(np.asarray(out[name]), value)
            worst = max(worst, apart if apart != float("inf") else 0)
            if apart > TOLERANCE:
                bad.append([index, name, list(np.shape(out[name])), list(value.shape), apart, sizes])
    verdict = "not by ONNX Runtime" if compared == 0 else "wrong" if bad else "right"
    return {"verdict": verdict, "calls": compared, "worst": worst, "versions": session.loaded_versions, "bad": bad[:4]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["make", "check"])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--device", default="vulkan")
    parser.add_argument("--log", type=pathlib.Path)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    if args.what == "make":
        for name in args.names or CASES:
            try:
                export(name, args.folder)
            except Exception:  # noqa: BLE001
                print(f"{name}: not made: {traceback.format_exc().splitlines()[-1][:200]}", flush=True)
        return
    counts = {}
    for path in sorted(args.folder.glob("*.onnx")):
        if args.names and path.name.split(".")[0] not in args.names and path.stem not in args.names:
            continue
        found = {"file": path.name, **check(path, args.device)}
        counts[found["verdict"]] = counts.get(found["verdict"], 0) + 1
        print(json.dumps(found), flush=True)
        if args.log:
            with args.log.open("a") as log:
                log.write(json.dumps(found) + "\n")
    print(json.dumps(counts))
    sys.exit(1 if counts.get("wrong") or counts.get("refused") else 0)


if __name__ == "__main__":
    main()
