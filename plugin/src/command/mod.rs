//! Recordings on their way through the interface: arrays there, commands here.

mod lend;
mod receive;

#[cfg(test)]
mod tests;

pub(super) use lend::lend_list;
pub(super) use receive::receive_list;
