"""The programs in the documents, as they stand."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PAGES = [
    "docs/tutorials/python.md",
    "docs/how-to/external-memory.md",
    "docs/how-to/python-onnxruntime.md",
    "docs/how-to/python-torch.md",
    "python/README.md",
]
PROGRAM = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
OPTIONAL = {"rapidocr_onnxruntime", "torch", "onnxscript"}
"""Packages that not everybody has."""


def programs():
    for page in PAGES:
        for place, match in enumerate(PROGRAM.finditer((ROOT / page).read_text())):
            yield pytest.param(match.group(1), id=f"{page}:{place + 1}")


@pytest.mark.parametrize("program", list(programs()))
def test_programs_run(program, device, tmp_path):
    missing = [name for name in OPTIONAL if name in program and importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"SKIPPED: {', '.join(missing)} is not installed")
    if "model," in program and "model =" not in program:
        # The line of the readme begins with a model that somebody has.
        program = "import torch\nmodel = torch.nn.Identity()\n" + program
    if "torch" in program:
        # It is an entry point of the installed package only.
        program = "import halite.torch\n" + program
    for file in ("digits.onnx", "sample_7.npy"):
        shutil.copy(ROOT / "demo/digits" / file, tmp_path)
    # Small models in the place of those that a reader has.
    for file, small in (("model.gguf", "gemma3.gguf"), ("embedder.gguf", "bert.gguf")):
        shutil.copy(ROOT / "compiler/tests/data/gguf" / small, tmp_path / file)
    compile(program, "program", "exec")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "HALITE_ONNXRUNTIME_DEVICE": device.uri}
    ended = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240)
    assert ended.returncode == 0, ended.stderr
    if "external_memory" in program and "host" not in device.info.external_memory:
        # It asks for this itself, and has nothing to print then.
        pytest.skip("SKIPPED: the device takes no memory of the process")
    if ".argmax()" in program:
        assert ended.stdout.split() == ["7"]
