//! Running a program of another system, and looking at what it says.

use std::{ffi::OsString, path::Path, process::Command};

use anyhow::{Context, Result, ensure};

use crate::shell::{command, exists};

/// What a program may take. Software drivers compile kernels under an emulator.
const LIMIT_SECONDS: &str = "1800";

/// How programs of another system are started here.
pub struct Emulator {
    /// The program that comes before theirs, and its flags.
    pub before: Vec<OsString>,
    /// What it and they find in the environment.
    pub environment: Vec<(&'static str, OsString)>,
}

/// What a program did.
pub struct Ran {
    pub code: Option<i32>,
    /// Standard output and then errors.
    pub text: String,
}

impl Emulator {
    /// The command that runs a program.
    pub fn command(&self, program: &Path, args: &[&str]) -> Command {
        // A program that hangs must not hang the chore.
        let mut whole: Vec<OsString> = Vec::new();
        if exists("timeout") {
            whole.extend(["timeout", "--kill-after=10", LIMIT_SECONDS].map(OsString::from));
        }
        whole.extend(self.before.iter().cloned());
        whole.push(program.into());
        let mut run = command(&whole[0].to_string_lossy(), &[]);
        run.args(&whole[1..]).args(args);
        run.envs(self.environment.iter().map(|(name, value)| (name, value)));
        run
    }

    /// Runs a program to its end.
    pub fn run(&self, program: &Path, args: &[&str]) -> Result<Ran> {
        let mut run = self.command(program, args);
        let out = run.output().with_context(|| format!("cannot start {run:?}"))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace('\r', "");
        Ok(Ran { code: out.status.code(), text: text(&out.stdout) + &text(&out.stderr) })
    }

    /// The same; an error when it ends in another way, or does not say all of this.
    pub fn expect(&self, program: &Path, args: &[&str], code: i32, says: &[&str]) -> Result<String> {
        let ran = self.run(program, args)?;
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        let line = format!("{name} {}", args.join(" "));
        println!("$ {line}\n{}", ran.text.trim_end());
        ensure!(ran.code == Some(code), "{line} ended with {:?}, not {code}:\n{}", ran.code, ran.text);
        for part in says {
            ensure!(ran.text.contains(part), "{line} did not say '{part}':\n{}", ran.text);
        }
        Ok(ran.text)
    }
}
