//! Pictures of open sizes: attention between channels, whose lines are all pixels, and places as floats of sizes have few plans for all of them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use crate::common::{builder, device, near};
use halite::Tensor;

const MODEL: &[u8] = include_bytes!("data/open_pixels.onnx");

/// What the model gives for a picture of two channels of `rows` times `columns`.
fn wanted(x: &[f32], rows: usize, columns: usize) -> [Vec<f32>; 3] {
    let count = rows * columns;
    let dot =
        |a: usize, b: usize| -> f32 { (0..count).map(|i| x[a * count + i] * x[b * count + i] / 64.0).sum() };
    let mut attended = Vec::new();
    for channel in 0..2 {
        let scores = [dot(channel, 0), dot(channel, 1)];
        let most = scores[0].max(scores[1]);
        let weights = scores.map(|score| (score - most).exp());
        let sum = weights[0] + weights[1];
        attended.extend((0..count).map(|i| (weights[0] * x[i] + weights[1] * x[count + i]) / sum / 8.0));
    }
    let at = |channel: usize, row: usize, column: usize| match (row.checked_sub(1), column.checked_sub(1)) {
        (Some(row), Some(column)) => x[channel * count + row * columns + column] + column as f32 + row as f32,
        _ => 0.0,
    };
    let moved = (0..2 * count).map(|i| at(i / count, i % count / columns, i % columns)).collect();
    let halves = (0..2 * (columns + 1)).map(|i| i as f32 / 2.0 - 1.0).collect();
    [attended, moved, halves]
}

#[test]
fn attention_between_channels_and_ranges_of_floats_share_plans() {
    let Some(device) = device() else { return };
    let session = builder(&device).model(MODEL.to_vec()).max_loaded_versions(64).build().unwrap();
    let sizes =
        [(20, 30), (24, 17), (31, 57), (63, 63), (50, 17), (33, 34), (17, 19), (61, 37), (29, 62), (35, 35)];
    for (rows, columns) in sizes {
        let x: Vec<f32> = (0..2 * rows * columns).map(|i| (i * 29 % 83) as f32 / 83.0 - 0.4).collect();
        let found = session.run(Tensor::from_slice(&x, [2, rows, columns]).unwrap()).unwrap();
        for (name, wanted) in ["attended", "moved", "halves"].into_iter().zip(wanted(&x, rows, columns)) {
            assert!(near(&found[name].to_vec::<f32>().unwrap(), &wanted), "{rows} x {columns}, {name}");
        }
    }
    assert!(
        session.loaded_versions() <= 3,
        "{} versions for {} sizes",
        session.loaded_versions(),
        sizes.len()
    );
}
