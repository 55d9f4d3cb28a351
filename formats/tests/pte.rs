//! ExecuTorch programs: real files against a text that another decoder wrote, and damaged ones.
#![allow(clippy::unwrap_used, reason = "a helper that fails is a failed test")]

use crate::common::{Noise, files};
use bytes::Bytes;
use halite_formats::pte::{
    Constant, Instruction, Plan, Program, PteError, Value, VulkanGraph, VulkanTensor, VulkanValue, XnnGraph,
};
use std::path::{Path, PathBuf};

/// The corpus of real programs, or `None` (said aloud) when it is not beside this checkout.
fn corpus() -> Option<PathBuf> {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/corpus/pte"));
    if path.is_dir() {
        return Some(path.to_owned());
    }
    eprintln!("SKIPPED: no corpus at {}", path.display());
    None
}

/// Programs of the corpus, and those of this repository.
fn programs() -> Vec<PathBuf> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut found = files(&data, "pte");
    assert!(!found.is_empty(), "the repository has programs in {}", data.display());
    found.extend(files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/pte/xnnpack"), "pte"));
    found.extend(corpus().into_iter().flat_map(|corpus| files(&corpus, "pte")));
    found
}

fn read(path: &Path) -> Bytes {
    std::fs::read(path).unwrap().into()
}

/// Everything that a program holds, read.
fn graphs(file: &Bytes) -> Result<(Program, Vec<VulkanGraph>), PteError> {
    let program = Program::parse(file)?;
    let mut graphs = Vec::new();
    for plan in &program.plans {
        for tensor in plan.values.iter().filter_map(|v| if let Value::Tensor(t) = v { Some(t) } else { None })
        {
            program.constant(tensor)?;
            program.initial(tensor)?;
        }
        for delegate in plan.delegates.iter().filter(|d| d.id == "VulkanBackend") {
            graphs.push(VulkanGraph::parse(&delegate.data)?);
        }
    }
    for delegate in program.plans.iter().flat_map(|plan| &plan.delegates) {
        if delegate.id == "XnnpackBackend" {
            XnnGraph::parse(&delegate.data)?;
        }
    }
    Ok((program, graphs))
}

/// A list as Python writes it.
fn list<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<_> = items.into_iter().map(|i| i.to_string()).collect();
    format!("[{}]", items.join(", "))
}

fn boolean(value: bool) -> &'static str {
    if value { "True" } else { "False" }
}

/// Whether a float with six digits, as the text has it, is this one.
fn same_float(text: &str, value: f64) -> bool {
    let near =
        |told: f64| told == value || told.is_nan() && value.is_nan() || (told / value - 1.0).abs() < 1e-5;
    text.parse::<f64>().is_ok_and(near)
}

fn tensor(tensor: &VulkanTensor) -> (String, String) {
    let end = tensor.constant.map_or_else(String::new, |c| format!("const#{c}"));
    (format!("tensor {}{}", tensor.datatype, list(&tensor.dims)), format!("stg={} {end}", tensor.staging))
}

/// Whether a line of the text, without its number, tells of the value. Layouts and memory are not read.
fn tells(line: &str, value: &VulkanValue) -> bool {
    match value {
        VulkanValue::Null => line.trim_end() == "Null",
        VulkanValue::Int(v) => line == format!("Int {v}"),
        VulkanValue::SymInt(v) => line == format!("SymInt {v}"),
        VulkanValue::Bool(v) => line == format!("Bool {}", boolean(*v)),
        VulkanValue::Double(v) => line.strip_prefix("Double ").is_some_and(|text| same_float(text, *v)),
        VulkanValue::IntList(v) => line == format!("IntList {}", list(v)),
        VulkanValue::BoolList(v) => line == format!("BoolList {}", list(v.iter().map(|b| boolean(*b)))),
        VulkanValue::List(v) => line == format!("ValueList {}", list(v)),
        VulkanValue::String(v) => line == format!("String {v}"),
        VulkanValue::DoubleList(v) => {
            let inner = line.strip_prefix("DoubleList [").and_then(|rest| rest.strip_suffix(']')).unwrap();
            inner.split(", ").zip(v).all(|(text, v)| same_float(text, *v))
        }
        VulkanValue::Tensor(t) => {
            let (start, end) = tensor(t);
            line.starts_with(&start)
                && line.contains(end.trim_end())
                && t.constant.is_some() == line.contains("const#")
        }
    }
}

/// What the text says of one delegate.
fn compare(lines: &mut std::iter::Peekable<std::str::Lines<'_>>, graph: &VulkanGraph, named: &Program) {
    for (i, value) in graph.values.iter().enumerate() {
        let line = lines.next().unwrap();
        let line = line.strip_prefix(&format!("%{i} ")).unwrap_or_else(|| panic!("{line} is not value {i}"));
        assert!(tells(line, value), "{line} is not {value:?}");
    }
    let ports = format!("inputs {} outputs {}", list(&graph.inputs), list(&graph.outputs));
    assert_eq!(lines.next(), Some(ports.as_str()));
    for call in &graph.calls {
        assert_eq!(lines.next(), Some(format!("{} {}", call.name, list(&call.args)).as_str()));
    }
    let constants = graph.constants.iter().map(|constant| {
        let Constant::Named { key, length } = constant else { panic!("the constant is in the graph") };
        assert_eq!(named.named[key].len() as u64, *length);
        format!("({length}, '{}')", &key[..12])
    });
    assert_eq!(lines.next(), Some(format!("constants {}", list(constants)).as_str()));
}

fn instructions(plan: &Plan) -> String {
    let name = |instruction: &Instruction| match instruction {
        Instruction::Kernel { operator, .. } => plan.operators[*operator].clone(),
        Instruction::Delegate { delegate, .. } => format!("<delegate {delegate}>"),
        other => panic!("no file has {other:?}"),
    };
    plan.chains[0].iter().map(name).collect::<Vec<_>>().join(" ")
}

#[test]
fn programs_of_the_corpus_are_what_another_decoder_told() {
    let Some(corpus) = corpus() else { return };
    let mut compared = 0;
    for path in files(&corpus, "pte") {
        let (program, graphs) = graphs(&read(&path)).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let text = std::fs::read_to_string(path.with_extension("graph.txt")).unwrap();
        let mut lines = text.lines().peekable();
        for graph in &graphs {
            assert!(lines.next().unwrap().starts_with("# delegate"), "{}", path.display());
            compare(&mut lines, graph, &program);
        }
        let told = lines.next().unwrap().strip_prefix("# instructions ").unwrap();
        assert_eq!(instructions(&program.plans[0]), told, "{}", path.display());
        compared += 1;
    }
    assert!(compared > 100, "only {compared} files were compared");
}

#[test]
fn cut_files_are_refused() {
    for path in programs() {
        let file = read(&path);
        if file.len() > 8192 {
            continue;
        }
        for length in (0..file.len()).step_by(7) {
            assert!(graphs(&file.slice(..length)).is_err(), "{} cut to {length} bytes", path.display());
        }
    }
}

#[test]
fn damaged_files_do_no_harm() {
    let mut noise = Noise(0x9E37_79B9_7F4A_7C15);
    for path in programs().iter().filter(|p| std::fs::metadata(p).unwrap().len() < 16384) {
        let whole = std::fs::read(path).unwrap();
        for _ in 0..40 {
            let mut file = whole.clone();
            for _ in 0..=noise.below(8) {
                let at = noise.below(file.len());
                file[at] = noise.next() as u8;
            }
            // Either outcome is fine: an error, or a program whose indices hold.
            if let Ok((program, graphs)) = graphs(&file.into()) {
                sound(&program, &graphs);
            }
        }
    }
}

fn sound(program: &Program, graphs: &[VulkanGraph]) {
    for plan in &program.plans {
        let within = |i: &usize| *i < plan.values.len();
        assert!(plan.inputs.iter().chain(&plan.outputs).all(within));
    }
    for graph in graphs {
        let within = |i: &usize| *i < graph.values.len();
        assert!(graph.inputs.iter().chain(&graph.outputs).all(within));
        assert!(graph.calls.iter().all(|call| call.args.iter().all(within)));
    }
}

#[test]
fn errors_say_what_was_expected() {
    let error = |bytes: &'static [u8]| Program::parse(&Bytes::from_static(bytes)).unwrap_err().to_string();
    assert!(error(b"\x08\0\0\0ONNX\0\0\0\0\0\0\0\0").contains("ET12"));
    assert!(error(b"\x20\0\0\0ET12eh00\x18\0\0\0").contains("extended header"));
    let blob = VulkanGraph::parse(&Bytes::from_static(b"VH00")).unwrap_err().to_string();
    assert!(blob.contains("VH00") && blob.contains("4 bytes"), "{blob}");
}
