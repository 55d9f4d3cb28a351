//! Contexts: modules linked together with their state, and invocations of their functions.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use halite_abi::{Result, ResultExt, bail, export};
use parking_lot::{Mutex, MutexGuard};

use crate::{
    Arguments, Invocation, Module, NativeModule, Ref, Results, Value,
    exec::{Globals, Linked, Machine, Stack, State},
    invocation::Watch,
    link,
    memory::Memory,
    signature::Signature,
};

/// What a context may use. The defaults are far above what real modules need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most nested calls.
    pub call_depth: usize,
    /// Most bytes of buffers and lists that modules allocate and hold at one time.
    pub memory_bytes: u64,
    /// Most bytes of scalar globals per module.
    pub global_bytes: u32,
    /// Most ref globals per module.
    pub global_refs: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { call_depth: 4096, memory_bytes: 4 << 30, global_bytes: 16 << 20, global_refs: 1 << 20 }
    }
}

/// How a context is made.
#[derive(Clone, Debug, Default)]
pub struct ContextOptions {
    /// What modules may use.
    pub limits: Limits,
    /// Bounds the `__init` functions.
    pub init: Invocation,
}

/// Longest wait for another invocation between two looks at the caller's cancellation.
const LOCK_SLICE: Duration = Duration::from_millis(50);

/// Longest time that `__deinit` functions get when a context is dropped.
const TEARDOWN: Duration = Duration::from_secs(10);

/// Modules linked together, with their global state. Invocations from several threads run one after the other.
pub struct Context {
    id: u64,
    linked: Vec<Linked>,
    natives: Vec<Arc<dyn NativeModule>>,
    memory: Arc<Memory>,
    state: Mutex<State>,
    /// Modules whose `__init` succeeded, from the first on.
    initialized: usize,
}

/// An exported function of a context.
#[derive(Clone, Debug)]
pub struct FunctionHandle {
    context: u64,
    module: u32,
    ordinal: u32,
    name: Arc<str>,
    signature: Arc<Signature>,
}

impl FunctionHandle {
    /// `module.function`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The same function under another name in error messages.
    #[must_use]
    pub fn shown_as(self, name: &str) -> Self {
        FunctionHandle { name: name.into(), ..self }
    }

    /// Kinds of arguments and results.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.linked.iter().map(|l| l.module.name())).finish()
    }
}

impl Context {
    /// Links modules in registration order, allocates their globals and runs their `__init`, without time limit.
    pub fn new(natives: &[Arc<dyn NativeModule>], modules: &[Arc<Module>]) -> Result<Context> {
        Context::with_options(natives, modules, &ContextOptions::default())
    }

    /// As [`Context::new`], with limits. NOT_FOUND when a dependency or required import is missing; INVALID_ARGUMENT
    /// when an import has another signature than what it names.
    pub fn with_options(
        natives: &[Arc<dyn NativeModule>],
        modules: &[Arc<Module>],
        options: &ContextOptions,
    ) -> Result<Context> {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        let linked = link::link(natives, modules)?;
        let globals = modules.iter().map(|m| globals(m, &options.limits)).collect::<Result<_>>()?;
        let states = natives.iter().map(|m| {
            m.create_state().context(|| format!("creating the state of native module '{}'", m.name()))
        });
        let state = State {
            globals,
            natives: states.collect::<Result<_>>()?,
            stack: Stack::new(options.limits.call_depth),
            args: Arguments::default(),
            results: Results::default(),
        };
        let mut context = Context {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            linked,
            natives: natives.to_vec(),
            memory: Memory::new(options.limits.memory_bytes),
            state: Mutex::new(state),
            initialized: 0,
        };
        for i in 0..modules.len() {
            context.call_export(i, export::INIT, &options.init)?;
            context.initialized = i + 1;
        }
        Ok(context)
    }

    /// The bytecode modules, in registration order.
    pub fn modules(&self) -> impl ExactSizeIterator<Item = &Arc<Module>> {
        self.linked.iter().map(|l| &l.module)
    }

    /// An exported function. NOT_FOUND says what modules and functions exist.
    pub fn lookup(&self, module: &str, export: &str) -> Result<FunctionHandle> {
        let named = || self.linked.iter().enumerate().rev().filter(|(_, l)| l.module.name() == module);
        for (i, linked) in named() {
            if let Some(ordinal) = linked.module.export(export) {
                let signature = linked.module.functions[ordinal as usize].signature.clone();
                let name = format!("{module}.{export}").into();
                return Ok(FunctionHandle { context: self.id, module: i as u32, ordinal, name, signature });
            }
        }
        match named().next() {
            None => {
                let names: Vec<_> = self.modules().map(|m| m.name()).collect();
                bail!(NotFound, "no module '{module}'; modules are {names:?}")
            }
            Some((_, linked)) => {
                let exports = linked.module.def().exports.iter().map(|e| e.local_name.as_str());
                let names: Vec<_> =
                    exports.filter(|n| !n.starts_with(export::HIDDEN_PREFIX)).take(20).collect();
                bail!(NotFound, "module '{module}' exports no function '{export}'; exports are {names:?}")
            }
        }
    }

    /// Calls a function and waits for it. Arguments must be of the kinds that the signature says, else
    /// INVALID_ARGUMENT. Errors of the module carry its stack trace as annotations. Other invocations of the context
    /// wait until this one ends, so a native function must not invoke the context that is calling it.
    pub fn invoke(
        &self,
        function: &FunctionHandle,
        args: &[Value],
        invocation: &Invocation,
    ) -> Result<Vec<Value>> {
        self.enter(invocation)?.invoke(function, args, invocation)
    }

    /// Waits until no other invocation runs, and keeps others out for as long as the result lives: for callers whose
    /// arguments depend on which invocation came before. CANCELLED or DEADLINE_EXCEEDED when the wait takes too long; a
    /// cancellation is seen within 50 ms.
    pub fn enter(&self, invocation: &Invocation) -> Result<Entered<'_>> {
        Ok(Entered { context: self, state: self.lock(invocation)? })
    }

    /// Runs the `__deinit` functions in reverse order and drops the context. The first error is returned; all
    /// modules are torn down.
    pub fn close(mut self, invocation: &Invocation) -> Result<()> {
        self.teardown(invocation)
    }

    fn run(&self, module: u32, ordinal: u32, args: &[Value], invocation: &Invocation) -> Result<Vec<Value>> {
        self.enter(invocation)?.run(module, ordinal, args, invocation)
    }

    /// Waits for other invocations to end, no longer than the deadline and the caller's patience.
    fn lock(&self, invocation: &Invocation) -> Result<MutexGuard<'_, State>> {
        if invocation.deadline.is_none() && invocation.cancel.is_none() {
            return Ok(self.state.lock());
        }
        loop {
            let slice = Instant::now() + LOCK_SLICE;
            let until = invocation.deadline.map_or(slice, |deadline| deadline.min(slice));
            if let Some(state) = self.state.try_lock_until(until) {
                return Ok(state);
            }
            invocation.check().context(|| "while another invocation of the context ran")?;
        }
    }

    fn call_export(&self, module: usize, export: &str, invocation: &Invocation) -> Result<()> {
        let loaded = &self.linked[module].module;
        if let Some(ordinal) = loaded.export(export) {
            self.run(module as u32, ordinal, &[], invocation)
                .context(|| format!("running {export} of module '{}'", loaded.name()))?;
        }
        Ok(())
    }

    fn teardown(&mut self, invocation: &Invocation) -> Result<()> {
        let mut result = Ok(());
        for i in (0..std::mem::take(&mut self.initialized)).rev() {
            let done = self.call_export(i, export::DEINIT, invocation);
            result = result.and(done);
        }
        result
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if let Err(status) = self.teardown(&Invocation::until(Instant::now() + TEARDOWN)) {
            log::warn!("tearing down a VM context: {status}");
        }
        // Globals go first: lists that they hold are not garbage before.
        self.state.get_mut().globals.clear();
        self.memory.free_cycles();
    }
}

/// A context that runs nobody else's invocation. See [`Context::enter`].
pub struct Entered<'a> {
    context: &'a Context,
    state: MutexGuard<'a, State>,
}

impl fmt::Debug for Entered<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Entered").field(self.context).finish()
    }
}

impl Entered<'_> {
    /// As [`Context::invoke`].
    pub fn invoke(
        &mut self,
        function: &FunctionHandle,
        args: &[Value],
        invocation: &Invocation,
    ) -> Result<Vec<Value>> {
        if function.context != self.context.id {
            bail!(InvalidArgument, "function '{}' was looked up in another context", function.name);
        }
        self.run(function.module, function.ordinal, args, invocation)
            .context(|| format!("invoking function '{}'", function.name))
    }

    fn run(
        &mut self,
        module: u32,
        ordinal: u32,
        args: &[Value],
        invocation: &Invocation,
    ) -> Result<Vec<Value>> {
        let mut machine = Machine {
            linked: &self.context.linked,
            natives: &self.context.natives,
            state: &mut self.state,
            watch: Watch::new(invocation.clone()),
            memory: &self.context.memory,
        };
        machine.run(module, ordinal, args)
    }
}

/// Zeroed globals of a module.
fn globals(module: &Module, limits: &Limits) -> Result<Globals> {
    let def = module.def();
    let (bytes, refs) = (def.global_bytes_capacity, def.global_ref_count);
    if bytes > limits.global_bytes || refs > limits.global_refs {
        bail!(
            ResourceExhausted,
            "module '{}' has {bytes} bytes and {refs} refs of globals; the limits are {} and {}",
            module.name(),
            limits.global_bytes,
            limits.global_refs
        );
    }
    Ok(Globals { bytes: vec![0; bytes as usize], refs: vec![Ref::NULL; refs as usize] })
}
