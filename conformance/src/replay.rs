//! Running a program of a corpus on a device and judging its results.

use std::{fmt, path::Path, sync::Arc, time::Duration};

use halite_abi::{Code, Result, Status, status};
use halite_hal::Device;
use halite_ops::DType;
use halite_runtime::{
    BufferView, CallOptions, Deadline, ElementType, HostTensor, Session, Value,
    tensor::{self, ArgumentKind, HostValue, InputReader, Tolerance, compare, format_g},
};
use halite_testing::{Numbers, Wrong, drivers, ulp};

use crate::{
    corpus::{Call, CorpusModule, Expected},
    suites,
};

/// Longest time one call may take, shader compilation included.
const CALL_LIMIT: Duration = Duration::from_secs(300);

/// How a call ended.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// As expected.
    Pass,
    /// It ran, but a result is wrong.
    Mismatch(Box<Wrong>),
    /// It should have worked but gave an error, or should have failed but worked.
    Error(String),
}

impl Verdict {
    /// Whether it ended as expected.
    pub fn passed(&self) -> bool {
        matches!(self, Verdict::Pass)
    }

    /// As that of a case.
    pub fn of_case(&self) -> suites::Verdict {
        match self {
            Verdict::Pass => suites::Verdict::Pass,
            Verdict::Mismatch(wrong) => suites::Verdict::Wrong(wrong.clone()),
            Verdict::Error(what) => suites::Verdict::Fail(what.clone()),
        }
    }
}

/// The name of the case that a program is: `small/add_f32` is `modules.small.add_f32`.
pub fn case_name(program: &str) -> String {
    format!("modules.{}", program.replace('/', "."))
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Pass => f.write_str("pass"),
            Verdict::Mismatch(wrong) => write!(f, "mismatch: {}", wrong.what),
            Verdict::Error(what) => write!(f, "error: {what}"),
        }
    }
}

/// Runs all calls of a program on one device, which stands for all that it wants; one verdict per call.
pub fn run(root: &Path, program: &CorpusModule, device: &Arc<dyn Device>) -> Vec<Verdict> {
    run_on(root, program, &vec![device.clone(); program.devices.len().max(1)])
}

/// Runs all calls of a program on these devices; one verdict per call.
pub fn run_on(root: &Path, program: &CorpusModule, devices: &[Arc<dyn Device>]) -> Vec<Verdict> {
    let mut shared = None;
    let mut verdicts = Vec::new();
    for call in &program.calls {
        let session = match shared.take() {
            Some(session) => Ok(session),
            None => session(root, program, call, devices),
        };
        let verdict = match &session {
            Err(e) => judge(call, Err(status!(Unknown, "{e}"))),
            Ok(session) => judge(call, run_call(root, session, call)),
        };
        verdicts.push(verdict);
        shared = session.ok().filter(|_| program.sequence);
    }
    verdicts
}

/// Loads a program on devices, as this call wants it.
pub fn session(
    root: &Path,
    program: &CorpusModule,
    call: &Call,
    devices: &[Arc<dyn Device>],
) -> halite_runtime::Result<Session> {
    let devices =
        devices.iter().map(|device| if program.addresses { allowing(device) } else { device.clone() });
    let mut builder = Session::builder().devices(devices.collect()).module_file(&program.module);
    for (scope, file) in program.parameters.iter().filter(|_| !call.without_parameters) {
        builder = builder.parameters(scope, root.join(file));
    }
    builder.build()
}

/// Why machine code of a program of the corpus, which is for x86-64 and Linux, cannot run on these devices: the runtime knows which
/// processor a module was compiled for.
pub fn unfit_processor(root: &Path, program: &CorpusModule, devices: &[Arc<dyn Device>]) -> Option<String> {
    if cfg!(not(all(target_arch = "x86_64", target_os = "linux"))) {
        return Some("the code is for x86-64 on Linux".to_owned());
    }
    let why = session(root, program, program.calls.first()?, devices).err()?;
    (why.code() == Code::Incompatible).then(|| why.to_string())
}

/// The same device, opened so that it takes what nothing confines; itself where that cannot be asked for.
fn allowing(device: &Arc<dyn Device>) -> Arc<dyn Device> {
    let info = device.info();
    let options = info.unconfined.iter().map(|code| (code.option.clone(), code.allow.clone())).collect();
    let opened = halite_layers::open(&drivers::registry(&[]), &info.uri(), &options);
    opened.unwrap_or_else(|_| device.clone())
}

fn judge(call: &Call, outcome: Result<Option<Box<Wrong>>>) -> Verdict {
    match (outcome, call.must_fail) {
        (Ok(_), true) => Verdict::Error("the call must fail, but it worked".to_owned()),
        (Ok(None), false) | (Err(_), true) => Verdict::Pass,
        (Ok(Some(mismatch)), false) => Verdict::Mismatch(mismatch),
        (Err(e), false) => Verdict::Error(e.to_string()),
    }
}

/// Makes one call and returns what it gave.
pub fn results(root: &Path, session: &Session, call: &Call) -> Result<Vec<Value>> {
    let function = session.function(&call.function).map_err(to_status)?;
    let kinds: Vec<_> = function
        .info()
        .calling_convention
        .chars()
        .take_while(|c| *c != '_')
        .filter_map(ArgumentKind::from_char)
        .collect();
    let texts: Vec<String> = call.inputs.iter().map(|text| rooted(root, text)).collect();
    let inputs = InputReader::new().read_all(&texts, &kinds)?;
    let args = inputs.into_iter().map(|v| to_value(session, v)).collect::<Result<Vec<_>>>()?;
    let options = CallOptions { deadline: Deadline::after(CALL_LIMIT), ..CallOptions::default() };
    function.call_with(&args, &options).map_err(to_status)
}

/// What calls should give that give what this one gave.
pub fn expectation(results: &[Value]) -> Result<Vec<Expected>> {
    let expected = results.iter().map(|result| match result {
        Value::View(view) => Ok(Expected::Known(view.to_host()?)),
        scalar => Ok(Expected::Scalar(print_scalar(scalar))),
    });
    expected.collect()
}

/// Makes one call. `Ok(Some(_))` says which result is wrong.
pub fn run_call(root: &Path, session: &Session, call: &Call) -> Result<Option<Box<Wrong>>> {
    let results = results(root, session, call)?;
    if results.len() != call.expected.len() {
        return Ok(Some(Wrong::words(format!(
            "{} results, expected {}",
            results.len(),
            call.expected.len()
        ))));
    }
    for (n, (result, expected)) in results.iter().zip(&call.expected).enumerate() {
        if let Some(mut wrong) = differs(root, result, expected, call.tolerance)? {
            wrong.what = format!("{} result[{n}]: {}", call.function, wrong.what);
            if let Some(numbers) = &mut wrong.numbers {
                numbers.output = format!("{} result[{n}]", call.function);
            }
            return Ok(Some(wrong));
        }
    }
    Ok(None)
}

fn to_status(error: halite_runtime::Error) -> Status {
    status!(Unknown, "{error}")
}

/// File names in an input text are relative to the corpus.
fn rooted(root: &Path, text: &str) -> String {
    match text.split_once('@') {
        Some((head, file)) if head.is_empty() || head.ends_with('=') => {
            format!("{head}@{}", root.join(file).display())
        }
        _ => text.to_owned(),
    }
}

fn to_value(session: &Session, value: HostValue) -> Result<Value> {
    let device = || session.device().ok_or_else(|| status!(FailedPrecondition, "the program has no device"));
    Ok(match value {
        HostValue::I32(v) => Value::I32(v),
        HostValue::I64(v) => Value::I64(v),
        HostValue::F32(v) => Value::F32(v),
        HostValue::F64(v) => Value::F64(v),
        HostValue::Tensor(t) => Value::View(BufferView::from_host(device()?, &t)?),
        HostValue::Buffer(t) => Value::Buffer(BufferView::from_host(device()?, &t)?.span),
        HostValue::List(all) => {
            Value::List(all.into_iter().map(|one| to_value(session, one)).collect::<Result<_>>()?)
        }
        HostValue::Null | HostValue::Ignored(_) => Value::Null,
    })
}

fn differs(
    root: &Path,
    result: &Value,
    expected: &Expected,
    tolerance: (f64, f64),
) -> Result<Option<Box<Wrong>>> {
    match (expected, result) {
        (Expected::Any, _) => Ok(None),
        (Expected::Scalar(text), scalar) => {
            let printed = print_scalar(scalar);
            Ok((!is_same(&printed, text)).then(|| wrong_scalar(text, &printed)))
        }
        (Expected::Tensor(text), Value::View(view)) => {
            let expected = InputReader::new().read_all(&[rooted(root, text)], &[ArgumentKind::Reference])?;
            let Some(HostValue::Tensor(expected)) = expected.into_iter().next() else {
                return Err(status!(InvalidArgument, "'{text}' is no tensor"));
            };
            mismatch(&view.to_host()?, &expected, tolerance)
        }
        (Expected::Known(expected), Value::View(view)) => mismatch(&view.to_host()?, expected, tolerance),
        (Expected::Tensor(_) | Expected::Known(_), other) => {
            Ok(Some(Wrong::words(format!("a {} instead of a tensor", other.kind()))))
        }
    }
}

/// Whether two printed numbers are the same. The sign of what is no number means nothing: libraries of systems choose it as they like.
fn is_same(printed: &str, expected: &str) -> bool {
    let plain = |text: &str| text.replace("=-nan", "=nan");
    printed == expected || plain(printed) == plain(expected)
}

fn wrong_scalar(expected: &str, got: &str) -> Box<Wrong> {
    let (kind, expected) = expected.split_once('=').unwrap_or(("", expected));
    let got = got.strip_prefix(kind).and_then(|rest| rest.strip_prefix('=')).unwrap_or(got);
    let numbers = Numbers {
        output: String::new(),
        shape: kind.to_owned(),
        index: Vec::new(),
        expected: expected.to_owned(),
        got: got.to_owned(),
        ulp: None,
        tolerance: String::new(),
        wrong: 1,
        of: 1,
    };
    Box::new(Wrong { what: format!("{kind}={got}, expected {kind}={expected}"), numbers: Some(numbers) })
}

/// How a tensor differs from what is expected; the tolerance is relative and absolute.
pub fn mismatch(
    found: &HostTensor,
    expected: &HostTensor,
    (rtol, atol): (f64, f64),
) -> Result<Option<Box<Wrong>>> {
    let tolerance = Tolerance { exact: false, f16: atol, bf16: atol, f32: atol, f64: atol, relative: rtol };
    let Err(mismatch) = compare(found, expected, &tolerance) else { return Ok(None) };
    let what = mismatch.to_string();
    let tensor::Mismatch::Element { index, actual, expected: wanted, count, .. } = mismatch else {
        return Ok(Some(Wrong::words(what)));
    };
    let ulp = dtype(expected.element_type)
        .and_then(|dtype| ulp(actual.trim().parse().ok()?, wanted.trim().parse().ok()?, dtype));
    let numbers = Numbers {
        output: String::new(),
        shape: expected.metadata(),
        index: vec![index],
        expected: wanted,
        got: actual,
        ulp,
        tolerance: format!("{atol:e} + {rtol:e} * |expected|"),
        wrong: count.0,
        of: count.1,
    };
    Ok(Some(Box::new(Wrong { what, numbers: Some(numbers) })))
}

/// The float types whose steps can be counted.
fn dtype(element: ElementType) -> Option<DType> {
    match element {
        ElementType::F16 => Some(DType::F16),
        ElementType::BF16 => Some(DType::BF16),
        ElementType::F32 => Some(DType::F32),
        ElementType::F64 => Some(DType::F64),
        _ => None,
    }
}

fn print_scalar(value: &Value) -> String {
    match value {
        Value::I32(v) => format!("i32={v}"),
        Value::I64(v) => format!("i64={v}"),
        Value::F32(v) => format!("f32={}", format_g(f64::from(*v), false)),
        Value::F64(v) => format!("f64={}", format_g(*v, false)),
        other => other.kind().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sign_of_what_is_no_number_does_not_count() {
        assert!(
            is_same("f32=-nan", "f32=nan") && is_same("f64=nan", "f64=-nan") && is_same("i32=-1", "i32=-1")
        );
        assert!(
            !is_same("f32=-nan", "f32=1") && !is_same("f32=-1", "f32=1") && !is_same("f32=nan", "f64=nan")
        );
    }
}
