//! Profiles: what was measured of the commands that ran, and nothing of others.

use halite_hal::{Code, Command, DeviceProfile};
use halite_testing::hal::{
    kernels::AFFINE,
    support::{buffer, dispatch, execute, fill, read_words, record, run, slot, soon, whole, words_buffer},
};

use crate::suites::{
    Cases, Context, Need, Outcome, Stop,
    case::{check, refused, same},
};

const COMPUTES: &[Need] = &[Need::Kernels];

/// Adds the cases of this file.
pub(super) fn add(cases: &mut Cases) {
    cases.add("profile.one_at_a_time", &[], one_at_a_time);
    cases.add("profile.of_transfers", &[], transfers);
    cases.add("profile.of_dispatches_in_groups", COMPUTES, dispatches);
    cases.add("profile.changes_no_results", COMPUTES, results);
}

/// Begins a profile, or skips the case.
fn start(t: &Context) -> Outcome {
    match t.device().start_profiling() {
        Err(e) if e.code() == Code::Unimplemented => {
            Err(Stop::Skip("the device cannot be profiled".to_owned()))
        }
        other => other.map_err(Stop::from),
    }
}

/// Ends it. Each run must be in order, and within the profile.
fn stop(t: &Context) -> Result<DeviceProfile, Stop> {
    let profile = t.device().stop_profiling(soon())?;
    for time in &profile.times {
        check!(time.start_ns <= time.end_ns, "a command ended before it began: {time:?}");
    }
    for pair in profile.times.windows(2).filter(|pair| pair[0].run == pair[1].run) {
        check!(pair[0].start_ns <= pair[1].start_ns, "a run is out of order: {pair:?}");
    }
    let first = profile.times.iter().map(|time| time.start_ns).min();
    check!(first.is_none_or(|first| first == 0), "the profile begins at {first:?}");
    check!(profile.resolution_ns.total_cmp(&0.0).is_gt(), "the clock has no resolution");
    same("commands that were not measured", profile.lost, 0)?;
    Ok(profile)
}

fn one_at_a_time(t: &Context) -> Outcome {
    let device = t.device();
    refused("ending what never began", device.stop_profiling(soon()), &[Code::FailedPrecondition])?;
    start(t)?;
    refused("a second profile", device.start_profiling(), &[Code::FailedPrecondition])?;
    same("commands of a device without work", stop(t)?.times.len(), 0)?;
    refused("ending twice", device.stop_profiling(soon()), &[Code::FailedPrecondition]).map(drop)
}

fn transfers(t: &Context) -> Outcome {
    let device = t.device();
    let data = buffer(device, &[0; 4096])?;
    run(device, fill(whole(&data), 1, 4))?;
    start(t)?;
    run(device, fill(whole(&data), 2, 4))?;
    let profile = stop(t)?;
    run(device, fill(whole(&data), 3, 4))?;
    let [time] = &profile.times[..] else {
        return Err(Stop::Fail(format!("one fill was measured as {:?}", profile.times)));
    };
    same("kind", time.command.kind.name(), "fill")?;
    same("bytes", time.command.bytes, 4096)?;
    same("words", read_words(&data)?, vec![3; 1024])
}

fn dispatches(t: &Context) -> Outcome {
    let device = t.device();
    let executable = t.kernels()?.create(device.as_ref())?;
    let name = executable.functions()[AFFINE as usize].name.clone();
    let affine = |count: u32, from: u32, to: u32| {
        let whole = |n| slot(n, 0, halite_hal::WHOLE_BUFFER);
        dispatch(&executable, AFFINE, [count.div_ceil(64), 1, 1], &[count, 3], [whole(from), whole(to)])
    };
    let commands = vec![
        Command::BeginDebugGroup("first".to_owned()),
        affine(256, 0, 1),
        Command::Barrier,
        affine(128, 1, 0),
        Command::EndDebugGroup,
        Command::Barrier,
        affine(64, 0, 1),
    ];
    let commands = record(device, 2, commands)?;
    let (a, b) = (words_buffer(device, &[1; 256])?, words_buffer(device, &[0; 256])?);
    let slots = || [Some(whole(&a)), Some(whole(&b))];
    run(device, execute(&commands, slots()))?;
    start(t)?;
    for _ in 0..3 {
        run(device, execute(&commands, slots()))?;
    }
    let profile = stop(t)?;
    same("commands of three runs", profile.times.len(), 9)?;
    for (run, times) in profile.times.chunks(3).enumerate() {
        for (time, (group, index, workgroups)) in
            times.iter().zip([("first", 0, 4), ("first", 1, 2), ("", 0, 1)])
        {
            same("run", time.run, run as u64)?;
            same("kind", time.command.kind.name(), "dispatch")?;
            same("entry point", &time.command.name, &name)?;
            same("group", &*time.command.group, group)?;
            same("place", time.command.index, index)?;
            same("workgroups", time.command.workgroups, Some([workgroups, 1, 1]))?;
        }
    }
    Ok(())
}

/// The same recording gives the same words before, in and after a profile, also when its runs overlap.
fn results(t: &Context) -> Outcome {
    let device = t.device();
    let executable = t.kernels()?.create(device.as_ref())?;
    let data = words_buffer(device, &[1; 1000])?;
    let whole_slot = || slot(0, 0, halite_hal::WHOLE_BUFFER);
    let step = || dispatch(&executable, AFFINE, [16, 1, 1], &[1000, 3], [whole_slot(), whole_slot()]);
    let commands = record(device, 1, vec![step(), Command::Barrier, step()])?;
    let pass = || -> Result<Vec<u32>, Stop> {
        data.write(0, &1u32.to_le_bytes().repeat(1000))?;
        let mut last = halite_hal::Fence::default();
        for _ in 0..8 {
            last =
                halite_testing::hal::support::after(device, &last, execute(&commands, [Some(whole(&data))]))?;
        }
        last.wait(soon())?;
        Ok(read_words(&data)?)
    };
    let before = pass()?;
    start(t)?;
    let during = pass();
    let profile = stop(t)?;
    same("words in a profile", during?, before.clone())?;
    same(
        "commands of eight runs",
        profile.times.iter().filter(|time| time.command.kind.name() == "dispatch").count(),
        16,
    )?;
    same("words after it", pass()?, before)
}
