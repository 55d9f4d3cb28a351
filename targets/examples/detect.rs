//! Prints the target of a device from its capabilities, and what kernels may use there:
//!
//!     cargo run -q -p halite-targets --example detect -- drivers/vulkan/tests/caps/nvidia_h200.json [TRIPLE …]
//!
//! The file holds what the Vulkan driver records, or `Facts` as JSON. Triples are ranked as targets of a module.

use std::{env, error::Error, fs};

use halite_targets::{Facts, Target};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args().skip(1);
    let path = args.next().ok_or("usage: detect CAPABILITIES.json [TRIPLE …]")?;
    let text = fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
    let facts = match Facts::from_device_caps_json(&text) {
        Ok(facts) => facts,
        Err(record) => serde_json::from_str(&text).map_err(|e| format!("{path}: {record}; as facts: {e}"))?,
    };
    let found = Target::detect(&facts);
    println!("{} ({}: {})", found.target, found.how, found.reasons.join("; "));
    let candidates = args.map(|triple| Target::parse(&triple)).collect::<Result<Vec<_>, _>>()?;
    if candidates.is_empty() {
        println!("{:#?}", found.capabilities());
    }
    for ranked in found.rank(&candidates) {
        println!("{:>5}  {}: {}", ranked.rank, ranked.target, ranked.reason);
    }
    Ok(())
}
