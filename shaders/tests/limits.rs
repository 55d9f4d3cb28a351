//! Kernels on a device that has what Vulkan 1.1 promises and nothing more: what they bind, how large their workgroups and
//! their shared memory are.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::{
    collections::{HashMap, HashSet},
    fs,
    process::Command,
};

use halite_ops::{Operation, attention::Attention, recurrent::Recurrent};
use halite_shaders::{Plan, Slot, Step, Tuning, rank};
use halite_sizes::Trace;
use halite_spirv::{Editor, Module, instruction, words_from_bytes};
use halite_targets::{Capabilities, Target};
use spirv::{Decoration, Op};

/// The required limits: <https://registry.khronos.org/vulkan/specs/latest/html/vkspec.html#limits-minmax>.
const STORAGE_BUFFERS: usize = 4;
const INVOCATIONS: u32 = 128;
const SIZES: [u32; 3] = [128, 128, 64];
const SHARED_BYTES: u64 = 16384;
const PUSH_BYTES: usize = 128;
const BINDING_BYTES: u64 = 1 << 27;

fn weakest() -> Capabilities {
    let target = Capabilities::of(Target::parse("vp-vulkan_1_1-unknown").unwrap());
    assert_eq!(target.max_storage_buffers as usize, STORAGE_BUFFERS);
    assert_eq!((target.max_workgroup_invocations, target.max_workgroup_size), (INVOCATIONS, SIZES));
    assert_eq!((target.shared_memory_bytes.into(), target.max_push_constants_bytes), (SHARED_BYTES, 128));
    assert_eq!(target.max_storage_buffer_bytes, BINDING_BYTES);
    target
}

/// All plans of an operation that the target can run.
fn plans(operation: &Operation, target: &Capabilities) -> Vec<(String, Plan)> {
    let ranked = rank(operation, target, Tuning::shipped());
    ranked.iter().filter_map(|c| Some((c.variant.name.clone(), c.plan()?.clone()))).collect()
}

/// A step's code with its specialization constants as defaults: what a device is given.
fn specialized(step: &Step) -> Vec<u32> {
    let words = words_from_bytes(&step.module.to_bytes()).unwrap();
    let module = Module::parse(&words).unwrap();
    let mut edit = Editor::new(&module);
    let decorations = module.insts().iter().filter(|inst| inst.op == Op::Decorate);
    let ids: HashMap<u32, usize> = decorations
        .filter_map(|inst| match *module.operands(inst) {
            [id, decoration, number] if decoration == Decoration::SpecId as u32 => {
                Some((id, number as usize))
            }
            _ => None,
        })
        .collect();
    for inst in module.insts() {
        let Some(value) = ids.get(&inst.id).and_then(|id| step.constants.get(*id)) else { continue };
        let truth = if *value == 0 { Op::SpecConstantFalse } else { Op::SpecConstantTrue };
        match inst.op {
            Op::SpecConstant => edit.replace(inst, instruction(inst.op, &[inst.ty, inst.id, *value])),
            Op::SpecConstantTrue | Op::SpecConstantFalse => {
                edit.replace(inst, instruction(truth, &[inst.ty, inst.id]));
            }
            _ => {}
        }
    }
    edit.finish().unwrap()
}

fn check(step: &Step, name: &str) {
    assert!(step.bindings.len() <= STORAGE_BUFFERS, "{name}: {:?}", step.bindings);
    assert!(step.push.len() * 4 <= PUSH_BYTES, "{name}: {} words of push constants", step.push.len());
    let facts = halite_spirv::analyze(&specialized(step)).unwrap_or_else(|e| panic!("{name}: {e}"));
    let entry = &facts.entry_points[0];
    let [x, y, z] = entry.local_size;
    assert!(
        x * y * z <= INVOCATIONS && x <= SIZES[0] && y <= SIZES[1] && z <= SIZES[2],
        "{name}: {x}x{y}x{z}"
    );
    assert!(entry.workgroup_memory_bytes <= SHARED_BYTES, "{name}: {} bytes", entry.workgroup_memory_bytes);
    assert!(entry.push_constant_bytes <= PUSH_BYTES as u64, "{name}");
    let mut bindings: Vec<u32> = entry.bindings.iter().map(|b| b.binding).collect();
    bindings.sort_unstable();
    bindings.dedup();
    assert!(bindings.iter().all(|b| (*b as usize) < step.bindings.len()), "{name}: {bindings:?}");
}

#[test]
fn steps_of_a_recurrence_share_the_code_whose_bindings_were_moved() {
    let target = weakest();
    let codes = |steps: u64| {
        let mut most = 0;
        for operation in Operation::samples("recurrent") {
            let Operation::Recurrent(sample) = operation else { panic!("{operation}") };
            let long = Operation::Recurrent(Recurrent { steps: steps.into(), ..sample });
            for (_, plan) in plans(&long, &target) {
                let emitted = plan.steps.iter().filter_map(|step| match &step.module {
                    halite_shaders::Module::Emitted(words) => Some(words.as_ptr()),
                    halite_shaders::Module::Compiled { .. } => None,
                });
                most = most.max(emitted.collect::<HashSet<_>>().len());
            }
        }
        most
    };
    let count = codes(2_000);
    assert!((1..=8).contains(&count), "{count} kernels");
}

#[test]
fn every_kernel_for_the_weakest_device_keeps_its_limits() {
    /// Every which sample of an operation is looked at in the short form: many differ in types of elements and sizes of tiles only.
    const STEP: usize = 4;
    let is_thorough = std::env::var_os("HALITE_TEST_THOROUGH").is_some();
    let target = weakest();
    let step = if is_thorough { 1 } else { STEP };
    let (mut seen, mut moved) = (HashSet::new(), HashSet::new());
    for operation in
        Operation::NAMES.iter().flat_map(|name| Operation::samples(name).into_iter().step_by(step))
    {
        let plans = plans(&operation, &target);
        assert!(!plans.is_empty(), "{operation}: {:?}", rank(&operation, &target, Tuning::shipped()));
        for (variant, plan) in plans {
            for step in plan.steps {
                let code = step.module.to_bytes();
                if operation.name() != "elementwise"
                    && matches!(step.module, halite_shaders::Module::Emitted(_))
                {
                    moved.insert(code.clone());
                }
                if seen.insert((code, step.constants.clone(), step.bindings.len())) {
                    check(&step, &format!("{variant} of {operation}"));
                }
            }
            assert!(plan.scratch.iter().all(|bytes| *bytes <= BINDING_BYTES), "{variant} of {operation}");
        }
    }
    let least = [1000, 20].map(|least| least / step);
    assert!(seen.len() > least[0] && moved.len() > least[1], "{} kernels, {} moved", seen.len(), moved.len());
    validate(&moved);
}

/// With the validator of the SPIR-V tools, where it is installed: code whose bindings were moved.
fn validate(moved: &HashSet<Vec<u8>>) {
    if Command::new("spirv-val").arg("--version").output().is_err() {
        eprintln!("SKIPPED: spirv-val (package spirv-tools) is not installed");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for code in moved {
        let file = folder.path().join("moved.spv");
        fs::write(&file, code).unwrap();
        let said = Command::new("spirv-val").args(["--target-env", "vulkan1.1"]).arg(&file).output().unwrap();
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    }
}

#[test]
fn a_device_with_more_bindings_gets_the_kernels_as_they_are() {
    let mut target = weakest();
    let operation = Operation::parse("attention:heads=2,q_len=8,kv_len=8,head_dim=64,mask=shared").unwrap();
    let compiled = |target: &Capabilities| {
        let mut all = plans(&operation, target).into_iter();
        let (_, plan) = all.find(|(variant, _)| variant == "attention.f32.tile32x32").unwrap();
        (
            plan.steps.iter().all(|step| matches!(step.module, halite_shaders::Module::Compiled { .. })),
            plan.steps.len(),
        )
    };
    let (as_it_is, steps) = compiled(&target);
    assert!(!as_it_is && steps > 1, "the mask is copied first");
    target.max_storage_buffers = 5;
    assert_eq!(compiled(&target), (true, 1));
}

#[test]
fn inputs_that_share_a_buffer_have_room_there_for_all_of_open_sizes() {
    let trace = Trace::new();
    let _entered = trace.enter();
    let rows = trace.symbol("rows", 24, 16, 63);
    let text = "attention:heads=4,q_len=8,kv_len=8,head_dim=64,mask=shared";
    let Operation::Attention(attention) = Operation::parse(text).unwrap() else { panic!("{text}") };
    let operation = Operation::Attention(Attention { q_len: rows, kv_len: rows, ..attention });
    let (_, plan) = plans(&operation, &weakest()).swap_remove(0);
    let copies: Vec<_> = plan.steps.iter().filter(|step| step.bindings.contains(&Slot::Scratch(0))).collect();
    assert!(copies.len() > 1, "{} steps", plan.steps.len());
    // Nothing is asked of the rows, so that one plan is for all of them; the mask takes most room, its rows being as long as they are many.
    assert!([16, 17, 24, 62, 63].iter().all(|rows| trace.region().has(&[*rows])), "{:?}", trace.guards());
    let bytes = plan.scratch[0];
    assert!(bytes.is_constant() && bytes.value() >= 63 * 63 * 4, "{bytes:?}");
}

#[test]
fn fewer_bindings_than_a_function_has_operands_are_told() {
    let mut target = weakest();
    target.max_storage_buffers = 3;
    let operation =
        Operation::parse("elementwise:inputs=f32[9] f32[9] f32[9],program=clip $0 $1 $2 -> %0:f32").unwrap();
    let ranked = rank(&operation, &target, Tuning::shipped());
    assert!(ranked.iter().all(|candidate| candidate.plan().is_none()));
    let told = format!("{ranked:?}");
    assert!(told.contains("more than 3 storage buffers"), "{told}");
}

#[test]
fn an_expression_over_many_tensors_is_taken_apart() {
    let inputs = "f32[2x3] f32[3] f32[2x1] f32[2x3] f32[1] f32[2x3] u8[2x3]";
    let program =
        "add $0 $1; mul %0 $2; lt $3 $4; select %2 %1 $5; cast:bool $6; select %4 %3 $0 -> %5:f32 %2:u8";
    let operation = Operation::parse(&format!("elementwise:inputs={inputs},program={program}")).unwrap();
    let (_, plan) = plans(&operation, &weakest()).swap_remove(0);
    assert!(plan.steps.len() > 2 && !plan.scratch.is_empty());
    let written: Vec<Slot> = plan.steps.iter().map(|step| *step.bindings.last().unwrap()).collect();
    assert_eq!(written[written.len() - 2..], [Slot::Output(0), Slot::Output(1)]);
    for (index, step) in plan.steps.iter().enumerate() {
        let read = &step.bindings[..step.bindings.len() - 1];
        let known = |slot: &Slot| matches!(slot, Slot::Input(_)) || written[..index].contains(slot);
        assert!(read.iter().all(known), "step {index} reads {read:?}");
    }
}
