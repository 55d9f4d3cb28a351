//! ONNX models: reading them, and graphs of them for small sizes. Inputs whose values are asked for are given zeros.
#![no_main]

use std::collections::BTreeMap;

use halite_compiler::{
    CompileError,
    graph::elements,
    onnx::Model,
    signature::{Arity, Bindings, BoundValue, Dim, Signature},
};
use libfuzzer_sys::fuzz_target;

/// A size for all that the model leaves open.
const SIZE: u64 = 2;
/// Most bytes of values that are given.
const MOST_BYTES: u64 = 1 << 16;

fn shapes(inputs: &[Signature]) -> BTreeMap<String, Vec<u64>> {
    let mut shapes = BTreeMap::new();
    for input in inputs {
        let size = |dim: &Dim| if let Dim::Known(size) = dim { *size } else { SIZE };
        let dims: Vec<u64> = input.dims.iter().flatten().map(size).collect();
        match input.arity {
            Arity::Sequence => {
                shapes.insert(format!("{}[0]", input.name), dims.clone());
                shapes.insert(format!("{}[1]", input.name), dims);
            }
            _ => drop(shapes.insert(input.name.clone(), dims)),
        }
    }
    shapes
}

fuzz_target!(|data: &[u8]| {
    let Ok(model) = Model::from_bytes(bytes::Bytes::copy_from_slice(data)) else { return };
    let inputs = model.inputs();
    let mut bindings = Bindings { shapes: shapes(&inputs), ..Bindings::default() };
    for _ in 0..4 {
        let Err(CompileError::NeedsValues { inputs: wanted, .. }) = model.graph(&bindings) else { return };
        for name in wanted {
            let element = inputs.iter().find(|input| input.name == name).and_then(|input| input.element);
            let (Some(element), Some(dims)) = (element, bindings.shapes.get(&name).cloned()) else { return };
            let size = elements(&dims).saturating_mul(element.storage().size());
            if size > MOST_BYTES {
                return;
            }
            let bytes = vec![0; size as usize].into();
            bindings.values.insert(name, BoundValue { element, dims, bytes });
        }
    }
});
