//! What callers and options can get wrong, and what modules say then; and what options change.

use std::sync::{Arc, Mutex};

use halite_compiler::{
    CompileOptions, Compiled, Control, ParameterStorage, Program, compile,
    graph::{Graph, Shape},
};
use halite_conformance::suites::models::programs::Sample;
use halite_formats::vmfb::read_module;
use halite_hal::Options;
use halite_ops::Values;
use halite_targets::{Capabilities, Target};
use halite_testing::drivers::registry;

use crate::{
    all, compiled,
    device::{Device, compare},
};

fn case(name: &str) -> Sample {
    all().into_iter().find(|case| case.name == name).unwrap()
}

fn target(name: &str) -> Capabilities {
    Capabilities::of(Target::parse(name).unwrap())
}

/// Only for these targets.
fn without_baseline(targets: Vec<Capabilities>) -> CompileOptions {
    CompileOptions { targets, baseline: false, ..CompileOptions::default() }
}

fn passes(device: &Device, module: &Compiled, case: &Sample) {
    let graph = case.graph(0);
    let expected = graph.evaluate(&case.calls[0]).unwrap();
    compare(case.name, graph, &expected, &device.run(module, "main", graph, &case.calls[0]).unwrap());
}

#[test]
fn inputs_of_other_sizes_are_refused_with_what_there_is() {
    let Some(device) = Device::vulkan() else { return };
    let case = case("versions for several sizes");
    let session = device.session(&compiled(&case.program, &CompileOptions::default()));
    let mut other = case.graph(0).clone();
    let (x, scale) = (other.inputs[0].tensor, other.inputs[1].tensor);
    other.tensors[x.index()].shape = Shape::new([5u64, 8]);
    let refused = |graph: &Graph, inputs: &[Values]| {
        device.call(&session, "main", graph, inputs).unwrap_err().to_string()
    };
    let numbers = |count: usize| Values::Float(vec![0.5; count]);
    let told = refused(&other, &[numbers(40), numbers(1)]);
    assert!(told.contains("'x') [1x8]") && told.contains("'x') [16x8]"), "{told}");
    // What all versions agree on is told by itself.
    other.tensors[x.index()].shape = Shape::new([3u64, 8]);
    other.tensors[scale.index()].shape = Shape::new([2u64]);
    let told = refused(&other, &[numbers(24), numbers(2)]);
    assert!(told.contains("input 1 ('scale')") && told.contains("expected 1 but have 2"), "{told}");
}

#[test]
fn other_values_than_those_compiled_for_are_refused() {
    let Some(device) = Device::vulkan() else { return };
    let case = case("versions for several values");
    let inputs = [case.calls[0][0].clone(), Values::Int(vec![2, 6])];
    let told = |program: &Program| {
        let module = compiled(program, &CompileOptions::default());
        device.run(&module, "main", case.graph(0), &inputs).unwrap_err().to_string()
    };
    let several = told(&case.program);
    assert!(
        several.contains("it was compiled for") && several.contains("'shape') [2] with the bytes 03 00"),
        "{several}"
    );
    let one = told(&Program::of("main", case.program.functions[0].versions[0].clone()));
    assert!(one.contains("input 1 ('shape') has another value"), "{one}");
}

#[test]
fn constants_can_be_kept_beside_the_module() {
    let Some(device) = Device::vulkan() else { return };
    let case = case("constants packed at load");
    let parameters = ParameterStorage::External { scope: "weights".to_owned() };
    let options = CompileOptions { parameters, ..CompileOptions::default() };
    let (inside, beside) =
        (compiled(&case.program, &CompileOptions::default()), compiled(&case.program, &options));
    assert!(inside.parameters.is_none() && inside.module.len() > beside.module.len() + 100_000);
    assert_eq!(beside.parameters.as_ref().unwrap().scope, "weights");
    passes(&device, &beside, &case);
    let alone = Compiled { parameters: None, ..beside };
    assert!(device.try_session(&alone).unwrap_err().to_string().contains("weights"));
}

#[test]
fn the_target_that_fits_the_device_is_run() {
    let Some(device) = Device::vulkan() else { return };
    let case = case("convolutions");
    let own = device.capabilities();
    // Of another vendor than the device: it must not be chosen.
    let other = if own.target.vendor().name == "nvidia" { "rdna3" } else { "ampere" };
    let elsewhere = target(other);
    for options in [
        without_baseline(vec![elsewhere.clone(), own.clone()]),
        without_baseline(vec![own.clone(), elsewhere.clone()]),
        CompileOptions { targets: vec![elsewhere.clone()], ..CompileOptions::default() },
    ] {
        passes(&device, &compiled(&case.program, &options), &case);
    }
    let nothing = compiled(&case.program, &without_baseline(vec![elsewhere]));
    let told = device.try_session(&nothing).unwrap_err().to_string();
    assert!(told.contains(&format!("compiled for {} only", target(other).target)), "{told}");
}

#[test]
fn devices_without_vulkan_are_refused() {
    let case = case("product, bias, rectifier");
    let module = compiled(&case.program, &CompileOptions::default());
    let cpu = Device::of(halite_layers::open(&registry(&[]), "local-sync", &Options::new()).unwrap());
    let told = cpu.try_session(&module).unwrap_err().to_string();
    assert!(told.contains("no device of the session runs Vulkan kernels"), "{told}");
}

#[test]
fn constants_are_stored_once_for_all_targets() {
    let case = case("constants packed at load");
    let one = compiled(&case.program, &CompileOptions::default());
    let targets = vec![target("hopper-h200-linux"), target("valhall-g78-android30")];
    let three = compiled(&case.program, &CompileOptions { targets, ..CompileOptions::default() });
    assert_eq!(three.report.targets.len(), 3);
    assert_eq!(one.report.constants, three.report.constants);
    let largest = |module: &Compiled| {
        let def = read_module(module.module.to_vec().into()).unwrap();
        def.rodata.iter().filter(|data| data.len() as u64 >= 120_000).count()
    };
    assert_eq!((largest(&one), largest(&three)), (1, 1));
}

#[test]
fn progress_tells_each_target() {
    let case = case("versions for several sizes");
    let stages = Arc::new(Mutex::new(Vec::new()));
    let to = stages.clone();
    let control = Control::new()
        .with_progress(move |p| to.lock().unwrap().push((p.stage.to_string(), p.done, p.total)));
    let options = CompileOptions { targets: vec![target("hopper-h200-linux")], ..CompileOptions::default() };
    let compiled = compile(&case.program, &options, &control);
    let stages = stages.lock().unwrap();
    assert!(
        compiled
            .unwrap()
            .report
            .to_string()
            .contains("target vp-vulkan_1_1-unknown (for every other device)")
    );
    assert!(stages.iter().all(|(_, done, total)| done <= total));
    for target in ["hopper-h200-linux", "vp-vulkan_1_1-unknown"] {
        let own: Vec<_> = stages.iter().filter(|(stage, ..)| stage.ends_with(target)).collect();
        let (first, last) = (own.first().unwrap(), own.last().unwrap());
        assert!(first.1 == 0 && last.1 == last.2 && last.2 > 0, "{stages:?}");
    }
}
