//! Weights of models whose sizes are open: versions have them on the device together, and what they make of them, too.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use crate::common::{builder, device, near, onnx};
use halite::{Session, Tensor};

/// `y = x w` of `rows` numbers and more, where `rows` is open.
fn large_product(width: usize) -> Vec<u8> {
    let size = width.to_string();
    let weights: Vec<f32> = (0..width * width).map(|i| (i * 31 % 97) as f32 / 97.0 - 0.5).collect();
    onnx::model(&[
        onnx::node("MatMul", &["x", "w"], &["y"]),
        onnx::constant("w", &[width as u64, width as u64], &weights),
        onnx::value(11, "x", &["rows", &size]),
        onnx::value(12, "y", &["rows", &size]),
    ])
}

#[test]
fn versions_have_their_weights_on_the_device_together() {
    let Some(device) = device() else { return };
    const WIDE: usize = 512;
    let bytes = (WIDE * WIDE * 4) as u64;
    let session = builder(&device).model(large_product(WIDE)).build().unwrap();
    let before = device.memory().used;
    let mut results = Vec::new();
    for rows in [1, 5, 40, 1] {
        let numbers: Vec<f32> = (0..WIDE).map(|i| (i % 13) as f32 - 6.0).collect();
        let out = session.run(Tensor::from_slice(&numbers.repeat(rows), [rows, WIDE]).unwrap()).unwrap();
        results.push(out["y"].to_vec::<f32>().unwrap()[..WIDE].to_vec());
    }
    assert!(session.loaded_versions() > 1);
    assert!(results.iter().all(|row| near(row, &results[0])), "each version reads the whole weights");
    let held = device.memory().used - before;
    assert!((bytes..2 * bytes).contains(&held), "{held} bytes for weights of {bytes}");
}

/// Products of `x` by three weights, which one product computes that reads them side by side.
fn products_beside(width: usize) -> Vec<u8> {
    let size = width.to_string();
    let weights = |seed: usize| -> Vec<f32> {
        (0..width * width).map(|i| (i * 31 % 97 + seed) as f32 / 97.0 - 0.5).collect()
    };
    let mut parts = vec![onnx::value(11, "x", &["rows", &size])];
    for (seed, name) in ["q", "k", "v"].into_iter().enumerate() {
        let constant = format!("w{name}");
        parts.push(onnx::node("MatMul", &["x", &constant], &[name]));
        parts.push(onnx::constant(&constant, &[width as u64, width as u64], &weights(seed)));
        parts.push(onnx::value(12, name, &["rows", &size]));
    }
    onnx::model(&parts)
}

#[test]
fn versions_have_what_they_make_of_weights_together() {
    let Some(device) = device() else { return };
    const WIDE: usize = 256;
    let bytes = (3 * WIDE * WIDE * 4) as u64;
    let run = |session: &Session, rows: usize| {
        let numbers: Vec<f32> = (0..rows * WIDE).map(|i| (i % 13) as f32 - 6.0).collect();
        let out = session.run(Tensor::from_slice(&numbers, [rows, WIDE]).unwrap()).unwrap();
        ["q", "k", "v"].map(|name| out[name].to_vec::<f32>().unwrap())
    };
    for most in [256, 1] {
        let model = products_beside(WIDE);
        let session = builder(&device).model(model.clone()).max_loaded_versions(most).build().unwrap();
        let before = device.memory().used;
        for rows in [1, 5, 40, 300, 1, 7] {
            let found = run(&session, rows);
            let alone = builder(&device).model(model.clone()).build().unwrap();
            let wanted = run(&alone, rows);
            assert!(found.iter().zip(&wanted).all(|(found, wanted)| near(found, wanted)), "{rows} rows");
        }
        assert!(most == 1 || session.loaded_versions() > 2);
        let held = device.memory().used - before;
        assert!((bytes..bytes + bytes / 2).contains(&held), "{held} bytes for weights of {bytes}");
    }
}
