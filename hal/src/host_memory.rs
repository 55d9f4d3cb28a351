//! How much memory of the host this process may have: devices on processors share it with everything else.

/// Bytes of memory that this process may use, as far as the system says: what is installed, or less in a container.
pub fn available() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok();
    let limit = groups.and_then(|groups| group_limit(&groups, &|path| std::fs::read_to_string(path).ok()));
    match (installed(), limit) {
        (Some(installed), Some(limit)) => Some(installed.min(limit)),
        (one, other) => one.or(other),
    }
}

/// The lowest limit of memory of the control groups that a process is in (the text of `/proc/self/cgroup`), and of those above
/// them. Both versions of control groups; files come from `read`.
fn group_limit(groups: &str, read: &dyn Fn(&str) -> Option<String>) -> Option<u64> {
    let mut least: Option<u64> = None;
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let (root, name) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            list if list.split(',').any(|one| one == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        // A container may see its own group as the root, whatever the path says: the root is looked at, too.
        let mut path = path.trim_end_matches('/');
        loop {
            let limit = read(&format!("{root}{path}/{name}")).and_then(|text| text.trim().parse().ok());
            least = [least, limit].into_iter().flatten().min();
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
        assert_eq!(group_limit("0::/a/b\n", &read), Some(4096));
        assert_eq!(group_limit("5:cpu,memory:/x\n1:name=systemd:/x\n0::/\n", &read), Some(1000));
        assert_eq!(group_limit("0::/\n", &read), None);
        assert_eq!(group_limit("nonsense\n3:cpu:/a", &read), None);
        assert!(available().unwrap() <= installed().unwrap());
    }
}
