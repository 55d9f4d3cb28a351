//! Which glibc is asked for by what is shipped. Zig links it, with libraries that stand for those of an older glibc than this machine's.

mod unwinder;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

use crate::{
    python,
    shell::{output, repo},
    wheel,
};

/// The oldest glibc that packages run with.
pub const OLDEST: (u32, u32) = (2, 28);

/// How what is shipped is linked.
pub struct Linking {
    /// Rust's name of the system, where another linker than this machine's is asked for.
    pub target: Option<String>,
    environment: Vec<(String, String)>,
}

impl Linking {
    /// By this machine's linker, with what the caller's environment says.
    pub fn here() -> Linking {
        Linking { target: None, environment: Vec::new() }
    }

    /// By this machine's linker, with these flags for Rust's compiler: what is linked asks for this machine's glibc.
    pub fn native(flags: String) -> Linking {
        Linking { target: None, environment: vec![("RUSTFLAGS".to_owned(), flags)] }
    }

    /// By Zig, for the oldest glibc.
    pub fn oldest(flags: String) -> Result<Linking> {
        let linking = Linking::by_zig(&format!("{}-unknown-linux-gnu", std::env::consts::ARCH), OLDEST)?;
        let environment = [Linking::native(flags).environment, linking.environment].concat();
        Ok(Linking { environment, ..linking })
    }

    /// By Zig, for a system by Rust's name and a glibc.
    pub fn by_zig(target: &str, glibc: (u32, u32)) -> Result<Linking> {
        let processor = target.split('-').next().unwrap_or_default();
        let variable = format!("CARGO_TARGET_{}_LINKER", target.to_uppercase().replace('-', "_"));
        let linker = linker(processor, glibc, &wheel::zig()?)?.to_string_lossy().into_owned();
        Ok(Linking { target: Some(target.to_owned()), environment: vec![(variable, linker)] })
    }

    /// The environment for cargo.
    pub fn environment(&self) -> Vec<(&str, &str)> {
        self.environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }

    /// Cargo's arguments.
    pub fn args(&self) -> Vec<&str> {
        self.target.iter().flat_map(|target| ["--target", target]).collect()
    }

    /// Where cargo puts what it builds with a profile.
    pub fn folder(&self, profile: &str) -> PathBuf {
        let folder = repo("target").join(self.target.as_deref().unwrap_or_default());
        folder.join(if profile == "dev" { "debug" } else { profile })
    }
}

/// Makes the program that links: Zig's compiler, by the package that knows which of Rust's flags it does not take.
fn linker(processor: &str, (major, minor): (u32, u32), interpreter: &Path) -> Result<PathBuf> {
    let bin = interpreter.parent().context("a program lies in a folder")?;
    let wrapper = python::program(bin.parent().context("an environment has a folder")?, "cargo-zigbuild");
    let target = format!("{processor}-linux-gnu.{major}.{minor}");
    let folder = repo("target/xtask/glibc").join(&target);
    fs::create_dir_all(&folder)?;
    let unwinder = unwinder::stub(&folder, interpreter, &target)?;
    // The unwinder goes before all else, so that Zig's own finds nothing to do.
    let text = format!(
        "#!/bin/sh\nPATH='{}':\"$PATH\" exec '{}' zig cc -- -g -target {target} '{}' \"$@\"\n",
        bin.display(),
        wrapper.display(),
        unwinder.display()
    );
    let path = folder.join("linker");
    fs::write(&path, text).with_context(|| format!("cannot write '{}'", path.display()))?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    }
    Ok(path)
}

/// An error if a program or library does not run with the oldest glibc, or has an unwinder of its own.
pub fn hold(file: &Path) -> Result<()> {
    let newest = newest(file)?;
    ensure!(
        has(&read(file)?, unwinder::NAME.as_bytes()),
        "'{}' does not load {}: it has another unwinder than the process",
        file.display(),
        unwinder::NAME
    );
    ensure!(
        newest <= OLDEST,
        "'{}' asks for glibc {}.{}, and packages run with {}.{}",
        file.display(),
        newest.0,
        newest.1,
        OLDEST.0,
        OLDEST.1
    );
    println!("{} asks for glibc {}.{}", file.display(), newest.0, newest.1);
    Ok(())
}

/// What a program or library needs of Debian: the newest version of the C library whose symbols it uses, and the unwinder where it is
/// not in it.
pub fn depends(file: &Path) -> Result<String> {
    let (major, minor) = newest(file)?;
    let unwinder = if has(&read(file)?, unwinder::NAME.as_bytes()) { ", libgcc-s1" } else { "" };
    Ok(format!("libc6 (>= {major}.{minor}){unwinder}"))
}

fn newest(file: &Path) -> Result<(u32, u32)> {
    of_bytes(&read(file)?).with_context(|| format!("'{}' uses no glibc", file.display()))
}

fn read(file: &Path) -> Result<Vec<u8>> {
    fs::read(file).with_context(|| format!("cannot read '{}'", file.display()))
}

fn has(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|window| window == text)
}

/// The newest `GLIBC_x.y` in a file.
fn of_bytes(bytes: &[u8]) -> Option<(u32, u32)> {
    const PREFIX: &[u8] = b"GLIBC_";
    let version = |rest: &[u8]| {
        let text: String = rest
            .iter()
            .take(8)
            .map(|b| char::from(*b))
            .take_while(|c| c.is_ascii_digit() || *c == '.')
            .collect();
        let (major, minor) = text.split_once('.')?;
        Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
    };
    let found = bytes.windows(PREFIX.len()).enumerate().filter(|(_, window)| *window == PREFIX);
    found.filter_map(|(at, _)| version(&bytes[at + PREFIX.len()..])).max()
}

/// The library in a wheel, unpacked into a folder.
pub fn in_wheel(wheel: &Path) -> Result<PathBuf> {
    let folder = repo("target/xtask/packages-wheel-content");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let script = "import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extractall(sys.argv[2])";
    output(crate::shell::command(&python::find()?, &["-c", script]).arg(wheel).arg(&folder))?;
    let library = folder.join("halite/_halite.abi3.so");
    ensure!(library.is_file(), "'{}' has no {}", wheel.display(), "halite/_halite.abi3.so");
    Ok(library)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_of_glibc_counts() {
        assert_eq!(of_bytes(b"..GLIBC_2.9\0GLIBC_2.28\0GLIBC_2.2.5\0GLIBC_PRIVATE\0"), Some((2, 28)));
        assert_eq!(of_bytes(b"GLIBCXX_3.4"), None);
        assert_eq!(of_bytes(b"GLIBC_"), None);
    }

    #[test]
    fn files_that_ask_for_a_newer_glibc_or_bring_an_unwinder_are_refused() {
        let file = std::env::temp_dir().join(format!("halite-glibc-{}", std::process::id()));
        for (bytes, depends_on, is_held) in [
            (&b"GLIBC_2.9\0GLIBC_2.28\0libgcc_s.so.1\0"[..], "libc6 (>= 2.28), libgcc-s1", true),
            (b"GLIBC_2.29\0libgcc_s.so.1\0", "libc6 (>= 2.29), libgcc-s1", false),
            (b"GLIBC_2.28\0", "libc6 (>= 2.28)", false),
        ] {
            fs::write(&file, bytes).unwrap();
            assert_eq!(depends(&file).unwrap(), depends_on);
            assert_eq!(hold(&file).is_ok(), is_held, "{depends_on}");
        }
        fs::remove_file(file).unwrap();
    }

    #[test]
    fn what_is_linked_for_another_glibc_has_a_folder_of_its_own() {
        let native = Linking::native("-x".to_owned());
        assert_eq!((native.args().len(), native.folder("dist")), (0, repo("target/dist")));
        let other = Linking { target: Some("a-b".to_owned()), ..native };
        assert_eq!((other.args(), other.folder("dev")), (vec!["--target", "a-b"], repo("target/a-b/debug")));
    }
}
