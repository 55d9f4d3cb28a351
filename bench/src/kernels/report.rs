//! Prints measurements: a table for people, JSON for programs.

use std::fmt::Write as _;

use halite_hal::DeviceInfo;
use halite_targets::Capabilities;
use halite_tools::units::{seconds as time, si as rate};
use serde_json::{Value as Json, json};

use super::{
    ceilings::Ceilings,
    choice::{Chosen, Summary},
    hints,
    result::{Against, Details, Measured, Report, Row},
};

/// The device's ceilings, as lines that begin with `#`.
pub fn heading(ceilings: &Ceilings) -> String {
    let mut text = String::new();
    if let Ok(copy) = ceilings.copy(ceilings.largest()) {
        let (command, kernel) = (rate(copy.command, "B/s"), rate(copy.kernel, "B/s"));
        let size = ceilings.largest() >> 20;
        let _ = writeln!(text, "# copies of {size} MiB: vkCmdCopyBuffer {command}, kernel {kernel}");
    }
    for (probe, speed) in &ceilings.arithmetic {
        let _ = match speed {
            Ok(speed) => writeln!(text, "# {}: {}", probe.name(), rate(*speed, "OP/s")),
            Err(why) => writeln!(text, "# {}: {why}", probe.name()),
        };
    }
    text
}

/// An operation with its variants. Percentages are of the copy and of the arithmetic that bound it; `original` is how many
/// times as long the original's code takes.
pub fn text(report: &Report) -> String {
    let mut text = format!("\n{}\n", report.operation);
    let caches = if report.sets > 1 { format!("{} sets of buffers", report.sets) } else { "warm".to_owned() };
    let copy = rate(report.copy.best(), "B/s");
    let peak = report
        .peak
        .map_or("none".to_owned(), |(probe, speed)| format!("{} ({})", rate(speed, "OP/s"), probe.name()));
    let (flops, bytes) = (rate(report.work.flops, "OP"), rate(report.work.bytes, "B"));
    let _ = writeln!(text, "  {flops}, {bytes}, {caches}; ceilings: copy {copy}, arithmetic {peak}");
    let _ = writeln!(
        text,
        "  {:<40} {:>5} {:>12} {:>10} {:>13} {:>7} {:>13} {:>7} {:>9}  checked against",
        "variant", "place", "median", "estimate", "arithmetic", "of peak", "memory", "of copy", "original"
    );
    let fastest = fastest(report);
    for row in &report.rows {
        let mark = if Some(row.variant) == fastest { "*" } else { " " };
        let _ = match &row.outcome {
            Ok(measured) => writeln!(text, "{mark} {}", line(report, row, measured)),
            Err(why) => writeln!(text, "! {:<40} {:>5} {why}", row.variant, row.place),
        };
    }
    match &report.against {
        Some(Ok(against)) => text.push_str(&original(report, against)),
        Some(Err(why)) => {
            let _ = writeln!(text, "- the original's code: {why}");
        }
        None => {}
    }
    if !report.complete {
        text.push_str("- the time is over: other variants were not measured\n");
    }
    if let Some(chosen) = Chosen::of(std::slice::from_ref(report)) {
        let _ = writeln!(
            text,
            "- by their least samples the first choice takes {:.3} times the fastest",
            chosen.ratio()
        );
    }
    for (variant, why) in &report.ruled_out {
        let _ = writeln!(text, "- {variant:<40} {why}");
    }
    text
}

fn fastest(report: &Report) -> Option<&'static str> {
    let measured = report.rows.iter().filter_map(|row| Some((row.variant, row.outcome.as_ref().ok()?)));
    let least = measured.min_by(|a, b| a.1.timing.median.total_cmp(&b.1.timing.median));
    least.map(|(name, _)| name)
}

fn line(report: &Report, row: &Row, measured: &Measured) -> String {
    let seconds = measured.timing.median;
    let (flops, bytes) = (report.work.flops / seconds, report.work.bytes / seconds);
    let of = |speed: f64, ceiling: Option<f64>| {
        ceiling.filter(|c| *c > 0.0).map_or("-".to_owned(), |c| format!("{:.1} %", 100.0 * speed / c))
    };
    format!(
        "{:<40} {:>5} {:>12} {:>10} {:>13} {:>7} {:>13} {:>7} {:>9}  {}",
        row.variant,
        row.place,
        time(seconds),
        row.details.estimate.map_or("-".to_owned(), |micros| time(micros * 1e-6)),
        rate(flops, "OP/s"),
        of(flops, report.peak.map(|(_, speed)| speed)),
        rate(bytes, "B/s"),
        of(bytes, Some(report.copy.best())),
        ratio(report, row.variant).map_or("-".to_owned(), |ratio| format!("{ratio:.2} x")),
        measured.checked
    )
}

/// How many times as long as a variant the original's code takes, where both took turns.
fn ratio(report: &Report, variant: &str) -> Option<f64> {
    report.against.as_ref()?.as_ref().ok()?.ratio(variant)
}

fn original(report: &Report, against: &Against) -> String {
    let seconds = against.original.median;
    let speed = rate(report.work.flops / seconds, "OP/s");
    let (mark, checked) = match &against.checked {
        Ok(with) => ("=", with.clone()),
        Err(why) => ("!", format!("wrong: {why}")),
    };
    format!(
        "{mark} {:<40} {:>5} {:>12} {speed:>24} {:>34}  {checked}\n",
        "the original's code",
        "-",
        time(seconds),
        ""
    )
}

/// All of it for programs. Times are in seconds, rates in operations or bytes a second.
pub fn json(info: &DeviceInfo, target: &Capabilities, ceilings: &Ceilings, reports: &[Report]) -> Json {
    let probes: serde_json::Map<String, Json> = ceilings
        .arithmetic
        .iter()
        .map(|(probe, speed)| {
            let told = speed.as_ref().map_or_else(|why| json!({"why_not": why}), |speed| json!(speed));
            (probe.name().to_owned(), told)
        })
        .collect();
    let copy = ceilings.copy(ceilings.largest()).unwrap_or_default();
    json!({
        "device": info.uri(), "name": info.name, "target": target.target.to_string(),
        "hints": hints::json(&target.hints),
        "ceilings": {
            "copy_bytes": ceilings.largest(), "copy_command": copy.command, "copy_kernel": copy.kernel,
            "arithmetic": probes,
        },
        "choice": Summary::of_reports(reports).json(),
        "operations": reports.iter().map(operation).collect::<Vec<_>>(),
    })
}

fn operation(report: &Report) -> Json {
    let ruled_out: Vec<_> =
        report.ruled_out.iter().map(|(name, why)| json!({"variant": name, "why": why})).collect();
    json!({
        "operation": report.operation.to_string(), "name": report.operation.name(),
        "signature": report.operation.signature(),
        "flops": report.work.flops, "bytes": report.work.bytes, "sets": report.sets,
        "copy_command": report.copy.command, "copy_kernel": report.copy.kernel,
        "peak": report.peak.map(|(probe, speed)| json!({"probe": probe.name(), "speed": speed})),
        "complete": report.complete, "choice": Chosen::of(std::slice::from_ref(report)).map(|one| one.json()),
        "variants": report.rows.iter().map(|row| variant(report, row)).collect::<Vec<_>>(),
        "ruled_out": ruled_out, "original": report.against.as_ref().map(against),
    })
}

fn against(against: &Result<Against, String>) -> Json {
    match against {
        Err(why) => json!({"why_not": why}),
        Ok(against) => {
            let ours = against.ours.iter();
            json!({
                "median": against.original.median, "least": against.original.least,
                "most": against.original.most, "samples": against.original.samples,
                "repeat": against.original.repeat,
                "checked": against.checked.as_ref().ok(), "wrong": against.checked.as_ref().err(),
                "in_turns": ours.map(|(name, t)| ((*name).to_owned(), json!(t.median))).collect::<serde_json::Map<_, _>>(),
            })
        }
    }
}

fn variant(report: &Report, row: &Row) -> Json {
    let Details { variant, dispatches, cut, estimate } = &row.details;
    let template = variant.map(|variant| variant.template.as_str());
    let params = variant.map(|v| v.params.iter().map(|(name, value)| (name.to_owned(), json!(value))));
    let params: serde_json::Map<String, Json> = params.into_iter().flatten().collect();
    match &row.outcome {
        Err(why) => json!({"variant": row.variant, "place": row.place, "failed": why}),
        Ok(measured) => {
            let timing = measured.timing;
            json!({
                "variant": row.variant, "place": row.place, "checked": measured.checked,
                "template": template, "params": params, "dispatches": dispatches, "cut": cut,
                "microseconds": timing.median * 1e6, "estimate_microseconds": estimate,
                "median": timing.median, "least": timing.least, "most": timing.most,
                "samples": timing.samples, "repeat": timing.repeat,
                "flops_per_second": report.work.flops / timing.median,
                "bytes_per_second": report.work.bytes / timing.median,
            })
        }
    }
}
