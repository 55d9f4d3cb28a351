"""The networks of JAX that onnx_writers.py has jax2onnx write: functions and modules of Flax and Equinox, with layers as a scan over stacked weights, loops and branches."""

from onnx_writers import each, floats, ints


def jax(folder, names):
    import equinox as eqx
    import jax as j
    import jax.numpy as np
    from flax import nnx
    from jax import lax
    from jax2onnx import to_onnx

    weight = lambda *dims: np.array(floats(*dims)) * 0.2
    makers = []

    def maker(specs, calls, **more):
        """Marks what makes a function for inputs of the specs."""

        def mark(function):
            def made():
                run = function()
                return lambda path: to_onnx(run, specs, return_mode="file", output_path=path, **more), calls

            made.__name__ = function.__name__
            makers.append(made)
            return function

        return mark

    def norm(x):
        return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)

    ROWS, PICTURES = [[floats(b, n, 16)] for b, n in ((1, 5), (2, 9), (3, 17))], [[floats(b, 32, 32, 3)] for b in (1, 3, 2)]

    @maker([("B", 32, 32, 3)], PICTURES)
    def vit():
        rngs = nnx.Rngs(0)

        class Block(nnx.Module):
            def __init__(self):
                self.first, self.second = nnx.LayerNorm(32, rngs=rngs), nnx.LayerNorm(32, rngs=rngs)
                self.attention = nnx.MultiHeadAttention(4, 32, decode=False, rngs=rngs)
                self.up, self.down = nnx.Linear(32, 64, rngs=rngs), nnx.Linear(64, 32, rngs=rngs)

            def __call__(self, x):
                x = x + self.attention(self.first(x))
                return x + self.down(nnx.gelu(self.up(self.second(x))))

        class Network(nnx.Module):
            def __init__(self):
                self.patches = nnx.Conv(3, 32, (8, 8), (8, 8), rngs=rngs)
                self.places, self.blocks, self.out = nnx.Param(weight(1, 16, 32)), nnx.List([Block(), Block()]), nnx.Linear(32, 5, rngs=rngs)

            def __call__(self, x):
                x = self.patches(x)
                x = x.reshape(x.shape[0], -1, 32) + self.places[...]
                for block in self.blocks:
                    x = block(x)
                return self.out(x.mean(1))

        return Network()

    @maker([("B", 32, 32, 3)], PICTURES)
    def convolutions():
        rngs = nnx.Rngs(1)

        class Network(nnx.Module):
            def __init__(self):
                self.first, self.norm = nnx.Conv(3, 8, (3, 3), rngs=rngs), nnx.BatchNorm(8, use_running_average=True, rngs=rngs)
                self.deep, self.group = nnx.Conv(8, 8, (3, 3), feature_group_count=8, rngs=rngs), nnx.GroupNorm(8, num_groups=2, rngs=rngs)
                self.up = nnx.ConvTranspose(8, 4, (3, 3), (2, 2), rngs=rngs)

            def __call__(self, x):
                x = nnx.relu(self.norm(self.first(x)))
                x = nnx.avg_pool(nnx.silu(self.group(self.deep(x))), window_shape=(2, 2), strides=(2, 2))
                return self.up(x), nnx.max_pool(x, window_shape=(3, 3), strides=(2, 2), padding="SAME")

        return Network()

    @maker([j.ShapeDtypeStruct((2, 12), np.int32)], [[ints(50, 2, 12)], [ints(50, 2, 12)]])
    def decoder():
        table, stacked = weight(50, 32), {"qkv": weight(3, 32, 96), "out": weight(3, 32, 32), "up": weight(3, 32, 128), "down": weight(3, 64, 32)}

        def turned(x):
            angles = np.arange(x.shape[1])[:, None] / 100.0 ** (np.arange(4) / 4)
            a, b = x[..., :4], x[..., 4:]
            sin, cos = np.sin(angles)[None, :, None], np.cos(angles)[None, :, None]
            return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

        def layer(x, w):
            q, k, v = np.split((norm(x) @ w["qkv"]).reshape(*x.shape[:2], 4, 24), 3, -1)
            x = x + j.nn.dot_product_attention(turned(q), turned(k), v, is_causal=True).reshape(x.shape) @ w["out"]
            up, gate = np.split(norm(x) @ w["up"], 2, -1)
            return x + (up * j.nn.silu(gate)) @ w["down"], None

        return lambda ids: norm(lax.scan(layer, table[ids], stacked)[0]) @ table.T

    @maker([("B", 12, 16)], [[floats(b, 12, 16)] for b in (1, 4, 2)])
    def recurrent():
        w, u = weight(16, 32), weight(8, 32)

        def network(x):
            def step(state, now):
                h, c = state
                i, f, g, o = np.split(now @ w + h @ u, 4, -1)
                c = j.nn.sigmoid(f) * c + j.nn.sigmoid(i) * np.tanh(g)
                h = j.nn.sigmoid(o) * np.tanh(c)
                return (h, c), h

            zero = np.zeros((x.shape[0], 8))
            last, all_ = lax.scan(step, (zero, zero), x.transpose(1, 0, 2))
            return all_.transpose(1, 0, 2), last[0]

        return network

    @maker([("B", 16)], [[floats(b, 16)] for b in (1, 4, 2)])
    def fixed_point():
        w = weight(16, 16)

        def network(x):
            again = lambda s: (s[0] + 1, np.tanh(s[1] @ w + x), s[1])
            steps, z, before = lax.while_loop(lambda s: (s[0] < 50) & (np.abs(s[1] - s[2]).max() > 1e-3), again, (0, x, x + 1))
            return z, lax.fori_loop(0, 5, lambda i, v: v * 0.9 + i, z), lax.cond(z.sum() > 0, lambda v: v * 2, lambda v: v - 1, z)

        return network

    @maker([("B", 6, 16)], [[floats(b, 6, 16)] for b in (1, 4, 2)])
    def operators():
        def network(x):
            first = np.sort(x, -1), np.argsort(x, -1), lax.top_k(x, 3)[0], np.cumsum(x, axis=1), np.roll(x, 2, 1), x[:, ::-1, 1:-1:2]
            second = x.at[:, 2, :].add(1.0), x.at[:, 1:3].multiply(2.0), x.at[:, np.array([0, 2, 2])].max(0.5), np.take_along_axis(x, np.argmax(x, -1, keepdims=True), -1)
            third = np.einsum("bij,bkj->bik", x, x), j.nn.logsumexp(x, 1), np.linalg.norm(x, axis=-1), np.clip(x, -0.5, 0.5), np.where(x > 0, np.log1p(np.abs(x)), j.scipy.special.erf(x))
            return (*first, *second, *third, j.nn.one_hot(np.argmax(x, -1), 16), np.pad(x, ((0, 0), (1, 2), (0, 1)), mode="edge"), lax.dynamic_slice(x, (0, 1, 2), (1, 3, 4)), np.tri(6) @ x, np.exp2(x), np.arctan2(x, x + 2))

        return network

    @maker([("B", 64, 16)], [[floats(b, 64, 16)] for b in (1, 4, 2)])
    def state_space():
        a, b, c = weight(16, 4), weight(16, 4), weight(16, 4)

        def network(x):
            step = j.nn.softplus(x)[..., None]
            kept, into = np.exp(-step * np.exp(a)), step * b * x[..., None]

            def one(state, now):
                state = state * now[0] + now[1]
                return state, (state * c).sum(-1)

            return np.swapaxes(lax.scan(one, np.zeros_like(into[:, 0]), (np.swapaxes(kept, 0, 1), np.swapaxes(into, 0, 1)))[1], 0, 1)

        return network

    @maker([(4, 10, 3), (4, 10, 10)], [[floats(4, 10, 3), floats(4, 10, 10)] for _ in range(2)])
    def graph():
        w = weight(3, 8)

        def network(x, edges):
            apart = ((x[:, :, None] - x[:, None]) ** 2).sum(-1)
            near = lax.top_k(-apart, 4)[1]
            taken = j.vmap(lambda rows, places: rows[places])(x, near)
            weights = j.nn.softmax(np.where(edges > 0, edges, -1e9), -1)
            return (taken @ w).max(2), weights @ (x @ w), j.vmap(lambda rows, groups: j.ops.segment_sum(rows, groups, 5))(x, near[..., 1] % 5)

        return network

    @maker([("B", 16)], [[floats(b, 16)] for b in (1, 4, 2)])
    def equinox():
        network = eqx.nn.MLP(16, 4, 32, 3, activation=j.nn.gelu, key=j.random.PRNGKey(0))
        return lambda x: j.vmap(network)(x)

    @maker([("B", "N", 16)], ROWS)
    def mixer():
        w, u = weight(16, 32), weight(32, 16)
        return lambda x: x + j.nn.gelu(norm(x) @ w) @ u + norm(x).mean(1, keepdims=True) + np.cumsum(x, axis=1) / (np.arange(x.shape[1])[:, None] + 1.0)

    each(folder, "jax", makers, names)
