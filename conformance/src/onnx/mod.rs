//! The node tests of the `onnx` package: small models with inputs and expected outputs, compiled by our compiler and run.
//! Owns cases, comparison and the table of outcomes; does not own how anything is compiled or executed.

mod case;
mod compare;
mod device;
mod report;
mod run;
mod superseded;

pub use case::{Case, find_tests};
pub use compare::compare;
pub use device::OnDevice;
pub use report::{Outcome, Summary};
pub use run::{Engine, Host, check};
pub use superseded::superseded;
