//! Products of an open number of rows with weights of 2, 4 and 8 bits in blocks (`bits` of `conformance/models/onnx_open.py`).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use crate::common::{builder, device, near};
use halite::{Session, Tensor};

const MODEL: &[u8] = include_bytes!("data/open_bits.onnx");
const WIDTH: usize = 64;

/// All results of so many rows that look drawn.
fn run(session: &Session, rows: usize) -> Vec<Vec<f32>> {
    let numbers: Vec<f32> = (0..rows * WIDTH).map(|i| (i * 37 % 101) as f32 / 50.0 - 1.0).collect();
    let out = session.run(Tensor::from_slice(&numbers, [rows, WIDTH]).unwrap()).unwrap();
    ["two", "four", "eight", "moved"].map(|name| out[name].to_vec::<f32>().unwrap()).into()
}

#[test]
fn products_with_few_bits_have_one_plan_for_many_rows() {
    let Some(device) = device() else { return };
    let session = builder(&device).model(MODEL.to_vec()).max_loaded_versions(64).build().unwrap();
    let counts = [5, 9, 4, 17, 12, 7, 23, 6, 31, 14];
    let all = run(&session, 31);
    for rows in counts {
        for (found, wanted) in run(&session, rows).iter().zip(&all) {
            assert!(near(found, &wanted[..found.len()]), "{rows} rows: {found:?} {wanted:?}");
        }
    }
    let versions = session.loaded_versions();
    assert!(versions <= 6, "{versions} versions for {} numbers of rows", counts.len());
}
