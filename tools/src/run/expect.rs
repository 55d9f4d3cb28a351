//! `--expected_output`: the verdict on each result, and its text.

use std::io::Write;

use halite::host::{self, Tolerance};
use halite_abi::object;
use serde_json::json;

use crate::{
    console::{self, Result},
    engine::{HostTensor, HostValue, Value},
    flags::CompareFlags,
    inputs::{self, What},
    ports::Port,
    values,
};

/// Why a result is not what was expected.
struct Mismatch {
    message: String,
    /// Expected and actual tensor, where both are tensors.
    tensors: Option<(HostTensor, HostTensor)>,
}

/// The verdict on all results: one line per failure, `None` for the count itself.
pub(super) struct Report {
    failures: Vec<(Option<usize>, Mismatch)>,
}

/// Compares all results.
pub(super) fn check(ports: &[Port], results: &[Value], flags: &CompareFlags) -> Result<Report> {
    let what = What { one: "expected output", pictures: None };
    let expected = inputs::read(&flags.expected_output, ports, what)
        .map_err(|failure| failure.context("parsing expected function outputs"))?;
    let expected: Vec<_> = expected.into_iter().map(|value| value.unwrap_or(HostValue::Null)).collect();
    let mut failures = Vec::new();
    if expected.len() != results.len() {
        let message = format!("expected {} list elements but {} provided", expected.len(), results.len());
        failures.push((None, Mismatch { message, tensors: None }));
        return Ok(Report { failures });
    }
    let tolerance = flags.tolerance();
    for (i, (expected, actual)) in expected.into_iter().zip(results).enumerate() {
        if let Some(mismatch) = compare(expected, actual, &tolerance)? {
            failures.push((Some(i), mismatch));
        }
    }
    Ok(Report { failures })
}

fn compare(expected: HostValue, actual: &Value, tolerance: &Tolerance) -> Result<Option<Mismatch>> {
    let equal = match (&expected, actual) {
        (HostValue::Null | HostValue::Ignored(_), _) => true,
        (HostValue::I32(e), Value::I32(a)) => a == e,
        (HostValue::I64(e), Value::I64(a)) => a == e,
        (HostValue::F32(e), Value::F32(a)) => tolerance.accepts_f32(*a, *e),
        (HostValue::F64(e), Value::F64(a)) => tolerance.accepts_f64(*a, *e),
        (HostValue::Tensor(e), Value::Tensor(a)) => {
            return compare_tensors(e, HostTensor::try_from(a)?, tolerance);
        }
        (HostValue::Buffer(e), Value::Buffer(buffer)) => {
            // Trailing bytes beyond what was expected may be padding.
            let bytes = buffer.to_bytes()?;
            let Some(data) = bytes.get(..e.data.len()) else {
                let message = format!("buffer has {} bytes; expected at least {}", bytes.len(), e.data.len());
                return Ok(Some(Mismatch { message, tensors: None }));
            };
            let a = HostTensor::new(e.element_type, e.shape.clone(), data.to_vec())?;
            return compare_tensors(e, a, tolerance);
        }
        _ => {
            let message = format!(
                "variant types mismatch; expected {} but got {}",
                expected_type(&expected),
                values::type_name(actual)
            );
            return Ok(Some(Mismatch { message, tensors: None }));
        }
    };
    if equal {
        return Ok(None);
    }
    let actual = values::scalar_text(actual).unwrap_or_default();
    let wanted = scalar_of(&expected).unwrap_or_default();
    let message = format!("{actual} does not match the expected {wanted}");
    Ok(Some(Mismatch { message, tensors: None }))
}

fn compare_tensors(
    expected: &HostTensor,
    actual: HostTensor,
    tolerance: &Tolerance,
) -> Result<Option<Mismatch>> {
    Ok(host::compare(&actual, expected, tolerance)
        .err()
        .map(|m| Mismatch { message: m.to_string(), tensors: Some((expected.clone(), actual)) }))
}

fn expected_type(value: &HostValue) -> &'static str {
    match value {
        HostValue::I32(_) => "i32",
        HostValue::I64(_) => "i64",
        HostValue::F32(_) => "f32",
        HostValue::F64(_) => "f64",
        HostValue::Tensor(_) => object::BUFFER_VIEW,
        HostValue::Buffer(_) => object::BUFFER,
        HostValue::List(_) => "vm.list",
        HostValue::Null | HostValue::Ignored(_) => "empty",
    }
}

fn scalar_of(value: &HostValue) -> Option<String> {
    let value = match *value {
        HostValue::I32(v) => Value::I32(v),
        HostValue::I64(v) => Value::I64(v),
        HostValue::F32(v) => Value::F32(v),
        HostValue::F64(v) => Value::F64(v),
        _ => return None,
    };
    values::scalar_text(&value)
}

/// Prints the verdict; a failed one is a failure of the tool.
pub(super) fn print(report: &Report, as_json: bool, max_elements: u64, out: &mut dyn Write) -> Result<()> {
    console::verdict(write(report, as_json, max_elements, out), report.failures.is_empty())
}

fn write(report: &Report, as_json: bool, max_elements: u64, out: &mut dyn Write) -> Result<()> {
    if as_json {
        let failures: Vec<_> = report
            .failures
            .iter()
            .map(|(index, mismatch)| json!({"result": index, "message": mismatch.message}))
            .collect();
        writeln!(out, "{}", json!({"success": failures.is_empty(), "failures": failures}))?;
    } else if report.failures.is_empty() {
        writeln!(out, "[SUCCESS] all function outputs matched their expected values.")?;
    } else {
        for (index, mismatch) in &report.failures {
            let place = index.map(|i| format!("result[{i}]: ")).unwrap_or_default();
            writeln!(out, "[FAILED] {place}{}", mismatch.message)?;
            if let Some((expected, actual)) = &mismatch.tensors {
                writeln!(out, "  expected:\n{}", expected.display(max_elements))?;
                writeln!(out, "  actual:\n{}", actual.display(max_elements))?;
            }
        }
    }
    Ok(())
}
