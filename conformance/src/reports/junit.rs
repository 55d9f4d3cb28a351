//! The form of reports that build servers read: JUnit's XML.

use std::fmt::Write as _;

use halite_tools::html;

use super::{CaseReport, DeviceReport, RunReport, Status};

/// A report as JUnit XML: a suite for each device and suite, a case for each case. Crashes and hangs are errors, everything
/// else that fails the run is a failure, and known failures count as skipped.
pub fn junit(report: &RunReport) -> String {
    let mut text =
        String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"conformance\">\n");
    for device in &report.devices {
        for suite in &device.suites {
            let cases: Vec<_> = device.cases.iter().filter(|case| case.suite() == suite.name).collect();
            suite_of(&mut text, device, &suite.name, &cases);
        }
    }
    text.push_str("</testsuites>\n");
    text
}

fn suite_of(text: &mut String, device: &DeviceReport, suite: &str, cases: &[&CaseReport]) {
    let count = |list: &[Status]| cases.iter().filter(|case| list.contains(&case.status)).count();
    let seconds: f64 = cases.iter().map(|case| case.seconds).sum();
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "  <testsuite name=\"{}\" package=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{seconds:.3}\">",
        escaped(&format!("{suite} on {}", device.label())),
        escaped(&device.device.uri),
        cases.len(),
        count(&[Status::Fail, Status::SurprisePass]),
        count(&[Status::Crash, Status::Timeout]),
        count(&[Status::Skip, Status::ExpectedFail]),
    );
    for case in cases {
        case_of(text, device, case);
    }
    text.push_str("  </testsuite>\n");
}

fn case_of(text: &mut String, device: &DeviceReport, case: &CaseReport) {
    let (name, class) = (escaped(&case.name), escaped(case.area()));
    let _ = write!(text, "    <testcase name=\"{name}\" classname=\"{class}\" time=\"{:.6}\"", case.seconds);
    let reason = escaped(case.reason.as_deref().unwrap_or_default());
    let element = match case.status {
        Status::Pass => {
            text.push_str("/>\n");
            return;
        }
        Status::Skip | Status::ExpectedFail => {
            let _ = writeln!(text, "><skipped message=\"{reason}\"/></testcase>");
            return;
        }
        Status::Fail | Status::SurprisePass => "failure",
        Status::Crash | Status::Timeout => "error",
    };
    let repeat = escaped(&device.repeat(case));
    let status = case.status;
    let _ = writeln!(
        text,
        "><{element} type=\"{status}\" message=\"{reason}\">{reason}&#10;{repeat}</{element}></testcase>"
    );
}

/// Text for elements and attributes, whose lines and tabs stay.
fn escaped(text: &str) -> String {
    html::escaped(text).replace('\n', "&#10;").replace('\t', "&#9;")
}
