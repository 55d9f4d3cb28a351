//! Deadlines and cancellation end work in every stage, and the error names the stage.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod common;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use common::{builder, device, onnx};
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

#[test]
fn cancelling_in_any_stage_ends_the_building_there() {
    let Some(device) = device() else { return };
    let model = onnx::long(400);
    let stages = stages_of(|builder| builder.model(model.clone()).build(), builder(&device));
    for wanted in ["importing", "choosing kernels"] {
        assert!(stages.iter().any(|stage| stage.contains(wanted)), "{wanted}: {stages:?}");
    }
    for stage in &stages {
        let token = CancelToken::new();
        let (switch, at) = (token.clone(), stage.clone());
        let reached = Arc::new(AtomicBool::new(false));
        let seen = reached.clone();
        let result = builder(&device)
            .cancel(&token)
            .progress(move |progress| {
                if progress.detail == at {
                    seen.store(true, Ordering::Relaxed);
                    switch.cancel();
                }
            })
            .model(model.clone())
            .build();
        assert!(reached.load(Ordering::Relaxed), "{stage} did not come again");
        // The last report of the last stage may come when all is done.
        if let Err(error) = result {
            assert_eq!(error.kind(), ErrorKind::Cancelled, "{stage}: {error}");
            assert!(error.message().contains("while"), "{error}");
        } else {
            assert_eq!(Some(stage), stages.last());
        }
    }
}

#[test]
fn a_deadline_that_passed_ends_building_and_calls() {
    let Some(device) = device() else { return };
    let late = builder(&device).timeout(Duration::ZERO).model(onnx::adds(1.0)).build().unwrap_err();
    assert_eq!(late.kind(), ErrorKind::DeadlineExceeded, "{late}");
    let session = builder(&device).model(onnx::adds(1.0)).build().unwrap();
    let x = Tensor::zeros(ElementType::F32, 4).unwrap();
    let over = RunOptions::new().timeout(Duration::ZERO);
    // The sizes are new, so this call would have compiled.
    let compiling = session.run_with(&x, &over).unwrap_err();
    assert_eq!(compiling.kind(), ErrorKind::DeadlineExceeded, "{compiling}");
    session.run(&x).unwrap();
    let running = session.run_with(&x, &over).unwrap_err();
    assert_eq!(running.kind(), ErrorKind::DeadlineExceeded, "{running}");
    let token = CancelToken::new();
    token.cancel();
    let cancelled = session.run_with(&x, &RunOptions::new().cancel(&token)).unwrap_err();
    assert_eq!(cancelled.kind(), ErrorKind::Cancelled, "{cancelled}");
    // Nothing of this is left behind.
    assert_eq!(session.run(&x).unwrap()["y"].to_vec::<f32>().unwrap(), [1.0; 4]);
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
