//! The tool `halite bench`, or `benchmark-module`: measures calls of exported functions and reports them as Google Benchmark does:
//! `runner` measures, `stats` has the statistics, `report` the formats.

mod all;
mod generate;
mod ops;
mod pattern;
mod pinned;
mod report;
mod runner;
mod stats;

use std::{io::Write, path::PathBuf, time::Duration};

use clap::{Parser, ValueEnum};

use crate::{
    console::{self, CommonFlags, Failure, Result, Tool},
    devices,
    flags::{self, DeviceFlags, InputFlags, ModuleFlags},
    foreign,
    interrupt::cancel_on_interrupt,
    page, session, whole,
};

pub(crate) use ops::{Account, OpsReport, Row};

const EXAMPLES: &str = "\
Examples:
  Measure one function:
    halite bench --module=model.vmfb --function=main --input=@image.npy
  Ten iterations, five times, as JSON in a file, the table on the terminal:
    halite bench --module=model.vmfb --function=main --input=1x64xf32=0 --benchmark_min_time=10x \\
        --benchmark_repetitions=5 --benchmark_out=result.json
  Where a call spends its time, and a trace of it:
    halite bench --module=model.onnx --input=@image.npy --ops --trace=trace.json
  Tokens per second of a language model:
    halite bench model.gguf --generate pp512 tg128
  Every exported function that takes no inputs; a model whose sizes are fixed, with inputs that are made up:
    halite bench --device=vulkan --module=model.vmfb
    halite bench model.onnx

Times are wall-clock times of whole calls, results on the device. The column CPU is processor time of the process.
Beside the original's columns each line has the shortest call (min) and percentiles (p50, p90, p99). Start-up times
(load, devices, init, first call) and peak memory go to standard error, or into the context of JSON.
";

/// Measures a model (.onnx, .pte) or functions of compiled modules (.vmfb) on a device.
///
/// Takes the flags of iree-benchmark-module and prints the same table. Names of flags may be written with dashes or
/// underscores; --flagfile=FILE reads flags from a file, one per line.
#[derive(Parser, Clone, Debug)]
#[command(version = console::VERSION, after_help = EXAMPLES, after_long_help = long_help(), max_term_width = 110)]
pub struct Flags {
    #[command(flatten)]
    modules: ModuleFlags,
    #[command(flatten)]
    inputs: InputFlags,
    #[command(flatten)]
    measure: MeasureFlags,
    #[command(flatten)]
    devices: DeviceFlags,
    /// Prints memory statistics of the devices to standard error
    #[arg(long = "print_statistics", visible_alias = "print_device_statistics", help_heading = "General")]
    print_statistics: bool,
    /// Gives up after this many seconds
    #[arg(long, value_parser = flags::seconds, value_name = "SECONDS", help_heading = "General")]
    timeout: Option<Duration>,
    #[command(flatten)]
    common: CommonFlags,
}

/// How is measured and reported.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "Measurement")]
pub(crate) struct MeasureFlags {
    /// How long each repetition runs at least: 0.5s, or an exact number of iterations: 10x
    #[arg(long = "benchmark_min_time", default_value = "0.5s", value_name = "TIME")]
    min_time: Duty,
    /// How often each measurement is repeated; more than one adds mean, median, stddev and cv. Default: 1, and 5 with
    /// --generate
    #[arg(long = "benchmark_repetitions", value_parser = clap::value_parser!(u32).range(1..=100_000), value_name = "N")]
    repetitions: Option<u32>,
    /// Seconds of calls before measuring, to wake up the device. Default: 0.5 on GPUs, else 0; one call at least
    #[arg(long, visible_alias = "benchmark_min_warmup_time", value_parser = flags::seconds, value_name = "SECONDS")]
    warmup: Option<Duration>,
    /// Copies the inputs from the host and the results back to it in each call that is measured
    #[arg(long = "with-transfers", alias = "with_transfers")]
    with_transfers: bool,
    /// Has the inputs of --with-transfers in memory that the device reads by itself, as programs have them that fill inputs where they lie:
    /// the processor copies nothing
    #[arg(long = "pinned-inputs", requires = "with_transfers")]
    pinned_inputs: bool,
    /// Measures the calls of a sequence: state lives on the device from call to call, and is not given with --input
    #[arg(long = "in-sequence", alias = "in_sequence")]
    in_sequence: bool,
    /// Functions to measure: a part of the name BM_FUNCTION, with . * ^ $ | as in regular expressions; a leading -
    /// excludes
    #[arg(long = "benchmark_filter", default_value = "", value_name = "PATTERN", allow_hyphen_values = true)]
    filter: String,
    /// Measures on every device at hand, in one table, and says which of them is the fastest, the processor included
    #[arg(long = "all-devices", alias = "all_devices", conflicts_with_all = ["ops", "trace", "etdump", "html", "out"])]
    all_devices: bool,
    /// Shows where a call spends its time: every operation of the model with its kernel, what the device reaches of its
    /// ceilings, copies, gaps, and the host
    #[arg(long)]
    ops: bool,
    /// Rows of each table of --ops; 0 for all. JSON has all in any case
    #[arg(long = "ops-limit", alias = "ops_limit", default_value = "20", value_name = "N")]
    ops_limit: usize,
    /// Writes the last calls as a trace that https://ui.perfetto.dev opens (Chrome's trace events)
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Writes the profiled calls as an ETDump file, which ExecuTorch's Inspector reads
    #[arg(long, value_name = "FILE")]
    etdump: Option<PathBuf>,
    /// Writes what --ops says as a page for a browser
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Measures a language model (.gguf) instead of its functions: tokens per second of prompts (pp512), of generation (tg128)
    /// and of several sequences that write together (tg128x8, tokens of all), with --benchmark_repetitions of each
    #[arg(long, num_args = 1.., value_delimiter = ',', value_name = "TEST", conflicts_with_all = ["ops", "trace", "etdump", "html", "out", "all_devices"])]
    generate: Vec<generate::Test>,
    #[command(flatten)]
    caches: crate::text_flags::CacheTypeFlags,
    #[command(flatten)]
    choice: crate::text_flags::ChoiceFlags,
    #[command(flatten)]
    decoder: crate::text_flags::DecoderFlags,
    #[command(flatten)]
    draft: crate::text_flags::DraftFlags,
    /// Work items of one call, for items_per_second
    #[arg(long = "batch_size", default_value = "1", value_parser = clap::value_parser!(u32).range(1..), value_name = "N")]
    batch_size: u32,
    /// Unit of times: ns, us, ms, s
    #[arg(
        long = "time_unit",
        visible_alias = "benchmark_time_unit",
        value_enum,
        default_value = "ms",
        value_name = "UNIT"
    )]
    time_unit: TimeUnit,
    /// Format on standard output
    #[arg(long = "benchmark_format", value_enum, default_value = "console", value_name = "FORMAT")]
    format: Format,
    /// The same as --benchmark_format=json; failures are JSON, too
    #[arg(long)]
    json: bool,
    /// Also writes the report to a file
    #[arg(long = "benchmark_out", value_name = "FILE")]
    out: Option<PathBuf>,
    /// Format of that file
    #[arg(long = "benchmark_out_format", value_enum, default_value = "json", value_name = "FORMAT")]
    out_format: Format,
    /// Reports only aggregates of repetitions
    #[arg(long = "benchmark_report_aggregates_only", visible_alias = "benchmark_display_aggregates_only")]
    aggregates_only: bool,
    /// Lists the measurements instead of taking them
    #[arg(long = "benchmark_list_tests")]
    list_tests: bool,
}

impl MeasureFlags {
    /// Caches and chosen tokens are those of language models.
    fn check_caches(&self) -> Result<()> {
        let is_given = self.caches.are_given()
            || self.choice.is_given()
            || self.decoder.has_tokenizer()
            || self.draft.draft.is_some();
        if is_given && self.generate.is_empty() {
            let text = "--cache-type-k, --cache-type-v, --choose-on, --tokenizer and --draft go with --generate, which measures a language model";
            return Err(Failure::Usage(text.to_owned()));
        }
        match self.draft.draft.is_some() && !self.generate.iter().all(|test| test.can_draft()) {
            true => Err(Failure::Usage(
                "--draft goes with tests of one text that is generated, such as tg128".into(),
            )),
            false => Ok(()),
        }
    }

    /// Format on standard output.
    fn format(&self) -> Format {
        if self.json { Format::Json } else { self.format }
    }
}

/// How long a repetition runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Duty {
    /// At least this long.
    Time(Duration),
    /// Exactly so many iterations.
    Iterations(u64),
}

impl std::str::FromStr for Duty {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text.strip_suffix('x') {
            Some(count) => match count.parse() {
                Ok(0) | Err(_) => Err(format!("'{text}' is not a number of iterations such as 10x")),
                Ok(count) => Ok(Duty::Iterations(count)),
            },
            None => flags::seconds(text).map(Duty::Time),
        }
    }
}

/// Unit of reported times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TimeUnit {
    Ns,
    Us,
    Ms,
    S,
}

impl TimeUnit {
    pub(crate) fn name(self) -> &'static str {
        match self {
            TimeUnit::Ns => "ns",
            TimeUnit::Us => "us",
            TimeUnit::Ms => "ms",
            TimeUnit::S => "s",
        }
    }

    /// Seconds in this unit.
    pub(crate) fn of(self, seconds: f64) -> f64 {
        seconds
            * match self {
                TimeUnit::Ns => 1e9,
                TimeUnit::Us => 1e6,
                TimeUnit::Ms => 1e3,
                TimeUnit::S => 1.0,
            }
    }
}

/// Report format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Console,
    Json,
    Csv,
}

fn long_help() -> String {
    format!("{EXAMPLES}\n{}", foreign::help_text())
}

impl Tool for Flags {
    fn common(&self) -> &CommonFlags {
        &self.common
    }

    fn json(&self) -> bool {
        self.measure.format() == Format::Json
    }

    fn run(self) -> Result<()> {
        run(&self)
    }
}

fn run(flags: &Flags) -> Result<()> {
    let mut out = std::io::stdout().lock();
    if devices::answer_queries(&flags.devices, &mut out)? {
        return Ok(());
    }
    let cancel = cancel_on_interrupt();
    if flags.measure.all_devices {
        return all::run(flags, &cancel, &mut out);
    }
    flags.measure.check_caches()?;
    if !flags.measure.generate.is_empty() {
        return generate::run(flags, &flags.measure.generate, &cancel, &mut out);
    }
    let prepared = runner::prepare(flags, &cancel)?;
    if prepared.functions.is_empty() {
        let filter = if flags.measure.filter.is_empty() { "." } else { &flags.measure.filter };
        return Err(Failure::Usage(format!(
            "failed to match any benchmarks against '{filter}'; functions whose inputs have open sizes need \
             --function and --input. Exported: {}",
            prepared.exported.join(", ")
        )));
    }
    if flags.measure.list_tests {
        for function in &prepared.functions {
            writeln!(out, "{}", runner::benchmark_name(function.name()))?;
        }
        return Ok(());
    }
    let runs = runner::measure(flags, &prepared)?;
    let context = runner::context(&prepared, &runs);
    let ops = profile(flags, &prepared, &runs)?;
    report::print_context(&context);
    let settings =
        report::Settings { unit: flags.measure.time_unit, aggregates_only: flags.measure.aggregates_only };
    report::write(flags.measure.format(), &runs, (&context, ops.as_ref()), settings, &mut out)?;
    if let Some(ops) = ops.as_ref().filter(|_| flags.measure.format() == Format::Console) {
        ops::write(ops, flags.measure.ops_limit, &mut out)?;
    }
    out.flush()?;
    if let Some(path) = &flags.measure.out {
        let mut bytes = Vec::new();
        report::write(flags.measure.out_format, &runs, (&context, ops.as_ref()), settings, &mut bytes)?;
        whole::write(path, |out| out.write_all(&bytes))?;
    }
    if flags.print_statistics {
        session::print_statistics(&prepared.session);
    }
    session::check_validation()
        .map_err(|failure| if flags.json() { failure.beside_results() } else { failure })
}

/// Profiles calls where a flag asks for it, and writes the trace and the page; what `--ops` shows, if it was given.
fn profile(flags: &Flags, prepared: &runner::Prepared, runs: &[runner::Run]) -> Result<Option<OpsReport>> {
    let MeasureFlags { ops, trace, etdump, html, .. } = &flags.measure;
    if !*ops && trace.is_none() && etdump.is_none() && html.is_none() {
        return Ok(None);
    }
    let report = ops::profile(flags, prepared, runs)?;
    if let Some(file) = html {
        page::write(file, &page::bench(&report))?;
    }
    Ok(Some(report).filter(|_| *ops))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn min_time_forms() {
        assert_eq!("0.5s".parse(), Ok(Duty::Time(Duration::from_millis(500))));
        assert_eq!("2".parse(), Ok(Duty::Time(Duration::from_secs(2))));
        assert_eq!("10x".parse(), Ok(Duty::Iterations(10)));
        for bad in ["", "0x", "x", "-1s", "abc", "nan"] {
            assert!(bad.parse::<Duty>().is_err(), "{bad}");
        }
    }
}
