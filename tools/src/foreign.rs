//! The flags of IREE's tools that have no meaning here, and what to say about each.

use std::fmt::Write as _;

/// What to do with a flag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It asks for what happens anyway.
    Accept,
    /// Results are the same without it; the text says so.
    Warn(String),
    /// The user would wait in vain for what it asks; the text says what to do.
    Refuse(String),
}

/// Why a flag means nothing, and whether that can be passed over.
#[derive(Clone, Copy, Debug)]
enum Policy {
    /// Only affects speed or another device.
    Ignore(&'static str),
    /// Asks for an effect that does not exist here.
    Refuse(&'static str),
}

use Policy::{Ignore, Refuse};

const OTHER_DRIVER: Policy = Ignore("it configures a driver that this tool does not have");
const CPU_DRIVER: Policy = Ignore(
    "CPU devices are configured by their URI here, such as local-task?threads=4 (docs/reference/cpu-driver.md)",
);
const PROFILE: Policy = Refuse(
    "device profiles are not written; benchmark-module measures calls, and GPU tools see named objects",
);
const REPLAY: Policy = Refuse("replay files are not written");
const CAPTURE: Policy =
    Refuse("captures are not started from here; run the tool under the capture tool instead");
const OWN_SCHEDULE: Policy = Ignore("the Vulkan driver here caches and schedules in its own way");

/// (flag, its default in IREE's tools, what to do with another value).
const FLAGS: &[(&str, &str, Policy)] = &[
    ("agents_md", "false", Refuse("there is no such text; see --help")),
    ("cuda_allow_inline_execution", "false", OTHER_DRIVER),
    ("cuda_async_allocations", "true", OTHER_DRIVER),
    ("cuda_default_index", "0", OTHER_DRIVER),
    ("cuda_default_index_from_mpi", "true", OTHER_DRIVER),
    ("cuda_tracing", "2", OTHER_DRIVER),
    ("cuda_use_streams", "true", OTHER_DRIVER),
    (
        "device_allocator",
        "",
        Ignore("each driver has one allocator, with pools, suballocation and caching built in"),
    ),
    ("device_capture_file", "", CAPTURE),
    ("device_capture_label", "", CAPTURE),
    ("device_capture_tool", "", CAPTURE),
    (
        "device_lead_allocator",
        "0",
        Refuse("inputs are placed on the first device; change the order of --device"),
    ),
    ("device_profiling_counter", "", PROFILE),
    ("device_profiling_filter_command_buffer", "-1", PROFILE),
    ("device_profiling_filter_command_index", "-1", PROFILE),
    ("device_profiling_filter_function", "", PROFILE),
    ("device_profiling_filter_physical_device", "-1", PROFILE),
    ("device_profiling_filter_queue", "-1", PROFILE),
    ("device_profiling_flush_interval_ms", "0", PROFILE),
    ("device_profiling_mode", "", PROFILE),
    ("device_profiling_output", "", PROFILE),
    ("device_replay_file_policy", "reference", REPLAY),
    ("device_replay_file_validation", "identity", REPLAY),
    ("device_replay_output", "", REPLAY),
    ("dump_task_topologies", "false", Refuse("there are no CPU task devices here")),
    ("executable_plugin", "", Refuse("executables cannot import from plugins here")),
    ("hip_allow_inline_execution", "false", OTHER_DRIVER),
    ("hip_async_allocations", "true", OTHER_DRIVER),
    ("hip_async_caching", "true", OTHER_DRIVER),
    ("hip_default_index", "0", OTHER_DRIVER),
    ("hip_dylib_path", "", OTHER_DRIVER),
    ("hip_tracing", "2", OTHER_DRIVER),
    ("hip_use_streams", "true", OTHER_DRIVER),
    ("instrument_file", "", Refuse("instrumented modules are not supported")),
    ("task_abort_on_failure", "false", CPU_DRIVER),
    ("task_topology_cpu_ids", "", CPU_DRIVER),
    ("task_topology_distribution", "scatter", CPU_DRIVER),
    ("task_topology_favor", "", CPU_DRIVER),
    ("task_topology_group_count", "0", CPU_DRIVER),
    ("task_topology_max_group_count", "64", CPU_DRIVER),
    ("task_topology_mode", "physical_cores", CPU_DRIVER),
    ("task_topology_nodes", "current", CPU_DRIVER),
    ("task_topology_performance_level", "any", CPU_DRIVER),
    ("task_topology_snapshot", "", CPU_DRIVER),
    ("task_worker_local_memory", "0", CPU_DRIVER),
    ("task_worker_spin_us", "0", CPU_DRIVER),
    ("task_worker_stack_size", "131072", CPU_DRIVER),
    (
        "trace_execution",
        "false",
        Refuse("the interpreter has no trace; dump-module shows the code, and errors name the place"),
    ),
    ("vulkan_cached_bda_replay_instances", "16", OWN_SCHEDULE),
    ("vulkan_cached_bda_replay_publication_bytes", "67108864", OWN_SCHEDULE),
    ("vulkan_retained_cached_bda_replay_instances", "1", OWN_SCHEDULE),
    ("vulkan_sparse_binding", "false", Ignore("buffers are not sparse here")),
    ("vulkan_sparse_residency", "false", Ignore("buffers are not sparse here")),
    ("vulkan_tracing", "true", Ignore("there are no Vulkan profiling streams to put events into")),
];

/// What to do with `--name[=value]`; `None` when the flag is not in the table.
pub(crate) fn judge(name: &str, value: Option<&str>) -> Option<Verdict> {
    let (_, default, policy) = FLAGS.iter().find(|(flag, _, _)| *flag == name)?;
    let value = value.unwrap_or("true").trim_matches('"');
    if value == *default {
        return Some(Verdict::Accept);
    }
    Some(match policy {
        Ignore(why) => Verdict::Warn(format!("--{name} has no effect: {why}")),
        Refuse(why) => Verdict::Refuse(format!("--{name}={value} is not supported: {why}")),
    })
}

/// The end of `--help`: which of IREE's flags are accepted and do nothing, and which are refused.
pub(crate) fn help_text() -> String {
    let names = |wanted: fn(&Policy) -> bool| {
        FLAGS.iter().filter(|(_, _, p)| wanted(p)).fold(String::new(), |mut text, (name, _, _)| {
            write!(text, "{}{name}", if text.is_empty() { "" } else { ", " })
                .expect("writing to a string cannot fail");
            text
        })
    };
    format!(
        "Flags of IREE's tools that change nothing here (a warning says so): {}.\n\nFlags of IREE's tools that are \
         refused unless they have their default value: {}.",
        names(|p| matches!(p, Ignore(_))),
        names(|p| matches!(p, Refuse(_)))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_is_sorted_and_judges() {
        assert!(FLAGS.is_sorted_by_key(|(name, _, _)| *name));
        assert_eq!(judge("hip_tracing", Some("2")), Some(Verdict::Accept));
        assert_eq!(judge("task_topology_mode", Some("\"physical_cores\"")), Some(Verdict::Accept));
        assert!(matches!(judge("hip_tracing", Some("1")), Some(Verdict::Warn(_))));
        assert!(matches!(judge("agents_md", None), Some(Verdict::Refuse(_))));
        assert_eq!(judge("module", Some("x")), None);
        assert!(help_text().contains("cuda_tracing") && help_text().contains("device_replay_output"));
    }
}
