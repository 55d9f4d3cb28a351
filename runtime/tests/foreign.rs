//! A kernel that a model brings along as SPIR-V, between operations of the library, on each Vulkan device.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;

use halite_compiler::{
    CompileOptions, Control, Program,
    build::Builder,
    compile,
    graph::{ElementType, ForeignBinding, ForeignKernel},
};
use halite_hal::{DriverRegistry, Options};
use halite_runtime::{BufferView, CallOptions, HostTensor, Session, Value};
use halite_vulkan as _;

/// `x * 3 + 0.5` of 8 elements by the kernel of `compiler/tests/data/make_spirv.py`.
fn scale() -> ForeignKernel {
    let words = include_bytes!("../../compiler/tests/data/scale.spv").as_chunks::<4>().0;
    ForeignKernel {
        name: "scale".to_owned(),
        module: words.iter().map(|word| u32::from_le_bytes(*word)).collect(),
        entry_point: "scale".to_owned(),
        constants: BTreeMap::from([(1, 3.0f32.to_bits())]),
        push_constants: vec![0.5f32.to_bits()],
        bindings: vec![
            ForeignBinding::Input { index: 0, bytes: 32 },
            ForeignBinding::Output { index: 0, bytes: 32 },
        ],
        workgroups: [2, 1, 1],
    }
}

/// `scale(scale(x + x)) - x`, of which the sum and the difference are the kernel library's. The second kernel keeps the module's
/// own constant, 2.
fn program() -> Program {
    use halite_ops::{DType, expression::Function};

    let float = ElementType::Of(DType::F32);
    let mut b = Builder::new();
    let x = b.input("x", float, &[8]).unwrap();
    let twice = b.binary(Function::Add, x, x).unwrap();
    let one = b.foreign(scale(), &[twice], &[(float, vec![8])]).unwrap()[0];
    let plain = ForeignKernel { constants: BTreeMap::new(), ..scale() };
    let two = b.foreign(plain, &[one], &[(float, vec![8])]).unwrap()[0];
    let y = b.binary(Function::Sub, two, x).unwrap();
    b.output("y", y);
    Program::of("main", b.finish().unwrap())
}

#[test]
fn foreign_kernels_run_between_operations() {
    let compiled = compile(&program(), &CompileOptions::default(), &Control::new()).unwrap();
    let registry = DriverRegistry::with_static_drivers();
    let found = registry.driver("vulkan").unwrap().enumerate(&Options::new()).unwrap_or_default();
    if !found.iter().any(|info| info.unusable.is_none()) {
        eprintln!("SKIPPED: no usable Vulkan device");
    }
    for info in found.iter().filter(|info| info.unusable.is_none()) {
        let device = halite_layers::open(&registry, &info.uri(), &Options::new()).unwrap();
        let session = Session::builder().devices(vec![device.clone()]).module_bytes(compiled.module.to_vec());
        let function = session.build().unwrap().default_function().unwrap();
        let x: Vec<f32> = (0..8u8).map(|i| f32::from(i) - 2.5).collect();
        let bytes: Vec<u8> = x.iter().flat_map(|v| v.to_le_bytes()).collect();
        let tensor = HostTensor::new(halite_abi::ElementType::F32, &[8u64][..], bytes).unwrap();
        let argument = Value::View(BufferView::from_host(&device, &tensor).unwrap());
        let results = function.call_with(&[argument], &CallOptions::default()).unwrap();
        let result = results[0].as_view().unwrap().to_host().unwrap();
        let found: Vec<f32> =
            result.data.as_chunks::<4>().0.iter().map(|word| f32::from_le_bytes(*word)).collect();
        let wanted: Vec<f32> = x.iter().map(|x| ((x + x) * 3.0 + 0.5) * 2.0 + 0.5 - x).collect();
        assert_eq!(found, wanted, "{}", info.name);
    }
}
