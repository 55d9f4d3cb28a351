//! The three report formats.

use std::io::Write;

use serde_json::{Map, Value as Json, json};

use super::{
    Format, TimeUnit,
    ops::{self, OpsReport},
    runner::{Context, Repetition, Run},
    stats::Aggregate,
};
use crate::{
    console::{self, Result, VERSION},
    engine::format_g,
    logger,
};

/// How times are shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) unit: TimeUnit,
    pub(super) aggregates_only: bool,
}

/// One line of a report. Times in seconds; of a `cv` line everything is a ratio.
struct Line<'a> {
    run: &'a Run,
    aggregate: Option<&'static str>,
    repetition: usize,
    iterations: u64,
    real: f64,
    cpu: f64,
    counters: Vec<(&'static str, f64)>,
}

impl Line<'_> {
    fn name(&self) -> String {
        match self.aggregate {
            Some(aggregate) => format!("{}_{aggregate}", self.run.name),
            None => self.run.name.clone(),
        }
    }

    fn is_ratio(&self) -> bool {
        self.aggregate == Some("cv")
    }
}

/// Counters of a repetition that are times.
const TIME_COUNTERS: [&str; 4] = ["min", "p50", "p90", "p99"];

fn counters(r: &Repetition) -> Vec<(&'static str, f64)> {
    let c = &r.calls;
    vec![
        ("items_per_second", r.items_per_second),
        ("min", c.min),
        ("p50", c.p50),
        ("p90", c.p90),
        ("p99", c.p99),
    ]
}

fn lines(runs: &[Run], settings: Settings) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    for run in runs {
        let several = run.repetitions.len() > 1;
        if !(several && settings.aggregates_only) {
            for (repetition, r) in run.repetitions.iter().enumerate() {
                let (iterations, real, cpu) = (r.iterations, r.real, r.cpu);
                lines.push(Line {
                    run,
                    aggregate: None,
                    repetition,
                    iterations,
                    real,
                    cpu,
                    counters: counters(r),
                });
            }
        }
        if several {
            lines.extend(aggregates(run));
        }
    }
    lines
}

fn aggregates(run: &Run) -> impl Iterator<Item = Line<'_>> {
    type Pick = fn(&Aggregate) -> f64;
    const PICKS: [(&str, Pick); 4] =
        [("mean", |a| a.mean), ("median", |a| a.median), ("stddev", |a| a.stddev), ("cv", |a| a.cv)];
    let names: Vec<_> = run.repetitions.first().map(counters).unwrap_or_default();
    let over = |value: &dyn Fn(&Repetition) -> f64| Aggregate::of(run.repetitions.iter().map(value));
    let (real, cpu) = (over(&|r| r.real), over(&|r| r.cpu));
    let of_counters: Vec<_> =
        names.iter().enumerate().map(|(i, (name, _))| (*name, over(&|r| counters(r)[i].1))).collect();
    PICKS.into_iter().map(move |(aggregate, pick)| Line {
        run,
        aggregate: Some(aggregate),
        repetition: 0,
        iterations: run.repetitions.len() as u64,
        real: pick(&real),
        cpu: pick(&cpu),
        counters: of_counters.iter().map(|(name, a)| (*name, pick(a))).collect(),
    })
}

/// Writes a report.
pub(super) fn write(
    format: Format,
    runs: &[Run],
    (context, ops): (&Context, Option<&OpsReport>),
    settings: Settings,
    out: &mut dyn Write,
) -> Result<()> {
    let lines = lines(runs, settings);
    match format {
        Format::Console => write_console(&lines, settings, out),
        Format::Json => write_json(&lines, (context, ops), settings, out),
        Format::Csv => write_csv(&lines, settings, out),
    }
}

/// Start-up times and memory, to standard error.
pub(super) fn print_context(context: &Context) {
    if logger::is_quiet() {
        return;
    }
    let ms = |seconds: f64| seconds * 1e3;
    let p = &context.phases;
    eprintln!("Running {} {VERSION}", console::name());
    for (uri, name, memory) in &context.devices {
        let (used, reserved) = (memory.peak_used, memory.peak_reserved);
        eprintln!("Device {uri} ({name}): peak memory {used} B in buffers, {reserved} B reserved");
    }
    eprintln!(
        "Start-up: load {:.3} ms, init {:.3} ms, first call {:.3} ms; load to first result {:.3} ms",
        ms(p.load),
        ms(p.init),
        ms(p.first_call),
        ms(p.load + p.init + p.first_call)
    );
    if let Some(bytes) = context.peak_host_bytes {
        eprintln!("Host: peak resident memory {bytes} B");
    }
}

fn write_console(lines: &[Line<'_>], settings: Settings, out: &mut dyn Write) -> Result<()> {
    let width = lines.iter().map(|l| l.name().len()).max().unwrap_or_default().max("Benchmark".len());
    let header =
        format!("{:<width$} {:>13} {:>15} {:>12} UserCounters...", "Benchmark", "Time", "CPU", "Iterations");
    let rule = "-".repeat(header.len());
    writeln!(out, "{rule}\n{header}\n{rule}")?;
    for line in lines {
        let time = |seconds: f64| {
            if line.is_ratio() {
                format!("{:10.2} {:<4}", seconds * 100.0, "%")
            } else {
                format!("{} {:<4}", significant(settings.unit.of(seconds)), settings.unit.name())
            }
        };
        write!(
            out,
            "{:<width$} {} {} {:>10}",
            line.name(),
            time(line.real),
            time(line.cpu),
            line.iterations
        )?;
        for (name, value) in &line.counters {
            if line.is_ratio() {
                write!(out, " {name}={:.2}%", value * 100.0)?;
            } else if TIME_COUNTERS.contains(name) {
                write!(
                    out,
                    " {name}={}{}",
                    significant(settings.unit.of(*value)).trim_start(),
                    settings.unit.name()
                )?;
            } else {
                write!(out, " {name}={}/s", human(*value))?;
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

/// A time with about three digits, ten characters wide.
fn significant(value: f64) -> String {
    match value {
        v if v < 1.0 => format!("{v:10.3}"),
        v if v < 10.0 => format!("{v:10.2}"),
        v if v < 100.0 => format!("{v:10.1}"),
        v if v < 1e10 => format!("{v:10.0}"),
        v => format!("{v:10.3e}"),
    }
}

/// A count with a metric prefix.
fn human(value: f64) -> String {
    let (scaled, prefix) = match value {
        v if v >= 1e12 => (v / 1e12, "T"),
        v if v >= 1e9 => (v / 1e9, "G"),
        v if v >= 1e6 => (v / 1e6, "M"),
        v if v >= 1e3 => (v / 1e3, "k"),
        v if v >= 1.0 || v == 0.0 => (v, ""),
        v if v >= 1e-3 => (v * 1e3, "m"),
        v => (v * 1e6, "u"),
    };
    format!("{}{prefix}", format_g(scaled, false))
}

fn write_json(
    lines: &[Line<'_>],
    (context, ops): (&Context, Option<&OpsReport>),
    settings: Settings,
    out: &mut dyn Write,
) -> Result<()> {
    let benchmarks: Vec<_> = lines.iter().map(|line| line_json(line, settings)).collect();
    let mut object = json!({"context": context_json(context), "benchmarks": benchmarks});
    if let Some(ops) = ops {
        object["ops"] = ops::object(ops);
    }
    let text = serde_json::to_string_pretty(&object).map_err(std::io::Error::from)?;
    writeln!(out, "{text}")?;
    Ok(())
}

fn line_json(line: &Line<'_>, settings: Settings) -> Json {
    let unit = |seconds: f64| if line.is_ratio() { seconds } else { settings.unit.of(seconds) };
    let mut object = Map::new();
    let mut put = |key: &str, value: Json| object.insert(key.to_owned(), value);
    put("name", line.name().into());
    put("run_name", line.run.name.clone().into());
    put("run_type", if line.aggregate.is_some() { "aggregate" } else { "iteration" }.into());
    put("repetitions", line.run.repetitions.len().into());
    if let Some(aggregate) = line.aggregate {
        put("aggregate_name", aggregate.into());
        put("aggregate_unit", if line.is_ratio() { "percentage" } else { "time" }.into());
    } else {
        put("repetition_index", line.repetition.into());
    }
    put("threads", 1.into());
    put("iterations", line.iterations.into());
    put("real_time", unit(line.real).into());
    put("cpu_time", unit(line.cpu).into());
    put("time_unit", settings.unit.name().into());
    for (name, value) in &line.counters {
        put(name, if TIME_COUNTERS.contains(name) { unit(*value) } else { *value }.into());
    }
    Json::Object(object)
}

fn context_json(context: &Context) -> Json {
    let devices: Vec<_> = context
        .devices
        .iter()
        .map(|(uri, name, memory)| {
            json!({
                "uri": uri, "name": name, "peak_used_bytes": memory.peak_used,
                "peak_reserved_bytes": memory.peak_reserved, "allocations": memory.allocations,
            })
        })
        .collect();
    let p = &context.phases;
    json!({
        "executable": console::name(),
        "library_version": VERSION,
        "num_cpus": std::thread::available_parallelism().map_or(0, std::num::NonZero::get),
        "library_build_type": if cfg!(debug_assertions) { "debug" } else { "release" },
        "devices": devices,
        "load_ms": p.load * 1e3,
        "init_ms": p.init * 1e3,
        "first_call_ms": p.first_call * 1e3,
        "load_to_first_result_ms": (p.load + p.init + p.first_call) * 1e3,
        "peak_host_bytes": context.peak_host_bytes,
    })
}

fn write_csv(lines: &[Line<'_>], settings: Settings, out: &mut dyn Write) -> Result<()> {
    write!(out, "name,iterations,real_time,cpu_time,time_unit,bytes_per_second,items_per_second,label,")?;
    writeln!(out, "error_occurred,error_message,{}", TIME_COUNTERS.map(|n| format!("\"{n}\"")).join(","))?;
    for line in lines {
        let unit = |seconds: f64| if line.is_ratio() { seconds } else { settings.unit.of(seconds) };
        let counter = |name| line.counters.iter().find(|(n, _)| *n == name).map_or(0.0, |(_, v)| *v);
        write!(out, "\"{}\",{},{},", line.name().replace('"', "\"\""), line.iterations, unit(line.real))?;
        let unit_name = if line.is_ratio() { "" } else { settings.unit.name() };
        write!(out, "{},{unit_name},,{},,,", unit(line.cpu), counter("items_per_second"))?;
        writeln!(out, ",{}", TIME_COUNTERS.map(|n| unit(counter(n)).to_string()).join(","))?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
