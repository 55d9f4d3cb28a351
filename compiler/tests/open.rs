//! Ranges of sizes: a few graphs hold for all of them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::path::Path;

use halite_compiler::{
    BASELINE, CompileOptions, Control, Coverage, Model, ModelFormat, Precision, compile, opened,
    signature::Bindings,
};
use halite_targets::Target;

fn model() -> Model {
    named("open_encoder")
}

fn named(name: &str) -> Model {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../halite/tests/data/{name}.onnx"));
    Model::open(&path, ModelFormat::named("onnx").unwrap()).unwrap()
}

fn lengths(most: u64) -> Vec<Bindings> {
    let one = |length| Bindings {
        dims: [("batch".to_owned(), 1), ("length".to_owned(), length)].into(),
        ..Bindings::default()
    };
    (1..=most).map(one).collect()
}

#[test]
fn an_encoder_has_few_versions_for_many_lengths() {
    let model = model();
    for target in [BASELINE, "cpu-llvmpipe-linux", "hopper-h200-linux"] {
        let options = CompileOptions::for_targets(&[Target::parse(target).unwrap()]);
        let control = Control::new();
        let found = model.open_function("main", &lengths(512), Precision::Model, &options, &control);
        let (function, _) = found.unwrap();
        let shown = || {
            let guards = function.versions.iter().map(|graph| match &graph.open {
                Some(open) => format!("{:?}\n", open.trace.guards()),
                None => "fixed\n".to_owned(),
            });
            guards.take(3).collect::<String>()
        };
        assert!(function.versions.len() <= 24, "{target}: {} versions\n{}", function.versions.len(), shown());
        let covers: Vec<Coverage> = function.versions.iter().map(Coverage::of).collect();
        for length in 1..=512 {
            let shape = [&[1, length, 16][..]];
            assert!(covers.iter().any(|cover| cover.has(shape.iter().copied())), "{target}: {length}");
        }
        let program = halite_compiler::Program { functions: vec![function], model: None };
        compile(&program, &options, &control).unwrap();
    }
}

/// A mask is one longer than the cache before a call: two sizes that only move together. Sequences of several lengths have as few.
#[test]
fn a_cache_that_grows_has_few_versions() {
    let model = named("open_decoder");
    let inputs = model.inputs("main").unwrap();
    let shapes = |batch: u64, past: u64| -> Vec<Vec<u64>> {
        let cache = vec![batch, 1, past, 16];
        [vec![batch, 1], vec![batch, past + 1]].into_iter().chain(vec![cache; 4]).collect()
    };
    let targets = [BASELINE, "cpu-llvmpipe-linux", "hopper-h200-linux"].map(|target| (target, 1));
    for (target, batch) in targets.into_iter().chain([(BASELINE, 3)]) {
        let options = CompileOptions::for_targets(&[Target::parse(target).unwrap()]);
        let mut covers: Vec<Coverage> = Vec::new();
        for past in 2..=512 {
            let shapes = shapes(batch, past);
            let fits = |cover: &Coverage| cover.has(shapes.iter().map(Vec::as_slice));
            if covers.iter().any(fits) {
                continue;
            }
            let names = inputs.iter().map(|input| input.name.clone());
            let own = Bindings { shapes: names.zip(shapes.clone()).collect(), ..Bindings::default() };
            let own = opened(&own, &inputs, &|_| Some((0, 1 << 40)), true).unwrap();
            let made = model.open_version("main", &own, Precision::Model, &options, &Control::new());
            let (_, cover) = made.unwrap().unwrap_or_else(|| panic!("{target}: {past} shares with no other"));
            assert!(fits(&cover), "{target}: {batch} x {past}");
            covers.push(cover);
        }
        assert!(covers.len() <= 10, "{target}: {} versions\n{covers:?}", covers.len());
    }
}
