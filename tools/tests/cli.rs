//! Tests of the command line that need no device: flags, messages, exit codes, scalar programs.
#![allow(dead_code, reason = "each test crate uses a part of what tests share")]

mod common;

use std::{io::Write as _, process::Stdio};

use common::{corpus, run, run_in};

#[test]
fn usage_errors_exit_with_two() {
    for (tool, args, text) in [
        ("run-module", vec!["--no_such_flag"], "--no_such_flag"),
        ("run-module", vec!["--function=main"], "no user module specified"),
        ("run-module", vec!["--module=a", "--vulkan_dispatch_abi=foo"], "none of auto, descriptor, bda, all"),
        ("run-module", vec!["--module=a", "--timeout=-1"], "'-1' is not a number of seconds from 0 up"),
        ("run-module", vec!["--module=a", "--timeout", "-1"], "'-1' is not a number of seconds from 0 up"),
        ("run-module", vec!["--module=a", "--expected_rtol=nan"], "'nan' is not a number from 0 up"),
        ("halite", vec!["help", "foo"], "there is no subcommand 'foo'; there are: run, "),
        ("halite", vec!["cache", "foo"], "there is no subcommand 'foo'; there are: list, clear, path"),
        ("halite", vec!["generate", "a", "--prompt=a", "--seed", "-3"], "invalid value '-3' for '--seed"),
        ("run-module", vec!["--module=a", "--output=-", "--expected_output=1"], "exclude each other"),
        ("run-module", vec!["--module=a", "--device_profiling_mode=counters"], "not supported"),
        ("run-module", vec!["--module=-", "--module=-"], "one standard input"),
        ("run-module", vec!["--module=a", "--device=://x"], "no driver name"),
        ("benchmark-module", vec!["--module=a", "--benchmark_min_time=0x"], "iterations"),
        ("compile-module", vec![], "MODEL"),
        ("dump-module", vec![], "FILE"),
        ("list-devices", vec!["--device=vulkan", "vulkan"], "not both"),
        ("kernels", vec![], "--list"),
        ("kernels", vec!["matmull:m=1"], "there are: "),
        ("kernels", vec!["matmul:m=1,n=1,k=1,q=2"], "for example: matmul:"),
        ("kernels", vec!["--list", "nope"], "there is no operation 'nope'"),
        ("kernels", vec!["--target=hoper-h200-linux", "matmul:m=1,n=1,k=1"], "hopper"),
    ] {
        let ran = run(tool, &args);
        assert_eq!(ran.code, 2, "{tool} {args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(text) && ran.stdout.is_empty(), "{tool} {args:?}: {}", ran.stderr);
    }
}

#[test]
fn help_of_a_subcommand_is_no_error() {
    for args in [&["help", "run"][..], &["help", "cache", "list"], &["help", "help"], &["cache", "help"]] {
        let ran = run("halite", args);
        assert_eq!((ran.code, ran.stdout.contains("Usage:")), (0, true), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn help_version_and_completions_go_to_standard_output() {
    for tool in ["run-module", "benchmark-module", "compile-module", "dump-module", "list-devices", "kernels"]
    {
        let help = run(tool, &["--help"]);
        assert_eq!((help.code, help.stderr.as_str()), (0, ""), "{tool}");
        assert!(help.stdout.contains("Examples:") && help.stdout.contains(tool), "{tool}: {}", help.stdout);
        let version = run(tool, &["--version"]);
        assert_eq!(version.stdout, format!("{tool} {}\n", env!("CARGO_PKG_VERSION")));
        for shell in ["bash", "zsh", "fish"] {
            let script = run(tool, &[&format!("--completions={shell}")]);
            assert_eq!(script.code, 0, "{tool} {shell}: {}", script.stderr);
            assert!(script.stdout.contains(tool), "{tool} {shell}");
        }
    }
}

#[test]
fn one_program_is_all_tools() {
    let halite = |args: &[&str]| run("halite", args);
    assert_eq!(halite(&["--version"]).stdout, format!("halite {}\n", env!("CARGO_PKG_VERSION")));
    for (old, new) in [
        ("run-module", "run"),
        ("benchmark-module", "bench"),
        ("compile-module", "compile"),
        ("dump-module", "dump"),
        ("list-devices", "devices"),
        ("kernels", "kernels"),
    ] {
        let ran = halite(&[new, "--version"]);
        assert_eq!(ran.stdout, format!("halite {new} {}\n", env!("CARGO_PKG_VERSION")));
        let help = halite(&["help", new]).stdout;
        let examples = |text: &str| text.split_once("Examples:").map(|(_, rest)| rest.contains("halite "));
        assert!(help.contains(&format!("Usage: halite {new} ")), "{help}");
        assert_eq!(examples(&help), Some(true), "{help}");
        let help = run(old, &["-h"]).stdout;
        assert!(help.contains(&format!("Usage: {old} ")), "{help}");
        assert_eq!(examples(&help), Some(false), "{help}");
        let (ran, by_old) = (halite(&[new, "--no_such_flag"]), halite(&[old, "--no_such_flag"]));
        assert!(
            ran.stderr.starts_with(&format!("halite {new}: error: unexpected argument")),
            "{}",
            ran.stderr
        );
        assert_eq!((ran.code, by_old.stderr), (2, ran.stderr));
    }
    for (args, text) in [
        (vec!["rnu"], "did you mean 'run'"),
        (vec!["list-device"], "did you mean 'list-devices'"),
        (vec!["quantize"], "embed, perplexity, bench, check, compile"),
        (vec![], "Usage: halite"),
        (vec!["Cargo.toml"], "'halite run Cargo.toml' runs it"),
        (vec!["--module=x"], "halite: error: "),
    ] {
        let ran = halite(&args);
        assert!(ran.code == 2 && ran.stderr.contains(text) && ran.stdout.is_empty(), "{}", ran.stderr);
    }
}

#[test]
fn wrong_usage_is_json_where_json_is_asked_for() {
    for (tool, args) in [
        ("run-module", vec!["--json", "--no_such_flag"]),
        ("run-module", vec!["--module=a", "--json", "--timeout=-1"]),
        ("run-module", vec!["--json=true"]),
        ("benchmark-module", vec!["--module=a", "--benchmark_format=json", "--batch_size=0"]),
        ("compile-module", vec!["--json"]),
        ("dump-module", vec!["--json"]),
        ("list-devices", vec!["--json", "--device=vulkan", "vulkan"]),
        ("kernels", vec!["--json"]),
        ("halite", vec!["rnu", "--json"]),
        ("halite", vec!["run", "--json", "--flagfile"]),
    ] {
        let ran = run(tool, &args);
        assert_eq!((ran.code, ran.stderr.as_str()), (2, ""), "{tool} {args:?}");
        let json: serde_json::Value = serde_json::from_str(&ran.stdout).expect(&ran.stdout);
        assert_eq!(json["error"]["code"], "INVALID_ARGUMENT", "{tool} {args:?}");
        let message = json["error"]["message"].as_str().unwrap();
        assert!(
            !message.is_empty() && !message.contains("Usage:") && !message.starts_with("error"),
            "{message}"
        );
    }
}

#[test]
fn logs_are_louder_and_quieter() {
    let loud = |args: &[&str], variable: Option<&str>| {
        let mut command = common::command("run-module");
        command.args(["--module=no/such.vmfb", "--hip_tracing=1"]).args(args).stdin(Stdio::null());
        if let Some(level) = variable {
            command.env("HALITE_LOG", level);
        }
        let ran = common::finish(command.output().unwrap());
        assert_eq!(ran.code, 1);
        assert!(ran.stderr.contains("NOT_FOUND"), "{}", ran.stderr);
        ran.stderr.contains("warning: --hip_tracing has no effect")
    };
    assert!(
        loud(&[], None)
            && loud(&["-v"], None)
            && loud(&["-q", "-v"], None)
            && loud(&["--verbose=true"], None)
    );
    assert!(!loud(&["-q"], None) && !loud(&["-qq"], None) && !loud(&["--quiet"], None));
    assert!(loud(&["-qq"], Some("warn")) && !loud(&["-v"], Some("error")));
}

#[test]
fn manual_pages_and_completions_have_every_subcommand() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("man1");
    let ran = run("halite", &["man", folder.to_str().unwrap()]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let page = |name: &str| std::fs::read_to_string(folder.join(name)).expect(name);
    assert!(page("halite.1").contains("halite\\-run") && page("halite-run.1").contains("expected_output"));
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = run("halite", &["completions", shell]).stdout;
        assert!(script.contains("devices") && script.contains("benchmark_min_time"), "{shell}");
    }
    assert_eq!(run("halite", &["completions", "tcsh"]).code, 2);
}

#[test]
fn failures_exit_with_one_and_one_line() {
    let ran = run("run-module", &["--module=no/such.vmfb"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
    assert!(ran.stderr.starts_with("run-module: error: NOT_FOUND; "), "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    let ran = run("run-module", &["--module=no/such.vmfb", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, json["error"]["code"].as_str()), (1, Some("NOT_FOUND")));
    let ran = run("run-module", &["--list_devices=nope"]);
    assert!(ran.stderr.contains("no driver named 'nope'"), "{}", ran.stderr);
    assert_eq!(ran.code, 1);
}

#[test]
fn scalar_programs_run_without_a_device() {
    let Some(corpus) = corpus() else { return };
    let base = ["--module=vm_ops/i32.vmfb", "--function=addi_i32"];
    let with = |more: &[&str]| run_in(&corpus, "run-module", &[&base, more].concat());
    let ran = with(&["--input=7", "--input=-3"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "EXEC @addi_i32\nresult[0]: i32=4\n"), "{}", ran.stderr);
    let ran = with(&["--input=7", "--input=-3", "--output=-"]);
    assert_eq!(ran.stdout, "EXEC @addi_i32\ni32=4\n");
    let ran = with(&["--input=7", "--input=-3", "--output=-", "--quiet"]);
    assert_eq!(ran.stdout, "i32=4\n");
    let ran = with(&["--input=7", "--input=3", "--output="]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "EXEC @addi_i32\n"), "{}", ran.stderr);
    let ran = with(&["--input=7", "--input=3", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(json["results"][0]["value"], 10);
    let ran = with(&["--input=7", "--input=3", "--expected_output=10"]);
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    assert!(ran.stdout.ends_with("[SUCCESS] all function outputs matched their expected values.\n"));
    let ran = with(&["--input=7", "--input=3", "--expected_output=11"]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.stdout.contains("[FAILED] result[0]: i32=10 does not match the expected i32=11"),
        "{}",
        ran.stdout
    );
    let ran = with(&["--input=7"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, "EXEC @addi_i32\n"));
    assert!(ran.stderr.contains("expected 2 arguments but passed 1"), "{}", ran.stderr);
    let ran = with(&["--input=7", "--input=f32=1"]);
    assert!(
        ran.code == 1 && ran.stderr.contains("parsing input `f32=1`; parsing function inputs"),
        "{}",
        ran.stderr
    );
}

#[test]
fn flag_files_standard_input_and_spellings() {
    let Some(corpus) = corpus() else { return };
    let dir = tempfile::tempdir().unwrap();
    let flags = dir.path().join("flags");
    std::fs::write(
        &flags,
        "# a comment\n--function=addi_i32\n--input=40\n--task_topology_mode=\"physical_cores\"\n",
    )
    .unwrap();
    let module = std::fs::File::open(corpus.join("vm_ops/i32.vmfb")).unwrap();
    let mut command = common::command("run-module");
    command.args([
        "--module=-",
        "--module-mode=mmap",
        "--input=2",
        &format!("--flagfile={}", flags.display()),
    ]);
    let ran = common::finish(command.stdin(Stdio::from(module)).output().unwrap());
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert_eq!(ran.stdout, "EXEC @addi_i32\nresult[0]: i32=42\n");
}

#[test]
fn outputs_are_written_to_files() {
    let Some(corpus) = corpus() else { return };
    let dir = tempfile::tempdir().unwrap();
    let (npy, raw) = (dir.path().join("o.npy"), dir.path().join("o.bin"));
    let call = |output: String| {
        let args = ["--module=vm_ops/i32.vmfb", "--function=addi_i32", "--input=7", "--input=3"];
        let ran = run_in(&corpus, "run-module", &[&args[..], &[output.as_str()]].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (0, "EXEC @addi_i32\n"), "{}", ran.stderr);
    };
    call(format!("--output=@{}", npy.display()));
    call(format!("--output=+{}", npy.display()));
    call(format!("--output=@{}", raw.display()));
    assert_eq!(std::fs::read(raw).unwrap(), [10, 0, 0, 0]);
    let written = std::fs::read(&npy).unwrap();
    assert_eq!((written.len(), &written[128..132]), (264, &[10, 0, 0, 0][..]));
    // What was written is an expected output, and an input, too.
    let args = ["--module=vm_ops/i32.vmfb", "--function=addi_i32", "--input=7", "--input=3"];
    let expected = format!("--expected_output=@{}", npy.display());
    assert_eq!(run_in(&corpus, "run-module", &[&args[..], &[expected.as_str()]].concat()).code, 0);
}

#[test]
fn endless_programs_end_in_time() {
    let Some(corpus) = corpus() else { return };
    let module = corpus.join("small/scalar_loop_fib/module.vmfb");
    if !module.exists() {
        eprintln!("SKIPPED: {} is not in the corpus", module.display());
        return;
    }
    let module = format!("--module={}", module.display());
    // Left alone it computes for minutes, and succeeds.
    let ran = run("run-module", &[&module, "--function=fib", "--input=2000000000", "--timeout=0.2"]);
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    assert!(ran.stderr.contains("DEADLINE_EXCEEDED"), "{}", ran.stderr);
}

#[test]
fn dumps_say_what_is_inside() {
    let Some(corpus) = corpus() else { return };
    let dump = |args: &[&str]| {
        let ran = run_in(&corpus, "dump-module", args);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{args:?}");
        ran.stdout
    };
    let text = dump(&["--output=metadata", "small/multi_export/module.vmfb"]);
    for part in [
        "// @calc : version 0",
        "Requirements: 0000000C",
        "  hal, version >= 7, required",
        "  [  2] hal.buffer_view.assert(!vm.ref<?>, !vm.ref<?>, i32, i32, tuple<i64>...) -> ()",
        "  [  2] neg(!vm.ref<?>) -> (!vm.ref<?>)",
        "iree.abi.declaration: sync func @neg(%input0: tensor<4xf32>) -> (%output0: tensor<4xf32>)",
        "0 bytes, 7 refs",
        "external     1468 bytes",
        "@add_dispatch_0_elementwise_4_f32",
        "bindings: 0.0 storage buffer",
        "subgroup_size_choices = [64]",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let code =
        dump(&["--output=disassembly", "--function=main", "--bytecode_offsets", "small/add_f32/module.vmfb"]);
    assert!(code.contains("vm.func @main {") && !code.contains("@__init {"), "{code}");
    assert!(code.contains("] ^bb0:") && code.contains("vm.return"), "{code}");
    let json: serde_json::Value =
        serde_json::from_str(&dump(&["--json", "--output=metadata", "small/add_f32/module.vmfb"])).unwrap();
    assert_eq!(json["exports"][0]["name"], "main");
    assert_eq!(
        json["executables"][0]["kernels"][0]["spirv"]["entry_points"][0]["local_size"][0].as_u64(),
        Some(64)
    );
    let dir = tempfile::tempdir().unwrap();
    dump(&["--output=metadata", &format!("--spirv={}", dir.path().display()), "small/add_f32/module.vmfb"]);
    let files: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(files.len(), 1);
    assert!(std::fs::read(&files[0]).unwrap().starts_with(&[3, 2, 0x23, 7]));
}

#[test]
fn damaged_modules_are_reported_by_dumps() {
    let Some(corpus) = corpus() else { return };
    let mut seen = 0;
    for entry in std::fs::read_dir(corpus.join("bad")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "vmfb") {
            continue;
        }
        seen += 1;
        let ran = run("dump-module", &[&path.display().to_string()]);
        assert!(matches!(ran.code, 0 | 1), "{}: {} {}", path.display(), ran.code, ran.stderr);
        assert!(ran.code == 0 || ran.stderr.starts_with("dump-module: error: "), "{}", ran.stderr);
    }
    assert!(seen > 40, "only {seen} files");
}

#[test]
fn closed_pipes_end_quietly() {
    let Some(corpus) = corpus() else { return };
    let mut child = common::command("dump-module")
        .arg(corpus.join("small/multi_export/module.vmfb"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let ran = common::finish(child.wait_with_output().unwrap());
    assert!(!ran.stderr.contains("panicked") && !ran.stderr.contains("error"), "{}", ran.stderr);
    assert_eq!(ran.code, 0, "nothing is wrong with a reader that has seen enough");
    std::io::stderr().flush().unwrap();
}

#[test]
fn benchmarks_of_scalar_programs() {
    let Some(corpus) = corpus() else { return };
    let base = [
        "--module=vm_ops/i32.vmfb",
        "--function=addi_i32",
        "--input=7",
        "--input=3",
        "--benchmark_min_time=20x",
    ];
    let ran = run_in(
        &corpus,
        "benchmark-module",
        &[&base[..], &["--benchmark_repetitions=3", "--benchmark_format=json"]].concat(),
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let json: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let rows = json["benchmarks"].as_array().unwrap();
    assert_eq!(rows.len(), 3 + 4);
    assert_eq!(rows[0]["name"], "BM_addi_i32/process_time/real_time");
    assert_eq!(rows[0]["iterations"], 20);
    let times = ["min", "p50", "p90", "p99"].map(|n| rows[0][n].as_f64().unwrap());
    assert!(times[0] > 0.0 && times.is_sorted(), "{times:?}");
    assert!(json["context"]["load_to_first_result_ms"].as_f64().unwrap() > 0.0);
    let ran = run_in(&corpus, "benchmark-module", &base);
    let line = ran.stdout.lines().nth(3).unwrap();
    assert!(
        line.starts_with("BM_addi_i32/process_time/real_time ") && line.contains(" items_per_second="),
        "{line}"
    );
    assert!(ran.stderr.contains("Start-up: load ") && ran.stderr.contains("first call"), "{}", ran.stderr);
    let ran =
        run_in(&corpus, "benchmark-module", &[&base[..], &["--benchmark_filter=nothing_like_it"]].concat());
    assert!(ran.code == 2 && ran.stderr.contains("failed to match any benchmarks"), "{}", ran.stderr);
}

#[cfg(unix)]
#[test]
fn interrupted_programs_stop_by_themselves() {
    use std::io::{BufRead as _, BufReader};
    let Some(corpus) = corpus() else { return };
    let mut child = common::command("run-module")
        .arg(format!("--module={}", corpus.join("small/scalar_loop_fib/module.vmfb").display()))
        .args(["--function=fib", "--input=2000000000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "EXEC @fib\n");
    let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    if !killed.is_ok_and(|s| s.success()) {
        eprintln!("SKIPPED: no kill program");
        child.kill().unwrap();
        child.wait().unwrap();
        return;
    }
    let ran = common::finish(child.wait_with_output().unwrap());
    assert_eq!(ran.code, 130, "{}", ran.stderr);
    assert!(ran.stderr.contains("run-module: error: CANCELLED"), "{}", ran.stderr);
}
