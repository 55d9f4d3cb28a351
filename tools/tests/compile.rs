//! `compile-module`, and models that the other tools compile on their way: what is written, what is kept, what is refused.

use crate::common;
use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::Stdio,
};

use crate::common::{command, finish, has_llvmpipe, run, run_in};
use serde_json::Value;

/// A file of the repository.
fn repo(path: &str) -> String {
    format!("{}/../{path}", env!("CARGO_MANIFEST_DIR"))
}

fn data(name: &str) -> String {
    repo(&format!("compiler/tests/data/{name}.onnx"))
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().to_owned();
    (folder, path)
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// Compiles, and expects that it works.
fn compile(folder: &Path, args: &[&str]) -> common::Ran {
    let ran = run_in(folder, "compile-module", args);
    assert_eq!(ran.code, 0, "{args:?}: {}", ran.stderr);
    ran
}

#[test]
fn what_is_written_is_the_same_each_time_and_as_a_whole() {
    let (_keep, folder) = folder();
    let digits = repo("demo/digits/digits.onnx");
    let ran = compile(&folder, &[&digits]);
    assert!(ran.stdout.is_empty() && ran.stderr.contains("digits.vmfb: "), "{}", ran.stderr);
    compile(&folder, &[&digits, "--output=again.vmfb", "--quiet"]);
    let first = fs::read(folder.join("digits.vmfb")).unwrap();
    assert_eq!(first, fs::read(folder.join("again.vmfb")).unwrap());
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 2, "something was left behind");

    let mut child = command("compile-module")
        .args(["-", "--format=onnx", "--module-name=digits", "--output=-", "--quiet"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&fs::read(&digits).unwrap()).unwrap();
    // It says that it came from the model's own name, where the other names the file.
    let streamed = child.wait_with_output().unwrap().stdout;
    assert_eq!(streamed.len(), first.len());
    assert!(streamed.iter().zip(&first).filter(|(a, b)| a != b).count() < 64, "other code");

    let ran = run_in(&folder, "compile-module", &[&digits, "--output=no/such/folder/x.vmfb"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("cannot write 'no/such/folder/x.vmfb'"), "{}", ran.stderr);
}

#[test]
fn models_are_described() {
    let ran = run("compile-module", &["--describe", &data("symbols")]);
    assert_eq!(ran.stdout, "function main\n  input  'x' f32[n,4]\n  output 'y' f32[n,2,2]\n");
    let ran = run("compile-module", &["--describe", "--json", &data("loops")]);
    let function = &json(&ran.stdout)["functions"][0];
    assert_eq!(function["inputs"][0]["element_type"], "i64");
    assert_eq!(function["outputs"][1]["dims"], serde_json::json!(["?", "2"]));
    let ran = run("compile-module", &["--describe", &repo("conformance/pte/abs.pte")]);
    assert_eq!(ran.stdout, "function forward\n  input  'input0' f32[2,3,5]\n  output 'output0' f32[2,3,5]\n");
}

#[test]
fn the_model_is_never_written_over() {
    let (_keep, folder) = folder();
    fs::copy(repo("demo/digits/digits.onnx"), folder.join("digits.onnx")).unwrap();
    let before = fs::read(folder.join("digits.onnx")).unwrap();
    for flag in ["-odigits.onnx", "-o./digits.onnx", "--split-params=digits.onnx", "--html=digits.onnx"] {
        let ran = run_in(&folder, "compile-module", &["digits.onnx", flag]);
        assert!(ran.code == 2 && ran.stderr.contains("is a file of the model"), "{flag}: {}", ran.stderr);
    }
    // Its weights are in a file beside it.
    for name in ["external.onnx", "external.bin"] {
        fs::copy(repo(&format!("compiler/tests/data/{name}")), folder.join(name)).unwrap();
    }
    let weights = fs::read(folder.join("external.bin")).unwrap();
    let ran = run_in(&folder, "compile-module", &["external.onnx", "-oexternal.bin"]);
    assert!(ran.code == 2 && ran.stderr.contains("is a file of the model"), "{}", ran.stderr);
    assert_eq!(fs::read(folder.join("external.bin")).unwrap(), weights);
    let ran = run_in(&folder, "compile-module", &["digits.onnx", "-o", "x", "--html=x"]);
    assert!(ran.code == 2 && ran.stderr.contains("two files would be written to 'x'"), "{}", ran.stderr);
    let ran =
        run_in(&folder, "run-module", &["digits.onnx", "--input=1x1x16x16xf32", "--output=@./digits.onnx"]);
    // Without a device nothing gets so far.
    assert!(
        !has_llvmpipe() || ran.code == 2 && ran.stderr.contains("is a file of the model"),
        "{}",
        ran.stderr
    );
    assert_eq!(fs::read(folder.join("digits.onnx")).unwrap(), before);
}

#[test]
fn what_cannot_be_compiled_is_told() {
    let (_keep, folder) = folder();
    fs::write(folder.join("text"), "no model").unwrap();
    fs::write(folder.join("broken.onnx"), "no model").unwrap();
    let module = repo("demo/digits/digits.vmfb");
    let digits = repo("demo/digits/digits.onnx");
    let symbols = data("symbols");
    for (code, args, text) in [
        (1, vec!["missing.onnx"], "cannot read 'missing.onnx'"),
        (1, vec!["text"], "format that is known (ONNX, ExecuTorch, VGF, TOSA, GGUF)"),
        (1, vec!["broken.onnx"], "INVALID_ARGUMENT"),
        (1, vec![module.as_str()], "'halite run' runs modules"),
        (2, vec![symbols.as_str()], "--dim NAME=SIZE"),
        (2, vec![symbols.as_str(), "--dim=m=3"], "the model has no size 'm'; there are: n"),
        (2, vec![symbols.as_str(), "--shape=z=3x4"], "'z' is no input"),
        (2, vec![digits.as_str(), "--function=classify"], "the model has main"),
        (2, vec![digits.as_str(), "--target=hoper-h200-linux"], "hopper"),
        (2, vec![digits.as_str(), "--no-baseline"], "--target"),
    ] {
        let ran = run_in(&folder, "compile-module", &args);
        assert_eq!(ran.code, code, "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(text), "{args:?}: {}", ran.stderr);
        assert!(!ran.stderr.contains("panicked"), "{args:?}: {}", ran.stderr);
    }
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 2, "a failure left something behind");
    let ran = run_in(&folder, "compile-module", &["broken.onnx", "--json"]);
    assert_eq!(json(&ran.stdout)["error"]["code"], "INVALID_ARGUMENT");
}

#[test]
fn targets_get_their_kernels_and_the_account_says_which() {
    let (_keep, folder) = folder();
    let args = [
        &repo("demo/digits/digits.onnx"),
        "--target=valhall-g78-android30",
        "--target=ampere-rtx3080-windows",
        "--target=hopper-h200-linux",
        "--output=all.vmfb",
        "--json",
    ];
    let report = json(&compile(&folder, &args).stdout);
    let targets = report["report"]["targets"].as_array().unwrap();
    let names: Vec<_> = targets.iter().map(|target| target["target"].as_str().unwrap()).collect();
    for name in ["valhall-g78-android30", "ampere-rtx3080-windows", "hopper-h200-linux"] {
        assert!(names.contains(&name), "{names:?}");
    }
    assert_eq!(targets.iter().filter(|target| target["baseline"] == true).count(), 1);
    let written = report["files"][0]["bytes"].as_u64().unwrap();
    assert_eq!(written, fs::metadata(folder.join("all.vmfb")).unwrap().len());
    let text = compile(&folder, &[args[0], args[1], "--explain", "--output=one.vmfb"]).stdout;
    for part in ["Conv '/0/Conv'", "conv2d.f32.", "memory: ", "constants: ", "target valhall-g78-android30"] {
        assert!(text.contains(part), "{part} is missing: {text}");
    }
    let text = compile(&folder, &[args[0], "--print-graph"]).stdout;
    assert!(text.starts_with("function main\ninput 'picture'"), "{text}");
    let fused = compile(&folder, &[args[0], "--print-graph=after:fuse-elementwise"]).stdout;
    assert!(fused.starts_with("function main, after fuse-elementwise\n"), "{fused}");
    assert!(!text.contains(fused.split_once('\n').unwrap().1), "passes that follow change this model");
    let all = compile(&folder, &[args[0], "--print-graph=all"]).stdout;
    let imported = all.find("function main, as imported\n").unwrap();
    assert!(imported < all.find("after epilogues").unwrap(), "{all}");
    assert!(!folder.join("digits.vmfb").exists(), "--print-graph compiles nothing");
}

#[test]
fn the_page_of_an_account_shows_who_reads_whom() {
    let (_keep, folder) = folder();
    let digits = repo("demo/digits/digits.onnx");
    let report = json(&compile(&folder, &[&digits, "--json", "--html=page.html"]).stdout);
    let operations =
        report["report"]["targets"][0]["functions"][0]["versions"][0]["operations"].as_array().unwrap();
    // The demo's network is a chain.
    for (index, operation) in operations.iter().enumerate() {
        let reads: Vec<u64> =
            operation["reads"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
        assert_eq!(reads, (index as u64).checked_sub(1).into_iter().collect::<Vec<_>>(), "{operation}");
    }
    let most = operations.iter().filter_map(|operation| operation["live_bytes"].as_u64()).max().unwrap();
    let taken = &report["report"]["targets"][0]["functions"][0]["transient_bytes"];
    assert!(most > 0 && most <= taken.as_u64().unwrap(), "{most} of {taken}");
    let page = fs::read_to_string(folder.join("page.html")).unwrap();
    assert_eq!(page.matches("class=\"edge\"").count(), operations.len() - 1);
    assert!(page.ends_with("</html>\n") && page.contains("/0/Conv"), "{page}");
}

#[test]
fn compiled_models_run_with_weights_inside_and_outside() {
    if !has_llvmpipe() {
        return;
    }
    let (_keep, folder) = folder();
    let digits = repo("demo/digits/digits.onnx");
    let input = format!("--input=@{}", repo("demo/digits/sample_7.npy"));
    let expected = format!("--expected_output=@{}", repo("demo/digits/expected_7.npy"));
    compile(&folder, &[&digits, "--target=host"]);
    compile(&folder, &[&digits, "--output=split.vmfb", "--split-params=weights.irpa", "--param-scope=w"]);
    compile(&folder, &[&digits, "--output=half.vmfb", "--precision=f16"]);
    for args in [
        vec!["digits.vmfb", &input, &expected],
        vec!["split.vmfb", "--parameters=w=weights.irpa", &input, &expected],
        vec!["half.vmfb", &input, &expected, "--expected_f32_threshold=0.02"],
    ] {
        let ran = run_in(&folder, "run-module", &args);
        assert_eq!(ran.code, 0, "{args:?}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains("[SUCCESS]"), "{args:?}: {}", ran.stdout);
    }
    let size = |name: &str| fs::metadata(folder.join(name)).unwrap().len();
    assert!(size("split.vmfb") + 30_000 < size("digits.vmfb"), "the weights are still inside");
}

#[test]
fn a_module_takes_the_sizes_that_it_was_compiled_for() {
    if !has_llvmpipe() {
        return;
    }
    let (_keep, folder) = folder();
    compile(&folder, &[&data("symbols"), "--dim=n=1,3"]);
    for rows in [1, 3] {
        let ran = run_in(&folder, "run-module", &["symbols.vmfb", &format!("--input={rows}x4xf32=2")]);
        let row = "[0.25 0.25][0.25 0.25]";
        assert!(ran.stdout.contains(&format!("{rows}x2x2xf32=[{row}]")), "{}{}", ran.stdout, ran.stderr);
    }
    let ran = run_in(&folder, "run-module", &["symbols.vmfb", "--input=2x4xf32=2"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("3x4"), "{}", ran.stderr);
}

/// Runs a model with a cache of its own.
fn run_model(folder: &Path, args: &[&str]) -> common::Ran {
    let cache = format!("--compile-cache={}", folder.join("cache").display());
    let mut command = command("run-module");
    command.current_dir(folder).env("HALITE_LOG", "info").arg(cache).args(args);
    finish(command.stdin(Stdio::null()).output().expect("the tool starts"))
}

#[test]
fn models_run_as_they_are_and_are_compiled_once() {
    if !has_llvmpipe() {
        return;
    }
    let (_keep, folder) = folder();
    fs::copy(data("symbols"), folder.join("m.onnx")).unwrap();
    let reused = |ran: &common::Ran| {
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.stderr.contains("was compiled before")
    };
    assert!(!reused(&run_model(&folder, &["m.onnx", "--input=2x4xf32=2"])));
    let again = run_model(&folder, &["--module=m.onnx", "--input=2x4xf32=0 9 0 0 1 1 1 1"]);
    assert!(reused(&again), "other elements of the same shape: {}", again.stderr);
    assert!(again.stdout.contains("2x2x2xf32=[[0.00012"), "{}", again.stdout);
    assert!(!reused(&run_model(&folder, &["m.onnx", "--input=5x4xf32=2"])), "another shape");
    // What a model becomes, not what its file was called at that time, is kept.
    fs::copy(data("functions"), folder.join("m.onnx")).unwrap();
    let other = run_model(&folder, &["m.onnx", "--input=2xf32=2 3"]);
    assert!(!reused(&other), "{}", other.stderr);
    let kept = fs::read_dir(folder.join("cache")).unwrap().count();
    let off = run_in(&folder, "run-module", &["m.onnx", "--input=2xf32=4 5", "--compile-cache=off"]);
    assert_eq!((off.code, fs::read_dir(folder.join("cache")).unwrap().count()), (0, kept));
}

#[test]
fn values_that_decide_sizes_come_from_the_inputs() {
    if !has_llvmpipe() {
        return;
    }
    let (_keep, folder) = folder();
    for (count, last) in [(2, "2xf32=4 8"), (3, "2xf32=8 16"), (2, "2xf32=4 8")] {
        let ran = run_model(&folder, &[&data("loops"), &format!("--input=i64={count}"), "--input=2xf32=1 2"]);
        assert!(ran.stdout.contains(last), "{}{}", ran.stdout, ran.stderr);
    }
}

#[test]
fn programs_of_executorch_run() {
    if !has_llvmpipe() {
        return;
    }
    let (_keep, folder) = folder();
    let of = |part: &str| repo(&format!("conformance/pte/conv_relu.{part}"));
    let args = [
        of("pte"),
        format!("--input=@{}", of("in0.npy")),
        format!("--expected_output=@{}", of("out0.npy")),
        "--expected_f32_threshold=1e-5".to_owned(),
    ];
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let ran = run_model(&folder, &args);
    assert!(ran.code == 0 && ran.stdout.contains("[SUCCESS]"), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn models_are_measured_as_they_are() {
    if !has_llvmpipe() {
        return;
    }
    let (_keep, folder) = folder();
    let cache = format!("--compile-cache={}", folder.join("cache").display());
    let args = [&data("functions"), "--input=2xf32=1", "--benchmark_min_time=1x", &cache];
    let ran = run_in(&folder, "benchmark-module", &args);
    assert!(ran.code == 0 && ran.stdout.contains("BM_main"), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn wrong_calls_of_models_are_told() {
    if !has_llvmpipe() {
        return;
    }
    let (_keep, folder) = folder();
    let symbols = data("symbols");
    for (args, text) in [
        (vec![symbols.as_str()], "--input"),
        (vec![symbols.as_str(), "--input=3x5xf32"], "x"),
        (vec![symbols.as_str(), "--input=3x4xf32", "--input=1xf32"], "it takes 1: 'x' f32[n,4]"),
        (vec![symbols.as_str(), "--function=other", "--input=3x4xf32"], "exported functions: main"),
        (vec![symbols.as_str(), "--input=3x4xf32", "--device=local-sync"], "Vulkan devices"),
    ] {
        let ran = run_model(&folder, &args);
        assert!(ran.code == 1 || ran.code == 2, "{args:?}: {}", ran.stdout);
        assert!(ran.stderr.contains(text) && !ran.stderr.contains("panicked"), "{args:?}: {}", ran.stderr);
    }
}
