//! The page of `halite bench --html`: what a call consists of, and where its time goes by node, kind and kernel.

use super::parts::{Page, TableRow, escaped};
use crate::{
    bench::{Account, OpsReport, Row},
    units::{seconds as time, si},
};

/// Most rows of a table.
const MOST: usize = 2000;

/// The page of profiled calls.
pub(crate) fn bench(report: &OpsReport) -> String {
    let mut page = Page::new("Where the time of a call goes");
    page.paragraph(&format!("On {}.", report.device));
    if let Some(why) = &report.no_ceilings {
        page.paragraph(&format!("What the device can do at most was not measured: {why}."));
    }
    for (name, account) in &report.functions {
        function(&mut page, name, account);
    }
    page.finish()
}

fn function(page: &mut Page, name: &str, account: &Account) {
    page.heading(&format!("Function {name}"));
    let parts = &account.parts;
    page.numbers(&[
        ("median call", time(account.plain)),
        ("profiled call", time(parts.total)),
        ("calls profiled", account.calls.to_string()),
        ("commands", format!("{:.1}", account.commands)),
        ("clock's resolution", time(account.resolution)),
    ]);
    if account.unmeasured > 0 {
        page.paragraph(&format!("{} commands were not measured.", account.unmeasured));
    }
    bar(
        page,
        &[
            ("upload", parts.upload),
            ("kernels", parts.kernels),
            ("gaps", parts.gaps),
            ("host", parts.host),
            ("download", parts.download),
        ],
    );
    let kernels = parts.kernels.max(f64::MIN_POSITIVE);
    for (title, rows) in
        [("By node", &account.by_node), ("By kind", &account.by_kind), ("By kernel", &account.by_kernel)]
    {
        page.raw(format_args!("<h3>{title}</h3>"));
        let shown: Vec<TableRow> = rows.iter().take(MOST).map(|row| table_row(row, kernels)).collect();
        page.table(
            &["what", "share of kernels", "time", "commands", "arithmetic", "memory", "of the peak"],
            &shown,
        );
        if shown.len() < rows.len() {
            page.paragraph(&format!(
                "{} more are in --ops --benchmark_format=json.",
                rows.len() - shown.len()
            ));
        }
    }
}

fn table_row(row: &Row, kernels: f64) -> TableRow {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "\u{2013}".to_owned());
    TableRow {
        name: row.name.clone(),
        detail: row.detail.clone(),
        share: row.seconds / kernels,
        cells: vec![
            time(row.seconds),
            format!("{:.1}", row.commands),
            or_dash(row.flops().map(|rate| si(rate, "flop/s"))),
            or_dash(row.bytes().map(|rate| si(rate, "B/s"))),
            or_dash(row.of_peak().map(|share| format!("{:.0} %", 100.0 * share))),
        ],
    }
}

/// The parts of a call side by side.
fn bar(page: &mut Page, parts: &[(&str, f64)]) {
    const WIDTH: f64 = 1060.0;
    let total: f64 = parts.iter().map(|(_, seconds)| seconds).sum::<f64>().max(f64::MIN_POSITIVE);
    let mut at = 0.0;
    page.raw(format_args!("<div class=\"scroll\"><svg class=\"parts\" role=\"img\" viewBox=\"0 0 {WIDTH} 56\" width=\"{WIDTH}\">"));
    for (index, (name, seconds)) in parts.iter().enumerate() {
        let wide = WIDTH * seconds / total;
        let opacity = 1.0 - 0.17 * index as f64;
        let label = format!("{name} {}", time(*seconds));
        page.raw(format_args!(
            "<g><title>{0}</title><rect class=\"node\" style=\"opacity:{opacity:.2}\" x=\"{at:.1}\" y=\"0\" width=\"{wide:.1}\" \
             height=\"24\"/></g>",
            escaped(&label)
        ));
        // A label needs room; the others are in the list below.
        if wide > 110.0 {
            page.raw(format_args!("<text x=\"{:.1}\" y=\"42\">{}</text>", at + 2.0, escaped(&label)));
        }
        at += wide;
    }
    page.raw("</svg></div>");
    let pairs: Vec<(&str, String)> = parts.iter().map(|(name, seconds)| (*name, time(*seconds))).collect();
    page.numbers(&pairs);
}
