//! The AAR: Java's half, the native libraries, a manifest, and what shrinkers of apps must keep.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Result, ensure};

use super::{API, Abi};
use crate::{
    archive::{self, Entry},
    dist, java,
    shell::repo,
};

/// What the native half finds by name.
const KEPT: &str = "\
-keepclasseswithmembernames class org.halite.* { native <methods>; }
-keep class org.halite.HaliteException { <init>(...); }
-keep class org.halite.Progress { void tell(...); }
-keep class org.halite.Texts { boolean tell(...); }
";

/// Packs into a folder, twice, and compares.
pub fn make(to: &Path, libraries: &[(Abi, PathBuf)], date: u64) -> Result<PathBuf> {
    let path = to.join(format!("halite-{}.aar", dist::version()?));
    pack(&path, libraries, date)?;
    let again = repo("target/xtask/android/again.aar");
    pack(&again, libraries, date)?;
    ensure!(
        fs::read(&path)? == fs::read(&again)?,
        "'{}' is not the same bytes a second time",
        path.display()
    );
    Ok(path)
}

fn pack(to: &Path, libraries: &[(Abi, PathBuf)], date: u64) -> Result<()> {
    let jar = java::jar(&repo("target/xtask/android/classes.jar"), date)?;
    let manifest = format!(
        "<manifest xmlns:android=\"http://schemas.android.com/apk/res/android\" package=\"org.halite\">\n    \
         <uses-sdk android:minSdkVersion=\"{API}\" />\n</manifest>\n"
    );
    let mut entries = vec![
        Entry::text("AndroidManifest.xml", &manifest),
        Entry::text("R.txt", ""),
        Entry::text("proguard.txt", KEPT),
        Entry::file("classes.jar", &jar)?,
    ];
    for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
        entries.push(Entry::file(&format!("META-INF/{licence}"), &repo(licence))?);
    }
    for (abi, library) in libraries {
        entries.push(Entry::file(&format!("jni/{}/libhalite.so", abi.name()), library)?);
    }
    archive::write(to, entries, date)
}
