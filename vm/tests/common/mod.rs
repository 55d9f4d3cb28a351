//! What the VM tests share: the corpus, and short ways to build and run modules.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::{fs, path::PathBuf, sync::Arc, time::Duration, time::Instant};

use bytes::Bytes;
use halite_abi::Result;
use halite_formats::vmfb::{ModuleDef, read_module};
use halite_vm::{
    Context, Invocation, Module, Value,
    asm::{FunctionBuilder, ModuleBuilder},
};

/// The corpus folder, if it is there.
pub fn corpus() -> Option<PathBuf> {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/corpus/vmfb"));
    if path.is_dir() {
        return Some(path);
    }
    eprintln!("SKIPPED: no corpus at {}", path.display());
    None
}

/// Every module file below the corpus' good folders.
pub fn good_modules() -> Vec<(String, ModuleDef)> {
    let Some(root) = corpus() else { return Vec::new() };
    let mut folders = vec![root.join("small"), root.join("models"), root.join("vm_ops")];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "vmfb") {
                let name = path.display().to_string();
                let def = read_module(Bytes::from(fs::read(&path).unwrap()))
                    .unwrap_or_else(|e| panic!("{name}: {e}"));
                found.push((name, def));
            }
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

/// A module of one exported function `main`.
pub fn module(function: FunctionBuilder) -> Result<Arc<Module>> {
    module_with(|_| Ok(()), function)
}

/// As [`module`], after `prepare`.
pub fn module_with(
    prepare: impl FnOnce(&mut ModuleBuilder) -> Result<()>,
    function: FunctionBuilder,
) -> Result<Arc<Module>> {
    let mut builder = ModuleBuilder::new("test");
    prepare(&mut builder)?;
    builder.function(Some("main"), function)?;
    Module::load(builder.finish())
}

/// Runs `test.main` of a module.
pub fn run(module: &Arc<Module>, args: &[Value]) -> Result<Vec<Value>> {
    let context = Context::new(&[], std::slice::from_ref(module))?;
    let main = context.lookup("test", "main")?;
    context.invoke(&main, args, &soon())
}

/// A deadline that no sound test reaches.
pub fn soon() -> Invocation {
    Invocation::until(Instant::now() + Duration::from_secs(20))
}

/// C's `%g`.
pub fn printf_g(value: f64) -> String {
    if value.is_nan() {
        return if value.is_sign_negative() { "-nan" } else { "nan" }.into();
    }
    if value.is_infinite() {
        return if value < 0.0 { "-inf" } else { "inf" }.into();
    }
    let scientific = format!("{value:.5e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap();
    let exponent: i32 = exponent.parse().unwrap();
    let trim = |s: &str| match s.contains('.') {
        true => s.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => s.to_owned(),
    };
    if value != 0.0 && !(-4..6).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trim(mantissa), exponent.abs());
    }
    trim(&format!("{value:.*}", (5 - exponent).max(0) as usize))
}
