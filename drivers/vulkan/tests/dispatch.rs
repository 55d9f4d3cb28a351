//! Dispatches: bindings, constants, counts, binding tables, errors; real kernels of iree-compile in both ABIs.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::sync::Arc;

use common::*;
use halite_formats::vmfb::{VulkanExecutable, read_module};
use halite_hal::{
    BindingTable, Buffer, BufferRef, Code, Command, CommandBufferMode, CommandCategory, CommandList,
    CommandTarget, Device, DispatchCounts, DispatchFlags, Executable, ExecutableDesc, Fence, QueueOp, Status,
    WHOLE_BUFFER,
};
use smallvec::smallvec;

fn slot(slot: u32, offset: u64, length: u64) -> BufferRef {
    BufferRef { target: CommandTarget::Slot(slot), offset, length }
}

fn dispatch(
    executable: &Arc<dyn Executable>,
    function: u32,
    counts: DispatchCounts,
    constants: &[u32],
    bindings: [BufferRef; 2],
) -> Command {
    Command::Dispatch {
        executable: executable.clone(),
        function,
        counts,
        constants: constants.into(),
        bindings: bindings.into_iter().collect(),
        flags: DispatchFlags::empty(),
    }
}

fn list(mode: CommandBufferMode, slots: u32, commands: Vec<Command>) -> CommandList {
    CommandList { mode, categories: CommandCategory::ANY, affinity: ANY, binding_capacity: slots, commands }
}

fn execute(device: &Arc<dyn Device>, list: CommandList, bindings: BindingTable) {
    let command_buffer = device.create_command_buffer(list).unwrap();
    run(device, QueueOp::Execute { command_buffer, bindings });
}

/// From slot 0 through a buffer of its own to slot 1, with a dispatch of nothing between the two.
fn chain(executable: &Arc<dyn Executable>, middle: &Arc<dyn Buffer>) -> Vec<Command> {
    // The middle buffer is used from byte 256 on: slot offsets add up.
    vec![
        dispatch(
            executable,
            0,
            DispatchCounts::Direct([4, 1, 1]),
            &[200, 1],
            [slot(0, 0, WHOLE_BUFFER), span(middle, 256, 800).into()],
        ),
        Command::Barrier,
        dispatch(executable, 0, DispatchCounts::Direct([0, 1, 1]), &[200, 9], [slot(2, 0, 0), slot(2, 0, 0)]),
        dispatch(
            executable,
            0,
            DispatchCounts::Direct([4, 1, 1]),
            &[200, 0],
            [span(middle, 256, 800).into(), slot(1, 0, 800)],
        ),
    ]
}

#[test]
fn chained_dispatches_with_slots_and_direct_buffers() {
    on_devices(BOTH_WAYS, |device| {
        let executable = test_executable(device);
        assert_eq!(executable.lookup("uniform"), Some(1));
        assert_eq!(executable.functions()[0].binding_count, 2);
        assert_eq!(executable.functions()[0].constant_count, 2);
        let input: Vec<u32> = (0..200).collect();
        for mode in [CommandBufferMode::ONE_SHOT, CommandBufferMode::empty()] {
            let source = words_buffer(device, &input);
            let middle = words_buffer(device, &vec![0; 264]);
            let target = words_buffer(device, &vec![0; 200]);
            let table = |t| BindingTable { entries: smallvec![Some(span(&source, 0, 800)), Some(t), None] };
            let commands = device.create_command_buffer(list(mode, 3, chain(&executable, &middle))).unwrap();
            let op = |bindings| QueueOp::Execute { command_buffer: commands.clone(), bindings };
            run(device, op(table(span(&target, 0, 800))));
            let expected: Vec<u32> = input.iter().map(|i| (i * 2 + 1) * 2).collect();
            assert_eq!(read_words(&target), expected, "{mode:?} middle {:?}", read_words(&middle));
            if mode.is_empty() {
                // Other bindings, the first ones again, and several in flight.
                let others: Vec<_> = (0..6).map(|_| words_buffer(device, &vec![0; 200])).collect();
                let mut last = Fence::default();
                for other in others.iter().chain(&others) {
                    let done = fence(device);
                    device.queue_submit(ANY, &last, &done, op(table(span(other, 0, 800)))).unwrap();
                    last = done;
                }
                last.wait(seconds(30)).unwrap();
                others.iter().for_each(|o| assert_eq!(read_words(o), read_words(&target)));
            }
        }
    });
}

#[test]
fn recordings_that_are_prepared_run_with_the_buffers_that_come_next() {
    on_devices(BOTH_WAYS, |device| {
        let executable = test_executable(device);
        let input: Vec<u32> = (0..200).collect();
        let source = words_buffer(device, &input);
        let targets = [(); 2].map(|()| words_buffer(device, &[0; 200]));
        let recording = |count: u32| {
            let bound = [0, 1].map(|place| slot(place, 0, u64::from(count) * 4));
            let command =
                dispatch(&executable, 0, DispatchCounts::Direct([4, 1, 1]), &[count.min(200), 1], bound);
            device.create_command_buffer(list(CommandBufferMode::empty(), 2, vec![command])).unwrap()
        };
        let stats = || {
            let stats = device.recording_stats();
            [stats.executed, stats.written, stats.written_ahead, stats.found_ahead]
        };
        let begun = stats();
        let mut last = recording(100);
        recording(100).prepare_as(&*last).unwrap();
        // The buffer that is written, and whether it was the one to expect: the last again, or the one before where two take turns.
        let turns =
            [(0, false), (0, true), (1, false), (1, true), (0, false), (1, false), (0, true), (1, true)];
        let mut expected = [0, 0, 0, 0];
        for (count, (turn, is_found)) in (101..).zip(turns) {
            let next = recording(count);
            next.prepare_as(&*last).unwrap();
            let range = |buffer| Some(span(buffer, 0, u64::from(count) * 4));
            let bindings = BindingTable { entries: smallvec![range(&source), range(&targets[turn])] };
            run(device, QueueOp::Execute { command_buffer: next.clone(), bindings });
            let written: Vec<u32> = input[..count as usize].iter().map(|i| i * 2 + 1).collect();
            assert_eq!(read_words(&targets[turn])[..count as usize], written, "{count}");
            let is_first = count == 101;
            let more = [1, u64::from(!is_found), u64::from(!is_first), u64::from(is_found)];
            expected.iter_mut().zip(more).for_each(|(all, more)| *all += more);
            let found: Vec<u64> = stats().iter().zip(begun).map(|(now, begun)| now - begun).collect();
            assert_eq!(found, expected, "executed, written, ahead, found; {count}");
            last = next;
        }
        // Where the buffer is too small, nothing is prepared, and another one is as good.
        let ahead = stats()[2];
        let large = recording(100_000);
        large.prepare_as(&*last).unwrap();
        assert_eq!(stats()[2], ahead);
        let range = |buffer| Some(span(buffer, 0, 400_000));
        let [source, target] = [(); 2].map(|()| words_buffer(device, &vec![7; 100_000]));
        let bindings = BindingTable { entries: smallvec![range(&source), range(&target)] };
        run(device, QueueOp::Execute { command_buffer: large, bindings });
        assert_eq!(read_words(&target)[..201], [[15; 200].as_slice(), &[7]].concat());
    });
}

#[test]
fn indirect_counts_uniforms_and_specialization() {
    on_devices(BOTH_WAYS, |device| {
        let executable = test_executable(device);
        let counts = words_buffer(device, &[9, 9, 9, 9, 2, 1, 1]);
        let source = words_buffer(device, &[10, 20, 30, 40]);
        let target = words_buffer(device, &[0; 128]);
        let other = words_buffer(device, &[0; 4]);
        let commands = vec![
            dispatch(
                &executable,
                0,
                DispatchCounts::Indirect(span(&counts, 16, 12).into()),
                &[4, 3],
                [slot(0, 0, 16), slot(1, 0, WHOLE_BUFFER)],
            ),
            dispatch(
                &executable,
                1,
                DispatchCounts::Direct([1, 1, 1]),
                &[],
                [slot(0, 0, 16), slot(2, 0, 16)],
            ),
        ];
        let bindings = BindingTable {
            entries: [(&source, 16), (&target, 512), (&other, 16)]
                .into_iter()
                .map(|(b, l)| Some(span(b, 0, l)))
                .collect(),
        };
        execute(device, list(CommandBufferMode::empty(), 3, commands), bindings);
        assert_eq!(read_words(&target)[..5], [23, 43, 63, 83, 0]);
        assert_eq!(read_words(&other), [17, 27, 37, 47]);
    });
}

#[test]
fn bindings_without_bytes_and_partial_words() {
    on_devices(BOTH_WAYS, |device| {
        let executable = test_executable(device);
        let target = buffer(device, &[0; 6]);
        let source = words_buffer(device, &[1, 2]);
        let table = |s| BindingTable { entries: smallvec![s, Some(span(&target, 0, 6))] };
        let commands = |count| {
            let bindings = [slot(0, 0, WHOLE_BUFFER), slot(1, 0, WHOLE_BUFFER)];
            vec![dispatch(&executable, 0, DispatchCounts::Direct([1, 1, 1]), &[count, 0x0101_0101], bindings)]
        };
        execute(device, list(CommandBufferMode::empty(), 2, commands(2)), table(Some(span(&source, 0, 8))));
        assert_eq!(read(&target), [3, 1, 1, 1, 5, 1], "the last partial word is written too");
        for empty in [None, Some(span(&source, 0, 0))] {
            execute(device, list(CommandBufferMode::ONE_SHOT, 2, commands(0)), table(empty));
        }
    });
}

#[test]
fn errors_name_what_is_wrong() {
    on_devices(&[&[]], |device| {
        let executable = test_executable(device);
        let data = words_buffer(device, &[0; 64]);
        let submit = |commands: Vec<Command>| {
            let command_buffer =
                device.create_command_buffer(list(CommandBufferMode::ONE_SHOT, 0, commands)).unwrap();
            let done = fence(device);
            let op = QueueOp::Execute { command_buffer, bindings: BindingTable::default() };
            let error = device.queue_submit(ANY, &Fence::default(), &done, op).unwrap_err();
            assert_eq!(done.wait(seconds(30)).unwrap_err().code(), error.code());
            error.to_string()
        };
        let whole = || [span(&data, 0, 256).into(), span(&data, 0, 256).into()];
        let misplaced = || [span(&data, 2, 8).into(), span(&data, 0, 256).into()];
        let direct = |n| DispatchCounts::Direct([n, 1, 1]);
        let error = submit(vec![dispatch(&executable, 0, direct(1), &[1, 2], misplaced())]);
        assert!(error.contains("minStorageBufferOffsetAlignment"), "{error}");
        let error = submit(vec![dispatch(&executable, 0, direct(1), &[1], whole())]);
        assert!(error.contains("takes 2 bindings and 2 constants"), "{error}");
        let error = submit(vec![dispatch(&executable, 9, direct(1), &[1], whole())]);
        assert!(error.contains("does not exist"), "{error}");

        let mut wrong = kernels();
        wrong.set_layouts[0].pop();
        let error = device.create_executable(desc(&wrong, &[])).unwrap_err();
        assert!(error.to_string().contains("binding 1"), "{error}");
        let mut wrong = kernels();
        wrong.pipelines[0].entry_point = "other".to_owned();
        let error = device.create_executable(desc(&wrong, &[])).unwrap_err();
        assert!(error.to_string().contains("main"), "{error}");
        let mut wrong = kernels();
        wrong.shader_modules[0] = wrong.shader_modules[0].slice(..400);
        assert_eq!(device.create_executable(desc(&wrong, &[])).unwrap_err().code(), Code::InvalidArgument);
        let mut newer = desc(&kernels(), &[]);
        let mut data = newer.data.to_vec();
        data[4] = 1;
        newer.data = data.into();
        assert_eq!(device.create_executable(newer).unwrap_err().code(), Code::Incompatible);
        let other = ExecutableDesc { format: "rocm".to_owned(), ..desc(&kernels(), &[]) };
        assert_eq!(device.create_executable(other).unwrap_err().code(), Code::Incompatible);
    });
}

/// A kernel that turns the 16-bit floats of words into 32-bit floats.
fn halves() -> VulkanExecutable {
    let mut executable = kernels();
    executable.pipelines.truncate(1);
    executable.pipelines[0].name = "halves".to_owned();
    executable.pipeline_layouts[0].push_constants.clear();
    executable.shader_modules = vec![bytes::Bytes::from_static(include_bytes!("kernels/halves.spv"))];
    executable
}

#[test]
fn sixteen_bit_floats_are_right_or_refused() {
    let is_refused = |error: &Status| {
        error.code() == Code::Unavailable && error.to_string().contains("kernel 'halves' has 16-bit floats")
    };
    on_devices(&[&[]], |device| {
        let executable = match device.create_executable(desc(&halves(), &[])) {
            Ok(executable) => executable,
            Err(error) => return assert!(is_refused(&error), "{error}"),
        };
        let source = words_buffer(device, &[0x4000_3C00, 0x0400_C500, 0x3555_7BFF, 0xBC00_0000]);
        let target = words_buffer(device, &[7; 8]);
        let buffers = [span(&source, 0, 16).into(), span(&target, 0, 32).into()];
        let command = dispatch(&executable, 0, DispatchCounts::Direct([1, 1, 1]), &[], buffers);
        execute(device, list(CommandBufferMode::ONE_SHOT, 0, vec![command]), BindingTable::default());
        let numbers: Vec<f32> = read_words(&target).into_iter().map(f32::from_bits).collect();
        assert_eq!(numbers, [1.0, 2.0, -5.0, 1.0 / 16384.0, 65504.0, 0.333_251_95, 0.0, -1.0]);
    });
    on_devices(&[&[("workarounds", "avoid-halves")]], |device| {
        let error = device.create_executable(desc(&halves(), &[])).unwrap_err();
        assert!(is_refused(&error), "{error}");
        // All others run.
        test_executable(device);
    });
}

/// The Vulkan executables in a module of the corpus.
fn executables_of(module: &str) -> Option<Vec<bytes::Bytes>> {
    let file = std::fs::read(corpus(module)?.join("module.vmfb")).unwrap();
    let module = read_module(file.into()).unwrap();
    Some(module.rodata.into_iter().filter(|r| r.starts_with(b"VKE1")).collect())
}

/// Runs the only kernel of an executable: two vectors of `count` floats in, one out, each behind other numbers.
fn run_binary(
    device: &Arc<dyn Device>,
    format: &str,
    data: bytes::Bytes,
    count: usize,
    expected: fn(f32, f32) -> f32,
) {
    let executable = device
        .create_executable(ExecutableDesc {
            format: format.to_owned(),
            data,
            constants: vec![],
            label: String::new(),
            subgroup_sizes: vec![],
        })
        .unwrap();
    let info = &executable.functions()[0];
    assert_eq!((info.binding_count, info.constant_count), (3, 0));
    const BEFORE: usize = 64;
    let floats = |values: &[f32]| {
        let words: Vec<u32> = [-1.0; BEFORE].iter().chain(values).map(|v| v.to_bits()).collect();
        words_buffer(device, &words)
    };
    let a: Vec<f32> = (0..count).map(|i| i as f32 + 0.5).collect();
    let b: Vec<f32> = (0..count).map(|i| 100.0 - i as f32).collect();
    let buffers = [floats(&a), floats(&b), floats(&vec![0.0; count])];
    let command = Command::Dispatch {
        executable: executable.clone(),
        function: 0,
        counts: DispatchCounts::Direct([1, 1, 1]),
        constants: smallvec![],
        bindings: (0..3).map(|i| slot(i, 4 * BEFORE as u64, WHOLE_BUFFER)).collect(),
        flags: DispatchFlags::empty(),
    };
    let commands = device.create_command_buffer(list(CommandBufferMode::empty(), 3, vec![command])).unwrap();
    let bindings =
        BindingTable { entries: buffers.iter().map(|b| Some(span(b, 0, b.byte_length()))).collect() };
    for _ in 0..3 {
        run(device, QueueOp::Execute { command_buffer: commands.clone(), bindings: bindings.clone() });
    }
    let found: Vec<f32> = read_words(&buffers[2]).into_iter().map(f32::from_bits).collect();
    let wanted: Vec<f32> = a.iter().zip(&b).map(|(a, b)| expected(*a, *b)).collect();
    assert_eq!(found[..BEFORE], [-1.0; BEFORE], "{format}");
    assert_eq!(found[BEFORE..], wanted, "{format}");
}

#[test]
fn a_kernel_of_iree_compile() {
    let Some(data) = executables_of("small/add_f32") else { return };
    on_devices(BOTH_WAYS, |device| {
        run_binary(device, "vulkan-spirv-fb", data[0].clone(), 32, |a, b| a + b);
    });
}

#[test]
fn a_kernel_that_takes_addresses() {
    let Some(data) = executables_of("small/abi_bda_only") else { return };
    on_devices(&[&[("dispatch_abi", "all")]], |device| {
        assert_eq!(device.query_i64("hal.executable.format", "vulkan-spirv-bda-v1"), Some(1));
        run_binary(device, "vulkan-spirv-bda-v1", data[0].clone(), 4, |a, b| a * b);
    });
}
