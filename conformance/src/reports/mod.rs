//! Reports of runs: what came of every case on every device, the levels that devices hold, and their forms as JSON, JUnit,
//! HTML and Markdown. The JSON form is described in `docs/reference/conformance-report.md`.

mod html;
mod junit;
mod levels;
mod markdown;
mod merge;
mod model;

pub use html::{Page, html};
pub use junit::junit;
pub use levels::{Holding, Level, LevelReport};
pub use markdown::markdown;
pub use merge::merge;
pub use model::{
    CaseReport, Counts, DeviceFacts, DeviceReport, Expected, Host, RunReport, SCHEMA, Selection, Status,
    SuiteReport, Tool,
};
