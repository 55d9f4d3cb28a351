//! What took how long: suites of each device, and the slowest cases.

use std::fmt::Write as _;

use super::{
    parts::{escaped, time},
    plot,
};
use crate::reports::RunReport;

/// Slowest cases of a device that are shown.
const SLOWEST: usize = 8;

pub fn section(text: &mut String, report: &RunReport) {
    text.push_str(
        "<h2 id=\"times\">Times</h2>\n<p class=\"soft small\">Sums over the cases; with several processes a run takes \
         less.</p>\n",
    );
    let mut bars = Vec::new();
    for device in &report.devices {
        for suite in device.suites.iter().filter(|suite| suite.selected > 0) {
            let cases = device.cases.iter().filter(|case| case.suite() == suite.name);
            let seconds = cases.map(|case| case.seconds).sum();
            bars.push((format!("{} \u{b7} {}", device.label(), suite.name), seconds, time(seconds)));
        }
    }
    plot::bars(text, &bars);
    text.push_str(
        "<details><summary>slowest cases</summary><div class=\"scroll\"><table><thead><tr><th>device</th><th>case</th>\
         <th class=\"n\">time</th></tr></thead><tbody>\n",
    );
    for device in &report.devices {
        let mut cases: Vec<_> = device.cases.iter().collect();
        cases.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        for case in cases.iter().take(SLOWEST) {
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "<tr><td>{}</td><td><code>{}</code></td><td class=\"n\">{}</td></tr>",
                escaped(&device.label()),
                escaped(&case.name),
                time(case.seconds)
            );
        }
    }
    text.push_str("</tbody></table></div></details>\n");
}
