"""More of onnx_sizes_kinds.py: diffusion, video, points, pictures, compression, spectra, tables, series, searches."""

import math

import numpy as np
from onnx_sizes_base import Drawn, case
from onnx_sizes_kinds import nn
from onnx_sizes_more import network


@case
def diffusion():
    """A small UNet that removes noise: sines of the time, group norms, attention over pixels and over a text, nearest upsampling to the skip's size."""
    torch, n, f = nn()

    class Block(n.Module):
        def __init__(self, i, o):
            super().__init__()
            self.n1, self.c1, self.t, self.n2, self.c2 = n.GroupNorm(4, i), n.Conv2d(i, o, 3, 1, 1), n.Linear(32, 2 * o), n.GroupNorm(4, o), n.Conv2d(o, o, 3, 1, 1)
            self.skip = n.Conv2d(i, o, 1)

        def forward(self, x, t):
            h = self.c1(f.silu(self.n1(x)))
            scale, shift = self.t(f.silu(t))[:, :, None, None].chunk(2, 1)
            return self.skip(x) + self.c2(f.silu(self.n2(h) * (1 + scale) + shift))

    class Module(n.Module):
        def __init__(self):
            super().__init__()
            self.time, self.inp = n.Sequential(n.Linear(32, 32), n.SiLU(), n.Linear(32, 32)), n.Conv2d(4, 16, 3, 1, 1)
            self.a, self.down, self.b, self.c, self.out = Block(16, 16), n.Conv2d(16, 32, 3, 2, 1), Block(32, 32), Block(48, 16), n.Conv2d(16, 4, 3, 1, 1)
            self.norm, self.q, self.kv = n.LayerNorm(32), n.Linear(32, 32), n.Linear(24, 64)

        def forward(self, x, t, text):
            e = t[:, None].float() * torch.exp(-math.log(10000) * torch.arange(16) / 16)
            e = self.time(torch.cat([torch.cos(e), torch.sin(e)], -1))
            a = self.a(self.inp(x), e)
            b = self.b(self.down(a), e)
            flat = b.flatten(2).transpose(1, 2)
            heads = lambda y: y.reshape(y.shape[0], y.shape[1], 4, 8).transpose(1, 2)  # noqa: E731
            k, v = self.kv(text).chunk(2, -1)
            y = f.scaled_dot_product_attention(heads(self.q(self.norm(flat))), heads(k), heads(v)).transpose(1, 2).flatten(2)
            b = b + y.transpose(1, 2).reshape(b.shape)
            up = f.interpolate(b, size=a.shape[2:], mode="nearest")
            return self.out(self.c(torch.cat([up, a], 1), e))

    draw = Drawn()

    def call(b, h, w, words):
        return [draw.floats(b, 4, h, w), draw.ints(1000, b), draw.floats(b, words, 24)]

    calls = [call(*one) for one in [(1, 16, 16, 7), (2, 16, 24, 7), (1, 15, 17, 20), (2, 32, 32, 77)]]
    return network(Module(), call(2, 12, 20, 5), [("x", {0: "batch", 2: "h", 3: "w"}), ("t", {0: "batch"}), ("text", {0: "batch", 1: "words"})], ["noise"], calls)


@case
def video():
    """Frames by convolutions in space and in time, pools of three dimensions, trilinear upsampling, a shift between frames."""
    torch, n, f = nn()

    class Module(n.Module):
        def __init__(self):
            super().__init__()
            self.s1, self.t1, self.bn = n.Conv3d(3, 8, (1, 7, 7), (1, 2, 2), (0, 3, 3)), n.Conv3d(8, 16, (3, 1, 1), padding=(1, 0, 0)), n.BatchNorm3d(16)
            self.s2, self.up, self.gate, self.head = n.Conv3d(16, 16, 3, padding=1, groups=4), n.ConvTranspose3d(16, 8, (1, 2, 2), (1, 2, 2)), n.Linear(16, 16), n.Linear(16, 5)

        def forward(self, x):
            y = f.relu(self.bn(self.t1(f.relu(self.s1(x)))))
            y = f.max_pool3d(y, (1, 3, 3), (1, 2, 2), (0, 1, 1))
            left = torch.cat([y[:, :4, 1:], torch.zeros_like(y[:, :4, :1])], 2)
            y = torch.cat([left, y[:, 4:]], 1)
            y = y * torch.sigmoid(self.gate(y.mean((2, 3, 4))))[:, :, None, None, None]
            z = f.avg_pool3d(self.s2(y), (2, 2, 2), (1, 2, 2), (1, 1, 1), count_include_pad=False)
            big = f.interpolate(z, size=y.shape[2:], mode="trilinear", align_corners=False)
            return self.head((y + big).mean((2, 3, 4))), self.up(y + big)

    draw = Drawn()
    calls = [[draw.floats(b, 3, t, h, w)] for b, t, h, w in [(1, 4, 32, 32), (1, 7, 32, 32), (2, 8, 40, 48), (1, 16, 24, 56)]]
    return network(Module(), [draw.floats(2, 3, 5, 36, 44)], [("x", {0: "batch", 2: "frames", 3: "h", 4: "w"})], ["classes", "map"], calls)


@case
def points():
    """Points of a scan: neighbours by distance (edge convolution), groups, maxima, features carried to all points by inverse distances."""
    torch, n, f = nn()

    def near(a, b, k):
        return torch.topk(torch.cdist(a, b), k, -1, largest=False)

    def take(x, index):
        return torch.gather(x[:, None].expand(-1, index.shape[1], -1, -1), 2, index[..., None].expand(-1, -1, -1, x.shape[-1]))

    class Module(n.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.out = n.Sequential(n.Linear(6, 16), n.LeakyReLU(0.2), n.Linear(16, 16)), n.Sequential(n.Linear(32, 24), n.LeakyReLU(0.2)), n.Linear(24 + 16, 4)

        def forward(self, x):
            index = near(x, x, 6)[1]
            around = take(x, index)
            h = self.a(torch.cat([around - x[:, :, None], x[:, :, None].expand_as(around)], -1)).max(2).values
            kept = x[:, ::4]
            index = near(kept, x, 8)[1]
            centre = h[:, ::4]
            group = take(h, index)
            g = self.b(torch.cat([group - centre[:, :, None], centre[:, :, None].expand_as(group)], -1)).max(2).values
            far, index = near(x, kept, 3)
            weights = 1 / (far + 1e-3)
            weights = weights / weights.sum(-1, keepdim=True)
            back = (take(g, index) * weights[..., None]).sum(2)
            return self.out(torch.cat([back, h], -1))

    draw = Drawn()
    calls = [[draw.floats(b, count, 3)] for b, count in [(1, 32), (1, 33), (2, 100), (1, 257)]]
    return network(Module(), [draw.floats(2, 40, 3)], [("x", {0: "batch", 1: "points"})], ["parts"], calls)


@case
def farthest():
    """Farthest points, one after another in a scripted loop that writes their places, and a ball around each."""
    torch, n, f = nn()

    @torch.jit.script
    def sample(x, count: int):
        far = torch.full_like(x[:, :, 0], 1e10)
        last = torch.zeros(x.shape[0], dtype=torch.int64)
        chosen = torch.zeros(x.shape[0], count, dtype=torch.int64)
        for i in range(count):
            chosen[:, i] = last
            centre = torch.gather(x, 1, last[:, None, None].expand(-1, 1, 3))
            far = torch.minimum(far, ((x - centre) ** 2).sum(-1))
            last = far.argmax(-1)
        return chosen

    class Module(n.Module):
        def __init__(self):
            super().__init__()
            self.a = n.Linear(3, 8)

        def forward(self, x):
            chosen = sample(x, 10)
            centre = torch.gather(x, 1, chosen[..., None].expand(-1, -1, 3))
            apart = ((centre[:, :, None] - x[:, None]) ** 2).sum(-1)
            order = torch.arange(x.shape[1])[None, None].expand_as(apart)
            order = torch.where(apart > 1.0, torch.full_like(order, 100000), order).sort(-1).values[..., :5]
            order = torch.where(order == 100000, order[..., :1].expand_as(order), order)
            group = torch.gather(x[:, None].expand(-1, 10, -1, -1), 2, order[..., None].expand(-1, -1, -1, 3))
            return self.a(group - centre[:, :, None]).max(2).values, chosen

    draw = Drawn()
    calls = [[draw.floats(b, count, 3)] for b, count in [(1, 32), (1, 33), (2, 100), (1, 257)]]
    return network(Module(), [draw.floats(2, 40, 3)], [("x", {0: "batch", 1: "points"})], ["y", "chosen"], calls)


@case
def restore():
    """Pictures made sharp and large: attention between channels, pixel unshuffle and shuffle, dense blocks, bicubic and bilinear skips, reflected borders to a multiple."""
    torch, n, f = nn()

    class Module(n.Module):
        def __init__(self):
            super().__init__()
            self.inp, self.qkv, self.depth, self.out = n.Conv2d(12, 16, 3, padding=1, padding_mode="reflect"), n.Conv2d(16, 48, 1), n.Conv2d(48, 48, 3, 1, 1, groups=48), n.Conv2d(16, 16, 1)
            self.heat, self.dense = n.Parameter(torch.ones(2, 1, 1)), n.ModuleList(n.Conv2d(16 + 8 * i, 8, 3, 1, 1) for i in range(3))
            self.mix, self.up = n.Conv2d(40, 16, 1), n.Conv2d(16, 3 * 16, 3, 1, 1)
            self.norm, self.se = n.GroupNorm(1, 16), n.Conv2d(16, 16, 1)

        def forward(self, x):
            h, w = x.shape[2:]
            padded = f.pad(x, (0, (4 - w % 4) % 4, 0, (4 - h % 4) % 4), mode="reflect")
            y = self.inp(f.pixel_unshuffle(padded, 2))
            q, k, v = self.depth(self.qkv(self.norm(y))).chunk(3, 1)
            b, c, hh, ww = q.shape
            split = lambda t: t.reshape(b, 2, c // 2, hh * ww)  # noqa: E731
            q, k, v = f.normalize(split(q), dim=-1), f.normalize(split(k), dim=-1), split(v)
            y = y + self.out((torch.softmax(q @ k.transpose(-2, -1) * self.heat, -1) @ v).reshape(b, c, hh, ww))
            parts = y
            for conv in self.dense:
                parts = torch.cat([parts, f.leaky_relu(conv(parts), 0.2)], 1)
            y = y + 0.2 * self.mix(parts)
            y = y * torch.sigmoid(self.se(f.adaptive_avg_pool2d(y, 1)))
            big = f.pixel_shuffle(self.up(y), 4)[:, :, : 2 * h, : 2 * w]
            return big + f.interpolate(x, scale_factor=2.0, mode="bicubic", align_corners=False), f.interpolate(x, scale_factor=0.5, mode="bilinear", align_corners=False, antialias=False)

    draw = Drawn()
    calls = [[draw.floats(b, 3, h, w)] for b, h, w in [(1, 16, 16), (1, 17, 22), (2, 32, 24), (1, 35, 41)]]
    return network(Module(), [draw.floats(2, 3, 20, 26)], [("x", {0: "batch", 2: "h", 3: "w"})], ["large", "small"], calls)


@case
def compression():
    """A picture's codec: generalized divisive norms, a hyperprior, rounded latents and their likelihoods by the error function, symbols."""
    torch, n, f = nn()

    class Gdn(n.Module):
        def __init__(self, c, inverse=False):
            super().__init__()
            self.beta, self.gamma, self.inverse = n.Parameter(torch.ones(c)), n.Parameter(0.1 * torch.eye(c)), inverse

        def forward(self, x):
            norm = f.conv2d(x * x, self.gamma[:, :, None, None], self.beta)
            return x * torch.sqrt(norm) if self.inverse else x * torch.rsqrt(norm)

    class Module(n.Module):
        def __init__(self):
            super().__init__()
            self.a = n.Sequential(n.Conv2d(3, 12, 5, 2, 2), Gdn(12), n.Conv2d(12, 16, 5, 2, 2))
            self.h, self.hs = n.Sequential(n.Conv2d(16, 8, 3, 2, 1), n.ReLU(), n.Conv2d(8, 8, 3, 2, 1)), n.Sequential(n.ConvTranspose2d(8, 8, 4, 2, 1), n.ReLU(), n.ConvTranspose2d(8, 32, 4, 2, 1))
            self.s = n.Sequential(n.ConvTranspose2d(16, 12, 5, 2, 2, 1), Gdn(12, True), n.ConvTranspose2d(12, 3, 5, 2, 2, 1))

        def forward(self, x):
            y = 4 * self.a(x)
            z = torch.round(4 * self.h(torch.abs(y)))
            mean, scale = self.hs(z).chunk(2, 1)
            mean, scale = mean[:, :, : y.shape[2], : y.shape[3]], f.softplus(scale[:, :, : y.shape[2], : y.shape[3]]).clamp(min=0.11)
            rounded = torch.round(y - mean) + mean
            at = torch.abs(rounded - mean)
            cdf = lambda v: 0.5 * torch.erfc(-v / math.sqrt(2.0))  # noqa: E731
            p = (cdf((0.5 - at) / scale) - cdf((-0.5 - at) / scale)).clamp(min=1e-9)
            return self.s(rounded).clamp(0, 1), torch.log2(p).sum((1, 2, 3)), torch.bucketize(scale, torch.linspace(0.1, 4, 16))

    draw = Drawn()
    calls = [[draw.floats(b, 3, h, w)] for b, h, w in [(1, 32, 32), (1, 48, 64), (2, 40, 56), (1, 72, 88)]]
    return network(Module(), [draw.floats(2, 3, 24, 40)], [("x", {0: "batch", 2: "h", 3: "w"})], ["picture", "bits", "tables"], calls)


@case
def spectra():
    """A spectrogram with mel bands and its statistics, an operator of Fourier's (FNO), features of speakers pooled by attention (ECAPA)."""
    torch, n, f = nn()

    class Module(n.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mel", torch.rand(20, 65) / 20)
            self.register_buffer("window", torch.hann_window(128))
            self.inp, self.parts = n.Conv1d(20, 16, 5, padding=2), n.ModuleList(n.Conv1d(4, 4, 3, padding=d, dilation=d) for d in (1, 2, 3))
            self.se, self.att, self.att2, self.out = n.Linear(16, 16), n.Conv1d(48, 8, 1), n.Conv1d(8, 16, 1), n.Linear(32, 12)

        def forward(self, wave):
            emphasized = wave[:, 1:] - 0.97 * wave[:, :-1]
            spec = torch.stft(emphasized, 128, 64, window=self.window, center=True, pad_mode="reflect", return_complex=False)
            x = torch.log(torch.matmul(self.mel, spec.pow(2).sum(-1)) + 1e-6)
            x = (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-5)
            y = f.relu(self.inp(x))
            first, *rest = y.chunk(4, 1)
            made, last = [first], torch.zeros_like(first)
            for conv, part in zip(self.parts, rest):
                last = f.relu(conv(part + last))
                made.append(last)
            y = torch.cat(made, 1)
            y = y * torch.sigmoid(self.se(y.mean(-1)))[..., None]
            mean, std = y.mean(-1, keepdim=True).expand_as(y), y.var(-1, keepdim=True).clamp(min=1e-4).sqrt().expand_as(y)
            w = torch.softmax(self.att2(torch.tanh(self.att(torch.cat([y, mean, std], 1)))), -1)
            mean = (w * y).sum(-1)
            std = ((w * y * y).sum(-1) - mean * mean).clamp(min=1e-4).sqrt()
            return f.normalize(self.out(torch.cat([mean, std], -1)), dim=-1), x

    draw = Drawn()
    calls = [[draw.floats(b, t)] for b, t in [(1, 800), (1, 1000), (2, 1600), (1, 3201)]]
    return network(Module(), [draw.floats(2, 1200)], [("wave", {0: "batch", 1: "samples"})], ["speaker", "mel"], calls)


@case
def fourier():
    """An operator in Fourier's space: a real transform of two dimensions, products of the lowest modes, and back."""
    torch, n, f = nn()

    class Module(n.Module):
        def __init__(self):
            super().__init__()
            self.lift, self.w, self.point, self.out = n.Conv2d(3, 8, 1), n.Parameter(torch.randn(8, 8, 4, 4, 2) * 0.2), n.Conv2d(8, 8, 1), n.Conv2d(8, 1, 1)

        def forward(self, x):
            x = self.lift(x)
            s = torch.fft.rfft2(x)
            low = torch.einsum("bixy,ioxy->boxy", s[:, :, :4, :4], torch.view_as_complex(self.w))
            low = f.pad(torch.view_as_real(low), (0, 0, 0, x.shape[3] // 2 + 1 - 4, 0, x.shape[2] - 4))
            y = torch.fft.irfft2(torch.view_as_complex(low), s=(x.shape[2], x.shape[3]))
            return self.out(f.gelu(y + self.point(x)))

    draw = Drawn()
    calls = [[draw.floats(b, 3, h, w)] for b, h, w in [(1, 16, 16), (1, 12, 20), (2, 32, 24)]]
    return network(Module(), [draw.floats(2, 3, 14, 18)], [("x", {0: "batch", 2: "h", 3: "w"})], ["y"], calls)


@case
def tables():
    """Rows of a table: embeddings of categories by offsets, tokens of numbers, attention with a class token; and steps that choose columns by a sparse maximum (TabNet)."""
    torch, n, f = nn()

    def sparsemax(z):
        s = torch.sort(z, -1, descending=True).values
        k = torch.arange(1, z.shape[-1] + 1)
        sums = torch.cumsum(s, -1)
        count = (1 + k * s > sums).sum(-1, keepdim=True)
        tau = (sums.gather(-1, count - 1) - 1) / count
        return torch.clamp(z - tau, min=0)

    class Module(n.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("offsets", torch.tensor([0, 5, 12]))
            self.table, self.w, self.b, self.cls = n.Embedding(20, 16), n.Parameter(torch.randn(7, 16)), n.Parameter(torch.randn(7, 16)), n.Parameter(torch.randn(1, 1, 16))
            self.layer, self.norm, self.head = n.TransformerEncoderLayer(16, 2, 32, batch_first=True, norm_first=True), n.BatchNorm1d(7), n.Linear(16 + 8, 3)
            self.steps, self.masks = n.ModuleList(n.Linear(7, 32) for _ in range(3)), n.ModuleList(n.Linear(8, 7) for _ in range(3))

        def forward(self, categories, numbers):
            numbers = self.norm(torch.where(torch.isnan(numbers), torch.zeros_like(numbers), numbers))
            tokens = torch.cat([self.cls.expand(numbers.shape[0], -1, -1), self.table(categories + self.offsets), numbers[..., None] * self.w + self.b], 1)
            first = self.layer(tokens)[:, 0]
            prior, total, a = torch.ones_like(numbers), 0, torch.zeros_like(numbers[:, :1]).expand(-1, 8)
            for step, mask in zip(self.steps, self.masks):
                m = sparsemax(mask(a) * prior + numbers)
                prior = prior * (1.3 - m)
                d, a = f.glu(step(m * numbers), -1).chunk(2, -1)
                total = total + f.relu(d)
            return self.head(torch.cat([first, total], -1)), prior

    draw = Drawn()

    def call(b):
        numbers = draw.floats(b, 7)
        numbers[draw.floats(b, 7) > 1.5] = np.nan
        return [draw.ints(5, b, 3), numbers]

    return network(Module(), call(4), [("categories", {0: "rows"}), ("numbers", {0: "rows"})], ["classes", "prior"], [call(b) for b in (1, 3, 64, 100, 7)])


@case
def search():
    """A translation with a beam inside of the model: a scripted loop that ends when all beams have ended, top-k over beams and words, states that follow their beams."""
    torch, n, f = nn()

    class Module(n.Module):
        def __init__(self):
            super().__init__()
            self.encode, self.table, self.cell, self.out, self.query = n.GRU(6, 12, batch_first=True), n.Embedding(11, 12), n.GRUCell(24, 12), n.Linear(24, 11), n.Linear(12, 12)

        def forward(self, x):
            memory, last = self.encode(x)
            state = last[0].expand(3, -1)
            words = torch.zeros(3, 1, dtype=torch.int64)
            scores = torch.tensor([0.0, -1e9, -1e9])
            done = torch.zeros(3, dtype=torch.bool)
            step = 0
            while step < 12 and not bool(done.all()):
                weights = torch.softmax(self.query(state) @ memory[0].t(), -1)
                context = weights @ memory[0]
                state = self.cell(torch.cat([self.table(words[:, -1]), context], -1), state)
                p = torch.log_softmax(self.out(torch.cat([state, context], -1)), -1)
                frozen = torch.full_like(p, -1e9)
                frozen[:, 1] = 0.0
                p = torch.where(done[:, None], frozen, p)
                scores, flat = torch.topk((scores[:, None] + p).flatten(), 3)
                beam, word = flat // 11, flat % 11
                words = torch.cat([words[beam], word[:, None]], 1)
                state, done = state[beam], done[beam] | (word == 1)
                step += 1
            return words, scores

    draw = Drawn()
    calls = [[3 * draw.floats(1, t, 6)] for t in (3, 8, 21, 5, 40)]
    module, *rest = network(Module(), [draw.floats(1, 6, 6)], [("x", {1: "length"})], ["words", "scores"], calls, 0.8)
    return (torch.jit.script(module), *rest)


@case
def series():
    """Series to come: gated residuals and chosen variables (TFT), blocks that explain the past and subtract it (N-BEATS), trends by moving means, a norm that is undone."""
    torch, n, f = nn()

    class Gate(n.Module):
        def __init__(self, i, o):
            super().__init__()
            self.a, self.b, self.g, self.skip, self.norm = n.Linear(i, 16), n.Linear(16, o), n.Linear(o, 2 * o), n.Linear(i, o), n.LayerNorm(o)

        def forward(self, x):
            return self.norm(self.skip(x) + f.glu(self.g(self.b(f.elu(self.a(x)))), -1))

    class Module(n.Module):
        def __init__(self):
            super().__init__()
            self.each, self.choose = n.ModuleList(Gate(1, 8) for _ in range(4)), Gate(4, 4)
            self.lstm, self.attention, self.after, self.quantiles = n.LSTM(8, 8, batch_first=True), n.MultiheadAttention(8, 2, batch_first=True), Gate(8, 8), n.Linear(8, 3)
            self.patch = n.Linear(6, 8)

        def forward(self, past, known):
            mean, std = past.mean(1, keepdim=True), torch.sqrt(past.var(1, keepdim=True, unbiased=False) + 1e-5)
            x = (past - mean) / std
            front, end = x[:, :1].repeat(1, 2, 1), x[:, -1:].repeat(1, 2, 1)
            trend = f.avg_pool1d(torch.cat([front, x, end], 1).transpose(1, 2), 5, 1).transpose(1, 2)
            both = torch.cat([x - trend, known[:, : past.shape[1]]], -1)
            v = torch.stack([gate(both[..., i : i + 1]) for i, gate in enumerate(self.each)], -1)
            h = (v * torch.softmax(self.choose(both), -1)[..., None, :]).sum(-1)
            h, _ = self.lstm(h)
            patches = self.patch(x[..., 0].unfold(1, 6, 3))
            mask = torch.triu(torch.ones(h.shape[1], h.shape[1], dtype=torch.bool), 1)
            y = self.attention(h, h, h, attn_mask=mask, need_weights=False)[0]
            y = self.after(h + y) + self.attention(h, patches, patches, need_weights=False)[0]
            return self.quantiles(y) * std[..., :1] + mean[..., :1], trend

    draw = Drawn()

    def call(b, past, more):
        return [draw.floats(b, past, 2), draw.floats(b, past + more, 2)]

    calls = [call(*one) for one in [(1, 24, 4), (2, 30, 6), (1, 31, 1), (3, 96, 24)]]
    return network(Module(), call(2, 20, 5), [("past", {0: "batch", 1: "past"}), ("known", {0: "batch", 1: "total"})], ["quantiles", "trend"], calls)
