//! What is done only if a number says so.

use halite_vm::asm::{Label, Reg};

use super::code::Code;

impl Code {
    /// Does what follows only if a condition holds; gives what [`Code::end_if`] ends it with.
    pub fn only_if(&mut self, condition: Reg) -> Label {
        let (yes, after) = (self.label(), self.label());
        self.branch(condition, yes, after);
        self.block(yes);
        after
    }

    /// What follows is done in any case again.
    pub fn end_if(&mut self, after: Label) {
        self.jump(after);
        self.block(after);
    }
}
