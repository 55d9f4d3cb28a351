//! Dispatches with more workgroups than the device allows at once: done in parts, with the results of a whole.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::sync::Arc;

use bytes::Bytes;
use common::*;
use halite_formats::vmfb::{DescriptorBinding, PipelineLayout, VulkanExecutable};
use halite_hal::{
    BindingTable, Buffer, Code, Command, CommandBufferMode, CommandCategory, CommandList, Device,
    DispatchCounts, DispatchFlags, Executable, Fence, QueueOp,
};

const WORKGROUP_IDS: &[u8] = include_bytes!("../../../spirv/tests/fixtures/workgroup_ids.spv");
const ELEMENTWISE: &[u8] = include_bytes!("../../../spirv/tests/fixtures/elementwise.spv");

fn command(
    executable: &Arc<dyn Executable>,
    counts: [u32; 3],
    constants: &[u32],
    buffers: &[&Arc<dyn Buffer>],
) -> Command {
    Command::Dispatch {
        executable: executable.clone(),
        function: 0,
        counts: DispatchCounts::Direct(counts),
        constants: constants.into(),
        bindings: buffers.iter().map(|b| span(b, 0, b.byte_length()).into()).collect(),
        flags: DispatchFlags::empty(),
    }
}

fn op(device: &Arc<dyn Device>, commands: Vec<Command>) -> QueueOp {
    let list = CommandList {
        mode: CommandBufferMode::ONE_SHOT,
        categories: CommandCategory::ANY,
        affinity: ANY,
        binding_capacity: 0,
        commands,
    };
    let command_buffer = device.create_command_buffer(list).unwrap();
    QueueOp::Execute { command_buffer, bindings: BindingTable::default() }
}

/// The test kernels with another first one: its shader, and the push constant bytes of its layout.
fn executable(shader: &'static [u8], push_bytes: u32) -> VulkanExecutable {
    let mut executable = kernels();
    executable.shader_modules[0] = Bytes::from_static(shader);
    executable.pipeline_layouts[0].push_constants[0].size = push_bytes;
    executable
}

/// What `workgroup_ids` adds for each invocation, in the order of their places.
fn expected(counts: [u32; 3], axis: usize, add: u32) -> Vec<u32> {
    let size = [counts[0] * 2, counts[1] * 2, counts[2]];
    let mut all = Vec::new();
    for z in 0..size[2] {
        for y in 0..size[1] {
            for x in 0..size[0] {
                let group = [x / 2, y / 2, z];
                let source = 1000 * (all.len() as u32 % 4);
                all.push(source + add + group[0] * 3 + group[axis] * 7 + group[1] * 5 + group[2] * 11);
            }
        }
    }
    all
}

#[test]
fn every_workgroup_runs_once_with_its_ids() {
    on_devices(BOTH_WAYS, |device| {
        let source = words_buffer(device, &[0, 1000, 2000, 3000]);
        // The second layout has push constants that the kernel does not read.
        for (push_words, counts, axis) in
            [(2, [70_001, 1, 1], 0), (4, [1, 65_537, 2], 1), (2, [2, 2, 70_000], 2), (2, [5, 6, 7], 1)]
        {
            let executable =
                device.create_executable(desc(&executable(WORKGROUP_IDS, push_words * 4), &[])).unwrap();
            let mut constants = vec![axis as u32, 40];
            constants.resize(push_words as usize, u32::MAX);
            let expected = expected(counts, axis, 40);
            let target = words_buffer(device, &vec![0; expected.len()]);
            let small = words_buffer(device, &[0; 16]);
            // Ordinary dispatches of the same kernel on both sides: they have other pipelines and layouts.
            let ordinary = || command(&executable, [2, 2, 1], &constants, &[&source, &small]);
            let large = command(&executable, counts, &constants, &[&source, &target]);
            run(device, op(device, vec![ordinary(), large, Command::Barrier, ordinary()]));
            let found = read_words(&target);
            let wrong = found.iter().zip(&expected).position(|(f, e)| f != e);
            assert_eq!(wrong, None, "{counts:?}: {:?}", wrong.map(|w| (found[w], expected[w])));
            let twice: Vec<u32> = self::expected([2, 2, 1], axis, 40).iter().map(|w| w * 2).collect();
            assert_eq!(read_words(&small), twice);
        }
    });
}

/// 4.2 million elements, 64 for each workgroup, no push constants of its own.
#[test]
fn a_kernel_of_iree_compile() {
    const COUNT: usize = 4_200_000;
    on_devices(&[&[]], |device| {
        let mut elementwise = kernels();
        let storage = |binding| DescriptorBinding { binding, ..elementwise.set_layouts[1][1] };
        elementwise.set_layouts[0] = vec![storage(0), storage(1), storage(2)];
        elementwise.pipeline_layouts[0] = PipelineLayout { set_layouts: vec![0], push_constants: vec![] };
        elementwise.shader_modules[0] = Bytes::from_static(ELEMENTWISE);
        let words = halite_spirv::words_from_bytes(ELEMENTWISE).unwrap();
        elementwise.pipelines[0].entry_point =
            halite_spirv::analyze(&words).unwrap().entry_points[0].name.clone();
        let executable = device.create_executable(desc(&elementwise, &[])).unwrap();
        let ramp: Vec<u8> = (0..COUNT).flat_map(|i| ((i % 8191) as f32).to_le_bytes()).collect();
        let (a, b) = (buffer(device, &ramp), buffer(device, &(-2.0f32).to_le_bytes().repeat(COUNT)));
        let target = buffer(device, &vec![0; 4 * COUNT]);
        run(device, op(device, vec![command(&executable, [65_625, 1, 1], &[], &[&a, &b, &target])]));
        let found = read(&target);
        let wrong = found
            .as_chunks::<4>()
            .0
            .iter()
            .enumerate()
            .find(|(i, found)| f32::from_le_bytes(**found) != (i % 8191) as f32 * -2.0);
        assert_eq!(wrong, None);
    });
}

#[test]
fn what_cannot_be_cut_is_refused() {
    on_devices(&[&[]], |device| {
        let data = words_buffer(device, &[0; 4]);
        let refuse = |executable: &VulkanExecutable, counts, constants: &[u32]| {
            let executable = device.create_executable(desc(executable, &[])).unwrap();
            let done = fence(device);
            let op = op(device, vec![command(&executable, counts, constants, &[&data, &data])]);
            let error = device.queue_submit(ANY, &Fence::default(), &done, op).unwrap_err();
            assert_eq!(error.code(), Code::OutOfRange, "{error}");
            error.to_string()
        };
        // Nothing may make the driver record without end.
        let error = refuse(&executable(WORKGROUP_IDS, 8), [u32::MAX; 3], &[0, 0]);
        assert!(error.contains("'affine'") && error.contains("maxComputeWorkGroupCount"), "{error}");
        // As many push constants as the device takes leave no room.
        let taken =
            |bytes: &u32| device.create_executable(desc(&executable(WORKGROUP_IDS, *bytes), &[])).is_ok();
        let most = [4096, 1024, 256, 128].into_iter().find(taken).unwrap();
        let error = refuse(&executable(WORKGROUP_IDS, most), [1, 70_000, 1], &vec![0; most as usize / 4]);
        assert!(error.contains("'affine'") && error.contains("push constant bytes"), "{error}");
    });
}
