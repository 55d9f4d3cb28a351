//! Sizes of tensors: numbers that, where a model leaves them open, also know how they come about.
//!
//! Internal to Halite; programs use the crate `halite`.
//!
//! # One run, a plan for many sizes
//! Importing, planning and lowering compute with [`Size`] as with integers. A size that the model leaves open is a symbol with an
//! example value ([`Trace::symbol`]); what is computed of it is an expression over symbols, beside its value for the example. A
//! comparison answers for the example, and notes a [`Guard`]: a condition on the symbols under which it answers the same. So what
//! one run with example values makes (grids, push constants, bytes) holds for all values that keep the guards.
//!
//! * [`Size::exact`] gives a plain number, and fixes what the size depends on: always right, for as many sizes as one.
//! * [`aside`] does work whose guards count only if its result is chosen; [`Trace::hold`] names sizes that the results have to hold for,
//!   and [`noted_at`] tells the guard that fails for them.
//! * [`Written`] compares what sizes are in as it is written, for tables; [`is_open`] tells whether any of them is open.
//! * [`Size::value`] gives the example's number and notes nothing: for estimates and orders in which every answer is right.
//!
//! # Sizes that data decide
//! A symbol may be known only while the results are used ([`Trace::data_symbol`]): then there is no other version to go to where a
//! guard fails. Comparisons answer so that what is made is right for all of its values, 0 and 1 among them, where they can;
//! else they promise what has to hold. Code that asks for its number is at fault, and told so ([`take_pinned`]).
//!
//! # Expressions
//! Polynomials with integer coefficients over symbols and over what is no polynomial: quotients, remainders, minima, maxima,
//! logarithms and powers of two, and floats that are rounded to whole numbers ([`Float`]). Equal polynomials are one, so sizes that are equal by algebra are known to be. Numbers saturate at the ends of
//! `i64`; sizes that come near cannot be allocated, and planning refuses them.
#![forbid(unsafe_code)]

mod arena;
mod arithmetic;
mod aside;
mod atom;
mod compare;
mod current;
mod float;
mod floats;
mod poly;
mod promises;
mod range;
mod region;
mod size;
#[cfg(test)]
mod tests;
mod trace;
mod undo;
mod written;

pub use aside::{Aside, aside, is_worth};
pub use atom::Atom;
pub use current::{for_all_data, noted_at, take_pinned, without_fixing};
pub use float::{Float, FloatFunction};
pub use poly::{AtomId, Poly, Term};
pub use region::{Guard, Region, Rule, evaluate};
pub use size::Size;
pub use trace::{Entered, Trace};
pub use written::{Written, is_open};
