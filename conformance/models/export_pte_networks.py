#!/usr/bin/env python3
"""Exports small networks of torchvision's and Hugging Face's architectures as ExecuTorch programs, each in every number format
and for every back end that a GPU could take over: Vulkan's, XNNPACK's, and none.

usage: export_pte_networks.py OUT_DIR [--only bert,resnet18] [--kinds vk,xnn_q8] [--draw 3 --seed 1] [--pairs bert-vk,vit-xnn_q8]
       run_pte.py OUT_DIR --table -- --device=vulkan
       HALITE_PTE_PROGRAMS=OUT_DIR cargo test -p halite --test programs program_folder -- --nocapture

For each: NETWORK-KIND.pte, its inputs and what PyTorch computes as .npy, and a line of OUT_DIR/manifest.jsonl; what does not
export is listed in OUT_DIR/failed.txt. Weights are random but seeded. The reference is eager PyTorch; of quantized networks, the
converted module. The tolerance comes from the network: how far its results move when the inputs move by a millionth part (rounding
to integers then falls the other way here and there; of networks that read words, when their numbers do), when what lies between
roundings is computed in doubles, when what lies at the edge between two codes takes the other, or when it is computed in halves. What exists already is left as it is.
Needs: executorch==1.5.1 torch torchvision torchao transformers.
"""
import argparse, copy, functools, gc, json, pathlib, random, signal, time, traceback
import numpy as np
import torch
import executorch.kernels.quantized  # noqa: F401 (registers what quantizers leave outside of delegates)
from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
from executorch.backends.vulkan.patterns import fusable_patterns
from executorch.backends.vulkan.quantizer.vulkan_quantizer import VulkanQuantizer
from executorch.backends.vulkan.quantizer.vulkan_quantizer import get_symmetric_quantization_config as vulkan_config
from executorch.backends.xnnpack.partition.config.gemm_configs import ConvolutionConfig, LinearConfig
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackDynamicallyQuantizedPartitioner, XnnpackPartitioner
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import XNNPACKQuantizer
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import get_symmetric_quantization_config as xnnpack_config
from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map
from torchao.quantization import Int8DynamicActivationIntxWeightConfig, IntxWeightOnlyConfig, quantize_
from torchao.quantization.granularity import PerAxis, PerGroup
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e, prepare_qat_pt2e
from torchao.quantization.pt2e import move_exported_model_to_eval
from torchao.utils import unwrap_tensor_subclass

import pte_networks_more
from pte_networks import NETWORKS

NETWORKS |= pte_networks_more.NETWORKS
NO_CHECK = EdgeCompileConfig(_check_ir_validity=False)

for entry in fusable_patterns.values():
    # Vulkan's exporter makes its patterns anew for each delegate, which takes longer than the rest of a small export.
    entry.get_graphs_fn = entry.get_graphs_fn and functools.cache(entry.get_graphs_fn)


def calibrated(quantizer, trained=False):
    """Quantized by observers: of weights and activations, or of weights alone. `trained`: by what training would use."""

    def quantize(model, inputs, export):
        # Observers make floats of indices: where there are words, linear layers alone are quantized. Numbers stay as they are
        # there: quantizers make tensors of floats of them, and of places too.
        has_words = any(not x.is_floating_point() for x in inputs)
        chosen = quantizer(has_words)
        if has_words:
            chosen.transform_for_annotation = lambda module: module
        prepare = prepare_qat_pt2e if trained else prepare_pt2e
        module = prepare(export(model).module(), chosen)
        with torch.no_grad():
            for scale in (1.0, 0.9, 0.7, 0.5):
                module(*(x * scale if x.is_floating_point() else x for x in inputs))
        if trained:
            move_exported_model_to_eval(module)
        return convert_pt2e(module)

    return quantize


def by_torchao(config, which=None, short_scales=False):
    """Quantized by torchao. `short_scales`: the back end stores scales of groups as bf16, so the reference has them so."""

    def quantize(model, inputs, export):
        def fits(module, name):
            # Not what is derived from it: attention of torch reads the weights of its linear layers itself.
            return type(module) is nn.Linear and module.in_features % 32 == 0

        if not any(which(m, n) if which else fits(m, n) for n, m in model.named_modules()):
            raise ValueError("has no layer for it")
        quantize_(model, config, which or fits)
        for weight in [m.weight for m in model.modules() if short_scales and hasattr(getattr(m, "weight", None), "scale")]:
            weight.scale.copy_(weight.scale.bfloat16())
        return unwrap_tensor_subclass(model)

    return quantize


FOUR_BITS = {"weight_qmin": -8, "weight_qmax": 7}


def vulkan_quantizer(**how):
    return calibrated(lambda has_words: VulkanQuantizer().set_global(vulkan_config(**how)))


def xnnpack_quantizer(**how):
    def make(has_words):
        quantizer, config = XNNPACKQuantizer(), xnnpack_config(**how)
        # XNNPACK has convolutions of bytes, not of 4 bits.
        linear_alone = has_words or how.items() >= FOUR_BITS.items()
        return quantizer.set_module_type(nn.Linear, config) if linear_alone else quantizer.set_global(config)

    return calibrated(make, how.get("is_qat", False))


def vulkan(**options):
    return lambda: [VulkanPartitioner(options)]


def xnnpack():
    return [XnnpackPartitioner()]


def xnnpack_dynamic():
    return [XnnpackDynamicallyQuantizedPartitioner(), XnnpackPartitioner()]


def xnnpack_each():
    """A delegate for each operator."""
    return [XnnpackPartitioner(per_op_mode=True)]


def mixed():
    """Convolutions and linear layers for XNNPACK, what is left for Vulkan: delegates of two kinds in one program."""
    return [XnnpackPartitioner(configs=[ConvolutionConfig, LinearConfig]), VulkanPartitioner({})]


def nothing():
    return []


def wide(module, _):
    return type(module) is nn.Linear and module.in_features % 64 == 0


def is_table(module, _):
    return isinstance(module, nn.Embedding) and module.embedding_dim % 32 == 0


W4, DA4 = IntxWeightOnlyConfig, Int8DynamicActivationIntxWeightConfig
GROUPS = {"weight_dtype": torch.int4, "granularity": PerGroup(32)}
DYNAMIC_GROUPS = {"weight_dtype": torch.int4, "weight_granularity": PerGroup(32)}
DYNAMIC_ROWS = {"weight_dtype": torch.int4, "weight_granularity": PerAxis(0)}
DYNAMIC_BYTES = {"weight_dtype": torch.int8, "weight_granularity": PerAxis(0)}
TABLES = {"weight_dtype": torch.int4, "granularity": PerGroup(32)}

# Partitioner, quantizer, the type of the module and whether the back end computes in halves.
KINDS = {
    "vk": (vulkan(), None, None),
    "xnn": (xnnpack, None, None),
    "port": (nothing, None, None),
    "vk_f16": (vulkan(force_fp16=True), None, "device"),
    "vk_half": (vulkan(), None, "module"),
    "xnn_f16": (xnnpack, None, "module"),
    "port_f16": (nothing, None, "module"),
    "vk_q8": (vulkan(), xnnpack_quantizer(is_per_channel=True), None),
    "xnn_q8": (xnnpack, xnnpack_quantizer(is_per_channel=True), None),
    "xnn_q8t": (xnnpack, xnnpack_quantizer(is_per_channel=False), None),
    "port_q8": (nothing, xnnpack_quantizer(is_per_channel=True), None),
    "xnn_d8": (xnnpack_dynamic, xnnpack_quantizer(is_per_channel=True, is_dynamic=True), None),
    "xnn_d8t": (xnnpack_dynamic, xnnpack_quantizer(is_per_channel=False, is_dynamic=True), None),
    "xnn_d4": (xnnpack_dynamic, xnnpack_quantizer(is_per_channel=True, is_dynamic=True, **FOUR_BITS), None),
    "xnn_q4": (xnnpack, xnnpack_quantizer(is_per_channel=True, **FOUR_BITS), None),
    "xnn_q8qat": (xnnpack, xnnpack_quantizer(is_per_channel=True, is_qat=True), None),
    "xnn_q8tqat": (xnnpack, xnnpack_quantizer(is_per_channel=False, is_qat=True), None),
    "xnn_d8qat": (xnnpack_dynamic, xnnpack_quantizer(is_per_channel=True, is_qat=True, is_dynamic=True), None),
    "xnn_d8tqat": (xnnpack_dynamic, xnnpack_quantizer(is_per_channel=False, is_qat=True, is_dynamic=True), None),
    "vk_w8": (vulkan(), vulkan_quantizer(is_dynamic=False, weight_bits=8), None),
    "vk_w4": (vulkan(), vulkan_quantizer(is_dynamic=False, weight_bits=4), None),
    "vk_d8": (vulkan(), vulkan_quantizer(is_dynamic=True, weight_bits=8), None),
    "vk_d4": (vulkan(), vulkan_quantizer(is_dynamic=True, weight_bits=4), None),
    "vk_q8t": (vulkan(), xnnpack_quantizer(is_per_channel=False), None),
    "vk_w4g": (vulkan(), by_torchao(W4(**GROUPS)), None),
    "vk_8da4w": (vulkan(), by_torchao(DA4(**DYNAMIC_GROUPS)), None),
    "vk_8da4w_f16": (vulkan(force_fp16=True), by_torchao(DA4(**DYNAMIC_GROUPS)), "device"),
    "vk_e4": (vulkan(), by_torchao(W4(**TABLES), is_table), None),
    "xnn_8da4w": (xnnpack_dynamic, by_torchao(DA4(**DYNAMIC_GROUPS), short_scales=True), None),
    "xnn_8da4c": (xnnpack_dynamic, by_torchao(DA4(**DYNAMIC_ROWS)), None),
    "xnn_8da8w": (xnnpack_dynamic, by_torchao(DA4(**DYNAMIC_BYTES)), None),
    "vk_q8_f16": (vulkan(force_fp16=True), xnnpack_quantizer(is_per_channel=True), "device"),
    "vk_w8_f16": (vulkan(force_fp16=True), vulkan_quantizer(is_dynamic=False, weight_bits=8), "device"),
    "vk_w4g_f16": (vulkan(force_fp16=True), by_torchao(W4(**GROUPS)), "device"),
    "vk_w4g64": (vulkan(), by_torchao(W4(weight_dtype=torch.int4, granularity=PerGroup(64)), wide), None),
    "xnn_each": (xnnpack_each, None, None),
    "xnn_q8_each": (xnnpack_each, xnnpack_quantizer(is_per_channel=True), None),
    "mixed": (mixed, None, None),
    "mixed_q8": (mixed, xnnpack_quantizer(is_per_channel=True), None),
    "mixed_d8": (mixed, xnnpack_quantizer(is_per_channel=True, is_dynamic=True), None),
    "port_8da4w": (nothing, by_torchao(DA4(**DYNAMIC_GROUPS)), None),
    "port_e4": (nothing, by_torchao(W4(**TABLES), is_table), None),
    "vk_dyn": (vulkan(require_dynamic_shapes=True), None, None),
    "xnn_dyn": (xnnpack, None, None),
    "port_dyn": (nothing, None, None),
    "xnn_q8_dyn": (xnnpack, xnnpack_quantizer(is_per_channel=True), None),
    "xnn_8da4w_dyn": (xnnpack_dynamic, by_torchao(DA4(**DYNAMIC_GROUPS), short_scales=True), None),
}

# The part of the largest number by which results may differ at least. Dynamic numbers of PyTorch's quantizer have one scale for the
# tensor; XNNPACK's have one for each row.
LEAST = {"xnn_d8": 3e-2, "xnn_d8t": 3e-2, "xnn_d8qat": 3e-2, "xnn_d8tqat": 3e-2, "mixed_d8": 3e-2, "xnn_d4": 3e-2}


# Of some layers Vulkan's exporter leaves the rounding of rows out: what weights alone give belongs to the bound.
WEIGHTS_ALONE = {"vk_d8": "vk_w8", "vk_d4": "vk_w4"}


def made(name):
    """The network with sensible statistics, and sets of inputs: the first is exported."""
    make, inputs, dynamic = NETWORKS[name]
    torch.manual_seed(len(name) * 7 + 3)
    model, sets = make(), inputs()
    norms = [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    if norms:
        for norm in norms:
            norm.train(), setattr(norm, "momentum", None)
        with torch.no_grad():
            model(*(torch.randn(8, *x.shape[1:]) if x.is_floating_point() else x for x in sets[0]))
    for parameter in model.parameters():
        parameter.requires_grad_(False)
        if parameter.dim() > 1 and not parameter.any():
            # A head that begins with zeros would hide all that is before it.
            nn.init.normal_(parameter, std=0.1)
    return model.eval(), sets, dynamic


def flat(result):
    leaves = torch.utils._pytree.tree_leaves(result)
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


def moved(x, seed):
    if not x.is_floating_point():
        return x
    noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(seed))
    return x + (noise * 1e-6 * x.abs().max()).to(x.dtype)


def nearly(model, inputs, seed):
    """The results for inputs that are a millionth part off. Words cannot be: there the numbers of the model are."""
    if any(x.is_floating_point() for x in inputs):
        return flat(model(*(moved(x, seed) for x in inputs)))
    numbers = [p for p in [*model.parameters(), *model.buffers()] if type(p) in (nn.Parameter, torch.Tensor) and p.is_floating_point()]
    before = [p.detach().clone() for p in numbers]
    for n, p in enumerate(numbers):
        p.copy_(moved(p, seed * 1000 + n))
    results = flat(model(*inputs))
    for p, old in zip(numbers, before):
        p.copy_(old)
    return results


class InDoubles(TorchDispatchMode):
    """Each operation computes in doubles what it is given in floats, and gives floats: roundings fall as they should."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function.namespace != "aten" or function._schema.is_mutable or function.is_view:
            return function(*args, **kwargs)
        turned = lambda x, a, b: x.to(b) if isinstance(x, torch.Tensor) and x.dtype == a else b if x is a else x
        up = lambda x: turned(x, torch.float32, torch.float64)
        return tree_map(lambda x: turned(x, torch.float64, torch.float32), function(*tree_map(up, args), **tree_map(up, kwargs)))


class BesideTies(TorchDispatchMode):
    """What is rounded to codes is first moved by eight roundings of floats: codes that lie between two, as near as another order of a
    sum is, fall the other way. `way` is 1 or -1."""

    def __init__(self, way):
        super().__init__()
        self.way = way

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function.namespace == "quantized_decomposed" and function._opname.startswith("quantize_per") and args[0].numel():
            args = (args[0] + self.way * 2.0**-20 * args[0].abs().amax(-1, keepdim=True), *args[1:])
        return function(*args, **(kwargs or {}))


def distance(a, b):
    return max(float((x.double() - y.double()).abs().max()) if x.numel() else 0.0 for x, y in zip(a, b))


def rms(a, b):
    """Root mean square of the difference, as a part of that of the first."""
    square = lambda pairs: sum(float((d.double() ** 2).sum()) for d in pairs)
    return (square(x.double() - y.double() for x, y in zip(a, b)) / max(square(a), 1e-30)) ** 0.5


def export(name, kind, out):
    partitioner, quantizer, half = KINDS[kind]
    model, sets, dynamic = made(name)
    dynamic = dynamic if "dyn" in kind else None
    sets = sets if "dyn" in kind else sets[:1]
    plain = copy.deepcopy(model)
    to_half = lambda all: [x.half() if x.is_floating_point() else x for x in all]
    if half == "module":
        model, sets = model.half(), [to_half(given) for given in sets]
    exported = lambda module: torch.export.export(module, tuple(sets[0]), dynamic_shapes=dynamic, strict=False)
    if quantizer:
        model = quantizer(model, sets[0], exported)
    with torch.no_grad():
        wanted = [flat(model(*given)) for given in sets]
        largest = max([float(x.abs().max()) for x in wanted[0] if x.numel()] + [1e-6])
        others = [nearly(model, sets[0], seed) for seed in range(3)]
        if quantizer and not half:
            for computed in (InDoubles(), BesideTies(1), BesideTies(-1)):
                with computed:
                    others.append(flat(model(*sets[0])))
        if kind in WEIGHTS_ALONE:
            others.append(flat(KINDS[WEIGHTS_ALONE[kind]][1](copy.deepcopy(plain), sets[0], exported)(*sets[0])))
        if half:
            halves = plain.half() if half == "device" else plain
            given = to_half(sets[0]) if half == "device" else [x.float() if x.is_floating_point() else x for x in sets[0]]
            others.append(flat(halves(*given)))
        spread, spread_rms = max(distance(wanted[0], o) for o in others), max(rms(wanted[0], o) for o in others)
    least = LEAST.get(kind, 2e-3 if half else 1e-3 if quantizer else 1e-4)
    atol = 4 * spread + largest * least
    lowered = to_edge_transform_and_lower(exported(model), partitioner=partitioner(), compile_config=NO_CHECK).to_executorch()
    plan = lowered.executorch_program.execution_plan[0]
    label = f"{name}-{kind}"
    (out / f"{label}.pte").write_bytes(lowered.buffer)
    listed = []
    for s, (given, results) in enumerate(zip(sets, wanted)):
        files = {"inputs": [f"{label}.s{s}.in{n}.npy" for n in range(len(given))], "outputs": [f"{label}.s{s}.out{n}.npy" for n in range(len(results))]}
        for path, tensor in zip(files["inputs"] + files["outputs"], list(given) + results):
            np.save(out / path, tensor.detach().contiguous().numpy())
        listed.append(files)
    outside = sorted({f"{op.name}.{op.overload}" for op in plan.operators})
    return {"name": label, "group": kind, "pte": f"{label}.pte", "sets": listed, "atol": atol, "rtol": 0.0, "largest": largest,
            "rms": 2 * spread_rms + least, "delegates": sorted({d.id for d in plan.delegates}), "outside": outside, "bytes": len(lowered.buffer)}


def pairs(args):
    """The networks and kinds that are exported, in order."""
    names, kinds = args.only.split(","), args.kinds.split(",")
    if args.pairs:
        return [tuple(pair.split("-")) for pair in args.pairs.split(",")]
    if args.draw:
        # Kinds with a seed, the first of all networks first.
        draw = random.Random(args.seed)
        drawn = [draw.sample(kinds, min(args.draw, len(kinds))) for _ in names]
        return [(name, own[place]) for place in range(min(args.draw, len(kinds))) for name, own in zip(names, drawn)]
    return [(name, kind) for kind in kinds for name in names]


def too_long(*_):
    raise TimeoutError("the export took longer than --limit")


def main():
    signal.signal(signal.SIGALRM, too_long)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--only", default=",".join(NETWORKS))
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--pairs", help="such as bert-vk,vit-xnn_q8; otherwise each of --only in each of --kinds")
    parser.add_argument("--draw", type=int, help="so many kinds for each network, by a seed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=int, default=0, help="seconds for an export, 0 for no limit")
    parser.add_argument("--trace", action="store_true", help="print where an export failed")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    lines = args.out / "manifest.jsonl"
    done = {json.loads(line)["name"] for line in lines.read_text().splitlines()} if lines.exists() else set()
    for name, kind in pairs(args):
        if f"{name}-{kind}" in done or ("dyn" in kind and not NETWORKS[name][2]):
            continue
        began = time.monotonic()
        try:
            signal.alarm(args.limit)
            case = export(name, kind, args.out)
        except Exception as error:
            signal.alarm(0)
            text = (str(error).splitlines() or [""])[0][:200]
            with (args.out / "failed.txt").open("a") as failed:
                failed.write(f"{name}-{kind}: {type(error).__name__} {text}\n")
            print(name, kind, "FAILED", type(error).__name__, text, flush=True)
            if args.trace:
                traceback.print_exc()
            continue
        signal.alarm(0)
        with lines.open("a") as manifest:
            manifest.write(json.dumps(case) + "\n")
        took = time.monotonic() - began
        print(case["name"], case["bytes"], "bytes", "atol %.2g of %.2g, %.1f s" % (case["atol"], case["largest"], took), flush=True)
        gc.collect()


if __name__ == "__main__":
    main()
