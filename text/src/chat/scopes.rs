//! The values that names have, in the blocks that are open.

use std::sync::Arc;

use super::{
    budget::{Budget, Charge, Done, OVERHEAD},
    tree::Name,
    value::Value,
};

/// What a name takes with its value.
const VARIABLE: usize = 48;

#[derive(Debug)]
struct Frame {
    variables: Vec<(Name, Value)>,
    charge: Charge,
}

#[derive(Debug)]
pub(super) struct Scopes {
    frames: Vec<Frame>,
    /// The first frame of the macro that runs. The frame of the template itself is seen from everywhere, those between are not.
    base: usize,
}

impl Scopes {
    pub fn new(budget: &Arc<Budget>) -> Done<Scopes> {
        let mut made = Scopes { frames: Vec::new(), base: 0 };
        made.push(budget)?;
        Ok(made)
    }

    pub fn push(&mut self, budget: &Arc<Budget>) -> Done<()> {
        self.frames.push(Frame { variables: Vec::new(), charge: Charge::new(budget, OVERHEAD)? });
        Ok(())
    }

    pub fn pop(&mut self) {
        self.frames.pop();
    }

    /// For a macro, which sees what it is given and what the template has. Gives what [`Scopes::leave`] wants.
    pub fn enter(&mut self, budget: &Arc<Budget>) -> Done<usize> {
        self.push(budget)?;
        Ok(std::mem::replace(&mut self.base, self.frames.len() - 1))
    }

    pub fn leave(&mut self, base: usize) {
        self.pop();
        self.base = base;
    }

    pub fn set(&mut self, name: Name, value: Value) -> Done<()> {
        let Some(frame) = self.frames.last_mut() else { return Ok(()) };
        frame.charge.budget().steps(frame.variables.len() / 16)?;
        match frame.variables.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => {
                frame.charge.add(VARIABLE)?;
                frame.variables.push((name, value));
            }
        }
        Ok(())
    }

    pub fn get(&self, name: Name) -> Done<Option<Value>> {
        let seen = self.frames[self.base..].iter().rev().chain(&self.frames[..self.base.min(1)]);
        for frame in seen {
            frame.charge.budget().steps(frame.variables.len() / 16)?;
            if let Some((_, value)) = frame.variables.iter().find(|(known, _)| *known == name) {
                return Ok(Some(value.clone()));
            }
        }
        Ok(None)
    }
}
