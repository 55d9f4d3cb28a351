//! Compilations that are ended from outside, at every place where they look.

use std::{
    collections::{BTreeSet, HashMap},
    panic::Location,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;

use crate::{
    CompileError, CompileOptions, Compiled, Control, Model, ModelFormat, Precision, Program, Stage, compile,
    frontends::onnx::encode::{
        BOOL, FLOAT, INT4, INT64, body, floats, function, graph, int, model, node, port, tensor, value,
    },
    signature::Bindings,
};

/// From bytes to a module.
fn whole(bytes: &Bytes, precision: Precision, control: &Control) -> Result<Compiled, CompileError> {
    let model = Model::from_bytes(bytes.clone(), ModelFormat::named("onnx").unwrap(), control)?;
    let (function, _) = model.function("main", &[Bindings::default()], precision, control)?;
    compile(&Program { functions: vec![function], model: None }, &CompileOptions::default(), control)
}

/// A look: its stage, and where in the sources it is.
type Look = (Stage, &'static Location<'static>);

/// The looks of a compilation that is not ended.
fn looks(bytes: &Bytes, precision: Precision) -> Vec<Look> {
    let looks = Arc::new(Mutex::new(Vec::new()));
    let to = looks.clone();
    let control = Control::new().with_observer(move |stage, at| to.lock().unwrap().push((stage, at)));
    whole(bytes, precision, &control).unwrap();
    drop(control);
    Arc::into_inner(looks).unwrap().into_inner().unwrap()
}

/// The error of a compilation that is cancelled at its `k`th look, counted from 0.
fn cancelled_at(k: usize, bytes: &Bytes, precision: Precision) -> CompileError {
    let (count, control) = (AtomicUsize::new(0), Control::new());
    let inner = control.clone();
    let watched = control.with_observer(move |_, _| {
        if count.fetch_add(1, Ordering::Relaxed) == k {
            inner.cancel();
        }
    });
    whole(bytes, precision, &watched).unwrap_err()
}

fn ends_at(k: usize, looks: &[Look], bytes: &Bytes, precision: Precision) {
    match cancelled_at(k, bytes, precision) {
        CompileError::Cancelled { stage } => assert_eq!(stage, looks[k].0, "look {k}"),
        other => panic!("look {k} in {:?}: {other}", looks[k]),
    }
}

/// Runs of a body that adds `step` to what it carries, which is called `name`.
fn adding(name: &str, step: &str) -> crate::frontends::onnx::encode::Message {
    let (before, after, on) = (format!("{name}_before"), format!("{name}_after"), format!("{name}_on"));
    let (given, number) = (format!("{name}_given"), format!("{name}_number"));
    graph(
        &[node("Add", &[&before, step], &[&after], &[]), node("Identity", &[&given], &[&on], &[])],
        &[],
        &[port(&number, INT64, &[]), port(&given, BOOL, &[]), port(&before, FLOAT, &[4, 16])],
        &[port(&on, BOOL, &[]), port(&after, FLOAT, &[4, 16])],
    )
}

/// Layers of a product, a sum and an activation, and then a loop of so many runs.
fn chain(layers: usize, runs: i64) -> Bytes {
    let weights = (0..256).map(|i| (i % 7) as f32 * 0.01);
    let initializers = [
        tensor("w", FLOAT, &[16, 16], &floats(weights)),
        tensor("b", FLOAT, &[16], &floats([0.5; 16])),
        tensor("runs", INT64, &[], &runs.to_le_bytes()),
        tensor("go", BOOL, &[], &[1]),
    ];
    let mut nodes = Vec::new();
    let mut last = "x".to_owned();
    for layer in 0..layers {
        let [product, sum, next] = ["p", "s", "x"].map(|name| format!("{name}{layer}"));
        nodes.push(node("MatMul", &[&last, "w"], &[&product], &[]));
        nodes.push(node("Add", &[&product, "b"], &[&sum], &[]));
        nodes.push(node("Tanh", &[&sum], &[&next], &[]));
        last = next;
    }
    nodes.push(node("Loop", &["runs", "go", &last], &["y"], &[body("body", &adding("loop", "b"))]));
    let ports = [port("x", FLOAT, &[4, 16]), port("y", FLOAT, &[4, 16])];
    model(&graph(&nodes, &initializers, &ports[..1], &ports[1..]), &[])
}

/// A model with a bit of everything: a function, branches and loops that are known and that are not, a scan, a narrow type.
fn mixed() -> Bytes {
    let branch = |operator: &str, name: &str| {
        let made = node(operator, &["f"], &[name], &[]);
        graph(&[made], &[], &[], &[port(name, FLOAT, &[4, 16])])
    };
    let scanned = graph(
        &[node("Add", &["state", "row"], &["sum"], &[]), node("Identity", &["sum"], &["out"], &[])],
        &[],
        &[port("state", FLOAT, &[16]), port("row", FLOAT, &[16])],
        &[port("sum", FLOAT, &[16]), port("out", FLOAT, &[16])],
    );
    let nodes = [
        node("own:Twice", &["x"], &["f"], &[]),
        node(
            "If",
            &["which"],
            &["c"],
            &[body("then_branch", &branch("Exp", "t")), body("else_branch", &branch("Neg", "e"))],
        ),
        node("Loop", &["three", "go", "c"], &["u"], &[body("body", &adding("known", "row_0"))]),
        node("Loop", &["count", "go", "u"], &["v"], &[body("body", &adding("open", "row_0"))]),
        node("Scan", &["row_0", "v"], &["last", "all"], &[body("body", &scanned), int("num_scan_inputs", 1)]),
        node("Constant", &[], &["narrow"], &[value("value", &tensor("", INT4, &[16], &[0x21; 8]))]),
        node("DequantizeLinear", &["narrow", "scale"], &["wide"], &[]),
        node("Mul", &["all", "wide"], &["y"], &[]),
    ];
    let initializers = [
        tensor("three", INT64, &[], &3i64.to_le_bytes()),
        tensor("go", BOOL, &[], &[1]),
        tensor("row_0", FLOAT, &[16], &floats([1.0; 16])),
        tensor("scale", FLOAT, &[], &floats([0.5])),
    ];
    let inputs = [port("x", FLOAT, &[4, 16]), port("which", BOOL, &[]), port("count", INT64, &[])];
    let twice = function("Twice", &["a"], &["b"], &[node("Add", &["a", "a"], &["b"], &[])]);
    let outputs = [port("y", FLOAT, &[4, 16]), port("last", FLOAT, &[16])];
    model(&graph(&nodes, &initializers, &inputs, &outputs), &[twice])
}

/// Looks at which compilations are ended. In thorough runs, in each turn of a stage: the first two and the last of each place in the sources, and
/// every eighth of all, as those between come of the same line for another node; else those where a stage begins and ends, and every eighth.
fn places(looks: &[Look]) -> Vec<usize> {
    /// Every which of the others.
    const STEP: usize = 8;
    let is_thorough = std::env::var_os("HALITE_TEST_THOROUGH").is_some();
    let mut chosen: BTreeSet<usize> = (0..looks.len()).step_by(STEP).collect();
    let mut first = 0;
    for turn in looks.chunk_by(|one, next| one.0 == next.0) {
        chosen.extend([first, first + turn.len() - 1]);
        let mut of_place: HashMap<_, Vec<usize>> = HashMap::new();
        for (k, (_, at)) in (first..).zip(turn) {
            of_place.entry((at.file(), at.line(), at.column())).or_default().push(k);
        }
        for of_place in of_place.values().filter(|_| is_thorough) {
            chosen.extend(of_place.iter().take(2).chain(of_place.last()));
        }
        first += turn.len();
    }
    chosen.into_iter().collect()
}

/// The stages in their order, each once for each time that it comes.
fn order(stages: impl Iterator<Item = Stage>) -> Vec<Stage> {
    let mut order: Vec<Stage> = stages.collect();
    order.dedup();
    order
}

#[test]
fn a_compilation_ends_wherever_it_is_cancelled() {
    for precision in [Precision::Model, Precision::F16] {
        let bytes = mixed();
        let looks = looks(&bytes, precision);
        let stages = order(looks.iter().map(|look| look.0));
        let [reading, importing, optimizing, planning, choosing, again, writing] = stages[..] else {
            panic!("{stages:?}")
        };
        assert_eq!(
            [reading, importing, optimizing, planning, again, writing],
            [
                Stage::Reading,
                Stage::Importing,
                Stage::Optimizing,
                Stage::Planning,
                Stage::Planning,
                Stage::Writing
            ]
        );
        assert!(matches!(choosing, Stage::ChoosingKernels(_)));
        let chosen = places(&looks);
        println!("{} of {} looks end it", chosen.len(), looks.len());
        for k in chosen {
            ends_at(k, &looks, &bytes, precision);
        }
    }
}

#[test]
fn large_models_are_looked_at_all_the_time() {
    let bytes = chain(1000, 500);
    let looks = looks(&bytes, Precision::Model);
    // Each of the 3,500 nodes at least once in each stage that walks them.
    for stage in [Stage::Importing, Stage::Optimizing, Stage::Planning, Stage::Writing] {
        let count = looks.iter().filter(|look| look.0 == stage).count();
        assert!(count >= 2000, "{stage}: {count}");
    }
    let last = looks.len() - 1;
    for k in [0, last / 3, last * 4 / 5] {
        ends_at(k, &looks, &bytes, Precision::Model);
    }
}

#[test]
fn every_stage_tells_its_beginning_and_its_end() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let to = told.clone();
    let control = Control::new().with_progress(move |progress| to.lock().unwrap().push(progress));
    whole(&mixed(), Precision::Model, &control).unwrap();
    let told = told.lock().unwrap();
    let stages = order(told.iter().map(|progress| progress.stage));
    assert_eq!(stages.len(), 6, "{told:?}");
    for stage in stages {
        let own: Vec<_> = told.iter().filter(|progress| progress.stage == stage).collect();
        let last = own[own.len() - 1];
        assert!(own[0].done == 0 && last.done == last.total && last.total > 0, "{own:?}");
        assert!(own.is_sorted_by_key(|progress| progress.done), "{own:?}");
    }
}

#[test]
fn a_deadline_ends_a_compilation() {
    let past = Control::new().with_deadline(Instant::now());
    let error = whole(&mixed(), Precision::Model, &past).unwrap_err();
    assert!(matches!(error, CompileError::DeadlineExceeded { stage: Stage::Reading }), "{error}");
}

#[test]
fn what_was_cancelled_leaves_nothing_behind() {
    // The model that was read serves again, and gives the same bytes.
    let (bytes, options) = (mixed(), CompileOptions::default());
    let control = Control::new();
    let read = Model::from_bytes(bytes.clone(), ModelFormat::named("onnx").unwrap(), &control).unwrap();
    let function = |control: &Control| {
        let (function, _) = read.function("main", &[Bindings::default()], Precision::Model, control)?;
        Ok::<_, CompileError>(Program { functions: vec![function], model: Some(read.info()) })
    };
    let program = function(&control).unwrap();
    let module = compile(&program, &options, &control).unwrap().module.to_vec();
    control.cancel();
    assert!(function(&control).unwrap_err().is_stop());
    assert!(compile(&program, &options, &control).unwrap_err().is_stop());
    let again = compile(&function(&Control::new()).unwrap(), &options, &Control::new()).unwrap();
    assert_eq!(again.module.to_vec(), module);
}

/// Prints the longest times between two looks, of models of this file and of those in `HALITE_GAPS` (paths with commas).
#[test]
#[ignore = "it measures, and judges nothing: run it alone, in release"]
fn longest_times_between_looks() {
    let named = std::env::var("HALITE_GAPS").unwrap_or_default();
    let mut models = vec![("chain".to_owned(), chain(1000, 500)), ("loop".to_owned(), chain(1, 10_000))];
    for path in named.split(',').filter(|path| !path.is_empty()) {
        models.push((path.to_owned(), std::fs::read(path).unwrap().into()));
    }
    for (name, bytes) in models {
        type Seen = (Instant, Stage, Vec<(Duration, Stage, Stage)>);
        let seen: Arc<Mutex<Seen>> = Arc::new(Mutex::new((Instant::now(), Stage::Reading, Vec::new())));
        let to = seen.clone();
        let limit = Duration::from_secs(20);
        let control = Control::new().with_deadline(Instant::now() + limit).with_observer(move |stage, _| {
            let (at, before, gaps) = &mut *to.lock().unwrap();
            let now = Instant::now();
            gaps.push((now - *at, *before, stage));
            (*at, *before) = (now, stage);
        });
        let start = Instant::now();
        let result = whole(&bytes, Precision::Model, &control).map(drop);
        println!("{name}: {:?} of at most {limit:?}, {result:?}", start.elapsed());
        let (at, _, mut gaps) =
            std::mem::replace(&mut *seen.lock().unwrap(), (Instant::now(), Stage::Reading, Vec::new()));
        println!("  after the last look {:?}; {} looks", at.elapsed(), gaps.len());
        gaps.sort_by_key(|(gap, ..)| std::cmp::Reverse(*gap));
        for (gap, from, to) in gaps.iter().take(8) {
            println!("  {gap:?} from {from} to {to}");
        }
    }
}
