//! Sizes that no kernel divides, in one model (`uneven` of `conformance/models/onnx_open.py`): versions are not for multiples alone, and borders that
//! data decide are on all sides.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use crate::common::{builder, device, near};
use halite::{Outputs, Session, Tensor};

const MODEL: &[u8] = include_bytes!("data/open_uneven.onnx");

/// Numbers that are not 0.
fn rows(count: usize) -> Vec<[f32; 3]> {
    (0..count).map(|row| [1, 2, 3].map(|column| (row * 3 + column) as f32 / 8.0)).collect()
}

fn floats(out: &Outputs, name: &str) -> Vec<f32> {
    out[name].to_vec().unwrap()
}

/// Runs the model and compares all that it gives.
fn check(session: &Session, count: usize) {
    let rows = rows(count);
    let input = Tensor::from_slice(rows.as_flattened(), [count, 3]).unwrap();
    let out = session.run(input).unwrap();
    let mut put = rows.clone();
    put[0] = [9.0; 3];
    put[1] = [9.0; 3];
    assert_eq!(floats(&out, "put"), put.as_flattened(), "{count} rows");
    let columns: Vec<f32> = (0..6).flat_map(|column| rows.iter().map(move |row| row[column % 3])).collect();
    assert_eq!(floats(&out, "turned"), columns, "{count} rows");
    let dot = |a: &[f32; 3], b: &[f32; 3]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    let products: Vec<f32> =
        rows.iter().flat_map(|a| [0.0].into_iter().chain(rows.iter().map(move |b| dot(a, b)))).collect();
    assert!(near(&floats(&out, "products"), &products), "{count} rows");
    // The last row has an odd place where there is an even number of rows; the last column has the place 2.
    let border = usize::from(count.is_multiple_of(2));
    assert_eq!(out["four"].shape(), [1, count + 2 * border, 3, 1]);
    assert_eq!(out["six"].shape(), [1, 1, count + 2 * border, 1, 3, 1]);
    let line = vec![[0.0; 3]; border];
    let bordered = [&line[..], &rows, &line].concat();
    for name in ["four", "six"] {
        assert_eq!(floats(&out, name), bordered.as_flattened(), "{count} rows, {name}");
    }
}

#[test]
fn versions_are_not_for_multiples_alone() {
    let Some(device) = device() else { return };
    let session = builder(&device).model(MODEL.to_vec()).max_loaded_versions(64).build().unwrap();
    // As long as all are multiples of 4, a version may be for these alone; of other ranges there is one each from then on.
    for count in [36, 56, 33, 10, 9, 8, 12, 11, 38, 43, 40, 7, 62, 15] {
        check(&session, count);
    }
    assert_eq!(session.loaded_versions(), 4);
}
