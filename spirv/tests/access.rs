//! The bytes that kernels access: worked out by hand from each fixture's source.

use crate::common;
use halite_spirv::{
    access::{Access, AccessPlan, Bytes, Launch, Resource},
    analyze,
};

fn accesses(fixture: &str, push_constants: &[u32], workgroups: Option<[u32; 3]>) -> Vec<Access> {
    let words = common::fixture(fixture);
    let entry = analyze(&words).expect("valid").entry_points[0].name.clone();
    let plan = AccessPlan::new(&words, &entry).expect("valid");
    plan.of(&Launch { push_constants, workgroups }).expect("its pointers can be traced")
}

/// What is read (or written) of a binding of set 0.
fn of(accesses: &[Access], binding: u32, write: bool) -> Vec<Option<Bytes>> {
    let resource = Resource::Descriptor { set: 0, binding };
    accesses.iter().filter(|t| t.resource == resource && t.write == write).map(|t| t.bytes.clone()).collect()
}

fn bytes(start: i64, width: u64, strides: &[(u64, u64)]) -> Option<Bytes> {
    Some(Bytes { start, width, strides: strides.to_vec() })
}

#[test]
fn rows_have_gaps_and_begin_where_a_push_constant_says() {
    let found = accesses("accessed_rows.spv", &[100], Some([48, 1, 1]));
    assert_eq!(of(&found, 0, false), [bytes(0, 3 * 32 * 32 * 4, &[])]);
    assert_eq!(of(&found, 1, true), [bytes(4 * (100 + 34 + 1), 32 * 4, &[(34 * 4, 32), (1156 * 4, 3)])]);
    assert_eq!(of(&found, 0, true), []);
    assert_eq!(of(&found, 1, false), []);
}

#[test]
fn loops_step_and_guards_keep_out() {
    let found = accesses("accessed_loop.spv", &[100, 7], Some([2, 1, 1]));
    assert_eq!(of(&found, 0, false), [bytes(0, 4, &[(8, 4), (28, 100)])]);
    assert_eq!(of(&found, 1, false), [bytes(0, 400, &[])], "100 of 128 invocations have a row");
    assert_eq!(of(&found, 1, true), [bytes(0, 400, &[])]);
    let none = accesses("accessed_loop.spv", &[0, 7], Some([2, 1, 1]));
    assert!(none.is_empty(), "no invocation has a row: {none:?}");
    let unknown = accesses("accessed_loop.spv", &[100, 7], None);
    assert_eq!(of(&unknown, 1, true), [bytes(0, 400, &[])], "whatever the number of workgroups");
}

#[test]
fn fractions_and_limits_bound_what_is_read() {
    let found = accesses("accessed_resize.spv", &[], Some([2, 1, 1]));
    assert_eq!(of(&found, 0, false), [bytes(0, 64 * 4, &[]), bytes(200 * 4, 100 * 4, &[])]);
    assert_eq!(of(&found, 1, false), [bytes(0, 128 * 4, &[])]);
    // An address that memory holds may be any.
    assert_eq!(of(&found, 2, true), [bytes(0, 4 << 32, &[])]);
}

#[test]
fn tables_of_addresses_are_followed() {
    let found = accesses("elementwise_bda.spv", &[0; 8], Some([1, 1, 1]));
    let expected =
        |index, write| Access { resource: Resource::Address(index), write, bytes: bytes(0, 16, &[]) };
    assert_eq!(found, [expected(0, false), expected(1, false), expected(2, true)]);
}

#[test]
fn unknown_launches_and_names_are_no_trouble() {
    let found = accesses("accessed_rows.spv", &[], Some([48, 1, 1]));
    assert_eq!(of(&found, 1, true), [bytes(0, 4 << 32, &[])], "the push constant is missing");
    let words = [0x0723_0203];
    assert!(AccessPlan::new(&words, "main").is_err());
}
