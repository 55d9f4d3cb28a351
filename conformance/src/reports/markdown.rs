//! Reports as tables for text documents.

use std::fmt::Write as _;

use super::{Counts, DeviceReport, Holding, RunReport, Status};

/// A table of devices and suites, and what is wrong or known to be, for each device.
pub fn markdown(report: &RunReport) -> String {
    let mut text = String::from(
        "| device | suite | cases | pass | skip | expected fail | fail | crash | timeout | surprise |\n",
    );
    text.push_str("|---|---|---|---|---|---|---|---|---|---|\n");
    for device in &report.devices {
        for suite in device.suites.iter().filter(|suite| suite.selected > 0) {
            let cases = device.cases.iter().filter(|case| case.suite() == suite.name);
            row(&mut text, &device.label(), &suite.name, &Counts::of(cases));
        }
        row(&mut text, &device.label(), "all", &device.counts);
    }
    text.push('\n');
    levels(&mut text, report);
    report.devices.iter().for_each(|device| expected(&mut text, device));
    text
}

fn row(text: &mut String, device: &str, suite: &str, counts: &Counts) {
    // Writing to a string does not fail.
    let _ = write!(text, "| {} | {suite} | {} |", cell(device), counts.all());
    for status in Status::ALL {
        let _ = write!(text, " {} |", counts.get(status));
    }
    text.push('\n');
}

fn levels(text: &mut String, report: &RunReport) {
    let names: Vec<_> =
        report.devices.first().map_or_else(Vec::new, |d| d.levels.iter().map(|level| &level.name).collect());
    if names.is_empty() {
        return;
    }
    text.push_str("| device |");
    names.iter().for_each(|name| {
        let _ = write!(text, " {name} |");
    });
    text.push_str("\n|---|");
    names.iter().for_each(|_| text.push_str("---|"));
    text.push('\n');
    for device in &report.devices {
        let _ = write!(text, "| {} |", cell(&device.label()));
        for level in &device.levels {
            let told = match level.holding {
                Holding::Holds => "holds",
                Holding::Lacks => "no",
                Holding::Unknown => "not known",
            };
            let _ = write!(text, " {told} |");
        }
        text.push('\n');
    }
    text.push('\n');
}

fn expected(text: &mut String, device: &DeviceReport) {
    let cases: Vec<_> = device
        .cases
        .iter()
        .filter(|case| case.status.is_bad() || case.status == Status::ExpectedFail)
        .collect();
    if cases.is_empty() {
        return;
    }
    let _ = writeln!(text, "On {}:\n\n| case | status | why |\n|---|---|---|", cell(&device.label()));
    for case in cases {
        let known = case.expected.as_ref().map(|expected| expected.reason.as_str());
        let why = known.or(case.reason.as_deref()).unwrap_or_default();
        let _ = writeln!(text, "| `{}` | {} | {} |", cell(&case.name), case.status, cell(why));
    }
    text.push('\n');
}

/// Text within a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
