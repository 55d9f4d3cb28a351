//! Functions that stores call, made once for each variable.

use std::collections::HashMap;

/// Functions that put words where a condition holds: by variable, and whether they put whole words.
#[derive(Default)]
pub(super) struct Puts {
    pub known: HashMap<(u32, bool), u32>,
    pub words: Vec<u32>,
}

impl Puts {
    pub fn take(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.words)
    }
}
