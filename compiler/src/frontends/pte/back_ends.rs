//! The list of back ends whose delegates are understood.

use super::{back_end::BackEnd, vgf::Arm, vulkan::Vulkan, xnnpack::Xnnpack};
use crate::{SourceLocation, UnsupportedOperator};

/// All of them.
static BACK_ENDS: &[&dyn BackEnd] = &[&Vulkan, &Xnnpack, &Arm];

/// The back end of a name.
pub(super) fn find(id: &str) -> Option<&'static dyn BackEnd> {
    BACK_ENDS.iter().copied().find(|back_end| back_end.id() == id)
}

/// A delegate of a back end that is not understood, as an error lists it.
pub(super) fn unknown(id: &str, first: SourceLocation) -> UnsupportedOperator {
    let known: Vec<_> = BACK_ENDS.iter().map(|back_end| back_end.id()).collect();
    let reason = format!("a delegate of this back end; those of {} are understood", known.join(", "));
    UnsupportedOperator { name: id.to_owned(), domain: None, count: 1, first, reason: Some(reason) }
}
