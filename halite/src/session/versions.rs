//! The versions of a model's functions that are loaded: which calls a version is for, that each is made once, and that there are
//! not too many.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
    time::Duration,
};

use halite_cache::{Digest, Hasher};
use halite_compiler::{
    Capacities, Coverage,
    signature::{Bindings, Signature},
};
use halite_hal::sync::{Condvar, Mutex};
use halite_runtime as runtime;

use super::{lists, started::Group};
use crate::{Error, Result, Value, options::Limits};

/// How often a thread that waits for another's compilation looks at its own limits.
const LOOK: Duration = Duration::from_millis(20);

/// What a version is for, but for the values of inputs: the function, and type and shape of each input.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ShapeKey(pub String);

/// What a version is for in full: the places of the inputs whose values decide sizes, and the digest of these values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ValuesKey {
    pub bound: Vec<usize>,
    pub digest: Digest,
}

/// Type and shape of each input, and of what lists have.
pub(super) fn describe(values: &[Value]) -> String {
    let one = |value: &Value| match value {
        Value::Tensor(tensor) => crate::tensor::describe(tensor.element_type(), tensor.shape()),
        Value::List(elements) => format!("[{}]", describe(elements)),
        other => other.kind().to_owned(),
    };
    values.iter().map(one).collect::<Vec<_>>().join(" ")
}

/// The digest of the values of some inputs.
pub(super) fn values_digest(values: &[Value], bound: &[usize]) -> Result<Digest> {
    let mut hasher = Hasher::new();
    for place in bound {
        hasher.field(&place.to_le_bytes());
        let tensors = values.get(*place).map(std::slice::from_ref).map(lists::one_by_one);
        for tensor in tensors.into_iter().flatten().filter_map(Value::as_tensor) {
            hasher.field(crate::tensor::describe(tensor.element_type(), tensor.shape()).as_bytes());
            hasher.field(&tensor.to_bytes()?);
        }
    }
    Ok(hasher.finish())
}

/// A function for certain sizes, loaded on the device.
pub(super) struct Version {
    pub function: runtime::Function,
    /// What each output of the model is among its results; `None` where each is one of them.
    pub groups: Option<Arc<[Group]>>,
    /// Its states that grow in place.
    pub capacities: Capacities,
    /// The sizes that it is for, where callers decide them.
    pub coverage: Option<Coverage>,
    /// What it is a function of: others may be in the same module.
    pub session: Arc<runtime::Session>,
}

impl Version {
    /// A function of a model in a module that is loaded.
    pub fn of(name: &str, outputs: &[Signature], session: Arc<runtime::Session>) -> Result<Version> {
        let function = session.function(name).map_err(Error::of_runtime)?;
        let groups = lists::groups(outputs, &function)?;
        Ok(Version { function, groups, capacities: Capacities::default(), coverage: None, session })
    }
}

/// What is the same in all calls, where the caller fixed all sizes.
pub(super) struct Fixed {
    pub bindings: Vec<Bindings>,
    pub version: OnceLock<Arc<Version>>,
    /// Set when it was found that values of inputs decide sizes all the same, so that calls decide.
    pub by_values: OnceLock<()>,
}

impl Fixed {
    /// The same sizes, of which nothing is made yet.
    pub fn anew(&self) -> Fixed {
        Fixed { bindings: self.bindings.clone(), version: OnceLock::new(), by_values: OnceLock::new() }
    }

    pub fn is_by_values(&self) -> bool {
        self.by_values.get().is_some()
    }
}

/// What is known of calls with the same shapes.
#[derive(Default)]
struct Shapes {
    /// The sets of inputs whose values decided sizes so far.
    bounds: Vec<Vec<usize>>,
    /// Versions, and when each was used last.
    loaded: HashMap<ValuesKey, (Arc<Version>, u64)>,
    /// Whether a thread makes one.
    making: bool,
}

#[derive(Default)]
struct State {
    shapes: HashMap<ShapeKey, Shapes>,
    clock: u64,
}

/// All versions of a model's functions.
pub(super) struct Versions {
    state: Mutex<State>,
    made: Condvar,
    most: usize,
}

impl Versions {
    pub fn new(most: usize) -> Self {
        Versions { state: Mutex::default(), made: Condvar::new(), most: most.max(1) }
    }

    /// The version for a call, made by `make` if there is none. One thread makes it; others with the same shapes that need one
    /// that is not there wait for it within their own limits. `digest` hashes the values of inputs.
    pub fn get(
        &self,
        key: &ShapeKey,
        limits: &Limits,
        digest: &dyn Fn(&[usize]) -> Result<Digest>,
        make: impl FnOnce() -> Result<(Vec<usize>, Arc<Version>)>,
    ) -> Result<Arc<Version>> {
        // Digests of values may come from the device, so nothing is locked meanwhile.
        let mut known: Vec<ValuesKey> = Vec::new();
        let mut doing = "looking for what was compiled for these inputs";
        loop {
            let mut state = self.state.lock();
            if let Some(version) = state.find(key, &known) {
                return Ok(version);
            }
            let shapes = state.shapes.entry(key.clone()).or_default();
            let is_new = |bound: &&Vec<usize>| !known.iter().any(|values| values.bound == **bound);
            let unseen: Vec<_> = shapes.bounds.iter().filter(is_new).cloned().collect();
            if unseen.is_empty() && !shapes.making {
                shapes.making = true;
                break;
            }
            if unseen.is_empty() {
                doing = "waiting for another call's compilation";
                self.made.wait_for(&mut state, LOOK);
            }
            drop(state);
            limits.check(doing)?;
            for bound in unseen {
                let digest = digest(&bound)?;
                known.push(ValuesKey { bound, digest });
            }
        }
        // Nobody waits for ever, whatever becomes of the making.
        let making = Making { versions: self, key };
        let (bound, version) = make()?;
        let digest = digest(&bound)?;
        self.state.lock().insert(key, ValuesKey { bound, digest }, version.clone(), self.most);
        drop(making);
        Ok(version)
    }

    pub fn count(&self) -> usize {
        self.state.lock().shapes.values().map(|shapes| shapes.loaded.len()).sum()
    }

    /// Lets go of the versions of a key: they are kept elsewhere.
    pub fn forget(&self, key: &ShapeKey) {
        let dropped = self.state.lock().shapes.remove(key);
        drop(dropped);
    }

    /// Lets go of all versions, for their memory. Calls that use one end well: they hold it.
    pub fn clear(&self) {
        let dropped: Vec<_> =
            self.state.lock().shapes.values_mut().flat_map(|shapes| shapes.loaded.drain()).collect();
        drop(dropped);
    }
}

impl State {
    fn find(&mut self, key: &ShapeKey, known: &[ValuesKey]) -> Option<Arc<Version>> {
        let shapes = self.shapes.get_mut(key)?;
        let values = known.iter().find(|values| shapes.loaded.contains_key(values))?;
        let (version, used) = shapes.loaded.get_mut(values)?;
        self.clock += 1;
        *used = self.clock;
        Some(version.clone())
    }

    /// Adds a version, and lets go of those that were used longest ago.
    fn insert(&mut self, key: &ShapeKey, values: ValuesKey, version: Arc<Version>, most: usize) {
        self.clock += 1;
        let now = self.clock;
        let shapes = self.shapes.entry(key.clone()).or_default();
        if !shapes.bounds.contains(&values.bound) {
            shapes.bounds.push(values.bound.clone());
        }
        shapes.loaded.insert(values, (version, now));
        let mut all: Vec<_> = self
            .shapes
            .iter()
            .flat_map(|(key, shapes)| {
                shapes.loaded.iter().map(move |(values, (_, used))| (*used, key.clone(), values.clone()))
            })
            .collect();
        all.sort_by_key(|(used, _, _)| *used);
        for (_, key, values) in all.iter().take(all.len().saturating_sub(most)) {
            if let Some(shapes) = self.shapes.get_mut(key) {
                shapes.loaded.remove(values);
            }
        }
    }
}

/// The making of a version, until it is dropped.
struct Making<'a> {
    versions: &'a Versions,
    key: &'a ShapeKey,
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        let mut state = self.versions.state.lock();
        if let Some(shapes) = state.shapes.get_mut(self.key) {
            shapes.making = false;
        }
        // What failed, and what went for others, leaves nothing; callers who wait make their own entry again.
        state.shapes.retain(|_, shapes| shapes.making || !shapes.loaded.is_empty());
        drop(state);
        self.versions.made.notify_all();
    }
}
