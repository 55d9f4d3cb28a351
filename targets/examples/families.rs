//! Prints the table of families as `docs/reference/targets.md` shows it.

fn main() {
    print!("{}", halite_targets::families_table());
}
