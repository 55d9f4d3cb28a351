//! Operators between codes as ONNX Runtime's static quantizer writes them (`codes` of `conformance/models/onnx_open.py`).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use crate::common::{builder, device, near};
use halite::Tensor;

const MODEL: &[u8] = include_bytes!("data/codes.onnx");
const X: [f32; 8] = [-3.21, -1.234, 0.111, 0.6, 1.0, 2.05, -0.32, 4.0];

/// The nearest multiple of a scale.
fn rounded(x: f32, scale: f32) -> f32 {
    (x / scale).round_ties_even() * scale
}

#[test]
fn codes_of_sixteen_and_four_bits_and_operators_between_codes_run() {
    let Some(device) = device() else { return };
    let session = builder(&device).model(MODEL.to_vec()).build().unwrap();
    let out = session.run(Tensor::from_slice(&X, [2, 4]).unwrap()).unwrap();
    let codes = X.map(|x| rounded(x, 0.05));
    let shares = codes.chunks(4).flat_map(|row| {
        let sum: f32 = row.iter().map(|x| x.exp()).sum();
        row.iter().map(move |x| rounded(x.exp() / sum, 1.0 / 256.0))
    });
    let pooled = [0, 2]
        .map(|at| rounded([at, at + 1, at + 4, at + 5].map(|i| codes[i]).iter().sum::<f32>() / 4.0, 0.05));
    // Rows, columns, channels: of each place of a row the mean with the one below.
    let last = [0, 1, 2, 3].map(|at| rounded((codes[at] + codes[at + 4]) / 2.0, 0.05));
    let wanted = [
        ("wide", X.map(|x| rounded(x, 0.001)).to_vec()),
        // From -8 to 7 around -1.
        ("narrow", X.map(|x| rounded(x, 0.5).clamp(-3.5, 4.0)).to_vec()),
        ("shares", shares.collect()),
        ("above", codes.map(|x| if x > 0.0 { x } else { rounded(8.0 / 256.0, 0.05) }).to_vec()),
        ("pooled", pooled.to_vec()),
        ("last", last.to_vec()),
    ];
    for (name, wanted) in wanted {
        let found: Vec<f32> = out[name].to_vec().unwrap();
        assert!(near(&found, &wanted), "{name}: {found:?} for {wanted:?}");
    }
}
