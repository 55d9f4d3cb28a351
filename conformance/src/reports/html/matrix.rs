//! The table of suites and their areas, one column for each device.

use std::{collections::BTreeMap, fmt::Write as _};

use super::parts::{bar, escaped};
use crate::reports::{CaseReport, Counts, DeviceReport, RunReport, Status};

/// Suites in the order in which they were run, with their areas by name.
fn areas(report: &RunReport) -> Vec<(String, Vec<String>)> {
    let mut suites: Vec<(String, BTreeMap<String, ()>)> = Vec::new();
    for device in &report.devices {
        for suite in &device.suites {
            if !suites.iter().any(|(name, _)| *name == suite.name) {
                suites.push((suite.name.clone(), BTreeMap::new()));
            }
        }
        for case in &device.cases {
            if let Some((_, areas)) = suites.iter_mut().find(|(name, _)| name == case.suite()) {
                areas.insert(case.area().to_owned(), ());
            }
        }
    }
    suites.into_iter().map(|(name, areas)| (name, areas.into_keys().collect())).collect()
}

/// Cases of each device by suite and by area.
fn counted(device: &DeviceReport) -> BTreeMap<&str, Vec<&CaseReport>> {
    let mut counted: BTreeMap<&str, Vec<&CaseReport>> = BTreeMap::new();
    for case in &device.cases {
        counted.entry(case.suite()).or_default().push(case);
        counted.entry(case.area()).or_default().push(case);
    }
    counted
}

pub fn section(text: &mut String, report: &RunReport) {
    text.push_str(
        "<h2 id=\"suites\">Suites</h2>\n<p class=\"legend\"><span><i class=\"pass\"></i>pass</span>\
         <span><i class=\"known\"></i>expected to fail</span><span><i class=\"wrong\"></i>unexpected</span>\
         <span><i class=\"skip\"></i>skipped: the device lacks something</span></p>\n\
         <div class=\"scroll\"><table class=\"matrix\"><thead><tr><th>area</th>",
    );
    // Writing to a string does not fail.
    for device in &report.devices {
        let _ = write!(text, "<th>{}</th>", escaped(&device.label()));
    }
    text.push_str("</tr></thead>\n");
    let counted: Vec<_> = report.devices.iter().map(counted).collect();
    let row = |text: &mut String, key: &str, shown: &str, element: &str| {
        let _ = write!(text, "<{element}>{}</{element}>", escaped(shown));
        for device in &counted {
            text.push_str("<td>");
            match device.get(key) {
                Some(cases) => cell(text, &Counts::of(cases.iter().copied())),
                None => text.push_str("<span class=\"soft small\">no cases</span>"),
            }
            text.push_str("</td>");
        }
        text.push_str("</tr>\n");
    };
    for (suite, areas) in areas(report) {
        text.push_str("<tbody><tr class=\"suite\">");
        row(text, &suite, &suite, "th");
        for area in areas {
            text.push_str("<tr class=\"area\">");
            row(text, &area, area.rsplit('.').next().unwrap_or(&area), "td");
        }
        text.push_str("</tbody>\n");
    }
    text.push_str("</table></div>\n");
}

fn cell(text: &mut String, counts: &Counts) {
    let _ = write!(
        text,
        "<div class=\"cell\"><span class=\"small\">{} of {}",
        counts.get(Status::Pass),
        counts.all()
    );
    if counts.bad() > 0 {
        let _ = write!(text, "<br><b>{} unexpected</b>", counts.bad());
    }
    text.push_str("</span>");
    bar(text, counts);
    text.push_str("</div>");
}
