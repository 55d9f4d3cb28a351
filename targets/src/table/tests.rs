//! The table's own rules: every file reads, names are unique, every fact has a source.

use std::collections::HashSet;

use super::*;
use crate::{FactBlock, Target, names::normalized};

#[test]
fn every_file_reads_and_is_named_after_its_family() {
    for (name, text) in FILES {
        let family: Family = serde_json::from_str(text).unwrap_or_else(|e| panic!("{name}.json: {e}"));
        assert_eq!(family.name, name);
        assert!(vendor(&family.vendor).is_some(), "{name}: vendor {}", family.vendor);
        assert!(!family.sources.is_empty(), "{name}: no source");
    }
    let file: schema::VendorFile = serde_json::from_str(VENDORS).unwrap();
    assert!(!file.sources.is_empty());
    assert_eq!(families().len(), FILES.len());
}

#[test]
fn every_file_is_in_the_list() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    let listed: HashSet<&str> = FILES.iter().map(|(name, _)| *name).chain(["vendors"]).collect();
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(listed.contains(name.trim_end_matches(".json")), "data/{name} is not part of the table");
    }
}

#[test]
fn names_are_unique() {
    assert_eq!(lookup::names_claimed_twice(), [""; 0]);
    for family in families() {
        let mut seen = HashSet::new();
        for (name, _) in family_members(family) {
            assert!(seen.insert(normalized(name)), "{}: '{name}' stands for two members", family.name);
            assert_ne!(normalized(name), "unknown");
        }
    }
}

#[test]
fn names_have_the_letters_of_a_triple() {
    let plain = |name: &str| name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    for family in families() {
        assert!(plain(&family.name) && family.name.parse::<u32>().is_err());
        for (name, named) in family_members(family) {
            match named {
                Named::Product(_, p) if p.name == name => assert!(plain(name), "{name}"),
                Named::Generation(_, g) if g.name == name => assert!(plain(name), "{name}"),
                _ => {}
            }
        }
    }
}

fn check_sources(what: &str, facts: &FactBlock) {
    assert!(facts.known().is_empty() || !facts.sources.is_empty(), "{what} states facts without a source");
}

#[test]
fn every_fact_has_a_source() {
    for family in families() {
        check_sources(&family.name, &family.facts);
        for generation in &family.generations {
            check_sources(&generation.name, &generation.facts);
        }
        for product in &family.products {
            check_sources(&product.name, &product.facts);
        }
    }
}

#[test]
fn facts_make_sense() {
    for family in families() {
        for (_, named) in family_members(family) {
            let target = Target::of(named, crate::Os::UNKNOWN);
            let facts = target.table_facts();
            let sizes = facts.subgroup_sizes.unwrap_or_default();
            assert!(sizes.is_sorted() && sizes.iter().all(|s| s.is_power_of_two()), "{target}: {sizes:?}");
            if let Some(preferred) = facts.subgroup_preferred {
                assert!(sizes.contains(&preferred), "{target}: prefers {preferred} of {sizes:?}");
            }
            if let (Some(most), Some(size)) = (facts.max_workgroup_invocations, facts.max_workgroup_size) {
                assert!(size.iter().all(|s| *s <= most.max(1024)), "{target}");
            }
        }
    }
}

#[test]
fn generations_and_old_triples_exist() {
    for family in families() {
        for product in &family.products {
            let known = product.generation.is_none() || family.generation_of(product).is_some();
            assert!(known, "{}: generation {:?}", product.name, product.generation);
        }
        for (old, now) in &family.legacy_triples {
            assert!(
                family.products.iter().any(|p| p.name == *now),
                "{old} stands for {now}, which is not there"
            );
        }
    }
}

#[test]
fn device_ids_are_within_their_masks() {
    for family in families() {
        for product in &family.products {
            for id in &product.device_ids {
                assert_eq!(id.id & !id.mask, 0, "{}: {id:x?}", product.name);
            }
        }
    }
}
