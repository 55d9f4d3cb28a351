//! Executables, and what dispatches read and write: bindings, constants, slots, barriers between them.

use halite_hal::{Code, Command, ExecutableDesc, Fence, WHOLE_BUFFER};
use halite_testing::hal::{
    kernels::{AFFINE, BIAS, FUNCTIONS, MIX},
    support::{
        after, buffer, dispatch, execute, fence, read, read_words, record, run, slot, soon, span, whole,
        words_buffer,
    },
};

use crate::suites::{
    Cases, Context, Need, Outcome, Stop,
    case::{check, refused, same, same_bytes},
};

const LOADS: &[Need] = &[Need::Executables];
const COMPUTES: &[Need] = &[Need::Kernels];

/// Adds the cases of this file.
pub(super) fn add(cases: &mut Cases) {
    cases.add("executable.lists_its_functions", LOADS, functions);
    cases.add("executable.of_unknown_formats_is_refused", &[], unknown_format);
    cases.add("executable.damaged_is_refused", LOADS, damaged);
    cases.add("executable.created_many_times", LOADS, many);
    cases.add("executable.dispatches_without_bytes", LOADS, without_bytes);
    cases.add("executable.bad_dispatches_are_refused", &[Need::Executables, Need::Validation], refusals);
    for count in [0u32, 1, 63, 64, 65, 1000, 100_000] {
        cases.add(format!("dispatch.affine:count={count}"), COMPUTES, move |t| affine(t, count));
    }
    cases.add("dispatch.bindings_and_constants_keep_their_order", COMPUTES, mix);
    cases.add("dispatch.bindings_at_offsets", COMPUTES, at_offsets);
    cases.add("dispatch.bindings_of_partial_words", COMPUTES, partial_words);
    cases.add("dispatch.chain_through_barriers", COMPUTES, chain);
    cases.add("dispatch.among_transfers", COMPUTES, among_transfers);
    cases.add("dispatch.slots_reused_while_in_flight", COMPUTES, in_flight);
    cases.add("dispatch.in_place", COMPUTES, in_place);
    cases.add("dispatch.specialization_constants", &[Need::Kernels, Need::Specialization], specialization);
    cases.add("dispatch.outlives_its_executable", COMPUTES, outlives);
}

fn functions(t: &Context) -> Outcome {
    let kernels = t.kernels()?;
    let executable = kernels.create(t.device().as_ref())?;
    same("owner", executable.device_id(), t.device().id())?;
    same("number of functions", executable.functions().len(), kernels.function_count())?;
    for (index, (info, (name, bindings, constants))) in
        executable.functions().iter().zip(FUNCTIONS).enumerate()
    {
        same("name", info.name.as_str(), name)?;
        same(&format!("bindings of {name}"), info.binding_count, bindings)?;
        same(&format!("constants of {name}"), info.constant_count, constants)?;
        same(&format!("index of {name}"), executable.lookup(name), Some(index as u32))?;
    }
    same("index of nothing", executable.lookup("no-such-function"), None)
}

fn unknown_format(t: &Context) -> Outcome {
    let desc = ExecutableDesc {
        format: "no-such-format".to_owned(),
        data: bytes::Bytes::from_static(b"data"),
        constants: Vec::new(),
        label: "unknown".to_owned(),
        subgroup_sizes: Vec::new(),
    };
    let codes = [Code::Incompatible, Code::Unimplemented, Code::InvalidArgument, Code::NotFound];
    refused("an executable of an unknown format", t.device().create_executable(desc), &codes).map(drop)
}

/// Short prefixes are refused, and so is garbage. A file that lacks only its end may be complete enough to run: what
/// matters is that the process lives and errors are those of bad input.
fn damaged(t: &Context) -> Outcome {
    let whole = t.kernels()?.desc(7);
    let codes =
        [Code::InvalidArgument, Code::Incompatible, Code::OutOfRange, Code::Unimplemented, Code::Internal];
    for length in (0..whole.data.len().min(4096)).step_by(37) {
        let cut = ExecutableDesc { data: whole.data.slice(..length), ..whole.clone() };
        let made = t.device().create_executable(cut);
        if made.is_err() || length < whole.data.len() / 4 {
            refused(&format!("the first {length} bytes"), made, &codes)?;
        }
    }
    let garbage = ExecutableDesc { data: vec![0xFF; 500].into(), ..whole };
    refused("garbage", t.device().create_executable(garbage), &codes).map(drop)
}

fn many(t: &Context) -> Outcome {
    for _ in 0..20 {
        t.kernels()?.create(t.device().as_ref())?;
    }
    let all = (0..20).map(|_| t.kernels()?.create(t.device().as_ref()).map_err(Into::into));
    let all = all.collect::<Result<Vec<_>, Stop>>()?;
    same("number of executables", all.len(), 20)
}

/// Holds on any device: nothing may be written where no workgroup runs.
fn without_bytes(t: &Context) -> Outcome {
    let device = t.device();
    let executable = t.kernels()?.create(device.as_ref())?;
    let data = words_buffer(device, &[3; 16])?;
    let commands = vec![
        dispatch(&executable, AFFINE, [0, 1, 1], &[16, 1], [whole(&data).into(), whole(&data).into()]),
        dispatch(&executable, AFFINE, [1, 0, 1], &[16, 1], [slot(0, 0, 0), slot(0, 0, 0)]),
        dispatch(&executable, AFFINE, [1, 1, 1], &[0, 1], [slot(0, 0, 0), slot(1, 0, WHOLE_BUFFER)]),
    ];
    let commands = record(device, 2, commands)?;
    run(device, execute(&commands, [None, Some(whole(&data))]))?;
    same("words", read_words(&data)?, vec![3; 16])
}

fn refusals(t: &Context) -> Outcome {
    let (device, other) = (t.device(), t.open()?);
    let executable = t.kernels()?.create(device.as_ref())?;
    let foreign = t.kernels()?.create(other.as_ref())?;
    let data = words_buffer(device, &[0; 16])?;
    let one = || -> halite_hal::BufferRef { whole(&data).into() };
    let past = span(&data, 32, 64).into();
    for (what, command, code) in [
        ("a function that is not there", dispatch(&executable, 99, [1; 3], &[], []), Code::OutOfRange),
        (
            "a missing constant",
            dispatch(&executable, AFFINE, [1; 3], &[1], [one(), one()]),
            Code::InvalidArgument,
        ),
        ("a missing binding", dispatch(&executable, AFFINE, [1; 3], &[1, 1], [one()]), Code::InvalidArgument),
        (
            "a binding too many",
            dispatch(&executable, AFFINE, [1; 3], &[1, 1], [one(), one(), one()]),
            Code::InvalidArgument,
        ),
        (
            "a binding past the end",
            dispatch(&executable, AFFINE, [1; 3], &[1, 1], [one(), past]),
            Code::OutOfRange,
        ),
        (
            "a foreign executable",
            dispatch(&foreign, AFFINE, [1; 3], &[1, 1], [one(), one()]),
            Code::InvalidArgument,
        ),
    ] {
        refused(what, record(device, 0, vec![command]), &[code])?;
    }
    Ok(())
}

fn affine(t: &Context, count: u32) -> Outcome {
    let device = t.device();
    let executable = t.kernels()?.create(device.as_ref())?;
    let input: Vec<u32> = (0..count).map(|i| i.wrapping_mul(0x9E37_79B9)).collect();
    let source = words_buffer(device, &input)?;
    let target = words_buffer(device, &vec![0xEEEE_EEEE; count as usize + 64])?;
    let groups = [count.div_ceil(64), 1, 1];
    let command =
        dispatch(&executable, AFFINE, groups, &[count, 17], [whole(&source).into(), whole(&target).into()]);
    run(device, execute(&record(device, 0, vec![command])?, []))?;
    let mut wanted: Vec<u32> = input.iter().map(|i| i.wrapping_mul(2).wrapping_add(17)).collect();
    wanted.resize(count as usize + 64, 0xEEEE_EEEE);
    check!(read_words(&target)? == wanted, "words differ from the model");
    check!(read_words(&source)? == input, "the source was written");
    Ok(())
}

fn mix(t: &Context) -> Outcome {
    let device = t.device();
    let executable = t.kernels()?.create(device.as_ref())?;
    let inputs: Vec<Vec<u32>> = (1..4u32).map(|k| (0..100).map(|i| i * k + k).collect()).collect();
    let sources =
        inputs.iter().map(|words| words_buffer(device, words)).collect::<halite_hal::Result<Vec<_>>>()?;
    let target = words_buffer(device, &[0; 100])?;
    let mut bindings: Vec<halite_hal::BufferRef> = sources.iter().map(|s| whole(s).into()).collect();
    bindings.push(whole(&target).into());
    let command = dispatch(&executable, MIX, [2, 1, 1], &[1, 1000, 1_000_000, 100], bindings);
    run(device, execute(&record(device, 0, vec![command])?, []))?;
    let wanted: Vec<u32> =
        (0..100).map(|i| inputs[0][i] + 1000 * inputs[1][i] + 1_000_000 * inputs[2][i]).collect();
    same("words", read_words(&target)?, wanted)
}

/// Offsets that every device accepts: multiples of 256 bytes.
fn at_offsets(t: &Context) -> Outcome {
    let device = t.device();
    let executable = t.kernels()?.create(device.as_ref())?;
    let data = words_buffer(device, &(0..1024).collect::<Vec<_>>())?;
    let bindings = [slot(0, 256, 64), slot(1, 0, WHOLE_BUFFER)];
    let command = dispatch(&executable, AFFINE, [1, 1, 1], &[16, 5], bindings);
    let commands = record(device, 2, vec![command])?;
    run(device, execute(&commands, [Some(span(&data, 512, 1024)), Some(span(&data, 2048, 64))]))?;
    let mut wanted: Vec<u32> = (0..1024).collect();
    for i in 0..16 {
        wanted[512 + i] = wanted[192 + i] * 2 + 5;
    }
    same("words", read_words(&data)?, wanted)
}

/// Buffers are padded, so the last partial word is there for kernels.
fn partial_words(t: &Context) -> Outcome {
    let device = t.device();
    if !t.kernels()?.pads() {
        return Err(Stop::Skip("kernels in this format are held to the last byte".to_owned()));
    }
    let executable = t.kernels()?.create(device.as_ref())?;
    let source = words_buffer(device, &[1, 2])?;
    let target = buffer(device, &[0; 6])?;
    let command = dispatch(
        &executable,
        AFFINE,
        [1, 1, 1],
        &[2, 0x0101_0101],
        [whole(&source).into(), whole(&target).into()],
    );
    run(device, execute(&record(device, 0, vec![command])?, []))?;
    same_bytes("target", &read(&target)?, &[3, 1, 1, 1, 5, 1])
}

fn chain(t: &Context) -> Outcome {
    let device = t.device();
    let executable = t.kernels()?.create(device.as_ref())?;
    let (a, b) = (words_buffer(device, &[1; 256])?, words_buffer(device, &[0; 256])?);
    let mut commands = Vec::new();
    for step in 0..30 {
        let (from, to) = if step % 2 == 0 { (&a, &b) } else { (&b, &a) };
        commands.push(dispatch(
            &executable,
            AFFINE,
            [4, 1, 1],
            &[256, 1],
            [whole(from).into(), whole(to).into()],
        ));
        commands.push(Command::Barrier);
    }
    run(device, execute(&record(device, 0, commands)?, []))?;
    // x -> 2x + 1 thirty times from 1 is 2^31 - 1.
    same("words", read_words(&a)?, vec![0x7FFF_FFFF; 256])
}

fn among_transfers(t: &Context) -> Outcome {
    let device = t.device();
    let executable = t.kernels()?.create(device.as_ref())?;
    let (a, b) = (words_buffer(device, &[0; 64])?, words_buffer(device, &[0; 64])?);
    let commands = vec![
        Command::Fill { target: whole(&a).into(), pattern: 5, pattern_length: 4 },
        Command::Barrier,
        dispatch(&executable, AFFINE, [1, 1, 1], &[64, 1], [whole(&a).into(), whole(&b).into()]),
        Command::Barrier,
        Command::Copy { source: span(&b, 0, 128).into(), target: span(&a, 128, 128).into() },
        Command::Barrier,
        Command::Fill { target: span(&b, 0, 4).into(), pattern: 9, pattern_length: 4 },
        dispatch(&executable, AFFINE, [1, 1, 1], &[1, 0], [span(&a, 0, 4).into(), span(&a, 0, 4).into()]),
    ];
    run(device, execute(&record(device, 0, commands)?, []))?;
    let (mut first, mut second) = (vec![5; 64], vec![11; 64]);
    first[32..].fill(11);
    first[0] = 10;
    second[0] = 9;
    same("words of a", read_words(&a)?, first)?;
    same("words of b", read_words(&b)?, second)
}

fn in_flight(t: &Context) -> Outcome {
    let device = t.device();
    let executable = t.kernels()?.create(device.as_ref())?;
    let bindings = [slot(0, 0, WHOLE_BUFFER), slot(1, 0, WHOLE_BUFFER)];
    let commands = record(device, 2, vec![dispatch(&executable, AFFINE, [1, 1, 1], &[16, 3], bindings)])?;
    let go = fence(device)?;
    let mut running = Vec::new();
    for i in 0..50u32 {
        let (source, target) = (words_buffer(device, &[i; 16])?, words_buffer(device, &[0; 16])?);
        let done = after(device, &go, execute(&commands, [Some(whole(&source)), Some(whole(&target))]))?;
        running.push((i, target, done));
    }
    go.signal()?;
    for (i, target, done) in running {
        done.wait(soon())?;
        same(&format!("words of execution {i}"), read_words(&target)?, vec![2 * i + 3; 16])?;
    }
    Ok(())
}

/// Source and target are the same bytes; each word depends on itself only.
fn in_place(t: &Context) -> Outcome {
    let device = t.device();
    let executable = t.kernels()?.create(device.as_ref())?;
    let data = words_buffer(device, &(0..200).collect::<Vec<_>>())?;
    let command =
        dispatch(&executable, AFFINE, [4, 1, 1], &[200, 1], [whole(&data).into(), whole(&data).into()]);
    let commands = record(device, 0, vec![command])?;
    let mut last = Fence::default();
    for _ in 0..3 {
        last = after(device, &last, execute(&commands, []))?;
    }
    last.wait(soon())?;
    same("words", read_words(&data)?, (0..200).map(|i| i * 8 + 7).collect::<Vec<_>>())
}

fn specialization(t: &Context) -> Outcome {
    let device = t.device();
    for bias in [0u32, 7, u32::MAX] {
        let executable = device.create_executable(t.kernels()?.desc(bias))?;
        let (source, target) = (words_buffer(device, &[10, 20, 30, 40])?, words_buffer(device, &[0; 4])?);
        let command =
            dispatch(&executable, BIAS, [1, 1, 1], &[], [whole(&source).into(), whole(&target).into()]);
        run(device, execute(&record(device, 0, vec![command])?, []))?;
        let wanted = [10u32, 20, 30, 40].map(|w| w.wrapping_add(bias)).to_vec();
        same("words", read_words(&target)?, wanted)?;
    }
    Ok(())
}

fn outlives(t: &Context) -> Outcome {
    let device = t.device();
    let (source, target) = (words_buffer(device, &[4; 64])?, words_buffer(device, &[0; 64])?);
    let go = fence(device)?;
    let done = {
        let executable = t.kernels()?.create(device.as_ref())?;
        let command = dispatch(
            &executable,
            AFFINE,
            [1, 1, 1],
            &[64, 1],
            [whole(&source).into(), whole(&target).into()],
        );
        after(device, &go, execute(&record(device, 0, vec![command])?, []))?
    };
    go.signal()?;
    done.wait(soon())?;
    same("words", read_words(&target)?, vec![9; 64])
}
