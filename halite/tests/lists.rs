//! Lists of models as inputs and outputs: [`Value::List`] with all of their tensors, whatever stands beside them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use crate::common::{
    builder, device,
    onnx::{self, F32, I64},
};
use halite::{
    ErrorKind, Inputs, Outputs, Session, Tensor, Value,
    compile::{Checker, Model},
};

fn floats(values: &[f32]) -> Tensor {
    Tensor::from_slice(values, [values.len()]).unwrap()
}

fn list(value: &Value) -> Vec<Vec<f32>> {
    let Value::List(elements) = value else { panic!("{value:?} is no list") };
    elements.iter().map(|element| element.as_tensor().unwrap().to_vec().unwrap()).collect()
}

/// `y` is the list of `x` and `z`, before or behind `w` = -x; `none` is an empty list.
fn mixed(order: &[&str]) -> Vec<u8> {
    let output = |name: &&str| match *name {
        "w" => onnx::value(12, "w", &["n"]),
        list => onnx::list_value(12, list, F32),
    };
    let mut parts = vec![
        onnx::node("SequenceConstruct", &["x", "z"], &["y"]),
        onnx::node("SequenceEmpty", &[], &["none"]),
        onnx::node("Neg", &["x"], &["w"]),
        onnx::value(11, "x", &["n"]),
        onnx::value(11, "z", &["m"]),
    ];
    parts.extend(order.iter().map(output));
    onnx::model(&parts)
}

fn check_mixed(out: &Outputs, order: &[&str], x: &[f32], z: &[f32]) {
    assert_eq!(out.names().collect::<Vec<_>>(), order);
    for (name, value) in out.iter() {
        match name {
            "y" => assert_eq!(list(value), [x, z]),
            "none" => assert_eq!(list(value), [[0f32; 0]; 0]),
            _ => assert_eq!(
                value.as_tensor().unwrap().to_vec::<f32>().unwrap(),
                x.iter().map(|x| -x).collect::<Vec<_>>()
            ),
        }
    }
}

#[test]
fn outputs_beside_lists_are_their_own() {
    let Some(device) = device() else { return };
    for order in [&["y", "w"][..], &["w", "y"], &["none", "w"], &["w", "none", "y"], &["y"], &["none"]] {
        let session = builder(&device).model(mixed(order)).build().unwrap();
        for (x, z) in [(&[1f32, 2.0][..], &[3f32, 4.0, 5.0][..]), (&[7.0], &[8.0]), (&[9.0; 6], &[1.5; 2])] {
            let inputs = [("x", floats(x)), ("z", floats(z))];
            check_mixed(&session.run(inputs.clone()).unwrap(), order, x, z);
            let call = session.start(inputs.clone()).unwrap();
            check_mixed(&call.wait_with(&halite::RunOptions::new()).unwrap(), order, x, z);
            check_mixed(&call.wait().unwrap(), order, x, z);
            check_mixed(&session.profile(inputs).unwrap().0, order, x, z);
        }
    }
}

/// `y` is the tensor at `place` of the list `s`, and `count` how many it has.
fn taken(place: i64) -> Vec<u8> {
    onnx::model(&[
        onnx::node("SequenceAt", &["s", "place"], &["y"]),
        onnx::node("SequenceLength", &["s"], &["count"]),
        onnx::typed_constant("place", I64, &[], &place.to_le_bytes()),
        onnx::list_value(11, "s", F32),
        onnx::value(12, "y", &["n"]),
        onnx::typed_value(12, "count", I64, &[]),
    ])
}

fn give(tensors: &[&[f32]]) -> Inputs {
    let all = tensors.iter().map(|values| Value::Tensor(floats(values))).collect();
    Inputs::new().with("s", Value::List(all))
}

#[test]
fn lists_are_handed_in() {
    let Some(device) = device() else { return };
    let session = builder(&device).model(taken(1)).build().unwrap();
    let run = |session: &Session, tensors: &[&[f32]]| {
        let out = session.run(give(tensors)).unwrap();
        (out["y"].to_vec::<f32>().unwrap(), out["count"].item::<i64>().unwrap())
    };
    assert_eq!(run(&session, &[&[1.0], &[2.0, 3.0]]), (vec![2.0, 3.0], 2));
    assert_eq!(run(&session, &[&[1.0], &[4.0, 5.0]]), (vec![4.0, 5.0], 2));
    assert_eq!(run(&session, &[&[1.0, 2.0], &[6.0], &[7.0]]), (vec![6.0], 3));
    let (out, _) = session.profile(give(&[&[1.0], &[8.0]])).unwrap();
    assert_eq!(out["y"].to_vec::<f32>().unwrap(), [8.0]);
    let report = Checker::new()
        .runs(2)
        .recorded("y", floats(&[2.0]))
        .check(&Model::open(taken(1)).unwrap(), &device, give(&[&[1.0], &[2.0]]))
        .unwrap();
    assert!(report.recorded[0].found && report.recorded[0].wrong == 0, "{report:?}");
}

#[test]
fn what_is_no_list_of_the_right_tensors_is_refused() {
    let Some(device) = device() else { return };
    let session = builder(&device).model(taken(1)).build().unwrap();
    let refused = |inputs: Inputs| {
        let error = session.run(inputs).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        error.message().to_owned()
    };
    assert!(refused([("s", floats(&[1.0]))].into()).contains("it is a list of tensors"));
    assert!(refused(Inputs::new()).contains("'s' sequence"));
    let of = |value: Value| Inputs::new().with("s", Value::List(vec![floats(&[1.0]).into(), value]));
    let whole = refused(of(Tensor::from_slice(&[1i32], [1]).unwrap().into()));
    assert!(whole.contains("element 1 of the input 's'") && whole.contains("are f32"), "{whole}");
    assert!(refused(of(Value::F32(1.0))).contains("cannot be a f32"));
}

#[test]
fn optional_values_that_are_not_there_leave_their_places() {
    let Some(device) = device() else { return };
    let model = onnx::model(&[
        onnx::node("Optional", &["x"], &["there"]),
        onnx::node("Neg", &["x"], &["w"]),
        onnx::value(11, "x", &["2"]),
        onnx::optional_value(11, "given", F32, &[2]),
        onnx::optional_value(12, "given", F32, &[2]),
        onnx::optional_value(12, "there", F32, &[2]),
        onnx::value(12, "w", &["2"]),
    ]);
    let session = builder(&device).model(model).build().unwrap();
    let x = floats(&[1.0, 2.0]);
    for given in [None, Some(floats(&[3.0, 4.0])), None] {
        let inputs = Inputs::new().with("x", &x);
        let inputs = given.iter().fold(inputs, |inputs, given| inputs.with("given", given));
        let out = session.run(inputs).unwrap();
        let found = out.get("given").unwrap().as_tensor().map(|tensor| tensor.to_vec::<f32>().unwrap());
        assert_eq!(found, given.map(|given| given.to_vec::<f32>().unwrap()));
        assert_eq!(out["there"].to_vec::<f32>().unwrap(), [1.0, 2.0]);
        assert_eq!(out["w"].to_vec::<f32>().unwrap(), [-1.0, -2.0]);
    }
}

#[test]
fn state_beside_a_list_is_its_own() {
    let Some(device) = device() else { return };
    // The list of `x` and the old state in front of the new state and their sum.
    let model = onnx::model(&[
        onnx::node("SequenceConstruct", &["x", "past_a"], &["y"]),
        onnx::node("Add", &["x", "past_a"], &["present_a"]),
        onnx::node("Neg", &["x"], &["w"]),
        onnx::value(11, "x", &["2"]),
        onnx::value(11, "past_a", &["2"]),
        onnx::list_value(12, "y", F32),
        onnx::value(12, "present_a", &["2"]),
        onnx::value(12, "w", &["2"]),
    ]);
    let session = builder(&device).state("past_*", "present_*").model(model).build().unwrap();
    let mut state = session.state().unwrap();
    for turn in 0..3 {
        let past = turn as f32;
        let out = state.run([("x", floats(&[1.0, 2.0]))]).unwrap();
        assert_eq!(out.names().collect::<Vec<_>>(), ["y", "w"]);
        assert_eq!(list(&out.values()[0]), [[1.0, 2.0], [past, 2.0 * past]]);
        assert_eq!(out["w"].to_vec::<f32>().unwrap(), [-1.0, -2.0]);
    }
    assert_eq!(state.tensor("past_a").unwrap().unwrap().to_vec::<f32>().unwrap(), [3.0, 6.0]);
}
