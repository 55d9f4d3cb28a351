//! The search for commands of a recording that need a barrier between them and have none.
//!
//! Commands between two barriers may run at once. Two of them clash when one writes bytes that the other reads or writes.
//! Ranges of transfers are exact. For dispatches, the driver tells from the code which bytes each binding is accessed at; what
//! it cannot tell counts as all of the binding, and a dispatch of which it can tell nothing reads and writes all of its
//! bindings. Buffers are told apart by identity: two handles never share memory.

mod accesses;
mod report;
mod sweep;

use std::str::FromStr;

pub use accesses::Access;
pub use report::{Basis, Hazard, HazardKind, Party};

use halite_hal::{BindingTable, Command, CommandList, Result, Status, bail, status};

/// The option of device URIs that switches the check on; all drivers have it.
pub const OPTION: &str = "hazards";

/// Hazards that are looked for before the search of a recording ends.
const MOST: usize = 16;
/// Hazards that an error tells of.
const TOLD: usize = 4;

/// What is checked before a recording is executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HazardCheck {
    /// Nothing.
    #[default]
    Off,
    /// Bytes that are known: of transfers, and of dispatches whose code tells them.
    Code,
    /// Also bindings of which the code tells only whether it reads or writes them: all of their bytes count. A compiler may
    /// bind more than a dispatch accesses, and know that two of them do not meet. Left out are dispatches of functions
    /// of one name that write one binding: they fill parts of a result.
    Known,
    /// Also those, and dispatches of which nothing is known: they count as reading and writing all that is bound to them.
    All,
}

impl HazardCheck {
    /// Whether bytes that are known in this way count.
    fn counts(self, basis: Basis) -> bool {
        match basis {
            Basis::Exact | Basis::Code => self != HazardCheck::Off,
            Basis::Binding => matches!(self, HazardCheck::Known | HazardCheck::All),
            Basis::Unknown => self == HazardCheck::All,
        }
    }
}

impl FromStr for HazardCheck {
    type Err = Status;

    /// Reads the value of the option [`OPTION`].
    fn from_str(text: &str) -> Result<Self> {
        match text {
            "off" | "false" => Ok(HazardCheck::Off),
            "code" => Ok(HazardCheck::Code),
            "on" | "true" => Ok(HazardCheck::Known),
            "all" => Ok(HazardCheck::All),
            _ => Err(status!(InvalidArgument, "option '{OPTION}' is off, code, on or all, not '{text}'")),
        }
    }
}

/// The hazards of a recording that is executed with this table, in order; no more than a few of a bad one. An empty slot has no
/// bytes.
pub fn find(list: &CommandList, table: &BindingTable, check: HazardCheck) -> Result<Vec<Hazard>> {
    let mut found = Vec::new();
    if check == HazardCheck::Off {
        return Ok(found);
    }
    let mut first = 0;
    for segment in list.commands.split(|command| matches!(command, Command::Barrier)) {
        let mut accesses = accesses::of_segment(segment, first, table)?;
        accesses.retain(|access| check.counts(access.basis));
        sweep::search(list, accesses, check, MOST, &mut found);
        first += segment.len() + 1;
        if found.len() >= MOST {
            break;
        }
    }
    found.sort_by_key(|h| (h.second.command, h.first.command));
    Ok(found)
}

/// What the commands of a recording access when it is executed with this table, in order. Dispatches of which nothing is known
/// read and write all of their bindings.
pub fn accesses(list: &CommandList, table: &BindingTable) -> Result<Vec<Access>> {
    accesses::of_segment(&list.commands, 0, table)
}

/// FAILED_PRECONDITION when a recording has a hazard.
pub(crate) fn check(list: &CommandList, table: &BindingTable, check: HazardCheck) -> Result<()> {
    let found = find(list, table, check)?;
    if found.is_empty() {
        return Ok(());
    }
    let told: Vec<String> = found.iter().take(TOLD).map(ToString::to_string).collect();
    let more = match found.len() {
        MOST.. => format!("; and at least {} more", found.len() - told.len()),
        count if count > told.len() => format!("; and {} more", count - told.len()),
        _ => String::new(),
    };
    bail!(FailedPrecondition, "the recording lacks barriers: {}{more}", told.join("; "))
}
