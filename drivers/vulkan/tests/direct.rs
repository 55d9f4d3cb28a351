//! Drivers that are loaded directly, alone and beside the loader's devices in one process.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::{path::PathBuf, sync::Arc, thread};

use common::*;
use halite_hal::{
    BufferRef, Code, Command, CommandBufferMode, CommandCategory, CommandList, Device, DeviceInfo,
    DispatchCounts, DispatchFlags, Driver as _, Options, QueueOp,
};
use halite_vulkan::VulkanDriver;

fn options(pairs: &[(&str, &str)]) -> Options {
    let pairs = [&[("pipeline_cache", "off")], pairs].concat();
    pairs.into_iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect()
}

/// The drivers of this machine that can be loaded directly: those that the environment names, Mesa's for processors,
/// and SwiftShader. Libraries or manifests.
fn drivers() -> Vec<PathBuf> {
    let listed = |name| std::env::var_os(name).map(|v| std::env::split_paths(&v).collect::<Vec<_>>());
    let mut found = listed("VK_DRIVER_FILES").or_else(|| listed("VK_ICD_FILENAMES")).unwrap_or_default();
    found.push("/usr/share/vulkan/icd.d/lvp_icd.x86_64.json".into());
    found.retain(|path| path.exists());
    found.extend(listed("HALITE_SWIFTSHADER").unwrap_or_default().into_iter().filter(|path| path.is_file()));
    found.dedup();
    if found.is_empty() {
        eprintln!("SKIPPED: no driver that could be loaded directly");
    }
    found
}

fn property<'a>(info: &'a DeviceInfo, name: &str) -> &'a str {
    info.properties.iter().find(|(n, _)| n == name).map_or("", |(_, value)| value)
}

/// Dispatches the test kernel and checks every number.
fn compute(device: &Arc<dyn Device>, seed: u32) {
    const COUNT: u32 = 128;
    let executable = test_executable(device);
    let input: Vec<u32> = (0..COUNT).map(|i| i + seed).collect();
    let (source, target) = (words_buffer(device, &input), words_buffer(device, &vec![0; COUNT as usize]));
    let whole = |buffer| BufferRef::from(span(buffer, 0, u64::from(COUNT) * 4));
    let dispatch = Command::Dispatch {
        executable,
        function: 0,
        counts: DispatchCounts::Direct([COUNT / 64, 1, 1]),
        constants: [COUNT, seed].into_iter().collect(),
        bindings: [whole(&source), whole(&target)].into_iter().collect(),
        flags: DispatchFlags::empty(),
    };
    let list = CommandList {
        mode: CommandBufferMode::ONE_SHOT,
        categories: CommandCategory::ANY,
        affinity: ANY,
        binding_capacity: 0,
        commands: vec![dispatch],
    };
    let command_buffer = device.create_command_buffer(list).unwrap();
    run(device, QueueOp::Execute { command_buffer, bindings: Default::default() });
    let expected: Vec<u32> = input.iter().map(|x| x * 2 + seed).collect();
    assert_eq!(read_words(&target), expected, "{}", device.info().uri());
}

#[test]
fn kernels_run_without_a_loader() {
    for driver in drivers() {
        let options = options(&[("icd", driver.to_str().unwrap()), ("swiftshader", "off")]);
        for info in VulkanDriver.enumerate(&options).unwrap() {
            let reached = property(&info, "reached_by");
            assert!(reached.contains("loaded directly (ICD interface "), "{reached}");
            let device = VulkanDriver.open(&info.path, &options).unwrap();
            compute(&device, 5);
            eprintln!("computed on {} by {reached}", info.name);
        }
    }
}

#[test]
fn a_device_has_one_path_however_it_is_reached() {
    let Ok(listed) = VulkanDriver.enumerate(&options(&[("swiftshader", "off")])) else {
        eprintln!("SKIPPED: no loader, or no device behind it");
        return;
    };
    for driver in drivers() {
        let direct = VulkanDriver.enumerate(&options(&[("icd", driver.to_str().unwrap())])).unwrap();
        for device in direct {
            let Some(same) = listed.iter().find(|d| d.name == device.name) else { continue };
            assert_eq!((&device.path, &device.kind), (&same.path, &same.kind));
            assert!(property(same, "reached_by").starts_with("Vulkan loader "), "{same:?}");
        }
    }
}

/// Every way to a device at once, each with a device of its own, from several threads.
#[test]
fn loader_and_direct_drivers_work_side_by_side() {
    let mut ways: Vec<Options> =
        drivers().iter().map(|driver| options(&[("icd", driver.to_str().unwrap())])).collect();
    ways.push(options(&[("swiftshader", "on")]));
    ways.push(options(&[("swiftshader", "off")]));
    let work = |(way, options): (usize, &Options)| {
        for round in 0..4 {
            let devices = match VulkanDriver.enumerate(options) {
                Ok(devices) => devices,
                Err(e) if e.code() == Code::Unavailable => {
                    eprintln!("SKIPPED: {options:?}: {e}");
                    return;
                }
                Err(e) => panic!("{e}"),
            };
            for info in devices.iter().filter(|d| d.unusable.is_none()) {
                let device = VulkanDriver.open(&info.path, options).unwrap();
                compute(&device, (way * 10 + round) as u32);
            }
        }
    };
    thread::scope(|scope| {
        for way in ways.iter().enumerate().chain(ways.iter().enumerate()) {
            scope.spawn(move || work(way));
        }
    });
}

#[test]
fn swiftshader_opens_by_its_path_when_it_is_not_listed() {
    let listed = |choice| VulkanDriver.enumerate(&options(&[("swiftshader", choice)])).unwrap_or_default();
    let on = listed("on");
    let Some(own) = on.iter().find(|d| d.name.contains("SwiftShader")) else {
        eprintln!("SKIPPED: no SwiftShader");
        return;
    };
    compute(&VulkanDriver.open(&own.path, &options(&[])).unwrap(), 1);
    for name in ["swiftshader", "SwiftShader Device", &own.path.to_lowercase()] {
        assert_eq!(VulkanDriver.find_unlisted(name, &options(&[])).unwrap().as_ref(), Some(&own.path));
    }
    assert_eq!(VulkanDriver.find_unlisted("nothing", &options(&[])).unwrap(), None);
    if !listed("off").iter().any(|d| d.path == own.path) {
        let refused = VulkanDriver.open(&own.path, &options(&[("swiftshader", "off")])).unwrap_err();
        assert!(matches!(refused.code(), Code::NotFound | Code::Unavailable), "{refused}");
    }
}

#[test]
fn what_cannot_be_loaded_is_named() {
    let refused = |pairs| VulkanDriver.enumerate(&options(pairs)).unwrap_err().to_string();
    let text = refused(&[("icd", "/no/such/driver.so")]);
    assert!(text.contains("/no/such/driver.so") && text.contains("option icd"), "{text}");
    let text = refused(&[("swiftshader", "/no/such/libvk_swiftshader.so")]);
    assert!(text.contains("/no/such/libvk_swiftshader.so") && text.contains("option swiftshader"), "{text}");
    let text = refused(&[("icd", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))]);
    assert!(text.starts_with("UNAVAILABLE") && text.contains("cannot be loaded"), "{text}");
}
