//! The index of parameters by scope and key, and the errors when one is missing.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use halite_abi::{Result, Status, status};
use halite_hal::File;

use crate::mapping::is_cut;

/// How many near names an error shows.
const SUGGESTIONS: usize = 3;

/// Where the bytes of a parameter are. Cheap to clone.
#[derive(Clone, Debug)]
pub enum Parameter {
    /// A range of a file or of memory.
    Stored {
        /// The file.
        file: File,
        /// First byte.
        offset: u64,
        /// Number of bytes.
        length: u64,
    },
    /// A pattern that repeats; takes no space in the archive.
    Splat {
        /// The pattern; 1 byte at least.
        pattern: Bytes,
        /// Number of bytes.
        length: u64,
    },
}

impl Parameter {
    /// Size in bytes.
    pub fn length(&self) -> u64 {
        match self {
            Parameter::Stored { length, .. } | Parameter::Splat { length, .. } => *length,
        }
    }
}

#[derive(Clone, Debug, Default)]
struct Scope {
    parameters: HashMap<String, Parameter>,
    sources: Vec<String>,
}

/// Parameters by scope and key.
#[derive(Clone, Debug, Default)]
pub struct ParameterIndex {
    scopes: BTreeMap<String, Scope>,
}

impl ParameterIndex {
    /// An empty index.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a parameter. One of the same scope and key that is there already stays; returns whether it was added.
    pub fn insert(&mut self, scope: &str, key: impl Into<String>, parameter: Parameter) -> bool {
        let parameters = &mut self.scopes.entry(scope.to_owned()).or_default().parameters;
        match parameters.entry(key.into()) {
            std::collections::hash_map::Entry::Occupied(_) => false,
            std::collections::hash_map::Entry::Vacant(entry) => {
                entry.insert(parameter);
                true
            }
        }
    }

    /// Adds entries that lie in memory. Nothing is copied before a device asks for it. Of entries with one name the first
    /// added counts. Returns the number of entries added.
    pub fn add_entries<K: Into<String>>(
        &mut self,
        scope: &str,
        entries: impl IntoIterator<Item = (K, Bytes)>,
    ) -> usize {
        let stored = |bytes: Bytes| Parameter::Stored {
            length: bytes.len() as u64,
            file: File::Memory(bytes),
            offset: 0,
        };
        entries
            .into_iter()
            .fold(0, |added, (key, bytes)| added + usize::from(self.insert(scope, key, stored(bytes))))
    }

    /// A parameter that lies in a mapped file which was cut before the parameter's end, for an error.
    pub(crate) fn cut(&self) -> Option<String> {
        let mut all =
            self.scopes.iter().flat_map(|(scope, own)| own.parameters.iter().map(move |p| (scope, p)));
        all.find_map(|(scope, (key, parameter))| {
            let Parameter::Stored { file: File::Memory(bytes), offset, length } = parameter else {
                return None;
            };
            let (start, end) = (*offset, offset.saturating_add(*length).min(bytes.len() as u64));
            let own = bytes.slice(usize::try_from(start.min(end)).ok()?..usize::try_from(end).ok()?);
            is_cut(&own).then(|| format!("the file of parameter '{key}' in scope '{scope}'"))
        })
    }

    /// Notes where parameters of a scope come from, for error messages.
    pub(super) fn add_source(&mut self, scope: &str, source: String) {
        self.scopes.entry(scope.to_owned()).or_default().sources.push(source);
    }

    /// Number of parameters in all scopes.
    pub fn len(&self) -> usize {
        self.scopes.values().map(|scope| scope.parameters.len()).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The keys of a scope with their sizes in bytes, sorted.
    pub fn entries(&self, scope: &str) -> Vec<(&str, u64)> {
        let parameters = self.scopes.get(scope).into_iter().flat_map(|s| &s.parameters);
        let mut entries: Vec<_> = parameters.map(|(key, p)| (key.as_str(), p.length())).collect();
        entries.sort_unstable();
        entries
    }

    /// The parameter. NOT_FOUND says which scopes or near keys exist and where they came from.
    pub fn get(&self, scope: &str, key: &str) -> Result<&Parameter> {
        let found = self.scopes.get(scope).ok_or_else(|| self.no_scope(scope, key))?;
        found.parameters.get(key).ok_or_else(|| found.no_key(scope, key))
    }

    fn no_scope(&self, scope: &str, key: &str) -> Status {
        let scopes: Vec<_> = self.scopes.keys().map(|s| format!("'{s}'")).collect();
        status!(
            NotFound,
            "no parameters are registered for scope '{scope}' (looking for '{key}'); registered scopes: {}; give \
             the session an archive for it, on command lines --parameters={}FILE",
            if scopes.is_empty() { "none".to_owned() } else { scopes.join(", ") },
            if scope.is_empty() { String::new() } else { format!("{scope}=") }
        )
    }
}

impl Scope {
    fn no_key(&self, scope: &str, key: &str) -> Status {
        let near = near_names(key, self.parameters.keys());
        let near = if near.is_empty() { String::new() } else { format!("; similar: {}", near.join(", ")) };
        status!(
            NotFound,
            "no parameter '{key}' in scope '{scope}'{near}; looked among {} parameters of {}",
            self.parameters.len(),
            if self.sources.is_empty() { "the caller".to_owned() } else { self.sources.join(", ") }
        )
    }
}

/// The names that share most with `key` at their beginning and end; none that share less than half of it.
fn near_names<'a>(key: &str, names: impl Iterator<Item = &'a String>) -> Vec<&'a str> {
    let shared = |name: &str| {
        let head = key.bytes().zip(name.bytes()).take_while(|(a, b)| a == b).count();
        let tail = key.bytes().rev().zip(name.bytes().rev()).take_while(|(a, b)| a == b).count();
        (head + tail).min(key.len()).min(name.len())
    };
    let mut near: Vec<_> = names
        .map(|name| (shared(name), name.as_str()))
        .filter(|(score, _)| *score > 0 && score * 2 >= key.len())
        .collect();
    near.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
    near.into_iter().take(SUGGESTIONS).map(|(_, name)| name).collect()
}
