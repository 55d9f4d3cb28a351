//! Profiles as trace events. The format: "Trace Event Format", catapult project (`docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU`);
//! times are in microseconds.

use std::time::Duration;

use serde_json::{Value as Json, json};

use super::{CommandProfile, Profile};

/// The process of the host, and its threads' and devices' numbers: phases are thread 0, queue q of device d is thread 0 of process
/// `d + 2` plus q.
const HOST: usize = 1;

/// All events of calls, one after the other.
pub(super) fn events(calls: &[Profile]) -> Json {
    let mut events = Vec::new();
    name(&mut events, "process_name", (HOST, 0), "host");
    name(&mut events, "thread_name", (HOST, 0), "calls");
    if let Some(first) = calls.first() {
        for (device, times) in first.devices.iter().enumerate() {
            name(&mut events, "process_name", (HOST + 1 + device, 0), &times.uri);
        }
    }
    let mut start = Duration::ZERO;
    for call in calls {
        host(&mut events, call, start);
        devices(&mut events, call, start);
        start += call.total();
    }
    json!({ "displayTimeUnit": "ns", "traceEvents": events })
}

fn name(events: &mut Vec<Json>, what: &str, (process, thread): (usize, u32), name: &str) {
    events.push(json!({"ph": "M", "name": what, "pid": process, "tid": thread, "args": {"name": name}}));
}

fn host(events: &mut Vec<Json>, call: &Profile, start: Duration) {
    let mut at = start;
    for (name, time) in
        [("upload", call.upload), ("launch", call.launch), ("wait", call.wait), ("download", call.download)]
    {
        events.push(complete(name, "host", (HOST, 0), (at, time), Json::Null));
        at += time;
    }
}

fn devices(events: &mut Vec<Json>, call: &Profile, start: Duration) {
    for device in 0..call.devices.len() {
        let own = || call.commands.iter().filter(|command| command.device == device);
        let last = own().filter(|command| command.is_of_program).map(|command| command.end).max();
        // The results are there when the wait ends.
        let there = start + call.upload + call.run();
        let last = last.unwrap_or_default();
        for command in own() {
            let at = (there + command.start).saturating_sub(last);
            let place = (HOST + 1 + device, command.queue);
            let time = command.end.saturating_sub(command.start);
            let name = match &command.operation {
                Some(operation) if !operation.location.is_empty() => &operation.location,
                Some(operation) => &operation.kind,
                None if command.entry_point.is_empty() => command.kind.name(),
                None => &command.entry_point,
            };
            events.push(complete(name, category(command), place, (at, time), arguments(command)));
        }
    }
}

fn category(command: &CommandProfile) -> &str {
    command.operation.as_ref().map_or(command.kind.name(), |operation| &operation.kind)
}

fn arguments(command: &CommandProfile) -> Json {
    let mut arguments = json!({});
    let mut put = |key: &str, value: Json| arguments[key] = value;
    if !command.entry_point.is_empty() {
        put("kernel", json!(command.entry_point));
    }
    if let Some(workgroups) = command.workgroups {
        put("workgroups", json!(workgroups));
    }
    if command.bytes > 0 {
        put("bytes", json!(command.bytes));
    }
    if let Some(operation) = &command.operation {
        put("operation", json!(operation.text));
        put("variant", json!(operation.variant));
        if let Some(flops) = operation.flops {
            put("flops", json!(flops));
        }
        if let Some(bytes) = operation.bytes {
            put("least bytes", json!(bytes));
        }
    }
    arguments
}

fn complete(
    name: &str,
    category: &str,
    (process, thread): (usize, u32),
    (start, time): (Duration, Duration),
    arguments: Json,
) -> Json {
    let micros = |time: Duration| time.as_nanos() as f64 / 1e3;
    let mut event = json!({
        "ph": "X", "name": name, "cat": category, "pid": process, "tid": thread, "ts": micros(start), "dur": micros(time),
    });
    if !arguments.is_null() {
        event["args"] = arguments;
    }
    event
}
