//! A module with its types, functions and entry points: what every analysis starts from.

use std::collections::HashMap;

use spirv::Op;

use crate::{
    cfg::Function,
    entry::{Entry, read_entries},
    error::SpirvError,
    grammar,
    module::{Inst, Module},
    sections,
    types::Types,
};

/// A module taken apart. Analyses are given those that passed every check of `validate`.
pub(crate) struct ParsedModule<'w> {
    pub module: Module<'w>,
    pub types: Types,
    pub functions: Vec<Function>,
    pub entries: Vec<Entry>,
    /// Index of the first instruction of the first function.
    pub first_function: usize,
    by_id: HashMap<u32, usize>,
}

impl<'w> ParsedModule<'w> {
    /// Takes a module apart; checks what can be told before types and ids are.
    pub fn read(words: &'w [u32]) -> Result<Self, SpirvError> {
        let module = Module::parse(words)?;
        if let Some(inst) = module.insts().iter().find(|inst| grammar::graphs(inst.op).is_some()) {
            return Err(SpirvError::at(inst.at, format!("Op{:?} is no part of compute kernels", inst.op)));
        }
        let first_function = sections::check(&module)?;
        let types = Types::build(&module)?;
        let entries = read_entries(&module)?;
        let mut functions = Vec::new();
        let mut at = first_function;
        while let Some(inst) = module.insts().get(at) {
            match inst.op {
                Op::Function => {
                    let (function, next) = Function::read(&module, at)?;
                    functions.push(function);
                    at = next;
                }
                Op::Line | Op::NoLine => at += 1,
                op => return Err(SpirvError::at(inst.at, format!("Op{op:?} stands outside a function"))),
            }
        }
        let by_id = functions.iter().enumerate().map(|(i, f)| (f.id, i)).collect();
        Ok(ParsedModule { module, types, functions, entries, first_function, by_id })
    }

    /// The function with this id.
    pub fn function(&self, id: u32) -> Option<&Function> {
        self.by_id.get(&id).map(|i| &self.functions[*i])
    }

    /// The entry point with this name.
    pub fn entry(&self, name: &str) -> Result<&Entry, SpirvError> {
        self.entries.iter().find(|e| e.name == name).ok_or_else(|| SpirvError::NoEntryPoint {
            name: name.to_owned(),
            available: self.entries.iter().map(|e| e.name.as_str()).collect::<Vec<_>>().join(", "),
        })
    }

    /// The functions that can run when this one is called, itself first.
    pub fn call_tree(&self, function: u32) -> Vec<&Function> {
        let mut seen = vec![false; self.functions.len()];
        let mut list = Vec::new();
        let mut stack: Vec<usize> = self.by_id.get(&function).copied().into_iter().collect();
        while let Some(index) = stack.pop() {
            if std::mem::replace(&mut seen[index], true) {
                continue;
            }
            let function = &self.functions[index];
            list.push(function);
            for inst in self.body(function).filter(|i| i.op == Op::FunctionCall) {
                stack.extend(self.by_id.get(&self.module.operands(inst)[0]));
            }
        }
        list
    }

    /// Every instruction of the functions that can run from this one.
    pub fn reachable_instructions(&self, function: u32) -> impl Iterator<Item = &Inst> {
        self.call_tree(function).into_iter().flat_map(|f| self.body(f))
    }

    /// The instructions of a function's blocks.
    pub fn body<'a>(&'a self, function: &'a Function) -> impl Iterator<Item = &'a Inst> {
        function.blocks.iter().flat_map(|b| &self.module.insts()[b.first..=b.last])
    }
}
