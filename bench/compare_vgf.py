#!/usr/bin/env python3
"""Times `.vgf` files beside Arm's scenario runner with its emulation layers, on llvmpipe, and Halite on other devices too.

usage: compare_vgf.py HALITE FOLDER [--only TEXT] [--rounds 3] [--repeat 5] [--seconds 1] [--driver FILE] [--also DEVICE]

HALITE is a release build of the program, FOLDER what `conformance/models/export_vgf.py` wrote: `manifest.jsonl` and its files. Folders
below with a manifest of their own count too. The runner and ours take turns, a process each, so that load from elsewhere meets both.
Theirs is the dispatch alone, without the first of each process, which compiles; ours is the whole call, from host memory and
back. Prints the shortest of each by the clock, the least processor time of an inference (all threads, a mean over each process), and the ratio of
both: on a machine with other work only processor times mean much. `--also` adds Halite's times on other devices.
The runner's results are compared with the recorded ones: one that is elsewhere says so. Needs the packages
ai-ml-sdk-scenario-runner, ai-ml-emulation-layer-for-vulkan and ai-ml-sdk-vgf-library from PyPI, 0.11.0, and numpy.
"""
import argparse, importlib.util, json, os, pathlib, statistics, subprocess, tempfile, threading

import numpy as np

LIMIT = 600


def package(name):
    return pathlib.Path(importlib.util.find_spec(name).submodule_search_locations[0])


def layers(folder):
    """The layers' manifests, one a folder: loaders take them in the order of folders, and Graph has to lie above Tensor."""
    deploy = package("emulation_layer") / "deploy"
    for name in ["Graph", "Tensor"]:
        manifest = json.loads((deploy / f"share/vulkan/explicit_layer.d/VkLayer_{name}.json").read_text())
        manifest["layer"]["library_path"] = str(deploy / f"lib/libVkLayer_{name}.so")
        (folder / name).mkdir()
        (folder / name / f"VkLayer_{name}.json").write_text(json.dumps(manifest))
    return {"VK_LAYER_PATH": f"{folder}/Graph:{folder}/Tensor", "VK_INSTANCE_LAYERS": "VK_LAYER_ML_Graph_Emulation:VK_LAYER_ML_Tensor_Emulation"}


def scenario(case, folder, made):
    """A scenario that runs a file with its recorded inputs."""
    vgf = folder / case["files"][0]
    dump = package("vgf_lib") / "binaries/bin/vgf_dump"
    text = subprocess.run([dump, "-i", vgf, "--scenario-template"], check=True, capture_output=True, text=True).stdout
    described = json.loads(text)
    for resource in described["resources"]:
        [(kind, fields)] = resource.items()
        if kind == "graph":
            fields["src"] = str(vgf)
        for field, files, below in [("src", case["inputs"], folder), ("dst", case["outputs"], None)]:
            value = str(fields.get(field, ""))
            if value.startswith("TEMPLATE_PATH_TENSOR"):
                n = int(value.rsplit("_", 1)[1])
                fields[field] = str(below / files[n]) if below else f"out{n}.npy"
    path = made / f"{case['name']}.json"
    path.write_text(json.dumps(described))
    return path


def watched(command, environment):
    """Runs the scenario runner: its last words, and the processor milliseconds that had passed when each run's times were stored."""
    process = subprocess.Popen(command, env=os.environ | environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    timer = threading.Timer(LIMIT, process.kill)
    timer.start()
    said, passed = [], []
    for line in process.stdout:
        said.append(line.strip())
        if "Profiling data stored" in line:
            fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
            passed.append(1e3 * (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"))
    timer.cancel()
    return None if process.wait() else passed, " ".join(said)[-200:]


def theirs(case, folder, path, environment, args):
    """Milliseconds of the dispatches, processor milliseconds of one, and the largest difference from the recorded outputs as a part of their
    largest value."""
    runner = package("scenario_runner") / "binaries/bin/scenario-runner"
    with tempfile.TemporaryDirectory() as out:
        profile = pathlib.Path(out) / "profile.json"
        command = [runner, "--scenario", path, "--output", out, "--profiling-dump-path", profile, "--repeat", str(args.repeat + 1)]
        passed, said = watched(command, environment)
        if not passed:
            return None, None, said
        times = json.loads(profile.read_text())["Timestamps"]
        # Segments of one call add up; the first call compiles.
        calls = {}
        for line in times:
            calls[line["Iteration"]] = calls.get(line["Iteration"], 0.0) + line["Time for command [ms]"]
        off = 0.0
        for n, expected in enumerate(case["outputs"]):
            wanted, found = np.load(folder / expected), np.load(pathlib.Path(out) / f"out{n}.npy")
            wanted, found = wanted.astype(np.float64).ravel(), found.astype(np.float64).ravel()
            off = max(off, float(np.abs(wanted - found).max() / max(np.abs(wanted).max(), 1e-30)))
        return [calls[at] for at in sorted(calls)[1:]], (passed[-1] - passed[0]) / (len(passed) - 1), off


def ours(case, folder, device, environment, args):
    """The shortest call and the processor time of one, in milliseconds."""
    command = [args.halite, "bench", str(folder / case["files"][0]), "--function=main", f"--device={device}"]
    command += [f"--benchmark_min_time={args.seconds}s", "--benchmark_format=json", *(f"--input=@{folder / path}" for path in case["inputs"])]
    ran = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, timeout=LIMIT)
    if ran.returncode:
        return None
    result = json.loads(ran.stdout)["benchmarks"][0]
    return result["min"], result["cpu_time"]


def cases(folder):
    for manifest in sorted([*folder.glob("manifest.jsonl"), *folder.glob("*/manifest.jsonl")]):
        for line in manifest.read_text().splitlines():
            yield manifest.parent, json.loads(line)


def compare(case, folder, made, environment, args):
    """One network in turns; the ratios by the clock and by processor time."""
    path = scenario(case, folder, made)
    their, our = [], []
    driver = {"VK_DRIVER_FILES": args.driver, "VK_ICD_FILENAMES": args.driver}
    for _ in range(args.rounds):
        times, busy, off = theirs(case, folder, path, environment | driver, args)
        if times is None:
            print(f"{case['name']}: the runner failed: {off}", flush=True)
            return None
        their.append((min(times), busy))
        found = ours(case, folder, "vulkan", driver, args)
        if found is None:
            print(f"{case['name']}: halite failed", flush=True)
            return None
        our.append(found)
    [clock, busy], [our_clock, our_busy] = [[min(column) for column in zip(*rows)] for rows in (their, our)]
    ratios = clock / our_clock, busy / our_busy
    text = f"{case['name']}: runner {clock:.2f} ms, halite {our_clock:.3f}: {ratios[0]:.1f} times; "
    text += f"of processors {busy:.1f} and {our_busy:.2f}: {ratios[1]:.1f} times; the runner is off by {off:.1e}"
    for device in args.also:
        also = ours(case, folder, device, {}, args)
        text += f"; {device} {also[0]:.2f} ({also[1]:.2f})" if also else f"; {device} failed"
    print(text, flush=True)
    return ratios


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("halite")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", default="", help="names that begin so, with commas between")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--driver", default="/usr/share/vulkan/icd.d/lvp_icd.x86_64.json", help="llvmpipe's manifest")
    parser.add_argument("--also", action="append", default=[], help="a device on which Halite alone is timed")
    args = parser.parse_args()
    folder = args.folder.resolve()
    with tempfile.TemporaryDirectory() as temporary:
        made = pathlib.Path(temporary)
        environment = layers(made)
        wanted = [(at, case) for at, case in cases(folder) if case["name"].startswith(tuple(args.only.split(",")))]
        ratios = [ratio for at, case in wanted if (ratio := compare(case, at, made, environment, args))]
    for name, column in zip(["clock", "processor time"], zip(*ratios)):
        print(f"{len(column)} of {len(wanted)} timed; {name}: geometric mean {statistics.geometric_mean(column):.1f} times, least {min(column):.1f}")


if __name__ == "__main__":
    main()
