//! Models whose sizes are open: a few plans hold for many sizes, and give what a plan for each size gives.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use crate::common::{builder, device, near, onnx};
use halite::{ElementType, RunOptions, Session, Stage, State, Tensor};

const MODEL: &[u8] = include_bytes!("data/open_encoder.onnx");
const DECODER: &[u8] = include_bytes!("data/open_decoder.onnx");
const BIASED: &[u8] = include_bytes!("data/open_biased.onnx");
const PICTURE: &[u8] = include_bytes!("data/open_picture.onnx");
const LISTS: &[u8] = include_bytes!("data/open_lists.onnx");
const WIDTH: usize = 16;

/// Some numbers that are not the same in any two rows.
fn input(batch: usize, length: usize) -> Tensor {
    let numbers: Vec<f32> =
        (0..batch * length * WIDTH).map(|i| ((i * 37 % 101) as f32 - 50.0) / 25.0).collect();
    Tensor::from_slice(&numbers, [batch, length, WIDTH]).unwrap()
}

fn run(session: &Session, batch: usize, length: usize) -> Vec<Vec<f32>> {
    let out = session.run(input(batch, length)).unwrap();
    assert_eq!(out["encoded"].shape(), [batch, length, WIDTH]);
    ["encoded", "pooled", "head"].map(|name| out[name].to_vec().unwrap()).to_vec()
}

/// What a plan for these sizes alone gives.
fn alone(device: &halite::Device, batch: usize, length: usize) -> Vec<Vec<f32>> {
    let session = builder(device)
        .model(MODEL.to_vec())
        .dimension("batch", batch)
        .dimension("length", length)
        .build()
        .unwrap();
    run(&session, batch, length)
}

#[test]
fn later_sizes_share_plans_and_give_the_same() {
    let Some(device) = device() else { return };
    // None is let go of, so that all that are made are counted.
    let session = builder(&device).model(MODEL.to_vec()).max_loaded_versions(256).build().unwrap();
    let sizes = (1..40).map(|length| (1, length)).chain([
        (2, 7),
        (3, 8),
        (2, 30),
        (5, 5),
        (3, 17),
        (1, 64),
        (1, 300),
    ]);
    for (index, (batch, length)) in sizes.enumerate() {
        let found = run(&session, batch, length);
        if index % 3 == 0 {
            let wanted = alone(&device, batch, length);
            let same = found.iter().zip(&wanted).all(|(found, wanted)| near(found, wanted));
            assert!(same, "{batch} x {length}: {found:?} {wanted:?}");
        }
    }
    let versions = session.loaded_versions();
    assert!((2..=24).contains(&versions), "{versions} versions for 46 sizes");
    // Sizes that were there before, in another order, make nothing new.
    for length in [33, 2, 17, 1] {
        run(&session, 1, length);
    }
    assert_eq!(session.loaded_versions(), versions);
}

#[test]
fn ranges_become_modules_for_all_of_them() {
    let Some(device) = device() else { return };
    let session =
        builder(&device).model(MODEL.to_vec()).dimension("batch", 1).bound("length", 1..=48).build().unwrap();
    for length in [1, 2, 3, 4, 5, 8, 15, 16, 17, 20, 31, 47, 48] {
        let (found, wanted) = (run(&session, 1, length), alone(&device, 1, length));
        let same = found.iter().zip(&wanted).all(|(found, wanted)| near(found, wanted));
        assert!(same, "{length}: {found:?} {wanted:?}");
    }
    let error = session.run(Tensor::zeros(ElementType::F32, [1, 49, WIDTH]).unwrap()).unwrap_err();
    assert_eq!(error.kind(), halite::ErrorKind::InvalidInput, "{error}");
}

/// A state of a decoder for so many sequences of no tokens. As programs do it: the size of a head is open in the file too.
fn fresh(session: &Session, batch: usize) -> State {
    let nothing = Tensor::zeros(ElementType::F32, [batch, 1, 0, 16]).unwrap();
    let mut state = session.state().unwrap();
    let names: Vec<String> = state.names().map(str::to_owned).collect();
    names.iter().for_each(|name| state.set(name, &nothing).unwrap());
    state
}

/// Inputs of a decoder: tokens, and a mask for these and for those before.
fn tokens(tokens: &[i64], before: usize) -> [(&'static str, Tensor); 2] {
    let total = before + tokens.len();
    let ids = Tensor::from_slice(tokens, [1, tokens.len()]).unwrap();
    [("input_ids", ids), ("attention_mask", Tensor::from_slice(&vec![1i64; total], [1, total]).unwrap())]
}

/// The most likely token behind the last one, and its score.
fn best(logits: &Tensor) -> (i64, f32) {
    let scores: Vec<f32> = logits.to_vec().unwrap();
    let words = logits.shape()[2];
    let last = scores[scores.len() - words..].iter().copied().enumerate();
    let (word, score) = last.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
    (word as i64, score)
}

#[test]
fn a_cache_that_grows_by_every_call_shares_plans() {
    let Some(device) = device() else { return };
    let session = builder(&device).model(DECODER.to_vec()).max_loaded_versions(256).build().unwrap();
    let mut state = fresh(&session, 1);
    let mut all: Vec<i64> = vec![3, 14, 15];
    let mut out = state.run(tokens(&all, 0)).unwrap();
    let mut scores = Vec::new();
    for _ in 0..76 {
        let (word, score) = best(&out["logits"]);
        scores.push(score);
        let before = all.len();
        all.push(word);
        out = state.run(tokens(&[word], before)).unwrap();
    }
    let versions = session.loaded_versions();
    // One for the prompt, one for all that follows.
    assert!(versions <= 2, "{versions} versions for 77 calls");
    // All at once, without a cache.
    for length in [3, 4, 5, 17, 18, 40, 65, 78] {
        let (word, score) = best(&fresh(&session, 1).run(tokens(&all[..length], 0)).unwrap()["logits"]);
        assert_eq!(word, all[length], "behind {length} tokens");
        assert!(near(&[score], &[scores[length - 3]]), "{score} {}", scores[length - 3]);
    }
}

#[test]
fn sequences_of_several_lengths_grow_together() {
    let Some(device) = device() else { return };
    let session = builder(&device).model(DECODER.to_vec()).max_loaded_versions(256).build().unwrap();
    let prompts: [&[i64]; 3] = [&[3, 14, 15], &[9, 2, 6, 5, 3], &[5]];
    let (batch, longest) = (prompts.len(), 5);
    // What is behind a sequence's end counts for nothing, and the keys of later calls take its place.
    let padded: Vec<i64> =
        prompts.iter().flat_map(|own| own.iter().copied().chain([7; 5]).take(longest)).collect();
    let mut mask: Vec<Vec<i64>> =
        prompts.iter().map(|own| (0..longest).map(|i| i64::from(i < own.len())).collect()).collect();
    let given = |ids: &[i64], mask: &[Vec<i64>]| {
        let mask = Tensor::from_slice(&mask.concat(), [batch, mask[0].len()]).unwrap();
        let ids = Tensor::from_slice(ids, [batch, ids.len() / batch]).unwrap();
        [("input_ids", ids), ("attention_mask", mask)]
    };
    let mut state = fresh(&session, batch);
    let mut out = state.run(given(&padded, &mask)).unwrap();
    let mut last: Vec<usize> = prompts.iter().map(|own| own.len() - 1).collect();
    let mut all: Vec<Vec<i64>> = prompts.iter().map(|own| own.to_vec()).collect();
    for _ in 0..40 {
        let logits = &out["logits"];
        let (rows, words) = (logits.shape()[1], logits.shape()[2]);
        let scores: Vec<f32> = logits.to_vec().unwrap();
        let word = |b: usize| {
            let row = scores[(b * rows + last[b]) * words..][..words].iter().enumerate();
            row.max_by(|a, b| a.1.total_cmp(b.1)).unwrap().0 as i64
        };
        let words: Vec<i64> = (0..batch).map(word).collect();
        all.iter_mut().zip(&words).for_each(|(own, word)| own.push(*word));
        mask.iter_mut().for_each(|row| row.push(1));
        out = state.run(given(&words, &mask)).unwrap();
        last = vec![0; batch];
    }
    let versions = session.loaded_versions();
    assert!(versions <= 2, "{versions} versions for 41 calls");
    for (own, prompt) in all.iter().zip(prompts) {
        let mut state = fresh(&session, 1);
        let mut alone = prompt.to_vec();
        let mut out = state.run(tokens(&alone, 0)).unwrap();
        while alone.len() < own.len() {
            let (word, _) = best(&out["logits"]);
            out = state.run(tokens(&[word], alone.len())).unwrap();
            alone.push(word);
        }
        assert_eq!(own, &alone);
    }
}

/// Attention of two heads of 16, whose keys and values are behind the queries in each row of `rows`, to those and `past`.
fn attended(session: &Session, rows: &[Vec<f32>], past: &[Tensor]) -> (Vec<f32>, Vec<Tensor>) {
    let before = past[0].shape()[2];
    let total = before + rows.len();
    let slope = |head: usize, row: usize, key: usize| {
        -(((before + row) as f32 - key as f32) * (head + 1) as f32) / 8.0
    };
    let bias: Vec<f32> = (0..2 * rows.len() * total)
        .map(|i| slope(i / total / rows.len(), i / total % rows.len(), i % total))
        .collect();
    let out = session
        .run([
            ("qkv", Tensor::from_slice(&rows.concat(), [1, rows.len(), 64]).unwrap()),
            ("past_k", past[0].clone()),
            ("past_v", past[1].clone()),
            ("last", Tensor::from_slice(&[total as i32 - 1], [1]).unwrap()),
            ("total", Tensor::from_slice(&[total as i32], []).unwrap()),
            ("bias", Tensor::from_slice(&bias, [1, 2, rows.len(), total]).unwrap()),
        ])
        .unwrap();
    let all: Vec<f32> = out["y"].to_vec().unwrap();
    let present = ["present_k", "present_v"].map(|name| out[name].clone());
    assert_eq!(present[0].shape(), [1, 1, total, 16]);
    (all[all.len() - 32..].to_vec(), present.to_vec())
}

#[test]
fn a_bias_says_how_many_keys_there_are() {
    let Some(device) = device() else { return };
    let session = builder(&device).model(BIASED.to_vec()).max_loaded_versions(256).build().unwrap();
    let whole = builder(&device).model(BIASED.to_vec()).build().unwrap();
    let row = |i: usize| (0..64).map(|j| ((i * 29 + j * 37) % 101) as f32 / 50.0 - 1.0).collect::<Vec<f32>>();
    let rows: Vec<Vec<f32>> = (0..40).map(row).collect();
    let nothing = || vec![Tensor::zeros(ElementType::F32, [1, 1, 0, 16]).unwrap(); 2];
    let (_, mut past) = attended(&session, &rows[..3], &nothing());
    for index in 3..rows.len() {
        let (last, present) = attended(&session, &rows[index..=index], &past);
        past = present;
        if index % 9 == 0 {
            let (wanted, _) = attended(&whole, &rows[..=index], &nothing());
            assert!(near(&last, &wanted), "{index}: {last:?} {wanted:?}");
        }
    }
    let versions = session.loaded_versions();
    assert!(versions <= 2, "{versions} versions for 38 calls");
}

#[test]
fn sessions_that_compile_ahead_give_the_same_and_end_at_once() {
    let Some(device) = device() else { return };
    let plain = builder(&device).model(MODEL.to_vec()).build().unwrap();
    for most in [3, 4, 5, 70] {
        let session = builder(&device).model(MODEL.to_vec()).compile_ahead(true).build().unwrap();
        let last = (1..=most).fold(None, |_, length| Some(run(&session, 1, length))).unwrap();
        let wanted = run(&plain, 1, most);
        assert!(last.iter().zip(&wanted).all(|(found, wanted)| near(found, wanted)), "{most}");
        // A thread may be at work here.
        drop(session);
    }
}

/// How often a call was told that a module is written: compiled on its own thread.
fn plans_of_call(session: &Session, length: usize) -> usize {
    let count = Arc::new(AtomicUsize::new(0));
    let seen = count.clone();
    let options = RunOptions::new().progress(move |progress| {
        seen.fetch_add(usize::from(progress.stage == Stage::Writing), Ordering::Relaxed);
    });
    session.run_with(input(1, length), &options).unwrap();
    count.load(Ordering::Relaxed)
}

#[test]
fn a_version_that_was_compiled_ahead_is_used() {
    let Some(device) = device() else { return };
    let lengths = [9, 10, 11, 12, 13, 14, 15, 16, 17];
    let planned = |is_ahead: bool| {
        let session = builder(&device).model(MODEL.to_vec()).compile_ahead(is_ahead).build().unwrap();
        let plans = lengths.map(|length| plans_of_call(&session, length));
        (plans, session.loaded_versions())
    };
    let ((plain, versions), (ahead, others)) = (planned(false), planned(true));
    // Sizes from 16 on need another plan. Its call waits for the thread that has begun it, and makes none.
    assert!(plain[7] > 0 && plain[8] == 0, "{plain:?}");
    assert_eq!((ahead[7], ahead[8]), (0, 0), "{ahead:?}");
    // The version behind that may be there already, as the thread goes on.
    assert!((versions..=versions + 1).contains(&others), "{versions}, {others} with those ahead");
}

#[test]
fn the_version_for_the_steps_behind_a_prompt_is_there_before_they_come() {
    let Some(device) = device() else { return };
    let ids = [3, 14, 15, 9, 2];
    let mut found = Vec::new();
    for is_ahead in [false, true] {
        let session = builder(&device).model(DECODER.to_vec()).compile_ahead(is_ahead).build().unwrap();
        let mut state = fresh(&session, 1);
        let first = state.run(tokens(&ids, 0)).unwrap();
        let count = Arc::new(AtomicUsize::new(0));
        let seen = count.clone();
        let options = RunOptions::new().progress(move |progress| {
            seen.fetch_add(usize::from(progress.stage == Stage::Writing), Ordering::Relaxed);
        });
        let (word, _) = best(&first["logits"]);
        let step = state.run_with(tokens(&[word], ids.len()), &options).unwrap();
        // The call compiles nothing: it waits for the thread at most.
        assert_eq!(count.load(Ordering::Relaxed) == 0, is_ahead);
        found.push(step["logits"].to_vec::<f32>().unwrap());
        assert_eq!(session.loaded_versions(), 2);
    }
    assert!(near(&found[0], &found[1]));
}

#[test]
fn what_is_compiled_ahead_is_loaded_behind_calls_for_others() {
    let Some(device) = device() else { return };
    let session = builder(&device).model(DECODER.to_vec()).compile_ahead(true).build().unwrap();
    // The thread has its own time; no call has a size of the second version.
    let end = Instant::now() + Duration::from_secs(120);
    while session.loaded_versions() < 2 && Instant::now() < end {
        fresh(&session, 1).run(tokens(&[3, 14, 15], 0)).unwrap();
    }
    assert_eq!(session.loaded_versions(), 2);
}

/// A session of a model that adds its number of rows to them, and gives half as many ones, or as many.
fn counting(device: &halite::Device, decides: bool) -> Session {
    let mut parts = vec![
        onnx::node_with("Shape", &["x"], &["rows"], "end", 1),
        onnx::node_with("Cast", &["rows"], &["count"], "to", onnx::F32),
        onnx::node("Add", &["x", "count"], &["y"]),
        onnx::constant("one", &[1], &[1.0]),
        onnx::constant("part", &[1], &[0.5]),
        onnx::node("Mul", &["count", "part"], &["halved"]),
        onnx::node("Floor", &["halved"], &["whole"]),
        onnx::node_with("Cast", &["whole"], &["half"], "to", onnx::I64),
        onnx::node("Expand", &["one", if decides { "half" } else { "rows" }], &["ones"]),
        onnx::value(11, "x", &["n", "4"]),
        onnx::value(12, "y", &["n", "4"]),
        onnx::value(12, "ones", &["m"]),
    ];
    parts.push(onnx::typed_value(12, "half", onnx::I64, &["1"]));
    builder(device).model(onnx::model(&parts)).max_loaded_versions(256).build().unwrap()
}

#[test]
fn floats_of_sizes_do_not_make_a_version_for_each() {
    let Some(device) = device() else { return };
    // Where a size depends on the floats in the end, each has a version of its own, as before.
    for (decides, most) in [(false, 2), (true, 9)] {
        let session = counting(&device, decides);
        for rows in [5usize, 6, 7, 8, 9, 11, 12, 14, 15] {
            let out = session.run(Tensor::zeros(ElementType::F32, [rows, 4]).unwrap()).unwrap();
            assert_eq!(out["y"].to_vec::<f32>().unwrap(), vec![rows as f32; rows * 4]);
            assert_eq!(out["half"].to_vec::<i64>().unwrap(), [rows as i64 / 2]);
            let ones = if decides { rows / 2 } else { rows };
            assert_eq!(out["ones"].to_vec::<f32>().unwrap(), vec![1.0; ones]);
        }
        let versions = session.loaded_versions();
        assert!(versions <= most, "{versions} versions, {decides}");
    }
}

/// A picture of so many rows and columns.
fn picture(rows: usize, columns: usize) -> Tensor {
    let numbers: Vec<f32> = (0..3 * rows * columns).map(|i| (i * 29 % 83) as f32 / 83.0 - 0.4).collect();
    Tensor::from_slice(&numbers, [3, rows, columns]).unwrap()
}

/// The size that `PICTURE` scales a side to: single precision in each step, as detectors compute it.
fn scaled(rows: usize, columns: usize) -> [usize; 2] {
    let scale = |side: usize, most: f32| 1.0 / side as f32 * most;
    let scale = scale(rows.min(columns), 24.0).min(scale(rows.max(columns), 40.0));
    [rows, columns].map(|side| (side as f32 * scale).floor() as usize)
}

#[test]
fn pictures_that_are_scaled_by_floats_of_their_sizes_share_plans() {
    let Some(device) = device() else { return };
    let session = builder(&device).model(PICTURE.to_vec()).max_loaded_versions(64).build().unwrap();
    let sizes = [
        (20, 30),
        (24, 24),
        (48, 30),
        (31, 57),
        (16, 60),
        (63, 63),
        (50, 17),
        (33, 34),
        (17, 19),
        (40, 24),
        (61, 37),
        (29, 62),
        (35, 35),
        (22, 55),
    ];
    for (index, (rows, columns)) in sizes.into_iter().enumerate() {
        let found = session.run(picture(rows, columns)).unwrap();
        let wanted = scaled(rows, columns).map(|side| side.div_ceil(8) * 2);
        assert_eq!(found["features"].shape(), [1, 4, wanted[0], wanted[1]], "{rows} x {columns}");
        if index % 4 == 1 {
            let alone = builder(&device)
                .model(PICTURE.to_vec())
                .dimension("height", rows)
                .dimension("width", columns)
                .build()
                .unwrap();
            let alone = alone.run(picture(rows, columns)).unwrap();
            let [found, alone] = [&found, &alone].map(|out| out["features"].to_vec::<f32>().unwrap());
            assert!(near(&found, &alone), "{rows} x {columns}: {found:?} {alone:?}");
        }
    }
    let versions = session.loaded_versions();
    assert!((2..=7).contains(&versions), "{versions} versions for {} sizes", sizes.len());
}

/// What `LISTS` computes: pairs of numbers that are joined, and every other one of those that it joins them of.
fn listed(rows: &[[f32; 2]]) -> [Vec<[f32; 2]>; 2] {
    let count = rows.iter().filter(|row| row[0].max(row[1]) > 0.0).count().min(3);
    let mut parts: Vec<Vec<[f32; 2]>> = Vec::new();
    for run in 0..count {
        let mut state: Vec<[f32; 2]> = rows.iter().map(|row| row.map(|x| x * (run + 1) as f32)).collect();
        let mut firsts = Vec::new();
        for _ in 0..count.min(2) {
            state.iter_mut().flatten().for_each(|x| *x += 1.0);
            firsts.push(state[0]);
        }
        state.append(&mut firsts);
        parts.insert(0, state);
    }
    let all = parts.concat();
    let last = all.chunks(3).next_back().unwrap_or_default();
    [[last, &all].concat(), all.iter().copied().step_by(2).collect()]
}

#[test]
fn lists_and_loops_have_the_lengths_that_data_decide() {
    let Some(device) = device() else { return };
    let session = builder(&device).model(LISTS.to_vec()).max_loaded_versions(64).build().unwrap();
    for count in [5, 3, 9, 2, 1, 17, 4] {
        let number = |i: usize| ((i * 31 + count * 7) % 23) as f32 / 4.0 - 3.5;
        let mut rows: Vec<[f32; 2]> = (0..count).map(|i| [number(2 * i), number(2 * i + 1)]).collect();
        // One at least is found.
        rows[0][0] = 0.5;
        let numbers: Vec<f32> = rows.iter().flatten().copied().collect();
        let out = session.run(Tensor::from_slice(&numbers, [count, 2]).unwrap()).unwrap();
        for (name, wanted) in ["joined", "others"].into_iter().zip(listed(&rows)) {
            assert_eq!(out[name].shape(), [wanted.len(), 2], "{name} of {count}");
            let found = out[name].to_vec::<f32>().unwrap();
            assert!(near(&found, wanted.as_flattened()), "{name} of {count}: {found:?} {wanted:?}");
        }
    }
}
