//! The dispatch of the kernel of `suppress`.

use halite_ops::suppress::Suppress;
use halite_sizes::Size;

use crate::{
    Params, Plan, Slot, Step, Unfit,
    plan::{MOST_TURNS, module, narrow},
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
        let [classes, boxes] = [self.classes, self.boxes].map(|count| narrow("a number", count));
        let (classes, boxes) = (classes?, boxes?);
        let lanes = params.get("lanes")?;
        let dispatch = |[from, to]: [Size; 2]| -> Result<Step, Unfit> {
            Ok(Step {
                module: module(build)?,
                constants: vec![lanes, self.center.into()],
                push: vec![lines, classes, boxes, narrow("a number of chosen boxes", self.most)?, from, to],
                bindings: vec![
                    Slot::Input(0),
                    Slot::Input(1),
                    Slot::Input(2),
                    Slot::Output(0),
                    Slot::Scratch(0),
                ],
                grid: flat_grid(lines, 1)?,
                subgroup_size: 0,
            })
        };
        let steps = rounds(boxes, self.most, lanes)?.into_iter().map(dispatch);
        Ok(Plan::new(steps.collect::<Result<_, _>>()?, vec![lines * self.boxes * 4]))
    }
}

/// Turns of all loops in which a box is chosen: each looks at all that are left.
pub(crate) fn turns_of_a_box(boxes: Size, lanes: u32) -> Size {
    /// Of the tree that finds the best of an invocation each, and of the loop itself.
    const OTHERS: u64 = 16;
    boxes.div_ceil(u64::from(lanes.max(1))) + OTHERS
}

/// Most dispatches of sizes that data decide.
const MOST_OF_DATA: u64 = 16;

/// First and end of the boxes that each dispatch chooses: in more than one, llvmpipe does not end its loops early.
fn rounds(boxes: Size, most: Size, lanes: u32) -> Result<Vec<[Size; 2]>, Unfit> {
    let turns = most * turns_of_a_box(boxes, lanes);
    let count = match turns.is_data() {
        true => (turns.most().max(1) as u64).div_ceil(MOST_TURNS).min(MOST_OF_DATA),
        false => turns.max(1).div_ceil(MOST_TURNS).exact(),
    };
    if count > MOST_DISPATCHES {
        return Err(Unfit(format!("would be more than {MOST_DISPATCHES} dispatches")));
    }
    let each = most.div_ceil(count);
    let at = |i: u64| if i == count { most } else { most.min(each * i) };
    Ok((0..count).map(|i| [if i == 0 { 0.into() } else { at(i) }, at(i + 1)]).collect())
}

/// Most dispatches of sizes that are known.
const MOST_DISPATCHES: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_boxes_are_chosen_in_several_dispatches() {
        let of = |boxes: u64, most: u64| -> Vec<[u64; 2]> {
            let rounds = rounds(boxes.into(), most.into(), 128).unwrap();
            rounds.into_iter().map(|round| round.map(Size::value)).collect()
        };
        assert_eq!(of(25_200, 100), [[0, 100]]);
        assert_eq!(of(25_200, 1000), [[0, 250], [250, 500], [500, 750], [750, 1000]]);
        assert_eq!(of(0, 0), [[0, 0]]);
        let refused = rounds(1_000_000_000u64.into(), 1_000_000u64.into(), 128).unwrap_err().to_string();
        assert!(refused.contains("4096"), "{refused}");
    }
}
