//! The shape of the table's files. Unknown keys are errors, so that a misspelled fact is not a missing one.

use std::fmt;

use serde::{Deserialize, Deserializer, de::Error as _};

use crate::{FactBlock, names};

/// `vendors.json`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VendorFile {
    /// Where the ids come from.
    #[allow(dead_code, reason = "for readers of the file; a test wants it there")]
    pub sources: Vec<String>,
    /// The vendors.
    pub vendors: Vec<Vendor>,
}

/// Who makes a GPU, or stands behind a software one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Vendor {
    /// Name, as triples write it.
    pub name: String,
    /// Name for people.
    pub title: String,
    /// PCI ids and `VkVendorId` numbers.
    pub ids: Vec<Hex>,
    /// Other names.
    #[serde(default)]
    pub aliases: Vec<String>,
}

/// GPUs of one architecture: the first component of a triple.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Family {
    /// Name, as triples write it.
    #[serde(rename = "family")]
    pub name: String,
    /// Name of its [`Vendor`].
    pub vendor: String,
    /// Name for people.
    pub title: String,
    /// Place among the families of its vendor: neighbours are the most alike, later ones are newer.
    pub order: u32,
    /// Other names.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// Old triples without their system, and the product that each stands for.
    #[serde(default)]
    pub legacy_triples: Vec<(String, String)>,
    /// Whether what was made for one product never runs on another: processors of different kinds.
    #[serde(default)]
    pub isolated_products: bool,
    /// Product series whose generation is not told by the number.
    #[serde(default)]
    pub series: Vec<Series>,
    /// Where names and ids come from.
    pub sources: Vec<String>,
    /// Facts of all its members.
    #[serde(default)]
    pub facts: FactBlock,
    /// Its generations or chips, oldest first.
    pub generations: Vec<Generation>,
    /// Its products.
    pub products: Vec<Product>,
}

/// A part of a family that shares a chip or an instruction set: `sm_86`, `gfx1100`, `valhall2`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Generation {
    /// Name, as triples write it in the product's place.
    pub name: String,
    /// Name for people.
    pub title: String,
    /// Other names.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// Words in device names that tell it, such as a chip's code name.
    #[serde(default)]
    pub device_names: Vec<String>,
    /// Device ids that the vendor gave to it.
    #[serde(default)]
    pub device_id_ranges: Vec<IdRange>,
    /// Product series that belong to it.
    #[serde(default)]
    pub series: Vec<Series>,
    /// Whether its code is native, so that Vulkan profiles say nothing about it.
    #[serde(default)]
    pub native: bool,
    /// Facts that differ from the family's.
    #[serde(default)]
    pub facts: FactBlock,
}

/// A GPU that one can buy, alone or in a system on a chip.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Product {
    /// Name, as triples write it.
    pub name: String,
    /// Name for people.
    pub title: String,
    /// Name of its generation; `None` where the family has none.
    #[serde(default)]
    pub generation: Option<String>,
    /// Other names, understood alone.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// Other names, understood after the family's name.
    #[serde(default)]
    pub scoped_aliases: Vec<String>,
    /// What drivers call it; empty where the title is what they say.
    #[serde(default)]
    pub device_names: Vec<String>,
    /// Its device ids.
    #[serde(default)]
    pub device_ids: Vec<DeviceId>,
    /// Facts that differ from the generation's.
    #[serde(default)]
    pub facts: FactBlock,
}

/// Products whose names end in numbers of a range: GeForce RTX 3000 to 3099.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Series {
    /// The words before the number.
    pub prefix: String,
    /// First number.
    pub from: u32,
    /// Last number.
    pub to: u32,
    /// Whether a triple may name a number that the table does not list.
    #[serde(default)]
    pub accepts_unlisted: bool,
}

/// A number that the files write in hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Hex(pub u32);

impl fmt::Debug for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// A device id: `0x2206`, with a mask `0x90020000/0xf00f0000`, or with a vendor id `0x1ae0:0xc0de`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceId {
    /// Vendor id, where the family's vendor has several.
    pub vendor_id: Option<u32>,
    /// The id.
    pub id: u32,
    /// Bits that count.
    pub mask: u32,
}

impl DeviceId {
    /// Whether a device has this id.
    pub fn matches(&self, vendor_id: u32, device_id: u32) -> bool {
        self.vendor_id.is_none_or(|v| v == vendor_id) && device_id & self.mask == self.id
    }
}

/// First and last device id of a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IdRange {
    /// First.
    pub first: u32,
    /// Last.
    pub last: u32,
}

fn hex(text: &str) -> Result<u32, String> {
    let digits = text.strip_prefix("0x").ok_or_else(|| format!("'{text}' does not begin with 0x"))?;
    u32::from_str_radix(digits, 16).map_err(|e| format!("'{text}': {e}"))
}

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        hex(&String::deserialize(from)?).map(Hex).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for DeviceId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let (vendor_id, rest) = match text.split_once(':') {
            Some((vendor, rest)) => (Some(hex(vendor).map_err(D::Error::custom)?), rest),
            None => (None, text.as_str()),
        };
        let (id, mask) = rest.split_once('/').unwrap_or((rest, "0xffffffff"));
        let (id, mask) = (hex(id).map_err(D::Error::custom)?, hex(mask).map_err(D::Error::custom)?);
        Ok(DeviceId { vendor_id, id, mask })
    }
}

impl<'de> Deserialize<'de> for IdRange {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let [first, last] = <[Hex; 2]>::deserialize(from)?;
        if first.0 > last.0 {
            return Err(D::Error::custom(format!("range {first:?} to {last:?} is empty")));
        }
        Ok(IdRange { first: first.0, last: last.0 })
    }
}

impl Family {
    /// The generation with this name.
    pub fn generation(&self, name: &str) -> Option<&Generation> {
        self.generations.iter().find(|g| g.name == name)
    }

    /// The generation of one of its products.
    pub fn generation_of(&self, product: &Product) -> Option<&Generation> {
        product.generation.as_deref().and_then(|name| self.generation(name))
    }
}

impl Product {
    /// What drivers call it, as words.
    pub(crate) fn device_words(&self) -> Vec<Vec<String>> {
        if self.device_names.is_empty() {
            // Some drivers leave the maker's name out.
            let mut words = names::words(&self.title);
            if words.len() > 2 && matches!(words[0].as_str(), "nvidia" | "amd" | "intel") {
                words.remove(0);
            }
            vec![words]
        } else {
            self.device_names.iter().map(|n| names::words(n)).collect()
        }
    }
}

impl Series {
    /// The number, if the words name a member of the series.
    pub(crate) fn number_in(&self, words: &[String]) -> Option<u32> {
        let at = names::find_words(words, &names::words(&self.prefix))?;
        let number: u32 = words.get(at)?.parse().ok()?;
        (self.from..=self.to).contains(&number).then_some(number)
    }
}
