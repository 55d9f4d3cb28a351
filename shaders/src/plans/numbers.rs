//! The dispatch of the kernel of `numbers`.

use halite_ops::numbers::{MOST, Numbers};
use halite_sizes::Size;

use crate::{Params, Plan, Slot, Step, Unfit, plan::module, plans::Lower};

impl Lower for Numbers {
    fn lower(&self, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
        if template != "words" {
            return Err(Unfit(format!("uses the unknown template '{template}'")));
        }
        let (least, most) = (i64::from(i32::MIN), i64::from(i32::MAX));
        if let Some(value) = self.values.iter().find(|value| **value < least || **value > most) {
            return Err(Unfit(format!("{value} needs more than 32 bits")));
        }
        let mut push = vec![Size::from(self.values.len())];
        push.extend(self.values.iter().copied());
        push.resize(MOST + 1, 0.into());
        Ok(Plan::of(Step {
            module: module(build)?,
            constants: vec![params.get("lanes")?],
            push,
            bindings: vec![Slot::Output(0)],
            grid: [1.into(); 3],
            subgroup_size: 0,
        }))
    }
}
