//! The words for the two ends of the interface and for what the far end does wrong.

use std::fmt;

use halite_hal::{Code, Status};

/// On which end of the interface this code works. A library is always one of them; a [`loopback`](super::loopback) has
/// both in one program, and then the side tells whose object a handle is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The program that loads drivers.
    Host,
    /// The driver library.
    Plugin,
}

/// Who is at the far end, seen from `side`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer {
    /// This end.
    pub side: Side,
    /// The far end, as messages name it.
    pub name: &'static str,
}

impl Peer {
    /// The far end of an object of ours: whoever happens to call it.
    pub(super) fn of(side: Side) -> Self {
        let name = match side {
            Side::Host => "a driver plug-in",
            Side::Plugin => "the program",
        };
        Peer { side, name }
    }

    /// The failure for a far end that does not keep the contract.
    pub(super) fn broke(self, what: fmt::Arguments<'_>) -> Status {
        Status::new(
            Code::Internal,
            format!(
                "{} breaks the plug-in interface: {what}; this is a fault of its code, report it there",
                self.name
            ),
        )
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
