//! The functions `hal.buffer.*`.

use halite_abi::{Result, bail, import::hal, object, status};
use halite_hal::{BufferUsage, MemoryType};
use halite_vm::{Arguments, Results};

use super::{
    Entry, HalModule,
    args::{self, length, size},
    entry,
    objects::{AllocatorObject, BufferObject},
};
use crate::vmdata;

pub(super) const FUNCTIONS: &[Entry] = &[
    entry(hal::BUFFER_ASSERT, assert),
    entry(hal::BUFFER_ALLOCATION_PRESERVE, allocation_preserve),
    entry(hal::BUFFER_ALLOCATION_DISCARD, allocation_shared),
    entry(hal::BUFFER_ALLOCATION_IS_TERMINAL, allocation_shared),
    entry(hal::BUFFER_SUBSPAN, subspan),
    entry(hal::BUFFER_LENGTH, byte_length),
    entry(hal::BUFFER_LOAD, load),
    entry(hal::BUFFER_STORE, store),
];

/// A buffer of another device of the session passes: operations copy it as they need it.
fn assert(hal: &HalModule, args: &mut Arguments, _: &mut Results) -> Result<()> {
    let span = args::buffer(args)?;
    let name = args.reference()?;
    let allocator = args.optional_object::<AllocatorObject>(object::ALLOCATOR)?;
    let minimum_length = size(args, "minimum length")?;
    let memory_type = MemoryType::from_bits_retain(args::bits(args)?);
    let usage = BufferUsage::from_bits_retain(args::bits(args)?);
    let name = || vmdata::label(&name);
    if let Some(allocator) = allocator
        && allocator.device.id() != span.buffer.device_id()
    {
        let expected = allocator.device.info().uri();
        let Some(owner) = hal.device(span.buffer.device_id()) else {
            bail!(
                InvalidArgument,
                "{} was allocated on another device than '{expected}', which is none of this session; copy it to \
                 that device first",
                name()
            );
        };
        log::debug!(
            "{} lies on '{}' and is copied where '{expected}' works on it",
            name(),
            owner.info().uri()
        );
    }
    if span.length < minimum_length {
        bail!(
            InvalidArgument,
            "{} byte length mismatch; expected at least {minimum_length} but have {}",
            name(),
            span.length
        );
    }
    let has = span.buffer.memory_type();
    if !has.contains(memory_type) {
        bail!(InvalidArgument, "{} memory type mismatch; expected {memory_type:?} but have {has:?}", name());
    }
    let has = span.buffer.usage();
    if !has.contains(usage) {
        bail!(InvalidArgument, "{} usage mismatch; expected {usage:?} but have {has:?}", name());
    }
    Ok(())
}

/// Handles count their references: nothing needs to be noted to keep an allocation.
fn allocation_preserve(_: &HalModule, args: &mut Arguments, _: &mut Results) -> Result<()> {
    args::buffer(args).map(drop)
}

/// Whether the caller held the last reference. "No" is always safe: the memory goes back when the last handle is
/// dropped, and a program that may not reuse a buffer in place makes a new one.
fn allocation_shared(_: &HalModule, args: &mut Arguments, results: &mut Results) -> Result<()> {
    args::buffer(args)?;
    results.i32(0);
    Ok(())
}

fn subspan(_: &HalModule, args: &mut Arguments, results: &mut Results) -> Result<()> {
    let reference = args.reference()?;
    let whole = &reference.expect::<BufferObject>(object::BUFFER)?.0;
    let part = whole.subspan(size(args, "offset")?, length(args)?)?;
    if part.same_range(whole) {
        results.reference(reference);
    } else {
        results.object(BufferObject(part));
    }
    Ok(())
}

fn byte_length(_: &HalModule, args: &mut Arguments, results: &mut Results) -> Result<()> {
    let span = args::buffer(args)?;
    results.i64(i64::try_from(span.length).unwrap_or(i64::MAX));
    Ok(())
}

/// Number of bytes of a host access: 1 to 4.
fn access_width(args: &mut Arguments) -> Result<usize> {
    let width = args.i32()?;
    usize::try_from(width)
        .ok()
        .filter(|width| (1..=4).contains(width))
        .ok_or_else(|| status!(InvalidArgument, "host access of {width} bytes; it may be 1 to 4"))
}

fn load(_: &HalModule, args: &mut Arguments, results: &mut Results) -> Result<()> {
    let (span, offset) = (args::buffer(args)?, size(args, "offset")?);
    let width = access_width(args)?;
    let mut bytes = [0; 4];
    span.read(offset, &mut bytes[..width])?;
    results.i32(i32::from_le_bytes(bytes));
    Ok(())
}

fn store(_: &HalModule, args: &mut Arguments, _: &mut Results) -> Result<()> {
    let value = args.i32()?;
    let (span, offset) = (args::buffer(args)?, size(args, "offset")?);
    let width = access_width(args)?;
    span.write(offset, &value.to_le_bytes()[..width])
}
