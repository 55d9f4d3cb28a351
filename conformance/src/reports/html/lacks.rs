//! The table of what devices lack, or the compiler does not support: reasons for which cases were skipped, and how many.

use std::{
    collections::{BTreeMap, HashSet},
    fmt::Write as _,
};

use super::parts::escaped;
use crate::reports::{RunReport, Status};

/// Most reasons of a page.
const MOST: usize = 60;

struct Reason<'a> {
    /// Cases of each device.
    counts: Vec<usize>,
    suites: HashSet<&'a str>,
    /// One of the cases.
    example: &'a str,
}

/// What a case's reason names: each of the things that the device lacks, without how much of it there is.
fn parts(reason: &str) -> Vec<&str> {
    match reason.strip_prefix("the device lacks ") {
        Some(lacks) => lacks.split("; ").map(|part| part.split(':').next().unwrap_or(part)).collect(),
        None => vec![reason],
    }
}

pub fn section(text: &mut String, report: &RunReport) {
    text.push_str("<h2 id=\"lacks\">What was skipped, and why</h2>\n");
    let mut reasons: BTreeMap<&str, Reason<'_>> = BTreeMap::new();
    for (index, device) in report.devices.iter().enumerate() {
        for case in device.cases.iter().filter(|case| case.status == Status::Skip) {
            for part in parts(case.reason.as_deref().unwrap_or_default()) {
                let reason = reasons.entry(part).or_insert_with(|| Reason {
                    counts: vec![0; report.devices.len()],
                    suites: HashSet::new(),
                    example: &case.name,
                });
                reason.counts[index] += 1;
                reason.suites.insert(case.suite());
            }
        }
    }
    if reasons.is_empty() {
        text.push_str("<p>No case was skipped.</p>\n");
        return;
    }
    let mut rows: Vec<_> = reasons.into_iter().collect();
    rows.sort_by_key(|(_, reason)| std::cmp::Reverse(reason.counts.iter().sum::<usize>()));
    text.push_str("<div class=\"scroll\"><table class=\"lacks\"><thead><tr><th>reason</th><th>suite</th>");
    // Writing to a string does not fail.
    for device in &report.devices {
        let _ = write!(text, "<th class=\"n\">{}</th>", escaped(&device.label()));
    }
    text.push_str("</tr></thead><tbody>\n");
    for (why, reason) in rows.iter().take(MOST) {
        let mut suites: Vec<_> = reason.suites.iter().copied().collect();
        suites.sort_unstable();
        let _ = write!(
            text,
            "<tr><td title=\"such as {}\">{}</td><td>{}</td>",
            escaped(reason.example),
            escaped(why),
            suites.join(", ")
        );
        for count in &reason.counts {
            let _ = write!(
                text,
                "<td class=\"n\">{}</td>",
                if *count > 0 { count.to_string() } else { String::new() }
            );
        }
        text.push_str("</tr>\n");
    }
    text.push_str("</tbody></table></div>\n");
    if rows.len() > MOST {
        let _ = writeln!(
            text,
            "<p class=\"soft small\">{} more reasons are in the JSON report.</p>",
            rows.len() - MOST
        );
    }
}
