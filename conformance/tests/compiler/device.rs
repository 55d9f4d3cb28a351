//! Finding the Vulkan device at hand, and comparing what modules give.

use std::sync::{Arc, Mutex, Weak};

use halite_compiler::{Compiled, graph::Graph};
use halite_conformance::{executor::Executor, suites::models};
use halite_hal::Options;
use halite_ops::Values;
use halite_runtime::{HostTensor, Session};
use halite_targets::Capabilities;
use halite_testing::drivers::registry;
use halite_tools::kernels::capabilities;

/// The Vulkan device at hand.
pub struct Device(Executor);

/// It has all recordings checked for barriers, and keeps the kernels of all programs here: most programs have kernels of others, and
/// are compiled more than once.
const URI: &str = "vulkan?hazards=on&pipeline_cache=off&kept_kernels=2048";

/// The device that tests of this program have open now.
static OPEN: Mutex<Option<Weak<dyn halite_hal::Device>>> = Mutex::new(None);

/// That device, or a new one.
fn open() -> halite_hal::Result<Arc<dyn halite_hal::Device>> {
    let mut open = OPEN.lock().unwrap();
    if let Some(device) = open.as_ref().and_then(Weak::upgrade) {
        return Ok(device);
    }
    let device = halite_layers::open(&registry(&[]), URI, &Options::new())?;
    *open = Some(Arc::downgrade(&device));
    Ok(device)
}

impl Device {
    /// Opens it, or takes the one that another test has open. Says so where there is none. `HALITE_TEST_DEVICE` names the one that the tests are to run on.
    pub fn vulkan() -> Option<Device> {
        let wanted = std::env::var("HALITE_TEST_DEVICE");
        match open() {
            Ok(device) => {
                let name = device.info().name.to_lowercase();
                let other = wanted.as_ref().is_ok_and(|wanted| !name.contains(&wanted.to_lowercase()));
                assert!(!other, "the tests were to run on {wanted:?}, the device is '{name}'");
                Some(Device::of(device))
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
        capabilities(self.0.device().info()).unwrap()
    }

    /// The device itself.
    pub fn hal(&self) -> Arc<dyn halite_hal::Device> {
        self.0.device().clone()
    }

    /// A device that was opened.
    pub fn of(device: Arc<dyn halite_hal::Device>) -> Device {
        Device(Executor::new(device))
    }

    /// What runs modules on it.
    pub fn executor(&self) -> &Executor {
        &self.0
    }

    /// The module in a session of its own.
    pub fn session(&self, module: &Compiled) -> Session {
        self.try_session(module).unwrap()
    }

    /// The module in a session of its own, if it can be loaded.
    pub fn try_session(&self, module: &Compiled) -> anyhow::Result<Session> {
        self.0.session(module)
    }

    /// Calls a function on values of a graph's inputs.
    pub fn run(
        &self,
        module: &Compiled,
        function: &str,
        graph: &Graph,
        inputs: &[Values],
    ) -> anyhow::Result<Vec<Values>> {
        self.call(&self.session(module), function, graph, inputs)
    }

    /// Calls a function of a session.
    pub fn call(
        &self,
        session: &Session,
        function: &str,
        graph: &Graph,
        inputs: &[Values],
    ) -> anyhow::Result<Vec<Values>> {
        self.0.call(session, function, graph, inputs)
    }

    /// Calls a function of a session on tensors.
    pub fn call_with(
        &self,
        session: &Session,
        function: &str,
        inputs: &[HostTensor],
    ) -> anyhow::Result<Vec<HostTensor>> {
        self.0.call_with(session, function, inputs)
    }
}

/// Floats agree to four digits, or to what their type holds; everything else to the bit.
pub fn compare(what: &str, graph: &Graph, expected: &[Values], found: &[Values]) {
    if let Err(stop) = models::compare(graph, expected, found) {
        panic!("{what}: {stop}");
    }
}
