//! Owns finding the pairs of touches that clash. Does not own: the touches.

use super::{
    Basis, HazardCheck,
    report::{Hazard, HazardKind, Party},
    touches::Touch,
};
use halite_hal::{Command, CommandList};

/// Looks for commands of one segment that clash, each pair of commands once, until so many are found in all.
///
/// Touches are visited by their first byte; those that reach over it are compared with it. Reads are not compared with each
/// other, so that the work is that of sorting plus that of finding, but for runs that lie in each other's midst.
pub(super) fn search(
    list: &CommandList,
    mut touches: Vec<Touch>,
    check: HazardCheck,
    most: usize,
    found: &mut Vec<Hazard>,
) {
    touches.sort_by_key(|t| (t.buffer, t.from));
    let (mut reads, mut writes): (Vec<&Touch>, Vec<&Touch>) = (Vec::new(), Vec::new());
    for touch in &touches {
        let over = |other: &&Touch| other.buffer == touch.buffer && other.to > touch.from;
        reads.retain(over);
        writes.retain(over);
        let against_reads = reads.iter().filter(|_| touch.write);
        for other in writes.iter().chain(against_reads).filter(|other| clash(touch, other)) {
            if check != HazardCheck::All && parts(list, touch, other) {
                continue;
            }
            let hazard = hazard(list, touch, other);
            if !found.iter().any(|h| h.same_commands(&hazard)) {
                found.push(hazard);
            }
            if found.len() >= most {
                return;
            }
        }
        if touch.write { writes.push(touch) } else { reads.push(touch) }
    }
}

/// Whether two touches, one of which writes and whose ranges overlap, share a byte.
fn clash(a: &Touch, b: &Touch) -> bool {
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
fn parts(list: &CommandList, a: &Touch, b: &Touch) -> bool {
    let unknown = a.write && b.write && a.basis == Basis::Binding && b.basis == Basis::Binding;
    let name = |touch: &Touch| match list.commands.get(touch.command)? {
        Command::Dispatch { executable, function, .. } => {
            Some(executable.functions().get(usize::try_from(*function).ok()?)?.name.clone())
        }
        _ => None,
    };
    unknown && a.binding == b.binding && name(a).is_some_and(|first| name(b) == Some(first))
}

fn plain(touch: &Touch) -> halite_hal::ByteRuns {
    halite_hal::ByteRuns {
        start: i64::try_from(touch.from).unwrap_or(i64::MAX),
        width: touch.to - touch.from,
        strides: Default::default(),
    }
}

fn hazard(list: &CommandList, a: &Touch, b: &Touch) -> Hazard {
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
