//! The target: reading it, writing it, and what it stands for in the table.

use std::{
    fmt,
    hash::{Hash, Hasher},
    str::FromStr,
};

use serde::{Deserialize, Serialize};

use crate::{
    FactBlock, Family, Generation, Os, Product, TargetError, Vendor,
    error::NearNames,
    names::{near, normalized},
    table::{self, Named},
};

/// Stands for any product, and for any system.
const UNKNOWN: &str = "unknown";

/// What code is made for: an architecture or vendor, a product or generation of it where one is known, and a system.
///
/// The text form is `<arch-or-vendor>-<product>-<os>`; [`Target::parse`] and `Display` are inverses on it. Names that
/// IREE takes (`rtx3080`, `sm_86`, `mali-g78`) and the triples of its documents are understood too.
/// Entries of the table live as long as the program, so a target is copied freely.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Target {
    vendor: &'static Vendor,
    family: Option<&'static Family>,
    generation: Option<&'static Generation>,
    product: Option<&'static Product>,
    os: Os,
}

impl Target {
    /// Reads a triple or one of the names that the table knows. Case does not matter.
    pub fn parse(text: &str) -> Result<Target, TargetError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(TargetError::Empty);
        }
        if let Some(named) = table::find_name(text) {
            return Ok(Target::of(named, Os::UNKNOWN));
        }
        let Some((rest, os_text)) = text.rsplit_once('-') else {
            return Err(unknown_name(text));
        };
        let Some(os) = Os::parse(os_text) else {
            return Err(not_a_system(text, rest, os_text));
        };
        match rest.split_once('-') {
            Some((arch, product)) => Target::from_parts(text, arch, product, os).or_else(|error| {
                // Names with a hyphen of their own, such as `strix-halo-linux`.
                table::find_name(rest).map(|named| Target::of(named, os)).ok_or(error)
            }),
            None => {
                table::find_name(rest).map(|named| Target::of(named, os)).ok_or_else(|| unknown_name(text))
            }
        }
    }

    fn from_parts(text: &str, arch: &str, product: &str, os: Os) -> Result<Target, TargetError> {
        let legacy = normalized(&format!("{arch}-{product}"));
        for family in table::families() {
            let old = family.legacy_triples.iter().find(|(old, _)| normalized(old) == legacy);
            if let Some(found) = old.and_then(|(_, now)| family.products.iter().find(|p| p.name == *now)) {
                return Ok(Target::of(Named::Product(family, found), os));
            }
        }
        let Some(named) = table::find_name(arch) else {
            let near = NearNames(near(arch, table::all_names()));
            return Err(TargetError::UnknownArch { text: text.to_owned(), arch: arch.to_owned(), near });
        };
        if product.eq_ignore_ascii_case(UNKNOWN) {
            return Ok(Target::of(named, os));
        }
        let scope: Vec<&'static Family> = match named {
            Named::Vendor(vendor) => table::families().iter().filter(|f| f.vendor == vendor.name).collect(),
            Named::Family(f) | Named::Generation(f, _) | Named::Product(f, _) => vec![f],
        };
        let members = || scope.iter().flat_map(|f| table::family_members(f));
        let wanted = normalized(product);
        let found = members().find(|(name, _)| normalized(name) == wanted).map(|(_, named)| named);
        let found = found.or_else(|| match table::find_name(&format!("{arch}-{product}"))? {
            Named::Family(family) => Some(Named::Family(family)),
            _ => None,
        });
        found.map(|named| Target::of(named, os)).ok_or_else(|| TargetError::UnknownProduct {
            text: text.to_owned(),
            arch: arch.to_owned(),
            product: product.to_owned(),
            os: os.to_string(),
            near: NearNames(near(product, members().map(|(name, _)| name))),
        })
    }

    pub(crate) fn of(named: Named, os: Os) -> Target {
        let vendor_of = |family: &'static Family| {
            table::vendor(&family.vendor).expect("a test checks that every family's vendor is listed")
        };
        let blank = |vendor| Target { vendor, family: None, generation: None, product: None, os };
        match named {
            Named::Vendor(vendor) => blank(vendor),
            Named::Family(family) => Target { family: Some(family), ..blank(vendor_of(family)) },
            Named::Generation(family, generation) => {
                Target { family: Some(family), generation: Some(generation), ..blank(vendor_of(family)) }
            }
            Named::Product(family, product) => Target {
                family: Some(family),
                generation: family.generation_of(product),
                product: Some(product),
                ..blank(vendor_of(family))
            },
        }
    }

    /// Native code of the processor that this program was built for: `cpu-x86_64-linux`.
    pub fn host_cpu() -> Target {
        let text = format!("cpu-{}-{}", std::env::consts::ARCH, Os::host());
        let any =
            || Target::of(Named::Family(table::family("cpu").expect("a test reads cpu.json")), Os::host());
        Target::parse(&text).unwrap_or_else(|_| any())
    }

    /// Who makes the GPU.
    pub fn vendor(&self) -> &'static Vendor {
        self.vendor
    }

    /// Whether it runs on the processor, as llvmpipe and SwiftShader do.
    pub fn is_processor(&self) -> bool {
        self.vendor.name == "cpu"
    }

    /// Its family; `None` where only the vendor is known.
    pub fn family(&self) -> Option<&'static Family> {
        self.family
    }

    /// Its generation, where it is known and the family has generations.
    pub fn generation(&self) -> Option<&'static Generation> {
        self.generation
    }

    /// The product, where it is known.
    pub fn product(&self) -> Option<&'static Product> {
        self.product
    }

    /// The system.
    pub fn os(&self) -> Os {
        self.os
    }

    /// The same GPU with another system.
    #[must_use]
    pub fn with_os(self, os: Os) -> Target {
        Target { os, ..self }
    }

    /// First component of the triple.
    pub fn arch_name(&self) -> &'static str {
        self.family.map_or(&self.vendor.name, |f| &f.name)
    }

    /// Second component of the triple: the product, else the generation, else `unknown`.
    pub fn product_name(&self) -> &'static str {
        match (self.product, self.generation) {
            (Some(product), _) => &product.name,
            (None, Some(generation)) => &generation.name,
            (None, None) => UNKNOWN,
        }
    }

    /// Name for people.
    pub fn title(&self) -> &'static str {
        match (self.product, self.generation, self.family) {
            (Some(product), _, _) => &product.title,
            (_, Some(generation), _) => &generation.title,
            (_, _, Some(family)) => &family.title,
            _ => &self.vendor.title,
        }
    }

    /// What the table knows: facts of the product over those of its generation over those of its family, with the
    /// sources of all three.
    pub fn table_facts(&self) -> FactBlock {
        let product = self.product.map(|p| p.facts.clone()).unwrap_or_default();
        let general = FactBlock::default();
        let generation = self.generation.map_or(&general, |g| &g.facts);
        let family = self.family.map_or(&general, |f| &f.facts);
        let mut merged = product.over(generation).over(family);
        if let (Some(known), Some(limit)) = (merged.api_version, self.os.vulkan_limit()) {
            merged.api_version = Some(known.min(limit));
        }
        merged
    }
}

fn unknown_name(text: &str) -> TargetError {
    TargetError::UnknownName { text: text.to_owned(), near: NearNames(near(text, table::all_names())) }
}

/// A known GPU with a strange system is told about the system, everything else about the name.
fn not_a_system(text: &str, rest: &str, os: &str) -> TargetError {
    let arch = rest.split_once('-').map_or(rest, |(arch, _)| arch);
    if rest.contains('-') && table::find_name(arch).is_some() {
        let near = NearNames(near(os.trim_end_matches(|c: char| c.is_ascii_digit()), Os::names()));
        return TargetError::UnknownOs { text: text.to_owned(), os: os.to_owned(), near };
    }
    unknown_name(text)
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.arch_name(), self.product_name(), self.os)
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({self})")
    }
}

impl PartialEq for Target {
    fn eq(&self, other: &Self) -> bool {
        let key = |t: &Target| (t.arch_name(), t.product_name(), t.os);
        key(self) == key(other)
    }
}

impl Eq for Target {}

impl Hash for Target {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.arch_name(), self.product_name(), self.os).hash(state);
    }
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        Target::parse(text)
    }
}

impl TryFrom<String> for Target {
    type Error = TargetError;

    fn try_from(text: String) -> Result<Self, TargetError> {
        Target::parse(&text)
    }
}

impl From<Target> for String {
    fn from(target: Target) -> String {
        target.to_string()
    }
}
