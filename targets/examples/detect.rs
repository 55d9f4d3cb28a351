//! Prints the targets of devices from their capabilities, and what kernels may use there:
//!
//!     list-devices --json > report.json
//!     cargo run -q -p halite-targets --example detect -- report.json [TRIPLE …]
//!
//! The file is a report of `list-devices`, or the record of one device. Triples are ranked as targets of a module.

use std::{env, error::Error, fs};

use halite_facts::DeviceFacts;
use halite_targets::Target;
use serde_json::Value;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args().skip(1);
    let path = args.next().ok_or("usage: detect REPORT.json [TRIPLE …]")?;
    let candidates = args.map(|triple| Target::parse(&triple)).collect::<Result<Vec<_>, _>>()?;
    let text = fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
    let json: Value = serde_json::from_str(&text).map_err(|e| format!("{path}: {e}"))?;
    let devices = match json.get("devices").and_then(Value::as_array) {
        Some(list) => {
            list.iter().filter_map(|d| d.get("capabilities")).filter(|c| c.is_object()).cloned().collect()
        }
        None => vec![json],
    };
    for device in devices {
        let facts = DeviceFacts::from_json(&device.to_string()).map_err(|e| format!("{path}: {e}"))?;
        show(&facts, &candidates);
    }
    Ok(())
}

fn show(facts: &DeviceFacts, candidates: &[Target]) {
    let found = Target::detect(facts);
    println!("{} ({}: {})", found.target, found.how, found.reasons.join("; "));
    if candidates.is_empty() {
        println!("{:#?}", found.capabilities());
    }
    for ranked in found.rank(candidates) {
        println!("{:>5}  {}: {}", ranked.rank, ranked.target, ranked.reason);
    }
}
