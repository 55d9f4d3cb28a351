#!/usr/bin/env python3
"""Exports small ExecuTorch programs in which data decide sizes: `x.item()` as a size, elements where a condition holds.

usage: export_pte_data.py OUT_DIR [--only cut,places]

For each: NAME.pte, inputs and what PyTorch computes of several numbers as .npy, and a line of OUT_DIR/manifest.jsonl. The sets of
a program are for one session, which has to run them without another version. Needs: executorch==1.5.1 torch.
"""
import argparse, json, pathlib
import numpy as np
import torch
from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
from torch import nn


def item(t, least=1, most=16):
    number = t.item()
    torch._check(number >= least)
    torch._check(number <= most)
    return number


class Call(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function, self.layer = function, nn.Linear(8, 8)

    def forward(self, x, t):
        return self.function(self, x, t)


def cut(m, x, t):
    return m.layer(x)[: item(t)] * 2


def start(m, x, t):
    n = item(t, 0, 8)
    return x[n : n + 4] + 1


def line(m, x, t):
    return torch.arange(item(t)).float() * 0.5


def fill(m, x, t):
    return torch.zeros(item(t), 3) + x[0, :3]


def expand(m, x, t):
    return x[:1].expand(item(t), 8) * 3


def soft(m, x, t):
    y = x[: item(t)]
    return torch.softmax(y @ y.t(), -1).sum(0)


def two(m, x, t):
    n, k = t.tolist()
    for number in (n, k):
        torch._check(number >= 1)
        torch._check(number <= 8)
    return (x[:n, :k] + 1).sum(0)


def viewed(m, x, t):
    n = item(t)
    return x[:n].reshape(n * 2, 4) + 1


def joined(m, x, t):
    return torch.cat([x[: item(t)], x], 0)


def computed(m, x, t):
    return x[: item(t.sum() // 2 + 1)] - 1


def places(m, x, t):
    return torch.nonzero(x > t / 10)


def masked(m, x, t):
    return torch.masked_select(x, x > t / 10) * 2


def rows(m, x, t):
    return x[x[:, 0] > t / 10]


NUMBERS, PAIRS = [5, 16, 1, 9], [[3, 5], [8, 1], [1, 8], [6, 6]]
CASES = {f: NUMBERS for f in (cut, line, fill, expand, soft, viewed, joined, places, masked, rows)} | {start: [0, 3, 8, 5], two: PAIRS, computed: PAIRS}


def export(function, numbers, out):
    torch.manual_seed(3)
    name, module = function.__name__, Call(function).eval()
    given = [(torch.randn(16, 8), torch.tensor(number)) for number in numbers]
    program = torch.export.export(module, given[0], strict=False)
    config = EdgeCompileConfig(_check_ir_validity=False)
    (out / f"{name}.pte").write_bytes(to_edge_transform_and_lower(program, compile_config=config).to_executorch().buffer)
    sets = []
    for k, inputs in enumerate(given):
        files = [f"{name}.s{k}.{what}.npy" for what in ("in0", "in1", "out0")]
        for path, tensor in zip(files, [*inputs, module(*inputs)]):
            np.save(out / path, tensor.detach().contiguous().numpy())
        sets.append({"inputs": files[:2], "outputs": files[2:]})
    return {"name": name, "group": "data", "pte": f"{name}.pte", "sets": sets, "atol": 1e-4, "rtol": 1e-4}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--only", default=",".join(f.__name__ for f in CASES))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    with (args.out / "manifest.jsonl").open("w") as manifest:
        for function, numbers in CASES.items():
            if function.__name__ in args.only.split(","):
                manifest.write(json.dumps(export(function, numbers, args.out)) + "\n")
                manifest.flush()


if __name__ == "__main__":
    main()
