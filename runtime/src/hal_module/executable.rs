//! The functions `hal.executable.*`.

use std::sync::Arc;

use halite_abi::{Result, bail, import::hal, object, query, status};
use halite_hal::{Device, ExecutableDesc};
use halite_vm::{Arguments, Ref, Results};

use super::{
    Entry, HalModule,
    args::{affinity, device},
    built::ExecutableObject,
    entry,
};
use crate::{
    hints::{self, Processor},
    vmdata,
};

pub(super) const FUNCTIONS: &[Entry] =
    &[entry(hal::EXECUTABLE_CREATE, create), entry(hal::EXECUTABLE_LOOKUP_FUNCTION, lookup_function)];

fn create(hal: &HalModule, args: &mut Arguments, results: &mut Results) -> Result<()> {
    let device = device(args)?;
    let _affinity = affinity(args)?;
    let format = vmdata::text(&args.reference()?, "executable format")?;
    let data = vmdata::bytes(&args.reference()?)?;
    let constants = constants(&args.reference()?)?;
    let origin = hints::find(&hal.hints, &data);
    let label = origin.as_ref().map_or_else(String::new, |o| format!("{}.rodata[{}]", o.module, o.segment));
    if let Some(origin) = &origin {
        check_processor(&*device.device, &format, origin.processors)?;
    }
    let subgroup_sizes = origin.map_or_else(Vec::new, |o| o.subgroup_sizes.to_vec());
    let desc = ExecutableDesc { format, data, constants, label, subgroup_sizes };
    let object = Arc::new(ExecutableObject::new(device.device.create_executable(desc)?));
    hal.executables.add(&object);
    results.reference(Ref::from_arc(object));
    Ok(())
}

/// Refuses machine code for processors with features that this one lacks: running it ends the process. Where a module has code of
/// the format for several processors, it is not known for which this is; then it is refused only if none of them would do.
fn check_processor(device: &dyn Device, format: &str, processors: &[Processor]) -> Result<()> {
    let mut own = processors.iter().filter(|processor| processor.format == format);
    let missing = |processor: &Processor| -> Vec<String> {
        let lacks = |name: &&String| device.query_i64(query::PROCESSOR_FEATURE, name) == Some(0);
        processor.features.iter().filter(lacks).cloned().collect()
    };
    let Some(first) = own.next() else { return Ok(()) };
    let lacking = missing(first);
    if lacking.is_empty() || own.any(|other| missing(other).is_empty()) {
        return Ok(());
    }
    let name = if first.name.is_empty() { "another processor" } else { &first.name };
    bail!(
        Incompatible,
        "the code was compiled for {name} and needs what this processor lacks: {}; compile the module with \
         --iree-llvmcpu-target-cpu=generic, or for this processor",
        lacking.join(", ")
    )
}

fn constants(source: &Ref) -> Result<Vec<u32>> {
    if source.is_null() {
        return Ok(Vec::new());
    }
    let bytes = vmdata::bytes(source)?;
    let (words, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() {
        bail!(InvalidArgument, "executable constants have {} bytes; they are 4-byte words", bytes.len());
    }
    Ok(words.iter().map(|word| u32::from_le_bytes(*word)).collect())
}

fn lookup_function(_: &HalModule, args: &mut Arguments, results: &mut Results) -> Result<()> {
    let executable = args.object::<ExecutableObject>(object::EXECUTABLE)?;
    let name = vmdata::text(&args.reference()?, "function name")?;
    let index = executable.executable.lookup(&name).ok_or_else(|| {
        let known: Vec<_> = executable.executable.functions().iter().map(|f| f.name.as_str()).collect();
        status!(NotFound, "executable has no function '{name}'; it has: {}", known.join(", "))
    })?;
    results.i64(index.into());
    Ok(())
}
