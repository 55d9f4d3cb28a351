//! Makes the C headers from the Rust definitions, or with `--check` says whether they are current: `plugin/include/halite/driver.h`, the
//! interface of driver libraries, and `capi/include/halite/halite.h`, that of `libhalite`, with the page of its reference.

mod driver;
mod library;
mod reference;

use std::{env, fs, path::Path};

use anyhow::{Context, Result, bail};

/// A header or page, and where it comes from.
struct Header {
    path: &'static str,
    source: &'static str,
    generate: fn(&Path) -> Result<String>,
}

const HEADERS: [Header; 3] = [
    Header {
        path: "plugin/include/halite/driver.h",
        source: "plugin/src/abi.rs",
        generate: driver::generate,
    },
    Header { path: "capi/include/halite/halite.h", source: "capi/src", generate: library::generate },
    Header { path: "docs/reference/c-api.md", source: "capi/src", generate: reference::generate },
];

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let check = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => false,
        ["--check"] => true,
        _ => bail!("the only argument that there is, is --check"),
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .context("the crate lies in plugin/generator")?;
    for header in HEADERS {
        update(&header, root, check)?;
    }
    Ok(())
}

fn update(header: &Header, root: &Path, check: bool) -> Result<()> {
    let Header { path: name, source, generate } = header;
    let text = generate(root)?;
    let path = root.join(name);
    let current = fs::read_to_string(&path).unwrap_or_default();
    if current == text {
        println!("{name}: current");
        return Ok(());
    }
    if check {
        bail!("{name} differs from {source}; run `cargo xtask header` and commit the result");
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    println!("{name}: written");
    Ok(())
}

/// The contract of an interface, from the head of a source, as comments.
fn contract(source: &str) -> String {
    let head = source.lines().map_while(|line| line.strip_prefix("//!"));
    let rules = head.skip_while(|line| line.trim() != "# Contract").skip(1);
    let rules = rules.take_while(|line| !line.trim_start().starts_with("# "));
    rules.fold("//\n".to_owned(), |text, line| text + "//" + &plain(line) + "\n")
}

/// A line of documentation without links and emphasis, which mean nothing in a header.
fn plain(line: &str) -> String {
    line.replace("**", "").replace("[`", "`").replace("`]", "`")
}
