//! Long recordings in several submissions: the same results, nothing submitted that nobody wants any more, and whole again
//! once it is known that they are short.
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
    Binding, BindingTable, Buffer, BufferParams, Code, Command, CommandBuffer, CommandBufferMode,
    CommandCategory, CommandList, CommandTarget, Device, DeviceInfo, DeviceKind, DispatchCounts,
    DispatchFlags, Executable, Fence, QueueAffinity, QueueOp, Status,
};
use shim::{DEVICE_LOST, OUT_OF_HOST_MEMORY, Shim, Timelines, on_shim};

/// Enough workgroups to be taken for long on a device, most of which have nothing to do: they are guessed to take many times the limit
/// that tests set. Processors are guessed slower than GPUs, and do take their time.
fn groups(info: &DeviceInfo) -> u32 {
    if info.kind == DeviceKind::Cpu { 64 } else { 65535 }
}

const DISPATCHES: usize = 12;

fn dispatch(executable: &Arc<dyn Executable>, data: &Arc<dyn Buffer>, groups: u32) -> Command {
    dispatch_at(executable, data, groups, (0, data.byte_length()))
}

/// On a range of the data: offset and length.
fn dispatch_at(
    executable: &Arc<dyn Executable>,
    data: &Arc<dyn Buffer>,
    groups: u32,
    (offset, length): (u64, u64),
) -> Command {
    let whole = || Binding { target: CommandTarget::Direct(data.clone()), offset, length };
    Command::Dispatch {
        executable: executable.clone(),
        function: 0,
        counts: DispatchCounts::Direct([groups, 1, 1]),
        constants: [2, 64].into_iter().collect(),
        bindings: [whole(), whole()].into_iter().collect(),
        flags: DispatchFlags::empty(),
    }
}

/// Dispatches one after the other, each from a buffer to itself.
fn recording(
    device: &Arc<dyn Device>,
    data: &Arc<dyn Buffer>,
    mode: CommandBufferMode,
    (count, groups): (usize, u32),
) -> Arc<dyn CommandBuffer> {
    let executable = test_executable(device);
    let commands = (0..count).flat_map(|_| [dispatch(&executable, data, groups), Command::Barrier]).collect();
    record(device, mode, commands)
}

fn record(
    device: &Arc<dyn Device>,
    mode: CommandBufferMode,
    commands: Vec<Command>,
) -> Arc<dyn CommandBuffer> {
    let categories = CommandCategory::all();
    let list = CommandList { mode, categories, affinity: QueueAffinity::ANY, binding_capacity: 0, commands };
    device.create_command_buffer(list).unwrap()
}

fn execute(command_buffer: &Arc<dyn CommandBuffer>) -> QueueOp {
    QueueOp::Execute { command_buffer: command_buffer.clone(), bindings: BindingTable::default() }
}

fn submit(device: &Arc<dyn Device>, op: QueueOp) -> Fence {
    let done = fence(device);
    device.queue_submit(ANY, &Fence::default(), &done, op).unwrap();
    device.queue_flush(ANY).unwrap();
    done
}

/// What so many dispatches make of the data.
fn expected(shim: &Shim, info: &DeviceInfo, count: usize) -> Vec<u32> {
    let device = shim.open(info, &[("submission_limit", "off")]).unwrap();
    let data = words_buffer(&device, &[1; 64]);
    run(&device, execute(&recording(&device, &data, CommandBufferMode::empty(), (count, groups(info)))));
    read_words(&data)
}

const MODES: [CommandBufferMode; 2] = [CommandBufferMode::empty(), CommandBufferMode::ONE_SHOT];

#[test]
fn parts_give_what_the_whole_gives() {
    on_shim(|shim, info| {
        let all = expected(shim, info, DISPATCHES);
        for mode in MODES {
            let device = shim.open(info, &[("submission_limit", "1")]).unwrap();
            let data = words_buffer(&device, &[1; 64]);
            let before = shim.calls("vkQueueSubmit");
            run(&device, execute(&recording(&device, &data, mode, (DISPATCHES, groups(info)))));
            assert_eq!(read_words(&data), all, "{mode:?}");
            assert!(shim.calls("vkQueueSubmit") - before >= DISPATCHES as u32, "{mode:?}: one for each");
        }
        assert_eq!(shim.live(), 0);
    });
}

#[test]
fn what_nobody_wants_any_more_is_left_out_and_the_rest_is_done() {
    on_shim(|shim, info| {
        let one = expected(shim, info, 1);
        for mode in MODES {
            let device = shim.open(info, &[("submission_limit", "1")]).unwrap();
            let (data, other) = (words_buffer(&device, &[1; 64]), buffer(&device, &[0; 64]));
            let long = recording(&device, &data, mode, (DISPATCHES, groups(info)));
            shim.stall(true);
            let before = shim.calls("vkQueueSubmit");
            let done = submit(&device, execute(&long));
            // Of a divided dispatch, two pieces are what the device has at a time.
            let given = shim.calls("vkQueueSubmit") - before;
            assert!((1..=2).contains(&given), "{mode:?}: the device has enough to do, not {given} parts");
            let fill = QueueOp::Fill { target: span(&other, 0, 64), pattern: 5, pattern_length: 1 };
            let later = submit(&device, fill);
            done.abandon(&Status::new(Code::Cancelled, "stopped by the test"));
            assert!(!done.query().unwrap(), "it fails when what was begun is done");
            shim.stall(false);
            later.wait(seconds(60)).unwrap();
            let failure = done.wait(seconds(60)).unwrap_err();
            assert_eq!((failure.code(), failure.message()), (Code::Cancelled, "stopped by the test"));
            assert_eq!((read_words(&data), read(&other)), (one.clone(), vec![5; 64]), "{mode:?}");
            // What comes afterwards works, also the same recording.
            if mode == CommandBufferMode::empty() {
                run(&device, execute(&long));
                assert_eq!(read_words(&data), expected(shim, info, DISPATCHES + 1));
            }
        }
        assert_eq!(shim.live(), 0);
    });
}

#[test]
fn recordings_that_turn_out_short_are_submitted_whole() {
    on_shim(|shim, info| {
        let device = shim.open(info, &[("submission_limit", "60000")]).unwrap();
        let data = words_buffer(&device, &[1; 64]);
        let recording = recording(&device, &data, CommandBufferMode::empty(), (300, 1));
        let submits = || {
            let before = shim.calls("vkQueueSubmit");
            run(&device, execute(&recording));
            shim.calls("vkQueueSubmit") - before
        };
        let first = submits();
        assert!(first > 1, "nothing is known of them: {first}");
        for _ in 0..8 {
            submits();
        }
        assert_eq!(submits(), 1);
    });
}

#[test]
fn memory_of_work_that_could_not_be_submitted_is_used_again() {
    on_shim(|shim, info| {
        let device = shim.open(info, &[]).unwrap();
        let work = || {
            let (here, filled, gone) = (fence(&device), fence(&device), fence(&device));
            let params = BufferParams::DEVICE;
            let buffer = device.queue_alloca(ANY, &Fence::default(), &here, &params, 1 << 16)?;
            let fill = QueueOp::Fill { target: span(&buffer, 0, 64), pattern: 5, pattern_length: 1 };
            device.queue_submit(ANY, &here, &filled, fill)?;
            device.queue_submit(ANY, &filled, &gone, QueueOp::Dealloca { buffer })?;
            gone.wait(seconds(60))
        };
        shim.fail("vkQueueSubmit", 0, 1, OUT_OF_HOST_MEMORY);
        assert_eq!(work().unwrap_err().code(), Code::ResourceExhausted);
        shim.clear();
        work().unwrap();
        work().unwrap();
    });
}

#[test]
fn a_loss_ends_held_work_too() {
    on_shim(|shim, info| {
        let device = shim.open(info, &[("submission_limit", "1")]).unwrap();
        let data = words_buffer(&device, &[1; 64]);
        shim.stall(true);
        let done = submit(
            &device,
            execute(&recording(&device, &data, CommandBufferMode::empty(), (DISPATCHES, groups(info)))),
        );
        shim.fail("vkQueueSubmit", 0, 1, DEVICE_LOST);
        shim.stall(false);
        let failure = done.wait(seconds(60)).unwrap_err();
        assert_eq!(failure.code(), Code::DataLoss, "{failure}");
        drop((device, data, done));
        shim.clear();
        assert_eq!(shim.live(), 0);
    });
}

/// What a device has begun cannot be taken back: what it was given while nothing was known of its time counts, not what it was thought to
/// take. A loop hands over its runs without waiting; on SwiftShader hundreds of them took seconds when the call was stopped.
#[test]
fn few_dispatches_that_nothing_is_known_of_are_with_the_device_at_a_time() {
    const RUNS: u64 = 400;
    const APART: u64 = 256;
    on_shim(|shim, info| {
        let device = shim.open(info, &[]).unwrap();
        let data = words_buffer(&device, &vec![1; (RUNS * APART / 4) as usize]);
        let executable = test_executable(&device);
        let mode = CommandBufferMode::empty();
        let runs: Vec<_> = (0..RUNS)
            .map(|n| record(&device, mode, vec![dispatch_at(&executable, &data, 1, (n * APART, APART))]))
            .collect();
        shim.stall(true);
        // Each is submitted as a loop does it: nobody waits in between.
        let done: Vec<_> = runs.iter().map(|run| submit(&device, execute(run))).collect();
        done.iter().for_each(|done| done.abandon(&Status::new(Code::Cancelled, "stopped by the test")));
        shim.stall(false);
        let ended: Vec<_> = done.iter().map(|done| done.wait(seconds(60)).is_ok()).collect();
        let begun = ended.iter().filter(|ended| **ended).count();
        let most = if info.kind == DeviceKind::Cpu { 16 } else { 256 };
        assert!((1..=most).contains(&begun), "the device was given {begun} runs");
        // These were done, and none behind them.
        let words = read_words(&data);
        for (words, ended) in words.chunks(APART as usize / 4).zip(&ended) {
            assert_eq!(words[0], if *ended { 66 } else { 1 });
        }
        // What was left out can be run, and all of it.
        drop(done);
        let again: Vec<_> = runs.iter().map(|run| submit(&device, execute(run))).collect();
        again.iter().for_each(|done| done.wait(seconds(60)).unwrap());
        let words = read_words(&data);
        assert!(
            words.chunks(APART as usize / 4).skip(most).all(|words| words[0] == 66),
            "all others ran once"
        );
        drop((runs, again, data, executable, device));
        assert_eq!(shim.live(), 0);
    });
}

#[test]
fn a_part_that_could_not_be_submitted_fails_the_recording() {
    on_shim(|shim, info| {
        let all = expected(shim, info, DISPATCHES);
        for mode in MODES {
            for place in [0, 1, DISPATCHES as u32 / 2, DISPATCHES as u32 - 1] {
                let device = shim.open(info, &[("submission_limit", "1")]).unwrap();
                let data = words_buffer(&device, &[1; 64]);
                let long = recording(&device, &data, mode, (DISPATCHES, groups(info)));
                shim.fail("vkQueueSubmit", place, 1, OUT_OF_HOST_MEMORY);
                let done = fence(&device);
                let told = device
                    .queue_submit(ANY, &Fence::default(), &done, execute(&long))
                    .and_then(|()| done.wait(seconds(60)));
                let code = told.map_err(|failure| failure.code());
                assert_eq!(code, Err(Code::ResourceExhausted), "{mode:?}, part {place}");
                shim.clear();
                device.wait_idle(seconds(60)).unwrap();
                data.write(0, &[1u32; 64].map(u32::to_le_bytes).concat()).unwrap();
                run(&device, execute(&recording(&device, &data, mode, (DISPATCHES, groups(info)))));
                assert_eq!(read_words(&data), all, "{mode:?}, after part {place}");
            }
        }
    });
}

/// Work that piles up is recorded into much at a time. Of that little is kept when it is done, and nothing when programs say so.
#[test]
fn what_work_was_recorded_into_is_given_back() {
    const AT_A_TIME: i64 = 60;
    const KEPT: i64 = 8;
    on_shim(|shim, info| {
        if shim.timelines() == Timelines::Hidden {
            // Each batch has a fence there, which stays for later ones.
            return;
        }
        let device = shim.open(info, &[]).unwrap();
        let data = words_buffer(&device, &[0; 64]);
        let fill = |pattern: u64| QueueOp::Fill { target: span(&data, 0, 64), pattern, pattern_length: 1 };
        run(&device, fill(1));
        // The thread that saw the end of the work keeps what it was recorded into a moment later.
        let settles = |what: &str, is_so: &dyn Fn() -> bool| {
            let end = Instant::now() + Duration::from_secs(20);
            while !is_so() {
                assert!(Instant::now() < end, "{what}: there are {} objects", shim.live());
                std::thread::yield_now();
            }
        };
        device.trim();
        let before = shim.live();
        shim.stall(true);
        let done: Vec<_> = (0..AT_A_TIME).map(|n| submit(&device, fill(n as u64))).collect();
        // That of the first may be among what there was before.
        assert!(shim.live() >= before + AT_A_TIME - 1, "each is recorded by itself");
        shim.stall(false);
        done.iter().for_each(|done| done.wait(seconds(60)).unwrap());
        settles("few are kept", &|| shim.live() <= before + KEPT);
        settles("none are kept", &|| {
            device.trim();
            shim.live() <= before
        });
        drop((done, data, device));
        assert_eq!(shim.live(), 0);
    });
}
