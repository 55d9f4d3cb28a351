//! Which node tests expect what ONNX has corrected since: their packages up to 1.22 hold the old values.

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
