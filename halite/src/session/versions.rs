//! Owns the versions of a model's functions that are loaded: which calls a version is for, that each is made once, and that
//! there are not too many. Does not own: making one (`model`).

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use halite_cache::Digest;
use halite_runtime as runtime;
use parking_lot::Mutex;

use crate::{Limits, Result};

/// How often a thread that waits for another's compilation looks at its own limits.
const LOOK: Duration = Duration::from_millis(20);

/// What a version is for, but for the values of inputs: the function, and type and shape of each input.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ShapeKey(pub String);

/// A function for certain sizes, loaded on the device.
pub(super) struct Version {
    pub function: runtime::Function,
    used: AtomicU64,
}

impl Version {
    pub fn new(function: runtime::Function) -> Self {
        Version { function, used: AtomicU64::new(0) }
    }
}

/// What is known of calls with the same shapes.
#[derive(Default)]
pub(super) struct Shapes {
    /// Places of the inputs whose values decide sizes; `None` before a version was made.
    pub bound: Option<Vec<usize>>,
    /// Versions by the values of these inputs.
    pub versions: HashMap<Digest, Arc<Version>>,
}

/// All versions of a model's functions.
pub(super) struct Versions {
    by_shape: Mutex<HashMap<ShapeKey, Arc<Mutex<Shapes>>>>,
    clock: AtomicU64,
    most: usize,
}

impl Versions {
    pub fn new(most: usize) -> Self {
        Versions { by_shape: Mutex::default(), clock: AtomicU64::new(1), most: most.max(1) }
    }

    /// The version for a call, made by `make` if there is none. One thread makes it; others with the same shapes wait for it
    /// within their own limits. `digest` hashes the values of inputs.
    pub fn get(
        &self,
        key: ShapeKey,
        limits: &Limits,
        digest: impl Fn(&[usize]) -> Result<Digest>,
        make: impl FnOnce() -> Result<(Vec<usize>, Arc<Version>)>,
    ) -> Result<Arc<Version>> {
        let shapes = self.by_shape.lock().entry(key).or_default().clone();
        let version = {
            let mut shapes = loop {
                if let Some(shapes) = shapes.try_lock_for(LOOK) {
                    break shapes;
                }
                limits.check("waiting for another call's compilation")?;
            };
            let known = match &shapes.bound {
                Some(bound) => shapes.versions.get(&digest(bound)?).cloned(),
                None => None,
            };
            match known {
                Some(version) => version,
                None => {
                    let (bound, version) = make()?;
                    let values = digest(&bound)?;
                    shapes.bound = Some(bound);
                    shapes.versions.insert(values, version.clone());
                    version
                }
            }
        };
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        if version.used.swap(now, Ordering::Relaxed) == 0 {
            self.trim();
        }
        Ok(version)
    }

    pub fn count(&self) -> usize {
        let all: Vec<_> = self.by_shape.lock().values().cloned().collect();
        all.iter().map(|shapes| shapes.try_lock().map_or(0, |shapes| shapes.versions.len())).sum()
    }

    /// Lets go of what was used longest ago. Calls that use it end well: they hold it.
    fn trim(&self) {
        let all: Vec<_> = self.by_shape.lock().iter().map(|(key, shapes)| (key.clone(), shapes.clone())).collect();
        let mut loaded = Vec::new();
        for (key, shapes) in &all {
            // Those that are being made are in use.
            let Some(shapes) = shapes.try_lock() else { continue };
            loaded.extend(shapes.versions.iter().map(|(digest, version)| {
                (version.used.load(Ordering::Relaxed), key.clone(), digest.clone())
            }));
        }
        loaded.sort_by_key(|(used, _, _)| *used);
        let surplus = loaded.len().saturating_sub(self.most);
        for (_, key, digest) in loaded.into_iter().take(surplus) {
            let shapes = self.by_shape.lock().get(&key).cloned();
            let dropped = shapes.and_then(|shapes| shapes.try_lock()?.versions.remove(&digest));
            drop(dropped);
        }
    }
}
