//! The functions `hal.channel.*`: collectives between devices, which no driver of Halite has.

use halite_abi::{Result, bail, import::hal};
use halite_vm::{Arguments, Results};

use super::{Entry, HalModule, entry};

pub(super) const FUNCTIONS: &[Entry] = &[
    entry(hal::CHANNEL_CREATE, unsupported),
    entry(hal::CHANNEL_SPLIT, unsupported),
    entry(hal::CHANNEL_RANK_AND_COUNT, unsupported),
];

/// No function makes a channel, so none can be passed to the others either.
pub(super) fn unsupported(_: &HalModule, _: &mut Arguments, _: &mut Results) -> Result<()> {
    bail!(
        Unimplemented,
        "collective operations between devices are not supported; compile for a single device"
    )
}
