//! Runs the modules of the corpus that real compilers made, and compares results with the recorded ones: scalar
//! programs without a device, tensor programs on llvmpipe. Skips loudly what is not there.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use halite_hal::{DriverRegistry, Options};
use halite_runtime::{
    CallOptions, CancelToken, Deadline, Session, Value,
    tensor::{ArgumentKind, HostValue, InputReader, Tolerance, compare, format_g},
};
use halite_vulkan as _;
use serde_json::Value as Json;

fn corpus() -> Option<PathBuf> {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/corpus/vmfb"));
    if path.is_dir() {
        return Some(path.to_owned());
    }
    eprintln!("SKIPPED: no corpus at {}", path.display());
    None
}

fn manifest(folder: &Path) -> Vec<Json> {
    let text = std::fs::read_to_string(folder.join("manifest.jsonl")).expect("a manifest");
    text.lines().filter(|l| !l.trim().is_empty()).map(|l| serde_json::from_str(l).expect("JSON")).collect()
}

/// Limits that a hanging program meets.
fn limits() -> CallOptions {
    CallOptions {
        deadline: Deadline::after(Duration::from_secs(120)),
        cancel: None,
        after: None,
        held: false,
    }
}

fn text<'a>(json: &'a Json, key: &str) -> &'a str {
    json[key].as_str().unwrap_or_default()
}

fn list<'a>(json: &'a Json, key: &str) -> &'a [Json] {
    json[key].as_array().map_or(&[], Vec::as_slice)
}

/// File names in flags are relative to the corpus.
fn absolute(root: &Path, flag: &str) -> String {
    let prefix = format!("{}/", root.display());
    match flag.split_once('@') {
        Some((before, file)) if before.is_empty() || before.ends_with('=') => {
            format!("{before}@{prefix}{file}")
        }
        _ => flag.to_owned(),
    }
}

/// Calls a function with input flags.
fn call(session: &Session, root: &Path, name: &str, flags: &[Json]) -> Result<Vec<Value>, String> {
    let function = session.function(name).map_err(|e| e.to_string())?;
    let kinds: Vec<ArgumentKind> =
        function.info().input_kinds().iter().map(|k| ArgumentKind::from(*k)).collect();
    let flags: Vec<_> = flags
        .iter()
        .map(|f| absolute(root, f.as_str().or_else(|| f["flag"].as_str()).unwrap_or_default()))
        .collect();
    let inputs = InputReader::new().read_all(&flags, &kinds).map_err(|e| e.to_string())?;
    let args = inputs.iter().map(|v| Value::from_host(session.device(), v)).collect::<Result<Vec<_>, _>>();
    function.call_with(&args.map_err(|e| e.to_string())?, &limits()).map_err(|e| e.to_string())
}

/// A scalar as IREE's tools print it. The sign of a NaN depends on the mathematical library and is left out.
fn printed(value: &Value) -> String {
    match value {
        Value::F32(v) if v.is_nan() => "f32=nan".to_owned(),
        Value::F64(v) if v.is_nan() => "f64=nan".to_owned(),
        Value::I32(v) => format!("i32={v}"),
        Value::I64(v) => format!("i64={v}"),
        Value::F32(v) => format!("f32={}", format_g((*v).into(), false)),
        Value::F64(v) => format!("f64={}", format_g(*v, false)),
        other => format!("{other:?}"),
    }
}

/// Compares results with the manifest's expectations.
fn check(root: &Path, call: &Json, results: &[Value]) -> Result<(), String> {
    let expected = list(call, "expected");
    if results.len() != expected.len() {
        return Err(format!("{} results, expected {}", results.len(), expected.len()));
    }
    let (absolute_tolerance, relative) =
        (call["atol"].as_f64().unwrap_or(0.0), call["rtol"].as_f64().unwrap_or(0.0));
    let [f16, bf16, f32, f64] = [absolute_tolerance; 4];
    let tolerance = Tolerance { exact: false, f16, bf16, f32, f64, relative };
    for (i, (result, expected)) in results.iter().zip(expected).enumerate() {
        if expected["any"].as_bool() == Some(true) {
            continue;
        }
        if let Some(text) = expected["text"].as_str() {
            if printed(result) != text {
                return Err(format!("result {i} is {}, expected {text}", printed(result)));
            }
            continue;
        }
        let view = result.as_view().ok_or_else(|| format!("result {i} is {}", result.kind()))?;
        let actual = view.to_host().map_err(|e| e.to_string())?;
        let flag = absolute(root, text(expected, "flag"));
        let wanted = InputReader::new().read_all(&[flag], &[ArgumentKind::Reference]);
        let Ok([HostValue::Tensor(wanted)]) = wanted.as_deref() else { return Err(format!("{wanted:?}")) };
        compare(&actual, wanted, &tolerance).map_err(|m| format!("result {i}: {m}"))?;
    }
    Ok(())
}

#[test]
fn scalar_programs_without_a_device() {
    let Some(root) = corpus() else { return };
    let mut sessions = BTreeMap::new();
    let (mut calls, mut wrong) = (0, Vec::new());
    for row in manifest(&root.join("vm_ops")) {
        let path = text(&row, "vmfb").to_owned();
        let session = sessions
            .entry(path.clone())
            .or_insert_with(|| Session::builder().module_file(root.join(&path)).build().unwrap());
        assert!(session.device().is_none());
        for case in list(&row, "calls") {
            calls += 1;
            let name = text(case, "function");
            let outcome = call(session, &root, name, list(case, "inputs"));
            let fails = case["rc"].as_i64() != Some(0);
            match outcome {
                Err(_) if fails => {}
                Ok(results) if !fails => {
                    let results: Vec<_> = results.iter().map(printed).collect();
                    let recorded = list(case, "results").iter().filter_map(Json::as_str);
                    if !results.iter().map(String::as_str).eq(recorded.map(|r| r.replace("-nan", "nan"))) {
                        wrong.push(format!(
                            "{name}({}) = {results:?}, recorded {}",
                            case["inputs"], case["results"]
                        ));
                    }
                }
                other => wrong
                    .push(format!("{name}({}) = {other:?}, recorded {}", case["inputs"], case["results"])),
            }
        }
    }
    eprintln!("{calls} calls of {} modules, {} differ", sessions.len(), wrong.len());
    assert!(calls > 500 && wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A device by a part of its name, when a driver finds it. Modules whose only kernels take device addresses have to be
/// allowed to on a processor.
fn device_for(name: &str, addresses: bool) -> Option<std::sync::Arc<dyn halite_hal::Device>> {
    device(&if addresses { format!("{name}?dispatch_abi=all") } else { name.to_owned() })
}

fn device(name: &str) -> Option<std::sync::Arc<dyn halite_hal::Device>> {
    let registry = DriverRegistry::with_static_drivers();
    match halite_layers::open(&registry, &format!("vulkan://{name}"), &Options::new()) {
        Ok(device) => Some(device),
        Err(e) => {
            eprintln!("SKIPPED: no {name}: {e}");
            None
        }
    }
}

/// Runs a module on a device; `name` is what the manifest calls it.
fn run_case(
    root: &Path,
    row: &Json,
    device: &std::sync::Arc<dyn halite_hal::Device>,
    name: &str,
) -> Result<(), String> {
    let calls = list(row, "calls");
    let mut builder = Session::builder()
        .devices(vec![device.clone()])
        .module_file(root.join(text(row, "vmfb")))
        .init_options(limits());
    let without_parameters = calls.iter().all(|c| c["no_params"].as_bool() == Some(true));
    for flag in list(row, "run_flags").iter().filter_map(Json::as_str).filter(|_| !without_parameters) {
        if let Some((scope, file)) = flag.strip_prefix("--parameters=").and_then(|f| f.split_once('=')) {
            if !root.join(file).exists() {
                eprintln!("SKIPPED: {}: the corpus has no {file}", text(row, "name"));
                return Ok(());
            }
            builder = builder.parameters(scope, root.join(file));
        }
    }
    let session = builder.build();
    // Where the original computes wrong numbers with code for other subgroup widths: the right ones, or a refusal.
    let repaired = text(row, "name").starts_with("target_") && text(&row["result"], name) == "mismatch";
    if repaired && session.as_ref().is_err_and(|e| e.code() == halite_hal::Code::Unavailable) {
        return Ok(());
    }
    for case in calls.iter().filter(|c| c["no_params"].as_bool() != Some(true) || without_parameters) {
        if !repaired && case[name]["status"].as_str() != Some("pass") {
            continue;
        }
        let fails = case["expect_fail"].as_str();
        let outcome = match &session {
            Ok(session) => call(session, root, text(case, "function"), list(case, "inputs")),
            Err(e) => Err(e.to_string()),
        };
        match (outcome, fails) {
            (Ok(results), None) => check(root, case, &results)?,
            (Ok(_), Some(code)) => return Err(format!("succeeded, expected {code}")),
            (Err(e), Some(code)) if e.starts_with(code) => {}
            (Err(e), _) => return Err(e),
        }
    }
    Ok(())
}

fn tensor_programs(name: &str) {
    let Some(root) = corpus() else { return };
    let Some(device) = device(name) else { return };
    let (mut cases, mut wrong) = (0, Vec::new());
    for row in manifest(&root.join("small")).iter().filter(|row| row["vmfb_bytes"].is_number()) {
        cases += 1;
        let addresses =
            list(row, "flags").iter().any(|f| f.as_str() == Some("--iree-vulkan-dispatch-abi=bda"));
        let asked = if addresses { device_for(name, true) } else { None };
        let device = asked.as_ref().unwrap_or(&device);
        if let Err(e) = run_case(&root, row, device, name) {
            wrong.push(format!("{}: {e}", text(row, "name")));
        }
    }
    eprintln!("{name}: {cases} modules, {} differ", wrong.len());
    assert!(cases > 80 && wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn tensor_programs_on_llvmpipe() {
    tensor_programs("llvmpipe");
}

#[test]
fn tensor_programs_on_swiftshader() {
    tensor_programs("swiftshader");
}

#[test]
fn a_device_of_the_wrong_kind_is_refused() {
    let Some(root) = corpus() else { return };
    let mut registry = DriverRegistry::empty();
    registry.register(std::sync::Arc::new(halite_null::NullDriver));
    let builder =
        || Session::builder().registry(registry.clone()).module_file(root.join("small/add_f32/module.vmfb"));
    let e = builder().device("null").build().unwrap_err();
    assert!(
        e.to_string().starts_with("INCOMPATIBLE; HAL device `__device_0` not found or unavailable"),
        "{e}"
    );
    assert!(
        e.to_string().contains("the module holds code of format vulkan-spirv-fb; device 'null://' on ")
            && e.to_string().contains(" runs "),
        "{e}"
    );
    // A device that computes nothing is not chosen unless it is named.
    let e = builder().build().unwrap_err();
    assert!(e.to_string().starts_with("UNAVAILABLE; a module needs a device and none can be used"), "{e}");
    assert!(e.to_string().contains("null://"), "{e}");
    let e = builder().device("nul").build().unwrap_err();
    assert!(e.to_string().contains("no driver named 'nul'; available drivers: null"), "{e}");
}

#[test]
fn calls_end_at_deadline_and_cancellation() {
    fn shared_by_threads<T: Send + Sync>(_: &T) {}
    let Some(root) = corpus() else { return };
    let session = Session::builder().module_file(root.join("small/scalar_loop_fib/module.vmfb"));
    let session = session.build().expect("a module without device");
    shared_by_threads(&session);
    let fib = session.default_function().expect("one function");
    shared_by_threads(&fib);
    let code = |options: &CallOptions| {
        fib.call_with(&[Value::I32(i32::MAX)], options)
            .expect_err("two thousand million loops take longer")
            .code()
    };
    let late = CallOptions {
        deadline: Deadline::after(Duration::from_millis(30)),
        cancel: None,
        after: None,
        held: false,
    };
    assert_eq!(code(&late), halite_hal::Code::DeadlineExceeded);
    let cancel = CancelToken::new();
    let options = CallOptions { cancel: Some(cancel.clone()), ..CallOptions::default() };
    std::thread::scope(|scope| {
        let call = scope.spawn(|| code(&options));
        cancel.cancel();
        assert_eq!(call.join().expect("no panic"), halite_hal::Code::Cancelled);
    });
    let results = fib.call(&[Value::I32(10)]).expect("the session works on");
    assert!(matches!(results[..], [Value::I64(55)]));
}

#[test]
fn errors_say_what_exists() {
    let Some(root) = corpus() else { return };
    let builder = || Session::builder().module_file(root.join("vm_ops/i32.vmfb"));
    let Ok(session) = builder().build() else { return eprintln!("SKIPPED: no vm_ops/i32.vmfb") };
    let e = session.function("no_such").unwrap_err().to_string();
    assert!(e.starts_with("no function 'no_such'; exported functions: "), "{e}");
    let function = session.function(session.modules()[0].functions[0].name.as_str()).unwrap();
    let e = function.call(&[]).unwrap_err().to_string();
    assert!(e.contains("input list and function mismatch") && e.contains(function.info().describe()), "{e}");
    let e = Session::builder().module_file(root.join("no such.vmfb")).build().unwrap_err();
    assert!(e.to_string().contains("no such.vmfb"), "{e}");
    let e = Session::builder().module_bytes(b"nonsense".as_slice()).build().unwrap_err();
    assert!(e.to_string().starts_with("cannot load module '<8 bytes>'"), "{e}");
}
