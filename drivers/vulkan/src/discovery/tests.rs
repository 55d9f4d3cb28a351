//! Several libraries in one process: what is listed, and that handles and functions of one stay together. Each test
//! skips, loudly, where the libraries that it needs are missing.

use std::path::PathBuf;

use ash::vk::Handle as _;

use super::*;
use crate::{
    context::DeviceContext,
    loader::{Origin, file_of},
};

/// What a driver leaves at the beginning of its dispatchable objects for a loader to replace.
const ICD_LOADER_MAGIC: usize = 0x01CD_C0DE;

/// SwiftShader's library, by the environment variable, or wherever it is installed.
fn swiftshader() -> Option<PathBuf> {
    let found = installed_swiftshader(&VulkanOptions::default());
    let found = found.inspect_err(|why| eprintln!("SKIPPED: {why}")).ok()?;
    Some(found[0].instance.library.path.clone())
}

fn with(swiftshader: SwiftShaderChoice) -> VulkanOptions {
    VulkanOptions { swiftshader, ..VulkanOptions::default() }
}

fn reached_by(found: &Found) -> &str {
    found.info.properties.iter().find(|(name, _)| name == "reached_by").map_or("", |(_, value)| value)
}

#[test]
fn a_named_library_wins_and_every_device_is_listed_once() {
    let Some(library) = swiftshader() else { return };
    let listed = discover(&with(SwiftShaderChoice::Path(library.clone()))).unwrap().devices;
    let own: Vec<_> = listed.iter().filter(|d| d.info.path == swiftshader::DEVICE_PATH).collect();
    assert_eq!(own.len(), 1, "{listed:?}");
    assert!(reached_by(own[0]).contains("loaded directly (ICD interface "), "{}", reached_by(own[0]));
    let paths: std::collections::HashSet<_> = listed.iter().map(|d| &d.info.path).collect();
    assert_eq!(paths.len(), listed.len(), "{listed:?}");
    // The folder means the library in it.
    let folder = SwiftShaderChoice::Path(library.parent().unwrap().to_owned());
    let again = discover(&with(folder)).unwrap().devices;
    assert_eq!(again.len(), listed.len());
}

#[test]
fn on_adds_to_what_the_loader_has() {
    if swiftshader().is_none() {
        return;
    }
    let off = discover(&with(SwiftShaderChoice::Off)).unwrap().devices;
    let on = discover(&with(SwiftShaderChoice::On)).unwrap().devices;
    let has = |list: &[Found]| list.iter().filter(|d| d.info.path == swiftshader::DEVICE_PATH).count();
    assert_eq!(has(&on), 1, "{on:?}");
    assert_eq!(on.len(), off.len() + 1 - has(&off));
    let kinds = |list: &[Found]| list.iter().map(|d| d.info.kind).collect::<Vec<_>>();
    let cpu = |kind: &halite_hal::DeviceKind| *kind == halite_hal::DeviceKind::Cpu;
    assert!(kinds(&on).iter().skip_while(|k| !cpu(k)).all(cpu), "GPUs come first: {:?}", kinds(&on));
}

#[test]
fn named_drivers_replace_the_loader() {
    let Some(library) = swiftshader() else { return };
    let options = VulkanOptions { icd: vec![library], ..with(SwiftShaderChoice::Off) };
    let found = discover(&options).unwrap();
    assert_eq!(found.devices.len(), 1, "{found:?}");
    assert!(matches!(found.devices[0].instance.library.origin, Origin::Direct { interface: 1..=7 }));
    let missing = VulkanOptions { icd: vec!["/no/such.so".into()], ..options };
    let text = discover(&missing).unwrap_err().to_string();
    assert!(text.contains("/no/such.so") && text.contains("option icd"), "{text}");
}

#[test]
fn validation_is_refused_without_a_loader() {
    let Some(library) = swiftshader() else { return };
    let validation = ValidationModes { core: true, ..ValidationModes::default() };
    let options = VulkanOptions { icd: vec![library], validation, ..VulkanOptions::default() };
    let found = discover(&options).unwrap().devices;
    let text = DeviceContext::open(&found[0], options).unwrap_err().to_string();
    for part in ["UNAVAILABLE", "option validation", "loaded directly", "libvulkan1", "VK_DRIVER_FILES"] {
        assert!(text.contains(part), "'{part}' missing from: {text}");
    }
}

/// The first word of a dispatchable object.
fn first_word(physical: vk::PhysicalDevice) -> usize {
    // SAFETY: a dispatchable handle is the address of an object that begins with a pointer-sized word, for the loader.
    unsafe { *(physical.as_raw() as *const usize) }
}

#[test]
fn functions_and_handles_stay_with_their_library() {
    let Some(library) = swiftshader() else { return };
    if !cfg!(target_os = "linux") {
        eprintln!("SKIPPED: only Linux tells which file holds a function");
        return;
    }
    let found = discover(&with(SwiftShaderChoice::Path(library))).unwrap().devices;
    for device in found.iter().filter(|d| d.info.unusable.is_none()) {
        let context = DeviceContext::open(device, with(SwiftShaderChoice::Off)).unwrap();
        let (instance, functions) = (&device.instance.instance, &context.device);
        let get = device.instance.library.entry.static_fn().get_instance_proc_addr as usize;
        let own = file_of(get).unwrap();
        let of_instance = [
            instance.fp_v1_0().create_device as usize,
            instance.fp_v1_0().get_device_proc_addr as usize,
            instance.fp_v1_1().get_physical_device_properties2 as usize,
        ];
        let of_device = [
            functions.fp_v1_0().queue_submit as usize,
            functions.fp_v1_0().cmd_dispatch as usize,
            functions.fp_v1_0().create_compute_pipelines as usize,
            functions.fp_v1_2().wait_semaphores as usize,
        ];
        let direct = device.instance.library.origin != Origin::Loader;
        assert_eq!(first_word(device.physical) == ICD_LOADER_MAGIC, direct, "{}", reached_by(device));
        for function in of_instance {
            assert_eq!(file_of(function).as_ref(), Some(&own), "{}", reached_by(device));
        }
        for function in of_device {
            let file = file_of(function);
            assert!(file.as_ref() == Some(&own) || !direct, "{file:?} is not {}", reached_by(device));
        }
    }
}

#[test]
fn the_error_says_everything_that_was_looked_for() {
    let place = SearchPath { what: "Chromium", pattern: "/usr/lib/chromium/x.so".into(), in_cache: false };
    let found = Discovery {
        devices: Vec::new(),
        missing: vec!["no Vulkan loader".to_owned(), not_found(&[place], &["'/a.so' is broken".to_owned()])],
    };
    let text = found.nothing_usable().to_string();
    for part in ["no Vulkan loader", "'/a.so' is broken", "Chromium: /usr/lib/chromium/x.so"] {
        assert!(text.contains(part), "'{part}' missing from: {text}");
    }
    assert!(text.ends_with(swiftshader::ADVICE), "{text}");
}
