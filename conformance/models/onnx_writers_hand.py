#!/usr/bin/env python3
"""Models that are written operator by operator with Spox, ONNX Script and ndonnx, and trees by Hummingbird, for `onnx_sizes.py check`.

    onnx_writers_hand.py FOLDER [FAMILY...] [--names PART...]
"""

import numpy as np

try:
    # The annotations of ONNX Script are looked up among the names of the module.
    from onnxscript import FLOAT
except ImportError:
    FLOAT = None
from onnx_writers import each, floats, ints, main


def spox(folder, names):
    import onnx
    import spox.opset.ai.onnx.v21 as op
    from spox import Tensor, argument, build

    F, I = np.float32, np.int64
    const = lambda value, kind=I: op.const(np.asarray(value, kind))
    weight = lambda *dims: op.const(floats(*dims) * np.float32(0.3))
    makers = []

    def ranked(value, rank):
        """A result with as many dimensions as Spox does not find out itself."""
        return op.reshape(value, const([0] * rank)) if rank else value

    def maker(specs, calls, ranks=None):
        """Marks what makes results of inputs with the specs (type, dims)."""

        def mark(function):
            def made():
                inputs = [argument(Tensor(kind, dims)) for kind, dims in specs]
                results = function(*inputs)
                model = build({f"x{i}": value for i, value in enumerate(inputs)}, {f"y{i}": ranked(value, ranks[i] if ranks else None) for i, value in enumerate(results)})
                return lambda path: onnx.save(model, path), calls

            made.__name__ = function.__name__
            makers.append(made)

        return mark

    ROWS = ((1, 5), (4, 9), (7, 3))

    @maker([(F, ("b", "n")), (I, ())], [[floats(b, n), np.array(k)] for (b, n), k in zip(ROWS, (0, 3, 5))], [2, 1])
    def nested(x, times):
        """A branch in a loop in a scan over rows, with values of all around."""
        w = op.reduce_mean(x, const([1]), keepdims=0)

        def row(line):
            def again(i, _, value):
                (taken,) = op.if_(
                    op.greater(op.reduce_sum(value, keepdims=0), op.reduce_sum(w, keepdims=0)),
                    then_branch=lambda: [op.sub(value, op.mul(line, const(0.5, F)))],
                    else_branch=lambda: [op.add(value, op.cast(i, to=F))],
                )
                return [const(True, bool), taken, op.reduce_max(taken, keepdims=0)]

            value, maxima = op.loop(times, v_initial=[line], body=again)
            return [value, op.reduce_sum(maxima, keepdims=0)]

        # A state would be taken for a row by Spox 0.18.
        return op.scan([x], body=row, num_scan_inputs=1)

    @maker([(F, ("n", 6)), (I, ("k",))], [[floats(n, 6), np.array(parts)] for n, parts in ((6, [2, 4]), (9, [3, 3, 3]), (5, [1, 0, 4]))], [2, 3, None])
    def lists(x, parts):
        pieces = op.split_to_sequence(x, parts)
        (means,) = op.sequence_map(pieces, body=lambda piece: [op.concat([op.reduce_sum(piece, const([0]), keepdims=1), op.cast(op.unsqueeze(op.shape(piece), const([0])), to=F)], axis=1)])
        turned = op.sequence_insert(means, op.sequence_at(means, const(0)), const(0))
        return op.concat_from_sequence(turned, axis=0), op.concat_from_sequence(means, axis=0, new_axis=1), op.sequence_length(turned)

    @maker([(F, ("b", "n"))], [[floats(b, n)] for b, n in ((1, 400), (2, 640), (1, 1024))], [3, 4, 3])
    def sounds(x):
        """Mel features as the opset has them: windows, spectra, a bank of filters."""
        spectrum = op.stft(op.unsqueeze(x, const([2])), const(64), op.hann_window(const(128)), const(128), onesided=1)
        power = op.reduce_sum(op.mul(spectrum, spectrum), const([3]), keepdims=0)
        mel = op.mel_weight_matrix(const(20), const(128), const(16000), const(50.0, F), const(7000.0, F))
        features = op.log(op.add(op.matmul(power, mel), const(1e-5, F)))
        return features, op.mean_variance_normalization(op.unsqueeze(features, const([1])), axes=(2, 3)), op.cumsum(features, const(1))

    @maker([(I, ("b", "n"))], [[ints(40, b, n, dtype=I)] for b, n in ROWS], [2, 1])
    def beams(ids):
        """Three beams for six steps, with the scores of a small network over what is written."""
        table, out = weight(40, 16), weight(16, 40)
        batch = op.slice(op.shape(ids), const([0]), const([1]))
        words = op.reshape(op.expand(op.unsqueeze(ids, const([1])), op.concat([batch, const([3]), op.slice(op.shape(ids), const([1]), const([2]))], axis=0)), op.concat([op.mul(batch, const([3])), op.slice(op.shape(ids), const([1]), const([2]))], axis=0))
        first = op.reshape(op.expand(const([[0.0, -1e9, -1e9]], F), op.concat([batch, const([3])], axis=0)), const([-1]))

        def step(i, _, words, scores):
            state = op.tanh(op.reduce_mean(op.gather(table, words), const([1]), keepdims=0))
            found = op.add(op.log_softmax(op.matmul(state, out), axis=1), op.unsqueeze(scores, const([1])))
            best, places = op.top_k(op.reshape(found, op.concat([batch, const([120])], axis=0)), const([3]), axis=1)
            rows = op.add(op.div(places, const(40)), op.unsqueeze(op.mul(op.range(const(0), op.squeeze(batch, const([0])), const(1)), const(3)), const([1])))
            words = op.concat([op.gather(words, op.reshape(rows, const([-1]))), op.reshape(op.mod(places, const(40)), const([-1, 1]))], axis=1)
            return [const(True, bool), words, op.reshape(best, const([-1]))]

        # The line of words grows, so its size is left open.
        words, scores = op.loop(const(6), v_initial=[op.reshape(words, op.concat([op.mul(batch, const([3])), const([-1])], axis=0)), first], body=step)
        return words, scores

    @maker([(F, ("b", 4, "h", "w"))], [[floats(b, 4, h, w)] for b, h, w in ((1, 8, 10), (2, 13, 9), (1, 16, 16))], [4] * 10)
    def windows(x):
        kernel, deep, turned = weight(6, 4, 3, 3), weight(8, 1, 3, 3), weight(4, 2, 3, 3)
        a = op.conv(x, kernel, auto_pad="SAME_UPPER", strides=(2, 2))
        b = op.conv_transpose(x, turned, group=2, strides=(2, 2), auto_pad="SAME_LOWER")
        c = op.lp_pool(x, kernel_shape=(3, 2), p=2, strides=(2, 1), ceil_mode=1)
        top, places = op.max_pool(x, kernel_shape=(2, 2), strides=(2, 2))
        d = op.max_unpool(top, places, kernel_shape=(2, 2), strides=(2, 2))
        grid = op.affine_grid(op.expand(const([[[0.9, 0.1, 0.0], [-0.1, 0.8, 0.1]]], F), op.concat([op.slice(op.shape(x), const([0]), const([1])), const([2, 3])], axis=0)), op.shape(x), align_corners=1)
        e = op.grid_sample(x, grid, mode="cubic", padding_mode="reflection", align_corners=1)
        f = op.group_normalization(op.conv(x, deep, group=4), op.const(floats(8)), op.const(floats(8)), num_groups=2)
        g = op.center_crop_pad(x, const([9, 9]), axes=(2, 3))
        h = op.average_pool(x, kernel_shape=(3, 3), dilations=(2, 2), pads=(1, 1, 1, 1), count_include_pad=1, ceil_mode=1)
        return a, b, c, d, e, f, g, h, op.lrn(x, size=3), op.space_to_depth(op.slice(x, const([0, 0]), const([8, 8]), const([2, 3])), blocksize=2)

    @maker([(F, ("n", 4)), (F, ("n",)), (I, ("n",))], [[np.concatenate([corner := np.random.default_rng(n).random((n, 2)).astype(F), corner + 0.4], 1), np.random.default_rng(n + 1).random(n).astype(F), ints(3, n, dtype=I)] for n in (12, 30, 1)])
    def boxes(box, score, kind):
        """Boxes of each kind apart by an offset, the best of them, and how many there are of each."""
        moved = op.add(box, op.unsqueeze(op.mul(op.cast(kind, to=F), const(4.0, F)), const([1])))
        kept = op.non_max_suppression(op.unsqueeze(moved, const([0])), op.unsqueeze(op.unsqueeze(score, const([0])), const([0])), const(20), const(0.5, F), const(0.1, F))
        rows = op.squeeze(op.slice(kept, const([2]), const([3]), const([1])), const([1]))
        values, _, _, counts = op.unique(op.gather(kind, rows))
        spread = op.scatter_elements(op.expand(const(0), const([5])), values, counts, axis=0, reduction="add")
        return op.gather(box, rows), op.gather(score, rows), values, counts, spread, op.compress(box, op.greater(score, const(0.5, F)), axis=0)

    @maker([(F, ("b", 64))], [[floats(b, 64)] for b in (1, 5, 12)])
    def codes(x):
        """Numbers of 4 bits in blocks and floats of 8 bits, in and out."""
        import ml_dtypes

        packed = op.const(ints(7, 64, 48).astype(ml_dtypes.int4))
        y = op.matmul(x, op.dequantize_linear(packed, op.const(np.abs(floats(4, 48)) * F(0.1)), axis=0, block_size=16))
        small = op.quantize_linear(y, const(0.05, F), op.const(np.array(0, ml_dtypes.float8_e4m3fn)))
        z = op.matmul(op.dequantize_linear(small, const(0.05, F)), op.dequantize_linear(op.const((floats(48, 32) * 8).astype(ml_dtypes.float8_e5m2)), op.const(np.abs(floats(32)) * F(0.1)), axis=1))
        nibbles = op.quantize_linear(z, const(2.0, F), op.const(np.array(8, ml_dtypes.uint4)))
        return y, z, op.dequantize_linear(nibbles, const(2.0, F), op.const(np.array(8, ml_dtypes.uint4)))

    @maker([(F, ("b", "n", 8)), (np.int32, ("b",))], [[floats(b, n, 8), np.full(b, n, np.int32) - (np.arange(b) % 3 if n > 3 else 0)] for b, n in ROWS])
    def recurrences(x, lengths):
        lengths = op.cast(lengths, to=np.int32)
        y = op.transpose(x, perm=(1, 0, 2))
        a, last, cell = op.lstm(y, weight(2, 24, 8), weight(2, 24, 6), weight(2, 48), lengths, P=weight(2, 18), hidden_size=6, direction="bidirectional")
        b, end = op.gru(op.squeeze(op.slice(a, const([0]), const([1]), const([1])), const([1])), weight(1, 15, 6), weight(1, 15, 5), weight(1, 30), lengths, hidden_size=5, linear_before_reset=1, direction="reverse")
        c, _ = op.rnn(y, weight(1, 4, 8), weight(1, 4, 4), hidden_size=4, activations=("Affine",), activation_alpha=(0.5,), activation_beta=(0.1,), clip=1.0)
        return a, last, cell, b, end, c, op.reverse_sequence(y, op.cast(lengths, to=I), time_axis=0, batch_axis=1)

    @maker([(F, ("b", "n", "n"))], [[floats(b, n, n)] for b, n in ((1, 3), (4, 5), (2, 8))])
    def matrices(x):
        eye = op.eye_like(op.squeeze(op.slice(x, const([0]), const([1]), const([0])), const([0])), dtype=F)
        near = op.add(op.mul(x, const(0.1, F)), eye)

        def again(i, _, inverse):
            return [const(True, bool), op.matmul(inverse, op.sub(op.mul(eye, const(2.0, F)), op.matmul(near, inverse)))]

        (inverse,) = op.loop(const(6), v_initial=[op.sub(op.mul(eye, const(2.0, F)), near)], body=again)
        diagonal = op.einsum([near], equation="bii->bi")
        return op.det(near), inverse, diagonal, op.einsum([near, x, diagonal], equation="bij,bjk,bk->bi"), op.trilu(x, const(1), upper=0), op.hardmax(x, axis=1), op.reduce_log_sum_exp(x, const([1, 2]), keepdims=0)

    each(folder, "spox", makers, names)


def ndx(folder, names):
    import ndonnx as nd
    import onnx

    def give(function, specs, calls):
        def made():
            inputs = [nd.argument(shape=dims, dtype=kind) for kind, dims in specs]
            results = function(*inputs)
            model = nd.build({f"x{i}": value for i, value in enumerate(inputs)}, {f"y{i}": value for i, value in enumerate(results)})
            return lambda path: onnx.save(model, path), calls

        made.__name__ = function.__name__
        return made

    def neighbours(x, y):
        apart = nd.sum(nd.square(nd.expand_dims(x, axis=1) - nd.expand_dims(y, axis=0)), axis=2)
        order = nd.argsort(apart, axis=1)
        return nd.take(y, order[:, 0], axis=0), nd.sqrt(nd.min(apart, axis=1)), nd.mean(nd.sort(apart, axis=1)[:, :2], axis=1)

    def tables(x):
        mean, spread = nd.mean(x, axis=0, keepdims=True), nd.std(x, axis=0, keepdims=True)
        y = nd.where(nd.abs(x - mean) > 2 * spread, mean, x)
        z = nd.concat([y, y * y, nd.roll(y, 1, axis=0), nd.cumulative_sum(y, axis=0)], axis=1)
        return z, nd.argmax(z, axis=1), nd.any(z > 1, axis=0), nd.flip(z, axis=1), nd.tril(nd.matmul(z, z.T)), nd.floor(z) // 2, nd.astype(z, nd.int32) % 3

    def chosen(x):
        y = x[x[:, 0] > 0]
        return y, nd.sum(y, axis=0), nd.nonzero(x > 1)[0], nd.unique_values(nd.astype(nd.round(x[:, 1]), nd.int64))

    rows = [[floats(n, 4)] for n in (5, 9, 30)]
    f = nd.float32
    each(folder, "ndonnx", [give(neighbours, [(f, ("n", 4)), (f, ("m", 4))], [[floats(n, 4), floats(m, 4)] for n, m in ((5, 7), (9, 3), (1, 20))]), give(tables, [(f, ("n", 4))], rows), give(chosen, [(f, ("n", 4))], rows)], names)


def script(folder, names):
    """Functions of the model's own, with attributes, that call each other."""
    import onnx
    from onnxscript import script as scripted
    from onnxscript import opset18 as op
    from onnxscript.values import Opset

    own = Opset("own.functions", 1)

    @scripted(own)
    def Gated(x, w, alpha: float = 1.0):
        return op.Elu(op.MatMul(x, w), alpha=alpha) * op.Sigmoid(x)

    @scripted(own)
    def Twice(x, w):
        return Gated(Gated(x, w, alpha=0.5), w, alpha=2.0)

    w = onnx.numpy_helper.from_array(floats(8, 8) * np.float32(0.3))

    @scripted()
    def model(x: FLOAT["n", 8]) -> (FLOAT["n", 8], FLOAT["m", 8]):
        weights = op.Constant(value=w)
        total = Twice(x, weights)
        i = op.Constant(value_int=0)
        limit = op.Size(x) / 16
        more = i < limit
        while more:
            if op.ReduceSum(total, keepdims=0) > 0.0:
                total = Gated(total, weights, alpha=0.1) - x
            else:
                total = total + x
            i = i + 1
            more = i < limit
        return total, op.Compress(total, op.ReduceMax(x, op.Constant(value_ints=[1]), keepdims=0) > 1.0, axis=0)

    def functions():
        return lambda path: onnx.save(model.to_model_proto(ir_version=9), path), [[floats(n, 8)] for n in (2, 5, 11)]

    each(folder, "script", [functions], names)


def trees(folder, names):
    """Forests as matrices and as ways through tables, which Hummingbird writes through PyTorch."""
    import hummingbird.ml as hb
    import torch
    from sklearn import datasets, ensemble, linear_model, preprocessing
    from sklearn.pipeline import make_pipeline

    x, y = datasets.make_classification(300, 8, n_informative=5, n_classes=3, random_state=0)
    x = x.astype(np.float32)

    def maker(name, model, way):
        def made():
            model.fit(x, y)
            module = hb.convert(model, "torch", x, extra_config={"tree_implementation": way} if way else {})

            def write(path):
                torch.onnx.export(module.model, (torch.from_numpy(x[:5]),), path, dynamo=False, opset_version=17, input_names=["x"], dynamic_axes={"x": {0: "n"}})

            return write, [[x[:n]] for n in (1, 5, 33)]

        made.__name__ = name
        return made

    forest = lambda: ensemble.RandomForestClassifier(8, max_depth=4, random_state=0)
    makers = [maker(f"forest_{way}", forest(), way) for way in ("gemm", "tree_trav", "perf_tree_trav")]
    makers += [maker("boosted", ensemble.GradientBoostingClassifier(n_estimators=8), None), maker("logistic", make_pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression()), None)]
    each(folder, "trees", makers, names)


FAMILIES = {"spox": spox, "ndonnx": ndx, "script": script, "trees": trees}


if __name__ == "__main__":
    main(__doc__, FAMILIES)
