//! Small parts of pages: marks of a status, bars, times.

use std::fmt::Write as _;

pub(super) use halite_tools::html::escaped;

use crate::reports::{Counts, Status};

/// A status as a coloured word.
pub(super) fn chip(status: Status) -> String {
    let class = match status {
        Status::Pass => "pass",
        Status::Skip => "skip",
        Status::ExpectedFail => "known",
        Status::Fail | Status::Crash | Status::Timeout | Status::SurprisePass => "wrong",
    };
    format!("<span class=\"chip {class}\">{status}</span>")
}

/// Counts as a bar.
pub(super) fn bar(text: &mut String, counts: &Counts) {
    let all = counts.all().max(1) as f64;
    let parts = [
        ("pass", counts.get(Status::Pass)),
        ("known", counts.get(Status::ExpectedFail)),
        ("wrong", counts.bad()),
        ("skip", counts.get(Status::Skip)),
    ];
    text.push_str("<div class=\"bar\">");
    for (class, count) in parts.into_iter().filter(|(_, count)| *count > 0) {
        // What there is must be seen.
        let share = (100.0 * count as f64 / all).max(1.0);
        let _ = write!(text, "<i class=\"{class}\" style=\"width:{share:.2}%\"></i>");
    }
    text.push_str("</div>");
}

/// A time for people.
pub(super) fn time(seconds: f64) -> String {
    match seconds {
        s if s >= 60.0 => format!("{:.0}:{:02.0} min", (s / 60.0).floor(), (s % 60.0).floor()),
        s if s >= 1.0 => format!("{s:.1} s"),
        s => format!("{:.1} ms", s * 1e3),
    }
}
