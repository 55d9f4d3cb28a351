//! Tests of this crate, one program: each program is linked with all that it tests.

mod emitted;
mod emitted_bounds;
mod limits;
mod selection;
