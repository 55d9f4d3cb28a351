//! The account of operations as JSON. Times in seconds; fields are only ever added.

use serde_json::{Value as Json, json};

use super::rows::{Account, OpsReport, Row};

/// The accounts of all functions.
pub(in crate::bench) fn object(report: &OpsReport) -> Json {
    let ceilings = &report.ceilings;
    let functions = report.functions.iter().map(|(name, account)| function(name, account));
    json!({
        "device": report.device,
        "ceilings": {
            "source": if report.no_ceilings.is_some() { "none" } else { "measured" },
            "bytes_per_second": ceilings.bytes,
            "f32_flops": ceilings.f32,
            "f16_flops": ceilings.f16,
            "i8_ops": ceilings.i8,
        },
        "functions": functions.collect::<Vec<_>>(),
    })
}

fn function(name: &str, account: &Account) -> Json {
    let parts = &account.parts;
    let rows = |rows: &[Row]| rows.iter().map(row).collect::<Vec<_>>();
    json!({
        "name": name,
        "calls": account.calls,
        "commands": account.commands,
        "unmeasured_commands": account.unmeasured,
        "seconds_not_profiled": account.plain,
        "clock_resolution": account.resolution,
        "seconds": {
            "total": parts.total, "upload": parts.upload, "kernels": parts.kernels, "gaps": parts.gaps,
            "host": parts.host, "download": parts.download, "launch": parts.launch, "transfers": parts.transfers,
        },
        "by_node": rows(&account.by_node),
        "by_kind": rows(&account.by_kind),
        "by_kernel": rows(&account.by_kernel),
    })
}

fn row(row: &Row) -> Json {
    json!({
        "name": row.name,
        "detail": row.detail,
        "commands": row.commands,
        "seconds": row.seconds,
        "flops": row.work.map(|(flops, _)| flops),
        "bytes": row.work.map(|(_, bytes)| bytes),
        "flops_per_second": row.flops(),
        "share_of_peak_flops": row.of_peak(),
        "bytes_per_second": row.bytes(),
    })
}
