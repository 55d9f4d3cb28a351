//! How much memory of the host this process may have: devices on processors share it with everything else.

/// Bytes of memory that this process may use, as far as the system says: what is installed, or less in a container.
pub fn available() -> Option<u64> {
    match (installed(), least(&group_limit)) {
        (Some(installed), Some(limit)) => Some(installed.min(limit)),
        (one, other) => one.or(other),
    }
}

/// Bytes of a container's memory that buffers leave to others at most.
const MOST_KEPT_BACK: u64 = 256 << 20;

/// Bytes that buffers of a device on the processor may have. In a container that is not all that is left: the program needs some
/// of it, and so do compilers of kernels. The system ends a process that takes more.
pub fn for_buffers() -> Option<u64> {
    let left = left().map(|left| left - (left / 4).min(MOST_KEPT_BACK));
    [available(), left].into_iter().flatten().min()
}

/// Bytes that are left of the memory of the container that this process is in; `None` where it is in none. Pages of files are not
/// in use: the system gives them up.
pub fn left() -> Option<u64> {
    least(&group_rest)
}

/// A control group with its files of one version.
struct Group<'a> {
    folder: String,
    limit: &'static str,
    usage: &'static str,
    /// What its statistics call pages of files.
    files: [&'static str; 2],
    read: &'a dyn Fn(&str) -> Option<String>,
}

impl Group<'_> {
    fn number(&self, name: &str) -> Option<u64> {
        (self.read)(&format!("{}/{name}", self.folder))?.trim().parse().ok()
    }
}

fn group_limit(group: &Group<'_>) -> Option<u64> {
    group.number(group.limit)
}

fn group_rest(group: &Group<'_>) -> Option<u64> {
    let (limit, usage) = (group.number(group.limit)?, group.number(group.usage)?);
    let statistics = (group.read)(&format!("{}/memory.stat", group.folder)).unwrap_or_default();
    let files = statistics.lines().filter_map(|line| {
        let (name, bytes) = line.split_once(' ')?;
        group.files.contains(&name).then(|| bytes.trim().parse::<u64>().ok()).flatten()
    });
    Some(limit.saturating_sub(usage.saturating_sub(files.sum())))
}

fn least(of: &dyn Fn(&Group<'_>) -> Option<u64>) -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    least_of(&groups, &|path| std::fs::read_to_string(path).ok(), of)
}

/// The lowest number of the control groups that a process is in (the text of `/proc/self/cgroup`), and of those above them. Both
/// versions of control groups; files come from `read`.
fn least_of(
    groups: &str,
    read: &dyn Fn(&str) -> Option<String>,
    of: &dyn Fn(&Group<'_>) -> Option<u64>,
) -> Option<u64> {
    let mut least: Option<u64> = None;
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let (root, limit, usage, files) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max", "memory.current", ["inactive_file", "active_file"]),
            list if list.split(',').any(|one| one == "memory") => (
                "/sys/fs/cgroup/memory",
                "memory.limit_in_bytes",
                "memory.usage_in_bytes",
                ["total_inactive_file", "total_active_file"],
            ),
            _ => continue,
        };
        // A container may see its own group as the root, whatever the path says: the root is looked at, too.
        let mut path = path.trim_end_matches('/');
        loop {
            let group = Group { folder: format!("{root}{path}"), limit, usage, files, read };
            least = [least, of(&group)].into_iter().flatten().min();
            let Some(above) = path.rfind('/') else { break };
            path = &path[..above];
        }
    }
    least
}

/// Bytes of memory that the machine has, as far as the system says.
fn installed() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_containers_count() {
        let read = |path: &str| {
            let text = match path {
                "/sys/fs/cgroup/a/b/memory.max" => "max",
                "/sys/fs/cgroup/a/memory.max" => "4096\n",
                "/sys/fs/cgroup/memory/x/memory.limit_in_bytes" => "9223372036854771712",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes" => "1000",
                _ => return None,
            };
            Some(text.to_owned())
        };
        let limit = |groups| least_of(groups, &read, &group_limit);
        assert_eq!(limit("0::/a/b\n"), Some(4096));
        assert_eq!(limit("5:cpu,memory:/x\n1:name=systemd:/x\n0::/\n"), Some(1000));
        assert_eq!(limit("0::/\n"), None);
        assert_eq!(limit("nonsense\n3:cpu:/a"), None);
        assert!(available().unwrap() <= installed().unwrap() && for_buffers() <= available());
    }

    #[test]
    fn pages_of_files_are_left() {
        let read = |path: &str| {
            let text = match path {
                "/sys/fs/cgroup/a/b/memory.max" | "/sys/fs/cgroup/memory/x/memory.limit_in_bytes" => "9000",
                "/sys/fs/cgroup/a/b/memory.current" => "5000\n",
                "/sys/fs/cgroup/a/b/memory.stat" => "anon 100\ninactive_file 1200\nactive_file 300\n",
                // More is in use above, beside this group.
                "/sys/fs/cgroup/a/memory.max" => "10000",
                "/sys/fs/cgroup/a/memory.current" => "9900",
                "/sys/fs/cgroup/memory/x/memory.usage_in_bytes" => "9900",
                "/sys/fs/cgroup/memory/x/memory.stat" => "active_file 7\ntotal_active_file 1000\n",
                _ => return None,
            };
            Some(text.to_owned())
        };
        let rest = |groups| least_of(groups, &read, &group_rest);
        assert_eq!(rest("0::/a/b\n"), Some(100));
        assert_eq!(rest("4:memory:/x\n"), Some(100), "9000 of 8900");
        assert_eq!(rest("0::/c\n"), None);
    }
}
