//! Lists of models and what stands beside them, through the tools: each result under its own name.

use std::{fs, path::Path};

use crate::{
    common::{Ran, has_llvmpipe, run_in},
    models::onnx::{self, F32, I64},
};

/// `y` is the list of `x` and `z`, and `w` is -x.
fn write_mixed(folder: &Path) {
    let model = onnx::model(&[
        onnx::node("SequenceConstruct", &["x", "z"], &["y"]),
        onnx::node("Neg", &["x"], &["w"]),
        onnx::value(11, "x", &["2"]),
        onnx::value(11, "z", &["3"]),
        onnx::list_value(12, "y", F32),
        onnx::value(12, "w", &["2"]),
    ]);
    fs::write(folder.join("mixed.onnx"), model).expect("the folder can be written to");
}

#[test]
fn results_beside_lists_have_their_own_names_and_numbers() {
    if !has_llvmpipe() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    write_mixed(folder.path());
    let inputs = ["mixed.onnx", "--input=x=2xf32=1 2", "--input=z=3xf32=3 4 5", "-q"];
    let run = |tool: &str, more: &[&str]| -> Ran {
        run_in(folder.path(), "halite", &[&[tool][..], &inputs, more].concat())
    };
    let all = [("y[0]", "2xf32=1 2"), ("y[1]", "3xf32=3 4 5"), ("w", "2xf32=-1 -2")];
    let ran = run("run", &[]);
    for (place, (name, text)) in all.iter().enumerate() {
        let line = format!("result[{place}] '{name}': hal.buffer_view\n{text}");
        assert!(ran.stdout.contains(&line), "{}{}", ran.stdout, ran.stderr);
    }
    assert_eq!(run("run", &["--output=w=-"]).stdout, "hal.buffer_view\n2xf32=-1 -2\n");
    assert_eq!(run("run", &["--output=y[1]=-"]).stdout, "hal.buffer_view\n3xf32=3 4 5\n");
    let refused = run("run", &["--output=y=@y.npy"]);
    assert!(refused.code == 2 && refused.stderr.contains("'y' is a list"), "{}", refused.stderr);

    let expects = |w: &str| {
        let all = ["y[0]=2xf32=1 2", "y[1]=3xf32=3 4 5", w].map(|text| format!("--expected_output={text}"));
        run("run", &all.each_ref().map(String::as_str)).code
    };
    assert_eq!((expects("w=2xf32=-1 -2"), expects("w=2xf32=3 4")), (0, 1));
    assert_eq!(run("run", &["--output=@all.npz"]).code, 0);
    assert_eq!(run("run", &["--expected_output=@all.npz"]).code, 0);

    let checked = run("check", &[]);
    assert!(checked.code == 0, "{}{}", checked.stdout, checked.stderr);
    let bench = run("bench", &["--benchmark_min_time=1x"]);
    assert!(bench.code == 0, "{}{}", bench.stdout, bench.stderr);
}

#[test]
fn lists_are_given_by_the_names_of_their_tensors() {
    if !has_llvmpipe() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let model = onnx::model(&[
        onnx::node("SequenceAt", &["s", "place"], &["y"]),
        onnx::typed_constant("place", I64, &[], &1i64.to_le_bytes()),
        onnx::list_value(11, "s", F32),
        onnx::value(12, "y", &["n"]),
    ]);
    fs::write(folder.path().join("at.onnx"), model).expect("the folder can be written to");
    let run = |args: &[&str]| run_in(folder.path(), "halite", &[&["run", "at.onnx", "-q"], args].concat());
    let ran = run(&["--input=s[0]=1xf32=1", "--input=s[1]=2xf32=2 3"]);
    assert!(
        ran.stdout.contains("result[0] 'y': hal.buffer_view\n2xf32=2 3\n"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
    let refused = run(&["--input=2xf32=2 3"]);
    assert!(refused.code == 2 && refused.stderr.contains("'s' is a list"), "{}", refused.stderr);
}

#[test]
fn lists_without_tensors_are_told() {
    if !has_llvmpipe() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let model = onnx::model(&[
        onnx::node("SequenceEmpty", &[], &["y"]),
        onnx::node("Neg", &["x"], &["w"]),
        onnx::value(11, "x", &["1"]),
        onnx::list_value(12, "y", F32),
        onnx::value(12, "w", &["1"]),
    ]);
    fs::write(folder.path().join("none.onnx"), model).expect("the folder can be written to");
    let run = |more: &[&str]| {
        run_in(folder.path(), "halite", &[&["run", "none.onnx", "-q", "--input=1xf32=1"], more].concat())
    };
    let ran = run(&[]);
    assert!(ran.stdout.contains("result 'y': a list without tensors"), "{}{}", ran.stdout, ran.stderr);
    let json: serde_json::Value = serde_json::from_str(&run(&["--json"]).stdout).expect("JSON");
    assert_eq!(json["empty_lists"], serde_json::json!(["y"]));
}
