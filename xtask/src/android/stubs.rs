//! Libraries that stand for Android's when programs are linked: names and no code. Each is made of a list in `symbols`, which says since
//! which version of the interface (API) a name is there.
//!
//! The lists hold what Halite, Rust's standard library and the unwinder use, and nothing else. The facts are those of the public
//! interface: `lib*.map.txt` in the sources of Android's C library. **To add one**: linking fails and names it; look it up there, or in
//! the documentation of the kit, and add a line with its API, sorted. A name that is newer than [`API`] must not be added: whoever needs
//! it has to look it up at run time.

use std::{fs, path::Path};

use anyhow::{Context, Result, ensure};

use super::{API, Abi};
use crate::shell::{command, output};

/// The lists: the library, and its symbols.
const LISTS: [(&str, &str); 4] = [
    ("libc.so", include_str!("symbols/libc.txt")),
    ("libdl.so", include_str!("symbols/libdl.txt")),
    ("libm.so", include_str!("symbols/libm.txt")),
    ("liblog.so", include_str!("symbols/liblog.txt")),
];

/// A symbol of Android's.
#[derive(Debug, PartialEq)]
pub struct Symbol {
    pub name: &'static str,
    /// The first API that has it.
    pub since: u32,
}

/// The names of the libraries.
pub fn libraries() -> impl Iterator<Item = &'static str> {
    LISTS.iter().map(|(library, _)| *library)
}

/// The symbols of all libraries.
pub fn symbols() -> Result<Vec<Symbol>> {
    let lists = LISTS.iter().map(|(library, list)| read(library, list)).collect::<Result<Vec<_>>>()?;
    Ok(lists.into_iter().flatten().collect())
}

/// A list: a name and an API in each line, sorted; lines that begin with `#` are for people.
fn read(library: &str, list: &'static str) -> Result<Vec<Symbol>> {
    let lines = list.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let symbols = lines.map(|line| {
        let (name, since) =
            line.split_once(' ').with_context(|| format!("{library}: '{line}' has no API"))?;
        let since = since.parse().with_context(|| format!("{library}: '{line}' has no API"))?;
        ensure!(since <= API, "{library}: '{name}' is there since API {since}, and {API} is the oldest");
        Ok(Symbol { name, since })
    });
    let symbols = symbols.collect::<Result<Vec<_>>>()?;
    ensure!(symbols.is_sorted_by(|a, b| a.name < b.name), "{library}: the symbols are not sorted");
    Ok(symbols)
}

/// Makes the libraries into a folder.
pub fn make(linker: &Path, abi: Abi, folder: &Path) -> Result<()> {
    let emulation = match abi {
        Abi::Arm64 => "aarch64linux",
        Abi::X86 => "elf_x86_64",
    };
    for (library, list) in LISTS {
        let script: String =
            read(library, list)?.iter().map(|symbol| format!("\"{}\" = 1;\n", symbol.name)).collect();
        let source = folder.join(format!("{library}.ld"));
        fs::write(&source, script)?;
        let mut link = command(&linker.to_string_lossy(), &["-flavor", "gnu", "-m", emulation, "-shared"]);
        link.args(["-soname", library, "-o"]).arg(folder.join(library)).arg(&source);
        output(&mut link)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted_and_old_enough() {
        let all = symbols().unwrap();
        assert!(
            all.iter().any(|symbol| symbol.name == "malloc") && all.iter().all(|symbol| symbol.since >= 1)
        );
    }

    #[test]
    fn wrong_lists_are_refused() {
        assert_eq!(read("l", "# a list\na 1\nb 26\n").unwrap()[1], Symbol { name: "b", since: 26 });
        for (list, why) in [
            ("a", "no API"),
            ("a x", "no API"),
            ("b 1\na 1", "sorted"),
            ("a 1\na 1", "sorted"),
            ("a 28", "oldest"),
        ] {
            let error = format!("{:#}", read("l", list).unwrap_err());
            assert!(error.contains(why), "{error}");
        }
    }
}
