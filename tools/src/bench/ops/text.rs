//! The account of operations as text.

use std::io::Write;

use super::{
    ceilings::Ceilings,
    rows::{Account, OpsReport, Row},
};
use crate::console::Result;

/// Most characters of a row's name.
const NAME: usize = 44;

/// Writes the accounts of all functions. `most` rows of each table are shown; 0 for all.
pub(in crate::bench) fn write(report: &OpsReport, most: usize, out: &mut dyn Write) -> Result<()> {
    for (name, account) in &report.functions {
        write_account(name, account, report, most, out)?;
    }
    Ok(())
}

fn write_account(
    name: &str,
    account: &Account,
    report: &OpsReport,
    most: usize,
    out: &mut dyn Write,
) -> Result<()> {
    let parts = &account.parts;
    writeln!(
        out,
        "\nWhere a call of {name} spends its time ({} calls, on {})",
        account.calls, report.device
    )?;
    let lines = [
        ("call, host to host", parts.total),
        ("  copying inputs", parts.upload),
        ("  kernels", parts.kernels),
        ("  gaps between them", parts.gaps),
        ("  host around them", parts.host),
        ("  copying results", parts.download),
    ];
    for (what, seconds) in lines {
        writeln!(out, "{what:<22} {:>11} {:>6.1} %", time(seconds), share(seconds, parts.total))?;
    }
    writeln!(
        out,
        "{:.0} commands; the host had submitted them after {}; the device moved inputs and results for {}; its clock tells {}",
        account.commands,
        time(parts.launch).trim(),
        time(parts.transfers).trim(),
        time(account.resolution).trim()
    )?;
    let ran = parts.total - parts.upload - parts.download;
    writeln!(
        out,
        "without copies {}; not profiled, half of all calls take at most {}",
        time(ran).trim(),
        time(account.plain).trim()
    )?;
    if account.unmeasured > 0 {
        writeln!(out, "{} commands could not be measured; sums lack them", account.unmeasured)?;
    }
    write_ceilings(report, out)?;
    for (title, rows) in
        [("node", &account.by_node), ("kind", &account.by_kind), ("kernel", &account.by_kernel)]
    {
        write_rows(title, rows, parts.kernels, &report.ceilings, most, out)?;
    }
    Ok(())
}

fn write_ceilings(report: &OpsReport, out: &mut dyn Write) -> Result<()> {
    let ceilings = &report.ceilings;
    let known = [
        ("copies", ceilings.bytes, "B/s"),
        ("f32", ceilings.f32, "FLOP/s"),
        ("f16", ceilings.f16, "FLOP/s"),
        ("i8", ceilings.i8, "OP/s"),
    ];
    let known: Vec<String> = known
        .into_iter()
        .filter_map(|(name, value, unit)| Some(format!("{name} {} {unit}", rate(value?))))
        .collect();
    match (&report.no_ceilings, known.is_empty()) {
        (Some(why), _) => writeln!(out, "ceilings are not known: {why}")?,
        (None, true) => {}
        (None, false) => writeln!(out, "measured ceilings: {}", known.join(", "))?,
    }
    Ok(())
}

fn write_rows(
    title: &str,
    rows: &[Row],
    whole: f64,
    ceilings: &Ceilings,
    most: usize,
    out: &mut dyn Write,
) -> Result<()> {
    let shown = if most == 0 { rows.len() } else { rows.len().min(most) };
    writeln!(
        out,
        "\n{:<NAME$} {:>11} {:>8} {:>7} {:>9} {:>6} {:>9} {:>6}",
        format!("by {title}"),
        "time",
        "share",
        "times",
        "FLOP/s",
        "peak",
        "B/s",
        "peak"
    )?;
    for row in &rows[..shown] {
        let percent = |share: Option<f64>| share.map_or("-".to_owned(), |s| format!("{:.0} %", s * 100.0));
        let of_copy = row.bytes().zip(ceilings.bytes).map(|(own, peak)| own / peak);
        write!(
            out,
            "{:<NAME$} {:>11} {:>6.1} % {:>7} {:>9} {:>6} {:>9} {:>6}",
            shortened(&row.name),
            time(row.seconds),
            share(row.seconds, whole),
            count(row.commands),
            row.flops().map_or("-".to_owned(), rate),
            percent(row.of_peak()),
            row.bytes().map_or("-".to_owned(), rate),
            percent(of_copy)
        )?;
        let detail = if row.detail == row.name { "" } else { &row.detail };
        writeln!(out, "{}{detail}", if detail.is_empty() { "" } else { "  " })?;
    }
    if shown < rows.len() {
        let rest: f64 = rows[shown..].iter().map(|row| row.seconds).sum();
        let more = format!("and {} more", rows.len() - shown);
        writeln!(out, "{more:<NAME$} {:>11} {:>6.1} %", time(rest), share(rest, whole))?;
    }
    Ok(())
}

/// The end of a long name, where names of places differ.
fn shortened(name: &str) -> String {
    let count = name.chars().count();
    if count <= NAME {
        name.to_owned()
    } else {
        format!("…{}", name.chars().skip(count - NAME + 1).collect::<String>())
    }
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole * 100.0 } else { 0.0 }
}

fn count(commands: f64) -> String {
    if commands.fract() < 0.05 || commands.fract() > 0.95 {
        format!("{commands:.0}")
    } else {
        format!("{commands:.1}")
    }
}

fn time(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{s:.3} s "),
        s if s >= 1e-3 => format!("{:.3} ms", s * 1e3),
        s if s >= 1e-6 => format!("{:.2} us", s * 1e6),
        s => format!("{:.0} ns", s * 1e9),
    }
}

/// A number a second, with a metric prefix.
fn rate(value: f64) -> String {
    let (scaled, prefix) = match value {
        v if v >= 1e12 => (v / 1e12, "T"),
        v if v >= 1e9 => (v / 1e9, "G"),
        v if v >= 1e6 => (v / 1e6, "M"),
        v => (v / 1e3, "k"),
    };
    let digits = if scaled < 10.0 { 2 } else { usize::from(scaled < 100.0) };
    format!("{scaled:.digits$} {prefix}")
}
