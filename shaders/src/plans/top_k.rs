//! The dispatches of the kernels of `top_k`, by template.

use halite_ops::top_k::TopK;

use crate::{
    Params, Plan, Unfit,
    plans::{Lower, lines, order},
};

impl Lower for TopK {
    fn lower(&self, template: &str, _build: &str, params: &Params) -> Result<Plan, Unfit> {
        match template {
            "merging" => order::merging(&self.sorting(), params),
            "selecting" => order::selecting(&self.sorting(), params),
            other => Err(lines::unknown(other)),
        }
    }
}
