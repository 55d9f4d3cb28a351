//! The native module `io_parameters`: the functions that [`halite_abi::import::io_parameters`] lists, as queue operations.

use std::{any::Any, sync::Arc};

use halite_abi::{
    Import, Result, ResultExt, bail,
    import::io_parameters::{GATHER, LOAD, NAME, RESULTS_FIND, RESULTS_KEEP, SCATTER, VERSION},
    parameters::SpanRecord,
    status,
};
use halite_hal::{BufferSpan, QueueAffinity};
use halite_vm::{Arguments, NativeFunction, NativeModule, Ref, Results, Value};

use super::{
    index::{Parameter, ParameterIndex},
    results::Recipe,
    shared::{SharedParameters, Wanted, stored},
    table::Table,
    transfer::Transfers,
};
use crate::{
    hal_module::{BufferObject, QueueArgs, read_buffer, read_buffer_params, read_fence},
    progress::{PARAMETERS, Progress, ProgressSink},
    vmdata,
};

type Handler = fn(&ParameterModule, &mut Arguments, &mut Results) -> Result<()>;

const FUNCTIONS: [(Import, Handler); 5] = [
    (LOAD, ParameterModule::load),
    (GATHER, |module, args, _| module.gather(args)),
    (SCATTER, |module, args, _| module.scatter(args)),
    (RESULTS_FIND, ParameterModule::find_results),
    (RESULTS_KEEP, |module, args, _| module.keep_results(args)),
];

/// The native module `io_parameters` over an index. Immutable; any thread may call it.
#[derive(Debug)]
pub struct ParameterModule {
    index: ParameterIndex,
    progress: Progress,
    shared: Option<Arc<SharedParameters>>,
}

impl ParameterModule {
    /// The module over these parameters.
    pub fn new(index: ParameterIndex) -> Self {
        ParameterModule { index, progress: Progress::default(), shared: None }
    }

    /// The same module, which tells how many bytes of the parameters that a program asks for at one time were read.
    #[must_use]
    pub fn with_progress(mut self, sink: Option<ProgressSink>) -> Self {
        self.progress = Progress::new(sink, PARAMETERS);
        self
    }

    /// The same module, which loads parameters together with others.
    #[must_use]
    pub fn with_shared(mut self, shared: Option<Arc<SharedParameters>>) -> Self {
        self.shared = shared;
        self
    }

    /// The parameters.
    pub(crate) fn index(&self) -> &ParameterIndex {
        &self.index
    }

    /// Puts each parameter in a buffer of its own.
    fn load(&self, args: &mut Arguments, results: &mut Results) -> Result<()> {
        let queue = QueueArgs::read(args)?;
        let scope = scope(args)?;
        let target_affinity = QueueAffinity(args.i64()?.cast_unsigned());
        let params = read_buffer_params(args, target_affinity)?;
        let table = table(args)?;
        let (mut found, mut total) = (Vec::with_capacity(table.len()), 0u64);
        for entry in table.iter() {
            let (key, span) = entry?;
            let parameter = self.find(&scope, key, span)?;
            let wanted =
                self.shared.as_deref().and_then(|all| Some((all, Wanted::of(parameter, span, params)?)));
            let buffer = wanted.as_ref().and_then(|(all, wanted)| all.find(wanted));
            total = total.saturating_add(if buffer.is_none() { span.length } else { 0 });
            found.push((key, span, parameter, wanted, buffer));
        }
        let mut transfers = Transfers::new(&queue, args.invocation(), &self.progress, total);
        let (mut buffers, mut made) = (Vec::with_capacity(found.len()), Vec::new());
        for (key, span, parameter, wanted, buffer) in found {
            let buffer = match buffer {
                Some(buffer) => BufferSpan::whole(buffer),
                None => {
                    let byte_length = span.buffer_offset.checked_add(span.length);
                    let overflows =
                        || status!(OutOfRange, "buffer for parameter '{key}' overflows: {span:?}");
                    let buffer =
                        queue.device().allocate_buffer(&params, byte_length.ok_or_else(overflows)?)?;
                    let buffer = BufferSpan::whole(buffer);
                    transfers
                        .read(parameter, &span, &buffer)
                        .context(|| format!("loading parameter '{key}'"))?;
                    made.extend(wanted.map(|(all, wanted)| (all, wanted, buffer.buffer.clone())));
                    buffer
                }
            };
            buffers.push(Value::Ref(Ref::new(BufferObject(buffer))));
        }
        transfers.finish()?;
        for (all, wanted, buffer) in made {
            all.add(wanted, &buffer, &queue.signal);
        }
        results.reference(vmdata::list(buffers)?);
        Ok(())
    }

    /// Reads parameters into ranges of one buffer.
    fn gather(&self, args: &mut Arguments) -> Result<()> {
        let queue = QueueArgs::read(args)?;
        let scope = scope(args)?;
        let target = read_buffer(args)?;
        let table = table(args)?;
        let total = table.byte_length();
        let mut transfers = Transfers::new(&queue, args.invocation(), &self.progress, total);
        for entry in table.iter() {
            let (key, span) = entry?;
            let parameter = self.find(&scope, key, span)?;
            transfers.read(parameter, &span, &target).context(|| format!("gathering parameter '{key}'"))?;
        }
        transfers.finish()
    }

    /// Writes ranges of one buffer to parameters.
    fn scatter(&self, args: &mut Arguments) -> Result<()> {
        let queue = QueueArgs::read(args)?;
        let source = read_buffer(args)?;
        let scope = scope(args)?;
        let table = table(args)?;
        let silent = Progress::default();
        let mut transfers = Transfers::new(&queue, args.invocation(), &silent, table.byte_length());
        for entry in table.iter() {
            let (key, span) = entry?;
            let parameter = self.find(&scope, key, span)?;
            transfers.write(parameter, &span, &source).context(|| format!("scattering parameter '{key}'"))?;
        }
        transfers.finish()
    }

    /// The list of buffers with what another program computed in the same way of the same parameters; null where there are none.
    fn find_results(&self, args: &mut Arguments, results: &mut Results) -> Result<()> {
        let recipe = self.recipe(args)?;
        let found = self.shared.as_deref().zip(recipe).and_then(|(all, recipe)| all.results.find(&recipe));
        let buffer = |buffer| Value::Ref(Ref::new(BufferObject(BufferSpan::whole(buffer))));
        results.reference(match found {
            Some(buffers) => vmdata::list(buffers.into_iter().map(buffer).collect())?,
            None => Ref::NULL,
        });
        Ok(())
    }

    /// Lets other programs have what this one computed of parameters, behind a fence.
    fn keep_results(&self, args: &mut Arguments) -> Result<()> {
        let filled = read_fence(args)?;
        let recipe = self.recipe(args)?;
        let buffers = (0..args.span()?).map(|_| read_buffer(args)).collect::<Result<Vec<_>>>()?;
        if let Some((all, recipe)) = self.shared.as_deref().zip(recipe) {
            all.results.keep(recipe, &buffers, &filled);
        }
        Ok(())
    }

    /// Scope, text and parameters of what is computed. None where the parameters are not in memory.
    fn recipe(&self, args: &mut Arguments) -> Result<Option<Recipe>> {
        let scope = scope(args)?;
        let how = vmdata::bytes(&args.reference()?)?;
        let table = table(args)?;
        let mut sources = Some(Vec::with_capacity(table.len()));
        for entry in table.iter() {
            let (key, span) = entry?;
            let source = stored(self.find(&scope, key, span)?, span);
            sources = sources.zip(source).map(|(mut sources, source)| {
                sources.push(source);
                sources
            });
        }
        Ok(sources.map(|sources| Recipe { how, sources }))
    }

    fn find(&self, scope: &str, key: &str, span: SpanRecord) -> Result<&Parameter> {
        let parameter = self.index.get(scope, key)?;
        let length = parameter.length();
        match span.parameter_offset.checked_add(span.length) {
            Some(end) if end <= length => Ok(parameter),
            _ => bail!(
                OutOfRange,
                "{} bytes at offset {} of parameter '{key}' in scope '{scope}' were asked for; it has {length}",
                span.length,
                span.parameter_offset
            ),
        }
    }
}

impl NativeModule for ParameterModule {
    fn name(&self) -> &str {
        NAME
    }

    fn version(&self) -> u32 {
        VERSION
    }

    fn lookup(&self, name: &str) -> Option<NativeFunction> {
        let ordinal = FUNCTIONS.iter().position(|(import, _)| import.name == name)?;
        Some(NativeFunction { ordinal: ordinal as u32, signature: FUNCTIONS[ordinal].0.signature })
    }

    fn call(
        &self,
        _state: &mut (dyn Any + Send),
        ordinal: u32,
        args: &mut Arguments,
        results: &mut Results,
    ) -> Result<()> {
        let (import, handler) = FUNCTIONS
            .get(ordinal as usize)
            .ok_or_else(|| status!(Internal, "module '{NAME}' has no function {ordinal}"))?;
        handler(self, args, results)
            .context(|| format!("while invoking native function {}", import.full_name))
    }
}

/// Next argument, the scope; null is the empty scope.
fn scope(args: &mut Arguments) -> Result<String> {
    let reference = args.reference()?;
    if reference.is_null() { Ok(String::new()) } else { vmdata::text(&reference, "parameter scope") }
}

fn table(args: &mut Arguments) -> Result<Table> {
    Table::new(
        vmdata::bytes(&args.reference()?)?,
        vmdata::bytes(&args.reference()?)?,
        vmdata::bytes(&args.reference()?)?,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_of_the_interface_is_there_and_no_other() {
        assert_eq!(FUNCTIONS.map(|(import, _)| import), *halite_abi::import::io_parameters::ALL);
    }
}
