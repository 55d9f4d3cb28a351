#!/usr/bin/env python3
"""Makes a case for `conformance onnx` of any ONNX model: random inputs, and the outputs that ONNX Runtime gives.

    onnx_case.py model.onnx FOLDER [--dim NAME=SIZE]... [--shape INPUT=AxBxC]... [--ints INPUT=LOW:HIGH]... [--seed N]

FOLDER/NAME/ becomes a folder as those of the onnx package's node tests: model.onnx, test_data_set_0/input_i.pb and
output_i.pb. Sizes that the model leaves open are 1 unless they are given. `--value INPUT=a,b,c` gives an input's elements.
"""
import argparse
import pathlib
import shutil

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper


def pairs(texts):
    return dict(text.split("=", 1) for text in texts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--name")
    parser.add_argument("--dim", action="append", default=[])
    parser.add_argument("--shape", action="append", default=[])
    parser.add_argument("--ints", action="append", default=[])
    parser.add_argument("--value", action="append", default=[])
    parser.add_argument("--seed", type=int, default=1)
    flags = parser.parse_args()
    dims, shapes = pairs(flags.dim), pairs(flags.shape)
    ints, values = pairs(flags.ints), pairs(flags.value)
    random = np.random.default_rng(flags.seed)

    case = flags.folder / (flags.name or flags.model.stem)
    data = case / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    shutil.copy(flags.model, case / "model.onnx")
    model = onnx.load(flags.model, load_external_data=False)
    defaults = {tensor.name for tensor in model.graph.initializer}
    inputs = {}
    for info in model.graph.input:
        if info.name in defaults:
            continue
        tensor = info.type.tensor_type
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        if info.name in shapes:
            text = shapes[info.name]
            shape = [int(size) for size in text.split("x")] if text else []
        else:
            shape = [d.dim_value or int(dims.get(d.dim_param, 1)) for d in tensor.shape.dim]
        if info.name in values:
            array = np.array([float(v) for v in values[info.name].split(",")]).reshape(shape).astype(dtype)
        elif np.issubdtype(dtype, np.floating):
            array = random.standard_normal(shape).astype(dtype)
        elif dtype == np.bool_:
            array = np.ones(shape, dtype)
        else:
            low, high = (int(v) for v in ints.get(info.name, "0:2").split(":"))
            array = random.integers(low, high, shape).astype(dtype)
        inputs[info.name] = array
    session = onnxruntime.InferenceSession(str(flags.model), providers=["CPUExecutionProvider"])
    outputs = session.run(None, inputs)
    for kind, arrays in (("input", inputs.values()), ("output", outputs)):
        for index, array in enumerate(arrays):
            path = data / f"{kind}_{index}.pb"
            path.write_bytes(numpy_helper.from_array(np.asarray(array)).SerializeToString())
    print(case, {name: array.shape for name, array in inputs.items()})


if __name__ == "__main__":
    main()
