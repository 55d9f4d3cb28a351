#!/usr/bin/env python3
"""What rewrites models of others, for `onnx_sizes.py check`: exports by Optimum, ONNX Runtime's optimizers and converters, quantizers.

    onnx_writers_more.py FOLDER [FAMILY...] [--names PART...]

writes FAMILY_NAME.onnx, with calls of several sizes in FAMILY_NAME.npz. Families that need packages which are not installed are left out.
"""
import pathlib
import shutil
import tempfile
import traceback

import numpy as np
from onnx_writers import calls_for, floats, ints, main


def saved(folder, name, source, calls):
    """Copies a model, with its external data, and writes its calls."""
    import onnx

    model = onnx.load(source)
    onnx.save(model, folder / f"{name}.onnx")
    calls_for(folder, name, calls)


def attempt(name, make):
    try:
        make()
    except Exception:  # noqa: BLE001: they fail in many ways.
        print(f"{name}: not made: {' '.join(traceback.format_exc().split())[-240:]}", flush=True)


def by_name(path, sizes, past=None):
    """Calls for a model of Optimum: what an input's name asks for, in each of the sizes (batch, tokens, keys before)."""
    import onnx

    model = onnx.load(path, load_external_data=False)
    calls = []
    for batch, tokens, before in sizes:
        named = {"batch_size": batch, "sequence_length": tokens, "decoder_sequence_length": tokens, "past_sequence_length": before, "past_decoder_sequence_length": before}
        named |= {"past_sequence_length + sequence_length": before + tokens, "past_sequence_length + 1": before + 1, "encoder_sequence_length": 9, "encoder_sequence_length_out": 9}
        named |= {"text_batch_size": batch, "image_batch_size": batch, "num_channels": 3, "height": 32, "width": 32, "point_batch_size": batch, "nb_points_per_image": 2}
        named |= {"audio_batch_size": batch, "feature_size": 80, "encoder_sequence_length / 2": 50} | (past or {})
        call = []
        for value in model.graph.input:
            tensor = value.type.tensor_type
            dims = [d.dim_value if d.HasField("dim_value") else named[d.dim_param] for d in tensor.shape.dim]
            kind = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
            if value.name == "use_cache_branch":
                call.append(np.array([before > 0]))
            elif "mask" in value.name:
                call.append(np.ones(dims, kind))
            elif value.name == "position_ids":
                call.append(np.tile(np.arange(before, before + tokens), (batch, 1)))
            elif kind.kind == "f":
                call.append(floats(*dims))
            else:
                call.append(ints(2 if "type" in value.name or "label" in value.name else 50, *dims, dtype=kind))
        calls.append(call)
    return calls


TEXT = dict(vocab_size=60, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, max_position_embeddings=128)
SHARED = dict(vocab_size=60, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, max_position_embeddings=128)
KEYS = ((1, 6, 0), (1, 1, 6), (2, 1, 9), (3, 5, 0))
WORDS = ((1, 8, 0), (3, 12, 0), (2, 33, 0))


def networks(t):
    """Name: the network, Optimum's task, sizes, and further sizes by name."""
    ids = dict(bos_token_id=1, eos_token_id=2, pad_token_id=0)
    vision = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, image_size=32, patch_size=8)
    yield "bert", t.BertForSequenceClassification(t.BertConfig(**TEXT)), "text-classification", WORDS
    yield "distilbert", t.DistilBertForQuestionAnswering(t.DistilBertConfig(vocab_size=60, dim=32, n_layers=2, n_heads=4, hidden_dim=48)), "question-answering", WORDS
    yield "gpt2", t.GPT2LMHeadModel(t.GPT2Config(vocab_size=60, n_embd=32, n_layer=2, n_head=4, n_positions=128, **ids)), "text-generation-with-past", KEYS
    yield "llama", t.LlamaForCausalLM(t.LlamaConfig(**TEXT, num_key_value_heads=2, **ids)), "text-generation-with-past", KEYS
    yield "qwen3", t.Qwen3ForCausalLM(t.Qwen3Config(**TEXT, num_key_value_heads=2, head_dim=8, **ids)), "text-generation-with-past", KEYS
    yield "gemma2", t.Gemma2ForCausalLM(t.Gemma2Config(**TEXT, num_key_value_heads=2, head_dim=8, **ids)), "text-generation-with-past", KEYS
    yield "bart", t.BartForConditionalGeneration(t.BartConfig(**SHARED, **ids, decoder_start_token_id=2)), "text2text-generation-with-past", KEYS
    yield "t5", t.T5ForConditionalGeneration(t.T5Config(vocab_size=60, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, pad_token_id=0, eos_token_id=2, decoder_start_token_id=0)), "text2text-generation-with-past", KEYS
    whisper = t.WhisperConfig(**{**SHARED, "max_position_embeddings": 64}, num_mel_bins=80, max_source_positions=50, max_target_positions=64, **ids, decoder_start_token_id=1, suppress_tokens=[], begin_suppress_tokens=[])
    yield "whisper", t.WhisperForConditionalGeneration(whisper), "automatic-speech-recognition-with-past", KEYS
    yield "vit", t.ViTForImageClassification(t.ViTConfig(**vision)), "image-classification", WORDS
    yield "clip", t.CLIPModel(t.CLIPConfig(text_config={**TEXT, "projection_dim": 16, **ids}, vision_config={**vision, "projection_dim": 16}, projection_dim=16)), "zero-shot-image-classification", WORDS
    yield "deberta", t.DebertaV2ForTokenClassification(t.DebertaV2Config(**TEXT, relative_attention=True, pos_att_type=["c2p", "p2c"], position_buckets=8)), "token-classification", WORDS


def optimum(folder, names):
    import torch
    import transformers as t
    from optimum.exporters.onnx import main_export
    from optimum.onnxruntime import AutoOptimizationConfig, AutoQuantizationConfig, ORTOptimizer, ORTQuantizer

    for name, network, task, sizes in networks(t):
        if names and not any(part in name for part in names):
            continue
        torch.manual_seed(0)

        def make():
            with tempfile.TemporaryDirectory() as made:
                made = pathlib.Path(made)
                network.eval().save_pretrained(made / "network")
                main_export(str(made / "network"), made / "onnx", task=task, do_validation=False, no_post_process=False, library_name="transformers")
                for path in sorted((made / "onnx").glob("*.onnx")):
                    part = path.stem.removesuffix("_model").removeprefix("model")
                    if part in ("decoder", "decoder_with_past"):
                        continue
                    full = f"optimum_{name}" + (f"_{part}" if part else "")
                    attempt(full, lambda: saved(folder, full, path, by_name(path, sizes)))
                if name not in ("bert", "gpt2", "vit", "llama", "deberta", "clip", "distilbert"):
                    return
                (made / "onnx" / "config.json").exists() or network.config.save_pretrained(made / "onnx")
                for level in ("O1", "O2", "O3", "O4"):
                    way = f"optimum_{name}_{level}"
                    attempt(way, lambda: optimized(way, made, level))
                for kind in ("avx512_vnni", "arm64"):
                    way = f"optimum_{name}_{kind}"
                    attempt(way, lambda: quantized(way, made, kind))

        def optimized(way, made, level):
            config = getattr(AutoOptimizationConfig, level)(for_gpu=level == "O4", disable_shape_inference=True)
            ORTOptimizer.from_pretrained(made / "onnx").optimize(save_dir=made / level, optimization_config=config)
            path = next((made / level).glob("*.onnx"))
            saved(folder, way, path, by_name(path, sizes))

        def quantized(way, made, kind):
            config = getattr(AutoQuantizationConfig, kind)(is_static=False, per_channel=kind == "arm64")
            ORTQuantizer.from_pretrained(made / "onnx", file_name="model.onnx").quantize(save_dir=made / kind, quantization_config=config)
            path = next((made / kind).glob("*.onnx"))
            saved(folder, way, path, by_name(path, sizes))

        attempt(name, make)


def torch_networks():
    """Name: a module, an example, open axes, calls, for what rewrites exports."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    F = nn.functional

    class Pictures(nn.Module):
        """Inverted blocks with gates, a pyramid, heads."""

        def __init__(self):
            super().__init__()
            self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.SiLU())
            self.deep = nn.Sequential(nn.Conv2d(16, 32, 1), nn.ReLU6(), nn.Conv2d(32, 32, 3, 2, 1, groups=32), nn.Hardswish())
            self.gate, self.side, self.out = nn.Sequential(nn.Conv2d(32, 8, 1), nn.ReLU(), nn.Conv2d(8, 32, 1), nn.Hardsigmoid()), nn.Conv2d(16, 32, 1), nn.Conv2d(32, 8, 3, padding=1)

        def forward(self, x):
            first = self.stem(x)
            second = self.deep(first)
            second = second * self.gate(second.mean((2, 3), keepdim=True))
            level = F.interpolate(second, size=first.shape[2:], mode="nearest") + self.side(first)
            return torch.sigmoid(self.out(level)), self.out(second).flatten(2).softmax(-1)

    class Words(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.places, self.norm = nn.Embedding(60, 64), nn.Embedding(128, 64), nn.LayerNorm(64)
            self.layers = nn.ModuleList([nn.ModuleList([nn.Linear(64, 192), nn.Linear(64, 64), nn.Linear(64, 128), nn.Linear(128, 64), nn.LayerNorm(64)]) for _ in range(2)])
            self.out = nn.Linear(64, 60)

        def forward(self, ids):
            x = self.table(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
            for qkv, out, up, down, norm in self.layers:
                q, k, v = qkv(norm(x)).unflatten(-1, (3, 4, 16)).permute(2, 0, 3, 1, 4).unbind(0)
                x = x + out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
                x = x + down(F.gelu(up(self.norm(x))))
            return self.out(x)

    class Waves(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Conv1d(4, 16, 5, 2, 2), nn.Conv1d(16, 16, 3, padding=2, dilation=2, groups=4)
            self.lstm, self.up = nn.LSTM(16, 12, batch_first=True, bidirectional=True), nn.ConvTranspose1d(24, 4, 4, 2, 1)

        def forward(self, x):
            y = F.elu(self.second(F.leaky_relu(self.first(x))))
            y, _ = self.lstm(F.instance_norm(y).transpose(1, 2))
            return self.up(y.transpose(1, 2)), F.glu(y, -1)

    pictures = [[floats(b, 3, h, w)] for b, h, w in ((1, 32, 48), (2, 64, 40), (1, 70, 94))]
    words = [[ints(60, b, n, dtype=np.int64)] for b, n in ((1, 8), (3, 12), (2, 33))]
    waves = [[floats(b, 4, n)] for b, n in ((1, 64), (3, 100), (2, 33))]
    yield "pictures", Pictures().eval(), {0: "batch", 2: "height", 3: "width"}, pictures
    yield "words", Words().eval(), {0: "batch", 1: "length"}, words
    yield "waves", Waves().eval(), {0: "batch", 2: "length"}, waves


def exported(folder, dynamo=True, **more):
    """Name, path, axes, calls of each of these as PyTorch's exporter writes it."""
    import torch

    for name, module, axes, calls in torch_networks():
        example = (torch.from_numpy(calls[1][0]),)
        path = folder / f"{name}.onnx"
        try:
            with torch.no_grad():
                if dynamo:
                    torch.onnx.export(module, example, dynamo=True, input_names=["x"], dynamic_shapes=({axis: torch.export.Dim.DYNAMIC for axis in axes},), verbose=False, **more).save(str(path))
                else:
                    torch.onnx.export(module, example, str(path), dynamo=False, input_names=["x"], dynamic_axes={"x": axes}, **more)
        except Exception as error:  # noqa: BLE001
            print(f"{name}: not exported: {str(error)[:160]}")
            continue
        yield name, path, calls


def rewritten(folder, names, family, ways, **more):
    """Has each way (a function of source, target, calls) write what it makes of each network."""
    with tempfile.TemporaryDirectory() as made:
        made = pathlib.Path(made)
        for name, path, calls in exported(made, **more):
            for way, write in ways.items():
                full = f"{family}_{name}_{way}"
                if names and not any(part in full for part in names):
                    continue

                def make():
                    write(path, folder / f"{full}.onnx", calls)
                    calls_for(folder, full, calls)

                attempt(full, make)


def plain(folder, names):
    """What the exporter writes without its optimizer, by opset, with external data in a file for each tensor; and what simplifiers make of it."""
    import onnx
    import onnx.version_converter
    import onnxsim
    import onnxslim

    def many_files(source, target, _):
        model = onnx.load(source)
        onnx.save(model, target, save_as_external_data=True, all_tensors_to_one_file=False, size_threshold=64)

    def simplified(source, target, _):
        onnx.save(onnxsim.simplify(onnx.load(source))[0], target)

    def slim(source, target, _):
        onnx.save(onnxslim.slim(onnx.load(source)), target)

    def turned(version):
        """By onnx's own converter of versions."""
        return lambda source, target, _: onnx.save(onnx.version_converter.convert_version(onnx.load(source), version), target)

    copy = lambda source, target, _: onnx.save(onnx.load(source), target)
    rewritten(folder, names, "plain", {"raw": copy, "files": many_files, "sim": simplified, "slim": slim}, optimize=False)
    rewritten(folder, names, "plain", {f"down{version}": turned(version) for version in (7, 8, 10)}, opset_version=9, dynamo=False)
    rewritten(folder, names, "plain", {f"up{version}": turned(version) for version in (13, 22, 25)}, opset_version=11, dynamo=False)
    for opset in (21, 23, 24, 25):
        rewritten(folder, names, "plain", {f"opset{opset}": copy}, opset_version=opset, optimize=opset > 21)
    for opset in (9, 11, 13, 20):
        rewritten(folder, names, "plain", {f"script{opset}": copy}, opset_version=opset, dynamo=False)


def halves(folder, names):
    """Converters of numbers: halves by three programs, with and without operators that stay."""
    import onnx
    from onnxconverter_common import float16
    from onnxruntime.transformers import float16 as ort
    from onnxruntime.transformers.onnx_model import OnnxModel

    def common(source, target, _, **more):
        onnx.save(float16.convert_float_to_float16(onnx.load(source), **more), target)

    def runtime(source, target, _, **more):
        onnx.save(ort.convert_float_to_float16(onnx.load(source), **more), target)

    def mixed(source, target, _):
        model = OnnxModel(onnx.load(source))
        model.convert_float_to_float16(keep_io_types=True, op_block_list=["Softmax", "LayerNormalization", "Resize"], use_bfloat16_as_blocked_nodes_dtype=False)
        model.save_model_to_file(str(target))

    ways = {"half": common, "half_io": lambda *a: common(*a, keep_io_types=True), "ort_half": runtime, "ort_half_io": lambda *a: runtime(*a, keep_io_types=True), "mixed": mixed}
    rewritten(folder, names, "halves", ways, dynamo=False, opset_version=17)


def fused(folder, names):
    """ONNX Runtime's optimizer for transformers over exports, then halves or codes."""
    from onnxruntime.transformers.optimizer import optimize_model

    def fuse(source, target, _, kind="bert", half=False, **more):
        model = optimize_model(str(source), kind, num_heads=4, hidden_size=64, **more)
        if half:
            model.convert_float_to_float16(keep_io_types=True)
        model.save_model_to_file(str(target))

    ways = {"bert": fuse, "gpt2": lambda *a: fuse(*a, kind="gpt2"), "gpt2_half": lambda *a: fuse(*a, kind="gpt2", half=True), "level2": lambda *a: fuse(*a, opt_level=2), "level99": lambda *a: fuse(*a, opt_level=99)}
    rewritten(folder, names, "fused", ways)
    rewritten(folder, names, "fusedscript", ways, dynamo=False, opset_version=17)


def nbits(folder, names):
    """Weights of 4 and 8 bits in blocks, as operators and as `DequantizeLinear`."""
    import onnx
    from onnxruntime.quantization import QuantFormat
    from onnxruntime.quantization.matmul_nbits_quantizer import DefaultWeightOnlyQuantConfig, HQQWeightOnlyQuantConfig, MatMulNBitsQuantizer

    def quantize(source, target, _, config):
        maker = MatMulNBitsQuantizer(onnx.load(source), algo_config=config)
        maker.process()
        maker.model.save_model_to_file(str(target))

    def default(**more):
        return lambda *a: quantize(*a, DefaultWeightOnlyQuantConfig(block_size=32, **more))

    ways = {"q4": default(is_symmetric=False), "q4_qdq": default(is_symmetric=True, quant_format=QuantFormat.QDQ), "q4_qdq_zeros": default(is_symmetric=False, quant_format=QuantFormat.QDQ)}
    ways |= {"q8": default(is_symmetric=True, bits=8), "q2": default(is_symmetric=False, bits=2), "gathers": default(is_symmetric=True, op_types_to_quantize=("MatMul", "Gather"), quant_axes=(("MatMul", 0), ("Gather", 1)))}
    ways["hqq"] = lambda *a: quantize(*a, HQQWeightOnlyQuantConfig(block_size=32))
    rewritten(folder, names, "nbits", ways, opset_version=21)


def static(folder, names):
    """ONNX Runtime's static quantizer: bytes, 16 bits, floats of 8 bits, by row and by channel."""
    from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType, quantize_dynamic, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Reader(CalibrationDataReader):
        def __init__(self, calls):
            self.calls = iter([{"x": call[0]} for call in calls])

        def get_next(self):
            return next(self.calls, None)

    def way(**more):
        def write(source, target, calls):
            with tempfile.TemporaryDirectory() as made:
                quant_pre_process(str(source), f"{made}/model.onnx", skip_symbolic_shape=True)
                quantize_static(f"{made}/model.onnx", str(target), Reader(calls), **more)

        return write

    def dynamic(source, target, _):
        quantize_dynamic(str(source), str(target), per_channel=True, reduce_range=True)

    qdq = dict(quant_format=QuantFormat.QDQ)
    i8, u8, i16, f8 = QuantType.QInt8, QuantType.QUInt8, QuantType.QInt16, QuantType.QFLOAT8E4M3FN
    ways = {"channels": way(**qdq, per_channel=True, activation_type=i8, weight_type=i8), "bytes": way(**qdq, activation_type=u8, weight_type=u8, extra_options={"ForceQuantizeNoInputCheck": True})}
    ways |= {"wide": way(**qdq, activation_type=i16, weight_type=i8, extra_options={"UseQDQContribOps": True}), "operators": way(quant_format=QuantFormat.QOperator, activation_type=i8, weight_type=i8), "dynamic": dynamic}
    ways |= {"float8": way(**qdq, activation_type=f8, weight_type=f8, calibrate_method=CalibrationMethod.Distribution), "pairs": way(**qdq, activation_type=u8, weight_type=i8, extra_options={"DedicatedQDQPair": True, "ActivationSymmetric": True, "AddQDQPairToWeight": True})}
    rewritten(folder, names, "static", ways, dynamo=False, opset_version=17)


def nncf(folder, names):
    import nncf as n
    import onnx

    data = lambda calls: n.Dataset([{"x": call[0]} for call in calls])
    quantized = lambda source, target, calls, **more: onnx.save(n.quantize(onnx.load(source), data(calls), subset_size=3, **more), target)
    packed = lambda source, target, calls, mode: onnx.save(n.compress_weights(onnx.load(source), mode=getattr(n.CompressWeightsMode, mode), **({"group_size": 32, "ratio": 1.0} if mode.startswith("INT4") else {})), target)
    ways = {"mixed": lambda *a: quantized(*a, preset=n.QuantizationPreset.MIXED), "transformer": lambda *a: quantized(*a, model_type=n.ModelType.TRANSFORMER)}
    ways |= {f"{mode.lower()}": lambda *a, mode=mode: packed(*a, mode) for mode in ("INT8_SYM", "INT8_ASYM", "INT4_SYM", "INT4_ASYM")}
    rewritten(folder, names, "nncf", ways, opset_version=21)


def brevitas(folder, names):
    import brevitas.nn as q
    import torch
    from brevitas.export import export_onnx_qcdq
    from brevitas.quant import Int8ActPerTensorFloat, Int8WeightPerChannelFloat, Uint8ActPerTensorFloat
    from torch import nn

    def network(bits):
        act = dict(input_quant=Int8ActPerTensorFloat, weight_quant=Int8WeightPerChannelFloat, weight_bit_width=bits)
        return nn.Sequential(q.QuantConv2d(3, 8, 3, stride=2, padding=1, **act), nn.BatchNorm2d(8), q.QuantReLU(act_quant=Uint8ActPerTensorFloat), q.QuantConv2d(8, 8, 3, padding=1, groups=8, **act), q.QuantReLU(bit_width=bits), nn.AdaptiveAvgPool2d(1), nn.Flatten(), q.QuantLinear(8, 5, bias=True, **act))

    for bits in (8, 4, 3):
        torch.manual_seed(0)
        model, calls = network(bits), [[floats(b, 3, h, w)] for b, h, w in ((1, 32, 48), (2, 64, 40), (1, 70, 94))]
        for call in calls:
            model(torch.from_numpy(call[0]))

        def make():
            name = f"brevitas_{bits}"
            export_onnx_qcdq(model.eval(), args=torch.from_numpy(calls[1][0]), export_path=str(folder / f"{name}.onnx"), input_names=["x"], dynamic_axes={"x": {0: "b", 2: "h", 3: "w"}}, opset_version=17, dynamo=False)
            calls_for(folder, name, calls)

        attempt(f"brevitas_{bits}", make)


FAMILIES = {family.__name__: family for family in (optimum, plain, halves, fused, nbits, static, nncf, brevitas)}


if __name__ == "__main__":
    main(__doc__, FAMILIES)
