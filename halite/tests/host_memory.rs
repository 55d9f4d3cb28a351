//! Large requests for memory of the host that are refused, one by one, while a model is loaded, compiled and called. What ends a process
//! cannot be seen from inside of it: each is tried in a process of its own, this program once more.
#![cfg(feature = "compiler")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::{path::Path, process::Command};

use common::{device, onnx};
use halite::{Cache, Session, Tensor};
use halite_vulkan_shim::memory::{self, Scarce};

#[global_allocator]
static MEMORY: Scarce = Scarce;

/// Tells a process which large request is refused: how many come before it.
const AFTER: &str = "HALITE_TEST_REFUSED";
/// What a process says if nothing was refused: there are fewer requests.
const NOTHING: &str = "nothing was refused";
/// More large requests than there are.
const MOST: u32 = 200;
/// Rows and columns of the weight: 4 MiB.
const WIDTH: usize = 1024;
/// Rows of what is multiplied by it: 2 MiB.
const ROWS: usize = 512;

fn model() -> Vec<u8> {
    let (rows, width) = (ROWS.to_string(), WIDTH.to_string());
    onnx::model(&[
        onnx::node("MatMul", &["x", "w"], &["y"]),
        onnx::constant("w", &[WIDTH as u64, WIDTH as u64], &vec![0.5; WIDTH * WIDTH]),
        onnx::value(11, "x", &[&rows, &width]),
        onnx::value(12, "y", &[&rows, &width]),
    ])
}

/// Loads and compiles the model of a file, which is read and not mapped, and calls it: the first element of the result.
fn once(device: &str, file: &Path, x: &Tensor) -> halite::Result<f32> {
    let session = Session::builder().untrusted().cache(Cache::off()).device(device).model(file).build()?;
    let bytes = session.run(x.clone())?["y"].to_bytes()?;
    Ok(f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

#[test]
fn one_request_is_refused() {
    let Some(after) = std::env::var(AFTER).ok().and_then(|text| text.parse().ok()) else { return };
    let Some(device) = device() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("product.onnx");
    std::fs::write(&file, model()).unwrap();
    let x = Tensor::from_vec(vec![1.0f32; ROWS * WIDTH], [ROWS, WIDTH]).unwrap();
    memory::refuse(after);
    let ended = once(&device.uri(), &file, &x);
    if !memory::enough() {
        println!("{NOTHING}");
    } else if let Err(error) = ended {
        println!("refused: {error}");
    }
    // What comes behind it is as good as ever.
    assert_eq!(once(&device.uri(), &file, &x).unwrap(), WIDTH as f32 / 2.0);
}

#[test]
fn large_requests_may_be_refused_one_by_one() {
    if device().is_none() {
        return;
    }
    let (mut aborted, mut refused) = (Vec::new(), 0);
    for after in 0..MOST {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["one_request_is_refused", "--exact", "--nocapture"]).env(AFTER, after.to_string());
        let ended = command.output().unwrap();
        let said = String::from_utf8_lossy(&ended.stdout);
        if said.contains(NOTHING) {
            break;
        }
        refused += 1;
        if !ended.status.success() {
            aborted.push(format!("{after}: {} {}", ended.status, String::from_utf8_lossy(&ended.stderr)));
        }
    }
    assert!(aborted.is_empty(), "{} of {refused} ended the process:\n{}", aborted.len(), aborted.join("\n"));
    assert!((1..MOST).contains(&refused), "{refused} were refused");
}
