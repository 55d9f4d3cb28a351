//! Many profiled calls as one account: what a call consists of, and its commands grouped by node, kind and kernel.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use halite::{CommandProfile, OperationInfo, Profile};

use super::ceilings::Ceilings;

/// What `--ops` found out.
#[derive(Debug)]
pub(crate) struct OpsReport {
    /// URI and name of the device.
    pub(crate) device: String,
    pub(crate) ceilings: Ceilings,
    /// Why there are no ceilings.
    pub(crate) no_ceilings: Option<String>,
    /// Name and account of each function.
    pub(crate) functions: Vec<(String, Account)>,
}

/// What an average call consists of, in seconds. `upload`, `kernels`, `gaps`, `host` and `download` add up to `total`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Parts {
    pub(crate) total: f64,
    /// Copying inputs, by the host's clock.
    pub(crate) upload: f64,
    /// The device at work on the program.
    pub(crate) kernels: f64,
    /// The device between commands of the program.
    pub(crate) gaps: f64,
    /// The host before and after the device's work on the program.
    pub(crate) host: f64,
    /// Copying results.
    pub(crate) download: f64,
    /// The host's part until all work was submitted; overlaps with the device's.
    pub(crate) launch: f64,
    /// The device moving inputs and results; a part of `upload` and `download`.
    pub(crate) transfers: f64,
}

/// Commands that belong together, in an average call.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Row {
    /// What they have in common.
    pub(crate) name: String,
    /// What else they are: kind and variant of a node, operations of a kernel.
    pub(crate) detail: String,
    /// How many there are.
    pub(crate) commands: f64,
    /// How long they take.
    pub(crate) seconds: f64,
    /// Their least arithmetic operations and bytes, where those of all are known.
    pub(crate) work: Option<(f64, f64)>,
    /// How long they would take at the ceiling of arithmetic.
    pub(crate) at_peak: Option<f64>,
}

impl Row {
    /// Arithmetic operations a second.
    pub(crate) fn flops(&self) -> Option<f64> {
        self.work
            .filter(|(flops, _)| *flops > 0.0 && self.seconds > 0.0)
            .map(|(flops, _)| flops / self.seconds)
    }

    /// Bytes a second, at least.
    pub(crate) fn bytes(&self) -> Option<f64> {
        self.work
            .filter(|(_, bytes)| *bytes > 0.0 && self.seconds > 0.0)
            .map(|(_, bytes)| bytes / self.seconds)
    }

    /// Share of the ceiling of arithmetic.
    pub(crate) fn of_peak(&self) -> Option<f64> {
        self.at_peak.filter(|time| *time > 0.0 && self.seconds > 0.0).map(|time| time / self.seconds)
    }
}

/// The account of a function's calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    /// Calls that were profiled.
    pub(crate) calls: usize,
    pub(crate) parts: Parts,
    /// The median of calls that were not profiled, in seconds.
    pub(crate) plain: f64,
    /// Commands that were not measured, in all calls.
    pub(crate) unmeasured: u64,
    /// Smallest time that the clock tells, in seconds.
    pub(crate) resolution: f64,
    /// Dispatches and other commands of an average call.
    pub(crate) commands: f64,
    pub(crate) by_node: Vec<Row>,
    pub(crate) by_kind: Vec<Row>,
    pub(crate) by_kernel: Vec<Row>,
}

/// How commands are grouped.
#[derive(Clone, Copy, PartialEq)]
enum Group {
    Node,
    Kind,
    Kernel,
}

impl Account {
    /// Of one call at least.
    pub(super) fn of(profiles: &[Profile], ceilings: &Ceilings) -> Self {
        let calls = profiles.len().max(1) as f64;
        let mean = |of: &dyn Fn(&Profile) -> Duration| {
            profiles.iter().map(|profile| of(profile).as_secs_f64()).sum::<f64>() / calls
        };
        let device = |of: &dyn Fn(&halite::DeviceTimes) -> Duration| {
            mean(&|profile| profile.devices().iter().map(of).max().unwrap_or_default())
        };
        let (span, kernels) = (device(&|d| d.span), device(&|d| d.busy));
        let rows = |group| rows(profiles, group, ceilings);
        let program = profiles.iter().flat_map(Profile::commands).filter(|command| command.is_of_program);
        Account {
            calls: profiles.len(),
            parts: Parts {
                total: mean(&Profile::total),
                upload: mean(&Profile::upload),
                kernels,
                gaps: span - kernels,
                host: mean(&Profile::host),
                download: mean(&Profile::download),
                launch: mean(&Profile::launch),
                transfers: device(&|d| d.transfers),
            },
            plain: 0.0,
            unmeasured: profiles.iter().flat_map(Profile::devices).map(|d| d.unmeasured).sum(),
            resolution: device(&|d| d.resolution),
            commands: program.count() as f64 / calls,
            by_node: rows(Group::Node),
            by_kind: rows(Group::Kind),
            by_kernel: rows(Group::Kernel),
        }
    }
}

/// Name and detail of the row that a command belongs to.
fn key(command: &CommandProfile, group: Group) -> (String, String) {
    let kernel = if command.entry_point.is_empty() { command.kind.name() } else { &command.entry_point };
    let Some(operation) = &command.operation else {
        return (kernel.to_owned(), String::new());
    };
    match group {
        Group::Node => {
            let place = if operation.location.is_empty() { &operation.kind } else { &operation.location };
            (place.clone(), format!("{} {}", operation.kind, operation.variant))
        }
        Group::Kind => (operation.kind.clone(), String::new()),
        Group::Kernel => (operation.variant.clone(), kernel.to_owned()),
    }
}

fn rows(profiles: &[Profile], group: Group, ceilings: &Ceilings) -> Vec<Row> {
    let mut order: HashMap<(String, String), usize> = HashMap::new();
    let mut rows: Vec<Row> = Vec::new();
    let calls = profiles.len().max(1) as f64;
    for profile in profiles {
        let mut counted: HashSet<(usize, *const OperationInfo)> = HashSet::new();
        for command in profile.commands().iter().filter(|command| command.is_of_program) {
            let key = key(command, group);
            let index = *order.entry(key).or_insert_with_key(|(name, detail)| {
                let (name, detail) = (name.clone(), detail.clone());
                rows.push(Row { name, detail, work: Some((0.0, 0.0)), at_peak: Some(0.0), ..Row::default() });
                rows.len() - 1
            });
            let row = &mut rows[index];
            row.commands += 1.0 / calls;
            row.seconds += command.own.as_secs_f64() / calls;
            match &command.operation {
                // What an operation costs counts once, however many dispatches compute it.
                Some(operation) if !counted.insert((index, Arc::as_ptr(operation))) => {}
                Some(operation) => add_work(row, operation, calls, ceilings),
                None => (row.work, row.at_peak) = (None, None),
            }
        }
    }
    rows.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    rows
}

fn add_work(row: &mut Row, operation: &OperationInfo, calls: f64, ceilings: &Ceilings) {
    let (Some(flops), Some(bytes)) = (operation.flops, operation.bytes) else {
        (row.work, row.at_peak) = (None, None);
        return;
    };
    if let Some(work) = &mut row.work {
        work.0 += flops / calls;
        work.1 += bytes / calls;
    }
    let peak = ceilings.arithmetic(&operation.text);
    row.at_peak = row.at_peak.zip(peak).map(|(time, peak)| time + flops / calls / peak);
}
