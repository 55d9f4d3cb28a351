//! The steps that other chores take beside others, each in a process of its own, and that people take again by themselves.

use anyhow::Result;
use clap::Subcommand;

use crate::{
    capi, header, java, shaders,
    test::{self, Chosen},
};

/// One of these steps.
#[derive(Subcommand)]
pub enum Part {
    /// Tests of the Python package on a driver, with the extension module that the last `cargo xtask test` has put into its sources.
    Python {
        /// llvmpipe or swiftshader.
        driver: String,
        #[command(flatten)]
        chosen: Chosen,
    },
    /// Examples in the documentation.
    Examples(Chosen),
    /// Programs of a crate outside of the workspace.
    Outside,
    /// Programs in C and C++ against libhalite, not optimized.
    C,
    /// The Java interface on a desktop virtual machine, not optimized.
    Java,
    /// Whether the C headers are current.
    Headers,
    /// Whether the kept kernels are those of their templates.
    Kernels,
}

/// Takes it.
pub fn run(part: &Part) -> Result<()> {
    match part {
        Part::Python { driver, chosen } => test::python::run(chosen, driver),
        Part::Examples(chosen) => test::documentation(chosen),
        Part::Outside => test::outside(),
        Part::C => capi::run(&capi::Options::check()),
        Part::Java => java::run(&java::Options::check()),
        Part::Headers => header::run(&header::Options { check: true }),
        Part::Kernels => shaders::run(&shaders::Options { check: true, list: false, only: None }),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    /// This program as far as it matters.
    #[derive(Parser)]
    struct Program {
        #[command(subcommand)]
        part: Part,
    }

    #[test]
    fn what_is_chosen_reaches_the_part() {
        let chosen = Program::parse_from(["xtask", "examples", "--thorough", "--filter=two words"]);
        let Part::Examples(chosen) = chosen.part else { panic!("another part") };
        let args = ["xtask", "python", "llvmpipe"].map(str::to_owned).into_iter().chain(chosen.args());
        let Part::Python { driver, chosen: again } = Program::parse_from(args).part else {
            panic!("another part")
        };
        assert_eq!(driver, "llvmpipe");
        assert_eq!(again.args(), ["--filter=two words", "--thorough"]);
    }

    #[test]
    fn all_that_ci_takes_beside_others_are_parts() {
        for part in ["outside", "c", "java", "headers", "kernels"] {
            assert!(Program::try_parse_from(["xtask", part]).is_ok(), "{part}");
        }
    }
}
