//! How many inputs operators take: a node with more of them asks for something that its operator does not do.

use std::{collections::HashMap, sync::OnceLock};

use super::blocked;

/// The inputs of operators that take any number of them.
const MANY: usize = usize::MAX;

/// Operators of ONNX's own domain by how many inputs their newest version takes at most.
const ONNX: &[(usize, &str)] = &[
    (0, "Constant RandomNormal RandomUniform SequenceEmpty"),
    (
        1,
        "Abs Acos Acosh ArgMax ArgMin Asin Asinh Atan Atanh AveragePool Bernoulli BitCast BitwiseNot \
         BlackmanWindow Cast Ceil Celu ConcatFromSequence ConstantOfShape Cos Cosh DepthToSpace Det \
         DynamicQuantizeLinear Elu Erf Exp EyeLike Flatten Floor Gelu GlobalAveragePool GlobalLpPool \
         GlobalMaxPool HammingWindow HannWindow HardSigmoid HardSwish Hardmax Identity If IsInf IsNaN LRN \
         LeakyRelu Log LogSoftmax LpNormalization LpPool MaxPool MeanVarianceNormalization Mish Multinomial \
         Neg NonZero Not Optional OptionalGetElement OptionalHasElement RandomNormalLike RandomUniformLike \
         Reciprocal Relu Round Selu SequenceLength Shape Shrink Sigmoid Sign Sin Sinh Size Softmax Softplus \
         Softsign SpaceToDepth Sqrt Swish Tan Tanh ThresholdedRelu Transpose Unique",
    ),
    (
        2,
        "Add AffineGrid And BitShift BitwiseAnd BitwiseOr BitwiseXor CastLike CenterCropPad Compress CumProd \
         CumSum Div Equal Expand Gather GatherElements GatherND Greater GreaterOrEqual GridSample Less \
         LessOrEqual MatMul Mod Mul Or PRelu Pow RMSNormalization ReduceL1 ReduceL2 ReduceLogSum \
         ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Reshape \
         ReverseSequence SequenceAt SequenceErase SimplifiedLayerNormalization Split SplitToSequence Squeeze \
         Sub Tile TopK Trilu Unsqueeze Upsample Xor",
    ),
    (
        3,
        "Clip Col2Im Conv ConvTranspose DFT DequantizeLinear Dropout Gemm GroupNormalization \
         InstanceNormalization LayerNormalization MaxUnpool NegativeLogLikelihoodLoss OneHot QuantizeLinear \
         Range RoiAlign Scatter ScatterElements ScatterND SequenceInsert SoftmaxCrossEntropyLoss \
         TensorScatter Where",
    ),
    (4, "CausalConvWithState ConvInteger MatMulInteger Pad Resize RotaryEmbedding STFT"),
    (5, "BatchNormalization DeformConv MelWeightMatrix NonMaxSuppression Slice"),
    (6, "GRU LinearAttention RNN"),
    (7, "Attention"),
    (8, "LSTM QLinearMatMul"),
    (9, "QLinearConv"),
    (MANY, "Concat Einsum Loop Max Mean Min Scan SequenceConstruct SequenceMap Sum"),
];

/// Operators that took fewer or more inputs once: below this version so many.
const BEFORE: &[(i64, usize, &str)] = &[
    (9, 1, "Upsample"),
    (10, 1, "Slice TopK"),
    (11, 1, "Clip Pad"),
    (11, 2, "Resize"),
    (12, 1, "Dropout"),
    (13, 1, "ReduceSum Split Squeeze Unsqueeze"),
    (
        18,
        1,
        "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSumSquare",
    ),
    (18, 3, "Pad"),
    (20, 2, "DFT"),
    (24, 6, "Attention"),
];

/// The same of `com.microsoft`.
const MICROSOFT: &[(usize, &str)] = &[
    (1, "Gelu NhwcMaxPool QuickGelu"),
    (
        2,
        "BiasGelu BiasSplitGelu CDist ExpandDims FastGelu FusedMatMul GatherND GridSample TransposeMatMul Trilu",
    ),
    (3, "BiasAdd DequantizeLinear FusedGemm GroupNorm MatMulBnb4 NhwcConv Pad QuantizeLinear Range"),
    (
        4,
        "ConvTransposeWithDynamicPads FusedConv GatherBlockQuantized RotaryEmbedding SkipSimplifiedLayerNormalization",
    ),
    (
        5,
        "DynamicQuantizeMatMul QLinearAveragePool QLinearGlobalAveragePool QLinearLeakyRelu QLinearSigmoid \
         QLinearSoftmax SkipGroupNorm SkipLayerNormalization",
    ),
    (6, "MatMulNBits"),
    (7, "Attention MatMulIntegerToFloat"),
    (8, "MoE QLinearAdd QLinearMul"),
    (9, "EmbedLayerNormalization QAttention QGemm QLinearConv QLinearWhere"),
    (9, "DecoderMaskedSelfAttention"),
    (10, "MultiHeadAttention"),
    (11, "DecoderMaskedMultiHeadAttention"),
    (12, "DynamicQuantizeLSTM"),
    (15, "QMoE"),
    (17, "GroupQueryAttention"),
    (18, "QEmbedLayerNormalization"),
    (MANY, "QLinearConcat"),
];

/// The same of `ai.onnx.ml`.
const CLASSIC: &[(usize, &str)] = &[
    (
        1,
        "Binarizer Imputer LabelEncoder LinearClassifier LinearRegressor Normalizer OneHotEncoder SVMClassifier SVMRegressor \
         Scaler TreeEnsemble TreeEnsembleClassifier TreeEnsembleRegressor ZipMap",
    ),
    (2, "ArrayFeatureExtractor"),
    (MANY, "FeatureVectorizer"),
];

/// How many inputs an operator of a domain (empty for ONNX's own) takes at most in a version; none where any number, or where the operator
/// is not known.
pub(super) fn most_inputs(domain: &str, op_type: &str, version: i64) -> Option<usize> {
    static TABLES: OnceLock<[HashMap<&str, usize>; 3]> = OnceLock::new();
    let table = |rows: &[(usize, &'static str)]| {
        rows.iter().flat_map(|(most, names)| names.split_whitespace().map(|name| (name, *most))).collect()
    };
    let [onnx, microsoft, classic] = TABLES.get_or_init(|| [ONNX, MICROSOFT, CLASSIC].map(table));
    let newest = match domain {
        "" => onnx.get(op_type).copied(),
        "com.microsoft" => microsoft.get(op_type).copied(),
        "ai.onnx.ml" => classic.get(op_type).copied(),
        blocked::DOMAIN => Some(if op_type == "Conv" { 4 } else { 1 }),
        "com.ms.internal.nhwc" => onnx.get(op_type).copied(),
        _ => None,
    };
    let before = |(below, _, names): &&(i64, usize, &str)| {
        domain.is_empty() && version < *below && names.split_whitespace().any(|name| name == op_type)
    };
    let most = BEFORE.iter().find(before).map(|(_, most, _)| *most).or(newest);
    most.filter(|most| *most != MANY)
}

/// Whether the tables have an operator.
#[cfg(test)]
pub(super) fn is_known(domain: &str, op_type: &str) -> bool {
    let rows = match domain {
        "" => ONNX,
        "ai.onnx.ml" => CLASSIC,
        _ => MICROSOFT,
    };
    rows.iter().any(|(_, names)| names.split_whitespace().any(|name| name == op_type))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        frontends::onnx::{
            Model,
            encode::{FLOAT, graph, model, node, port},
        },
        signature::Bindings,
    };

    #[test]
    fn versions_of_operators_take_different_numbers() {
        assert_eq!(most_inputs("", "Relu", 13), Some(1));
        assert_eq!([10, 11, 17, 18].map(|version| most_inputs("", "Pad", version)), [1, 3, 3, 4].map(Some));
        assert_eq!([17, 18].map(|version| most_inputs("", "ReduceL2", version)), [1, 2].map(Some));
        assert_eq!([12, 13].map(|version| most_inputs("", "ReduceSum", version)), [1, 2].map(Some));
        assert_eq!(most_inputs("", "Concat", 13), None);
        assert_eq!(most_inputs("com.microsoft", "QuickGelu", 1), Some(1));
        assert_eq!(most_inputs("com.microsoft", "Resize", 1), None);
    }

    #[test]
    fn a_node_with_too_many_inputs_is_named() {
        let of = |name: &str| port(name, FLOAT, &[4]);
        let import = |inputs: &[&str], operator: &str| {
            let bytes =
                model(&graph(&[node(operator, inputs, &["y"], &[])], &[], &[of("x")], &[of("y")]), &[]);
            Model::from_bytes(bytes).unwrap().graph(&Bindings::default()).map(|_| ())
        };
        for (operator, inputs) in
            [("Relu", &["x", "x"][..]), ("Add", &["x", "x", "x"]), ("Identity", &["x", ""])]
        {
            let error = import(inputs, operator).unwrap_err().to_string();
            assert!(error.contains(&format!("{operator}_of_y")), "{error}");
            let (has, most) = (inputs.len(), inputs.len() - 1);
            assert!(
                error.contains(&format!("{has} inputs")) && error.contains(&format!("at most {most}")),
                "{error}"
            );
        }
        import(&["x"], "Relu").unwrap();
        import(&["x"; 9], "Sum").unwrap();
    }
}
