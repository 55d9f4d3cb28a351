//! Kernels that are the same are one: a device compiles each once for all of its executables, and keeps those that executables
//! left behind for later ones.

use std::{
    collections::{HashMap, VecDeque},
    ffi::CString,
    sync::{Arc, Weak},
};

use halite_formats::vmfb::{DescriptorBinding, PushConstantRange};
use halite_hal::Result;
use parking_lot::Mutex;

use super::{Kernel, LayoutDesc, PipelineSource};

/// All that a kernel is made from: what differs in none of it is the same kernel.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct KernelKey {
    name: String,
    words: Arc<[u32]>,
    entry_point: CString,
    required_subgroup_size: Option<u32>,
    constants: Arc<[u32]>,
    sets: Vec<Vec<DescriptorBinding>>,
    push_constants: Vec<PushConstantRange>,
    address_bindings: Option<u32>,
    constant_count: u32,
}

impl KernelKey {
    /// The key of a kernel of this name, source and layout.
    pub fn new(name: &str, source: &PipelineSource, layout: &LayoutDesc<'_>) -> Self {
        KernelKey {
            name: name.to_owned(),
            words: source.words.clone(),
            entry_point: source.entry_point.clone(),
            required_subgroup_size: source.required_subgroup_size,
            constants: source.constants.clone(),
            sets: layout.sets.iter().map(|set| set.to_vec()).collect(),
            push_constants: layout.push_constants.to_vec(),
            address_bindings: layout.address_bindings,
            constant_count: layout.constant_count,
        }
    }
}

/// The kernels of a device. Clones are the same list.
#[derive(Clone)]
pub(crate) struct Kernels {
    state: Arc<Mutex<State>>,
    most: usize,
}

#[derive(Default)]
struct State {
    known: HashMap<KernelKey, Weak<Kernel>>,
    /// Built ones that an executable left behind, the last one at the end.
    kept: VecDeque<Arc<Kernel>>,
    closed: bool,
}

impl Kernels {
    /// None yet; `most` are kept when their executables have gone.
    pub fn new(most: u32) -> Self {
        Kernels { state: Arc::default(), most: most as usize }
    }

    /// The kernel of this key, if it is there and was not in vain, or what `make` gives.
    pub fn get_or_make(&self, key: KernelKey, make: impl FnOnce() -> Result<Kernel>) -> Result<Arc<Kernel>> {
        if let Some(kernel) = self.state.lock().known.get(&key).and_then(Weak::upgrade)
            && !kernel.has_failed()
        {
            return Ok(kernel);
        }
        // Not while the list is held: drivers are slow, and of two that are made at once one is only not shared.
        let made = Arc::new(make()?);
        let mut state = self.state.lock();
        if state.known.len() == state.known.capacity() {
            state.known.retain(|_, kernel| kernel.strong_count() > 0);
        }
        state.known.insert(key, Arc::downgrade(&made));
        Ok(made)
    }

    /// Keeps kernels that an executable leaves behind, as far as they are built; those that were left first go.
    pub fn keep(&self, kernels: impl Iterator<Item = Arc<Kernel>>) {
        let built: Vec<_> = kernels.filter(|kernel| kernel.is_ready()).collect();
        let mut gone = Vec::new();
        let mut state = self.state.lock();
        if state.closed || self.most == 0 {
            return;
        }
        for kernel in built {
            state.kept.retain(|other| !Arc::ptr_eq(other, &kernel));
            state.kept.push_back(kernel);
        }
        let over = state.kept.len().saturating_sub(self.most);
        gone.extend(state.kept.drain(..over));
        drop(state);
        // Only now, since the driver takes its time to destroy them.
        drop(gone);
    }

    /// Lets go of those that no executable has.
    pub fn trim(&self) {
        let kept = std::mem::take(&mut self.state.lock().kept);
        // Not while the list is held: the driver takes its time to destroy them.
        drop(kept);
        // With those that are gone goes their code, which is in what they are known by.
        let mut state = self.state.lock();
        state.known.retain(|_, kernel| kernel.strong_count() > 0);
        state.known.shrink_to_fit();
    }

    /// Lets go of them, and keeps no others.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.trim();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_kernels_that_are_gone_goes_with_a_trim() {
        let kernels = Kernels::new(4);
        let words: Arc<[u32]> = Arc::from([1, 2, 3]);
        let code = Arc::downgrade(&words);
        let key = KernelKey {
            name: "gone".to_owned(),
            words,
            entry_point: CString::default(),
            required_subgroup_size: None,
            constants: Arc::from([]),
            sets: Vec::new(),
            push_constants: Vec::new(),
            address_bindings: None,
            constant_count: 0,
        };
        kernels.state.lock().known.insert(key, Weak::new());
        assert!(code.upgrade().is_some());
        kernels.trim();
        assert!(code.upgrade().is_none());
    }
}
