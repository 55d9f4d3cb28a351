"""The backend of `torch.compile`. Skipped, loudly, where PyTorch or its exporter is not installed."""

from __future__ import annotations

import warnings

import pytest

torch = pytest.importorskip("torch", reason="SKIPPED: PyTorch is not installed")
pytest.importorskip("onnxscript", reason="SKIPPED: onnxscript is not installed")

import halite
import halite.torch

F = torch.nn.functional


@pytest.fixture(autouse=True)
def fresh():
    torch.manual_seed(1)
    torch._dynamo.reset()
    halite.torch.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture
def options(device):
    return {"device": device, "cache": False}


def compiled(model, options, **more):
    return torch.compile(model, backend="halite", options=options, **more)


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.convolve = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.normalize = torch.nn.BatchNorm2d(8)
        self.classify = torch.nn.Linear(8, 5)

    def forward(self, x):
        x = F.relu(self.normalize(self.convolve(x)))
        return F.softmax(self.classify(x.mean((2, 3))), dim=-1)


class Attention(torch.nn.Module):
    def __init__(self, **choices):
        super().__init__()
        self.embed = torch.nn.Embedding(50, 16)
        self.layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, **choices)
        self.look = torch.nn.MultiheadAttention(16, 4, batch_first=True)

    def forward(self, tokens, *, padding=None, mask=None):
        x = self.layer(self.embed(tokens), src_key_padding_mask=padding, src_mask=mask)
        y, weights = self.look(x, x, x, key_padding_mask=padding)
        return y, weights


def test_networks_give_what_pytorch_gives(options):
    model, x = Network().eval(), torch.randn(2, 3, 8, 8)
    fast = compiled(model, options)
    with torch.no_grad():
        want = model(x)
        for _ in range(3):
            assert torch.allclose(fast(x), want, atol=1e-5)
    (record,) = halite.torch.report()
    assert (record.on, record.calls, record.sessions) == ("halite", 3, 1)
    assert "halite" in halite.torch.explain()


@pytest.mark.parametrize("choices", [{}, {"norm_first": True, "activation": "gelu"}], ids=str)
def test_attention_runs(options, choices):
    model, tokens = Attention(**choices).eval(), torch.randint(0, 50, (2, 7))
    fast = compiled(model, {**options, "fallback": False})
    padding = torch.arange(7)[None] >= torch.tensor([[7], [4]])
    ways = {}, {"padding": padding}, {"mask": torch.ones(7, 7, dtype=torch.bool).triu(1)}
    with torch.inference_mode():
        for way in ways:
            for got, want in zip(fast(tokens, **way), model(tokens, **way)):
                got, want = (x[0] if "padding" in way else x for x in (got, want))
                assert torch.allclose(got, want, atol=1e-4)
    assert {record.on for record in halite.torch.report()} == {"halite"}


def test_open_sizes_stay_open(options):
    model = Network().eval()
    fast = compiled(model, options, dynamic=True)
    with torch.no_grad():
        for size in (2, 5, 3, 9):
            x = torch.randn(size, 3, 8, 8 + size)
            assert torch.allclose(fast(x), model(x), atol=1e-5)
    on_device = [record for record in halite.torch.report() if record.on == "halite"]
    assert sum(record.calls for record in on_device) == 4 and sum(record.sessions for record in on_device) == 1


def test_changed_weights_count(options):
    model, x = Network().eval(), torch.randn(1, 3, 8, 8)
    fast = compiled(model, options)
    with torch.no_grad():
        fast(x)
        model.classify.weight.add_(1.0)
        model.classify.bias[0] = 3.0
        assert torch.allclose(fast(x), model(x), atol=1e-5)
        other = Network().eval()
        model.load_state_dict(other.state_dict())
        assert torch.allclose(fast(x), other(x), atol=1e-5)


def test_graphs_are_split_around_what_cannot_run(options):
    def computes(x):
        x = torch.relu(x @ x) + 1
        values, vectors = torch.linalg.eigh(x + x.T)
        return torch.sigmoid(values * 2 + 1), x.exp()

    x = torch.randn(6, 6)
    with torch.no_grad():
        got, want = compiled(computes, options)(x), computes(x)
    assert all(torch.allclose(a, b, rtol=1e-4, atol=1e-4) for a, b in zip(got, want))
    report = halite.torch.report()
    places = [record.on for record in report]
    assert "pytorch" in places and "halite" in places, halite.torch.explain()
    (eager,) = [record for record in report if record.on == "pytorch"]
    assert any("eigh" in name for name in eager.names) and "eigh" in eager.reason
    with torch.no_grad(), pytest.raises(Exception, match="refuses"):
        torch._dynamo.reset()
        compiled(computes, {**options, "fallback": False})(x)


def test_what_pytorch_breaks_apart_runs_in_parts(options):
    def computes(x):
        y = torch.relu(x) * 2
        if y.sum() > 0:
            return y + 1
        return y - 1

    fast = compiled(computes, options)
    with torch.no_grad():
        for x in (torch.ones(4), -torch.ones(4)):
            assert torch.allclose(fast(x), computes(x))
    assert [record.on for record in halite.torch.report()] == ["halite"] * 3


def test_gradients_stay_in_pytorch(options):
    model, x = torch.nn.Linear(4, 2), torch.randn(3, 4)
    compiled(model, options)(x).sum().backward()
    assert model.weight.grad is not None
    (record,) = halite.torch.report()
    assert record.on == "pytorch" and "no_grad" in record.reason


def test_tensors_changed_in_place_are_seen(options):
    def computes(x):
        x.add_(1)
        return (x * 2).tanh()

    a, b = torch.randn(5), None
    b = a.clone()
    with torch.no_grad():
        assert torch.allclose(compiled(computes, options)(a), computes(b), atol=1e-6) and torch.equal(a, b)
    assert "in place" in halite.torch.explain()


class Written(torch.nn.Module):
    """Gives views of an argument, of a buffer and of a result, and writes to them behind a break of the graph."""

    def __init__(self):
        super().__init__()
        self.register_buffer("kept", torch.zeros(2, 3))

    def forward(self, x):
        flat, row, result = x.view(-1), self.kept[0], x.exp()
        part = F.relu(result.t()[1:], inplace=True)
        torch._dynamo.graph_break()
        flat.add_(1)
        row.add_(x[0])
        part.mul_(2)
        return result + self.kept, x.t()


def test_results_share_memory_as_in_pytorch(options):
    model, other, a = Written(), Written(), torch.randn(2, 3)
    fast, b = compiled(model, options), a.clone()
    with torch.no_grad():
        for _ in range(3):
            (got, view), (want, _) = fast(a), other(b)
            assert torch.allclose(got, want, atol=1e-4) and torch.allclose(a, b)
            assert view.untyped_storage().data_ptr() == a.untyped_storage().data_ptr()
    assert torch.allclose(model.kept, other.kept)
    assert "halite" in {record.on for record in halite.torch.report()}


def test_parts_write_to_views_of_arguments(options):
    def computes(x, kept):
        kept[:, : x.shape[1]].copy_(x * 2)
        kept.add_(1)
        return torch.tanh(kept.sum(1) + x.sum(1)), kept

    fast = compiled(computes, options)
    with torch.no_grad():
        for size in (4, 5, 6):
            x, a = torch.randn(3, size), torch.randn(3, 8)
            b = a.clone()
            (got, same), (want, _) = fast(x, a), computes(x, b)
            assert torch.allclose(got, want, atol=1e-6) and torch.equal(a, b) and same is a
    assert "halite" in {record.on for record in halite.torch.report()}


def test_equal_numbers_are_sorted_in_their_order(options):
    def computes(x):
        up, down = torch.sort(x, stable=True), torch.sort(x, stable=True, descending=True)
        return up.indices, down.indices, torch.argsort(x, dim=0, stable=True)

    fast = compiled(computes, {**options, "fallback": False})
    with torch.no_grad():
        for x in (torch.randint(0, 3, (4, 40)), torch.randint(0, 3, (5, 40)).float()):
            assert all(torch.equal(got, want) for got, want in zip(fast(x), computes(x)))


def test_random_numbers_are_new_in_each_call_and_follow_the_seed(options):
    def computes(x):
        noise = torch.randn_like(x)
        return torch.tanh(x * 2 + 1) + noise, F.dropout(x.exp() + 1, 0.5, training=True), torch.randint(0, 99, (8,))

    fast, x = compiled(computes, options), torch.ones(4, 8)
    with torch.no_grad():
        for seed in (1, 1, 2):
            torch.manual_seed(seed)
            got = [*fast(x), *fast(x)]
            torch.manual_seed(seed)
            want = [*computes(x), *computes(x)]
            assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(got, want))
    assert {record.on for record in halite.torch.report()} == {"halite", "pytorch"}
    assert "random" in halite.torch.explain()


def test_what_drops_out_nothing_runs_on_the_device(options):
    class Recurrent(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = torch.nn.LSTM(4, 4, 2, dropout=0.5)
            self.drop = torch.nn.Dropout(0.5)

        def forward(self, x):
            x = self.drop(x)
            return F.scaled_dot_product_attention(x, x, x), self.lstm(x)[0]

    model, x = Recurrent().eval(), torch.randn(3, 2, 4)
    with torch.no_grad():
        for got, want in zip(compiled(model, options)(x), model(x)):
            assert torch.allclose(got, want, atol=1e-5)
    assert not any("random" in (record.reason or "") for record in halite.torch.report())


def test_numbers_and_several_results(options):
    def computes(x, scale, flag):
        y = x * scale
        return (y + 1 if flag else y - 1), {"sum": x.sum(), "same": x}

    fast, x = compiled(computes, options), torch.randn(3, 4)
    with torch.no_grad():
        for scale, flag in ((2, True), (3, True), (0.5, False), (0.25, False)):
            (got, more), (want, other) = fast(x, scale, flag), computes(x, scale, flag)
            assert torch.allclose(got, want) and torch.allclose(more["sum"], other["sum"]) and more["same"] is x


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64, torch.int64, torch.bool])
def test_types(options, dtype):
    def computes(x):
        y = torch.cat([x, x.flip(0)])
        return y, y.float() + 1

    x = (torch.arange(6).reshape(3, 2) % 2).to(dtype)
    with torch.no_grad():
        got, want = compiled(computes, options)(x), computes(x)
    assert all(a.dtype == b.dtype and torch.equal(a, b) for a, b in zip(got, want))


def test_autocast_counts(options):
    model, x = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)), torch.randn(3, 8)

    def inside(x):
        with torch.autocast("cpu", torch.bfloat16):
            y = model(x)
        return torch.sigmoid(y.float()) + 1, y

    with torch.no_grad():
        for got, want in zip(compiled(inside, options)(x), inside(x)):
            assert got.dtype is want.dtype and torch.allclose(got.float(), want.float(), atol=2e-2)
        with torch.autocast("cpu", torch.float16):
            got, want = compiled(model, options)(x), model(x)
        # The graph has another type without it.
        assert compiled(model, options)(x).dtype is torch.float32
    assert got.dtype is want.dtype is torch.float16 and torch.allclose(got, want, atol=4e-3)
    assert {record.on for record in halite.torch.report()} == {"halite"}


def test_autocast_leaves_buffers_alone(options):
    class Counts(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 4)
            self.register_buffer("count", torch.zeros((), dtype=torch.int64))

        def forward(self, x):
            self.count.add_(1)
            with torch.autocast("cpu", torch.bfloat16):
                return torch.relu(self.layer(x)) * self.count

    model = Counts()
    fast = compiled(model, options)
    with torch.no_grad():
        for call in (1, 2, 3):
            fast(torch.ones(2, 4))
            assert model.count == call


def test_regions_of_autocast_are_not_cut(options):
    first, second = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)

    def computes(x):
        y = torch.relu(first(x)) * 2 + 1
        with torch.autocast("cpu", torch.bfloat16):
            z = second(torch.tanh(y))
            values = torch.linalg.eigvalsh((x @ x.mT).float())
            w = first(z) * 2
        with torch.autocast("cpu", torch.bfloat16):
            u = torch.relu(second(w.float()) + 1)
        return torch.sigmoid(values) * 3, u, w

    x = torch.randn(2, 4, 4)
    with torch.no_grad():
        for got, want in zip(compiled(computes, options)(x), computes(x)):
            assert got.dtype is want.dtype and torch.allclose(got.float(), want.float(), atol=5e-2, rtol=2e-2)
    parts = halite.torch.report()
    assert sorted(record.on for record in parts) == ["halite", "halite", "pytorch"]
    (cut,) = (record for record in parts if record.on == "pytorch")
    assert "eigvalsh" in cut.reason and cut.operators > 5


def test_what_is_mapped_over_rows_gives_what_pytorch_gives(options):
    def computes(x):
        return torch.vmap(lambda row: torch.outer(row, row).diagonal() * row.norm())(x) + 1, x * 2

    def computes_more(x):
        return *computes(x), torch.linalg.eigvalsh(x.T @ x)

    x = torch.randn(3, 4)
    for function in (computes, computes_more):
        with torch.no_grad():
            for got, want in zip(compiled(function, options)(x), function(x)):
                assert torch.allclose(got, want, atol=1e-4)


def test_wrong_options_are_named():
    with pytest.raises(Exception, match="gpu"):
        compiled(lambda x: x + 1, {"gpu": 1})(torch.ones(2))
