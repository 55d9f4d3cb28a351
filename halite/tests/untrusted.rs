//! Sessions of strangers' programs: what they may not do, what bounds them, and how a caller says otherwise.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::time::Duration;

use halite::{Cache, Device, Drivers, ErrorKind, RunOptions, Session, Tensor};

/// A module whose only code is machine code for this kind of processor.
const MACHINE_CODE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../drivers/local/tests/data/add_x86_64.vmfb");

/// A Vulkan device of the processor, if there is one.
fn vulkan() -> Option<String> {
    let found = Drivers::linked().devices().into_iter().find(|info| {
        info.driver() == "vulkan" && info.unusable().is_none() && info.kind() == halite::DeviceKind::Cpu
    });
    if found.is_none() {
        eprintln!("SKIPPED: no Vulkan device here runs on the processor");
    }
    found.map(|info| info.uri())
}

#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn machine_code_is_refused_on_a_device_that_is_named() {
    Session::builder().device("local-task").model(MACHINE_CODE).build().unwrap();
    for device in ["local-task", "local-sync"] {
        let refused = Session::builder().untrusted().device(device).model(MACHINE_CODE).build().unwrap_err();
        assert!(refused.to_string().contains("machine code"), "{refused}");
    }
    let refused =
        Session::builder().untrusted().device("local-task?native_code=on").model(MACHINE_CODE).build();
    assert!(refused.unwrap_err().to_string().contains("contradicts untrusted=on"));
}

#[test]
fn devices_have_to_be_opened_for_strangers() {
    let trusting = Device::open("local-sync").unwrap();
    let refused = Session::builder().untrusted().device(&trusting).model(MACHINE_CODE).build().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::PermissionDenied, "{refused}");
    assert!(refused.to_string().contains("untrusted=on"), "{refused}");
    let refused =
        Session::builder().untrusted().device("local-sync?untrusted=off").model(MACHINE_CODE).build();
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::PermissionDenied);
    let bounded = Session::builder().device(&trusting).device_memory(1 << 20).model(MACHINE_CODE).build();
    assert_eq!(bounded.unwrap_err().kind(), ErrorKind::InvalidInput);
    if let Some(uri) = vulkan() {
        for contradiction in ["dispatch_abi=all", "robust_buffer_access=off"] {
            let uri = format!("{uri}?{contradiction}&untrusted=on");
            let refused = Drivers::linked().open(&uri).unwrap_err();
            assert!(refused.to_string().contains("contradicts untrusted=on"), "{refused}");
        }
    }
}

#[test]
#[cfg(feature = "compiler")]
fn models_run_as_ever_within_the_bounds() {
    let Some(uri) = vulkan() else { return };
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../demo/digits/digits.onnx");
    let run = |session: &Session, options: &RunOptions| {
        let inputs = session.default_function().unwrap().zeros().unwrap();
        session.run_with(inputs.into_iter().collect::<Vec<Tensor>>(), options)
    };
    let builder = || Session::builder().untrusted().device(uri.as_str()).model(model);
    let session = builder().build().unwrap();
    run(&session, &RunOptions::new()).unwrap();
    let late = run(&session, &RunOptions::new().timeout(Duration::ZERO)).unwrap_err();
    assert_eq!(late.kind(), ErrorKind::DeadlineExceeded, "{late}");
    let late = builder().timeout(Duration::ZERO).build().unwrap_err();
    assert_eq!(late.kind(), ErrorKind::DeadlineExceeded, "{late}");
    let folder = tempfile::tempdir().unwrap();
    builder().cache(Cache::at(folder.path().join("named"))).build().unwrap();
    assert!(folder.path().join("named").exists());
    let small = builder().device_memory(4096).build().and_then(|session| run(&session, &RunOptions::new()));
    let small = small.unwrap_err();
    assert!(small.to_string().contains("memory_limit"), "{small}");
}
