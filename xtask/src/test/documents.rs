//! Programs of the documents, run as they stand: what a document says that they print is what they print.

use std::{fmt::Write, fs, path::Path, process::Command};

use anyhow::{Context, Result, ensure};

use super::runner::{Variable, set};
use crate::shell::{self, cargo, repo, say};

/// The documents.
const DOCUMENTS: [&str; 4] = [
    "README.md",
    "docs/tutorials/getting-started-library.md",
    "docs/how-to/embedding.md",
    "halite/README.md",
];
/// Files that programs find where they run, and what they are called there. What names another is only compiled (`cargo test --doc`).
const FILES: [(&str, &str); 3] = [
    ("demo/digits/digits.onnx", "digits.onnx"),
    ("demo/digits/digits.vmfb", "digits.vmfb"),
    ("halite/examples/smooth.onnx", "smooth.onnx"),
];
/// What standard input gives.
const INPUT: &str = "digits.onnx";
/// Endings of files.
const ENDINGS: [&str; 6] = [".onnx", ".vmfb", ".pte", ".gguf", ".safetensors", ".npy"];
/// Folders of the reader's own machine.
const ELSEWHERE: &str = "\"/opt/";

/// A program in a document.
#[derive(Debug, PartialEq, Eq)]
struct Program {
    /// The document, and the line where it begins.
    place: String,
    source: String,
    /// What the document says that it prints, if it does.
    printed: Option<String>,
}

/// Builds the programs of all documents as a crate of its own, and runs them with these variables, once for each list.
pub(super) fn run(drivers: &[Vec<Variable>], variables: &[Variable]) -> Result<()> {
    let mut all = Vec::new();
    for document in DOCUMENTS {
        let path = repo(document);
        let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        all.extend(programs(document, &text));
    }
    let (here, elsewhere): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|program| finds_its_files(&program.source));
    ensure!(!here.is_empty(), "no document has a program that could run");
    elsewhere
        .iter()
        .for_each(|program| println!("only compiled, as its files are the reader's: {}", program.place));
    let folder = repo("target/xtask/documents");
    write_crate(&folder, &here)?;
    let manifest = folder.join("Cargo.toml").display().to_string();
    let mut build = cargo(&["build", "--quiet", "--manifest-path", &manifest]);
    shell::run(build.env("CARGO_TARGET_DIR", repo("target")))?;
    for driver in drivers {
        for (index, program) in here.iter().enumerate() {
            let mut command = Command::new(repo("target/debug/documents"));
            command.arg(index.to_string()).current_dir(folder.join("run"));
            command.stdin(fs::File::open(folder.join("run").join(INPUT))?);
            set(&mut command, variables);
            set(&mut command, driver);
            say(&format!("the program of {}", program.place));
            let printed = shell::output(&mut command)?;
            print!("{printed}");
            if let Some(told) = &program.printed {
                ensure!(printed == *told, "{} prints\n{printed}instead of\n{told}", program.place);
            }
        }
    }
    Ok(())
}

/// Whether a program names no file but those that are there.
fn finds_its_files(source: &str) -> bool {
    let mut names = source.split('"').skip(1).step_by(2);
    let is_file = |name: &str| ENDINGS.iter().any(|ending| name.ends_with(ending));
    let is_there = |name: &str| FILES.iter().any(|(_, here)| *here == name);
    !source.contains(ELSEWHERE) && names.all(|name| !is_file(name) || is_there(name))
}

/// The programs of a document in Markdown, and what it says that each prints: the block of text behind it, with nothing between them.
fn programs(document: &str, text: &str) -> Vec<Program> {
    let mut programs: Vec<Program> = Vec::new();
    let mut lines = text.lines().enumerate();
    // Whether nothing but empty lines followed the last program.
    let mut is_next = false;
    while let Some((number, line)) = lines.next() {
        let Some(kind) = line.strip_prefix("```") else {
            is_next &= line.trim().is_empty();
            continue;
        };
        let block: Vec<&str> =
            lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
        let is_program = kind.starts_with("rust") && block.iter().any(|line| line.contains("fn main()"));
        if is_program {
            let shown = block.iter().map(|line| line.strip_prefix("# ").unwrap_or(line));
            let source = shown.collect::<Vec<_>>().join("\n");
            programs.push(Program { place: format!("{document}:{}", number + 1), source, printed: None });
        } else if let (true, "text" | "console", Some(last)) = (is_next, kind, programs.last_mut()) {
            let lines = block.iter().filter(|line| !line.starts_with("$ "));
            last.printed = Some(lines.map(|line| format!("{line}\n")).collect());
        }
        is_next = is_program;
    }
    programs
}

/// Writes a crate that depends on the library alone. Its program takes the number of the example to run: linking each of them by itself
/// would take most of the time.
fn write_crate(folder: &Path, programs: &[Program]) -> Result<()> {
    let (source, run) = (folder.join("src"), folder.join("run"));
    for folder in [&source, &run] {
        fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    }
    for (from, name) in FILES {
        fs::copy(repo(from), run.join(name)).with_context(|| format!("copying {from}"))?;
    }
    let outside = fs::read_to_string(repo("examples/outside/Cargo.toml"))?;
    let profile = outside.split_once("[profile.dev]").map_or("", |(_, rest)| rest);
    let library = repo("halite").display().to_string();
    let manifest = format!(
        "[package]\nname = \"documents\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [dependencies]\nhalite = {{ path = {library:?} }}\n\n[profile.dev]{profile}"
    );
    fs::write(folder.join("Cargo.toml"), manifest)?;
    fs::copy(repo("Cargo.lock"), folder.join("Cargo.lock"))?;
    let (mut modules, mut arms) = (String::new(), String::new());
    for (index, program) in programs.iter().enumerate() {
        let result = "Result<(), Box<dyn std::error::Error>>";
        writeln!(
            modules,
            "/// {}\nmod example_{index} {{\n{}\n\npub(super) fn run() -> {result} {{ Ok(main()?) }}\n}}\n",
            program.place, program.source
        )?;
        writeln!(arms, "        Some(\"{index}\") => example_{index}::run(),")?;
    }
    let main = format!(
        "fn main() -> Result<(), Box<dyn std::error::Error>> {{\n    match std::env::args().nth(1).as_deref() {{\n{arms}\
         \x20       other => Err(format!(\"there is no example {{other:?}}\").into()),\n    }}\n}}\n"
    );
    Ok(fs::write(source.join("main.rs"), format!("{main}\n{modules}"))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_have_what_is_said_right_behind_them() {
        let text = "\
            # A\n```rust,no_run\nuse a::b;\n# fn main() {}\n```\n\n```console\n$ cargo run\n1\n2\n```\nwords\n```rust\nfn main() {}\n```\n\
            words\n```text\nno\n```\n```rust\nlet x = 1;\n```\n";
        let told = programs("x.md", text);
        let program = |place: &str, source: &str, printed: Option<&str>| Program {
            place: place.to_owned(),
            source: source.to_owned(),
            printed: printed.map(str::to_owned),
        };
        assert_eq!(
            told,
            [
                program("x.md:2", "use a::b;\nfn main() {}", Some("1\n2\n")),
                program("x.md:13", "fn main() {}", None)
            ]
        );
    }

    #[test]
    fn programs_with_files_of_the_reader_do_not_run() {
        assert!(finds_its_files("model(\"digits.onnx\").named(\"digits\")"));
        assert!(!finds_its_files("model(\"my.gguf\")"));
        assert!(!finds_its_files("folder(\"/opt/product/drivers\").model(\"digits.onnx\")"));
    }
}
