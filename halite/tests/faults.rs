//! Sessions on devices that run out of memory or are lost, at every call that the driver makes; and many sessions and threads.
//! Calls to Vulkan are failed one by one by the loader of `drivers/vulkan/tests/shim`.
#![cfg(feature = "compiler")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Mutex,
    thread,
};

use common::{array, builder, device, digits, near, onnx};
use halite::{Cache, CancelToken, Device, ErrorKind, RunOptions, Session, Tensor};
use halite_vulkan_shim::control::Control;

const OUT_OF_HOST_MEMORY: i32 = -1;
const OUT_OF_DEVICE_MEMORY: i32 = -2;
const DEVICE_LOST: i32 = -4;
/// Places that are tried of a call that is made often, in the short form and in the thorough one: the first ones, and some on the way to
/// the last.
const PLACES: [u32; 2] = [2, 4];

/// The shim's rules are the process's: one test at a time has them.
static TURN: Mutex<()> = Mutex::new(());

struct Shim {
    control: Control,
    uri: String,
}

impl std::ops::Deref for Shim {
    type Target = Control;

    fn deref(&self) -> &Control {
        &self.control
    }
}

impl Shim {
    /// The shim with a device behind it; `None`, with a line, where there is none.
    fn new() -> Option<Shim> {
        let control = Control::load();
        let path = control.path().display();
        let uri = format!("vulkan?libvulkan={path}&pipeline_cache=off&swiftshader=off");
        let shim = Shim { control, uri };
        shim.reset();
        match shim.open() {
            Ok(_) => Some(shim),
            Err(error) => {
                println!("SKIPPED: no Vulkan device: {error}");
                None
            }
        }
    }

    fn open(&self) -> halite::Result<Device> {
        Device::open(&self.uri)
    }
}

fn build(device: &Device) -> halite::Result<Session> {
    Session::builder().device(device).cache(Cache::off()).model(digits()).build()
}

/// Two calls of a session, with the right results.
fn call(session: &Session) -> halite::Result<()> {
    for (picture, expected) in [("sample_3.npy", "expected_3.npy"), ("sample_7.npy", "expected_7.npy")] {
        let out = session.run(array(picture))?;
        assert!(near(&out["probabilities"].to_vec::<f32>()?, &array(expected).to_vec::<f32>()?));
    }
    Ok(())
}

/// Where of so many calls one is failed.
fn places(count: u32) -> Vec<u32> {
    let is_thorough = std::env::var_os("HALITE_TEST_THOROUGH").is_some();
    let step = count.div_ceil(PLACES[usize::from(is_thorough)]).max(1);
    let mut places: Vec<u32> = (0..count.min(2)).chain((0..count).step_by(step as usize)).collect();
    places.extend(count.checked_sub(1));
    places.sort_unstable();
    places.dedup();
    places
}

/// What memory may run out at: the call, its result, how often in a row, because memory is asked for again.
const ALLOCATIONS: &[(&str, i32, u32)] = &[
    ("vkAllocateMemory", OUT_OF_DEVICE_MEMORY, 8),
    ("vkCreateBuffer", OUT_OF_HOST_MEMORY, 8),
    ("vkBindBufferMemory", OUT_OF_HOST_MEMORY, 8),
    ("vkCreateCommandPool", OUT_OF_HOST_MEMORY, 1),
    ("vkAllocateCommandBuffers", OUT_OF_HOST_MEMORY, 1),
    ("vkEndCommandBuffer", OUT_OF_DEVICE_MEMORY, 1),
    ("vkCreateDescriptorSetLayout", OUT_OF_HOST_MEMORY, 1),
    ("vkCreatePipelineLayout", OUT_OF_HOST_MEMORY, 1),
    ("vkCreateShaderModule", OUT_OF_HOST_MEMORY, 8),
    ("vkCreateComputePipelines", OUT_OF_HOST_MEMORY, 8),
    ("vkQueueSubmit", OUT_OF_HOST_MEMORY, 1),
];

#[test]
fn memory_may_run_out_at_every_call_of_a_model() {
    let _turn = TURN.lock();
    let Some(shim) = Shim::new() else { return };
    let before: Vec<u32> = ALLOCATIONS.iter().map(|(name, ..)| shim.calls(name)).collect();
    {
        let device = shim.open().unwrap();
        call(&build(&device).unwrap()).unwrap();
    }
    let counts = ALLOCATIONS.iter().zip(before).map(|((name, ..), before)| shim.calls(name) - before);
    for ((name, result, times), count) in ALLOCATIONS.iter().zip(counts.collect::<Vec<_>>()) {
        let mut failures = 0;
        for place in places(count) {
            let Ok(device) = shim.open() else { panic!("the device opens without a fault") };
            shim.fail(name, place, *times, *result);
            let built = build(&device);
            let called = built
                .as_ref()
                .map_err(halite::Error::kind)
                .and_then(|session| call(session).map_err(|error| error.kind()));
            if let Err(kind) = called {
                failures += 1;
                assert_eq!(kind, ErrorKind::OutOfMemory, "{name} after {place}");
            }
            // The session goes on, or a new one on the same device does.
            shim.clear();
            let session = built.or_else(|_| build(&device)).unwrap();
            call(&session).unwrap_or_else(|e| panic!("after {name} failed at {place}: {e}"));
        }
        println!("{name}: {count} calls, {failures} failures that reached the caller");
    }
    assert_eq!(shim.live(), 0);
}

#[test]
fn a_device_may_be_lost_at_every_operation_and_is_opened_again() {
    let _turn = TURN.lock();
    let Some(shim) = Shim::new() else { return };
    for name in ["vkQueueSubmit", "vkWaitSemaphores", "vkGetSemaphoreCounterValue"] {
        let before = shim.calls(name);
        {
            let device = shim.open().unwrap();
            call(&build(&device).unwrap()).unwrap();
        }
        let (mut told, count) = (0, shim.calls(name) - before);
        for place in places(count) {
            let device = shim.open().unwrap();
            shim.fail(name, place, 1, DEVICE_LOST);
            match build(&device).and_then(|session| call(&session)) {
                Ok(()) => {}
                Err(error) => {
                    told += 1;
                    assert_eq!(error.kind(), ErrorKind::DeviceLost, "{name} at {place}: {error}");
                    // It stays lost, and says so.
                    assert_eq!(
                        build(&device).and_then(|s| call(&s)).unwrap_err().kind(),
                        ErrorKind::DeviceLost
                    );
                }
            }
            shim.clear();
            drop(device);
            // The documented way on: open it again, and build the session again, with its weights.
            call(&build(&shim.open().unwrap()).unwrap()).unwrap();
        }
        println!("{name}: {count} calls, {told} losses that reached the caller");
        // How often a wait looks depends on the machine; submissions do not.
        assert!(told > 0 || name != "vkQueueSubmit");
    }
    assert_eq!(shim.live(), 0);
}

#[test]
fn hundreds_of_sessions_leave_nothing() {
    let _turn = TURN.lock();
    let Some(shim) = Shim::new() else { return };
    {
        let device = shim.open().unwrap();
        for number in 0..300u16 {
            let constant = f32::from(number);
            let session = builder(&device).model(onnx::adds(constant)).build().unwrap();
            if number % 10 == 0 {
                let out = session.run(Tensor::from_slice(&[1.0f32, 2.0], 2).unwrap()).unwrap();
                assert_eq!(out["y"].to_vec::<f32>().unwrap(), [1.0 + constant, 2.0 + constant]);
            }
        }
    }
    assert_eq!(shim.live(), 0);
}

#[test]
fn twenty_four_threads_share_a_device() {
    let Some(device) = device() else { return };
    let session = builder(&device).model(digits()).build().unwrap();
    let picture = array("sample_3.npy");
    let expected = session.run(picture.clone()).unwrap()["probabilities"].to_vec::<f32>().unwrap();
    thread::scope(|scope| {
        for number in 0..24 {
            let (own, picture, expected) = (&session, &picture, &expected);
            scope.spawn(move || {
                // Some are stopped on the way: the others are right all the same.
                let token = CancelToken::new();
                for round in 0..4 {
                    if number % 6 == 5 && round == 2 {
                        token.cancel();
                    }
                    match own.run_with(picture.clone(), &RunOptions::new().cancel(&token)) {
                        Ok(out) => {
                            assert!(near(&out["probabilities"].to_vec::<f32>().unwrap(), expected));
                        }
                        Err(error) => assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}"),
                    }
                }
            });
        }
    });
    assert_eq!(session.run(picture).unwrap()["probabilities"].to_vec::<f32>().unwrap(), expected);
}

#[test]
fn a_thread_that_dies_in_a_call_takes_nothing_along() {
    let Some(device) = device() else { return };
    let session = builder(&device).model(onnx::adds(0.5)).build().unwrap();
    let dies = || RunOptions::new().progress(|_| panic!("the caller's own fault"));
    for length in [3usize, 4] {
        let values = vec![1.0f32; length];
        let run =
            |options: &RunOptions| session.run_with(Tensor::from_slice(&values, length).unwrap(), options);
        // A size that is new is compiled within the call, which tells how far it is.
        _ = catch_unwind(AssertUnwindSafe(|| thread::scope(|s| s.spawn(|| run(&dies())).join().is_err())));
        let out = run(&RunOptions::new()).unwrap();
        assert_eq!(out["y"].to_vec::<f32>().unwrap(), vec![1.5; length]);
    }
}
