//! `bench --all-devices`: the same function on every device at hand, in one table, and which of them it should run on.

use std::io::Write;

use halite::{CancelToken, DeviceKind, hal::DeviceInfo};
use serde_json::{Value as Json, json};

use super::{
    Flags,
    runner::{self, Run},
};
use crate::{
    console::{self, Failure, Result},
    devices, interrupt,
};

/// What became of a function on a device.
#[derive(Clone, Debug)]
struct Row {
    uri: String,
    name: String,
    kind: DeviceKind,
    outcome: std::result::Result<Measured, String>,
}

/// What was measured of it, in seconds.
#[derive(Clone, Debug)]
struct Measured {
    function: String,
    min: f64,
    p50: f64,
    cpu: f64,
    first_call: f64,
}

/// Measures on every device, and writes the table.
pub(super) fn run(flags: &Flags, cancel: &CancelToken, out: &mut dyn Write) -> Result<()> {
    if let Some(uri) = flags.devices.device.first() {
        return Err(Failure::Usage(format!("--all-devices contradicts --device={uri}")));
    }
    let options = flags.devices.vulkan_options()?;
    let infos = devices::enumerate(&flags.devices.registry()?, None, &options)?;
    if infos.is_empty() {
        return Err(Failure::invalid("there is no device to measure; see 'halite devices'"));
    }
    let mut rows = Vec::new();
    for info in &infos {
        rows.extend(measure(flags, info, cancel)?);
    }
    sort(&mut rows);
    let json = flags.measure.format() == super::Format::Json;
    let written = match json {
        true => write_json(&rows, flags, out),
        false => write_text(&rows, flags, out),
    };
    console::verdict(written, rows.iter().any(|row| row.outcome.is_ok()))
}

/// The functions on one device. What cannot be run there is told in its row; a usage that is wrong everywhere ends it all.
fn measure(flags: &Flags, info: &DeviceInfo, cancel: &CancelToken) -> Result<Vec<Row>> {
    let row = |outcome| Row { uri: info.uri(), name: info.name.clone(), kind: info.kind.into(), outcome };
    if let Some(why) = &info.unusable {
        return Ok(vec![row(Err(why.clone()))]);
    }
    let mut own = flags.clone();
    own.devices.device = vec![info.uri()];
    match runs(&own, cancel) {
        Ok(runs) => Ok(runs.iter().map(|run| row(Ok(Measured::of(run)))).collect()),
        Err(failure @ (Failure::Usage(_) | Failure::Reported | Failure::Unread)) => Err(failure),
        Err(failure) if interrupt::interrupted() => Err(failure),
        Err(failure) => Ok(vec![row(Err(failure.to_string()))]),
    }
}

fn runs(flags: &Flags, cancel: &CancelToken) -> Result<Vec<Run>> {
    let prepared = runner::prepare(flags, cancel)?;
    if prepared.functions.is_empty() {
        return Err(Failure::Usage(format!(
            "no function fits; functions whose inputs have open sizes need --function and --input. Exported: {}",
            prepared.exported.join(", ")
        )));
    }
    runner::measure(flags, &prepared)
}

impl Measured {
    fn of(run: &Run) -> Self {
        let least = |of: &dyn Fn(&runner::Repetition) -> f64| {
            run.repetitions.iter().map(of).fold(f64::INFINITY, f64::min)
        };
        Measured {
            function: run.name.clone(),
            min: least(&|r| r.calls.min),
            p50: least(&|r| r.calls.p50),
            cpu: least(&|r| r.cpu),
            first_call: run.first_call,
        }
    }
}

/// The fastest first, those that cannot run it last.
fn sort(rows: &mut [Row]) {
    let time = |row: &Row| row.outcome.as_ref().map_or(f64::INFINITY, |measured| measured.p50);
    rows.sort_by(|a, b| time(a).total_cmp(&time(b)));
}

/// What the table says, in one sentence.
fn verdict(rows: &[Row]) -> Option<String> {
    let measured = || rows.iter().filter_map(|row| Some((row, row.outcome.as_ref().ok()?)));
    let (fastest, best) = measured().next()?;
    let is_cpu = |row: &Row| row.kind == DeviceKind::Cpu;
    let gpu = measured().find(|(row, _)| !is_cpu(row));
    let cpu = measured().find(|(row, _)| is_cpu(row));
    Some(match (gpu, cpu) {
        (Some((gpu, of_gpu)), Some(_)) if is_cpu(fastest) => format!(
            "The processor is faster here: {} takes 1/{:.1} of the time of {}.",
            fastest.uri,
            of_gpu.p50 / best.p50,
            gpu.uri
        ),
        (Some(_), Some((cpu, of_cpu))) => {
            format!("{} is {:.1} times as fast as {}.", fastest.uri, of_cpu.p50 / best.p50, cpu.uri)
        }
        (None, Some(_)) => format!("Only processors can run it here; the fastest is {}.", fastest.uri),
        _ => format!("The fastest is {}.", fastest.uri),
    })
}

fn write_text(rows: &[Row], flags: &Flags, out: &mut dyn Write) -> Result<()> {
    let unit = flags.measure.time_unit;
    let width = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or_default().max("device".len());
    let best = rows.first().and_then(|row| row.outcome.as_ref().ok()).map(|measured| measured.p50);
    writeln!(
        out,
        "{:<width$} {:>12} {:>12} {:>12} {:>12} {:>9}  URI",
        "device", "half within", "fastest", "CPU", "first call", "times"
    )?;
    for row in rows {
        match (&row.outcome, best) {
            (Ok(m), Some(best)) => {
                let time = |seconds: f64| format!("{:.3} {}", unit.of(seconds), unit.name());
                write!(out, "{:<width$} {:>12} {:>12} ", row.name, time(m.p50), time(m.min))?;
                write!(out, "{:>12} {:>12} {:>9.2}  ", time(m.cpu), time(m.first_call), m.p50 / best)?;
                writeln!(out, "{}", row.uri)?;
            }
            (Err(why), _) => writeln!(out, "{:<width$} cannot: {why}  {}", row.name, row.uri)?,
            (Ok(_), None) => {}
        }
    }
    if let Some(verdict) = verdict(rows) {
        writeln!(out, "{verdict}")?;
    }
    Ok(())
}

/// Times are in the unit that was asked for.
fn write_json(rows: &[Row], flags: &Flags, out: &mut dyn Write) -> Result<()> {
    let unit = flags.measure.time_unit;
    let row = |row: &Row| -> Json {
        let mut object = json!({
            "uri": row.uri, "name": row.name, "processor": row.kind == DeviceKind::Cpu,
        });
        match &row.outcome {
            Ok(m) => {
                object["function"] = json!(m.function);
                object["time_unit"] = json!(unit.name());
                for (key, seconds) in
                    [("p50", m.p50), ("min", m.min), ("cpu_time", m.cpu), ("first_call", m.first_call)]
                {
                    object[key] = json!(unit.of(seconds));
                }
            }
            Err(why) => object["error"] = json!(why),
        }
        object
    };
    let object = json!({"devices": rows.iter().map(row).collect::<Vec<_>>(), "verdict": verdict(rows)});
    writeln!(out, "{}", serde_json::to_string_pretty(&object).map_err(std::io::Error::from)?)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(uri: &str, kind: DeviceKind, p50: Option<f64>) -> Row {
        let measured =
            |p50| Measured { function: "main".to_owned(), min: p50, p50, cpu: p50, first_call: 1.0 };
        let outcome = p50.map(measured).ok_or_else(|| "too small".to_owned());
        Row { uri: uri.to_owned(), name: uri.to_owned(), kind, outcome }
    }

    #[test]
    fn the_verdict_is_honest() {
        let (gpu, cpu) = (DeviceKind::DiscreteGpu, DeviceKind::Cpu);
        let says = |rows: &[(&str, DeviceKind, Option<f64>)]| {
            let mut rows: Vec<_> = rows.iter().map(|(uri, kind, time)| row(uri, *kind, *time)).collect();
            sort(&mut rows);
            verdict(&rows)
        };
        let faster = says(&[("gpu", gpu, Some(3.0)), ("cpu", cpu, Some(1.5))]).unwrap();
        assert_eq!(faster, "The processor is faster here: cpu takes 1/2.0 of the time of gpu.");
        let slower = says(&[("cpu", cpu, Some(4.0)), ("gpu", gpu, Some(1.0)), ("old", gpu, None)]).unwrap();
        assert_eq!(slower, "gpu is 4.0 times as fast as cpu.");
        assert!(says(&[("gpu", gpu, None), ("cpu", cpu, Some(4.0))]).unwrap().starts_with("Only processors"));
        assert_eq!(says(&[("gpu", gpu, None)]), None);
    }
}
