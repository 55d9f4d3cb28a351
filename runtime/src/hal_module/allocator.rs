//! The functions `hal.allocator.*` and `hal.ex.file.from_memory`.

use halite_abi::{MemoryAccess, Result, bail, import::hal, object, status};
use halite_hal::{BufferSpan, File};
use halite_vm::{Arguments, Ref, Results};

use super::{
    Entry, HalModule,
    args::{self, buffer_params, size},
    entry,
    objects::{AllocatorObject, BufferObject, DeviceObject, FileObject},
};
use crate::vmdata;

pub(super) const FUNCTIONS: &[Entry] = &[
    entry(hal::ALLOCATOR_SELECT, select),
    entry(hal::ALLOCATOR_ALLOCATE, allocate),
    entry(hal::ALLOCATOR_IMPORT, import),
    entry(hal::EX_FILE_FROM_MEMORY, file_from_memory),
];

/// Without a placement policy the first candidate is as good as any.
fn select(_: &HalModule, args: &mut Arguments, results: &mut Results) -> Result<()> {
    let (_memory_type, _usage, _flags) = (args.i32()?, args.i32()?, args.i64()?);
    if args.span()? == 0 {
        bail!(InvalidArgument, "allocator.select was given no device to choose from");
    }
    let device = args.reference()?;
    device.expect::<DeviceObject>(object::DEVICE)?;
    results.reference(device);
    results.i64(args.i64()?);
    Ok(())
}

fn allocate(_: &HalModule, args: &mut Arguments, results: &mut Results) -> Result<()> {
    let allocator = args.object::<AllocatorObject>(object::ALLOCATOR)?;
    let affinity = args::affinity(args)?;
    let params = buffer_params(args, affinity)?;
    let byte_length = size(args, "allocation size")?;
    let buffer = allocator.device.allocate_buffer(&params, byte_length)?;
    results.object(BufferObject(BufferSpan::whole(buffer)));
    Ok(())
}

/// Module memory is never mapped to the device: a program that only tries gets null and then uploads through a
/// queue, which batches; one that insists gets a filled allocation.
fn import(_: &HalModule, args: &mut Arguments, results: &mut Results) -> Result<()> {
    let allocator = args.object::<AllocatorObject>(object::ALLOCATOR)?;
    let only_try = args.i32()? != 0;
    let affinity = args::affinity(args)?;
    let params = buffer_params(args, affinity)?;
    let source = args.reference()?;
    let (offset, length) = (args.i64()?, args.i64()?);
    if only_try {
        results.reference(Ref::NULL);
        return Ok(());
    }
    let bytes = vmdata::range(&source, offset, length)?;
    let buffer = allocator.device.allocate_buffer(&params, bytes.len() as u64)?;
    buffer.write(0, &bytes)?;
    results.object(BufferObject(BufferSpan::whole(buffer)));
    Ok(())
}

fn file_from_memory(_: &HalModule, args: &mut Arguments, results: &mut Results) -> Result<()> {
    let _device = args::device(args)?;
    let _affinity = args::affinity(args)?;
    let access = MemoryAccess::from_bits_retain(args::bits(args)?);
    let source = args.reference()?;
    let (offset, length) = (args.i64()?, args.i64()?);
    let _flags = args.i32()?;
    if !MemoryAccess::READ.contains(access) {
        return Err(status!(
            PermissionDenied,
            "files over host memory are read-only; access {:#x} was asked for",
            access.bits()
        ));
    }
    results.object(FileObject(File::Memory(vmdata::range(&source, offset, length)?)));
    Ok(())
}
