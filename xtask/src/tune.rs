//! Starting the measurements that choose kernels.

use anyhow::Result;
use clap::Args;

use crate::bench;

/// What to measure.
#[derive(Args)]
pub struct Options {
    /// Arguments of `bench tune`: --device URI, --op OPERATION, --match TEXT, --budget SECONDS, --out FILE,
    /// --dry-run.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

/// Builds in release mode and measures.
pub fn run(options: &Options) -> Result<()> {
    bench::program("tune", &options.rest)
}
