//! Trees of version 5, thresholds of 64 bits, and classes by support vectors.

use halite_ops::Values;

use super::{
    classic_tests::{floats, made, near, stumps},
    encode::{FLOAT, INT64, Message, float_list, int, ints, tensor, text, value},
};

const DOUBLE: i64 = 11;

fn float_tensor(name: &str, values: &[f32]) -> Message {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    value(name, &tensor(name, FLOAT, &[values.len() as i64], &bytes))
}

fn double_tensor(name: &str, values: &[f64]) -> Message {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    value(name, &tensor(name, DOUBLE, &[values.len() as i64], &bytes))
}

#[test]
fn trees_ask_for_equal_numbers() {
    for (mode, wanted) in [("BRANCH_EQ", [12.0, 11.0, 12.0]), ("BRANCH_NEQ", [11.0, 12.0, 11.0])] {
        for missing in [false, true] {
            let attributes = stumps(mode, missing);
            let graph =
                made("TreeEnsembleRegressor", &attributes, (FLOAT, 1), &[(FLOAT, Some(1))], 4).unwrap();
            let nan = if missing || mode == "BRANCH_NEQ" { 11.0 } else { 12.0 };
            near(&floats(&graph, &[0.25, 0.5, 0.75, f64::NAN])[0].floats(), &[&wanted[..], &[nan]].concat());
        }
    }
}

/// Thresholds that no 32-bit float is equal to: of two features that are a little apart one is below. With 32-bit features none is rounded to
/// a feature that it is below of.
#[test]
fn thresholds_may_have_64_bits() {
    let threshold = 0.1_f64;
    let mut attributes = stumps("BRANCH_LEQ", false);
    attributes[3] = double_tensor("nodes_values_as_tensor", &[threshold, 0.0, 0.0, 0.0]);
    attributes[11] = double_tensor("target_weights_as_tensor", &[1.0, 2.0]);
    attributes[13] = double_tensor("base_values_as_tensor", &[0.0]);
    let of = |kind: i64, x: &[f64]| {
        let graph =
            made("TreeEnsembleRegressor", &attributes, (kind, 1), &[(FLOAT, Some(1))], x.len() as i64);
        floats(&graph.unwrap(), x)[0].floats()
    };
    let near_threshold = [threshold, threshold.next_up(), threshold.next_down(), -0.0, f64::NEG_INFINITY];
    near(&of(DOUBLE, &near_threshold), &[1.0, 2.0, 1.0, 1.0, 1.0]);
    near(&of(DOUBLE, &[f64::NAN, -f64::NAN, f64::INFINITY, -1e300]), &[2.0, 2.0, 2.0, 1.0]);
    let single = f64::from(0.1_f32);
    assert!(single > threshold);
    near(&of(FLOAT, &[single, f64::from(0.1_f32.next_down())]), &[2.0, 1.0]);
}

/// Nodes 0 (is feature 0 one of 1, 3, 5) and 1 (feature 1 is at most 0.5), leaves of 1, 10 and 100, the first of them in both.
fn ensemble(more: &[Message]) -> Vec<Message> {
    let mut all = vec![
        ints("nodes_featureids", &[0, 1]),
        float_tensor("nodes_splits", &[0.0, 0.5]),
        value("nodes_modes", &tensor("modes", 2, &[2], &[6, 0])),
        ints("nodes_truenodeids", &[0, 1]),
        ints("nodes_trueleafs", &[1, 1]),
        ints("nodes_falsenodeids", &[1, 2]),
        ints("nodes_falseleafs", &[0, 1]),
        float_tensor("membership_values", &[5.0, 1.0, 3.0, f32::NAN]),
        ints("leaf_targetids", &[0, 1, 0]),
        float_tensor("leaf_weights", &[1.0, 10.0, 100.0]),
        ints("tree_roots", &[0]),
        int("n_targets", 2),
    ];
    all.extend_from_slice(more);
    all
}

#[test]
fn trees_of_version_5_have_leaves_and_sets() {
    let x = [1.0, 0.0, 2.0, 0.0, 3.0, 1.0, 4.0, 1.0, 5.0, 0.0, f64::NAN, 0.0];
    let of = |more: &[Message]| {
        let graph = made("TreeEnsemble", &ensemble(more), (FLOAT, 2), &[(FLOAT, Some(2))], 6).unwrap();
        floats(&graph, &x)[0].floats()
    };
    let wanted = [1.0, 0.0, 0.0, 10.0, 1.0, 0.0, 100.0, 0.0, 1.0, 0.0, 0.0, 10.0];
    near(&of(&[]), &wanted);
    // What no leaf gives anything to is 0 among the largest and smallest, too.
    near(&of(&[int("aggregate_function", 2)]), &wanted);
    near(&of(&[ints("nodes_missing_value_tracks_true", &[1, 0])])[10..], &[1.0, 0.0]);
    let share = of(&[int("post_transform", 2)]);
    near(&share[..2], &[1.0 / (1.0 + (-1.0_f64).exp()), 0.5]);
}

#[test]
fn trees_of_version_5_that_are_none_are_refused() {
    for (place, message, wanted) in [
        (3, ints("nodes_truenodeids", &[3, 1]), "leaf 3 of 3"),
        (5, ints("nodes_falsenodeids", &[0, 2]), "two ways"),
        (5, ints("nodes_falsenodeids", &[-1, 2]), "node -1 of 2"),
        (10, ints("tree_roots", &[2]), "begins with node 2"),
        (10, ints("tree_roots", &[]), "circle"),
        (7, float_tensor("membership_values", &[]), "less sets"),
        (2, value("nodes_modes", &tensor("modes", 2, &[2], &[7, 0])), "compares by 7"),
        (8, ints("leaf_targetids", &[0, 2, 0]), "result 2 of 2"),
        (0, ints("nodes_featureids", &[0, 2]), "reads feature 2"),
        (11, int("n_targets", 0), "0 results"),
    ] {
        let mut attributes = ensemble(&[]);
        attributes[place] = message;
        let error = made("TreeEnsemble", &attributes, (FLOAT, 2), &[(FLOAT, Some(2))], 1).unwrap_err();
        assert!(error.to_string().contains(wanted), "{error}");
    }
}

const VECTORS: [[f64; 2]; 4] = [[1.0, 0.0], [0.5, -1.0], [-1.0, 0.5], [0.0, 2.0]];
const COEFFICIENTS: [[f64; 4]; 2] = [[1.0, -0.5, 0.75, -0.25], [0.5, 1.5, -1.0, -0.75]];
const OFFSETS: [f64; 3] = [0.1, -0.2, 0.3];

/// Three classes with 1, 2 and 1 vectors.
fn vectors(more: &[Message]) -> Vec<Message> {
    let list = |name: &str, all: &[f64]| {
        float_list(name, &all.iter().map(|value| *value as f32).collect::<Vec<_>>())
    };
    let mut all = vec![
        ints("classlabels_ints", &[7, 8, 9]),
        text("kernel_type", "LINEAR"),
        ints("vectors_per_class", &[1, 2, 1]),
        list("support_vectors", VECTORS.as_flattened()),
        list("coefficients", COEFFICIENTS.as_flattened()),
        list("rho", &OFFSETS),
    ];
    all.extend_from_slice(more);
    all
}

/// The scores of pairs (0, 1), (0, 2) and (1, 2).
fn scores(x: [f64; 2]) -> [f64; 3] {
    let value = |vector: usize| VECTORS[vector][0] * x[0] + VECTORS[vector][1] * x[1];
    let sum = |row: usize, vectors: std::ops::Range<usize>| {
        vectors.map(|vector| COEFFICIENTS[row][vector] * value(vector)).sum::<f64>()
    };
    [
        sum(0, 0..1) + sum(0, 1..3) + OFFSETS[0],
        sum(1, 0..1) + sum(0, 3..4) + OFFSETS[1],
        sum(1, 1..3) + sum(1, 3..4) + OFFSETS[2],
    ]
}

const LINES: [[f64; 2]; 3] = [[1.0, 2.0], [-0.5, 0.25], [3.0, -1.0]];

#[test]
fn support_vectors_vote_for_classes() {
    let results = [(INT64, None), (FLOAT, Some(3))];
    let graph = made("SVMClassifier", &vectors(&[]), (FLOAT, 2), &results, 3).unwrap();
    let found = floats(&graph, LINES.as_flattened());
    near(&found[1].floats(), LINES.map(scores).as_flattened());
    let voted = LINES.map(|line| {
        let [first, second, third] = scores(line).map(|score| score > 0.0);
        let votes = [[first, second], [!first, third], [!second, !third]];
        let votes = votes.map(|own| own.into_iter().filter(|won| *won).count());
        let most = *votes.iter().max().unwrap();
        [7, 8, 9][votes.iter().position(|own| *own == most).unwrap()]
    });
    assert_eq!(found[0], Values::Int(voted.to_vec()));
}

/// Sums of products of 16,777,216 are 1 off in 32 bits.
#[test]
fn large_coefficients_whose_sums_are_small_are_summed_exactly() {
    let large = 16_777_216.0;
    let attributes = [
        ints("classlabels_ints", &[7, 8]),
        text("kernel_type", "LINEAR"),
        ints("vectors_per_class", &[2, 1]),
        float_list("support_vectors", &[1.0, 1.0, -1.0]),
        float_list("coefficients", &[large, 1.0, large]),
        float_list("rho", &[0.0]),
    ];
    let results = [(INT64, None), (FLOAT, Some(2))];
    let graph = made("SVMClassifier", &attributes, (FLOAT, 1), &results, 2).unwrap();
    near(&floats(&graph, &[3.0, -3.0])[1].floats(), &[-3.0, 3.0, 3.0, -3.0]);
}

/// Shares are what is least of the quadratic form of probabilities of pairs: so near that scikit-learn stops, too.
#[test]
fn probabilities_of_pairs_become_shares() {
    let factors = [float_list("prob_a", &[-1.0, -2.0, -0.5]), float_list("prob_b", &[0.0, 0.1, -0.1])];
    let results = [(INT64, None), (FLOAT, Some(3))];
    let graph = made("SVMClassifier", &vectors(&factors), (FLOAT, 2), &results, 3).unwrap();
    let found = floats(&graph, LINES.as_flattened())[1].floats();
    for (line, shares) in LINES.iter().zip(found.chunks(3)) {
        let moved = scores(*line).into_iter().zip([(-1.0, 0.0), (-2.0, 0.1), (-0.5, -0.1)]);
        let pairs: Vec<f64> = moved.map(|(score, (a, b))| 1.0 / (1.0 + (a * score + b).exp())).collect();
        let [a, b, c] = [pairs[0], pairs[1], pairs[2]];
        let of = [[0.0, a, b], [1.0 - a, 0.0, c], [1.0 - b, 1.0 - c, 0.0]];
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-5, "{shares:?}");
        let row =
            |i: usize| (0..3).map(|j| of[j][i] * (of[j][i] * shares[i] - of[i][j] * shares[j])).sum::<f64>();
        let form: f64 = (0..3).map(|i| shares[i] * row(i)).sum();
        assert!((0..3).all(|i| (row(i) - form).abs() < 0.005 / 3.0 + 1e-5), "{shares:?}");
    }
}

#[test]
fn support_vectors_that_do_not_fit_are_refused() {
    let results = [(INT64, None), (FLOAT, Some(3))];
    for (place, message, wanted) in [
        (2, ints("vectors_per_class", &[1, 2]), "classes"),
        (2, ints("vectors_per_class", &[1, -1, 1]), "a class has -1 vectors"),
        (2, ints("vectors_per_class", &[1, 2, 1 << 40]), "coefficients"),
        (3, float_list("support_vectors", &[1.0; 7]), "7 numbers"),
        (4, float_list("coefficients", &[1.0; 7]), "7 coefficients"),
        (5, float_list("rho", &[1.0; 2]), "2 offsets"),
        (0, ints("classlabels_ints", &[7]), "less than two"),
    ] {
        let mut attributes = vectors(&[]);
        attributes[place] = message;
        let error = made("SVMClassifier", &attributes, (FLOAT, 2), &results, 1).unwrap_err();
        assert!(error.to_string().contains(wanted), "{error}");
    }
    let factors = [float_list("prob_a", &[-1.0, -2.0])];
    assert!(made("SVMClassifier", &vectors(&factors), (FLOAT, 2), &results, 1).is_err());
}

/// Without vectors there is a score for each class; of two the second is chosen wherever a score is large.
#[test]
fn classes_without_vectors_have_scores_each() {
    let attributes = [
        ints("classlabels_ints", &[7, 8]),
        float_list("coefficients", &[1.0, 0.5, -1.0, 2.0]),
        float_list("rho", &[0.25]),
        text("post_transform", "SOFTMAX"),
    ];
    let results = [(INT64, None), (FLOAT, Some(2))];
    let graph = made("SVMClassifier", &attributes, (FLOAT, 2), &results, 2).unwrap();
    let found = floats(&graph, &[1.0, 1.0, -1.0, -2.0]);
    // Scores (1.75, 1.25) and (-1.75, -2.75).
    assert_eq!(found[0], Values::Int(vec![8, 7]));
    let share = |a: f64, b: f64| [1.0 / (1.0 + (b - a).exp()), 1.0 / (1.0 + (a - b).exp())];
    near(&found[1].floats(), &[share(1.75, 1.25), share(-1.75, -2.75)].concat());
}

#[test]
fn scores_become_what_a_normal_distribution_has_below() {
    let attributes = [
        float_list("coefficients", &[1.0]),
        float_list("intercepts", &[0.0]),
        text("post_transform", "PROBIT"),
    ];
    let graph = made("LinearRegressor", &attributes, (FLOAT, 1), &[(FLOAT, Some(1))], 4).unwrap();
    let found = floats(&graph, &[0.5, 0.975, 0.025, 0.9])[0].floats();
    for (found, wanted) in found.iter().zip([0.0, 1.959964, -1.959964, 1.281552]) {
        assert!((found - wanted).abs() < 6e-3, "{found} is not {wanted}");
    }
}
