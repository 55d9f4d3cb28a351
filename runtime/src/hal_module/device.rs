//! The functions `hal.device.*` that are not queue operations, and `hal.devices.*`.

use halite_abi::{Result, import::hal};
use halite_vm::{Arguments, Ref, Results};

use super::{Entry, HalModule, args::device, entry};
use crate::vmdata;

pub(super) const FUNCTIONS: &[Entry] = &[
    entry(hal::DEVICE_ALLOCATOR, allocator),
    entry(hal::DEVICE_QUERY_I64, query_i64),
    entry(hal::DEVICES_COUNT, count),
    entry(hal::DEVICES_GET, get),
];

fn allocator(_: &HalModule, args: &mut Arguments, results: &mut Results) -> Result<()> {
    results.reference(device(args)?.allocator());
    Ok(())
}

/// An unknown key answers (0, 0): the program decides what that means.
fn query_i64(_: &HalModule, args: &mut Arguments, results: &mut Results) -> Result<()> {
    let device = device(args)?;
    let category = vmdata::text(&args.reference()?, "category")?;
    let key = vmdata::text(&args.reference()?, "key")?;
    let value = device.device.query_i64(&category, &key);
    results.i32(value.is_some().into());
    results.i64(value.unwrap_or(0));
    Ok(())
}

fn count(hal: &HalModule, _: &mut Arguments, results: &mut Results) -> Result<()> {
    results.i32(i32::try_from(hal.devices.len()).unwrap_or(i32::MAX));
    Ok(())
}

fn get(hal: &HalModule, args: &mut Arguments, results: &mut Results) -> Result<()> {
    let index = usize::try_from(args.i32()?).ok();
    results.reference(index.and_then(|i| hal.devices.get(i)).cloned().unwrap_or(Ref::NULL));
    Ok(())
}
