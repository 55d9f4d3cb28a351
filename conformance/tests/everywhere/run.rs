//! The command `conformance run`: parts, journals, expectations in both directions, reports and exit codes, on devices that
//! are everywhere.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    process::{Command, Output},
};

use halite_conformance::reports::{Holding, RunReport, Status};

fn conformance(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_conformance")).args(arguments).output().unwrap()
}

/// Runs the device suite; its exit code and its report.
fn run(folder: &Path, arguments: &[&str]) -> (i32, RunReport) {
    let json = folder.join("report.json");
    let flag = format!("--json={}", json.display());
    let output = conformance(&[&["run", "--suite=hal", &flag], arguments].concat());
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let text = fs::read_to_string(&json).unwrap_or_else(|e| panic!("{e}: {told}"));
    (output.status.code().unwrap(), serde_json::from_str(&text).unwrap())
}

fn names(report: &RunReport) -> Vec<String> {
    report.devices.iter().flat_map(|device| device.cases.iter().map(|case| case.name.clone())).collect()
}

#[test]
fn parts_are_the_whole_and_processes_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let filter = "--filter=hal.semaphore";
    let (code, whole) = run(folder.path(), &["--device=null", filter]);
    assert_eq!(code, 0);
    let whole: BTreeSet<String> = names(&whole).into_iter().collect();
    let parts = ["--isolate=each", "--jobs=2", "--isolate"];
    let mut joined = Vec::new();
    for (index, manner) in parts.into_iter().enumerate() {
        let shard = format!("--shard={}/3", index + 1);
        let (code, part) = run(folder.path(), &["--device=null", filter, &shard, manner]);
        assert_eq!(code, 0);
        assert!(part.devices[0].cases.iter().all(|case| case.status == Status::Pass));
        joined.extend(names(&part));
    }
    assert_eq!(joined.len(), whole.len());
    assert_eq!(joined.into_iter().collect::<BTreeSet<_>>(), whole);
}

#[test]
fn when_the_time_is_over_no_case_is_begun() {
    let folder = tempfile::tempdir().unwrap();
    for manner in ["--jobs=1", "--jobs=2"] {
        let (code, report) = run(folder.path(), &["--device=null", "--budget=0", manner]);
        let device = &report.devices[0];
        assert_eq!((code, device.cases.len()), (0, 0));
        assert!(device.suites[0].selected > 300);
    }
}

#[test]
fn what_a_journal_knows_is_not_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let resume = format!("--resume={}", journal.display());
    let arguments = ["--device=null", "--device=local-sync", "--filter=hal.transfer.update", &resume];
    let (_, first) = run(folder.path(), &arguments);
    let text = fs::read_to_string(&journal).unwrap();
    // The run was interrupted while it wrote its third result. The second one is made a failure, to tell it from a new one.
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 1 + names(&first).len());
    let second = lines[2].replace(r#""verdict":"pass""#, r#""verdict":"fail","told":"as before""#);
    fs::write(&journal, format!("{}\n{}\n{second}\n{}", lines[0], lines[1], &lines[3][..20])).unwrap();
    let (code, again) = run(folder.path(), &arguments);
    assert_eq!(names(&again), names(&first));
    let reasons: Vec<_> = again.devices[0].cases.iter().filter_map(|case| case.reason.clone()).collect();
    assert_eq!((code, reasons), (1, vec!["as before".to_owned()]));
    assert_eq!(fs::read_to_string(&journal).unwrap().lines().count(), lines.len());
}

#[test]
fn a_case_that_passes_against_the_expectations_fails_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let expectations = folder.path().join("expectations");
    fs::create_dir(&expectations).unwrap();
    let text = "hal.host.* | xfail | nothing of the host works | https://example.org/1\nhal.nowhere.x | xfail | gone\n";
    fs::write(expectations.join("null.txt"), text).unwrap();
    let flag = format!("--expectations={}", expectations.display());
    let (code, report) = run(folder.path(), &["--device=null", "--filter=hal.host", &flag]);
    let device = &report.devices[0];
    assert_eq!((code, device.counts.get(Status::SurprisePass)), (1, device.cases.len()));
    let expected = device.cases[0].expected.as_ref().unwrap();
    assert_eq!((expected.kind.as_str(), expected.link.as_deref()), ("xfail", Some("https://example.org/1")));
    assert_eq!(device.unused_expectations, ["hal.nowhere.x"]);
}

#[test]
fn reports_of_parts_become_that_of_the_whole() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    for part in ["1/2", "2/2"] {
        let name = format!("--json={}", file(&part.replace('/', "_")));
        let output = conformance(&["run", "--suite=hal", "--device=local-sync", "--shard", part, &name]);
        assert_eq!(output.status.code(), Some(0));
    }
    let html = file("joined.html");
    let (json, junit, markdown) = (file("joined.json"), file("joined.xml"), file("joined.md"));
    let flags = [
        format!("--json={json}"),
        format!("--junit={junit}"),
        format!("--markdown={markdown}"),
        format!("--html={html}"),
    ];
    let (one, two) = (file("1_2"), file("2_2"));
    let mut arguments = vec!["report", &one, &two];
    arguments.extend(flags.iter().map(String::as_str));
    let output = conformance(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let joined: RunReport = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    let device = &joined.devices[0];
    assert_eq!((joined.devices.len(), device.cases.len()), (1, device.suites[0].offered));
    // The other suites were not run.
    assert!(device.levels.iter().all(|level| level.holding == Holding::Unknown), "{:?}", device.levels);
    let xml = fs::read_to_string(junit).unwrap();
    assert_eq!(xml.matches("<testcase ").count(), device.cases.len());
    assert!(fs::read_to_string(html).unwrap().ends_with("</html>\n"));
    assert!(fs::read_to_string(markdown).unwrap().contains("| hal | "));
}

#[test]
fn what_cannot_be_found_out_has_its_own_exit_code() {
    for wrong in [
        &["run", "--device=nobody"][..],
        &["run", "--device=null", "--suite=nothing"],
        &["run", "--device=null", "--filter=nothing-has-this-name"],
        &["run", "--device=null", "--shard=3/2"],
        &["report", "no-such-file.json"],
    ] {
        let output = conformance(wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
        assert!(!output.stderr.is_empty(), "{wrong:?}");
    }
    let list = conformance(&["run", "--device=null", "--suite=hal", "--list"]);
    let text = String::from_utf8(list.stdout).unwrap();
    assert!(text.lines().count() > 300 && text.lines().all(|line| line.starts_with("hal.")), "{text}");
}
