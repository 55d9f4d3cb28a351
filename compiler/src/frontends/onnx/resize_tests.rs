//! Resizing as tf2onnx writes it for TensorFlow's nearest neighbours.

use halite_ops::Values;

use super::{
    Model,
    encode::{FLOAT, INT64, graph, model, node, port, tensor, text},
};
use crate::{CompileError, graph::Graph, signature::Bindings};

fn resized(from: i64, to: i64, nearest: &str) -> Result<Graph, CompileError> {
    let sizes = tensor("s", INT64, &[2], &[1i64.to_le_bytes(), to.to_le_bytes()].concat());
    let attributes = [
        text("coordinate_transformation_mode", "tf_half_pixel_for_nn"),
        text("mode", "nearest"),
        text("nearest_mode", nearest),
    ];
    let layer = node("Resize", &["x", "", "", "s"], &["y"], &attributes);
    let graph = graph(&[layer], &[sizes], &[port("x", FLOAT, &[1, from])], &[port("y", FLOAT, &[1, to])]);
    Model::from_bytes(model(&graph, &[])).unwrap().graph(&Bindings::default())
}

#[test]
fn the_nearest_place_is_the_one_that_holds_the_middle() {
    for (from, to) in [(3, 7), (7, 3), (4, 8), (8, 4), (5, 5), (6, 4)] {
        let graph = resized(from, to, "floor").unwrap();
        let x: Vec<f64> = (0..from).map(|at| at as f64).collect();
        // In whole numbers: floor((at + 1/2) * from / to).
        let wanted: Vec<f64> = (0..to).map(|at| ((2 * at + 1) * from / (2 * to)) as f64).collect();
        assert_eq!(graph.evaluate(&[Values::Float(x)]).unwrap()[0].floats(), wanted, "{from} to {to}");
    }
    let refused = resized(3, 7, "ceil").unwrap_err().to_string();
    assert!(refused.contains("tf_half_pixel_for_nn"), "{refused}");
}
