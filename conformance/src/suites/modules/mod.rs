//! The suite of modules: what compilers wrote, ours and the original's, with results that the original computed. Owns which
//! programs are for which device; does not own loading and comparing (`replay`) or manifests (`corpus`).
//!
//! | area | modules |
//! |---|---|
//! | `digits` | the network of the demonstration |
//! | `vmvx`, `multi_device` | of this repository: bytecode kernels, programs for two devices |
//! | `small`, `models` | of the corpus: programs and networks |
//! | `bad` | of the corpus: damaged modules, which must end in an error or run, and nothing else |

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Result;
use halite_abi::format;
use halite_hal::{Device, DeviceInfo, Options};
use halite_testing::drivers;

use super::{Cases, Context, Offer, Outcome, Settings, Stop, takes_spirv};
use crate::{
    corpus::{self, CorpusModule},
    replay,
};

/// The file of a program of the corpus that has machine code.
const NATIVE: &str = "llvm_cpu.vmfb";

/// What a device is to programs.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Vulkan,
    Local,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Vulkan => "vulkan",
            Kind::Local => "local",
        }
    }
}

/// All cases for a device.
///
/// # Errors
/// A manifest is malformed.
pub fn offer(settings: &Settings, device: &DeviceInfo) -> Result<Offer> {
    let kind = if takes_spirv(device) {
        Kind::Vulkan
    } else if device.executable_formats.iter().any(|format| format == format::VMVX) {
        Kind::Local
    } else {
        return Ok(Offer::nothing("the device executes neither SPIR-V nor code for processors"));
    };
    let mut offer = Offer::default();
    let mut cases = Cases::new("modules");
    match &settings.repository {
        Some(root) => of_repository(&mut cases, root, kind)?,
        None => offer
            .left_out
            .push("there are no modules of this repository; name it with --repository".to_owned()),
    }
    match &settings.corpus {
        Some(root) => of_corpus(&mut cases, root, kind)?,
        None => offer.left_out.push("there is no corpus of modules; name one with --corpus".to_owned()),
    }
    offer.cases = cases.finish();
    Ok(offer)
}

fn of_repository(cases: &mut Cases, root: &Path, kind: Kind) -> Result<()> {
    let (root, folder): (Arc<PathBuf>, _) = (Arc::new(root.to_owned()), Arc::new(root.join("conformance")));
    let digits = corpus::digits_in(&root, kind == Kind::Local);
    add(cases, "digits.classify".to_owned(), &root, digits, Judged::All);
    let mut programs = corpus::programs(&folder, "multi_device")?;
    if kind == Kind::Local {
        programs.extend(corpus::programs(&folder, "vmvx")?);
    }
    // Programs for a processor and a GPU run on both kinds: with the device under test and one of the other kind.
    programs.retain(|program| program.devices.iter().any(|wanted| wanted == kind.name()));
    for program in programs {
        add(
            cases,
            replay::case_name(&program.name).replacen("modules.", "", 1),
            &folder,
            program,
            Judged::All,
        );
    }
    Ok(())
}

fn of_corpus(cases: &mut Cases, root: &Path, kind: Kind) -> Result<()> {
    let root = Arc::new(root.to_owned());
    let sets: &[&str] = if kind == Kind::Vulkan { &["small", "models", "bad"] } else { &["models"] };
    for set in sets {
        let mut programs = corpus::programs(&root, set)?;
        if kind == Kind::Local {
            programs.iter_mut().for_each(|p| p.module = p.module.with_file_name(NATIVE));
            programs.retain(|p| p.module.exists());
        }
        let judged = if *set == "bad" { Judged::EndsOnly } else { Judged::All };
        for program in programs {
            add(cases, replay::case_name(&program.name).replacen("modules.", "", 1), &root, program, judged);
        }
    }
    Ok(())
}

/// What of a program's calls is judged.
#[derive(Clone, Copy)]
enum Judged {
    /// Results.
    All,
    /// That they end.
    EndsOnly,
}

fn add(cases: &mut Cases, name: String, root: &Arc<PathBuf>, program: CorpusModule, judged: Judged) {
    let root = root.clone();
    cases.add(name, &[], move |t| run(t, &root, &program, judged));
}

fn run(t: &Context, root: &Path, program: &CorpusModule, judged: Judged) -> Outcome {
    let devices = devices(t, program)?;
    // The corpus' models as machine code were compiled for the processor that made them.
    let native = program.module.ends_with(NATIVE);
    if let Some(why) = native.then(|| replay::unfit_processor(root, program, &devices)).flatten() {
        return Err(Stop::Skip(why));
    }
    for verdict in replay::run_on(root, program, &devices) {
        match (verdict, judged) {
            (replay::Verdict::Pass, _) | (_, Judged::EndsOnly) => {}
            (replay::Verdict::Mismatch(wrong), Judged::All) => return Err(Stop::Wrong(wrong)),
            (replay::Verdict::Error(why), Judged::All) => return Err(Stop::Fail(why)),
        }
    }
    Ok(())
}

/// The device under test, with others where the program wants several: another of the same, or one of the other kind.
fn devices(t: &Context, program: &CorpusModule) -> std::result::Result<Vec<Arc<dyn Device>>, Stop> {
    if program.devices.len() < 2 {
        return Ok(vec![t.device().clone()]);
    }
    let own = if takes_spirv(t.device().info()) { Kind::Vulkan } else { Kind::Local };
    let mut used = false;
    let mut devices = Vec::new();
    for wanted in &program.devices {
        let device = if wanted != own.name() {
            let uri = if wanted == "local" { "local-task" } else { wanted };
            halite_layers::open(&drivers::registry(&[]), uri, &Options::new())
                .map_err(|e| Stop::Skip(format!("the program wants a second device, {wanted}: {e}")))?
        } else if std::mem::replace(&mut used, true) {
            t.open()?
        } else {
            t.device().clone()
        };
        devices.push(device);
    }
    Ok(devices)
}
