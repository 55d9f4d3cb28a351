//! What Google's kit links in beside Android's libraries: the start of programs, a name that libraries have, and the unwinder, which
//! catches panics. Zig compiles them; the unwinder is LLVM's, whose sources come with Zig.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

use super::Abi;
use crate::{
    shell::{command, output},
    wheel,
};

/// What destructors of threads are registered for.
const HANDLE: &str = "__attribute__((visibility(\"hidden\"))) void *__dso_handle = &__dso_handle;\n";
/// Android's C library wants what the kernel put on the stack. What runs before `main` the loader has run; nothing runs behind it.
const START: &str = "
int main(int, char **, char **);
_Noreturn void __libc_init(void *, void (*)(void), int (*)(int, char **, char **), void *);
__attribute__((used, visibility(\"hidden\"))) _Noreturn void halite_start(void *on_stack) {
    static void *nothing[8];
    __libc_init(on_stack, 0, &main, nothing);
}
";
/// The unwinder: its folder in Zig's package, its files, and how each is compiled.
const UNWINDER: &str = "lib/libunwind";
const FILES: [(&str, &[&str]); 5] = [
    ("UnwindLevel1.c", &["cc", "-std=c11"]),
    ("UnwindLevel1-gcc-ext.c", &["cc", "-std=c11"]),
    ("UnwindRegistersRestore.S", &["cc"]),
    ("UnwindRegistersSave.S", &["cc"]),
    ("libunwind.cpp", &["c++", "-std=c++17", "-fno-exceptions", "-fno-rtti", "-nostdinc++"]),
];
/// Without what Android's C library lacks.
const FLAGS: [&str; 9] = [
    "-c",
    "-O2",
    "-g0",
    "-fPIC",
    "-fno-sanitize=all",
    "-fno-stack-protector",
    "-fvisibility=hidden",
    "-funwind-tables",
    "-DNDEBUG",
];

/// Makes what programs and libraries are linked with into a folder.
pub fn make(abi: Abi, folder: &Path) -> Result<()> {
    let archive = folder.join("libunwind.a");
    if archive.exists() && folder.join("start.o").exists() {
        return Ok(());
    }
    let zig = Zig { interpreter: wheel::zig()?, target: format!("{}-linux-musl", abi.processor()) };
    for (name, text) in [("handle", HANDLE.to_owned()), ("start", format!("{HANDLE}{START}{}", entry(abi)))] {
        let source = folder.join(format!("{name}.c"));
        fs::write(&source, text)?;
        zig.compile(&["cc", "-std=c11"], &[], &source, &folder.join(format!("{name}.o")))?;
    }
    let sources = zig.folder()?.join(UNWINDER);
    let include = format!("-I{}", sources.join("include").display());
    let mut objects = Vec::new();
    for (name, how) in FILES {
        let object = folder.join(format!("{name}.o"));
        let more = [include.as_str(), "-D_LIBUNWIND_HIDE_SYMBOLS"];
        zig.compile(how, &more, &sources.join("src").join(name), &object)?;
        objects.push(object);
    }
    output(zig.run(&["ar", "rcsD"]).arg(&archive).args(objects)).map(drop)
}

/// The first instructions of a program.
fn entry(abi: Abi) -> &'static str {
    match abi {
        Abi::Arm64 => {
            "__asm__(\".text\\n.globl _start\\n.type _start,%function\\n_start:\\nmov x29, #0\\nmov x30, #0\\nmov x0, sp\\nb halite_start\\n\");\n"
        }
        Abi::X86 => {
            "__asm__(\".text\\n.globl _start\\n.type _start,@function\\n_start:\\nxor %ebp, %ebp\\nmov %rsp, %rdi\\nand $-16, %rsp\\ncall halite_start\\n\");\n"
        }
    }
}

/// Zig out of PyPI's package.
struct Zig {
    interpreter: PathBuf,
    /// With the headers of another C library for the same kernel: Android's own are in the kit alone, and what the unwinder takes from
    /// them is the same.
    target: String,
}

impl Zig {
    fn run(&self, args: &[&str]) -> std::process::Command {
        let mut run = command(&self.interpreter.to_string_lossy(), &["-m", "ziglang"]);
        run.args(args);
        run
    }

    fn compile(&self, how: &[&str], more: &[&str], source: &Path, to: &Path) -> Result<()> {
        let mut compile = self.run(how);
        compile.args(["-target", &self.target]).args(FLAGS).args(more).arg(source).arg("-o").arg(to);
        output(&mut compile).with_context(|| format!("compiling '{}'", source.display())).map(drop)
    }

    /// Where the package is.
    fn folder(&self) -> Result<PathBuf> {
        let ask = "import os, ziglang; print(os.path.dirname(ziglang.__file__))";
        let text = output(&mut command(&self.interpreter.to_string_lossy(), &["-c", ask]))?;
        let folder = PathBuf::from(text.trim());
        ensure!(folder.join(UNWINDER).exists(), "Zig's package has no sources of an unwinder");
        Ok(folder)
    }
}
