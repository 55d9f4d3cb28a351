"""Networks of torchvision and transformers with random weights: Halite beside PyTorch's CUDA graphs (batch
normalizations folded) or torch.compile, host to host.

    compare_networks.py export FOLDER            exports each to ONNX, with an input and PyTorch's result on the processor;
                                                 where there is a GPU, in 16 bits as well, inputs and results too
    compare_networks.py torch FOLDER             times them in PyTorch, f16 and f32 (without TF32)
    compare_networks.py halite FOLDER PROGRAM    compiles, times and checks them with the program `halite`

ONLY=bert_base,vit_b_16 in the environment leaves the others out, BATCH=8 makes batches (default 1), TARGET names the target
(default: the device's own), KINDS=half,f32 leaves out other types, COMPILE=max-autotune times PyTorch through torch.compile in this mode instead of its plain graphs.
torch_networks.py has the networks, torch_NAME.py those of SET=NAME: others, late, drawn, lot, after, seventh, eighth, ninth, tenth, eleventh, twelfth, thirteenth, fourteenth, fifteenth, sixteenth, generators.
"""

import concurrent.futures
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

ONLY = os.environ.get("ONLY", "").split(",") if os.environ.get("ONLY") else None
TARGET = os.environ.get("TARGET", "host")
BATCH = int(os.environ.get("BATCH", "1"))
COMPILE = os.environ.get("COMPILE")
SET = os.environ.get("SET")
KINDS = tuple(os.environ.get("KINDS", "half,f16,f32").split(","))


def export(folder):
    import numpy as np
    import torch

    from torch_networks import networks

    for name, net, inputs in networks(ONLY, BATCH, SET):
        place = folder / name
        place.mkdir(parents=True, exist_ok=True)
        names = {"input_names": ["x"], "output_names": ["y"]}
        try:
            with torch.no_grad():
                exported(net, inputs, place / "part.onnx", names)
                np.save(place / "y.npy", net(*inputs).numpy())
        except Exception as error:  # An exporter that cannot do one network must not keep the others away.
            print("not exported:", name, str(error).splitlines()[:1], flush=True)
            continue
        np.save(place / "x.npy", inputs[0].numpy())
        (place / "part.onnx").rename(place / "model.onnx")
        print("exported", name, flush=True)
        if torch.cuda.is_available():
            export_half(place, net, inputs, names)


def exported(net, inputs, path, names):
    """By the exporter that most models at hand were made by, or by the newer one where that cannot do it."""
    import torch

    try:
        torch.onnx.export(net, inputs, str(path), opset_version=17, dynamo=False, **names)
    except Exception:
        torch.onnx.export(net, inputs, str(path), dynamo=True, external_data=False, verbose=False, **names)


def export_half(place, net, inputs, names):
    """The network in 16 bits, as PyTorch times it."""
    import copy

    import numpy as np
    import torch

    given = tuple(x.cuda().half() if x.is_floating_point() else x.cuda() for x in inputs)
    part = place / "part.half.onnx"
    try:
        with torch.no_grad():
            half = copy.deepcopy(net).cuda().half()
            exported(half, given, part, names)
            if result_size(part) != half(*given).element_size():
                # The older exporter leaves some decoders in 32 bits from their first attention on, results too.
                torch.onnx.export(half, given, str(part), dynamo=True, external_data=False, verbose=False, **names)
    except Exception as error:
        print("not exported in 16 bits:", place.name, str(error).splitlines()[:1], flush=True)
        return
    np.save(place / "x.half.npy", given[0].cpu().numpy())
    part.rename(place / "model.half.onnx")


def result_size(model):
    """Bytes of an element of a model's first result."""
    import onnx

    kind = onnx.load(model, load_external_data=False).graph.output[0].type.tensor_type.elem_type
    return onnx.helper.tensor_dtype_to_np_dtype(kind).itemsize


def folded(name, net, x):
    """The network with its batch normalizations in the convolutions before them; says where some stay."""
    import copy

    import torch

    if not left(net):
        return net
    fused = fused_parts(copy.deepcopy(net))
    with torch.no_grad():
        found, wanted = fused(x), net(x)
    if (found - wanted).abs().max() > 1e-3 * wanted.abs().max():
        print("norms not folded:", name, "the results differ", flush=True)
        return net
    if left(fused):
        print("norms not folded:", name, left(fused), "of", left(net), flush=True)
    return fused


def left(net):
    import torch

    return sum(isinstance(part, torch.nn.BatchNorm2d) for part in net.modules())


def fused_parts(net):
    """What torch.fx can trace as a whole, or else its parts: it cannot follow dictionaries and loops over outputs."""
    from torch.fx.experimental import optimization

    if not left(net) or not list(net.children()):
        return net
    try:
        return optimization.fuse(net)
    except Exception:  # Its parts are tried; `folded` says what stays.
        for key, part in net.named_children():
            setattr(net, key, fused_parts(part))
        return net


def graph_time(name, net, x, half):
    """Milliseconds of a call, from pinned host memory and back: the median of the last two thirds of 0.8 s of calls."""
    import torch

    net = folded(name, net.cpu().float(), x.cpu())
    net = net.cuda().half() if half else net.cuda().float()
    x = x.cuda()
    if x.is_floating_point():
        x = x.half() if half else x.float()
    if x.dim() == 4:
        net, x = net.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
    if not half:
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    host = x.cpu().pin_memory()
    if COMPILE:
        torch._dynamo.reset()
        net = torch.compile(net, mode=COMPILE)
        with torch.no_grad():
            for _ in range(4):
                y = net(x)
        return timed(host, x, lambda: net(x), y)
    stream = torch.cuda.Stream()
    with torch.no_grad():
        with torch.cuda.stream(stream):
            for _ in range(5):
                net(x)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = net(x)

    def replayed():
        graph.replay()
        return y

    return timed(host, x, replayed, y)


def timed(host, x, call, like):
    import torch

    back = torch.empty(like.shape, dtype=like.dtype, pin_memory=True)
    times, end = [], time.time() + 0.8
    with torch.no_grad():
        while time.time() < end:
            start = time.perf_counter()
            x.copy_(host, non_blocking=True)
            back.copy_(call(), non_blocking=True)
            torch.cuda.synchronize()
            times.append(time.perf_counter() - start)
    return statistics.median(times[len(times) // 3 :]) * 1e3


def torch_times(folder):
    import torch

    from torch_networks import networks

    torch.backends.cudnn.benchmark = True
    kept = folder / "torch.json"
    times = json.loads(kept.read_text()) if kept.exists() else {}
    for name, net, inputs in networks(ONLY, BATCH, SET):
        for half in (half for half in (True, False) if half and KINDS != ("f32",) or not half and "f32" in KINDS):
            try:
                cell, taken = f"{name}.{'f16' if half else 'f32'}", graph_time(name, net, inputs[0], half)
            except Exception as error:  # One network that PyTorch cannot capture must not keep the others away.
                print("no time of", name, str(error).splitlines()[:1], flush=True)
                continue
            # The stronger form counts where both were timed.
            times[cell] = min(taken, times.get(cell, taken))
            print(cell, round(taken, 3), flush=True)
            kept.write_text(json.dumps(times))  # At once: what is cut short keeps what it has.


def compiled(program, place, kind):
    """The module of a network, or nothing where it cannot be made."""
    module = place / f"{kind}.vmfb"
    model = place / ("model.half.onnx" if kind == "half" else "model.onnx")
    if not model.exists():
        return None
    command = [program, "compile", str(model), f"--target={TARGET}", "--no-baseline", "-q", "-o", str(module)]
    # Exporters leave 32 bits in networks of 16, too.
    done = subprocess.run(command + (["--precision=f16"] if kind != "f32" else []), capture_output=True, text=True)
    if done.returncode != 0:
        print(place.name, kind, "not compiled:", done.stderr.strip().splitlines()[-1:], flush=True)
        return None
    return module


def one(program, place, kind, module):
    """Milliseconds of a call, and the largest difference relative to the largest value."""
    import numpy as np

    found = place / f"y.{kind}.npy"
    x = place / ("x.half.npy" if kind == "half" else "x.npy")
    given = [str(module), "--device=vulkan", f"--input=x=@{x}", "--compile-cache=off", "-q"]
    # As PyTorch's calls: the input comes from the host's memory, which is pinned, and the results go there.
    measured = ["--with-transfers", "--pinned-inputs", "--benchmark_min_time=0.5s", "--benchmark_format=json"]
    bench = [program, "bench", *given, *measured]
    told = subprocess.run(bench, check=True, capture_output=True, text=True).stdout
    result = json.loads(told)["benchmarks"][0]
    subprocess.run([program, "run", *given, f"--output=@{found}"], check=True)
    ours, wanted = np.load(found).astype("f8"), np.load(place / "y.npy").astype("f8")
    off = np.abs(ours - wanted).max() / max(np.abs(wanted).max(), 1e-9)
    return result.get("p50") or result["real_time"], off


def halite_times(folder, program):
    peers = json.loads((folder / "torch.json").read_text()) if (folder / "torch.json").exists() else {}
    places = sorted(path for path in folder.iterdir() if (path / "model.onnx").exists())
    places = [place for place in places if not ONLY or place.name in ONLY]
    # `half` is the network exported in 16 bits, `f16` the one in 32 bits that is computed in 16: its inputs and results have 32.
    kinds = KINDS
    with concurrent.futures.ThreadPoolExecutor(max(1, (os.cpu_count() or 2) // 2)) as pool:
        made = {(p, k): pool.submit(compiled, program, p, k) for p in places for k in kinds}
    ratios = {kind: [] for kind in kinds}
    for place in places:
        cells = []
        for kind in kinds:
            module, peer = made[place, kind].result(), peers.get(f"{place.name}.{'f32' if kind == 'f32' else 'f16'}")
            if module is None:
                continue
            taken, off = one(program, place, kind, module)
            if peer:
                ratios[kind].append(peer / taken)
            beside = f"/ {peer:.3f} ms = {peer / taken:.2f}" if peer else "ms"
            cells.append(f"{kind} {taken:.3f} {beside}, off by {off:.1e}")
        print(f"{place.name:20}", "; ".join(cells), flush=True)
    for kind, found in ratios.items():
        if found:
            mean = statistics.geometric_mean(found)
            print(f"{kind}: PyTorch / Halite over {len(found)} networks: {mean:.2f}, least {min(found):.2f}")


def main():
    mode, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    if mode == "export":
        export(folder)
    elif mode == "torch":
        torch_times(folder)
    elif mode == "halite":
        halite_times(folder, sys.argv[3])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
