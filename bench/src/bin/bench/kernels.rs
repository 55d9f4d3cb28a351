//! The command `kernels`: how fast the variants of the kernel library are on one device.

use std::{path::PathBuf, time::Duration};

use anyhow::{Result, anyhow, ensure};
use clap::{Args, ValueEnum};
use halite_bench::kernels::{self, Bench, Caches, Clock, Compiler, Options, Pace, Size};
use halite_ops::Operation;
use halite_shaders::TuningFile;
use halite_testing::flags::DeviceFlags;
use halite_tools::kernels::capabilities;

/// Flags that choose operations.
#[derive(Args)]
pub struct Choice {
    /// Operation to measure, such as matmul:m=64,n=64,k=64; the ones of bench/kernels.txt when none is named.
    #[arg(long = "op", value_name = "OPERATION")]
    operations: Vec<String>,
    /// Only operations of the list whose text contains this.
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
    /// How long each variant is measured, in seconds; at least five samples are taken.
    #[arg(long, default_value_t = 1.0, value_parser = seconds)]
    seconds: f64,
    /// How long the device is kept busy before, in seconds.
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
    /// Seed of the inputs.
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

impl Flags {
    fn options(&self, original: Option<Compiler>) -> Options {
        Options {
            pace: Pace {
                clock: match self.clock {
                    ClockFlag::Wall => Clock::Wall,
                    ClockFlag::Processor => Clock::Processor,
                },
                warm: Duration::from_secs_f64(self.warm_up),
                sample: Duration::from_millis(10),
                measure: Duration::from_secs_f64(self.seconds),
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
        }
    }
}

/// Measures and prints; whether every variant was right.
pub fn run(flags: &Flags) -> Result<bool> {
    let compiler = flags.against_iree.then(|| Compiler::find(&flags.iree_compile)).transpose();
    let compiler = compiler.map_err(|why| anyhow!("--against-iree: {why}"))?;
    let device = flags.device.opener()()?;
    let info = device.info().clone();
    let target = capabilities(&info).map_err(|why| anyhow!("{}: {why}", info.uri()))?;
    let operations = flags.what.operations(Size::of(&target))?;
    if flags.list {
        operations.iter().for_each(|operation| println!("{operation}"));
        return Ok(true);
    }
    let triple = target.target.to_string();
    if !flags.json {
        println!("{}, target {triple}", flags.device.headline(&info));
        if cfg!(debug_assertions) {
            println!(
                "# a debug build: the device is as fast as ever, what the processor does around it is not"
            );
        }
    }
    if let Some(compiler) = compiler.as_ref().filter(|_| !flags.json) {
        println!("# the original's code is that of iree-compile, {}", compiler.version());
    }
    let bench = Bench::new(device, target, TuningFile::of_user()?.tuning(), flags.options(compiler))?;
    if !flags.json {
        print!("{}", kernels::heading(bench.ceilings()));
    }
    let mut reports = Vec::new();
    for operation in &operations {
        let report = bench.measure(operation)?;
        if !flags.json {
            print!("{}", kernels::text(&report));
        }
        reports.push(report);
    }
    if flags.json {
        println!("{:#}", kernels::json(&info, &triple, bench.ceilings(), &reports));
    }
    Ok(!reports.iter().any(kernels::Report::failed))
}
