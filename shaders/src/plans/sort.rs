//! The dispatches of the kernels of `sort`, by template.

use halite_ops::sort::Sort;

use crate::{
    Params, Plan, Unfit,
    plans::{Lower, lines, order},
};

impl Lower for Sort {
    fn lower(&self, template: &str, _build: &str, params: &Params) -> Result<Plan, Unfit> {
        match template {
            "merging" => order::merging(&self.sorting(), params),
            other => Err(lines::unknown(other)),
        }
    }
}
