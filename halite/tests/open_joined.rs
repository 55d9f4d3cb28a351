//! Rows that loops collect or data count, in one model (`joined` of `conformance/models/onnx_open.py`): what is promised of their numbers counts
//! behind the last run, and a number that is 1 at most is no size to agree with.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::collections::BTreeMap;

use crate::common::{builder, device};
use halite::Tensor;

const MODEL: &[u8] = include_bytes!("data/open_joined.onnx");

#[test]
fn rows_of_two_loops_are_joined_and_counted() {
    let Some(device) = device() else { return };
    let session = builder(&device).model(MODEL.to_vec()).max_loaded_versions(64).build().unwrap();
    // Of some all rows are above 0, of one none.
    for (rows, shift) in [(5, 0.0), (9, 0.0), (4, 5.0), (17, 0.0), (6, -9.0), (12, 5.0), (40, 0.0), (9, 1.0)]
    {
        let number = |i: usize| ((i * 37 + rows * 5) % 41) as f32 / 8.0 - 2.5 + shift;
        let x: Vec<f32> = (0..2 * rows).map(number).collect();
        let out = session.run(Tensor::from_slice(&x, [rows, 2]).unwrap()).unwrap();
        let (mut joined, mut counts) = (Vec::new(), BTreeMap::new());
        for row in x.chunks(2).filter(|row| row[0] > 0.0) {
            joined.extend([-row[0], -row[1], row[0].abs(), row[1].abs()]);
            *counts.entry(row[0].floor() as i64).or_insert(0.0) += 1.0;
        }
        assert_eq!(out["joined"].shape(), [joined.len() / 4, 4], "{rows} rows");
        assert_eq!(out["joined"].to_vec::<f32>().unwrap(), joined, "{rows} rows");
        let kinds: Vec<f32> = counts.keys().map(|kind| *kind as f32).collect();
        assert_eq!(out["kinds"].to_vec::<f32>().unwrap(), kinds, "{rows} rows");
        let counts: Vec<f32> = counts.into_values().collect();
        assert_eq!(out["counts"].to_vec::<f32>().unwrap(), counts, "{rows} rows");
    }
}
