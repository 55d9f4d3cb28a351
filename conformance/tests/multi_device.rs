//! Programs for several devices, and bytecode with microkernels: what the committed modules compute is what the original
//! returned (`conformance/record.py`), on all kinds of devices at hand, named in any order.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::{path::Path, sync::Arc};

use halite_conformance::{
    corpus::{self, CorpusModule},
    replay,
};
use halite_hal::{Device, DeviceInfo, DriverRegistry, Options};
use halite_local as _;
use halite_vulkan as _;

type D = Arc<dyn Device>;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn open(uri: &str) -> D {
    halite_layers::open(&DriverRegistry::with_static_drivers(), uri, &Options::new()).unwrap()
}

/// A Vulkan device that leaves the pipelines that this user keeps alone.
fn without_cache(info: &DeviceInfo) -> String {
    info.uri() + "?pipeline_cache=off"
}

/// CPU devices with work on the caller's thread and on others.
fn local() -> Vec<D> {
    vec![open("local-sync://"), open("local-task://?threads=2")]
}

/// Two Vulkan devices: of two drivers where there are, else one that is opened twice. Without any the tests that want
/// one are skipped, unless `HALITE_TEST_DEVICE` names one.
fn vulkan() -> Vec<D> {
    let registry = DriverRegistry::with_static_drivers();
    let driver = registry.driver("vulkan").unwrap();
    let found = driver.enumerate(&Options::new()).unwrap_or_default();
    let mut devices: Vec<D> =
        found.iter().filter(|i| i.unusable.is_none()).map(|i| open(&without_cache(i))).take(2).collect();
    if let [only] = &devices[..] {
        let again = open(&without_cache(only.info()));
        devices.push(again);
    }
    if devices.is_empty() {
        assert!(std::env::var_os("HALITE_TEST_DEVICE").is_none(), "the Vulkan device was not found");
        eprintln!("SKIPPED: no Vulkan device");
    }
    devices
}

/// Runs a program on these devices and notes what went wrong.
fn check(complaints: &mut Vec<String>, program: &CorpusModule, devices: &[&D]) {
    let devices: Vec<D> = devices.iter().map(|d| (*d).clone()).collect();
    let verdicts = replay::run_on(root(), program, &devices);
    assert_eq!(verdicts.len(), program.calls.len());
    let names: Vec<_> = devices.iter().map(|d| d.info().uri()).collect();
    let failed = program.calls.iter().zip(&verdicts).filter(|(_, verdict)| !verdict.passed());
    complaints
        .extend(failed.map(|(call, v)| format!("{} {} on {names:?}: {v}", program.name, call.function)));
}

fn programs(set: &str, devices: &[&str]) -> Vec<CorpusModule> {
    let mut programs = corpus::programs(root(), set).unwrap();
    programs.retain(|program| program.devices == devices);
    assert!(!programs.is_empty());
    programs
}

#[track_caller]
fn conclude(complaints: &[String]) {
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn microkernels_of_bytecode() {
    let (mut complaints, devices) = (Vec::new(), local());
    for program in programs("vmvx", &["local"]) {
        devices.iter().for_each(|device| check(&mut complaints, &program, &[device]));
    }
    conclude(&complaints);
}

#[test]
fn two_processors() {
    let (mut complaints, devices) = (Vec::new(), local());
    let again = open("local-task://?threads=2");
    for program in programs("multi_device", &["local", "local"]) {
        for pair in [[&devices[0], &devices[1]], [&devices[1], &devices[0]], [&devices[1], &again]] {
            check(&mut complaints, &program, &pair);
        }
    }
    conclude(&complaints);
}

#[test]
fn two_gpus() {
    let (mut complaints, devices) = (Vec::new(), vulkan());
    let [a, b] = &devices[..] else { return };
    for program in programs("multi_device", &["vulkan", "vulkan"]) {
        check(&mut complaints, &program, &[a, b]);
        check(&mut complaints, &program, &[b, a]);
    }
    conclude(&complaints);
}

/// The caller's order decides where inputs are put, not which device does what.
#[test]
fn a_gpu_and_a_processor_in_any_order() {
    let (mut complaints, gpus, processors) = (Vec::new(), vulkan(), local());
    for kinds in [["vulkan", "local"], ["local", "vulkan"]] {
        for program in programs("multi_device", &kinds) {
            for (gpu, processor) in gpus.iter().zip(&processors) {
                check(&mut complaints, &program, &[gpu, processor]);
                check(&mut complaints, &program, &[processor, gpu]);
            }
        }
    }
    conclude(&complaints);
}
