//! The table of cases that did not pass and were not skipped: how to repeat them, and their numbers.

use std::fmt::Write as _;

use halite_testing::Numbers;

use super::parts::{chip, escaped, time};
use crate::reports::{CaseReport, DeviceReport, RunReport, Status};

/// Most rows of a page: a device on which all fails must not make a page that no browser opens.
const MOST: usize = 3000;

pub fn section(text: &mut String, report: &RunReport) {
    text.push_str("<h2 id=\"cases\">Failures</h2>\n");
    let told = |case: &CaseReport| case.status.is_bad() || case.status == Status::ExpectedFail;
    let mut rows: Vec<(&DeviceReport, &CaseReport)> = report
        .devices
        .iter()
        .flat_map(|device| device.cases.iter().filter(|case| told(case)).map(move |case| (device, case)))
        .collect();
    if rows.is_empty() {
        text.push_str("<p>There are none.</p>\n");
        return;
    }
    // What is unexpected comes first.
    rows.sort_by_key(|(_, case)| !case.status.is_bad());
    controls(text, report);
    text.push_str(
        "<div class=\"scroll\"><table class=\"cases\"><thead><tr><th>status</th><th>case</th><th>what happened</th></tr></thead>\
         <tbody id=\"case-rows\">\n",
    );
    rows.iter().take(MOST).for_each(|(device, case)| row(text, device, case));
    text.push_str("</tbody></table></div>\n");
    // Writing to a string does not fail.
    if rows.len() > MOST {
        let _ = writeln!(text, "<p>{} more are in the JSON report.</p>", rows.len() - MOST);
    }
}

fn controls(text: &mut String, report: &RunReport) {
    text.push_str(
        "<div class=\"tools\"><input id=\"case-text\" type=\"search\" placeholder=\"words in a row\" \
         aria-label=\"words in a row\"><select id=\"case-status\" aria-label=\"status\">\
         <option value=\"\">every status</option>",
    );
    for status in Status::ALL.into_iter().filter(|s| !matches!(s, Status::Pass | Status::Skip)) {
        let _ = write!(text, "<option>{status}</option>");
    }
    text.push_str(
        "</select><select id=\"case-device\" aria-label=\"device\"><option value=\"\">every device</option>",
    );
    for device in &report.devices {
        let name = escaped(&device.label());
        let _ = write!(text, "<option>{name}</option>");
    }
    text.push_str("</select><span id=\"case-count\" class=\"small soft\"></span></div>\n");
}

fn row(text: &mut String, device: &DeviceReport, case: &CaseReport) {
    let name = escaped(&device.label());
    let _ = write!(
        text,
        "<tr data-status=\"{}\" data-device=\"{name}\"><td>{}</td><td><code>{}</code>\
         <div class=\"small soft\">{name}, {}</div></td><td>",
        case.status,
        chip(case.status),
        escaped(&case.name),
        time(case.seconds),
    );
    if let Some(expected) = &case.expected {
        let _ = write!(text, "<div class=\"small\">Known: {}", escaped(&expected.reason));
        if let Some(link) = expected.link.as_ref().filter(|link| link.starts_with("https://")) {
            let link = escaped(link);
            let _ = write!(text, " (<a href=\"{link}\">{link}</a>)");
        }
        text.push_str("</div>");
    }
    match &case.numbers {
        Some(numbers) => table(text, numbers),
        None => {
            let reason = escaped(case.reason.as_deref().unwrap_or_default());
            let _ = write!(text, "<div class=\"small\">{reason}</div>");
        }
    }
    let repeat = escaped(&device.repeat(case));
    let _ = writeln!(text, "<details><summary>repeat</summary><code>{repeat}</code></details></td></tr>");
}

fn table(text: &mut String, numbers: &Numbers) {
    let place: Vec<_> = numbers.index.iter().map(ToString::to_string).collect();
    let mut place = if place.is_empty() { String::new() } else { format!("[{}]", place.join(", ")) };
    if !numbers.shape.is_empty() {
        place = format!("{place} of {}", numbers.shape);
    }
    let mut rows = vec![
        ("where", format!("{} {place}", numbers.output)),
        ("expected", numbers.expected.clone()),
        ("got", numbers.got.clone()),
    ];
    rows.extend(numbers.ulp.iter().map(|ulp| ("off by", format!("{ulp} ULP"))));
    if !numbers.tolerance.is_empty() {
        rows.push(("tolerance", numbers.tolerance.clone()));
    }
    rows.push(("wrong", format!("{} of {}", numbers.wrong, numbers.of)));
    text.push_str("<dl class=\"numbers\">");
    for (name, value) in rows {
        let _ = write!(text, "<dt>{name}</dt><dd>{}</dd>", escaped(&value));
    }
    text.push_str("</dl>");
}
