//! The way from what a device reports to its target: device id, name, architecture, nearest relative, vendor.

use std::fmt;

use halite_facts::DeviceFacts;

use crate::{
    Capabilities, Family, Generation, Product, Ranked, Series, Target, Vendor,
    names::{find_words, number, words},
    reported::os_of,
    table::{self, Named},
};

/// How a target was found, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum How {
    /// The table lists the device id for this product.
    ExactDeviceId,
    /// The device's name is the product's.
    NameMatch,
    /// The family or generation is known, the product is not.
    Architecture,
    /// The product is not listed; the target is one of the same architecture that is most like it.
    NearestRelative,
    /// Only the vendor is known.
    VendorOnly,
    /// Nothing is known: the target is the best Vulkan profile that the device satisfies.
    Baseline,
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            How::ExactDeviceId => "exact device id",
            How::NameMatch => "name match",
            How::Architecture => "architecture",
            How::NearestRelative => "nearest relative",
            How::VendorOnly => "vendor only",
            How::Baseline => "baseline",
        })
    }
}

/// A device's target and how it was found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Detected {
    /// The target that describes the device best.
    pub target: Target,
    /// How it was found.
    pub how: How,
    /// Why, for people; at least one.
    pub reasons: Vec<String>,
    /// What the device reports.
    pub facts: DeviceFacts,
}

impl Detected {
    /// What kernels may use on the device: its facts, and the table where it reports nothing.
    pub fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::of_device(self.target, &self.facts);
        if self.how == How::NearestRelative {
            // A relative has other numbers of units and other caches.
            let hints = &mut capabilities.hints;
            hints.compute_units = self.facts.compute_units;
            hints.l2_bytes = None;
            hints.last_level_cache_bytes = None;
            hints.memory_bandwidth_gbps = None;
        }
        capabilities
    }

    /// The candidates in the order in which they fit the device; see [`Target::rank`].
    pub fn rank(&self, candidates: &[Target]) -> Vec<Ranked> {
        crate::rank::rank_for(&self.capabilities(), candidates)
    }
}

impl Target {
    /// The target of a device. Always finds one: at worst the best Vulkan profile that the device satisfies.
    pub fn detect(facts: &DeviceFacts) -> Detected {
        let vendor = table::vendor_by_id(facts.vendor_id);
        let name = words(&facts.name);
        let pool: Vec<&'static Family> =
            table::families().iter().filter(|f| vendor.is_some_and(|v| v.name == f.vendor)).collect();
        let found = by_device_id(facts, &pool, &name)
            .or_else(|| by_name(facts, &pool, &name))
            .or_else(|| by_architecture(facts, &pool, &name))
            .or_else(|| by_series(facts, &pool, &name))
            .or_else(|| by_vendor(facts, vendor, &pool))
            .unwrap_or_else(|| baseline(facts));
        let target = Target::of(found.named, os_of(facts));
        Detected { target, how: found.how, reasons: found.reasons, facts: facts.clone() }
    }
}

struct Found {
    named: Named,
    how: How,
    reasons: Vec<String>,
}

impl Found {
    fn new(named: Named, how: How, reason: String) -> Found {
        Found { named, how, reasons: vec![reason] }
    }
}

/// A product with the number of words by which the device's name tells it, and the word that follows.
struct Match {
    family: &'static Family,
    product: &'static Product,
    length: usize,
    variant: Option<String>,
}

/// Words that make another product of a name that they follow.
const VARIANTS: [&str; 22] = [
    "ae", "d", "duo", "embedded", "g", "gre", "laptop", "le", "m", "max", "mobile", "mxt", "pro", "s",
    "super", "sff", "ti", "ultra", "with", "x", "xt", "xtx",
];

fn name_matches<'a>(
    products: impl Iterator<Item = (&'static Family, &'static Product)> + 'a,
    name: &'a [String],
) -> Option<Match> {
    let hits = products.flat_map(|(family, product)| {
        product.device_words().into_iter().filter_map(move |part| {
            let end = find_words(name, &part)?;
            let variant = name.get(end).filter(|w| VARIANTS.contains(&w.as_str())).cloned();
            Some(Match { family, product, length: part.len(), variant })
        })
    });
    // The longest name wins; of equally long ones the one that is not a variant's.
    hits.max_by_key(|m| (m.length, m.variant.is_none()))
}

fn all_products(pool: &[&'static Family]) -> impl Iterator<Item = (&'static Family, &'static Product)> {
    pool.iter().flat_map(|family| family.products.iter().map(|product| (*family, product)))
}

fn by_device_id(facts: &DeviceFacts, pool: &[&'static Family], name: &[String]) -> Option<Found> {
    let has_id = |p: &&Product| p.device_ids.iter().any(|id| id.matches(facts.vendor_id, facts.device_id));
    let listed: Vec<_> = all_products(pool).filter(|(_, p)| has_id(p)).collect();
    let id = facts.device_id;
    match listed.as_slice() {
        [] => None,
        [(family, product)] => {
            let reason = format!("device id {id:#06x} is {}", product.title);
            Some(Found::new(Named::Product(family, product), How::ExactDeviceId, reason))
        }
        several => {
            let titles: Vec<&str> = several.iter().map(|(_, p)| p.title.as_str()).collect();
            let titles = titles.join(", ");
            if let Some(hit) = name_matches(several.iter().copied(), name).filter(|m| m.variant.is_none()) {
                let reason = format!(
                    "device id {id:#06x} is shared by {titles}; the name '{}' tells {}",
                    facts.name, hit.product.title
                );
                return Some(Found::new(Named::Product(hit.family, hit.product), How::ExactDeviceId, reason));
            }
            let (family, first) = several[0];
            let same = several.iter().all(|(f, p)| f.name == family.name && p.generation == first.generation);
            let generation = family.generation_of(first).filter(|_| same);
            let named = generation.map_or(Named::Family(family), |g| Named::Generation(family, g));
            let reason = format!(
                "device id {id:#06x} is shared by {titles}; the name '{}' tells none of them",
                facts.name
            );
            Some(Found::new(named, How::Architecture, reason))
        }
    }
}

fn by_name(facts: &DeviceFacts, pool: &[&'static Family], name: &[String]) -> Option<Found> {
    // A device of an unknown vendor may still say what it is: layered and virtual drivers do.
    let everywhere: Vec<&'static Family> = table::families().iter().collect();
    let pool = if pool.is_empty() { &everywhere } else { pool };
    // Names such as "Arc Graphics" are used again: the range of the device id says of which generation it is.
    let generation = by_range(facts.device_id, pool).map(|(_, g)| g.name.as_str());
    let fits = |p: &Product| generation.is_none_or(|g| p.generation.as_deref() == Some(g));
    let hit = name_matches(all_products(pool).filter(|(_, p)| fits(p)), name)?;
    // One word is no name of a product behind a foreign vendor id.
    if hit.length < 2 && facts.vendor_id != 0 && table::vendor_by_id(facts.vendor_id).is_none() {
        return None;
    }
    let named = Named::Product(hit.family, hit.product);
    let (title, device) = (&hit.product.title, &facts.name);
    Some(match hit.variant {
        None => Found::new(named, How::NameMatch, format!("the name '{device}' is that of {title}")),
        Some(variant) => Found::new(
            named,
            How::NearestRelative,
            format!("the name '{device}' is that of a '{variant}' variant of {title}, which is not listed"),
        ),
    })
}

/// The generation to which the vendor gave a range of device ids.
fn by_range(id: u32, pool: &[&'static Family]) -> Option<(&'static Family, &'static Generation)> {
    let mut all = pool.iter().flat_map(|f| f.generations.iter().map(|g| (*f, g)));
    all.find(|(_, g)| g.device_id_ranges.iter().any(|r| (r.first..=r.last).contains(&id)))
}

/// By a code name or by a range of device ids, then by number within the generation.
fn by_architecture(facts: &DeviceFacts, pool: &[&'static Family], name: &[String]) -> Option<Found> {
    let id = facts.device_id;
    let named = |g: &Generation| g.device_names.iter().any(|n| find_words(name, &words(n)).is_some());
    let mut generations = pool.iter().flat_map(|f| f.generations.iter().map(|g| (*f, g)));
    let (family, generation, reason) = match generations.find(|(_, g)| named(g)) {
        Some((f, g)) => (f, g, format!("the name '{}' tells {}", facts.name, g.title)),
        None => {
            let (f, g) = by_range(id, pool)?;
            (f, g, format!("device id {id:#06x} is in a range of {}", g.title))
        }
    };
    let mut found = Found::new(Named::Generation(family, generation), How::Architecture, reason);
    let series = generation.series.iter().chain(&family.series);
    let members =
        family.products.iter().filter(|p| p.generation.as_deref() == Some(generation.name.as_str()));
    if let Some((product, reason)) = nearest(facts, series, members, name) {
        found.named = Named::Product(family, product);
        found.how = How::NearestRelative;
        found.reasons.push(reason);
    }
    Some(found)
}

/// By a product series in the name.
fn by_series(facts: &DeviceFacts, pool: &[&'static Family], name: &[String]) -> Option<Found> {
    for family in pool {
        for generation in &family.generations {
            let Some(series) = generation.series.iter().find(|s| s.number_in(name).is_some()) else {
                continue;
            };
            let members =
                || family.products.iter().filter(|p| p.generation.as_ref() == Some(&generation.name));
            return Some(relative(
                facts,
                Named::Generation(family, generation),
                family,
                series,
                members(),
                name,
            ));
        }
    }
    for family in pool {
        let Some(series) = family.series.iter().find(|s| s.number_in(name).is_some()) else { continue };
        return Some(relative(facts, Named::Family(family), family, series, family.products.iter(), name));
    }
    None
}

fn relative(
    facts: &DeviceFacts,
    general: Named,
    family: &'static Family,
    series: &Series,
    members: impl Iterator<Item = &'static Product>,
    name: &[String],
) -> Found {
    let reason = format!("the name '{}' is of a series of {}", facts.name, family.title);
    match nearest(facts, std::iter::once(series), members, name) {
        Some((product, why)) => Found {
            named: Named::Product(family, product),
            how: How::NearestRelative,
            reasons: vec![reason, why],
        },
        None => Found::new(general, How::Architecture, reason),
    }
}

/// The product whose number in a series is nearest to that in the device's name; the smaller one of two.
fn nearest<'s>(
    facts: &DeviceFacts,
    series: impl Iterator<Item = &'s Series>,
    members: impl Iterator<Item = &'static Product>,
    name: &[String],
) -> Option<(&'static Product, String)> {
    let (series, wanted) = series.filter_map(|s| s.number_in(name).map(|n| (s, n))).next()?;
    let prefix = words(&series.prefix);
    let numbered = members.filter_map(|p| {
        let of_series = p.device_words().into_iter().find(|w| find_words(w, &prefix).is_some())?;
        number(&of_series).map(|n| (n, p))
    });
    let (n, product) = numbered.min_by_key(|(n, p)| (n.abs_diff(wanted), *n, p.name.len()))?;
    let reason = format!(
        "'{}' is not listed; of its relatives {} is nearest by number ({n})",
        facts.name, product.title
    );
    Some((product, reason))
}

fn by_vendor(
    facts: &DeviceFacts,
    vendor: Option<&'static Vendor>,
    pool: &[&'static Family],
) -> Option<Found> {
    let vendor = vendor?;
    let why = |what: &str| {
        format!("vendor id {:#06x} is {}; {what} '{}'", facts.vendor_id, vendor.title, facts.name)
    };
    Some(match pool {
        [family] if !family.isolated_products => {
            Found::new(Named::Family(family), How::Architecture, why("its only known family has no product"))
        }
        [family] => Found::new(Named::Family(family), How::VendorOnly, why("no entry is like")),
        _ => Found::new(Named::Vendor(vendor), How::VendorOnly, why("no entry is like")),
    })
}

/// The last profile of the table that the device satisfies.
fn baseline(facts: &DeviceFacts) -> Found {
    let family = table::family("vp").expect("a test reads vp.json");
    let device = Capabilities::of_device(Target::of(Named::Family(family), os_of(facts)), facts);
    let fits = |p: &&'static Product| {
        let profile = Target::of(Named::Product(family, p), os_of(facts));
        device.lacks(&Capabilities::of(profile)).is_empty()
    };
    let reason = format!("vendor id {:#06x} and the name '{}' are not known", facts.vendor_id, facts.name);
    match family.products.iter().rev().find(fits) {
        Some(product) => Found {
            named: Named::Product(family, product),
            how: How::Baseline,
            reasons: vec![reason, format!("the device satisfies {}", product.title)],
        },
        None => Found::new(Named::Family(family), How::Baseline, reason),
    }
}
