//! The folders in which Chrome, Chromium, Edge and programs made with Electron install SwiftShader.

use std::path::PathBuf;

use super::Surroundings;
use halite_cache::Os;

const CHROME: &str = "Chrome";
const CHROMIUM: &str = "Chromium";
const EDGE: &str = "Edge";
const ELECTRON: &str = "Electron programs";
const TEST_BROWSER: &str = "Playwright and Puppeteer";
const SYSTEM: &str = "system";

/// Below the root.
const UNIX: &[(&str, &str)] = &[
    (SYSTEM, "usr/local/lib"),
    (SYSTEM, "usr/lib"),
    (CHROME, "opt/google/chrome"),
    (CHROME, "opt/google/chrome-beta"),
    (CHROME, "opt/google/chrome-unstable"),
    (CHROME, "var/lib/flatpak/app/com.google.Chrome/current/active/files/extra"),
    // Debian and Arch; Ubuntu's and Fedora's older packages; snap; flatpak.
    (CHROMIUM, "usr/lib/chromium"),
    (CHROMIUM, "usr/lib/chromium-browser"),
    (CHROMIUM, "usr/lib64/chromium-browser"),
    (CHROMIUM, "snap/chromium/current/usr/lib/chromium-browser"),
    (CHROMIUM, "var/lib/flatpak/app/org.chromium.Chromium/current/active/files/chromium"),
    (EDGE, "opt/microsoft/msedge"),
    (EDGE, "opt/microsoft/msedge-beta"),
    (EDGE, "opt/microsoft/msedge-dev"),
    (ELECTRON, "usr/lib/electron*"),
    (ELECTRON, "usr/share/code"),
    (ELECTRON, "usr/share/codium"),
    (ELECTRON, "snap/code/current/usr/share/code"),
    (ELECTRON, "opt/*"),
];

/// Below the home folder.
const UNIX_HOME: &[(&str, &str)] = &[
    (TEST_BROWSER, ".cache/ms-playwright/chromium*/chrome-*"),
    (TEST_BROWSER, ".cache/puppeteer/chrome/*/chrome-*"),
];

/// Below the root, and below the home folder.
const MAC: &[(&str, &str)] = &[
    (CHROME, "Google Chrome.app/Contents/Frameworks/Google Chrome Framework.framework"),
    (CHROMIUM, "Chromium.app/Contents/Frameworks/Chromium Framework.framework"),
    (EDGE, "Microsoft Edge.app/Contents/Frameworks/Microsoft Edge Framework.framework"),
    (ELECTRON, "*.app/Contents/Frameworks/Electron Framework.framework"),
];

/// Below both folders of programs and the user's own.
const WINDOWS: &[(&str, &str)] = &[
    (CHROME, "Google/Chrome/Application/*"),
    (CHROMIUM, "Chromium/Application/*"),
    (EDGE, "Microsoft/Edge/Application/*"),
    (EDGE, "Microsoft/EdgeWebView/Application/*"),
    (ELECTRON, "Microsoft VS Code"),
    (ELECTRON, "Microsoft VS Code/*"),
];

/// Below the user's own folder: where the two common installers put programs.
const WINDOWS_USER: &[(&str, &str)] = &[(ELECTRON, "Programs/*"), (ELECTRON, "*/app-*")];

const WINDOWS_FOLDERS: [&str; 3] = ["ProgramFiles", "ProgramFiles(x86)", "LOCALAPPDATA"];

/// (what, folder) of each place; folders may have a `*` in a component. Places whose variables are not set are left out.
pub(super) fn of_other_programs(around: &Surroundings<'_>) -> Vec<(&'static str, PathBuf)> {
    let below = |base: Option<PathBuf>, list: &[(&'static str, &str)]| -> Vec<(&'static str, PathBuf)> {
        base.map_or(Vec::new(), |base| list.iter().map(|(what, path)| (*what, base.join(path))).collect())
    };
    let home = || around.folder("HOME");
    match around.os {
        Os::Unix => [below(Some(around.root.clone()), UNIX), below(home(), UNIX_HOME)].concat(),
        Os::Mac => {
            let bases = [Some(around.root.clone()), home()].map(|b| b.map(|b| b.join("Applications")));
            let found = bases.into_iter().flat_map(|base| below(base, MAC));
            found.map(|(what, path)| (what, path.join("Versions/Current/Libraries"))).collect()
        }
        Os::Windows => {
            let shared = WINDOWS_FOLDERS.iter().flat_map(|name| below(around.folder(name), WINDOWS));
            shared.chain(below(around.folder("LOCALAPPDATA"), WINDOWS_USER)).collect()
        }
    }
}
