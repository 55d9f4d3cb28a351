//! `halite completions` and `halite man`: what is made out of the tools' flags.

use std::{fs, io, path::PathBuf};

use clap::Parser;

use super::{PROGRAM, command};
use crate::console::{self, CommonFlags, Failure, Result, Tool};

/// Prints the completion script for a shell: of all subcommands.
#[derive(Parser, Debug)]
#[command(version = console::VERSION, max_term_width = 110, after_help = "\
Examples:
  halite completions bash > /etc/bash_completion.d/halite
  halite completions fish > ~/.config/fish/completions/halite.fish
")]
pub struct Completions {
    /// The shell
    #[arg(value_name = "SHELL", required_unless_present = "completions")]
    shell: Option<clap_complete::Shell>,
    #[command(flatten)]
    common: CommonFlags,
}

impl Tool for Completions {
    fn common(&self) -> &CommonFlags {
        &self.common
    }

    fn run(self) -> Result<()> {
        if let Some(shell) = self.shell {
            console::script(shell, &mut command(), PROGRAM)?;
        }
        Ok(())
    }
}

/// Writes manual pages into a folder: halite.1 and one page for each subcommand.
#[derive(Parser, Debug)]
#[command(version = console::VERSION, max_term_width = 110, after_help = "\
Examples:
  halite man ~/.local/share/man/man1      then: man halite-run
")]
pub struct Man {
    /// The folder, such as ~/.local/share/man/man1; it is made when it is not there
    #[arg(value_name = "DIR", required_unless_present = "completions")]
    folder: Option<PathBuf>,
    #[command(flatten)]
    common: CommonFlags,
}

impl Tool for Man {
    fn common(&self) -> &CommonFlags {
        &self.common
    }

    fn run(self) -> Result<()> {
        let Some(folder) = self.folder else { return Ok(()) };
        let failed = |e: io::Error| Failure::file("cannot write manual pages into", &folder, &e);
        fs::create_dir_all(&folder).map_err(failed)?;
        // The subcommand `help` has a page in no collection.
        clap_mangen::generate_to(command().disable_help_subcommand(true), &folder).map_err(failed)
    }
}
