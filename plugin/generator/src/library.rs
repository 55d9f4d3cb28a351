//! The header of `libhalite`.

use std::{fs, path::Path};

use anyhow::{Context, Result, bail};
use cbindgen::{Builder, Config, DocumentationStyle, Language, Style};

use crate::contract;

pub const FOLDER: &str = "capi/src";
/// The file whose head has the contract.
const HEAD: &str = "lib.rs";

/// The files that have functions or numbers, in the order in which a reader meets what is in them.
pub const FILES: [&str; 28] = [
    "version",
    "failure",
    "error",
    "logging",
    "blob",
    "options",
    "source",
    "drivers",
    "device",
    "vulkan",
    "tensor",
    "shared",
    "value",
    "values",
    "signature",
    "session",
    "builder",
    "function",
    "pending",
    "state",
    "tokens",
    "generator",
    "sequence",
    "steps",
    "embedder",
    "profile",
    "compile",
    "compiler",
];

const PREAMBLE: &str = "\
// The C interface of Halite: run machine-learning models on any Vulkan device, and on processors. Generated from capi/src by
// `cargo xtask header`; do not edit. docs/tutorials/getting-started-c.md begins with a program; halite.hpp wraps this for C++17.
";

/// Between the includes and the first item.
const MACROS: &str = "
// How functions come from the library. Define HALITE_STATIC where it is linked statically on Windows.
#if defined(_WIN32) && !defined(HALITE_STATIC)
#define HALITE_API __declspec(dllimport)
#else
#define HALITE_API
#endif

// An error that nobody takes is a leak, and a failure that nobody sees.
#if defined(__GNUC__)
#define HALITE_CHECK __attribute__((warn_unused_result))
#else
#define HALITE_CHECK
#endif

// A structure with its size and zeros: what HALITE_..._INIT are made of.
#ifdef __cplusplus
#define HALITE_INIT(type) ([] { type halite_value_of_zeros{}; halite_value_of_zeros.struct_size = sizeof(type); return halite_value_of_zeros; }())
#else
#define HALITE_INIT(type) { .struct_size = sizeof(type) }
#endif

";

/// Its text.
pub fn generate(root: &Path) -> Result<String> {
    let folder = root.join(FOLDER);
    let read = |name: &str| {
        fs::read_to_string(folder.join(name)).with_context(|| format!("reading {FOLDER}/{name}"))
    };
    complete(&folder)?;
    let head = read(HEAD)?;
    let mut all = String::new();
    for file in FILES {
        all += &read(&format!("{file}.rs"))?;
    }
    let mut config = Config {
        language: Language::C,
        style: Style::Type,
        documentation_style: DocumentationStyle::Cxx,
        cpp_compat: true,
        include_guard: Some("HALITE_HALITE_H".to_owned()),
        header: Some(format!("{PREAMBLE}{}", contract(&head))),
        after_includes: Some(format!("{MACROS}{}", initializers(&all))),
        line_length: 110,
        tab_width: 4,
        no_includes: true,
        sys_includes: ["stdbool.h", "stddef.h", "stdint.h"].map(str::to_owned).to_vec(),
        usize_is_size_t: true,
        ..Config::default()
    };
    config.function.prefix = Some("HALITE_API".to_owned());
    config.function.must_use = Some("HALITE_CHECK".to_owned());
    let mut builder = Builder::new().with_config(config);
    for file in FILES {
        builder = builder.with_src(folder.join(format!("{file}.rs")));
    }
    let bindings = builder.generate().with_context(|| format!("reading {FOLDER}"))?;
    let mut bytes = Vec::new();
    bindings.write(&mut bytes);
    String::from_utf8(bytes).context("the generated header is no UTF-8")
}

/// Refuses a file that exports functions and is not in the list.
fn complete(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let exports =
            path.extension().is_some_and(|e| e == "rs") && fs::read_to_string(&path)?.contains("no_mangle");
        if exports && !FILES.contains(&name.as_str()) {
            bail!("{} exports functions; add it to FILES in plugin/generator/src/library.rs", path.display());
        }
    }
    Ok(())
}

/// What the structures begin as that callers make.
fn initializers(source: &str) -> String {
    let made = source.lines().filter_map(|line| Some(line.split_once(" impl Grows for ")?.1));
    let names = made.filter_map(|rest| rest.split(' ').next()).filter(|name| name.starts_with("halite_"));
    names.fold(String::new(), |text, name| {
        text + &format!("#define {}_INIT HALITE_INIT({name})\n", name.to_uppercase())
    })
}
