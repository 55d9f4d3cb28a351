#!/usr/bin/env python3
"""Times the ExecuTorch programs of a corpus beside what ExecuTorch's own runtime took, as the corpus' manifest has it (`peer`).

usage: compare_pte.py HALITE CORPUS [--device vulkan] [--peer lvp] [--only TEXT] [--each N] [--seconds 0.2]

HALITE is a release build of the program, CORPUS a folder with `manifest.jsonl`. Each program is called with its first inputs, from
host memory and back. Ours is the shortest call, as the peer's is; the median of ours stands beside it. Programs that keep state
are timed at the state that they begin with. Prints those that are slower than the peer's by more than a tenth, and medians.
"""
import argparse, json, pathlib, statistics, subprocess


def timed(args, case, files):
    command = [args.halite, "bench", str(args.corpus / case["pte"]), f"--device={args.device}", f"--benchmark_min_time={args.seconds}s",
               "--benchmark_format=json", *(f"--input=@{args.corpus / path}" for path in files)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if ran.returncode:
        return None, (ran.stderr.strip().splitlines() or ["no reason"])[-1]
    result = json.loads(ran.stdout)["benchmarks"][0]
    return (result["min"], result["p50"]), None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("halite")
    parser.add_argument("corpus", type=pathlib.Path)
    parser.add_argument("--device", default="vulkan")
    parser.add_argument("--peer", default="lvp")
    parser.add_argument("--only", default="")
    parser.add_argument("--each", type=int, default=1, help="takes one case of so many")
    parser.add_argument("--seconds", type=float, default=0.2)
    args = parser.parse_args()
    cases = [json.loads(line) for line in (args.corpus / "manifest.jsonl").read_text().splitlines()]
    cases = [c for c in cases if args.only in c["name"] and c["peer"].get(args.peer, {}).get("best_ms")][:: args.each]
    ratios, slower = [], []
    for case in cases:
        theirs = case["peer"][args.peer]["best_ms"]
        ours, reason = timed(args, case, case["sets"][0]["inputs"])
        if ours is None:
            print(f"{case['name']}: not timed: {reason}", flush=True)
            continue
        ratios.append((theirs / ours[0], theirs))
        print(f"{case['name']}: {ours[0]:.3f} ms (median {ours[1]:.3f}), the peer {theirs:.3f}: {theirs / ours[0]:.2f} times", flush=True)
        if theirs > 1 and ours[0] > 1.1 * theirs:
            slower.append(case["name"])
    if ratios:
        long = [ratio for ratio, theirs in ratios if theirs > 1]
        print(f"{len(ratios)} of {len(cases)} timed; median ratio {statistics.median(r for r, _ in ratios):.2f}",
              f"over {len(long)} of more than 1 ms {statistics.median(long):.2f}" if long else "", f"slower: {slower}")


if __name__ == "__main__":
    main()
