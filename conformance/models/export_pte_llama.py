#!/usr/bin/env python3
"""Exports Llamas of a few layers by ExecuTorch's own exporter (executorch.extension.llm), with caches, and decodes greedily with
the same weights in eager PyTorch.

usage: export_pte_llama.py OUT_DIR [--only vk_f32,xnn_8da4w] [--steps 128] [--room 144]
       export_pte_llama.py OUT_DIR --only large_vk_8da4w --layers 2
       HALITE_PTE_PROGRAMS=OUT_DIR cargo test -p halite --test programs program_folder -- --nocapture

For each: NAME.pte, tokens, positions and logits of each step as .npy, and a line of OUT_DIR/manifest.jsonl; the sets of a program
are for one session, and `tokens` says that the largest logits have to be the same ones. The first step reads five tokens where
sizes are dynamic. Weights are random but seeded; the reference has the same quantization. Where numbers are rounded to integers
while a program runs, one that falls the other way moves all that follow it. So eager decodes twice, the second time with weights
that are a ten-millionth part off: tolerances come from how far these are apart, and tokens have to be the same if theirs are and eager has the same type.

`large_*` have the shape of Llama 3.2 1B (`--layers`: as many of its 16). Their rows are rows of one small block, turned by a few
places and scaled, no two of a matrix alike: so the files are as large as others, and pack well. Of their logits the largest are kept.
Needs: executorch==1.5.1 torch torchao.
"""
import argparse, copy, gc, json, pathlib
import numpy as np
import torch
from torchao.quantization.quantize_.workflows.intx.intx_unpacked_to_int8_tensor import IntxUnpackedToInt8Tensor, _apply_int8_act_asym_per_token_quant_dequant
import executorch.extension.llm.custom_ops.custom_ops  # noqa: F401 (registers llama::*)
from executorch.examples.models.llama.export_llama_lib import _prepare_for_llama_export, export_llama, get_quantizer_and_quant_params
from executorch.examples.models.llama.source_transformation.quantize import QuantizedGroupEmbedding
from executorch.extension.llm.export.config.llm_config import DtypeOverride, LlmConfig, ModelType, Pt2eQuantize

SMALL = {"dim": 64, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "vocab_size": 128, "hidden_dim": 160}
WIDE = {"dim": 512, "n_layers": 2, "n_heads": 8, "n_kv_heads": 2, "vocab_size": 2048, "hidden_dim": 1536}
LARGE = {"dim": 2048, "n_layers": 16, "n_heads": 32, "n_kv_heads": 8, "vocab_size": 128256, "hidden_dim": 8192}
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
    "large_vk_8da4w": (LARGE, "vulkan", "fp32", "8da4w", "4,32", True, True),
    "large_vk_8da4w_f16": (LARGE, "vulkan", "inside", "8da4w", "4,32", True, True),
    "large_vk_f16": (LARGE, "vulkan", "inside", None, None, True, True),
    "large_xnn_8da4w": (LARGE, "xnnpack", "fp32", "8da4w", "4,32", True, True),
}
BLOCK = 512


def repeated(block, rows, start):
    """Rows of a block, each turned by a multiple of 32 places and scaled by one of a few factors, no two alike."""
    row = torch.arange(rows) + start * 37
    turn = torch.arange(rows) // BLOCK + start
    turns = block.shape[1] // 32
    columns = torch.arange(block.shape[1])[None] - 32 * (turn % turns)[:, None]
    # 64 turns of 2048 columns, so 128,256 rows have four factors.
    factor = 1 - 0.125 * (torch.arange(rows) // BLOCK // turns % 8)
    out = torch.empty(rows, block.shape[1], dtype=torch.bfloat16)
    for at in range(0, rows, 8192):
        part = slice(at, at + 8192)
        picked = block[row[part] % BLOCK]
        out[part] = torch.gather(picked, 1, columns[part] % block.shape[1]) * factor[part, None]
    return out


class Matrices:
    """Random matrices: small ones as they are, those of `large_*` of repeated blocks."""

    def __init__(self, large):
        self.large, self.blocks, self.made = large, {}, 0

    def __call__(self, rows, columns, gain=None):
        gain = columns**-0.5 if gain is None else gain
        if not self.large:
            return torch.randn(rows, columns) * gain
        # The table has a block of its own: else the word that a word resembles would be the next one, whatever layers do.
        block = self.blocks.setdefault((columns, gain), torch.randn(BLOCK, columns))
        self.made += 1
        return repeated(block * gain, rows, self.made)


def weights(shape):
    torch.manual_seed(5)
    dim, hidden, words = shape["dim"], shape["hidden_dim"], shape["vocab_size"]
    keys = dim // shape["n_heads"] * shape["n_kv_heads"]
    matrix = Matrices(dim == LARGE["dim"])
    all = {"tok_embeddings.weight": matrix(words, dim, 1.0), "norm.weight": torch.rand(dim) + 0.5, "output.weight": matrix(words, dim) * 3}
    for layer in range(shape["n_layers"]):
        own = {"attention.wq": (dim, dim), "attention.wk": (keys, dim), "attention.wv": (keys, dim), "attention.wo": (dim, dim)}
        own |= {"feed_forward.w1": (hidden, dim), "feed_forward.w2": (dim, hidden), "feed_forward.w3": (hidden, dim)}
        all |= {f"layers.{layer}.{name}.weight": matrix(*size) for name, size in own.items()}
        all |= {f"layers.{layer}.{name}.weight": torch.rand(dim) + 0.5 for name in ("attention_norm", "ffn_norm")}
    return all


def config(name, out, room):
    shape, back, dtype, quantization, table, operator, dynamic = CASES[name]
    beside = out / {SMALL["dim"]: "small", WIDE["dim"]: "wide", LARGE["dim"]: "large_%d" % shape["n_layers"]}[shape["dim"]]
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
        return floats(manager.model.eval())
    _, quantizers, _ = get_quantizer_and_quant_params(c)
    module = manager.export().pt2e_quantize(quantizers).pre_autograd_graph_module
    for buffer_name, buffer in module.named_buffers():
        if "cache" in buffer_name:
            buffer.zero_()
    return module


def floats(model):
    """The same model, with quantized weights turned to floats once and not in every call."""
    for module in model.modules():
        weight = getattr(module, "weight", None)
        if isinstance(weight, IntxUnpackedToInt8Tensor):
            rounded = weight.activation_quantization is not None
            dense = weight.dequantize()
            del module.weight

            def forward(x, dense=dense, bias=getattr(module, "bias", None), rounded=rounded):
                x = _apply_int8_act_asym_per_token_quant_dequant(x) if rounded else x
                return torch.nn.functional.linear(x, dense, bias)

            module.forward = forward
        if isinstance(module, QuantizedGroupEmbedding):
            # The operators make floats of a whole table: here they get the rows that are read.
            def rows(ids, own=module.forward, module=module, table=module.weight, scales=module.scales):
                module.weight, module.scales = table[ids.flatten()], scales[ids.flatten()]
                return own(torch.arange(ids.numel()).reshape(ids.shape))

            module.forward = rows
    return model


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


def decode(model, first, steps):
    """Tokens, position and logits of each step. `first`: tokens of the first call, or what an earlier decode gave, whose tokens are taken again."""
    taken, position, ids = [], 0, first
    for step in range(steps):
        if isinstance(first, list):
            ids = first[step][0]
        at = torch.tensor([position])
        logits = call(model, ids, at)
        taken.append((ids, at, logits))
        position, ids = position + ids.shape[1], logits.reshape(1, -1, logits.shape[-1])[:, -1:].argmax(-1)
    return taken


def saved(out, prefix, ids, at, logits, few):
    """The files of a set. `few`: only the largest logits, and their places."""
    files = {"inputs": [f"{prefix}.in0.npy", f"{prefix}.in1.npy"], "outputs": [f"{prefix}.out0.npy"]}
    if few:
        logits, places = logits.flatten().topk(64)
        files["places"] = [f"{prefix}.places.npy"]
        np.save(out / files["places"][0], places.numpy())
    for path, tensor in zip(files["inputs"] + files["outputs"], (ids, at, logits)):
        np.save(out / path, tensor.numpy())
    return files


def export(name, out, steps, room):
    shape, _, dtype, quantization, _, _, dynamic = CASES[name]
    c = config(name, out, room or steps + 16)
    sets, spread, turned, words = [], 0.0, 0, shape["vocab_size"]
    ids = torch.randint(3, words, (1, 5 if dynamic else 1), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        model = reference(c)
        taken = decode(model, ids, steps)
        # Rows of caches behind a call's position are read by none, so one model serves twice.
        again = decode(off(model), taken, steps)
        del model
    for step, ((ids, at, logits), (_, _, other)) in enumerate(zip(taken, again)):
        sets.append(saved(out, f"{name}.s{step}", ids, at, logits, name.startswith("large")))
        spread = max(spread, float((logits.float() - other.float()).abs().max()))
        turned += int(logits.flatten()[-words:].argmax() != other.flatten()[-words:].argmax())
    gc.collect()
    export_llama(c)
    largest = float(logits.float().abs().max())
    atol = 4 * spread + (1e-2 if dtype != "fp32" else 2e-4) * largest
    return {"name": name, "group": "llama", "pte": f"{name}.pte", "sets": sets, "stateful": True, "tokens": turned == 0 and dtype != "inside", "turned": turned,
            "spread": spread, "largest": largest, "atol": atol, "rtol": 0.0}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--only", default=",".join(name for name in CASES if not name.startswith("large")))
    parser.add_argument("--steps", type=int, default=128)
    parser.add_argument("--room", type=int, help="of the caches (16 more than the steps)")
    parser.add_argument("--layers", type=int, default=LARGE["n_layers"], help="of large_*")
    args = parser.parse_args()
    LARGE["n_layers"] = args.layers
    args.out.mkdir(parents=True, exist_ok=True)
    for name in args.only.split(","):
        if (args.out / f"{name}.pte").exists():
            continue
        try:
            case = export(name, args.out, args.steps, args.room)
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
