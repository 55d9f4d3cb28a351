//! Modules of bytecode as executables: what is refused, what runs, and that nothing outlives a dispatch.

use halite_abi::Code as StatusCode;
use halite_formats::vmfb::{Attr, WriteOptions, write_module};
use halite_vm::{
    asm::{Arg, FunctionBuilder, ModuleBuilder, Reg, cell, reference as r},
    isa::Op,
};

use super::*;
use crate::code::Bindings;

const BUFFER: Arg = Arg::U32(0);
/// A pair that holds 0.
const ZERO: u16 = 20;
/// Where binding 0 is put.
const INPUT: u16 = 3;
/// Where binding 1 is put.
const OUTPUT: u16 = 4;

/// A kernel under construction: bindings 0 and 1 are in refs 3 and 4, and the workgroup's x is in cells 10 and 11.
struct KernelCode(FunctionBuilder);

impl KernelCode {
    fn new() -> Self {
        let mut kernel = KernelCode(FunctionBuilder::new(SIGNATURE));
        for (index, target) in [INPUT, OUTPUT].into_iter().enumerate() {
            kernel.op(Op::ConstI32, &[(index as i32).into(), cell(9).into()]);
            kernel.op(Op::ListGetRef, &[r(2).into(), cell(9).into(), BUFFER, r(target).into()]);
        }
        kernel.op(Op::ExtI32I64S, &[cell(0).into(), cell(10).into()]);
        kernel.op(Op::ConstI64, &[0_i64.into(), cell(ZERO).into()]);
        kernel
    }

    fn op(&mut self, op: Op, args: &[Arg]) -> &mut Self {
        self.0.op(op, args).unwrap();
        self
    }

    /// `cell(target) = ref[index]`, where `index` names a pair.
    fn load(&mut self, from: u16, index: u16, target: u16) -> &mut Self {
        self.op(Op::BufferLoadI32, &[r(from).into(), cell(index).into(), cell(target).into()])
    }

    fn store(&mut self, to: u16, index: u16, value: u16) -> &mut Self {
        self.op(Op::BufferStoreI32, &[r(to).into(), cell(index).into(), cell(value).into()])
    }

    fn add(&mut self, a: u16, b: u16, target: u16) -> &mut Self {
        self.op(Op::AddI32, &[cell(a).into(), cell(b).into(), cell(target).into()])
    }

    fn end(&mut self) -> FunctionBuilder {
        self.op(Op::Return, &[Vec::<Reg>::new().into()]);
        self.0.clone()
    }
}

/// An executable of these kernels, with these attributes.
fn load(
    functions: Vec<(&str, FunctionBuilder)>,
    attrs: &[(&str, &str)],
    constants: &[u32],
) -> Result<VmvxCode> {
    let mut builder = ModuleBuilder::new("kernels");
    builder.ty("!vm.buffer");
    builder.globals(16, 2);
    for (name, function) in functions {
        builder.function(Some(name), function).unwrap();
    }
    let mut def = builder.finish();
    for function in &mut def.functions {
        let attr = |(key, value): &(&str, &str)| Attr { key: (*key).to_owned(), value: (*value).to_owned() };
        function.signature.attrs = attrs.iter().map(attr).collect();
    }
    load_bytes(write_module(&def, &WriteOptions::default()).unwrap(), constants)
}

fn load_bytes(data: Vec<u8>, constants: &[u32]) -> Result<VmvxCode> {
    VmvxCode::load(&ExecutableDesc {
        format: halite_abi::format::VMVX.to_owned(),
        data: data.into(),
        constants: constants.to_vec(),
        label: "test".to_owned(),
        subgroup_sizes: Vec::new(),
    })
}

const TWO_BINDINGS: &[(&str, &str)] = &[("binding_count", "2")];

/// Runs all workgroups of a dispatch over these bindings.
fn run(
    code: &VmvxCode,
    function: usize,
    counts: [u32; 3],
    constants: &[u32],
    memory: &mut [&mut [u32]],
) -> Result<()> {
    let mut bindings = Bindings::default();
    for part in memory {
        bindings.push(HostRange { pointer: part.as_mut_ptr().cast(), length: size_of_val(*part) });
    }
    let mut local = vec![0; code.needs(function).local_memory];
    let mut worker = Worker { processor: 0, local_memory: &mut local };
    let call = Call { function, counts, concurrency: 1, constants, bindings: &bindings };
    code.run(&call, 0..crate::code::workgroup_total(counts).unwrap(), &mut worker)
}

#[test]
fn workgroups_get_their_place_constants_and_bindings() {
    // out[x] = in[x] + constant[0] + 100 * y + count of z
    let mut kernel = KernelCode::new();
    kernel
        .load(INPUT, 10, 12)
        .load(1, ZERO, 13)
        .add(12, 13, 12)
        .op(Op::ConstI32, &[100.into(), cell(13).into()]);
    kernel.op(Op::MulI32, &[cell(1).into(), cell(13).into(), cell(13).into()]).add(12, 13, 12).add(12, 8, 12);
    let attrs = &[("binding_count", "2"), ("constant_count", "1")];
    let code = load(vec![("add", kernel.store(OUTPUT, 10, 12).end())], attrs, &[]).unwrap();
    let info = FunctionInfo {
        name: "add".to_owned(),
        binding_count: 2,
        constant_count: 1,
        workgroup_size: [1, 1, 1],
    };
    assert_eq!(code.functions(), [info]);
    assert_eq!(code.needs(0), Needs::default());
    let (mut input, mut output) = ([1, 2, 3], [0; 3]);
    run(&code, 0, [3, 2, 5], &[40], &mut [&mut input, &mut output]).unwrap();
    // The last y is 1.
    assert_eq!((input, output), ([1, 2, 3], [146, 147, 148]));
    run(&code, 0, [3, 0, 5], &[40], &mut [&mut input, &mut output]).unwrap();
    assert_eq!(output, [146, 147, 148]);
}

#[test]
fn accesses_outside_of_bindings_are_errors() {
    let code = load(vec![("k", KernelCode::new().load(INPUT, 10, 12).end())], TWO_BINDINGS, &[]).unwrap();
    let (mut input, mut output) = ([1, 2], [0]);
    run(&code, 0, [2, 1, 1], &[], &mut [&mut input, &mut output]).unwrap();
    let status = run(&code, 0, [3, 1, 1], &[], &mut [&mut input, &mut output]).unwrap_err();
    assert_eq!(status.code(), StatusCode::OutOfRange);
    assert!(status.to_string().contains("kernels.k"), "{status}");
    // Fewer bindings than the kernel takes: the HAL refuses that, and the bytecode gets an error.
    let status = run(&code, 0, [1, 1, 1], &[], &mut [&mut input]).unwrap_err();
    assert_eq!(status.code(), StatusCode::OutOfRange);
}

#[test]
fn buffers_that_are_kept_are_of_no_use_later() {
    let mut keep = KernelCode::new();
    keep.op(Op::GlobalStoreRef, &[0_u32.into(), BUFFER, r(INPUT).into()]);
    keep.op(Op::GlobalStoreRef, &[1_u32.into(), BUFFER, r(0).into()]);
    let again = |global: u32, write: bool| {
        let mut kernel = KernelCode::new();
        kernel.op(Op::GlobalLoadRef, &[global.into(), BUFFER, r(5).into()]);
        if write {
            kernel.store(5, ZERO, 8)
        } else {
            kernel.load(5, ZERO, 12)
        };
        kernel.store(OUTPUT, ZERO, 12).end()
    };
    let functions = vec![
        ("keep", keep.end()),
        ("read", again(0, false)),
        ("write", again(0, true)),
        ("local", again(1, false)),
    ];
    let attrs = &[("binding_count", "2"), ("local_memory", "4096")];
    let code = load(functions, attrs, &[]).unwrap();
    let (mut input, mut output) = ([5], [0]);
    run(&code, 0, [1, 1, 1], &[], &mut [&mut input, &mut output]).unwrap();
    for function in 1..4 {
        let status = run(&code, function, [1, 1, 1], &[], &mut [&mut [6], &mut output]).unwrap_err();
        assert_eq!(status.code(), StatusCode::FailedPrecondition, "{status}");
    }
    assert_eq!((input, output), ([5], [0]));
}

#[test]
fn executable_constants_are_set_in_every_context() {
    let mut set = FunctionBuilder::new("0r_v");
    set.op(Op::GlobalStoreRef, &[0_u32.into(), BUFFER, r(0).into()]).unwrap();
    set.op(Op::Return, &[Vec::<Reg>::new().into()]).unwrap();
    let mut kernel = KernelCode::new();
    kernel.op(Op::GlobalLoadRef, &[0_u32.into(), BUFFER, r(5).into()]);
    let kernel = kernel.load(5, 10, 12).store(OUTPUT, 10, 12).end();
    let functions = vec![("__builtin_k", kernel), (SET_CONSTANTS, set)];
    let code = load(functions, TWO_BINDINGS, &[7, 8, 9]).unwrap();
    assert_eq!(code.functions().len(), 1);
    assert_eq!(code.functions()[0].name, "__builtin_k");
    let barrier = std::sync::Barrier::new(4);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                barrier.wait();
                for _ in 0..50 {
                    let mut output = [0; 3];
                    run(&code, 0, [3, 1, 1], &[], &mut [&mut [], &mut output]).unwrap();
                    assert_eq!(output, [7, 8, 9]);
                }
            });
        }
    });
    assert!(code.idle.lock().len() <= 4);
    let unwanted = load(vec![("k", KernelCode::new().end())], TWO_BINDINGS, &[1]).unwrap_err();
    assert_eq!(unwanted.code(), StatusCode::InvalidArgument);
}

#[test]
fn local_memory_is_there() {
    let mut kernel = KernelCode::new();
    kernel.op(Op::BufferLength, &[r(0).into(), cell(12).into()]).store(OUTPUT, ZERO, 12);
    kernel.store(0, 10, 8).load(0, 10, 14).store(OUTPUT, 10, 14);
    let attrs = &[("binding_count", "2"), ("local_memory", "4096")];
    let code = load(vec![("k", kernel.end())], attrs, &[]).unwrap();
    assert_eq!(code.needs(0).local_memory, 4096);
    let mut output = [0; 2];
    run(&code, 0, [2, 1, 1], &[], &mut [&mut [], &mut output]).unwrap();
    assert_eq!(output, [4096, 1]);
}

#[test]
fn other_modules_are_refused() {
    let code = |result: Result<VmvxCode>| result.unwrap_err().code();
    assert_eq!(code(load_bytes(b"no module".to_vec(), &[])), StatusCode::InvalidArgument);
    let mut other = FunctionBuilder::new("0i_v");
    other.op(Op::Return, &[Vec::<Reg>::new().into()]).unwrap();
    let status = load(vec![("k", other)], TWO_BINDINGS, &[]).unwrap_err();
    assert!(status.to_string().contains(SIGNATURE) && status.to_string().contains("'k'"), "{status}");
    for attrs in [[("binding_count", "65")], [("binding_count", "-1")], [("local_memory", "99999999999")]] {
        assert_eq!(
            code(load(vec![("k", KernelCode::new().end())], &attrs, &[])),
            StatusCode::InvalidArgument
        );
    }
    let importing = |name: &str, convention: &str| {
        let mut builder = ModuleBuilder::new("kernels");
        builder.ty("!vm.buffer");
        builder.import(name, convention, false);
        builder.function(Some("k"), KernelCode::new().end()).unwrap();
        load_bytes(write_module(&builder.finish(), &WriteOptions::default()).unwrap(), &[])
    };
    importing("vmvx.abs.2d.f32", "0rIIIrIIIII_v").unwrap();
    for (name, convention) in [
        ("hal.device.allocator", "0r_r"),
        ("vmvx.tan.2d.f32", "0rIIIrIIIII_v"),
        ("vmvx.abs.2d.f32", "0rIIIrIIII_v"),
    ] {
        let status = importing(name, convention).unwrap_err();
        assert!(status.to_string().contains(name), "{status}");
    }
}
