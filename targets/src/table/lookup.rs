//! Finding entries of the table by name.

use std::{collections::HashMap, sync::OnceLock};

use super::{Family, Generation, Product, Vendor, families, vendors};
use crate::names::normalized;

/// What a name stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Named {
    /// All GPUs of a vendor.
    Vendor(&'static Vendor),
    /// All GPUs of a family.
    Family(&'static Family),
    /// All GPUs of a generation.
    Generation(&'static Family, &'static Generation),
    /// One product.
    Product(&'static Family, &'static Product),
}

struct Names {
    by_name: HashMap<String, Named>,
    /// As people write them.
    spelled: Vec<&'static str>,
    /// Names that two entries claim.
    #[cfg_attr(not(test), allow(dead_code, reason = "a test wants it to be empty"))]
    twice: Vec<String>,
}

fn names() -> &'static Names {
    static NAMES: OnceLock<Names> = OnceLock::new();
    NAMES.get_or_init(collect)
}

fn collect() -> Names {
    let mut names = Names { by_name: HashMap::new(), spelled: Vec::new(), twice: Vec::new() };
    for family in families() {
        names.add(&family.name, Named::Family(family));
        names.add_all(&family.aliases, Named::Family(family));
        for generation in &family.generations {
            names.add(&generation.name, Named::Generation(family, generation));
            names.add_all(&generation.aliases, Named::Generation(family, generation));
        }
        for product in &family.products {
            if stands_alone(product) {
                names.add(&product.name, Named::Product(family, product));
            }
            names.add_all(&product.aliases, Named::Product(family, product));
        }
    }
    for vendor in vendors() {
        // A vendor of one family has the family's name: the family says more.
        let named = |family: &&Family| family.name == vendor.name || family.aliases.contains(&vendor.name);
        if !families().iter().any(|f| named(&f)) {
            names.add(&vendor.name, Named::Vendor(vendor));
        }
        names.add_all(&vendor.aliases, Named::Vendor(vendor));
    }
    names
}

/// Whether a product's name says enough without its family: `rtx3080` does, `740` and `vi` do not.
fn stands_alone(product: &Product) -> bool {
    let name = product.name.as_str();
    name.contains(|c: char| c.is_ascii_alphabetic())
        && (name.contains(|c: char| c.is_ascii_digit()) || name.len() > 4)
}

impl Names {
    fn add(&mut self, name: &'static str, named: Named) {
        self.spelled.push(name);
        if self.by_name.insert(normalized(name), named).is_some() {
            self.twice.push(name.to_owned());
        }
    }

    fn add_all(&mut self, list: &'static [String], named: Named) {
        for name in list {
            self.add(name, named);
        }
    }
}

/// What a name alone stands for. Case and separators do not matter, but a hyphen needs a component on either side.
pub(crate) fn find_name(name: &str) -> Option<Named> {
    if name.split('-').any(str::is_empty) {
        return None;
    }
    let wanted = normalized(name);
    names().by_name.get(&wanted).copied().or_else(|| unlisted(name))
}

/// A number of a series that takes any: `adreno-735` where no 735 is listed.
fn unlisted(name: &str) -> Option<Named> {
    let words = crate::names::words(name);
    let end = matches!(words.get(2).map(String::as_str), None | Some("l"));
    families().iter().find_map(|family| {
        let open = family.series.iter().filter(|s| s.accepts_unlisted);
        let mut hits = open.filter(|s| words.first() == Some(&s.prefix) && s.number_in(&words).is_some());
        (end && words.len() <= 3 && hits.next().is_some()).then_some(Named::Family(family))
    })
}

/// Every name that stands alone, as people write it.
pub(crate) fn all_names() -> impl Iterator<Item = &'static str> {
    names().spelled.iter().copied()
}

/// What may stand in the product's place behind a family: (name, what it stands for), canonical names and aliases.
pub(crate) fn family_members(family: &'static Family) -> impl Iterator<Item = (&'static str, Named)> {
    let generations = family.generations.iter().flat_map(move |g| {
        let all = std::iter::once(&g.name).chain(&g.aliases);
        all.map(move |name| (name.as_str(), Named::Generation(family, g)))
    });
    let products = family.products.iter().flat_map(move |p| {
        let all = std::iter::once(&p.name).chain(&p.aliases).chain(&p.scoped_aliases);
        all.map(move |name| (name.as_str(), Named::Product(family, p)))
    });
    generations.chain(products)
}

#[cfg(test)]
pub(super) fn names_claimed_twice() -> &'static [String] {
    &names().twice
}
