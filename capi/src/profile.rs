//! Profiles: where the time of a call went.

use halite::{CommandProfile, DeviceTimes, Profile};
use serde_json::{Value, json};

use crate::{
    blob::halite_blob,
    error::{call, halite_error},
    raw::{self, Out},
};

/// Where the time of one call went, from host to host.
pub struct halite_profile(Profile);

impl halite_profile {
    pub(crate) fn new(profile: Profile) -> Self {
        halite_profile(profile)
    }
}

/// The profile as JSON. Times are in nanoseconds. `total_ns` is `upload_ns` + `launch_ns` + `wait_ns` + `download_ns`, by the
/// host's clock; `devices` describes each device; `commands` lists what they ran, with the operation of the model that it
/// computes. Later versions only add fields.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_profile_json(
    profile: *const halite_profile,
    out: *mut *mut halite_blob,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_profile_json", || unsafe {
        let out = Out::handle(out, "out")?;
        out.give(halite_blob::new(object(&raw::handle(profile, "profile")?.0).to_string()));
        Ok(())
    })
}

/// The call as a trace in the form of Chrome's trace events (JSON), which <https://ui.perfetto.dev> opens.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_profile_trace(
    profile: *const halite_profile,
    out: *mut *mut halite_blob,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_profile_trace", || unsafe {
        let out = Out::handle(out, "out")?;
        out.give(halite_blob::new(raw::handle(profile, "profile")?.0.to_trace()));
        Ok(())
    })
}

/// Frees a profile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_profile_free(profile: *mut halite_profile) {
    // SAFETY: the contract of the interface.
    unsafe { raw::free("halite_profile_free", profile) }
}

/// Nanoseconds, which fit for five hundred years.
fn ns(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn object(profile: &Profile) -> Value {
    json!({
        "total_ns": ns(profile.total()),
        "upload_ns": ns(profile.upload()),
        "launch_ns": ns(profile.launch()),
        "wait_ns": ns(profile.run().saturating_sub(profile.launch())),
        "download_ns": ns(profile.download()),
        "host_ns": ns(profile.host()),
        "uploaded_bytes": profile.uploaded_bytes(),
        "downloaded_bytes": profile.downloaded_bytes(),
        "devices": profile.devices().iter().map(device).collect::<Vec<_>>(),
        "commands": profile.commands().iter().map(command).collect::<Vec<_>>(),
    })
}

fn device(device: &DeviceTimes) -> Value {
    json!({
        "uri": device.uri,
        "span_ns": ns(device.span),
        "busy_ns": ns(device.busy),
        "gaps_ns": ns(device.gaps()),
        "transfers_ns": ns(device.transfers),
        "resolution_ns": ns(device.resolution),
        "unmeasured_commands": device.unmeasured,
    })
}

fn command(command: &CommandProfile) -> Value {
    let operation = command.operation.as_ref().map(|operation| {
        json!({
            "location": operation.location,
            "kind": operation.kind,
            "text": operation.text,
            "variant": operation.variant,
            "flops": operation.flops,
            "bytes": operation.bytes,
        })
    });
    json!({
        "kind": command.kind.name(),
        "device": command.device,
        "queue": command.queue,
        "start_ns": ns(command.start),
        "end_ns": ns(command.end),
        "own_ns": ns(command.own),
        "entry_point": command.entry_point,
        "workgroups": command.workgroups,
        "bytes": command.bytes,
        "is_of_program": command.is_of_program,
        "operation": operation,
    })
}
