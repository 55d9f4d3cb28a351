"""What onnx_sizes.py exports of networks whose rows data count: pillars of points, edges within a radius, words by hashes of their letters, pooled graphs, a recurrent
graph, memories with keys; and forms in half floats or bytes of what other scripts make. Random weights."""

import numpy as np
from onnx_sizes_base import CASES, Drawn, case
from onnx_sizes_more import network


def nn():
    import torch

    return torch, torch.nn, torch.nn.functional


@case
def pillars():
    """A cloud of points put into pillars (PointPillars): cells that are found, means and maxima of each, a picture of features seen from above."""
    torch, n, f = nn()

    class Module(n.Module):
        def __init__(self):
            super().__init__()
            self.point, self.norm = n.Linear(9, 16), n.BatchNorm1d(16)
            self.net, self.head = n.Sequential(n.Conv2d(16, 16, 3, 2, 1), n.ReLU(), n.ConvTranspose2d(16, 16, 2, 2)), n.Conv2d(32, 7, 1)

        def forward(self, points):
            inside = (points[:, :2].abs() < 4).all(-1)
            points = points[inside]
            cell = torch.floor((points[:, :2] + 4) * 2).long()
            cells, which = torch.unique(cell[:, 1] * 16 + cell[:, 0], return_inverse=True)
            count = torch.zeros(cells.shape[0]).index_add(0, which, torch.ones_like(points[:, 0]))
            mean = torch.zeros(cells.shape[0], 3).index_add(0, which, points[:, :3]) / count[:, None]
            middle = torch.stack([cells % 16, torch.div(cells, 16, rounding_mode="floor")], -1).float() / 2 - 3.75
            x = torch.cat([points, points[:, :3] - mean[which], points[:, :2] - middle[which]], -1)
            x = f.relu(self.norm(self.point(x)))
            most = torch.zeros(cells.shape[0], 16).scatter_reduce(0, which[:, None].expand(-1, 16), x, "amax")
            canvas = torch.zeros(256, 16).index_copy(0, cells, most).t().reshape(1, 16, 16, 16)
            return self.head(torch.cat([canvas, self.net(canvas)], 1)), cells, count

    draw = Drawn()
    calls = [[draw.floats(points, 4) * np.float32([2, 2, 1, 1])] for points in (12, 60, 61, 300, 5)]
    return network(Module(), [draw.floats(40, 4) * 2], [("points", {0: "points"})], ["heads", "cells", "count"], calls)


@case
def radius():
    """A molecule (SchNet, EGNN): all pairs within a radius are edges, waves of distances weigh what is handed on, coordinates move."""
    torch, n, f = nn()

    class Module(n.Module):
        def __init__(self):
            super().__init__()
            self.kinds, self.filter, self.inp, self.out = n.Embedding(10, 16), n.Sequential(n.Linear(8, 16), n.Softplus(), n.Linear(16, 16)), n.Linear(16, 16), n.Linear(16, 16)
            self.move, self.energy = n.Linear(16, 1), n.Linear(16, 1)
            self.register_buffer("centres", torch.linspace(0, 2, 8))

        def forward(self, kinds, places):
            h = self.kinds(kinds)
            for _ in range(2):
                apart = torch.cdist(places, places)
                number = torch.arange(places.shape[0])
                near = (apart < 1.5) & (number[:, None] != number)
                source, target = torch.where(near)
                d = apart[source, target]
                w = self.filter(torch.exp(-4 * (d[:, None] - self.centres) ** 2)) * (0.5 * (torch.cos(d * np.pi / 1.5) + 1))[:, None]
                m = self.inp(h)[source] * w
                h = h + self.out(f.softplus(torch.zeros_like(h).index_add(0, target, m)))
                places = places + torch.zeros_like(places).index_add(0, target, (places[target] - places[source]) * torch.tanh(self.move(m)))
            return self.energy(h).sum(), h, places

    draw = Drawn()
    calls = [[draw.ints(10, atoms), draw.floats(atoms, 3)] for atoms in (3, 9, 20, 2, 50)]
    return network(Module(), [draw.ints(10, 7), draw.floats(7, 3)], [("kinds", {0: "atoms"}), ("places", {0: "atoms"})], ["energy", "nodes", "moved"], calls)


@case
def hashes():
    """Words by hashes of pairs and triples of their letters (fastText, BLT), summed over each word, whose beginnings are an input."""
    torch, n, f = nn()

    class Module(n.Module):
        def __init__(self):
            super().__init__()
            self.letters, self.pairs, self.triples, self.mix = n.Embedding(256, 16), n.Embedding(101, 16), n.Embedding(211, 16), n.GRU(16, 16, batch_first=True)

        def forward(self, letters, begins):
            one = torch.cat([letters.new_zeros(1), letters[:-1]])
            two = torch.cat([letters.new_zeros(2), letters])[: letters.shape[0]]
            pair = (letters * 1000003 + one * 8191) % 101
            triple = torch.bitwise_xor(letters * 31 + one * 127, two * 8191) % 211
            x = self.letters(letters) + self.pairs(pair) + self.triples(triple)
            starts = torch.zeros_like(letters).index_fill(0, begins, 1)
            word = torch.cumsum(starts, 0) - 1
            sums = x.new_zeros(begins.shape[0], 16).index_add(0, word, x)
            size = x.new_zeros(begins.shape[0]).index_add(0, word, torch.ones_like(x[:, 0]))
            words = sums / size[:, None]
            read, _ = self.mix(words[None])
            return read[0][word] + x, pair, triple

    draw = Drawn()

    def call(letters, words):
        return [draw.ints(256, letters), np.concatenate([[0], 1 + np.sort(draw.random.permutation(letters - 1)[: words - 1])]).astype(np.int64)]

    calls = [call(*one) for one in [(5, 2), (12, 3), (12, 12), (64, 9), (200, 31)]]
    return network(Module(), call(20, 4), [("letters", {0: "letters"}), ("begins", {0: "words"})], ["out", "pairs", "triples"], calls)


@case
def bags():
    """Bags of words with sums, means and maxima: the exporters write a loop over bags."""
    torch, n, f = nn()

    class Module(n.Module):
        def __init__(self):
            super().__init__()
            self.sums, self.means, self.out = n.EmbeddingBag(50, 8, mode="sum"), n.EmbeddingBag(50, 8, mode="mean"), n.Linear(16, 3)

        def forward(self, words, begins):
            return self.out(torch.cat([self.sums(words, begins), self.means(words, begins)], -1))

    draw = Drawn()

    def call(words, bags):
        return [draw.ints(50, words), np.concatenate([[0], np.sort(draw.ints(words, bags - 1))])]

    calls = [call(*one) for one in [(5, 2), (12, 3), (7, 1), (64, 9), (100, 30)]]
    return network(Module(), call(20, 4), [("words", {0: "words"}), ("begins", {0: "bags"})], ["classes"], calls)


@case
def pooled_graph():
    """A graph of which each layer keeps the best half of the nodes, and the edges between them, numbered anew."""
    torch, n, f = nn()

    class Module(n.Module):
        def __init__(self):
            super().__init__()
            self.first, self.conv, self.score = n.Linear(6, 16), n.ModuleList(n.Linear(16, 16) for _ in range(2)), n.ModuleList(n.Linear(16, 1) for _ in range(2))

        def forward(self, x, edges):
            x, read = self.first(x), 0
            for conv, score in zip(self.conv, self.score):
                degree = torch.ones_like(x[:, 0]).index_add(0, edges[1], torch.ones_like(edges[1], dtype=torch.float32)).rsqrt()
                sent = (conv(x) * degree[:, None])[edges[0]]
                x = f.relu(x + torch.zeros_like(x).index_add(0, edges[1], sent) * degree[:, None])
                rank = torch.tanh(score(x))[:, 0]
                best, kept = torch.topk(rank, (x.shape[0] + 1) // 2)
                number = torch.full_like(rank, -1, dtype=torch.int64).index_copy(0, kept, torch.arange(kept.shape[0]))
                edges = number[edges]
                edges = edges[:, (edges >= 0).all(0)]
                x = x[kept] * best[:, None]
                read = read + torch.cat([x.max(0).values, x.mean(0)])
            return read, x, edges

    draw = Drawn()
    calls = [[draw.floats(nodes, 6), draw.ints(nodes, 2, edges)] for nodes, edges in [(4, 9), (9, 30), (20, 41), (33, 200), (7, 3)]]
    return network(Module(), [draw.floats(11, 6), draw.ints(11, 2, 30)], [("x", {0: "nodes"}), ("edges", {1: "edges"})], ["read", "nodes", "left"], calls)


@case
def peaks():
    """Peaks of heat maps (CenterNet): what is greatest around it and above a threshold, with offsets and sizes read there, the best first."""
    torch, n, f = nn()

    class Module(n.Module):
        def __init__(self):
            super().__init__()
            self.net, self.heat, self.rest = n.Sequential(n.Conv2d(3, 16, 5, 2, 2), n.ReLU(), n.Conv2d(16, 16, 3, 2, 1), n.ReLU()), n.Conv2d(16, 3, 1), n.Conv2d(16, 4, 1)

        def forward(self, image):
            x = self.net(image)
            heat, rest = torch.sigmoid(20 * self.heat(x)), self.rest(x)
            top = (f.max_pool2d(heat, 3, 1, 1) == heat) & (heat > heat.mean())
            picture, kind, row, column = torch.where(top)
            score, order = torch.sort(heat[picture, kind, row, column], descending=True)
            picture, kind, row, column = picture[order], kind[order], row[order], column[order]
            own = rest[picture, :, row, column]
            centre = torch.stack([column, row], -1) + own[:, :2]
            size = torch.exp(own[:, 2:])
            return torch.cat([centre - size, centre + size], -1) * 4, score, kind, picture

    draw = Drawn()
    calls = [[draw.floats(b, 3, h, w)] for b, h, w in [(1, 32, 32), (1, 33, 47), (2, 40, 24), (1, 64, 96)]]
    return network(Module(), [draw.floats(2, 3, 36, 44)], [("image", {0: "batch", 2: "h", 3: "w"})], ["boxes", "scores", "kinds", "pictures"], calls)


@case
def memory():
    """A table of keys with products of halves (product-key memory), read sparsely and summed by an index that an input names."""
    torch, n, f = nn()

    class Module(n.Module):
        def __init__(self):
            super().__init__()
            self.query, self.left, self.right, self.values = n.Linear(12, 16), n.Parameter(torch.randn(9, 8)), n.Parameter(torch.randn(9, 8)), n.Embedding(81, 12)

        def forward(self, x, segment, count):
            q = self.query(x)
            a, ai = torch.topk(q[..., :8] @ self.left.t(), 3, -1)
            b, bi = torch.topk(q[..., 8:] @ self.right.t(), 3, -1)
            best, at = torch.topk((a[..., :, None] + b[..., None, :]).flatten(-2), 4, -1)
            ids = ai.gather(-1, at // 3) * 9 + bi.gather(-1, at % 3)
            y = (torch.softmax(best, -1)[..., None] * self.values(ids)).sum(-2)
            size = int(count.item())
            torch._check(size >= 1)
            torch._check(size <= 4096)
            return torch.zeros(size, 12).index_add(0, segment, y), ids

    draw = Drawn()
    calls = [[draw.floats(rows, 12), draw.ints(parts, rows), np.array(parts)] for rows, parts in [(3, 2), (8, 5), (9, 9), (40, 3), (100, 31)]]
    return network(Module(), [draw.floats(7, 12), draw.ints(3, 7), np.array(3)], [("x", {0: "rows"}), ("segment", {0: "rows"}), ("count", {})], ["sums", "ids"], calls)
