//! Profiles of calls: every operation of a model with its time, parts that add up, traces, and calls that stay as they were.
#![cfg(feature = "compiler")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::time::Duration;

use crate::common::{array, builder, device, digits, near};
use halite::{ErrorKind, Profile, Session, WorkKind};

fn session() -> Option<Session> {
    Some(builder(&device()?).model(digits()).build().unwrap())
}

#[test]
fn a_profile_names_the_operations_of_the_model_and_adds_up() {
    let Some(session) = session() else { return };
    let input = || [("picture", array("sample_3.npy"))];
    let before = session.run(input()).unwrap()["probabilities"].to_vec::<f32>().unwrap();
    let (out, profile) = session.profile(input()).unwrap();
    assert_eq!(out["probabilities"].to_vec::<f32>().unwrap(), before);
    assert_eq!(session.run(input()).unwrap()["probabilities"].to_vec::<f32>().unwrap(), before);

    let kernels: Vec<_> =
        profile.commands().iter().filter(|command| command.kind == WorkKind::Dispatch).collect();
    assert!(kernels.len() >= 5, "{kernels:?}");
    for command in &kernels {
        let operation = command.operation.as_ref().unwrap();
        assert!(!operation.location.is_empty() && !operation.variant.is_empty(), "{operation:?}");
        assert!(operation.text.starts_with(&operation.kind), "{operation:?}");
        assert!(operation.bytes.unwrap() > 0.0 && operation.flops.unwrap() > 0.0, "{operation:?}");
        assert!(!command.entry_point.is_empty() && command.workgroups.is_some() && command.is_of_program);
    }
    assert!(kernels.iter().any(|command| command.operation.as_ref().unwrap().kind == "conv2d"));
    adds_up(&profile);
    assert_eq!(profile.uploaded_bytes(), 4 * 16 * 16);
    assert_eq!(profile.downloaded_bytes(), 4 * 10);
}

fn adds_up(profile: &Profile) {
    assert_eq!(
        profile.total(),
        profile.upload() + profile.launch() + (profile.run() - profile.launch()) + profile.download()
    );
    let [times] = profile.devices() else { panic!("{:?}", profile.devices()) };
    let own: Duration = profile.commands().iter().filter(|c| c.is_of_program).map(|c| c.own).sum();
    assert_eq!((own, times.busy + times.gaps()), (times.busy, times.span));
    assert!(times.span <= profile.run() && times.busy > Duration::ZERO, "{profile:?}");
    assert_eq!(times.unmeasured, 0);
}

#[test]
fn traces_are_events_in_order_on_host_and_device() {
    let Some(session) = session() else { return };
    let input = || [("picture", array("sample_3.npy"))];
    let profiles: Vec<Profile> = (0..2).map(|_| session.profile(input()).unwrap().1).collect();
    let trace: serde_json::Value = serde_json::from_str(&Profile::to_trace_of(&profiles)).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let complete: Vec<_> = events.iter().filter(|event| event["ph"] == "X").collect();
    let commands: usize = profiles.iter().map(|profile| profile.commands().len()).sum();
    assert_eq!(complete.len(), 2 * 4 + commands);
    let total: f64 = profiles.iter().map(|profile| profile.total().as_secs_f64() * 1e6).sum();
    for event in complete {
        let (start, time) = (event["ts"].as_f64().unwrap(), event["dur"].as_f64().unwrap());
        assert!(start >= 0.0 && start + time <= total + 1.0, "{event}");
        assert!(event["name"].as_str().is_some_and(|name| !name.is_empty()), "{event}");
    }
    assert!(events.iter().any(|event| event["args"]["variant"].is_string()));
}

#[test]
fn calls_on_several_threads_are_right_while_one_is_profiled() {
    let Some(session) = session() else { return };
    let input = || [("picture", array("sample_3.npy"))];
    let expected = session.run(input()).unwrap()["probabilities"].to_vec::<f32>().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..10 {
                    let out = session.run(input()).unwrap();
                    assert!(near(&out["probabilities"].to_vec::<f32>().unwrap(), &expected));
                }
            });
        }
        for _ in 0..5 {
            let (out, profile) = session.profile(input()).unwrap();
            assert!(near(&out["probabilities"].to_vec::<f32>().unwrap(), &expected));
            assert!(!profile.commands().is_empty());
        }
    });
}

#[test]
fn wrong_inputs_are_told_and_leave_the_device_as_it_was() {
    let Some(session) = session() else { return };
    assert_eq!(
        session.profile([("image", array("sample_3.npy"))]).unwrap_err().kind(),
        ErrorKind::InvalidInput
    );
    session.profile([("picture", array("sample_3.npy"))]).unwrap();
}
