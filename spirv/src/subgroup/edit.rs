//! Owns changes to a module: new constants, types, variables and instructions at chosen places.
//! Does not own: what to change (`repair`, `emulate`, `rebase`).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use spirv::{Op, StorageClass};

use crate::module::{HEADER_WORDS, Inst, Module};

const ACQUIRE_RELEASE: u32 = 0x8;
const WORKGROUP_SCOPE: u32 = 2;

/// A module with changes that are not applied yet. Instructions are found by the offset of their first word.
pub(crate) struct Edit<'a, 'w> {
    pub module: &'a Module<'w>,
    next: u32,
    imports: Vec<u32>,
    annotations: Vec<u32>,
    globals: Vec<u32>,
    interface: Vec<u32>,
    before: BTreeMap<usize, Vec<u32>>,
    removed: BTreeSet<usize>,
    constants: HashMap<u32, u32>,
}

impl<'a, 'w> Edit<'a, 'w> {
    pub fn new(module: &'a Module<'w>) -> Self {
        Edit {
            module,
            next: module.bound,
            imports: Vec::new(),
            annotations: Vec::new(),
            globals: Vec::new(),
            interface: Vec::new(),
            before: BTreeMap::new(),
            removed: BTreeSet::new(),
            constants: HashMap::new(),
        }
    }

    /// An id that nothing uses yet.
    pub fn fresh(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    /// Puts instructions before the one at this word, after what was put there already.
    pub fn insert(&mut self, at: usize, words: impl IntoIterator<Item = u32>) {
        self.before.entry(at).or_default().extend(words);
    }

    /// Leaves out the instruction at this word.
    pub fn remove(&mut self, at: usize) {
        self.removed.insert(at);
    }

    /// The words of a barrier over the workgroup, for workgroup memory and, if asked, storage buffers.
    pub fn barrier(&mut self, buffers: bool) -> Vec<u32> {
        let memory =
            super::hazard::WORKGROUP_MEMORY | if buffers { super::hazard::UNIFORM_MEMORY } else { 0 };
        let (scope, semantics) = (self.constant(WORKGROUP_SCOPE), self.constant(ACQUIRE_RELEASE | memory));
        instruction(Op::ControlBarrier, &[scope, scope, semantics])
    }

    /// The unsigned 32-bit type.
    pub fn uint(&mut self) -> u32 {
        self.global(Op::TypeInt, None, &[32, 0])
    }

    /// An unsigned 32-bit constant.
    pub fn constant(&mut self, value: u32) -> u32 {
        if let Some(known) = self.constants.get(&value) {
            return *known;
        }
        let uint = self.uint();
        let id = self.global(Op::Constant, Some(uint), &[value]);
        self.constants.insert(value, id);
        id
    }

    /// The constant of this type that is zero throughout.
    pub fn null(&mut self, ty: u32) -> u32 {
        self.global(Op::ConstantNull, Some(ty), &[])
    }

    /// A pointer type.
    pub fn pointer(&mut self, class: StorageClass, pointee: u32) -> u32 {
        self.global(Op::TypePointer, None, &[class as u32, pointee])
    }

    /// A new workgroup variable: an array of `count` values.
    pub fn workgroup_array(&mut self, elem: u32, count: u32) -> u32 {
        let count = self.constant(count);
        // Never shared with a type of the module, which may carry a layout that is not allowed here.
        let array = self.make(Op::TypeArray, None, &[elem, count]);
        let pointer = self.pointer(StorageClass::Workgroup, array);
        let variable = self.make(Op::Variable, Some(pointer), &[StorageClass::Workgroup as u32]);
        if self.lists_all_variables() {
            self.interface.push(variable);
        }
        variable
    }

    /// Whether entry points list all variables, not only inputs and outputs.
    ///
    /// That is the rule from version 1.4 on; compilers also do it in modules that claim an older version.
    fn lists_all_variables(&self) -> bool {
        let memory = |id: &u32| {
            let class =
                self.module.def(*id).filter(|d| d.op == Op::Variable).map(|d| self.module.operands(d)[0]);
            class.is_some_and(|c| c != StorageClass::Input as u32 && c != StorageClass::Output as u32)
        };
        let entry_points = || self.module.insts.iter().filter(|i| i.op == Op::EntryPoint);
        self.module.words[1] >= 0x0001_0400 || entry_points().any(|i| self.interface_of(i).iter().any(memory))
    }

    fn interface_of(&self, entry_point: &Inst) -> &'w [u32] {
        let words = self.module.operands(entry_point);
        let name = crate::module::string_words(&words[2..]).unwrap_or(0);
        &words[2 + name..]
    }

    /// A new input variable with a built-in decoration.
    pub fn input(&mut self, ty: u32, built_in: spirv::BuiltIn) -> u32 {
        let pointer = self.pointer(StorageClass::Input, ty);
        let variable = self.make(Op::Variable, Some(pointer), &[StorageClass::Input as u32]);
        let decoration = [variable, spirv::Decoration::BuiltIn as u32, built_in as u32];
        self.annotations.extend(instruction(Op::Decorate, &decoration));
        self.interface.push(variable);
        variable
    }

    /// A decoration of an id, or of a member of a type.
    pub fn decorate(&mut self, op: Op, operands: &[u32]) {
        self.annotations.extend(instruction(op, operands));
    }

    /// A new type with these operands, for what must not share one: structs carry their layout.
    pub fn own_type(&mut self, op: Op, operands: &[u32]) -> u32 {
        self.make(op, None, operands)
    }

    /// A push-constant variable of a struct type: instead of the module's own one, under its id, or an additional one.
    pub fn push_constants(&mut self, block: u32, instead: Option<&Inst>) -> u32 {
        let pointer = self.pointer(StorageClass::PushConstant, block);
        let id = instead.map_or_else(|| self.fresh(), |old| old.id);
        match instead {
            Some(old) => self.remove(old.at),
            None if self.lists_all_variables() => self.interface.push(id),
            None => {}
        }
        self.globals.extend(instruction(Op::Variable, &[pointer, id, StorageClass::PushConstant as u32]));
        id
    }

    /// The id of the GLSL instruction set.
    pub fn glsl(&mut self) -> u32 {
        let name: Vec<u32> =
            b"GLSL.std.450\0\0\0\0".as_chunks::<4>().0.iter().map(|c| u32::from_le_bytes(*c)).collect();
        let found =
            self.module.insts.iter().find(|i| i.op == Op::ExtInstImport && self.module.operands(i) == name);
        if let Some(inst) = found {
            return inst.id;
        }
        if let Some(id) = self.imports.get(1) {
            return *id;
        }
        let id = self.fresh();
        let operands: Vec<u32> = std::iter::once(id).chain(name).collect();
        self.imports = instruction(Op::ExtInstImport, &operands);
        id
    }

    /// A global with these operands: the module's, one made before, or a new one.
    pub fn global(&mut self, op: Op, ty: Option<u32>, operands: &[u32]) -> u32 {
        let same = |i: &&Inst| i.op == op && i.ty == ty.unwrap_or(0) && self.module.operands(i) == operands;
        if let Some(inst) = self.module.insts.iter().find(same) {
            return inst.id;
        }
        let mut at = 0;
        while let Some(head) = self.globals.get(at) {
            let made = &self.globals[at..at + (head >> 16) as usize];
            let skip = 2 + usize::from(ty.is_some());
            if head & 0xFFFF == op as u32 && ty.is_none_or(|t| made[1] == t) && made[skip..] == *operands {
                return made[skip - 1];
            }
            at += made.len();
        }
        self.make(op, ty, operands)
    }

    fn make(&mut self, op: Op, ty: Option<u32>, operands: &[u32]) -> u32 {
        let id = self.fresh();
        let all: Vec<u32> = ty.into_iter().chain([id]).chain(operands.iter().copied()).collect();
        self.globals.extend(instruction(op, &all));
        id
    }

    /// The changed module.
    pub fn finish(self) -> Vec<u32> {
        let insts = &self.module.insts;
        let position = |found: fn(Op) -> bool| insts.iter().find(|i| found(i.op)).map(|i| i.at);
        let memory_model = position(|op| op == Op::MemoryModel);
        let function = position(|op| op == Op::Function);
        // Annotations end where types begin.
        let types = position(|op| crate::types::is_type(op) || matches!(op, Op::Function));
        let mut words = self.module.words[..HEADER_WORDS].to_vec();
        for inst in insts {
            let at = Some(inst.at);
            for (place, added) in
                [(memory_model, &self.imports), (types, &self.annotations), (function, &self.globals)]
            {
                if place == at {
                    words.extend_from_slice(added);
                }
            }
            words.extend(self.before.get(&inst.at).into_iter().flatten());
            if self.removed.contains(&inst.at) {
                continue;
            }
            let start = words.len();
            words.extend_from_slice(self.module.words_of(inst));
            if inst.op == Op::EntryPoint {
                words.extend_from_slice(&self.interface);
                words[start] += (self.interface.len() as u32) << 16;
            }
        }
        words[3] = self.next;
        words
    }
}

/// The words of an instruction.
pub(crate) fn instruction(op: Op, operands: &[u32]) -> Vec<u32> {
    let head = (operands.len() as u32 + 1) << 16 | op as u32;
    std::iter::once(head).chain(operands.iter().copied()).collect()
}
