#!/usr/bin/env python3
"""Other forms of the files that onnx_sizes.py made: half floats, as onnxruntime's converter writes them, and weights of bytes, as its dynamic quantizer does.

    onnx_sizes_forms.py FOLDER NAME...

Writes NAME-half.onnx and NAME-bytes.onnx beside each NAME.onnx with the same calls, for `onnx_sizes.py check`. Weights have 7 bits: ONNX Runtime saturates sums of
pairs on a processor with AVX2 alone (`onnx_quantized_lstm.py`).
"""
import argparse
import pathlib

import numpy as np


def half(model, path):
    import onnx
    from onnxruntime.transformers.float16 import convert_float_to_float16

    onnx.save(convert_float_to_float16(onnx.load(model), keep_io_types=False), path)


def eighths(model, path):
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(model, path, weight_type=QuantType.QInt8, reduce_range=True, per_channel=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="+")
    args = parser.parse_args()
    for name in args.names:
        model, calls = args.folder / f"{name}.onnx", np.load(args.folder / f"{name}.npz")
        for kind, make in (("half", half), ("bytes", eighths)):
            path = model.with_name(f"{name}-{kind}.onnx")
            try:
                make(model, path)
            except Exception as error:  # noqa: BLE001: both tools fail in many ways.
                path.unlink(missing_ok=True)
                print(f"{path.name}: not made: {type(error).__name__}: {str(error)[:120]}")
                continue
            narrow = lambda value: value.astype(np.float16) if kind == "half" and value.dtype == np.float32 else value  # noqa: B023, E731
            np.savez(path.with_suffix(".npz"), **{key: narrow(value) for key, value in calls.items()})
            print(path.name, flush=True)


if __name__ == "__main__":
    main()
