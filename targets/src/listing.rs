//! The table of families for documents, so that a test can hold the document against the data.

use std::fmt::Write as _;

use crate::families;

/// A Markdown table of all families: name, what it is, generations, number of products, other names.
pub fn families_table() -> String {
    let mut text = String::from(
        "| family | what it is | generations | products | other names |\n|---|---|---|---|---|\n",
    );
    for family in families() {
        let generations: Vec<&str> = family.generations.iter().map(|g| g.name.as_str()).collect();
        let line = format!(
            "| `{}` | {} | {} | {} | {} |",
            family.name,
            family.title,
            generations.join(", "),
            family.products.len(),
            family.aliases.join(", ")
        );
        let _infallible = writeln!(text, "{}", line.replace("|  |", "| – |").replace("|  |", "| – |"));
    }
    text
}
