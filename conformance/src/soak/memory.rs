//! Owns the question how much memory the process has. Linux only.

use std::fs;

/// Resident bytes of this process; `None` where the system does not tell. From `smaps_rollup`, which is exact, because
/// the counters behind `statm` lag by up to 64 pages for each thread; from `statm`'s sibling `status` where it is missing.
pub fn resident_bytes() -> Option<u64> {
    let field = |path: &str, name: &str| -> Option<u64> {
        let text = fs::read_to_string(path).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
    };
    field("/proc/self/smaps_rollup", "Rss:").or_else(|| field("/proc/self/status", "VmRSS:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn memory_that_is_touched_is_resident() {
        let before = resident_bytes().expect("Linux tells");
        let block = vec![1u8; 32 << 20];
        let after = resident_bytes().expect("Linux tells");
        assert!(after >= before + (30 << 20), "{before} {after} {}", block.len());
    }
}
