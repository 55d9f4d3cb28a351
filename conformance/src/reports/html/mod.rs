//! The form of reports that people read: one HTML page that needs nothing but itself.

mod bench;
mod cases;
mod lacks;
mod matrix;
mod parts;
mod plot;
mod times;

use std::fmt::Write as _;

use anyhow::Result;
use halite_tools::html;

use super::{DeviceReport, Holding, LevelReport, RunReport};
use bench::Bench;
use parts::{bar, escaped};

/// What a page shows beside the report.
#[derive(Debug, Default)]
pub struct Page {
    benches: Vec<Bench>,
}

impl Page {
    /// Adds measurements, the JSON of `bench kernels --json`.
    ///
    /// # Errors
    /// The text is something else.
    pub fn add_bench(&mut self, text: &str) -> Result<()> {
        self.benches.push(Bench::parse(text)?);
        Ok(())
    }
}

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// The page of a report: one device, or several side by side.
pub fn html(report: &RunReport, page: &Page) -> String {
    let title = match &report.devices[..] {
        [only] => format!("Conformance of {}", only.label()),
        all => format!("Conformance of {} devices", all.len()),
    };
    let mut text = html::begin(&title, STYLE);
    // Writing to a string does not fail.
    let (name, version) = (escaped(&report.tool.name), escaped(&report.tool.version));
    let _ = writeln!(text, "<p class=\"soft\">Halite, {name} {version}. {}</p>", total(report));
    text.push_str(
        "<nav><a href=\"#suites\">Suites</a><a href=\"#cases\">Failures</a><a href=\"#levels\">Levels</a>\
         <a href=\"#lacks\">Skipped</a><a href=\"#times\">Times</a>",
    );
    if !page.benches.is_empty() {
        text.push_str("<a href=\"#kernels\">Kernels</a>");
    }
    text.push_str("<a href=\"#facts\">Devices</a></nav>\n<div class=\"cards\">\n");
    report.devices.iter().for_each(|device| card(&mut text, device));
    text.push_str("</div>\n");
    matrix::section(&mut text, report);
    cases::section(&mut text, report);
    levels(&mut text, report);
    lacks::section(&mut text, report);
    times::section(&mut text, report);
    bench::section(&mut text, &page.benches);
    facts(&mut text, report);
    text.push_str(&html::end(SCRIPT));
    text
}

fn total(report: &RunReport) -> String {
    let (mut all, mut bad) = (0, 0);
    for device in &report.devices {
        all += device.counts.all();
        bad += device.counts.bad();
    }
    match bad {
        0 => format!("{all} results, none unexpected."),
        bad => format!("{all} results, {bad} unexpected."),
    }
}

fn card(text: &mut String, device: &DeviceReport) {
    let (counts, bad) = (&device.counts, device.counts.bad());
    let class = if bad > 0 { "card bad" } else { "card" };
    let verdict = match bad {
        0 => "as expected".to_owned(),
        bad => format!("{bad} unexpected"),
    };
    let _ = write!(
        text,
        "<div class=\"{class}\"><h3>{}</h3><div class=\"small soft\">{}</div><div class=\"big\">{verdict}</div>",
        escaped(&device.label()),
        escaped(&subtitle(device)),
    );
    bar(text, counts);
    let _ = write!(text, "<div class=\"small\">{}</div>", escaped(&counts.to_string()));
    let held: Vec<_> = device.levels.iter().filter(|level| level.holding == Holding::Holds).collect();
    if !held.is_empty() {
        text.push_str("<div>");
        for level in held {
            let _ = write!(text, "<span class=\"chip pass\">&#10003; {}</span>", escaped(&level.name));
        }
        text.push_str("</div>");
    }
    text.push_str("</div>\n");
}

/// Driver, target and validation of a device, in a line.
fn subtitle(device: &DeviceReport) -> String {
    let mut parts = vec![device.device.driver.clone()];
    parts.extend(device.device.target.clone());
    parts.extend(device.validation.as_ref().map(|parts| format!("validation: {parts}")));
    if device.host.debug_build {
        parts.push("debug build".to_owned());
    }
    parts.join(" \u{b7} ")
}

fn levels(text: &mut String, report: &RunReport) {
    text.push_str(
        "<h2 id=\"levels\">Levels</h2>\n<p class=\"soft small\">A level is a list of cases that must pass.</p>\
         <div class=\"scroll\"><table><thead><tr><th>device</th><th>level</th><th>holds</th><th class=\"n\">passed</th>\
         <th>why not</th></tr></thead><tbody>\n",
    );
    for device in &report.devices {
        device.levels.iter().for_each(|level| level_row(text, device, level));
    }
    text.push_str("</tbody></table></div>\n");
}

fn level_row(text: &mut String, device: &DeviceReport, level: &LevelReport) {
    let (class, told) = match level.holding {
        Holding::Holds => ("pass", "&#10003; holds"),
        Holding::Lacks => ("none", "no"),
        Holding::Unknown => ("none", "not known"),
    };
    let why: Vec<_> = level.why.iter().map(|why| format!("<div>{}</div>", escaped(why))).collect();
    let _ = writeln!(
        text,
        "<tr><td>{}</td><td>{}</td><td><span class=\"chip {class}\">{told}</span></td>\
         <td class=\"n\">{} of {}</td><td class=\"small\">{}</td></tr>",
        escaped(&device.label()),
        escaped(&level.name),
        level.passed,
        level.cases,
        why.concat()
    );
}

fn facts(text: &mut String, report: &RunReport) {
    text.push_str("<h2 id=\"facts\">Devices</h2>\n");
    for device in &report.devices {
        let _ = write!(text, "<h3>{}</h3>\n<div class=\"facts\">", escaped(&device.label()));
        let host = &device.host;
        let mut rows = vec![
            ("uri".to_owned(), device.device.uri.clone()),
            ("executable formats".to_owned(), device.device.executable_formats.join(", ")),
            ("host".to_owned(), format!("{} {}, {} processors", host.os, host.arch, host.cpus)),
            ("flags".to_owned(), device.flags.join(" ")),
        ];
        rows.extend(
            device.device.properties.iter().map(|(name, value)| (name.replace('_', " "), value.clone())),
        );
        for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
            let _ = write!(text, "<div><b>{}</b> <code>{}</code></div>", escaped(name), escaped(value));
        }
        text.push_str("</div>\n");
        for suite in &device.suites {
            for why in &suite.left_out {
                let _ = writeln!(
                    text,
                    "<p class=\"small soft\">Left out of {}: {}.</p>",
                    suite.name,
                    escaped(why)
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use halite_testing::Numbers;

    use super::*;
    use crate::reports::{
        CaseReport, Counts, DeviceFacts, Expected, Host, SCHEMA, Selection, Status, SuiteReport, Tool,
    };

    fn case(name: &str, status: Status, reason: Option<&str>) -> CaseReport {
        CaseReport {
            name: name.to_owned(),
            status,
            seconds: 0.25,
            tags: Vec::new(),
            reason: reason.map(str::to_owned),
            numbers: None,
            expected: None,
        }
    }

    fn device(name: &str, cases: Vec<CaseReport>) -> DeviceReport {
        let facts = DeviceFacts {
            uri: "vulkan://GPU-1".to_owned(),
            name: name.to_owned(),
            driver: "vulkan".to_owned(),
            ..DeviceFacts::default()
        };
        let suite =
            |name: &str| SuiteReport { name: name.to_owned(), offered: 1, selected: 1, left_out: Vec::new() };
        DeviceReport {
            device: facts,
            host: Host::this(),
            flags: vec!["--device=vulkan".to_owned()],
            validation: None,
            selection: Selection::default(),
            started: 0,
            seconds: 1.0,
            counts: Counts::of(&cases),
            suites: vec![suite("hal"), suite("kernels")],
            levels: Vec::new(),
            unused_expectations: Vec::new(),
            cases,
        }
    }

    fn page(devices: Vec<DeviceReport>) -> String {
        let report = RunReport { schema: SCHEMA.to_owned(), tool: Tool::this(), devices };
        html(&report, &Page::default())
    }

    #[test]
    fn failures_come_with_numbers_and_the_command_that_repeats_them() {
        let mut wrong = case("kernels.matmul.f32.x:m=1;n=2", Status::Fail, Some("out[3] is wrong"));
        wrong.numbers = Some(Numbers {
            output: "out".to_owned(),
            shape: "1x2xf32".to_owned(),
            index: vec![0, 1],
            expected: "1.5".to_owned(),
            got: "NaN".to_owned(),
            ulp: Some("12.00".to_owned()),
            tolerance: "1e-3".to_owned(),
            wrong: 1,
            of: 2,
        });
        let mut known = case("hal.file.read", Status::ExpectedFail, Some("it fails"));
        let link = Some("https://example.org/7".to_owned());
        known.expected =
            Some(Expected { kind: "xfail".to_owned(), reason: "a known fault".to_owned(), link });
        let text = page(vec![
            device("A", vec![wrong, known]),
            device("B", vec![case("hal.a.b", Status::Pass, None)]),
        ]);
        for told in [
            "[0, 1] of 1x2xf32",
            "<dd>12.00 ULP</dd>",
            "<dd>1.5</dd>",
            "<dd>NaN</dd>",
            "conformance run --device=vulkan --suite=kernels &#39;--case=kernels.matmul.f32.x:m=1;n=2&#39;",
            "Known: a known fault (<a href=\"https://example.org/7\">",
            "Conformance of 2 devices",
            "3 results, 1 unexpected.",
        ] {
            assert!(text.contains(told), "{told}");
        }
        // What is unexpected stands before what is known.
        assert!(text.find("kernels.matmul.f32.x:m") < text.find("hal.file.read"));
    }

    #[test]
    fn pages_need_nothing_else_and_are_not_broken_by_what_drivers_say() {
        let evil = "</script><script>alert(1)</script>\"'&<img src=x>";
        let cases =
            vec![case("hal.a.b", Status::Fail, Some(evil)), case("hal.a.c", Status::Skip, Some(evil))];
        let text = page(vec![device(evil, cases)]);
        assert_eq!((text.matches("<script>").count(), text.matches("</script>").count()), (1, 1));
        assert!(!text.contains("<img") && !text.contains("src=\"") && !text.contains("@import"));
        assert!(!text.contains("http://") && !text.contains("https://"));
        assert!(text.ends_with("</body></html>\n"));
    }

    #[test]
    fn a_device_without_failures_and_skips_says_so() {
        let text = page(vec![device("A", vec![case("hal.a.b", Status::Pass, None)])]);
        assert!(text.contains("There are none.") && text.contains("No case was skipped."));
        assert!(text.contains("1 results, none unexpected."));
    }
}
