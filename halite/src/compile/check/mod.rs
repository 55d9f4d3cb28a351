//! Checks of a model on a device, node by node: each against the operation's reference on the host, on the very values that the
//! device computed before it; against recorded values; and whether runs give the same bits.

mod compare;
mod known;
mod report;

use std::time::Instant;

use bytes::Bytes;
use halite_compiler::{
    self as inner,
    graph::{Graph, TensorId},
    signature::Bindings,
};

pub use self::report::{CheckReport, Difference, NodeCheck, RecordedCheck};
use self::{
    compare::{against, compare},
    known::Known,
};
use super::{Model, Precision, Sizes, Tuning};
use crate::{
    Cache, Device, Error, ErrorKind, FunctionInfo, Inputs, Outputs, Result, RunOptions, Session, Source,
    Tensor, Value,
    options::Limits,
    session::{check, lists},
};

/// Most bytes of all results of operations together: all are kept on the device and on the host.
const MOST_BYTES: u64 = 4 << 30;

/// How a model is checked.
///
/// ```no_run
/// use halite::{Device, compile::{Checker, Model}};
///
/// let model = Model::open("digits.onnx")?;
/// let inputs = [("picture", halite::Tensor::from_vec(vec![0.5f32; 256], [1, 1, 16, 16])?)];
/// let report = Checker::new().runs(3).check(&model, &Device::open("vulkan")?, inputs)?;
/// if let Some(node) = report.first_wrong() {
///     println!("{} is the first that is wrong: {:?}", node.location, node.worst);
/// }
/// # Ok::<(), halite::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Checker {
    runs: usize,
    function: Option<String>,
    precision: Precision,
    tuning: Tuning,
    recorded: Vec<(String, Tensor)>,
    absolute: f64,
    relative: f64,
}

impl Default for Checker {
    fn default() -> Self {
        Checker {
            runs: 1,
            function: None,
            precision: Precision::default(),
            tuning: Tuning::default(),
            recorded: Vec::new(),
            absolute: 1e-4,
            relative: 1e-3,
        }
    }
}

impl Checker {
    /// One run of the first function.
    pub fn new() -> Self {
        Self::default()
    }

    /// How often the model runs; runs after the first must give the same bits. 1 at least.
    #[must_use]
    pub fn runs(mut self, runs: usize) -> Self {
        self.runs = runs.max(1);
        self
    }

    /// The function that is checked.
    #[must_use]
    pub fn function(mut self, name: impl Into<String>) -> Self {
        self.function = Some(name.into());
        self
    }

    /// Which floats are used inside.
    #[must_use]
    pub fn precision(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self
    }

    /// Adds what another runtime computed for a tensor of the model, by the tensor's name.
    #[must_use]
    pub fn recorded(mut self, name: impl Into<String>, tensor: Tensor) -> Self {
        self.recorded.push((name.into(), tensor));
        self
    }

    /// How far recorded values may be off: `absolute + relative * |recorded|`; 1e-4 and 1e-3 unless this says otherwise.
    #[must_use]
    pub fn tolerance(mut self, absolute: f64, relative: f64) -> Self {
        (self.absolute, self.relative) = (absolute, relative);
        self
    }

    /// Checks a model on a device.
    ///
    /// # Errors
    /// The model cannot be compiled or run, or its results are too large to be kept. What the check finds is no error.
    pub fn check(&self, model: &Model, device: &Device, inputs: impl Into<Inputs>) -> Result<CheckReport> {
        self.check_with(model, device, inputs, &RunOptions::new())
    }

    /// As [`Checker::check`], with options.
    ///
    /// # Errors
    /// As [`Checker::check`], and when the options end it.
    pub fn check_with(
        &self,
        model: &Model,
        device: &Device,
        inputs: impl Into<Inputs>,
        options: &RunOptions,
    ) -> Result<CheckReport> {
        let limits = options.begin()?;
        let info = self.info(model)?;
        let values = all_inputs(&info, inputs.into())?;
        let compile = self.options(device)?;
        let graph = self.graph(model, &info.name, &values, &compile, &limits)?;
        let (exposed, tensors) = graph.exposed();
        let bytes = tensors.iter().map(|id| graph.tensor(*id).bytes()).fold(0, u64::saturating_add);
        if bytes > MOST_BYTES {
            let text = format!(
                "the results of all operations take {bytes} bytes, and up to {MOST_BYTES} are kept for a check; check smaller inputs"
            );
            return Err(Error::new(ErrorKind::OutOfMemory, text));
        }
        let session = session(&exposed, &info.name, device, &compile, &limits, options)?;
        let given: Vec<Value> = lists::one_by_one(&values).cloned().collect();
        let start = Instant::now();
        let first = run(&session, &given, options, graph.outputs.len())?;
        let mut report = CheckReport { function: info.name.clone(), ..CheckReport::default() };
        let mut known =
            Known { graph: &graph, computed: tensors.iter().copied().zip(first.iter().cloned()).collect() };
        known.inputs(&given)?;
        for node in &graph.body.nodes {
            limits.check("comparing with the references")?;
            known.views(node);
            report.nodes.extend(compare(&graph, node, &known));
        }
        report.recorded = self
            .recorded
            .iter()
            .map(|(name, tensor)| against(&graph, name, tensor, &known, self.absolute, self.relative))
            .collect::<Result<_>>()?;
        report.runs = 1;
        for _ in 1..self.runs {
            let again = run(&session, &given, options, graph.outputs.len())?;
            report.runs += 1;
            if report.differs.is_none() {
                report.differs = differs(&graph, &tensors, &first, &again);
            }
        }
        log::info!("checked {} nodes in {:?}", report.nodes.len(), start.elapsed());
        Ok(report)
    }

    /// The function that is checked.
    fn info(&self, model: &Model) -> Result<FunctionInfo> {
        let functions = model.functions()?;
        let info = match &self.function {
            Some(name) => functions.iter().find(|info| info.name == *name),
            None => functions.first(),
        };
        info.cloned().ok_or_else(|| {
            let names: Vec<_> = functions.iter().map(|info| info.name.as_str()).collect();
            Error::new(
                ErrorKind::NotFound,
                format!("there is no such function; the model has {}", names.join(", ")),
            )
        })
    }

    /// How it is compiled for the device.
    fn options(&self, device: &Device) -> Result<inner::CompileOptions> {
        Ok(inner::CompileOptions {
            targets: vec![super::capabilities(device.hal().info())?],
            baseline: false,
            at_hand: true,
            tuning: self.tuning.read()?.tuning(),
            module_name: "module".to_owned(),
            parameters: inner::ParameterStorage::Embedded,
            shares_results: false,
        })
    }

    /// The function's graph for these inputs, with the passes that the device's programs go through.
    fn graph(
        &self,
        model: &Model,
        name: &str,
        values: &[Value],
        compile: &inner::CompileOptions,
        limits: &Limits,
    ) -> Result<Graph> {
        let control = super::control(limits);
        let signatures = model.inner().inputs(name).map_err(super::error)?;
        let mut bindings: Bindings = compile.bound_one(&Sizes::new().single(&signatures)?);
        for (signature, value) in signatures.iter().zip(values) {
            if let Some(tensor) = value.as_tensor() {
                let shape = tensor.shape().iter().map(|size| *size as u64).collect();
                bindings.shapes.insert(signature.name.clone(), shape);
            }
        }
        lists::add_shapes(&signatures, values, &mut bindings.shapes);
        let function = loop {
            match model.inner().function(
                name,
                std::slice::from_ref(&bindings),
                self.precision.into(),
                &control,
            ) {
                Ok((function, _)) => break function,
                Err(inner::CompileError::NeedsValues { inputs, location, what, unsupported }) => {
                    let before = bindings.values.len();
                    for input in &inputs {
                        if let Some((_, tensor)) = lists::find(&signatures, values, input) {
                            bindings.shapes.remove(input);
                            bindings.values.insert(input.clone(), super::bound_value(tensor)?);
                        }
                    }
                    if bindings.values.len() == before {
                        return Err(super::error(inner::CompileError::NeedsValues {
                            inputs,
                            location,
                            what,
                            unsupported,
                        }));
                    }
                }
                Err(error) => return Err(super::error(error)),
            }
        };
        let graph = function.versions.into_iter().next();
        graph.ok_or_else(|| Error::new(ErrorKind::Other, format!("the function '{name}' has no version")))
    }
}

/// A session that gives the results of all operations.
fn session(
    graph: &Graph,
    name: &str,
    device: &Device,
    compile: &inner::CompileOptions,
    limits: &Limits,
    options: &RunOptions,
) -> Result<Session> {
    let function = inner::Function::new(name, vec![graph.clone()]);
    let program = inner::Program { functions: vec![function], model: None };
    let compiled = inner::compile(&program, compile, &super::control(limits)).map_err(super::error)?;
    let source = Source::bytes(compiled.module.to_vec()).named("the model with all of its results");
    Session::builder().device(device).cache(Cache::off()).model(source).options(options.clone()).build()
}

/// The inputs of a call, and behind them what the program keeps, as it is at the beginning.
fn all_inputs(info: &FunctionInfo, inputs: Inputs) -> Result<Vec<Value>> {
    let mut values = inputs.in_order(&info.input_names(), &info.name)?;
    for kept in &info.kept {
        values.push(kept.begin()?.map_or(Value::Null, Value::from));
    }
    check::inputs(info, values)
}

/// Where the first node is whose bits two runs do not share.
fn differs(graph: &Graph, tensors: &[TensorId], first: &[Bytes], again: &[Bytes]) -> Option<String> {
    let (id, _) = tensors.iter().zip(first.iter().zip(again)).find(|(_, (a, b))| a != b)?;
    let node = graph.body.nodes.iter().find(|node| node.outputs.contains(id))?;
    Some(node.location.as_str().to_owned())
}

/// The bytes of what every node computed.
fn run(session: &Session, inputs: &[Value], options: &RunOptions, own: usize) -> Result<Vec<Bytes>> {
    let mut given = Inputs::new();
    for value in inputs {
        given = given.push(value.clone());
    }
    let outputs: Outputs = session.run_with(given, options)?;
    let computed = outputs.values().iter().skip(own);
    computed
        .map(|value| match value.as_tensor() {
            Some(tensor) => tensor.to_bytes(),
            None => Err(Error::new(ErrorKind::Other, "a result is no tensor".to_owned())),
        })
        .collect()
}
