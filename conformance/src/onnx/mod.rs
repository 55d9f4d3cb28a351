//! ONNX models with inputs and expected outputs, such as the node tests of the `onnx` package, compiled by our compiler and
//! run. Owns cases, comparison and the tables of outcomes and measurements; does not own how anything is compiled or executed.

mod case;
mod compare;
mod device;
mod measure;
mod report;
mod run;
mod superseded;

pub use case::{Case, find_tests};
pub use compare::compare;
pub use device::OnDevice;
pub use measure::{Cost, Measured, Row, TABLE};
pub use report::{Outcome, Summary};
pub use run::{Engine, Host, Ran, check, measure};
pub use superseded::superseded;
