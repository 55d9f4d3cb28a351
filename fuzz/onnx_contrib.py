"""Small sound models of operators that no test of the `onnx` package has: those of `com.microsoft` and `ai.onnx.ml`, and recurrent
layers of many steps. Seeds for `onnx_mutants.py`. Needs: numpy onnx."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

F, H, U8, I8, I32, I64, B = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.UINT8, TensorProto.INT8, TensorProto.INT32,
                             TensorProto.INT64, TensorProto.BOOL)
# Scale and zero point of a tensor of bytes.
Q = [(F, []), (U8, [])]
BYTES, ROWS = (U8, [2, 4]), (F, [2, 3, 8])
# Domain, operator, inputs (type and sizes; None for one that is left out), attributes, outputs.
OPERATORS = [
    ("com.microsoft", "QLinearAdd", [BYTES, *Q, BYTES, *Q, *Q], {}, 1),
    ("com.microsoft", "QLinearMul", [BYTES, *Q, BYTES, *Q, *Q], {}, 1),
    ("com.microsoft", "QLinearSigmoid", [BYTES, *Q, *Q], {}, 1),
    ("com.microsoft", "QLinearLeakyRelu", [BYTES, *Q, *Q], {"alpha": 0.1}, 1),
    ("com.microsoft", "QLinearSoftmax", [BYTES, *Q, *Q], {"axis": -1, "opset": 13}, 1),
    ("com.microsoft", "QLinearWhere", [(B, [2, 4]), BYTES, *Q, BYTES, *Q, *Q], {}, 1),
    ("com.microsoft", "QLinearConcat", [*Q, BYTES, *Q, BYTES, *Q], {"axis": 1}, 1),
    ("com.microsoft", "QLinearGlobalAveragePool", [(U8, [1, 2, 3, 3]), *Q, *Q], {"channels_last": 0}, 1),
    ("com.microsoft", "QLinearAveragePool", [(U8, [1, 4, 4, 2]), *Q, *Q],
     {"channels_last": 1, "kernel_shape": [2, 2], "strides": [1, 1], "pads": [0, 1, 0, 1], "ceil_mode": 1}, 1),
    ("com.microsoft", "QGemm", [(U8, [2, 8]), *Q, (I8, [8, 3]), (F, [3]), (I8, [3]), (I32, [3]), *Q],
     {"alpha": 1.0, "transB": 0}, 1),
    ("com.microsoft", "MatMulIntegerToFloat", [(U8, [2, 8]), (I8, [8, 3]), (F, []), (F, [3]), (U8, []), (I8, [3]), (F, [3])],
     {}, 1),
    ("com.microsoft", "DynamicQuantizeMatMul", [(F, [2, 8]), (I8, [8, 3]), (F, [3]), (I8, [3]), (F, [3])], {}, 1),
    ("com.microsoft", "DynamicQuantizeLSTM", [(F, [5, 1, 4]), (I8, [1, 4, 8]), (I8, [1, 2, 8]), None, None, None, None, None,
     (F, [1, 8]), (I8, [1, 8]), (F, [1, 8]), (I8, [1, 8])], {"hidden_size": 2}, 3),
    ("com.microsoft", "MatMulNBits", [(F, [2, 64]), (U8, [4, 2, 16]), (F, [8]), (U8, [4])],
     {"K": 64, "N": 4, "bits": 4, "block_size": 32}, 1),
    ("com.microsoft", "MatMulNBits", [(F, [2, 40]), (U8, [4, 3, 16]), (F, [12]), (U8, [12])],
     {"K": 40, "N": 4, "bits": 8, "block_size": 16}, 1),
    ("com.microsoft", "GatherBlockQuantized", [(U8, [3, 16]), (I64, [2]), (F, [3, 2]), (U8, [3, 1])],
     {"bits": 4, "block_size": 16, "gather_axis": 0, "quantize_axis": 1}, 1),
    ("com.microsoft", "GatherBlockQuantized", [(U8, [3, 18]), (I64, [2, 2]), (F, [3, 2])], {"bits": 8, "block_size": 16}, 1),
    ("com.microsoft", "QuantizeLinear", [(F, [2, 4]), (F, [4]), (U8, [4])], {"axis": 1}, 1),
    ("com.microsoft", "DequantizeLinear", [BYTES, (F, [4]), (U8, [4])], {"axis": 1}, 1),
    ("com.microsoft", "FusedMatMul", [(F, [2, 3, 4]), (F, [2, 5, 4])], {"alpha": 0.5, "transB": 1, "transBatchA": 0}, 1),
    ("com.microsoft", "FusedGemm", [(F, [2, 4]), (F, [4, 3]), (F, [3])], {"activation": "Relu", "alpha": 1.0}, 1),
    ("com.microsoft", "FusedConv", [(F, [1, 2, 4, 4]), (F, [2, 2, 3, 3]), (F, [2])],
     {"activation": "Clip", "activation_params": [0.0, 6.0], "pads": [1, 1, 1, 1]}, 1),
    ("com.microsoft", "BiasGelu", [ROWS, (F, [8])], {}, 1),
    ("com.microsoft", "QuickGelu", [ROWS], {"alpha": 1.7}, 1),
    ("com.microsoft", "SkipLayerNormalization", [ROWS, ROWS, (F, [8]), (F, [8])], {"epsilon": 1e-5}, 1),
    ("com.microsoft", "SkipSimplifiedLayerNormalization", [ROWS, ROWS, (F, [8])], {"epsilon": 1e-5}, 1),
    ("com.microsoft", "EmbedLayerNormalization", [(I32, [1, 3]), (I32, [1, 3]), (F, [5, 8]), (F, [4, 8]), (F, [2, 8]), (F, [8]),
     (F, [8]), (I32, [1, 3])], {"epsilon": 1e-5}, 2),
    ("com.microsoft", "RotaryEmbedding", [(F, [1, 2, 3, 8]), (I64, [1, 3]), (F, [6, 4]), (F, [6, 4])],
     {"interleaved": 0, "num_heads": 2, "rotary_embedding_dim": 0}, 1),
    ("com.microsoft", "Attention", [ROWS, (F, [8, 24]), (F, [24]), (I32, [2])], {"num_heads": 2, "unidirectional": 1}, 1),
    ("com.microsoft", "QAttention", [(U8, [2, 3, 8]), (I8, [8, 24]), (F, [24]), (F, []), (F, []), None, (U8, []), (I8, [])],
     {"num_heads": 2}, 1),
    ("com.microsoft", "MultiHeadAttention", [ROWS, ROWS, ROWS, (F, [24]), (I32, [2])], {"num_heads": 2, "scale": 0.5}, 1),
    ("com.microsoft", "GroupQueryAttention", [(F, [1, 3, 16]), (F, [1, 3, 8]), (F, [1, 3, 8]), (F, [1, 2, 4, 4]), (F, [1, 2, 4, 4]),
     (I32, [1]), (I32, [])], {"num_heads": 4, "kv_num_heads": 2, "local_window_size": -1, "softcap": 0.0}, 3),
    ("ai.onnx.ml", "ArrayFeatureExtractor", [(F, [2, 4]), (I64, [1, 2])], {}, 1),
    # More steps than are put in one by one.
    ("", "GRU", [(F, [300, 1, 2]), (F, [1, 6, 2]), (F, [1, 6, 2]), (F, [1, 12])], {"hidden_size": 2, "clip": 3.0}, 2),
    ("", "LSTM", [(F, [300, 2, 2]), (F, [2, 8, 2]), (F, [2, 8, 2]), None, (I32, [2])],
     {"hidden_size": 2, "direction": "bidirectional"}, 3),
    ("", "RNN", [(F, [300, 1, 2]), (F, [1, 2, 2]), (F, [1, 2, 2])], {"hidden_size": 2, "activations": ["HardSigmoid"]}, 2),
]
# Inputs that models have as constants: weights, scales, zero points, places.
CONSTANT_FROM = 1


def model(entry, fixed):
    """A model of one node. What is not its first input is a constant where `fixed` says so."""
    domain, operator, inputs, attributes, outputs = entry
    names = ["" if one is None else f"i{place}" for place, one in enumerate(inputs)]
    ports, constants = [], []
    for place, (name, one) in enumerate(zip(names, inputs)):
        if one is None:
            continue
        if fixed and place >= CONSTANT_FROM:
            values = np.resize(np.arange(7) % 3, int(np.prod(one[1], dtype=np.int64))).reshape(one[1])
            constants.append(numpy_helper.from_array(values.astype(helper.tensor_dtype_to_np_dtype(one[0])), name))
        else:
            ports.append(helper.make_tensor_value_info(name, *one))
    made = [f"o{place}" for place in range(outputs)]
    node = helper.make_node(operator, names, made, domain=domain, **attributes)
    # Types of results are for the reader to find.
    results = [helper.make_empty_tensor_value_info(name) for name in made]
    graph = helper.make_graph([node], operator, ports, results, constants)
    versions = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=versions)


def models():
    """Names and models."""
    return [(f"{entry[1]}-{place}-{'fixed' if fixed else 'open'}", model(entry, fixed))
            for place, entry in enumerate(OPERATORS) for fixed in (False, True)]
