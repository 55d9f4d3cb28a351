"""What onnx_sizes.py exports of detectors that suppress inside and of decoders that are merged with a first step: YOLOX- and EfficientDet-like, suppression over
batches, T5 with cross attention whose caches a flag chooses. Modules are written here with random weights."""

import io

import numpy as np
from onnx_sizes_base import Drawn, case
from onnx_sizes_merge import branches
from onnx_sizes_more import network

IMAGE = [("image", {2: "height", 3: "width"})]
SIZES = ((64, 96), (96, 64), (128, 160), (160, 96), (32, 224))


def pictures():
    draw = Drawn()
    return [[draw.floats(1, 3, *size)] for size in SIZES]


def layer(nn, given, made, stride=1):
    return nn.Sequential(nn.Conv2d(given, made, 3, stride, 1, bias=False), nn.BatchNorm2d(made), nn.SiLU())


@case
def yolox():
    """Three levels, a grid computed of each level's size, boxes by exponentials, suppression of each class apart from the others."""
    import torch
    import torchvision
    from torch import nn

    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            widths = (8, 12, 16, 24)
            self.stem = layer(nn, 12, 8)
            self.down = nn.ModuleList([layer(nn, a, b, 2) for a, b in zip(widths, widths[1:])])
            self.heads = nn.ModuleList([nn.Conv2d(width, 9, 1) for width in widths[1:]])

        def forward(self, image):
            # The picture's pixels as four pictures side by side.
            x = torch.cat([image[..., ::2, ::2], image[..., 1::2, ::2], image[..., ::2, 1::2], image[..., 1::2, 1::2]], 1)
            x, rows = self.stem(x), []
            for level, (down, head) in enumerate(zip(self.down, self.heads)):
                x = down(x)
                out, stride = head(x), 2 ** (level + 2)
                high, wide = out.shape[-2:]
                ys, xs = torch.meshgrid(torch.arange(high), torch.arange(wide), indexing="ij")
                grid = torch.stack((xs, ys), 2).view(1, -1, 2).float()
                out = out.flatten(2).permute(0, 2, 1)
                rows.append(torch.cat([(out[..., :2] + grid) * stride, torch.exp(out[..., 2:4]) * stride, out[..., 4:].sigmoid()], -1))
            found = torch.cat(rows, 1)[0]
            best, label = found[:, 5:].max(1)
            score = found[:, 4] * best
            kept = score > 0.27
            boxes, score, label = found[kept, :4], score[kept], label[kept]
            boxes = torch.cat([boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2], 1)
            left = torchvision.ops.nms(boxes + label[:, None] * 4096.0, score, 0.45)
            return boxes[left], score[left], label[left]

    made = pictures()
    return network(Module(), made[0], IMAGE, ["boxes", "scores", "labels"], made)


@case
def efficientdet():
    """Levels that are weighted with each other up and down, anchors of each level's size, the best of all classes and places, suppression, a hundred rows at most."""
    import torch
    import torchvision
    from torch import nn
    from torch.nn import functional as f

    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.down = nn.ModuleList([layer(nn, a, b, 2) for a, b in zip((3, 8, 16, 16), (8, 16, 16, 16))])
            self.weights = nn.Parameter(torch.rand(4, 2))
            self.joins = nn.ModuleList([layer(nn, 16, 16) for _ in range(4)])
            self.classes, self.boxes = nn.Conv2d(16, 3 * 5, 3, padding=1), nn.Conv2d(16, 3 * 4, 3, padding=1)

        def anchors(self, level):
            high, wide = level.shape[-2:]
            ys, xs = torch.arange(high).float() + 0.5, torch.arange(wide).float() + 0.5
            centre = torch.stack([ys[:, None].expand(high, wide), xs[None].expand(high, wide)], -1).reshape(-1, 1, 2)
            sides = torch.tensor([[3.0, 3.0], [2.0, 4.0], [4.0, 2.0]])
            return torch.cat([(centre - sides / 2), (centre + sides / 2)], -1).reshape(-1, 4)

        def forward(self, image):
            levels, x = [], image
            for down in self.down:
                x = down(x)
                levels.append(x)
            c3, c4, c5 = levels[1:]
            mix = lambda i, a, b: self.joins[i]((a * w[0] + b * w[1]) / (w.sum() + 1e-4)) if (w := self.weights[i].relu()) is not None else a  # noqa: E731
            p4 = mix(0, c4, f.interpolate(c5, size=c4.shape[-2:], mode="nearest"))
            p3 = mix(1, c3, f.interpolate(p4, size=c3.shape[-2:], mode="nearest"))
            p4 = mix(2, p4, f.max_pool2d(p3, 3, 2, 1))
            p5 = mix(3, c5, f.max_pool2d(p4, 3, 2, 1))
            rows = lambda conv, count: torch.cat([conv(p).permute(0, 2, 3, 1).reshape(-1, count) for p in (p3, p4, p5)])  # noqa: E731
            scores, moves = rows(self.classes, 5).sigmoid(), rows(self.boxes, 4)
            anchors = torch.cat([self.anchors(p) * stride for p, stride in zip((p3, p4, p5), (4.0, 8.0, 16.0))])
            most = scores.numel() if scores.numel() < 200 else 200
            best, places = scores.flatten().topk(most)
            label, row = places % 5, places // 5
            size = anchors[row, 2:] - anchors[row, :2]
            middle = anchors[row, :2] + size / 2 + moves[row, :2] * size
            size = size * moves[row, 2:].clamp(max=2.0).exp()
            boxes = torch.cat([middle - size / 2, middle + size / 2], 1)
            boxes = torch.minimum(boxes.clamp(min=0), torch.tensor([image.shape[2], image.shape[3]] * 2).float())
            left = torchvision.ops.batched_nms(boxes, best, label, 0.5)[:100]
            return boxes[left], best[left], label[left]

    made = pictures()
    return network(Module(), made[0], IMAGE, ["boxes", "scores", "labels"], made)


@case
def batched_suppression():
    """Suppression in several pictures at once, as exporters for engines write it: rows with the picture's place in front."""
    from onnx import TensorProto, helper, numpy_helper

    constants = {"most": np.array([20], np.int64), "overlap": np.array([0.4], np.float32), "score": np.array([0.6], np.float32), "two": np.array([0, 2], np.int64),
                 "zero": np.array([0], np.int64), "one": np.array([1], np.int64), "axis": np.array([1], np.int64)}
    make = helper.make_node
    nodes = [make("NonMaxSuppression", ["boxes", "classes", "most", "overlap", "score"], ["kept"]), make("Gather", ["kept", "two"], ["at"], axis=1),
             make("Gather", ["kept", "zero"], ["picture"], axis=1), make("GatherND", ["boxes", "at"], ["found"]), make("GatherND", ["classes", "kept"], ["scores"]),
             make("Cast", ["picture"], ["first"], to=TensorProto.FLOAT), make("Gather", ["kept", "one"], ["label"], axis=1), make("Cast", ["label"], ["labels"], to=TensorProto.FLOAT),
             make("Unsqueeze", ["scores", "axis"], ["column"]), make("Concat", ["first", "found", "labels", "column"], ["rows"], axis=1)]
    values = [helper.make_tensor_value_info("boxes", TensorProto.FLOAT, ["batch", "places", 4]), helper.make_tensor_value_info("classes", TensorProto.FLOAT, ["batch", 3, "places"])]
    graph = helper.make_graph(nodes, "batched", values, [helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["n", 7])], [numpy_helper.from_array(v, k) for k, v in constants.items()])
    draw, calls = Drawn(), []
    for batch, places in [(2, 40), (1, 7), (3, 100), (1, 1), (2, 300)]:
        low = np.abs(draw.floats(batch, places, 2)) * 20
        calls.append([np.concatenate([low, low + 1 + np.abs(draw.floats(batch, places, 2)) * 10], -1), 1 / (1 + np.exp(-draw.floats(batch, 3, places)))])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), calls


def parts_of_t5():
    """T5's decoder as two modules over the same weights: one that computes keys and values of what was encoded, one that is given them."""
    import torch
    from transformers import T5Config, T5ForConditionalGeneration
    from transformers.cache_utils import DynamicCache, EncoderDecoderCache

    torch.manual_seed(4)
    config = T5Config(vocab_size=60, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, decoder_start_token_id=0)
    config._attn_implementation = "eager"
    model = T5ForConditionalGeneration(config).eval()
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.2) if weight.dim() > 1 else None

    class Module(torch.nn.Module):
        def __init__(self, past):
            super().__init__()
            self.inner, self.past = model, past

        def forward(self, mask, ids, states, *caches):
            own, other = DynamicCache(), DynamicCache()
            whole = EncoderDecoderCache(own, other)
            for layer in range(2 if self.past else 0):
                own.update(caches[4 * layer], caches[4 * layer + 1], layer)
                other.update(caches[4 * layer + 2], caches[4 * layer + 3], layer)
                whole.is_updated[layer] = True
            out = self.inner.decoder(input_ids=ids, encoder_hidden_states=states, encoder_attention_mask=mask, past_key_values=whole, use_cache=True)
            given = [self.inner.lm_head(out.last_hidden_state)]
            for mine, theirs in zip(own.layers, other.layers):
                given += [mine.keys, mine.values, theirs.keys, theirs.values]
            return tuple(given)

    return Module(False).eval(), Module(True).eval()


@case
def merged_t5():
    """T5's decoder as Optimum merges it, with keys and values of what was encoded computed in the first step and handed on."""
    import onnx
    import torch

    first, then = parts_of_t5()
    draw = Drawn()
    names = [f"{layer}.{side}.{part}" for layer in range(2) for side in ("decoder", "encoder") for part in ("key", "value")]
    inputs = [("encoder_attention_mask", {0: "batch", 1: "words"}), ("input_ids", {0: "batch", 1: "length"}), ("encoder_hidden_states", {0: "batch", 1: "words"})]
    inputs += [(f"past_key_values.{name}", {0: "batch", 2: "past" if "decoder" in name else "seen"}) for name in names]
    results = ["logits", *(f"present.{name}" for name in names)]

    def call(batch, length, past, words):
        mask = np.ones((batch, words), np.int64)
        mask[-1, -2:] = 0
        caches = [draw.floats(batch, 4, (past if "decoder" in name else words) if past else 1, 8) for name in names]
        return [mask, draw.ints(60, batch, length), draw.floats(batch, words, 32), *caches]

    parts = []
    for module, count, given in [(first, 3, call(2, 3, 0, 7)[:3]), (then, len(inputs), call(2, 1, 5, 7))]:
        made = io.BytesIO()
        with torch.no_grad():
            torch.onnx.export(module, tuple(map(torch.from_numpy, given)), made, dynamo=False, opset_version=17, input_names=[name for name, _ in inputs[:count]], output_names=results, dynamic_axes=dict(inputs[:count]))
        parts.append(onnx.load_from_string(made.getvalue()))
    sizes = [(1, 1, 0, 9), (1, 1, 1, 9), (1, 1, 2, 9), (1, 1, 3, 9), (2, 1, 0, 17), (2, 1, 1, 17), (2, 1, 40, 17), (1, 4, 0, 30), (1, 1, 4, 30)]
    model = branches(parts, results)
    # A graph that reads only what it needs has no input for the rest.
    taken = {value.name for value in model.graph.input}
    kept = [i for i, (name, _) in enumerate(inputs) if name in taken]
    order = {name: place for place, name in enumerate(value.name for value in model.graph.input)}
    calls = []
    for size in sizes:
        made = call(*size)
        row = sorted(((order[inputs[i][0]], made[i]) for i in kept), key=lambda pair: pair[0])
        calls.append([*(value for _, value in row), np.array([size[2] > 0])])
    return model, calls
