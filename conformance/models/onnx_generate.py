#!/usr/bin/env python3
"""Generates greedily with ONNX decoders whose caches grow, in Halite and in ONNX Runtime, and says whether all tokens are equal, how
many versions were compiled, which tokens waited, and what a token takes beside a program of fixed sizes.

    onnx_generate.py make FOLDER [NAME...]
    onnx_generate.py expect [--tokens 512] [--batch 1] MODEL.onnx...
    onnx_generate.py check [--device vulkan] [--tokens 512] [--batch 1] [--fixed 100,400] [--log FILE] MODEL.onnx...

`make` writes the decoders of onnx_generate_cases.py, which needs torch, transformers and onnx (onnxruntime-genai for some). `check` takes any decoder
whose inputs are called as Optimum and onnxruntime-genai call them; it needs the packages `halite`, onnx and onnxruntime. What inputs no name
explains are drawn at random, the same for all calls. `expect` writes what ONNX Runtime generates to MODEL.expected.npz; where that is, `check` needs no onnxruntime.
"""
import argparse
import json
import pathlib
import statistics
import sys
import time
import traceback

import numpy as np
import onnx

TOLERANCE = 2e-4


# How many of the logits of a token are kept.
KEPT = 256


class Port:
    """An input or output of a model."""

    def __init__(self, value):
        kind = value.type.tensor_type
        self.name, self.type = value.name, onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type).type
        self.shape = [dim.dim_value if dim.HasField("dim_value") else dim.dim_param for dim in kind.shape.dim]


def ports(path):
    """The inputs and outputs of a model."""
    graph = onnx.load(path, load_external_data=False).graph
    return [Port(value) for value in graph.input], [Port(value) for value in graph.output]


class Loop:
    """What a decoder's inputs are from call to call. Sequences of different lengths are padded on the left."""

    def __init__(self, inputs, outputs, prompts, frames, seed=5):
        self.random = np.random.default_rng(seed)
        self.names = [value.name for value in outputs]
        self.inputs = {value.name: value for value in inputs}
        self.prompts, self.frames, self.batch = prompts, frames, len(prompts)
        self.logits = next(name for name in self.names if "logits" in name)
        self.pairs = {name: self.present(name) for name in self.inputs if name.startswith("past")}
        self.words = next(value.shape[-1] for value in outputs if value.name == self.logits)
        longest = max(prompts)
        self.ids = self.random.integers(3, self.words, (self.batch, longest)).astype(np.int64)
        self.mask = np.array([[int(place >= longest - own) for place in range(longest)] for own in prompts], np.int64)
        self.ids = np.where(self.mask == 1, self.ids, 0)
        self.constants = {}

    def present(self, name):
        """The output that replaces a cache; none for those of an encoder, which stay."""
        rest = name.removeprefix("past_key_values").removeprefix("past")
        found = [own for own in self.names if own.startswith("present") and own.removeprefix("present_key_values").removeprefix("present") == rest]
        return found[0] if found else None

    def sizes(self, shape):
        """The dimensions of an input, of which none is a cache's length."""
        return [dim if isinstance(dim, int) else self.frames if place else self.batch for place, dim in enumerate(shape)]

    def first(self, name):
        """A cache before the first call."""
        shape = self.inputs[name].shape
        inner = [axis for axis in range(1, len(shape)) if not isinstance(shape[axis], int)]
        return np.zeros([0 if axis in inner else size for axis, size in enumerate(self.sizes(shape))], self.inputs[name].type)

    def call(self, ids):
        """The inputs of a call but for its caches. `self.mask` counts its tokens already."""
        length, total = ids.shape[1], self.mask.shape[1]
        positions = np.maximum(np.cumsum(self.mask, axis=1) - 1, 0)[:, total - length :]
        known = {"input_ids": ids, "decoder_input_ids": ids, "attention_mask": self.mask, "decoder_attention_mask": self.mask, "position_ids": positions,
                 "cache_position": np.arange(total - length, total), "use_cache_branch": np.array([total > length])}
        made = {}
        for name, value in self.inputs.items():
            if name in self.pairs and self.pairs[name]:
                continue
            if name in known:
                made[name] = known[name].astype(value.type)
            elif name.startswith("encoder_attention_mask"):
                made[name] = np.ones((self.batch, self.frames), value.type)
            else:
                if name not in self.constants:
                    self.constants[name] = self.random.standard_normal(self.sizes(value.shape)).astype(value.type)
                made[name] = self.constants[name]
        return made

    def next(self, logits):
        """The most likely tokens, which become part of the mask."""
        found = np.asarray(logits)[:, -1].argmax(-1).astype(np.int64)[:, None]
        self.mask = np.concatenate([self.mask, np.ones_like(found)], axis=1)
        return found


def generate(loop, run, count, is_timed=None):
    """Tokens, the largest logit of each, and what each call took."""
    ids, tokens, tops, times = loop.ids, [], [], []
    for _ in range(count):
        given = loop.call(ids)
        start = time.perf_counter()
        logits = run(given)
        times.append(time.perf_counter() - start)
        tops.append(np.asarray(logits)[:, -1].copy())
        ids = loop.next(logits)
        tokens.append(ids[:, 0].tolist())
        if is_timed:
            is_timed()
    return tokens, tops, times


def of_runtime(session, loop):
    """Runs a decoder in ONNX Runtime, with caches as arrays."""
    pairs = {past: present for past, present in loop.pairs.items() if present}
    caches = {name: loop.first(name) for name in pairs}

    def run(given):
        out = dict(zip(loop.names, session.run(None, {**given, **caches})))
        caches.update({past: out[present] for past, present in pairs.items()})
        return out[loop.logits]

    return run


def of_halite(session, loop):
    """Runs a decoder in Halite, with caches in a state of the session."""
    state = session.state()
    for name in state.keys():
        state[name] = loop.first(name)
    return lambda given: state.run(given)[loop.logits]


def fixed_ratio(path, loop, session, past, rounds=60):
    """What a token takes behind so many in the session, and in one of that size alone, by the clock and of the processor: the least of alternated calls."""
    import halite

    loop.mask = np.ones((loop.batch, past + 1), np.int64)
    given = loop.call(np.full((loop.batch, 1), 3, np.int64))
    for name, present in loop.pairs.items():
        if present:
            shape = [past if size == 0 else size for size in loop.first(name).shape]
            given[name] = (loop.random.standard_normal(shape) * 0.1).astype(loop.inputs[name].type)
    shapes = {name: list(value.shape) for name, value in given.items()}
    # One device for both: so the same tensors are for both, and what else the device does is.
    fixed = halite.Session(str(path), device=session.device, cache=False, shapes=shapes)
    given = {name: halite.Tensor(value, device=session.device) for name, value in given.items()}
    for one in (session, fixed):
        one.run(given)
    times = {id(session): [], id(fixed): []}
    for _ in range(rounds):
        for one in (session, fixed):
            start = time.perf_counter(), time.process_time()
            one.run(given)[loop.logits]
            times[id(one)].append((time.perf_counter() - start[0], time.process_time() - start[1]))
    return [min(own) for one in (session, fixed) for own in zip(*times[id(one)])]


def loop_of(path, args):
    prompts = [args.prompt + (3 * place) % 5 for place in range(args.batch)]
    return Loop(*ports(path), prompts, args.frames)


def wanted_of(path, args):
    """Tokens, some logits of each, and what each call took, in ONNX Runtime."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    options.add_session_config_entry("session.x64quantprecision", "1")
    other = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    loop = loop_of(path, args)
    tokens, tops, times = generate(loop, of_runtime(other, loop), args.tokens)
    return tokens, [top[:, :KEPT] for top in tops], times


def expected_at(path):
    return path.with_name(f"{path.stem}.expected.npz")


def expect(path, args):
    """Writes what is right."""
    tokens, tops, _ = wanted_of(path, args)
    np.savez_compressed(expected_at(path), tokens=tokens, tops=np.array(tops))


def check(path, args):
    """What is found of a decoder."""
    import halite

    if expected_at(path).exists():
        made = np.load(expected_at(path))
        wanted, tops, reference_times = made["tokens"][: args.tokens].tolist(), list(made["tops"][: args.tokens]), [0.0, 0.0]
    else:
        wanted, tops, reference_times = wanted_of(path, args)
    loop = loop_of(path, args)
    session = halite.Session(str(path), device=args.device, cache=False, max_loaded_versions=256, **({} if args.ahead is None else {"compile_ahead": args.ahead}))
    counts, memory = [], []

    def look():
        counts.append(session.loaded_versions)
        memory.append(session.device.memory()["used"])

    found, own, times = generate(loop, of_halite(session, loop), len(wanted), look)
    total = sum(len(row) for row in wanted)
    equal = sum(a == b for x, y in zip(wanted, found) for a, b in zip(x, y))
    apart = max(float(np.abs(a - b[:, :KEPT]).max() / np.abs(a).max()) for a, b in zip(tops, own))
    median = statistics.median(times[1:])
    slow = [(place + 1, round(took * 1e3, 1)) for place, took in enumerate(times) if took > 3 * median]
    made = [place + 1 for place, count in enumerate(counts) if count > (counts[place - 1] if place else 0)]
    ratios = {}
    for past in args.fixed:
        ours, ours_work, alone, alone_work = fixed_ratio(path, loop, session, past)
        ratios[past] = [round(ours * 1e3, 3), round(alone * 1e3, 3), round(ours / alone, 3), round(ours_work / max(alone_work, 1e-9), 3)]
    return {
        "equal": f"{equal} of {total}", "apart": apart, "versions": counts[-1], "made_at": made, "median_ms": round(median * 1e3, 3),
        "onnxruntime_ms": round(statistics.median(reference_times[1:]) * 1e3, 3), "slow": slow[:16], "slow_calls": len(slow),
        "memory": [memory[min(8, len(memory) - 1)], memory[-1]], "all_s": round(sum(times), 2), "fixed": ratios,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["make", "expect", "check"])
    parser.add_argument("paths", nargs="+", type=pathlib.Path)
    parser.add_argument("--device", default="vulkan")
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--prompt", type=int, default=8)
    parser.add_argument("--frames", type=int, default=9)
    parser.add_argument("--ahead", type=lambda text: text == "on", default=None)
    parser.add_argument("--fixed", type=lambda text: [int(size) for size in text.split(",") if size], default=[])
    parser.add_argument("--log", type=pathlib.Path)
    args = parser.parse_args()
    if args.what == "make":
        from onnx_generate_cases import make

        make(args.paths[0], [str(name) for name in args.paths[1:]])
        return
    bad = 0
    for path in args.paths:
        if args.what == "expect":
            expect(path, args)
            continue
        try:
            found = check(path, args)
        except Exception as error:  # noqa: BLE001: what is refused is told.
            found = {"failed": f"{type(error).__name__}: {str(error)[:400]}", "where": traceback.format_exc().splitlines()[-3].strip()[:200]}
        bad += "failed" in found or len(set(found["equal"].split(" of "))) != 1
        line = json.dumps({"file": path.name, "batch": args.batch, **found})
        print(line, flush=True)
        if args.log:
            with args.log.open("a") as log:
                log.write(line + "\n")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
