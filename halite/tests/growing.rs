//! State that grows by concatenation: rows to spare in its buffers, through all that a state does.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use crate::common::{builder, device, onnx};
use halite::{ErrorKind, Session, State, Tensor, WorkKind};

const HEADS: usize = 2;
const WIDTH: usize = 4;

/// `present_k = past_k` with the rows of `x` behind it for each head, `y` twice that, and `z` three times what was there before.
fn cache() -> Vec<u8> {
    onnx::model(&[
        onnx::node_with("Concat", &["past_k", "x"], &["present_k"], "axis", 2),
        onnx::node("Add", &["present_k", "present_k"], &["y"]),
        onnx::node("Mul", &["past_k", "three"], &["z"]),
        onnx::constant("three", &[1], &[3.0]),
        onnx::value(11, "past_k", &["batch", "2", "past", "4"]),
        onnx::value(11, "x", &["batch", "2", "n", "4"]),
        onnx::value(12, "present_k", &["batch", "2", "total", "4"]),
        onnx::value(12, "y", &["batch", "2", "total", "4"]),
        onnx::value(12, "z", &["batch", "2", "past", "4"]),
    ])
}

/// The same of two elements of a batch, each of which is taken out, gets its rows, and is put back.
fn stacked() -> Vec<u8> {
    onnx::model(&[
        onnx::node_with("Split", &["past_k"], &["a", "b"], "axis", 0),
        onnx::node_with("Split", &["x"], &["xa", "xb"], "axis", 0),
        onnx::node_with("Concat", &["a", "xa"], &["ka"], "axis", 2),
        onnx::node_with("Concat", &["b", "xb"], &["kb"], "axis", 2),
        onnx::node_with("Concat", &["ka", "kb"], &["present_k"], "axis", 0),
        onnx::node_with("Concat", &["ka", "kb"], &["again"], "axis", 0),
        onnx::node("Add", &["again", "present_k"], &["y"]),
        onnx::node("Mul", &["past_k", "three"], &["z"]),
        onnx::constant("three", &[1], &[3.0]),
        onnx::value(11, "past_k", &["2", "2", "past", "4"]),
        onnx::value(11, "x", &["2", "2", "n", "4"]),
        onnx::value(12, "present_k", &["2", "2", "total", "4"]),
        onnx::value(12, "y", &["2", "2", "total", "4"]),
        onnx::value(12, "z", &["2", "2", "past", "4"]),
    ])
}

/// What a sequence has: the rows of each head of each element of the batch.
#[derive(Clone)]
struct Rows(Vec<Vec<f32>>);

impl Rows {
    fn none(batch: usize) -> Rows {
        Rows(vec![Vec::new(); batch * HEADS])
    }

    fn count(&self) -> usize {
        self.0[0].len() / WIDTH
    }

    /// So many further rows, which no other call has.
    fn more(&self, count: usize) -> Rows {
        let first = self.count();
        let row = |head: usize| {
            let each = (first * WIDTH..(first + count) * WIDTH).map(move |at| (at * 7 + head * 1000) as f32);
            each.collect()
        };
        Rows((0..self.0.len()).map(row).collect())
    }

    fn push(&mut self, other: &Rows) {
        self.0.iter_mut().zip(&other.0).for_each(|(own, other)| own.extend(other));
    }

    fn times(&self, factor: f32) -> Vec<f32> {
        self.0.concat().iter().map(|x| x * factor).collect()
    }

    fn tensor(&self) -> Tensor {
        Tensor::from_vec(self.0.concat(), [self.0.len() / HEADS, HEADS, self.count(), WIDTH]).unwrap()
    }
}

/// A call with so many further rows, whose results are right.
fn grow(state: &mut State, all: &mut Rows, count: usize) {
    let (before, new) = (all.clone(), all.more(count));
    all.push(&new);
    let out = state.run([("x", &new.tensor())]).unwrap();
    assert_eq!(out["y"].shape()[2], all.count());
    assert_eq!(out["y"].to_vec::<f32>().unwrap(), all.times(2.0), "{} rows", all.count());
    assert_eq!(out["z"].to_vec::<f32>().unwrap(), before.times(3.0), "{} rows", all.count());
}

fn held(state: &mut State) -> Vec<f32> {
    state.tensor("past_k").unwrap().unwrap().to_vec().unwrap()
}

fn session() -> Option<Session> {
    Some(builder(&device()?).model(cache()).build().unwrap())
}

#[test]
fn rows_are_right_through_all_sizes_of_the_buffer() {
    let Some(session) = session() else { return };
    for batch in [1, 3] {
        let (mut state, mut all) = (session.state().unwrap(), Rows::none(batch));
        for count in [5, 1, 1, 249, 1, 1, 1, 3, 250, 1, 300, 2] {
            grow(&mut state, &mut all, count);
        }
        assert_eq!(held(&mut state), all.times(1.0));
        // Rows to spare, but not as many as there are.
        let dense = all.count() * batch * HEADS * WIDTH * 4;
        assert!(state.byte_len() > dense && state.byte_len() < 2 * dense, "{} {dense}", state.byte_len());
        // What begins anew does so with nothing.
        state.reset().unwrap();
        all = Rows::none(batch);
        [3, 1, 1].into_iter().for_each(|count| grow(&mut state, &mut all, count));
    }
}

#[test]
fn parts_of_a_cache_that_are_stacked_grow_in_place() {
    let Some(device) = device() else { return };
    let session = builder(&device).model(stacked()).build().unwrap();
    let (mut state, mut all) = (session.state().unwrap(), Rows::none(2));
    [5, 1, 1, 249, 1, 3, 250].into_iter().for_each(|count| grow(&mut state, &mut all, count));
    assert_eq!(held(&mut state), all.times(1.0));
    let dense = all.count() * 2 * HEADS * WIDTH * 4;
    assert!(state.byte_len() > dense, "there are rows to spare: {} {dense}", state.byte_len());
}

#[test]
fn copies_and_files_have_the_rows_that_count() {
    let Some(session) = session() else { return };
    let (mut state, mut all) = (session.state().unwrap(), Rows::none(2));
    [9, 1, 1].into_iter().for_each(|count| grow(&mut state, &mut all, count));
    let mut fork = state.fork().unwrap();
    let file = state.save().unwrap();
    assert!(file.len() < 2 * 11 * HEADS * WIDTH * 4 + 512, "{} bytes for 11 rows", file.len());
    let (mut own, mut other) = (all.clone(), all.clone());
    [1, 1, 300].into_iter().for_each(|count| grow(&mut state, &mut own, count));
    [2, 1].into_iter().for_each(|count| grow(&mut fork, &mut other, count));
    assert_eq!((held(&mut state), held(&mut fork)), (own.times(1.0), other.times(1.0)));
    let mut loaded = session.state().unwrap();
    loaded.load(file).unwrap();
    assert_eq!(loaded.tensor("past_k").unwrap().unwrap().shape(), [2, HEADS, 11, WIDTH]);
    [1, 1].into_iter().for_each(|count| grow(&mut loaded, &mut all, count));
    // Another value, with fewer rows, in the place of one with room.
    let mut less = Rows::none(2);
    less.push(&less.more(4));
    loaded.set("past_k", &less.tensor()).unwrap();
    [1, 1].into_iter().for_each(|count| grow(&mut loaded, &mut less, count));
}

#[test]
fn callers_who_hand_caches_in_keep_them() {
    let Some(session) = session() else { return };
    let (mut state, mut all) = (session.state().unwrap(), Rows::none(1));
    [4, 1, 1].into_iter().for_each(|count| grow(&mut state, &mut all, count));
    let past = state.tensor("past_k").unwrap().unwrap();
    let new = all.more(1);
    for _ in 0..3 {
        let out = session.run([("x", new.tensor()), ("past_k", past.clone())]).unwrap();
        assert_eq!(out["present_k"].shape(), [1, HEADS, 7, WIDTH]);
        let mut whole = all.clone();
        whole.push(&new);
        assert_eq!(out["present_k"].to_vec::<f32>().unwrap(), whole.times(1.0));
    }
    assert_eq!(past.to_vec::<f32>().unwrap(), all.times(1.0));
    grow(&mut state, &mut all, 1);
}

#[test]
fn a_call_writes_its_own_rows_alone() {
    let Some(session) = session() else { return };
    let (mut state, mut all) = (session.state().unwrap(), Rows::none(1));
    [4, 1, 1].into_iter().for_each(|count| grow(&mut state, &mut all, count));
    let profile = match state.profile([("x", &all.more(1).tensor())]) {
        Ok((_, profile)) => profile,
        Err(error) if error.kind() == ErrorKind::Unsupported => return println!("SKIPPED: {error}"),
        Err(error) => panic!("{error}"),
    };
    let operations = profile.commands().iter().filter(|command| command.is_of_program);
    let kinds: Vec<&str> = operations
        .filter(|command| command.kind == WorkKind::Dispatch)
        .filter_map(|command| command.operation.as_deref())
        .map(|operation| operation.kind.as_str())
        .collect();
    assert!(kinds.contains(&"kv_append") && !kinds.contains(&"concat"), "{kinds:?}");
}

#[test]
fn calls_run_the_recordings_that_were_made_ahead() {
    let Some(session) = session() else { return };
    let device = session.device().unwrap().clone();
    let (mut state, mut all) = (session.state().unwrap(), Rows::none(1));
    // The step is known from the second on.
    [5, 1, 1, 1, 1].into_iter().for_each(|count| grow(&mut state, &mut all, count));
    let before = device.recordings();
    const CALLS: u64 = 200;
    (0..CALLS).for_each(|_| grow(&mut state, &mut all, 1));
    let now = device.recordings();
    let [executed, written, ahead, found] = [
        now.executed - before.executed,
        now.written - before.written,
        now.written_ahead - before.written_ahead,
        now.found_ahead - before.found_ahead,
    ];
    // Each has sizes of its own. A few find other memory than expected: where buffers get more room.
    assert!(executed >= CALLS && ahead >= CALLS && written + found == executed, "{now:?} {before:?}");
    assert!(found * 10 >= executed * 9, "{found} of {executed} were made ahead");
}
