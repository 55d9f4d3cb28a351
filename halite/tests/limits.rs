//! Deadlines and cancellation end work in every stage, and the error names the stage.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use crate::common::{builder, device, onnx};
use halite::{CancelToken, ElementType, ErrorKind, RunOptions, Session, Tensor};

/// The stages of a session in the making, in the words of its progress.
fn stages_of(
    build: impl FnOnce(halite::SessionBuilder) -> halite::Result<Session>,
    builder: halite::SessionBuilder,
) -> Vec<String> {
    let stages = Arc::new(Mutex::new(Vec::<String>::new()));
    let told = stages.clone();
    let builder = builder.progress(move |progress| {
        let mut stages = told.lock().unwrap();
        if stages.last().is_none_or(|last| last != progress.detail) {
            stages.push(progress.detail.to_owned());
        }
    });
    build(builder).unwrap();

    stages.lock().unwrap().clone()
}

/// Stages that building a session of a model always passes. Pipelines are built beside it, and a call waits for them.
const WANTED: [&str; 2] = ["importing", "choosing kernels"];

/// Ends a building when a stage is reported: by a deadline that passes there, or by a token. `false` where the stage did not come.
/// `is_last`: the last report may come when all is done.
fn ends_in(
    stage: &str,
    is_last: bool,
    builder: halite::SessionBuilder,
    model: &[u8],
    end: impl Fn() + Send + Sync + 'static,
    kind: ErrorKind,
) -> bool {
    let reached = Arc::new(AtomicBool::new(false));
    let (seen, at) = (reached.clone(), stage.to_owned());
    let builder = builder.progress(move |progress| {
        if progress.detail == at && !seen.swap(true, Ordering::Relaxed) {
            end();
        }
    });
    let result = builder.model(model.to_vec()).build();
    if !reached.load(Ordering::Relaxed) {
        return false;
    }
    match result {
        Err(error) => {
            assert_eq!(error.kind(), kind, "{stage}: {error}");
            assert!(error.message().contains("while"), "{error}");
        }
        Ok(_) => assert!(is_last, "{stage} went on"),
    }
    true
}

#[test]
fn cancelling_in_any_stage_ends_the_building_there() {
    let Some(device) = device() else { return };
    let model = onnx::long(400);
    let stages = stages_of(|builder| builder.model(model.clone()).build(), builder(&device));
    for wanted in WANTED {
        assert!(stages.iter().any(|stage| stage.contains(wanted)), "{wanted}: {stages:?}");
    }
    for stage in &stages {
        let token = CancelToken::new();
        let switch = token.clone();
        let builder = builder(&device).cancel(&token);
        let is_last = Some(stage) == stages.last();
        let came = ends_in(stage, is_last, builder, &model, move || switch.cancel(), ErrorKind::Cancelled);
        assert!(came, "{stage} did not come again");
    }
}

#[test]
fn a_deadline_in_any_stage_ends_the_building_there() {
    let Some(device) = device() else { return };
    let model = onnx::long(60);
    let begun = Instant::now();
    let stages = stages_of(|builder| builder.model(model.clone()).build(), builder(&device));
    let mut time = begun.elapsed() * 2;
    for wanted in WANTED {
        assert!(stages.iter().any(|stage| stage.contains(wanted)), "{wanted}: {stages:?}");
    }
    for stage in &stages {
        // On a busy machine the stage may come later than the deadline: then with more time.
        let came = (0..6).any(|_| {
            let deadline = Instant::now() + time;
            let wait = move || {
                while let Some(left) = deadline.checked_duration_since(Instant::now()) {
                    std::thread::park_timeout(left);
                }
            };
            let builder = builder(&device).options(RunOptions::new().deadline(deadline));
            let is_last = Some(stage) == stages.last();
            let came = ends_in(stage, is_last, builder, &model, wait, ErrorKind::DeadlineExceeded);
            if !came {
                time *= 3;
            }
            came
        });
        assert!(came, "{stage} did not come within {time:?}");
    }
}

#[test]
fn a_call_under_way_ends_by_its_deadline_and_when_it_is_cancelled() {
    let Some(device) = device() else { return };
    let session = builder(&device).model(onnx::repeated()).build().unwrap();
    let x = Tensor::from_slice(&[0f32, 1.0, 2.0, 3.0], 4).unwrap();
    let often = |n: i64| Tensor::from_slice(&[n], ()).unwrap();
    let rounds = |n: i64, limits: &RunOptions| session.run_with([("n", often(n)), ("x", x.clone())], limits);
    let right = |n: i64| {
        let out = rounds(n, &RunOptions::new()).unwrap();
        assert_eq!(
            out["y"].to_vec::<f32>().unwrap(),
            [n as f32, n as f32 + 1.0, n as f32 + 2.0, n as f32 + 3.0]
        );
    };
    right(3);
    // More rounds than any machine has time for.
    let ever = 1 << 40;
    let late = rounds(ever, &RunOptions::new().timeout(Duration::from_millis(50))).unwrap_err();
    assert_eq!(late.kind(), ErrorKind::DeadlineExceeded, "{late}");
    let token = CancelToken::new();
    let limits = RunOptions::new().cancel(&token).timeout(Duration::from_secs(300));
    let before = device.transfers().uploads;
    std::thread::scope(|scope| {
        let call = scope.spawn(|| rounds(ever, &limits).unwrap_err());
        // An input is on the device, so the call has begun.
        while device.transfers().uploads == before && !call.is_finished() {
            std::thread::yield_now();
        }
        token.cancel();
        let error = call.join().unwrap();
        assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
    });
    // Nothing of this is left behind.
    right(5);
}

#[test]
fn a_deadline_that_passed_ends_building_and_calls() {
    let Some(device) = device() else { return };
    let late = builder(&device).timeout(Duration::ZERO).model(onnx::adds(1.0)).build().unwrap_err();
    assert_eq!(late.kind(), ErrorKind::DeadlineExceeded, "{late}");
    assert_eq!(late.message(), "the deadline passed before the work began");
    let session = builder(&device).model(onnx::adds(1.0)).build().unwrap();
    let x = Tensor::zeros(ElementType::F32, 4).unwrap();
    let over = RunOptions::new().timeout(Duration::ZERO);
    // The sizes are new, so this call would have compiled.
    let compiling = session.run_with(&x, &over).unwrap_err();
    assert_eq!(compiling.kind(), ErrorKind::DeadlineExceeded, "{compiling}");
    session.run(&x).unwrap();
    let running = session.run_with(&x, &over).unwrap_err();
    assert_eq!(running.kind(), ErrorKind::DeadlineExceeded, "{running}");
    assert_eq!(running.message(), "the deadline passed before the call began");
    let token = CancelToken::new();
    token.cancel();
    let stopped = RunOptions::new().cancel(&token);
    // Whether its version is there or not, nothing of such a call begins, and nobody compiles for another.
    let larger = Tensor::zeros(ElementType::F32, 5).unwrap();
    for input in [&x, &larger] {
        let all = [
            session.run_with(input, &stopped).err(),
            session.start_with(input, &stopped).err(),
            session.prewarm_with(input, &stopped).err(),
            session.default_function().unwrap().profile_with(input, &stopped).err(),
        ];
        for cancelled in all.map(Option::unwrap) {
            assert_eq!(cancelled.kind(), ErrorKind::Cancelled, "{cancelled}");
            assert_eq!(cancelled.message(), "cancelled before the call began");
        }
    }
    // A wait for a call that has begun says something else.
    let call = session.start(&x).unwrap();
    if let Err(waiting) = call.wait_with(&stopped) {
        assert!(!waiting.message().contains("began"), "{waiting}");
    }
    let building = builder(&device).cancel(&token).model(onnx::adds(1.0)).build().unwrap_err();
    assert_eq!(building.message(), "cancelled before the work began");
    // Nothing of this is left behind.
    assert_eq!(session.run(&x).unwrap()["y"].to_vec::<f32>().unwrap(), [1.0; 4]);
}

#[test]
fn a_call_that_nobody_wants_is_left_out_and_others_are_right() {
    let Some(device) = device() else { return };
    let session = builder(&device).model(onnx::adds(1.0)).build().unwrap();
    assert!(session.default_function().unwrap().info().is_stateless());
    // Enough that some of it waits for its turn.
    let x = Tensor::zeros(ElementType::F32, 1 << 20).unwrap().to_device(&device).unwrap();
    session.run(&x).unwrap();
    let calls: Vec<_> = (0..16).map(|_| session.start(&x).unwrap()).collect();
    let unwanted = |place: usize| place % 2 == 1;
    calls.iter().enumerate().filter(|(place, _)| unwanted(*place)).for_each(|(_, call)| call.abandon());
    for (place, call) in calls.iter().enumerate() {
        match call.wait_with(&RunOptions::new()) {
            Ok(out) => assert_eq!(out["y"].to_vec::<f32>().unwrap(), vec![1.0; 1 << 20], "call {place}"),
            Err(error) => {
                assert!(unwanted(place) && error.kind() == ErrorKind::Cancelled, "{place}: {error}");
            }
        }
    }
}

#[test]
fn a_cancelled_compilation_can_be_had_again() {
    let Some(device) = device() else { return };
    let session = builder(&device).model(onnx::adds(3.0)).build().unwrap();
    let x = Tensor::zeros(ElementType::F32, 6).unwrap();
    let token = CancelToken::new();
    let switch = token.clone();
    let limits = RunOptions::new().cancel(&token).progress(move |_| switch.cancel());
    assert_eq!(session.run_with(&x, &limits).unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!(session.run(&x).unwrap()["y"].to_vec::<f32>().unwrap(), [3.0; 6]);
}
