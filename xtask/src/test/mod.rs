//! Runs all tests in order: builds their programs (`binaries`), runs them (`runner`), and repeats that (`repeat`).
//!
//! Everything is built once, with the same packages selected each time: cargo chooses features of other crates for what is
//! selected, and other features mean that all of the workspace is compiled anew.

mod binaries;
mod documents;
pub mod python;
mod repeat;
mod runner;

use std::{ffi::OsString, path::Path};

use anyhow::{Result, ensure};
use clap::Args;

use crate::{
    plugins,
    setup::{self, Icd},
    shell::{self, cargo, repo},
    steps::{Apart, Steps},
};
use binaries::{Binary, Built};
use repeat::Load;
use runner::{Manner, Variable, set};

/// What to test, and how.
#[derive(Args)]
pub struct Options {
    #[command(flatten)]
    chosen: Chosen,
    /// Run every test program this often, and tell which tests fail now and then.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Threads that keep the processor busy meanwhile.
    #[arg(long, default_value_t = 0, value_name = "N")]
    load: usize,
    /// Start test programs in an order of chance; one that was told is given again with a number.
    #[arg(long, value_name = "SEED", num_args = 0..=1)]
    shuffle: Option<Option<u64>>,
    /// Test programs at once. Default: as many as there are processors
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
}

/// Which tests, and in which form.
#[derive(Args, Clone)]
pub struct Chosen {
    /// Only tests whose name contains this.
    #[arg(long)]
    filter: Option<String>,
    /// Everything on every driver, at every place and size, also what is dear and seldom finds something: as `cargo xtask ci` does.
    #[arg(long)]
    thorough: bool,
}

impl Options {
    /// All that there is to test.
    pub fn thorough() -> Self {
        let chosen = Chosen { filter: None, thorough: true };
        Options { chosen, repeat: 1, load: 0, shuffle: None, jobs: None }
    }

    /// Test programs at once.
    fn processes(&self) -> usize {
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        self.jobs.unwrap_or_else(processors)
    }
}

impl Chosen {
    /// What tests look at to know that this is not the short form.
    fn form(&self) -> Vec<Variable> {
        vec![("HALITE_TEST_THOROUGH", self.thorough.then(|| "1".into()))]
    }

    /// The arguments that say so.
    pub fn args(&self) -> Vec<String> {
        let filter = self.filter.iter().map(|filter| format!("--filter={filter}"));
        filter.chain(self.thorough.then(|| "--thorough".to_owned())).collect()
    }
}

/// Packages whose tests talk to a device: they run once per Vulkan driver.
const DEVICE_PACKAGES: [&str; 6] =
    ["halite-vulkan", "halite-runtime", "halite", "halite-c", "halite-tools", "halite-conformance"];

/// The test program of `halite-conformance` to which it is the same which Vulkan driver there is.
const WITHOUT_VULKAN: &str = "everywhere";
/// The test program of `halite-tools` that asks for a device of its own choice; all others take llvmpipe.
const ON_EACH_DEVICE: &str = "malformed";

/// Test programs that run once, on the last driver: they hold what we do to kernels before any driver sees them, and drivers take
/// minutes to compile these kernels, SwiftShader fewer than llvmpipe.
const ON_LAST_DEVICE: [(&str, &[&str]); 1] = [("halite-conformance", &["kernels"])];

/// Test programs that run once, on the first driver: they hold what becomes of texts, steps and sequences. Two thirds of their time on
/// SwiftShader are its compiler's. What language models compute on other drivers is asked by the tests of the Python package and by
/// Java's; `suites` runs their kernels there.
const ON_FIRST_DEVICE: [(&str, &[&str]); 2] =
    [("halite", &["generate"]), ("halite-c", &["generate", "steps"])];

/// Packages and test programs that run on one driver in the short form, on the first or the last, whichever compiles their kernels
/// sooner of llvmpipe and SwiftShader. They hold what becomes of models in sessions and of drivers that fail; what is the driver's own in
/// it are kernels, which `suites` runs.
const SHORT_ON_FIRST_DEVICE: [(&str, &[&str]); 2] =
    [("halite-conformance", &["hazards"]), ("halite", &["faults", "host_memory", "programs"])];
const SHORT_ON_LAST_DEVICE: [(&str, &[&str]); 2] =
    [("halite-conformance", &["compiler", "onnx", "peers"]), ("halite", &["open"])];

/// Tests to which it is the same which driver there is, and the programs that they are in: left out on all but the first driver that
/// their program runs on.
const SAME_ON_EACH: [(&str, &str); 3] = [
    ("suites", "a_part_of_all_suites_on_the_cpu_devices"),
    ("compiler", "the_same_program_gives_the_same_bytes"),
    ("peers", "work_on_a_processor_with_the_memory_of_another"),
];

/// The driver's own programs that run without Vulkan's loader in the short form: what is different then is how a driver is found.
const WITHOUT_LOADER: [&str; 3] = ["direct", "dispatch", "transfer"];

/// Test programs that take longest: they begin first, so that none is left when all others have ended.
const LONGEST: [&str; 9] = [
    "halite_compiler",
    "shaders",
    "suites",
    "compiler",
    "generate",
    "commands",
    "kernels",
    "elementwise",
    "corpus",
];

/// Tests of the tools that run once more with drivers that are all plug-ins.
const PLUGIN_TESTS: [&str; 4] = ["linked", "plugins", "cli", "devices"];

/// The tools without linked drivers; and packages that have the features of other crates chosen as they are for the whole
/// workspace, so that only what is different is compiled anew.
pub const WITHOUT_DRIVERS: [&str; 5] = [
    "--package=halite-tools",
    "--package=halite-shaders",
    "--package=halite-targets",
    "--package=xtask",
    "--no-default-features",
];

/// All that is tested, with the tests.
pub const EVERYTHING: [&str; 4] = ["build", "--workspace", "--all-targets", "--keep-going"];

/// Sets up and runs all tests; those that need a device once per driver.
pub fn run(options: &Options) -> Result<()> {
    let mut steps = Steps::begin();
    all(options, &mut steps, Vec::new());
    steps.finish()
}

/// The same as steps of a chore, with more that stand by themselves once everything is built.
pub fn all(options: &Options, steps: &mut Steps, more: Vec<Apart>) {
    let icds = steps.take("set-up", setup::everything).unwrap_or_default();
    let mut built = None;
    steps.take("building", || {
        let built = built.insert(binaries::build(&EVERYTHING)?);
        ensure!(built.whole, "not everything compiles, see above; what does is tested");
        check_names(built)
    });
    let _load = Load::start(options.load);
    if let Some(built) = &built {
        Tests { options, icds: &icds, binaries: &built.binaries }.run(steps);
    }
    if options.repeat == 1 {
        let mut apart =
            if built.is_some() { python::apart(&options.chosen, &icds, steps) } else { Vec::new() };
        let one = |name: &str, part: &str, args| Apart::new(name.to_owned(), part, args);
        apart.push(one("examples in the documentation", "examples", options.chosen.args()));
        if options.chosen.thorough {
            apart.push(one("a crate outside of the workspace", "outside", Vec::new()));
        }
        apart.extend(more);
        // Of each much is one thread's work: starting interpreters, linking, waiting.
        steps.beside(apart, options.processes(), |_| ());
    }
}

/// Examples in the documentation.
pub fn documentation(chosen: &Chosen) -> Result<()> {
    let mut command = cargo(&["test", "--workspace", "--doc", "--no-fail-fast", "--"]);
    set(&mut command, &[variables(), chosen.form()].concat());
    shell::run(command.args(&chosen.filter))
}

/// Programs of a crate outside of the workspace.
const OUTSIDE: [&str; 4] = ["outside", "threads", "feedback", "limits"];

/// Programs as users write them: they depend on the public crate and on nothing else. On each driver; with the versions of other
/// crates that the workspace has, so that those are not compiled again. The programs of the documents, too.
pub fn outside() -> Result<()> {
    let icds = setup::everything()?;
    std::fs::copy(repo("Cargo.lock"), repo("examples/outside/Cargo.lock"))?;
    let drivers: Vec<Vec<Variable>> =
        if icds.is_empty() { vec![Vec::new()] } else { icds.iter().map(only).collect() };
    for driver in &drivers {
        for program in OUTSIDE {
            let manifest = ["--manifest-path", "examples/outside/Cargo.toml"];
            let mut command = cargo(&["run", "--quiet", manifest[0], manifest[1], "--bin", program]);
            set(&mut command, &variables());
            set(&mut command, driver);
            shell::run(command.env("CARGO_TARGET_DIR", repo("target")))?;
        }
    }
    documents::run(&drivers, &variables())
}

/// What tests must not see of this user, and where they keep what they would keep for him.
fn variables() -> Vec<Variable> {
    vec![
        ("XDG_CACHE_HOME", Some(repo("target/xtask/cache").into())),
        ("HALITE_TUNING", Some(OsString::new())),
        ("HALITE_TEST_BUILT", Some("1".into())),
        ("HALITE_DRIVER_PATH", None),
        ("HALITE_LOG", None),
    ]
}

/// Vulkan's loader, old or new, sees this driver only. llvmpipe takes most of the tests' time for optimizing kernels that run for
/// milliseconds: it is told not to.
fn only(icd: &Icd) -> Vec<Variable> {
    let manifest = |name| (name, Some(icd.manifest.clone().into()));
    let mut variables: Vec<Variable> = ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"].map(manifest).into();
    variables.push(("GALLIVM_PERF", Some("nopt".into())));
    variables
}

/// Whether a program's tests run on the driver at this place in the list of so many.
fn is_run_on(binary: &Binary, place: usize, drivers: usize, is_thorough: bool) -> bool {
    let target = binary.target.as_str();
    let is_of = |lists: &[(&str, &[&str])]| {
        lists.iter().any(|(package, targets)| binary.package == *package && targets.contains(&target))
    };
    if is_of(&ON_LAST_DEVICE) || !is_thorough && is_of(&SHORT_ON_LAST_DEVICE) {
        return place + 1 == drivers;
    }
    let is_for_first = is_of(&ON_FIRST_DEVICE) || !is_thorough && is_of(&SHORT_ON_FIRST_DEVICE);
    place == 0 || !(is_any_device_enough(binary) || is_for_first)
}

/// Tests that say nothing new behind the first of so many drivers, as their program ran there.
fn ran_before(binaries: &[&Binary], drivers: usize, is_thorough: bool) -> Vec<&'static str> {
    let ran = |program: &str| {
        binaries.iter().any(|binary| binary.target == program && is_run_on(binary, 0, drivers, is_thorough))
    };
    SAME_ON_EACH.into_iter().filter(|(program, _)| ran(program)).map(|(_, test)| test).collect()
}

/// Whether a program's tests are the same on each device, so that they run once.
fn is_any_device_enough(binary: &Binary) -> bool {
    match binary.package.as_str() {
        "halite-tools" => binary.target != ON_EACH_DEVICE,
        "halite-runtime" => binary.kind == "lib",
        "halite-conformance" => binary.kind == "lib" || binary.target == WITHOUT_VULKAN,
        _ => false,
    }
}

/// The lists above name test programs that are there.
fn check_names(built: &Built) -> Result<()> {
    let once = ON_LAST_DEVICE.iter().chain(&ON_FIRST_DEVICE);
    let lists = once.chain(&SHORT_ON_LAST_DEVICE).chain(&SHORT_ON_FIRST_DEVICE);
    let names = lists
        .flat_map(|(_, targets)| *targets)
        .chain(&LONGEST)
        .chain(&PLUGIN_TESTS)
        .chain(&WITHOUT_LOADER)
        .chain([&ON_EACH_DEVICE, &WITHOUT_VULKAN]);
    for name in names {
        let known = built.binaries.iter().any(|binary| binary.target == *name);
        ensure!(known, "there is no test program '{name}' any more, which xtask/src/test/mod.rs names");
    }
    Ok(())
}

/// The test programs and what they run on.
struct Tests<'a> {
    options: &'a Options,
    icds: &'a [Icd],
    binaries: &'a [Binary],
}

impl Tests<'_> {
    fn run(&self, steps: &mut Steps) {
        if self.options.chosen.thorough {
            // First, because it replaces the tools that other tests run for a while.
            self.with_plugins(steps);
        }
        let (device, plain): (Vec<_>, Vec<_>) =
            self.binaries.iter().partition(|binary| DEVICE_PACKAGES.contains(&binary.package.as_str()));
        self.step(steps, "tests without a device", &plain, self.manner(Vec::new()));
        let swiftshader = self.icds.iter().find_map(|icd| icd.library.as_deref());
        for (place, icd) in self.icds.iter().enumerate() {
            let mut programs = device.clone();
            programs.retain(|binary| is_run_on(binary, place, self.icds.len(), self.options.chosen.thorough));
            let mut variables = only(icd);
            variables.push(("HALITE_TEST_PART", self.part(place)));
            variables.push(("HALITE_TEST_DEVICE", Some(icd.name.into())));
            variables.extend(swiftshader.map(|path| ("HALITE_SWIFTSHADER", Some(path.into()))));
            let mut manner = self.manner(variables);
            let skipped = if place > 0 {
                ran_before(&device, self.icds.len(), self.options.chosen.thorough)
            } else {
                Vec::new()
            };
            manner.args.extend(skipped.iter().map(|name| format!("--skip={name}")));
            self.step(steps, &format!("tests on {}", icd.name), &programs, manner);
        }
        if self.icds.is_empty() {
            steps.skip("tests on a device", "there is no Vulkan driver");
        }
        self.without_loader(swiftshader, steps);
    }

    /// Which of so many parts of the cases that are of one kind a driver gets; in the short form they are dealt out.
    fn part(&self, place: usize) -> Option<OsString> {
        (!self.options.chosen.thorough).then(|| format!("{}/{}", place + 1, self.icds.len()).into())
    }

    fn manner(&self, variables: Vec<Variable>) -> Manner {
        Manner {
            variables: [self::variables(), self.options.chosen.form(), variables].concat(),
            args: self.options.chosen.filter.iter().cloned().collect(),
            jobs: self.options.processes(),
            shown: true,
        }
    }

    fn step(&self, steps: &mut Steps, name: &str, binaries: &[&Binary], manner: Manner) {
        let mut binaries = binaries.to_vec();
        let place = |binary: &&Binary| LONGEST.iter().position(|name| *name == binary.target);
        binaries.sort_by_key(|binary| place(binary).unwrap_or(LONGEST.len()));
        steps.take(name, || repeat::run(&binaries, &manner, self.options.repeat, self.options.shuffle));
    }

    /// Tools without linked drivers find them as plug-ins.
    fn with_plugins(&self, steps: &mut Steps) {
        steps.take("tests of the tools with plug-ins only", || {
            let drivers = repo("target/xtask/drivers");
            plugins::install(&repo("target/debug"), &drivers)?;
            let mut args = vec!["test", "--no-run"];
            args.extend(WITHOUT_DRIVERS);
            for test in PLUGIN_TESTS {
                args.extend(["--test", test]);
            }
            let built = binaries::build(&args)?;
            let mut variables = self.icds.first().map(only).unwrap_or_default();
            variables.push(("HALITE_DRIVER_PATH", Some(drivers.into())));
            let tools: Vec<_> = built.binaries.iter().collect();
            let outcome = repeat::run(&tools, &self.manner(variables), self.options.repeat, None);
            // The tools with their drivers are put back where tests look for them.
            binaries::build(&EVERYTHING)?;
            ensure!(built.whole, "the tools do not compile without drivers");
            outcome
        });
    }

    /// The driver's own tests once more, on a driver's library that is loaded directly.
    fn without_loader(&self, library: Option<&Path>, steps: &mut Steps) {
        let name = "tests on swiftshader, without Vulkan's loader";
        let Some(library) = library else { return steps.skip(name, "there is no SwiftShader") };
        let variables = vec![
            ("HALITE_TEST_ICD", Some(library.into())),
            ("HALITE_SWIFTSHADER", Some(library.into())),
            ("VK_DRIVER_FILES", None),
            ("VK_ICD_FILENAMES", None),
        ];
        let wanted = |name: &str| self.options.chosen.thorough || WITHOUT_LOADER.contains(&name);
        let own = |binary: &&Binary| {
            binary.package == "halite-vulkan" && binary.kind == "test" && wanted(&binary.target)
        };
        let binaries: Vec<_> = self.binaries.iter().filter(own).collect();
        self.step(steps, name, &binaries, self.manner(variables));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_that_are_left_out_are_there() {
        let folders = ["conformance/tests", "conformance/tests/compiler", "halite/tests"].map(repo);
        let files = folders.into_iter().flat_map(|folder| {
            let entries = std::fs::read_dir(folder).unwrap();
            entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file())
        });
        let sources: String = files.map(|path| std::fs::read_to_string(path).unwrap_or_default()).collect();
        for (_, path) in SAME_ON_EACH {
            let name = path.rsplit("::").next().unwrap();
            assert!(sources.contains(&format!("fn {name}()")), "there is no test '{name}' any more");
        }
    }

    #[test]
    fn tests_that_are_the_same_everywhere_run_once() {
        let program = |target: &str| Binary {
            package: "halite-conformance".to_owned(),
            target: target.to_owned(),
            kind: "test".to_owned(),
            source: String::new(),
            folder: "/".into(),
            path: "/t".into(),
        };
        let programs = SAME_ON_EACH.map(|(target, _)| program(target));
        let programs: Vec<&Binary> = programs.iter().collect();
        for (drivers, is_thorough) in [(1, false), (2, false), (2, true), (3, false), (3, true)] {
            for (binary, (_, test)) in programs.iter().zip(SAME_ON_EACH) {
                let runs = |place: usize| {
                    let is_left_out =
                        place > 0 && ran_before(&programs, drivers, is_thorough).contains(&test);
                    is_run_on(binary, place, drivers, is_thorough) && !is_left_out
                };
                let times = (0..drivers).filter(|place| runs(*place)).count();
                assert_eq!(times, 1, "{test} of {drivers} drivers, thorough: {is_thorough}");
            }
        }
    }
}
