//! Joining reports: parts of a run on one device become one, several devices stand side by side.

use std::collections::BTreeMap;

use super::{Counts, DeviceReport, Holding, Level, LevelReport, RunReport, SCHEMA, Tool};

/// Joins reports. Cases of one device (the same URI, name and validation) become one list, in which a later result of a case
/// replaces an earlier one; devices stay in the order in which they first come. Levels are judged anew, so that all devices are
/// held against the same lists.
pub fn merge(reports: Vec<RunReport>) -> RunReport {
    let mut devices: Vec<DeviceReport> = Vec::new();
    for device in reports.into_iter().flat_map(|report| report.devices) {
        let key = |d: &DeviceReport| (d.device.uri.clone(), d.device.name.clone(), d.validation.clone());
        match devices.iter_mut().find(|known| key(known) == key(&device)) {
            Some(known) => join(known, device),
            None => devices.push(device),
        }
    }
    devices.iter_mut().for_each(|device| device.levels = levels(device));
    RunReport { schema: SCHEMA.to_owned(), tool: Tool::this(), devices }
}

fn join(known: &mut DeviceReport, other: DeviceReport) {
    let mut places: BTreeMap<String, usize> =
        known.cases.iter().enumerate().map(|(index, case)| (case.name.clone(), index)).collect();
    for case in other.cases {
        match places.get(&case.name) {
            Some(index) => known.cases[*index] = case,
            None => {
                places.insert(case.name.clone(), known.cases.len());
                known.cases.push(case);
            }
        }
    }
    for suite in other.suites {
        match known.suites.iter_mut().find(|s| s.name == suite.name) {
            Some(same) => {
                same.offered = same.offered.max(suite.offered);
                let left_out = suite.left_out.into_iter().filter(|why| !same.left_out.contains(why));
                let left_out: Vec<_> = left_out.collect();
                same.left_out.extend(left_out);
            }
            None => known.suites.push(suite),
        }
    }
    for suite in &mut known.suites {
        suite.selected = known.cases.iter().filter(|case| case.suite() == suite.name).count();
    }
    known.started = known.started.min(other.started);
    known.seconds += other.seconds;
    known.selection = Default::default();
    known.unused_expectations.retain(|line| other.unused_expectations.contains(line));
    known.counts = Counts::of(&known.cases);
}

/// The levels by the cases of a device. A case that was not run is known by number only.
fn levels(device: &DeviceReport) -> Vec<LevelReport> {
    let tags: Vec<Vec<&str>> =
        device.cases.iter().map(|case| case.tags.iter().map(String::as_str).collect()).collect();
    let offered: Vec<(&str, &[&str])> =
        device.cases.iter().zip(&tags).map(|(case, tags)| (case.name.as_str(), &tags[..])).collect();
    let suites: Vec<&str> = device.suites.iter().map(|suite| suite.name.as_str()).collect();
    let ran = |name: &str| device.cases.iter().filter(|case| case.suite() == name).count();
    let whole = device.suites.iter().all(|suite| ran(&suite.name) >= suite.offered);
    let judged = Level::built_in().into_iter().map(|level| level.judge(&suites, &offered, &device.cases));
    judged
        .map(|mut level| {
            if !whole && level.holding == Holding::Holds {
                level.holding = Holding::Unknown;
                level.why.push("not all cases were run".to_owned());
            }
            level
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reports::{CaseReport, Host, Status, SuiteReport};

    fn part(names: &[&str], status: Status) -> RunReport {
        let case = |name: &&str| CaseReport {
            name: (*name).to_owned(),
            status,
            seconds: 1.0,
            tags: vec!["coopmat".to_owned()],
            reason: None,
            numbers: None,
            expected: None,
        };
        let cases: Vec<_> = names.iter().map(case).collect();
        let suite = SuiteReport { name: "kernels".to_owned(), offered: 3, selected: 3, left_out: Vec::new() };
        let device = DeviceReport {
            device: Default::default(),
            host: Host::default(),
            flags: Vec::new(),
            validation: None,
            selection: Default::default(),
            started: 7,
            seconds: 1.0,
            counts: Counts::of(&cases),
            suites: vec![suite],
            levels: Vec::new(),
            unused_expectations: Vec::new(),
            cases,
        };
        RunReport { schema: SCHEMA.to_owned(), tool: Tool::this(), devices: vec![device] }
    }

    /// Whether the device holds the level that is about these cases.
    fn holding(report: &RunReport) -> Holding {
        let levels = &report.devices[0].levels;
        levels.iter().find(|level| level.name == "coopmat").expect("there is such a level").holding
    }

    #[test]
    fn levels_are_known_when_all_cases_are_there_and_later_results_count() {
        let one = || part(&["kernels.a.b:n=1", "kernels.a.b:n=2"], Status::Pass);
        assert_eq!(holding(&merge(vec![one()])), Holding::Unknown);
        let all = merge(vec![one(), part(&["kernels.a.b:n=3"], Status::Pass)]);
        assert_eq!((all.devices.len(), all.devices[0].cases.len(), holding(&all)), (1, 3, Holding::Holds));
        let again = merge(vec![all, part(&["kernels.a.b:n=2"], Status::Fail)]);
        assert_eq!((again.devices[0].counts.get(Status::Fail), again.devices[0].cases.len()), (1, 3));
        assert_eq!(holding(&again), Holding::Lacks);
    }
}
