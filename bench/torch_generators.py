"""Networks whose results are images or boxes, for compare_networks.py (SET=generators): generators with transposed convolutions and mirrored
borders, larger images by shuffles of pixels and by nearest neighbours, depth, detection, and windows whose attention has a factor for each
head. They are those that the passes `channels-last`, `channel-values` and `attention` were looked at with."""

import timm
import torch
import transformers as tr
from torch import nn

from torch_networks import Of


class Dense(nn.Module):
    """Five convolutions, each of all images before it, and a residual: a block of ESRGAN."""

    def __init__(self, channels=64, growth=32):
        super().__init__()
        results = [growth] * 4 + [channels]
        self.convolutions = nn.ModuleList(nn.Conv2d(channels + i * growth, to, 3, padding=1) for i, to in enumerate(results))

    def forward(self, x):
        images = [x]
        for convolution in self.convolutions[:-1]:
            images.append(nn.functional.leaky_relu(convolution(torch.cat(images, 1)), 0.2))
        return x + 0.2 * self.convolutions[-1](torch.cat(images, 1))


class Nearest(nn.Module):
    """Four times the size by two steps of nearest neighbours (ESRGAN)."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Conv2d(3, 64, 3, padding=1), nn.Conv2d(64, 3, 3, padding=1)
        self.blocks = nn.Sequential(*[Dense() for _ in range(4)])
        self.larger = nn.ModuleList(nn.Conv2d(64, 64, 3, padding=1) for _ in range(2))

    def forward(self, x):
        x = self.first(x)
        x = x + self.blocks(x)
        for convolution in self.larger:
            x = nn.functional.leaky_relu(convolution(nn.functional.interpolate(x, scale_factor=2)), 0.2)
        return self.last(x)


class Shuffled(nn.Module):
    """Twice the size by a shuffle of pixels (EDSR)."""

    def __init__(self, channels=64):
        super().__init__()
        convolution = lambda to: nn.Conv2d(channels, to, 3, padding=1)  # noqa: E731
        self.first, self.last = nn.Conv2d(3, channels, 3, padding=1), nn.Conv2d(channels, 3, 3, padding=1)
        self.blocks = nn.ModuleList(nn.Sequential(convolution(channels), nn.ReLU(), convolution(channels)) for _ in range(8))
        self.larger = nn.Sequential(convolution(4 * channels), nn.PixelShuffle(2))

    def forward(self, x):
        x = self.first(x)
        y = x
        for block in self.blocks:
            y = y + block(y)
        return self.last(self.larger(x + y))


class Skipping(nn.Module):
    """Five steps down and up, each concatenated with the one across (Pix2Pix)."""

    def __init__(self, widths=(64, 128, 256, 512, 512)):
        super().__init__()
        down = lambda of, to: nn.Sequential(nn.LeakyReLU(0.2), nn.Conv2d(of, to, 4, 2, 1), nn.BatchNorm2d(to))  # noqa: E731
        up = lambda of, to: nn.Sequential(nn.ReLU(), nn.ConvTranspose2d(of, to, 4, 2, 1), nn.BatchNorm2d(to))  # noqa: E731
        pairs = list(zip(widths, widths[1:]))
        self.first = nn.Conv2d(3, widths[0], 4, 2, 1)
        self.down = nn.ModuleList(down(of, to) for of, to in pairs)
        self.up = nn.ModuleList(up(to if i == 0 else 2 * to, of) for i, (of, to) in enumerate(reversed(pairs)))
        self.last = nn.Sequential(nn.ReLU(), nn.ConvTranspose2d(2 * widths[0], 3, 4, 2, 1), nn.Tanh())

    def forward(self, x):
        images = [self.first(x)]
        for step in self.down:
            images.append(step(images[-1]))
        y = images.pop()
        for step in self.up:
            y = torch.cat([step(y), images.pop()], 1)
        return self.last(y)


class Mirrored(nn.Module):
    """Two convolutions with mirrored borders, normalized by image, and a residual (CycleGAN)."""

    def __init__(self, channels):
        super().__init__()
        half = lambda: [nn.ReflectionPad2d(1), nn.Conv2d(channels, channels, 3), nn.InstanceNorm2d(channels)]  # noqa: E731
        self.parts = nn.Sequential(*half(), nn.ReLU(), *half())

    def forward(self, x):
        return x + self.parts(x)


def cyclegan():
    """Six blocks of 256 channels at a quarter of the size."""
    normalized = lambda part, channels: [part, nn.InstanceNorm2d(channels), nn.ReLU()]  # noqa: E731
    parts = [nn.ReflectionPad2d(3), *normalized(nn.Conv2d(3, 64, 7), 64)]
    for of in (64, 128):
        parts += normalized(nn.Conv2d(of, 2 * of, 3, 2, 1), 2 * of)
    parts += [Mirrored(256) for _ in range(6)]
    for of in (256, 128):
        parts += normalized(nn.ConvTranspose2d(of, of // 2, 3, 2, 1, 1), of // 2)
    return nn.Sequential(*parts, nn.ReflectionPad2d(3), nn.Conv2d(64, 3, 7), nn.Tanh())


def dcgan():
    """From 100 numbers to 64 x 64 pixels."""
    parts = [nn.ConvTranspose2d(100, 1024, 4, 1, 0, bias=False), nn.BatchNorm2d(1024), nn.ReLU()]
    for of in (1024, 512, 256):
        parts += [nn.ConvTranspose2d(of, of // 2, 4, 2, 1, bias=False), nn.BatchNorm2d(of // 2), nn.ReLU()]
    return nn.Sequential(*parts, nn.ConvTranspose2d(128, 3, 4, 2, 1), nn.Tanh())


def depth():
    """DPT with a small vision transformer."""
    sizes = {"hidden_size": 192, "num_attention_heads": 3, "intermediate_size": 768, "num_hidden_layers": 12}
    neck = {"backbone_out_indices": [2, 5, 8, 11], "neck_hidden_sizes": [48, 96, 192, 192], "fusion_hidden_size": 64}
    config = tr.DPTConfig(image_size=224, **sizes, **neck)
    config._attn_implementation = "sdpa"
    return Of(tr.DPTForDepthEstimation(config), lambda net, x: net(x).predicted_depth)


def detection():
    """DETR with three layers each way."""
    config = tr.DetrConfig(use_pretrained_backbone=False, encoder_layers=3, decoder_layers=3)
    return Of(tr.DetrForObjectDetection(config), lambda net, x: net(x).logits)


def made(batch):
    """For each network a function that makes it, and its input."""
    image = lambda side: (torch.randn(batch, 3, side, side),)  # noqa: E731
    return {
        "cyclegan": lambda: (cyclegan(), image(128)),
        "dcgan": lambda: (dcgan(), (torch.randn(batch, 100, 1, 1),)),
        "detr": lambda: (detection(), image(320)),
        "dpt": lambda: (depth(), image(224)),
        "edsr": lambda: (Shuffled(), image(128)),
        "esrgan": lambda: (Nearest(), image(64)),
        "pix2pix": lambda: (Skipping(), image(256)),
        "swinv2_tiny": lambda: (timm.create_model("swinv2_tiny_window8_256"), image(256)),
    }
