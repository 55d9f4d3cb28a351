//! The twin of attention, by hand.

use super::*;

#[test]
fn equal_scores_give_the_average_and_the_mask_leaves_keys_out() {
    let op = Attention::new(1, 1, 2, 2, DType::F32);
    let q = Values::Float(vec![1.0, 0.0]);
    let k = Values::Float(vec![2.0, 5.0, 2.0, -3.0]);
    let v = Values::Float(vec![1.0, 2.0, 3.0, 6.0]);
    assert_eq!(op.twin(&[q.clone(), k.clone(), v.clone()]), [Values::Float(vec![2.0, 4.0])]);
    let masked = Attention { mask: Mask::Shared, ..op };
    let mask = Values::Float(vec![f64::NEG_INFINITY, 0.5]);
    assert_eq!(masked.twin(&[q, k, v, mask]), [Values::Float(vec![3.0, 6.0])]);
}

#[test]
fn causal_queries_are_the_last_of_the_sequence() {
    let op = Attention { causal: true, ..Attention::new(1, 3, 2, 1, DType::F32) };
    assert_eq!((op.end(0), op.end(1), op.end(2)), (0, 1, 2));
    let ones = Values::Float(vec![0.0; 3]);
    let out = op.twin(&[ones.clone(), ones, Values::Float(vec![4.0, 8.0])]);
    assert_eq!(out, [Values::Float(vec![0.0, 4.0, 6.0])]);
    assert_eq!(op.flops(), 4.0 * 3.0);
}

#[test]
fn heads_share_and_caches_have_rows_to_spare() {
    let op = Attention { kv_heads: Some(1), capacity: Some(3), ..Attention::new(2, 1, 1, 1, DType::F32) };
    let q = Values::Float(vec![1.0, 2.0]);
    let cache = Values::Float(vec![7.0, f64::NAN, f64::NAN]);
    assert_eq!(op.twin(&[q, cache.clone(), cache]), [Values::Float(vec![7.0, 7.0])]);
}

#[test]
fn what_does_not_go_together_is_told() {
    let op = Attention::new(6, 4, 4, 32, DType::F32);
    let error = |op: Attention| op.check().unwrap_err();
    assert!(error(Attention { kv_heads: Some(4), ..op.clone() }).contains("share 4"));
    assert!(error(Attention { capacity: Some(3), ..op.clone() }).contains("capacity of 3"));
    assert!(error(Attention { head_dim: 300, ..op.clone() }).contains("300"));
    assert!(error(Attention { dtype: DType::I8, ..op.clone() }).contains("i8"));
    assert!(error(Attention { softcap: Some(0.0), ..op }).contains("softcap"));
}

#[test]
fn every_variant_for_few_queries_finds_the_kernel_that_combines_its_parts() {
    for dtype in [DType::F32, DType::F16, DType::BF16] {
        let op = crate::Operation::Attention(Attention::new(2, 1, 300, 64, dtype));
        for variant in crate::variants_of("attention").filter(|v| v.signatures.contains(&dtype.to_string())) {
            if matches!(variant.template.as_str(), "decode" | "split") {
                let plan = variant.plan(&op).unwrap_or_else(|unfit| panic!("{} {unfit}", variant.name));
                assert_eq!(plan.steps.len(), 2, "{}", variant.name);
            }
        }
    }
}
