//! Compiling graphs for a device, and what compiling, loading and calling cost there.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use halite_abi::ElementType;
use halite_compiler::{
    CompileOptions, Control, Program, compile, graph::Graph, passes, signature::BoundValue,
};
use halite_hal::Device;
use halite_runtime::HostTensor;
use halite_targets::Capabilities;

use super::{Cost, Engine, Ran};
use crate::executor::{Executor, tensors};

/// Time of calls after which none is repeated.
const LONG_ENOUGH: Duration = Duration::from_secs(2);

/// A device, for whose target graphs are compiled.
pub struct OnDevice {
    executor: Executor,
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
        OnDevice { executor: Executor::new(device), options, calls: 1 }
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
        let _entered = graph.enter();
        passes::optimize(&mut graph)?;
        let outputs: Vec<_> = graph.outputs.iter().map(|port| graph.tensor(port.tensor).clone()).collect();
        let compiled = compile(&Program::of("main", graph), &self.options, &Control::default())?;
        let compile = began.elapsed();
        let module = compiled.module.len();
        let began = Instant::now();
        let session = self.executor.session(&compiled).context("loading the module")?;
        let load = began.elapsed();
        let tensor = |input: &BoundValue| {
            Ok(HostTensor::new(
                ElementType::from(input.element),
                input.dims.as_slice(),
                input.bytes.to_vec(),
            )?)
        };
        let arguments = inputs.iter().map(tensor).collect::<Result<Vec<_>>>()?;
        let (function, arguments) = (session.function("main")?, self.executor.arguments(&arguments)?);
        let (mut call, mut results) = (Duration::MAX, Vec::new());
        let first = Instant::now();
        for _ in 0..self.calls {
            if first.elapsed() > LONG_ENOUGH {
                break;
            }
            let began = Instant::now();
            // Calls may come back before the device is done; reading waits for it.
            results = tensors(&function.call(&arguments).context("calling the function")?)?;
            call = call.min(began.elapsed());
        }
        ensure!(results.len() == outputs.len(), "{} results, {} outputs", results.len(), outputs.len());
        let read = |(host, tensor): (HostTensor, &halite_compiler::graph::Tensor)| {
            let (got, wanted) = (host.element_type, ElementType::from(tensor.element));
            ensure!(got == wanted, "a result has elements of type {got:?}, not {wanted:?}");
            let dims = host.shape.as_slice().to_vec();
            Ok(BoundValue { element: tensor.element, dims, bytes: host.data.into() })
        };
        let outputs: Result<Vec<BoundValue>> = results.into_iter().zip(&outputs).map(read).collect();
        let memory = self.executor.device().memory_stats().peak_used;
        Ok(Ran { outputs: outputs?, cost: Some(Cost { compile, module, load, call, memory }) })
    }
}
