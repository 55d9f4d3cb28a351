//! Hints about hardware as JSON, which estimates depend on.

use halite_targets::HardwareHints;
use serde_json::{Map, Value as Json, json};

/// The hints that are known, by name.
pub(super) fn json(hints: &HardwareHints) -> Json {
    let HardwareHints {
        compute_units,
        max_invocations_per_unit,
        local_memory_per_unit_bytes,
        registers_per_unit,
        max_registers_per_invocation,
        memory_bandwidth_gbps,
        ..
    } = hints;
    let all = [
        ("compute_units", compute_units),
        ("max_invocations_per_unit", max_invocations_per_unit),
        ("local_memory_per_unit_bytes", local_memory_per_unit_bytes),
        ("registers_per_unit", registers_per_unit),
        ("max_registers_per_invocation", max_registers_per_invocation),
        ("memory_bandwidth_gbps", memory_bandwidth_gbps),
    ];
    let known = all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), json!((*value)?))));
    Json::Object(known.collect::<Map<_, _>>())
}

/// The hints of [`json`]; those that are not in it are not known.
pub(super) fn read(json: &Json) -> HardwareHints {
    let get = |name: &str| json.get(name)?.as_u64().and_then(|value| u32::try_from(value).ok());
    HardwareHints {
        compute_units: get("compute_units"),
        max_invocations_per_unit: get("max_invocations_per_unit"),
        local_memory_per_unit_bytes: get("local_memory_per_unit_bytes"),
        registers_per_unit: get("registers_per_unit"),
        max_registers_per_invocation: get("max_registers_per_invocation"),
        memory_bandwidth_gbps: get("memory_bandwidth_gbps"),
        ..HardwareHints::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_read_again() {
        let hints = HardwareHints {
            compute_units: Some(132),
            memory_bandwidth_gbps: Some(4800),
            ..HardwareHints::default()
        };
        assert_eq!(read(&json(&hints)), hints);
        assert_eq!(read(&json!({"compute_units": -1})), HardwareHints::default());
    }
}
