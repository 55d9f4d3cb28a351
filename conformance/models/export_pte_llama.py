#!/usr/bin/env python3
"""Exports Llamas of a few layers by ExecuTorch's own exporter (executorch.extension.llm), with caches, and decodes greedily with
the same weights in eager PyTorch.

usage: export_pte_llama.py OUT_DIR [--only vk_f32,xnn_8da4w] [--steps 128]
       HALITE_PTE_PROGRAMS=OUT_DIR cargo test -p halite --test program_folder -- --nocapture

For each: NAME.pte, tokens, positions and logits of each step as .npy, and a line of OUT_DIR/manifest.jsonl; the sets of a program
are for one session, and `tokens` says that the largest logits have to be the same ones. The first step reads five tokens where
sizes are dynamic. Weights are random but seeded; the reference has the same quantization. Where numbers are rounded to integers
while a program runs, one that falls the other way moves all that follow it. So eager decodes twice, the second time with weights
that are a ten-millionth part off: tolerances come from how far these are apart, and tokens have to be the same if theirs are and eager has the same type.
Needs: executorch==1.5.1 torch torchao.
"""
import argparse, copy, gc, json, pathlib
import numpy as np
import torch
import executorch.extension.llm.custom_ops.custom_ops  # noqa: F401 (registers llama::*)
from executorch.examples.models.llama.export_llama_lib import _prepare_for_llama_export, export_llama, get_quantizer_and_quant_params
from executorch.extension.llm.export.config.llm_config import DtypeOverride, LlmConfig, ModelType, Pt2eQuantize

SMALL = {"dim": 64, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "vocab_size": 128, "hidden_dim": 160}
WIDE = {"dim": 512, "n_layers": 2, "n_heads": 8, "n_kv_heads": 2, "vocab_size": 2048, "hidden_dim": 1536}
BOTH = {"norm_eps": 1e-5, "rope_theta": 10000.0, "use_scaled_rope": False}

# Shape, back end, type (`inside`: Vulkan's back end computes in halves), quantization of weights (by source or by graph), of the table, caches by an operator, dynamic shapes.
CASES = {
    "vk_f32": (SMALL, "vulkan", "fp32", None, None, True, True),
    "vk_f16": (SMALL, "vulkan", "inside", None, None, True, True),
    "vk_8da4w": (SMALL, "vulkan", "fp32", "8da4w", "4,32", True, True),
    "vk_4w": (SMALL, "vulkan", "fp32", "4w", None, True, True),
    "vk_8w": (SMALL, "vulkan", "fp32", "vulkan_8w", None, True, True),
    "xnn_f32": (SMALL, "xnnpack", "fp32", None, None, True, True),
    "xnn_f16": (SMALL, "xnnpack", "fp16", None, None, True, True),
    "xnn_8da4w": (SMALL, "xnnpack", "fp32", "8da4w", "4,32", True, True),
    "xnn_8da8w": (SMALL, "xnnpack", "fp32", "8da8w", "8,0", True, True),
    "xnn_int8": (SMALL, "xnnpack", "fp32", "int8", "8,0", True, True),
    # One token a call: of several, PyTorch's numbers have one scale, and XNNPACK's have one each.
    "xnn_d8": (SMALL, "xnnpack", "fp32", "xnnpack_dynamic", None, True, False),
    "xnn_d4": (SMALL, "xnnpack", "fp32", "xnnpack_dynamic_qc4", None, True, False),
    "xnn_plain": (SMALL, "xnnpack", "fp32", None, None, False, False),
    "vk_plain": (SMALL, "vulkan", "fp32", None, None, False, False),
    "port_f32": (SMALL, None, "fp32", None, None, True, True),
    "wide_vk_f16": (WIDE, "vulkan", "inside", None, None, True, True),
    "wide_vk_8da4w": (WIDE, "vulkan", "fp32", "8da4w", "4,32", True, True),
    "wide_vk_8da4w_f16": (WIDE, "vulkan", "inside", "8da4w", "4,32", True, True),
}


def weights(shape):
    torch.manual_seed(5)
    dim, hidden, words = shape["dim"], shape["hidden_dim"], shape["vocab_size"]
    keys = dim // shape["n_heads"] * shape["n_kv_heads"]
    matrix = lambda rows, columns: torch.randn(rows, columns) * columns**-0.5
    all = {"tok_embeddings.weight": torch.randn(words, dim), "norm.weight": torch.rand(dim) + 0.5, "output.weight": matrix(words, dim) * 3}
    for layer in range(shape["n_layers"]):
        own = {"attention.wq": (dim, dim), "attention.wk": (keys, dim), "attention.wv": (keys, dim), "attention.wo": (dim, dim)}
        own |= {"feed_forward.w1": (hidden, dim), "feed_forward.w2": (dim, hidden), "feed_forward.w3": (hidden, dim)}
        all |= {f"layers.{layer}.{name}.weight": matrix(*size) for name, size in own.items()}
        all |= {f"layers.{layer}.{name}.weight": torch.rand(dim) + 0.5 for name in ("attention_norm", "ffn_norm")}
    return all


def config(name, out, room):
    shape, back, dtype, quantization, table, operator, dynamic = CASES[name]
    beside = out / ("wide" if shape is WIDE else "small")
    if not beside.with_suffix(".pth").exists():
        torch.save(weights(shape), beside.with_suffix(".pth"))
        beside.with_suffix(".json").write_text(json.dumps(shape | BOTH))
    c = LlmConfig()
    c.base.model_class, c.base.metadata = ModelType.llama3, '{"get_bos_id": 1, "get_eos_ids": [2]}'
    c.base.params, c.base.checkpoint = str(beside.with_suffix(".json")), str(beside.with_suffix(".pth"))
    c.model.use_kv_cache, c.model.use_sdpa_with_kv_cache, c.model.enable_dynamic_shape = True, operator, dynamic
    c.model.dtype_override = DtypeOverride("fp32" if dtype == "inside" else dtype)
    c.backend.vulkan.force_fp16 = dtype == "inside"
    c.export.max_seq_length = c.export.max_context_length = room
    c.export.output_name, c.export.output_dir = str(out / f"{name}.pte"), str(out)
    if quantization in [kind.value for kind in Pt2eQuantize]:
        c.quantization.pt2e_quantize = Pt2eQuantize(quantization)
    elif quantization:
        c.quantization.qmode, c.quantization.group_size = quantization, 32
    c.quantization.embedding_quantize, c.quantization.use_hqq = table, False
    c.backend.vulkan.enabled, c.backend.xnnpack.enabled, c.backend.xnnpack.extended_ops = back == "vulkan", back == "xnnpack", back == "xnnpack"
    return c


def reference(c):
    """What is exported, quantized but not lowered."""
    manager = _prepare_for_llama_export(copy.deepcopy(c))
    if not c.quantization.pt2e_quantize:
        # XNNPACK stores scales of groups as bf16, so the reference has them so.
        for weight in [p for p in manager.model.parameters() if c.backend.xnnpack.enabled and hasattr(p, "scale")]:
            weight.scale.copy_(weight.scale.bfloat16())
        return manager.model.eval()
    _, quantizers, _ = get_quantizer_and_quant_params(c)
    module = manager.export().pt2e_quantize(quantizers).pre_autograd_graph_module
    for buffer_name, buffer in module.named_buffers():
        if "cache" in buffer_name:
            buffer.zero_()
    return module


def off(model):
    """A model whose norms are a ten-millionth part off."""
    for place, (name, weight) in enumerate([*model.named_parameters(), *model.named_buffers()]):
        if "norm" in name:
            noise = torch.randn(weight.shape, generator=torch.Generator().manual_seed(place))
            weight.mul_((1 + noise * 1e-7).to(weight.dtype))
    return model


def call(model, ids, at):
    logits = model(ids, {"input_pos": at})
    return logits[0] if isinstance(logits, (tuple, list)) else logits


def export(name, out, steps):
    shape, _, dtype, quantization, _, _, dynamic = CASES[name]
    c = config(name, out, steps + 16)
    sets, position, spread, turned = [], 0, 0.0, 0
    ids = torch.randint(3, shape["vocab_size"], (1, 5 if dynamic else 1), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        model, other = reference(c), off(reference(c))
        for step in range(steps):
            at = torch.tensor([position])
            logits, again = call(model, ids, at), call(other, ids, at)
            files = {"inputs": [f"{name}.s{step}.in0.npy", f"{name}.s{step}.in1.npy"], "outputs": [f"{name}.s{step}.out0.npy"]}
            for path, tensor in zip(files["inputs"] + files["outputs"], (ids, at, logits)):
                np.save(out / path, tensor.numpy())
            sets.append(files)
            spread = max(spread, float((logits.float() - again.float()).abs().max()))
            turned += int(logits.flatten()[-shape["vocab_size"] :].argmax() != again.flatten()[-shape["vocab_size"] :].argmax())
            position, ids = position + ids.shape[1], logits.reshape(1, -1, shape["vocab_size"])[:, -1:].argmax(-1)
    export_llama(c)
    largest = float(logits.float().abs().max())
    atol = 4 * spread + (1e-2 if dtype != "fp32" else 2e-4) * largest
    return {"name": name, "group": "llama", "pte": f"{name}.pte", "sets": sets, "stateful": True, "tokens": turned == 0 and dtype != "inside", "turned": turned,
            "spread": spread, "largest": largest, "atol": atol, "rtol": 0.0}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--only", default=",".join(CASES))
    parser.add_argument("--steps", type=int, default=128)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    for name in args.only.split(","):
        if (args.out / f"{name}.pte").exists():
            continue
        try:
            case = export(name, args.out, args.steps)
        except Exception as error:
            print(name, "FAILED", type(error).__name__, (str(error).splitlines() or [""])[0][:200], flush=True)
            continue
        with (args.out / "manifest.jsonl").open("a") as manifest:
            manifest.write(json.dumps(case) + "\n")
        about = "atol %.3g of %.3g, eager apart from itself by %.3g, %d tokens" % tuple(case[key] for key in ("atol", "largest", "spread", "turned"))
        print(name, (args.out / f"{name}.pte").stat().st_size, "bytes,", about, flush=True)
        gc.collect()


if __name__ == "__main__":
    main()
