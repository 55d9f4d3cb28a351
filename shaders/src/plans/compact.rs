//! The dispatch of the kernel of `compact`.

use halite_ops::compact::Compact;

use crate::{
    Params, Plan, Slot, Step, Unfit,
    plan::{module, narrow},
    plans::{Lower, moves::flat_grid},
};

impl Lower for Compact {
    fn lower(&self, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
        if template != "each" {
            return Err(Unfit(format!("uses the unknown template '{template}'")));
        }
        let (length, lanes) = (narrow("a number of places", self.length)?, params.get("lanes")?);
        Ok(Plan::of(Step {
            module: module(build)?,
            constants: vec![lanes],
            push: vec![length],
            bindings: vec![Slot::Input(0), Slot::Output(0), Slot::Output(1)],
            // One more: the count of no places is written, too.
            grid: flat_grid(length + 1, lanes)?,
            subgroup_size: 0,
        }))
    }
}
