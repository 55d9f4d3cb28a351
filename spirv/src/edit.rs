//! The editor: changes to a module that was read, collected first and applied at once by [`Editor::finish`].
//!
//! What is changed is named by the instructions of the [`Module`]; new instructions are words, as
//! [`instruction`](crate::instruction) makes them. Types and constants that are there already are used again.

use std::collections::{BTreeMap, HashMap};

use spirv::{BuiltIn, Decoration, Op, StorageClass};

use crate::{
    error::SpirvError,
    grammar::{is_constant, is_type},
    module::{GLSL, Inst, Module, bound_limit},
    words::{BOUND_WORD, head, instruction, literal},
};

/// First version in which entry points list all variables that they use, not only inputs and outputs.
const VERSION_1_4: u32 = 0x0001_0400;

/// A module with changes that are not applied yet.
///
/// Only the shape of the result is checked, not its meaning: [`analyze`](crate::analyze) does that.
#[derive(Debug)]
pub struct Editor<'m, 'w> {
    module: &'m Module<'w>,
    next: u32,
    imports: Vec<u32>,
    annotations: Vec<u32>,
    globals: Vec<u32>,
    /// Variables that entry points list in addition.
    interface: Vec<u32>,
    /// By offset of an instruction: what stands in front of it.
    before: BTreeMap<usize, Vec<u32>>,
    /// By offset of an instruction: what stands in its place.
    replaced: BTreeMap<usize, Vec<u32>>,
    /// Types and constants, by their words without the result. Made when first asked for.
    known: Option<HashMap<Vec<u32>, u32>>,
    glsl: Option<u32>,
}

impl<'m, 'w> Editor<'m, 'w> {
    /// Of a module. Nothing is changed yet.
    pub fn new(module: &'m Module<'w>) -> Self {
        Editor {
            module,
            next: module.bound(),
            imports: Vec::new(),
            annotations: Vec::new(),
            globals: Vec::new(),
            interface: Vec::new(),
            before: BTreeMap::new(),
            replaced: BTreeMap::new(),
            known: None,
            glsl: None,
        }
    }

    /// An id that nothing uses yet.
    pub fn fresh(&mut self) -> u32 {
        let id = self.next;
        // `finish` refuses ids that are too large; so many are never written.
        self.next = self.next.saturating_add(1);
        id
    }

    /// Puts instructions in front of this one, behind what was put there before.
    pub fn insert_before(&mut self, inst: &Inst, words: impl IntoIterator<Item = u32>) {
        self.before.entry(inst.at).or_default().extend(words);
    }

    /// Leaves an instruction out.
    pub fn remove(&mut self, inst: &Inst) {
        self.replaced.insert(inst.at, Vec::new());
    }

    /// Puts instructions in the place of this one.
    pub fn replace(&mut self, inst: &Inst, words: Vec<u32>) {
        self.replaced.insert(inst.at, words);
    }

    /// A decoration of an id, or of a member of a type, with the operands of `op`.
    pub fn decorate(&mut self, op: Op, operands: &[u32]) {
        self.annotations.extend(instruction(op, operands));
    }

    /// The type or constant with these operands: the module's, one made before, or a new one. `ty` is the type of a
    /// constant.
    pub fn global(&mut self, op: Op, ty: Option<u32>, operands: &[u32]) -> u32 {
        let key = key(op, ty.unwrap_or(0), operands);
        let module = self.module;
        if let Some(id) = self.known.get_or_insert_with(|| globals_of(module)).get(&key) {
            return *id;
        }
        let id = self.own_global(op, ty, operands);
        self.known.get_or_insert_default().insert(key, id);
        id
    }

    /// A new type, constant or variable, for what must not share one: structs and arrays carry their layout.
    pub fn own_global(&mut self, op: Op, ty: Option<u32>, operands: &[u32]) -> u32 {
        let id = self.fresh();
        self.declare(op, ty, id, operands);
        id
    }

    fn declare(&mut self, op: Op, ty: Option<u32>, id: u32, operands: &[u32]) {
        let all: Vec<u32> = ty.into_iter().chain([id]).chain(operands.iter().copied()).collect();
        self.globals.extend(instruction(op, &all));
    }

    /// The unsigned 32-bit type.
    pub fn uint(&mut self) -> u32 {
        self.global(Op::TypeInt, None, &[32, 0])
    }

    /// An unsigned 32-bit constant.
    pub fn constant(&mut self, value: u32) -> u32 {
        let uint = self.uint();
        self.global(Op::Constant, Some(uint), &[value])
    }

    /// The constant of this type that is zero throughout.
    pub fn null(&mut self, ty: u32) -> u32 {
        self.global(Op::ConstantNull, Some(ty), &[])
    }

    /// A pointer type.
    pub fn pointer(&mut self, class: StorageClass, pointee: u32) -> u32 {
        self.global(Op::TypePointer, None, &[class as u32, pointee])
    }

    /// A new input variable of this type with a built-in decoration.
    pub fn input(&mut self, ty: u32, built_in: BuiltIn) -> u32 {
        let pointer = self.pointer(StorageClass::Input, ty);
        let variable = self.own_global(Op::Variable, Some(pointer), &[StorageClass::Input as u32]);
        self.decorate(Op::Decorate, &[variable, Decoration::BuiltIn as u32, built_in as u32]);
        self.interface.push(variable);
        variable
    }

    /// A new workgroup variable: an array of `count` values of a type.
    pub fn workgroup_array(&mut self, elem: u32, count: u32) -> u32 {
        let count = self.constant(count);
        // Never shared with a type of the module, which may carry a layout that is not allowed here.
        let array = self.own_global(Op::TypeArray, None, &[elem, count]);
        let pointer = self.pointer(StorageClass::Workgroup, array);
        let variable = self.own_global(Op::Variable, Some(pointer), &[StorageClass::Workgroup as u32]);
        if self.lists_all_variables() {
            self.interface.push(variable);
        }
        variable
    }

    /// Another variable under the id of this one, behind all types.
    pub fn own_variable(&mut self, instead: &Inst, pointer: u32, class: u32) {
        self.remove(instead);
        self.declare(Op::Variable, Some(pointer), instead.id, &[class]);
    }

    /// A push-constant variable of a struct type: instead of the module's own one, under its id, or an additional one.
    pub fn push_constants(&mut self, block: u32, instead: Option<&Inst>) -> u32 {
        let pointer = self.pointer(StorageClass::PushConstant, block);
        let id = instead.map_or_else(|| self.fresh(), |old| old.id);
        match instead {
            Some(old) => self.remove(old),
            None if self.lists_all_variables() => self.interface.push(id),
            None => {}
        }
        self.declare(Op::Variable, Some(pointer), id, &[StorageClass::PushConstant as u32]);
        id
    }

    /// Whether entry points list all variables, not only inputs and outputs.
    ///
    /// That is the rule from version 1.4 on; compilers also do it in modules that claim an older version.
    fn lists_all_variables(&self) -> bool {
        let of_memory = |id: &u32| {
            let class = self.module.variable_class(*id);
            class.is_some_and(|c| c != StorageClass::Input as u32 && c != StorageClass::Output as u32)
        };
        self.module.version() >= VERSION_1_4
            || self.module.entry_points().any(|(_, entry)| entry.interface.iter().any(of_memory))
    }

    /// The id of the GLSL instruction set.
    pub fn glsl(&mut self) -> u32 {
        if let Some(id) = self.glsl {
            return id;
        }
        let name = literal(GLSL);
        let mut imports = self.module.insts().iter().filter(|i| i.op == Op::ExtInstImport);
        let found = imports.find(|i| self.module.operands(i) == name).map(|i| i.id);
        let id = found.unwrap_or_else(|| {
            let id = self.fresh();
            let operands: Vec<u32> = std::iter::once(id).chain(name).collect();
            self.imports = instruction(Op::ExtInstImport, &operands);
            id
        });
        self.glsl = Some(id);
        id
    }

    /// The changed module.
    ///
    /// # Errors
    /// [`SpirvError::Edit`] if there are too many ids, an instruction is too long, or the module lacks the section that
    /// a declaration belongs in front of.
    pub fn finish(self) -> Result<Vec<u32>, SpirvError> {
        self.check()?;
        let old = self.module.words();
        let sections = self.sections()?;
        let mut words = Vec::with_capacity(old.len());
        // What lies between two changes is copied as a whole.
        let mut done = 0;
        for inst in self.changed(&sections) {
            words.extend_from_slice(&old[done..inst.at]);
            self.apply(inst, &sections, &mut words)?;
            done = inst.at + inst.len;
        }
        words.extend_from_slice(&old[done..]);
        if self.next > bound_limit(words.len()) {
            return too_large(&format!("it would have {} ids", self.next));
        }
        words[BOUND_WORD] = self.next;
        Ok(words)
    }

    /// The instructions at which the words change, in order.
    fn changed(&self, sections: &[(usize, &[u32])]) -> impl Iterator<Item = &'m Inst> {
        let insts = self.module.insts();
        let mut at: Vec<usize> = sections.iter().map(|(at, _)| *at).collect();
        at.extend(self.before.keys().chain(self.replaced.keys()));
        if !self.interface.is_empty() {
            at.extend(insts.iter().filter(|inst| inst.op == Op::EntryPoint).map(|inst| inst.at));
        }
        at.sort_unstable();
        at.dedup();
        at.into_iter().filter_map(|at| Some(&insts[insts.binary_search_by_key(&at, |inst| inst.at).ok()?]))
    }

    /// Writes what stands in front of an instruction, and it or what replaces it.
    fn apply(
        &self,
        inst: &Inst,
        sections: &[(usize, &[u32])],
        words: &mut Vec<u32>,
    ) -> Result<(), SpirvError> {
        for (_, added) in sections.iter().filter(|(at, _)| *at == inst.at) {
            words.extend_from_slice(added);
        }
        words.extend(self.before.get(&inst.at).into_iter().flatten());
        let own = self.replaced.get(&inst.at).map_or(self.module.words_of(inst), Vec::as_slice);
        let start = words.len();
        words.extend_from_slice(own);
        if inst.op == Op::EntryPoint && !own.is_empty() && !self.interface.is_empty() {
            words.extend_from_slice(&self.interface);
            words[start] = head(inst.op, words.len() - start);
            if words[start] >> 16 == 0 {
                return too_large("its entry point lists too many variables");
            }
        }
        Ok(())
    }

    /// What was added, with the instruction that it stands in front of.
    fn sections(&self) -> Result<Vec<(usize, &[u32])>, SpirvError> {
        let position = |found: fn(Op) -> bool| self.module.insts().iter().find(|i| found(i.op)).map(|i| i.at);
        // Annotations end where types begin.
        let all = [
            (position(|op| op == Op::MemoryModel), &self.imports, "memory model"),
            (position(|op| is_type(op) || op == Op::Function), &self.annotations, "type"),
            (position(|op| op == Op::Function), &self.globals, "function"),
        ];
        let mut sections = Vec::new();
        for (at, added, what) in all {
            match at {
                Some(at) => sections.push((at, added.as_slice())),
                None if added.is_empty() => {}
                None => return too_large(&format!("it has no {what}")),
            }
        }
        Ok(sections)
    }

    /// What was added is whole instructions.
    fn check(&self) -> Result<(), SpirvError> {
        let changes = self.before.values().chain(self.replaced.values());
        for words in changes.chain([&self.imports, &self.annotations, &self.globals]) {
            let mut rest = words.as_slice();
            while let Some(first) = rest.first() {
                rest = match (first >> 16) as usize {
                    len @ 1.. if len <= rest.len() => &rest[len..],
                    _ => return too_large("an instruction has more words than the format can tell"),
                };
            }
        }
        Ok(())
    }
}

fn too_large<T>(why: &str) -> Result<T, SpirvError> {
    Err(SpirvError::Edit(why.to_owned()))
}

/// What types and constants are found by.
fn key(op: Op, ty: u32, operands: &[u32]) -> Vec<u32> {
    [&[op as u32, ty], operands].concat()
}

/// The types and constants of a module; of equal ones the first.
fn globals_of(module: &Module<'_>) -> HashMap<Vec<u32>, u32> {
    let mut known = HashMap::new();
    for inst in module.insts().iter().filter(|i| is_type(i.op) || is_constant(i.op)) {
        known.entry(key(inst.op, inst.ty, module.operands(inst))).or_insert(inst.id);
    }
    known
}
