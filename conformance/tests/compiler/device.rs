//! Owns running modules on the Vulkan device at hand, and comparing what they give. Does not own: the modules.

use std::sync::Arc;

use halite::{BufferView, HostTensor, LoadMode, Session, Value};
use halite_compiler::{
    Compiled,
    graph::{ElementType, Graph},
};
use halite_conformance::{drivers::registry, suites::kernels::capabilities};
use halite_hal::{ElementType as HalElement, Options};
use halite_shaders::{DType, Values};
use halite_targets::Capabilities;

/// The Vulkan device at hand.
pub struct Device(Arc<dyn halite_hal::Device>);

impl Device {
    /// Opens it, and has it check that no recording lacks a barrier. Says so where there is none. `HALITE_TEST_DEVICE` names the one that the tests are to run on.
    pub fn vulkan() -> Option<Device> {
        let wanted = std::env::var("HALITE_TEST_DEVICE");
        match registry(&[]).open("vulkan?hazards=on", &Options::new()) {
            Ok(device) => {
                let name = device.info().name.to_lowercase();
                let other = wanted.as_ref().is_ok_and(|wanted| !name.contains(&wanted.to_lowercase()));
                assert!(!other, "the tests were to run on {wanted:?}, the device is '{name}'");
                Some(Device(device))
            }
            Err(e) => {
                assert!(wanted.is_err(), "the tests were to run on {wanted:?}: {e}");
                eprintln!("SKIPPED: no Vulkan device: {e}");
                None
            }
        }
    }

    /// What kernels may use on it.
    pub fn capabilities(&self) -> Capabilities {
        capabilities(self.0.info()).unwrap()
    }

    /// The device itself.
    pub fn hal(&self) -> Arc<dyn halite_hal::Device> {
        self.0.clone()
    }

    /// A device that was opened.
    pub fn of(device: Arc<dyn halite_hal::Device>) -> Device {
        Device(device)
    }

    /// The module in a session of its own.
    pub fn session(&self, module: &Compiled) -> Session {
        self.try_session(module).unwrap()
    }

    /// The module in a session of its own, if it can be loaded.
    pub fn try_session(&self, module: &Compiled) -> Result<Session, halite::Error> {
        let mut builder =
            Session::builder().devices(vec![self.0.clone()]).module_bytes(module.module.clone());
        let folder = tempfile::tempdir().unwrap();
        if let Some(archive) = &module.parameters {
            let path = folder.path().join("parameters.irpa");
            archive.write(&mut std::fs::File::create(&path).unwrap()).unwrap();
            builder = builder.parameters(archive.scope.clone(), path).load_mode(LoadMode::Preload);
        }
        builder.build()
    }

    /// Calls a function on values of a graph's inputs.
    pub fn run(
        &self,
        module: &Compiled,
        function: &str,
        graph: &Graph,
        inputs: &[Values],
    ) -> Result<Vec<Values>, halite::Error> {
        self.call(&self.session(module), function, graph, inputs)
    }

    /// Calls a function of a session.
    pub fn call(
        &self,
        session: &Session,
        function: &str,
        graph: &Graph,
        inputs: &[Values],
    ) -> Result<Vec<Values>, halite::Error> {
        let inputs = graph.inputs.iter().zip(inputs).map(|(port, values)| {
            let tensor = graph.tensor(port.tensor);
            let bytes = values.to_bytes(tensor.element.storage());
            HostTensor::new(hal_type(tensor.element), tensor.dims.as_slice(), bytes).unwrap()
        });
        let results = self.call_with(session, function, &inputs.collect::<Vec<_>>())?;
        let read = |(host, port): (&HostTensor, &halite_compiler::graph::Port)| {
            let tensor = graph.tensor(port.tensor);
            assert_eq!(host.shape.as_slice(), tensor.dims, "{}", port.name);
            assert_eq!(host.element_type, hal_type(tensor.element), "{}", port.name);
            Values::from_bytes(tensor.element.storage(), &host.data)
        };
        assert_eq!(results.len(), graph.outputs.len());
        Ok(results.iter().zip(&graph.outputs).map(read).collect())
    }

    /// Calls a function of a session on tensors.
    pub fn call_with(
        &self,
        session: &Session,
        function: &str,
        inputs: &[HostTensor],
    ) -> Result<Vec<HostTensor>, halite::Error> {
        let view = |host| Value::View(BufferView::from_host(&self.0, host).unwrap());
        let results = session.function(function)?.call(&inputs.iter().map(view).collect::<Vec<_>>())?;
        Ok(results.iter().map(|value| value.as_view().unwrap().to_host().unwrap()).collect())
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

/// Floats agree to four digits, or to what their type holds; everything else to the bit.
pub fn compare(what: &str, graph: &Graph, expected: &[Values], found: &[Values]) {
    assert_eq!(expected.len(), found.len(), "{what}");
    for ((expected, found), port) in expected.iter().zip(found).zip(&graph.outputs) {
        let element = graph.tensor(port.tensor).element;
        let name = &port.name;
        assert_eq!(expected.len(), found.len(), "{what}: {name}");
        if !element.is_float() {
            assert_eq!(expected, found, "{what}: {name}");
            continue;
        }
        let digits = element.storage().epsilon().max(1e-5) * 10.0;
        for index in 0..expected.len() {
            let (a, b) = (expected.float(index), found.float(index));
            let near = (a - b).abs() <= digits * (1.0 + a.abs()) || a == b || (a.is_nan() && b.is_nan());
            assert!(near, "{what}: element {index} of {name} is {b}, not {a}");
        }
    }
}
