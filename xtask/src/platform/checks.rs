//! What the program has to do on every system.

use std::{fs, path::Path};

use anyhow::{Context, Result, ensure};

use super::emulator::Emulator;
use crate::{shell::repo, steps::Steps};

/// A network with state on two devices of the processor, and one function of it.
const STATE: [&str; 4] = [
    "run",
    "--module=conformance/multi_device/state_two_local.vmfb",
    "--function=add",
    "--input=4xf32=1,2,3,4",
];
/// The demo's network and its picture of a seven.
const DEMO: [&str; 4] = [
    "run",
    "demo/digits/digits.onnx",
    "--input=@demo/digits/sample_7.npy",
    "--expected_output=@demo/digits/expected_7.npy",
];
/// A language model of a few kilobytes, which writes nonsense, always the same.
const DECODER: [&str; 5] = [
    "generate",
    "compiler/tests/data/gguf/llama.gguf",
    "--prompt=in the",
    "--max-tokens=6",
    "--temperature=0",
];

/// The program on a system.
pub struct Checked<'a> {
    pub emulator: &'a Emulator,
    pub program: &'a Path,
    /// What the targets of its processors are called: `cpu-x86_64-windows`.
    pub target: &'a str,
    /// A module of machine code that the system does not take, where the corpus has one.
    pub foreign: Option<&'a Path>,
}

impl Checked<'_> {
    fn expect(&self, args: &[&str], code: i32, says: &[&str]) -> Result<String> {
        self.emulator.expect(self.program, args, code, says)
    }

    /// All that needs no GPU and no driver of another.
    pub fn everywhere(&self, steps: &mut Steps, name: &str) {
        steps.take(&format!("{name}: devices, usage, errors"), || self.words());
        steps.take(&format!("{name}: bytecode on the processor's devices"), || self.bytecode());
        steps.take(&format!("{name}: a model becomes a module"), || self.compiles());
        let foreign = format!("{name}: machine code of another system is refused");
        match self.foreign {
            Some(module) => drop(steps.take(&foreign, || self.refuses(module))),
            None => steps.skip(&foreign, "the corpus of modules is not beside this checkout"),
        }
    }

    fn words(&self) -> Result<()> {
        self.expect(&["--version"], 0, &["halite "])?;
        self.expect(&["devices"], 0, &["local-task://", "local-sync://", self.target])?;
        self.expect(&["run", "--no_such_flag"], 2, &["--no_such_flag"])?;
        self.expect(&["run", "no such model.onnx"], 1, &["NOT_FOUND", "no such model.onnx"])?;
        self.expect(&["run", "README.md"], 1, &["INVALID_ARGUMENT", "README.md"])?;
        self.expect(&["run", DEMO[1], "--device=local-sync", DEMO[2]], 1, &["UNIMPLEMENTED", "Vulkan"])?;
        self.expect(&["run", DEMO[1], "--device=no-such-driver", DEMO[2]], 1, &["no-such-driver"]).map(drop)
    }

    fn bytecode(&self) -> Result<()> {
        let abs =
            ["--module=conformance/vmvx/kernels.vmfb", "--function=abs", "--input=1x7xf32=-1 2 -3 4 5 6 -7"];
        for device in ["--device=local-sync", "--device=local-task"] {
            let all = [&["run", device][..], &abs].concat();
            self.expect(&all, 0, &["1x7xf32=[1 2 3 4 5 6 7]"])?;
        }
        let two = [&STATE[..], &["--device=local-task", "--device=local-sync"]].concat();
        self.expect(&two, 0, &["4xf32=1 4 9 16"]).map(drop)
    }

    fn compiles(&self) -> Result<()> {
        let folder = repo("target/xtask/platform");
        fs::create_dir_all(&folder)?;
        let module = "target/xtask/platform/digits.vmfb";
        let text = self.expect(
            &[
                "compile",
                DEMO[1],
                "--target=valhall-g78-android30",
                "--target=hopper-h200-linux",
                "-o",
                module,
            ],
            0,
            &[module],
        )?;
        ensure!(!text.contains("warning"), "compiling warned");
        self.expect(&["dump", module], 0, &["hopper-h200-linux", "valhall-g78-android30"]).map(drop)
    }

    fn refuses(&self, module: &Path) -> Result<()> {
        let module = format!("--module={}", module.display());
        self.expect(&["run", "--device=local-sync", &module], 1, &["the module holds code of format"])
            .map(drop)
    }

    /// Models on a Vulkan device.
    pub fn on_vulkan(&self, steps: &mut Steps, name: &str) {
        steps.take(&format!("{name}: the demo, and its cache"), || self.demo());
        steps.take(&format!("{name}: a decoder"), || self.decoder());
    }

    fn demo(&self) -> Result<()> {
        let cache = repo("target/xtask/platform/cache");
        if cache.exists() {
            fs::remove_dir_all(&cache).with_context(|| format!("cannot remove '{}'", cache.display()))?;
        }
        let kept = "--compile-cache=target/xtask/platform/cache";
        let demo = [&DEMO[..], &["--device=vulkan", kept]].concat();
        // The second time out of the cache.
        for _ in 0..2 {
            self.expect(&demo, 0, &["[SUCCESS]"])?;
        }
        ensure!(fs::read_dir(&cache)?.count() > 1, "nothing was kept in '{}'", cache.display());
        Ok(())
    }

    /// Twice the same text.
    fn decoder(&self) -> Result<()> {
        let write = [&DECODER[..], &["--device=vulkan"]].concat();
        let once = self.expect(&write, 0, &["tokens/s"])?;
        let again = self.expect(&write, 0, &[])?;
        let written = |text: &str| text.lines().next().map(str::to_owned);
        ensure!(written(&once) == written(&again), "the decoder wrote two texts:\n{once}\n{again}");
        Ok(())
    }
}

/// A suite of the conformance runner on a device.
pub fn suite(emulator: &Emulator, runner: &Path, suite: &str, device: &str) -> Result<()> {
    let (suite, device) = (format!("--suite={suite}"), format!("--device={device}"));
    // In one process: an emulator cannot start others of its kind.
    let text = emulator.run(runner, &["run", &suite, &device, "--jobs=1"])?;
    let last: Vec<&str> = text.text.lines().rev().take(6).collect();
    println!("{}", last.into_iter().rev().collect::<Vec<_>>().join("\n"));
    ensure!(text.code == Some(0), "conformance run {suite} {device} ended with {:?}", text.code);
    Ok(())
}
