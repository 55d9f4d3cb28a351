"""Networks for `export_vgf.py`: known families, with weights drawn at random and norms that fit them. No weights are downloaded."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import torchvision.models as tv


class Residual(nn.Module):
    """Two convolutions and a way around them."""

    def __init__(self, inner, outer, stride):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(inner, outer, 3, stride, 1, bias=False), nn.BatchNorm2d(outer), nn.ReLU())
        self.second = nn.Sequential(nn.Conv2d(outer, outer, 3, 1, 1, bias=False), nn.BatchNorm2d(outer))
        same = stride == 1 and inner == outer
        self.around = nn.Identity() if same else nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))

    def forward(self, x):
        return F.relu(self.second(self.first(x)) + self.around(x))


def resnet20():
    """ResNet-20 for images of 32x32."""
    layers, width = [nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU()], 16
    for outer in [16, 32, 64]:
        for n in range(3):
            layers.append(Residual(width, outer, 2 if n == 0 and outer > 16 else 1))
            width = outer
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


class Transformer(nn.Module):
    """A block of an encoder: attention of some heads and a perceptron, both with norms before them."""

    def __init__(self, width=64, heads=4):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, n, c = x.shape
        qkv = self.qkv(self.norm1(x)).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        mixed = torch.softmax(q @ k.transpose(-1, -2) * (c // self.heads) ** -0.5, -1) @ v
        x = x + self.out(mixed.transpose(1, 2).reshape(b, n, c))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class DeepLab(nn.Module):
    """Dilated convolutions side by side on a small backbone, and pixels brought back to the size of the image."""

    def __init__(self, width=32, classes=8):
        super().__init__()
        self.backbone = nn.Sequential(Residual(3, 16, 2), Residual(16, width, 2), Residual(width, width, 2))
        rates = [1, 2, 4]
        self.rates = nn.ModuleList(nn.Sequential(nn.Conv2d(width, width, 3, padding=r, dilation=r), nn.BatchNorm2d(width), nn.ReLU()) for r in rates)
        self.pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(width, width, 1), nn.ReLU())
        self.last = nn.Conv2d(width * (len(rates) + 1), classes, 1)

    def forward(self, x):
        y = self.backbone(x)
        wide = F.interpolate(self.pool(y), size=y.shape[-2:], mode="nearest")
        y = self.last(torch.cat([rate(y) for rate in self.rates] + [wide], 1))
        return F.interpolate(y, scale_factor=8.0, mode="bilinear", align_corners=False)


class UNet(nn.Module):
    """Down and up again by transposed convolutions, with what was skipped beside."""

    def __init__(self, width=12):
        super().__init__()
        self.down1, self.down2 = Residual(3, width, 1), Residual(width, 2 * width, 2)
        self.down3 = Residual(2 * width, 4 * width, 2)
        self.up2, self.up1 = nn.ConvTranspose2d(4 * width, 2 * width, 2, 2), nn.ConvTranspose2d(2 * width, width, 4, 2, 1)
        self.mix2, self.mix1 = Residual(4 * width, 2 * width, 1), Residual(2 * width, width, 1)
        self.last = nn.Conv2d(width, 2, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(a)
        y = self.mix2(torch.cat([self.up2(self.down3(b)), b], 1))
        return torch.sigmoid(self.last(self.mix1(torch.cat([self.up1(y), a], 1))))


class Lstm(nn.Module):
    """A long short-term memory written out over its steps."""

    def __init__(self, width=20, inner=24):
        super().__init__()
        self.inner = inner
        self.of_input, self.of_state = nn.Linear(width, 4 * inner), nn.Linear(inner, 4 * inner)

    def forward(self, x):
        h = c = torch.zeros(x.shape[0], self.inner)
        steps = []
        for t in range(x.shape[1]):
            i, f, g, o = (self.of_input(x[:, t]) + self.of_state(h)).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            steps.append(h)
        return torch.stack(steps, 1)


class Mixer(nn.Module):
    """Patches, then perceptrons over places and over channels."""

    def __init__(self, width=48, places=36, blocks=3):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 8, 8)
        mlp = lambda n: nn.Sequential(nn.Linear(n, 2 * n), nn.GELU(), nn.Linear(2 * n, n))
        self.blocks = nn.ModuleList(nn.ModuleList([nn.LayerNorm(width), mlp(places), nn.LayerNorm(width), mlp(width)]) for _ in range(blocks))
        self.last = nn.Linear(width, 10)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        for norm1, places, norm2, channels in self.blocks:
            x = x + places(norm1(x).transpose(1, 2)).transpose(1, 2)
            x = x + channels(norm2(x))
        return self.last(x.mean(1))


class Depth(nn.Module):
    """An encoder of depthwise convolutions and a decoder that resizes, by both ways, to a size that is no multiple."""

    def __init__(self, width=16):
        super().__init__()
        pair = lambda i, o: nn.Sequential(nn.Conv2d(i, i, 3, 2, 1, groups=i), nn.BatchNorm2d(i), nn.Conv2d(i, o, 1), nn.Hardswish())
        self.one, self.two, self.three = nn.Sequential(nn.Conv2d(3, width, 3, 2, 1), nn.ReLU6()), pair(width, 2 * width), pair(2 * width, 4 * width)
        self.up2, self.up1, self.last = nn.Conv2d(4 * width, 2 * width, 3, padding=1), nn.Conv2d(2 * width, width, 5, padding=2), nn.Conv2d(width, 1, 3, padding=1)

    def forward(self, x):
        a = self.one(x)
        b = self.two(a)
        y = F.leaky_relu(self.up2(F.interpolate(self.three(b), scale_factor=2.0, mode="bilinear", align_corners=True))) + b
        y = F.elu(self.up1(F.interpolate(y, scale_factor=2.0, mode="nearest"))) + a
        return F.softplus(F.interpolate(self.last(y), scale_factor=2.0, mode="bilinear", align_corners=False))


class Gru(nn.Module):
    """Gated recurrent units written out over their steps, once forwards and once backwards."""

    def __init__(self, width=18, inner=22):
        super().__init__()
        self.inner = inner
        self.ways = nn.ModuleList(nn.ModuleList([nn.Linear(width, 3 * inner), nn.Linear(inner, 3 * inner)]) for _ in range(2))
        self.last = nn.Linear(2 * inner, 7)

    def forward(self, x):
        sides = []
        for way, (of_input, of_state) in enumerate(self.ways):
            h, steps = torch.zeros(x.shape[0], self.inner), []
            for t in range(x.shape[1])[:: 1 - 2 * way]:
                (r, z, n), (hr, hz, hn) = of_input(x[:, t]).chunk(3, 1), of_state(h).chunk(3, 1)
                z = torch.sigmoid(z + hz)
                h = (1 - z) * torch.tanh(n + torch.sigmoid(r + hr) * hn) + z * h
                steps.insert(len(steps) * (1 - way), h)
            sides.append(torch.stack(steps, 1))
        return self.last(F.silu(torch.cat(sides, 2)))


class Gated(nn.Module):
    """Dilated convolutions of a wave, each with a filter and a gate, and what they skip added up."""

    def __init__(self, width=16):
        super().__init__()
        self.first = nn.Conv1d(4, width, 3, padding=1)
        self.both = nn.ModuleList(nn.Conv1d(width, 2 * width, 3, padding=2**n, dilation=2**n) for n in range(3))
        self.after = nn.ModuleList(nn.Conv1d(width, 2 * width, 1) for _ in range(3))
        self.last = nn.Conv1d(width, 5, 1)

    def forward(self, x):
        x, total = self.first(x), 0
        for both, after in zip(self.both, self.after):
            values, gate = both(x).chunk(2, 1)
            more, skip = after(torch.tanh(values) * torch.sigmoid(gate)).chunk(2, 1)
            x, total = x + more, total + skip
        return self.last(F.selu(total))


def fitted(model, inputs):
    """A model whose norms fit random images, so that its values neither grow nor die."""
    model.train()
    with torch.no_grad():
        for _ in range(12):
            model(*[torch.randn((8, *given.shape[1:])) for given in inputs])
    return model.eval()


def networks():
    """By name: what makes a model, and the shape of its input. The second half was drawn after the code had been written."""
    small = {"num_classes": 100}
    return {
        "mv2": (lambda: tv.mobilenet_v2(**small), (1, 3, 96, 96)),
        "mv3s": (lambda: tv.mobilenet_v3_small(**small), (1, 3, 96, 96)),
        "rn18": (lambda: tv.resnet18(**small), (1, 3, 96, 96)),
        "rn20": (resnet20, (1, 3, 32, 32)),
        "tx": (Transformer, (1, 48, 64)),
        "deeplab": (DeepLab, (1, 3, 64, 64)),
        "effnet": (lambda: tv.efficientnet_b0(**small), (1, 3, 64, 64)),
        "unet": (UNet, (1, 3, 32, 40)),
        "lstm": (Lstm, (1, 6, 20)),
        "mixer": (Mixer, (1, 3, 48, 48)),
        "depth": (Depth, (1, 3, 40, 56)),
        "gru": (Gru, (1, 5, 18)),
        "gated": (Gated, (1, 4, 60)),
    }


def network(name):
    """A model and its inputs, or None."""
    if name not in networks():
        return None
    torch.manual_seed(28)
    make, shape = networks()[name]
    inputs = (torch.randn(shape),)
    return fitted(make(), inputs), inputs
