//! Numbers that sizes or data decide, in one model (`values` of `conformance/models/onnx_open.py`): a few plans hold for many sizes, and give what
//! ONNX says.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use crate::common::{builder, device, near};
use halite::{Outputs, Tensor};

const MODEL: &[u8] = include_bytes!("data/open_values.onnx");

/// Rows of which few numbers are above 0.
fn rows(count: usize) -> Vec<[f32; 4]> {
    let number = |i: usize| ((i * 37 + count * 5) % 41) as f32 / 8.0 - 4.0;
    (0..count).map(|row| [0, 1, 2, 3].map(|column| number(4 * row + column))).collect()
}

fn floats(out: &Outputs, name: &str) -> Vec<f32> {
    out[name].to_vec().unwrap()
}

/// The rows scaled to as many as the product of single precision says.
fn scaled(rows: &[[f32; 4]]) -> Vec<[f32; 4]> {
    let scale = (2 * rows.len() - 3) as f32 / rows.len() as f32;
    let count = (scale * rows.len() as f32).floor() as usize;
    let one = |row: usize| {
        let at = ((row as f32 + 0.5) / scale - 0.5).max(0.0);
        let (before, part) = (at.floor() as usize, at.fract());
        let next = (before + 1).min(rows.len() - 1);
        [0, 1, 2, 3].map(|column| {
            let (a, b) = (rows[before.min(rows.len() - 1)][column], rows[next][column]);
            a + (b - a) * part
        })
    };
    (0..count).map(one).collect()
}

#[test]
fn a_few_plans_hold_for_numbers_that_sizes_or_data_decide() {
    let Some(device) = device() else { return };
    let session = builder(&device).model(MODEL.to_vec()).max_loaded_versions(64).build().unwrap();
    let sizes = [5, 9, 6, 17, 12, 33, 8, 21, 7, 40, 11, 62, 14, 28];
    for count in sizes {
        let rows = rows(count);
        let input = Tensor::from_slice(rows.as_flattened(), [count, 4]).unwrap();
        let out = session.run(input).unwrap();
        let wanted = scaled(&rows);
        assert_eq!(out["scaled"].shape(), [1, 1, wanted.len(), 4], "{count} rows");
        assert!(near(&floats(&out, "scaled"), wanted.as_flattened()), "{count} rows");
        let firsts: Vec<f32> = rows.iter().map(|row| row[0]).collect();
        assert_eq!((out["top"].shape(), floats(&out, "top")), (&[count, 1][..], firsts.clone()));
        let negated: Vec<f32> = firsts.iter().map(|first| -first).collect();
        assert_eq!(floats(&out, "column"), negated);
        let above = rows.as_flattened().iter().filter(|number| **number > 0.0).count();
        assert_eq!(out["left"].shape(), [4 * count - above]);
        let columns: Vec<f32> = (0..4).flat_map(|column| rows.iter().map(move |row| row[column])).collect();
        assert_eq!((out["joined"].shape(), floats(&out, "joined")), (&[4, count][..], columns));
        let dot = |a: &[f32; 4], b: &[f32; 4]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        let products: Vec<f32> = rows.iter().flat_map(|a| rows.iter().map(move |b| dot(a, b))).collect();
        assert!(near(&floats(&out, "products"), &products), "{count} rows");
        let front = rows.iter().filter(|row| row[0] > -2.0).count();
        let parted = [&rows[front..], &rows[..front]].concat();
        assert_eq!(floats(&out, "parted"), parted.as_flattened(), "{count} rows");
        let sums: Vec<f32> = rows.iter().map(|row| dot(row, &[1.0, 2.0, 3.0, 4.0])).collect();
        assert!(near(&floats(&out, "weighted"), &sums), "{count} rows");
        let kept = out["kept"].to_vec::<i64>().unwrap();
        let best = (0..count).max_by(|a, b| {
            let sum = |row: &usize| rows[*row].iter().sum::<f32>();
            sum(a).total_cmp(&sum(b)).then(b.cmp(a))
        });
        assert_eq!(kept[..3], [0, 0, best.unwrap() as i64], "{count} rows");
    }
    // The first sizes have one of their own, and ranges end at powers of 4.
    let versions = session.loaded_versions();
    assert!(versions <= 6, "{versions} versions for {} sizes", sizes.len());
}
