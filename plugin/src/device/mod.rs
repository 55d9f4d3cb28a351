//! Devices on their way through the interface.

mod export;
mod proxy;

pub(super) use export::give;
pub(super) use proxy::receive_opened;
