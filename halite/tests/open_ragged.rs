//! Columns that become images, shapes that are written in part, and keys of attention that data count: one version serves many sizes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use crate::common::{builder, device, near, onnx};
use halite::Tensor;

/// A node with attributes that are lists of integers.
fn node_with_lists(op: &str, inputs: &[&str], outputs: &[&str], lists: &[(&str, &[u64])]) -> Vec<u8> {
    let list = |(name, values): &(&str, &[u64])| {
        let values: Vec<u8> = values.iter().flat_map(|value| onnx::number(8, *value)).collect();
        // Field 20 is the attribute's type; 7 is a list of integers.
        onnx::bytes(5, &[onnx::bytes(1, name.as_bytes()), values, vec![0xA0, 0x01, 7]].concat())
    };
    let mut content: Vec<u8> = inputs.iter().flat_map(|name| onnx::bytes(1, name.as_bytes())).collect();
    content.extend(outputs.iter().flat_map(|name| onnx::bytes(2, name.as_bytes())));
    content.extend(onnx::bytes(4, op.as_bytes()));
    content.extend(lists.iter().flat_map(list));
    onnx::bytes(1, &content)
}

fn sizes(name: &str, values: &[i64]) -> Vec<u8> {
    let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    onnx::typed_constant(name, onnx::I64, &[values.len() as u64], &data)
}

/// How blocks lie in the columns of an image of one row.
#[derive(Clone, Copy)]
struct Blocks {
    block: u64,
    stride: u64,
    dilation: u64,
    pads: [u64; 2],
}

impl Blocks {
    /// Two channels of columns `[batch, 2 * block, places]`, which become an image of as many elements as they reach, less the pads.
    fn model(self) -> Vec<u8> {
        let Blocks { block, stride, dilation, pads } = self;
        let reach = (dilation * (block - 1) + 1) as i64 - (stride + pads[0] + pads[1]) as i64;
        let depth = (2 * block).to_string();
        let lists: [(&str, &[u64]); 3] =
            [("strides", &[stride]), ("dilations", &[dilation]), ("pads", &pads)];
        onnx::model(&[
            sizes("two", &[2]),
            sizes("stride", &[stride as i64]),
            sizes("reach", &[reach]),
            sizes("block", &[block as i64]),
            onnx::node("Shape", &["x"], &["shape"]),
            onnx::node("Gather", &["shape", "two"], &["places"]),
            onnx::node("Mul", &["places", "stride"], &["steps"]),
            onnx::node("Add", &["steps", "reach"], &["image"]),
            node_with_lists("Col2Im", &["x", "image", "block"], &["y"], &lists),
            onnx::value(11, "x", &["batch", &depth, "places"]),
            onnx::value(12, "y", &["batch", "2", "length"]),
        ])
    }

    /// The same, element by element.
    fn image(self, x: &[f32], places: usize) -> Vec<f32> {
        let [block, stride, dilation] = [self.block, self.stride, self.dilation].map(|v| v as usize);
        let [before, behind] = self.pads.map(|v| v as usize);
        let whole = (places - 1) * stride + dilation * (block - 1) + 1;
        let channel = |columns: &[f32]| {
            let mut image = vec![0.0; whole];
            for (tap, line) in columns.chunks_exact(places).enumerate() {
                line.iter().enumerate().for_each(|(place, v)| image[place * stride + tap * dilation] += v);
            }
            image[before..whole - behind].to_vec()
        };
        x.chunks_exact(block * places).flat_map(channel).collect()
    }
}

#[test]
fn columns_of_any_number_become_images() {
    let Some(device) = device() else { return };
    let of = |block, stride, dilation, pads| Blocks { block, stride, dilation, pads };
    // Blocks in few steps, in many, with gaps, and further apart than they are long.
    for blocks in [
        of(8, 4, 1, [0, 0]),
        of(7, 3, 1, [2, 1]),
        of(12, 1, 1, [0, 0]),
        of(3, 2, 3, [1, 0]),
        of(2, 5, 1, [0, 0]),
    ] {
        let session = builder(&device).model(blocks.model()).max_loaded_versions(64).build().unwrap();
        for places in [40usize, 21, 33, 50, 62, 17, 29, 55] {
            let count = 2 * 2 * blocks.block as usize * places;
            let x: Vec<f32> = (0..count).map(|i| (i * 37 % 101) as f32 / 50.0 - 1.0).collect();
            let input = Tensor::from_slice(&x, [2, 2 * blocks.block as usize, places]).unwrap();
            let found: Vec<f32> = session.run(input).unwrap()[0].to_vec().unwrap();
            assert!(near(&found, &blocks.image(&x, places)), "{places} places");
        }
        assert!(session.loaded_versions() <= 4, "{} versions", session.loaded_versions());
    }
}

#[test]
fn shapes_that_are_written_in_part_stay_open() {
    let Some(device) = device() else { return };
    // The shape of `cache` with the number of rows of `x` in its place, as exporters write for `index_copy`.
    let model = onnx::model(&[
        sizes("one", &[1]),
        onnx::node("Shape", &["cache"], &["whole"]),
        onnx::node("Shape", &["x"], &["own"]),
        onnx::node("Gather", &["own", "one"], &["rows"]),
        onnx::node_with("ScatterElements", &["whole", "one", "rows"], &["to"], "axis", 0),
        onnx::node("Expand", &["place", "to"], &["places"]),
        onnx::node_with("ScatterElements", &["cache", "places", "x"], &["y"], "axis", 1),
        onnx::value(11, "x", &["1", "rows", "2"]),
        onnx::typed_value(11, "place", onnx::I64, &["1", "rows", "1"]),
        onnx::value(11, "cache", &["1", "64", "2"]),
        onnx::value(12, "y", &["1", "64", "2"]),
    ]);
    let session = builder(&device).model(model).max_loaded_versions(64).build().unwrap();
    for count in [20usize, 33, 17, 50, 41, 62, 29] {
        let x: Vec<f32> = (0..2 * count).map(|i| i as f32 + 1.0).collect();
        let places: Vec<i64> = (0..count).map(|row| (row as i64 * 5 + 3) % 64).collect();
        let mut wanted = vec![0.0f32; 128];
        for (row, place) in places.iter().enumerate() {
            let to = *place as usize * 2;
            wanted[to..to + 2].copy_from_slice(&x[2 * row..2 * row + 2]);
        }
        let x = Tensor::from_slice(&x, [1, count, 2]).unwrap();
        let places = Tensor::from_slice(&places, [1, count, 1]).unwrap();
        let cache = Tensor::from_slice(&[0f32; 128], [1, 64, 2]).unwrap();
        let out = session.run([("x", x), ("place", places), ("cache", cache)]).unwrap();
        assert_eq!(out[0].to_vec::<f32>().unwrap(), wanted, "{count} rows");
    }
    assert!(session.loaded_versions() <= 3, "{} versions", session.loaded_versions());
}

#[test]
fn attention_over_as_many_keys_as_data_count() {
    let Some(device) = device() else { return };
    let model = onnx::model(&[
        onnx::node_with("Compress", &["x", "taken"], &["keys"], "axis", 0),
        sizes("twice", &[1, 2, 1, 1]),
        sizes("first", &[0, 1]),
        onnx::node("Unsqueeze", &["keys", "first"], &["heads"]),
        onnx::node("Tile", &["heads", "twice"], &["k"]),
        node_with_lists("Transpose", &["k"], &["turned"], &[("perm", &[0, 1, 3, 2])]),
        onnx::node("MatMul", &["q", "turned"], &["scores"]),
        onnx::node_with("Softmax", &["scores"], &["weights"], "axis", 3),
        onnx::node("MatMul", &["weights", "k"], &["y"]),
        onnx::value(11, "q", &["1", "2", "3", "4"]),
        onnx::value(11, "x", &["rows", "4"]),
        onnx::typed_value(11, "taken", onnx::BOOL, &["rows"]),
        onnx::value(12, "y", &["1", "2", "3", "4"]),
    ]);
    let session = builder(&device).model(model).max_loaded_versions(64).build().unwrap();
    let q: Vec<f32> = (0..24).map(|i| (i % 7) as f32 / 4.0 - 0.75).collect();
    for (rows, step) in [(9usize, 5usize), (9, 1), (9, 9), (30, 1), (30, 29), (12, 3)] {
        let x: Vec<f32> = (0..4 * rows).map(|i| (i * 13 % 11) as f32 / 6.0 - 0.8).collect();
        let taken: Vec<bool> = (0..rows).map(|row| row % step == 0).collect();
        let keys: Vec<&[f32]> =
            x.chunks_exact(4).zip(&taken).filter(|(_, own)| **own).map(|(k, _)| k).collect();
        let wanted: Vec<f32> = q
            .chunks_exact(4)
            .flat_map(|q| {
                let dot = |k: &&[f32]| q.iter().zip(*k).map(|(a, b)| a * b).sum::<f32>().exp();
                let weights: Vec<f32> = keys.iter().map(dot).collect();
                let all: f32 = weights.iter().sum();
                let mean = |d: usize| keys.iter().zip(&weights).map(|(k, w)| k[d] * w / all).sum::<f32>();
                [0, 1, 2, 3].map(mean)
            })
            .collect();
        let input = [
            ("q", Tensor::from_slice(&q, [1, 2, 3, 4]).unwrap()),
            ("x", Tensor::from_slice(&x, [rows, 4]).unwrap()),
            ("taken", Tensor::from_slice(&taken, [rows]).unwrap()),
        ];
        let out = session.run(input).unwrap();
        assert!(near(&out[0].to_vec::<f32>().unwrap(), &wanted), "{} of {rows}", keys.len());
    }
}
