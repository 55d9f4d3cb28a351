//! Windows: built by Debian's MinGW, run by Wine. Vulkan is Wine's own, over a driver of this machine; it needs a screen, which Xvfb is.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};

use super::{
    Cross, Options,
    checks::{self, Checked},
    emulator::Emulator,
};
use crate::{
    capi, setup,
    shell::{self, command, exists, repo, say},
    steps::Steps,
};

const TRIPLE: &str = "x86_64-pc-windows-gnu";
/// Names of MinGW's compiler: by its usual name, and by those that Debian gives it per kind of threads.
const COMPILERS: [&str; 3] =
    ["x86_64-w64-mingw32-gcc", "x86_64-w64-mingw32-gcc-win32", "x86_64-w64-mingw32-gcc-posix"];
/// A library that Windows has and Wine before 8.11 lacks; Rust's standard library takes random numbers from it.
const RANDOM: &str = "bcryptprimitives.dll";
const RANDOM_SOURCE: &str = "
int __stdcall SystemFunction036(void *buffer, unsigned long length);
__declspec(dllexport) int __stdcall ProcessPrng(unsigned char *buffer, unsigned long long length)
{
    while (length > 0) {
        unsigned long part = length > 65536 ? 65536 : (unsigned long)length;
        if (!SystemFunction036(buffer, part)) return 0;
        buffer += part;
        length -= part;
    }
    return 1;
}
";
/// How long a screen may take to begin.
const PATIENCE: Duration = Duration::from_secs(20);

/// Builds and runs.
pub fn run(options: &Options, steps: &mut Steps) {
    let Some(compiler) = COMPILERS.into_iter().find(|name| exists(name)) else {
        steps.skip("Windows", "there is no MinGW; on Debian: apt install gcc-mingw-w64-x86-64-win32");
        return;
    };
    let linker = ("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER", compiler.to_owned());
    let cross = Cross { triple: TRIPLE, linker, suffix: ".exe" };
    if !options.without_build && steps.take("Windows: build", || cross.build(options)).is_none() {
        return;
    }
    let prefix = repo("target/xtask/windows/prefix");
    if !options.short && !options.without_build {
        steps.take("Windows: libhalite", || libhalite(&cross, options, &prefix));
    }
    if !exists("wine") {
        steps.skip(
            "Windows: run",
            "there is no Wine; on Debian: apt install --no-install-recommends wine wine64",
        );
        return;
    }
    let Some(wine) = steps.take("Windows: Wine", || wine(compiler)) else { return };
    let program = cross.program(options, "halite");
    let foreign = repo("../shared/corpus/vmfb/models/mlp/llvm_cpu.vmfb");
    let foreign = foreign.exists().then_some(foreign.as_path());
    let checked = Checked { emulator: &wine, program: &program, target: "cpu-x86_64-windows", foreign };
    checked.everywhere(steps, "Windows");
    if !options.short {
        let runner = cross.program(options, "conformance");
        for (suite, device) in [("hal", "local-sync"), ("hal", "local-task"), ("vm", "local-sync")] {
            steps.take(&format!("Windows: suite {suite} on {device}"), || {
                checks::suite(&wine, &runner, suite, device)
            });
        }
    }
    on_vulkan(options, steps, &wine, &program, compiler, &prefix);
    // Its server would stay for a while.
    let _ = wine.command(Path::new("wineboot"), &["--kill"]).status();
}

/// Models, and a program in C, on Wine's Vulkan.
fn on_vulkan(
    options: &Options,
    steps: &mut Steps,
    wine: &Emulator,
    program: &Path,
    compiler: &str,
    prefix: &Path,
) {
    const NAME: &str = "Windows: models on Vulkan";
    if !exists("Xvfb") {
        steps.skip(NAME, "Wine's Vulkan needs a screen, and there is no Xvfb; on Debian: apt install xvfb");
        return;
    }
    let screen = match Screen::begin() {
        Ok(screen) => screen,
        Err(why) => return steps.skip(NAME, &format!("{why:#}")),
    };
    let mut environment = wine.environment.clone();
    environment.push(("DISPLAY", screen.name.clone().into()));
    if let Ok(icds) = setup::everything()
        && let Some(icd) = icds.first()
    {
        environment.push(("VK_DRIVER_FILES", icd.manifest.clone().into()));
    }
    let wine = Emulator { before: wine.before.clone(), environment };
    let checked = Checked { emulator: &wine, program, target: "", foreign: None };
    checked.on_vulkan(steps, NAME);
    if !options.short && prefix.join("bin").exists() {
        steps.take("Windows: a program in C", || c_program(&wine, compiler, prefix));
    }
}

/// Installs the library, its import library and its headers into a prefix.
fn libhalite(cross: &Cross, options: &Options, prefix: &Path) -> Result<()> {
    let environment = [(cross.linker.0, cross.linker.1.as_str())];
    capi::cross(TRIPLE, &options.profile, &environment, prefix)
}

/// The example in C: linked with the import library, beside the library; and with all of it in the program.
fn c_program(wine: &Emulator, compiler: &str, prefix: &Path) -> Result<()> {
    let values = fs::read_to_string(prefix.join("lib/pkgconfig/halite.pc"))?;
    let others = values.lines().find_map(|line| line.strip_prefix("Libs.private:"));
    let others = others.context("halite.pc names no libraries of the system")?.split_whitespace();
    let lib = prefix.join("lib");
    let shared = vec![format!("-L{}", lib.display()), "-lhalite_c".to_owned()];
    let whole = ["-DHALITE_STATIC".to_owned(), lib.join("libhalite.a").display().to_string()];
    let whole = whole.into_iter().chain(others.map(str::to_owned)).collect();
    for (folder, links) in [("bin", shared), ("static", whole)] {
        let program = prefix.join(folder).join("digits.exe");
        fs::create_dir_all(prefix.join(folder))?;
        let mut build = command(compiler, &["capi/examples/digits.c", "-o"]);
        build.arg(&program).arg(format!("-I{}/include", prefix.display()));
        shell::run(build.args(links))?;
        let args = ["demo/digits/digits.onnx", "demo/digits/sample_7.npy", "7"];
        wine.expect(&program, &args, 0, &["This is a 7"])?;
    }
    Ok(())
}

/// A Wine with a prefix of its own.
fn wine(compiler: &str) -> Result<Emulator> {
    let folder = repo("target/xtask/windows/wine");
    fs::create_dir_all(&folder)?;
    let values: [(&str, OsString); 4] = [
        ("WINEPREFIX", folder.clone().into()),
        ("WINEDEBUG", "-all".into()),
        ("WINEDLLOVERRIDES", "mscoree=;mshtml=".into()),
        ("DISPLAY", "".into()),
    ];
    let wine = Emulator { before: vec!["wine".into()], environment: values.to_vec() };
    let system = folder.join("drive_c/windows/system32");
    if !system.exists() {
        say("a prefix for Wine");
        wine.run(Path::new("wineboot"), &["--init"])?;
    }
    ensure!(system.exists(), "Wine made no prefix in '{}'", folder.display());
    if !system.join(RANDOM).exists() {
        random_numbers(compiler, &folder, &system.join(RANDOM))?;
    }
    Ok(wine)
}

/// Makes the library that old versions of Wine lack.
fn random_numbers(compiler: &str, folder: &Path, to: &Path) -> Result<()> {
    let source = folder.join("random.c");
    fs::write(&source, RANDOM_SOURCE)?;
    let mut build = command(compiler, &["-O1", "-shared", "-o"]);
    shell::run(build.arg(to).arg(&source).arg("-ladvapi32"))
}

/// A screen that nobody sees.
struct Screen {
    server: Child,
    name: String,
}

impl Screen {
    fn begin() -> Result<Screen> {
        let sockets = PathBuf::from("/tmp/.X11-unix");
        let free = (90..200).find(|number| {
            !sockets.join(format!("X{number}")).exists()
                && !Path::new(&format!("/tmp/.X{number}-lock")).exists()
        });
        let number = free.context("all numbers of screens are taken")?;
        let name = format!(":{number}");
        let mut server = Command::new("Xvfb");
        server.args([&name, "-screen", "0", "640x480x24", "-nolisten", "tcp"]);
        let server = server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut screen = Screen { server: server.spawn().context("cannot start Xvfb")?, name };
        let begun = Instant::now();
        while !sockets.join(format!("X{number}")).exists() {
            if begun.elapsed() > PATIENCE || screen.server.try_wait()?.is_some() {
                bail!("Xvfb does not begin");
            }
            std::thread::park_timeout(Duration::from_millis(50));
        }
        Ok(screen)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
