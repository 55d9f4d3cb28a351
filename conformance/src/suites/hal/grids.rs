//! Workgroup counts: every dimension, zeros, and counts that a buffer holds when the dispatch runs.

use std::sync::Arc;

use halite_hal::{
    Buffer, BufferParams, BufferRef, BufferUsage, Code, Command, DispatchCounts, DispatchFlags, Executable,
    QueueOp, Result,
};
use halite_testing::hal::{
    kernels::{AFFINE, IDS, id_word},
    support::{Dev, dispatch, execute, read_words, record, run, slot, span, whole, words_buffer},
};
use smallvec::smallvec;

use crate::suites::{
    Cases, Context, Need, Outcome,
    case::{check, refused, same},
};

const GRIDS: [[u32; 3]; 9] =
    [[1, 1, 1], [4, 1, 1], [1, 4, 1], [1, 1, 4], [2, 3, 4], [4, 4, 4], [0, 1, 1], [1, 0, 4], [2, 2, 0]];
const COMPUTES: &[Need] = &[Need::Kernels];

/// Adds the cases of this file.
pub(super) fn add(cases: &mut Cases) {
    for grid @ [x, y, z] in GRIDS {
        cases.add(format!("dispatch.grid:x={x};y={y};z={z}"), COMPUTES, move |t| direct(t, grid));
    }
    for grid @ [x, y, z] in GRIDS {
        cases.add(format!("dispatch.indirect:x={x};y={y};z={z}"), COMPUTES, move |t| indirect(t, grid));
    }
    cases.add("dispatch.indirect_counts_through_a_slot", COMPUTES, through_slot);
    cases.add("dispatch.indirect_counts_made_by_the_commands_before", COMPUTES, made_before);
    cases.add("dispatch.indirect_counts_change_between_executions", COMPUTES, changing);
    cases.add("dispatch.wide_grid", COMPUTES, wide);
    cases.add("dispatch.bad_indirect_counts_are_refused", &[Need::Executables, Need::Validation], bad_counts);
}

fn wanted(grid: [u32; 3]) -> Vec<u32> {
    let mut words = vec![0; 64];
    for x in 0..grid[0] {
        for y in 0..grid[1] {
            for z in 0..grid[2] {
                words[(x + 4 * (y + 4 * z)) as usize] = id_word([x, y, z], grid);
            }
        }
    }
    words
}

fn counts_buffer(device: &Dev, words: &[u32]) -> Result<Arc<dyn Buffer>> {
    let usage = BufferUsage::DEFAULT | BufferUsage::DISPATCH_INDIRECT_PARAMETERS;
    let params = BufferParams { usage, ..BufferParams::DEVICE };
    let counts = device.allocate_buffer(&params, words.len() as u64 * 4)?;
    counts.write(0, &words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>())?;
    Ok(counts)
}

fn indirect_dispatch(executable: &Arc<dyn Executable>, counts: BufferRef, target: BufferRef) -> Command {
    Command::Dispatch {
        executable: executable.clone(),
        function: IDS,
        counts: DispatchCounts::Indirect(counts),
        constants: smallvec![],
        bindings: smallvec![target],
        flags: DispatchFlags::DYNAMIC_INDIRECT_PARAMETERS,
    }
}

fn direct(t: &Context, grid: [u32; 3]) -> Outcome {
    let device = t.device();
    let executable = t.kernels()?.create(device.as_ref())?;
    let target = words_buffer(device, &[0; 64])?;
    let command = dispatch(&executable, IDS, grid, &[], [whole(&target).into()]);
    run(device, execute(&record(device, 0, vec![command])?, []))?;
    same("words", read_words(&target)?, wanted(grid))
}

fn indirect(t: &Context, grid: [u32; 3]) -> Outcome {
    let device = t.device();
    let executable = t.kernels()?.create(device.as_ref())?;
    let target = words_buffer(device, &[0; 64])?;
    let [x, y, z] = grid;
    let counts = counts_buffer(device, &[9, 9, 9, x, y, z, 9])?;
    let command = indirect_dispatch(&executable, span(&counts, 12, 12).into(), whole(&target).into());
    run(device, execute(&record(device, 0, vec![command])?, []))?;
    same("words", read_words(&target)?, wanted(grid))
}

fn through_slot(t: &Context) -> Outcome {
    let device = t.device();
    let executable = t.kernels()?.create(device.as_ref())?;
    let command = indirect_dispatch(&executable, slot(1, 4, 12), slot(0, 0, 256));
    let commands = record(device, 2, vec![command])?;
    let counts = counts_buffer(device, &[9, 9, 3, 2, 1, 4, 4, 4])?;
    for (offset, grid) in [(4, [3, 2, 1]), (16, [4, 4, 4])] {
        let target = words_buffer(device, &[0; 64])?;
        run(device, execute(&commands, [Some(whole(&target)), Some(span(&counts, offset, 16))]))?;
        same("words", read_words(&target)?, wanted(grid))?;
    }
    Ok(())
}

/// A fill and a dispatch write the counts that the next dispatch of the same recording reads.
fn made_before(t: &Context) -> Outcome {
    let device = t.device();
    let executable = t.kernels()?.create(device.as_ref())?;
    let (counts, ones) = (counts_buffer(device, &[0; 3])?, words_buffer(device, &[1, 1, 1])?);
    let (first, second) = (words_buffer(device, &[0; 64])?, words_buffer(device, &[0; 64])?);
    let commands = vec![
        Command::Fill { target: whole(&counts).into(), pattern: 2, pattern_length: 4 },
        Command::Barrier,
        indirect_dispatch(&executable, whole(&counts).into(), whole(&first).into()),
        Command::Barrier,
        dispatch(&executable, AFFINE, [1, 1, 1], &[3, 1], [whole(&ones).into(), whole(&counts).into()]),
        Command::Barrier,
        indirect_dispatch(&executable, whole(&counts).into(), whole(&second).into()),
    ];
    run(device, execute(&record(device, 0, commands)?, []))?;
    same("words of the first", read_words(&first)?, wanted([2, 2, 2]))?;
    same("words of the second", read_words(&second)?, wanted([3, 3, 3]))
}

fn changing(t: &Context) -> Outcome {
    let device = t.device();
    let executable = t.kernels()?.create(device.as_ref())?;
    let (counts, target) = (counts_buffer(device, &[0; 3])?, words_buffer(device, &[0; 64])?);
    let command = indirect_dispatch(&executable, whole(&counts).into(), whole(&target).into());
    let commands = record(device, 0, vec![command])?;
    for grid in [[1, 2, 3], [0, 0, 0], [4, 1, 2]] {
        let source = grid.iter().flat_map(|w: &u32| w.to_le_bytes()).collect::<Vec<_>>().into();
        run(device, QueueOp::Update { source, target: whole(&counts) })?;
        run(device, halite_testing::hal::support::fill(whole(&target), 0, 1))?;
        run(device, execute(&commands, []))?;
        same("words", read_words(&target)?, wanted(grid))?;
    }
    Ok(())
}

/// More workgroups in one dimension than the least that Vulkan promises, most of them without work.
fn wide(t: &Context) -> Outcome {
    let device = t.device();
    let executable = t.kernels()?.create(device.as_ref())?;
    let input: Vec<u32> = (0..1000).collect();
    let (source, target) = (words_buffer(device, &input)?, words_buffer(device, &[0; 1000])?);
    let bindings = [whole(&source).into(), whole(&target).into()];
    let command = dispatch(&executable, AFFINE, [70_000, 1, 1], &[1000, 1], bindings);
    run(device, execute(&record(device, 0, vec![command])?, []))?;
    check!(read_words(&target)? == input.iter().map(|i| i * 2 + 1).collect::<Vec<_>>(), "words differ");
    Ok(())
}

fn bad_counts(t: &Context) -> Outcome {
    let device = t.device();
    let executable = t.kernels()?.create(device.as_ref())?;
    let target = words_buffer(device, &[0; 64])?;
    let (counts, plain) = (counts_buffer(device, &[1; 8])?, words_buffer(device, &[1; 8])?);
    for (what, counts, code) in [
        ("counts without the usage", span(&plain, 0, 12), Code::PermissionDenied),
        ("counts at an odd offset", span(&counts, 2, 12), Code::InvalidArgument),
        ("short counts", span(&counts, 0, 8), Code::InvalidArgument),
        ("counts past the end", span(&counts, 24, 12), Code::OutOfRange),
    ] {
        let command = indirect_dispatch(&executable, counts.into(), whole(&target).into());
        refused(what, record(device, 0, vec![command]), &[code])?;
    }
    Ok(())
}
