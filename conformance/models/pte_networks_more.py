"""Further networks of export_pte_networks.py, drawn on 2026-11-28: of sounds, series, points, graphs, pictures, words. The same form as in pte_networks.py."""
import torch
from torch import nn
from torch.export import Dim

from pte_networks import ROWS, causal, encoder_config, hf, image, llama_like, words

F = nn.functional
FRAMES = {2: Dim("frames", min=16, max=128)}
PIXELS = {2: 8 * Dim("h", min=2, max=8), 3: 8 * Dim("w", min=2, max=8)}


class Separator(nn.Module):
    """Conv-TasNet: an encoder of waves, dilated blocks with global norms, masks."""

    def __init__(self, width=16):
        super().__init__()
        self.encode, self.decode = nn.Conv1d(1, width, 8, 4), nn.ConvTranspose1d(width, 1, 8, 4)
        self.blocks = nn.ModuleList([nn.ModuleList([nn.Conv1d(width, 24, 1), nn.PReLU(), nn.GroupNorm(1, 24), nn.Conv1d(24, 24, 3, padding=d, dilation=d, groups=24), nn.Conv1d(24, width, 1)]) for d in (1, 2, 4)])
        self.masks = nn.Conv1d(width, 2 * width, 1)

    def forward(self, x):
        y = z = F.relu(self.encode(x))
        for up, act, norm, deep, down in self.blocks:
            z = z + down(deep(norm(act(up(z)))))
        masks = torch.sigmoid(self.masks(z)).unflatten(1, (2, -1))
        return torch.cat([self.decode(masks[:, i] * y) for i in range(2)], 1)


class Vocoder(nn.Module):
    """HiFi-GAN's generator, of one block a step."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Conv1d(20, 32, 7, padding=3), nn.Conv1d(8, 1, 7, padding=3)
        self.ups = nn.ModuleList([nn.ConvTranspose1d(32, 16, 8, 4, 2), nn.ConvTranspose1d(16, 8, 4, 2, 1)])
        self.mixes = nn.ModuleList([nn.Conv1d(c, c, 3, padding=d, dilation=d) for c, d in ((16, 3), (8, 5))])

    def forward(self, x):
        x = self.first(x)
        for up, mix in zip(self.ups, self.mixes):
            x = up(F.leaky_relu(x, 0.1))
            x = x + mix(F.leaky_relu(x, 0.1))
        return torch.tanh(self.last(F.leaky_relu(x)))


class Points(nn.Module):
    """PointNet with a transform that it learns."""

    def __init__(self):
        super().__init__()
        self.turn = nn.Sequential(nn.Conv1d(3, 16, 1), nn.ReLU(), nn.Conv1d(16, 32, 1), nn.ReLU())
        self.matrix, self.rest, self.out = nn.Linear(32, 9), nn.Sequential(nn.Conv1d(3, 32, 1), nn.BatchNorm1d(32), nn.ReLU(), nn.Conv1d(32, 64, 1)), nn.Linear(64, 6)

    def forward(self, x):
        matrix = self.matrix(self.turn(x).amax(2)).view(-1, 3, 3) + torch.eye(3)
        return F.log_softmax(self.out(self.rest(torch.bmm(matrix, x)).amax(2)), -1)


class Forecast(nn.Module):
    """N-BEATS with a trend and seasons, over a series that is normalized within itself."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(48, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 8)) for _ in range(3)])
        t = torch.arange(60) / 48
        self.register_buffer("bases", torch.stack([t**i for i in range(4)] + [f(6.28 * i * t) for i in (1, 2) for f in (torch.cos, torch.sin)]))

    def forward(self, x):
        mean, spread = x.mean(1, keepdim=True), x.std(1, keepdim=True, unbiased=False) + 1e-3
        rest, total = (x - mean) / spread, torch.zeros(1)
        for block in self.blocks:
            made = block(rest) @ self.bases
            rest, total = rest - made[:, :48], total + made[:, 48:]
        return total * spread + mean


class Graph(nn.Module):
    """Attention over the neighbours of a dense graph, twice, and what a gate takes of all nodes."""

    def __init__(self):
        super().__init__()
        self.layers, self.left, self.right = nn.ModuleList([nn.Linear(8, 32), nn.Linear(32, 32)]), nn.Linear(32, 1), nn.Linear(32, 1)
        self.cell, self.gate = nn.GRUCell(32, 32), nn.Linear(32, 1)

    def forward(self, x, edges):
        for layer in self.layers:
            y = layer(x)
            scores = F.leaky_relu(self.left(y) + self.right(y).transpose(1, 2), 0.2).masked_fill(edges < 0, -1e4)
            x = F.elu(scores.softmax(-1) @ y)
        x = self.cell(x.flatten(0, 1), y.flatten(0, 1)).view_as(x)
        return (torch.sigmoid(self.gate(x)) * x).sum(1)


class Restore(nn.Module):
    """NAFNet's blocks: norms over channels, simple gates, attention of channels, pixels shuffled."""

    def __init__(self, width=16):
        super().__init__()
        self.first, self.last = nn.Conv2d(3, width, 3, padding=1), nn.Sequential(nn.Conv2d(width, 12, 3, padding=1), nn.PixelShuffle(2))
        self.blocks = nn.ModuleList([nn.ModuleList([nn.LayerNorm(width), nn.Conv2d(width, 2 * width, 1), nn.Conv2d(2 * width, 2 * width, 3, padding=1, groups=2 * width), nn.Conv2d(width, width, 1), nn.Conv2d(width, width, 1)]) for _ in range(2)])

    def forward(self, x):
        y = self.first(F.pixel_unshuffle(F.interpolate(x, scale_factor=2.0, mode="nearest"), 2)[:, :3] + F.avg_pool2d(x, 1))
        for norm, up, deep, attend, out in self.blocks:
            a, b = deep(up(norm(y.permute(0, 2, 3, 1)).permute(0, 3, 1, 2))).chunk(2, 1)
            z = a * b
            y = y + out(z * attend(z.mean((2, 3), keepdim=True)))
        return self.last(y)


class Scan(nn.Module):
    """A selective state space over 12 places, step by step, with a convolution of the past before it."""

    def __init__(self, width=16, states=4):
        super().__init__()
        self.into, self.past, self.choose = nn.Linear(width, 2 * width), nn.Conv1d(width, width, 4, padding=3, groups=width), nn.Linear(width, 2 * states + width)
        self.a, self.out = nn.Parameter(torch.randn(width, states)), nn.Linear(width, width)

    def forward(self, x):
        y, gate = self.into(x).chunk(2, -1)
        y = F.silu(self.past(y.transpose(1, 2))[..., : x.shape[1]].transpose(1, 2))
        b, c, step = self.choose(y).split([4, 4, 16], -1)
        step = F.softplus(step)[..., None]
        kept, new, state, told = torch.exp(-step * self.a.exp()), step * b[:, :, None] * y[..., None], 0, []
        for i in range(12):
            state = kept[:, i] * state + new[:, i]
            told.append((state * c[:, i, None]).sum(-1))
        return self.out(torch.stack(told, 1) * F.silu(gate))


class Splines(nn.Module):
    """A Kolmogorov-Arnold network: functions of cubic splines on each edge."""

    def __init__(self):
        super().__init__()
        self.weights = nn.ParameterList([nn.Parameter(torch.randn(6 * 8, 16) * 0.3), nn.Parameter(torch.randn(16 * 8, 4) * 0.3)])
        self.register_buffer("grid", torch.arange(-5, 7) * 0.5)

    def forward(self, x):
        for weight in self.weights:
            x = x.unsqueeze(-1)
            bases = ((x >= self.grid[:-1]) & (x < self.grid[1:])).to(x.dtype)
            for k in range(1, 4):
                left, right = (x - self.grid[: -(k + 1)]) / (0.5 * k), (self.grid[k + 1 :] - x) / (0.5 * k)
                bases = left * bases[..., :-1] + right * bases[..., 1:]
            x = torch.tanh(bases.flatten(-2) @ weight)
        return x


def timm(name, **more):
    def make():
        import timm as t

        return t.create_model(name, pretrained=False, num_classes=10, **more)

    return make


def modernbert():
    from pte_networks import Named

    config = encoder_config(hf.ModernBertConfig, local_attention=8, pad_token_id=0, attn_implementation="eager")
    return Named(hf.ModernBertModel(config), ["input_ids"], ["last_hidden_state"])


NETWORKS = {
    "separator": (Separator, lambda: [(torch.randn(1, 1, n),) for n in (128, 64, 80)], ({2: 4 * Dim("n", min=4, max=64)},)),
    "vocoder": (Vocoder, lambda: [(torch.randn(1, 20, n),) for n in (24, 16, 57)], (FRAMES,)),
    "points": (Points, lambda: [(torch.randn(1, 3, n),) for n in (64, 31)], (FRAMES,)),
    "forecast": (Forecast, lambda: [(torch.randn(2, 48),)], None),
    "graph": (Graph, lambda: [(torch.randn(1, n, 8), torch.randn(1, n, n)) for n in (12,)], None),
    "restore": (Restore, lambda: [(torch.randn(1, 3, h, w),) for h, w in ((32, 32), (16, 48))], (PIXELS,)),
    "scan": (Scan, lambda: [(torch.randn(2, 12, 16),)], None),
    "splines": (Splines, lambda: [(torch.randn(5, 6),)], None),
    "poolformer": (timm("poolformer_s12"), image(64, 64), None),
    "ghostnet": (timm("ghostnet_050"), image(64, 64), None),
    "convmixer": (timm("convmixer_768_32"), image(64, 64), None),
    "xcit": (timm("xcit_nano_12_p16_224", img_size=64), image(64, 64), None),
    "pvt": (timm("pvt_v2_b0"), image(64, 64), None),
    "mobilenet_v4": (timm("mobilenetv4_conv_small_035"), image(64, 64), None),
    "starnet": (timm("starnet_s050"), image(64, 64), None),
    "modernbert": (modernbert, words(12), None),
    "granite": (llama_like(getattr(hf, "GraniteConfig", None)), words(12, 5, 40), ((ROWS,),)),
    "smollm": (llama_like(getattr(hf, "SmolLM3Config", None), pad_token_id=0), words(12), None),
    "stablelm": (llama_like(getattr(hf, "StableLmConfig", None)), words(12, 5, 40), ((ROWS,),)),
    "codegen": (lambda: causal(hf.CodeGenConfig(vocab_size=100, n_embd=64, n_layer=2, n_head=4, n_positions=64, rotary_dim=8, use_cache=False)), words(12), None),
}
