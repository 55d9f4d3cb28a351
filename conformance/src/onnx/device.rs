//! Owns running graphs on a device: compiled to a module, loaded, called.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use halite::{BufferView, HostTensor, LoadMode, Session, Value};
use halite_compiler::{CompileOptions, Program, compile, graph::Graph, passes, signature::BoundValue};
use halite_hal::{Device, ElementType as HalElement};
use halite_shaders::DType;
use halite_targets::Capabilities;

use super::{Cost, Engine, Ran};
use halite_compiler::graph::ElementType;

/// Time of calls after which none is repeated.
const LONG_ENOUGH: Duration = Duration::from_secs(2);

/// A device, for whose target graphs are compiled.
pub struct OnDevice {
    device: Arc<dyn Device>,
    options: CompileOptions,
    /// Calls of each function; the quickest counts.
    calls: u32,
}

impl OnDevice {
    /// Graphs are compiled for these capabilities; without any, for every device.
    pub fn new(device: Arc<dyn Device>, target: Option<Capabilities>) -> Self {
        let baseline = target.is_none();
        let options =
            CompileOptions { targets: target.into_iter().collect(), baseline, ..CompileOptions::default() };
        OnDevice { device, options, calls: 1 }
    }

    /// Each function is called several times, fewer if that takes seconds, and the quickest call counts.
    #[must_use]
    pub fn with_calls(self, calls: u32) -> Self {
        OnDevice { calls: calls.max(1), ..self }
    }
}

impl Engine for OnDevice {
    fn run(&self, mut graph: Graph, inputs: &[BoundValue]) -> Result<Ran> {
        let began = Instant::now();
        passes::optimize(&mut graph)?;
        let outputs: Vec<_> = graph.outputs.iter().map(|port| graph.tensor(port.tensor).clone()).collect();
        let compiled = compile(&Program::of("main", graph), &self.options, &mut |_| ())?;
        let compile = began.elapsed();
        let module = compiled.module.len() as u64;
        let began = Instant::now();
        let mut builder = Session::builder().devices(vec![self.device.clone()]).module_bytes(compiled.module);
        let folder = tempfile::tempdir()?;
        if let Some(archive) = &compiled.parameters {
            let path = folder.path().join("parameters.irpa");
            archive.write(&mut std::fs::File::create(&path)?)?;
            builder = builder.parameters(archive.scope.clone(), path).load_mode(LoadMode::Preload);
        }
        let session = builder.build().context("loading the module")?;
        let load = began.elapsed();
        let argument = |input: &BoundValue| {
            let host = HostTensor::new(hal_type(input.element), input.dims.as_slice(), input.bytes.to_vec())?;
            Ok(Value::View(BufferView::from_host(&self.device, &host)?))
        };
        let arguments: Result<Vec<Value>> = inputs.iter().map(argument).collect();
        let (function, arguments) = (session.function("main")?, arguments?);
        let (mut call, mut results) = (Duration::MAX, Vec::new());
        let first = Instant::now();
        for _ in 0..self.calls {
            if first.elapsed() > LONG_ENOUGH {
                break;
            }
            let began = Instant::now();
            results = function.call(&arguments).context("calling the function")?;
            for view in results.iter().filter_map(Value::as_view) {
                // Calls may come back before the device is done.
                view.to_host()?;
            }
            call = call.min(began.elapsed());
        }
        ensure!(results.len() == outputs.len(), "{} results, {} outputs", results.len(), outputs.len());
        let read = |(value, tensor): (&Value, &halite_compiler::graph::Tensor)| {
            let view = value.as_view().context("a result is no tensor")?;
            let host = view.to_host()?;
            let (got, wanted) = (host.element_type, hal_type(tensor.element));
            ensure!(got == wanted, "a result has elements of type {got:?}, not {wanted:?}");
            Ok(BoundValue {
                element: tensor.element,
                dims: host.shape.as_slice().to_vec(),
                bytes: host.data.into(),
            })
        };
        let outputs: Result<Vec<BoundValue>> = results.iter().zip(&outputs).map(read).collect();
        let memory = self.device.memory_stats().peak_used;
        Ok(Ran { outputs: outputs?, cost: Some(Cost { compile, module, load, call, memory }) })
    }
}

/// An element type as devices know it.
fn hal_type(element: ElementType) -> HalElement {
    match element {
        ElementType::Bool => HalElement::I1,
        ElementType::Of(DType::F64) => HalElement::F64,
        ElementType::Of(DType::F32) => HalElement::F32,
        ElementType::Of(DType::F16) => HalElement::F16,
        ElementType::Of(DType::BF16) => HalElement::BF16,
        ElementType::Of(DType::I8) => HalElement::I8,
        ElementType::Of(DType::U8) => HalElement::UI8,
        ElementType::Of(DType::I16) => HalElement::I16,
        ElementType::Of(DType::U16) => HalElement::UI16,
        ElementType::Of(DType::I32) => HalElement::I32,
        ElementType::Of(DType::U32) => HalElement::UI32,
        ElementType::Of(DType::I64) => HalElement::I64,
        ElementType::Of(DType::U64) => HalElement::UI64,
    }
}
