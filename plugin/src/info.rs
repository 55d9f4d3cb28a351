//! What is told about devices, on its way through the interface.

use std::{ffi::c_void, sync::Arc};

use halite_facts::DeviceFacts;

use super::{
    abi::*,
    external, panics,
    peer::Peer,
    raw::{self, Grows},
};
use halite_hal::{DeviceInfo, DeviceKind, InfoGroup, MemoryStats, Result, ScoreItem, UnconfinedCode};

/// The visitor of device infos.
pub(super) type VisitInfo = unsafe extern "C" fn(context: *mut c_void, info: *const HaliteDeviceInfo);

/// The visitor of groups of facts.
pub(super) type VisitGroup = unsafe extern "C" fn(context: *mut c_void, group: *const HaliteInfoGroup);

fn kind_number(kind: DeviceKind) -> u32 {
    match kind {
        DeviceKind::DiscreteGpu => HALITE_DEVICE_DISCRETE_GPU,
        DeviceKind::IntegratedGpu => HALITE_DEVICE_INTEGRATED_GPU,
        DeviceKind::VirtualGpu => HALITE_DEVICE_VIRTUAL_GPU,
        DeviceKind::Cpu => HALITE_DEVICE_CPU,
        DeviceKind::Other => HALITE_DEVICE_OTHER,
    }
}

fn kind_of(number: u32, peer: Peer) -> Result<DeviceKind> {
    Ok(match number {
        HALITE_DEVICE_DISCRETE_GPU => DeviceKind::DiscreteGpu,
        HALITE_DEVICE_INTEGRATED_GPU => DeviceKind::IntegratedGpu,
        HALITE_DEVICE_VIRTUAL_GPU => DeviceKind::VirtualGpu,
        HALITE_DEVICE_CPU => DeviceKind::Cpu,
        HALITE_DEVICE_OTHER => DeviceKind::Other,
        _ => return Err(peer.broke(format_args!("a device is of the unknown kind {number}"))),
    })
}

fn lend_pairs(pairs: &[(String, String)]) -> Vec<HalitePair> {
    pairs.iter().map(|(name, value)| raw::lend_pair(name, value)).collect()
}

/// Calls `body` with a group as the interface has it.
pub(super) fn lend_group(group: &InfoGroup, body: impl FnOnce(&HaliteInfoGroup)) {
    let entries = lend_pairs(&group.entries);
    body(&group_over(group, &entries));
}

fn group_over(group: &InfoGroup, entries: &[HalitePair]) -> HaliteInfoGroup {
    HaliteInfoGroup { title: raw::lend(&group.title), entries: entries.as_ptr(), entry_count: entries.len() }
}

/// # Safety
/// What the group points to is there.
unsafe fn receive_group(group: &HaliteInfoGroup, peer: Peer) -> Result<InfoGroup> {
    // SAFETY: the caller's promise.
    unsafe {
        Ok(InfoGroup {
            title: raw::text(group.title, "a title", peer)?.to_owned(),
            entries: raw::pairs(group.entries, group.entry_count, "facts", peer)?,
        })
    }
}

/// Calls `body` with an info as the interface has it.
pub(super) fn lend(info: &DeviceInfo, body: impl FnOnce(&HaliteDeviceInfo)) {
    let formats: Vec<_> = info.executable_formats.iter().map(|f| raw::lend(f)).collect();
    let score: Vec<_> = info
        .score
        .iter()
        .map(|item| HaliteScoreItem { points: item.points, reason: raw::lend(&item.reason) })
        .collect();
    let properties = lend_pairs(&info.properties);
    let entries: Vec<_> = info.groups.iter().map(|group| lend_pairs(&group.entries)).collect();
    let groups: Vec<_> =
        info.groups.iter().zip(&entries).map(|(group, entries)| group_over(group, entries)).collect();
    let guarded: Vec<Vec<_>> =
        info.unconfined.iter().map(|code| code.formats.iter().map(|f| raw::lend(f)).collect()).collect();
    let unconfined: Vec<_> =
        info.unconfined.iter().zip(&guarded).map(|(code, formats)| lend_unconfined(code, formats)).collect();
    let record = info.facts.as_ref().map(|facts| facts.to_json());
    let external: Vec<_> = info.external_memory.iter().map(external::lend_support).collect();
    body(&HaliteDeviceInfo {
        struct_size: HaliteDeviceInfo::SIZE,
        kind: kind_number(info.kind),
        driver: raw::lend(&info.driver),
        path: raw::lend(&info.path),
        name: raw::lend(&info.name),
        unusable: raw::lend_optional(info.unusable.as_deref()),
        target: raw::lend_optional(info.target.as_deref()),
        capabilities: raw::lend_optional(record.as_deref()),
        executable_formats: formats.as_ptr(),
        executable_format_count: formats.len(),
        score: score.as_ptr(),
        score_count: score.len(),
        properties: properties.as_ptr(),
        property_count: properties.len(),
        groups: groups.as_ptr(),
        group_count: groups.len(),
        unconfined: unconfined.as_ptr(),
        unconfined_count: unconfined.len(),
        external: external.as_ptr(),
        external_count: external.len(),
    });
}

fn lend_unconfined(code: &UnconfinedCode, formats: &[HaliteStr]) -> HaliteUnconfinedCode {
    HaliteUnconfinedCode {
        formats: formats.as_ptr(),
        format_count: formats.len(),
        reason: raw::lend(&code.reason),
        option: raw::lend(&code.option),
        allow: raw::lend(&code.allow),
        refuse: raw::lend(&code.refuse),
        default_allows: code.default_allows.into(),
        reserved: [0; 7],
    }
}

/// # Safety
/// What the entry points to is there.
unsafe fn receive_unconfined(code: &HaliteUnconfinedCode, peer: Peer) -> Result<UnconfinedCode> {
    // SAFETY: the caller's promise, for all of it.
    unsafe {
        let text = |t, what| Ok::<_, halite_hal::Status>(raw::text(t, what, peer)?.to_owned());
        let formats = raw::array(code.formats, code.format_count, "unconfined formats", peer)?;
        Ok(UnconfinedCode {
            formats: formats.iter().map(|f| text(*f, "a format")).collect::<Result<_>>()?,
            reason: text(code.reason, "a reason")?,
            option: text(code.option, "an option")?,
            allow: text(code.allow, "a value of an option")?,
            refuse: text(code.refuse, "a value of an option")?,
            default_allows: code.default_allows != 0,
        })
    }
}

/// The facts in the record of a device. A driver may have a record of its own that is no [`DeviceFacts`]: its devices run
/// modules, and no models are compiled for them.
fn facts(record: Option<String>, driver: &str) -> Option<Arc<DeviceFacts>> {
    let mut facts =
        DeviceFacts::from_json(&record?).inspect_err(|e| log::info!("driver '{driver}': {e}")).ok()?;
    if facts.os.is_empty() {
        facts.os = std::env::consts::OS.to_owned();
    }
    Some(Arc::new(facts))
}

/// An info that came in. Its driver is called `driver`, whatever it says: URIs must lead back there.
///
/// # Safety
/// `info` is null or there for the call, and so is what it points to.
unsafe fn receive(info: *const HaliteDeviceInfo, driver: &str, peer: Peer) -> Result<DeviceInfo> {
    // SAFETY: the caller's promise, for all of it.
    unsafe {
        let info = raw::structure(info, peer)?;
        let text = |t, what| Ok::<_, halite_hal::Status>(raw::text(t, what, peer)?.to_owned());
        let formats = raw::array(info.executable_formats, info.executable_format_count, "formats", peer)?;
        let score = raw::array(info.score, info.score_count, "a device's score", peer)?;
        let groups = raw::array(info.groups, info.group_count, "groups of facts", peer)?;
        let shared = raw::array(info.external, info.external_count, "kinds of memory", peer)?;
        let unconfined = raw::array(info.unconfined, info.unconfined_count, "unconfined code", peer)?;
        Ok(DeviceInfo {
            driver: driver.to_owned(),
            path: text(info.path, "a device's path")?,
            name: text(info.name, "a device's name")?,
            kind: kind_of(info.kind, peer)?,
            unusable: raw::optional_text(info.unusable, "why a device is unusable", peer)?,
            target: raw::optional_text(info.target, "a device's target", peer)?,
            facts: facts(raw::optional_text(info.capabilities, "a device's capabilities", peer)?, driver),
            executable_formats: formats.iter().map(|f| text(*f, "a format")).collect::<Result<_>>()?,
            score: score
                .iter()
                .map(|item| Ok(ScoreItem { points: item.points, reason: text(item.reason, "a reason")? }))
                .collect::<Result<_>>()?,
            properties: raw::pairs(info.properties, info.property_count, "properties", peer)?,
            groups: groups.iter().map(|group| receive_group(group, peer)).collect::<Result<_>>()?,
            external_memory: shared
                .iter()
                .map(|support| external::receive_support(support, peer))
                .collect::<Result<_>>()?,
            unconfined: unconfined
                .iter()
                .map(|code| receive_unconfined(code, peer))
                .collect::<Result<_>>()?,
        })
    }
}

/// What [`gather`] is given: infos, or the first thing that was wrong with one.
pub(super) struct Gathered<'a> {
    /// Name of the driver.
    pub driver: &'a str,
    /// Who tells.
    pub peer: Peer,
    /// What was told.
    pub infos: Result<Vec<DeviceInfo>>,
}

/// The visitor for a context of [`Gathered`].
pub(super) unsafe extern "C" fn gather(context: *mut c_void, info: *const HaliteDeviceInfo) {
    panics::swallow("visiting a device", || {
        // SAFETY: the context is the caller's `Gathered`, which nobody else uses during the call.
        let Some(gathered) = (unsafe { context.cast::<Gathered<'_>>().as_mut() }) else { return };
        let Ok(infos) = &mut gathered.infos else { return };
        // SAFETY: the info is lent for the visit.
        match unsafe { receive(info, gathered.driver, gathered.peer) } {
            Ok(info) => infos.push(info),
            Err(e) => gathered.infos = Err(e),
        }
    });
}

/// What [`gather_group`] is given.
pub(super) struct GatheredGroups {
    /// Who tells.
    pub peer: Peer,
    /// What was told, or the first thing that was wrong with it.
    pub groups: Result<Vec<InfoGroup>>,
}

/// The visitor for a context of [`GatheredGroups`].
pub(super) unsafe extern "C" fn gather_group(context: *mut c_void, group: *const HaliteInfoGroup) {
    panics::swallow("visiting a table", || {
        // SAFETY: the context is the caller's `GatheredGroups`, which nobody else uses during the call.
        let Some(gathered) = (unsafe { context.cast::<GatheredGroups>().as_mut() }) else { return };
        let Ok(groups) = &mut gathered.groups else { return };
        // SAFETY: the group is null or lent for the visit.
        let received = unsafe {
            match group.as_ref() {
                Some(group) => receive_group(group, gathered.peer),
                None => Err(gathered.peer.broke(format_args!("a table is null"))),
            }
        };
        match received {
            Ok(group) => groups.push(group),
            Err(e) => gathered.groups = Err(e),
        }
    });
}

/// Statistics as the interface has them.
pub(super) fn lend_stats(stats: &MemoryStats) -> HaliteMemoryStats {
    HaliteMemoryStats {
        struct_size: HaliteMemoryStats::SIZE,
        reserved: 0,
        bytes_reserved: stats.reserved,
        bytes_used: stats.used,
        peak_bytes_reserved: stats.peak_reserved,
        peak_bytes_used: stats.peak_used,
        allocation_count: stats.allocation_count,
    }
}

/// Statistics that came in.
pub(super) fn receive_stats(stats: &HaliteMemoryStats) -> MemoryStats {
    MemoryStats {
        reserved: stats.bytes_reserved,
        used: stats.bytes_used,
        peak_reserved: stats.peak_bytes_reserved,
        peak_used: stats.peak_bytes_used,
        allocation_count: stats.allocation_count,
    }
}
