//! Facts that a device tells about itself, and waiting for it to be idle.

use std::time::{Duration, Instant};

use halite_abi::query;
use halite_hal::{Code, Deadline, Device, DeviceInfo, Fence, QueueAffinity, QueueOp};
use halite_testing::hal::support::{after, buffer, fence, fill, read, soon, whole};

use crate::suites::{
    Cases, Context, Outcome, Stop,
    case::{check, same, same_bytes},
};

/// Adds the cases of this file.
pub(super) fn add(cases: &mut Cases) {
    cases.add("device.info_is_well_formed", &[], info);
    cases.add("device.info_survives_json", &[], info_json);
    cases.add("device.identities_differ", &[], identities);
    cases.add("device.answers_its_name", &[], name_queries);
    cases.add("device.answers_its_formats", &[], format_queries);
    cases.add("device.knows_no_unknown_keys", &[], unknown_queries);
    cases.add("device.affinity_falls_back_to_queue_0", &[], affinities);
    cases.add("device.idle_at_once_when_nothing_runs", &[], idle);
    cases.add("device.idle_after_work", &[], idle_after_work);
    cases.add("device.idle_wait_ends_while_work_waits_for_the_host", &[], idle_with_open_fence);
    cases.add("device.trim_and_flush_are_harmless", &[], trim_and_flush);
}

fn info(t: &Context) -> Outcome {
    let info = t.device().info();
    check!(!info.driver.is_empty(), "the driver has no name");
    check!(!info.driver.contains([':', '?', '/']), "driver name '{}' fits into no URI", info.driver);
    check!(!info.path.contains('?'), "path '{}' fits into no URI", info.path);
    check!(!info.name.trim().is_empty(), "the device has no name");
    check!(info.unusable.is_none(), "the device is open, but says it is unusable: {:?}", info.unusable);
    check!(t.device().queue_count() > 0, "the device has no queue");
    for text in [&info.driver, &info.path, &info.name] {
        check!(!text.chars().any(char::is_control), "control characters in {text:?}");
    }
    for (name, _) in info.properties.iter().chain(info.groups.iter().flat_map(|g| &g.entries)) {
        check!(!name.trim().is_empty(), "a property has no name");
    }
    let mut formats = info.executable_formats.clone();
    formats.sort();
    formats.dedup();
    same("number of different executable formats", formats.len(), info.executable_formats.len())
}

fn info_json(t: &Context) -> Outcome {
    let info = t.device().info();
    let text = serde_json::to_string(info).map_err(|e| Stop::Fail(e.to_string()))?;
    match serde_json::from_str::<DeviceInfo>(&text) {
        Ok(back) => same("device info read back from JSON", &back, info),
        Err(e) => Err(Stop::Fail(format!("device info is not read back: {e}"))),
    }
}

fn identities(t: &Context) -> Outcome {
    let other = t.open()?;
    check!(t.device().id() != other.id(), "two open devices share identity {}", other.id());
    same("name of the device opened again", &other.info().name, &t.device().info().name)?;
    same("owner of a buffer", buffer(&other, &[1])?.device_id(), other.id())?;
    same("owner of a semaphore", other.create_semaphore(0)?.device_id(), other.id())
}

fn name_queries(t: &Context) -> Outcome {
    let (device, driver) = (t.device(), &t.device().info().driver);
    let ask = |key: &str| device.query_i64(query::DEVICE_ID, key);
    // Several drivers may serve one kind of module, so the driver's name need not be the identifier; `*` always fits.
    same("answer to hal.device.id '*'", ask("*"), Some(1))?;
    same("answer to hal.device.id of nobody", ask("no-such-device-identifier"), Some(0))?;
    same("answer to hal.device.id ''", ask(""), Some(0))?;
    check!(ask(driver).is_some(), "hal.device.id '{driver}' is not answered");
    Ok(())
}

fn format_queries(t: &Context) -> Outcome {
    let device = t.device();
    for format in &device.info().executable_formats {
        let answer = device.query_i64(query::EXECUTABLE_FORMAT, format);
        same(&format!("answer to hal.executable.format '{format}'"), answer, Some(1))?;
    }
    same("answer to a made-up format", device.query_i64(query::EXECUTABLE_FORMAT, "no-such-format"), Some(0))
}

fn unknown_queries(t: &Context) -> Outcome {
    for (category, key) in
        [("no.such.category", "x"), ("", ""), (query::DEVICE, "no-such-key"), ("ÿ", "\u{1F980}")]
    {
        let answer = t.device().query_i64(category, key);
        same(&format!("answer to '{category}' '{key}'"), answer, None)?;
    }
    Ok(())
}

fn affinities(t: &Context) -> Outcome {
    let device = t.device();
    let data = buffer(device, &[0; 8])?;
    for (value, bits) in [1u64, 1 << 63, 0, u64::MAX, 0xFFFF_0000].into_iter().enumerate() {
        let done = fence(device)?;
        device.queue_submit(
            QueueAffinity(bits),
            &Fence::default(),
            &done,
            fill(whole(&data), value as u64, 1),
        )?;
        done.wait(soon())?;
        same_bytes(&format!("data after a fill on queues {bits:#x}"), &read(&data)?, &[value as u8; 8])?;
    }
    Ok(())
}

fn idle(t: &Context) -> Outcome {
    let device = t.open()?;
    device.wait_idle(Deadline::Now)?;
    device.wait_idle(Deadline::Never)?;
    Ok(())
}

fn idle_after_work(t: &Context) -> Outcome {
    let device = t.open()?;
    let data = device.allocate_buffer(&halite_hal::BufferParams::DEVICE, 1 << 20)?;
    let mut last = Fence::default();
    for value in 0..32 {
        last = after(&device, &last, fill(whole(&data), value, 1))?;
    }
    match device.wait_idle(Deadline::Now) {
        Ok(()) => {}
        Err(e) => same("code of a wait without time", e.code(), Code::DeadlineExceeded)?,
    }
    device.wait_idle(soon())?;
    check!(last.query()?, "the device is idle, but the last fence is not reached");
    same_bytes("data", &read(&data)?, &vec![31; 1 << 20])
}

/// Whether work that has not started counts as idle is the driver's choice; that the wait ends is not.
fn idle_with_open_fence(t: &Context) -> Outcome {
    let device = t.open()?;
    let go = fence(&device)?;
    let end = after(&device, &go, QueueOp::Barrier)?;
    let start = Instant::now();
    match device.wait_idle(Deadline::after(Duration::from_millis(100))) {
        Ok(()) => {}
        Err(e) => same("code of the wait", e.code(), Code::DeadlineExceeded)?,
    }
    check!(start.elapsed() < Duration::from_secs(10), "the wait took {:?}", start.elapsed());
    check!(!end.query()?, "work ran before its wait fence was reached");
    go.signal()?;
    Ok(end.wait(soon())?)
}

fn trim_and_flush(t: &Context) -> Outcome {
    let device: &dyn Device = t.device().as_ref();
    let kept = buffer(t.device(), b"kept")?;
    for affinity in [QueueAffinity::ANY, QueueAffinity(1), QueueAffinity(1 << 40)] {
        device.queue_flush(affinity)?;
        device.trim();
    }
    same_bytes("a live buffer after trimming", &read(&kept)?, b"kept")
}
