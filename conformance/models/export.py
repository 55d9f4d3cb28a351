#!/usr/bin/env python3
"""Exports seeded networks and compiles them with the real iree-compile, for tests that need whole models.

usage: export.py OUT_DIR [--models a,b] [--targets default,llvmpipe,ampere]

For each network: model.onnx (torch's exporter, opset 17), input/expected tensors (ONNX Runtime), and one .vmfb per
target, listed in OUT_DIR/manifest.jsonl. Weights are random but seeded; batch-norm statistics come from one seeded
batch, so that activations neither vanish nor explode. Needs: torch torchvision onnx onnxruntime iree-base-compiler.
"""
import argparse, json, pathlib, subprocess, sys, time
import numpy as np
import onnxruntime
import onnx
import torch
import torchvision.models as tv

IMAGE = (1, 3, 224, 224)


class TinyBert(torch.nn.Module):
    def __init__(self, vocab=500, width=64, heads=4, layers=2, length=24):
        super().__init__()
        self.tokens = torch.nn.Embedding(vocab, width)
        self.positions = torch.nn.Parameter(torch.randn(1, length, width) * 0.1)
        self.layers = torch.nn.ModuleList([torch.nn.ModuleDict(dict(
            n1=torch.nn.LayerNorm(width), q=torch.nn.Linear(width, width), k=torch.nn.Linear(width, width),
            v=torch.nn.Linear(width, width), o=torch.nn.Linear(width, width), n2=torch.nn.LayerNorm(width),
            a=torch.nn.Linear(width, 4 * width), b=torch.nn.Linear(4 * width, width))) for _ in range(layers)])
        self.heads, self.out = heads, torch.nn.Linear(width, 10)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions
        split = lambda t: t.view(1, -1, self.heads, t.shape[-1] // self.heads).transpose(1, 2)
        for l in self.layers:
            h = l["n1"](x)
            q, k, v = split(l["q"](h)), split(l["k"](h)), split(l["v"](h))
            w = torch.softmax(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5, -1) @ v
            x = x + l["o"](w.transpose(1, 2).reshape(1, -1, x.shape[-1]))
            x = x + l["b"](torch.nn.functional.gelu(l["a"](l["n2"](x))))
        return torch.softmax(self.out(x.mean(1)), -1)


def image(*_):
    return torch.randn(IMAGE)


MODELS = {
    "mobilenet_v2": (lambda: tv.mobilenet_v2(), image),
    "resnet18": (lambda: tv.resnet18(), image),
    "squeezenet1_1": (lambda: tv.squeezenet1_1(), image),
    "shufflenet_v2": (lambda: tv.shufflenet_v2_x0_5(), image),
    "efficientnet_b0": (lambda: tv.efficientnet_b0(), image),
    "tiny_bert": (TinyBert, lambda: torch.randint(0, 500, (1, 24))),
    "softmax_rows": (lambda: torch.nn.Softmax(-1), lambda: torch.randn(7, 1000)),
    "layer_norm": (lambda: torch.nn.LayerNorm(768), lambda: torch.randn(5, 768)),
    "dense_head": (lambda: torch.nn.Linear(1280, 1000), lambda: torch.randn(1, 1280)),
    "global_pool": (lambda: torch.nn.AdaptiveAvgPool2d(1), lambda: torch.randn(1, 1280, 7, 7)),
}


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("out", type=pathlib.Path)
    ap.add_argument("--models", default=",".join(MODELS))
    ap.add_argument("--targets", default="default,llvmpipe,ampere")
    args = ap.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    manifest = (args.out / "manifest.jsonl").open("a")
    tools = pathlib.Path(sys.executable).parent
    for name in args.models.split(","):
        make, make_input = MODELS[name]
        torch.manual_seed(7)
        net, folder = make(), args.out / name
        folder.mkdir(exist_ok=True)
        if any(isinstance(m, torch.nn.BatchNorm2d) for m in net.modules()):
            net.train()
            for m in net.modules():
                if isinstance(m, torch.nn.BatchNorm2d):
                    m.momentum = None
            with torch.no_grad():
                net(torch.randn(8, *IMAGE[1:]))
        net.eval()
        x = make_input()
        path = folder / "model.onnx"
        torch.onnx.export(net, (x,), str(path), opset_version=17, dynamo=False, input_names=["x"], output_names=["y"])
        model = onnx.load(path)
        model.graph.name = "predict"  # iree-import-onnx names the entry point after the graph
        onnx.save(model, path)
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        y = session.run(None, {"x": x.numpy()})[0]
        np.save(folder / "input_0.npy", x.numpy())
        np.save(folder / "expected_0.npy", y)
        mlir = folder / "model.mlir"
        subprocess.run([tools / "iree-import-onnx", path, "-o", mlir], check=True,
                       capture_output=True)
        for target in args.targets.split(","):
            vmfb, t0 = folder / f"{target}.vmfb", time.time()
            flags = ["--iree-hal-target-device=vulkan"]
            flags += [] if target == "default" else [f"--iree-vulkan-target={target}"]
            r = subprocess.run([tools / "iree-compile", mlir, "-o", vmfb, *flags], capture_output=True, text=True)
            row = dict(name=name, target=target, function="predict", vmfb=f"{name}/{target}.vmfb",
                       inputs=[f"{name}/input_0.npy"], expected=[f"{name}/expected_0.npy"], rtol=1e-3, atol=1e-3,
                       ok=r.returncode == 0, seconds=round(time.time() - t0, 1), error=r.stderr[:300])
            print(name, target, "ok" if row["ok"] else "FAILED", row["seconds"], flush=True)
            manifest.write(json.dumps(row) + "\n")
            manifest.flush()
        mlir.unlink()


main()
