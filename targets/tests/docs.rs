//! `docs/reference/targets.md` shows the table of families as it is.
#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap fails")]

const BEGIN: &str = "<!-- families: cargo run -q -p halite-targets --example families -->\n";
const END: &str = "<!-- end of families -->";

#[test]
fn the_document_lists_all_families() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reference/targets.md");
    let text = std::fs::read_to_string(path).unwrap().replace("\r\n", "\n");
    let (_, after) = text.split_once(BEGIN).unwrap();
    let (shown, _) = after.split_once(END).unwrap();
    let now = halite_targets::families_table();
    assert!(shown == now, "docs/reference/targets.md is out of date; between its two marks belongs:\n{now}");
}
