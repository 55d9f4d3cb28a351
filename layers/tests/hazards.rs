//! The check of barriers: what clashes and what does not, command by command, and what is said of it.
#![allow(clippy::unwrap_used, reason = "a failure is a failed test, also in helpers")]

use std::sync::Arc;

use crate::common::*;
use bytes::Bytes;
use halite_hal::*;
use halite_layers::hazards::{self, HazardCheck, HazardKind};

/// A null device that checks barriers.
fn checking(value: &str) -> Arc<dyn Device> {
    let mut registry = DriverRegistry::empty();
    registry.register(driver());
    halite_layers::open(&registry, &format!("null?hazards={value}"), &Options::new()).unwrap()
}

/// An executable of functions with two bindings: `f` touches what it is told here; nothing is known of `g`.
fn touching(device: &Arc<dyn Device>, touches: &str) -> Arc<dyn Executable> {
    let code = format!(
        r#"[{{"name": "f", "bindings": 2, "constants": 1, "touches": {touches}}},
            {{"name": "g", "bindings": 2, "constants": 1}}]"#
    );
    let desc = ExecutableDesc {
        format: halite_null::EXECUTABLE_FORMAT.to_owned(),
        data: Bytes::from(code),
        constants: Vec::new(),
        label: "test".to_owned(),
        subgroup_sizes: Vec::new(),
    };
    device.create_executable(desc).unwrap()
}

const MAP: &str = r#"[{"binding": 0, "write": false}, {"binding": 1, "write": true}]"#;

fn kinds(commands: Vec<Command>, check: HazardCheck) -> Vec<HazardKind> {
    let found = hazards::find(&list(commands, 0), &BindingTable::default(), check).unwrap();
    found.iter().map(|hazard| hazard.kind).collect()
}

#[test]
fn transfers_clash_where_they_share_bytes() {
    let d = device();
    let (a, b) = (buffer(&d, 64), buffer(&d, 64));
    let known = |commands| kinds(commands, HazardCheck::Known);
    let whole = |b| direct(b, 0, 64);
    use HazardKind::*;
    assert_eq!(known(vec![fill(whole(&a), 4), fill(whole(&a), 4)]), [WriteAfterWrite]);
    assert_eq!(known(vec![fill(whole(&a), 4), copy(whole(&a), whole(&b))]), [ReadAfterWrite]);
    assert_eq!(known(vec![copy(whole(&a), whole(&b)), fill(whole(&a), 4)]), [WriteAfterRead]);
    assert_eq!(
        known(vec![copy(whole(&a), direct(&b, 0, 64)), copy(whole(&a), whole(&b))]),
        [WriteAfterWrite]
    );
    assert_eq!(known(vec![fill(whole(&a), 4), fill(whole(&b), 4)]), []);
    assert_eq!(known(vec![fill(direct(&a, 0, 32), 4), fill(direct(&a, 32, 32), 4)]), []);
    assert_eq!(
        known(vec![fill(direct(&a, 0, 36), 4), fill(direct(&a, 32, WHOLE_BUFFER), 4)]),
        [WriteAfterWrite]
    );
    assert_eq!(known(vec![fill(direct(&a, 0, 0), 4), fill(whole(&a), 4)]), []);
}

#[test]
fn a_barrier_orders_what_is_before_and_behind_it() {
    let d = device();
    let a = buffer(&d, 64);
    let one = || fill(direct(&a, 0, 64), 4);
    let known = |commands| kinds(commands, HazardCheck::Known).len();
    assert_eq!(known(vec![one(), Command::Barrier, one()]), 0);
    assert_eq!(known(vec![one(), Command::Barrier, one(), one()]), 1);
    assert_eq!(known(vec![one(), Command::BeginDebugGroup(String::new()), Command::EndDebugGroup, one()]), 1);
    assert_eq!(known(vec![Command::Barrier, Command::Barrier, one(), one(), one(), Command::Barrier]), 3);
}

#[test]
fn dispatches_touch_what_their_code_says() {
    let d = device();
    let (a, b) = (buffer(&d, 256), buffer(&d, 256));
    let known = |touches: &str, first: [BufferRef; 2], second: [BufferRef; 2]| {
        let e = touching(&d, touches);
        kinds(vec![dispatch(&e, &first), dispatch(&e, &second)], HazardCheck::Known)
    };
    let at = |b: &Arc<dyn Buffer>, offset, length| direct(b, offset, length);
    use HazardKind::*;
    let (low, high) = (at(&a, 0, 128), at(&a, 128, 128));
    assert_eq!(known(MAP, [low.clone(), at(&b, 0, 128)], [low.clone(), at(&b, 128, 128)]), []);
    assert_eq!(known(MAP, [low.clone(), high.clone()], [high.clone(), at(&b, 0, 128)]), [ReadAfterWrite]);
    // A slab that is bound whole: the code tells the parts.
    let slab = [at(&a, 0, 128), at(&b, 0, 256)];
    let part =
        |start, width| format!(r#"[{{"binding": 1, "write": true, "start": {start}, "width": {width}}}]"#);
    let (one, two) = (touching(&d, &part(0, 128)), touching(&d, &part(128, 64)));
    let both = |x: &Arc<dyn Executable>, y: &Arc<dyn Executable>| {
        kinds(vec![dispatch(x, &slab), dispatch(y, &slab)], HazardCheck::Known)
    };
    assert_eq!(both(&one, &two), []);
    assert_eq!(both(&one, &touching(&d, &part(127, 1))), [WriteAfterWrite]);
    assert_eq!(
        both(&one, &touching(&d, &part(-64, 64))),
        [],
        "what is outside of the binding is not touched"
    );
    let columns = |start| {
        let text = format!(
            r#"[{{"binding": 1, "write": true, "start": {start}, "width": 8, "strides": [[32, 8]]}}]"#
        );
        touching(&d, &text)
    };
    assert_eq!(both(&columns(0), &columns(8)), []);
    assert_eq!(both(&columns(0), &columns(4)), [WriteAfterWrite]);
}

#[test]
fn unknown_code_clashes_only_when_all_is_asked_for() {
    let d = device();
    let (a, b) = (buffer(&d, 64), buffer(&d, 64));
    let e = executable(&d);
    let twice = || {
        let one = || dispatch(&e, &[direct(&a, 0, 64), direct(&b, 0, 64)]);
        vec![one(), one()]
    };
    assert_eq!(kinds(twice(), HazardCheck::Known), []);
    assert_eq!(kinds(twice(), HazardCheck::All).len(), 1, "one for each pair of commands");
    assert_eq!(kinds(twice(), HazardCheck::Off), []);
    let e = touching(&d, MAP);
    let one = || dispatch(&e, &[direct(&a, 0, 64), direct(&b, 0, 64)]);
    assert_eq!(kinds(vec![one(), one()], HazardCheck::Code), [], "the code does not tell where");
    assert_eq!(kinds(vec![one(), one()], HazardCheck::Known), [], "parts of one result");
    assert_eq!(kinds(vec![one(), one()], HazardCheck::All).len(), 1);
    let turned = dispatch(&e, &[direct(&b, 0, 64), direct(&a, 0, 64)]);
    assert_eq!(kinds(vec![one(), turned], HazardCheck::Known).len(), 1, "it reads what the other writes");
}

#[test]
fn workgroup_counts_are_read() {
    let d = device();
    let counts = buffer_for(&d, BufferUsage::DEFAULT | BufferUsage::DISPATCH_INDIRECT_PARAMETERS, 16);
    let b = buffer(&d, 64);
    let e = touching(&d, MAP);
    let mut indirect = dispatch(&e, &[direct(&b, 0, 4), direct(&b, 32, 4)]);
    if let Command::Dispatch { counts: c, .. } = &mut indirect {
        *c = DispatchCounts::Indirect(direct(&counts, 0, WHOLE_BUFFER));
    }
    let write = |offset| fill(direct(&counts, offset, 4), 4);
    assert_eq!(kinds(vec![write(8), indirect.clone()], HazardCheck::Known), [HazardKind::ReadAfterWrite]);
    assert_eq!(kinds(vec![write(12), indirect], HazardCheck::Known), [], "behind the three numbers");
    let mut idle = dispatch(&e, &[direct(&b, 0, 4), direct(&b, 0, 4)]);
    if let Command::Dispatch { counts: c, .. } = &mut idle {
        *c = DispatchCounts::Direct([1, 0, 1]);
    }
    assert_eq!(kinds(vec![fill(direct(&b, 0, 4), 4), idle], HazardCheck::Known), [], "it does nothing");
}

#[test]
fn executions_with_a_hazard_are_refused() {
    let d = checking("on");
    let e = touching(&d, MAP);
    let commands = vec![
        Command::BeginDebugGroup("g".to_owned()),
        dispatch(&e, &[slot(0, 0, 32), slot(1, 0, 32)]),
        copy(slot(1, 16, 16), slot(2, 0, 16)),
        Command::EndDebugGroup,
    ];
    let recorded = record(&d, commands, 3).unwrap();
    let (a, b, c) = (buffer(&d, 64), buffer(&d, 64), buffer(&d, 64));
    let table = |x: BufferSpan, y: BufferSpan, z: BufferSpan| [Some(x), Some(y), Some(z)];
    let bad = table(span(&a, 0, 64), span(&b, 8, 56), span(&c, 0, 64));
    let words = [
        "read after write",
        "bytes 24..40",
        "command 1 (dispatch 'f', binding 1, slot 1",
        "command 2 (copy, slot 1)",
        "record a barrier",
        "does not tell where",
    ];
    refused(execute(&d, &recorded, &bad), Code::FailedPrecondition, &words);
    let relaxed = device();
    let e = touching(&relaxed, MAP);
    let b = buffer(&relaxed, 64);
    let both = vec![fill(direct(&b, 0, 64), 4), dispatch(&e, &[direct(&b, 0, 32), direct(&b, 32, 32)])];
    let recorded = record(&relaxed, both, 0).unwrap();
    execute(&relaxed, &recorded, &[]).unwrap();
}

#[test]
fn slots_of_one_buffer_are_seen_through() {
    let d = checking("on");
    let recorded = record(&d, vec![fill(slot(0, 0, 32), 4), fill(slot(1, 0, 32), 4)], 2).unwrap();
    let b = buffer(&d, 64);
    execute(&d, &recorded, &[Some(span(&b, 0, 32)), Some(span(&b, 32, 32))]).unwrap();
    let overlap = [Some(span(&b, 0, 32)), Some(span(&b, 16, 32))];
    refused(
        execute(&d, &recorded, &overlap),
        Code::FailedPrecondition,
        &["slot 0", "slot 1", "bytes 16..32"],
    );
}

#[test]
fn many_hazards_are_summed_up() {
    let d = checking("all");
    let b = buffer(&d, 64);
    let recorded = record(&d, vec![fill(direct(&b, 0, 64), 4); 300], 0).unwrap();
    refused(
        execute(&d, &recorded, &[]),
        Code::FailedPrecondition,
        &["and at least 12 more", "write after write"],
    );
}

#[test]
fn the_option_has_four_values() {
    for value in ["off", "code", "on", "all"] {
        checking(value);
    }
    let mut registry = DriverRegistry::empty();
    registry.register(driver());
    refused(
        halite_layers::open(&registry, "null?hazards=maybe", &Options::new()),
        Code::InvalidArgument,
        &["off, code, on or all"],
    );
    refused(
        halite_layers::open(&registry, "null?hazard=on", &Options::new()),
        Code::InvalidArgument,
        &["it knows", "hazards"],
    );
}
