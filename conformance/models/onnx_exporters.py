#!/usr/bin/env python3
"""Models of other exporters than PyTorch's, and of ONNX Runtime's quantizers, beside ONNX Runtime.

    onnx_exporters.py make FOLDER [tf] [skl] [genai]
    onnx_exporters.py quantize FOLDER          # each MODEL.onnx with calls in MODEL.npz, as onnx_sizes.py makes them
    onnx_exporters.py check [--halite PROGRAM] [--device vulkan] MODEL.onnx...

`make` needs tf2onnx, tensorflow, keras; skl2onnx; onnxruntime-genai, torch, transformers, and skips what is not installed. A result is right within 2e-4 of ONNX
Runtime's, or within one and a half of what it differs from itself by without its optimizer; products of bytes are exact (`session.x64quantprecision`).
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
from onnx_sizes import difference

TOLERANCE = 2e-4
RANDOM = np.random.default_rng(0)


def floats(*dims):
    return RANDOM.standard_normal(dims).astype(np.float32)


def save(folder, name, model, calls):
    """A model and its calls, which are lists of arrays in the order of its inputs."""
    (folder / f"{name}.onnx").write_bytes(model.SerializeToString())
    arrays = {f"{index}/{value.name}": array for index, call in enumerate(calls) for value, array in zip(model.graph.input, call)}
    np.savez(folder / f"{name}.npz", **arrays)
    print(f"{name}: {len(calls)} calls", flush=True)


def tf(folder):
    import keras
    import tensorflow as tf
    import tf2onnx
    from keras import layers as l

    spec = tf.TensorSpec

    def give(name, function, specs, calls, opset=17):
        made = tf.function(function, input_signature=specs)
        save(folder, f"tf_{name}", tf2onnx.convert.from_function(made, input_signature=specs, opset=opset)[0], calls)

    def network(*layers):
        model = keras.Sequential(list(layers))
        return lambda x: model(x)

    give(
        "pictures",
        network(
            l.Input((32, 32, 3)), l.Conv2D(8, 3, padding="same", strides=2, use_bias=False), l.BatchNormalization(), l.ReLU(6), l.DepthwiseConv2D(3, padding="same"),
            l.SeparableConv2D(12, 3, activation="swish"), l.AveragePooling2D(2, padding="same"), l.Conv2DTranspose(6, 3, strides=2, padding="same"), l.GlobalAveragePooling2D(), l.Dense(5, activation="softmax"),
        ),
        [spec([None, 32, 32, 3], tf.float32)],
        [[floats(1, 32, 32, 3)], [floats(3, 32, 32, 3)]],
    )
    first, second = l.Conv2D(8, 3, padding="same", dilation_rate=2), l.Conv2D(4, 3, padding="valid")
    first.build((None, None, None, 3))
    second.build((None, None, None, 8))

    def any_size(x):
        y = tf.pad(tf.nn.leaky_relu(first(x)), [[0, 0], [1, 1], [1, 1], [0, 0]], mode="REFLECT")
        y = tf.image.resize(second(y), tf.shape(x)[1:3] * 2, method="bilinear")
        return tf.concat([tf.image.resize(y, tf.shape(x)[1:3], method="nearest"), x], -1)[:, ::2, 1:-1]

    give("any_size", any_size, [spec([None, None, None, 3], tf.float32)], [[floats(b, h, w, 3)] for b, h, w in [(1, 16, 20), (2, 13, 9), (1, 31, 8)]])
    give(
        "recurrent",
        network(l.Input((None, 6)), l.Bidirectional(l.LSTM(7, return_sequences=True)), l.GRU(5, return_sequences=True), l.GRU(4, reset_after=False), l.Dense(3)),
        [spec([None, None, 6], tf.float32)],
        [[floats(b, n, 6)] for b, n in [(1, 10), (2, 17), (3, 3)]],
    )
    give(
        "many_steps",
        network(l.Input((400, 6)), l.GRU(5, return_sequences=True, reset_after=False), l.SimpleRNN(4, return_sequences=True)),
        [spec([None, 400, 6], tf.float32)],
        [[floats(1, 400, 6)], [floats(2, 400, 6)]],
    )
    words = keras.Input((None,), dtype="int32")
    x = l.Embedding(50, 16)(words)
    for _ in range(2):
        normal = l.LayerNormalization()(x)
        x = x + l.MultiHeadAttention(2, 8)(normal, normal, use_causal_mask=True)
        x = x + l.Dense(16)(l.Dense(32, activation="silu")(l.LayerNormalization()(x)))
    decoder = keras.Model(words, l.Dense(50)(x))
    calls = [[RANDOM.integers(0, 50, dims).astype(np.int32)] for dims in [(1, 5), (2, 19)]]
    give("attention", lambda x: decoder(x), [spec([None, None], tf.int32)], calls)

    def loop(x, n):
        made = tf.TensorArray(tf.float32, size=n, element_shape=[4])

        def body(i, s, made):
            s = tf.tanh(s * 0.9 + x[i % tf.shape(x)[0]])
            return i + 1, s, made.write(i, s)

        _, s, made = tf.while_loop(lambda i, s, made: i < n, body, [0, tf.zeros([4]), made])
        return made.stack(), s

    calls = [[floats(3, 4), np.array(5, np.int32)], [floats(7, 4), np.array(2, np.int32)]]
    give("loop", loop, [spec([None, 4], tf.float32), spec([], tf.int32)], calls)

    def detect(boxes, scores):
        kept = tf.gather(boxes, tf.image.non_max_suppression(boxes, scores, 10, 0.5, 0.1))
        return kept, *tf.math.top_k(scores, 5), tf.boolean_mask(scores, scores > 0.5)

    def boxes(count):
        corner = RANDOM.random((count, 2)).astype(np.float32)
        return np.concatenate([corner, corner + RANDOM.random((count, 2)).astype(np.float32) * 0.4], 1)

    calls = [[boxes(count), RANDOM.random(count).astype(np.float32)] for count in (20, 37)]
    give("detect", detect, [spec([None, 4], tf.float32), spec([None], tf.float32)], calls)

    def sums(x, i):
        scattered = tf.scatter_nd(i[:, None], x[0, :, 0], [9])
        moved = tf.reverse(x, [1]), tf.tile(x, [1, 2, 1]), tf.roll(x, 2, 1), tf.linalg.band_part(x, 1, 0)
        folded = tf.einsum("bij,bkj->bik", x, x), tf.cumsum(x, axis=1, exclusive=True, reverse=True), tf.math.reduce_logsumexp(x, -1), tf.argmax(x, -1)
        return *moved, *folded, scattered, tf.one_hot(i, 7) @ tf.ones([7, 3]), tf.where(x > 0, x, tf.math.erf(x)), tf.math.floormod(x, 0.7)

    calls = [[floats(2, 6, 5), np.array([1, 0, 5, 5, 2, 6], np.int32)], [floats(1, 3, 5), np.array([2, 2, 0], np.int32)]]
    give("sums", sums, [spec([None, None, 5], tf.float32), spec([None], tf.int32)], calls, opset=18)


def skl(folder):
    from skl2onnx import convert_sklearn
    from skl2onnx.common.data_types import FloatTensorType
    from sklearn import cluster, decomposition, discriminant_analysis, gaussian_process, linear_model, mixture, naive_bayes, neighbors, neural_network, preprocessing
    from sklearn.pipeline import make_pipeline

    x = floats(200, 8)
    numbers, classes = (x[:, 0] * 2 + np.sin(x[:, 1])).astype(np.float32), (x[:, 0] > 0).astype(int) + (x[:, 1] > 1)
    kernels = gaussian_process.kernels
    models = {
        "perceptron": make_pipeline(decomposition.PCA(5), neural_network.MLPRegressor(hidden_layer_sizes=(16, 8), max_iter=300)),
        "classes": neural_network.MLPClassifier((8,), max_iter=300),
        "means": cluster.KMeans(4, n_init=3),
        "process": gaussian_process.GaussianProcessRegressor(kernels.RBF(2.0) + kernels.DotProduct()),
        "neighbors": neighbors.KNeighborsRegressor(3),
        "weighed": neighbors.KNeighborsRegressor(5, weights="distance", metric="manhattan"),
        "mixture": mixture.GaussianMixture(3),
        "polynomials": make_pipeline(preprocessing.PolynomialFeatures(2), linear_model.Ridge()),
        "poisson": linear_model.PoissonRegressor(),
        "bayes": naive_bayes.GaussianNB(),
        "discriminant": discriminant_analysis.QuadraticDiscriminantAnalysis(),
        "scaled": make_pipeline(preprocessing.MinMaxScaler(), decomposition.TruncatedSVD(3)),
    }
    for name, model in models.items():
        of_classes = name in ("classes", "bayes", "discriminant")
        model.fit(x, classes if of_classes else np.abs(numbers) if name == "poisson" else numbers)
        options = {id(model): {"zipmap": False}} if of_classes else {}
        made = convert_sklearn(
            model, initial_types=[("X", FloatTensorType([None, 8]))], options=options, target_opset={"": 18, "ai.onnx.ml": 1}, black_op={"Scaler", "LinearClassifier", "LinearRegressor", "Normalizer"}
        )
        save(folder, f"skl_{name}", made, [[floats(rows, 8)] for rows in (1, 5, 33)])


def genai(folder):
    """Decoders by the builder, from random networks. Weights of 4 bits are multiplied by floats: `accuracy_level` has ONNX Runtime round these to bytes."""
    import onnx
    import torch
    import transformers as t
    from tokenizers import Tokenizer, models, pre_tokenizers

    torch.manual_seed(0)
    common = dict(vocab_size=96, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=256)
    common |= dict(bos_token_id=90, eos_token_id=91, pad_token_id=91)
    tokenizer = Tokenizer(models.WordLevel({f"w{i}": i for i in range(90)} | {"<s>": 90, "</s>": 91, "<unk>": 92}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    more = {"Gemma2": dict(head_dim=16, sliding_window=16, query_pre_attn_scalar=16), "Qwen3": dict(head_dim=16)}
    for name in ("Gemma2", "Llama", "Olmo", "Qwen3", "SmolLM3"):
        source = folder / f"source_{name}"
        config = getattr(t, f"{name}Config")(**common, **more.get(name, {}))
        getattr(t, f"{name}ForCausalLM")(config).float().save_pretrained(source)
        t.PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>").save_pretrained(source)
        for precision in ("fp32", "int4"):
            made = folder / f"genai_{name}_{precision}"
            command = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-i", source, "-o", made, "-p", precision, "-e", "cpu", "-c", folder / "cache"]
            subprocess.run([*map(str, command), "--extra_options", "windowed_kv_cache=false"], check=True, capture_output=True)
            model = onnx.load(made / "model.onnx", load_external_data=False)
            for attribute in (a for node in model.graph.node for a in node.attribute if a.name == "accuracy_level"):
                attribute.i = 0
            calls = []
            for batch, tokens, past in [(1, 7, 0), (1, 1, 7), (2, 1, 20), (1, 40, 0)]:
                given = {"input_ids": RANDOM.integers(0, 90, (batch, tokens)), "attention_mask": np.ones((batch, tokens + past), np.int64)}
                given["position_ids"] = np.tile(np.arange(past, past + tokens), (batch, 1))
                calls.append([given[v.name] if v.name in given else floats(batch, 2, past, 16) for v in model.graph.input])
            save(made, "model", model, calls)


def calls_of(path):
    """The calls of a model, or of what it was quantized from."""
    found = path.with_suffix(".npz")
    found = found if found.exists() else path.parent / (re.sub(r"\.q_.*", "", path.name) + ".npz")
    calls = {}
    with np.load(found) as arrays:
        for key in arrays.files:
            index, name = key.split("/", 1)
            calls.setdefault(int(index), {})[name] = arrays[key]
    return [calls[index] for index in sorted(calls)]


def quantize(folder):
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Reader(CalibrationDataReader):
        def __init__(self, calls):
            self.calls = iter(calls)

        def get_next(self):
            return next(self.calls, None)

    ways = {
        "dynamic_u8": (quantize_dynamic, dict(weight_type=QuantType.QUInt8)),
        "dynamic_i8": (quantize_dynamic, dict(weight_type=QuantType.QInt8, per_channel=True)),
        "qdq_8": (quantize_static, dict(quant_format=QuantFormat.QDQ)),
        "qdq_16": (quantize_static, dict(quant_format=QuantFormat.QDQ, activation_type=QuantType.QUInt16, weight_type=QuantType.QInt8)),
        "qdq_16_4": (quantize_static, dict(quant_format=QuantFormat.QDQ, activation_type=QuantType.QInt16, weight_type=QuantType.QInt4)),
        "operators": (quantize_static, dict(quant_format=QuantFormat.QOperator, activation_type=QuantType.QUInt8, weight_type=QuantType.QUInt8)),
    }
    for path in sorted(path for path in folder.glob("*.onnx") if ".q_" not in path.name):
        with tempfile.TemporaryDirectory() as made:
            prepared = f"{made}/model.onnx"
            quant_pre_process(str(path), prepared, skip_symbolic_shape=True)
            for name, (way, options) in ways.items():
                result = folder / f"{path.stem}.q_{name}.onnx"
                reader = [Reader(calls_of(path))] if way is quantize_static else []
                way(prepared, str(result), *reader, **options)
                print(result.name, flush=True)


def sessions(path):
    """With and without ONNX Runtime's optimizer, which fails for some of what its quantizer writes."""
    import onnxruntime as ort

    ort.set_default_logger_severity(4)
    for level in (ort.GraphOptimizationLevel.ORT_ENABLE_ALL, ort.GraphOptimizationLevel.ORT_DISABLE_ALL):
        options = ort.SessionOptions()
        options.graph_optimization_level = level
        options.add_session_config_entry("session.x64quantprecision", "1")
        try:
            yield ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # noqa: BLE001: it fails in many ways.
            print(f"{path}: ONNX Runtime: {str(error)[:160]}")


def differ(given, wanted):
    """The difference as a part of the largest number, from the nearer session; what the sessions differ by."""
    worst = (0.0, 0.0)
    for index, own in enumerate(given):
        others = [np.asarray(results[index]) for results in wanted]
        if any(own.shape != other.shape for other in others):
            return float("inf"), 0.0
        own, others = own.astype(np.float64), [other.astype(np.float64) for other in others]
        worst = max(worst, (min(difference(own, other, 1.0) for other in others), difference(others[0], others[-1], 1.0)))
    return worst


def check(path, halite, device):
    references = list(sessions(path))
    if not references:
        return "no reference"
    told, state = [], "right"
    for call in calls_of(path):
        names = [value.name for value in references[0].get_inputs()]
        wanted = [session.run(None, {name: call[name] for name in names}) for session in references]
        with tempfile.TemporaryDirectory() as folder:
            command = [halite, "run", str(path), f"--device={device}", "--compile-cache=off"]
            for index, name in enumerate(names):
                np.save(f"{folder}/in{index}.npy", call[name])
                command.append(f"--input=@{folder}/in{index}.npy")
            command += [f"--output=@{folder}/out{index}.npy" for index in range(len(wanted[0]))]
            ran = subprocess.run(command, capture_output=True, text=True)
            if ran.returncode:
                return "refused: " + ran.stderr.strip().splitlines()[-1][:240]
            off, own = differ([np.load(f"{folder}/out{index}.npy") for index in range(len(wanted[0]))], wanted)
        told.append(f"{off:.1e}")
        if not off <= max(TOLERANCE, 1.5 * own):
            state = "wrong"
    return f"{state} {' '.join(told)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["make", "quantize", "check"])
    parser.add_argument("--halite", default="target/release/halite")
    parser.add_argument("--device", default="vulkan")
    parser.add_argument("paths", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.action == "check":
        for path in arguments.paths:
            print(f"{path}: {check(path, arguments.halite, arguments.device)}", flush=True)
        return
    folder, *kinds = arguments.paths
    folder.mkdir(parents=True, exist_ok=True)
    if arguments.action == "quantize":
        quantize(folder)
        return
    for make in (tf, skl, genai):
        if not kinds or make.__name__ in map(str, kinds):
            try:
                make(folder)
            except ImportError as error:
                print(f"{make.__name__}: not installed: {error}")


if __name__ == "__main__":
    main()
