//! The JSON form of devices and drivers. Fields are only ever added: reports of many machines are compared.

use halite::{
    hal::{DriverEntry, DriverRegistry, InfoGroup},
    plugin::LibrarySource,
};
use serde_json::{Map, Value, json};

use super::survey::{DriverLine, Listed, Survey, hash};
use crate::console::VERSION;

/// The whole report: program, drivers, devices in the order of choice.
pub(super) fn report(registry: &DriverRegistry, survey: &Survey) -> Value {
    let lines = DriverLine::all(registry, false);
    let chosen = survey.is_choice(0).then(|| survey.devices[0].info.uri());
    let mut report = json!({
        "version": VERSION,
        "os": std::env::consts::OS,
        "arch": std::env::consts::ARCH,
        "chosen": chosen,
        "devices": survey.devices.iter().map(device).collect::<Vec<_>>(),
    });
    if let (Value::Object(all), Value::Object(more)) = (&mut report, drivers(registry, &lines)) {
        all.extend(more);
    }
    report
}

/// The drivers, those that are not used, and what was skipped.
pub(super) fn drivers(registry: &DriverRegistry, lines: &[DriverLine<'_>]) -> Value {
    let shadowed = registry.shadowed().iter().map(|shadowed| {
        let mut entry = driver(&shadowed.entry);
        entry.insert("reason".to_owned(), shadowed.reason.clone().into());
        Value::from(entry)
    });
    let skipped = registry.skipped().iter().map(|s| json!({"path": s.path, "reason": s.reason}));
    json!({
        "drivers": lines.iter().map(driver_line).collect::<Vec<_>>(),
        "shadowed_drivers": shadowed.collect::<Vec<_>>(),
        "skipped_drivers": skipped.collect::<Vec<_>>(),
    })
}

/// The known faults of each driver, and which of them are worked around on each device.
pub(super) fn workarounds(registry: &DriverRegistry, survey: &Survey) -> Value {
    let devices = survey.devices.iter().filter_map(|listed| {
        let (_, names) = listed.info.properties.iter().find(|(name, _)| name == "workarounds")?;
        let names: Vec<_> = names.split_whitespace().filter(|name| *name != "none").collect();
        Some(json!({"uri": listed.info.uri(), "name": listed.info.name, "in_force": names}))
    });
    let known = registry.entries().iter().filter_map(|entry| {
        let tables = entry.driver().ok()?.tables();
        let tables = tables.into_iter().filter(|table| table.title == "workarounds");
        let faults = tables.flat_map(|table| table.entries);
        let faults: Vec<_> =
            faults.map(|(name, meaning)| json!({"name": name, "meaning": meaning})).collect();
        (!faults.is_empty()).then(|| json!({"driver": entry.name(), "workarounds": faults}))
    });
    json!({"devices": devices.collect::<Vec<_>>(), "drivers": known.collect::<Vec<_>>()})
}

fn driver_line(line: &DriverLine<'_>) -> Value {
    let mut entry = driver(line.entry);
    let error = line.works.as_ref().and_then(|works| works.as_ref().err()).map(ToString::to_string);
    entry.insert("loaded".to_owned(), matches!(line.works, Some(Ok(()))).into());
    entry.insert("error".to_owned(), error.into());
    entry.into()
}

fn driver(entry: &DriverEntry) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("name".to_owned(), entry.name().into());
    object.insert("description".to_owned(), entry.description().into());
    object.insert("linked".to_owned(), entry.source().is_none().into());
    if let Some(library) = LibrarySource::of(entry) {
        object.insert("library".to_owned(), json!(library.library));
        object.insert("manifest".to_owned(), json!(library.manifest));
        object.insert("driver_version".to_owned(), library.version.clone().into());
        object.insert("origin".to_owned(), library.origin.to_string().into());
        let digest = hash(entry).and_then(Result::ok);
        object.insert("sha256".to_owned(), digest.into());
    }
    object
}

fn device(device: &Listed) -> Value {
    let info = &device.info;
    // Through text: numbers keep the digits that they have in records.
    let record: Option<Value> =
        info.facts.as_ref().and_then(|facts| serde_json::from_str(&facts.to_json()).ok());
    let items: Vec<_> =
        device.rank.score.items.iter().map(|i| json!({"points": i.points, "reason": i.reason})).collect();
    let groups: Map<_, _> = info.groups.iter().map(|g| (g.title.clone(), group(g))).collect();
    json!({
        "uri": info.uri(),
        "driver": info.driver,
        "index": device.index,
        "path": info.path,
        "name": info.name,
        "kind": info.kind,
        "target": info.target,
        "usable": info.unusable.is_none(),
        "unusable_because": info.unusable,
        "not_chosen_because": device.rank.ruled_out,
        "executable_formats": info.executable_formats,
        "external_memory": info.external_memory,
        "score": {"total": device.rank.score.total, "items": items},
        "properties": pairs(&info.properties),
        "groups": groups,
        "capabilities": record,
    })
}

fn pairs(entries: &[(String, String)]) -> Map<String, Value> {
    entries.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect()
}

/// Names without values are a list; names may repeat where they have values (matrix shapes do), so those are pairs.
fn group(group: &InfoGroup) -> Value {
    if group.entries.iter().all(|(_, value)| value.is_empty()) {
        return group.entries.iter().map(|(name, _)| name.clone()).collect();
    }
    let object = pairs(&group.entries);
    if object.len() == group.entries.len() {
        return object.into();
    }
    group.entries.iter().map(|(name, value)| json!([name, value])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_lose_no_entry() {
        let entry = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let of = |entries| group(&InfoGroup { title: "t".into(), entries });
        assert_eq!(of(vec![entry("a", ""), entry("b", "")]), json!(["a", "b"]));
        assert_eq!(of(vec![entry("a", "1"), entry("b", "")]), json!({"a": "1", "b": ""}));
        assert_eq!(of(vec![entry("a", "1"), entry("a", "2")]), json!([["a", "1"], ["a", "2"]]));
    }
}
