//! Executables of format `vmvx-bytecode-fb`: a module whose functions run one workgroup each.
//!
//! # The format
//! The data is a complete module file. Each export is a kernel with the signature [`SIGNATURE`]: local memory, constants,
//! a list of bindings, then workgroup id, size and count, each in x, y and z. Attributes `binding_count`, `constant_count`
//! and `local_memory` say what it needs. An export `__set_constants` takes the executable's constants once. The only
//! module that it may import from is `vmvx` ([`kernels`]).
//!
//! # Why bindings are sound
//! Bytecode is untrusted. It reaches bindings through checked copies only; it may overlap, keep or mix them up as it
//! likes. What it keeps is of no use after its dispatch ([`memory::Lease`]). A VM context serves one dispatch at a time,
//! so no two threads use the same view, and workgroups of a dispatch run one after the other, so none races with another.

mod kernels;
mod memory;

use std::{fmt, ops::Range, sync::Arc};

use bytes::Bytes;
use halite_abi::{Result, ResultExt, bail, export, status};
use halite_formats::vmfb::{self, Export, Function, ModuleDef};
use halite_hal::{ExecutableDesc, FunctionInfo};
use halite_vm::{Buffer, Context, FunctionHandle, Invocation, List, Module, NativeModule, Ref, Type, Value};
use parking_lot::Mutex;

use self::memory::{Lease, LeasedMemory};
use crate::code::{Call, Code, HostRange, MAX_BINDINGS, MAX_CONSTANTS, Needs, Worker, workgroup_position};

/// Calling convention of every kernel.
const SIGNATURE: &str = "0rrriiiiiiiii_v";

/// Takes the executable's constants.
const SET_CONSTANTS: &str = "__set_constants";

/// Exports that are no kernels. Other names may begin like these: `__builtin_splat_i64` is a kernel.
const HOOKS: [&str; 3] = [export::INIT, export::DEINIT, SET_CONSTANTS];

/// Most bytes of local memory that a kernel may ask for.
const MAX_LOCAL_MEMORY: usize = 64 << 20;

/// A loaded module and the contexts that run it.
pub(crate) struct VmvxCode {
    module: Arc<Module>,
    constants: Bytes,
    functions: Vec<FunctionInfo>,
    local_memory: Vec<usize>,
    /// Contexts that no dispatch uses now. There are never more than dispatches ran at the same time.
    idle: Mutex<Vec<Instance>>,
}

/// A context of its own, so that dispatches on several threads do not wait for each other.
struct Instance {
    context: Context,
    functions: Vec<FunctionHandle>,
}

impl fmt::Debug for VmvxCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VmvxCode('{}', {} functions)", self.module.name(), self.functions.len())
    }
}

impl VmvxCode {
    /// Loads a module and makes the first context. INVALID_ARGUMENT when the data is no such module.
    pub fn load(desc: &ExecutableDesc) -> Result<Self> {
        let def = vmfb::read_module(desc.data.clone()).map_err(|e| status!(InvalidArgument, "{e}"))?;
        let (mut functions, mut local_memory) = (Vec::new(), Vec::new());
        for (export, function) in kernels(&def) {
            let info = kernel(export, function).context(|| format!("kernel '{}'", export.local_name))?;
            functions.push(info.0);
            local_memory.push(info.1);
        }
        let constants = desc.constants.iter().flat_map(|word| word.to_le_bytes()).collect();
        let module = Module::load(def)?;
        let code = VmvxCode { module, constants, functions, local_memory, idle: Mutex::default() };
        let first = code.instance()?;
        code.idle.lock().push(first);
        Ok(code)
    }

    /// A new context, with its constants set.
    fn instance(&self) -> Result<Instance> {
        let natives: [Arc<dyn NativeModule>; 1] = [Arc::new(kernels::Kernels)];
        let context = Context::new(&natives, std::slice::from_ref(&self.module))?;
        let name = self.module.name();
        let functions =
            self.functions.iter().map(|f| context.lookup(name, &f.name)).collect::<Result<_>>()?;
        if self.module.export(SET_CONSTANTS).is_some() {
            let set = context.lookup(name, SET_CONSTANTS)?;
            let constants = Value::Ref(Ref::new(Buffer::from_bytes(self.constants.clone())));
            context.invoke(&set, &[constants], &Invocation::default())?;
        } else if !self.constants.is_empty() {
            bail!(
                InvalidArgument,
                "{} bytes of constants were given, but the module has no '{SET_CONSTANTS}'",
                self.constants.len()
            );
        }
        Ok(Instance { context, functions })
    }
}

/// Exports that are kernels, with their functions.
fn kernels(def: &ModuleDef) -> impl Iterator<Item = (&Export, &Function)> {
    let named = def.exports.iter().filter(|export| !HOOKS.contains(&export.local_name.as_str()));
    named.filter_map(|export| Some((export, def.functions.get(export.ordinal as usize)?)))
}

/// Facts of a kernel, and its bytes of local memory.
fn kernel(export: &Export, function: &Function) -> Result<(FunctionInfo, usize)> {
    let signature = &function.signature;
    if signature.calling_convention != SIGNATURE {
        bail!(
            InvalidArgument,
            "its calling convention is '{}' and must be '{SIGNATURE}'; compile it with a matching compiler",
            signature.calling_convention
        );
    }
    let number = |key: &str, most: usize| match signature.attr(key) {
        None => Ok(0),
        Some(text) => match text.parse::<usize>() {
            Ok(value) if value <= most => Ok(value),
            _ => bail!(InvalidArgument, "attribute {key} is '{text}' and must be a number of at most {most}"),
        },
    };
    let info = FunctionInfo {
        name: export.local_name.clone(),
        binding_count: number("binding_count", MAX_BINDINGS)? as u32,
        constant_count: number("constant_count", MAX_CONSTANTS)? as u32,
        workgroup_size: [1, 1, 1],
    };
    Ok((info, number("local_memory", MAX_LOCAL_MEMORY)?))
}

impl Code for VmvxCode {
    fn functions(&self) -> &[FunctionInfo] {
        &self.functions
    }

    /// One workgroup after the other: views of bindings may overlap.
    fn needs(&self, function: usize) -> Needs {
        Needs { local_memory: self.local_memory.get(function).copied().unwrap_or(0), parallel: false }
    }

    fn may_hang(&self) -> bool {
        true
    }

    fn run(&self, call: &Call<'_>, workgroups: Range<u64>, worker: &mut Worker<'_>) -> Result<()> {
        let idle = self.idle.lock().pop();
        let instance = idle.map_or_else(|| self.instance(), Ok)?;
        let lease = Lease::new();
        // Dropped before this function returns, also when it panics: nothing gets at the memory after that.
        let guard = EndOnDrop(&lease);
        let done = instance.dispatch(call, workgroups, worker, &lease);
        drop(guard);
        self.idle.lock().push(instance);
        done
    }
}

struct EndOnDrop<'a>(&'a Lease);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Instance {
    fn dispatch(
        &self,
        call: &Call<'_>,
        workgroups: Range<u64>,
        worker: &mut Worker<'_>,
        lease: &Lease,
    ) -> Result<()> {
        let function = self.functions.get(call.function);
        let function = function.ok_or_else(|| status!(Internal, "there is no kernel {}", call.function))?;
        let view = |range| {
            // SAFETY: bindings and local memory are live for the length of the call, which the lease does not outlast;
            // both are ordinary initialised memory that nobody has a Rust reference to while the bytecode runs (the
            // slice of `worker` is borrowed for as long, and not touched); only this thread runs the context.
            let memory = unsafe { LeasedMemory::new(range, lease) };
            Value::Ref(Ref::new(Buffer::from_host_memory(Arc::new(memory))))
        };
        let local =
            HostRange { pointer: worker.local_memory.as_mut_ptr(), length: worker.local_memory.len() };
        let constants: Bytes = call.constants.iter().flat_map(|word| word.to_le_bytes()).collect();
        let bindings: Vec<_> = call.bindings.pointers.iter().zip(&call.bindings.lengths).collect();
        let bindings: Vec<Value> =
            bindings.into_iter().map(|(&pointer, &length)| view(HostRange { pointer, length })).collect();
        let local = view(local);
        let constants = Value::Ref(Ref::new(Buffer::from_bytes(constants)));
        for workgroup in workgroups {
            // The list is a fresh one each time, since bytecode may change it.
            let list = List::new(Type::Ref("vm.buffer".into()));
            bindings.iter().try_for_each(|binding| list.push(binding.clone()))?;
            let id = workgroup_position(call.counts, workgroup).map(u32::cast_signed);
            let count = call.counts.map(u32::cast_signed);
            let [x, y, z] = [id, [1; 3], count];
            let mut args = vec![local.clone(), constants.clone(), Value::Ref(Ref::new(list))];
            args.extend([x, y, z].into_iter().flatten().map(Value::I32));
            self.context.invoke(function, &args, &Invocation::default())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
