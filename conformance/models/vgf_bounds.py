#!/usr/bin/env python3
"""Makes the bounds that TOSA's floating-point rules need, for cases of `replay_vgf.py` whose archive names them but lacks them.

usage: vgf_bounds.py CASES OUT

CASES is a folder, or a tar of it, as `replay_vgf.py` takes it. Each graph is read from its `.vgf` by the code below, not by Halite, written as a
`.tosa` file and run by the reference model of PyPI's `tosa-tools` in double precision, which gives the bounds beside its results. Its results
have to be equal to the bit to those that the archive has, so a graph that was read wrong is told. OUT gets files at the paths that
the archive names; give it to `replay_vgf.py verify` as `--bounds`. Needs tosa-tools, whose programs have to be on the PATH.
"""
import collections, json, pathlib, struct, subprocess, sys, tarfile, tempfile

import numpy as np
from serializer import tosa_serializer as ts
from tosa.Op import Op

# By the number of the extended instruction: the operator, and what its first operands are.
WINDOW = ["pad", "stride", "dilation", "acc_type", "local_bound"]
OPERATORS = {
    1: ("AVG_POOL2D", ["kernel", "stride", "pad", "acc_type"]),
    2: ("CONV2D", WINDOW),
    3: ("CONV3D", WINDOW),
    4: ("DEPTHWISE_CONV2D", WINDOW),
    5: ("FFT2D", ["inverse", "local_bound"]),
    6: ("MATMUL", []),
    8: ("RFFT2D", ["local_bound"]),
    9: ("TRANSPOSE_CONV2D", ["out_pad", "stride", "acc_type", "local_bound"]),
    12: ("SIGMOID", []),
    13: ("TANH", []),
    28: ("POW", []),
    35: ("COS", []),
    36: ("EXP", []),
    38: ("LOG", []),
    43: ("SIN", []),
    53: ("REDUCE_SUM", ["axis"]),
    65: ("RESCALE", ["scale32", "rounding_mode", "per_channel", "input_unsigned", "output_unsigned"]),
}
# What `TosaSerializerAttribute` calls the operators' attributes.
ATTRIBUTES = {
    "AVG_POOL2D": "AvgPool2dAttribute",
    "CONV2D": "Conv2dAttribute",
    "CONV3D": "Conv3dAttribute",
    "DEPTHWISE_CONV2D": "DepthwiseConv2dAttribute",
    "FFT2D": "FFT2dAttribute",
    "RFFT2D": "RFFT2dAttribute",
    "TRANSPOSE_CONV2D": "TransposeConv2dAttribute",
    "REDUCE_SUM": "ReduceSumAttribute",
    "RESCALE": "RescaleAttribute",
}
ACCUMULATORS = {1: "INT32", 2: "FP16", 3: "FP32", 4: "INT48"}
FLOAT_8 = {4214: "FP8E4M3", 4215: "FP8E5M2"}
BITS = {"BOOL": "u1", "INT8": "i1", "INT16": "i2", "INT32": "i4", "INT48": "i8", "FP16": "f2", "FP32": "f4", "BF16": "u2", "FP8E4M3": "u1", "FP8E5M2": "u1"}

Tensor = collections.namedtuple("Tensor", "element dims")
Constant = collections.namedtuple("Constant", "type array")


class Table:
    """A table of a FlatBuffer."""

    def __init__(self, data, place):
        self.data, self.place = data, place

    @classmethod
    def root(cls, data):
        return cls(data, struct.unpack_from("<I", data)[0])

    def field(self, slot):
        vtable = self.place - struct.unpack_from("<i", self.data, self.place)[0]
        size = struct.unpack_from("<H", self.data, vtable)[0]
        offset = struct.unpack_from("<H", self.data, vtable + 4 + 2 * slot)[0] if 4 + 2 * slot < size else 0
        return self.place + offset if offset else None

    def follow(self, slot):
        place = self.field(slot)
        return place + struct.unpack_from("<I", self.data, place)[0]

    def table(self, slot):
        return Table(self.data, self.follow(slot))

    def vector(self, slot, dtype):
        place = self.follow(slot)
        return np.frombuffer(self.data, dtype, struct.unpack_from("<I", self.data, place)[0], place + 4)

    def tables(self, slot):
        place = self.follow(slot)
        count = struct.unpack_from("<I", self.data, place)[0]
        places = [place + 4 + 4 * n for n in range(count)]
        return [Table(self.data, at + struct.unpack_from("<I", self.data, at)[0]) for at in places]


def read_vgf(path):
    """The words of the file's only module, and the bytes of its constants."""
    data = path.read_bytes()
    spans = [struct.unpack_from("<QQ", data, at) for at in (16, 64)]
    modules, constants = [data[at : at + size] for at, size in spans]
    [module] = Table.root(modules).tables(0)
    words = module.table(4).vector(0, "<u4")
    count = struct.unpack_from("<Q", constants, 8)[0]
    start = 16 + 24 * count
    places = [struct.unpack_from("<IiQQ", constants, 16 + 24 * n) for n in range(count)]
    return words, [constants[start + offset : start + offset + size] for _, _, size, offset in places]


class Graph:
    """A graph in SPIR-V: its inputs, its operators with their operands, its outputs."""

    def __init__(self, words, constants):
        self.types, self.values, self.inputs, self.outputs, self.nodes, self.parts = {}, {}, {}, {}, [], {}
        self.section = constants
        at = 5
        while at < len(words):
            length, code = int(words[at]) >> 16, int(words[at]) & 0xFFFF
            self.take(code, [int(word) for word in words[at + 1 : at + length]])
            at += length

    def take(self, code, w):
        if code == 20:
            self.types[w[0]] = "BOOL"
        elif code == 21:
            self.types[w[0]] = {8: "INT8", 16: "INT16", 32: "INT32", 64: "INT48"}[w[1]]
        elif code == 22:
            self.types[w[0]] = {16: "FP16", 32: "FP32"}.get(w[1]) if len(w) == 2 else FLOAT_8.get(w[2], "BF16")
        elif code == 30:
            self.types[w[0]] = [self.types[of] for of in w[1:]]
        elif code == 28:
            self.types[w[0]] = Tensor(self.types[w[1]], (int(self.values[w[2]].array),))
        elif code == 4163:
            shape = self.values[w[3]].array if len(w) > 3 else ()
            self.types[w[0]] = Tensor(self.types[w[1]], tuple(int(dim) for dim in shape))
        elif code in (41, 42, 43, 44, 46, 4461, 4181):
            self.constant(code, w)
        elif code == 4184:
            self.inputs[int(self.values[w[2]].array)] = w[1]
            self.parts[w[1]] = self.types[w[0]]
        elif code == 4185:
            self.outputs[int(self.values[w[1]].array)] = w[0]
        elif code == 12 and w[3] in OPERATORS and w[0] in self.types:
            self.nodes.append((w[3], w[1], w[4:]))
            self.parts[w[1]] = self.types[w[0]]
        elif code == 81:
            self.parts[w[1]] = (w[2], w[3])

    def constant(self, code, w):
        of = self.types.get(w[0])
        element = of.element if isinstance(of, Tensor) else of
        if element not in BITS:
            return
        dtype, dims = np.dtype("<" + BITS[element]), of.dims if isinstance(of, Tensor) else ()
        count = int(np.prod(dims, dtype=int))
        if code in (41, 42):
            array = np.array(code == 41)
        elif code == 43:
            array = np.frombuffer(struct.pack(f"<{len(w) - 2}I", *w[2:]), dtype, 1).reshape(())
        elif code == 46:
            array = np.zeros(dims, dtype)
        elif code == 4181:
            array = np.frombuffer(self.section[w[2]], dtype).reshape(dims)
        else:
            parts = [self.values[id].array for id in w[2:]]
            array = np.array(parts * (count if code == 4461 else 1), dtype).reshape(dims)
        self.values[w[1]] = Constant(of, array)


def write_tosa(graph, inputs, folder):
    """Writes `test.tosa` and the arrays that it takes: its names of inputs and outputs."""
    serializer = ts.TosaSerializer(str(folder))
    made = {}
    for n, id in sorted(graph.inputs.items()):
        kind = graph.parts[id]
        save(folder / f"in{n}.npy", inputs[n], kind.dims)
        made[id] = serializer.addPlaceholder(list(kind.dims), getattr(ts.DType, kind.element), None)
        made[id].placeholderFilename = f"in{n}.npy"
    for number, result, operands in graph.nodes:
        name, attributes = OPERATORS[number]
        given = {at: graph.values[id].array for at, id in zip(attributes, operands)}
        given = {at: value.tolist() for at, value in given.items()}
        if "acc_type" in given:
            given["acc_type"] = getattr(ts.DType, ACCUMULATORS[given["acc_type"]])
        attribute = ts.TosaSerializerAttribute()
        getattr(attribute, ATTRIBUTES.get(name, name.title() + "Attribute").replace("Matmul", "MatMul"))(**given)
        takes = [operand(serializer, graph, made, id) for id in operands[len(attributes) :]]
        kind = graph.parts[result]
        kinds = kind if isinstance(kind, list) else [kind]
        gives = [serializer.addOutput(list(k.dims), getattr(ts.DType, k.element)) for k in kinds]
        for n, tensor in enumerate(gives):
            made[(result, n)] = tensor
        serializer.addOperator(getattr(Op, name), [t.name for t in takes], [t.name for t in gives], attribute)
    outs = [made[part if isinstance(part := graph.parts[id], tuple) and not isinstance(part, Tensor) else (id, 0)] for _, id in sorted(graph.outputs.items())]
    (folder / "test.tosa").write_bytes(serializer.serialize())
    return [f"in{n}.npy" for n in sorted(graph.inputs)], [made[id].name for _, id in sorted(graph.inputs.items())], [t.name for t in outs]


def save(path, array, dims):
    """Writes an array; `numpy.save` would name elements that it has no name for in a way that the reference model does not read."""
    descr = f"<V{array.itemsize}" if array.dtype.kind == "V" else np.lib.format.dtype_to_descr(array.dtype)
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": dims})
        file.write(array.tobytes())


def operand(serializer, graph, made, id):
    if id not in made:
        made[id] = made[(id, 0)] if (id, 0) in made else constant(serializer, graph.values[id])
    return made[id]


def constant(serializer, value):
    element = value.type.element
    array = value.array
    if element in ("BF16", "FP8E4M3"):
        array = array.view({"BF16": ts.bfloat16, "FP8E4M3": ts.float8_e4m3fn}[element])
    return serializer.addConst(list(value.type.dims), getattr(ts.DType, element), array)


def bounds(case, below, out):
    """Writes a case's bounds; gives what went wrong."""
    words, constants = read_vgf(below(case["vgf"]))
    graph = Graph(words, constants)
    slots = case.get("vgf_input_slots", range(len(case["inputs"])))
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        files, takes, gives = write_tosa(graph, [np.load(below(case["inputs"][slot])) for slot in slots], folder)
        rules = {name: output["compliance"] for name, output in zip(gives, case["outputs"])}
        desc = {"tosa_file": "test.tosa", "ifm_name": takes, "ifm_file": files, "ofm_name": gives, "ofm_file": [f"out{n}.npy" for n in range(len(gives))]}
        desc |= {"expected_return_code": 0, "expected_failure": False, "expected_failure_desc": "", "test_requirements": {"bounds_file_required": True}}
        desc["meta"] = {"compliance": {"version": "0.1", "tensors": rules}}
        (folder / "desc.json").write_text(json.dumps(desc))
        ran = subprocess.run(["tosa_reference_model", f"--test_desc={folder}/desc.json", "--precise_mode=1"], capture_output=True, text=True)
        if ran.returncode:
            return " ".join((ran.stderr + ran.stdout).split())[:400]
        for n, output in enumerate(case["outputs"]):
            reference = np.load(below(output["fp64"]))
            if np.load(folder / f"out{n}.npy").tobytes() != reference.tobytes():
                return f"output {n} is not what the archive has"
            if "bounds" in output:
                made = np.load(folder / f"bounds_out{n}.npy").reshape(reference.shape)
                path = out / output["bounds"]
                path.parent.mkdir(parents=True, exist_ok=True)
                np.save(path, made)
    return None


def main():
    source, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as unpacked:
        if source.is_file():
            with tarfile.open(source) as tar:
                tar.extractall(unpacked, filter="data")
            source = pathlib.Path(unpacked)
        below = lambda path: source / "ops" / path
        cases = [json.loads(line) for line in (source / "ops.jsonl").read_text().splitlines()]
        wanted = [c for c in cases if c["vgf"] and any("bounds" in o and not below(o["bounds"]).exists() for o in c["outputs"])]
        failed = 0
        for case in wanted:
            if why := bounds(case, below, out):
                failed += 1
                print(case["name"], why, flush=True)
    print(f"{len(wanted) - failed} of {len(wanted)} cases have their bounds")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
