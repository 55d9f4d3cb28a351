//! Kernels that a model brings along as SPIR-V, such as the compute segments of VGF files: what they are, and the rules that
//! they keep.

use std::{collections::BTreeMap, fmt, sync::Arc};

use halite_spirv::{EntryFacts, ModuleFacts, analyze};

use super::storage_bytes;

/// Most specialization constants: their ids are below this.
const MOST_CONSTANTS: u32 = 256;

/// One run of a compute kernel that is given as SPIR-V.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ForeignKernel {
    /// What it is called in messages and profiles.
    pub name: String,
    /// The module's words. It has one entry point for compute shaders.
    pub module: Arc<[u32]>,
    /// The entry point.
    pub entry_point: String,
    /// Values of specialization constants of 32 bits, by their ids; the others keep the module's.
    pub constants: BTreeMap<u32, u32>,
    /// Push constants, as many words as the module's block has.
    pub push_constants: Vec<u32>,
    /// The storage buffers of set 0: binding n is entry n.
    pub bindings: Vec<ForeignBinding>,
    /// Workgroups in x, y, z.
    pub workgroups: [u32; 3],
}

/// What a binding of a foreign kernel holds. Buffers have whole words: up to three bytes behind a tensor may be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ForeignBinding {
    /// Input `index` of its node, of so many bytes. The module must not write it (`NonWritable`).
    Input {
        /// The index.
        index: usize,
        /// Bytes of the tensor.
        bytes: u64,
    },
    /// Output `index` of its node, of so many bytes. What it holds before the kernel runs is not defined.
    Output {
        /// The index.
        index: usize,
        /// Bytes of the tensor.
        bytes: u64,
    },
}

impl ForeignBinding {
    /// Bytes of the tensor.
    pub fn bytes(self) -> u64 {
        match self {
            ForeignBinding::Input { bytes, .. } | ForeignBinding::Output { bytes, .. } => bytes,
        }
    }
}

impl ForeignKernel {
    /// Bytes that it reads and writes at least, if it reads and writes each tensor once.
    pub fn bytes(&self) -> u64 {
        self.bindings.iter().fold(0, |sum, binding| sum.saturating_add(storage_bytes(binding.bytes())))
    }

    /// What the module says of itself, if the kernel keeps the rules: the module is valid, has one entry point, which is the
    /// one that is named; it uses storage buffers of set 0 that are bound, and writes no input; its push constants and
    /// specialization constants are those that are given; and there are workgroups.
    ///
    /// # Errors
    /// Says which rule is broken.
    pub fn check(&self) -> Result<ModuleFacts, String> {
        let facts = analyze(&self.module).map_err(|e| format!("the SPIR-V is not valid: {e}"))?;
        let [entry] = &facts.entry_points[..] else {
            let names: Vec<_> = facts.entry_points.iter().map(|entry| entry.name.as_str()).collect();
            return Err(format!("the module has the entry points [{}]; there must be one", names.join(", ")));
        };
        if entry.name != self.entry_point {
            return Err(format!("there is no entry point '{}'; there is '{}'", self.entry_point, entry.name));
        }
        self.check_bindings(entry)?;
        self.check_constants(entry, &facts)?;
        if self.workgroups.contains(&0) {
            return Err(format!("{:?} workgroups are none", self.workgroups));
        }
        Ok(facts)
    }

    fn check_bindings(&self, entry: &EntryFacts) -> Result<(), String> {
        for used in &entry.bindings {
            let (set, number) = (used.set, used.binding);
            let bound = if set == 0 { self.bindings.get(number as usize) } else { None };
            let Some(bound) = bound else {
                return Err(format!(
                    "the module uses binding {number} of set {set}; bindings 0 to {} of set 0 are given",
                    self.bindings.len().saturating_sub(1)
                ));
            };
            if used.class != "StorageBuffer" && used.class != "Uniform" {
                return Err(format!("binding {number} is {}; storage buffers are supported", used.class));
            }
            if matches!(bound, ForeignBinding::Input { .. }) && !used.readonly {
                return Err(format!(
                    "binding {number} is an input, which the module does not declare NonWritable"
                ));
            }
        }
        match self.bindings.iter().any(|binding| matches!(binding, ForeignBinding::Output { .. })) {
            true => Ok(()),
            false => Err("no binding is an output".to_owned()),
        }
    }

    fn check_constants(&self, entry: &EntryFacts, facts: &ModuleFacts) -> Result<(), String> {
        if entry.push_constant_bytes > self.push_constants.len() as u64 * 4 {
            return Err(format!(
                "the module has {} bytes of push constants, {} words are given",
                entry.push_constant_bytes,
                self.push_constants.len()
            ));
        }
        let known: Vec<u32> = entry.spec_constants.iter().map(|constant| constant.id).collect();
        if let Some(id) = self.constants.keys().find(|id| !known.contains(*id)) {
            return Err(format!("the module has no specialization constant {id}; it has {known:?}"));
        }
        let is_wide = |name: &String| matches!(name.as_str(), "Int64" | "Float64");
        if !self.constants.is_empty() && facts.capabilities.iter().any(is_wide) {
            return Err("specialization of modules with 64-bit types is not supported".to_owned());
        }
        match known.iter().find(|id| **id >= MOST_CONSTANTS && !self.constants.is_empty()) {
            Some(id) => {
                Err(format!("the specialization constant {id}; ids below {MOST_CONSTANTS} are supported"))
            }
            None => Ok(()),
        }
    }

    /// Values of the specialization constants with ids 0, 1, 2, …; none where the module's own are kept.
    pub fn all_constants(&self, facts: &ModuleFacts) -> Vec<u32> {
        let mut values = Vec::new();
        if self.constants.is_empty() {
            return values;
        }
        for constant in facts.entry_points.iter().flat_map(|entry| &entry.spec_constants) {
            let index = constant.id as usize;
            if index < MOST_CONSTANTS as usize {
                values.resize(values.len().max(index + 1), 0);
                values[index] = self.constants.get(&constant.id).copied().unwrap_or(constant.default);
            }
        }
        values
    }
}

impl fmt::Display for ForeignKernel {
    /// `spirv:NAME[2x1x1]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.workgroups;
        write!(f, "spirv:{}[{x}x{y}x{z}]", self.name)
    }
}
