//! What was linked, held against what Android asks: libraries and symbols of the oldest version, pages of 16 KiB, no code that the loader
//! would have to write to; and the functions that apps look for.

use std::{collections::BTreeSet, path::Path};

use anyhow::{Context, Result, ensure};

use super::stubs;
use crate::shell::{command, exists, output};

/// Largest pages that Android's devices have.
const PAGE: u64 = 16384;
/// Functions of both interfaces that have to be there; the tests of both hold the rest.
const EXPORTED: [&str; 2] = ["halite_session_open", "Java_org_halite_Native_session"];

/// Checks a library or a program.
pub fn file(path: &Path, is_library: bool) -> Result<()> {
    if !exists("readelf") {
        println!("SKIPPED: the check of '{}': there is no readelf; install binutils", path.display());
        return Ok(());
    }
    let text =
        output(command("readelf", &["--wide", "--dynamic", "--program-headers", "--dyn-syms"]).arg(path))?;
    let told = Told::read(&text)?;
    told.check(is_library).with_context(|| format!("'{}'", path.display()))?;
    println!("{}: {} symbols of {}", path.display(), told.undefined.len(), told.needed.join(", "));
    Ok(())
}

/// What `readelf` tells.
#[derive(Default)]
struct Told {
    needed: Vec<String>,
    undefined: Vec<String>,
    exported: BTreeSet<String>,
    /// Of the segments that are loaded.
    alignments: Vec<u64>,
    writes_code: bool,
    has_thread_locals: bool,
}

impl Told {
    fn read(text: &str) -> Result<Told> {
        let mut told = Told::default();
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                ["LOAD", .., alignment] => {
                    let digits = alignment.trim_start_matches("0x");
                    let number = u64::from_str_radix(digits, 16);
                    told.alignments.push(number.with_context(|| format!("no alignment in '{line}'"))?);
                }
                // Of its own: the loader knows them since API 29; before, compilers call a function for each.
                ["TLS", ..] if words.len() > 6 => told.has_thread_locals = true,
                [_, "(NEEDED)", .., name] => told.needed.push(name.trim_matches(['[', ']']).to_owned()),
                [_, "(TEXTREL)", ..] => told.writes_code = true,
                [_, _, _, _, bind, _, place, name] if matches!(*bind, "GLOBAL" | "WEAK") => {
                    let name = name.split('@').next().unwrap_or(name).to_owned();
                    match *place {
                        // What is weak may be missing.
                        "UND" if *bind == "WEAK" => {}
                        "UND" => told.undefined.push(name),
                        _ => drop(told.exported.insert(name)),
                    }
                }
                _ => {}
            }
        }
        ensure!(!told.alignments.is_empty(), "readelf told of no segments:\n{text}");
        Ok(told)
    }

    fn check(&self, is_library: bool) -> Result<()> {
        let libraries: Vec<&str> = stubs::libraries().collect();
        let unknown: Vec<_> = self.needed.iter().filter(|name| !libraries.contains(&name.as_str())).collect();
        ensure!(unknown.is_empty(), "it needs {unknown:?}, which apps cannot count on");
        let symbols = stubs::symbols()?;
        let is_known = |name: &&String| symbols.iter().any(|symbol| symbol.name == name.as_str());
        let unknown: Vec<_> = self.undefined.iter().filter(|name| !is_known(name)).collect();
        ensure!(unknown.is_empty(), "it uses {unknown:?}, which are not in xtask/src/android/symbols");
        ensure!(!self.writes_code, "the loader would have to write to its code (TEXTREL)");
        ensure!(
            !self.has_thread_locals,
            "it has a segment of thread-locals (TLS), which Android loads since API 29"
        );
        let small: Vec<_> = self.alignments.iter().filter(|alignment| **alignment < PAGE).collect();
        ensure!(
            small.is_empty(),
            "segments are aligned to {small:?}, and devices have pages of {PAGE} bytes"
        );
        for name in EXPORTED.iter().filter(|_| is_library) {
            ensure!(self.exported.contains(*name), "it exports no {name}");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "
  LOAD           0x000000 0x0000000000000000 0x0000000000000000 0x00051c 0x00051c R   0x4000
 0x0000000000000001 (NEEDED)             Shared library: [libc.so]
     1: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND malloc
     2: 0000000000000000     0 FUNC    WEAK   DEFAULT  UND newer_than_all
     3: 0000000000001000     8 FUNC    GLOBAL DEFAULT   14 halite_session_open
     4: 0000000000001000     8 FUNC    GLOBAL DEFAULT   14 Java_org_halite_Native_session
";

    #[test]
    fn what_android_takes_passes_and_nothing_else() {
        let checked = |text: &str| Told::read(text).unwrap().check(true).map_err(|why| why.to_string());
        assert_eq!(checked(GOOD), Ok(()));
        for (from, to, why) in [
            ("0x4000", "0x1000", "pages"),
            ("[libc.so]", "[libstdc++.so.6]", "count on"),
            ("UND malloc", "UND memfd_create", "memfd_create"),
            ("\n  LOAD", "\n  TLS            0x000000 0x0 0x0 0x00051c 0x00051c R   0x8\n  LOAD", "API 29"),
            ("halite_session_open", "other", "exports no"),
            (
                "(NEEDED)             Shared library: [libc.so]",
                "(TEXTREL)            0x0",
                "write to its code",
            ),
        ] {
            let error = checked(&GOOD.replace(from, to)).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        assert!(Told::read("nothing").is_err());
    }
}
