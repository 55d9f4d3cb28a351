//! A driver library that panics where the option `where` says: `enumerate`, `open` or `submit`. Otherwise it is the null
//! driver. Loaded by `tests/bad_plugins.rs`.

use std::{any::Any, sync::Arc};

use halite_hal::{Device, DeviceInfo, Driver, Fence, Options, QueueAffinity, QueueOp, Result};
use halite_layers::{Layer, Layered};
use halite_null::NullDriver;

halite_plugin::export_driver!(|| Arc::new(Panicking));

#[derive(Debug)]
struct Panicking;

fn panic_at(place: &str, options: &Options) {
    assert!(
        options.get("where").is_none_or(|wanted| wanted != place),
        "the {place} of this driver always panics"
    );
}

impl Driver for Panicking {
    fn name(&self) -> &str {
        "panicking"
    }

    fn description(&self) -> &str {
        "for tests"
    }

    fn options(&self) -> &[(&'static str, &'static str)] {
        &[("where", "enumerate, open or submit")]
    }

    fn enumerate(&self, options: &Options) -> Result<Vec<DeviceInfo>> {
        panic_at("enumerate", options);
        let mut devices = NullDriver.enumerate(&Options::new())?;
        devices.iter_mut().for_each(|info| info.driver = self.name().to_owned());
        Ok(devices)
    }

    fn open(&self, path: &str, options: &Options) -> Result<Arc<dyn Device>> {
        panic_at("open", options);
        let device = NullDriver.open(path, &Options::new())?;
        Ok(Layered::new(PanickingDevice { device, options: options.clone() }))
    }
}

/// A null device with a fault.
#[derive(Debug)]
struct PanickingDevice {
    device: Arc<dyn Device>,
    options: Options,
}

impl Layer for PanickingDevice {
    fn inner(&self) -> &Arc<dyn Device> {
        &self.device
    }

    fn queue_submit(&self, affinity: QueueAffinity, wait: &Fence, signal: &Fence, op: QueueOp) -> Result<()> {
        panic_at("submit", &self.options);
        self.device.queue_submit(affinity, wait, signal, op)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
