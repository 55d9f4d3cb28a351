#!/usr/bin/env python3
"""Makes the demo: trains a small convolutional network on digits drawn here, exports it, and compiles it.

usage: make.py   (writes digits.onnx, digits.vmfb, sample_*.npy beside itself)

The digits are a 5x7 font written below, moved, scaled, smeared and covered with noise; nothing is downloaded.
digits.vmfb is compiled by the real iree-compile 3.13.0 with its default Vulkan target, so that it runs anywhere:
    iree-import-onnx digits.onnx -o digits.mlir
    iree-compile digits.mlir -o digits.vmfb --iree-hal-target-device=vulkan
Needs: torch onnx iree-base-compiler==3.13.0.
"""
import pathlib, subprocess, sys
import numpy as np
import onnx
import torch

HERE = pathlib.Path(__file__).parent
FONT = """
.###. ..#.. .###. ##### ...#. ##### ..##. ##### .###. .###.
#...# .##.. #...# ...#. ..##. #.... .#... ....# #...# #...#
#..## ..#.. ....# ..#.. .#.#. ####. #.... ...#. #...# #...#
#.#.# ..#.. ...#. ...#. #..#. ....# ####. ..#.. .###. .####
##..# ..#.. ..#.. ....# ##### ....# #...# .#... #...# ....#
#...# ..#.. .#... #...# ...#. #...# #...# .#... #...# ...#.
.###. .###. ##### .###. ...#. .###. .###. .#... .###. .##..
""".split("\n")[1:-1]
GLYPHS = [np.array([[c == "#" for c in row.split()[d]] for row in FONT], np.float32) for d in range(10)]


def draw(digit, rng):
    """One 16x16 picture of a digit."""
    h, w = rng.integers(10, 15), rng.integers(6, 12)
    rows = np.minimum((np.arange(h) * 7 / h).astype(int), 6)
    cols = np.minimum((np.arange(w) * 5 / w).astype(int), 4)
    small = GLYPHS[digit][rows][:, cols]
    top, left = rng.integers(0, 17 - h), rng.integers(0, 17 - w)
    img = np.zeros((16, 16), np.float32)
    img[top:top + h, left:left + w] = small
    shift = int(rng.integers(-1, 2))
    img = np.maximum(img, 0.6 * np.roll(img, shift, int(rng.integers(0, 2))))
    return np.clip(img * rng.uniform(0.6, 1.0) + rng.normal(0, 0.12, img.shape), 0, 1).astype(np.float32)


def batch(rng, n):
    labels = rng.integers(0, 10, n)
    return torch.tensor(np.stack([draw(d, rng) for d in labels])[:, None]), torch.tensor(labels)


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    rng = np.random.default_rng(1)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(1, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(8, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Flatten(), torch.nn.Linear(256, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10),
        torch.nn.Softmax(-1))
    optimizer = torch.optim.Adam(net.parameters(), 2e-3)
    for _ in range(600):
        x, y = batch(rng, 64)
        loss = torch.nn.functional.nll_loss(torch.log(net(x) + 1e-9), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    x, y = batch(np.random.default_rng(2), 2000)
    print("accuracy on 2000 new pictures:", (net(x).argmax(-1) == y).float().mean().item())
    sample_rng = np.random.default_rng(3)
    for digit in (7, 3):
        picture = draw(digit, sample_rng)[None, None]
        np.save(HERE / f"sample_{digit}.npy", picture)
        expected = net(torch.tensor(picture)).detach().numpy()
        np.save(HERE / f"expected_{digit}.npy", expected)
        print(digit, expected.round(3).tolist())
    path = HERE / "digits.onnx"
    torch.onnx.export(net, (torch.zeros(1, 1, 16, 16),), str(path), opset_version=17, dynamo=False,
                      input_names=["picture"], output_names=["probabilities"])
    model = onnx.load(path)
    model.graph.name = "classify"  # iree-import-onnx names the entry point after the graph
    onnx.save(model, path)
    # Relative names: the module keeps the path of its source.
    tools = pathlib.Path(sys.executable).parent
    subprocess.run([tools / "iree-import-onnx", "digits.onnx", "-o", "digits.mlir"], check=True, cwd=HERE)
    subprocess.run([tools / "iree-compile", "digits.mlir", "-o", "digits.vmfb", "--iree-hal-target-device=vulkan"],
                   check=True, cwd=HERE)
    (HERE / "digits.mlir").unlink()


main()
