"""Small random GGUF models of known architectures, with types of matrices, options and ways of use by lot, for comparisons with llama.cpp.

    python gguf_matrix.py FOLDER LIBRARIES COUNT SEED [NAME...]

writes COUNT models, NNN.gguf, and NNN.json with what llama.cpp makes of the same numbers as f32. Each NAME is a case of gguf_families.py, or
architectures whose sizes gguf_adapters.py, gguf_condensed.py, gguf_drawn.py, gguf_indexed.py, gguf_kimi.py, gguf_plain.py, gguf_plamo2.py or gguf_pooled.py draw; without one
all are drawn from. SIZE:NAME, such as `odd:qwen35` or `drawn:phi3`, is one of them with sizes of that kind alone. With FOLDED before the names
weights of architectures that llama.cpp folds are folded with Hadamard matrices (gguf_folds.py). Each file has

- narrow sizes, wide ones whose rows take blocks of 256 elements, or sizes drawn one by one;
- one type for all matrices, one for each name of a matrix, of all types that rows of their length can have, or a mixture as llama.cpp's
  llama-quantize makes it, with other types in some layers;
- a table of tokens that is the last matrix too, where the architecture allows it;
- prompts of several lengths, the pieces that they are given in, and types of caches.

HALITE_GGUF_MATRIX=FOLDER cargo test -p halite --test generate matrix:: -- --nocapture compares them on a device: a prompt whole, in pieces,
saved, copied and taken back, several sequences in one step, and the types of caches.
"""

import contextlib
import ctypes as C
import glob
import importlib
import json
import os
import signal
import sys
import tempfile

import gguf_adapters
import gguf_condensed
import gguf_drawn
import gguf_families as families
import gguf_folds
import gguf_indexed
import gguf_kimi
import gguf_plain
import gguf_plamo2
import gguf_pooled
import gguf_sizes
import gguf_tiny
import llama_cpp
import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType as Type
from gguf_blocks import floats, random_rows

LIMIT = 90
NARROW = dict(families.CASES)
for name, value in gguf_sizes.WIDE.items():
    setattr(gguf_sizes, name, value)
WIDE = dict(importlib.reload(families).CASES)
# Tokens that there is room for.
CONTEXT = 512
PLAIN = (Type.F32, Type.F16, Type.BF16)
# What rows of so many elements can have.
BY_BLOCK = {
    32: (Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1, Type.Q8_0, Type.IQ4_NL, Type.MXFP4),
    64: (Type.NVFP4,),
    128: (Type.Q1_0,),
    256: (
        Type.Q2_K, Type.Q3_K, Type.Q4_K, Type.Q5_K, Type.Q6_K, Type.IQ4_XS, Type.IQ3_S, Type.IQ3_XXS, Type.IQ2_S, Type.IQ2_XS, Type.IQ2_XXS,
        Type.IQ1_M, Type.IQ1_S, Type.TQ2_0, Type.TQ1_0,
    ),
}  # fmt: skip
DRAWN = {
    **{name: lambda random, name=name: gguf_drawn.drawn(random, name) for name in ("nanbeige", "talkie", "maple", "maion-coder", "spark2_5", "muse-glimmer", "k2-horizon", "minimax-01")},
    **{name: lambda random, name=name: gguf_indexed.drawn(random, name) for name in ("deepseek32", "glm-dsa", "hy_v4", "minimax-m3", "dots3note")},
    **gguf_kimi.DRAWN, "plamo2": gguf_plamo2.drawn, "graniteswitch": gguf_adapters.drawn, "deepseek4": gguf_condensed.drawn, **gguf_pooled.DRAWN, **gguf_plain.DRAWN,
}  # fmt: skip
CACHES = {"f16": Type.F16, "q8_0": Type.Q8_0, "q4_0": Type.Q4_0}


# Types that llama.cpp's library takes long to find codes for: their blocks are random.
SLOW = (Type.IQ3_S, Type.IQ3_XXS, Type.IQ2_S, Type.IQ2_XS, Type.IQ2_XXS, Type.IQ1_M, Type.IQ1_S)


class Packer:
    """Rows of floats as blocks, by llama.cpp's library."""

    def __init__(self, folder):
        self.known = {}
        base = C.CDLL(glob.glob(os.path.join(folder, "libggml-base*.so*"))[0], mode=C.RTLD_GLOBAL)
        self.quantize = base.ggml_quantize_chunk
        self.quantize.restype = C.c_size_t
        self.quantize.argtypes = [C.c_int, C.c_void_p, C.c_void_p, C.c_int64, C.c_int64, C.c_int64, C.c_void_p]

    def pack(self, made, kind):
        """The rows of an array in blocks of a type."""
        key = (kind, made.shape, made.tobytes())
        if key not in self.known:
            self.known[key] = self.packed(np.ascontiguousarray(made, np.float32), kind)
        return self.known[key]

    def packed(self, made, kind):
        """The same, of an array that was not seen before."""
        if kind in SLOW:
            length = made.shape[-1]
            random = np.random.default_rng(made.size)
            return random_rows(random, kind, made.size // length, length, float(made.std() * np.sqrt(length))).reshape(*made.shape[:-1], -1)
        if kind == Type.F32:
            return made
        if kind == Type.F16:
            return made.astype(np.float16)
        block, size = GGML_QUANT_SIZES[kind]
        length = made.shape[-1]
        rows = made.size // length
        out, equal = np.zeros((rows, length // block * size), np.uint8), np.ones(length, np.float32)
        pointer = lambda array: array.ctypes.data_as(C.c_void_p)
        assert self.quantize(kind, pointer(made), pointer(out), 0, rows, length, pointer(equal)) == out.size, kind
        return out.reshape(*made.shape[:-1], -1)

    def unpack(self, packed, kind):
        """The numbers of blocks."""
        return packed.astype(np.float32) if kind in (Type.F32, Type.F16) else floats(packed, kind)


class Ways(gguf_tiny.Llama):
    """llama.cpp with flash attention or without, with caches of f16 or f32."""

    def __init__(self, libraries, path, flash, caches):
        f = self.lib = llama_cpp.libraries(libraries, ["cpu"])
        f.llama_log_set(llama_cpp.SILENT, None)
        self.model = f.llama_model_load_from_file(path.encode(), f.llama_model_default_params())
        assert self.model, path
        params = f.llama_context_default_params()
        numbers = C.cast(C.byref(params), C.POINTER(C.c_uint32))
        assert numbers[26] == numbers[27] == Type.F16 and numbers[13] == 0xFFFFFFFF, "another llama.cpp"
        # Several threads wait for each other in turns, which is slow where a machine is busy.
        assert numbers[7] == numbers[8] == 4, "another llama.cpp"
        numbers[7] = numbers[8] = 1
        numbers[0], numbers[1], numbers[2], numbers[13] = CONTEXT, CONTEXT, CONTEXT, flash
        if caches is not None:
            numbers[26], numbers[27] = caches
        self.context = f.llama_init_from_model(self.model, params)
        assert self.context, path
        self.vocabulary = f.llama_model_get_vocab(self.model)

    def answers(self, prompt, further, alone):
        """Logits behind a prompt, and behind tokens that come one by one."""
        self.lib.llama_memory_clear(self.lib.llama_get_memory(self.context), True)
        if alone:
            for token in prompt:
                first = self.logits([token])
        else:
            first = self.logits(prompt)
        for token in further:
            last = self.logits([token])
        return first, last


# What llama-quantize makes of most matrices, of those that matter more (in some layers, or in all), and of the output.
MIXTURES = {
    "Q2_K": (Type.Q2_K, Type.Q3_K, Type.Q6_K), "Q3_K_M": (Type.Q3_K, Type.Q5_K, Type.Q6_K), "Q4_K_S": (Type.Q4_K, Type.Q5_K, Type.Q6_K),
    "Q4_K_M": (Type.Q4_K, Type.Q6_K, Type.Q6_K), "Q5_K_M": (Type.Q5_K, Type.Q6_K, Type.Q6_K), "Q4_0": (Type.Q4_0, Type.Q4_1, Type.Q6_K),
    "Q5_1": (Type.Q5_1, Type.Q5_1, Type.Q6_K), "IQ4_XS": (Type.IQ4_XS, Type.Q5_K, Type.Q6_K), "IQ3_M": (Type.IQ3_S, Type.Q4_K, Type.Q6_K),
    "IQ2_M": (Type.IQ2_S, Type.IQ3_S, Type.Q5_K), "IQ1_M": (Type.IQ1_M, Type.IQ2_XXS, Type.Q5_K), "TQ2_0": (Type.TQ2_0, Type.Q4_K, Type.Q6_K),
    "MXFP4_MOE": (Type.Q8_0, Type.Q8_0, Type.Q8_0),
}  # fmt: skip
# What rows have that are of no whole blocks of 256.
SHORTER = {
    Type.Q2_K: Type.Q4_0, Type.Q3_K: Type.Q4_0, Type.Q4_K: Type.Q5_0, Type.Q5_K: Type.Q5_1, Type.Q6_K: Type.Q8_0, Type.TQ2_0: Type.Q4_0,
    **dict.fromkeys((Type.IQ4_XS, Type.IQ3_S, Type.IQ2_S, Type.IQ2_XXS, Type.IQ1_M), Type.IQ4_NL),
}  # fmt: skip


def mixture(random):
    """Types by name and length of rows, as a kind of llama-quantize's has them."""
    name = sorted(MIXTURES)[int(random.integers(len(MIXTURES)))]
    most, better, last = MIXTURES[name]

    def kind_of(name_of, length):
        part, layer = name_of.split(".")[-2], name_of.split(".")[1] if name_of.startswith("blk.") else ""
        kind = most
        if part == "output" or part == "token_embd" and name.startswith("IQ"):
            kind = last
        elif part in ("attn_v", "attn_qkv", "ffn_down", "ffn_down_exps") and layer.isdigit() and int(layer) % 2 == 0:
            kind = better
        elif name == "MXFP4_MOE" and part.endswith("_exps"):
            kind = Type.MXFP4
        return kind if length % GGML_QUANT_SIZES[kind][0] == 0 else SHORTER[kind]

    return name, kind_of


def odd_sizes(random):
    """Cases whose sizes are drawn one by one."""
    one = lambda *of: of[int(random.integers(len(of)))]
    heads = one(2, 2, 2, 3, 4, 6)
    small = one(*(small for small in (16, 32, 48, 64, 80, 96, 128) if heads * small % 32 == 0))
    state = one(16, 32, 64)
    drawn = {
        "WIDTH": heads * small, "HEADS": heads, "KV_HEADS": one(*(kv for kv in (1, 2, 3) if heads % kv == 0)), "DIM": one(64, 80, 96, 128, 256, 48),
        "INNER": one(96, 160, 256, 352, 544), "EXPERTS": one(8, 12, 20), "EXPERT_INNER": one(32, 96, 160, 256), "Q_RANK": one(32, 96, 160),
        "RANK": one(32, 96, 160, 256), "BARE": one(32, 64, 96, 128), "TURNED": one(16, 32, 64), "VALUE": one(32, 64, 96, 128), "SSM_STATE": state,
        "KDA": one(16, 32, 64), "KDA_TAPS": one(2, 3, 4), "SHORT": one(32, 96, 160),
    }  # fmt: skip
    for name, value in drawn.items():
        setattr(gguf_sizes, name, value)
    return importlib.reload(families).CASES


def chosen_types(random):
    """What types matrices have, by name and length of rows."""
    if random.integers(3) == 0:
        return mixture(random)
    one = lambda of: of[int(random.integers(len(of)))]
    fits = lambda length: [kind for block, kinds in BY_BLOCK.items() if length % block == 0 for kind in kinds] + list(PLAIN)
    same, drawn = bool(random.integers(3) == 0), {}

    def kind_of(name, length):
        part = "all" if same else name.split(".")[-2] if "." in name else name
        if (part, length) not in drawn:
            # Blocks are more often than floats, and new ones than those that all files have.
            kinds = fits(length)
            drawn[part, length] = one(kinds)
        return drawn[part, length]

    return "drawn", kind_of


def arch_of(name):
    """The architecture of SIZE:NAME."""
    size, case = name.split(":")
    return case.removesuffix("-moe") if size == "drawn" else WIDE[case][0] if case in WIDE else NARROW[case][0]


def write(path, libraries, packer, seed, names):
    """A model and its reference."""
    random = np.random.default_rng(seed)
    one = lambda *of: of[int(random.integers(len(of)))]
    # Those of gguf_variants.py have small sizes alone.
    every = [f"{size}:{name}" for size in ("narrow", "wide", "odd", "odd") for name in (NARROW if size == "narrow" else WIDE)] + [f"drawn:{name}" for name in DRAWN for _ in range(2)]
    is_folded, names = names[:1] == ("FOLDED",), tuple(own for own in names if own != "FOLDED")
    every = [own for own in every if not is_folded or arch_of(own) in gguf_folds.ARCHITECTURES and not own.endswith("-folded")]
    name = one(*(sorted(own for own in every if own in names or own.split(":")[1] in names) if names else every))
    size, case = name.split(":")
    more = {}
    if size == "drawn":
        arch = case.removesuffix("-moe")
        keys, layers, model, *given = DRAWN[case](random)
        more = given[0] if given else {}
    else:
        arch, keys, layers, *model = NARROW[case] if size == "narrow" else WIDE[case] if size == "wide" else odd_sizes(random)[case]
        model = model[0] if model else [["output_norm", "width"], ["output", "vocabulary", "width"]]
        width = keys.get("embedding_length", 32 if size == "narrow" else gguf_sizes.WIDTH)
        model = [[width if part == "width" else part for part in parts] for parts in model]
        keys = {"embedding_length": width, **keys}
        if size == "narrow":
            keys = {"feed_forward_length": 64, "attention.key_length": 32, "attention.value_length": 32, "rope.dimension_count": 32, **keys}
        if random.integers(3) == 0:
            model = [parts for parts in model if parts[0] != "output"]
    model = [[CONTEXT if part == "context" else part for part in parts] for parts in model]
    keys |= gguf_folds.drawn(random, keys["embedding_length"], layers, model) if is_folded else {}
    families.CASES["drawn"] = (arch, {**keys, "context_length": CONTEXT}, layers, model)
    number, (types_by, kind_of) = int(random.integers(100)), chosen_types(random)
    types = {}
    remembered = lambda name, length: types.setdefault(name, kind_of(name, length))
    given = {"seed": int(random.integers(1 << 30)), "added": one(0.3, 1.0), "kind_of": remembered, "pack": packer.pack, "unpack": packer.unpack, **more}
    vocabulary = lambda w: gguf_tiny.scores_vocabulary(w, number)
    families.write(path, "drawn", vocabulary, False, **given)
    lengths = [one(1, 2, 31, 32, 33, 300, *random.integers(2, 66, 4).tolist()) for _ in range(int(random.integers(2, 5)))]
    texts = [[int(token) for token in random.integers(3, 250, length + families.STEPS)] for length in lengths]
    pieces = []
    while sum(pieces) < lengths[0]:
        pieces.append(min(one(1, 1, 2, 3, 7, 8, 9, 16, 31, 32, 33, 64, 100), lengths[0] - sum(pieces)))
    caches = [one(*CACHES), one(*CACHES)]
    made = {"name": name, "arch": arch, "context": CONTEXT, "mixture": types_by, "types": {key: kind.name for key, kind in types.items()}, "tied": not any(parts[0] == "output" for parts in model)}
    made |= {"pieces": pieces, "cut": int(random.integers(1, lengths[0] + 1)), "caches": caches, "ways": []}
    alone = arch in families.ALONE
    with tempfile.TemporaryDirectory() as folder:
        plain = os.path.join(folder, "floats.gguf")
        families.write(plain, "drawn", vocabulary, True, **given)
        for flash, caches in ((0xFFFFFFFF, None), (0, None), (0, (Type.F32, Type.F32))):
            try:
                llama = Ways(libraries, plain, flash, caches)
            except AssertionError:
                continue
            made["ways"].append([[families.rounded(logits) for logits in llama.answers(text[: -families.STEPS], text[-families.STEPS :], alone)] for text in texts])
        # Beside matrices in BF16 llama.cpp rounds activations to that, which may choose other experts.
        if Type.BF16 in types.values():
            rounded = os.path.join(folder, "rounded.gguf")
            families.write(rounded, "drawn", vocabulary, True, kept=(Type.BF16,), **given)
            for flash, caches in ((0xFFFFFFFF, None), (0, None), (0, (Type.F32, Type.F32))):
                with contextlib.suppress(AssertionError):
                    llama = Ways(libraries, rounded, flash, caches)
                    made["ways"].append([[families.rounded(logits) for logits in llama.answers(text[: -families.STEPS], text[-families.STEPS :], alone)] for text in texts])
        # llama.cpp needs its flash attention for values in blocks.
        try:
            llama = Ways(libraries, plain, 1, tuple(CACHES[kind] for kind in made["caches"]))
            made["in_blocks"] = [[families.rounded(logits) for logits in llama.answers(text[: -families.STEPS], text[-families.STEPS :], alone)] for text in texts[:1]]
        except AssertionError:
            made["in_blocks"] = None
    assert made["ways"], "llama.cpp takes it in no way"
    made["texts"] = [[text[: -families.STEPS], text[-families.STEPS :]] for text in texts]
    # As the other programs write it.
    made |= {"prompt": made["texts"][0][0], "further": made["texts"][0][1], "logits": made["ways"][0][0][0], "last": made["ways"][0][0][1]}
    with open(path.removesuffix("gguf") + "json", "w") as file:
        json.dump(made, file)
    print(os.path.basename(path), name, flush=True)


def main(out, libraries, count, seed, *names):
    os.makedirs(out, exist_ok=True)
    packer = Packer(libraries)
    for number in range(int(count)):
        path = os.path.join(out, f"{number:03}.gguf")
        # llama.cpp ends the process that it does not like something in.
        process = os.fork()
        if process == 0:
            signal.alarm(LIMIT)
            try:
                write(path, libraries, packer, [int(seed), number], names)
            except AssertionError as error:
                print(os.path.basename(path), "left out:", str(error)[:200], flush=True)
                os._exit(1)
            os._exit(0)
        status = os.waitpid(process, 0)[1]
        if status and os.path.exists(path):
            os.rename(path, path + ".refused")


if __name__ == "__main__":
    main(*sys.argv[1:])
