//! Which node tests expect what nothing can be compared with: ONNX has corrected it since (their packages up to 1.22 hold the old
//! values), or it was drawn at random.

const SOFTCAP: &str = "onnx 1.23: Attention adds the mask after the softcap, and modes 1 and 2 of its last output changed places";
const OVERFLOW: &str = "onnx 1.23: QLinearMatMul saturates; the expected values wrapped";

/// Names of cases, and what was corrected.
const CASES: &[(&str, &str)] = &[
    ("test_attention_3d_with_past_and_present_qk_matmul_bias", SOFTCAP),
    ("test_attention_3d_with_past_and_present_qk_matmul_softcap", SOFTCAP),
    ("test_attention_4d_with_past_and_present_qk_matmul_bias", SOFTCAP),
    ("test_attention_4d_with_past_and_present_qk_matmul_bias_3d_mask", SOFTCAP),
    ("test_attention_4d_with_past_and_present_qk_matmul_bias_3d_mask_causal", SOFTCAP),
    ("test_attention_4d_with_past_and_present_qk_matmul_bias_4d_mask", SOFTCAP),
    ("test_attention_4d_with_past_and_present_qk_matmul_bias_4d_mask_causal", SOFTCAP),
    ("test_attention_4d_with_qk_matmul_bias", SOFTCAP),
    ("test_attention_4d_with_qk_matmul_softcap", SOFTCAP),
    ("test_qlinearmatmul_2D_int8_float16", OVERFLOW),
    ("test_qlinearmatmul_2D_int8_float32", OVERFLOW),
    ("test_qlinearmatmul_3D_int8_float16", OVERFLOW),
    ("test_qlinearmatmul_3D_int8_float32", OVERFLOW),
];

/// What ONNX has corrected since a case's values were made; none if they stand.
pub fn superseded(case: &str) -> Option<&'static str> {
    CASES.iter().find(|(name, _)| *name == case).map(|(_, why)| *why)
}

/// Names of cases whose values were drawn at random: operators there have no seed, or a seed of another generator.
const RANDOM: &[&str] = &[
    "test_bernoulli",
    "test_bernoulli_double",
    "test_bernoulli_double_expanded",
    "test_bernoulli_expanded",
    "test_bernoulli_seed",
    "test_bernoulli_seed_expanded",
    "test_training_dropout",
    "test_training_dropout_default",
    "test_training_dropout_default_mask",
    "test_training_dropout_mask",
];

/// Whether a case's values were drawn at random: types and sizes are all that can be compared.
pub fn is_random(case: &str) -> bool {
    RANDOM.contains(&case)
}
