//! Owns devices on their way through the interface. Does not own: what their arguments look like there.

mod export;
mod proxy;

pub(super) use export::give;
pub(super) use proxy::receive_opened;
