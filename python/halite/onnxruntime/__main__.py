"""`python -m halite.onnxruntime PROGRAM.py [ARGUMENT ...]`, or `-m MODULE [ARGUMENT ...]`: runs a program whose onnxruntime is Halite."""

from __future__ import annotations

import pathlib
import runpy
import sys

from . import install

USAGE = "usage: python -m halite.onnxruntime (PROGRAM.py | -m MODULE) [ARGUMENT ...]"


def main() -> None:
    """Installs the stand-in, and gives the process to the program."""
    arguments = sys.argv[1:]
    is_module = arguments[:1] == ["-m"]
    if not arguments[is_module:] or arguments[0] in ("-h", "--help"):
        sys.exit(USAGE)
    install()
    sys.argv = arguments[is_module:]
    if is_module:
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(pathlib.Path(sys.argv[0]).resolve().parent)
        runpy.run_path(sys.argv[0], run_name="__main__")


main()
