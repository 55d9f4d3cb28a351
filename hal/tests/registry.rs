//! The registry: drivers by name, devices by URI, options.
#![allow(clippy::unwrap_used, reason = "a failure is a failed test, also in helpers")]

use std::sync::{Arc, Mutex};

use halite_hal::*;
use halite_null::NullDriver;

/// A driver with several devices, which are null devices behind their names.
#[derive(Debug, Default)]
struct Several {
    opened: Mutex<Vec<(String, Options)>>,
}

impl Driver for Several {
    fn name(&self) -> &str {
        "several"
    }
    fn description(&self) -> &str {
        "for tests"
    }
    fn options(&self) -> &[(&'static str, &'static str)] {
        &[("repair", "on or off"), ("robust", "on or off")]
    }
    fn enumerate(&self, _options: &Options) -> Result<Vec<DeviceInfo>> {
        let device = |path: &str, name: &str| DeviceInfo {
            driver: "several".to_owned(),
            path: path.to_owned(),
            name: name.to_owned(),
            kind: DeviceKind::Other,
            unusable: None,
            properties: Vec::new(),
            ..DeviceInfo::default()
        };
        Ok(vec![device("GPU-aa", "Mali G78"), device("GPU-bb", "Mali G31"), device("GPU-cc", "llvmpipe 17")])
    }
    fn find_unlisted(&self, name: &str, _options: &Options) -> Result<Option<String>> {
        match name {
            "hidden" => Ok(Some("GPU-hidden".to_owned())),
            "broken" => Err(status!(Unavailable, "it was not found in any place")),
            _ => Ok(None),
        }
    }
    fn open(&self, path: &str, options: &Options) -> Result<Arc<dyn Device>> {
        self.opened.lock().unwrap().push((path.to_owned(), options.clone()));
        if path == "GPU-bb" {
            bail!(Unavailable, "it is off");
        }
        NullDriver.open("", &Options::new())
    }
}

fn several() -> (DriverRegistry, Arc<Several>) {
    let driver = Arc::new(Several::default());
    let mut registry = DriverRegistry::with_static_drivers();
    registry.register(driver.clone());
    (registry, driver)
}

/// Opens the driver's own device.
fn open(registry: &DriverRegistry, uri: &str, defaults: &Options) -> Result<Arc<dyn Device>> {
    registry.request(uri, defaults)?.open_bare(&["layer"])
}

/// Asserts that something was refused, with this code and these words.
#[track_caller]
fn refused<T>(result: Result<T>, code: Code, words: &[&str]) {
    let Err(status) = result else { panic!("accepted, expected {code} with {words:?}") };
    assert_eq!(status.code(), code, "{status}");
    for word in words {
        assert!(status.to_string().contains(word), "'{status}' lacks '{word}'");
    }
}

#[test]
fn static_drivers_are_found_and_sorted() {
    let (mut registry, _) = several();
    let names = |r: &DriverRegistry| r.entries().iter().map(|d| d.name().to_owned()).collect::<Vec<_>>();
    assert_eq!(names(&registry), ["null", "several"]);
    registry.register(Arc::new(NullDriver));
    assert_eq!(names(&registry), ["null", "several"]);
    refused(registry.driver("vulkna"), Code::NotFound, &["'vulkna'", "null, several"]);
    refused(DriverRegistry::empty().driver("x"), Code::NotFound, &["available drivers: none"]);
}

#[test]
fn devices_are_opened_by_path_index_or_name() {
    let (registry, driver) = several();
    for uri in ["several", "several://gpu-AA", "several://2", "several://g78", "several:0"] {
        open(&registry, uri, &Options::new()).unwrap();
    }
    let opened = driver.opened.lock().unwrap();
    let paths: Vec<_> = opened.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, ["", "GPU-aa", "GPU-cc", "GPU-aa", "GPU-aa"]);
}

#[test]
fn a_driver_may_know_devices_that_it_does_not_list() {
    let (registry, driver) = several();
    open(&registry, "several://hidden", &Options::new()).unwrap();
    assert_eq!(driver.opened.lock().unwrap()[0].0, "GPU-hidden");
    refused(
        open(&registry, "several://broken", &Options::new()),
        Code::Unavailable,
        &["not found in any place"],
    );
    refused(open(&registry, "several://other", &Options::new()), Code::NotFound, &["'other' not found"]);
}

#[test]
fn only_processors_come_with_a_warning() {
    let of = |kind| DeviceInfo { name: "N".into(), kind, ..DeviceInfo::default() }.processor_warning();
    assert_eq!(of(DeviceKind::IntegratedGpu), None);
    assert!(of(DeviceKind::Cpu).is_some_and(|line| line.contains("'N'") && !line.contains('\n')));
}

#[test]
fn devices_that_are_not_there_name_those_that_are() {
    let (registry, _) = several();
    let open = |uri| open(&registry, uri, &Options::new());
    refused(open("several://GPU-dd"), Code::NotFound, &["'GPU-dd'", "[0] several://GPU-aa (Mali G78)"]);
    refused(open("several://mali"), Code::InvalidArgument, &["fits several", "[1] several://GPU-bb"]);
    refused(open("several://17"), Code::NotFound, &["'17'"]);
    refused(open("several://1"), Code::Unavailable, &["it is off", "opening device 'several://1'"]);
    refused(open("null://5"), Code::NotFound, &["null device '5' not found"]);
}

#[test]
fn options_are_known_and_a_uri_overrides_defaults() {
    let (registry, driver) = several();
    let defaults =
        Options::from([("repair".to_owned(), "off".to_owned()), ("robust".to_owned(), "on".to_owned())]);
    open(&registry, "several?repair=on", &defaults).unwrap();
    let (_, options) = driver.opened.lock().unwrap()[0].clone();
    assert_eq!((options["repair"].as_str(), options["robust"].as_str()), ("on", "on"));
    refused(
        open(&registry, "several?speed=1", &Options::new()),
        Code::InvalidArgument,
        &["'speed'", "repair, robust, layer"],
    );
}
