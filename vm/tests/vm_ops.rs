//! The comparison with what the real runtime printed for 921 calls of 178 functions over the scalar operations.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use crate::common;
use std::{collections::HashSet, fs};

use bytes::Bytes;
use halite_formats::vmfb::read_module;
use halite_vm::{Context, FunctionHandle, Kind, Module, Param, Value};
use serde_json::Value as Json;

fn parse(text: &str, kind: Kind) -> Value {
    match kind {
        Kind::I32 => {
            let v: i64 = text.parse().unwrap();
            Value::I32(v as i32)
        }
        Kind::I64 => Value::I64(text.parse().unwrap()),
        Kind::F32 => Value::F32(text.parse().unwrap()),
        Kind::F64 => Value::F64(text.parse().unwrap()),
        Kind::Ref => panic!("scalar functions take no refs"),
    }
}

fn print(value: &Value) -> String {
    match value {
        Value::I32(v) => format!("i32={v}"),
        Value::I64(v) => format!("i64={v}"),
        Value::F32(v) => format!("f32={}", common::printf_g(f64::from(*v))),
        Value::F64(v) => format!("f64={}", common::printf_g(*v)),
        Value::Ref(_) => "ref".into(),
    }
}

/// The real tool prints the sign of NaN as the C library does, which depends on the machine that made it.
fn same(ours: &str, theirs: &str) -> bool {
    ours.replace("-nan", "nan") == theirs.replace("-nan", "nan")
}

/// Calls a function; `Err` says how the outcome differs.
fn check(context: &Context, function: &FunctionHandle, call: &Json) -> Result<(), String> {
    let kinds = function.signature().args.iter().map(|p| match p {
        Param::One(kind) => *kind,
        Param::Span(_) => panic!("exports are not variadic"),
    });
    let inputs = call["inputs"].as_array().unwrap();
    let args: Vec<Value> = inputs.iter().zip(kinds).map(|(t, k)| parse(t.as_str().unwrap(), k)).collect();
    let ours = context.invoke(function, &args, &common::soon());
    let name = call["function"].as_str().unwrap();
    match (ours, call["rc"].as_i64().unwrap()) {
        (Ok(values), 0) => {
            let expected: Vec<&str> =
                call["results"].as_array().unwrap().iter().map(|r| r.as_str().unwrap()).collect();
            let actual: Vec<String> = values.iter().map(print).collect();
            if actual.len() == expected.len() && actual.iter().zip(&expected).all(|(a, e)| same(a, e)) {
                return Ok(());
            }
            Err(format!("{name}({inputs:?}): {actual:?} instead of {expected:?}"))
        }
        (Err(status), rc) if rc != 0 => {
            let expected = call["error"].as_str().unwrap();
            match expected.contains(status.code().name()) && expected.contains(status.message()) {
                true => Ok(()),
                false => Err(format!("{name}: failed with {status} instead of {expected}")),
            }
        }
        (ours, rc) => Err(format!("{name}({inputs:?}): {ours:?}, but the real exit status is {rc}")),
    }
}

#[test]
fn all_calls_agree_with_the_real_runtime() {
    let Some(root) = common::corpus() else { return };
    let (mut calls, mut functions, mut wrong) = (0, HashSet::new(), Vec::new());
    for line in fs::read_to_string(root.join("vm_ops/manifest.jsonl")).unwrap().lines() {
        let row: Json = serde_json::from_str(line).unwrap();
        let file = fs::read(root.join(row["vmfb"].as_str().unwrap())).unwrap();
        let module = Module::load(read_module(Bytes::from(file)).unwrap()).unwrap();
        let context = Context::new(&[], std::slice::from_ref(&module)).unwrap();
        for call in row["calls"].as_array().unwrap() {
            let name = call["function"].as_str().unwrap();
            let function = context.lookup(module.name(), name).unwrap();
            functions.insert(name.to_owned());
            calls += 1;
            wrong.extend(check(&context, &function, call).err());
        }
    }
    assert!(wrong.is_empty(), "{} of {calls} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!((calls, functions.len()), (921, 178));
}

#[test]
fn printf_g_is_that_of_c() {
    for (value, text) in [
        (0.0, "0"),
        (-0.0, "-0"),
        (0.1, "0.1"),
        (1e6, "1e+06"),
        (123456.0, "123456"),
        (1234567.0, "1.23457e+06"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (5.26354424712089e-315, "5.26354e-315"),
        (f64::NEG_INFINITY, "-inf"),
        (-2.5, "-2.5"),
        (999999.9, "1e+06"),
    ] {
        assert_eq!(common::printf_g(value), text);
    }
}
