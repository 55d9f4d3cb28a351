//! Kernels that a model brings along as SPIR-V (`tests/data/make_spirv.py`): what is accepted, and what is refused and why.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;

use halite_compiler::{
    BASELINE, CompileError, CompileOptions, Control, Program,
    build::Builder,
    compile,
    graph::{ElementType, ForeignBinding, ForeignKernel},
};
use halite_ops::{DType, Values};
use halite_targets::{Capabilities, Target};

const F32: ElementType = ElementType::Of(DType::F32);

/// `y = x * k + offset` of 8 elements.
fn scale() -> ForeignKernel {
    let words = include_bytes!("data/scale.spv").as_chunks::<4>().0;
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

fn built(kernel: ForeignKernel) -> Result<Program, CompileError> {
    let mut b = Builder::new();
    let x = b.input("x", F32, &[8])?;
    let y = b.foreign(kernel, &[x], &[(F32, vec![8])])?;
    b.output("y", y[0]);
    Ok(Program::of("main", b.finish()?))
}

#[test]
fn a_foreign_kernel_becomes_a_dispatch() {
    let program = built(scale()).unwrap();
    let compiled = compile(&program, &CompileOptions::default(), &Control::new()).unwrap();
    let version = &compiled.report.targets[0].functions[0].versions[0];
    assert_eq!((version.dispatches, version.copies), (1, 0));
    let operation = &version.operations[0];
    assert_eq!((operation.variant.as_str(), operation.bytes), ("scale", 64.0));
    assert_eq!(operation.operation, "spirv:scale[2x1x1]");
    assert!(compiled.report.sizes.kernels[0].0.starts_with("scale."), "{:?}", compiled.report.sizes.kernels);
    let graph = &program.functions[0].versions[0];
    assert!(graph.to_string().contains("spirv:scale[2x1x1](%0 f32[8])"), "{graph}");
    let error = graph.evaluate(&[Values::Float(vec![0.0; 8])]).unwrap_err();
    assert!(error.is_unsupported() && error.to_string().contains("spirv:scale"), "{error}");
}

#[test]
fn broken_rules_are_named() {
    let refused = |change: &dyn Fn(&mut ForeignKernel), wanted: &str| {
        let mut kernel = scale();
        change(&mut kernel);
        let error = built(kernel).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    };
    refused(&|k| k.module = k.module[..40].into(), "the SPIR-V is not valid");
    refused(&|k| k.entry_point = "main".to_owned(), "there is no entry point 'main'; there is 'scale'");
    refused(&|k| k.bindings.truncate(1), "the module uses binding 1 of set 0; bindings 0 to 0");
    refused(
        &|k| k.bindings.reverse(),
        "binding 1 is an input, which the module does not declare NonWritable",
    );
    refused(&|k| k.push_constants.clear(), "4 bytes of push constants, 0 words");
    refused(&|k| k.constants = BTreeMap::from([(7, 0)]), "no specialization constant 7; it has [1]");
    refused(&|k| k.workgroups[2] = 0, "workgroups are none");
    let other = ForeignBinding::Input { index: 0, bytes: 16 };
    refused(&|k| k.bindings[0] = other, "Input { index: 0, bytes: 16 } for [%0 f32[8]]");
    let second = ForeignBinding::Input { index: 1, bytes: 32 };
    refused(&|k| k.bindings[0] = second, "Input { index: 1");
}

#[test]
fn what_a_target_lacks_is_named_with_the_place() {
    let program = built(ForeignKernel { workgroups: [2, 1, 1 << 20], ..scale() }).unwrap();
    let mut target = Capabilities::of(Target::parse(BASELINE).unwrap());
    target.max_workgroup_count = [65_535; 3];
    let options = CompileOptions { targets: vec![target], baseline: false, ..CompileOptions::default() };
    let error = compile(&program, &options, &Control::new()).unwrap_err();
    assert!(matches!(error, CompileError::NoKernel { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("1048576 workgroups along an axis, and the target takes 65535"), "{text}");
}
