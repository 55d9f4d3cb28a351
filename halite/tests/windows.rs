//! State that keeps its last rows alone: a window that moves over rows to spare, through all that a state does.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use crate::common::{builder, device, onnx};
use halite::{Session, State, Tensor};

const HEADS: usize = 2;
const WINDOW: usize = 6;

/// How an exporter writes a window.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// `present_k` is the last rows of `past_k` and `x`, all of which `y` reads.
    Last,
    /// The first row of `past_k` goes, and `x` comes behind the others; `y` reads `present_k`.
    Next,
}

/// `y` is twice the rows that attention would read, `z` three times what was there before.
fn cache(form: Form, past: &str, count: &str, width: usize) -> Vec<u8> {
    let sizes = |name: &str, value: i64| onnx::typed_constant(name, onnx::I64, &[1], &value.to_le_bytes());
    let width = width.to_string();
    let present = if past == "past" { "kept" } else { past };
    let (sliced, first, joined, last) = match form {
        Form::Last => (["k", "present_k"], -(WINDOW as i64), ["past_k", "k"], "k"),
        Form::Next => (["past_k", "rest"], 1, ["rest", "present_k"], "present_k"),
    };
    let slice = onnx::node("Slice", &[sliced[0], "first", "end", "axis"], &[sliced[1]]);
    let concat = onnx::node_with("Concat", &[joined[0], "x"], &[joined[1]], "axis", 2);
    let [one, other] = if form == Form::Last { [concat, slice] } else { [slice, concat] };
    onnx::model(&[
        one,
        other,
        onnx::node("Add", &[last, last], &["y"]),
        onnx::node("Mul", &["past_k", "three"], &["z"]),
        onnx::constant("three", &[1], &[3.0]),
        sizes("first", first),
        sizes("end", i64::MAX),
        sizes("axis", 2),
        onnx::value(11, "past_k", &["1", "2", past, &width]),
        onnx::value(11, "x", &["1", "2", count, &width]),
        onnx::value(12, "present_k", &["1", "2", present, &width]),
        onnx::value(12, "y", &["1", "2", "seen", &width]),
        onnx::value(12, "z", &["1", "2", past, &width]),
    ])
}

/// The rows of each head, and how many were there in all.
#[derive(Clone)]
struct Rows {
    form: Form,
    width: usize,
    heads: Vec<Vec<f32>>,
    made: usize,
}

impl Rows {
    fn new(form: Form, width: usize, count: usize) -> Rows {
        Rows { form, width, heads: vec![vec![0.0; count * width]; HEADS], made: 0 }
    }

    fn tensor(heads: &[Vec<f32>], width: usize) -> Tensor {
        Tensor::from_vec(heads.concat(), [1, HEADS, heads[0].len() / width, width]).unwrap()
    }

    /// A call with so many further rows, whose results are right.
    fn call(&mut self, state: &mut State, count: usize) {
        let (width, first) = (self.width, self.made);
        let new: Vec<Vec<f32>> = (0..HEADS)
            .map(|head| {
                (0..count * width).map(|at| ((first * width + at) * 7 + head * 1000 + 1) as f32).collect()
            })
            .collect();
        self.made += count;
        let before = self.heads.concat();
        self.heads.iter_mut().zip(&new).for_each(|(own, new)| own.extend(new));
        let all = self.heads.clone();
        for own in &mut self.heads {
            let kept = match self.form {
                Form::Last => (WINDOW * width).min(own.len()),
                Form::Next => own.len() - width,
            };
            own.drain(..own.len() - kept);
        }
        let seen = if self.form == Form::Last { &all } else { &self.heads };
        let out = state.run([("x", Rows::tensor(&new, width))]).unwrap();
        let times = |rows: Vec<f32>, by: f32| rows.iter().map(|x| x * by).collect::<Vec<f32>>();
        assert_eq!(out["y"].to_vec::<f32>().unwrap(), times(seen.concat(), 2.0), "{} rows", self.made);
        assert_eq!(out["z"].to_vec::<f32>().unwrap(), times(before, 3.0), "{} rows", self.made);
    }

    fn check(&self, state: &mut State) {
        let held = state.tensor("past_k").unwrap().unwrap();
        assert_eq!(held.to_vec::<f32>().unwrap(), self.heads.concat(), "{} rows", self.made);
    }
}

fn session(model: Vec<u8>) -> Option<Session> {
    Some(builder(&device()?).model(model).build().unwrap())
}

/// A state that begins with these rows.
fn begun(session: &Session, rows: &Rows) -> State {
    let mut state = session.state().unwrap();
    if !rows.heads[0].is_empty() {
        state.set("past_k", &Rows::tensor(&rows.heads, rows.width)).unwrap();
    }
    state
}

#[test]
fn windows_are_right_while_they_fill_and_move() {
    // Rows of 16 bytes, and of some that no device binds.
    for width in [4, 3] {
        let Some(session) = session(cache(Form::Last, "past", "count", width)) else { return };
        let mut rows = Rows::new(Form::Last, width, 0);
        let mut state = begun(&session, &rows);
        for count in [2, 1, 1, 1, 1, 1, 9, 1, 1, 4, 300, 1, 1] {
            rows.call(&mut state, count);
            rows.check(&mut state);
        }
        (0..700).for_each(|_| rows.call(&mut state, 1));
        rows.check(&mut state);
        state.reset().unwrap();
        rows = Rows::new(Form::Last, width, 0);
        [3, 1, 1, 1, 1, 1].into_iter().for_each(|count| rows.call(&mut state, count));
        rows.check(&mut state);
    }
}

#[test]
fn windows_of_fixed_sizes_move_too() {
    for form in [Form::Last, Form::Next] {
        for width in [4, 3] {
            let Some(session) = session(cache(form, "6", "1", width)) else { return };
            let mut rows = Rows::new(form, width, WINDOW);
            let mut state = begun(&session, &rows);
            (0..600).for_each(|_| rows.call(&mut state, 1));
            rows.check(&mut state);
            // Whoever hands the window in has it back as it was, and gets another.
            let past = state.tensor("past_k").unwrap().unwrap();
            let x = Tensor::from_vec(vec![5.0f32; HEADS * width], [1, HEADS, 1, width]).unwrap();
            let out = session.run([("past_k", past.clone()), ("x", x)]).unwrap();
            let present = out["present_k"].to_vec::<f32>().unwrap();
            assert_eq!(present[..5 * width], rows.heads[0][width..]);
            assert_eq!(present[5 * width..6 * width], vec![5.0; width]);
            assert_eq!(past.to_vec::<f32>().unwrap(), rows.heads.concat());
        }
    }
}

#[test]
fn rows_that_are_bound_are_not_copied() {
    for (form, past, count) in [(Form::Next, "6", "1"), (Form::Last, "6", "1"), (Form::Last, "past", "count")]
    {
        let Some(session) = session(cache(form, past, count, 64)) else { return };
        let mut rows = Rows::new(form, 64, WINDOW);
        let mut state = begun(&session, &rows);
        (0..5).for_each(|_| rows.call(&mut state, 1));
        let length = state.byte_len();
        assert!(length > HEADS * WINDOW * 64 * 4, "there are rows to spare: {length} bytes");
        (0..600).for_each(|_| rows.call(&mut state, 1));
        assert_eq!(state.byte_len(), length);
    }
}

#[test]
fn copies_and_files_have_the_window_alone() {
    let Some(session) = session(cache(Form::Last, "past", "count", 4)) else { return };
    let mut rows = Rows::new(Form::Last, 4, 0);
    let mut state = begun(&session, &rows);
    [9, 1, 1, 1].into_iter().for_each(|count| rows.call(&mut state, count));
    let (mut fork, mut other) = (state.fork().unwrap(), rows.clone());
    let file = state.save().unwrap();
    assert!(file.len() < HEADS * WINDOW * 4 * 4 + 512, "{} bytes", file.len());
    [1, 1, 3].into_iter().for_each(|count| rows.call(&mut state, count));
    let mut loaded = session.state().unwrap();
    loaded.load(file).unwrap();
    for own in [&mut fork, &mut loaded] {
        let mut rows = other.clone();
        rows.check(own);
        [1, 2, 1].into_iter().for_each(|count| rows.call(own, count));
        rows.check(own);
    }
    rows.check(&mut state);
    // Another value in its place.
    state.set("past_k", &Rows::tensor(&other.heads, 4)).unwrap();
    [1, 1].into_iter().for_each(|count| other.call(&mut state, count));
    other.check(&mut state);
}
