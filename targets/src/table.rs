//! The table of known GPUs: its shape, its reading, and finding entries by name.

mod lookup;
mod schema;

use std::sync::OnceLock;

pub(crate) use lookup::{Named, all_names, family_members, find_name};
pub use schema::{DeviceId, Family, Generation, IdRange, Product, Series, Vendor};

/// The table's files: one for each family, in the order in which lists show them.
const FILES: [(&str, &str); 30] = [
    ("vp", include_str!("../data/vp.json")),
    ("cpu", include_str!("../data/cpu.json")),
    ("bifrost", include_str!("../data/bifrost.json")),
    ("valhall", include_str!("../data/valhall.json")),
    ("arm5gen", include_str!("../data/arm5gen.json")),
    ("adreno", include_str!("../data/adreno.json")),
    ("gcn5", include_str!("../data/gcn5.json")),
    ("rdna1", include_str!("../data/rdna1.json")),
    ("rdna2", include_str!("../data/rdna2.json")),
    ("rdna3", include_str!("../data/rdna3.json")),
    ("rdna4", include_str!("../data/rdna4.json")),
    ("cdna1", include_str!("../data/cdna1.json")),
    ("cdna2", include_str!("../data/cdna2.json")),
    ("cdna3", include_str!("../data/cdna3.json")),
    ("cdna4", include_str!("../data/cdna4.json")),
    ("gfx1250", include_str!("../data/gfx1250.json")),
    ("pascal", include_str!("../data/pascal.json")),
    ("volta", include_str!("../data/volta.json")),
    ("turing", include_str!("../data/turing.json")),
    ("ampere", include_str!("../data/ampere.json")),
    ("ada", include_str!("../data/ada.json")),
    ("hopper", include_str!("../data/hopper.json")),
    ("blackwell", include_str!("../data/blackwell.json")),
    ("gen9", include_str!("../data/gen9.json")),
    ("xe", include_str!("../data/xe.json")),
    ("xehpg", include_str!("../data/xehpg.json")),
    ("xe2", include_str!("../data/xe2.json")),
    ("xe3", include_str!("../data/xe3.json")),
    ("apple", include_str!("../data/apple.json")),
    ("videocore", include_str!("../data/videocore.json")),
];

const VENDORS: &str = include_str!("../data/vendors.json");

/// All families, in display order. Read once; the same for the life of the program.
pub fn families() -> &'static [Family] {
    static TABLE: OnceLock<Vec<Family>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let read = |(_, text): &(&str, &str)| {
            serde_json::from_str(text)
                .expect("the files are part of the program, and a test reads each of them")
        };
        FILES.iter().map(read).collect()
    })
}

/// All vendors.
pub fn vendors() -> &'static [Vendor] {
    static TABLE: OnceLock<schema::VendorFile> = OnceLock::new();
    let read =
        || serde_json::from_str(VENDORS).expect("the file is part of the program, and a test reads it");
    &TABLE.get_or_init(read).vendors
}

/// The vendor with this name.
pub(crate) fn vendor(name: &str) -> Option<&'static Vendor> {
    vendors().iter().find(|v| v.name == name)
}

/// The vendor with this PCI or Khronos id.
pub(crate) fn vendor_by_id(id: u32) -> Option<&'static Vendor> {
    vendors().iter().find(|v| v.ids.iter().any(|known| known.0 == id))
}

/// The family with this name.
pub(crate) fn family(name: &str) -> Option<&'static Family> {
    families().iter().find(|f| f.name == name)
}

#[cfg(test)]
mod tests;
