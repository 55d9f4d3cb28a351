//! The page of `halite compile --html`: the operations with their kernels as a graph, memory over time, sizes.

use std::fmt::Write as _;

use halite::compile::{FunctionReport, OperationReport, Report, SizeReport, WorkReport};

use super::parts::{Page, TableRow, escaped, shortened, size};
use crate::units::si;

/// Height of an operation's row in the graph.
const ROW: f64 = 38.0;
/// Where the nodes of the graph stand; arcs are left of them.
const NODE: f64 = 170.0;
const WIDTH: f64 = 1060.0;
/// Most operations of a graph that are drawn.
const MOST: usize = 4000;

/// The page of a report.
pub(crate) fn explain(report: &Report) -> String {
    let mut page = Page::new(&format!("How {} is computed", report.module));
    page.paragraph(
        "Each row is an operation with the kernel that computes it, in the order in which they run. Lines on the left lead from \
         an operation to those that read its results. The shade behind a row is its share of the arithmetic.",
    );
    for target in &report.targets {
        let others = if target.baseline { ", for every device that no other target fits" } else { "" };
        page.heading(&format!("Target {}{others}", target.target));
        page.paragraph(&format!("{} kernels serve {} operations.", target.kernels, target.served));
        target.functions.iter().for_each(|each| function(&mut page, each));
        if !target.load.operations.is_empty() {
            page.raw("<h3>When the module is loaded</h3>");
            work(&mut page, &target.load);
        }
    }
    sizes(&mut page, &report.sizes);
    page.finish()
}

fn function(page: &mut Page, function: &FunctionReport) {
    let versions = match function.version_count {
        1 => String::new(),
        count => format!(", {count} versions of {} kinds", function.groups),
    };
    page.raw(format_args!("<h3>Function {}{versions}</h3>", escaped(&function.name)));
    for version in &function.versions {
        let ports = format!("({}) \u{2192} ({})", version.inputs.join(", "), version.outputs.join(", "));
        page.raw(format_args!("<p><code>{}</code></p>", escaped(&ports)));
        work(page, version);
    }
}

fn work(page: &mut Page, work: &WorkReport) {
    page.numbers(&[
        ("operations", work.operations.len().to_string()),
        ("dispatches", work.dispatches.to_string()),
        ("copies", work.copies.to_string()),
        ("barriers", work.barriers.to_string()),
        ("arithmetic", si(work.flops, "flop")),
        ("moved at least", size(work.bytes as u64)),
        ("memory in between", size(work.transient_bytes)),
        ("without sharing", size(work.unshared_bytes)),
    ]);
    if work.operations.is_empty() {
        return;
    }
    graph(page, &work.operations);
    if work.operations.len() > 1 {
        memory(page, &work.operations);
    }
}

/// The operations one below the other, with arcs from each to its readers.
fn graph(page: &mut Page, all: &[OperationReport]) {
    let shown = &all[..all.len().min(MOST)];
    let height = ROW * shown.len() as f64;
    let middle = |index: usize| ROW * (index as f64 + 0.5);
    let total: f64 = all.iter().map(|operation| operation.flops).sum::<f64>().max(1.0);
    let mut svg = format!(
        "<div class=\"scroll\"><svg class=\"graph\" role=\"img\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\">"
    );
    // Writing to a string does not fail.
    for (index, operation) in shown.iter().enumerate() {
        let (top, share) = (ROW * index as f64, operation.flops / total);
        let kind = operation.operation.split(':').next().unwrap_or_default();
        let place = if operation.location.is_empty() { kind } else { &operation.location };
        _ = write!(
            svg,
            "<g class=\"row\"><title>{}\n{}</title><rect class=\"share\" x=\"{NODE}\" y=\"{:.1}\" width=\"{:.1}\" \
             height=\"{:.1}\"/><text x=\"{:.1}\" y=\"{:.1}\">{}</text><text class=\"soft\" x=\"{:.1}\" y=\"{:.1}\">{}</text></g>",
            escaped(&operation.operation),
            escaped(&operation.why),
            top + 2.0,
            (share * (WIDTH - NODE)).max(1.0),
            ROW - 4.0,
            NODE + 14.0,
            top + 16.0,
            escaped(&shortened(place, 90)),
            NODE + 14.0,
            top + 30.0,
            escaped(&shortened(&described(operation, kind), 130)),
        );
        for from in operation.reads.iter().filter(|from| **from < index) {
            let (y0, y1) = (middle(*from), middle(index));
            let bend = NODE - (12.0 + 6.0 * (index - from) as f64).min(NODE - 6.0);
            _ = write!(
                svg,
                "<path class=\"edge\" d=\"M{NODE} {y0:.1}C{bend:.1} {y0:.1} {bend:.1} {y1:.1} {NODE} {y1:.1}\"/>"
            );
        }
        _ = write!(svg, "<circle class=\"node\" cx=\"{NODE}\" cy=\"{:.1}\" r=\"4\"/>", middle(index));
    }
    svg.push_str("</svg></div>");
    page.raw(svg);
    if shown.len() < all.len() {
        page.paragraph(&format!("{} more operations are in --json.", all.len() - shown.len()));
    }
}

fn described(operation: &OperationReport, kind: &str) -> String {
    let runs = if operation.dispatches == 1 {
        String::new()
    } else {
        format!(" in {} dispatches", operation.dispatches)
    };
    format!(
        "{kind} by {}{runs}, {}, {}",
        operation.variant,
        si(operation.flops, "flop"),
        size(operation.bytes as u64)
    )
}

/// Bytes of values in between while each operation runs.
fn memory(page: &mut Page, all: &[OperationReport]) {
    const HEIGHT: f64 = 150.0;
    let most = all.iter().map(|operation| operation.live_bytes).max().unwrap_or(0);
    page.raw("<h3>Memory over time</h3>");
    page.paragraph(&format!(
        "Values in between that are needed while each operation runs: {} at most. What they take is more where parts of the memory \
         do not fit together.",
        size(most)
    ));
    let wide = (WIDTH - 20.0) / all.len() as f64;
    let height = |bytes: u64| HEIGHT - (HEIGHT - 16.0) * bytes as f64 / most.max(1) as f64;
    let mut path = format!("M0 {HEIGHT}");
    for (index, operation) in all.iter().enumerate() {
        let (x, y) = (wide * index as f64, height(operation.live_bytes));
        // Writing to a string does not fail.
        _ = write!(path, "L{x:.1} {y:.1}L{:.1} {y:.1}", x + wide);
    }
    page.raw(format_args!(
        "<div class=\"scroll\"><svg class=\"memory\" role=\"img\" viewBox=\"0 0 {WIDTH} {:.0}\" width=\"{WIDTH}\"><path \
         class=\"area\" d=\"{path}L{:.1} {HEIGHT}Z\"/><path class=\"axis\" d=\"M0 {HEIGHT}H{WIDTH}\"/><text class=\"soft\" x=\"0\" \
         y=\"11\">{}</text></svg></div>",
        HEIGHT + 4.0,
        wide * all.len() as f64,
        escaped(&size(most)),
    ));
}

fn sizes(page: &mut Page, sizes: &SizeReport) {
    page.heading("The file");
    page.numbers(&[
        ("module", size(sizes.module)),
        ("constants", size(sizes.constants)),
        ("kernels", size(sizes.executables)),
        ("host code", size(sizes.bytecode)),
    ]);
    let all = sizes.executables.max(1) as f64;
    let rows = sizes.kernels.iter().map(|(name, code)| TableRow {
        name: name.clone(),
        detail: String::new(),
        share: *code as f64 / all,
        cells: vec![size(*code)],
    });
    page.table(&["kernel", "share", "size"], &rows.collect::<Vec<_>>());
}

#[cfg(test)]
mod tests {
    use halite::compile::TargetReport;

    use super::*;

    fn operation(name: &str, reads: &[usize], live_bytes: u64) -> OperationReport {
        let mut made = OperationReport::default();
        made.location = name.to_owned();
        made.operation = "matmul:m=1".to_owned();
        made.variant = "matmul.f32".to_owned();
        made.reads = reads.to_vec();
        made.live_bytes = live_bytes;
        made.flops = 10.0;
        made
    }

    #[test]
    fn the_page_draws_who_reads_whom_and_names_stay_text() {
        let mut report = Report::default();
        report.targets.push(TargetReport::default());
        report.targets[0].functions.push(FunctionReport::default());
        let function = &mut report.targets[0].functions[0];
        function.name = "main".to_owned();
        function.versions.push(WorkReport::default());
        function.versions[0].operations =
            vec![operation("<b>", &[], 64), operation("c", &[0], 96), operation("d", &[0, 1], 32)];
        let page = explain(&report);
        assert_eq!(page.matches("class=\"edge\"").count(), 3);
        assert_eq!(page.matches("class=\"node\"").count(), 3);
        assert!(page.contains("&lt;b&gt;") && !page.contains("<b>"));
        assert!(page.contains("96.0 B at most"), "{page}");
        for element in ["svg", "table", "main", "dl", "g", "div"] {
            let (open, close) = (format!("<{element}"), format!("</{element}>"));
            let opened =
                page.match_indices(&open).filter(|(at, _)| page[at + open.len()..].starts_with([' ', '>']));
            assert_eq!(opened.count(), page.matches(&close).count(), "{element}");
        }
        assert!(!page.contains("http"), "the page needs nothing from elsewhere");
    }
}
