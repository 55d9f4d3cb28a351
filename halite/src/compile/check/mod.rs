//! Checks of a model on a device, node by node: each against the operation's reference on the host, on the very values that the
//! device computed before it; against recorded values; and whether runs give the same bits.

mod compare;

use std::time::Instant;

use bytes::Bytes;
use halite_compiler::{self as inner, graph::Graph, signature::Bindings};
use halite_ops::Values;

use self::compare::{against, compare};
use super::{Model, Precision, Sizes, Tuning};
use crate::{
    Cache, Device, Error, ErrorKind, Inputs, Outputs, Result, RunOptions, Session, Source, Tensor, Value,
    options::Limits,
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
        let limits = options.begin();
        let functions = model.functions()?;
        let info = match &self.function {
            Some(name) => functions.iter().find(|info| info.name == *name),
            None => functions.first(),
        };
        let info = info.ok_or_else(|| {
            let names: Vec<_> = functions.iter().map(|info| info.name.as_str()).collect();
            Error::new(
                ErrorKind::NotFound,
                format!("there is no such function; the model has {}", names.join(", ")),
            )
        })?;
        let values = inputs.into().in_order(&info.input_names(), &info.name)?;
        let graph = self.graph(model, &info.name, &values, &limits)?;
        let (exposed, tensors) = graph.exposed();
        let bytes = tensors.iter().map(|id| graph.tensor(*id).bytes()).fold(0, u64::saturating_add);
        if bytes > MOST_BYTES {
            let text = format!(
                "the results of all operations take {bytes} bytes, and up to {MOST_BYTES} are kept for a check; check smaller inputs"
            );
            return Err(Error::new(ErrorKind::OutOfMemory, text));
        }
        let session = self.session(&exposed, &info.name, device, &limits, options)?;
        let given: Vec<Value> = values.into_iter().filter(|value| !matches!(value, Value::Null)).collect();
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
            let differs = tensors.iter().zip(first.iter().zip(&again)).find(|(_, (a, b))| a != b);
            if let (Some((id, _)), None) = (differs, &report.differs) {
                let node = graph.body.nodes.iter().find(|node| node.outputs.contains(id));
                report.differs = node.map(|node| node.location.as_str().to_owned());
            }
        }
        log::info!("checked {} nodes in {:?}", report.nodes.len(), start.elapsed());
        Ok(report)
    }

    /// The function's graph for these inputs.
    fn graph(&self, model: &Model, name: &str, values: &[Value], limits: &Limits) -> Result<Graph> {
        let control = super::control(limits);
        let signatures = model.inner().inputs(name).map_err(super::error)?;
        let mut bindings: Bindings = Sizes::new().single(&signatures)?;
        for (signature, value) in signatures.iter().zip(values) {
            if let Some(tensor) = value.as_tensor() {
                let shape = tensor.shape().iter().map(|size| *size as u64).collect();
                bindings.shapes.insert(signature.name.clone(), shape);
            }
        }
        let function = loop {
            match model.inner().function(
                name,
                std::slice::from_ref(&bindings),
                self.precision.into(),
                &control,
            ) {
                Ok((function, _)) => break function,
                Err(inner::CompileError::NeedsValues { inputs, location, what }) => {
                    let before = bindings.values.len();
                    for input in &inputs {
                        let place = signatures.iter().position(|signature| signature.name == *input);
                        if let Some(tensor) =
                            place.and_then(|place| values.get(place)).and_then(Value::as_tensor)
                        {
                            bindings.shapes.remove(input);
                            bindings.values.insert(input.clone(), super::bound_value(tensor)?);
                        }
                    }
                    if bindings.values.len() == before {
                        return Err(super::error(inner::CompileError::NeedsValues {
                            inputs,
                            location,
                            what,
                        }));
                    }
                }
                Err(error) => return Err(super::error(error)),
            }
        };
        let graph = function.versions.into_iter().next();
        graph.ok_or_else(|| Error::new(ErrorKind::Other, format!("the function '{name}' has no version")))
    }

    fn session(
        &self,
        graph: &Graph,
        name: &str,
        device: &Device,
        limits: &Limits,
        options: &RunOptions,
    ) -> Result<Session> {
        let compile = inner::CompileOptions {
            targets: vec![super::capabilities(device.hal().info())?],
            baseline: false,
            tuning: self.tuning.read()?.tuning(),
            module_name: "module".to_owned(),
            parameters: inner::ParameterStorage::Embedded,
        };
        let function = inner::Function { name: name.to_owned(), versions: vec![graph.clone()] };
        let program = inner::Program { functions: vec![function], model: None };
        let compiled = inner::compile(&program, &compile, &super::control(limits)).map_err(super::error)?;
        let source = Source::bytes(compiled.module.to_vec()).named("the model with all of its results");
        Session::builder().device(device).cache(Cache::off()).model(source).options(options.clone()).build()
    }
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

/// Values of tensors, as the device has them.
struct Known<'a> {
    graph: &'a Graph,
    computed: std::collections::HashMap<inner::graph::TensorId, Bytes>,
}

impl Known<'_> {
    /// Adds what was handed in.
    fn inputs(&mut self, given: &[Value]) -> Result<()> {
        for (port, value) in self.graph.inputs.iter().zip(given) {
            if let Some(tensor) = value.as_tensor() {
                self.computed.insert(port.tensor, tensor.to_bytes()?);
            }
        }
        Ok(())
    }

    /// Adds what a view shows.
    fn views(&mut self, node: &inner::graph::Node) {
        if let (inner::graph::NodeOp::View, [from], [to]) = (&node.op, &node.inputs[..], &node.outputs[..])
            && let Some(bytes) = self.bytes(*from)
        {
            self.computed.insert(*to, bytes);
        }
    }

    fn bytes(&self, id: inner::graph::TensorId) -> Option<Bytes> {
        self.computed.get(&id).or(self.graph.tensor(id).constant.as_ref()).cloned()
    }

    fn values(&self, id: inner::graph::TensorId) -> Option<Values> {
        Some(Values::from_bytes(self.graph.stored_type(id), &self.bytes(id)?))
    }
}

/// What a check found.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CheckReport {
    /// The function that was checked.
    pub function: String,
    /// The nodes of the compiled graph, in the order in which they run.
    pub nodes: Vec<NodeCheck>,
    /// What was recorded, beside what the device computed.
    pub recorded: Vec<RecordedCheck>,
    /// How often the model ran.
    pub runs: usize,
    /// Where the first node is whose bits were not the same in all runs.
    pub differs: Option<String>,
}

impl CheckReport {
    /// The first node whose results are not within the tolerance of its reference.
    pub fn first_wrong(&self) -> Option<&NodeCheck> {
        self.nodes.iter().find(|node| node.wrong > 0)
    }

    /// The first node that makes NaN or infinities of inputs without any.
    pub fn first_not_finite(&self) -> Option<&NodeCheck> {
        self.nodes.iter().find(|node| node.not_finite > 0 && node.finite_inputs)
    }

    /// Whether nothing is wrong: nodes are near their references, recorded values near what was computed, and all runs the same.
    pub fn is_right(&self) -> bool {
        let recorded = |check: &RecordedCheck| check.found && check.wrong == 0;
        self.first_wrong().is_none() && self.differs.is_none() && self.recorded.iter().all(recorded)
    }
}

/// A node and its reference.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct NodeCheck {
    /// Where in the model it comes from.
    pub location: String,
    /// Name of the operation; `if`, `loop` or `kernel of the model` for nodes without a reference.
    pub kind: String,
    /// The operation as text.
    pub text: String,
    /// Names of the results in the model.
    pub tensors: Vec<String>,
    /// Whether there is a reference that it was compared with.
    pub compared: bool,
    /// Elements of its results.
    pub elements: u64,
    /// How many are outside of the tolerance.
    pub wrong: u64,
    /// The element that is farthest from its reference, in units of the tolerance.
    pub worst: Option<Difference>,
    /// Elements that are NaN or infinite.
    pub not_finite: u64,
    /// Whether no element of its inputs is.
    pub finite_inputs: bool,
}

/// An element that differs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Difference {
    /// Place of the result among the node's.
    pub output: usize,
    /// Place of the element.
    pub index: usize,
    /// What the device computed.
    pub got: f64,
    /// What it should be.
    pub expected: f64,
    /// How far it may be off.
    pub allowed: f64,
}

/// A tensor that another runtime recorded.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RecordedCheck {
    /// Its name.
    pub name: String,
    /// Whether the compiled graph has a tensor of this name and size. Passes join nodes, so some of a model's do not exist any more.
    pub found: bool,
    /// Where in the model it is computed.
    pub location: String,
    /// Elements.
    pub elements: u64,
    /// How many are outside of the tolerance.
    pub wrong: u64,
    /// The element that is farthest off.
    pub worst: Option<Difference>,
}
