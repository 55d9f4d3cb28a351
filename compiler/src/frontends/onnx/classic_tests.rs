//! Operators of `ai.onnx.ml`, as the converters of scikit-learn and of boosted trees write them.

use halite_ops::Values;

use super::{
    Model,
    encode::{FLOAT, INT64, Message, float, float_list, graph, int, ints, model, node, port, text, texts},
};
/// The number of ONNX for texts.
const STRING: i64 = 8;

use crate::{CompileError, graph::Graph, signature::Bindings};

/// A model of one operator, from lines of features to results of these kinds and numbers of columns (none for a vector).
pub(super) fn made(
    operator: &str,
    attributes: &[Message],
    features: (i64, i64),
    results: &[(i64, Option<i64>)],
    lines: i64,
) -> Result<Graph, CompileError> {
    let names: Vec<String> = (0..results.len()).map(|at| format!("y{at}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let node = node(&format!("ai.onnx.ml:{operator}"), &["x"], &names, attributes);
    let port_of = |(name, (kind, columns)): (&&str, &(i64, Option<i64>))| match columns {
        Some(columns) => port(name, *kind, &[lines, *columns]),
        None => port(name, *kind, &[lines]),
    };
    let outputs: Vec<Message> = names.iter().zip(results).map(port_of).collect();
    let input = port("x", features.0, &[lines, features.1]);
    let bytes = model(&graph(&[node], &[], &[input], &outputs), &[]);
    Model::from_bytes(bytes).unwrap().graph(&Bindings::default())
}

pub(super) fn floats(graph: &Graph, x: &[f64]) -> Vec<Values> {
    graph.evaluate(&[Values::Float(x.to_vec())]).unwrap()
}

pub(super) fn near(found: &[f64], wanted: &[f64]) {
    let same = found.len() == wanted.len() && found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-5);
    assert!(same, "{found:?} is not {wanted:?}");
}

/// One feature, a node with two leaves of 1 and 2 in each of two trees, the second without effect.
pub(super) fn stumps(mode: &str, missing: bool) -> Vec<Message> {
    vec![
        ints("nodes_treeids", &[0, 0, 0, 7]),
        ints("nodes_nodeids", &[0, 1, 2, 0]),
        ints("nodes_featureids", &[0, 0, 0, 0]),
        float_list("nodes_values", &[0.5, 0.0, 0.0, 0.0]),
        texts("nodes_modes", &[mode, "LEAF", "LEAF", "LEAF"]),
        ints("nodes_truenodeids", &[1, 0, 0, 0]),
        ints("nodes_falsenodeids", &[2, 0, 0, 0]),
        ints("nodes_missing_value_tracks_true", &[i64::from(missing), 0, 0, 0]),
        ints("target_treeids", &[0, 0]),
        ints("target_nodeids", &[1, 2]),
        ints("target_ids", &[0, 0]),
        float_list("target_weights", &[1.0, 2.0]),
        int("n_targets", 1),
        float_list("base_values", &[10.0]),
    ]
}

#[test]
fn trees_compare_in_six_ways_and_know_what_is_missing() {
    for (mode, wanted) in [
        ("BRANCH_LEQ", [11.0, 11.0, 12.0]),
        ("BRANCH_LT", [11.0, 12.0, 12.0]),
        ("BRANCH_GTE", [12.0, 11.0, 11.0]),
        ("BRANCH_GT", [12.0, 12.0, 11.0]),
    ] {
        for missing in [false, true] {
            let graph =
                made("TreeEnsembleRegressor", &stumps(mode, missing), (FLOAT, 1), &[(FLOAT, Some(1))], 4)
                    .unwrap();
            let nan = if missing { 11.0 } else { 12.0 };
            near(&floats(&graph, &[0.25, 0.5, 0.75, f64::NAN])[0].floats(), &[&wanted[..], &[nan]].concat());
        }
    }
}

#[test]
fn trees_that_are_none_are_refused() {
    let refused = |change: &dyn Fn(&mut Vec<Message>)| {
        let mut attributes = stumps("BRANCH_LEQ", false);
        change(&mut attributes);
        made("TreeEnsembleRegressor", &attributes, (FLOAT, 1), &[(FLOAT, Some(1))], 1)
            .unwrap_err()
            .to_string()
    };
    let with = |place: usize, message: fn() -> Message| move |all: &mut Vec<Message>| all[place] = message();
    for (place, message, wanted) in [
        (5, (|| ints("nodes_truenodeids", &[9, 0, 0, 0])) as fn() -> Message, "not there"),
        (5, || ints("nodes_truenodeids", &[2, 0, 0, 0]), "two ways"),
        (5, || ints("nodes_truenodeids", &[1, 0, 0]), "lists have"),
        (6, || ints("nodes_falsenodeids", &[0, 0, 0, 0]), "two ways"),
        (4, || texts("nodes_modes", &["BRANCH_SO", "LEAF", "LEAF", "LEAF"]), "BRANCH_SO"),
        (2, || ints("nodes_featureids", &[1, 0, 0, 0]), "reads feature 1"),
        (10, || ints("target_ids", &[0, 1]), "not there"),
        (12, || int("n_targets", 1 << 60), ""),
        (13, || float_list("base_values", &[1.0, 2.0]), "2 base values"),
    ] {
        let text = refused(&with(place, message));
        assert!(text.contains(wanted), "{text}");
    }
    let text = refused(&|all| {
        all[4] = texts("nodes_modes", &["LEAF", "BRANCH_LEQ", "BRANCH_LEQ", "LEAF"]);
        all[5] = ints("nodes_truenodeids", &[0, 2, 1, 0]);
        all[6] = ints("nodes_falsenodeids", &[0, 2, 1, 0]);
    });
    assert!(text.contains("circle"), "{text}");
}

#[test]
fn weights_of_the_second_class_alone_leave_the_first_none() {
    let labels = [ints("classlabels_int64s", &[5, 9])];
    let attributes = classes(&[(3, 1, 0.25), (4, 1, 0.75), (2, 1, 1.0)], &labels);
    let results = [(INT64, None), (FLOAT, Some(2))];
    let graph = made("TreeEnsembleClassifier", &attributes, (FLOAT, 2), &results, 3).unwrap();
    let found = floats(&graph, &[1.0, -1.0, 3.0, -1.0, 0.0, 1.0]);
    assert_eq!(found[0], Values::Int(vec![5, 9, 9]));
    near(&found[1].floats(), &[0.0, 0.25, 0.0, 0.75, 0.0, 1.0]);
}

/// Two features; class scores of one tree.
fn classes(given: &[(i64, i64, f32)], more: &[Message]) -> Vec<Message> {
    let list = |name: &str, value: &dyn Fn(&(i64, i64, f32)) -> i64| {
        ints(name, &given.iter().map(value).collect::<Vec<_>>())
    };
    let mut all = vec![
        ints("nodes_treeids", &[0; 5]),
        ints("nodes_nodeids", &[0, 1, 2, 3, 4]),
        ints("nodes_featureids", &[1, 0, 0, 0, 0]),
        float_list("nodes_values", &[0.0, 2.0, 0.0, 0.0, 0.0]),
        texts("nodes_modes", &["BRANCH_LEQ", "BRANCH_LEQ", "LEAF", "LEAF", "LEAF"]),
        ints("nodes_truenodeids", &[1, 3, 0, 0, 0]),
        ints("nodes_falsenodeids", &[2, 4, 0, 0, 0]),
        list("class_treeids", &|_| 0),
        list("class_nodeids", &|given| given.0),
        list("class_ids", &|given| given.1),
        float_list("class_weights", &given.iter().map(|given| given.2).collect::<Vec<_>>()),
    ];
    all.extend_from_slice(more);
    all
}

#[test]
fn trees_choose_classes() {
    let x = [1.0, -1.0, 3.0, -1.0, 0.0, 1.0];
    let of = |given: &[(i64, i64, f32)], more: &[Message], labels: &[i64]| {
        let attributes = classes(given, &[&[ints("classlabels_int64s", labels)], more].concat());
        let results = [(INT64, None), (FLOAT, Some(labels.len() as i64))];
        let graph = made("TreeEnsembleClassifier", &attributes, (FLOAT, 2), &results, 3).unwrap();
        floats(&graph, &x)
    };
    // Shares of one of two classes: the other has the rest.
    let shares = of(&[(3, 0, 0.25), (4, 0, 0.75), (2, 0, 1.0)], &[], &[5, 9]);
    assert_eq!(shares[0], Values::Int(vec![5, 9, 9]));
    near(&shares[1].floats(), &[0.75, 0.25, 0.25, 0.75, 0.0, 1.0]);
    // Scores of both signs, as boosted trees have them, and of one.
    let logistic = [text("post_transform", "LOGISTIC")];
    let positive = of(&[(3, 0, 0.25), (4, 0, 0.75), (2, 0, 1.0)], &logistic, &[5, 9]);
    let [low, high] = [-1.0_f64, 1.0].map(|score| 1.0 / (1.0 + (-score).exp()));
    near(&positive[1].floats()[4..], &[low, high]);
    let scores = of(&[(3, 0, -1.0), (4, 0, 2.0), (2, 0, 0.0)], &logistic, &[5, 9]);
    assert_eq!(scores[0], Values::Int(vec![5, 9, 5]));
    let share = |score: f64| 1.0 / (1.0 + (-score).exp());
    near(&scores[1].floats(), &[share(1.0), share(-1.0), share(-2.0), share(2.0), 0.5, 0.5]);
    let three = of(
        &[(3, 0, 1.0), (4, 1, 1.0), (2, 2, 1.0), (2, 0, 0.5)],
        &[text("post_transform", "SOFTMAX_ZERO")],
        &[3, 2, 1],
    );
    assert_eq!(three[0], Values::Int(vec![3, 2, 1]));
    let first = 0.5f64.exp() / (0.5f64.exp() + 1f64.exp());
    near(&three[1].floats(), &[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, first, 0.0, 1.0 - first]);
}

#[test]
fn linear_models_have_coefficients_for_each_result() {
    let attributes = [
        float_list("coefficients", &[1.0, 2.0, -1.0, 0.5]),
        float_list("intercepts", &[0.25, 1.0]),
        ints("classlabels_ints", &[4, 8]),
        text("post_transform", "SOFTMAX"),
    ];
    let results = [(INT64, None), (FLOAT, Some(2))];
    let graph = made("LinearClassifier", &attributes, (FLOAT, 2), &results, 2).unwrap();
    let found = floats(&graph, &[1.0, 1.0, -2.0, 0.0]);
    assert_eq!(found[0], Values::Int(vec![4, 8]));
    let share = |a: f64, b: f64| [1.0 / (1.0 + (b - a).exp()), 1.0 / (1.0 + (a - b).exp())];
    near(&found[1].floats(), &[share(3.25, 0.5), share(-1.75, 3.0)].concat());
    let attributes = [&attributes[..2], &[int("targets", 2)]].concat();
    let graph = made("LinearRegressor", &attributes, (FLOAT, 2), &[(FLOAT, Some(2))], 2).unwrap();
    near(&floats(&graph, &[1.0, 1.0, -2.0, 0.0])[0].floats(), &[3.25, 0.5, -1.75, 3.0]);
    let names = texts("classlabels_strings", &["cat", "dog"]);
    let attributes = [&attributes[..2], &[names]].concat();
    let results = [(STRING, None), results[1]];
    let graph = made("LinearClassifier", &attributes, (FLOAT, 2), &results, 2).unwrap();
    assert_eq!(floats(&graph, &[1.0, 1.0, -2.0, 0.0])[0], Values::Int(vec![0, 1]), "places of the classes");
}

#[test]
fn features_are_prepared() {
    let of = |operator: &str, attributes: &[Message], x: &[f64]| {
        let columns = x.len() as i64 / 2;
        let graph = made(operator, attributes, (FLOAT, columns), &[(FLOAT, Some(columns))], 2).unwrap();
        floats(&graph, x)[0].floats()
    };
    near(&of("Binarizer", &[float("threshold", 1.0)], &[1.0, 1.5, -2.0, 3.0]), &[0.0, 1.0, 0.0, 1.0]);
    let scale = [float_list("offset", &[1.0, 2.0]), float_list("scale", &[10.0])];
    near(&of("Scaler", &scale, &[1.0, 1.5, -2.0, 3.0]), &[0.0, -5.0, -30.0, 10.0]);
    for (norm, wanted) in [("MAX", [1.0, -4.0 / 3.0]), ("L1", [3.0 / 7.0, -4.0 / 7.0]), ("L2", [0.6, -0.8])] {
        let found = of("Normalizer", &[text("norm", norm)], &[3.0, -4.0, 0.0, 0.0]);
        near(&found, &[wanted[0], wanted[1], 0.0, 0.0]);
    }
    near(
        &of("ZipMap", &[ints("classlabels_int64s", &[0, 1])], &[0.25, 0.75, 1.0, 0.0]),
        &[0.25, 0.75, 1.0, 0.0],
    );
}

#[test]
fn numbers_are_looked_up_and_become_columns() {
    let list = [
        ints("keys_int64s", &[7, -1]),
        float_list("values_floats", &[0.5, 2.0]),
        float("default_float", 9.0),
    ];
    let graph = made("LabelEncoder", &list, (INT64, 3), &[(FLOAT, Some(3))], 1).unwrap();
    let found = graph.evaluate(&[Values::Int(vec![-1, 7, 3])]).unwrap();
    near(&found[0].floats(), &[2.0, 0.5, 9.0]);
    let twice = [ints("keys_int64s", &[7, 7]), ints("values_int64s", &[1, 2])];
    assert!(made("LabelEncoder", &twice, (INT64, 3), &[(INT64, Some(3))], 1).is_err());
    let node = node("ai.onnx.ml:OneHotEncoder", &["x"], &["y"], &[ints("cats_int64s", &[4, 6])]);
    let ends = [port("x", INT64, &[1, 3]), port("y", FLOAT, &[1, 3, 2])];
    let bytes = model(&graph_of(node, &ends), &[]);
    let graph = Model::from_bytes(bytes).unwrap().graph(&Bindings::default()).unwrap();
    let found = graph.evaluate(&[Values::Int(vec![6, 5, 4])]).unwrap();
    near(&found[0].floats(), &[0.0, 1.0, 0.0, 0.0, 1.0, 0.0]);
}

#[test]
fn features_of_several_tensors_lie_beside_each_other() {
    let of = |counts: &[i64]| {
        let node =
            node("ai.onnx.ml:FeatureVectorizer", &["x", "z"], &["y"], &[ints("inputdimensions", counts)]);
        let inputs = [port("x", FLOAT, &[2, 2]), port("z", INT64, &[2, 1])];
        let columns = counts.iter().fold(0_i64, |sum, count| sum.wrapping_add(*count));
        let output = port("y", FLOAT, &[2, columns]);
        let bytes = model(&graph(&[node], &[], &inputs, &[output]), &[]);
        let graph = Model::from_bytes(bytes).unwrap().graph(&Bindings::default())?;
        let made = graph.evaluate(&[Values::Float(vec![1.0, 2.0, 3.0, 4.0]), Values::Int(vec![7, 8])]);
        Ok::<_, CompileError>(made.unwrap()[0].floats())
    };
    near(&of(&[2, 1]).unwrap(), &[1.0, 2.0, 7.0, 3.0, 4.0, 8.0]);
    near(&of(&[1, 2]).unwrap(), &[1.0, 7.0, 0.0, 3.0, 8.0, 0.0]);
    for counts in [&[2][..], &[2, 0], &[-1, 1], &[i64::MIN, 1]] {
        assert!(of(counts).is_err());
    }
    assert!(of(&[1 << 60, 1]).is_err());
}

fn graph_of(node: Message, [x, y]: &[Message; 2]) -> Message {
    graph(&[node], &[], std::slice::from_ref(x), std::slice::from_ref(y))
}

#[test]
fn support_vectors_have_kernels() {
    let dot = |a: [f64; 2], b: [f64; 2]| a[0] * b[0] + a[1] * b[1];
    let (x, vectors) = ([[1.0, 2.0], [-0.5, 0.0]], [[0.5, 1.0], [2.0, -1.0], [0.0, 0.25]]);
    let of = |kind: &str, inside: bool, value: &dyn Fn([f64; 2], [f64; 2]) -> f64| {
        let flat: Vec<f32> = vectors.iter().flatten().map(|number| *number as f32).collect();
        let attributes = [
            text("kernel_type", kind),
            float_list("kernel_params", &[0.5, 0.25, 2.0]),
            float_list("support_vectors", &flat),
            float_list("coefficients", &[1.0, -2.0, 0.5]),
            float_list("rho", &[0.125]),
            int("n_supports", 3),
            int("one_class", i64::from(inside)),
        ];
        let graph = made("SVMRegressor", &attributes, (FLOAT, 2), &[(FLOAT, Some(1))], 2).unwrap();
        let sum = |x: &[f64; 2]| {
            let each = vectors.iter().zip([1.0, -2.0, 0.5]).map(|(own, by)| by * value(*x, *own));
            let sum = each.sum::<f64>() + 0.125;
            if inside { if sum > 0.0 { 1.0 } else { -1.0 } } else { sum }
        };
        near(&floats(&graph, x.as_flattened())[0].floats(), &x.iter().map(sum).collect::<Vec<_>>());
    };
    of("LINEAR", false, &dot);
    of("POLY", false, &|a, b| (0.5 * dot(a, b) + 0.25).powi(2));
    of("SIGMOID", false, &|a, b| (0.5 * dot(a, b) + 0.25).tanh());
    let apart = |a: [f64; 2], b: [f64; 2]| (-0.5 * ((a[0] - b[0]).powi(2) + (a[1] - b[1]).powi(2))).exp();
    of("RBF", false, &apart);
    of("RBF", true, &apart);
}
