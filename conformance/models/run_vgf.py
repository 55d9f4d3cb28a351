#!/usr/bin/env python3
"""Runs the networks that `export_vgf.py` and `tosa_random.py` wrote, checks what they give, and times them. Needs Python alone.

usage: run_vgf.py FOLDER [--halite PROGRAM] [--only TEXT] [--jobs N] [--time SECONDS] [--stop SECONDS] [-- FLAGS of halite]

FOLDER has a `manifest.jsonl`, or folders that have. Integers have to be equal to the bit to the reference model's, floats within
`part` of the largest value of an output. `--time` also times each `.vgf` so long: the shortest call and the median, from host memory and back.
Files that are named but not there are left out. After `--stop` seconds nothing begins. Fails unless all are right.
"""
import argparse, array, ast, concurrent.futures, json, pathlib, struct, subprocess, sys, tempfile, time


def load(path):
    """The type of an array's elements, as numpy writes it, and its bytes."""
    data = path.read_bytes()
    wide = data[6] > 1
    start = 12 if wide else 10
    end = start + struct.unpack_from("<I" if wide else "<H", data, 8)[0]
    return ast.literal_eval(data[start:end].decode("latin1"))["descr"], data[end:]


def floats(dtype, data):
    """The numbers of an array of floats."""
    if dtype == "<f4":
        return array.array("f", data)
    return [value for (value,) in struct.iter_unpack({"<f2": "<e", "<f8": "<d"}[dtype], data)]


def wrong(case, folder, given):
    for n, (name, path) in enumerate(zip(case["outputs"], given)):
        (dtype, expected), (own, found) = load(folder / name), load(path)
        if dtype != own or len(expected) != len(found):
            return f"output {n} is {len(found)} bytes of {own}, not {len(expected)} of {dtype}"
        if "f" not in dtype:
            if expected != found:
                return f"output {n} is not equal to the bit"
            continue
        wanted, found = floats(dtype, expected), floats(dtype, found)
        largest = max(map(abs, wanted), default=0.0)
        off = max((abs(a - b) for a, b in zip(wanted, found)), default=0.0)
        # A NaN is not within any bound.
        if not off <= case["part"] * largest or any(value != value for value in found):
            return f"output {n} is off by {off} where the largest value is {largest}"
    return None


def check(case, folder, file, args, flags):
    with tempfile.TemporaryDirectory() as made:
        given = [pathlib.Path(made) / f"{n}.npy" for n in range(len(case["outputs"]))]
        command = [args.halite, "run", str(folder / file), "--function=main", "--quiet", "--compile-cache=off", *flags]
        command += [f"--input=@{folder / path}" for path in case["inputs"]] + [f"--output=@{path}" for path in given]
        try:
            ran = subprocess.run(command, capture_output=True, text=True, timeout=args.limit)
        except subprocess.TimeoutExpired:
            return f"more than {args.limit} s"
        return " ".join(ran.stderr.split())[-300:] or f"status {ran.returncode}" if ran.returncode else wrong(case, folder, given)


def timed(case, folder, file, args, flags):
    command = [args.halite, "bench", str(folder / file), "--function=main", f"--benchmark_min_time={args.time}s", "--benchmark_format=json", *flags]
    command += [f"--input=@{folder / path}" for path in case["inputs"]]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=args.limit)
    if ran.returncode:
        return "not timed: " + " ".join(ran.stderr.split())[-200:]
    line = json.loads(ran.stdout)["benchmarks"][0]
    return f"{line['min']:.3f} ms, median {line['p50']:.3f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--halite", default="halite")
    parser.add_argument("--only", default="", help="a text that names have")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--time", type=float)
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for a file")
    parser.add_argument("--stop", type=float, default=1e9)
    own, flags = sys.argv[1:], []
    if "--" in own:
        own, flags = own[: own.index("--")], own[own.index("--") + 1 :]
    args = parser.parse_args(own)
    start, found = time.time(), []
    for manifest in sorted([*args.folder.glob("manifest.jsonl"), *args.folder.glob("*/manifest.jsonl")]):
        for line in manifest.read_text().splitlines():
            case = json.loads(line)
            found += [(case, manifest.parent, file) for file in case["files"] if args.only in case["name"] and (manifest.parent / file).exists()]

    def one(item):
        return "not begun" if time.time() - start > args.stop else check(*item, args, flags)

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        results = list(pool.map(one, found))
    for (_, _, file), why in zip(found, results):
        if why:
            print("wrong" if why != "not begun" else "left", file, why, flush=True)
    right = sum(why is None for why in results)
    print(f"{right} of {len(found)} are right, in {time.time() - start:.1f} s", flush=True)
    for case, folder, file in found if args.time else []:
        if file.endswith(".vgf") and not case["name"].startswith("random") and time.time() - start < args.stop:
            print(f"{file}: {timed(case, folder, file, args, flags)}", flush=True)
    sys.exit(0 if found and right == len(found) else 1)


if __name__ == "__main__":
    main()
