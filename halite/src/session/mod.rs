//! Sessions: models and modules that are ready to run, and their functions.

#[cfg(feature = "compiler")]
mod ahead;
#[cfg(feature = "compiler")]
mod batches;
mod builder;
#[cfg(feature = "compiler")]
mod calls;
pub(crate) mod check;
#[cfg(feature = "compiler")]
mod choices;
#[cfg(feature = "compiler")]
mod fixed;
#[cfg(feature = "compiler")]
mod functions;
#[cfg(feature = "compiler")]
mod growth;
#[cfg(feature = "compiler")]
pub(crate) mod lists;
#[cfg(feature = "compiler")]
mod model;
mod module;
#[cfg(feature = "compiler")]
mod open;
mod pending;
#[cfg(feature = "compiler")]
mod ports;
pub(crate) mod profiling;
#[cfg(feature = "compiler")]
mod refusals;
#[cfg(feature = "compiler")]
mod shared;
pub(crate) mod started;
mod states;
#[cfg(feature = "compiler")]
mod tries;
mod untrusted;
#[cfg(feature = "compiler")]
mod versions;

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use parking_lot::Mutex;

pub use builder::{DeviceChoice, SessionBuilder};
#[cfg(feature = "text")]
pub(crate) use model::{detect, known_formats};
pub use pending::Pending;
#[cfg(feature = "compiler")]
pub(crate) use ports::Ports;
use started::Started;
pub(crate) use states::GivenSizes;
#[cfg(feature = "compiler")]
pub(crate) use states::StateChoice;

use crate::{
    Device, Error, ErrorKind, FunctionInfo, Inputs, Outputs, Profile, Result, RunOptions, Tensor, Value,
    ValueInfo,
    options::{Handed, Limits},
    state::Tensors,
    tensor::Habit,
};

/// A model or module, ready to run on its devices.
///
/// ```no_run
/// use halite::{Session, Tensor};
///
/// let session = Session::builder().device("vulkan").model("digits.onnx").build()?;
/// println!("{}", session.default_function()?.info());
///
/// let picture = Tensor::from_vec(vec![0.0f32; 256], [1, 1, 16, 16])?;
/// let out = session.run([("picture", &picture)])?;
/// println!("{:?}", out["probabilities"].to_vec::<f32>()?);
/// # Ok::<(), halite::Error>(())
/// ```
///
/// Cheap to clone; clones are the same session. Any thread may use it, and many may run it at the same time: what calls do on the
/// host overlaps, and the device takes them one after the other. When the last clone is gone, and the results that lie on the
/// device, all memory is given back.
///
/// A model has no memory: its calls do not depend on each other. The variables of a module live in its session, shared by all
/// clones and threads; build another session for independent ones. So does what an ExecuTorch program keeps from call to call
/// ([`FunctionInfo::keeps_state`]), such as the caches of a decoder: calls continue one sequence, one after the other.
/// [`Session::state`] makes sequences of their own, [`Session::reset_state`] begins anew.
///
/// A model ([ONNX](https://onnx.ai), ExecuTorch) is compiled for the device. Where all of its sizes are known that happens when
/// the session is built; where some are open, at the first call with sizes that are new, and what was compiled stays
/// ([`SessionBuilder::max_loaded_versions`]). A [`Cache`](crate::Cache) keeps it for the next process.
#[derive(Clone)]
pub struct Session(Arc<Inner>);

/// Places of functions: modules may have many thousands.
struct Names {
    /// By their own names. Of several modules the last is the main one.
    own: HashMap<String, usize>,
    /// By names with the module's in front.
    full: HashMap<String, usize>,
}

impl Names {
    fn of(functions: &[FunctionInfo]) -> Names {
        let all = || functions.iter().enumerate();
        Names {
            own: all().map(|(place, function)| (function.name.clone(), place)).collect(),
            full: all().rev().map(|(place, function)| (function.full_name(), place)).collect(),
        }
    }
}

struct Inner {
    devices: Vec<Device>,
    functions: Vec<FunctionInfo>,
    /// Names of the outputs of each function.
    output_names: Vec<Arc<[String]>>,
    /// Where functions are, by their names.
    names: Names,
    /// The state of each function that keeps it by itself, once it was called.
    own: Vec<Mutex<Option<Tensors>>>,
    /// Index of the function that runs when none is named.
    default: Option<usize>,
    /// How long a call may take whose options do not say.
    time: OnceLock<Duration>,
    /// Whether callers read results.
    habit: Arc<Habit>,
    program: Content,
}

enum Content {
    Module(module::ModuleProgram),
    #[cfg(feature = "compiler")]
    Model(Box<model::ModelProgram>),
}

impl Session {
    /// A builder, which collects what the session is made from.
    pub fn builder() -> SessionBuilder {
        SessionBuilder::default()
    }

    fn assemble(
        devices: Vec<Device>,
        functions: Vec<FunctionInfo>,
        default: Option<usize>,
        program: Content,
    ) -> Session {
        let names = |f: &FunctionInfo| f.all_outputs().map(|output| output.name.clone()).collect();
        let output_names = functions.iter().map(names).collect();
        Session(Arc::new(Inner {
            devices,
            names: Names::of(&functions),
            own: functions.iter().map(|_| Mutex::default()).collect(),
            functions,
            output_names,
            default,
            time: OnceLock::new(),
            habit: Arc::default(),
            program,
        }))
    }

    /// Bounds the calls whose options do not say how long they may take.
    fn bound_calls(&self, time: Duration) {
        self.0.time.get_or_init(|| time);
    }

    /// The functions: `main` of an ONNX model, the methods of an ExecuTorch program, what a module exports.
    pub fn functions(&self) -> &[FunctionInfo] {
        &self.0.functions
    }

    /// A function by name, or by `module.name`.
    ///
    /// # Errors
    /// There is no such function; the text lists those that exist.
    pub fn function(&self, name: &str) -> Result<Function> {
        let names = &self.0.names;
        let place = names.own.get(name).or_else(|| names.full.get(name)).copied().ok_or_else(|| {
            Error::new(
                ErrorKind::NotFound,
                format!("no function '{name}'; exported functions: {}", self.names()),
            )
        })?;
        Ok(Function { session: self.clone(), place })
    }

    /// The function that [`Session::run`] runs: the only one of the (last) module, the first one of a model.
    ///
    /// # Errors
    /// A module has none or several.
    pub fn default_function(&self) -> Result<Function> {
        let place = self.0.default.ok_or_else(|| {
            let text = format!(
                "name a function: the module does not have exactly one; exported functions: {}",
                self.names()
            );
            Error::invalid(text)
        })?;
        Ok(Function { session: self.clone(), place })
    }

    fn names(&self) -> String {
        let names: Vec<_> = self.0.functions.iter().map(FunctionInfo::full_name).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    }

    /// Runs the default function and waits for its results, which stay on the device until they are read.
    ///
    /// # Errors
    /// Inputs do not fit, the model cannot be compiled for their sizes, or the device fails.
    pub fn run(&self, inputs: impl Into<Inputs>) -> Result<Outputs> {
        self.default_function()?.run(inputs)
    }

    /// As [`Session::run`], with options.
    ///
    /// # Errors
    /// As [`Session::run`], and when the options end it.
    pub fn run_with(&self, inputs: impl Into<Inputs>, options: &RunOptions) -> Result<Outputs> {
        self.default_function()?.run_with(inputs, options)
    }

    /// Starts the default function and returns while the device works; see [`Function::start`].
    ///
    /// # Errors
    /// As [`Session::run`], as far as they show before the device works.
    pub fn start(&self, inputs: impl Into<Inputs>) -> Result<Pending> {
        self.default_function()?.start(inputs)
    }

    /// As [`Session::start`], with options; see [`Function::start_with`].
    ///
    /// # Errors
    /// As [`Session::start`], and when the options end it.
    pub fn start_with(&self, inputs: impl Into<Inputs>, options: &RunOptions) -> Result<Pending> {
        self.default_function()?.start_with(inputs, options)
    }

    /// Makes everything ready for inputs like these, so that the first call with them is as fast as the others; see
    /// [`Function::prewarm`].
    ///
    /// # Errors
    /// As [`Session::run`].
    pub fn prewarm(&self, inputs: impl Into<Inputs>) -> Result<()> {
        self.default_function()?.prewarm(inputs)
    }

    /// As [`Session::prewarm`], with options.
    ///
    /// # Errors
    /// As [`Session::run_with`].
    pub fn prewarm_with(&self, inputs: impl Into<Inputs>, options: &RunOptions) -> Result<()> {
        self.default_function()?.prewarm_with(inputs, options)
    }

    /// Runs the default function once and tells where the time went; see [`Function::profile`].
    ///
    /// # Errors
    /// As [`Function::profile`].
    pub fn profile(&self, inputs: impl Into<Inputs>) -> Result<(Outputs, Profile)> {
        self.default_function()?.profile(inputs)
    }

    /// As [`Session::profile`], with options.
    ///
    /// # Errors
    /// As [`Function::profile_with`].
    pub fn profile_with(
        &self,
        inputs: impl Into<Inputs>,
        options: &RunOptions,
    ) -> Result<(Outputs, Profile)> {
        self.default_function()?.profile_with(inputs, options)
    }

    /// Inputs of the default function; none where there is no such function.
    pub fn inputs(&self) -> &[ValueInfo] {
        self.0.default.map_or(&[], |place| &self.0.functions[place].inputs)
    }

    /// Outputs of the default function; none where there is no such function.
    pub fn outputs(&self) -> &[ValueInfo] {
        self.0.default.map_or(&[], |place| &self.0.functions[place].outputs)
    }

    /// The devices, in the order that programs see them. Empty for a module that uses none.
    pub fn devices(&self) -> &[Device] {
        &self.0.devices
    }

    /// Whether callers read the results.
    fn habit(&self) -> &Arc<Habit> {
        &self.0.habit
    }

    /// The device that inputs and results lie on: the first. `None` for a module that uses none.
    pub fn device(&self) -> Option<&Device> {
        self.0.devices.first()
    }

    /// How many compiled versions of a model are loaded, each for other sizes; see [`SessionBuilder::max_loaded_versions`]. A
    /// module is one.
    pub fn loaded_versions(&self) -> usize {
        match &self.0.program {
            Content::Module(_) => 1,
            #[cfg(feature = "compiler")]
            Content::Model(model) => model.loaded_versions(),
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.0.functions.iter().map(FunctionInfo::full_name).collect();
        f.debug_struct("Session").field("functions", &names).field("devices", &self.0.devices).finish()
    }
}

/// A function of a session, for models and modules that have several. Cheap to clone; keeps the session alive.
///
/// ```no_run
/// use halite::{Session, Tensor};
///
/// let session = Session::builder().device("vulkan").model("network.vmfb").build()?;
/// let encode = session.function("encode")?;
/// println!("{}", encode.info());
/// let out = encode.run(&Tensor::from_slice(&[1i32, 2, 3], [1, 3])?)?;
/// println!("{:?}", out[0]);
/// # Ok::<(), halite::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Function {
    session: Session,
    place: usize,
}

impl Function {
    /// Its name within its module.
    pub fn name(&self) -> &str {
        &self.info().name
    }

    /// What it takes and gives.
    pub fn info(&self) -> &FunctionInfo {
        &self.session.0.functions[self.place]
    }

    /// The session that it belongs to.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Runs it and waits for the results, which stay on the device until they are read.
    ///
    /// # Errors
    /// Inputs do not fit, the model cannot be compiled for their sizes, or the device fails.
    pub fn run(&self, inputs: impl Into<Inputs>) -> Result<Outputs> {
        self.run_with(inputs, &RunOptions::new())
    }

    /// Runs it with options.
    ///
    /// # Errors
    /// As [`Function::run`], and when the options end it.
    pub fn run_with(&self, inputs: impl Into<Inputs>, options: &RunOptions) -> Result<Outputs> {
        let limits = self.session.begin(options)?;
        if self.info().keeps_state() {
            return self.on_own_state(&limits, |state| state.run_within(inputs.into(), &limits));
        }
        self.begin(inputs.into(), &limits)?.finish_or_stop(&limits)
    }

    /// Starts it and returns while the device works. Sizes of a model that were not seen before are compiled first, which
    /// takes its time; [`Function::prewarm`] does it ahead.
    ///
    /// # Errors
    /// As [`Function::run`], as far as they show before the device works. What shows later comes from [`Pending::wait`].
    pub fn start(&self, inputs: impl Into<Inputs>) -> Result<Pending> {
        self.start_with(inputs, &RunOptions::new())
    }

    /// As [`Function::start`]; the options are for what happens before it returns.
    ///
    /// # Errors
    /// As [`Function::start`], and when the options end it.
    pub fn start_with(&self, inputs: impl Into<Inputs>, options: &RunOptions) -> Result<Pending> {
        let limits = self.session.begin(options)?;
        if self.info().keeps_state() {
            return self.on_own_state(&limits, |state| state.start_within(inputs.into(), &limits));
        }
        self.begin(inputs.into(), &limits)
    }

    fn begin(&self, inputs: Inputs, limits: &Limits) -> Result<Pending> {
        let info = self.info();
        let values = inputs.in_order(&info.input_names(), &info.name)?;
        self.launch(values, Handed::default(), limits)
    }

    /// Starts it.
    pub(crate) fn launch(&self, values: Vec<Value>, handed: Handed, limits: &Limits) -> Result<Pending> {
        let values = check::inputs(self.info(), values)?;
        let session = &self.session.0;
        let call = match &session.program {
            Content::Module(module) => module.start(self.place, &values, &session.devices, handed, limits)?,
            #[cfg(feature = "compiler")]
            Content::Model(model) => model.start(self.place, &values, &session.devices, handed, limits)?,
        };
        Ok(self.pending(Arc::new(call)))
    }

    /// A call of it that was started.
    pub(crate) fn pending(&self, call: Arc<Started>) -> Pending {
        Pending::new(call, self.session.0.output_names[self.place].clone(), self.session.clone())
    }

    /// Compiles and loads what inputs like these need, builds all pipelines, and runs a model once with them. [`Function::zeros`]
    /// are such inputs where no size is open. A module is ready when its session is built; it is not run, as it may have state.
    ///
    /// # Errors
    /// As [`Function::run`].
    pub fn prewarm(&self, inputs: impl Into<Inputs>) -> Result<()> {
        self.prewarm_with(inputs, &RunOptions::new())
    }

    /// As [`Function::prewarm`], with options.
    ///
    /// # Errors
    /// As [`Function::run_with`].
    pub fn prewarm_with(&self, inputs: impl Into<Inputs>, options: &RunOptions) -> Result<()> {
        match &self.session.0.program {
            Content::Module(_) => {
                let info = self.info();
                check::inputs(info, inputs.into().in_order(&info.input_names(), &info.name)?)?;
                self.session.begin(options).map(drop)
            }
            #[cfg(feature = "compiler")]
            Content::Model(_) if self.info().keeps_state() => {
                self.state()?.run_with(inputs, options).map(drop)
            }
            #[cfg(feature = "compiler")]
            Content::Model(_) => self.run_with(inputs, options).map(drop),
        }
    }

    /// Sizes of named dimensions, and shapes of inputs, that the session was given.
    pub(crate) fn given_sizes(&self) -> Result<GivenSizes> {
        match &self.session.0.program {
            Content::Module(_) => Ok(GivenSizes::default()),
            #[cfg(feature = "compiler")]
            Content::Model(model) => model.given_sizes(self.place),
        }
    }

    /// Runs it once and tells where the time went: see [`Profile`]. State that it keeps stays as it is. What has to be compiled or loaded for inputs like these is made
    /// ready before, and is no part of it. Results are those of [`Function::run`], and lie on the device as well.
    ///
    /// The first call of a function also waits for its pipelines: profile it after a call, or after [`Function::prewarm`].
    ///
    /// # Errors
    /// As [`Function::run`]; and [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) where a device cannot measure its commands.
    pub fn profile(&self, inputs: impl Into<Inputs>) -> Result<(Outputs, Profile)> {
        self.profile_with(inputs, &RunOptions::new())
    }

    /// As [`Function::profile`], with options.
    ///
    /// # Errors
    /// As [`Function::profile`], and when the options end it.
    pub fn profile_with(
        &self,
        inputs: impl Into<Inputs>,
        options: &RunOptions,
    ) -> Result<(Outputs, Profile)> {
        let (info, limits) = (self.info(), self.session.begin(options)?);
        let values = match info.keeps_state() {
            true => self.on_own_state(&limits, |state| state.values_within(inputs.into(), &limits))?,
            false => inputs.into().in_order(&info.input_names(), &info.name)?,
        };
        profiling::profile(self, &values, &limits)
    }

    /// Zeros of the shapes that the function states, for measuring and for [`Function::prewarm`]; `None` where sizes or types
    /// are open.
    pub fn zeros(&self) -> Option<Vec<Tensor>> {
        self.info().inputs.iter().map(check::zeros).collect()
    }
}
