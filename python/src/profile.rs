//! Where the time of a call went, as a dictionary. Times are in seconds.

use std::time::Duration;

use halite::{CommandProfile, DeviceTimes, Profile};
use pyo3::prelude::*;
use serde_json::{Value as Json, json};

fn seconds(time: Duration) -> f64 {
    time.as_secs_f64()
}

fn device(times: &DeviceTimes) -> Json {
    json!({
        "uri": times.uri,
        "span": seconds(times.span),
        "busy": seconds(times.busy),
        "gaps": seconds(times.gaps()),
        "transfers": seconds(times.transfers),
        "resolution": seconds(times.resolution),
        "unmeasured": times.unmeasured,
    })
}

fn command(of: &CommandProfile) -> Json {
    let operation = of.operation.as_ref().map(|operation| {
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
        "kind": of.kind.name(),
        "device": of.device,
        "queue": of.queue,
        "start": seconds(of.start),
        "end": seconds(of.end),
        "own": seconds(of.own),
        "entry_point": of.entry_point,
        "workgroups": of.workgroups,
        "bytes": of.bytes,
        "operation": operation,
        "of_program": of.is_of_program,
    })
}

/// The profile as a dictionary; `trace` in it is the text of a file of Chrome's trace events.
pub fn told<'py>(py: Python<'py>, profile: &Profile) -> PyResult<Bound<'py, PyAny>> {
    let all = json!({
        "total": seconds(profile.total()),
        "upload": seconds(profile.upload()),
        "run": seconds(profile.run()),
        "launch": seconds(profile.launch()),
        "download": seconds(profile.download()),
        "host": seconds(profile.host()),
        "uploaded_bytes": profile.uploaded_bytes(),
        "downloaded_bytes": profile.downloaded_bytes(),
        "devices": profile.devices().iter().map(device).collect::<Vec<_>>(),
        "commands": profile.commands().iter().map(command).collect::<Vec<_>>(),
        "trace": profile.to_trace(),
    });
    from_json(py, &all.to_string())
}

/// Data of the library as dictionaries and lists.
pub fn from_json<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("json")?.call_method1("loads", (text,))
}
