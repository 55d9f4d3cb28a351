//! Owns functions: what they take and return, and calling them. Does not own: how they were loaded (`session` does).

use std::{fmt, sync::Arc};

use halite_formats::vmfb::FunctionSignature;
use halite_hal::{Deadline, Device, Fence};
use halite_status::{Result as StatusResult, ResultExt, status};
use halite_vm::{Context, FunctionHandle, Invocation, Kind, Ref, Signature, Value as VmValue};

use crate::{
    Result,
    cancel::CancelToken,
    declaration::{Declaration, TypeInfo},
    hal_module::{FenceObject, wait_for_fence},
    values,
    view::Value,
};

/// Arguments that an asynchronous function takes after the declared ones: the fence to wait for, the fence to signal.
const ASYNC_FENCES: usize = 2;

/// Limits of one call.
#[derive(Clone, Debug)]
pub struct CallOptions {
    /// When the call gives up with DEADLINE_EXCEEDED. Work that the device has begun runs to its end.
    pub deadline: Deadline,
    /// Stops the call with CANCELLED when it is triggered, within about 50 ms.
    pub cancel: Option<CancelToken>,
}

impl Default for CallOptions {
    fn default() -> Self {
        CallOptions { deadline: Deadline::Never, cancel: None }
    }
}

impl CallOptions {
    pub(crate) fn invocation(&self) -> Invocation {
        let deadline = match self.deadline {
            Deadline::Now => Some(std::time::Instant::now()),
            Deadline::At(instant) => Some(instant),
            Deadline::Never => None,
        };
        Invocation { deadline, cancel: self.cancel.as_ref().map(CancelToken::flag) }
    }
}

/// Facts about an exported function.
#[derive(Clone, Debug)]
pub struct FunctionInfo {
    /// Name of the module.
    pub module: String,
    /// Name within the module.
    pub name: String,
    /// Calling convention, such as `0rr_r`.
    pub calling_convention: String,
    /// Source signature as the compiler wrote it, if it did.
    pub declaration: Option<String>,
    /// Whether the function returns before its work is done and signals a fence (`coarse-fences`).
    pub is_async: bool,
    inputs: Vec<Kind>,
    outputs: Vec<Kind>,
    parsed: Option<Declaration>,
}

impl FunctionInfo {
    pub(crate) fn new(module: &str, name: &str, signature: &FunctionSignature) -> StatusResult<Self> {
        let declaration = signature.attr("iree.abi.declaration").map(str::to_owned);
        let parsed = declaration.as_deref().and_then(Declaration::parse);
        let is_async = signature.attr("iree.abi.model") == Some("coarse-fences");
        let convention = Signature::parse(&signature.calling_convention)
            .context(|| format!("reading the signature of '{module}.{name}'"))?;
        if convention.is_variadic() || (is_async && convention.args.len() < ASYNC_FENCES) {
            return Err(status!(
                InvalidArgument,
                "exported function '{module}.{name}' cannot have the signature '{}'",
                signature.calling_convention
            ));
        }
        let fences = if is_async { ASYNC_FENCES } else { 0 };
        let inputs = convention.plain_args().take(convention.args.len() - fences).collect();
        Ok(FunctionInfo {
            module: module.to_owned(),
            name: name.to_owned(),
            calling_convention: signature.calling_convention.clone(),
            declaration,
            is_async,
            inputs,
            outputs: convention.results,
            parsed,
        })
    }

    /// `module.name`.
    pub fn full_name(&self) -> String {
        format!("{}.{}", self.module, self.name)
    }

    /// How each argument of a call is passed. The fences of asynchronous functions are not among them.
    pub fn input_kinds(&self) -> &[Kind] {
        &self.inputs
    }

    /// How each result is passed.
    pub fn output_kinds(&self) -> &[Kind] {
        &self.outputs
    }

    /// Source type of input `index`, when the declaration tells.
    pub fn input_type(&self, index: usize) -> Option<&TypeInfo> {
        self.parsed.as_ref().and_then(|d| d.inputs.get(index)).map(|field| &field.ty)
    }

    /// Source type of output `index`, when the declaration tells.
    pub fn output_type(&self, index: usize) -> Option<&TypeInfo> {
        self.parsed.as_ref().and_then(|d| d.outputs.get(index)).map(|field| &field.ty)
    }

    /// The declaration, or the calling convention where there is none: what error messages show.
    pub fn describe(&self) -> &str {
        self.declaration.as_deref().unwrap_or(&self.calling_convention)
    }
}

/// What functions keep alive: the linked modules with their state, and the devices.
pub(crate) struct Shared {
    pub(crate) context: Context,
    pub(crate) devices: Vec<Arc<dyn Device>>,
}

/// An exported function of a loaded module. Cheap to clone; keeps the session's state alive.
#[derive(Clone)]
pub struct Function {
    pub(crate) shared: Arc<Shared>,
    pub(crate) handle: FunctionHandle,
    pub(crate) info: Arc<FunctionInfo>,
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Function").field("info", &self.info).finish_non_exhaustive()
    }
}

impl Function {
    /// Name within its module.
    pub fn name(&self) -> &str {
        &self.info.name
    }

    /// Facts about it.
    pub fn info(&self) -> &FunctionInfo {
        &self.info
    }

    /// The source signature, if the compiler left it.
    pub fn declaration(&self) -> Option<&str> {
        self.info.declaration.as_deref()
    }

    /// Calls the function and waits for its results, for as long as that takes.
    ///
    /// Calls of one session run one after the other, whatever threads they come from.
    pub fn call(&self, args: &[Value]) -> Result<Vec<Value>> {
        self.call_with(args, &CallOptions::default())
    }

    /// Calls the function within limits.
    pub fn call_with(&self, args: &[Value], options: &CallOptions) -> Result<Vec<Value>> {
        self.invoke(args, &options.invocation())
            .context(|| format!("`{}`", self.info.describe()))
            .map_err(Into::into)
    }

    fn invoke(&self, args: &[Value], invocation: &Invocation) -> StatusResult<Vec<Value>> {
        let mut vm_args =
            self.arguments(args).context(|| format!("invoking function '{}'", self.info.full_name()))?;
        let signal = self.signal_fence()?;
        if let Some(fence) = &signal {
            vm_args.push(VmValue::Ref(Ref::NULL));
            vm_args.push(VmValue::Ref(Ref::new(FenceObject(fence.clone()))));
        }
        let results = self.shared.context.invoke(&self.handle, &vm_args, invocation)?;
        if let Some(fence) = &signal
            && !wait_for_fence(fence, Deadline::Never, invocation)?
        {
            return Err(status!(Internal, "an endless wait ended before its fence was reached"));
        }
        results.into_iter().map(values::from_vm).collect()
    }

    fn arguments(&self, args: &[Value]) -> StatusResult<Vec<VmValue>> {
        let kinds = self.info.input_kinds();
        if kinds.len() != args.len() {
            return Err(status!(
                InvalidArgument,
                "input list and function mismatch; expected {} arguments but passed {}",
                kinds.len(),
                args.len()
            ));
        }
        let check = |(i, (value, kind)): (usize, (&Value, &Kind))| {
            if let (Some(TypeInfo::Tensor { .. }), Value::Buffer(_) | Value::List(_) | Value::Bytes(_)) =
                (self.info.input_type(i), value)
            {
                return Err(status!(InvalidArgument, "expected a tensor but got {}", value.kind()))
                    .context(|| format!("passing argument {i}"));
            }
            values::to_vm(value, *kind).context(|| format!("passing argument {i}"))
        };
        args.iter().zip(kinds).enumerate().map(check).collect()
    }

    /// The fence that an asynchronous function signals when its results are there.
    fn signal_fence(&self) -> StatusResult<Option<Fence>> {
        if !self.info.is_async {
            return Ok(None);
        }
        let device = self.shared.devices.first().ok_or_else(|| {
            status!(FailedPrecondition, "an asynchronous function needs a device; give the session one")
        })?;
        Ok(Some(Fence::new(device.create_semaphore(0)?, 1)))
    }
}
