//! Owns the functions `hal.device.*` that are not queue operations, and `hal.devices.*`.

use halite_abi::Result;
use halite_vm::{Arguments, Ref, Results};

use super::{Entry, HalModule, args::device, entry};
use crate::vmdata;

pub(super) const FUNCTIONS: &[Entry] = &[
    entry("device.allocator", "0r_r", allocator),
    entry("device.query.i64", "0rrr_iI", query_i64),
    entry("devices.count", "0v_i", count),
    entry("devices.get", "0i_r", get),
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
