//! Sessions of models and modules on the first Vulkan device: names, places, open sizes, devices, threads, transfers.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::thread;

use crate::common::{array, builder, device, digits, near, onnx, repo};
use halite::{Device, ElementType, ErrorKind, Inputs, RunOptions, Session, Source, Tensor};

fn expected(name: &str) -> Vec<f32> {
    array(name).to_vec().unwrap()
}

#[test]
fn a_model_runs_by_name_and_by_place_from_a_path_bytes_and_a_reader() {
    let Some(device) = device() else { return };
    let bytes = std::fs::read(digits()).unwrap();
    let sources: [Source; 3] =
        [Source::path(digits()), bytes.clone().into(), Source::reader(std::io::Cursor::new(bytes))];
    for source in sources {
        let session = builder(&device).model(source).build().unwrap();
        let info = session.default_function().unwrap().info().clone();
        let (input, output) = (info.inputs[0].name.clone(), info.outputs[0].name.clone());
        let by_name = session.run([(input, array("sample_7.npy"))]).unwrap();
        let by_place = session.run(array("sample_7.npy")).unwrap();
        let probabilities: Vec<f32> = by_name[output.as_str()].to_vec().unwrap();
        assert!(near(&probabilities, &expected("expected_7.npy")), "{probabilities:?}");
        assert_eq!(probabilities, by_place[0].to_vec::<f32>().unwrap());
    }
}

#[test]
fn a_module_of_another_compiler_runs_too() {
    let Some(device) = device() else { return };
    let session = builder(&device).model(repo("demo/digits/digits.vmfb")).build().unwrap();
    let classify = session.function("classify").unwrap();
    let out = classify.run(array("sample_3.npy")).unwrap();
    assert!(near(&out[0].to_vec().unwrap(), &expected("expected_3.npy")));
    let missing = session.function("nothing").unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    assert!(missing.message().contains("module.classify"), "{missing}");
}

#[test]
fn eight_threads_run_one_session() {
    let Some(device) = device() else { return };
    let session = builder(&device).model(onnx::adds(0.5)).dimension("n", 257).build().unwrap();
    thread::scope(|scope| {
        for number in 0..8 {
            let session = session.clone();
            scope.spawn(move || {
                for round in 0..20 {
                    let x: Vec<f32> = (0..257).map(|i| (number * 1000 + round * 10 + i) as f32).collect();
                    let out = session.run([("x", Tensor::from_slice(&x, 257).unwrap())]).unwrap();
                    let wanted: Vec<f32> = x.iter().map(|x| x + 0.5).collect();
                    assert_eq!(out["y"].to_vec::<f32>().unwrap(), wanted);
                }
            });
        }
    });
}

#[test]
fn eight_sessions_share_one_device() {
    let Some(device) = device() else { return };
    thread::scope(|scope| {
        for number in 0..8u8 {
            let device = device.clone();
            scope.spawn(move || {
                let constant = f32::from(number);
                let session = builder(&device).model(onnx::adds(constant)).build().unwrap();
                assert!(session.device().unwrap().is_same(&device));
                for _ in 0..5 {
                    let out = session.run(Tensor::from_slice(&[1.0f32, 2.0], 2).unwrap()).unwrap();
                    assert_eq!(out["y"].to_vec::<f32>().unwrap(), [1.0 + constant, 2.0 + constant]);
                }
            });
        }
    });
}

#[test]
fn results_are_fed_back_without_a_copy() {
    let Some(device) = device() else { return };
    let session = builder(&device).model(onnx::adds(1.0)).build().unwrap();
    let mut x = Tensor::zeros(ElementType::F32, 64).unwrap();
    for _ in 0..10 {
        x = session.run([("x", &x)]).unwrap()["y"].clone();
        assert!(x.device().is_some_and(|own| own.is_same(&device)));
    }
    let before = device.transfers();
    assert_eq!((before.uploads, before.downloads), (1, 0), "only the first input was copied");
    assert_eq!(x.to_vec::<f32>().unwrap(), [10.0; 64]);
    let after = device.transfers();
    assert_eq!((after.uploads, after.downloads, after.downloaded_bytes), (1, 1, 256));
}

#[test]
fn a_call_that_was_started_is_waited_for() {
    let Some(device) = device() else { return };
    let session = builder(&device).model(onnx::adds(2.0)).dimension("n", 3).build().unwrap();
    let input = |v: f32| Tensor::from_slice(&[v; 3], 3).unwrap();
    let pending: Vec<_> = (0..16).map(|i| session.start(input(i as f32)).unwrap()).collect();
    for (i, pending) in pending.into_iter().enumerate().rev() {
        let out = pending.wait().unwrap();
        assert_eq!(out["y"].to_vec::<f32>().unwrap(), [i as f32 + 2.0; 3]);
    }
    let forgotten = session.start(input(1.0)).unwrap();
    drop(forgotten);
    assert_eq!(session.run(input(5.0)).unwrap()["y"].to_vec::<f32>().unwrap(), [7.0; 3]);
}

#[test]
fn open_sizes_are_compiled_when_they_are_called() {
    let Some(device) = device() else { return };
    let session = builder(&device).model(onnx::adds(1.0)).max_loaded_versions(2).build().unwrap();
    assert_eq!(session.loaded_versions(), 0);
    for n in [3usize, 5, 3, 7, 3] {
        let out = session.run(Tensor::zeros(ElementType::F32, n).unwrap()).unwrap();
        assert_eq!(out["y"].to_vec::<f32>().unwrap(), vec![1.0; n]);
        assert!(session.loaded_versions() <= 2);
    }
    session.prewarm(Tensor::zeros(ElementType::F32, 9).unwrap()).unwrap();
    assert_eq!(session.loaded_versions(), 2);
}

#[test]
fn bounds_are_compiled_ahead_and_are_the_limit() {
    let Some(device) = device() else { return };
    let session = builder(&device).model(onnx::adds(1.0)).bound("n", 1..=4).build().unwrap();
    assert_eq!(session.loaded_versions(), 1);
    for n in 1..=4 {
        let out = session.run(Tensor::zeros(ElementType::F32, n).unwrap()).unwrap();
        assert_eq!(out["y"].to_vec::<f32>().unwrap(), vec![1.0; n]);
    }
    let error = session.run(Tensor::zeros(ElementType::F32, 5).unwrap()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
}

#[test]
fn wrong_inputs_are_told_by_name_before_anything_is_compiled() {
    let Some(device) = device() else { return };
    let session = builder(&device).model(onnx::adds(1.0)).build().unwrap();
    let error = |inputs: Inputs| session.run(inputs).unwrap_err().message().to_owned();
    let x = Tensor::zeros(ElementType::F32, 2).unwrap();
    assert_eq!(error([("z", &x)].into()), "'main' has no input 'z'; its inputs are 'x'");
    assert!(error(().into()).contains("inputs of 'main' are missing: 'x' f32[n]"));
    let wrong = Tensor::zeros(ElementType::F64, 2).unwrap();
    assert!(error((&wrong).into()).contains("'x' f32[n] of 'main' cannot be a tensor 2xf64"));
    assert!(
        error((&Tensor::zeros(ElementType::F32, [2, 2]).unwrap()).into())
            .contains("the input has 1 dimensions")
    );
    assert_eq!(session.loaded_versions(), 0);
}

#[test]
fn what_cannot_be_built_says_why() {
    let nothing = Session::builder().build().unwrap_err();
    assert_eq!(nothing.kind(), ErrorKind::InvalidInput);
    let missing = Session::builder().model("no/such.onnx").build().unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    assert!(missing.message().contains("no/such.onnx"));
    let Some(device) = device() else { return };
    let damaged = builder(&device).model(b"\x08\x08\x12\x07pytorch\xFF\xFF".to_vec()).build().unwrap_err();
    assert_eq!(damaged.kind(), ErrorKind::InvalidModel, "{damaged}");
    let module = builder(&device).model(b"\x20\0\0\0IREE nothing".to_vec()).build().unwrap_err();
    assert_eq!(module.kind(), ErrorKind::InvalidModel, "{module}");
    let names = builder(&device).model(onnx::adds(1.0)).dimension("m", 1).build().unwrap_err();
    assert_eq!(names.message(), "no input has an open dimension 'm'; there are: n");
    let unknown = Device::open("vulkan://no such device").unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::NotFound);
    let operator = onnx::model(&[
        onnx::node("NoSuchOperator", &["x"], &["y"]),
        onnx::value(11, "x", &["1"]),
        onnx::value(12, "y", &["1"]),
    ]);
    let operator = builder(&device).model(operator).build().unwrap_err();
    assert_eq!(operator.kind(), ErrorKind::Unsupported, "{operator}");
    assert!(operator.message().contains("NoSuchOperator"), "{operator}");
}

#[test]
fn sessions_results_and_devices_may_go_in_any_order() {
    let Some(device) = device() else { return };
    let session = builder(&device).model(onnx::adds(1.0)).build().unwrap();
    let out = session.run_with(Tensor::zeros(ElementType::F32, 4).unwrap(), &RunOptions::new()).unwrap();
    drop(session);
    drop(device);
    assert_eq!(out["y"].to_vec::<f32>().unwrap(), [1.0; 4]);
}

#[test]
fn a_wait_that_ends_early_can_be_had_again() {
    let Some(device) = device() else { return };
    let session = builder(&device).model(onnx::adds(1.0)).build().unwrap();
    let pending = session.start(Tensor::zeros(ElementType::F32, 8).unwrap()).unwrap();
    // Done or not, asking does no harm.
    let _ = pending.wait_timeout(std::time::Duration::ZERO).unwrap();
    let first = pending.wait_with(&RunOptions::new()).unwrap();
    let second = pending.wait().unwrap();
    assert_eq!(first["y"].to_vec::<f32>().unwrap(), second["y"].to_vec::<f32>().unwrap());
}

#[test]
fn sines_of_phases_that_add_up_are_exact() {
    let Some(device) = device() else { return };
    let model = |op: &str| {
        onnx::model(&[
            onnx::node(op, &["x"], &["y"]),
            onnx::value(11, "x", &["n"]),
            onnx::value(12, "y", &["n"]),
        ])
    };
    // As sources of speech have them, of ten seconds at 3,000 periods a second and longer.
    let phases: Vec<f32> =
        (0..4096).map(|i| (i as f32 - 2048.0) * 1234.567).chain([0.0, 1.0, 131_072.8, -205_887.4]).collect();
    for (op, of) in [("Sin", f64::sin as fn(f64) -> f64), ("Cos", f64::cos)] {
        let session = builder(&device).model(model(op)).build().unwrap();
        let out = session.run(Tensor::from_slice(&phases, phases.len()).unwrap()).unwrap();
        for (found, phase) in out["y"].to_vec::<f32>().unwrap().iter().zip(&phases) {
            let wanted = of(f64::from(*phase));
            assert!((f64::from(*found) - wanted).abs() < 5e-7, "{op} of {phase}: {found} for {wanted}");
        }
    }
}

#[test]
fn types_go_between_threads() {
    fn both<T: Send + Sync>() {}
    fn send<T: Send>() {}
    both::<(
        Session,
        halite::Function,
        halite::Pending,
        Tensor,
        halite::Value,
        halite::Outputs,
        Device,
        halite::Drivers,
    )>();
    both::<(RunOptions, halite::CancelToken, halite::Cache, halite::Error, halite::FunctionInfo)>();
    both::<(halite::compile::Model, halite::compile::Compiler, halite::compile::Compiled)>();
    send::<(Source, halite::SessionBuilder)>();
}
