//! Calls that fail one after the other, wherever the driver makes them: the error says what ran out, nothing leaks, and
//! the device goes on working.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;
#[path = "common/shim.rs"]
mod shim;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use common::*;
use halite_hal::{
    Binding, BindingTable, Buffer, BufferParams, Code, Command, CommandBufferMode, CommandCategory,
    CommandList, CommandTarget, Device, DispatchCounts, DispatchFlags, Executable, Fence, File,
    QueueAffinity, QueueOp, Result,
};
use shim::{OUT_OF_DEVICE_MEMORY, OUT_OF_HOST_MEMORY, Timelines, on_shim};

const WORDS: u64 = 64;

/// A command buffer with a fill, an update and a dispatch.
fn commands(device: &Arc<dyn Device>, data: &Arc<dyn Buffer>, mode: CommandBufferMode) -> Result<QueueOp> {
    let executable = device.create_executable(desc(&kernels(), &[7]))?;
    let whole =
        || Binding { target: CommandTarget::Direct(data.clone()), offset: 0, length: data.byte_length() };
    let dispatch = Command::Dispatch {
        executable,
        function: 0,
        counts: DispatchCounts::Direct([1, 1, 1]),
        constants: [2, WORDS as u32].into_iter().collect(),
        bindings: [whole(), whole()].into_iter().collect(),
        flags: DispatchFlags::empty(),
    };
    let source = bytes::Bytes::from_static(&[1; 4]);
    let update = Command::Update { source, target: Binding { length: 4, ..whole() } };
    let list = CommandList {
        mode,
        categories: CommandCategory::all(),
        affinity: QueueAffinity::ANY,
        binding_capacity: 0,
        commands: vec![update, Command::Barrier, dispatch],
    };
    let command_buffer = device.create_command_buffer(list)?;
    Ok(QueueOp::Execute { command_buffer, bindings: BindingTable::default() })
}

/// Submits and waits.
fn finish(device: &Arc<dyn Device>, op: QueueOp) -> Result<()> {
    let done = Fence::new(device.create_semaphore(0)?, 1);
    device.queue_submit(ANY, &Fence::default(), &done, op)?;
    done.wait(seconds(20))
}

/// Uses everything that takes memory: buffers, staging, files, pipelines, descriptors, command buffers.
fn work(device: &Arc<dyn Device>) -> Result<()> {
    let data = device.allocate_buffer(&BufferParams::DEVICE, WORDS * 4)?;
    data.write(0, &[1; (WORDS * 4) as usize])?;
    let ready = Fence::new(device.create_semaphore(0)?, 1);
    let big = device.queue_alloca(ANY, &Fence::default(), &ready, &BufferParams::DEVICE, 32 << 20)?;
    ready.wait(seconds(20))?;
    for mode in [CommandBufferMode::ONE_SHOT, CommandBufferMode::empty()] {
        finish(device, commands(device, &data, mode)?)?;
    }
    let target = span(&data, 1, 5);
    finish(device, QueueOp::Fill { target, pattern: 3, pattern_length: 1 })?;
    let source = File::Memory(bytes::Bytes::from_static(&[9; 64]));
    finish(device, QueueOp::Read { source, source_offset: 0, target: span(&data, 64, 64) })?;
    let mut bytes = [0; (WORDS * 4) as usize];
    data.read(0, &mut bytes)?;
    assert_eq!(bytes[64..128], [9; 64]);
    finish(device, QueueOp::Dealloca { buffer: big })
}

/// (call, result, how often in a row): memory is asked for again, with nothing pooled, and in other heaps.
const CALLS: &[(&str, i32, u32)] = &[
    ("vkAllocateMemory", OUT_OF_DEVICE_MEMORY, 8),
    ("vkMapMemory", -5, 8),
    ("vkBindBufferMemory", OUT_OF_HOST_MEMORY, 8),
    ("vkCreateBuffer", OUT_OF_HOST_MEMORY, 8),
    ("vkCreateCommandPool", OUT_OF_HOST_MEMORY, 1),
    ("vkResetCommandPool", OUT_OF_DEVICE_MEMORY, 1),
    ("vkAllocateCommandBuffers", OUT_OF_HOST_MEMORY, 1),
    ("vkBeginCommandBuffer", OUT_OF_HOST_MEMORY, 1),
    ("vkEndCommandBuffer", OUT_OF_DEVICE_MEMORY, 1),
    ("vkCreateDescriptorPool", OUT_OF_HOST_MEMORY, 1),
    ("vkAllocateDescriptorSets", OUT_OF_HOST_MEMORY, 1),
    ("vkCreateDescriptorSetLayout", OUT_OF_HOST_MEMORY, 1),
    ("vkCreatePipelineLayout", OUT_OF_HOST_MEMORY, 1),
    ("vkCreateShaderModule", OUT_OF_HOST_MEMORY, 8),
    ("vkCreateComputePipelines", OUT_OF_HOST_MEMORY, 8),
    ("vkQueueSubmit", OUT_OF_HOST_MEMORY, 1),
    ("vkCreateFence", OUT_OF_HOST_MEMORY, 1),
    ("vkResetFences", OUT_OF_DEVICE_MEMORY, 1),
    ("vkAllocateMemory", OUT_OF_DEVICE_MEMORY, 1),
    ("vkCreateComputePipelines", OUT_OF_HOST_MEMORY, 1),
];

#[test]
fn memory_may_run_out_at_every_call() {
    on_shim(|shim, info| {
        let options = [("memory", "staged"), ("push_descriptors", "off")];
        let device = shim.open(info, &options).unwrap();
        work(&device).unwrap();
        drop(device);
        let counts: Vec<u32> = CALLS.iter().map(|(call, ..)| shim.calls(call)).collect();
        for ((call, result, times), count) in CALLS.iter().zip(counts) {
            if call.ends_with("Fence") || call.ends_with("Fences") {
                assert_eq!(count > 0, shim.timelines() == Timelines::Hidden, "{call}");
                if count == 0 {
                    continue;
                }
            }
            assert!(count > 0, "{call} is never made: the test misses it");
            let device = shim.open(info, &options).unwrap();
            let mut failures = 0;
            for after in 0..count {
                device.trim();
                shim.fail(call, after, *times, *result);
                if let Err(e) = work(&device) {
                    failures += 1;
                    assert_eq!(e.code(), Code::ResourceExhausted, "{call} after {after}: {e}");
                    assert!(e.to_string().contains(call), "{call} after {after}: {e}");
                }
                // What is left of a rule that met no call must not meet the next.
                shim.clear();
                work(&device).unwrap_or_else(|e| panic!("after {call} failed once: {e}"));
            }
            // What cannot be reset is made anew.
            let recovers = *call == "vkResetCommandPool"
                || *times == 1 && ["vkAllocateMemory", "vkCreateComputePipelines"].contains(call);
            assert_eq!(failures == 0, recovers, "{call}: {failures} failures reached the caller");
            eprintln!("  {call}: {count} calls, {failures} failures that reached the caller");
            drop(device);
            assert_eq!(shim.live(), 0, "{call}");
        }
    });
}

#[test]
fn opening_may_fail_at_every_step() {
    on_shim(|shim, info| {
        for call in ["vkEnumeratePhysicalDevices", "vkCreateDevice", "vkCreateSemaphore", "vkCreateBuffer"] {
            if call == "vkCreateSemaphore" && shim.timelines() == Timelines::Hidden {
                continue;
            }
            for result in [OUT_OF_HOST_MEMORY, -3, -13, shim::DEVICE_LOST] {
                let mut steps = 0;
                loop {
                    shim.clear();
                    shim.fail(call, steps, 1, result);
                    let opened = shim.open(info, &[("queues", "2")]);
                    shim.clear();
                    match opened {
                        Ok(_) => break,
                        // Some loaders say so when there is nothing: the device is then not found.
                        Err(e) if call == "vkEnumeratePhysicalDevices" && e.code() == Code::NotFound => {}
                        Err(e) => assert!(e.to_string().contains(call), "{e}"),
                    }
                    assert_eq!(shim.live(), 0, "{call} failed");
                    steps += 1;
                    assert!(steps < 100, "{call} is made without end");
                }
                assert!(steps > 0, "{call} is never made at opening");
                assert_eq!(shim.live(), 0, "{call}");
            }
        }
        // Only slower without.
        shim.fail("vkCreatePipelineCache", 0, u32::MAX, OUT_OF_HOST_MEMORY);
        work(&shim.open(info, &[]).unwrap()).unwrap();
        assert_eq!(shim.live(), 0);
    });
}

#[test]
fn the_error_says_what_is_there() {
    on_shim(|shim, info| {
        let device = shim.open(info, &[]).unwrap();
        let kept = device.allocate_buffer(&BufferParams::DEVICE, 1 << 20).unwrap();
        shim.fail("vkAllocateMemory", 0, u32::MAX, OUT_OF_DEVICE_MEMORY);
        let e = device.allocate_buffer(&BufferParams::DEVICE, 100 << 20).unwrap_err();
        assert_eq!(e.code(), Code::ResourceExhausted);
        for part in
            ["vkAllocateMemory", "ERROR_OUT_OF_DEVICE_MEMORY", "104857600 bytes", "heap 0", &info.name]
        {
            assert!(e.to_string().contains(part), "'{part}' is missing from: {e}");
        }
        for key in ["bytes", "heap", "heap.size", "reserved", "used"] {
            assert!(e.detail(key).is_some(), "{key} is missing from: {e:?}");
        }
        eprintln!("  {e:?}");
        if let (Some(budget), Some(usage)) = (e.detail("heap.budget"), e.detail("heap.usage")) {
            let (budget, usage): (u64, u64) = (budget.parse().unwrap(), usage.parse().unwrap());
            assert!(budget > 0 && usage >= 1 << 20, "{e:?}");
        }
        assert!(e.detail("used").unwrap().parse::<u64>().unwrap() >= 1 << 20);
        drop(kept);
    });
}

#[test]
fn nothing_runs_after_a_submission_that_failed() {
    on_shim(|shim, info| {
        let device = shim.open(info, &[("queues", "2")]).unwrap();
        if device.queue_count() < 2 {
            eprintln!("SKIPPED: '{}' has one queue", info.name);
            return;
        }
        let data = device.allocate_buffer(&BufferParams::DEVICE, 64).unwrap();
        data.write(0, &[7; 64]).unwrap();
        let fence = || Fence::new(device.create_semaphore(0).unwrap(), 1);
        let fill = |value| QueueOp::Fill { target: span(&data, 0, 64), pattern: value, pattern_length: 1 };
        let (here, there, last) = (fence(), fence(), fence());
        let [first, second] = [QueueAffinity(1), QueueAffinity(2)];
        device.queue_submit(first, &Fence::default(), &here, fill(1)).unwrap();
        device.queue_submit(second, &Fence::default(), &there, QueueOp::Barrier).unwrap();
        device.queue_submit(second, &there, &there_after(&there), fill(2)).unwrap();
        // What comes next needs both queues: the first one's open batch is submitted for that, and fails.
        shim.fail("vkQueueSubmit", 1, 1, OUT_OF_HOST_MEMORY);
        let both = Fence::join([&here, &there_after(&there)]);
        let refused = device.queue_submit(first, &both, &last, fill(3));
        assert_eq!(refused.unwrap_err().code(), Code::ResourceExhausted);
        assert_eq!(here.wait(seconds(20)).unwrap_err().code(), Code::ResourceExhausted);
        assert_eq!(last.wait(seconds(20)).unwrap_err().code(), Code::ResourceExhausted);
        device.wait_idle(seconds(20)).unwrap();
        let mut bytes = [0; 64];
        data.read(0, &mut bytes).unwrap();
        assert_eq!(bytes, [2; 64], "neither the first fill ran nor the last");
    });
}

/// An executable with all of its kernels built, and the pipelines that were made for it.
fn built(shim: &shim::Shim, device: &Arc<dyn Device>, constant: u32) -> (Arc<dyn Executable>, u32) {
    let made = || shim.calls("vkCreateComputePipelines");
    let before = made();
    let executable = device.create_executable(desc(&kernels(), &[constant])).unwrap();
    let functions: Vec<u32> = (0..executable.functions().len() as u32).collect();
    assert_eq!(executable.wait_built(&functions, seconds(20)).unwrap(), functions.len());
    (executable, made() - before)
}

#[test]
fn kernels_that_are_the_same_are_built_once() {
    on_shim(|shim, info| {
        let device = shim.open(info, &[("kept_kernels", "1")]).unwrap();
        let (first, all) = built(shim, &device, 7);
        assert_eq!(all as usize, first.functions().len());
        let (second, more) = built(shim, &device, 7);
        assert_eq!(more, 0, "both have the same kernels");
        assert_eq!(built(shim, &device, 8).1, all, "another constant is another kernel");
        drop((first, second));
        assert!(all > 1);
        // The thread that built some lets go of them a moment later than it says so.
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            let anew = built(shim, &device, 7).1;
            assert!(anew < all, "one is kept when nobody has them");
            if anew == all - 1 {
                break;
            }
            assert!(Instant::now() < end, "more than one is kept: {anew} of {all} were built anew");
        }
        let all_again = |device: &Arc<dyn Device>| {
            let end = Instant::now() + Duration::from_secs(20);
            while built(shim, device, 7).1 < all {
                assert!(Instant::now() < end, "none are kept");
                device.trim();
            }
        };
        device.trim();
        all_again(&device);
        drop(device);
        let device = shim.open(info, &[("kept_kernels", "0")]).unwrap();
        assert_eq!(built(shim, &device, 7).1, all);
        all_again(&device);
        drop(device);
        assert_eq!(shim.live(), 0);
    });
}

/// What a driver refused once is not refused for ever: who asks again has it built anew.
#[test]
fn kernels_that_could_not_be_built_are_not_shared() {
    const UNKNOWN: i32 = -13;
    on_shim(|shim, info| {
        let device = shim.open(info, &[]).unwrap();
        shim.fail("vkCreateComputePipelines", 0, 1000, UNKNOWN);
        // That they are settled is told here, and what happened where they are used.
        let (broken, tried) = built(shim, &device, 11);
        assert_eq!(tried as usize, broken.functions().len());
        shim.clear();
        let (sound, again) = built(shim, &device, 11);
        assert_eq!(again, tried, "each is built anew");
        // Those are good, and are shared.
        assert_eq!(built(shim, &device, 11).1, 0);
        drop(sound);
        drop((broken, device));
        assert_eq!(shim.live(), 0);
    });
}

/// The next payload of a fence's semaphore.
fn there_after(fence: &Fence) -> Fence {
    let point = &fence.points()[0];
    Fence::new(point.semaphore.clone(), point.value + 1)
}
