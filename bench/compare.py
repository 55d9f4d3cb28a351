#!/usr/bin/env python3
"""Compares Halite with IREE's own runtime: same module, same device, alternated in one run.

usage: compare.py --ours DIR --theirs DIR MODULES.jsonl [--root DIR] [--rounds 5] [--min-time 0.5] [--json OUT]

DIR holds run-module/benchmark-module, respectively iree-run-module/iree-benchmark-module. Each line of MODULES.jsonl
has name, vmfb, function, inputs (npy paths; `@` is put in front) and optionally flags; paths are relative to --root.
Per module: steady latency (median over rounds of each tool's own mean per iteration), wall time from process start to
first printed result with caches warm and with caches cold (--cold), and peak resident memory of that process. The order
of the two tools alternates from round to round. Every line also checks that both tools print the same numbers.
Choose the Vulkan driver with VK_DRIVER_FILES as usual.
"""
import argparse, json, os, pathlib, re, statistics, subprocess, sys, tempfile, time

ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
ap.add_argument("--ours", type=pathlib.Path, required=True)
ap.add_argument("--theirs", type=pathlib.Path, required=True)
ap.add_argument("modules", type=pathlib.Path)
ap.add_argument("--root", type=pathlib.Path, default=pathlib.Path("."))
ap.add_argument("--match", default="")
ap.add_argument("--rounds", type=int, default=5)
ap.add_argument("--min-time", type=float, default=0.5)
ap.add_argument("--cold", action="store_true", help="also time a first run with empty shader and pipeline caches")
ap.add_argument("--device", default="vulkan")
ap.add_argument("--json", type=pathlib.Path)
A = ap.parse_args()
TOOLS = {"halite": A.ours, "iree": A.theirs}
PREFIX = {"halite": "", "iree": "iree-"}


def launch(command, env=None):
    """Runs a command; returns (seconds, peak resident MiB, stdout, stderr, exit code)."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        t0 = time.monotonic()
        p = subprocess.Popen(command, stdout=out, stderr=err, env=env, cwd=A.root)
        _, status, usage = os.wait4(p.pid, 0)
        seconds = time.monotonic() - t0
        p.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0), err.seek(0)
        return seconds, usage.ru_maxrss / 1024, out.read().decode(), err.read().decode(errors="replace"), p.returncode


def command(who, tool, row):
    inputs = [f"--input=@{path}" for path in row["inputs"]]
    return [str(TOOLS[who] / (PREFIX[who] + tool)), f"--device={A.device}", f"--module={row['vmfb']}",
            f"--function={row['function']}", *row.get("flags", []), *inputs]


def numbers(text):
    return [float(x) for x in re.findall(r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|NAN|INF)", text.split("=", 1)[-1])]


def agree(a, b):
    x, y = numbers(a), numbers(b)
    return len(x) == len(y) and all(abs(p - q) <= 1e-3 + 1e-3 * abs(q) or p != p and q != q for p, q in zip(x, y))


def latency(who, row):
    bench = command(who, "benchmark-module", row) + [f"--benchmark_min_time={A.min_time}s", "--benchmark_format=json"]
    _, _, out, err, rc = launch(bench)
    if rc:
        raise RuntimeError(f"{who}: {err.strip()[-300:]}")
    doc = json.loads(out[out.index("{"):])
    entry = next(b for b in doc["benchmarks"] if b.get("run_type", "iteration") == "iteration")
    return entry["real_time"] * {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3}[entry["time_unit"]]


def cold_env(folder):
    return dict(os.environ, XDG_CACHE_HOME=folder, MESA_SHADER_CACHE_DIR=folder + "/mesa",
                __GL_SHADER_DISK_CACHE_PATH=folder + "/nv")


def measure(row):
    got = {who: {"latency": [], "first": [], "rss": [], "cold": []} for who in TOOLS}
    printed = {}
    for n in range(A.rounds):
        for who in (list(TOOLS) if n % 2 == 0 else list(TOOLS)[::-1]):
            run = command(who, "run-module", row)
            if n == 0:
                launch(run)  # fills shader and pipeline caches
            seconds, rss, out, err, rc = launch(run)
            if rc:
                raise RuntimeError(f"{who}: {err.strip()[-300:]}")
            printed[who] = out
            got[who]["first"].append(seconds * 1e3)
            got[who]["rss"].append(rss)
            got[who]["latency"].append(latency(who, row))
            if A.cold and n < 2:
                with tempfile.TemporaryDirectory() as folder:
                    got[who]["cold"].append(launch(run, cold_env(folder))[0] * 1e3)
    return got, agree(printed["halite"], printed["iree"])


def main():
    rows = [json.loads(l) for l in A.modules.read_text().splitlines() if l.strip()]
    rows = [r for r in rows if re.search(A.match, r["name"])]
    head = ["module", "same numbers", "latency ms (iree / halite / ratio)", "first result ms", "peak MiB"]
    head += ["cold first result ms"] if A.cold else []
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head), flush=True)
    results = []
    for row in rows:
        try:
            got, same = measure(row)
        except (RuntimeError, StopIteration, ValueError) as e:
            print(f"| {row['name']} | failed: {e} |", flush=True)
            continue
        med = {w: {k: statistics.median(v) if v else float("nan") for k, v in g.items()} for w, g in got.items()}
        i, h = med["iree"], med["halite"]
        cell = lambda k: f"{i[k]:.3g} / {h[k]:.3g} / {h[k] / i[k]:.2f}"
        cells = [row["name"], "yes" if same else "NO", cell("latency"), cell("first"), cell("rss")]
        cells += [cell("cold")] if A.cold else []
        print("| " + " | ".join(cells) + " |", flush=True)
        results.append(dict(name=row["name"], same=same, samples=got))
    if A.json:
        A.json.write_text(json.dumps(dict(argv=sys.argv, results=results), indent=1))


main()
