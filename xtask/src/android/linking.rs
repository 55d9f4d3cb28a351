//! What links for Android: Google's kit, or Rust's linker with what takes the kit's place.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

use super::{API, Abi, start, stubs};
use crate::shell::{command, output, repo};

/// The variables that name the kit, in the order they are looked at.
const KIT: [&str; 2] = ["ANDROID_NDK_HOME", "ANDROID_NDK_ROOT"];
/// The file that begins programs, and the one that libraries need.
const PROGRAM_START: &str = "start.o";
const LIBRARY_START: &str = "handle.o";
/// Flags for the linker in both ways: pages of 16 KiB, which devices may have since Android 15; nothing undefined; not unloaded, as
/// threads would go on in memory that is gone.
const FLAGS: [&str; 8] =
    ["-z", "max-page-size=16384", "-z", "defs", "-z", "nodelete", "--hash-style=gnu", "--build-id=sha1"];

/// What links for one kind of processor.
pub enum Linking {
    /// The kit's compiler.
    Kit(PathBuf),
    /// Rust's linker, and the folder with the libraries that stand for Android's.
    Own { linker: PathBuf, folder: PathBuf },
}

impl Linking {
    /// The kit where one is named, else Rust's linker.
    pub fn find(abi: Abi) -> Result<Linking> {
        if let Some((variable, kit)) = KIT.iter().find_map(|name| Some((name, std::env::var_os(name)?))) {
            let compiler = compiler(Path::new(&kit), abi);
            return Ok(Linking::Kit(compiler.with_context(|| format!("{variable} names no kit"))?));
        }
        let linker = linker_of_rust()?;
        let folder = repo("target/xtask/android").join(abi.name());
        fs::create_dir_all(&folder)?;
        stubs::make(&linker, abi, &folder)?;
        start::make(abi, &folder)?;
        Ok(Linking::Own { linker, folder })
    }

    /// For people.
    pub fn about(&self) -> String {
        match self {
            Linking::Kit(compiler) => compiler.display().to_string(),
            Linking::Own { linker, .. } => format!("{}, without Google's kit", linker.display()),
        }
    }

    /// A flag for the linker, as what links takes it.
    pub fn to_linker(&self, flag: &str) -> String {
        match self {
            Linking::Kit(_) => format!("-Wl,{flag}"),
            Linking::Own { .. } => flag.to_owned(),
        }
    }

    /// Flags for the Rust compiler, for a library or a program.
    pub fn flags(&self, is_library: bool) -> Vec<String> {
        let mut flags = vec!["-Cstrip=symbols".to_owned()];
        flags.extend(FLAGS.iter().map(|flag| format!("-Clink-arg={}", self.to_linker(flag))));
        match self {
            Linking::Kit(compiler) => flags.push(format!("-Clinker={}", compiler.display())),
            Linking::Own { linker, folder } => {
                let start = if is_library { LIBRARY_START } else { PROGRAM_START };
                flags.push(format!("-Clinker={}", linker.display()));
                flags.push("-Clinker-flavor=ld.lld".to_owned());
                flags.push(format!("-Lnative={}", folder.display()));
                flags.push(format!("-Clink-arg={}", folder.join(start).display()));
                flags.push("-Clink-arg=--eh-frame-hdr".to_owned());
                if !is_library {
                    flags.push("-Clink-arg=--dynamic-linker=/system/bin/linker64".to_owned());
                }
            }
        }
        flags
    }
}

/// The kit's compiler for the oldest Android.
fn compiler(kit: &Path, abi: Abi) -> Result<PathBuf> {
    let hosts = kit.join("toolchains/llvm/prebuilt");
    let mut entries: Vec<PathBuf> = fs::read_dir(&hosts)
        .with_context(|| format!("reading '{}'", hosts.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    entries.sort();
    let name = format!("{}{API}-clang", abi.triple());
    let found = entries.into_iter().map(|host| host.join("bin").join(&name)).find(|path| path.exists());
    found.with_context(|| format!("there is no {name} below '{}'", hosts.display()))
}

/// The linker that comes with Rust.
fn linker_of_rust() -> Result<PathBuf> {
    let ask = |args: &[&str]| output(&mut command("rustc", args));
    let (root, version) = (ask(&["--print", "sysroot"])?, ask(&["-vV"])?);
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc tells no host")?;
    let linker = Path::new(root.trim()).join("lib/rustlib").join(host).join("bin/rust-lld");
    ensure!(
        linker.exists(),
        "this Rust has no linker '{}'; name Google's kit with {}",
        linker.display(),
        KIT[0]
    );
    Ok(linker)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kits_compiler_is_that_for_the_oldest_android() {
        let kit = std::env::temp_dir().join(format!("halite-kit-{}", std::process::id()));
        assert!(compiler(&kit, Abi::Arm64).is_err());
        let bin = kit.join("toolchains/llvm/prebuilt/linux-x86_64/bin");
        fs::create_dir_all(&bin).unwrap();
        fs::write(bin.join("aarch64-linux-android26-clang"), "").unwrap();
        assert!(compiler(&kit, Abi::Arm64).unwrap().starts_with(&bin));
        assert!(compiler(&kit, Abi::X86).is_err());
        fs::remove_dir_all(&kit).unwrap();
    }

    #[test]
    fn flags_reach_the_linker_in_both_ways() {
        let kit = Linking::Kit("clang".into()).flags(true);
        assert!(
            kit.contains(&"-Clink-arg=-Wl,max-page-size=16384".to_owned())
                && kit.contains(&"-Clinker=clang".to_owned())
        );
        let own = Linking::Own { linker: "lld".into(), folder: "f".into() };
        assert!(own.flags(true).contains(&"-Clink-arg=max-page-size=16384".to_owned()));
        let is_for_programs = |flag: &String| flag.contains("linker64") || flag.contains("start.o");
        assert!(own.flags(false).iter().any(is_for_programs) && !own.flags(true).iter().any(is_for_programs));
    }
}
