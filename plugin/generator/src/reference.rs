//! The reference of `libhalite` as a page, from its header and the files that the header is made of.

use std::{collections::BTreeMap, fmt::Write as _, fs, path::Path};

use anyhow::{Context, Result};

use crate::library::{self, FILES, FOLDER};

const HEAD: &str = "\
# The C interface

All that [`halite.h`](../../capi/include/halite/halite.h) declares, by topic. `cargo xtask header` makes this page from `capi/src`; do
not edit it. [getting-started-c.md](../tutorials/getting-started-c.md) begins with a program.
[c-packages.md](c-packages.md) says what is installed, and how C++ sees it.

Contents:
- [Contract](#contract)
";

/// A declaration with what is said of it.
struct Item {
    name: String,
    text: String,
    code: String,
}

/// The page.
pub fn generate(root: &Path) -> Result<String> {
    let header = library::generate(root)?;
    let items = items(&header);
    let mut by_name: BTreeMap<&str, &Item> = items.iter().map(|item| (item.name.as_str(), item)).collect();
    let contract = header.lines().skip_while(|line| *line != "//").map_while(|line| line.strip_prefix("//"));
    let mut rules = "\n## Contract\n".to_owned();
    for line in contract.map(|line| line.strip_prefix(' ').unwrap_or(line)).filter(|line| !line.is_empty()) {
        writeln!(rules, "{line}")?;
    }
    let (mut contents, mut topics) = (String::new(), String::new());
    for file in FILES {
        let source = fs::read_to_string(root.join(FOLDER).join(format!("{file}.rs")))?;
        let title = source.lines().next().and_then(|line| line.strip_prefix("//! "));
        let title = title.with_context(|| format!("{file}.rs has no first line that says what it is for"))?;
        let mut topic = String::new();
        for name in names(&source) {
            if let Some(item) = by_name.remove(name) {
                write!(topic, "\n**`{}`**\n\n{}\n\n```c\n{}\n```\n", item.name, item.text, item.code)?;
            }
        }
        if !topic.is_empty() {
            let title = title.trim_end_matches('.');
            writeln!(contents, "- [{title}](#{})", anchor(title))?;
            write!(topics, "\n## {title}\n{topic}")?;
        }
    }
    Ok(format!("{HEAD}{contents}{rules}{topics}"))
}

/// The name by which links reach a heading.
fn anchor(title: &str) -> String {
    let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// Names that a source gives to functions, types and numbers, in their order.
fn names(source: &str) -> impl Iterator<Item = &str> {
    let product = source.split("#[cfg(test)]").next().unwrap_or_default();
    product.lines().filter_map(|line| {
        let rest = line.strip_prefix("pub ")?;
        let rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
        let rest = ["struct ", "type ", "const ", "extern \"C\" fn "]
            .iter()
            .find_map(|word| rest.strip_prefix(word))?;
        rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()
    })
}

/// All that a header declares and says something of.
fn items(header: &str) -> Vec<Item> {
    let mut items = Vec::new();
    let mut text: Vec<&str> = Vec::new();
    let mut lines = header.lines();
    while let Some(line) = lines.next() {
        if let Some(said) = line.strip_prefix("///") {
            text.push(said.strip_prefix(' ').unwrap_or(said));
            continue;
        }
        if text.is_empty() {
            continue;
        }
        let mut code = vec![line];
        let is_structure = line.ends_with('{');
        while !line.starts_with("#define")
            && !code
                .last()
                .is_some_and(|last| if is_structure { last.starts_with('}') } else { last.ends_with(';') })
        {
            let Some(next) = lines.next() else { break };
            code.push(next);
        }
        let code = code.join("\n").replace("HALITE_API\n", "").replace("HALITE_CHECK\n", "");
        let code = code.replace("HALITE_API ", "").replace("HALITE_CHECK ", "");
        if let Some(name) = name(&code) {
            items.push(Item { name: name.to_owned(), text: text.join("\n"), code: code.clone() });
        }
        text.clear();
    }
    items
}

/// What a declaration declares.
fn name(code: &str) -> Option<&str> {
    let of_a_name = |c: char| c.is_alphanumeric() || c == '_';
    let place = if let Some(rest) = code.strip_prefix("#define ") {
        return rest.split_whitespace().next();
    } else if let Some(callback) = code.find("(*halite_") {
        callback + 2
    } else if code.starts_with("typedef") {
        let last = code.trim_end_matches(';');
        return last.rsplit(|c: char| !of_a_name(c)).next();
    } else {
        let head = &code[..code.find('(')?];
        head.rfind("halite_")?
    };
    let rest = &code[place..];
    rest.split(|c: char| !of_a_name(c)).next()
}
