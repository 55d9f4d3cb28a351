//! The making of modules from models: for which targets, how, and what comes out.

use std::io;

use halite_compiler::{
    self as inner, ParameterStorage, PrintGraph, Program, explain::Report, signature::Bindings,
};
use halite_targets::Capabilities;

use super::{Model, Sizes, Tuning};
use crate::{
    Device, Error, Result, RunOptions,
    options::Limits,
    session::{Ports, StateChoice},
};

/// Which floats a model computes with inside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Precision {
    /// Those of the model. A session on a device that runs on the processor takes [`Precision::F32`] instead: such devices convert
    /// 16-bit floats one by one, and take several times as long with them.
    #[default]
    Model,
    /// 16 bits where kernels take them; inputs and outputs keep their types.
    F16,
    /// 32 bits where the model has floats of 16; inputs and outputs keep their types. Weights take twice the memory.
    F32,
}

impl From<Precision> for inner::Precision {
    fn from(precision: Precision) -> Self {
        match precision {
            Precision::Model => inner::Precision::Model,
            Precision::F16 => inner::Precision::F16,
            Precision::F32 => inner::Precision::F32,
        }
    }
}

/// What kernels are chosen for: a kind of GPU, or a device at hand.
#[derive(Clone, Debug)]
pub struct Target(Capabilities);

impl Target {
    /// A kind of GPU, by its triple (`valhall-g78-android30`) or another name (`sm_90`, `rdna3`).
    ///
    /// # Errors
    /// There is no such target; the text lists similar names.
    pub fn named(name: &str) -> Result<Target> {
        let target = halite_targets::Target::parse(name).map_err(|e| Error::invalid(e.to_string()))?;
        Ok(Target(Capabilities::of(target)))
    }

    /// A device at hand.
    ///
    /// # Errors
    /// It runs no models.
    pub fn of_device(device: &Device) -> Result<Target> {
        super::capabilities(device.hal().info()).map(Target)
    }

    /// Its triple.
    pub fn triple(&self) -> String {
        self.0.target.to_string()
    }

    /// What kernels may use there.
    pub fn capabilities(&self) -> &Capabilities {
        &self.0
    }
}

/// Compiles models to modules: for which targets, for which sizes, with which floats. Without a target the module runs on every
/// Vulkan 1.1 device.
///
/// ```
/// use halite::compile::{Compiler, Model, Target};
///
/// let model = Model::open("../demo/digits/digits.onnx")?;
/// assert_eq!(model.functions()?[0].inputs[0].name, "picture");
///
/// let compiled = Compiler::new().target(Target::named("rdna3")?).compile(&model)?;
/// let mut module = Vec::new();
/// compiled.write(&mut module).expect("a vector takes everything");
/// assert_eq!(module.len() as u64, compiled.byte_len());
/// # Ok::<(), halite::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Compiler {
    targets: Vec<Target>,
    no_baseline: bool,
    precision: Precision,
    tuning: Tuning,
    sizes: Sizes,
    functions: Vec<String>,
    module_name: Option<String>,
    parameter_scope: Option<String>,
    states: StateChoice,
}

impl Compiler {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a target. A module runs the kernels of the target that fits its device best.
    #[must_use]
    pub fn target(mut self, target: Target) -> Self {
        self.targets.push(target);
        self
    }

    /// Whether kernels for every Vulkan 1.1 device are in the module too; they are, unless this says otherwise.
    #[must_use]
    pub fn baseline(mut self, included: bool) -> Self {
        self.no_baseline = !included;
        self
    }

    /// Which floats are used inside.
    #[must_use]
    pub fn precision(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self
    }

    /// Which measurements of kernels count.
    #[must_use]
    pub fn tuning(mut self, tuning: Tuning) -> Self {
        self.tuning = tuning;
        self
    }

    /// Sizes and values that the model leaves open.
    #[must_use]
    pub fn sizes(mut self, sizes: Sizes) -> Self {
        self.sizes = sizes;
        self
    }

    /// Adds a function that is compiled; without any, all are.
    #[must_use]
    pub fn function(mut self, name: impl Into<String>) -> Self {
        self.functions.push(name.into());
        self
    }

    /// Name of the module; without, that of the model's file.
    #[must_use]
    pub fn module_name(mut self, name: impl Into<String>) -> Self {
        self.module_name = Some(name.into());
        self
    }

    /// Names state: inputs and the outputs that replace them, such as `past_*` and `present_*`. What a `*` of the first stands for
    /// goes into the `*` of the second. May be called again. The module's functions write such outputs into the buffers of the
    /// inputs, so callers in other runtimes have to hand in buffers that may be written. See [`State`](crate::State).
    #[must_use]
    pub fn state(mut self, input: impl Into<String>, output: impl Into<String>) -> Self {
        self.states.name(input, output);
        self
    }

    /// Looks for state by names, types and sizes, where none is named with [`Compiler::state`].
    #[must_use]
    pub fn find_state(mut self, looks: bool) -> Self {
        self.states.found = looks;
        self
    }

    /// Puts the weights into an archive beside the module ([`Compiled::write_parameters`]), which asks for them under this
    /// scope.
    #[must_use]
    pub fn external_parameters(mut self, scope: impl Into<String>) -> Self {
        self.parameter_scope = Some(scope.into());
        self
    }

    /// Compiles a model. The same model and choices give the same bytes.
    ///
    /// # Errors
    /// The model is damaged or not supported, or sizes are missing.
    pub fn compile(&self, model: &Model) -> Result<Compiled> {
        self.compile_with(model, &RunOptions::new())
    }

    /// As [`Compiler::compile`], with options.
    ///
    /// # Errors
    /// As [`Compiler::compile`], and when the options end it.
    pub fn compile_with(&self, model: &Model, options: &RunOptions) -> Result<Compiled> {
        if self.no_baseline && self.targets.is_empty() {
            return Err(Error::invalid(
                "without the baseline there is nothing to compile for; name a target",
            ));
        }
        let limits = options.begin()?;
        let options = self.options(model)?;
        let (program, half) = self.program(model, &options, &limits)?;
        let compiled = inner::compile(&program, &options, &super::control(&limits)).map_err(super::error)?;
        let half_precision = HalfPrecision { half: half.half, kept: half.kept };
        Ok(Compiled { inner: compiled, half_precision })
    }

    fn options(&self, model: &Model) -> Result<inner::CompileOptions> {
        Ok(inner::CompileOptions {
            targets: self.targets.iter().map(|target| target.0.clone()).collect(),
            baseline: !self.no_baseline,
            at_hand: false,
            tuning: self.tuning.read()?.tuning(),
            module_name: self.module_name.clone().unwrap_or_else(|| identifier(model.name())),
            parameters: match &self.parameter_scope {
                Some(scope) => ParameterStorage::External { scope: scope.clone() },
                None => ParameterStorage::Embedded,
            },
            shares_results: false,
        })
    }

    /// The model's graphs as text: after all passes, or at another time between them.
    ///
    /// # Errors
    /// As [`Compiler::compile`].
    pub fn print_graph(&self, model: &Model, when: PrintGraph) -> Result<String> {
        let (control, options) = (super::control(&Limits::default()), self.options(model)?);
        let model = model.inner();
        let print = |(name, versions): (String, Vec<Bindings>)| {
            let precision = self.precision.into();
            model.print_graphs((&name, &versions), precision, &options, when, &control)
        };
        let all = self.versions(model)?.into_iter();
        all.map(print).collect::<std::result::Result<_, _>>().map_err(super::error)
    }

    /// Names of the functions that are compiled.
    fn names(&self, model: &inner::Model) -> Result<Vec<String>> {
        let known = model.functions();
        if let Some(name) = self.functions.iter().find(|name| !known.contains(name)) {
            return Err(Error::invalid(format!(
                "there is no function '{name}'; the model has {}",
                known.join(", ")
            )));
        }
        Ok(if self.functions.is_empty() { known } else { self.functions.clone() })
    }

    /// The functions that are compiled, each with its versions.
    fn versions(&self, model: &inner::Model) -> Result<Vec<(String, Vec<Bindings>)>> {
        let (names, sizes) = (self.names(model)?, self.sizes.combinations()?);
        let ports: Vec<Ports> = names.iter().map(|name| Ports::called(model, name)).collect::<Result<_>>()?;
        let visible: Vec<_> = ports.iter().map(Ports::visible).collect();
        let mut states = self.states.pairs(&visible)?;
        for (states, ports) in states.iter_mut().zip(&ports) {
            states.extend(ports.kept.iter().map(|kept| (kept.input.clone(), kept.output.clone())));
        }
        let with = |states: &inner::states::Pairs| {
            sizes.iter().map(|one| Bindings { states: states.clone(), ..one.clone() }).collect()
        };
        Ok(names.into_iter().zip(&states).map(|(name, states)| (name, with(states))).collect())
    }

    fn program(
        &self,
        model: &Model,
        options: &inner::CompileOptions,
        limits: &Limits,
    ) -> Result<(Program, inner::passes::HalfPrecision)> {
        let control = super::control(limits);
        let mut program = Program { functions: Vec::new(), model: Some(model.inner().info()) };
        let mut total = inner::passes::HalfPrecision::default();
        for (name, versions) in self.versions(model.inner())? {
            let built =
                model.inner().open_function(&name, &versions, self.precision.into(), options, &control);
            let (function, half) = built.map_err(super::error)?;
            total.add(half);
            program.functions.push(function);
        }
        Ok((program, total))
    }
}

/// A module that was made from a model.
#[derive(Clone, Debug)]
pub struct Compiled {
    inner: inner::Compiled,
    half_precision: HalfPrecision,
}

/// What became of a model's operations with [`Precision::F16`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HalfPrecision {
    /// Operations that use 16 bits.
    pub half: usize,
    /// Operations that keep 32: no kernel takes less, or a weight does not fit.
    pub kept: usize,
}

impl Compiled {
    /// Bytes of the module file.
    pub fn byte_len(&self) -> u64 {
        self.inner.module.len()
    }

    /// Writes the module file. The weights go from the model's file to the writer without a copy in memory.
    ///
    /// # Errors
    /// The writer failed.
    pub fn write(&self, out: &mut impl io::Write) -> io::Result<()> {
        self.inner.module.write(out)
    }

    /// The module file in memory.
    pub fn to_vec(&self) -> Vec<u8> {
        self.inner.module.to_vec()
    }

    /// Bytes of the weights that are kept outside of the module; `None` where there are none.
    pub fn parameter_bytes(&self) -> Option<u64> {
        let archive = self.inner.parameters.as_ref()?;
        Some(archive.entries.iter().map(|(_, bytes)| bytes.len() as u64).sum())
    }

    /// Writes the weights as a parameter archive (`.irpa`); nothing where there are none.
    ///
    /// # Errors
    /// The writer failed.
    pub fn write_parameters(&self, out: &mut impl io::Write) -> io::Result<()> {
        self.inner.parameters.as_ref().map_or(Ok(()), |archive| archive.write(out))
    }

    /// What was decided, and what it costs.
    pub fn report(&self) -> &Report {
        &self.inner.report
    }

    /// With [`Precision::F16`], how many operations use 16 bits.
    pub fn half_precision(&self) -> HalfPrecision {
        self.half_precision
    }
}

/// A name as modules have them.
pub(crate) fn identifier(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
    let name: String = text.chars().map(plain).collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_modules_are_identifiers() {
        assert_eq!(identifier("mobilenet-v2.int8"), "mobilenet_v2_int8");
        assert_eq!(identifier("3d"), "_3d");
    }
}
