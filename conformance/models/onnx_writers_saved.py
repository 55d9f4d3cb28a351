#!/usr/bin/env python3
"""Networks as ONNX Runtime saves them when it has optimized them (`optimized_model_filepath`), for `onnx_sizes.py check`.

    onnx_writers_saved.py FOLDER [FAMILY...] [--names PART...]

writes FAMILY_NAME_LEVEL.onnx for the levels `basic`, `extended` and `all`, with calls of several sizes in FAMILY_NAME_LEVEL.npz, and what the network gives
that was not optimized in FAMILY_NAME_LEVEL.expected.npz. What is saved at level `all` is for the processor that saved it. Needs torch, transformers, timm,
onnx and onnxruntime.
"""
import pathlib
import tempfile

import numpy as np
from onnx_sizes import expected_at
from onnx_writers import calls_for, floats, ints, main
from onnx_writers_more import attempt, torch_networks

LEVELS = {"basic": "ORT_ENABLE_BASIC", "extended": "ORT_ENABLE_EXTENDED", "all": "ORT_ENABLE_ALL"}
WORDS = ((1, 8), (3, 12), (2, 33))
PICTURES = ((1, 64, 64), (2, 96, 64), (1, 70, 94))


def session(path, level, save=None):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    # Without it, sums of bytes saturate on processors with AVX2 and no VNNI.
    options.add_session_config_entry("session.x64quantprecision", "1")
    if save:
        options.optimized_model_filepath = str(save)
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def save_all(folder, name, source, calls):
    """The model at each level, with what the one at `source` gives."""
    plain = session(source, "ORT_DISABLE_ALL")
    inputs, outputs = [value.name for value in plain.get_inputs()], [value.name for value in plain.get_outputs()]
    told = [plain.run(outputs, dict(zip(inputs, call))) for call in calls]
    for level, kind in LEVELS.items():
        full = f"{name}_{level}"

        def make():
            target = folder / f"{full}.onnx"
            session(source, kind, target)
            calls_for(folder, full, calls)
            made = {f"{index}/{output}": value for index, results in enumerate(told) for output, value in zip(outputs, results)}
            np.savez_compressed(expected_at(target), **made, **{f"taken/{value}": np.array(1) for value in inputs})

        attempt(full, make)


def export(path, module, example, axes, dynamo):
    """A module as PyTorch writes it; `axes` are the open ones of each input."""
    import torch

    example = tuple(torch.from_numpy(value) for value in example)
    names = [f"x{index}" for index in range(len(example))]
    with torch.no_grad():
        if dynamo:
            shapes = tuple({axis: torch.export.Dim.DYNAMIC for axis in own} for own in axes)
            torch.onnx.export(module.eval(), example, dynamo=True, input_names=names, dynamic_shapes=shapes, verbose=False).save(str(path))
        else:
            torch.onnx.export(module.eval(), example, str(path), dynamo=False, opset_version=17, input_names=names, dynamic_axes=dict(zip(names, axes)))


class Logits:
    """A network of transformers as a module of tensors."""

    def __new__(cls, network, *names):
        import torch

        class Module(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.network = network

            def forward(self, *tensors):
                return self.network(**dict(zip(names, tensors)), use_cache=False, return_dict=True)[0]

        class One(Module):
            def forward(self, x):
                return super().forward(x)

        class Two(Module):
            def forward(self, x, y):
                return super().forward(x, y)

        return One() if len(names) == 1 else Two()


def networks():
    """Name: a module, calls, open axes of each input, and whether the newer exporter writes it."""
    import timm
    import transformers as t

    text = dict(vocab_size=60, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, max_position_embeddings=128)
    vision = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, image_size=64, patch_size=16)
    shared = dict(vocab_size=60, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48)
    words = lambda *more: [[ints(60, b, n, dtype=np.int64), *(make(b, n) for make in more)] for b, n in WORDS]
    mask = lambda b, n: (np.arange(n) < np.array([[n - 2 * row] for row in range(b)])).astype(np.int64)
    both, sides = {0: "batch", 1: "length"}, {0: "batch", 2: "height", 3: "width"}
    yield "bert", Logits(t.BertForTokenClassification(t.BertConfig(**text, attn_implementation="eager")), "input_ids", "attention_mask"), words(mask), [both, both], False
    yield "roberta", Logits(t.RobertaModel(t.RobertaConfig(**{**text, "max_position_embeddings": 140}, attn_implementation="sdpa")), "input_ids", "attention_mask"), words(mask), [both, both], True
    yield "gpt2", Logits(t.GPT2LMHeadModel(t.GPT2Config(vocab_size=60, n_embd=32, n_layer=2, n_head=4, n_positions=128)), "input_ids"), words(), [both], True
    yield "llama", Logits(t.LlamaForCausalLM(t.LlamaConfig(**text, num_key_value_heads=2)), "input_ids"), words(), [both], True
    yield "t5", Logits(t.T5EncoderModel(t.T5Config(vocab_size=60, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4)), "input_ids", "attention_mask"), words(mask), [both, both], True
    yield "bart", Logits(t.BartModel(t.BartConfig(**shared, max_position_embeddings=128)), "input_ids", "decoder_input_ids"), words(lambda b, n: ints(60, b, n + 2, dtype=np.int64)), [both, {0: "batch", 1: "more"}], True
    yield "vit", Logits(t.ViTModel(t.ViTConfig(**vision)), "pixel_values"), [[floats(b, 3, 64, 64)] for b in (1, 3)], [{0: "batch"}], False
    for name in ("resnet18", "mobilenetv3_small_050", "efficientnet_lite0", "regnetx_002", "densenet121", "inception_v3", "convnext_atto", "squeezenet1_1", "hardcorenas_a", "dla34", "res2net50_14w_8s"):
        try:
            module = timm.create_model(name, num_classes=10)
        except RuntimeError:
            continue
        sizes = PICTURES if name != "inception_v3" else ((1, 96, 96), (2, 128, 99))
        yield name, module, [[floats(b, 3, h, w)] for b, h, w in sizes], [sides], name in ("convnext_atto", "dla34")


def saved(folder, names):
    """Floats: networks of pictures and of words."""
    import torch

    with tempfile.TemporaryDirectory() as made:
        for name, module, axes, calls in torch_networks():
            if not names or any(part in name for part in names):
                path = pathlib.Path(made) / f"{name}.onnx"
                attempt(name, lambda: (export(path, module, calls[1], [axes], True), save_all(folder, f"saved_{name}", path, calls)))
        torch.manual_seed(1)
        for name, module, calls, axes, dynamo in networks():
            if names and not any(part in name for part in names):
                continue
            path = pathlib.Path(made) / f"{name}.onnx"
            attempt(name, lambda: (export(path, module, calls[1], axes, dynamo), save_all(folder, f"saved_{name}", path, calls)))


def codes(folder, names):
    """Networks that ONNX Runtime's quantizers made bytes of, before it saves them."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static

    class Reader(CalibrationDataReader):
        def __init__(self, calls):
            self.calls = iter(calls)

        def get_next(self):
            call = next(self.calls, None)
            return None if call is None else {f"x{index}": value for index, value in enumerate(call)}

    u8, i8 = QuantType.QUInt8, QuantType.QInt8
    ways = {"qdq": dict(quant_format=QuantFormat.QDQ, activation_type=u8, weight_type=i8, per_channel=True), "signed": dict(quant_format=QuantFormat.QDQ, activation_type=i8, weight_type=i8),
            "operators": dict(quant_format=QuantFormat.QOperator, activation_type=u8, weight_type=u8)}
    with tempfile.TemporaryDirectory() as made:
        for name, module, calls, axes, _ in networks():
            if name not in ("resnet18", "mobilenetv3_small_050", "bert", "gpt2", "vit", "squeezenet1_1") or names and not any(part in name for part in names):
                continue
            path = pathlib.Path(made) / f"{name}.onnx"
            attempt(name, lambda: export(path, module, calls[1], axes, False))
            for way, more in ways.items():
                other = pathlib.Path(made) / f"{name}_{way}.onnx"
                attempt(f"{name}_{way}", lambda: (quantize_static(str(path), str(other), Reader(calls), **more), save_all(folder, f"codes_{name}_{way}", other, calls)))
            other = pathlib.Path(made) / f"{name}_dynamic.onnx"
            attempt(f"{name}_dynamic", lambda: (quantize_dynamic(str(path), str(other)), save_all(folder, f"codes_{name}_dynamic", other, calls)))


FAMILIES = {family.__name__: family for family in (saved, codes)}


if __name__ == "__main__":
    main(__doc__, FAMILIES)
