//! What the installed files are called, on which system.

/// Which kind of system libraries are for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum System {
    /// Linux, Android, the BSDs.
    Elf,
    Apple,
    Windows,
}

impl System {
    /// Of Rust's name of a target.
    pub fn of(triple: &str) -> System {
        if triple.contains("windows") {
            System::Windows
        } else if triple.contains("-apple-") {
            System::Apple
        } else {
            System::Elf
        }
    }
}

/// Names below the prefix.
#[derive(Debug, PartialEq)]
pub struct Layout {
    /// The shared library.
    pub shared: String,
    /// The static library.
    pub archive: String,
    /// What programs are linked with instead of the shared library, on Windows.
    pub import: Option<String>,
    /// A link beside the shared library, and what it leads to.
    pub link: Option<(String, String)>,
    /// The name that programs remember the shared library by; empty on Windows.
    pub soname: String,
    /// What stands behind `-l`.
    pub link_name: &'static str,
}

/// The name that programs remember the library by, which changes when they have to be built anew.
pub fn soname(system: System, (major, minor): (u32, u32)) -> String {
    // While the interface is young, a change of its minor number may be incompatible.
    let version = if major == 0 { format!("0.{minor}") } else { major.to_string() };
    match system {
        System::Elf => format!("libhalite.so.{version}"),
        System::Apple => format!("libhalite.{version}.dylib"),
        System::Windows => String::new(),
    }
}

impl Layout {
    /// On a kind of system, for a version of the interface.
    pub fn of(system: &System, abi: (u32, u32)) -> Layout {
        let soname = soname(*system, abi);
        let below = |name: &str| format!("lib/{name}");
        let link = |name: &str| Some((below(name), soname.clone()));
        match system {
            System::Elf => Layout {
                shared: below(&soname),
                archive: below("libhalite.a"),
                import: None,
                link: link("libhalite.so"),
                soname,
                link_name: "halite",
            },
            System::Apple => Layout {
                shared: below(&soname),
                archive: below("libhalite.a"),
                import: None,
                link: link("libhalite.dylib"),
                soname: format!("@rpath/{soname}"),
                link_name: "halite",
            },
            // The import library has the name of the library in it, so both keep the names that the compiler gave.
            System::Windows => Layout {
                shared: "bin/halite_c.dll".to_owned(),
                archive: below("libhalite.a"),
                import: Some(below("libhalite_c.dll.a")),
                link: None,
                soname,
                link_name: "halite_c",
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_system() {
        for (triple, system, soname_now, soname_then) in [
            ("x86_64-unknown-linux-gnu", System::Elf, "libhalite.so.0.3", "libhalite.so.2"),
            ("aarch64-linux-android", System::Elf, "libhalite.so.0.3", "libhalite.so.2"),
            ("aarch64-apple-darwin", System::Apple, "libhalite.0.3.dylib", "libhalite.2.dylib"),
            ("x86_64-pc-windows-gnu", System::Windows, "", ""),
        ] {
            assert_eq!(System::of(triple), system);
            assert_eq!(
                (soname(system, (0, 3)).as_str(), soname(system, (2, 3)).as_str()),
                (soname_now, soname_then)
            );
        }
        let linux = Layout::of(&System::Elf, (1, 0));
        assert_eq!(linux.shared, "lib/libhalite.so.1");
        assert_eq!(linux.link, Some(("lib/libhalite.so".to_owned(), "libhalite.so.1".to_owned())));
        assert_eq!(Layout::of(&System::Windows, (1, 0)).import.as_deref(), Some("lib/libhalite_c.dll.a"));
    }
}
