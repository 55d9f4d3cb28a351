//! The data of a report; its serialized form is the JSON report.

use std::{collections::BTreeMap, fmt};

use halite_hal::{DeviceInfo, DeviceKind};
use halite_testing::Numbers;
use serde::{Deserialize, Serialize};

use super::LevelReport;

/// The value of `schema` in reports that this version writes and reads.
pub const SCHEMA: &str = "halite-conformance/1";

/// What came of a run, on one device or several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// [`SCHEMA`].
    pub schema: String,
    /// What wrote it.
    pub tool: Tool,
    /// Devices, each with its cases.
    pub devices: Vec<DeviceReport>,
}

/// The program that ran the cases.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// `conformance`.
    pub name: String,
    /// Its version.
    pub version: String,
}

impl Tool {
    /// This program.
    pub fn this() -> Self {
        Tool { name: "conformance".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() }
    }
}

/// The machine that a device is in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Operating system, as Rust names it.
    pub os: String,
    /// Architecture, as Rust names it.
    pub arch: String,
    /// Processors that the program may use.
    pub cpus: usize,
    /// Whether the program was built without optimization; times mean little then.
    pub debug_build: bool,
}

impl Host {
    /// This machine.
    pub fn this() -> Self {
        Host {
            os: std::env::consts::OS.to_owned(),
            arch: std::env::consts::ARCH.to_owned(),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            debug_build: cfg!(debug_assertions),
        }
    }
}

/// What is known of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceFacts {
    /// URI that opens it.
    pub uri: String,
    /// Name for people.
    pub name: String,
    /// Its driver's name.
    pub driver: String,
    /// Kind of hardware.
    pub kind: DeviceKind,
    /// Target triple, if one fits.
    pub target: Option<String>,
    /// Formats of executables that it takes.
    pub executable_formats: Vec<String>,
    /// Facts in display order, as names and values.
    pub properties: Vec<(String, String)>,
}

impl From<&DeviceInfo> for DeviceFacts {
    fn from(info: &DeviceInfo) -> Self {
        DeviceFacts {
            uri: info.uri(),
            name: info.name.clone(),
            driver: info.driver.clone(),
            kind: info.kind,
            target: info.target.clone(),
            executable_formats: info.executable_formats.clone(),
            properties: info.properties.clone(),
        }
    }
}

/// What was chosen of all cases.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection {
    /// Only cases that one of these patterns fits; all for none.
    pub filter: Vec<String>,
    /// Only every n-th case from the i-th on, as `i/n`.
    pub shard: Option<String>,
}

/// What a suite had for a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuiteReport {
    /// Its name.
    pub name: String,
    /// Number of its cases, whether chosen or not.
    pub offered: usize,
    /// Number of its cases that were chosen.
    pub selected: usize,
    /// What it would have had but for something that is missing.
    pub left_out: Vec<String>,
}

/// What came of a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceReport {
    /// The device.
    pub device: DeviceFacts,
    /// The machine that it is in.
    pub host: Host,
    /// Flags that name the device and the settings: with `--filter`, they repeat a case.
    pub flags: Vec<String>,
    /// Parts of the validation layer that cases ran under, if any.
    pub validation: Option<String>,
    /// What was chosen.
    pub selection: Selection,
    /// Begin of the run, in seconds since 1970 (UTC).
    pub started: u64,
    /// Time that the run took, in seconds.
    pub seconds: f64,
    /// Cases by status.
    pub counts: Counts,
    /// The suites that were asked for.
    pub suites: Vec<SuiteReport>,
    /// The levels, and which of them the device holds.
    pub levels: Vec<LevelReport>,
    /// Expectations about none of the cases, as they stand in the file.
    #[serde(default)]
    pub unused_expectations: Vec<String>,
    /// Every case that was chosen, in the order of the suites.
    pub cases: Vec<CaseReport>,
}

impl DeviceReport {
    /// Whether nothing happened that should not.
    pub fn is_good(&self) -> bool {
        self.cases.iter().all(|case| !case.status.is_bad())
    }

    /// Its name for people. Several drivers may have the same processor, so theirs is told too.
    pub fn label(&self) -> String {
        match self.device.driver.as_str() {
            "vulkan" => self.device.name.clone(),
            driver => format!("{} ({driver})", self.device.name),
        }
    }

    /// The command line that runs a case again.
    pub fn repeat(&self, case: &CaseReport) -> String {
        let mut words = vec!["conformance".to_owned(), "run".to_owned()];
        words.extend(self.flags.iter().map(|flag| quoted(flag)));
        words.push(format!("--suite={}", case.suite()));
        words.push(quoted(&format!("--case={}", case.name)));
        words.join(" ")
    }
}

/// A word as shells take it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,+@%".contains(c);
    if word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// How a case ended, beside what was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// It holds.
    Pass,
    /// The device lacks what it is about.
    Skip,
    /// It does not hold, as is known.
    ExpectedFail,
    /// It does not hold.
    Fail,
    /// It kills the process.
    Crash,
    /// It does not end.
    Timeout,
    /// It holds although it is expected not to.
    SurprisePass,
}

impl Status {
    /// All of them.
    pub const ALL: [Status; 7] = [
        Status::Pass,
        Status::Skip,
        Status::ExpectedFail,
        Status::Fail,
        Status::Crash,
        Status::Timeout,
        Status::SurprisePass,
    ];

    /// As in reports.
    pub fn name(self) -> &'static str {
        match self {
            Status::Pass => "pass",
            Status::Skip => "skip",
            Status::ExpectedFail => "expected-fail",
            Status::Fail => "fail",
            Status::Crash => "crash",
            Status::Timeout => "timeout",
            Status::SurprisePass => "surprise-pass",
        }
    }

    /// Whether it fails the run.
    pub fn is_bad(self) -> bool {
        matches!(self, Status::Fail | Status::Crash | Status::Timeout | Status::SurprisePass)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The line of the expectations that a case's status comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expected {
    /// `unsupported` or `xfail`.
    pub kind: String,
    /// Why.
    pub reason: String,
    /// Where more is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
}

/// One case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaseReport {
    /// `suite.area.case:parameter=value;…`.
    pub name: String,
    /// How it ended.
    pub status: Status,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// What it is about beyond its name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Why it is no pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The first wrong element, if a result was wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numbers: Option<Numbers>,
    /// What was expected of it other than a pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<Expected>,
}

impl CaseReport {
    /// The suite that it is of.
    pub fn suite(&self) -> &str {
        self.name.split('.').next().unwrap_or_default()
    }

    /// Suite and area: `hal.memory`.
    pub fn area(&self) -> &str {
        let path = self.name.split(':').next().unwrap_or_default();
        let end = path.match_indices('.').nth(1).map_or(path.len(), |(at, _)| at);
        &path[..end]
    }
}

/// Number of cases of each status; a status that no case has may be absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Counts(BTreeMap<Status, usize>);

impl Counts {
    /// Counts cases.
    pub fn of<'a>(cases: impl IntoIterator<Item = &'a CaseReport>) -> Self {
        let mut counts = Counts::default();
        cases.into_iter().for_each(|case| *counts.0.entry(case.status).or_default() += 1);
        counts
    }

    /// Cases of a status.
    pub fn get(&self, status: Status) -> usize {
        self.0.get(&status).copied().unwrap_or(0)
    }

    /// All cases.
    pub fn all(&self) -> usize {
        self.0.values().sum()
    }

    /// Cases that fail the run.
    pub fn bad(&self) -> usize {
        self.0.iter().filter(|(status, _)| status.is_bad()).map(|(_, n)| n).sum()
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cases", self.all())?;
        let told =
            Status::ALL.into_iter().filter(|s| self.get(*s) > 0 || matches!(s, Status::Pass | Status::Fail));
        for (i, status) in told.enumerate() {
            write!(f, "{} {} {status}", if i == 0 { ":" } else { "," }, self.get(status))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_and_words() {
        let case = |name: &str| CaseReport {
            name: name.to_owned(),
            status: Status::Pass,
            seconds: 0.0,
            tags: Vec::new(),
            reason: None,
            numbers: None,
            expected: None,
        };
        assert_eq!(case("kernels.matmul.f32.wide64:m=1.5").area(), "kernels.matmul");
        assert_eq!(case("hal.memory:a.b.c").area(), "hal.memory");
        assert_eq!(case("vm.add").suite(), "vm");
        assert_eq!(quoted("--case=a b;c"), "'--case=a b;c'");
        assert_eq!(quoted("--device=vulkan://GPU-1?x=y"), "'--device=vulkan://GPU-1?x=y'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        let counts = Counts::of(&[case("a.b.c"), case("a.b.d")]);
        assert_eq!(counts.to_string(), "2 cases: 2 pass, 0 fail");
    }
}
