//! Long dispatches where processors compute: in several submissions, with the results of a whole, and nothing of what is left is done
//! when nobody wants it any more.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;
#[path = "common/shim.rs"]
mod shim;

use std::sync::Arc;

use bytes::Bytes;
use common::*;
use halite_hal::{
    Binding, BindingTable, Buffer, Code, Command, CommandBuffer, CommandBufferMode, CommandCategory,
    CommandList, CommandTarget, Device, DeviceKind, DispatchCounts, DispatchFlags, Fence, QueueOp, Status,
};
use shim::on_shim;

/// Asks for the number of workgroups, and takes an axis and a number to add.
const COUNTS: &[u8] = include_bytes!("../../../spirv/tests/fixtures/workgroup_ids.spv");
/// Takes the sizes of the first two axes, in invocations.
const PLACES: &[u8] = include_bytes!("kernels/places.spv");

/// One dispatch of a shader, from the first of the buffers to the second.
fn recording(
    device: &Arc<dyn Device>,
    (shader, constants): (&'static [u8], [u32; 2]),
    counts: [u32; 3],
    buffers: [&Arc<dyn Buffer>; 2],
    mode: CommandBufferMode,
) -> Arc<dyn CommandBuffer> {
    let mut executable = kernels();
    executable.shader_modules[0] = Bytes::from_static(shader);
    let executable = device.create_executable(desc(&executable, &[])).unwrap();
    let whole = |data: &Arc<dyn Buffer>| Binding {
        target: CommandTarget::Direct(data.clone()),
        offset: 0,
        length: data.byte_length(),
    };
    let dispatch = Command::Dispatch {
        executable,
        function: 0,
        counts: DispatchCounts::Direct(counts),
        constants: constants.into_iter().collect(),
        bindings: buffers.into_iter().map(whole).collect(),
        flags: DispatchFlags::empty(),
    };
    let categories = CommandCategory::all();
    let list = CommandList { mode, categories, affinity: ANY, binding_capacity: 0, commands: vec![dispatch] };
    device.create_command_buffer(list).unwrap()
}

fn execute(command_buffer: &Arc<dyn CommandBuffer>) -> QueueOp {
    QueueOp::Execute { command_buffer: command_buffer.clone(), bindings: BindingTable::default() }
}

/// What one run of the kernel `places` adds for each invocation.
fn added(counts: [u32; 3], source: &[u32; 4]) -> Vec<u32> {
    let [x, y, z] = [counts[0] * 2, counts[1] * 2, counts[2]];
    let places = (0..z).flat_map(|z| (0..y).flat_map(move |y| (0..x).map(move |x| [x, y, z])));
    let add = |(at, [x, y, z]): (usize, [u32; 3])| source[at % 4] + x / 2 * 3 + y / 2 * 5 + z * 11;
    places.enumerate().map(add).collect()
}

const SOURCE: [u32; 4] = [0, 1000, 2000, 3000];
const MODES: [CommandBufferMode; 2] = [CommandBufferMode::empty(), CommandBufferMode::ONE_SHOT];

/// One millisecond: what is unknown is divided, and again by what was learnt of it.
#[test]
fn pieces_give_what_the_whole_gives() {
    on_devices(
        &[&[("submission_limit", "1")], &[("submission_limit", "1"), ("push_descriptors", "off")]],
        |device| {
            let source = words_buffer(device, &SOURCE);
            for counts in [[3000, 1, 1], [9, 70, 5], [2, 3, 400], [1, 1, 1], [70_000, 1, 1]] {
                let words = added(counts, &SOURCE);
                let kernels = [(PLACES, [counts[0] * 2, counts[1] * 2]), (COUNTS, [0, 0])];
                for (kernel, mode) in kernels.into_iter().flat_map(|kernel| MODES.map(|mode| (kernel, mode)))
                {
                    let target = words_buffer(device, &vec![0; words.len()]);
                    let again =
                        recording(device, kernel, counts, [&source, &target], CommandBufferMode::empty());
                    let runs = if mode == CommandBufferMode::ONE_SHOT { 2 } else { 4 };
                    for _ in 0..runs {
                        match mode {
                            CommandBufferMode::ONE_SHOT => {
                                run(
                                    device,
                                    execute(&recording(device, kernel, counts, [&source, &target], mode)),
                                );
                            }
                            _ => run(device, execute(&again)),
                        }
                    }
                    let found = read_words(&target);
                    // The other kernel adds the group's place on its axis, seven times.
                    let own =
                        |at: usize| if kernel.0 == COUNTS { at as u32 % (counts[0] * 2) / 2 * 7 } else { 0 };
                    let wrong = (0..words.len()).find(|at| found[*at] != runs * (words[*at] + own(*at)));
                    assert_eq!(
                        wrong,
                        None,
                        "{counts:?}, {mode:?}: {:?}",
                        wrong.map(|at| (found[at], words[at]))
                    );
                }
            }
        },
    );
}

#[test]
fn one_long_dispatch_is_several_submissions_and_can_be_given_up() {
    on_shim(|shim, info| {
        let counts = [4096, 1, 1];
        let words = added(counts, &SOURCE);
        for mode in MODES {
            let device = shim.open(info, &[("submission_limit", "1")]).unwrap();
            let (source, target) =
                (words_buffer(&device, &SOURCE), words_buffer(&device, &vec![0; words.len()]));
            let long = || recording(&device, (PLACES, [counts[0] * 2, 2]), counts, [&source, &target], mode);
            let before = shim.calls("vkQueueSubmit");
            run(&device, execute(&long()));
            let submits = shim.calls("vkQueueSubmit") - before;
            assert_eq!(read_words(&target), words);
            if info.kind != DeviceKind::Cpu {
                continue;
            }
            assert!(submits >= 32, "{mode:?}: nothing was known of it: {submits}");
            // Of a kernel that nobody has seen yet.
            let device = shim.open(info, &[("submission_limit", "1")]).unwrap();
            let (source, target) =
                (words_buffer(&device, &SOURCE), words_buffer(&device, &vec![0; words.len()]));
            let long = recording(&device, (PLACES, [counts[0] * 2, 2]), counts, [&source, &target], mode);
            shim.stall(true);
            let done = fence(&device);
            device.queue_submit(ANY, &Fence::default(), &done, execute(&long)).unwrap();
            device.queue_flush(ANY).unwrap();
            done.abandon(&Status::new(Code::Cancelled, "stopped by the test"));
            shim.stall(false);
            assert_eq!(done.wait(seconds(60)).unwrap_err().code(), Code::Cancelled);
            let begun = read_words(&target).iter().filter(|word| **word != 0).count();
            assert!(begun < words.len() / 4, "{mode:?}: {begun} of {} were done", words.len());
        }
        assert_eq!(shim.live(), 0);
    });
}
