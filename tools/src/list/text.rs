//! How people see devices and drivers.

use std::io::Write;

use halite::hal::{DeviceKind, DriverRegistry, ExternalSupport, InfoGroup};

use super::survey::{DriverLine, Listed, Survey, hash, source};
use crate::console::Result;

/// Columns of a list of names in `-v`.
const WIDTH: usize = 108;

/// Name of a kind of device.
fn kind(kind: DeviceKind) -> &'static str {
    match kind {
        DeviceKind::DiscreteGpu => "discrete GPU",
        DeviceKind::IntegratedGpu => "integrated GPU",
        DeviceKind::VirtualGpu => "virtual GPU",
        DeviceKind::Cpu => "CPU",
        DeviceKind::Other => "other",
    }
}

/// One line for each device, and one more for each that is not chosen unasked.
pub(super) fn table(survey: &Survey, out: &mut dyn Write) -> Result<()> {
    if survey.devices.is_empty() {
        return Ok(());
    }
    let longest = |text: &dyn Fn(&Listed) -> usize| survey.devices.iter().map(text).max().unwrap_or_default();
    let uri = longest(&|d| d.info.uri().len()).max("URI".len());
    let target = longest(&|d| d.info.target.as_deref().unwrap_or("-").len()).max("TARGET".len());
    writeln!(out, "   # {:<uri$}  {:<14} {:>6}  {:<target$}  NAME", "URI", "KIND", "POINTS", "TARGET")?;
    for (position, device) in survey.devices.iter().enumerate() {
        let info = &device.info;
        let mark = if survey.is_choice(position) { '*' } else { ' ' };
        let index = device.index.map_or_else(|| "-".to_owned(), |index| index.to_string());
        let points =
            if device.rank.score.total < 0 { "-".to_owned() } else { device.rank.score.total.to_string() };
        let triple = info.target.as_deref().unwrap_or("-");
        writeln!(
            out,
            "{mark} {index:>2} {:<uri$}  {:<14} {points:>6}  {triple:<target$}  {}",
            info.uri(),
            kind(info.kind),
            info.name
        )?;
        if let Some(why) = &device.rank.ruled_out {
            writeln!(out, "     not chosen unasked: {why}")?;
        }
    }
    if survey.is_choice(0) {
        writeln!(out, "\n* runs modules that have code for it when no --device is given; -v tells why")?;
    }
    Ok(())
}

/// Everything about each device.
pub(super) fn details(registry: &DriverRegistry, survey: &Survey, out: &mut dyn Write) -> Result<()> {
    for (position, device) in survey.devices.iter().enumerate() {
        if position > 0 {
            writeln!(out)?;
        }
        detail(registry, device, survey.is_choice(position), survey.marks_choice, out)?;
    }
    Ok(())
}

/// `all` says that the devices of all drivers were looked at.
fn detail(
    registry: &DriverRegistry,
    device: &Listed,
    chosen: bool,
    all: bool,
    out: &mut dyn Write,
) -> Result<()> {
    let info = &device.info;
    writeln!(out, "{}  {}", info.uri(), info.name)?;
    let mut facts = vec![("kind", kind(info.kind).to_owned())];
    facts.push(("target", info.target.clone().unwrap_or_else(|| "no triple fits".to_owned())));
    facts.push((
        "usable",
        info.unusable.as_ref().map_or_else(|| "yes".to_owned(), |why| format!("no: {why}")),
    ));
    let unasked = match &device.rank.ruled_out {
        Some(why) => Some(format!("no: {why}")),
        None if chosen => Some("yes".to_owned()),
        None if all => Some("only without a device of more points".to_owned()),
        // Devices of other drivers were not looked at.
        None => None,
    };
    facts.extend(unasked.map(|text| ("chosen unasked", text)));
    facts.push(("executable formats", info.executable_formats.join(" ")));
    facts.extend(external_memory(&info.external_memory).map(|text| ("external memory", text)));
    if let Some(entry) = registry.entries().iter().find(|e| e.name() == info.driver) {
        facts.push(("halite driver", format!("{}, {}", entry.name(), source(entry))));
        match hash(entry) {
            Some(Ok(digest)) => facts.push(("driver sha256", digest)),
            Some(Err(why)) => facts.push(("driver sha256", format!("cannot be told: {why}"))),
            None => {}
        }
    }
    for (name, value) in facts {
        writeln!(out, "  {name}: {value}")?;
    }
    writeln!(out, "  points: {}", device.rank.score.total)?;
    for item in &device.rank.score.items {
        writeln!(out, "    {:>8}  {}", item.points, item.reason)?;
    }
    writeln!(out, "  properties:")?;
    for (name, value) in &info.properties {
        writeln!(out, "    {name}: {value}")?;
    }
    info.groups.iter().try_for_each(|each| group(each, out))
}

/// Entries with values one by one, names without values as a paragraph. Features that are missing come last, by name.
fn group(group: &InfoGroup, out: &mut dyn Write) -> Result<()> {
    if group.entries.is_empty() {
        return Ok(());
    }
    writeln!(out, "  {}:", group.title)?;
    let flags = group.entries.iter().all(|(_, value)| matches!(value.as_str(), "yes" | "no" | ""));
    if !flags {
        for (name, value) in &group.entries {
            writeln!(out, "    {name}: {value}")?;
        }
        return Ok(());
    }
    let with = |wanted: &[&str]| -> Vec<&str> {
        let fits = group.entries.iter().filter(|(_, value)| wanted.contains(&value.as_str()));
        fits.map(|(name, _)| name.as_str()).collect()
    };
    paragraph("", &with(&["yes", ""]), out)?;
    paragraph("missing: ", &with(&["no"]), out)
}

/// Names one after the other, in lines that are not too long.
fn paragraph(lead: &str, names: &[&str], out: &mut dyn Write) -> Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    let mut line = format!("    {lead}");
    let mut fresh = true;
    for name in names {
        if !fresh && line.len() + 1 + name.len() > WIDTH {
            writeln!(out, "{line}")?;
            line = "    ".to_owned();
            fresh = true;
        }
        if !fresh {
            line.push(' ');
        }
        line.push_str(name);
        fresh = false;
    }
    writeln!(out, "{line}")?;
    Ok(())
}

/// The drivers, what was skipped, and what is hidden behind another of its name.
pub(super) fn drivers(
    registry: &DriverRegistry,
    lines: &[DriverLine<'_>],
    out: &mut dyn Write,
) -> Result<()> {
    let width = lines.iter().map(|l| l.entry.name().len()).max().unwrap_or_default();
    for line in lines {
        writeln!(out, "{:<width$}  {}", line.entry.name(), line.entry.description())?;
        writeln!(out, "{:width$}  {}", "", source(line.entry))?;
        if let Some(Err(why)) = &line.works {
            writeln!(out, "{:width$}  does not work: {why}", "")?;
        }
        if let Some(Ok(digest)) = line.works.as_ref().and_then(|_| hash(line.entry)) {
            writeln!(out, "{:width$}  sha256 {digest}", "")?;
        }
    }
    for shadowed in registry.shadowed() {
        writeln!(
            out,
            "not used: {} ({}): {}",
            shadowed.entry.name(),
            source(&shadowed.entry),
            shadowed.reason
        )?;
    }
    for skipped in registry.skipped() {
        writeln!(out, "skipped: {skipped}")?;
    }
    Ok(())
}

/// The tables of known faults, after the names of those in force.
pub(super) fn workarounds(registry: &DriverRegistry, survey: &Survey, out: &mut dyn Write) -> Result<()> {
    for device in &survey.devices {
        let info = &device.info;
        if let Some((_, names)) = info.properties.iter().find(|(name, _)| name == "workarounds") {
            writeln!(out, "in force on '{}' ({}): {names}", info.name, info.uri())?;
        }
    }
    for entry in registry.entries() {
        let Ok(driver) = entry.driver() else { continue };
        for table in driver.tables().iter().filter(|table| table.title == "workarounds") {
            writeln!(
                out,
                "\ndriver {}: the option workarounds=+name,-name changes what is in force\n",
                entry.name()
            )?;
            for (name, meaning) in &table.entries {
                writeln!(out, "{name}\n  {}", meaning.replace('\n', "\n  "))?;
            }
        }
    }
    Ok(())
}

/// What a device does with memory that is shared with others, kind by kind.
fn external_memory(kinds: &[ExternalSupport]) -> Option<String> {
    let text = |support: &ExternalSupport| match (support.import, support.export) {
        (true, true) => format!("{} (import, export)", support.kind),
        (true, false) => format!("{} (import)", support.kind),
        _ => format!("{} (export)", support.kind),
    };
    let texts: Vec<_> = kinds.iter().map(text).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

#[cfg(test)]
mod tests {
    use halite::hal::{DeviceInfo, ScoreItem, choice};

    use super::*;

    fn survey(devices: Vec<DeviceInfo>) -> Survey {
        let ranked = choice::rank(&devices, &|_| false);
        let listed = ranked.into_iter().map(|rank| Listed {
            info: devices[rank.index].clone(),
            index: Some(rank.index),
            rank,
        });
        Survey { devices: listed.collect(), marks_choice: true }
    }

    fn device(path: &str, kind: DeviceKind, unusable: Option<&str>) -> DeviceInfo {
        DeviceInfo {
            driver: "d".into(),
            path: path.into(),
            name: "Name".into(),
            kind,
            unusable: unusable.map(str::to_owned),
            target: Some("cpu-x-linux".into()),
            score: vec![ScoreItem { points: 7, reason: "seven".into() }],
            properties: vec![("api".into(), "1.3".into())],
            ..DeviceInfo::default()
        }
    }

    fn print(write: impl FnOnce(&mut dyn Write) -> Result<()>) -> String {
        let mut out = Vec::new();
        write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_table_marks_the_choice_and_explains_what_is_never_chosen() {
        let devices = vec![
            device("long-path", DeviceKind::Cpu, None),
            device("x", DeviceKind::DiscreteGpu, Some("too old")),
        ];
        let text = print(|out| table(&survey(devices), out));
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[1], "*  0 d://long-path  CPU                 7  cpu-x-linux  Name");
        assert_eq!(lines[2], "   1 d://x          discrete GPU     4007  cpu-x-linux  Name");
        assert_eq!(lines[3], "     not chosen unasked: cannot be used: too old");
    }

    #[test]
    fn details_give_points_with_reasons() {
        let text = print(|out| {
            details(&DriverRegistry::empty(), &survey(vec![device("p", DeviceKind::Cpu, None)]), out)
        });
        assert!(text.contains("  chosen unasked: yes\n"), "{text}");
        assert!(text.contains("  points: 7\n           0  processor\n           7  seven\n"), "{text}");
        assert!(text.contains("  properties:\n    api: 1.3\n"), "{text}");
    }

    #[test]
    fn flags_are_paragraphs_and_the_missing_ones_are_named() {
        let entry = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let features = InfoGroup {
            title: "features".into(),
            entries: vec![entry("a", "yes"), entry("b", "no"), entry("c", "yes")],
        };
        assert_eq!(print(|out| group(&features, out)), "  features:\n    a c\n    missing: b\n");
        let limits = InfoGroup { title: "limits".into(), entries: vec![entry("most", "3")] };
        assert_eq!(print(|out| group(&limits, out)), "  limits:\n    most: 3\n");
        let long: Vec<_> = (0..40).map(|i| entry(&format!("VK_EXT_number_{i}"), "")).collect();
        let text = print(|out| group(&InfoGroup { title: "extensions".into(), entries: long }, out));
        assert!(text.lines().all(|line| line.len() <= WIDTH) && text.lines().count() > 5, "{text}");
    }
}
