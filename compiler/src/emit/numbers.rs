//! The registers of loops, which are set aside before the code of a function is written.

use halite_vm::asm::Reg;

use super::code::Code;
use crate::plan::flow::Item;

/// Registers of a loop.
#[derive(Clone, Copy, Debug)]
pub struct LoopNumbers {
    /// The number of the run.
    pub run: Reg,
    /// The most runs.
    pub most: Reg,
    /// The upper half of a number.
    pub high: Reg,
}

/// Registers of all loops, in the order in which they begin.
pub type Numbers = std::vec::IntoIter<LoopNumbers>;

/// Registers for the loops of a control flow.
pub fn numbers(code: &mut Code, items: &[Item]) -> Numbers {
    let mut numbers = Vec::new();
    let mut open: Vec<&Item> = items.iter().collect();
    while let Some(item) = open.pop() {
        match item {
            Item::Segment(_) | Item::Read { .. } | Item::Set { .. } => {}
            Item::If { branches, .. } => open.extend(branches.iter().flatten()),
            Item::Loop { body, .. } => {
                numbers.push(LoopNumbers { run: code.pair(), most: code.pair(), high: code.pair() });
                open.extend(body);
            }
        }
    }
    numbers.into_iter()
}
