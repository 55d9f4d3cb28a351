//! Inputs and outputs by name, archives, pictures, labels, standard input: on the digits network, and on scalar programs where
//! there is no device.

use std::{fs, path::Path, process::Stdio};

use crate::{
    common::{Ran, command, corpus, finish, has_llvmpipe, run, run_in},
    models::onnx,
};
use serde_json::Value;

fn repo(path: &str) -> String {
    format!("{}/../{path}", env!("CARGO_MANIFEST_DIR"))
}

fn digits(folder: &Path, args: &[&str]) -> Ran {
    let model = repo("demo/digits/digits.onnx");
    run_in(folder, "run-module", &[&[model.as_str()], args].concat())
}

#[test]
fn inputs_and_results_have_the_names_of_the_model() {
    if !has_llvmpipe() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let seven = format!("@{}", repo("demo/digits/sample_7.npy"));
    let expected = format!("--expected_output=probabilities=@{}", repo("demo/digits/expected_7.npy"));
    let ran = digits(dir.path(), &[&format!("--input=picture={seven}"), &expected]);
    assert!(ran.code == 0 && ran.stdout.contains("[SUCCESS]"), "{}{}", ran.stdout, ran.stderr);
    let ran = digits(dir.path(), &[&format!("--input={seven}"), "--output=@all.npz"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "EXEC @main\n"), "{}", ran.stderr);
    let ran = digits(dir.path(), &[&format!("--input={seven}"), "--expected_output=@all.npz"]);
    assert!(ran.stdout.contains("[SUCCESS]"), "{}{}", ran.stdout, ran.stderr);
    let ran = digits(dir.path(), &[&format!("--input={seven}")]);
    assert!(ran.stdout.contains("result[0] 'probabilities': hal.buffer_view\n1x10xf32="), "{}", ran.stdout);
    let ran = digits(dir.path(), &[&format!("--input={seven}"), "--json"]);
    let json: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(json["results"][0]["name"], "probabilities");
    for (args, text) in [
        (vec!["--input=pictur=1x1x16x16xf32"], "inputs: 'picture' f32[1,1,16,16]"),
        (vec!["--input=1x1x16x16xf32", "--output=prob=-"], "outputs: 'probabilities' f32[1,10]"),
        (vec!["--input=1x1x16x16xf64"], "its elements are f32"),
        (vec!["--input=1x1x16x15xf32"], "dimension 3 is 16, not 15"),
    ] {
        let ran = digits(dir.path(), &args);
        assert!(ran.code != 0 && ran.stderr.contains(text), "{args:?}: {}", ran.stderr);
        assert!(!ran.stderr.contains("module.") && !ran.stderr.contains("hal.buffer_view"), "{}", ran.stderr);
    }
}

#[test]
fn models_run_in_the_precision_that_is_asked_for() {
    if !has_llvmpipe() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let input = format!("--input=@{}", repo("demo/digits/sample_7.npy"));
    let results = ["f16", "f32", "model"].map(|precision| {
        let args =
            [&format!("--precision={precision}"), input.as_str(), "--output=@p.npy", "--compile-cache=off"];
        let ran = digits(dir.path(), &args);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let bytes = fs::read(dir.path().join("p.npy")).unwrap();
        bytes[bytes.len() - 40..].chunks(4).map(|four| f32::from_le_bytes(four.try_into().unwrap())).collect()
    });
    let [half, full, own]: [Vec<f32>; 3] = results;
    assert_eq!(full, own);
    assert_ne!(half, full);
    assert!(half.iter().zip(&full).all(|(a, b)| (a - b).abs() < 0.01), "{half:?} {full:?}");
    let module = repo("demo/digits/digits.vmfb");
    let ran = run_in(dir.path(), "run-module", &[module.as_str(), "--precision=f16", &input]);
    assert!(ran.code != 0 && ran.stderr.contains("a precision is for models"), "{}", ran.stderr);
}

#[test]
fn pictures_go_in_and_the_highest_classes_come_out() {
    if !has_llvmpipe() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    // The sample as a picture; it is of 0 to 1.
    let array = fs::read(repo("demo/digits/sample_7.npy")).unwrap();
    let data = &array[array.len() - 4 * 256..];
    let pixels: Vec<u8> = data
        .chunks_exact(4)
        .map(|b| (f32::from_le_bytes(b.try_into().unwrap()) * 255.0).round().clamp(0.0, 255.0) as u8)
        .collect();
    image::GrayImage::from_raw(16, 16, pixels).unwrap().save(dir.path().join("seven.png")).unwrap();
    fs::write(dir.path().join("labels"), "zero\none\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n")
        .unwrap();
    let ran = digits(dir.path(), &["--input=@seven.png", "--labels=labels", "--top=2"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines[1], "result[0] 'probabilities': the 2 highest of 1x10xf32");
    assert!(lines[2].ends_with("  7  seven") && lines.len() == 4, "{}", ran.stdout);
    assert!(ran.stderr.contains("colours of 0 to 1") && ran.stderr.contains("grey"), "{}", ran.stderr);
    let ran = digits(dir.path(), &["-q", "--input=picture=@seven.png", "--top=1", "--json"]);
    let json: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((json["top"]["entries"][0]["index"].as_u64(), ran.stderr.as_str()), (Some(7), ""));
    let ran = digits(dir.path(), &["--input=@seven.png", "--output=@probabilities.png"]);
    assert_eq!(ran.code, 0, "one row of ten grey pixels: {}", ran.stderr);
    assert_eq!(image::open(dir.path().join("probabilities.png")).unwrap().width(), 10);
}

#[test]
fn results_get_files_of_the_kind_that_their_names_say() {
    let Some(corpus) = corpus() else { return };
    let dir = tempfile::tempdir().unwrap();
    let call = |output: &str| {
        let module = format!("--module={}", corpus.join("vm_ops/i32.vmfb").display());
        let args = [&module, "--function=addi_i32", "--input=7", "--input=3", &format!("--output={output}")];
        run_in(dir.path(), "run-module", &args)
    };
    for name in ["o.npy", "@o.npz", "o.bin"] {
        let ran = call(name);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{name}");
    }
    assert_eq!(fs::read(dir.path().join("o.bin")).unwrap(), [10, 0, 0, 0]);
    for name in ["@o.png", "o.jpg", "@o.webp", "@o.bmp"] {
        let ran = call(name);
        assert!(
            ran.code != 0 && !dir.path().join(name.trim_start_matches('@')).exists(),
            "{name}: {}",
            ran.stderr
        );
    }
}

#[test]
fn models_come_through_pipes() {
    if !has_llvmpipe() {
        return;
    }
    let model = repo("demo/digits/digits.onnx");
    let seven = format!("--input=@{}", repo("demo/digits/sample_7.npy"));
    let expected = format!("--expected_output=@{}", repo("demo/digits/expected_7.npy"));
    let mut from_stdin = command("run-module");
    from_stdin.args(["-", &seven, &expected]).stdin(Stdio::from(fs::File::open(&model).unwrap()));
    let ran = finish(from_stdin.output().unwrap());
    assert!(ran.code == 0 && ran.stdout.contains("[SUCCESS]"), "{}{}", ran.stdout, ran.stderr);
    let mut dump = command("dump-module");
    let ran = finish(dump.arg("-").stdin(Stdio::from(fs::File::open(&model).unwrap())).output().unwrap());
    assert!(ran.stdout.contains("input  'picture' f32[1,1,16,16]"), "{}{}", ran.stdout, ran.stderr);
    #[cfg(unix)]
    {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        if !made.is_ok_and(|status| status.success()) {
            eprintln!("SKIPPED: no mkfifo");
            return;
        }
        for tool in ["run-module", "benchmark-module"] {
            let bytes = fs::read(&model).unwrap();
            let to = pipe.clone();
            let writer = std::thread::spawn(move || fs::write(to, bytes));
            let mut args = vec![pipe.to_str().unwrap(), seven.as_str()];
            args.extend((tool == "benchmark-module").then_some("--benchmark_min_time=1x"));
            let ran = run_in(dir.path(), tool, &args);
            assert_eq!(ran.code, 0, "{tool}: {}", ran.stderr);
            writer.join().unwrap().unwrap();
        }
    }
}

#[test]
fn models_are_dumped_as_they_are_described() {
    let model = repo("compiler/tests/data/symbols.onnx");
    let described = run("compile-module", &["--describe", &model]);
    let dumped = run("dump-module", &[&model]);
    assert_eq!(dumped.code, 0, "{}", dumped.stderr);
    // What is in the file comes behind it.
    let rest = dumped.stdout.strip_prefix(described.stdout.as_str()).unwrap();
    assert!(rest.contains("parts of main\n  operators\n") && rest.contains(" x "), "{rest}");
    assert!(!rest.contains("NOT SUPPORTED") && rest.contains("\n  constants: "), "{rest}");
    let json: Value = serde_json::from_str(&run("dump-module", &["--json", &model]).stdout).unwrap();
    assert_eq!(json["functions"][0]["inputs"][0]["dims"], serde_json::json!(["n", "4"]));
    let ran = run("dump-module", &["--output=disassembly", &model]);
    assert!(ran.code == 2 && ran.stderr.contains("halite compile"), "{}", ran.stderr);
}

#[test]
fn the_cache_is_listed_and_cleared() {
    if !has_llvmpipe() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let cache = |action: &str, more: &[&str]| {
        run_in(dir.path(), "halite", &[&["cache", action, "--compile-cache=kept"], more].concat())
    };
    let listed = || -> Value { serde_json::from_str(&cache("list", &["--json"]).stdout).unwrap() };
    assert_eq!(listed()["entries"], serde_json::json!([]));
    assert!(!dir.path().join("kept").exists(), "looking makes no folder");
    let seven = format!("--input=@{}", repo("demo/digits/sample_7.npy"));
    assert_eq!(digits(dir.path(), &[&seven, "--compile-cache=kept", "-q"]).code, 0);
    let entries = listed()["entries"].as_array().unwrap().clone();
    assert!(entries.iter().any(|e| e["kind"] == "vmfb" && e["label"] == "digits"), "{entries:?}");
    assert!(cache("list", &[]).stdout.contains("digits"));
    assert_eq!(cache("path", &[]).stdout, "kept\n");
    fs::write(dir.path().join("kept/thesis.tex"), "mine").unwrap();
    assert_eq!(cache("clear", &[]).code, 0);
    assert_eq!(listed()["entries"], serde_json::json!([]));
    assert!(dir.path().join("kept/thesis.tex").exists());
    // A folder with files of others is no cache.
    fs::create_dir(dir.path().join("home")).unwrap();
    fs::write(dir.path().join("home/letter"), "mine").unwrap();
    let ran = digits(dir.path(), &[&seven, "--compile-cache=home"]);
    assert!(ran.code == 1 && ran.stderr.contains("home"), "{}", ran.stderr);
}

#[cfg(unix)]
#[test]
fn arrays_come_through_standard_input_into_models_of_any_name() {
    use std::os::unix::ffi::OsStringExt;
    if !has_llvmpipe() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let name = std::ffi::OsString::from_vec(b"m\xff.onnx".to_vec());
    let model = onnx::model(&[
        onnx::node("Neg", &["x"], &["y"]),
        onnx::value(11, "x", &["2"]),
        onnx::value(12, "y", &["2"]),
    ]);
    fs::write(folder.path().join(&name), model).unwrap();
    let bytes: Vec<u8> = [1.0f32, 2.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    fs::write(folder.path().join("raw"), &bytes).unwrap();
    let head = b"\x93NUMPY\x01\x00\x46\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
    let array = [&head[..], &vec![b' '; 79 - head.len()], b"\n", &bytes].concat();
    fs::write(folder.path().join("array"), array).unwrap();
    for (file, input) in [("array", "--input=@-"), ("array", "--input=x=@-"), ("raw", "--input=x=2xf32=@-")] {
        let mut run = command("run-module");
        run.arg("-q").arg(&name).arg(input).current_dir(folder.path());
        let given = fs::File::open(folder.path().join(file)).unwrap();
        let ran = finish(run.stdin(Stdio::from(given)).output().unwrap());
        assert!(ran.stdout.contains("2xf32=-1 -2"), "{input}: {}{}", ran.stdout, ran.stderr);
    }
    fs::write(folder.path().join("none.onnx"), "").unwrap();
    let ran = run_in(folder.path(), "run-module", &["none.onnx"]);
    assert!(ran.code == 1 && ran.stderr.contains("'none.onnx' is empty"), "{}", ran.stderr);
}

/// A pipe that nobody writes into is waited for until the time is over, whatever it was to be.
#[test]
#[cfg(unix)]
fn pipes_with_texts_are_waited_for_until_the_deadline() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    if !made.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: no mkfifo");
        return;
    }
    let pipe = pipe.to_str().unwrap();
    let [digits, decoder, encoder] = [
        "demo/digits/digits.onnx",
        "compiler/tests/data/gguf/llama.gguf",
        "compiler/tests/data/gguf/bert.gguf",
    ]
    .map(repo);
    let (labels, prompt) = (format!("--labels={pipe}"), format!("--prompt-file={pipe}"));
    let file = format!("--file={pipe}");
    let lines: [&[&str]; 4] = [
        &["run", &digits, &labels],
        &["generate", &decoder, &prompt],
        &["embed", &encoder, &file],
        &["perplexity", &decoder, pipe],
    ];
    let all = lines.map(|args| {
        let mut program = command("halite");
        program.args(args).args(["--timeout=1", "--device=local-sync"]);
        (args[0], program.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    });
    for (tool, mut child) in all {
        let end = std::time::Instant::now() + std::time::Duration::from_secs(120);
        while child.try_wait().unwrap().is_none() {
            if std::time::Instant::now() > end {
                child.kill().unwrap();
            }
            std::thread::yield_now();
        }
        let ran = finish(child.wait_with_output().unwrap());
        assert!(ran.code == 1 && ran.stderr.contains("DEADLINE_EXCEEDED"), "{tool}: {}", ran.stderr);
    }
}

/// As of a program whose results are sent to a file on a full disk.
#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_behind_standard_output_is_told() {
    let model = repo("demo/digits/digits.onnx");
    let lines: [&[&str]; 4] = [
        &["devices", "--json"],
        &["completions", "bash"],
        &["dump", &model],
        &["devices", "--completions=bash"],
    ];
    for args in lines {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let ran = finish(command("halite").args(args).stdout(full).output().unwrap());
        assert!(ran.code == 1 && ran.stderr.contains("RESOURCE_EXHAUSTED"), "{args:?}: {}", ran.stderr);
        assert!(!ran.stderr.contains("panicked"), "{args:?}: {}", ran.stderr);
    }
}
