//! The functions `hal.fence.*`.

use halite_abi::{Result, import::hal, object};
use halite_hal::{Code, Deadline, Fence, Status};
use halite_vm::{Arguments, Ref, Results};

use super::{
    Entry, HalModule,
    args::{self, device},
    entry,
    objects::FenceObject,
    wait::wait_for_fence,
};
use crate::begun;

pub(super) const FUNCTIONS: &[Entry] = &[
    entry(hal::FENCE_CREATE, create),
    entry(hal::FENCE_JOIN, join),
    entry(hal::FENCE_QUERY, query),
    entry(hal::FENCE_SIGNAL, signal),
    entry(hal::FENCE_FAIL, fail),
    entry(hal::FENCE_AWAIT, wait),
];

fn create(_: &HalModule, args: &mut Arguments, results: &mut Results) -> Result<()> {
    let device = device(args)?;
    let _flags = args.i64()?;
    let fence = Fence::new(device.device.create_semaphore(0)?, 1);
    begun::note(&fence);
    results.object(FenceObject(fence));
    Ok(())
}

/// The union of the fences; one fence alone is passed through, none at all is null.
fn join(_: &HalModule, args: &mut Arguments, results: &mut Results) -> Result<()> {
    let _flags = args.i64()?;
    let (mut only, mut all) = (Ref::NULL, Fence::default());
    for _ in 0..args.span()? {
        let reference = args.reference()?;
        if reference.is_null() {
            continue;
        }
        let fence = &reference.expect::<FenceObject>(object::FENCE)?.0;
        if only.is_null() && all.is_empty() {
            only = reference;
            continue;
        }
        if let Some(first) = only.downcast_ref::<FenceObject>() {
            all = first.0.clone();
            only = Ref::NULL;
        }
        for point in fence.points() {
            all.insert(point.semaphore.clone(), point.value);
        }
    }
    results.reference(if all.is_empty() { only } else { Ref::new(FenceObject(all)) });
    Ok(())
}

fn query(_: &HalModule, args: &mut Arguments, results: &mut Results) -> Result<()> {
    let code = match args::fence(args)?.query() {
        Ok(true) => 0,
        Ok(false) => Code::Deferred as i32,
        Err(failure) => failure.code() as i32,
    };
    results.i32(code);
    Ok(())
}

fn signal(_: &HalModule, args: &mut Arguments, _: &mut Results) -> Result<()> {
    args::fence(args)?.signal()
}

fn fail(_: &HalModule, args: &mut Arguments, _: &mut Results) -> Result<()> {
    let fence = args::fence(args)?;
    let code = Code::from_u32(args::bits(args)?).unwrap_or(Code::Unknown);
    fence.fail(&Status::new(code, "the program failed the fence"));
    Ok(())
}

fn wait(_: &HalModule, args: &mut Arguments, results: &mut Results) -> Result<()> {
    let timeout = Deadline::from_millis(args.i32()?);
    let _flags = args.i64()?;
    for _ in 0..args.span()? {
        let fence = args::fence(args)?;
        if !wait_for_fence(&fence, timeout, args.invocation())? {
            results.i32(Code::DeadlineExceeded as i32);
            return Ok(());
        }
    }
    results.i32(0);
    Ok(())
}
