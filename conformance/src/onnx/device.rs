//! Owns running graphs on a device: compiled to a module, loaded, called.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use halite::{BufferView, HostTensor, LoadMode, Session, Value};
use halite_compiler::{CompileOptions, Program, compile, graph::Graph, passes, signature::BoundValue};
use halite_hal::{Device, ElementType as HalElement};
use halite_shaders::DType;
use halite_targets::Capabilities;

use super::Engine;
use halite_compiler::graph::ElementType;

/// A device, for whose target graphs are compiled.
pub struct OnDevice {
    device: Arc<dyn Device>,
    options: CompileOptions,
}

impl OnDevice {
    /// Graphs are compiled for these capabilities; without any, for every device.
    pub fn new(device: Arc<dyn Device>, target: Option<Capabilities>) -> Self {
        let baseline = target.is_none();
        let options =
            CompileOptions { targets: target.into_iter().collect(), baseline, ..CompileOptions::default() };
        OnDevice { device, options }
    }
}

impl Engine for OnDevice {
    fn run(&self, mut graph: Graph, inputs: &[BoundValue]) -> Result<Vec<BoundValue>> {
        passes::optimize(&mut graph)?;
        let outputs: Vec<_> = graph.outputs.iter().map(|port| graph.tensor(port.tensor).clone()).collect();
        let compiled = compile(&Program::of("main", graph), &self.options, &mut |_| ())?;
        let mut builder = Session::builder().devices(vec![self.device.clone()]).module_bytes(compiled.module);
        let folder = tempfile::tempdir()?;
        if let Some(archive) = &compiled.parameters {
            let path = folder.path().join("parameters.irpa");
            archive.write(&mut std::fs::File::create(&path)?)?;
            builder = builder.parameters(archive.scope.clone(), path).load_mode(LoadMode::Preload);
        }
        let session = builder.build().context("loading the module")?;
        let argument = |input: &BoundValue| {
            let host = HostTensor::new(hal_type(input.element), input.dims.as_slice(), input.bytes.to_vec())?;
            Ok(Value::View(BufferView::from_host(&self.device, &host)?))
        };
        let arguments: Result<Vec<Value>> = inputs.iter().map(argument).collect();
        let results = session.function("main")?.call(&arguments?).context("calling the function")?;
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
        results.iter().zip(&outputs).map(read).collect()
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
