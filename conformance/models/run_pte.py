#!/usr/bin/env python3
"""Runs the programs that export_pte_networks.py wrote by the program `halite`, and says of how many networks and kinds the results are right.

usage: run_pte.py OUT_DIR [--halite PROGRAM] [--only TEXT] [--limit SECONDS] [--drop] [--table] [-- FLAGS of halite run]

Each line of OUT_DIR/manifest.jsonl that has no result yet is run, each set of inputs by itself, and its result appended to
OUT_DIR/results.jsonl: `pass`, `wrong` (with what), `refused` (with halite's words) or `slow`. What is right has each number within `atol` of the
expected one, and the root of the mean square of the differences below `rms` of that of the expected numbers. `--again` runs what
did not pass once more, `--drop` removes programs that passed, `--table` prints networks by kinds. Programs with state are for `halite/tests/program_folder.rs`.
"""
import argparse, json, pathlib, subprocess, sys, tempfile
import numpy as np


def compare(case, given, wanted):
    """What is wrong or None, the largest difference, and the root mean square of the differences as a part of the expected numbers'."""
    most, squares, of = 0.0, 0.0, 0.0
    for n, (a, b) in enumerate(zip(given, wanted)):
        a, b = np.load(a), np.load(b)
        if a.shape != b.shape:
            return f"output {n} is {a.shape} for {b.shape}", float("inf"), float("inf")
        a, b = a.astype(np.float64).ravel(), b.astype(np.float64).ravel()
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        apart = np.where(same, 0.0, np.abs(np.where(same, 0.0, a) - np.where(same, 0.0, b)))
        most = max(most, float(apart.max(initial=0.0)) if not np.isnan(apart).any() else float("inf"))
        squares, of = squares + float((apart**2).sum()), of + float((b[np.isfinite(b)] ** 2).sum())
    rms = (squares / max(of, 1e-30)) ** 0.5
    if not most <= case["atol"]:
        return f"{most:.2e} off, {case['atol']:.2e} of {case['largest']:.2e} is allowed, rms {rms:.2e}", most, rms
    return (f"rms {rms:.2e}, {case['rms']:.2e} is allowed" if not rms <= case["rms"] else None), most, rms


def run(case, folder, halite, flags, limit):
    result = {"name": case["name"], "result": "pass", "most": 0.0, "rms": 0.0, "bound": case["rms"]}
    for files in case["sets"]:
        with tempfile.TemporaryDirectory() as made:
            given = [pathlib.Path(made) / f"{n}.npy" for n in range(len(files["outputs"]))]
            command = [halite, "run", str(folder / case["pte"]), "--compile-cache=off", *flags]
            command += [f"--input=@{folder / path}" for path in files["inputs"]] + [f"--output=@{path}" for path in given]
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
            except subprocess.TimeoutExpired:
                return result | {"result": "slow", "why": f"more than {limit} s"}
            if done.returncode:
                return result | {"result": "refused", "why": " ".join(done.stderr.split())[-600:]}
            why, most, rms = compare(case, given, [folder / path for path in files["outputs"]])
            result |= {"most": max(result["most"], most), "rms": max(result["rms"], rms)}
            if why:
                return result | {"result": "wrong", "why": why}
    return result


def table(results):
    """Networks by kinds: `+` is right, `-` is not."""
    names = [result["name"].rsplit("-", 1) for result in results]
    networks, kinds = list(dict.fromkeys(n for n, _ in names)), list(dict.fromkeys(k for _, k in names))
    marks = {result["name"]: "+" if result["result"] == "pass" else "-" for result in results}
    print("| network | " + " | ".join(kinds) + " |\n|" + "---|" * (len(kinds) + 1))
    for network in networks:
        print(f"| {network} | " + " | ".join(marks.get(f"{network}-{kind}", "") for kind in kinds) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--halite", default="halite")
    parser.add_argument("--only", default="", help="a text that names have")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for a call")
    parser.add_argument("--results", default="results.jsonl", help="the file of results in OUT_DIR")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--drop", action="store_true")
    parser.add_argument("--table", action="store_true")
    own, flags = sys.argv[1:], []
    if "--" in own:
        own, flags = own[: own.index("--")], own[own.index("--") + 1 :]
    args = parser.parse_args(own)
    kept, lines = args.out / args.results, lambda path: [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    results = {result["name"]: result for result in lines(kept)}
    for case in lines(args.out / "manifest.jsonl"):
        known = results.get(case["name"])
        if args.only not in case["name"] or not (args.out / case["pte"]).exists() or known and (known["result"] == "pass" or not args.again):
            continue
        result = run(case, args.out, args.halite, flags, args.limit)
        results[case["name"]] = result
        with kept.open("a") as file:
            file.write(json.dumps(result) + "\n")
        print(result["result"], result["name"], f"{result['most']:.2e} of {case['largest']:.2e}, rms {result['rms']:.2e} of {case['rms']:.2e}", result.get("why", ""), flush=True)
        if args.drop and result["result"] == "pass":
            (args.out / case["pte"]).unlink()
    if args.table:
        table(list(results.values()))
    print(sum(result["result"] == "pass" for result in results.values()), "of", len(results), "are right")


if __name__ == "__main__":
    main()
