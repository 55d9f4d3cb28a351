//! Versions of a model's functions for many sizes each: which sizes were seen, and which version is for those at hand.

use std::{collections::HashSet, sync::Arc};

use halite_compiler::Coverage;
use parking_lot::Mutex;

use super::versions::Version;
use crate::{Result, options::Limits};

/// Most versions with open sizes; sizes that none of them is for get versions of their own then.
const MOST: usize = 32;

/// The first sizes of each function get versions of their own, which are the fastest; others share open ones.
const OWN: usize = 1;

#[derive(Default)]
struct State {
    /// The functions and shapes that were seen, as many as get versions of their own.
    own: HashSet<(usize, Vec<Vec<u64>>)>,
    /// Functions that cannot be had with open sizes.
    never: HashSet<usize>,
    made: Vec<(usize, Coverage, Arc<Version>)>,
}

/// The versions with open sizes. Threads may share it; one makes a version at a time.
#[derive(Default)]
pub(super) struct OpenVersions {
    state: Mutex<State>,
    making: Mutex<()>,
}

impl OpenVersions {
    /// The version of a function for inputs of these shapes, made by `make` if there is none; `None` where they get a version of
    /// their own: the first ones do, and those of functions for which `make` gives none.
    pub fn get(
        &self,
        place: usize,
        shapes: &[Vec<u64>],
        limits: &Limits,
        make: impl FnOnce() -> Result<Option<(Version, Coverage)>>,
    ) -> Result<Option<Arc<Version>>> {
        if self.has_own(place, shapes) {
            return Ok(None);
        }
        if let Some(version) = self.find(place, shapes) {
            return Ok(Some(version));
        }
        let _making = loop {
            match self.making.try_lock_for(std::time::Duration::from_millis(20)) {
                Some(guard) => break guard,
                None => limits.check("waiting for another call's compilation")?,
            }
        };
        if let Some(version) = self.find(place, shapes) {
            return Ok(Some(version));
        }
        match make()? {
            Some((version, coverage)) if coverage.has(shapes.iter().map(Vec::as_slice)) => {
                let version = Arc::new(version);
                self.state.lock().made.push((place, coverage, version.clone()));
                Ok(Some(version))
            }
            _ => {
                self.state.lock().never.insert(place);
                Ok(None)
            }
        }
    }

    /// How many are loaded.
    pub fn count(&self) -> usize {
        self.state.lock().made.len()
    }

    /// Whether sizes get a version of their own.
    fn has_own(&self, place: usize, shapes: &[Vec<u64>]) -> bool {
        let mut state = self.state.lock();
        if state.never.contains(&place) || state.made.len() >= MOST {
            return true;
        }
        let key = (place, shapes.to_vec());
        if state.own.contains(&key) {
            return true;
        }
        let first = state.own.iter().filter(|(own, _)| *own == place).count() < OWN;
        if first {
            state.own.insert(key);
        }
        first
    }

    fn find(&self, place: usize, shapes: &[Vec<u64>]) -> Option<Arc<Version>> {
        let state = self.state.lock();
        let fits = |(own, coverage, _): &&(usize, Coverage, Arc<Version>)| {
            *own == place && coverage.has(shapes.iter().map(Vec::as_slice))
        };
        state.made.iter().find(fits).map(|(.., version)| version.clone())
    }
}
