//! Taking out what the delegates of an ExecuTorch program hold: whole files of another format.

use std::{collections::BTreeSet, fs, io::Write, path::Path};

use bytes::Bytes;
use clap::ValueEnum;
use halite::hal::{Code, Status};
use halite_formats::pte::Program;
use halite_formats::vgf::is_vgf;

use crate::console::{Failure, Result};

/// What is taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum What {
    /// The VGF files of Arm's delegate.
    Vgf,
}

/// Writes what a program's delegates hold into a folder, and prints the names of the files.
pub(super) fn run(
    what: What,
    path: &Path,
    file: &Bytes,
    folder: Option<&Path>,
    out: &mut dyn Write,
) -> Result<()> {
    let What::Vgf = what;
    let bad = |code: Code, text: String| {
        Failure::Status(Status::new(code, text).annotate(format!("reading '{}'", path.display())))
    };
    let program = Program::parse(file).map_err(|e| bad(Code::InvalidArgument, e.to_string()))?;
    let delegates = program.plans.iter().flat_map(|plan| &plan.delegates);
    // Methods may share what a delegate holds.
    let mut seen = BTreeSet::new();
    let found: Vec<&Bytes> = delegates
        .clone()
        .filter(|delegate| is_vgf(&delegate.data))
        .map(|delegate| &delegate.data)
        .filter(|data| seen.insert((data.as_ptr() as usize, data.len())))
        .collect();
    if found.is_empty() {
        let ids: BTreeSet<&str> = delegates.map(|delegate| delegate.id.as_str()).collect();
        let ids = ids.into_iter().collect::<Vec<_>>().join(", ");
        let has = if ids.is_empty() { "it has none".to_owned() } else { format!("its delegates are: {ids}") };
        return Err(bad(Code::NotFound, format!("no delegate of the program holds a VGF file; {has}")));
    }
    let folder = folder.unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(|e| Failure::file("cannot make", folder, &e))?;
    let stem = path.file_stem().filter(|_| path.as_os_str() != "-");
    let stem = stem.map_or("program".into(), |stem| stem.to_string_lossy());
    for (i, data) in found.iter().enumerate() {
        let name = match found.len() {
            1 => format!("{stem}.vgf"),
            _ => format!("{stem}-{i}.vgf"),
        };
        let to = folder.join(name);
        fs::write(&to, data).map_err(|e| Failure::file("cannot write", &to, &e))?;
        writeln!(out, "{}", to.display())?;
    }
    Ok(out.flush()?)
}
