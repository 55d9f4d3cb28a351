//! Profiles as ETDump files of ExecuTorch.

use std::{collections::HashMap, time::Duration};

use halite_formats::pte::{TimedEvent, write_etdump};

use super::{CommandProfile, Profile};

/// What ExecuTorch's runtime calls a whole call.
const CALL: &str = "Method::execute";
/// The first number of what is no instruction of the method, such as a call in a delegate.
const FIRST_OTHER: i32 = 1 << 20;

/// The file of several calls.
pub(super) fn of(calls: &[Profile]) -> Vec<u8> {
    let runs: Vec<Vec<TimedEvent>> = calls.iter().map(events).collect();
    write_etdump(&runs).expect("calls that are profiled are few, and their commands less than a file holds")
}

/// An event for the call, and one for each operation in the order of their begins. The time of one is that which its commands
/// had for themselves.
fn events(call: &Profile) -> Vec<TimedEvent> {
    let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let mut events =
        vec![TimedEvent { name: CALL.to_owned(), instruction: None, start: 0, end: nanoseconds(call.run()) }];
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut others = FIRST_OTHER;
    for command in call.commands.iter().filter(|command| command.is_of_program) {
        let (name, own) = (label(command), nanoseconds(command.own));
        if let Some(place) = places.get(&name) {
            events[*place].end = events[*place].end.saturating_add(own);
            continue;
        }
        let known = instruction(&name).filter(|id| events.iter().all(|event| event.instruction != Some(*id)));
        let id = known.unwrap_or_else(|| {
            others = others.saturating_add(1);
            others
        });
        let start = nanoseconds(command.start);
        places.insert(name.clone(), events.len());
        events.push(TimedEvent { name, instruction: Some(id), start, end: start.saturating_add(own) });
    }
    events
}

/// The operation of the model, or the kernel where that is not known.
fn label(command: &CommandProfile) -> String {
    match &command.operation {
        Some(operation) if !operation.location.is_empty() => operation.location.clone(),
        Some(operation) => operation.kind.clone(),
        None if command.entry_point.is_empty() => command.kind.name().to_owned(),
        None => command.entry_point.clone(),
    }
}

/// The number in `aten::add.out (instruction 3 of method 'forward')`, which lies outside of delegates.
fn instruction(location: &str) -> Option<i32> {
    let (_, behind) = location.split_once("(instruction ")?;
    let digits = behind.split(' ').next()?;
    digits.parse().ok().filter(|id| (0..FIRST_OTHER).contains(id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WorkKind;

    fn command(location: &str, own: u64) -> CommandProfile {
        let operation = super::super::OperationInfo {
            location: location.to_owned(),
            kind: "map".to_owned(),
            text: String::new(),
            variant: String::new(),
            flops: None,
            bytes: None,
        };
        CommandProfile {
            kind: WorkKind::Dispatch,
            device: 0,
            queue: 0,
            start: Duration::from_nanos(7),
            end: Duration::from_nanos(7 + own),
            own: Duration::from_nanos(own),
            entry_point: String::new(),
            workgroups: None,
            bytes: 0,
            operation: Some(operation.into()),
            is_of_program: true,
        }
    }

    #[test]
    fn an_operation_is_one_event_and_keeps_its_number() {
        let add = "aten::add.out (instruction 3 of method 'forward')";
        let inside = "aten.mm.default (call 3 of delegate 0 of method 'forward')";
        let commands = vec![command(add, 5), command(inside, 2), command(add, 4)];
        let found = events(&Profile { commands, ..Profile::default() });
        let times: Vec<_> = found.iter().map(|e| (e.name.as_str(), e.instruction, e.end - e.start)).collect();
        assert_eq!(times, [(CALL, None, 0), (add, Some(3), 9), (inside, Some(FIRST_OTHER + 1), 2)]);
    }
}
