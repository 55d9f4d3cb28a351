"""Networks of torchvision and transformers with random weights: Halite beside PyTorch's CUDA graphs, host to host.

    compare_networks.py export FOLDER            exports each to ONNX, with an input and PyTorch's result on the processor
    compare_networks.py torch FOLDER             times them in PyTorch, f16 and f32 (without TF32)
    compare_networks.py halite FOLDER PROGRAM    compiles, times and checks them with the program `halite`

ONLY=bert_base,vit_b_16 in the environment leaves the others out. TARGET names the target (default hopper-h200-linux).
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

ONLY = os.environ.get("ONLY", "").split(",") if os.environ.get("ONLY") else None
TARGET = os.environ.get("TARGET", "hopper-h200-linux")


def networks():
    """Names, modules and inputs. Batch normalizations get statistics, so that results are not all alike."""
    import torch
    import torchvision.models as tv
    import transformers as tr

    torch.backends.mha.set_fastpath_enabled(False)

    class Of(torch.nn.Module):
        def __init__(self, net, result):
            super().__init__()
            self.net, self.result = net, result

        def forward(self, *inputs):
            return self.result(self.net, *inputs)

    class Lstm(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.cells = torch.nn.LSTM(64, 256, 2, batch_first=True)
            self.out = torch.nn.Linear(256, 10)

        def forward(self, x):
            return self.out(self.cells(x)[0][:, -1])

    def hugging(cls, config, result, attention="sdpa"):
        config._attn_implementation = attention
        return Of(cls(config), result)

    def image(size=224):
        return (torch.randn(1, 3, size, size),)

    def tokens(count=128):
        return (torch.randint(0, 1000, (1, count)),)

    def last(net, x):
        return net(x).last_hidden_state

    def logits(net, x):
        return net(x).logits

    whisper = tr.models.whisper.modeling_whisper.WhisperEncoder
    whisper_tiny = dict(d_model=384, encoder_layers=4, encoder_attention_heads=6, encoder_ffn_dim=1536)
    made = {
        "vit_b_16": lambda: (tv.vit_b_16(), image()),
        "bert_base": lambda: (hugging(tr.BertModel, tr.BertConfig(), last), tokens()),
        "convnext_tiny": lambda: (tv.convnext_tiny(), image()),
        "swin_t": lambda: (tv.swin_t(), image()),
        "resnet50": lambda: (tv.resnet50(), image()),
        "mobilenet_v2": lambda: (tv.mobilenet_v2(), image()),
        "mobilenet_v3_large": lambda: (tv.mobilenet_v3_large(), image()),
        "efficientnet_b0": lambda: (tv.efficientnet_b0(), image()),
        "regnet_y_800mf": lambda: (tv.regnet_y_800mf(), image()),
        "densenet121": lambda: (tv.densenet121(), image()),
        "whisper_tiny_enc": lambda: (
            hugging(whisper, tr.WhisperConfig(**whisper_tiny), last),
            (torch.randn(1, 80, 3000),),
        ),
        "segformer_b0": lambda: (
            hugging(tr.SegformerForSemanticSegmentation, tr.SegformerConfig(), logits, "eager"),
            image(512),
        ),
        "t5_small_enc": lambda: (
            hugging(tr.T5EncoderModel, tr.T5Config(d_model=512, d_ff=2048, num_layers=6), last, "eager"),
            tokens(),
        ),
        "gpt2_prompt": lambda: (hugging(tr.GPT2LMHeadModel, tr.GPT2Config(vocab_size=8000), logits), tokens(256)),
        "deeplab_mnv3": lambda: (
            Of(
                tv.segmentation.deeplabv3_mobilenet_v3_large(weights_backbone=None),
                lambda net, x: net(x)["out"],
            ),
            image(256),
        ),
        "lstm": lambda: (Lstm(), (torch.randn(1, 32, 64),)),
    }
    for name, make in made.items():
        if ONLY and name not in ONLY:
            continue
        torch.manual_seed(1)
        net, inputs = make()
        net.eval()
        for part in net.modules():
            if isinstance(part, torch.nn.BatchNorm2d):
                part.running_mean.normal_(0, 0.1)
                part.running_var.uniform_(0.5, 1.5)
        yield name, net, inputs


def export(folder):
    import numpy as np
    import torch

    for name, net, inputs in networks():
        place = folder / name
        place.mkdir(parents=True, exist_ok=True)
        with torch.no_grad():
            names = {"input_names": ["x"], "output_names": ["y"]}
            torch.onnx.export(net, inputs, str(place / "model.onnx"), opset_version=17, dynamo=False, **names)
            np.save(place / "y.npy", net(*inputs).numpy())
        np.save(place / "x.npy", inputs[0].numpy())
        print("exported", name, flush=True)


def graph_time(net, x, half):
    """Milliseconds of a call, from pinned host memory and back: the median of the last two thirds of 0.8 s of calls."""
    import torch

    net = net.cuda().half() if half else net.cuda().float()
    x = x.cuda()
    if x.is_floating_point():
        x = x.half() if half else x.float()
    if x.dim() == 4:
        net, x = net.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
    if not half:
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    host = x.cpu().pin_memory()
    stream = torch.cuda.Stream()
    with torch.no_grad():
        with torch.cuda.stream(stream):
            for _ in range(5):
                net(x)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = net(x)
    back = torch.empty(y.shape, dtype=y.dtype, pin_memory=True)
    times, end = [], time.time() + 0.8
    while time.time() < end:
        start = time.perf_counter()
        x.copy_(host, non_blocking=True)
        graph.replay()
        back.copy_(y, non_blocking=True)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times[len(times) // 3 :]) * 1e3


def torch_times(folder):
    import torch

    torch.backends.cudnn.benchmark = True
    times = {}
    for name, net, inputs in networks():
        for half in (True, False):
            try:
                times[f"{name}.{'f16' if half else 'f32'}"] = graph_time(net, inputs[0], half)
            except RuntimeError as error:
                print("no graph of", name, str(error).splitlines()[0], flush=True)
    (folder / "torch.json").write_text(json.dumps(times))
    print({name: round(value, 3) for name, value in times.items()})


def one(program, place, kind, peer):
    """A cell: milliseconds of Halite and of PyTorch, and the largest difference relative to the largest value."""
    import numpy as np

    module, found = place / f"{kind}.vmfb", place / f"y.{kind}.npy"
    flags = ["--precision=f16"] if kind == "f16" else []
    compiled = [program, "compile", str(place / "model.onnx"), f"--target={TARGET}", "--no-baseline", "-q", "-o", str(module)]
    subprocess.run(compiled + flags, check=True)
    given = [str(module), "--device=vulkan", f"--input=x=@{place / 'x.npy'}", "--compile-cache=off", "-q"]
    bench = [program, "bench", *given, "--benchmark_min_time=0.5s", "--benchmark_format=json"]
    told = subprocess.run(bench, check=True, capture_output=True, text=True).stdout
    result = json.loads(told)["benchmarks"][0]
    subprocess.run([program, "run", *given, f"--output=@{found}"], check=True)
    ours, wanted = np.load(found).astype("f8"), np.load(place / "y.npy").astype("f8")
    off = np.abs(ours - wanted).max() / max(np.abs(wanted).max(), 1e-9)
    beside = f"/ {peer:.3f}" if peer else "/ –"
    return f"{kind} {result.get('p50') or result['real_time']:.3f} {beside} ms, off by {off:.1e}"


def halite_times(folder, program):
    peers = json.loads((folder / "torch.json").read_text()) if (folder / "torch.json").exists() else {}
    for place in sorted(path for path in folder.iterdir() if (path / "model.onnx").exists()):
        if not ONLY or place.name in ONLY:
            cells = [one(program, place, kind, peers.get(f"{place.name}.{kind}")) for kind in ("f16", "f32")]
            print(f"{place.name:20}", "; ".join(cells), flush=True)


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
