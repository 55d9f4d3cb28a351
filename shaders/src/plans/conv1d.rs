//! The dispatches of the kernels of `conv1d`, by template.

use halite_ops::conv1d::Conv1d;

use crate::{Params, Plan, Unfit, plans::Lower};

impl Lower for Conv1d {
    fn lower(&self, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
        self.images().lower(template, build, params)
    }
}
