#!/usr/bin/env python3
"""Networks of random weights by programs that write ONNX and are not PyTorch's exporter, for `onnx_sizes.py check`.

    onnx_writers.py FOLDER [FAMILY...]

writes FAMILY_NAME.onnx for each network, with calls of several sizes in FAMILY_NAME.npz. Families: keras (with the back end that KERAS_BACKEND names),
paddle, jax (jax2onnx), tflite (through tf2onnx). Those whose packages are not installed are left out. onnx_writers_more.py has what rewrites models of others,
onnx_writers_hand.py what is written by hand.
"""
import argparse
import pathlib
import shutil
import tempfile
import traceback

import numpy as np

RANDOM = np.random.default_rng(5)


def floats(*dims):
    return RANDOM.standard_normal(dims).astype(np.float32)


def ints(most, *dims, dtype=np.int32):
    return RANDOM.integers(0, most, dims).astype(dtype)


def calls_for(folder, name, calls):
    """Writes the calls of a model that is in the folder: lists of arrays in the order of its inputs."""
    import onnx

    model = onnx.load(folder / f"{name}.onnx", load_external_data=False)
    own = {value.name for value in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in own]
    arrays = {}
    for index, call in enumerate(calls):
        for value, array in zip(inputs, call):
            arrays[f"{index}/{value.name}"] = array.astype(onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type))
    np.savez(folder / f"{name}.npz", **arrays)
    operators = sorted({node.domain + ":" + node.op_type if node.domain else node.op_type for node in model.graph.node})
    print(f"{name}: {len(calls)} calls, opset {model.opset_import[0].version}, {len(model.graph.node)} nodes: {' '.join(operators)[:300]}", flush=True)


def each(folder, family, makers, names):
    """Runs makers of (what writes a path, calls), and says which fail."""
    for make in makers:
        name = f"{family}_{make.__name__}"
        if names and not any(part in name for part in names):
            continue
        try:
            write, calls = make()
            write(str(folder / f"{name}.onnx"))
            calls_for(folder, name, calls)
        except (Exception, SystemExit):  # noqa: BLE001: exporters fail in many ways, and one leaves.
            for path in folder.glob(f"{name}.onnx*"):
                path.unlink()
            print(f"{name}: not exported: {' '.join(traceback.format_exc().split())[-240:]}", flush=True)


def keras(folder, names):
    import keras as k

    l, ops = k.layers, k.ops
    k.utils.set_random_seed(1)
    pictures = lambda *sizes: [[floats(b, h, w, 3)] for b, h, w in sizes]
    SIZES = pictures((1, 64, 64), (2, 96, 64), (1, 77, 101))

    def shaken(model):
        """Draws what norms multiply and add, which begin as ones and zeros."""
        for weight in (weight for weight in model.weights if "normalization" in weight.path and weight.shape):
            weight.assign(floats(*weight.shape) * 0.1 + (1 if "gamma" in weight.path or "variance" in weight.path else 0))

    def writes(model, calls):
        shaken(model)
        # It asks for a model that has been called.
        model(calls[0] if len(calls[0]) > 1 else calls[0][0])
        return lambda path: model.export(path, format="onnx", verbose=False), calls

    def application(make, **more):
        return lambda: writes(make(weights=None, include_top=False, input_shape=(None, None, 3), **more), SIZES)

    makers = []

    def maker(function, name=None):
        function.__name__ = name or function.__name__
        makers.append(function)
        return function

    a = k.applications
    for name, make in {"mobilenet_v3": a.MobileNetV3Small, "efficientnet_v2": a.EfficientNetV2B0, "densenet": a.DenseNet121, "xception": a.Xception, "convnext": a.ConvNeXtTiny}.items():
        maker(application(make), name)

    @maker
    def recurrent_pictures():
        x = l.Input((None, 16, 16, 2))
        y = l.ConvLSTM2D(4, 3, padding="same", return_sequences=True)(x)
        y = l.TimeDistributed(l.LayerNormalization())(y)
        y = l.ConvLSTM2D(3, 3, strides=2, return_sequences=False)(y)
        return writes(k.Model(x, y), [[floats(b, n, 16, 16, 2)] for b, n in ((1, 4), (2, 7), (3, 1))])

    @maker
    def masked():
        x = l.Input((None,), dtype="int32")
        y = l.Embedding(50, 16, mask_zero=True)(x)
        y = l.Bidirectional(l.LSTM(8, return_sequences=True))(y)
        y = l.GRU(8)(y)
        return writes(k.Model(x, l.Dense(4, activation="softmax")(y)), [[np.sort(ints(50, b, n))[:, ::-1] * (np.arange(n) < n - 2)] for b, n in ((1, 8), (3, 12), (2, 5))])

    @maker
    def attention():
        x = l.Input((None,), dtype="int32")
        y = l.Embedding(50, 32, mask_zero=True)(x)
        for _ in range(2):
            z = l.LayerNormalization()(y)
            y = y + l.MultiHeadAttention(4, 8)(z, z, use_causal_mask=True)
            z = l.GroupQueryAttention(8, 4, 2)(y, y)
            y = l.RMSNormalization()(y + z)
            y = y + l.Dense(32)(l.Dense(64, activation="gelu")(y))
        return writes(k.Model(x, l.GlobalAveragePooling1D()(y)), [[ints(49, b, n) + 1] for b, n in ((1, 8), (3, 12), (2, 33))])

    @maker
    def unet():
        x = l.Input((None, None, 3))
        first = l.Conv2D(8, 3, padding="same", activation="leaky_relu")(x)
        second = l.SeparableConv2D(16, 3, strides=2, padding="same", activation="silu")(first)
        third = l.GroupNormalization(4)(l.Conv2D(24, 3, strides=2, padding="same", dilation_rate=1)(second))
        y = l.Concatenate()([l.UpSampling2D(2)(third), second])
        y = l.Concatenate()([l.Conv2DTranspose(8, 3, strides=2, padding="same")(y), first])
        return writes(k.Model(x, l.Conv2D(2, 1, activation="sigmoid")(l.UnitNormalization()(y))), pictures((1, 32, 48), (2, 64, 36), (1, 20, 88)))

    @maker
    def waves():
        x = l.Input((None, 1))
        y = l.Conv1D(8, 2, padding="causal")(x)
        for rate in (1, 2, 4, 8):
            y = y + l.Conv1D(8, 1)(l.Conv1D(8, 2, padding="causal", dilation_rate=rate, activation="tanh")(y) * l.Conv1D(8, 2, padding="causal", dilation_rate=rate, activation="sigmoid")(y))
        y = l.AveragePooling1D(3, 2, padding="same")(l.Conv1DTranspose(6, 4, strides=2)(y))
        return writes(k.Model(x, [y, l.GlobalMaxPooling1D()(y)]), [[floats(b, n, 1)] for b, n in ((1, 64), (2, 100), (1, 333))])

    @maker
    def volumes():
        x = l.Input((None, None, None, 1))
        y = l.MaxPooling3D(2)(l.Conv3D(6, 3, padding="same", activation="elu")(x))
        y = l.AveragePooling3D(2, 1, padding="same")(l.Conv3DTranspose(4, 2, strides=2)(y))
        return writes(k.Model(x, l.UpSampling3D(2)(y)), [[floats(b, d, h, w, 1)] for b, d, h, w in ((1, 8, 8, 8), (2, 4, 10, 6), (1, 12, 6, 16))])

    @maker
    def tables():
        number, kind = l.Input((4,)), l.Input((3,), dtype="int32")
        norm = l.Normalization(mean=[0.0, 1.0, 2.0, 3.0], variance=[1.0, 2.0, 3.0, 4.0])
        y = l.Concatenate()([norm(number), l.CategoryEncoding(10, "multi_hot")(kind), l.CategoryEncoding(10, "count")(kind), l.Flatten()(l.Discretization([-1.0, 0.0, 1.0], output_mode="int")(number))])
        y = l.PReLU()(l.Dense(16)(y))
        y = l.Dense(8, activation="mish")(y) + l.Dense(8, activation="hard_silu")(y) + l.Dense(8, activation="celu")(y) + l.Dense(8, activation="squareplus")(y)
        return writes(k.Model([number, kind], y), [[floats(b, 4), ints(10, b, 3)] for b in (1, 5, 17)])

    class Spectra(k.layers.Layer):
        def call(self, x):
            real, imaginary = ops.stft(x, 64, 16, 64)
            power = ops.log(ops.square(real) + ops.square(imaginary) + 1e-3)
            return power, ops.cumsum(power, 1), ops.argmax(power, -1), ops.top_k(power, 3)[0]

    @maker
    def spectra():
        x = l.Input((None,))
        return writes(k.Model(x, Spectra()(x)), [[floats(b, n)] for b, n in ((1, 256), (2, 400), (1, 1000))])

    class Looks(k.layers.Layer):
        def call(self, x):
            b = ops.shape(x)[0]
            turned = ops.image.affine_transform(x, ops.tile(ops.array([[0.9, 0.1, 1.0, -0.1, 0.9, 2.0, 0.0, 0.0]]), (b, 1)), interpolation="bilinear")
            cut = ops.image.extract_patches(x, 4)
            small = ops.image.resize(x, (9, 13), interpolation="bicubic", antialias=True)
            return turned, cut, small, ops.image.rgb_to_grayscale(x), ops.image.pad_images(x, top_padding=1, left_padding=2, bottom_padding=0, right_padding=1)

    @maker
    def looks():
        x = l.Input((24, 32, 3))
        return writes(k.Model(x, Looks()(x)), pictures((1, 24, 32), (3, 24, 32)))

    class Operators(k.layers.Layer):
        def call(self, x):
            sorted_, chosen = ops.sort(x, -1), ops.take_along_axis(x, ops.argsort(x, -1), -1)
            windows = ops.einsum("bij,bkj->bik", x, x), ops.logsumexp(x, 1), ops.var(x, (1, 2)), ops.roll(x, 2, 1), ops.flip(x, 1), ops.diff(x, axis=1)
            rest = ops.where(x > 0, ops.log1p(ops.abs(x)), ops.expm1(x)), ops.erf(x), ops.tril(windows[0]), ops.median(x, -1), ops.norm(x, axis=-1), ops.scan(lambda c, v: (c * 0.5 + v, c), x[0, 0], x[0])[1]
            return (sorted_, chosen, *windows, *rest)

    @maker
    def operators():
        x = l.Input((None, 6))
        return writes(k.Model(x, Operators()(x)), [[floats(b, n, 6)] for b, n in ((1, 5), (2, 9), (4, 3))])

    each(folder, f"keras_{k.backend.backend()}", makers, names)


def paddle(folder, names):
    import paddle as p
    from paddle import nn

    p.seed(1)
    f = nn.functional
    spec = p.static.InputSpec

    def writes(model, specs, calls):
        model.eval()

        def write(path):
            with tempfile.TemporaryDirectory() as made:
                p.onnx.export(model, f"{made}/model", input_spec=specs, opset_version=17)
                shutil.copy(f"{made}/model.onnx", path)

        return write, calls

    class Light(nn.Layer):
        """Convolutions of depth with gates, as PP-LCNet has them."""

        def __init__(self):
            super().__init__()
            self.stem = nn.Conv2D(3, 8, 3, 2, 1, bias_attr=False)
            self.deep, self.norm = nn.Conv2D(8, 8, 5, 1, 2, groups=8), nn.BatchNorm2D(8)
            self.down, self.up, self.out = nn.Conv2D(8, 2, 1), nn.Conv2D(2, 8, 1), nn.Conv2D(8, 12, 1)

        def forward(self, x):
            y = f.hardswish(self.norm(self.deep(self.stem(x))))
            y = y * f.hardsigmoid(self.up(f.relu(self.down(f.adaptive_avg_pool2d(y, 1)))))
            return f.interpolate(self.out(y), size=[40, 56], mode="bilinear", align_corners=False), f.softmax(f.adaptive_avg_pool2d(y, 1).flatten(1))

    class Text(nn.Layer):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(50, 32)
            self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, normalize_before=True, activation="gelu"), 2, nn.LayerNorm(32))

        def forward(self, ids):
            mask = (ids == 0).astype("float32").unsqueeze([1, 2]) * -1e9
            return self.encoder(self.table(ids), mask)

    class Reader(nn.Layer):
        """Letters of a picture's columns: convolutions, then LSTM both ways."""

        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Conv2D(1, 8, 3, 2, 1), nn.Conv2D(8, 16, 3, (2, 1), 1)
            self.lstm, self.gru, self.out = nn.LSTM(64, 12, 2, direction="bidirect"), nn.GRU(24, 10), nn.Linear(10, 20)

        def forward(self, x):
            y = f.max_pool2d(f.swish(self.second(f.relu(self.first(x)))), (2, 1), ceil_mode=True)
            y = y.flatten(1, 2).transpose([0, 2, 1])
            return f.softmax(self.out(self.gru(self.lstm(y)[0])[0]), -1).argmax(-1), self.out(self.gru(self.lstm(y)[0])[0])

    class Loops(nn.Layer):
        def __init__(self):
            super().__init__()
            self.cell = nn.Linear(6, 6)

        def forward(self, x, n):
            i = p.zeros([1], "int64")
            while i < n:
                if i.astype("float32") > 2.0:
                    x = p.tanh(self.cell(x))
                else:
                    x = x + p.sin(x)
                i = i + 1
            return x

    class Detector(nn.Layer):
        def __init__(self):
            super().__init__()
            self.body, self.heat, self.size = nn.Conv2D(3, 8, 3, 4, 1), nn.Conv2D(8, 4, 1), nn.Conv2D(8, 2, 1)

        def forward(self, x):
            y = f.relu(self.body(x))
            heat = f.sigmoid(self.heat(y))
            heat = heat * (f.max_pool2d(heat, 3, 1, 1) == heat).astype("float32")
            scores, places = p.topk(heat.flatten(1), 10)
            wide = p.shape(heat)[3]
            area = p.shape(heat)[2] * wide
            cells = places % area
            sizes = p.take_along_axis(self.size(y).flatten(2).transpose([0, 2, 1]), cells.unsqueeze(-1).expand([-1, -1, 2]), 1)
            return scores, (cells // wide).astype("float32"), (cells % wide).astype("float32"), p.exp(sizes), places // area

    class Operators(nn.Layer):
        def forward(self, x):
            a, b = p.sort(x, -1), p.argsort(x, -1, descending=True)
            c = p.einsum("bij,bkj->bik", x, x), p.cumsum(x, 1), p.roll(x, 2, 1), p.flip(x, [1]), p.logsumexp(x, 1), p.std(x, -1), p.norm(x, 2, -1)
            d = p.where(x > 0, p.log1p(p.abs(x)), p.erf(x)), p.tril(c[0]), p.clip(x, -0.5, 0.5), f.selu(x), f.mish(x), f.one_hot(b, 6), p.masked_select(x, x > 0.2), p.nonzero(x > 0.5)
            e = f.pad(x.unsqueeze(1), [1, 2, 1, 0], mode="reflect"), f.unfold(x.unsqueeze(1), 3, 1, 1), f.pixel_shuffle(x.unsqueeze(1).tile([1, 4, 1, 1]), 2), f.grid_sample(x.unsqueeze(1), p.tanh(x[:, :, :2].unsqueeze(1)))
            return (a, b, *c, *d, *e)

    def light():
        return writes(Light(), [spec([None, 3, None, None])], [[floats(b, 3, h, w)] for b, h, w in ((1, 32, 48), (2, 64, 40), (1, 70, 94))])

    def text():
        return writes(Text(), [spec([None, None], "int64")], [[ints(50, b, n)] for b, n in ((1, 8), (3, 12), (2, 33))])

    def reader():
        return writes(Reader(), [spec([None, 1, 32, None])], [[floats(b, 1, 32, n)] for b, n in ((1, 64), (2, 100), (1, 33))])

    def loops():
        return writes(Loops(), [spec([None, 6]), spec([1], "int64")], [[floats(b, 6), np.array([n])] for b, n in ((1, 4), (3, 7), (2, 0))])

    def detector():
        return writes(Detector(), [spec([None, 3, None, None])], [[floats(b, 3, h, w)] for b, h, w in ((1, 64, 64), (2, 48, 96), (1, 128, 44))])

    def operators():
        return writes(Operators(), [spec([None, None, 6])], [[floats(b, n, 6)] for b, n in ((1, 5), (2, 9), (4, 3))])

    def vision(name, **more):
        def made():
            model = getattr(p.vision.models, name)(**more)
            return writes(model, [spec([None, 3, None, None])], [[floats(b, 3, h, w)] for b, h, w in ((1, 64, 64), (2, 96, 64), (1, 80, 112))])

        made.__name__ = name
        return made

    pictures = [vision("shufflenet_v2_x0_25"), vision("mobilenet_v3_small", scale=0.5), vision("resnext50_32x4d"), vision("googlenet"), vision("densenet121"), vision("squeezenet1_1")]
    each(folder, "paddle", [light, text, reader, loops, detector, operators, *pictures], names)


def tflite(folder, names):
    """TensorFlow Lite's files, with and without codes, through tf2onnx."""
    import keras as k
    import tensorflow as tf
    import tf2onnx

    l = k.layers
    k.utils.set_random_seed(2)
    pictures, words = [[floats(b, 32, 32, 3)] for b in (1, 3, 2)], [[floats(b, 12, 16)] for b in (1, 3, 2)]

    def convolutions():
        x = l.Input((32, 32, 3))
        y = l.Conv2D(8, 3, strides=2, padding="same", activation="relu6")(x)
        z = l.Conv2D(8, 1)(l.DepthwiseConv2D(3, padding="same", activation="relu")(y))
        y = l.MaxPooling2D(2)(l.UpSampling2D(2, interpolation="bilinear")(l.Add()([y, z])))
        y = l.Conv2DTranspose(4, 3, strides=2, padding="same")(l.Concatenate()([l.AveragePooling2D(2, padding="same")(y), l.MaxPooling2D(2, padding="same")(y)]))
        return k.Model(x, [l.Softmax()(l.Dense(5)(l.GlobalAveragePooling2D()(y))), l.LeakyReLU()(y)]), pictures

    def attention():
        x = l.Input((12, 16))
        y = x + l.MultiHeadAttention(2, 8)(x, x)
        y = l.LayerNormalization()(y)
        return k.Model(x, y + l.Dense(16)(l.Dense(32, activation="relu")(y))), words

    def recurrent():
        x = l.Input((12, 16))
        return k.Model(x, l.Dense(3)(l.GRU(8, unroll=True)(l.LSTM(8, return_sequences=True, unroll=True)(x)))), words

    def converted(model, calls, kind):
        made = tf.lite.TFLiteConverter.from_keras_model(model)
        if kind != "floats":
            made.optimizations = [tf.lite.Optimize.DEFAULT]
        if kind == "codes":
            made.representative_dataset = lambda: ([call[0][:1]] for call in calls)
        if kind == "halves":
            made.target_spec.supported_types = [tf.float16]
        return made.convert()

    def maker(network, kind):
        def made():
            model, calls = network()

            def write(path):
                with tempfile.TemporaryDirectory() as temporary:
                    source = pathlib.Path(temporary) / "model.tflite"
                    source.write_bytes(converted(model, calls, kind))
                    pathlib.Path(path).write_bytes(tf2onnx.convert.from_tflite(str(source), opset=17)[0].SerializeToString())

            return write, calls

        made.__name__ = f"{network.__name__}_{kind}"
        return made

    each(folder, "tflite", [maker(network, kind) for network in (convolutions, attention, recurrent) for kind in ("floats", "codes", "dynamic", "halves")], names)


def jax(folder, names):
    from onnx_writers_jax import jax as own

    own(folder, names)


FAMILIES = {"keras": keras, "paddle": paddle, "jax": jax, "tflite": tflite}


def main(about, families):
    """The command line of this script and its siblings: a folder, which families, which names."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("families", nargs="*")
    parser.add_argument("--names", nargs="*", default=[])
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    for name, family in families.items():
        if args.families and name not in args.families:
            continue
        try:
            family(args.folder, args.names)
        except ImportError as error:
            print(f"{name}: not installed: {error}")


if __name__ == "__main__":
    main(__doc__, FAMILIES)
