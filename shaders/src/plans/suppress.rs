//! The dispatch of the kernel of `suppress`.

use halite_ops::suppress::Suppress;

use crate::{
    Params, Plan, Slot, Step, Unfit,
    plan::{module, narrow},
    plans::{Lower, moves::flat_grid},
};

impl Lower for Suppress {
    fn lower(&self, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
        if template != "class" {
            return Err(Unfit(format!("uses the unknown template '{template}'")));
        }
        let lines = narrow("a number of classes", self.batch * self.classes)?;
        narrow("a number of scores", lines * self.boxes * 4)?;
        narrow("a number of chosen boxes", lines * self.most)?;
        let push = vec![
            lines,
            narrow("a number of classes", self.classes)?,
            narrow("a number of boxes", self.boxes)?,
            narrow("a number of chosen boxes", self.most)?,
        ];
        Ok(Plan::new(
            vec![Step {
                module: module(build)?,
                constants: vec![params.get("lanes")?, self.center.into()],
                push,
                bindings: vec![
                    Slot::Input(0),
                    Slot::Input(1),
                    Slot::Input(2),
                    Slot::Output(0),
                    Slot::Scratch(0),
                ],
                grid: flat_grid(lines, 1)?,
                subgroup_size: 0,
            }],
            vec![lines * self.boxes * 4],
        ))
    }
}
