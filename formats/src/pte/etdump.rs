//! ETDump files: what ExecuTorch's runtime tells of timed runs, in the form that its `Inspector` reads (`devtools/etdump/
//! etdump_schema_flatcc.fbs` of ExecuTorch 1.5). Only times are written.

use crate::flatbuffer::{Builder, Child, Field, FlatbufferError, Offset, Text, Vector, tables};

/// Identifier of the file, behind its length.
const IDENTIFIER: &[u8; 4] = b"ED00";

tables! {
    dump "ETDump" {
        RUNS 1 "run_data": Vector<Child>;
    }
    run "RunData" {
        NAME 0 "name": Text;
        EVENTS 3 "events": Vector<Child>;
    }
    event "Event" {
        PROFILE 0 "profile_event": Child;
    }
    profile "ProfileEvent" {
        NAME 0 "name": Text;
        INSTRUCTION 2 "instruction_id": i32 = -1;
        START 6 "start_time": u64;
        END 7 "end_time": u64;
    }
}

/// A time span of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimedEvent {
    /// What it is: an operator, or `Method::execute` for a whole call.
    pub name: String,
    /// The number of the instruction that it is about; each at most once in a run.
    pub instruction: Option<i32>,
    /// When it began, in nanoseconds from any begin.
    pub start: u64,
    /// When it ended.
    pub end: u64,
}

/// Writes runs of a program, each a list of events. Of runs with the same events readers make statistics.
///
/// # Errors
/// There is more than a file can hold (2 GiB).
pub fn write_etdump(runs: &[Vec<TimedEvent>]) -> Result<Vec<u8>, FlatbufferError> {
    let mut b = Builder::new();
    let mut all = Vec::with_capacity(runs.len());
    for events in runs {
        let events: Vec<_> = events.iter().map(|event| write_event(&mut b, event)).collect();
        let (events, name) = (b.children(&events), b.text("Execute"));
        all.push(b.table().link(&run::NAME, name).link(&run::EVENTS, events).finish());
    }
    let all = b.children(&all);
    let root = b.table().link(&dump::RUNS, all).finish();
    b.finish(root, IDENTIFIER, true)
}

fn write_event(b: &mut Builder, timed: &TimedEvent) -> Offset<Child> {
    let name = b.text(&timed.name);
    let table = b.table().link(&profile::NAME, name);
    let table = table.scalar(&profile::INSTRUCTION, timed.instruction.unwrap_or(-1));
    let made = table.scalar(&profile::START, timed.start).scalar(&profile::END, timed.end).finish();
    b.table().link(&event::PROFILE, made).finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flatbuffer::Reader;

    #[test]
    fn events_read_back() {
        let event = |name: &str, instruction, start, end| {
            let name = name.to_owned();
            TimedEvent { name, instruction, start, end }
        };
        let first = vec![event("Method::execute", None, 0, 90), event("aten::add.out", Some(0), 5, 20)];
        let file = write_etdump(&[first.clone(), vec![]]).unwrap();
        assert_eq!(u32::from_le_bytes(file[..4].try_into().unwrap()) as usize, file.len() - 4);
        let reader = Reader::new(&file[4..], 0);
        let root = reader.root("ETDump", IDENTIFIER).unwrap();
        let runs: Vec<_> = root.vector(&dump::RUNS).unwrap().iter().map(Result::unwrap).collect();
        let read = |run: &crate::flatbuffer::Table<'_>| -> Vec<TimedEvent> {
            let one = |event: crate::flatbuffer::Table<'_>| {
                let event = event.child(&event::PROFILE).unwrap().unwrap();
                let instruction = Some(event.scalar(&profile::INSTRUCTION).unwrap()).filter(|i| *i >= 0);
                let name = event.text(&profile::NAME).unwrap().unwrap().to_owned();
                let [start, end] = [&profile::START, &profile::END].map(|f| event.scalar(f).unwrap());
                TimedEvent { name, instruction, start, end }
            };
            run.vector(&run::EVENTS).unwrap().iter().map(|event| one(event.unwrap())).collect()
        };
        assert_eq!(runs.iter().map(read).collect::<Vec<_>>(), [first, vec![]]);
    }
}
