//! A run on one device, from the choice of cases to the device's report.

use std::{
    collections::HashMap,
    ffi::OsString,
    path::PathBuf,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context as _, Result, bail};

use super::{Isolation, Journal, Pattern, Recipe, Shard, Target, pool, setting_flags};
use crate::{
    expectations::{Expectations, Kind, Line},
    reports::{
        CaseReport, Counts, DeviceFacts, DeviceReport, Expected, Host, Level, Selection, Status, SuiteReport,
    },
    suites::{Case, Offer, Report, Runner, Settings, Verdict, Watch, named},
};

/// What to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The device.
    pub target: Target,
    /// Names of suites; all of them for none.
    pub suites: Vec<String>,
    /// What their cases are made from.
    pub settings: Settings,
    /// Only cases that one of these fits; all for none.
    pub filter: Vec<Pattern>,
    /// Only a part of these.
    pub shard: Option<Shard>,
    /// Folder of expectations; those that are built in for none.
    pub expectations: Option<PathBuf>,
}

/// How to run it.
#[derive(Clone)]
pub struct Manner {
    /// Longest time that a case may take.
    pub limit: Duration,
    /// When no further case is begun; what was not run is missing in the report.
    pub end: Option<Instant>,
    /// Processes at a time; more than one are always other ones.
    pub jobs: usize,
    /// Which processes.
    pub isolation: Isolation,
    /// A program that runs cases for this one when it is called with `worker` and flags.
    pub program: PathBuf,
    /// Tells messages of a validation layer, for cases that are run in this process.
    pub watch: Option<Watch>,
}

/// A plan with its cases.
pub struct Prepared<'a> {
    plan: &'a Plan,
    device: DeviceFacts,
    offers: Vec<(&'static str, Offer)>,
    expectations: Expectations,
}

impl Plan {
    /// Opens the device, and lists the cases that suites have for it.
    ///
    /// # Errors
    /// The device does not open, there is no suite of a name, or files are malformed.
    pub fn prepare(&self) -> Result<Prepared<'_>> {
        let suites = named(&self.suites)?;
        let device = self.target.opener()().with_context(|| format!("opening {}", self.target.uri))?;
        let info = device.info();
        let offers = suites.iter().map(|suite| Ok((suite.name(), suite.offer(&self.settings, info)?)));
        let offers = offers.collect::<Result<Vec<_>>>()?;
        let name = format!("{} {}", info.driver, info.name);
        let expectations = match &self.expectations {
            Some(folder) => Expectations::for_device(folder, &name)?,
            None => Expectations::built_in(&name)?,
        };
        Ok(Prepared { plan: self, device: info.into(), offers, expectations })
    }

    fn fits(&self, case: &Case) -> bool {
        self.filter.is_empty() || self.filter.iter().any(|pattern| pattern.fits(&case.name))
    }

    /// The flags that name the device and what cases are made from.
    fn flags(&self) -> Vec<OsString> {
        let mut flags = self.target.flags();
        let usual = Settings { repository: self.settings.repository.clone(), ..Settings::at_hand() };
        if self.settings != usual {
            flags.extend(setting_flags(&self.settings));
        }
        flags
    }

    fn recipe(&self, manner: &Manner, uri: &str) -> Recipe {
        let mut arguments = vec![OsString::from("worker")];
        // What the name of the device left open is what was found now.
        let query = self.target.uri.split_once('?').map(|(_, query)| format!("?{query}")).unwrap_or_default();
        arguments.extend(Target { uri: format!("{uri}{query}"), ..self.target.clone() }.flags());
        arguments.extend(setting_flags(&self.settings));
        arguments.push(format!("--limit={}", manner.limit.as_secs()).into());
        arguments.extend(self.suites.iter().map(|suite| OsString::from(format!("--suite={suite}"))));
        Recipe { program: manner.program.clone(), arguments, limit: manner.limit }
    }
}

impl Prepared<'_> {
    /// The device.
    pub fn device(&self) -> &DeviceFacts {
        &self.device
    }

    /// What suites had to leave out.
    pub fn left_out(&self) -> impl Iterator<Item = (&str, &str)> {
        self.offers.iter().flat_map(|(suite, offer)| offer.left_out.iter().map(|why| (*suite, why.as_str())))
    }

    /// The chosen cases, in order.
    pub fn cases(&self) -> Vec<&Case> {
        let all = self.offers.iter().flat_map(|(_, offer)| &offer.cases);
        let fitting = all.filter(|case| self.plan.fits(case)).enumerate();
        fitting
            .filter(|(index, _)| self.plan.shard.is_none_or(|shard| shard.has(*index)))
            .map(|(_, case)| case)
            .collect()
    }

    /// Runs the cases whose results the journal does not know, telling `observer` about each as it ends.
    ///
    /// # Errors
    /// The device does not open, or the journal cannot be written.
    pub fn run(
        &self,
        manner: &Manner,
        mut journal: Option<&mut Journal>,
        observer: &mut dyn FnMut(&CaseReport),
    ) -> Result<DeviceReport> {
        let cases = self.cases();
        if cases.is_empty() && !self.plan.filter.is_empty() {
            bail!("no case fits the filter; --list shows their names");
        }
        let (started, start) = (SystemTime::now(), Instant::now());
        let uri = &self.device.uri;
        let mut results: HashMap<String, Report> = HashMap::new();
        let mut todo = Vec::new();
        for case in &cases {
            match journal.as_ref().and_then(|journal| journal.known(uri, &case.name)) {
                Some(report) => drop(results.insert(case.name.clone(), report.clone())),
                None => todo.push(*case),
            }
        }
        let tags: HashMap<&str, &Case> = cases.iter().map(|case| (case.name.as_str(), *case)).collect();
        let mut written = Ok(());
        let mut collect = |report: Report| {
            if let (Some(journal), Ok(())) = (&mut journal, &written) {
                written = journal.add(uri, &report);
            }
            if let Some(case) = tags.get(report.case.as_str()) {
                observer(&self.judged(case, &report));
            }
            results.insert(report.case.clone(), report);
        };
        if manner.isolation == Isolation::None && manner.jobs <= 1 {
            let runner = Runner::new(self.plan.target.opener(), manner.limit);
            let runner = match &manner.watch {
                Some(watch) => runner.watched(watch.clone()),
                None => runner,
            };
            pool::here(&runner, &todo, manner.end, &mut collect)?;
        } else {
            let recipe = self.plan.recipe(manner, uri);
            let alone = manner.isolation == Isolation::Each;
            pool::elsewhere(&recipe, alone, manner.jobs, &todo, manner.end, &mut collect);
        }
        written?;
        let started = started.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        Ok(self.report(&cases, &results, started, start.elapsed()))
    }

    fn report(
        &self,
        cases: &[&Case],
        results: &HashMap<String, Report>,
        started: u64,
        time: Duration,
    ) -> DeviceReport {
        let ended = cases.iter().filter_map(|case| Some(self.judged(case, results.get(&case.name)?)));
        let reports: Vec<CaseReport> = ended.collect();
        let all: Vec<&Case> = self.offers.iter().flat_map(|(_, offer)| &offer.cases).collect();
        let offered: Vec<(&str, &[&str])> =
            all.iter().map(|case| (case.name.as_str(), &case.tags[..])).collect();
        let names: Vec<&str> = offered.iter().map(|(name, _)| *name).collect();
        let suites: Vec<&str> = self.offers.iter().map(|(name, _)| *name).collect();
        let unused = self.expectations.unused(&suites, &names);
        let flags = self.plan.flags();
        DeviceReport {
            device: self.device.clone(),
            host: Host::this(),
            flags: flags.iter().map(|flag| flag.to_string_lossy().into_owned()).collect(),
            validation: self.plan.target.validate.clone().filter(|_| self.plan.target.can_validate()),
            selection: Selection {
                filter: self.plan.filter.iter().map(ToString::to_string).collect(),
                shard: self.plan.shard.map(|shard| shard.to_string()),
            },
            started,
            seconds: time.as_secs_f64(),
            counts: Counts::of(&reports),
            suites: self.offers.iter().map(|(name, offer)| suite_report(name, offer, cases)).collect(),
            levels: Level::built_in().iter().map(|level| level.judge(&suites, &offered, &reports)).collect(),
            unused_expectations: unused.iter().map(|line| line.pattern.to_string()).collect(),
            cases: reports,
        }
    }

    /// A case's result in the light of what is expected.
    fn judged(&self, case: &Case, report: &Report) -> CaseReport {
        let line = self.expectations.line(&report.case);
        let status = Expectations::judge(line, &report.verdict);
        let numbers = match &report.verdict {
            Verdict::Wrong(wrong) => wrong.numbers.clone(),
            _ => None,
        };
        let reason = match (status, line) {
            (Status::SurprisePass, Some(line)) => {
                Some(format!("passes, although it is expected not to: {}", line.reason))
            }
            _ => report.verdict.reason().map(str::to_owned),
        };
        CaseReport {
            name: report.case.clone(),
            status,
            seconds: report.time.as_secs_f64(),
            tags: case.tags.iter().map(|tag| (*tag).to_owned()).collect(),
            reason,
            numbers,
            expected: line.map(expected),
        }
    }
}

fn expected(line: &Line) -> Expected {
    let kind = match line.kind {
        Kind::Unsupported => "unsupported",
        Kind::ExpectedFail => "xfail",
    };
    Expected { kind: kind.to_owned(), reason: line.reason.clone(), link: line.link.clone() }
}

fn suite_report(name: &str, offer: &Offer, chosen: &[&Case]) -> SuiteReport {
    let of_suite = |case: &&&Case| case.name.split('.').next() == Some(name);
    SuiteReport {
        name: name.to_owned(),
        offered: offer.cases.len(),
        selected: chosen.iter().filter(of_suite).count(),
        left_out: offer.left_out.clone(),
    }
}
