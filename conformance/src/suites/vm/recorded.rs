//! The cases of the module corpus' scalar functions: each with the results that the original's runtime printed.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Result;

use crate::{
    corpus::{self, Call, CorpusModule},
    replay,
    suites::{Case, Cases, Context, Outcome, Stop},
};

/// A case for each function.
pub fn cases(root: &Path) -> Result<Vec<Case>> {
    let mut cases = Cases::new("vm");
    for program in corpus::programs(root, "vm_ops")? {
        let mut functions: BTreeMap<String, Vec<Call>> = BTreeMap::new();
        for call in &program.calls {
            functions.entry(call.function.clone()).or_default().push(call.clone());
        }
        let file = program.module.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        for (function, calls) in functions {
            let program = Arc::new(CorpusModule { calls, ..program.clone() });
            let root: PathBuf = root.to_owned();
            let name = format!("recorded.{function}:module={}", file.as_deref().unwrap_or("module"));
            cases.add(name, &[], move |t| run(t, &root, &program));
        }
    }
    Ok(cases.finish())
}

fn run(t: &Context, root: &Path, program: &CorpusModule) -> Outcome {
    for (call, verdict) in program.calls.iter().zip(replay::run(root, program, t.device())) {
        let place = || format!("{}({})", call.function, call.inputs.join(", "));
        match verdict {
            replay::Verdict::Pass => {}
            replay::Verdict::Mismatch(mut wrong) => {
                wrong.what = format!("{}: {}", place(), wrong.what);
                return Err(Stop::Wrong(wrong));
            }
            replay::Verdict::Error(why) => return Err(Stop::Fail(format!("{}: {why}", place()))),
        }
    }
    Ok(())
}
