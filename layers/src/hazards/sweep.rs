//! Finding the pairs of accesses that clash.

use super::{
    Basis, HazardCheck,
    accesses::Access,
    report::{Hazard, HazardKind, Party},
};
use halite_hal::{Command, CommandList};

/// Looks for commands of one segment that clash, each pair of commands once, until so many are found in all.
///
/// Accesses are visited by their first byte; those that reach over it are compared with it. Reads are not compared with each
/// other, so that the work is that of sorting plus that of finding, but for runs that lie in each other's midst.
pub(super) fn search(
    list: &CommandList,
    mut accesses: Vec<Access>,
    check: HazardCheck,
    most: usize,
    found: &mut Vec<Hazard>,
) {
    accesses.sort_by_key(|t| (t.buffer, t.from));
    let (mut reads, mut writes): (Vec<&Access>, Vec<&Access>) = (Vec::new(), Vec::new());
    for access in &accesses {
        let over = |other: &&Access| other.buffer == access.buffer && other.to > access.from;
        reads.retain(over);
        writes.retain(over);
        let against_reads = reads.iter().filter(|_| access.write);
        for other in writes.iter().chain(against_reads).filter(|other| clash(access, other)) {
            if check != HazardCheck::All && parts(list, access, other) {
                continue;
            }
            let hazard = hazard(list, access, other);
            if !found.iter().any(|h| h.same_commands(&hazard)) {
                found.push(hazard);
            }
            if found.len() >= most {
                return;
            }
        }
        if access.write { writes.push(access) } else { reads.push(access) }
    }
}

/// Whether two accesses, one of which writes and whose ranges overlap, share a byte.
fn clash(a: &Access, b: &Access) -> bool {
    if a.command == b.command {
        return false;
    }
    match (&a.runs, &b.runs) {
        (None, None) => true,
        (Some(a), Some(b)) => !a.interleaves(b),
        (Some(runs), None) => !runs.interleaves(&plain(b)),
        (None, Some(runs)) => !runs.interleaves(&plain(a)),
    }
}

/// Whether two dispatches of functions of one name write one binding, and the code does not tell where: that is how the parts
/// of a result are filled. Were they meant to follow each other, something that reads the first one's bytes would come between.
fn parts(list: &CommandList, a: &Access, b: &Access) -> bool {
    let unknown = a.write && b.write && a.basis == Basis::Binding && b.basis == Basis::Binding;
    let name = |access: &Access| match list.commands.get(access.command)? {
        Command::Dispatch { executable, function, .. } => {
            Some(executable.functions().get(usize::try_from(*function).ok()?)?.name.clone())
        }
        _ => None,
    };
    unknown && a.binding == b.binding && name(a).is_some_and(|first| name(b) == Some(first))
}

fn plain(access: &Access) -> halite_hal::ByteRuns {
    halite_hal::ByteRuns {
        start: i64::try_from(access.from).unwrap_or(i64::MAX),
        width: access.to - access.from,
        strides: Default::default(),
    }
}

fn hazard(list: &CommandList, a: &Access, b: &Access) -> Hazard {
    let (first, second) = if a.command < b.command { (a, b) } else { (b, a) };
    let kind = match (first.write, second.write) {
        (true, true) => HazardKind::WriteAfterWrite,
        (true, false) => HazardKind::ReadAfterWrite,
        _ => HazardKind::WriteAfterRead,
    };
    Hazard {
        kind,
        first: Party::new(list, first),
        second: Party::new(list, second),
        bytes: a.from.max(b.from)..a.to.min(b.to),
    }
}
