//! The last component of a triple: the operating system, with Android's API level.

use std::fmt;

/// An operating system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OsKind {
    /// Android; the version is the API level.
    Android,
    /// FreeBSD.
    FreeBsd,
    /// Fuchsia.
    Fuchsia,
    /// iOS.
    Ios,
    /// Linux.
    Linux,
    /// macOS.
    MacOs,
    /// Windows.
    Windows,
    /// Any system.
    #[default]
    Unknown,
}

const NAMES: [(&str, OsKind); 8] = [
    ("android", OsKind::Android),
    ("freebsd", OsKind::FreeBsd),
    ("fuchsia", OsKind::Fuchsia),
    ("ios", OsKind::Ios),
    ("linux", OsKind::Linux),
    ("macos", OsKind::MacOs),
    ("windows", OsKind::Windows),
    ("unknown", OsKind::Unknown),
];

/// An operating system with a version where one was given: `android30`, `linux`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Os {
    /// The system.
    pub kind: OsKind,
    /// Its version: Android's API level, the major version elsewhere.
    pub version: Option<u32>,
}

impl Os {
    /// Any system.
    pub const UNKNOWN: Os = Os { kind: OsKind::Unknown, version: None };

    /// A system of any version.
    pub const fn new(kind: OsKind) -> Os {
        Os { kind, version: None }
    }

    /// The system that this program was built for.
    pub fn host() -> Os {
        Os::parse(std::env::consts::OS).unwrap_or(Os::UNKNOWN)
    }

    /// Reads `linux` or `android30`; `None` for anything else. Case does not matter.
    pub fn parse(text: &str) -> Option<Os> {
        let lower = text.to_ascii_lowercase();
        let name = lower.trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = &lower[name.len()..];
        let (_, kind) = NAMES.into_iter().find(|(n, _)| *n == name)?;
        let version = if digits.is_empty() { None } else { Some(digits.parse().ok()?) };
        if kind == OsKind::Unknown && version.is_some() {
            return None;
        }
        Some(Os { kind, version })
    }

    /// Names that [`Os::parse`] takes, without versions.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.into_iter().map(|(name, _)| name)
    }

    /// Highest Vulkan version (major, minor) that is usual on the system; `None` when the system does not limit it.
    /// Source: <https://developer.android.com/ndk/guides/graphics/design-notes> and the old triples of IREE, which
    /// kept Android 11 and 12 at Vulkan 1.1.
    pub(crate) fn vulkan_limit(self) -> Option<(u32, u32)> {
        match (self.kind, self.version?) {
            (OsKind::Android, ..=31) => Some((1, 1)),
            _ => None,
        }
    }
}

impl fmt::Display for Os {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.iter().find(|(_, kind)| *kind == self.kind).map_or("unknown", |(name, _)| name);
        match self.version {
            Some(version) => write!(f, "{name}{version}"),
            None => f.write_str(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips() {
        for text in ["linux", "android30", "windows11", "unknown", "macos"] {
            assert_eq!(Os::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Os::parse("Android"), Some(Os::new(OsKind::Android)));
        for bad in ["", "30", "unknown3", "linus", "android99999999999"] {
            assert_eq!(Os::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn old_android_has_vulkan_1_1() {
        assert_eq!(Os::parse("android30").unwrap().vulkan_limit(), Some((1, 1)));
        assert_eq!(Os::parse("android34").unwrap().vulkan_limit(), None);
        assert_eq!(Os::parse("android").unwrap().vulkan_limit(), None);
    }
}
