//! Running modules that were just compiled on a device: their parameters, values as tensors and back.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use halite_abi::ElementType;
use halite_compiler::{
    Compiled,
    graph::{Graph, Port},
};
use halite_hal::Device;
use halite_ops::Values;
use halite_runtime::{BufferView, HostTensor, LoadMode, Session, Value};

/// A device that modules are run on.
#[derive(Clone)]
pub struct Executor(Arc<dyn Device>);

impl Executor {
    /// Runs modules on this device.
    pub fn new(device: Arc<dyn Device>) -> Self {
        Executor(device)
    }

    /// The device.
    pub fn device(&self) -> &Arc<dyn Device> {
        &self.0
    }

    /// The module in a session of its own, with its parameters, if it has any beside it.
    ///
    /// # Errors
    /// The module does not fit the device, or a file for its parameters cannot be written.
    pub fn session(&self, module: &Compiled) -> Result<Session> {
        let mut builder =
            Session::builder().devices(vec![self.0.clone()]).module_bytes(module.module.to_vec());
        let folder = tempfile::tempdir()?;
        if let Some(archive) = &module.parameters {
            let path = folder.path().join("parameters.irpa");
            archive.write(&mut std::fs::File::create(&path)?)?;
            builder = builder.parameters(archive.scope.clone(), path).load_mode(LoadMode::Preload);
        }
        Ok(builder.build()?)
    }

    /// Calls a function of a session on values of a graph's inputs; the values of its outputs, in the order of the ports.
    ///
    /// # Errors
    /// The call fails, or gives other types, shapes or numbers of results than the graph has.
    pub fn call(
        &self,
        session: &Session,
        function: &str,
        graph: &Graph,
        inputs: &[Values],
    ) -> Result<Vec<Values>> {
        let inputs = graph.inputs.iter().zip(inputs).map(|(port, values)| {
            let tensor = graph.tensor(port.tensor);
            let bytes = values.to_bytes(tensor.element.storage());
            Ok(HostTensor::new(ElementType::from(tensor.element), tensor.dims(), bytes)?)
        });
        let results = self.call_with(session, function, &inputs.collect::<Result<Vec<_>>>()?)?;
        let (got, wanted) = (results.len(), graph.outputs.len());
        ensure!(got == wanted, "{got} results, the graph has {wanted} outputs");
        let read = |(host, port): (&HostTensor, &Port)| {
            let tensor = graph.tensor(port.tensor);
            let (shape, element) = (host.shape.as_slice(), host.element_type);
            let fits = shape == tensor.dims() && element == ElementType::from(tensor.element);
            ensure!(fits, "'{}' is {}, not {:?}", port.name, host.metadata(), tensor.dims());
            Ok(Values::from_bytes(tensor.element.storage(), &host.data))
        };
        results.iter().zip(&graph.outputs).map(read).collect()
    }

    /// Calls a function of a session on tensors.
    ///
    /// # Errors
    /// The call fails, or a result is no tensor.
    pub fn call_with(
        &self,
        session: &Session,
        function: &str,
        inputs: &[HostTensor],
    ) -> Result<Vec<HostTensor>> {
        tensors(&session.function(function)?.call(&self.arguments(inputs)?)?)
    }

    /// Tensors on the device, as functions take them.
    ///
    /// # Errors
    /// The device has no memory for them.
    pub fn arguments(&self, inputs: &[HostTensor]) -> Result<Vec<Value>> {
        inputs.iter().map(|host| Ok(Value::View(BufferView::from_host(&self.0, host)?))).collect()
    }
}

/// What a function gave, read back once the device has finished it.
///
/// # Errors
/// A result is no tensor, or the device failed.
pub fn tensors(results: &[Value]) -> Result<Vec<HostTensor>> {
    results.iter().map(|value| Ok(value.as_view().context("a result is no tensor")?.to_host()?)).collect()
}
