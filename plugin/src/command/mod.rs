//! Owns recordings on their way through the interface: arrays there, commands here. Does not own: what commands do.

mod lend;
mod receive;

#[cfg(test)]
mod tests;

pub(super) use lend::lend_list;
pub(super) use receive::receive_list;
