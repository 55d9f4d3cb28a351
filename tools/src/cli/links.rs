//! `halite links`: the names under which the program is one tool.

use std::{
    fs, io,
    path::{Component, Path, PathBuf},
};

use clap::Parser;

use super::ENTRIES;
use crate::console::{self, CommonFlags, Failure, Result, Tool};

/// Makes the links run-module, benchmark-module, compile-module, dump-module, list-devices and kernels to this program.
///
/// Called by one of these names the program is that tool, as scripts for IREE's tools expect it. The links are symbolic
/// and relative; on Windows they are hard links, or copies where there can be none.
#[derive(Parser, Debug)]
#[command(version = console::VERSION, max_term_width = 110, after_help = "\
Examples:
  halite links /usr/local/bin
")]
pub struct Flags {
    /// The folder that gets the links; it is made when it is not there
    #[arg(value_name = "DIR", required_unless_present = "completions")]
    folder: Option<PathBuf>,
    #[command(flatten)]
    common: CommonFlags,
}

impl Tool for Flags {
    fn common(&self) -> &CommonFlags {
        &self.common
    }

    fn run(self) -> Result<()> {
        let Some(folder) = self.folder else { return Ok(()) };
        let failed = |e: io::Error| Failure::file("cannot make links in", &folder, &e);
        fs::create_dir_all(&folder).map_err(failed)?;
        let program = std::env::current_exe().and_then(|path| path.canonicalize()).map_err(failed)?;
        let folder = folder.canonicalize().map_err(failed)?;
        for name in ENTRIES.iter().filter_map(|entry| entry.program) {
            let link = folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
            make(&program, &link).map_err(|e| Failure::file("cannot make the link", &link, &e))?;
        }
        Ok(())
    }
}

/// Puts a link to the program in its place. A link that is there already is replaced as a whole, so that others who start it
/// meanwhile find one; what is no link of this program stays.
fn make(program: &Path, link: &Path) -> io::Result<()> {
    if link.canonicalize().is_ok_and(|there| there == program) {
        return Ok(());
    }
    if fs::symlink_metadata(link).is_ok() && !replaceable(link) {
        let text =
            "a file of that name is there that is no link to this program; remove it, or name another folder";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
    }
    let folder = link.parent().unwrap_or(Path::new("."));
    let new = tempfile::Builder::new().prefix(".halite-").make_in(folder, |path| put(program, path))?;
    new.into_temp_path().persist(link).map_err(|e| e.error)
}

/// Whether something that is there may make room.
#[cfg(unix)]
fn replaceable(link: &Path) -> bool {
    // A link to another build of the program, or one that leads nowhere any more.
    fs::read_link(link).is_ok_and(|to| to.file_stem().is_some_and(|stem| stem == super::PROGRAM))
}

/// Whether something that is there may make room: hard links and copies cannot be told from other programs.
#[cfg(not(unix))]
fn replaceable(_: &Path) -> bool {
    true
}

#[cfg(unix)]
fn put(program: &Path, link: &Path) -> io::Result<()> {
    let folder = link.parent().unwrap_or(Path::new("."));
    std::os::unix::fs::symlink(relative(folder, program), link)
}

#[cfg(not(unix))]
fn put(program: &Path, link: &Path) -> io::Result<()> {
    fs::hard_link(program, link).or_else(|_| fs::copy(program, link).map(drop))
}

/// The way from a folder to a file; both are absolute and without links.
#[cfg_attr(not(unix), expect(dead_code, reason = "only symbolic links have a path in them"))]
fn relative(folder: &Path, file: &Path) -> PathBuf {
    let common = folder.components().zip(file.components()).take_while(|(a, b)| a == b).count();
    if common == 0 {
        return file.to_owned();
    }
    let up = folder.components().skip(common).map(|_| Component::ParentDir);
    up.chain(file.components().skip(common)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_are_relative() {
        let way = |folder: &str, file: &str| relative(Path::new(folder), Path::new(file));
        assert_eq!(way("/a/bin", "/a/bin/halite"), Path::new("halite"));
        assert_eq!(way("/a/b/c", "/a/d/halite"), Path::new("../../d/halite"));
    }

    #[test]
    #[cfg(unix)]
    fn links_are_replaced_and_files_of_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (program, link) = (root.join("halite"), root.join("run-module"));
        fs::write(&program, "").unwrap();
        std::os::unix::fs::symlink("gone/halite", &link).unwrap();
        make(&program, &link).unwrap();
        make(&program, &link).unwrap();
        assert_eq!(fs::read_link(&link).unwrap(), Path::new("halite"));
        fs::remove_file(&link).unwrap();
        fs::write(&link, "a program of somebody").unwrap();
        assert!(make(&program, &link).unwrap_err().to_string().contains("no link"));
        assert_eq!(fs::read_to_string(&link).unwrap(), "a program of somebody");
        assert_eq!(fs::read_dir(&root).unwrap().count(), 2);
    }
}
