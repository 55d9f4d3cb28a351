//! The order in which targets of a module fit a device, and the numbers that say so.
//!
//! A rank is `tier + 10 * closeness + os`: the tier says what a candidate shares with the device, the closeness
//! (0 to 99) orders candidates of one tier, `os` is 2 for the device's system, 1 where one of the two is not known, 0 for
//! another (kernels do not depend on the system, so another one is no obstacle). Rank 0 means that the candidate does
//! not fit: it is made for another vendor, or it may use what the device lacks.

use crate::{Capabilities, Os, OsKind, Target, names};

/// What a candidate shares with the device, as the thousands of its rank.
pub mod tier {
    /// Made for this very product.
    pub const PRODUCT: i64 = 8000;
    /// Made for any product of the same generation.
    pub const GENERATION: i64 = 7000;
    /// Made for another product of the same generation.
    pub const GENERATION_SIBLING: i64 = 6000;
    /// Made for any product of the same family.
    pub const FAMILY: i64 = 5000;
    /// Made for another generation of the same family.
    pub const FAMILY_SIBLING: i64 = 4000;
    /// Made for any GPU of the same vendor.
    pub const VENDOR: i64 = 3000;
    /// Made for another family of the same vendor.
    pub const VENDOR_SIBLING: i64 = 2000;
    /// A Vulkan profile, made for no vendor.
    pub const BASELINE: i64 = 1000;
}

/// A candidate's place, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ranked {
    /// Its place in the list that was asked about.
    pub index: usize,
    /// The candidate.
    pub target: Target,
    /// 0 when it does not fit, else higher is better; see [`tier`].
    pub rank: i64,
    /// Why, for people.
    pub reason: String,
    /// What the device lacks; empty when nothing.
    pub missing: Vec<String>,
}

impl Target {
    /// The candidates in the order in which they fit a device of this target, best first, those that do not fit last.
    /// Equal ranks keep the order of the list. Uses the table only; [`crate::Detected::rank`] uses the device's facts.
    pub fn rank(&self, candidates: &[Target]) -> Vec<Ranked> {
        rank_for(&Capabilities::of(*self), candidates)
    }
}

/// Rank of one candidate on a device with these capabilities.
pub fn rank_of(device: &Capabilities, candidate: Target) -> Ranked {
    let (rank, reason) = relation(device.target, candidate);
    let missing = if rank == 0 { Vec::new() } else { device.lacks(&Capabilities::of(candidate)) };
    if missing.is_empty() {
        let os = if rank == 0 { 0 } else { os_points(device.target.os(), candidate.os()) };
        return Ranked { index: 0, target: candidate, rank: rank + os, reason, missing };
    }
    let reason = format!("{reason}, but the device lacks {}", missing.join("; "));
    Ranked { index: 0, target: candidate, rank: 0, reason, missing }
}

/// The best candidate that fits.
pub fn best(ranked: &[Ranked]) -> Option<&Ranked> {
    ranked.first().filter(|r| r.rank > 0)
}

pub(crate) fn rank_for(device: &Capabilities, candidates: &[Target]) -> Vec<Ranked> {
    let place = |(index, target): (usize, &Target)| Ranked { index, ..rank_of(device, *target) };
    let mut ranked: Vec<Ranked> = candidates.iter().enumerate().map(place).collect();
    ranked.sort_by_key(|r| std::cmp::Reverse(r.rank));
    ranked
}

fn os_points(device: Os, candidate: Os) -> i64 {
    if [candidate.kind, device.kind].contains(&OsKind::Unknown) {
        return 1;
    }
    let newer = matches!((candidate.version, device.version), (Some(c), Some(d)) if c > d);
    if candidate.kind == device.kind && !newer { 2 } else { 0 }
}

/// `tier + 10 * closeness` and what it means; 0 for targets that have nothing in common.
fn relation(device: Target, candidate: Target) -> (i64, String) {
    let title = candidate.title();
    if candidate.arch_name() == "vp" && device.generation().is_some_and(|g| g.native) {
        return (0, format!("{title} is about Vulkan, {} runs native code", device.title()));
    }
    if candidate.arch_name() == "vp" {
        let place = candidate.product().and_then(|p| index_of(candidate, p)).map_or(0, |i| (i + 1).min(99));
        return (tier::BASELINE + 10 * place, format!("{title} is a baseline for any vendor"));
    }
    if device.vendor().name != candidate.vendor().name {
        return (0, format!("{title} is of another vendor than {}", device.title()));
    }
    match (device.family(), candidate.family()) {
        (Some(ours), Some(theirs)) if ours.name == theirs.name => same_family(device, candidate),
        (_, Some(theirs)) => {
            let ours = device.family().map_or(theirs.order, |f| f.order);
            // Older code runs on newer hardware more often than the other way round.
            let close = 98 - 10 * i64::from(ours.abs_diff(theirs.order)) + i64::from(theirs.order < ours);
            let rank = tier::VENDOR_SIBLING + 10 * close.clamp(0, 99);
            (rank, format!("{title} is another family of {}", device.vendor().title))
        }
        (_, None) => (tier::VENDOR, format!("any GPU of {}", device.vendor().title)),
    }
}

fn same_family(device: Target, candidate: Target) -> (i64, String) {
    let title = candidate.title();
    let family = candidate.family().map_or("", |f| &f.title);
    let name = |t: Target| t.product().map(|p| p.name.as_str());
    if let (Some(ours), Some(theirs)) = (name(device), name(candidate))
        && ours == theirs
    {
        return (tier::PRODUCT, format!("{title} is the device itself"));
    }
    if candidate.family().is_some_and(|f| f.isolated_products) {
        return (0, format!("code for {title} runs only there, the device is {}", device.title()));
    }
    let generation = |t: Target| t.generation().map(|g| g.name.as_str());
    match (generation(device), generation(candidate), candidate.product()) {
        (Some(ours), Some(theirs), None) if ours == theirs => {
            (tier::GENERATION, format!("the device is of the generation {title}"))
        }
        (Some(ours), Some(theirs), Some(_)) if ours == theirs => {
            let rank = tier::GENERATION_SIBLING + 10 * number_closeness(device, candidate);
            (rank, format!("{title} is of the device's generation"))
        }
        (_, None, None) => (tier::FAMILY, format!("any GPU of {family}")),
        _ => {
            let rank = tier::FAMILY_SIBLING + 10 * generation_closeness(device, candidate);
            (rank, format!("{title} is of the same family, {family}"))
        }
    }
}

/// 99 for the same number in the name, less for each step away.
fn number_closeness(a: Target, b: Target) -> i64 {
    let number = |t: Target| names::number(&names::words(t.product()?.title.as_str()));
    match (number(a), number(b)) {
        (Some(a), Some(b)) => 99 - i64::from(a.abs_diff(b).min(99)),
        _ => 0,
    }
}

fn generation_closeness(a: Target, b: Target) -> i64 {
    let place = |t: Target| {
        let generation = t.generation()?;
        t.family()?.generations.iter().position(|g| g.name == generation.name)
    };
    match (place(a), place(b)) {
        (Some(a), Some(b)) => 99 - 10 * i64::try_from(a.abs_diff(b)).unwrap_or(9).min(9),
        _ => number_closeness(a, b),
    }
}

fn index_of(target: Target, product: &crate::Product) -> Option<i64> {
    let at = target.family()?.products.iter().position(|p| p.name == product.name)?;
    i64::try_from(at).ok()
}
