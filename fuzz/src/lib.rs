//! What fuzz targets share: the road of a model from bytes to a module.

use std::collections::BTreeMap;

use bytes::Bytes;
use halite_compiler::{
    CompileError, CompileOptions, Control, Model, ModelFormat, Precision,
    graph::elements,
    signature::{Arity, Bindings, BoundValue, Dim, Signature},
};

/// A size for all that the model leaves open.
const SIZE: u64 = 2;
/// Most bytes of values that are given.
const MOST_BYTES: u64 = 1 << 16;

/// Reads a model of a format, by its id, and compiles each of its functions for small sizes and the baseline. Inputs whose values are asked for are
/// given zeros. Errors are fine; panics, hangs and memory out of proportion are findings.
pub fn compile(bytes: Bytes, format: &str) {
    let Ok(format) = ModelFormat::named(format) else { panic!("the compiler reads no {format}") };
    let Ok(model) = Model::from_bytes(bytes, format, &Control::default()) else { return };
    for name in model.functions().iter().take(4) {
        function(&model, name);
    }
}

fn function(model: &Model, name: &str) {
    let (Ok(inputs), Ok(_)) = (model.inputs(name), model.outputs(name)) else { return };
    let mut bindings = Bindings { shapes: shapes(&inputs), ..Bindings::default() };
    for _ in 0..4 {
        match model.function(name, std::slice::from_ref(&bindings), Precision::Model, &Control::default()) {
            Ok((function, _)) => return emit(function),
            Err(CompileError::NeedsValues { inputs: wanted, .. }) => {
                if bind(&inputs, &mut bindings, wanted).is_none() {
                    return;
                }
            }
            Err(_) => return,
        }
    }
}

fn emit(function: halite_compiler::Function) {
    let program = halite_compiler::Program { functions: vec![function], model: None };
    let _ = halite_compiler::compile(&program, &CompileOptions::default(), &Control::default());
}

fn bind(inputs: &[Signature], bindings: &mut Bindings, wanted: Vec<String>) -> Option<()> {
    for name in wanted {
        let element = inputs.iter().find(|input| input.name == name)?.element?;
        let dims = bindings.shapes.get(&name)?.clone();
        let size = elements(&dims).saturating_mul(element.storage().size());
        if size > MOST_BYTES {
            return None;
        }
        bindings.values.insert(name, BoundValue { element, dims, bytes: vec![0; size as usize].into() });
    }
    Some(())
}

fn shapes(inputs: &[Signature]) -> BTreeMap<String, Vec<u64>> {
    let mut shapes = BTreeMap::new();
    for input in inputs {
        let size = |dim: &Dim| match dim {
            Dim::Known(size) => *size,
            Dim::UpTo(most) => SIZE.min(*most),
            Dim::Symbol(_) | Dim::Unknown => SIZE,
        };
        let dims: Vec<u64> = input.dims.iter().flatten().map(size).collect();
        match input.arity {
            Arity::Sequence => {
                shapes.insert(format!("{}[0]", input.name), dims.clone());
                shapes.insert(format!("{}[1]", input.name), dims);
            }
            Arity::Tensor => drop(shapes.insert(input.name.clone(), dims)),
        }
    }
    shapes
}
