//! `halite.Device`, `halite.DeviceInfo` and `halite.devices()`.

use std::collections::BTreeMap;

use halite::{DeviceKind, Drivers};
use pyo3::{prelude::*, types::PyDict};

use crate::{error::OrRaise, external, work::short};

/// The drivers that a call names: linked in, or plug-ins as well.
pub fn drivers(plugins: bool, options: Option<BTreeMap<String, String>>) -> Drivers {
    let drivers = if plugins { Drivers::with_plugins() } else { Drivers::linked() };
    drivers.options(options.unwrap_or_default().into_iter().collect())
}

/// What is known of a device before it is opened.
#[pyclass(frozen, module = "halite")]
pub struct DeviceInfo(halite::DeviceInfo);

#[pymethods]
impl DeviceInfo {
    /// The URI that opens exactly this device.
    #[getter]
    fn uri(&self) -> String {
        self.0.uri()
    }

    /// Its name for people.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    /// Name of its driver.
    #[getter]
    fn driver(&self) -> &str {
        self.0.driver()
    }

    /// `discrete_gpu`, `integrated_gpu`, `virtual_gpu`, `cpu` or `other`.
    #[getter]
    fn kind(&self) -> &'static str {
        match self.0.kind() {
            DeviceKind::DiscreteGpu => "discrete_gpu",
            DeviceKind::IntegratedGpu => "integrated_gpu",
            DeviceKind::VirtualGpu => "virtual_gpu",
            DeviceKind::Cpu => "cpu",
            _ => "other",
        }
    }

    /// The target triple that kernels are chosen by.
    #[getter]
    fn target(&self) -> Option<&str> {
        self.0.target()
    }

    /// Why it cannot be used; `None` when it can.
    #[getter]
    fn unusable(&self) -> Option<&str> {
        self.0.unusable()
    }

    /// Facts for people, by name.
    #[getter]
    fn properties<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let properties = PyDict::new(py);
        for (name, value) in self.0.properties() {
            properties.set_item(name, value)?;
        }
        Ok(properties)
    }

    /// The kinds of memory that it shares with others, by name: whether it does `import` and `export` them, and the `alignment` of
    /// memory of the process.
    #[getter]
    fn external_memory(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        external::support(py, &self.0)
    }

    /// Vulkan's UUIDs of the device and of its driver, 16 bytes each, which say whether opaque handles have a meaning to both sides; `None`
    /// for devices without.
    #[getter]
    fn uuids(&self) -> Option<([u8; 16], [u8; 16])> {
        self.0.uuids()
    }

    fn __repr__(&self) -> String {
        let state = self.0.unusable().map_or(String::new(), |why| format!(", unusable: {why}"));
        format!("DeviceInfo('{}', {}, {}{state})", self.0.uri(), self.0.name(), self.kind())
    }
}

/// An open device, which several sessions may share. It closes when nothing uses it any more.
#[pyclass(frozen, module = "halite")]
pub struct Device(pub halite::Device);

#[pymethods]
impl Device {
    /// Opens a device by URI: `vulkan`, `vulkan://0`, `vulkan://llvmpipe?validation=core`.
    #[new]
    #[pyo3(signature = (uri="vulkan", *, options=None, plugins=false))]
    fn new(
        py: Python<'_>,
        uri: &str,
        options: Option<BTreeMap<String, String>>,
        plugins: bool,
    ) -> PyResult<Device> {
        short(py, || drivers(plugins, options).open(uri)).map(Device)
    }

    /// The URI that opens it again.
    #[getter]
    fn uri(&self) -> String {
        self.0.uri()
    }

    /// Its name for people.
    #[getter]
    fn name(&self) -> String {
        self.0.info().name().to_owned()
    }

    /// All that is known of it.
    #[getter]
    fn info(&self) -> DeviceInfo {
        DeviceInfo(self.0.info())
    }

    /// Memory that it holds, in bytes: `reserved`, `used`, `peak_reserved`, `peak_used`; and the number of `allocations`.
    fn memory<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (memory, told) = (self.0.memory(), PyDict::new(py));
        told.set_item("reserved", memory.reserved)?;
        told.set_item("used", memory.used)?;
        told.set_item("peak_reserved", memory.peak_reserved)?;
        told.set_item("peak_used", memory.peak_used)?;
        told.set_item("allocations", memory.allocations)?;
        Ok(told)
    }

    /// Tensors and bytes that were copied to it and from it since it was opened.
    fn transfers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (moved, told) = (self.0.transfers(), PyDict::new(py));
        told.set_item("uploads", moved.uploads)?;
        told.set_item("uploaded_bytes", moved.uploaded_bytes)?;
        told.set_item("downloads", moved.downloads)?;
        told.set_item("downloaded_bytes", moved.downloaded_bytes)?;
        Ok(told)
    }

    /// How often its driver wrote recordings of work in its own form: how many were `executed`, how many executions waited for one to be
    /// `written`, how many were `written_ahead`, and how many of these were `found_ahead`.
    fn recordings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (recordings, told) = (self.0.recordings(), PyDict::new(py));
        told.set_item("executed", recordings.executed)?;
        told.set_item("written", recordings.written)?;
        told.set_item("written_ahead", recordings.written_ahead)?;
        told.set_item("found_ahead", recordings.found_ahead)?;
        Ok(told)
    }

    /// Gives memory that nobody uses back to the system.
    fn trim(&self, py: Python<'_>) {
        py.detach(|| self.0.trim());
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Device>().is_ok_and(|other| self.0.is_same(&other.get().0))
    }

    fn __hash__(&self) -> isize {
        let mut hash = 0isize;
        for byte in self.0.uri().bytes() {
            hash = hash.wrapping_mul(31).wrapping_add(isize::from(byte));
        }
        hash
    }

    fn __repr__(&self) -> String {
        format!("Device('{}')", self.0.uri())
    }
}

/// The devices that sessions can run on, those that cannot be used among them.
#[pyfunction]
#[pyo3(signature = (*, options=None, plugins=false))]
pub fn devices(
    py: Python<'_>,
    options: Option<BTreeMap<String, String>>,
    plugins: bool,
) -> PyResult<Vec<DeviceInfo>> {
    let found = short(py, || Ok(drivers(plugins, options).devices()))?;
    Ok(found.into_iter().map(DeviceInfo).collect())
}

/// The drivers that have no devices here, with the reason.
#[pyfunction]
#[pyo3(signature = (*, plugins=false))]
pub fn unavailable_drivers(py: Python<'_>, plugins: bool) -> PyResult<BTreeMap<String, String>> {
    let found = short(py, || Ok(drivers(plugins, None).unavailable()));
    Ok(found?.into_iter().map(|(name, error)| (name, error.message().to_owned())).collect())
}

/// What a call names as a device: a URI, or an open device.
pub fn choice(py: Python<'_>, given: &Bound<'_, PyAny>) -> PyResult<halite::DeviceChoice> {
    if let Ok(device) = given.cast::<Device>() {
        return Ok(device.get().0.clone().into());
    }
    if let Ok(info) = given.cast::<DeviceInfo>() {
        return Ok(info.get().0.uri().into());
    }
    let uri: String = given.extract().map_err(|_| {
        crate::error::invalid(py, "a device is a URI such as 'vulkan', a Device, or an entry of devices()")
    })?;
    Ok(uri.into())
}

/// An open device out of what a call names.
pub fn open(py: Python<'_>, given: &Bound<'_, PyAny>, drivers: &Drivers) -> PyResult<halite::Device> {
    match choice(py, given)? {
        halite::DeviceChoice::Open(device) => Ok(device),
        halite::DeviceChoice::Uri(uri) => py.detach(|| drivers.open(&uri)).or_raise(py),
        other => Err(crate::error::fault(py, &format!("a device cannot be chosen by {other:?}"))),
    }
}
