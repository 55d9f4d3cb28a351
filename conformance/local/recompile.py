#!/usr/bin/env python3
"""Recompiles a corpus of Vulkan programs for the processor, as a corpus that `conformance` replays.

usage: recompile.py CORPUS OUT_DIR [--backends llvm-cpu,vmvx] [--cpu host] [--jobs N] [--match REGEX]

CORPUS is a folder with small/manifest.jsonl (see conformance/src/corpus.rs), whose rows name a source.mlir and the
flags that it was compiled with. OUT_DIR gets one set per backend (`llvm_cpu`, `vmvx`): modules and a manifest.jsonl.
Inputs and expected results are those of the corpus, through a link. What does not compile is listed at the end.
Replay: conformance --corpus OUT_DIR --sets llvm_cpu,vmvx --device local-task --expectations conformance/expectations

Needs: iree-base-compiler (iree-compile on the PATH or beside this Python).
"""
import argparse, json, os, pathlib, re, shutil, subprocess, sys
from concurrent.futures import ThreadPoolExecutor

# Programs that are about Vulkan: nothing is left of them on another device.
SKIPPED = {
    "vulkan_plus_local": "needs a Vulkan device too",
    "multi_variant_executables": "its source names Vulkan targets",
    "fallback_device_select": "chooses between a Vulkan and a CPU device",
}


def compiler():
    beside = pathlib.Path(sys.executable).parent / "iree-compile"
    return str(beside) if beside.exists() else shutil.which("iree-compile") or sys.exit("no iree-compile")


def flags_for(row, backend, cpu):
    """The row's flags, for another device."""
    flags = []
    for flag in row["flags"]:
        if flag.startswith(("--iree-vulkan-", "--iree-hal-local-target", "--iree-parameter-export")):
            continue
        if flag.startswith("--iree-hal-target-device="):
            flag = re.sub("vulkan", "local", flag)
        flags.append(flag)
    flags.append(f"--iree-hal-local-target-device-backends={backend}")
    if backend == "llvm-cpu":
        flags.append(f"--iree-llvmcpu-target-cpu={cpu}")
    return flags


def build(corpus, out, row, backend, cpu):
    """Compiles one row; its new manifest entry, or why there is none."""
    name = row["name"]
    folder = backend.replace("-", "_")
    target = out / folder / f"{name}.vmfb"
    command = [compiler(), *flags_for(row, backend, cpu), str(corpus / row["source"]), "-o", str(target)]
    if not target.exists():
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        if done.returncode != 0:
            first = next((l for l in done.stderr.splitlines() if "error" in l), "no message")
            return None, f"{folder}/{name}: {first[:200]}"
    new = {k: row[k] for k in ("name", "source", "sequence", "calls", "rtol", "atol") if k in row}
    new.update(vmfb=f"{folder}/{name}.vmfb", flags=command[1:-3], devices=["local-task"] * len(row["devices"]))
    # Exported parameters are part of the module here.
    new["run_flags"] = [] if name == "parameters_exported" else row["run_flags"]
    return new, None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--backends", default="llvm-cpu,vmvx")
    parser.add_argument("--cpu", default="host")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--match", default="")
    options = parser.parse_args()
    corpus = options.corpus.resolve()
    text = (corpus / "small" / "manifest.jsonl").read_text()
    rows = [json.loads(line) for line in text.splitlines() if line.strip()]
    rows = [r for r in rows if re.search(options.match, r["name"]) and r["calls"]]
    options.out.mkdir(parents=True, exist_ok=True)
    link = options.out / "small"
    if not link.exists():
        link.symlink_to(corpus / "small")
    for backend in options.backends.split(","):
        folder = options.out / backend.replace("-", "_")
        folder.mkdir(exist_ok=True)
        kept = [r for r in rows if r["name"] not in SKIPPED]
        with ThreadPoolExecutor(options.jobs) as pool:
            results = list(pool.map(lambda r: build(corpus, options.out, r, backend, options.cpu), kept))
        with open(folder / "manifest.jsonl", "w") as manifest:
            manifest.writelines(json.dumps(new) + "\n" for new, _ in results if new)
        failures = [why for _, why in results if why]
        print(f"{folder.name}: {len(results) - len(failures)} modules, {len(failures)} did not compile")
        print(*failures, sep="\n")
    for name, why in SKIPPED.items():
        print(f"skipped {name}: {why}")


if __name__ == "__main__":
    main()
