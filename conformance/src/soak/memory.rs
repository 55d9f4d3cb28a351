//! The question how much memory the process has. Linux only.

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
    use std::process::Command;

    use super::*;

    /// Set in the process that has nothing else to do.
    const ALONE: &str = "HALITE_TEST_ALONE";
    const BLOCK: u64 = 64 << 20;

    /// In a process of its own: in this one, other tests allocate and give back between two looks.
    #[test]
    #[cfg(target_os = "linux")]
    fn memory_that_is_touched_is_resident() {
        if std::env::var_os(ALONE).is_none() {
            let mut child = Command::new(std::env::current_exe().expect("Linux tells"));
            child
                .args(["--exact", "soak::memory::tests::memory_that_is_touched_is_resident"])
                .env(ALONE, "1");
            let output = child.output().expect("the test's own program starts");
            let told = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && told.contains("1 passed"), "{told}");
            return;
        }
        let before = resident_bytes().expect("Linux tells");
        let block = vec![1u8; BLOCK as usize];
        let grown = resident_bytes().expect("Linux tells").saturating_sub(before);
        assert!((BLOCK / 8 * 7..=BLOCK / 8 * 9).contains(&grown), "{grown} of {}", block.len());
    }
}
