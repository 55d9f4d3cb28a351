//! The process that runs cases for another: names come in on one stream, results leave on another.

use std::{
    collections::HashMap,
    io::{BufRead, Write},
};

use anyhow::{Context as _, Result};

use super::protocol::Said;
use crate::suites::{Case, Lane, Report, Runner, Settings, Suite, Verdict};

/// Opens the device and runs every case that is named, until there are no more names.
///
/// # Errors
/// The streams break. That no device opens is told on `output`.
pub fn serve(
    runner: &Runner,
    suites: &[Box<dyn Suite>],
    settings: &Settings,
    input: impl BufRead,
    mut output: impl Write,
) -> Result<()> {
    let (mut lane, cases) = match prepare(runner, suites, settings) {
        Ok(ready) => ready,
        Err(e) => {
            output.write_all(Said::Unable(format!("{e:#}")).line().as_bytes())?;
            return Ok(output.flush()?);
        }
    };
    let mut say = |said: &Said| -> Result<()> {
        output.write_all(said.line().as_bytes())?;
        Ok(output.flush()?)
    };
    say(&Said::Ready)?;
    for name in input.lines() {
        let name = name.context("reading the name of a case")?;
        let report = match cases.get(&name) {
            Some(case) => lane.run(case),
            None => {
                let verdict = Verdict::Fail("there is no such case here".to_owned());
                Report { case: name, verdict, time: Default::default() }
            }
        };
        say(&Said::Ended(report))?;
    }
    Ok(())
}

fn prepare(
    runner: &Runner,
    suites: &[Box<dyn Suite>],
    settings: &Settings,
) -> Result<(Lane, HashMap<String, Case>)> {
    let lane = runner.lane().context("opening the device")?;
    let device = lane.device().context("the device was lost at once")?.clone();
    let mut cases = HashMap::new();
    for suite in suites {
        let offer = suite.offer(settings, &device)?;
        cases.extend(offer.cases.into_iter().map(|case| (case.name.clone(), case)));
    }
    Ok((lane, cases))
}
