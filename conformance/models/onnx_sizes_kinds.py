"""What onnx_sizes.py exports of kinds that came last, written out: optical flow, sources of sound, radiance fields, graphs, state spaces, experts, matching,
modulated and computed convolutions, diffusion, video, points, compression, spectra, tables, searches inside of the model."""

import math

import numpy as np
from onnx_sizes_base import Drawn, case
from onnx_sizes_more import network


def nn():
    import torch

    return torch, torch.nn, torch.nn.functional


@case
def raft():
    """Optical flow: all pairs of features, looked up around a flow that three steps of a convolutional GRU refine, and convex upsampling."""
    torch, n, f = nn()

    class Module(n.Module):
        def __init__(self):
            super().__init__()
            self.features = n.Sequential(n.Conv2d(3, 16, 7, 2, 3), n.InstanceNorm2d(16), n.ReLU(), n.Conv2d(16, 24, 3, 2, 1), n.ReLU(), n.Conv2d(24, 24, 3, 2, 1))
            self.around, self.gates, self.new = n.Conv2d(49 + 2, 16, 3, 1, 1), n.Conv2d(24 + 16, 48, 3, 1, 1), n.Conv2d(24 + 16, 24, 3, 1, 1)
            self.flow, self.mask = n.Conv2d(24, 2, 3, 1, 1), n.Conv2d(24, 64 * 9, 1)

        def forward(self, first, second):
            a, b = self.features(first), self.features(second)
            batch, c, h, w = a.shape
            pairs = torch.matmul(a.flatten(2).transpose(1, 2), b.flatten(2)).reshape(batch * h * w, 1, h, w) / math.sqrt(c)
            ys, xs = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
            start = torch.stack([xs, ys]).float()[None].expand(batch, 2, h, w)
            place, hidden = start, torch.tanh(a)
            dy, dx = torch.meshgrid(torch.linspace(-3, 3, 7), torch.linspace(-3, 3, 7), indexing="ij")
            window = torch.stack([dx, dy], -1)[None]
            for _ in range(3):
                at = place.permute(0, 2, 3, 1).reshape(batch * h * w, 1, 1, 2) + window
                grid = torch.stack([2 * at[..., 0] / (w - 1) - 1, 2 * at[..., 1] / (h - 1) - 1], -1)
                seen = f.grid_sample(pairs, grid, align_corners=True).reshape(batch, h, w, 49).permute(0, 3, 1, 2)
                x = f.relu(self.around(torch.cat([seen, place - start], 1)))
                z, r = torch.sigmoid(self.gates(torch.cat([hidden, x], 1))).chunk(2, 1)
                hidden = (1 - z) * hidden + z * torch.tanh(self.new(torch.cat([r * hidden, x], 1)))
                place = place + self.flow(hidden)
            weights = torch.softmax(self.mask(hidden).reshape(batch, 1, 9, 8, 8, h, w), 2)
            parts = f.unfold(8 * (place - start), 3, padding=1).reshape(batch, 2, 9, 1, 1, h, w)
            return (weights * parts).sum(2).permute(0, 1, 4, 2, 5, 3).reshape(batch, 2, 8 * h, 8 * w)

    draw = Drawn()
    calls = [[draw.floats(b, 3, h, w), draw.floats(b, 3, h, w)] for b, h, w in [(1, 32, 48), (1, 48, 40), (2, 64, 32), (1, 72, 96)]]
    axes = {0: "batch", 2: "h", 3: "w"}
    return network(Module(), [draw.floats(2, 3, 40, 56) for _ in range(2)], [("first", axes), ("second", axes)], ["flow"], calls)


@case
def pwc():
    """Flow by warping and a local cost volume of 25 shifts."""
    torch, n, f = nn()

    class Module(n.Module):
        def __init__(self):
            super().__init__()
            self.down = n.ModuleList([n.Conv2d(3, 8, 3, 2, 1), n.Conv2d(8, 12, 3, 2, 1)])
            self.guess = n.ModuleList([n.Conv2d(25 + 8 + 2, 2, 3, 1, 1), n.Conv2d(25 + 12, 2, 3, 1, 1)])

        def warp(self, x, flow):
            b, _, h, w = x.shape
            ys, xs = torch.arange(h, dtype=torch.float32), torch.arange(w, dtype=torch.float32)
            gx = (xs[None, None, :] + flow[:, 0]) * 2 / max(w - 1, 1) - 1
            gy = (ys[None, :, None] + flow[:, 1]) * 2 / max(h - 1, 1) - 1
            grid = torch.stack([gx, gy], -1)
            return f.grid_sample(x, grid, align_corners=True) * (f.grid_sample(torch.ones_like(x), grid, align_corners=True) > 0.999)

        def cost(self, a, b):
            h, w = a.shape[2:]
            padded = f.pad(b, (2, 2, 2, 2))
            return torch.stack([(a * padded[:, :, y : y + h, x : x + w]).mean(1) for y in range(5) for x in range(5)], 1)

        def forward(self, one, two):
            ones, twos = [], []
            for layer in self.down:
                one, two = f.leaky_relu(layer(one), 0.1), f.leaky_relu(layer(two), 0.1)
                ones, twos = [*ones, one], [*twos, two]
            flow = self.guess[1](torch.cat([self.cost(ones[1], twos[1]), ones[1]], 1))
            flow = 2 * f.interpolate(flow, size=ones[0].shape[2:], mode="bilinear", align_corners=False)
            return flow + self.guess[0](torch.cat([self.cost(ones[0], self.warp(twos[0], flow)), ones[0], flow], 1))

    draw = Drawn()
    calls = [[draw.floats(b, 3, h, w), draw.floats(b, 3, h, w)] for b, h, w in [(1, 32, 48), (1, 47, 41), (2, 64, 33), (1, 24, 96)]]
    axes = {0: "batch", 2: "h", 3: "w"}
    return network(Module(), [draw.floats(2, 3, 40, 56) for _ in range(2)], [("first", axes), ("second", axes)], ["flow"], calls)


@case
def demucs():
    """Sources of sound: strided convolutions, GLU, an LSTM both ways, transposed convolutions, cut to the input's length and put back in its scale."""
    torch, n, f = nn()

    class Module(n.Module):
        def __init__(self):
            super().__init__()
            self.down = n.ModuleList([n.Conv1d(2, 16, 8, 4), n.Conv1d(16, 32, 8, 4)])
            self.gates = n.ModuleList([n.Conv1d(16, 32, 1), n.Conv1d(32, 64, 1)])
            self.lstm, self.mix = n.LSTM(32, 32, 2, bidirectional=True, batch_first=True), n.Linear(64, 32)
            self.up = n.ModuleList([n.ConvTranspose1d(32, 16, 8, 4), n.ConvTranspose1d(16, 6, 8, 4)])

        def forward(self, wave):
            mono = wave.mean(1, keepdim=True)
            mean, std = mono.mean(-1, keepdim=True), mono.std(-1, keepdim=True) + 1e-5
            length = wave.shape[-1]
            x, kept = f.pad((wave - mean) / std, (0, 84)), []
            for conv, gate in zip(self.down, self.gates):
                x = f.glu(gate(f.relu(conv(x))), 1)
                kept.append(x)
            x = self.mix(self.lstm(x.transpose(1, 2))[0]).transpose(1, 2)
            for conv in self.up:
                skip = kept.pop()
                x = conv(f.relu(x[..., : skip.shape[-1]] + skip[..., : x.shape[-1]]))
            return (x[..., :length] * std + mean).reshape(wave.shape[0], 3, 2, length)

    draw = Drawn()
    calls = [[draw.floats(b, 2, t)] for b, t in [(1, 400), (1, 401), (2, 777), (1, 1200), (1, 640)]]
    return network(Module(), [draw.floats(2, 2, 500)], [("wave", {0: "batch", 2: "samples"})], ["sources"], calls)


@case
def nerf():
    """A radiance field along rays: sines of powers of two, a product with a skip, transmittance by a cumulative product, and depths by sums."""
    torch, n, f = nn()

    class Module(n.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.sigma, self.rgb = n.Linear(39, 32), n.Linear(32 + 39, 32), n.Linear(32, 1), n.Linear(32, 3)

        def forward(self, origins, directions, depths):
            points = origins[:, None] + directions[:, None] * depths[..., None]
            waves = points[..., None] * (2.0 ** torch.arange(6))
            x = torch.cat([points, torch.sin(waves).flatten(-2), torch.cos(waves).flatten(-2)], -1)
            h = f.relu(self.b(torch.cat([f.relu(self.a(x)), x], -1)))
            sigma, rgb = f.softplus(self.sigma(h))[..., 0], torch.sigmoid(self.rgb(h))
            steps = torch.cat([depths[:, 1:] - depths[:, :-1], torch.full_like(depths[:, :1], 1e10)], -1)
            alpha = 1 - torch.exp(-sigma * steps)
            through = torch.exp(torch.cumsum(torch.log(1 - alpha + 1e-10), -1))
            through = torch.cat([torch.ones_like(through[:, :1]), through[:, :-1]], -1)
            weights = alpha * through
            return (weights[..., None] * rgb).sum(1), (weights * depths).sum(1), weights

    draw = Drawn()

    def call(rays, steps):
        return [draw.floats(rays, 3), draw.floats(rays, 3), np.sort(np.abs(draw.floats(rays, steps)), -1)]

    calls = [call(*one) for one in [(4, 8), (33, 8), (100, 16), (7, 31)]]
    return network(Module(), call(5, 9), [("origins", {0: "rays"}), ("directions", {0: "rays"}), ("depths", {0: "rays", 1: "steps"})], ["rgb", "depth", "weights"], calls)


@case
def graph_attention():
    """Attention over the edges of a graph: gathers, a softmax over the edges of each node by scattered maxima and sums, mean pooling over graphs."""
    torch, n, f = nn()

    class Layer(n.Module):
        def __init__(self, i, o):
            super().__init__()
            self.w, self.a, self.b = n.Linear(i, o), n.Linear(2 * o, 1), n.Linear(4, 1)

        def forward(self, x, edges, facts):
            h = self.w(x)
            source, target = edges[0], edges[1]
            score = f.leaky_relu(self.a(torch.cat([h[source], h[target]], -1)) + self.b(facts), 0.2)[:, 0]
            most = torch.full((x.shape[0],), -1e30).scatter_reduce(0, target, score, "amax")
            e = torch.exp(score - most[target])
            total = torch.zeros(x.shape[0]).scatter_add(0, target, e)
            weighed = h[source] * (e / (total[target] + 1e-16))[:, None]
            return torch.zeros_like(h).index_add(0, target, weighed)

    class Module(n.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two, self.out = Layer(6, 16), Layer(16, 16), n.Linear(16, 3)

        def forward(self, x, edges, facts, which):
            h = self.two(f.elu(self.one(x, edges, facts)), edges, facts)
            counts = torch.zeros(8).scatter_add(0, which, torch.ones_like(which, dtype=torch.float32))
            pooled = torch.zeros(8, 16).scatter_add(0, which[:, None].expand(-1, 16), h) / counts.clamp(min=1)[:, None]
            return h, self.out(pooled)

    draw = Drawn()

    def call(nodes, edges):
        return [draw.floats(nodes, 6), draw.ints(nodes, 2, edges), draw.floats(edges, 4), np.sort(draw.ints(8, nodes))]

    calls = [call(*one) for one in [(5, 12), (30, 90), (31, 4), (100, 700), (1, 1)]]
    inputs = [("x", {0: "nodes"}), ("edges", {1: "edges"}), ("facts", {0: "edges"}), ("which", {0: "nodes"})]
    return network(Module(), call(9, 20), inputs, ["nodes", "graphs"], calls)


@case
def state_space():
    """A selective state space layer (Mamba's): a causal depthwise convolution, computed steps, and a scripted loop over the line."""
    torch, n, f = nn()

    @torch.jit.script
    def scan(decay, drive, out):
        state = torch.zeros_like(decay[:, 0])
        made = []
        for step in range(decay.shape[1]):
            state = state * decay[:, step] + drive[:, step]
            made.append((state * out[:, step].unsqueeze(1)).sum(-1))
        return torch.stack(made, 1), state

    class Module(n.Module):
        def __init__(self):
            super().__init__()
            self.inp, self.conv, self.x, self.dt, self.out = n.Linear(12, 48), n.Conv1d(24, 24, 4, padding=3, groups=24), n.Linear(24, 10), n.Linear(2, 24), n.Linear(24, 12)
            self.a, self.d = n.Parameter(torch.log(torch.arange(1, 5).float().repeat(24, 1))), n.Parameter(torch.ones(24))

        def forward(self, x):
            length = x.shape[1]
            u, z = self.inp(x).chunk(2, -1)
            u = f.silu(self.conv(u.transpose(1, 2))[..., :length]).transpose(1, 2)
            dt, b, c = torch.split(self.x(u), [2, 4, 4], -1)
            dt = f.softplus(self.dt(dt))
            decay = torch.exp(dt[..., None] * -torch.exp(self.a))
            y, state = scan(decay, dt[..., None] * b[:, :, None] * u[..., None], c)
            return self.out((y + u * self.d) * f.silu(z)), state

    draw = Drawn()
    calls = [[draw.floats(b, t, 12)] for b, t in [(1, 5), (1, 6), (2, 17), (1, 40), (3, 9), (1, 100)]]
    return network(Module(), [draw.floats(2, 7, 12)], [("x", {0: "batch", 1: "length"})], ["y", "state"], calls)


@case
def rwkv():
    """A token of RWKV: mixed with the one before, weights that decay kept by their largest exponent, states handed on."""
    torch, n, f = nn()

    class Module(n.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2, self.w = n.LayerNorm(16), n.LayerNorm(16), n.ModuleList(n.Linear(16, 16, False) for _ in range(4))
            self.up, self.down, self.gate = n.Linear(16, 48, False), n.Linear(48, 16, False), n.Linear(16, 16, False)
            self.mix, self.decay, self.first = n.Parameter(torch.rand(5, 16)), n.Parameter(torch.randn(16)), n.Parameter(torch.randn(16))

        def forward(self, x, before, num, den, most, before2):
            h = self.norm1(x)
            k, v, r = (w(h * m + before * (1 - m)) for w, m in zip(self.w[:3], self.mix[:3]))
            top = torch.maximum(most, self.first + k)
            a, b = torch.exp(most - top), torch.exp(self.first + k - top)
            x = x + self.w[3](torch.sigmoid(r) * (a * num + b * v) / (a * den + b))
            top = torch.maximum(most - torch.exp(self.decay), k)
            a, b = torch.exp(most - torch.exp(self.decay) - top), torch.exp(k - top)
            g = self.norm2(x)
            kk, rr = g * self.mix[3] + before2 * (1 - self.mix[3]), g * self.mix[4] + before2 * (1 - self.mix[4])
            x = x + torch.sigmoid(self.gate(rr)) * self.down(torch.square(torch.relu(self.up(kk))))
            return x, h, a * num + b * v, a * den + b, top, g

    draw = Drawn()
    calls = [[*(draw.floats(b, 16) for _ in range(3)), np.abs(draw.floats(b, 16)), draw.floats(b, 16), draw.floats(b, 16)] for b in (1, 3, 8, 5)]
    names = ["x", "before", "num", "den", "most", "before2"]
    return network(Module(), [np.abs(draw.floats(2, 16)) for _ in range(6)], [(name, {0: "batch"}) for name in names], ["y", *(f"new_{name}" for name in names[1:])], calls)


@case
def experts():
    """A mixture of experts as it is written in Python: the tokens of each expert are found by `where`, and added where they came from."""
    torch, n, f = nn()

    class Module(n.Module):
        def __init__(self):
            super().__init__()
            self.route, self.up, self.down = n.Linear(16, 4, False), n.ModuleList(n.Linear(16, 64) for _ in range(4)), n.ModuleList(n.Linear(32, 16) for _ in range(4))

        def forward(self, x):
            flat = x.reshape(-1, 16)
            weights, chosen = torch.topk(torch.softmax(self.route(flat), -1), 2, -1)
            weights = weights / weights.sum(-1, keepdim=True)
            out = torch.zeros_like(flat)
            for i, (up, down) in enumerate(zip(self.up, self.down)):
                token, slot = torch.where(chosen == i)
                a, b = up(flat[token]).chunk(2, -1)
                out = out.index_add(0, token, down(f.silu(a) * b) * weights[token, slot][:, None])
            return out.reshape(x.shape), chosen

    draw = Drawn()
    calls = [[draw.floats(b, t, 16)] for b, t in [(1, 5), (1, 1), (2, 17), (1, 40), (3, 9)]]
    return network(Module(), [draw.floats(2, 7, 16)], [("x", {0: "batch", 1: "length"})], ["y", "experts"], calls)


@case
def matching():
    """Points of two pictures are matched: attention between them, Sinkhorn's iterations with a dustbin, pairs that choose each other."""
    torch, n, f = nn()

    class Module(n.Module):
        def __init__(self):
            super().__init__()
            self.places, self.layers, self.bin = n.Sequential(n.Linear(3, 16), n.ReLU(), n.Linear(16, 16)), n.ModuleList(n.MultiheadAttention(16, 2, batch_first=True) for _ in range(4)), n.Parameter(torch.tensor(0.3))
            self.mlp = n.ModuleList(n.Sequential(n.Linear(32, 32), n.ReLU(), n.Linear(32, 16)) for _ in range(4))

        def forward(self, pa, da, pb, db):
            a, b = da + self.places(pa), db + self.places(pb)
            for i, (layer, mlp) in enumerate(zip(self.layers, self.mlp)):
                sa, sb = (b, a) if i % 2 else (a, b)
                ua, ub = layer(a, sa, sa, need_weights=False)[0], layer(b, sb, sb, need_weights=False)[0]
                a, b = a + mlp(torch.cat([a, ua], -1)), b + mlp(torch.cat([b, ub], -1))
            scores = torch.einsum("bnc,bmc->bnm", a, b) / 4
            batch, count, other = scores.shape
            whole = torch.cat([torch.cat([scores, self.bin.expand(batch, count, 1)], 2), self.bin.expand(batch, 1, other + 1)], 1)
            ms, ns = scores.new_tensor(1.0) * count, scores.new_tensor(1.0) * other
            norm = -torch.log(ms + ns)
            mu = torch.cat([norm.expand(count), (torch.log(ns) + norm)[None]])[None].expand(batch, -1)
            nu = torch.cat([norm.expand(other), (torch.log(ms) + norm)[None]])[None].expand(batch, -1)
            u, v = torch.zeros_like(mu), torch.zeros_like(nu)
            for _ in range(6):
                u = mu - torch.logsumexp(whole + v[:, None], 2)
                v = nu - torch.logsumexp(whole + u[:, :, None], 1)
            whole = whole + u[:, :, None] + v[:, None] - norm
            best_a, best_b = whole[:, :-1, :-1].max(2), whole[:, :-1, :-1].max(1)
            mutual = torch.arange(count)[None] == best_b.indices.gather(1, best_a.indices)
            score = torch.where(mutual, best_a.values.exp(), torch.zeros(1))
            return torch.where(mutual & (score > 0.01), best_a.indices, torch.full_like(best_a.indices, -1)), score, whole

    draw = Drawn()

    def call(b, count, other):
        return [draw.floats(b, count, 3), draw.floats(b, count, 16), draw.floats(b, other, 3), draw.floats(b, other, 16)]

    calls = [call(*one) for one in [(1, 5, 7), (1, 64, 30), (2, 9, 9), (1, 33, 100)]]
    inputs = [("pa", {0: "batch", 1: "count"}), ("da", {0: "batch", 1: "count"}), ("pb", {0: "batch", 1: "other"}), ("db", {0: "batch", 1: "other"})]
    return network(Module(), call(2, 6, 8), inputs, ["matches", "scores", "plan"], calls)


@case
def modulated():
    """Convolutions whose weights are computed for each picture (StyleGAN's): as many groups as there are pictures, demodulated, upsampled by a filter, with noise."""
    torch, n, f = nn()

    class Module(n.Module):
        def __init__(self):
            super().__init__()
            self.map = n.Sequential(n.Linear(8, 16), n.LeakyReLU(0.2), n.Linear(16, 16))
            self.start, self.style = n.Parameter(torch.randn(1, 8, 4, 4)), n.ModuleList(n.Linear(16, 8) for _ in range(3))
            self.weights = n.ParameterList(n.Parameter(torch.randn(1, o, 8, k, k) * 0.2) for o, k in [(8, 3), (8, 3), (3, 1)])
            self.register_buffer("blur", (torch.tensor([1.0, 3, 3, 1])[:, None] * torch.tensor([1.0, 3, 3, 1]) / 16)[None, None].repeat(8, 1, 1, 1))

        def conv(self, x, w, style, demodulate=True):
            b, c, h, wd = x.shape
            weight = w * style.reshape(b, 1, c, 1, 1)
            weight = weight * torch.rsqrt(weight.pow(2).sum([2, 3, 4], keepdim=True) + 1e-8) if demodulate else weight
            weight = weight.reshape(-1, c, w.shape[3], w.shape[4])
            out = f.conv2d(x.reshape(1, -1, h, wd), weight, padding=w.shape[3] // 2, groups=b)
            return out.reshape(b, w.shape[1], out.shape[2], out.shape[3])

        def forward(self, z, noise):
            s = self.map(z / torch.sqrt(z.pow(2).mean(1, keepdim=True) + 1e-8))
            x = self.start.expand(z.shape[0], -1, -1, -1)
            x = f.leaky_relu(self.conv(x, self.weights[0], self.style[0](s)), 0.2)
            x = f.conv_transpose2d(x, self.blur, stride=2, padding=1, groups=8)
            x = f.leaky_relu(self.conv(x, self.weights[1], self.style[1](s)) + noise, 0.2)
            return self.conv(x, self.weights[2], self.style[2](s), False)

    draw = Drawn()
    # One picture: exporters write the number of groups as a constant.
    calls = [[draw.floats(1, 8), draw.floats(1, 1, 8, 8)] for _ in range(3)]
    return network(Module(), [draw.floats(1, 8), draw.floats(1, 1, 8, 8)], [("z", {}), ("noise", {})], ["picture"], calls)


@case
def dynamic_conv():
    """Filters that the input chooses (attention over kernels), and a convolution of one picture by another (a tracker's correlation)."""
    torch, n, f = nn()

    class Module(n.Module):
        def __init__(self):
            super().__init__()
            self.back, self.choose, self.bank = n.Conv2d(3, 8, 3, 2, 1), n.Linear(8, 4), n.Parameter(torch.randn(4, 8, 8, 3, 3) * 0.2)

        def forward(self, exemplar, search):
            a, b = f.relu(self.back(exemplar)), f.relu(self.back(search))
            weights = torch.softmax(self.choose(b.mean((2, 3))), -1)
            kernel = torch.einsum("k,koihw->oihw", weights[0], self.bank)
            b = b + f.conv2d(b, kernel, padding=1)
            return f.conv2d(b, a), f.conv2d(b, a.transpose(0, 1), groups=8)

    draw = Drawn()
    calls = [[draw.floats(1, 3, e, e), draw.floats(1, 3, h, w)] for e, h, w in [(8, 32, 32), (8, 33, 40), (12, 40, 64), (10, 24, 24)]]
    return network(Module(), [draw.floats(1, 3, 9, 9), draw.floats(1, 3, 36, 44)], [("exemplar", {2: "e", 3: "e2"}), ("search", {2: "h", 3: "w"})], ["one", "each"], calls)
