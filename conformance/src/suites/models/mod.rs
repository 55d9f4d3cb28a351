//! The suite of models: what our compiler makes of programs and models, run on the device and compared with the kernels'
//! references, PyTorch's or ONNX Runtime's results.
//!
//! | area | file | models |
//! |---|---|---|
//! | `program` | `programs.rs` | graphs that exercise each part of the compiler |
//! | `pte` | `pte.rs` | ExecuTorch programs of this repository, and of the corpus |
//! | `vgf` | `vgf.rs` | VGF and TOSA files of this repository, and those of a folder that is named |
//! | `onnx` | `onnx.rs` | ONNX models of the corpus |
//! | `tiny` | `onnx.rs` | ONNX models of this repository |
//! | `node` | `onnx.rs` | node tests of the `onnx` package, where they are named |
//!
//! Each is compiled for every device (`target=baseline`) and for the device at hand (`target=own`).

mod onnx;
pub mod programs;
pub mod pte;
mod vgf;

use std::sync::Arc;

use anyhow::Result;
use halite_compiler::{CompileError, CompileOptions, Control, compile, graph::Graph};
use halite_hal::DeviceInfo;
use halite_ops::Values;
use halite_testing::{Numbers, Wrong, ulp};
use halite_tools::kernels::capabilities;

use self::programs::Sample;
use super::{Cases, Context, Offer, Outcome, Settings, Stop, takes_spirv};
use crate::executor::Executor;

/// For whom a model is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum For {
    /// Every device.
    Everybody,
    /// The device at hand.
    Own,
}

impl For {
    const ALL: [For; 2] = [For::Everybody, For::Own];

    fn name(self) -> &'static str {
        match self {
            For::Everybody => "baseline",
            For::Own => "own",
        }
    }

    /// The tag of cases; none for those of one device.
    fn tags(self) -> Vec<&'static str> {
        match self {
            For::Everybody => vec!["baseline"],
            For::Own => Vec::new(),
        }
    }

    fn options(self, device: &DeviceInfo) -> std::result::Result<CompileOptions, Stop> {
        Ok(match self {
            For::Everybody => CompileOptions::default(),
            For::Own => CompileOptions {
                targets: vec![capabilities(device).map_err(Stop::Skip)?],
                baseline: false,
                at_hand: true,
                ..CompileOptions::default()
            },
        })
    }
}

impl From<CompileError> for Stop {
    /// What the compiler says that it does not support is no failure of a device.
    fn from(error: CompileError) -> Self {
        match error {
            unsupported if unsupported.is_unsupported() => Stop::Skip(unsupported.to_string()),
            other => Stop::Fail(format!("compiling: {other}")),
        }
    }
}

impl From<anyhow::Error> for Stop {
    fn from(error: anyhow::Error) -> Self {
        match error.downcast::<CompileError>() {
            Ok(error) => error.into(),
            Err(error) => Stop::Fail(format!("{error:#}")),
        }
    }
}

/// All cases for a device.
///
/// # Errors
/// A manifest is malformed.
pub fn offer(settings: &Settings, device: &DeviceInfo) -> Result<Offer> {
    if !takes_spirv(device) {
        return Ok(Offer::nothing("the device takes no SPIR-V, which is what the compiler writes"));
    }
    let mut cases = Cases::new("models");
    let mut left_out = Vec::new();
    for sample in programs::all()? {
        let sample = Arc::new(sample);
        for target in For::ALL {
            let name = format!("program.{}:target={}", word(sample.name), target.name());
            let sample = sample.clone();
            cases.add_tagged(name, &[], target.tags(), move |t| program(t, &sample, target));
        }
    }
    pte::add(&mut cases, &mut left_out, settings)?;
    vgf::add(&mut cases, settings)?;
    onnx::add(&mut cases, &mut left_out, settings)?;
    Ok(Offer { cases: cases.finish(), left_out })
}

/// A name for people as a part of a name of a case.
fn word(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("_")
}

fn program(t: &Context, sample: &Sample, target: For) -> Outcome {
    let options = target.options(t.device().info())?;
    let module = compile(&sample.program, &options, &Control::default())?;
    let executor = Executor::new(t.device().clone());
    let session = executor.session(&module)?;
    for (call, inputs) in sample.calls.iter().enumerate() {
        let graph = sample.graph(call);
        let expected = graph.evaluate(inputs)?;
        let found = executor.call(&session, "main", graph, inputs)?;
        compare(graph, &expected, &found)?;
    }
    Ok(())
}

/// Compares outputs of a graph: floats agree to four digits, or to what their type holds; everything else to the bit.
pub fn compare(graph: &Graph, expected: &[Values], found: &[Values]) -> Outcome {
    super::case::same("the number of outputs", found.len(), expected.len())?;
    for ((expected, found), port) in expected.iter().zip(found).zip(&graph.outputs) {
        let element = graph.tensor(port.tensor).element;
        let digits = if element.is_float() { element.storage().epsilon().max(1e-5) * 10.0 } else { 0.0 };
        let output = Output { name: &port.name, graph, port: port.tensor, tolerance: (digits, digits) };
        output.compare(expected, found)?;
    }
    Ok(())
}

/// An output of a graph, and how far it may be off: absolutely, and as a part of what is expected.
struct Output<'a> {
    name: &'a str,
    graph: &'a Graph,
    port: halite_compiler::graph::TensorId,
    tolerance: (f64, f64),
}

impl Output<'_> {
    fn compare(&self, expected: &Values, found: &Values) -> Outcome {
        super::case::same(&format!("the length of '{}'", self.name), found.len(), expected.len())?;
        let (absolute, relative) = self.tolerance;
        let near = |index: &usize| {
            if let (Values::Int(a), Values::Int(b)) = (expected, found) {
                return a[*index] == b[*index];
            }
            let (a, b) = (expected.float(*index), found.float(*index));
            // What is no number is near nothing else.
            a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= absolute + relative * a.abs()
        };
        let mut wrong = (0..expected.len()).filter(|index| !near(index));
        let Some(first) = wrong.next() else { return Ok(()) };
        let tensor = self.graph.tensor(self.port);
        let shown = |values: &Values| match values {
            Values::Int(values) => values[first].to_string(),
            Values::Float(values) => values[first].to_string(),
        };
        let dims: Vec<_> = tensor.dims().iter().map(ToString::to_string).collect();
        let ulp = match (expected, found) {
            (Values::Float(a), Values::Float(b)) => ulp(b[first], a[first], tensor.element.storage()),
            _ => None,
        };
        let numbers = Numbers {
            output: self.name.to_owned(),
            shape: format!("{}x{}", dims.join("x"), tensor.element),
            index: vec![first as u64],
            expected: shown(expected),
            got: shown(found),
            ulp,
            tolerance: format!("{absolute:.1e} + {relative:.1e} * |expected|"),
            wrong: 1 + wrong.count() as u64,
            of: expected.len() as u64,
        };
        let what = format!(
            "element {first} of '{}' is {}, not {}; {} of {} elements are wrong",
            self.name, numbers.got, numbers.expected, numbers.wrong, numbers.of
        );
        Err(Stop::Wrong(Box::new(Wrong { what, numbers: Some(numbers) })))
    }
}
