//! Models whose sizes are open: a few plans hold for many sizes, and give what a plan for each size gives.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod common;

use common::{builder, device, near, onnx};
use halite::{ElementType, Session, Tensor};

const MODEL: &[u8] = include_bytes!("data/open_encoder.onnx");
const WIDTH: usize = 16;

/// Some numbers that are not the same in any two rows.
fn input(batch: usize, length: usize) -> Tensor {
    let numbers: Vec<f32> =
        (0..batch * length * WIDTH).map(|i| ((i * 37 % 101) as f32 - 50.0) / 25.0).collect();
    Tensor::from_slice(&numbers, [batch, length, WIDTH]).unwrap()
}

fn run(session: &Session, batch: usize, length: usize) -> Vec<Vec<f32>> {
    let out = session.run(input(batch, length)).unwrap();
    assert_eq!(out["encoded"].shape(), [batch, length, WIDTH]);
    ["encoded", "pooled", "head"].map(|name| out[name].to_vec().unwrap()).to_vec()
}

/// What a plan for these sizes alone gives.
fn alone(device: &halite::Device, batch: usize, length: usize) -> Vec<Vec<f32>> {
    let session = builder(device)
        .model(MODEL.to_vec())
        .dimension("batch", batch)
        .dimension("length", length)
        .build()
        .unwrap();
    run(&session, batch, length)
}

#[test]
fn later_sizes_share_plans_and_give_the_same() {
    let Some(device) = device() else { return };
    let session = builder(&device).model(MODEL.to_vec()).build().unwrap();
    let sizes = (1..40).map(|length| (1, length)).chain([
        (2, 7),
        (3, 8),
        (2, 30),
        (5, 5),
        (3, 17),
        (1, 64),
        (1, 300),
    ]);
    for (index, (batch, length)) in sizes.enumerate() {
        let found = run(&session, batch, length);
        if index % 3 == 0 {
            let wanted = alone(&device, batch, length);
            let same = found.iter().zip(&wanted).all(|(found, wanted)| near(found, wanted));
            assert!(same, "{batch} x {length}: {found:?} {wanted:?}");
        }
    }
    let versions = session.loaded_versions();
    assert!((2..=24).contains(&versions), "{versions} versions for 46 sizes");
    // Sizes that were there before, in another order, make nothing new.
    for length in [33, 2, 17, 1] {
        run(&session, 1, length);
    }
    assert_eq!(session.loaded_versions(), versions);
}

#[test]
fn ranges_become_modules_for_all_of_them() {
    let Some(device) = device() else { return };
    let session =
        builder(&device).model(MODEL.to_vec()).dimension("batch", 1).bound("length", 1..=48).build().unwrap();
    for length in [1, 2, 3, 4, 5, 8, 15, 16, 17, 20, 31, 47, 48] {
        let (found, wanted) = (run(&session, 1, length), alone(&device, 1, length));
        let same = found.iter().zip(&wanted).all(|(found, wanted)| near(found, wanted));
        assert!(same, "{length}: {found:?} {wanted:?}");
    }
    let error = session.run(Tensor::zeros(ElementType::F32, [1, 49, WIDTH]).unwrap()).unwrap_err();
    assert_eq!(error.kind(), halite::ErrorKind::InvalidInput, "{error}");
}

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
