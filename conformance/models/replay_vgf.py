#!/usr/bin/env python3
"""Runs recorded VGF files by the program `halite`, and has the results checked by the verifier of PyPI's `tosa-tools`.

usage: replay_vgf.py run CASES OUT [--halite PROGRAM] [--jobs N] [--only TEXT] [--limit SECONDS] [--stop SECONDS] [-- FLAGS of halite run]
       replay_vgf.py verify CASES OUT [--only TEXT] [--bounds FOLDER]

CASES is a folder, or a tar of it, with `ops.jsonl` (a case a line, its files below `ops/`) and `special.jsonl` (below `special/`). `run`
needs Python alone, so it works on a machine that has a device and nothing else. It writes what each case gives as raw bytes to
OUT/NAME-N.bin and a line of OUT/run.jsonl. `verify` needs numpy and tosa-tools, and no device: copy OUT to where they are. An output
with a rule (`compliance`) goes to the verifier with the reference of double precision and the bounds; others are equal to the bit.
Where a rule's bounds are not among the files, they are looked for in the folder that `vgf_bounds.py` made; without them the output is
undecided. Shaders in GLSL or HLSL, which halite refuses by name, are counted apart.
`verify` fails unless all cases are right.
"""
import argparse, ast, collections, concurrent.futures, json, os, pathlib, struct, subprocess, sys, tarfile, tempfile, time

# Elements that numpy has no name for, by how the cases' arrays are stored; a `.vgf` declares floats of 8 bits as bytes.
UNNAMED = {"V2": "bf16", "V1": "ui8"}
# Cases of RESCALE with `iu1` in their names take unsigned numbers, which the arrays hold as signed ones.
UNSIGNED = {"i1": "ui8", "i2": "ui16"}
# What is said of an output that nothing here can judge.
MISSING = "which are not here"
# TOSA's rules compare these with numbers of double precision; of other types only the bits count.
FLOATS = {"FP32", "FP16", "BF16", "FP8E4M3", "FP8E5M2"}


def load(folder, only, made):
    """All cases: name, file, inputs, outputs; `made` is where bounds lie that the folder lacks."""
    cases = []
    for kind in ["ops", "special"]:
        path = folder / f"{kind}.jsonl"
        for line in path.read_text().splitlines() if path.exists() else []:
            case = json.loads(line)
            below = lambda path: folder / kind / path
            # What the converter refused has no file.
            if not case["vgf"] or only not in case["name"]:
                continue
            outputs = case.get("outputs") or [{"file": path} for path in case["expected"]]
            inputs = [case["inputs"][slot] for slot in case.get("vgf_input_slots", range(len(case["inputs"])))]
            kept = [{key: below(o[key]) for key in ["file", "fp64", "bounds"] if key in o} | {"rule": o.get("compliance")} for o in outputs]
            for output in kept:
                if made and "bounds" in output and not output["bounds"].exists():
                    output["bounds"] = made / output["bounds"].relative_to(folder / kind)
            cases.append({"name": case["name"], "vgf": below(case["vgf"]), "inputs": [below(i) for i in inputs], "outputs": kept})
    return cases


def argument(path, made, n, unsigned):
    """How `halite run` takes an array: as it is, or as raw bytes where its header does not tell the elements."""
    data = path.read_bytes()
    wide = data[6] > 1
    start = 12 if wide else 10
    end = start + struct.unpack_from("<I" if wide else "<H", data, 8)[0]
    header = ast.literal_eval(data[start:end].decode("latin1"))
    element = (UNNAMED | (UNSIGNED if unsigned else {})).get(header["descr"][1:])
    if not element:
        return f"@{path}"
    raw = pathlib.Path(made) / f"{n}.bin"
    raw.write_bytes(data[end:])
    return "x".join([*map(str, header["shape"]), element]) + f"=@{raw}"


def run_one(case, args, flags):
    start = time.time()
    with tempfile.TemporaryDirectory() as made:
        command = [args.halite, "run", str(case["vgf"]), "--quiet", "--compile-cache=off", *flags]
        command += [f"--input={argument(path, made, n, '_iu1_' in case['name'])}" for n, path in enumerate(case["inputs"])]
        command += [f"--output=@{given(args.out, case, n)}" for n in range(len(case["outputs"]))]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=args.limit, stdin=subprocess.DEVNULL)
            why = " ".join(done.stderr.split())[-600:] or f"status {done.returncode}" if done.returncode else None
        except subprocess.TimeoutExpired:
            why = f"more than {args.limit} s"
    return {"name": case["name"], "why": why, "seconds": round(time.time() - start, 3)}


def given(out, case, n):
    return out.resolve() / f"{case['name'].replace('/', '_')}-{n}.bin"


def run(cases, args, flags):
    args.out.mkdir(parents=True, exist_ok=True)
    start, lines = time.time(), []

    def one(case):
        if args.stop and time.time() - start > args.stop:
            return {"name": case["name"], "why": "not begun", "seconds": 0.0}
        return run_one(case, args, flags)

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool, (args.out / "run.jsonl").open("w") as file:
        for line in pool.map(one, cases):
            lines.append(line)
            file.write(json.dumps(line) + "\n")
            if line["why"]:
                print("refused", line["name"], line["why"], flush=True)
    gave = sum(not line["why"] for line in lines)
    print(f"{gave} of {len(lines)} gave results, in {time.time() - start:.1f} s with {args.jobs} processes")
    return gave == len(lines)


def checker():
    """The function of tosa-tools that checks an output: (rule, given, reference, bounds) -> is it right."""
    import tosa_reference_model
    from checker.verifier import VerifierLibrary

    [path] = pathlib.Path(tosa_reference_model.__file__).parent.glob("libtosa_reference_verify_lib.*")
    library = VerifierLibrary(path)

    def check(rule, found, reference, bounds):
        config = {"version": "0.1", "tensors": {"output": rule}}
        return library.verify_data("output", config, found, reference, bounds)

    return check


def wrong(case, out, check, np):
    """What is wrong with a case's results, or None."""
    for n, output in enumerate(case["outputs"]):
        expected, raw = np.load(output["file"]), given(out, case, n).read_bytes()
        if len(raw) != expected.nbytes:
            return f"output {n} has {len(raw)} bytes for {expected.nbytes}"
        found = np.frombuffer(raw, dtype=expected.dtype).reshape(expected.shape).copy()
        rule = output["rule"]
        if not rule or rule["data_type"] not in FLOATS and rule["mode"] == "EXACT":
            if raw != expected.tobytes():
                return f"output {n} is not equal to the bit"
            continue
        reference = np.load(output["fp64"]) if "fp64" in output else expected
        bounds = None
        if "bounds" in output:
            if not output["bounds"].exists():
                return f"output {n} needs the bounds of {rule['mode']}, {MISSING}"
            bounds = np.load(output["bounds"])
        if not check(rule, found, reference, bounds):
            return f"output {n} is not right by {rule['mode']}"
    return None


def verify(cases, args):
    import numpy as np

    check = checker()
    ran = {line["name"]: line for line in map(json.loads, (args.out / "run.jsonl").read_text().splitlines())}
    counts, modes = collections.Counter(), collections.Counter()
    for case in cases:
        line = ran.get(case["name"], {"why": "not begun"})
        why = line["why"] or wrong(case, args.out, check, np)
        source = "source code is not compiled" in (line["why"] or "")
        kind = "right" if not why else "source code" if source else "not begun" if why == "not begun" else "refused" if line["why"] else "undecided" if MISSING in why else "wrong"
        counts[kind] += 1
        if not why:
            modes.update(output["rule"]["mode"] if output["rule"] else "equal" for output in case["outputs"])
        else:
            print(kind, case["name"], why)
    wanted = len(cases) - counts["source code"]
    print(f"{counts['right']} of {wanted} are right:", dict(counts), "outputs by rule:", dict(modes))
    return wanted > 0 and counts["right"] == wanted


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["run", "verify"])
    parser.add_argument("cases", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--halite", default="halite")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", default="", help="a text that names have")
    parser.add_argument("--bounds", type=pathlib.Path, help="what vgf_bounds.py wrote")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for a case")
    parser.add_argument("--stop", type=float, help="seconds after which no case begins")
    own, flags = sys.argv[1:], []
    if "--" in own:
        own, flags = own[: own.index("--")], own[own.index("--") + 1 :]
    args = parser.parse_args(own)
    with tempfile.TemporaryDirectory() as unpacked:
        folder = args.cases
        if folder.is_file():
            with tarfile.open(folder) as tar:
                tar.extractall(unpacked, filter="data")
            folder = pathlib.Path(unpacked)
        cases = load(folder, args.only, args.bounds)
        sys.exit(0 if (run(cases, args, flags) if args.step == "run" else verify(cases, args)) else 1)


if __name__ == "__main__":
    main()
