#!/usr/bin/env python3
"""ExecuTorch programs of small networks that PyTorch's quantizers for exported programs (`pt2e`) made codes of, with offsets (zero points) of all kinds: activations
and weights of bytes with and without sign, of 16 bits, by channel and by tensor, static and dynamic; without a delegate, or for XNNPACK.

    pte_offsets.py make OUT [--backs port,xnn] [--kinds ac,x86] [--nets conv,mlp]
    pte_offsets.py check OUT [--device vulkan]

`make` needs executorch 1.5.1 and torchao 0.18, and writes NET_KIND_BACK.pte with three sets of inputs, the results of the quantized module, and those of ExecuTorch's
own runtime where it loads the file. `check` needs the package `halite`, and prints how far it is from both, in shares of the largest number.
"""
import argparse
import pathlib

import numpy as np


def networks():
    import torch
    from torch import nn

    def of(forward, **parts):
        module = type("Network", (nn.Module,), {"forward": forward})()
        for name, part in parts.items():
            setattr(module, name, part)
        return module

    def conv(s, x):
        x = nn.functional.hardtanh(s.b(torch.relu(s.n(s.a(x)))))
        x = s.c(x)
        return s.d(nn.functional.adaptive_avg_pool2d(x + torch.sigmoid(x), 1).flatten(1))

    def words(s, i):
        x = s.e(i).transpose(1, 2)
        return s.h(torch.max_pool1d(x + torch.relu(s.c(x)), 2).mean(2))

    def unet(s, x):
        a = torch.relu(s.a(x))
        return s.c(torch.cat([a, s.u(torch.relu(s.b(a)))], 1))

    mlp = lambda: nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4))  # noqa: E731
    return {
        "conv": (lambda: of(conv, a=nn.Conv2d(3, 8, 3, padding=1), b=nn.Conv2d(8, 8, 3, groups=8, padding=1, stride=2), c=nn.Conv2d(8, 16, 1), d=nn.Linear(16, 10), n=nn.BatchNorm2d(8)), lambda: torch.randn(2, 3, 16, 16) * 2 + 0.7),
        "mlp": (mlp, lambda: torch.randn(5, 16) * 1.5 - 0.3),
        "encoder": (lambda: nn.Sequential(nn.TransformerEncoderLayer(32, 4, 48, batch_first=True, dropout=0.0), nn.Linear(32, 5)), lambda: torch.randn(2, 9, 32)),
        "words": (lambda: of(words, e=nn.Embedding(50, 16), c=nn.Conv1d(16, 16, 3, padding=1), h=nn.Linear(16, 5)), lambda: torch.randint(0, 50, (2, 12))),
        "unet": (lambda: of(unet, a=nn.Conv2d(3, 8, 3, padding=1), b=nn.Conv2d(8, 8, 3, stride=2, padding=1), u=nn.ConvTranspose2d(8, 8, 2, stride=2), c=nn.Conv2d(16, 3, 3, padding=1)), lambda: torch.rand(1, 3, 16, 16)),
    }


def offsets(activations, weights, by_channel):
    """A quantizer whose activations and weights have offsets."""
    import torch
    from torchao.quantization.pt2e import MinMaxObserver, PerChannelMinMaxObserver
    from torchao.quantization.pt2e.quantizer import QuantizationAnnotation, QuantizationSpec, Quantizer

    def spec(kind, observer, scheme, axis=None):
        dtype, least, most = kind
        return QuantizationSpec(dtype=dtype, quant_min=least, quant_max=most, qscheme=scheme, ch_axis=axis, is_dynamic=False, observer_or_fake_quant_ctr=observer.with_args(eps=2**-12))

    own = spec(activations, MinMaxObserver, torch.per_tensor_affine)
    other = spec(weights, PerChannelMinMaxObserver, torch.per_channel_affine, 0) if by_channel else spec(weights, MinMaxObserver, torch.per_tensor_affine)
    aten = torch.ops.aten
    products = (aten.linear.default, aten.conv2d.default, aten.conv1d.default, aten.conv_transpose2d.input)
    others = (aten.add.Tensor, aten.relu.default, aten.sigmoid.default, aten.gelu.default)

    class Offsets(Quantizer):
        def annotate(self, model):
            for node in (node for node in model.graph.nodes if node.op == "call_function"):
                inputs = [one for one in node.args if isinstance(one, torch.fx.Node)]
                if node.target in products:
                    given = {node.args[0]: own, node.args[1]: other}
                elif node.target in others:
                    given = {one: own for one in inputs}
                elif node.target is aten.embedding.default:
                    node.meta["quantization_annotation"] = QuantizationAnnotation(input_qspec_map={node.args[0]: other}, _annotated=True)
                    continue
                else:
                    continue
                node.meta["quantization_annotation"] = QuantizationAnnotation(input_qspec_map=given, output_qspec=own, _annotated=True)
            return model

        def validate(self, model):
            pass

    return Offsets()


def kinds():
    import torch
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import XNNPACKQuantizer, get_symmetric_quantization_config
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

    signed, unsigned, half, wide = (torch.int8, -128, 127), (torch.uint8, 0, 255), (torch.uint8, 0, 127), (torch.int16, -32768, 32767)
    xnnpack = lambda **how: XNNPACKQuantizer().set_global(get_symmetric_quantization_config(**how))  # noqa: E731
    other = lambda **how: x86.X86InductorQuantizer().set_global(x86.get_default_x86_inductor_quantization_config(**how))  # noqa: E731
    return {
        "ac": lambda: offsets(signed, signed, True), "au": lambda: offsets(unsigned, unsigned, True), "at": lambda: offsets(unsigned, signed, False),
        "ut": lambda: offsets(half, unsigned, False), "i16": lambda: offsets(wide, signed, True),
        "t": lambda: xnnpack(is_per_channel=False), "c": lambda: xnnpack(is_per_channel=True), "d": lambda: xnnpack(is_per_channel=True, is_dynamic=True),
        "dt": lambda: xnnpack(is_per_channel=False, is_dynamic=True), "x86": lambda: other(is_dynamic=False), "x86d": lambda: other(is_dynamic=True),
    }


def make_one(path, network, drawn, quantizer, back):
    import torch
    from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
    from executorch.runtime import Runtime
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    torch.manual_seed(3)
    example = (drawn(),)
    module = prepare_pt2e(torch.export.export(network().eval(), example).module(), quantizer())
    with torch.no_grad():
        for _ in range(4):
            module(drawn())
        module = convert_pt2e(module)
        partitioners = []
        if back == "xnn":
            from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

            partitioners = [XnnpackPartitioner()]
        lowered = to_edge_transform_and_lower(torch.export.export(module, example), partitioner=partitioners, compile_config=EdgeCompileConfig(_check_ir_validity=False))
        path.write_bytes(lowered.to_executorch().buffer)
        try:
            method = Runtime.get().load_program(str(path)).load_method("forward")
        except RuntimeError as error:
            print(f"{path.name}: ExecuTorch's runtime refuses it: {str(error).splitlines()[0]}", flush=True)
            method = None
        sets = {}
        for place, given in enumerate([example[0], drawn(), drawn()]):
            sets.update({f"{place}/in": given.numpy(), f"{place}/eager": module(given).numpy()})
            if method is not None:
                sets[f"{place}/runtime"] = method.execute([given])[0].numpy().copy()
    np.savez(path.with_suffix(".npz"), **sets)


def make(arguments):
    import executorch.kernels.quantized  # noqa: F401: the operators of codes.

    nets, all_kinds = networks(), kinds()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for net in arguments.nets or nets:
        for kind in arguments.kinds or all_kinds:
            for back in arguments.backs:
                path = arguments.out / f"{net}_{kind}_{back}.pte"
                try:
                    make_one(path, *nets[net], all_kinds[kind], back)
                    print(path.name, flush=True)
                except Exception as error:  # noqa: BLE001: exporters fail in many ways.
                    path.unlink(missing_ok=True)
                    print(f"{path.name}: not exported: {type(error).__name__}: {(str(error).splitlines() or [''])[0][:160]}", flush=True)


def check(arguments):
    import halite

    for path in sorted(arguments.out.glob("*.pte")):
        sets = np.load(path.with_suffix(".npz"))
        try:
            session = halite.Session(str(path), device=arguments.device, cache=False)
            found = [np.asarray(session.run([sets[f"{place}/in"]])[0]) for place in range(3)]
        except halite.Error as error:
            print(f"{path.name}: refused: {error}", flush=True)
            continue
        apart = lambda a, b: max(float(np.abs(x - y).max() / np.abs(y).max()) for x, y in zip(a, b))  # noqa: E731
        eager = [sets[f"{place}/eager"] for place in range(3)]
        if "0/runtime" not in sets:
            print(f"{path.name}: from eager {apart(found, eager):.1e}; ExecuTorch's runtime refuses it", flush=True)
            continue
        runtime = [sets[f"{place}/runtime"] for place in range(3)]
        print(f"{path.name}: from eager {apart(found, eager):.1e}, from ExecuTorch's runtime {apart(found, runtime):.1e}, these {apart(runtime, eager):.1e}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["make", "check"])
    parser.add_argument("out", type=pathlib.Path)
    names = lambda text: text.split(",")  # noqa: E731
    parser.add_argument("--nets", type=names)
    parser.add_argument("--kinds", type=names)
    parser.add_argument("--backs", type=names, default=["port"])
    parser.add_argument("--device", default="vulkan")
    arguments = parser.parse_args()
    {"make": make, "check": check}[arguments.what](arguments)


if __name__ == "__main__":
    main()
