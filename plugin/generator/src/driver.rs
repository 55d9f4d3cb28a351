//! The header of driver libraries.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use cbindgen::{Builder, Config, DocumentationStyle, ItemType, Language, Style};

use crate::contract;

const SOURCE: &str = "plugin/src/abi.rs";

const PREAMBLE: &str = "\
// The C interface between Halite and a driver library. Generated from plugin/src/abi.rs by `cargo xtask header`;
// do not edit. The contract is written there, and docs/how-to/writing-a-driver.md leads through a driver.
";

const TRAILER: &str = "\
#ifdef __cplusplus
extern \"C\" {
#endif

/// The one function that a driver library exports.
#if defined(_WIN32)
__declspec(dllexport)
#elif defined(__GNUC__)
__attribute__((visibility(\"default\")))
#endif
HaliteStatus *halite_driver_query_v1(const HaliteHost *host, uint32_t max_version, HalitePlugin *out_plugin);

#ifdef __cplusplus
}  // extern \"C\"
#endif
";

/// What no exported function reaches but C needs; the rest follows from these.
const TYPES: [&str; 2] = ["HaliteQueryFn", "HalitePlugin"];

/// Its text.
pub fn generate(root: &Path) -> Result<String> {
    let source = fs::read_to_string(root.join(SOURCE)).with_context(|| format!("reading {SOURCE}"))?;
    let mut config = Config {
        language: Language::C,
        style: Style::Both,
        documentation_style: DocumentationStyle::C99,
        cpp_compat: true,
        include_guard: Some("HALITE_DRIVER_H".to_owned()),
        header: Some(format!("{PREAMBLE}{}", contract(&source))),
        after_includes: Some(forward_declarations(&source)),
        trailer: Some(TRAILER.to_owned()),
        line_length: 110,
        tab_width: 4,
        no_includes: true,
        sys_includes: vec!["stddef.h".to_owned(), "stdint.h".to_owned()],
        usize_is_size_t: true,
        ..Config::default()
    };
    config.export.item_types = vec![ItemType::Constants, ItemType::Structs, ItemType::Typedefs];
    config.export.include = TYPES.iter().map(|name| (*name).to_owned()).collect();
    let bindings = Builder::new()
        .with_config(config)
        .with_src(root.join(SOURCE))
        .generate()
        .with_context(|| format!("reading {SOURCE}"))?;
    let mut bytes = Vec::new();
    bindings.write(&mut bytes);
    String::from_utf8(bytes).context("the generated header is no UTF-8")
}

/// Tables of functions take handles of the type that holds the table, so all names have to be known first.
fn forward_declarations(source: &str) -> String {
    let names = source
        .lines()
        .filter_map(|line| line.strip_prefix("pub struct "))
        .filter_map(|rest| rest.split(|c: char| !c.is_alphanumeric()).next());
    names.fold(String::new(), |text, name| text + &format!("typedef struct {name} {name};\n"))
}
