//! Rows of tables of codes, and places of rows, as exporters take them.

use halite_ops::Values;

use super::{
    Model,
    encode::{FLOAT, INT64, Message, float, float_list, floats, graph, int, ints, model, node, port, tensor},
};
use crate::{CompileError, graph::Graph, signature::Bindings};

const UINT8: i64 = 2;

fn made(
    node: Message,
    constants: &[Message],
    input: Message,
    output: Message,
) -> Result<Graph, CompileError> {
    let bytes = model(&graph(&[node], constants, &[input], &[output]), &[]);
    Model::from_bytes(bytes).unwrap().graph(&Bindings::default())
}

/// The result for rows 2, 0, 2 and -3 of a table of three rows of 18 codes, in blocks of 16.
fn rows(bits: usize, zeros: Option<&[u8]>) -> Result<Vec<f64>, CompileError> {
    let each = 18 * bits / 8;
    let table: Vec<u8> = (0..3 * each).map(|at| (at * 37 + 11) as u8).collect();
    let scales = [0.5, 2.0, -1.0, 0.25, 4.0, 8.0];
    let mut constants =
        vec![tensor("t", UINT8, &[3, each as i64], &table), tensor("s", FLOAT, &[3, 2], &floats(scales))];
    let mut inputs = vec!["t", "x", "s"];
    if let Some(zeros) = zeros {
        constants.push(tensor("z", UINT8, &[3, zeros.len() as i64 / 3], zeros));
        inputs.push("z");
    }
    let attributes = [int("bits", bits as i64), int("block_size", 16)];
    let node = node("com.microsoft:GatherBlockQuantized", &inputs, &["y"], &attributes);
    let graph = made(node, &constants, port("x", INT64, &[2, 2]), port("y", FLOAT, &[2, 2, 18]))?;
    let results = graph.evaluate(&[Values::Int(vec![2, 0, 2, -3])]).unwrap();
    let code = |bytes: &[u8], each: usize, row: usize, at: usize| match bits {
        4 => i32::from(bytes[row * each + at / 2] >> (at % 2 * 4) & 15),
        _ => i32::from(bytes[row * each + at]),
    };
    let wanted =
        [2usize, 0, 2, 0].into_iter().flat_map(|row| (0..18).map(move |at| (row, at))).map(|(row, at)| {
            let zero = zeros.map_or(1 << (bits - 1), |zeros| code(zeros, zeros.len() / 3, row, at / 16));
            f64::from(code(&table, each, row, at) - zero) * f64::from(scales[row * 2 + at / 16])
        });
    assert_eq!(results[0].floats(), wanted.collect::<Vec<_>>());
    Ok(results[0].floats())
}

#[test]
fn rows_of_codes_in_blocks_are_taken_apart() {
    rows(4, None).unwrap();
    rows(4, Some(&[0x3a, 0x07, 0xf1])).unwrap();
    rows(8, None).unwrap();
    rows(8, Some(&[1, 200, 3, 4, 255, 0])).unwrap();
    let refused = rows(2, None).unwrap_err().to_string();
    assert!(refused.contains("codes of 2 bits") && refused.contains("4 or 8 bits"), "{refused}");
}

#[test]
fn sizes_of_codes_that_cannot_be_are_refused() {
    let most = [int("K", 1 << 62), int("N", 4), int("bits", 8), int("block_size", 16)];
    let constants =
        [tensor("w", UINT8, &[4, 3, 16], &[7; 192]), tensor("s", FLOAT, &[12], &floats([1.0; 12]))];
    let product = node("com.microsoft:MatMulNBits", &["x", "w", "s"], &["y"], &most);
    let (x, y) = (port("x", FLOAT, &[2, 40]), port("y", FLOAT, &[2, 4]));
    let refused = made(product, &constants, x, y).unwrap_err().to_string();
    assert!(refused.contains("K is 4611686018427387904"), "{refused}");

    let constants = [tensor("t", UINT8, &[3, 9], &[7; 27]), tensor("s", FLOAT, &[3, 1], &floats([1.0; 3]))];
    let blocks = [int("bits", 4), int("block_size", i64::MAX)];
    let rows = node("com.microsoft:GatherBlockQuantized", &["t", "x", "s"], &["y"], &blocks);
    let (x, y) = (port("x", INT64, &[2]), port("y", FLOAT, &[2, 18]));
    assert!(made(rows, &constants, x, y).is_err());
}

#[test]
fn features_are_places_of_the_last_dimension() {
    let places = tensor("p", INT64, &[1, 3], &[2i64, 0, 2].map(i64::to_le_bytes).concat());
    for (dims, wanted) in [(vec![2, 3], vec![3.0, 1.0, 3.0, 6.0, 4.0, 6.0]), (vec![3], vec![3.0, 1.0, 3.0])] {
        let result = if dims.len() == 1 { [1, 3] } else { [2, 3] };
        let node = node("ai.onnx.ml:ArrayFeatureExtractor", &["x", "p"], &["y"], &[]);
        let count = dims.iter().product::<i64>();
        let graph =
            made(node, std::slice::from_ref(&places), port("x", FLOAT, &dims), port("y", FLOAT, &result))
                .unwrap();
        let x: Vec<f64> = (1..=count).map(|at| at as f64).collect();
        assert_eq!(graph.evaluate(&[Values::Float(x)]).unwrap()[0].floats(), wanted);
    }
}

#[test]
fn what_is_missing_is_imputed() {
    let of = |kind: i64, attributes: &[Message], dims: &[i64]| {
        let node = node("ai.onnx.ml:Imputer", &["x"], &["y"], attributes);
        made(node, &[], port("x", kind, dims), port("y", kind, dims))
    };
    let [nan, x] = [f64::NAN, 7.0];
    let list = |values: &[f32]| float_list("imputed_value_floats", values);
    for (attributes, input, wanted) in [
        (
            vec![list(&[1.0, 2.0]), float("replaced_value_float", f32::NAN)],
            [nan, x, 0.0, nan],
            [1.0, x, 0.0, 2.0],
        ),
        (vec![list(&[5.0]), float("replaced_value_float", 7.0)], [nan, x, 0.0, x], [nan, 5.0, 0.0, 5.0]),
        (vec![list(&[1.0, 2.0])], [0.0, x, x, -0.0], [1.0, x, x, 2.0]),
    ] {
        let graph = of(FLOAT, &attributes, &[2, 2]).unwrap();
        let result = graph.evaluate(&[Values::Float(input.to_vec())]).unwrap()[0].floats();
        assert!(result.iter().zip(wanted).all(|(a, b)| *a == b || a.is_nan() && b.is_nan()), "{result:?}");
    }
    let all = [ints("imputed_value_int64s", &[10, 20, 30]), int("replaced_value_int64", -1)];
    let graph = of(INT64, &all, &[1, 3]).unwrap();
    let result = graph.evaluate(&[Values::Int(vec![-1, 5, -1])]).unwrap();
    assert_eq!(result[0], Values::Int(vec![10, 5, 30]));
    for (attributes, wanted) in [(vec![list(&[1.0, 2.0, 3.0])], "has 3 values"), (vec![], "has 0 values")] {
        let refused = of(FLOAT, &attributes, &[2, 2]).unwrap_err().to_string();
        assert!(refused.contains(wanted) && refused.contains("one for each feature"), "{refused}");
    }
    let refused = of(FLOAT, &[list(&[1.0, 2.0])], &[2, 3, 2]).unwrap_err().to_string();
    assert!(refused.contains("no list of lines"), "{refused}");
    assert!(of(FLOAT, &[list(&[1.0])], &[2, 3, 2]).is_ok());
}

#[test]
fn products_with_matrices_that_places_choose_do_not_move_them() {
    let weights: Vec<f32> = (0..3 * 32 * 32).map(|at| (at * 29 % 61) as f32 / 16.0 - 2.0).collect();
    let x: Vec<f64> = (0..4 * 32).map(|at| f64::from(at * 7 % 11) - 5.0).collect();
    let places = [2i64, 0, -1, 1];
    // Weights before columns, and behind rows.
    for before in [true, false] {
        let names = if before { ["m", "x"] } else { ["x", "m"] };
        let nodes = [node("Gather", &["w", "p"], &["m"], &[]), node("MatMul", &names, &["y"], &[])];
        let line = if before { [4, 32, 1] } else { [4, 1, 32] };
        let constants = [tensor("w", FLOAT, &[3, 32, 32], &floats(weights.iter().copied()))];
        let inputs = [port("x", FLOAT, &line), port("p", INT64, &[4])];
        let bytes = model(&graph(&nodes, &constants, &inputs, &[port("y", FLOAT, &line)]), &[]);
        let graph = Model::from_bytes(bytes).unwrap().graph(&Bindings::default()).unwrap();
        assert!(format!("{graph:?}").contains("ExpertMatMul"), "weights are moved");
        let found = graph.evaluate(&[Values::Float(x.clone()), Values::Int(places.to_vec())]).unwrap();
        let wanted = (0..4 * 32).map(|at| {
            let (row, own) = (at / 32, at % 32);
            let matrix = places[row].rem_euclid(3) as usize * 1024;
            let at = |k: usize| if before { own * 32 + k } else { k * 32 + own };
            (0..32).map(|k| f64::from(weights[matrix + at(k)]) * x[row * 32 + k]).sum::<f64>()
        });
        let (found, wanted) = (found[0].floats(), wanted.collect::<Vec<_>>());
        assert!(found.iter().zip(&wanted).all(|(a, b)| (a - b).abs() < 1e-3), "{found:?} for {wanted:?}");
    }
}
