//! Recurrent layers over sequences whose length and number are open (`recurrent` of `conformance/models/onnx_open.py`): a few plans are for all of
//! them, and give what one for each gives.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::collections::BTreeMap;

use crate::common::{builder, device, near};
use halite::{Session, Tensor};

const MODEL: &[u8] = include_bytes!("data/open_recurrent.onnx");

/// The results of sequences, every other of which ends before the last step.
fn run(session: &Session, length: usize, batch: usize) -> Vec<Vec<f32>> {
    let x: Vec<f32> = (0..length * batch * 5).map(|i| ((i * 37 % 101) as f32 - 50.0) / 25.0).collect();
    let ends: Vec<i32> =
        (0..batch).map(|row| if row % 2 == 0 { length } else { length / 2 } as i32).collect();
    let inputs = [
        ("x", Tensor::from_slice(&x, [length, batch, 5]).unwrap()),
        ("lengths", Tensor::from_slice(&ends, [batch]).unwrap()),
    ];
    let out = session.run(inputs).unwrap();
    assert_eq!(out["y"].shape(), [length, batch, 8]);
    ["y", "cells", "last1"].map(|name| out[name].to_vec().unwrap()).to_vec()
}

#[test]
fn layers_over_sequences_of_any_length_share_plans() {
    let Some(device) = device() else { return };
    let open = || builder(&device).model(MODEL.to_vec());
    let session = open().max_loaded_versions(64).build().unwrap();
    let bounded = open().bound("length", 1..=64).bound("batch", 1..=4).build().unwrap();
    let sizes = [(20, 2), (30, 3), (41, 2), (64, 4), (33, 3), (1, 1), (50, 2)];
    let mut alone = BTreeMap::new();
    for (length, batch) in sizes {
        let fixed = || open().dimension("length", length).dimension("batch", batch).build().unwrap();
        let wanted = alone.entry((length, batch)).or_insert_with(|| run(&fixed(), length, batch));
        let mut found = vec![run(&session, length, batch)];
        found.extend((length <= 64 && batch <= 4).then(|| run(&bounded, length, batch)));
        for (found, wanted) in found.iter().flat_map(|results| results.iter().zip(&*wanted)) {
            assert!(near(found, wanted), "{length} steps of {batch}: {found:?} {wanted:?}");
        }
    }
    let versions = session.loaded_versions();
    sizes.iter().for_each(|(length, batch)| drop(run(&session, *length, *batch)));
    assert_eq!(session.loaded_versions(), versions, "sizes that were there before make nothing new");
    assert!(versions < sizes.len(), "{versions} versions for {} sizes", sizes.len());
}
