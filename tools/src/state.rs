//! State on the command line: naming it, beginning a call with a saved one, and saving what a call leaves.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use clap::Args;
use halite::{Function, FunctionInfo, Inputs, Outputs, RunOptions, State};

use crate::{
    console::{Failure, Result},
    whole,
};

/// What looks for pairs by itself.
const AUTO: &str = "auto";

/// Where a call's state comes from and goes to.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "State")]
pub struct StateFlags {
    /// Runs the call on a saved state: its inputs are not given with --input then. A file that is not there is the beginning,
    /// which is all zeros
    #[arg(long = "load-state", value_name = "FILE")]
    load: Option<PathBuf>,
    /// Saves the state that the call leaves (safetensors); it is no result then
    #[arg(long = "save-state", value_name = "FILE")]
    save: Option<PathBuf>,
}

impl StateFlags {
    /// Whether the call is one of a sequence.
    pub(crate) fn is_used(&self) -> bool {
        self.load.is_some() || self.save.is_some()
    }

    /// Runs a call of a sequence.
    pub(crate) fn call(&self, function: &Function, inputs: Inputs, options: &RunOptions) -> Result<Outputs> {
        let mut state = function.state()?;
        if let Some(path) = &self.load {
            load(&mut state, path)?;
        }
        let outputs = state.run_with(inputs, options)?;
        if let Some(path) = &self.save {
            let bytes = state.save()?;
            // The state before is as good as the next one, and better than half of it.
            whole::write(path, |out| out.write_all(&bytes))?;
        }
        Ok(outputs)
    }
}

fn load(state: &mut State, path: &Path) -> Result<()> {
    match std::fs::read(path) {
        Ok(bytes) => state.load(bytes).map_err(|e| Failure::from(e).context(path.display().to_string())),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(Failure::file("cannot read", path, &e)),
    }
}

/// A function as those see it who do not hand in its state.
pub(crate) fn without_state(info: &FunctionInfo) -> FunctionInfo {
    let mut info = info.clone();
    info.inputs.retain(|input| info.states.iter().all(|pair| pair.input != input.name));
    info.outputs.retain(|output| info.states.iter().all(|pair| pair.output != output.name));
    info
}

/// Patterns of inputs and outputs, `past_*=present_*`; and whether pairs are looked for by name, which `auto` says.
pub(crate) fn patterns(texts: &[String]) -> Result<(Vec<(&str, &str)>, bool)> {
    let fits = |text: &&String| {
        *text == AUTO
            || text.split_once('=').is_some_and(|(input, output)| !input.is_empty() && !output.is_empty())
    };
    if let Some(text) = texts.iter().find(|text| !fits(text)) {
        return Err(Failure::Usage(format!(
            "--state={text} is not of the form INPUT=OUTPUT, such as past_*=present_*, or {AUTO}"
        )));
    }
    Ok((
        texts.iter().filter_map(|text| text.split_once('=')).collect(),
        texts.iter().any(|text| text == AUTO),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_is_named_by_patterns() {
        let texts = ["auto".to_owned(), "past_*=present_*".to_owned()];
        assert_eq!(patterns(&texts).unwrap(), (vec![("past_*", "present_*")], true));
        for wrong in ["past", "=x", "x="] {
            assert!(patterns(&[wrong.to_owned()]).is_err(), "{wrong}");
        }
    }
}
