//! Owns the checks of source texts: where unsafe code and the Vulkan binding may be, and that no file names a place on somebody's
//! machine.

use std::{path::Path, process::Command};

use super::{packages, root};

/// Places where unsafe code may be (ARCHITECTURE.md, invariant 9).
const UNSAFE: [&str; 3] = ["drivers/", "plugin/src", "runtime/src/mapping.rs"];
/// The place where Vulkan's binding may be (invariant 2).
const BINDING: &str = "drivers/vulkan/";
/// Users of examples.
const NOBODY: [&str; 3] = ["x", "me", "somebody"];
/// Endings of texts that people write.
const TEXTS: [&str; 14] =
    ["c", "comp", "glsl", "h", "json", "jsonl", "md", "mlir", "py", "rs", "sh", "toml", "txt", "yml"];

/// The files that git knows, with these endings, and their texts. `None`, loudly, where there is no git.
fn files(endings: &[&str]) -> Option<Vec<(String, String)>> {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output();
    let Some(listed) = listed.ok().filter(|output| output.status.success()) else {
        eprintln!("SKIPPED: git does not tell which files belong to the repository");
        return None;
    };
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let ending =
        |name: &&str| Path::new(name).extension().is_some_and(|e| endings.iter().any(|known| e == *known));
    // What was deleted and not committed yet is listed, too.
    let read = |name: &str| Some((name.to_owned(), std::fs::read_to_string(root().join(name)).ok()?));
    let files: Vec<_> = listed.split('\0').filter(ending).filter_map(read).collect();
    assert!(files.len() > 100, "only {} files were found: the search is broken", files.len());
    Some(files)
}

/// Lines of code, with their numbers: what is no comment.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    lines.filter(|(_, line)| !line.trim_start().starts_with("//"))
}

/// Where a word begins, and what follows it.
fn words<'a>(line: &'a str, word: &'a str) -> impl Iterator<Item = &'a str> {
    let of_a_name = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).filter_map(move |(at, _)| {
        let (before, after) = (&line[..at], &line[at + word.len()..]);
        (!before.ends_with(of_a_name) && !after.starts_with(of_a_name)).then_some(after)
    })
}

/// Whether a line of code has an unsafe block, function or the like.
fn is_unsafe(line: &str) -> bool {
    let begins = ["{", "fn", "impl", "extern", "trait", "("];
    words(line, "unsafe")
        .any(|after| after.trim().is_empty() || begins.iter().any(|b| after.trim_start().starts_with(b)))
}

/// Whether a line of code names Vulkan's binding.
fn names_binding(line: &str) -> bool {
    words(line, "ash").any(|after| after.starts_with("::"))
        || line.split_once("use ash").is_some_and(|(_, after)| after.starts_with([';', ' ']))
}

/// A place on somebody's machine that a line names.
fn machine_path(line: &str) -> Option<&str> {
    let home = |folder: &str| {
        line.match_indices(folder).find_map(|(at, _)| {
            let user = line[at + folder.len()..].split(|c: char| !c.is_alphanumeric()).next()?;
            let place = &line[at..at + folder.len() + user.len()];
            (!user.is_empty() && !NOBODY.contains(&user)).then_some(place)
        })
    };
    let whole = |folder: &'static str| {
        let found = line.match_indices(folder).find(|(at, _)| {
            !line[..*at]
                .ends_with(|c: char| c.is_alphanumeric() || ['_', '-', '.', '/', '*', '}'].contains(&c))
        });
        found.map(|_| folder)
    };
    home("/home/").or_else(|| home("/Users/")).or_else(|| whole("/root/")).or_else(|| whole("/work/"))
}

#[test]
fn crates_without_unsafe_code_say_so() {
    let mut wrong = Vec::new();
    for package in packages() {
        let allowed = UNSAFE.iter().any(|place| place.starts_with(&format!("{}/", package.folder)))
            || package.folder.starts_with("drivers/");
        for path in package.roots.iter().filter(|_| !allowed) {
            let text = std::fs::read_to_string(root().join(path)).expect("cargo knows the file");
            if !text.lines().any(|line| line == "#![forbid(unsafe_code)]") {
                wrong.push(path.display().to_string());
            }
        }
    }
    assert!(wrong.is_empty(), "'#![forbid(unsafe_code)]' is missing from: {}", wrong.join(", "));
}

#[test]
fn unsafe_code_and_the_binding_are_where_they_may_be() {
    let Some(files) = files(&["rs"]) else { return };
    let mut wrong = Vec::new();
    // Tests are callers of the plug-in interface, too.
    let product =
        |name: &str| !name.contains("/tests/") && !name.ends_with("/tests.rs") && !name.starts_with("fuzz/");
    for (name, text) in files.iter().filter(|(name, _)| product(name) && !name.starts_with("xtask/tests/")) {
        for (number, line) in code(text) {
            if is_unsafe(line) && !UNSAFE.iter().any(|place| name.starts_with(place)) {
                wrong.push(format!("{name}:{number}: unsafe code"));
            }
            if names_binding(line) && !name.starts_with(BINDING) {
                wrong.push(format!("{name}:{number}: Vulkan's binding"));
            }
        }
    }
    assert!(wrong.is_empty(), "ARCHITECTURE.md, invariants 2 and 9:\n{}", wrong.join("\n"));
    for package in packages().iter().filter(|package| package.dependencies.iter().any(|name| name == "ash")) {
        assert!(package.folder.starts_with(BINDING.trim_end_matches('/')), "{} depends on ash", package.name);
    }
}

#[test]
fn no_file_names_a_place_on_a_machine() {
    let Some(files) = files(&TEXTS) else { return };
    let mut wrong = Vec::new();
    for (name, text) in files.iter().filter(|(name, _)| !name.ends_with("tidy/sources.rs")) {
        let lines = text.lines().enumerate();
        wrong
            .extend(lines.filter_map(|(n, line)| Some(format!("{name}:{}: {}", n + 1, machine_path(line)?))));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_searched_is_found() {
    for yes in [
        "unsafe {",
        "let x = unsafe { y() };",
        "pub unsafe fn f()",
        "unsafe impl Send for X {}",
        "#[unsafe(no_mangle)]",
        "    unsafe",
    ] {
        assert!(is_unsafe(yes), "{yes}");
    }
    for no in ["#![forbid(unsafe_code)]", "not_unsafe {", "\"unsafe code\""] {
        assert!(!is_unsafe(no), "{no}");
    }
    for yes in ["use ash::vk;", "use ash;", "fn f(x: ash::vk::Device)", "&ash::Entry"] {
        assert!(names_binding(yes), "{yes}");
    }
    for no in ["hash::Hash", "use ashes::x;", "flash::x", "let ash = 1;"] {
        assert!(!names_binding(no), "{no}");
    }
    for (line, place) in [
        ("cd /home/anna/x", Some("/home/anna")),
        ("/Users/anna", Some("/Users/anna")),
        ("'/root/.cache'", Some("/root/")),
        ("/home/x/.cache and /Users/x", None),
        ("the folder home/ or lib/root/x", None),
        ("../work/x and a-/work/y", None),
        ("at /work/here", Some("/work/")),
    ] {
        assert_eq!(machine_path(line), place, "{line}");
    }
    assert_eq!(code("a\n  // unsafe {\nb").map(|(n, _)| n).collect::<Vec<_>>(), [1, 3]);
}
