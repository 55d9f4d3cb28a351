//! Checks the texts of sources: where unsafe code and the Vulkan binding may be, and that no file names a place on somebody's machine.

use std::{path::Path, process::Command};

use super::{packages, root, text::of_a_name};

/// What the line of ARCHITECTURE.md begins with that lists the places where unsafe code may be.
const UNSAFE: &str = "9. `unsafe` lives in ";
/// The place where Vulkan's binding may be (invariant 2).
const BINDING: &str = "drivers/vulkan/";
/// Users of examples.
const NOBODY: [&str; 3] = ["x", "me", "somebody"];
/// Endings of texts that people write.
const TEXTS: [&str; 14] =
    ["c", "comp", "glsl", "h", "json", "jsonl", "md", "mlir", "py", "rs", "sh", "toml", "txt", "yml"];

/// The files that git knows, with these endings, and their texts. `None`, loudly, where there is no git.
pub fn files(endings: &[&str]) -> Option<Vec<(String, String)>> {
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
    assert!(files.len() > 20, "only {} files were found: the search is broken", files.len());
    Some(files)
}

/// Places where unsafe code may be: what stands in backticks and names a file or folder, in the text of the invariant.
fn unsafe_places(map: &str) -> Vec<String> {
    let mut lines = map.lines().skip_while(|line| !line.starts_with(UNSAFE));
    let first = lines.next().unwrap_or_default().to_owned();
    let text = lines.take_while(|line| line.starts_with("   ")).fold(first, |text, line| text + " " + line);
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.filter(|place| place.contains('/')).map(|place| place.trim_end_matches('/').to_owned()).collect()
}

/// The places where unsafe code may be.
fn allowed_places() -> Vec<String> {
    let map = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the map is there");
    let places = unsafe_places(&map);
    assert!(!places.is_empty(), "ARCHITECTURE.md has no line that begins with '{UNSAFE}' and lists places");
    places
}

/// Whether a file or folder is in a place.
fn is_in(name: &str, place: &str) -> bool {
    name.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Lines of code, with their numbers: what is no comment.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    lines.filter(|(_, line)| !line.trim_start().starts_with("//"))
}

/// Where a word begins, and what follows it.
fn words<'a>(line: &'a str, word: &'a str) -> impl Iterator<Item = &'a str> {
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
    let places = allowed_places();
    for package in packages() {
        let has_some = |root: &&std::path::PathBuf| {
            // A library may have unsafe code in a part of it; a program of the same crate has none then.
            let part =
                root.ends_with("src/lib.rs") && places.iter().any(|place| is_in(place, &package.folder));
            part || places.iter().any(|place| is_in(&package.folder, place))
        };
        for path in package.roots.iter().filter(|root| !has_some(root)) {
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
    let places = allowed_places();
    let mut used = vec![false; places.len()];
    // Tests are callers of the plug-in interface, too.
    let product =
        |name: &str| !name.contains("/tests/") && !name.ends_with("/tests.rs") && !name.starts_with("fuzz/");
    for (name, text) in files.iter().filter(|(name, _)| product(name) && !name.starts_with("xtask/tests/")) {
        for (number, line) in code(text) {
            if is_unsafe(line) {
                match places.iter().position(|place| is_in(name, place)) {
                    Some(place) => used[place] = true,
                    None => wrong.push(format!("{name}:{number}: unsafe code")),
                }
            }
            if names_binding(line) && !name.starts_with(BINDING) {
                wrong.push(format!("{name}:{number}: Vulkan's binding"));
            }
        }
    }
    let unused = places.iter().zip(&used).filter(|(_, used)| !**used);
    wrong.extend(unused.map(|(place, _)| format!("{place} has no unsafe code: the list can be shorter")));
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
fn places_are_read_off_the_map() {
    let map = "8. `a/b` is\n9. `unsafe` lives in `drivers/`, and in the place that maps files (`runtime/src/mapping.rs`);\n   \
               each block of `x` says why, `late/too`.\n10. `no/more`\n";
    assert_eq!(unsafe_places(map), ["drivers", "runtime/src/mapping.rs", "late/too"]);
    assert_eq!(unsafe_places("no list"), Vec::<String>::new());
    assert!(
        is_in("drivers/vulkan", "drivers") && is_in("a/b.rs", "a/b.rs") && !is_in("drivers2/x", "drivers")
    );
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
