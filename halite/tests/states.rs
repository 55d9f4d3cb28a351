//! State: tensors that live between calls, of models and of modules that were made of them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use crate::common::{builder, device, near, onnx, repo};
use halite::{
    ErrorKind, Session, State, Tensor,
    compile::{Compiler, Model},
};

/// `stateN = state + x`, `y = stateN * 2`.
fn sums() -> Vec<u8> {
    onnx::model(&[
        onnx::node("Add", &["state", "x"], &["stateN"]),
        onnx::node("Mul", &["stateN", "two"], &["y"]),
        onnx::constant("two", &[1], &[2.0]),
        onnx::value(11, "x", &["4"]),
        onnx::value(11, "state", &["4"]),
        onnx::value(12, "y", &["4"]),
        onnx::value(12, "stateN", &["4"]),
    ])
}

/// `present = past` with the rows of `x` behind it.
fn grows() -> Vec<u8> {
    onnx::model(&[
        onnx::node_with("Concat", &["past_0", "x"], &["present_0"], "axis", 0),
        onnx::node("Add", &["x", "x"], &["y"]),
        onnx::value(11, "past_0", &["past_length", "2"]),
        onnx::value(11, "x", &["n", "2"]),
        onnx::value(12, "present_0", &["total_length", "2"]),
        onnx::value(12, "y", &["n", "2"]),
    ])
}

fn of(values: [f32; 4]) -> Tensor {
    Tensor::from_slice(&values, 4).unwrap()
}

fn now(state: &mut State, name: &str) -> Vec<f32> {
    state.tensor(name).unwrap().unwrap().to_vec().unwrap()
}

#[test]
fn a_sequence_keeps_its_state_on_the_device() {
    let Some(device) = device() else { return };
    let session = builder(&device).model(sums()).build().unwrap();
    let info = session.default_function().unwrap().info().clone();
    assert_eq!((info.states[0].input.as_str(), info.states[0].output.as_str()), ("state", "stateN"));
    let mut state = session.state().unwrap();
    assert_eq!(state.names().collect::<Vec<_>>(), ["state"]);
    let one = of([1.0, 2.0, 3.0, 4.0]);
    state.run([("x", &one)]).unwrap();
    let (transfers, memory) = (device.transfers(), device.memory());
    for round in 2..=64 {
        let out = state.run([("x", &one)]).unwrap();
        assert_eq!(out.names().collect::<Vec<_>>(), ["y"], "what is state is no result");
        if round == 64 {
            assert_eq!(out["y"].to_vec::<f32>().unwrap(), [128.0, 256.0, 384.0, 512.0]);
        }
    }
    let after = device.transfers();
    assert_eq!(after.uploaded_bytes - transfers.uploaded_bytes, 63 * 16, "the inputs and nothing else");
    assert_eq!(after.downloads - transfers.downloads, 1);
    assert!(device.memory().used <= memory.used, "{memory:?} {:?}", device.memory());
    assert_eq!(state.byte_len(), 16);
    state.reset().unwrap();
    assert_eq!(state.run([&one]).unwrap()["y"].to_vec::<f32>().unwrap(), [2.0, 4.0, 6.0, 8.0]);
}

#[test]
fn states_are_independent_and_copies_of_them_go_their_own_ways() {
    let Some(device) = device() else { return };
    let session = builder(&device).model(sums()).build().unwrap();
    let mut states: Vec<State> = (0..3).map(|_| session.state().unwrap()).collect();
    for _ in 0..2 {
        for (index, state) in states.iter_mut().enumerate() {
            state.run([of([index as f32; 4])]).unwrap();
        }
    }
    let mut fork = states[2].fork().unwrap();
    fork.run([of([10.0; 4])]).unwrap();
    assert_eq!(now(&mut states[0], "state"), [0.0; 4]);
    assert_eq!(now(&mut states[2], "state"), [4.0; 4]);
    assert_eq!(now(&mut fork, "state"), [14.0; 4]);
}

#[test]
fn a_call_without_state_overwrites_nothing_of_the_callers() {
    let Some(device) = device() else { return };
    let session = builder(&device).model(sums()).build().unwrap();
    let before = of([1.0; 4]).to_device(&device).unwrap();
    for _ in 0..2 {
        let out = session.run([("x", &of([1.0; 4])), ("state", &before)]).unwrap();
        assert_eq!(out["stateN"].to_vec::<f32>().unwrap(), [2.0; 4]);
        assert_eq!(before.to_vec::<f32>().unwrap(), [1.0; 4]);
    }
}

#[test]
fn state_is_saved_and_loaded() {
    let Some(device) = device() else { return };
    let session = builder(&device).model(sums()).build().unwrap();
    let mut state = session.state().unwrap();
    state.run([of([1.0, 2.0, 3.0, 4.0])]).unwrap();
    let bytes = state.save().unwrap();
    let mut other = session.state().unwrap();
    other.load(bytes.clone()).unwrap();
    assert_eq!(now(&mut other, "state"), [1.0, 2.0, 3.0, 4.0]);
    other.set("state", &of([5.0; 4])).unwrap();
    for length in 0..bytes.len() {
        assert!(other.load(bytes[..length].to_vec()).is_err(), "{length} bytes");
    }
    assert_eq!(now(&mut other, "state"), [5.0; 4], "what does not load changes nothing");
    let text = |from: &str, to: &str| {
        let at = bytes.windows(from.len()).position(|part| part == from.as_bytes()).unwrap();
        let mut changed = bytes.clone();
        changed[at..at + to.len()].copy_from_slice(to.as_bytes());
        changed
    };
    let error = |bytes: Vec<u8>| session.state().unwrap().load(bytes).unwrap_err();
    assert_eq!(error(text("\"state\"", "\"stato\"")).kind(), ErrorKind::NotFound);
    assert!(error(text("F32", "I32")).message().contains("cannot be a tensor 4xi32"));
    assert!(
        other.set("state", &Tensor::scalar(1f32)).unwrap_err().message().contains("cannot be a tensor f32")
    );
    assert!(other.tensor("no").unwrap_err().message().contains("there are: 'state'"));
}

#[test]
fn what_grows_begins_with_nothing() {
    let Some(device) = device() else { return };
    let session = builder(&device).model(grows()).build().unwrap();
    let mut state = session.state().unwrap();
    for step in 0..3usize {
        let x = Tensor::from_vec(vec![step as f32; 2 * (step + 1)], [step + 1, 2]).unwrap();
        state.run([("x", &x)]).unwrap();
    }
    assert_eq!(now(&mut state, "past_0"), [0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0]);
    let mut other = session.state().unwrap();
    other.load(state.save().unwrap()).unwrap();
    assert_eq!(other.tensor("past_0").unwrap().unwrap().shape(), [6, 2]);
}

#[test]
fn modules_have_the_state_that_they_were_compiled_with() {
    let Some(device) = device() else { return };
    let model = Model::open(sums()).unwrap();
    let compile = |compiler: Compiler| compiler.compile(&model).unwrap().to_vec();
    let session = |module: Vec<u8>| builder(&device).model(module).build().unwrap();
    let plain = session(compile(Compiler::new()));
    assert!(plain.state().unwrap_err().message().contains("has no state"));
    for compiler in [Compiler::new().find_state(true), Compiler::new().state("sta*", "sta*N")] {
        let session = session(compile(compiler));
        let mut state = session.state().unwrap();
        for _ in 0..3 {
            state.run([("x", of([1.0; 4]))]).unwrap();
        }
        assert_eq!(now(&mut state, "state"), [3.0; 4]);
        let before = of([1.0; 4]).to_device(&device).unwrap();
        session.run([("x", &of([1.0; 4])), ("state", &before)]).unwrap();
        assert_eq!(before.to_vec::<f32>().unwrap(), [1.0; 4]);
    }
    let error = Compiler::new().state("none_*", "x_*").compile(&model).unwrap_err();
    assert!(error.message().contains("no input fits the state 'none_*=x_*'; there are: x, state"), "{error}");
}

#[test]
fn state_can_be_named_and_left_out() {
    let Some(device) = device() else { return };
    let build = |change: &dyn Fn(halite::SessionBuilder) -> halite::SessionBuilder| {
        change(builder(&device).model(sums())).build()
    };
    assert!(build(&|b| b.without_state()).unwrap().state().is_err());
    let session: Session = build(&|b| b.state("x", "y")).unwrap();
    assert_eq!(session.state().unwrap().names().collect::<Vec<_>>(), ["x"]);
    let error = build(&|b| b.state("x", "z")).unwrap_err();
    assert!(error.message().contains("output 'z', which is not there; there are: y, stateN"), "{error}");
    let error = session.state().unwrap().run([("x", &of([1.0; 4]))]).unwrap_err();
    assert!(error.message().contains("has no input 'x'; its inputs are 'state'"), "{error}");
}

/// `present_0` is the cache with the row `x` at `place`; `y` its elements twice.
fn scatters() -> Vec<u8> {
    onnx::model(&[
        onnx::node_with("Cast", &["place"], &["at"], "to", 7),
        onnx::node("TensorScatter", &["past_0", "x", "at"], &["present_0"]),
        onnx::node("Add", &["present_0", "present_0"], &["y"]),
        onnx::value(11, "x", &["1", "1", "2"]),
        onnx::value(11, "place", &["1"]),
        onnx::value(11, "past_0", &["1", "3", "2"]),
        onnx::value(12, "present_0", &["1", "3", "2"]),
        onnx::value(12, "y", &["1", "3", "2"]),
    ])
}

#[test]
fn rows_are_written_into_caches_where_they_are() {
    let compiled = Compiler::new().find_state(true).compile(&Model::open(scatters()).unwrap()).unwrap();
    let work = &compiled.report().targets[0].functions[0].versions[0];
    assert!(work.states.iter().all(|state| state.in_place) && work.copies == 0, "{:?}", work.states);
    let Some(device) = device() else { return };
    let session = builder(&device).model(scatters()).build().unwrap();
    let mut state = session.state().unwrap();
    for (place, value) in [(0.0f32, 1.0f32), (2.0, 3.0), (1.0, 2.0), (5.0, 9.0)] {
        let x = Tensor::from_slice(&[value, -value], [1, 1, 2]).unwrap();
        state.run([("x", x), ("place", Tensor::from_slice(&[place], 1).unwrap())]).unwrap();
    }
    assert_eq!(now(&mut state, "past_0"), [1.0, -1.0, 2.0, -2.0, 3.0, -3.0]);
}

/// A decoder of two layers with caches of 96 rows, and what ONNX Runtime says: `conformance/models/onnx_state.py` made them.
const DECODER: &str = "conformance/tests/data/state";

fn array(name: &str) -> Tensor {
    let bytes = std::fs::read(repo(DECODER).join(name)).unwrap();
    halite::host::npy::read(&mut &bytes[..]).unwrap().unwrap().into()
}

/// The tokens that a decoder chooses from the first one on, and the scores of the last.
fn decoded(state: &mut State, steps: i32) -> (Vec<i64>, Vec<f32>) {
    let (mut tokens, mut scores) = (vec![1i64], Vec::new());
    for step in 0..steps {
        let token = Tensor::from_slice(&tokens[tokens.len() - 1..], [1, 1]).unwrap();
        let before = Tensor::from_slice(&[step], 1).unwrap();
        let all = Tensor::scalar(step + 1);
        let out =
            state.run([("token", &token), ("seqlens_k", &before), ("total_sequence_length", &all)]).unwrap();
        tokens.push(out["next"].item::<i64>().unwrap());
        scores = out["logits"].to_vec().unwrap();
    }
    (tokens, scores)
}

#[test]
fn a_decoder_says_what_onnx_runtime_says_with_one_recording_for_all_tokens() {
    let Some(device) = device() else { return };
    let session = builder(&device).model(repo(DECODER).join("decoder.onnx")).build().unwrap();
    assert_eq!(session.default_function().unwrap().info().states.len(), 4);
    let mut state = session.state().unwrap();
    decoded(&mut state, 2);
    state.reset().unwrap();
    let before = device.transfers();
    let wanted: Vec<i64> = array("tokens.npy").to_vec().unwrap();
    let steps = wanted.len() as i32 - 1;
    let (tokens, scores) = decoded(&mut state, steps);
    assert_eq!(tokens, wanted);
    assert!(near(&scores, &array("logits.npy").to_vec().unwrap()), "{scores:?}");
    assert!(near(&now(&mut state, "past_key_values.1.key"), &array("key.npy").to_vec().unwrap()));
    assert_eq!(session.loaded_versions(), 1);
    let after = device.transfers();
    let each = (after.uploaded_bytes - before.uploaded_bytes) / u64::from(steps.unsigned_abs());
    assert_eq!(each, 8 + 4 + 4, "a token and two lengths, and no cache");
}

#[test]
fn a_decoder_moves_nothing_of_its_caches() {
    let model = Model::open(repo(DECODER).join("decoder.onnx")).unwrap();
    let compiled = Compiler::new().find_state(true).compile(&model).unwrap();
    let work = &compiled.report().targets[0].functions[0].versions[0];
    assert!(work.states.len() == 4 && work.states.iter().all(|state| state.in_place), "{:?}", work.states);
    assert_eq!(work.copies, 0);
    for operation in &work.operations {
        let name = operation.operation.split(':').next().unwrap();
        assert!(!["concat", "pad", "copy"].contains(&name) || operation.bytes < 4000.0, "{operation:?}");
    }
}

#[test]
fn a_profiled_call_goes_on_with_the_state() {
    let Some(device) = device() else { return };
    let session = builder(&device).model(sums()).build().unwrap();
    let mut state = session.state().unwrap();
    let one = of([1.0, 2.0, 3.0, 4.0]);
    state.run([("x", &one)]).unwrap();
    for round in [2.0, 3.0] {
        let (out, profile) = state.profile([("x", &one)]).unwrap();
        assert_eq!(out.names().collect::<Vec<_>>(), ["y"], "what is state is no result");
        assert_eq!(out["y"].to_vec::<f32>().unwrap(), [2.0, 4.0, 6.0, 8.0].map(|y| y * round));
        assert_eq!(now(&mut state, "state"), [1.0, 2.0, 3.0, 4.0].map(|y| y * round));
        // One kernel, and nothing that copies the state.
        assert!(
            profile.commands().iter().filter(|command| command.is_of_program).count() <= 2,
            "{profile:?}"
        );
        assert_eq!((profile.uploaded_bytes(), profile.downloaded_bytes()), (16, 16));
    }
}
