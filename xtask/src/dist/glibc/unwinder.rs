//! The unwinder of the system, `libgcc_s.so.1`, for Zig to link with.
//!
//! Zig has an unwinder of its own, which it would put into each library. A process that has another one as well, as every process of
//! glibc has that ends a thread (`pthread_exit`), crashes when that one meets frames of the library: their code asks the wrong unwinder
//! about itself. So what is shipped takes the system's. A library with its names and nothing behind them stands for it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::shell::{command, output};

/// What programs are linked with, and load.
pub const NAME: &str = "libgcc_s.so.1";
/// Its functions by the version that brought them, which is the same on all 64-bit processors. Those are here that C++'s ABI names.
const SYMBOLS: [(&str, &[&str]); 3] = [
    (
        "GCC_3.0",
        &[
            "_Unwind_DeleteException",
            "_Unwind_ForcedUnwind",
            "_Unwind_GetDataRelBase",
            "_Unwind_GetGR",
            "_Unwind_GetIP",
            "_Unwind_GetLanguageSpecificData",
            "_Unwind_GetRegionStart",
            "_Unwind_GetTextRelBase",
            "_Unwind_RaiseException",
            "_Unwind_Resume",
            "_Unwind_SetGR",
            "_Unwind_SetIP",
        ],
    ),
    (
        "GCC_3.3",
        &[
            "_Unwind_Backtrace",
            "_Unwind_FindEnclosingFunction",
            "_Unwind_GetCFA",
            "_Unwind_Resume_or_Rethrow",
        ],
    ),
    ("GCC_4.2.0", &["_Unwind_GetIPInfo"]),
];

/// Makes the library that stands for it, in a folder, by the Zig of an interpreter for a system by Zig's name.
pub fn stub(folder: &Path, interpreter: &Path, target: &str) -> Result<PathBuf> {
    let (source, versions, library) =
        (folder.join("unwinder.c"), folder.join("unwinder.map"), folder.join(NAME));
    for (path, text) in [(&source, functions()), (&versions, map())] {
        fs::write(path, text).with_context(|| format!("cannot write '{}'", path.display()))?;
    }
    let mut link = command(&interpreter.to_string_lossy(), &["-m", "ziglang", "cc", "-target", target]);
    link.args(["-shared", "-nostdlib", "-fPIC", "-O1", &format!("-Wl,-soname,{NAME}")]);
    link.arg(format!("-Wl,--version-script={}", versions.display())).arg("-o").arg(&library).arg(&source);
    output(&mut link).context("Zig makes no library that stands for the system's unwinder")?;
    Ok(library)
}

/// The source: each function, doing nothing.
fn functions() -> String {
    let names = SYMBOLS.iter().flat_map(|(_, names)| *names);
    names.map(|name| format!("void {name}(void) {{}}\n")).collect()
}

/// The versions, each with the one before it.
fn map() -> String {
    let mut text = String::new();
    let mut before = "";
    for (version, names) in SYMBOLS {
        let hidden = if before.is_empty() { " local: *;" } else { "" };
        let after = if before.is_empty() { String::new() } else { format!(" {before}") };
        text += &format!("{version} {{ global: {};{hidden} }}{after};\n", names.join("; "));
        before = version;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_name_the_one_before_them() {
        let text = map();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(
            lines[0].starts_with("GCC_3.0 { global: _Unwind_DeleteException; ")
                && lines[0].ends_with(" local: *; };")
        );
        assert_eq!(lines[2], "GCC_4.2.0 { global: _Unwind_GetIPInfo; } GCC_3.3;");
        assert_eq!(functions().lines().count(), 17);
        assert!(functions().contains("void _Unwind_GetIPInfo(void) {}\n"));
    }
}
