//! The checks over all real modules: none is refused, disassembly names match, damaged ones never panic.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use crate::common;
use std::{
    fs,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use cpu_time::ThreadTime;
use halite_formats::vmfb::{ModuleDef, read_module};
use halite_vm::{Context, ContextOptions, Invocation, Kind, Limits, Module, Param, Ref, Value, disassemble};

#[test]
fn every_real_module_is_accepted_and_disassembles() {
    let modules = common::good_modules();
    let (mut functions, mut lines) = (0, 0);
    for (name, def) in &modules {
        let module = Module::load(def.clone()).unwrap_or_else(|e| panic!("{name}: {e}"));
        for ordinal in 0..def.functions.len() as u32 {
            let text = disassemble(module.def(), ordinal).unwrap_or_else(|e| panic!("{name}: {e}"));
            let blocks = text.iter().filter(|l| l.mnemonic == "block").count();
            assert_eq!(blocks, usize::from(def.functions[ordinal as usize].block_count), "{name} {ordinal}");
            (functions, lines) = (functions + 1, lines + text.len());
        }
    }
    eprintln!("{} modules, {functions} functions, {lines} lines", modules.len());
    assert!(modules.is_empty() || (modules.len() > 100 && functions > 300 && lines > 5000));
}

/// Xorshift: the same damage on every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }
}

/// The module without data and names that verification does not read, so that thousands of copies are cheap.
fn slim(def: &ModuleDef) -> ModuleDef {
    ModuleDef {
        rodata: def.rodata.iter().map(|_| Bytes::from_static(b"data")).collect(),
        debug: None,
        ..def.clone()
    }
}

fn damage(def: &ModuleDef, random: &mut Random) -> ModuleDef {
    let mut bytes = def.bytecode.to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len());
        bytes[at] = match random.below(3) {
            0 => random.below(256) as u8,
            1 => bytes[at] ^ (1 << random.below(8)),
            _ => random.below(10) as u8,
        };
    }
    ModuleDef { bytecode: Bytes::from(bytes), ..def.clone() }
}

fn arguments(module: &Module, ordinal: u32, random: &mut Random) -> Vec<Value> {
    let params = &module.signature(ordinal).unwrap().args;
    let mut value = |param: &Param| match param {
        Param::One(Kind::I32) => Value::I32(random.below(7) as i32 - 1),
        Param::One(Kind::I64) => Value::I64(random.below(7) as i64 - 1),
        Param::One(Kind::F32) => Value::F32(random.below(7) as f32),
        Param::One(Kind::F64) => Value::F64(random.below(7) as f64),
        _ => Value::Ref(Ref::NULL),
    };
    params.iter().map(&mut value).collect()
}

/// Runs every export of a module that needs nothing from outside.
fn execute(module: &Arc<Module>, random: &mut Random) {
    let limits = Limits { memory_bytes: 1 << 20, call_depth: 64, ..Limits::default() };
    let until = || Invocation::until(Instant::now() + Duration::from_millis(2));
    let options = ContextOptions { limits, init: until() };
    let Ok(context) = Context::with_options(&[], std::slice::from_ref(module), &options) else { return };
    for export in &module.def().exports {
        let function = context.lookup(module.name(), &export.local_name).unwrap();
        let args = arguments(module, export.ordinal, random);
        // Processor time of this thread: what else runs on the machine does not count.
        let started = ThreadTime::now();
        let _ = context.invoke(&function, &args, &until());
        assert!(started.elapsed() < Duration::from_secs(5), "{} did not end in time", export.local_name);
    }
}

#[test]
fn damaged_bytecode_never_panics_or_hangs() {
    let mut random = Random(0x2026_1120_5EED);
    let (mut refused, mut survived, mut executed) = (0, 0, 0);
    for (_, def) in common::good_modules().iter().filter(|(_, d)| !d.bytecode.is_empty()) {
        let def = slim(def);
        let alone = def.imports.iter().all(|i| i.optional) && def.dependencies.is_empty();
        for _ in 0..if alone { 700 } else { 40 } {
            let Ok(module) = Module::load(damage(&def, &mut random)) else {
                refused += 1;
                continue;
            };
            survived += 1;
            if alone {
                execute(&module, &mut random);
                executed += 1;
            }
        }
    }
    eprintln!("{refused} refused, {survived} accepted, {executed} executed");
    assert!(refused + survived == 0 || (refused > 1000 && survived > 500 && executed > 1000));
}

#[test]
fn malformed_files_are_refused_or_run() {
    let Some(root) = common::corpus() else { return };
    let mut random = Random(7);
    let (mut refused, mut loaded) = (Vec::new(), 0);
    for line in fs::read_to_string(root.join("bad/manifest.jsonl")).unwrap().lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let name = row["name"].as_str().unwrap().to_owned();
        let Ok(file) = fs::read(root.join(row["vmfb"].as_str().unwrap())) else { continue };
        let Ok(def) = read_module(Bytes::from(file)) else { continue };
        match Module::load(def) {
            Ok(module) => {
                loaded += 1;
                execute(&module, &mut random);
            }
            Err(_) => refused.push(name),
        }
    }
    eprintln!("{loaded} loaded, {} refused: {}", refused.len(), refused.join(" "));
    // The real runtime crashes on these two.
    for name in ["bytecode_buffer_ops_1", "bytecode_scalar_loop_fib_3"] {
        assert!(refused.iter().any(|r| r == name), "{name} was accepted");
    }
    assert!(loaded > 5);
}
