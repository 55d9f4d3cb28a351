#!/usr/bin/env python3
"""Networks that further tools quantize or rewrite, and networks of libraries for pictures and volumes, for `onnx_sizes.py check`.

    onnx_writers_tools.py FOLDER [FAMILY...] [--names PART...]

writes FAMILY_NAME.onnx, with calls of several sizes in FAMILY_NAME.npz. Families: neural (Neural Compressor for ONNX), modelopt (NVIDIA Model Optimizer),
olive (passes of Olive), runtime (ONNX Runtime's quantizers in further forms), converters (mixed precision, optimizers of graphs, functions), segmentation
(segmentation_models_pytorch), volumes (MONAI). Families that need packages which are not installed are left out.
"""
import numpy as np
from onnx_writers import calls_for, floats, main
from onnx_writers_more import attempt, rewritten


class Reader:
    """Calls for calibration."""

    def __init__(self, calls):
        self.all = [{"x": call[0]} for call in calls]
        self.rewind()

    def get_next(self):
        return next(self.left, None)

    def rewind(self):
        self.left = iter(self.all)


def neural(folder, names):
    import onnx
    from onnx_neural_compressor import data_reader
    from onnx_neural_compressor.quantization import QuantFormat, QuantType, algorithm_entry as entry, config as c

    class Own(Reader, data_reader.CalibrationDataReader):
        pass

    def weights(make, kind, **more):
        def write(source, target, calls):
            # They stack what they see of all calls.
            given = [Own(calls[1:2])] if make is not entry.rtn_quantize_entry else []
            made = make(str(source), kind(weight_bits=4, weight_group_size=32, **more), *given)
            onnx.save(made, target)

        return write

    def codes(make, kind, **more):
        def write(source, target, calls):
            made = make(str(source), kind(calibration_data_reader=Own(calls[1:2]), **more), Own(calls[1:2]), str(target))
            if not target.exists():
                onnx.save(made, target)

        return write

    u8, i8 = QuantType.QUInt8, QuantType.QInt8
    ways = {"rtn": weights(entry.rtn_quantize_entry, c.RTNConfig), "rtn_sym": weights(entry.rtn_quantize_entry, c.RTNConfig, weight_sym=True), "gptq": weights(entry.gptq_quantize_entry, c.GPTQConfig)}
    ways |= {"awq": weights(entry.awq_quantize_entry, c.AWQConfig), "smooth": codes(entry.smooth_quant_entry, c.SmoothQuantConfig), "qdq": codes(entry.static_quantize_entry, c.StaticQuantConfig, quant_format=QuantFormat.QDQ, activation_type=u8, weight_type=i8, per_channel=True)}
    ways |= {"operators": codes(entry.static_quantize_entry, c.StaticQuantConfig, quant_format=QuantFormat.QOperator, activation_type=u8, weight_type=i8)}
    rewritten(folder, names, "neural", ways, opset_version=17, dynamo=False)


def modelopt(folder, names):
    from modelopt.onnx.quantization import quantize
    from modelopt.onnx.quantization.int4 import quantize as packed
    import onnx

    def codes(mode, **more):
        def write(source, target, calls):
            data = {"x": calls[1][0]}
            shapes = "x:" + "x".join(str(size) for size in calls[1][0].shape)
            quantize(str(source), quantize_mode=mode, calibration_data=data, calibration_shapes=shapes, calibration_eps=["cpu"], output_path=str(target), high_precision_dtype="fp32", **more)

        return write

    def rows(method):
        return lambda source, target, calls: onnx.save(packed(str(source), method, None, block_size=32), target)

    ways = {"int8": codes("int8", calibration_method="max"), "int8_entropy": codes("int8", calibration_method="entropy"), "fp8": codes("fp8", calibration_method="max"), "rtn": rows("rtn_dq")}
    rewritten(folder, names, "modelopt", ways, opset_version=19, dynamo=False)


def olive(folder, names):
    import shutil
    import tempfile

    from olive.model import ONNXModelHandler
    from olive.passes.olive_pass import create_pass_from_dict
    from olive.passes.onnx import bnb_quantization as bnb, float16_conversion as half, hqq_quantization as hqq, kquant_quantization as k, mixed_precision, mnb_to_qdq, onnxscript_fusion, peephole_optimizer, rtn_quantization as rtn

    def passes(*all_of):
        def write(source, target, _):
            with tempfile.TemporaryDirectory() as made:
                model = ONNXModelHandler(str(source))
                for index, (kind, config) in enumerate(all_of):
                    model = create_pass_from_dict(kind, config, disable_search=True).run(model, f"{made}/{index}")
                import onnx

                onnx.save(onnx.load(model.model_path), target)
                shutil.rmtree(made, ignore_errors=True)

        return write

    blocks = lambda kind, **more: (kind, {"block_size": 32, **more})
    ways = {"rtn4": passes(blocks(rtn.OnnxBlockWiseRtnQuantization)), "rtn8": passes(blocks(rtn.OnnxBlockWiseRtnQuantization, bits=8, is_symmetric=False)), "hqq": passes(blocks(hqq.OnnxHqqQuantization)), "kquant": passes((k.OnnxKQuantQuantization, {}))}
    ways |= {"qdq": passes(blocks(rtn.OnnxBlockWiseRtnQuantization), (mnb_to_qdq.MatMulNBitsToQDQ, {})), "bnb": passes((bnb.OnnxBnb4Quantization, {"precision": "nf4"})), "half": passes((half.OnnxFloatToFloat16, {}))}
    ways |= {"mixed": passes((mixed_precision.OrtMixedPrecision, {})), "fusion": passes((onnxscript_fusion.OnnxScriptFusion, {})), "peephole": passes((peephole_optimizer.OnnxPeepholeOptimizer, {}))}
    rewritten(folder, names, "olive", ways, opset_version=21)


def runtime(folder, names):
    from onnxruntime.quantization import CalibrationMethod, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.matmul_bnb4_quantizer import MatMulBnb4Quantizer
    from onnxruntime.quantization.matmul_nbits_quantizer import KQuantWeightOnlyQuantConfig, MatMulNBitsQuantizer
    import onnx

    def codes(**more):
        return lambda source, target, calls: quantize_static(str(source), str(target), Reader(calls[1:2] if "calibrate_method" in more else calls), **more)

    def bnb(kind):
        def write(source, target, _):
            maker = MatMulBnb4Quantizer(onnx.load(source), kind, 64)
            maker.process()
            onnx.save(maker.model.model, target)

        return write

    def kquant(source, target, _):
        maker = MatMulNBitsQuantizer(onnx.load(source), algo_config=KQuantWeightOnlyQuantConfig())
        maker.process()
        onnx.save(maker.model.model, target)

    i4, u4, i8, u8, u16 = QuantType.QInt4, QuantType.QUInt4, QuantType.QInt8, QuantType.QUInt8, QuantType.QUInt16
    qdq = dict(quant_format=QuantFormat.QDQ)
    ways = {"int4": codes(**qdq, activation_type=u8, weight_type=i4), "uint4": codes(**qdq, activation_type=u16, weight_type=u4, per_channel=True), "unsigned": codes(**qdq, activation_type=u16, weight_type=u8, extra_options={"UseQDQContribOps": True})}
    ways |= {"percentile": codes(**qdq, activation_type=i8, weight_type=i8, calibrate_method=CalibrationMethod.Percentile, extra_options={"ActivationSymmetric": True, "WeightSymmetric": False}), "outputs": codes(**qdq, activation_type=u8, weight_type=i8, extra_options={"OpTypesToExcludeOutputQuantization": ["Conv", "MatMul"], "QuantizeBias": False})}
    ways |= {"oper_channels": codes(quant_format=QuantFormat.QOperator, activation_type=u8, weight_type=i8, per_channel=True), "bnb_fp4": bnb(0), "bnb_nf4": bnb(1), "kquant": kquant}
    rewritten(folder, names, "runtime", ways, dynamo=False, opset_version=21)


def converters(folder, names):
    import onnx
    import onnx_graphsurgeon as gs
    import onnxoptimizer
    from onnxconverter_common import auto_mixed_precision

    def mixed(source, target, calls):
        onnx.save(auto_mixed_precision.auto_convert_mixed_precision(onnx.load(source), {"x": calls[1][0]}, rtol=0.01, atol=0.001, keep_io_types=True), target)

    def surgeon(source, target, _):
        graph = gs.import_onnx(onnx.load(source))
        onnx.save(gs.export_onnx(graph.fold_constants().cleanup().toposort()), target)

    def optimizer(source, target, _):
        onnx.save(onnxoptimizer.optimize(onnx.load(source), onnxoptimizer.get_fuse_and_elimination_passes(), fixed_point=True), target)

    def functions(source, target, _):
        """Each node of some kinds as a call of a function of the model, two deep."""
        model, made = onnx.load(source), {}
        for node in model.graph.node:
            if node.op_type not in ("Conv", "MatMul", "Softmax", "Sigmoid", "Gelu") or node.domain:
                continue
            inner = onnx.helper.make_node(node.op_type, [f"i{i}" for i in range(len(node.input))], ["o"])
            for attribute in node.attribute:
                own = onnx.AttributeProto(name=attribute.name, ref_attr_name=attribute.name, type=attribute.type)
                inner.attribute.append(own)
            name = f"{node.op_type}_{len(node.input)}_{'_'.join(sorted(a.name for a in node.attribute))}"
            kinds = [a.name for a in node.attribute]
            made[name] = onnx.helper.make_function("own.functions", name, list(inner.input), ["o"], [inner], [onnx.helper.make_opsetid("", model.opset_import[0].version)], kinds)
            node.op_type, node.domain = name, "own.functions"
        model.functions.extend(made.values())
        model.opset_import.append(onnx.helper.make_opsetid("own.functions", 1))
        model.ir_version = max(model.ir_version, 8)
        onnx.save(model, target)

    ways = {"mixed": mixed, "surgeon": surgeon, "optimizer": optimizer, "functions": functions}
    rewritten(folder, names, "converters", ways, dynamo=False, opset_version=17)
    rewritten(folder, names, "converters", {"functions_new": functions}, opset_version=22)


def exported(folder, names, family, networks):
    import torch

    for name, make, calls, axes in networks:
        full = f"{family}_{name}"
        if names and not any(part in full for part in names):
            continue

        def write():
            torch.manual_seed(0)
            path = folder / f"{full}.onnx"
            with torch.no_grad():
                torch.onnx.export(make().eval(), (torch.from_numpy(calls[0][0]),), str(path), dynamo=False, opset_version=17, input_names=["x"], output_names=["y"], dynamic_axes={"x": axes})
            calls_for(folder, full, calls)

        attempt(full, write)


def segmentation(folder, names):
    import segmentation_models_pytorch as smp

    pictures = [[floats(b, 3, h, w)] for b, h, w in ((1, 64, 96), (2, 96, 64), (1, 128, 160))]
    make = lambda kind, encoder: lambda: getattr(smp, kind)(encoder, encoder_weights=None, classes=4)
    kinds = (("UnetPlusPlus", "resnet18"), ("MAnet", "resnet18"), ("Linknet", "mobilenet_v2"), ("FPN", "resnet18"), ("PAN", "resnet18"), ("DeepLabV3Plus", "mobilenet_v2"), ("UPerNet", "resnet18"), ("Segformer", "mit_b0"))
    exported(folder, names, "segmentation", [(kind.lower(), make(kind, encoder), pictures, {0: "b", 2: "h", 3: "w"}) for kind, encoder in kinds])


def volumes(folder, names):
    from monai.networks import nets as n

    room = [[floats(b, 1, d, h, w)] for b, d, h, w in ((1, 32, 32, 32), (2, 32, 64, 32), (1, 64, 32, 64))]
    fixed = [[floats(b, 1, 32, 32, 32)] for b in (1, 2)]
    open_ = {0: "b", 2: "d", 3: "h", 4: "w"}
    steps = dict(channels=(8, 16, 32), strides=(2, 2), num_res_units=1)
    yield_ = [("unet", lambda: n.UNet(3, 1, 2, **steps), room, open_), ("segresnet", lambda: n.SegResNet(3, 8, 1, 2, blocks_down=(1, 2, 2), blocks_up=(1, 1)), room, open_), ("vnet", lambda: n.VNet(3, 1, 2), fixed, {0: "b"})]
    yield_ += [("attention", lambda: n.AttentionUnet(3, 1, 2, (8, 16, 32), (2, 2)), room, open_), ("dynunet", lambda: n.DynUNet(3, 1, 2, [3, 3, 3], [1, 2, 2], [2, 2], filters=[8, 16, 32]), room, open_), ("densenet", lambda: n.DenseNet(3, 1, 3, 8, 4, (2, 2, 2)), room, open_)]
    yield_ += [("unetr", lambda: n.UNETR(1, 2, (32, 32, 32), 8, 32, 64, 4), fixed, {0: "b"}), ("swinunetr", lambda: n.SwinUNETR(1, 2, feature_size=12, depths=(1, 1, 1, 1), num_heads=(1, 2, 4, 8)), fixed, {0: "b"}), ("highres", lambda: n.HighResNet(3, 1, 2), fixed, {0: "b"})]
    exported(folder, names, "volumes", yield_)


FAMILIES = {family.__name__: family for family in (neural, modelopt, olive, runtime, converters, segmentation, volumes)}


if __name__ == "__main__":
    main(__doc__, FAMILIES)
