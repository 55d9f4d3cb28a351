//! The command `kernels`: how fast the variants of the kernel library are on one device.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow, ensure};
use clap::{Args, ValueEnum};
use halite_bench::kernels::{
    self, Bench, Caches, Chosen, Clock, Compiler, HALVES, NAMES, Options, Pace, Report, Shapes, Size,
    Summary, cores,
};
use halite_ops::Operation;
use halite_shaders::{TuningFile, Variant};
use halite_targets::Capabilities;
use halite_testing::flags::DeviceFlags;
use halite_tools::{kernels::capabilities, units};

/// Flags that choose operations.
#[derive(Args)]
pub struct Choice {
    /// Operation to measure, such as matmul:m=64,n=64,k=64; the ones of bench/kernels.txt when none is named.
    #[arg(long = "op", value_name = "OPERATION")]
    operations: Vec<String>,
    /// Only operations of the list, or random ones, whose text contains this.
    #[arg(long = "match", default_value = "")]
    filter: String,
}

/// Flags of the command.
#[derive(Args)]
pub struct Flags {
    #[command(flatten)]
    device: DeviceFlags,
    #[command(flatten)]
    what: Choice,
    /// Only variants whose name contains this.
    #[arg(long, default_value = "")]
    variant: String,
    /// Print the operations and measure none.
    #[arg(long)]
    list: bool,
    /// Print one JSON object instead of tables.
    #[arg(long)]
    json: bool,
    /// Measure N random shapes of each operation that --op names (by name alone; default: all that there are) in the place of given ones.
    #[arg(long, value_name = "N")]
    random: Option<u32>,
    /// The type of random shapes: f16 are larger ones, for matrix units.
    #[arg(long, value_enum, default_value_t = TypeFlag::F32, requires = "random")]
    types: TypeFlag,
    /// A variant with other parameters than the list has, such as matmul.f16.coop128x128x64+bm=160,wm=80, to be measured too; for
    /// tilings on matrix units. May be repeated.
    #[arg(long, value_name = "VARIANT+NAME=VALUE,…")]
    force: Vec<String>,
    /// How long each variant is measured, in seconds; at least five samples are taken. Default: 0.05 on GPUs, 0.3 on processors.
    #[arg(long, value_parser = seconds)]
    seconds: Option<f64>,
    /// A variant whose first sample takes so many times as long as the fastest before it has no second one.
    #[arg(long, default_value_t = Options::PATIENCE, value_name = "TIMES", value_parser = times)]
    patience: f64,
    /// How long all of it may take, in seconds. What is measured by then is printed.
    #[arg(long, value_parser = seconds)]
    budget: Option<f64>,
    /// How many pipelines are compiled at a time. Default: as many as there are cores; on GPUs one less, for what measures meanwhile.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: Option<u16>,
    /// How long the device is kept busy when it had nothing to do before, in seconds.
    #[arg(long, default_value_t = 0.5, value_parser = seconds)]
    warm_up: f64,
    /// Operations with more arithmetic than this are checked against another variant instead of the reference.
    #[arg(long, default_value_t = 6e8)]
    reference_flops: f64,
    /// Whether runs find their inputs in caches.
    #[arg(long, value_enum, default_value_t = CacheFlag::Auto)]
    caches: CacheFlag,
    /// What seconds are.
    #[arg(long, value_enum, default_value_t = ClockFlag::Wall)]
    clock: ClockFlag,
    /// Seed of the inputs, and of random shapes.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Also measure what iree-compile makes of each operation (matmul and conv2d) for its default Vulkan target, in turns
    /// with the first and the fastest variant.
    #[arg(long)]
    against_iree: bool,
    /// The compiler for that.
    #[arg(long, value_name = "PROGRAM", default_value = "iree-compile")]
    iree_compile: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TypeFlag {
    /// 32-bit floats.
    F32,
    /// 16-bit floats.
    F16,
}

#[derive(Clone, Copy, ValueEnum)]
enum ClockFlag {
    /// Those of the day.
    Wall,
    /// Those that processors worked for this process: for devices on a processor that others use too.
    Processor,
}

#[derive(Clone, Copy, ValueEnum)]
enum CacheFlag {
    /// Cold where memory decides the speed.
    Auto,
    /// Runs take turns on buffers that are larger than caches.
    Cold,
    /// All runs use the same buffers.
    Warm,
}

impl Choice {
    /// The operations that are named, or those of the list for a size.
    pub fn operations(&self, size: Size) -> Result<Vec<Operation>> {
        if !self.operations.is_empty() {
            return self.operations.iter().map(|text| Ok(halite_shaders::parse(text)?)).collect();
        }
        let mut list = kernels::defaults(size).map_err(|why| anyhow!("bench/kernels.txt: {why}"))?;
        list.retain(|operation| operation.to_string().contains(&self.filter));
        ensure!(!list.is_empty(), "no operation has '{}' in its text; --list shows them", self.filter);
        Ok(list)
    }
}

/// A number of seconds, at most an hour.
pub fn seconds(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|e| format!("{e}"))?;
    if (0.0..=3600.0).contains(&value) { Ok(value) } else { Err("from 0 to 3600".to_owned()) }
}

/// A number that is at least 1.
fn times(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|e| format!("{e}"))?;
    if value >= 1.0 { Ok(value) } else { Err("at least 1".to_owned()) }
}

/// How long a variant is measured where nothing is said, in seconds: on GPUs, and on processors, which others disturb.
const SECONDS: (f64, f64) = (0.05, 0.3);

impl Flags {
    fn options(&self, target: &Capabilities, original: Option<Compiler>) -> Result<Options> {
        let default = if target.target.is_processor() { SECONDS.1 } else { SECONDS.0 };
        let seconds = self.seconds.unwrap_or(default);
        let forced = |name: &String| Variant::named(name).map_err(|why| anyhow!("--force {name}: {why}"));
        Ok(Options {
            pace: Pace {
                clock: match self.clock {
                    ClockFlag::Wall => Clock::Wall,
                    ClockFlag::Processor => Clock::Processor,
                },
                warm: Duration::from_secs_f64(self.warm_up),
                sample: Duration::from_secs_f64((seconds / 5.0).clamp(2e-3, 1e-2)),
                measure: Duration::from_secs_f64(seconds),
            },
            filter: self.variant.clone(),
            reference_flops: self.reference_flops,
            caches: match self.caches {
                CacheFlag::Auto => Caches::Auto,
                CacheFlag::Cold => Caches::Cold,
                CacheFlag::Warm => Caches::Warm,
            },
            seed: self.seed,
            original,
            patience: self.patience,
            jobs: self.jobs.map_or_else(|| default_jobs(target), usize::from),
            forced: self.force.iter().map(forced).collect::<Result<_>>()?,
        })
    }

    /// What is measured: what is named, the list, or random shapes.
    fn operations(&self, size: Size) -> Result<Vec<Operation>> {
        let Some(count) = self.random else { return self.what.operations(size) };
        let known = if self.types == TypeFlag::F16 { HALVES } else { NAMES };
        let named: Vec<&str> = self.what.operations.iter().map(String::as_str).collect();
        let names = if named.is_empty() { known.to_vec() } else { named };
        let mut operations = Vec::new();
        for name in names {
            ensure!(known.contains(&name), "no random shapes of '{name}'; there are {}", known.join(", "));
            let mut shapes = Shapes::new(self.seed, size);
            for _ in 0..count {
                let half = self.types == TypeFlag::F16;
                operations.push(if half { shapes.next_half(name)? } else { shapes.next(name)? });
            }
        }
        operations.retain(|operation| operation.to_string().contains(&self.what.filter));
        Ok(operations)
    }
}

/// As many pipelines are compiled at a time as there are cores. GPUs are measured meanwhile, by a thread that needs a core of its own.
fn default_jobs(target: &Capabilities) -> usize {
    if target.target.is_processor() { cores() } else { (cores() - 1).max(1) }
}

/// Measures and prints; whether every variant was right.
pub fn run(flags: &Flags) -> Result<bool> {
    let start = Instant::now();
    let compiler = flags.against_iree.then(|| Compiler::find(&flags.iree_compile)).transpose();
    let compiler = compiler.map_err(|why| anyhow!("--against-iree: {why}"))?;
    let vulkan = flags.device.device.starts_with("vulkan");
    // What the device is is not known yet.
    let threads = vulkan.then(|| ("compile_threads", flags.jobs.map_or_else(cores, usize::from).to_string()));
    let device = flags.device.opener_with(threads.as_slice())()?;
    let info = device.info().clone();
    let target = capabilities(&info).map_err(|why| anyhow!("{}: {why}", info.uri()))?;
    let operations = flags.operations(Size::of(&target))?;
    if flags.list {
        operations.iter().for_each(|operation| println!("{operation}"));
        return Ok(true);
    }
    if !flags.json {
        println!("{}, target {}", flags.device.headline(&info), target.target);
        if cfg!(debug_assertions) {
            println!(
                "# a debug build: the device is as fast as ever, what the processor does around it is not"
            );
        }
    }
    if let Some(compiler) = compiler.as_ref().filter(|_| !flags.json) {
        println!("# the original's code is that of iree-compile, {}", compiler.version());
    }
    let options = flags.options(&target, compiler)?;
    let bench =
        Bench::new(device, target, TuningFile::of_user()?.tuning(), options).context("the ceilings")?;
    if !flags.json {
        print!("{}", kernels::heading(bench.ceilings()));
    }
    let reports = measured(flags, &bench, &operations, start)?;
    if flags.json {
        println!("{:#}", kernels::json(&info, bench.target(), bench.ceilings(), &reports));
    }
    Ok(!reports.iter().any(Report::failed))
}

/// Measures until all is done or the time is over, with a line for each operation on stderr.
fn measured(flags: &Flags, bench: &Bench, operations: &[Operation], start: Instant) -> Result<Vec<Report>> {
    let end = flags.budget.and_then(|budget| start.checked_add(Duration::from_secs_f64(budget)));
    let mut reports = Vec::new();
    let count = operations.len();
    bench.measure_all(operations, end, |index, report| {
        let ratio = Chosen::of(std::slice::from_ref(&report)).map_or(1.0, |chosen| chosen.ratio());
        eprintln!(
            "[{}/{count}] {} variants, {} pieces of code so far, {}; the first choice takes {ratio:.3} times the fastest: {}",
            index + 1,
            report.rows.len(),
            bench.compiled(),
            units::seconds(start.elapsed().as_secs_f64()),
            report.operation
        );
        if !flags.json {
            print!("{}", kernels::text(&report));
        }
        reports.push(report);
    })?;
    let left = count - reports.iter().filter(|report| report.complete).count();
    if left > 0 {
        eprintln!("the time is over: {left} of {count} operations are not measured, or not by all variants");
    }
    if count > 1 {
        eprintln!("{}", Summary::of_reports(&reports).text());
    }
    Ok(reports)
}
