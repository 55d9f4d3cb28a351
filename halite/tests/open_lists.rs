//! Lists of as many tensors as sizes or data decide, in one model (`repeats` of `conformance/models/onnx_open.py`): rows that a loop over lists
//! repeats, parts whose sizes are computed, and what a graph makes of each of these.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use crate::common::{builder, device, near};
use halite::{ErrorKind, Inputs, Session, Tensor};

const MODEL: &[u8] = include_bytes!("data/open_repeats.onnx");

fn inputs(rows: usize, times: &[i64], parts: [i64; 2]) -> Inputs {
    let numbers: Vec<f32> = (0..2 * rows).map(|i| i as f32).collect();
    [
        ("x", Tensor::from_slice(&numbers, [rows, 2]).unwrap()),
        ("times", Tensor::from_slice(times, [rows]).unwrap()),
        ("parts", Tensor::from_slice(&parts, [2]).unwrap()),
    ]
    .into()
}

fn check(session: &Session, rows: usize) {
    let times: Vec<i64> = (0..rows as i64).map(|i| (i * 5 + 1) % 4).collect();
    let front = rows as i64 / 3;
    let out = session.run(inputs(rows, &times, [front, rows as i64 - front])).unwrap();
    let row = |i: usize| [2.0 * i as f32, 2.0 * i as f32 + 1.0];
    let repeated: Vec<f32> =
        times.iter().enumerate().flat_map(|(i, times)| row(i).repeat(*times as usize)).collect();
    let swapped: Vec<f32> = (front as usize..rows).chain(0..front as usize).flat_map(row).collect();
    let last: Vec<f32> = (0..rows).map(|i| -row(i)[1]).collect();
    let sums: Vec<f32> = repeated.chunks(2).map(|row| row[0] + row[1]).collect();
    let (front, back) = (front as usize, rows - front as usize);
    let sum = |range: std::ops::Range<usize>, at: usize| range.map(|i| row(i)[at]).sum::<f32>();
    let totals = vec![sum(0..front, 0), sum(0..front, 1), sum(front..rows, 0), sum(front..rows, 1)];
    let units: Vec<f32> = (0..rows)
        .flat_map(|i| row(i).map(|x| x / (if i < front { front } else { back }) as f32 * 2.0))
        .collect();
    let regions = [0.5, 2.5, 0.5, 2.5].repeat(sums.len());
    let all = [("regions", regions), ("repeated", repeated), ("swapped", swapped), ("last", last)];
    for (name, wanted) in all.into_iter().chain([("sums", sums), ("totals", totals), ("units", units)]) {
        let found = out[name].to_vec::<f32>().unwrap();
        assert!(near(&found, &wanted), "{name} of {rows}: {found:?} {wanted:?}");
    }
}

#[test]
fn loops_over_lists_of_open_lengths_have_one_plan_for_many() {
    let Some(device) = device() else { return };
    let session = builder(&device).model(MODEL.to_vec()).max_loaded_versions(64).build().unwrap();
    for rows in [5, 9, 4, 17, 12, 7, 23, 6, 31, 3] {
        check(&session, rows);
    }
    let versions = session.loaded_versions();
    assert!(versions <= 4, "{versions} versions for 10 lengths");
}

#[test]
fn parts_that_do_not_add_up_are_an_error_that_names_their_node() {
    let Some(device) = device() else { return };
    let session = builder(&device).model(MODEL.to_vec()).build().unwrap();
    for parts in [[1, 3], [4, 4], [-1, 6]] {
        let error = session.run(inputs(5, &[1; 5], parts)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        assert!(error.to_string().contains("SplitToSequence"), "{error}");
    }
    check(&session, 5);
}
