//! The dispatches of the kernels of `rotary`, by template.

use halite_ops::{
    Op,
    rotary::{Positions, Rotary},
};
use halite_sizes::Size;

use crate::{
    Params, Plan, Slot, Step, Unfit,
    plan::{fixed, groups, module, narrow},
    plans::Lower,
};

impl Lower for Rotary {
    fn lower(&self, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
        if template != "rotary" {
            return Err(Unfit(format!("uses the unknown template '{template}'")));
        }
        let (lanes, heads_each) = (params.get("lanes")?, params.get("heads")?);
        narrow("a number of elements", self.outputs()[0].elements())?;
        let with_positions = usize::from(self.positions != Positions::Start);
        // What is not read has the input in its place.
        let positions = Slot::Input(with_positions);
        let table = |which| self.tables.map_or(Slot::Input(0), |_| Slot::Input(with_positions + which));
        let slots = self.head_dim - self.pairs();
        let mut push =
            vec![narrow("len", self.len)?, narrow("heads", self.heads)?, narrow("start", self.start)?];
        push.push(narrow("a table", self.tables.unwrap_or(1.into()))?);
        push.extend(turns(self).into_iter().map(Size::from));
        Ok(Plan::of(Step {
            module: module(build)?,
            constants: vec![
                lanes,
                fixed("head_dim", self.head_dim)?,
                fixed("pairs", self.pairs())?,
                self.interleaved.into(),
                self.tables.is_some().into(),
                self.positions as u32,
                heads_each,
            ],
            push,
            bindings: vec![Slot::Input(0), positions, table(1), table(2), Slot::Output(0)],
            grid: [
                groups(narrow("rows of pairs", self.len * slots)?, lanes)?,
                groups(self.heads, heads_each)?,
                narrow("the batch", self.batch)?,
            ],
            subgroup_size: 0,
        }))
    }
}

/// A number from 0 to 1 as a fraction of 64 bits, the low word first.
fn fraction(value: f64) -> [u32; 2] {
    let bits = (value * (1u128 << 64) as f64) as u64;
    [bits as u32, (bits >> 32) as u32]
}

/// Turns from one position to the next of pair 0, and what they shrink by 1, 2, 4, … pairs further.
fn turns(op: &Rotary) -> Vec<u32> {
    let rotary_dim = (2 * op.pairs()).max(1) as f64;
    let power = |bit: u32| fraction(op.base.0.powf(-2.0 * f64::from(1u32 << bit) / rotary_dim));
    let first = fraction(1.0 / std::f64::consts::TAU);
    first.into_iter().chain((0..7).flat_map(power)).collect()
}

#[cfg(test)]
mod tests {
    use halite_ops::DType;

    use super::*;

    #[test]
    fn turns_are_fractions_of_64_bits() {
        assert_eq!(fraction(0.5), [0, 1 << 31]);
        assert_eq!(fraction(1.0), [u32::MAX, u32::MAX]);
        let turns = turns(&Rotary { base: 16.0.into(), ..Rotary::new(1, 1, 4, DType::F32) });
        assert_eq!(turns[2..6], [0, 1 << 30, 0, 1 << 28], "shrink by 16^(-1/2), and by its square");
    }
}
