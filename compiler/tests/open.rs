//! Ranges of sizes: a few graphs hold for all of them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::path::Path;

use halite_compiler::{
    BASELINE, CompileOptions, Control, Coverage, Model, ModelFormat, Precision, compile, signature::Bindings,
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

#[test]
fn what_cannot_be_for_the_sizes_wanted_ends_early_and_says_where() {
    let model = model();
    let inputs = model.inputs("main").unwrap();
    let bindings = |length: u64, wanted: u64| {
        let given = &lengths(length)[length as usize - 1];
        let varies = |name: &str| (name == "length").then_some((2, 1 << 20));
        let mut open =
            halite_compiler::opened(given, &inputs, &varies, halite_compiler::Steps::None).unwrap();
        open.holds = vec![vec![vec![1, wanted, 16]]];
        open
    };
    let options = CompileOptions::for_targets(&[Target::parse("cpu-llvmpipe-linux").unwrap()]);
    let made = |length, wanted| {
        let wanted_shape = [vec![1, wanted, 16]];
        let bindings = bindings(length, wanted);
        model.open_version("main", (&bindings, &wanted_shape), Precision::Model, &options, &Control::new())
    };
    let coverage = made(10, 5).unwrap().unwrap().coverage;
    assert!(coverage.has([&[1, 5, 16][..]].into_iter()));
    let why = coverage.why_not([&[1, 40, 16][..]].into_iter()).unwrap();
    assert!(why.contains("length"), "{why}");
    let Err(halite_compiler::CompileError::OtherSizes { location, guard, region }) = made(10, 40) else {
        panic!("10 and 40 share no plan")
    };
    // The first node says it: nothing is planned in vain.
    assert!(guard.contains("length") && !location.to_string().is_empty(), "{location}: {guard}");
    let refuses = |length| halite_compiler::refuses(&region, &inputs, &[vec![1, length, 16]]);
    assert!(refuses(40) && !refuses(11));
}

/// Pictures of all of these heights and widths.
fn pictures(rows: std::ops::RangeInclusive<u64>, columns: std::ops::RangeInclusive<u64>) -> Vec<Bindings> {
    let one = |rows, columns| Bindings {
        dims: [("height".to_owned(), rows), ("width".to_owned(), columns)].into(),
        ..Bindings::default()
    };
    rows.flat_map(|rows| columns.clone().map(move |columns| one(rows, columns))).collect()
}

#[test]
fn pictures_have_few_versions_for_all_heights_and_widths() {
    let model = named("open_picture");
    let options = CompileOptions::for_targets(&[Target::parse("cpu-llvmpipe-linux").unwrap()]);
    let versions = pictures(20..=80, 20..=80);
    let made = model.open_function("main", &versions, Precision::Model, &options, &Control::new()).unwrap().0;
    assert!(made.versions.len() <= 16, "{} versions for {} sizes", made.versions.len(), versions.len());
    // Of one that is too narrow nothing is left when it is scaled: the error says which.
    let thin = pictures(2..=3, 200..=203);
    let error = model.open_function("main", &thin, Precision::Model, &options, &Control::new()).unwrap_err();
    assert!(error.to_string().contains("with picture of 3x3x203"), "{error}");
    // With others among them, there are versions for these.
    let some = pictures(2..=12, 200..=203);
    let made = model.open_function("main", &some, Precision::Model, &options, &Control::new()).unwrap().0;
    let left_out = made.left_out.clone().unwrap();
    assert!(left_out.combinations == 16 && left_out.why.contains("with picture of 3x5x203"), "{left_out}");
    let covers: Vec<Coverage> = made.versions.iter().map(Coverage::of).collect();
    for (rows, columns) in (2..=12).flat_map(|rows| (200..=203).map(move |columns| (rows, columns))) {
        let is_taken = covers.iter().any(|cover| cover.has([&[3, rows, columns][..]].into_iter()));
        assert_eq!(is_taken, rows > 5, "{rows}x{columns}");
    }
    // And the module says to a call with those what the compiler said.
    let program = halite_compiler::Program { functions: vec![made], model: None };
    let compiled = compile(&program, &options, &Control::new()).unwrap();
    let said = "not for all of them: Resize #16: a step is not 0, with picture of 3x5x203, and 15 more";
    assert!(compiled.module.to_vec().windows(said.len()).any(|part| part == said.as_bytes()));
    assert!(said.ends_with(compiled.report.targets[0].functions[0].left_out.as_ref().unwrap()));
}

/// Bounds are often powers of the number by which sizes share plans: the last size alone is no plan.
#[test]
fn recurrent_layers_have_few_versions_for_all_lengths_and_batches() {
    let model = named("open_recurrent");
    let options = CompileOptions::for_targets(&[Target::parse("cpu-llvmpipe-linux").unwrap()]);
    let one = |length, batch| Bindings {
        dims: [("length".to_owned(), length), ("batch".to_owned(), batch)].into(),
        ..Bindings::default()
    };
    let versions: Vec<Bindings> =
        (1..=1024).flat_map(|length| (1..=4).map(move |batch| one(length, batch))).collect();
    let made = model.open_function("main", &versions, Precision::Model, &options, &Control::new()).unwrap().0;
    assert!(made.versions.len() <= 40, "{} versions for {} sizes", made.versions.len(), versions.len());
    let covers: Vec<Coverage> = made.versions.iter().map(Coverage::of).collect();
    for (length, batch) in (1..=1024).flat_map(|length| (1..=4).map(move |batch| (length, batch))) {
        let shapes = [&[length, batch, 5][..], &[batch][..]];
        assert!(covers.iter().any(|cover| cover.has(shapes.into_iter())), "{length} steps of {batch}");
    }
}
