"""What onnx_sizes.py exports of torch beside decoders: detectors, speech, segmentation, pools, shapes of all kinds."""

import numpy as np
from onnx_sizes_base import Drawn, case


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


@case
def regions():
    """Proposals, suppression, and what is cut out of features for each, as Mask R-CNN does."""
    import torch
    import torchvision
    from torch import nn

    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.head = nn.Conv2d(3, 8, 3, 2, 1), nn.Conv2d(8, 5, 1), nn.Linear(72, 6)

        def forward(self, x):
            y = torch.relu(self.a(x))
            found = self.b(y)[0].flatten(1).t()
            places = torch.arange(found.shape[0])
            middle = torch.stack([places % y.shape[3], torch.div(places, y.shape[3], rounding_mode="floor")], 1) * 2.0
            boxes = torch.cat([middle - found[:, :2].exp(), middle + found[:, 2:4].exp()], 1)
            kept = torchvision.ops.nms(boxes, found[:, 4], 0.3)[:10]
            cut = torchvision.ops.roi_align(y, [boxes[kept]], (3, 3), 0.5, 2)
            return self.head(cut.flatten(1)).softmax(1), boxes[kept]

    draw = Drawn()
    calls = [[draw.floats(1, 3, *one)] for one in [(16, 16), (20, 24), (15, 31), (33, 18)]]
    return torch_case(Module(), [draw.floats(1, 3, 18, 22)], [("image", {2: "height", 3: "width"})], ["classes", "boxes"], calls)


@case
def unet():
    """Odd sizes go down and up again, cut to those of the way down."""
    import torch
    from torch import nn

    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = nn.Conv2d(1, 4, 3, 1, 1), nn.Conv2d(4, 8, 3, 2, 1), nn.Conv2d(8, 8, 3, 2, 1)
            self.up1, self.up2, self.out = nn.ConvTranspose2d(8, 8, 2, 2), nn.ConvTranspose2d(8, 4, 2, 2), nn.Conv2d(4, 2, 1)

        def forward(self, x):
            a = torch.relu(self.a(x))
            b = torch.relu(self.b(a))
            c = self.up1(torch.relu(self.c(b)))[:, :, : b.shape[2], : b.shape[3]] + b
            return self.out(self.up2(c)[:, :, : a.shape[2], : a.shape[3]] + a)

    draw = Drawn()
    calls = [[draw.floats(n, 1, *one)] for n, one in [(1, (16, 16)), (1, (17, 19)), (2, (21, 30)), (1, (40, 23))]]
    return torch_case(Module(), [draw.floats(2, 1, 18, 22)], [("image", {0: "batch", 2: "height", 3: "width"})], ["y"], calls)


@case
def detr():
    """Positions by sums over a mask, as DETR has them, and queries that attend to all places."""
    import torch
    from torch import nn

    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.query, self.out = nn.Conv2d(3, 16, 4, 4), nn.Parameter(torch.zeros(6, 16)), nn.Linear(16, 4)

        def forward(self, x, mask):
            y = self.a(x)
            mask = torch.nn.functional.interpolate(mask[:, None].float(), size=y.shape[-2:])[:, 0]
            rows, columns = mask.cumsum(1), mask.cumsum(2)
            rows, columns = rows / (rows[:, -1:] + 1e-6), columns / (columns[:, :, -1:] + 1e-6)
            parts = [rows.sin(), rows.cos(), columns.sin(), columns.cos()]
            y = y + torch.stack(parts, 1).repeat(1, 4, 1, 1)
            keys = y.flatten(2)
            scores = (self.query @ keys / 4).masked_fill(mask.flatten(1)[:, None] < 0.5, -1e9)
            return self.out(scores.softmax(-1) @ keys.transpose(1, 2)).sigmoid()

    draw = Drawn()

    def call(n, h, w):
        mask = np.ones((n, h, w), np.float32)
        mask[-1, :, w // 2 + 2:] = 0
        return [draw.floats(n, 3, h, w), mask]

    calls = [call(*one) for one in [(1, 16, 16), (1, 20, 24), (2, 18, 33), (1, 40, 17)]]
    axes = {0: "batch", 2: "height", 3: "width"}
    return torch_case(Module(), call(2, 24, 28), [("image", axes), ("mask", {0: "batch", 1: "height", 2: "width"})], ["boxes"], calls)


@case
def tasnet():
    """A filter bank over samples, chunks that overlap, norms over time, and samples again."""
    import torch
    from torch import nn

    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.norm = nn.Conv1d(1, 8, 8, 4), nn.Conv1d(8, 8, 3, padding=2, dilation=2, groups=8), nn.GroupNorm(1, 8)
            self.back = nn.ConvTranspose1d(8, 1, 8, 4)

        def forward(self, x):
            n = x.shape[-1]
            x = torch.nn.functional.pad(x, (4, 4 + (4 - n % 4) % 4))
            y = torch.relu(self.a(x[:, None]))
            mask = self.norm(self.b(y)).sigmoid()
            return self.back(y * mask)[:, 0, 4 : n + 4]

    draw = Drawn()
    calls = [[draw.floats(*one)] for one in [(1, 64), (1, 65), (2, 99), (1, 250), (3, 31)]]
    return torch_case(Module(), [draw.floats(2, 77)], [("x", {0: "batch", 1: "samples"})], ["y"], calls)
