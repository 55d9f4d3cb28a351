"""What onnx_sizes.py exports of 2026-11-30: small networks whose sizes, values or caches are known only when they run, each of a kind of its own. Ragged batches, letters
that a network finds, merged tokens, tables of bags, peaks of heat maps, caches that are cut, moved and reordered."""

import numpy as np
from onnx_sizes_base import Drawn, case
from onnx_sizes_more import network


def module(forward, **parts):
    """A module of torch of its parts and what it computes; `forward` takes the module first."""
    import torch

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(4)
            for name, part in parts.items():
                setattr(self, name, part(torch))

    Module.forward = forward
    return Module()


def of(forward, inputs, results, calls, **parts):
    made = module(forward, **parts)
    calls = list(calls)
    return network(made, calls[0], inputs, results, calls)


def linear(a, b):
    return lambda torch: torch.nn.Linear(a, b)


@case
def ctc_letters():
    """Greedy letters of frames: repetitions and blanks go."""
    import torch

    def forward(self, x):
        best = self.head(x).argmax(-1)
        kept = torch.ones_like(best, dtype=torch.bool)
        kept[1:] = best[1:] != best[:-1]
        kept = kept & (best != 0)
        return best[kept], self.table(best[kept])

    d = Drawn()
    return of(forward, [("x", {0: "frames"})], ["letters", "rows"], ([d.floats(n, 8)] for n in (9, 1, 2, 33, 500)), head=linear(8, 5), table=lambda t: t.nn.Embedding(5, 6))


@case
def ragged_means():
    """Means over parts of a list whose lengths are given, and each row less its mean."""
    import torch

    def forward(self, x, lengths):
        owner = torch.repeat_interleave(torch.arange(lengths.shape[0]), lengths)
        sums = torch.zeros(lengths.shape[0], x.shape[1]).index_add(0, owner, x)
        mean = sums / lengths.clamp(min=1).unsqueeze(1)
        return self.head(mean), x - mean[owner]

    d = Drawn()
    calls = ([d.floats(sum(own), 6), np.array(own, np.int64)] for own in ((3, 2), (1,), (0, 4, 7), (100, 1, 0, 30), (5,) * 40))
    return of(forward, [("x", {0: "rows"}), ("lengths", {0: "lists"})], ["mean", "rest"], calls, head=linear(6, 4))


@case
def ragged_padded():
    """Lists of given lengths, padded to the longest, through attention with a mask, and back to a list."""
    import torch

    def forward(self, x, lengths):
        places = torch.arange(lengths.max())
        mask = places.unsqueeze(0) < lengths.unsqueeze(1)
        padded = torch.zeros(mask.shape[0], mask.shape[1], x.shape[1]).masked_scatter(mask.unsqueeze(-1), x)
        bias = torch.where(mask, 0.0, -1e9).unsqueeze(1).unsqueeze(1)
        q, k, v = self.qkv(padded).unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4)
        out = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=bias).transpose(1, 2).flatten(2)
        return out[mask]

    d = Drawn()
    calls = ([d.floats(sum(own), 8), np.array(own, np.int64)] for own in ((3, 2), (1,), (2, 4, 7), (100, 1, 30), (5,) * 20))
    return of(forward, [("x", {0: "rows"}), ("lengths", {0: "lists"})], ["y"], calls, qkv=linear(8, 24))


@case
def token_merging():
    """The most alike pairs of tokens become one (ToMe): as many as a share of them says."""
    import torch

    def forward(self, x):
        a, b = x[:, ::2], x[:, 1::2]
        scores = torch.nn.functional.normalize(a, dim=-1) @ torch.nn.functional.normalize(b, dim=-1).transpose(1, 2)
        best, to = scores.max(-1)
        count = b.shape[1] // 2
        order = best.argsort(dim=-1, descending=True)
        moved, rest = order[:, :count], order[:, count:]
        width = x.shape[-1]
        source = a.gather(1, moved.unsqueeze(-1).expand(-1, -1, width))
        to = to.gather(1, moved)
        b = b.scatter_reduce(1, to.unsqueeze(-1).expand(-1, -1, width), source, "mean")
        kept = a.gather(1, rest.unsqueeze(-1).expand(-1, -1, width))
        return self.head(torch.cat([kept, b], 1))

    d = Drawn()
    return of(forward, [("x", {0: "batch", 1: "tokens"})], ["y"], ([d.floats(*size, 8)] for size in ((2, 12), (1, 4), (3, 17), (1, 196), (2, 301))), head=linear(8, 8))


@case
def bags():
    """Tables with bags of words, whose number and lengths callers decide."""
    import torch

    def forward(self, words, offsets, weights):
        return self.head(torch.cat([self.mean(words, offsets), self.sum(words, offsets, weights)], 1))

    d = Drawn()
    calls = ([d.ints(40, n), np.array(offsets, np.int64), d.floats(n)] for n, offsets in ((7, (0, 3)), (1, (0,)), (9, (0, 0, 4)), (60, (0, 1, 2, 30, 59)), (200, range(0, 200, 5))))
    return of(forward, [("words", {0: "words"}), ("offsets", {0: "bags"}), ("weights", {0: "words"})], ["y"], calls, head=linear(12, 3), mean=lambda t: t.nn.EmbeddingBag(40, 6, mode="mean"), sum=lambda t: t.nn.EmbeddingBag(40, 6, mode="sum"))


@case
def peaks():
    """CenterNet: peaks of a heat map above a threshold, and the sizes that stand there."""
    import torch

    def forward(self, image):
        x = torch.relu(self.stem(image))
        heat, size = self.heat(x), self.size(x)
        top = torch.nn.functional.max_pool2d(heat, 3, 1, 1)
        found = ((heat == top) & (heat > 0.12)).nonzero()
        batch, kind, row, column = found.unbind(1)
        wide = size[batch, :, row, column].exp()
        center = torch.stack([column, row], 1).float()
        return torch.cat([center - wide, center + wide], 1), heat[batch, kind, row, column], kind

    d = Drawn()
    return of(forward, [("image", {0: "batch", 2: "h", 3: "w"})], ["boxes", "scores", "kinds"], ([d.floats(b, 3, h, w)] for b, h, w in ((1, 32, 40), (2, 16, 16), (1, 33, 65), (3, 64, 48), (1, 4, 200))),
              stem=lambda t: t.nn.Conv2d(3, 8, 3, 2, 1), heat=lambda t: t.nn.Conv2d(8, 4, 3, 1, 1), size=lambda t: t.nn.Conv2d(8, 2, 1))


@case
def beams():
    """A step of a search with beams: caches in the order of the beams that go on, then a row more."""
    import torch

    def forward(self, ids, scores, past_k, past_v, beams):
        past_k, past_v = past_k.index_select(0, beams), past_v.index_select(0, beams)
        q, k, v = self.qkv(self.table(ids)).unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4)
        k, v = torch.cat([past_k, k], 2), torch.cat([past_v, v], 2)
        x = torch.nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        logits = self.head(x[:, -1]).log_softmax(-1) + scores.unsqueeze(1)
        best, place = logits.flatten().topk(logits.shape[0])
        return best, place // 11, place % 11, k, v

    d = Drawn()
    calls = ([d.ints(11, b, 1), d.floats(b), d.floats(b, 2, n, 4), d.floats(b, 2, n, 4), d.ints(b, b)] for b, n in ((3, 5), (1, 1), (4, 1), (4, 64), (5, 333), (2, 0)))
    return of(forward, [("ids", {0: "beams"}), ("scores", {0: "beams"}), ("past_k", {0: "beams", 2: "past"}), ("past_v", {0: "beams", 2: "past"}), ("beams", {0: "beams"})],
              ["best", "from", "words", "present_k", "present_v"], calls, table=lambda t: t.nn.Embedding(11, 8), qkv=linear(8, 24), head=linear(8, 11))


@case
def rolled_back():
    """Speculation: of the cache only what was accepted counts, a number that is an input; then rows more."""
    import torch

    def forward(self, x, past, keep):
        count = keep.item()
        torch._check(count >= 0)
        torch._check(count <= past.shape[1])
        past = past[:, :count]
        k = torch.cat([past, self.key(x)], 1)
        return torch.softmax(x @ k.transpose(1, 2), -1) @ k, k

    d = Drawn()
    calls = ([d.floats(b, n, 8), d.floats(b, p, 8), np.array(own, np.int64)] for b, n, p, own in ((2, 3, 9, 5), (1, 1, 4, 4), (1, 1, 4, 1), (2, 5, 70, 69), (3, 2, 8, 0)))
    return of(forward, [("x", {0: "batch", 1: "new"}), ("past", {0: "batch", 1: "past"}), ("keep", {})], ["y", "present"], calls, key=linear(8, 8))


@case
def sinks():
    """Attention with sinks: the first four rows of a cache stay, and of the others the last twelve."""
    import torch

    def forward(self, x, past):
        k = torch.cat([past, self.key(x)], 1)
        y = torch.softmax(x @ k.transpose(1, 2), -1) @ k
        return y, torch.cat([k[:, :4], k[:, 4:][:, -12:]], 1)

    d = Drawn()
    return of(forward, [("x", {0: "batch", 1: "new"}), ("past", {0: "batch", 1: "past"})], ["y", "present"], ([d.floats(b, n, 8), d.floats(b, p, 8)] for b, n, p in ((2, 3, 9), (1, 1, 4), (1, 1, 16), (2, 5, 16), (1, 40, 16), (2, 1, 15))), key=linear(8, 8))


@case
def ring():
    """A cache with sixteen places, of which the new rows take those that are oldest."""
    import torch

    def forward(self, x, cache, position):
        place = (position + torch.arange(x.shape[1])) % 16
        cache = cache.index_copy(1, place, self.key(x))
        seen = torch.arange(16) < position + x.shape[1]
        scores = (x @ cache.transpose(1, 2)).masked_fill(~seen, -1e9)
        return torch.softmax(scores, -1) @ cache, cache, position + x.shape[1]

    d = Drawn()
    return of(forward, [("x", {0: "batch", 1: "new"}), ("cache", {0: "batch"}), ("position", {})], ["y", "new_cache", "new_position"], ([d.floats(b, n, 8), d.floats(b, 16, 8), np.array(p, np.int64)] for b, n, p in ((2, 3, 0), (1, 1, 4), (1, 1, 15), (2, 5, 14), (3, 1, 1000), (1, 16, 3))), key=linear(8, 8))


@case
def overlapped():
    """A picture in tiles that overlap, as many as it needs, each through a network, put together with weights."""
    import torch

    def forward(self, image):
        h, w = image.shape[2], image.shape[3]
        padded = torch.nn.functional.pad(image, (0, (-w) % 8 + 8, 0, (-h) % 8 + 8))
        tiles = padded.unfold(2, 16, 8).unfold(3, 16, 8)
        rows, columns = tiles.shape[2], tiles.shape[3]
        flat = tiles.permute(0, 2, 3, 1, 4, 5).reshape(-1, 3, 16, 16)
        out = self.net(flat).reshape(image.shape[0], rows * columns, 3 * 256).transpose(1, 2)
        size = (padded.shape[2], padded.shape[3])
        whole = torch.nn.functional.fold(out, size, 16, stride=8)
        times = torch.nn.functional.fold(torch.ones_like(out), size, 16, stride=8)
        return (whole / times)[:, :, :h, :w]

    d = Drawn()
    return of(forward, [("image", {0: "batch", 2: "h", 3: "w"})], ["y"], ([d.floats(b, 3, h, w)] for b, h, w in ((1, 32, 40), (2, 16, 16), (1, 33, 65), (1, 8, 120), (2, 57, 31))), net=lambda t: t.nn.Conv2d(3, 3, 3, 1, 1))


@case
def spectra():
    """A filter of sound between a transform and its inverse by frames, any length."""
    import torch

    def forward(self, x):
        frames = torch.nn.functional.pad(x, (32, 32)).unfold(1, 64, 16) * self.window
        spectrum = torch.cat([frames @ self.cos, frames @ self.sin], -1)
        size = (spectrum * spectrum).mean(1, keepdim=True)
        out = (spectrum * torch.sigmoid(self.gate(size))) @ torch.cat([self.cos, self.sin], 1).T
        count = frames.shape[1]
        whole = torch.nn.functional.fold(out.transpose(1, 2), (1, 64 + 16 * (count - 1)), (1, 64), stride=(1, 16))
        return whole[:, 0, 0, 32 : 32 + x.shape[1]]

    import math

    angle = lambda t: 2 * math.pi * t.outer(t.arange(64.0), t.arange(33.0)) / 64  # noqa: E731
    d = Drawn()
    return of(forward, [("x", {0: "batch", 1: "samples"})], ["y"], ([d.floats(b, n)] for b, n in ((2, 640), (1, 64), (1, 1000), (3, 333), (1, 16000))), window=lambda t: t.nn.Parameter(t.hann_window(64)), cos=lambda t: t.nn.Parameter(t.cos(angle(t))), sin=lambda t: t.nn.Parameter(t.sin(angle(t))), gate=linear(66, 66))


@case
def packed_gru():
    """Sequences of different lengths through a recurrent layer both ways; the state behind the last of each."""
    import torch

    def forward(self, x, lengths):
        packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        out, last = self.net(packed)
        out, _ = torch.nn.utils.rnn.pad_packed_sequence(out, batch_first=True)
        return out, last

    d = Drawn()
    calls = ([d.floats(len(own), max(own), 6), np.array(own, np.int64)] for own in ((3, 2), (1,), (2, 9, 7), (60, 33, 1, 47)))
    return of(forward, [("x", {0: "batch", 1: "steps"}), ("lengths", {0: "batch"})], ["y", "last"], calls, net=lambda t: t.nn.GRU(6, 10, 2, batch_first=True, bidirectional=True))


@case
def mixed_experts():
    """Experts that take the tokens that chose them, found by `nonzero`, and put results back with `index_add`."""
    import torch

    def forward(self, x):
        flat = x.reshape(-1, 8)
        weights, chosen = self.router(flat).softmax(-1).topk(2)
        out = torch.zeros_like(flat)
        for place, expert in enumerate(self.experts):
            token, which = (chosen == place).nonzero(as_tuple=True)
            out = out.index_add(0, token, expert(flat[token]) * weights[token, which].unsqueeze(1))
        return out.reshape(x.shape)

    d = Drawn()
    return of(forward, [("x", {0: "batch", 1: "tokens"})], ["y"], ([d.floats(b, n, 8)] for b, n in ((2, 12), (1, 1), (1, 2), (3, 17), (1, 301))), router=linear(8, 4), experts=lambda t: t.nn.ModuleList([t.nn.Sequential(t.nn.Linear(8, 16), t.nn.SiLU(), t.nn.Linear(16, 8)) for _ in range(4)]))


@case
def histogram():
    """How often each word is there, the words that are, and where each was first."""
    import torch

    def forward(self, words):
        found, back, counts = torch.unique(words, return_inverse=True, return_counts=True)
        share = counts.float() / words.numel()
        return found, self.table(found) * share.unsqueeze(1), counts[back]

    d = Drawn()
    return of(forward, [("words", {0: "words"})], ["found", "rows", "often"], ([d.ints(30, n)] for n in (9, 1, 2, 64, 777)), table=lambda t: t.nn.Embedding(30, 6))


@case
def pictures_in_text():
    """Pictures of any number, cut to patches, put where a text has their sign."""
    import torch

    def forward(self, ids, pixels):
        x = self.table(ids)
        patches = self.patch(pixels).flatten(2).transpose(1, 2).reshape(-1, 8)
        mask = (ids == 7).unsqueeze(-1).expand_as(x)
        x = x.masked_scatter(mask, patches)
        q, k, v = self.qkv(x).unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4)
        return self.head(torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))

    d = Drawn()

    def call(texts, length, pictures, size):
        count = pictures * (size // 8) ** 2
        ids = d.ints(7, texts * length)
        ids[d.random.permutation(texts * length)[:count]] = 7
        return [ids.reshape(texts, length), d.floats(pictures, 3, size, size)]

    return of(forward, [("ids", {0: "batch", 1: "length"}), ("pixels", {0: "pictures", 2: "h", 3: "w"})], ["y"], (call(*own) for own in ((2, 12, 2, 16), (1, 20, 1, 32), (3, 33, 5, 16), (1, 128, 3, 48), (1, 5, 1, 8))),
              table=lambda t: t.nn.Embedding(8, 8), patch=lambda t: t.nn.Conv2d(3, 8, 8, 8), qkv=linear(8, 24), head=linear(8, 8))


@case
def alignment():
    """A text's durations from a network, rounded: frames by a mask of sums (Glow-TTS), then convolutions."""
    import torch

    def forward(self, x, mask, speed):
        durations = (torch.exp(self.duration(x)[..., 0]) * mask * speed).ceil()
        ends = durations.cumsum(1)
        frames = torch.arange(int(ends[:, -1].max()) if not torch.compiler.is_compiling() else ends[:, -1].max().long().item(), dtype=torch.float32)
        path = (frames >= (ends - durations).unsqueeze(-1)) & (frames < ends.unsqueeze(-1))
        return self.out((path.float().transpose(1, 2) @ x).transpose(1, 2)), ends[:, -1]

    def scripted(self, x, mask, speed):
        durations = (torch.exp(self.duration(x)[..., 0]) * mask * speed).ceil()
        ends = durations.cumsum(1)
        frames = torch.arange(ends[:, -1].max().long())
        path = (frames >= (ends - durations).unsqueeze(-1)) & (frames < ends.unsqueeze(-1))
        return self.out((path.float().transpose(1, 2) @ x).transpose(1, 2)), ends[:, -1]

    d = Drawn()

    def call(batch, length, speed):
        mask = np.ones((batch, length), np.float32)
        mask[-1, length // 2 + 1 :] = 0
        return [d.floats(batch, length, 8), mask, np.array([speed], np.float32)]

    return of(scripted, [("x", {0: "batch", 1: "length"}), ("mask", {0: "batch", 1: "length"}), ("speed", {})], ["y", "frames"], (call(*own) for own in ((2, 7, 1), (1, 1, 1), (1, 33, 0.7), (3, 18, 2.5), (1, 120, 1.3))), duration=linear(8, 1), out=lambda t: t.nn.Conv1d(8, 4, 5, padding=2))


@case
def refined():
    """A fixed point that is looked for until it is near enough: a loop whose end data decide."""
    import torch

    class Inner(torch.nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(4)
            self.mix = torch.nn.Linear(8, 8)
            torch.nn.init.normal_(self.mix.weight, std=0.2)

        def forward(self, x, most: int):
            z = torch.zeros_like(x)
            step = 0
            apart = torch.tensor(1.0)
            while step < most and bool(apart > 1e-3):
                new = torch.tanh(self.mix(z) + x)
                apart = (new - z).abs().max()
                z = new
                step += 1
            return z, torch.tensor(step)

    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.jit.script(Inner())

        def forward(self, x):
            return self.inner(x, 50)

    d = Drawn()
    calls = [[d.floats(n, 8) * scale] for n, scale in ((4, 1), (1, 0), (7, 3), (130, 0.1))]
    return network(Outer(), calls[0], [("x", {0: "rows"})], ["y", "steps"], calls)


@case
def nearest_words():
    """Codes of a codebook by distance, runs of the same code as one, and how long they are."""
    import torch

    def forward(self, x):
        code = torch.cdist(x, self.book).argmin(-1)
        values, lengths = torch.unique_consecutive(code, return_counts=True)
        ends = lengths.cumsum(0)
        return values, lengths, self.head(x[ends - 1])

    d = Drawn()
    return of(forward, [("x", {0: "frames"})], ["codes", "lengths", "last"], ([d.floats(n, 6)] for n in (9, 1, 2, 40, 512)), book=lambda t: t.nn.Parameter(t.randn(5, 6)), head=linear(6, 4))


@case
def buckets():
    """Values by quantiles that a table has, sorted with their places, and cumulative extremes."""
    import torch

    def forward(self, x):
        place = torch.bucketize(x, self.edges)
        ordered, order = x.sort(dim=1, descending=True)
        return self.table(place).sum(1), ordered, order, torch.cummax(x, 1).values

    d = Drawn()
    return of(forward, [("x", {0: "batch", 1: "n"})], ["y", "ordered", "order", "most"], ([d.floats(b, n)] for b, n in ((2, 12), (1, 1), (3, 65), (1, 1000))), edges=lambda t: t.nn.Parameter(t.linspace(-2, 2, 9)), table=lambda t: t.nn.Embedding(10, 6))


@case
def to_size_of():
    """A map that is brought to the size of another, twice, with what its ratio gives as positions."""
    import torch

    def forward(self, x, like):
        up = torch.nn.functional.interpolate(self.a(x), size=like.shape[2:], mode="bicubic", align_corners=False)
        down = torch.nn.functional.adaptive_avg_pool2d(like, 1)
        both = torch.nn.functional.interpolate(up * down, scale_factor=0.5, mode="bilinear", align_corners=True)
        return self.b(both), torch.nn.functional.interpolate(both, size=x.shape[2:], mode="nearest-exact")

    d = Drawn()
    return of(forward, [("x", {0: "batch", 2: "h", 3: "w"}), ("like", {0: "batch", 2: "H", 3: "W"})], ["y", "z"], ([d.floats(b, 4, h, w), d.floats(b, 4, H, W)] for b, h, w, H, W in ((1, 8, 10, 32, 40), (2, 16, 16, 16, 16), (1, 5, 7, 31, 33), (3, 2, 2, 64, 4))), a=lambda t: t.nn.Conv2d(4, 4, 1), b=lambda t: t.nn.Conv2d(4, 2, 3, 1, 1))


@case
def streaming():
    """Causal dilated convolutions over chunks of any length, each layer's last columns as its cache, and a mean of all that was."""
    import torch

    def forward(self, x, cache_0, cache_1, cache_2, total, count):
        new = []
        for layer, (conv, cache) in enumerate(zip(self.layers, (cache_0, cache_1, cache_2))):
            whole = torch.cat([cache, x], 2)
            new.append(whole[:, :, -(2 * 2**layer) :])
            x = x + torch.relu(conv(whole))
        total, count = total + x.sum(2), count + x.shape[2]
        return x / (1 + (total / count).abs().unsqueeze(2)), *new, total, count

    d = Drawn()
    calls = ([d.floats(b, 6, n), *(d.floats(b, 6, 2 * 2**i) for i in range(3)), d.floats(b, 6), np.array(c, np.float32)] for b, n, c in ((2, 12, 3), (1, 1, 1), (1, 2, 9), (3, 31, 100), (1, 480, 2)))
    return of(forward, [("x", {0: "batch", 2: "n"}), *((f"cache_{i}", {0: "batch"}) for i in range(3)), ("total", {0: "batch"}), ("count", {})], ["y", *(f"new_cache_{i}" for i in range(3)), "new_total", "new_count"], calls, layers=lambda t: t.nn.ModuleList([t.nn.Conv1d(6, 6, 3, dilation=2**i) for i in range(3)]))
