//! Bytecode on both CPU drivers: results, errors, and code that does not end by itself.
#![allow(clippy::unwrap_used, reason = "a failure is a failed test, also in helpers")]

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use halite_formats::vmfb::{Attr, WriteOptions, write_module};
use halite_hal::*;
use halite_local::LocalDriver;
use halite_vm::{
    asm::{Arg, FunctionBuilder, ModuleBuilder, Reg, cell, reference as r},
    isa::Op,
};

type D = Arc<dyn Device>;

fn devices() -> Vec<D> {
    let threads = |count: &str| Options::from([("threads".to_owned(), count.to_owned())]);
    vec![
        LocalDriver::SYNC.open("", &Options::new()).unwrap(),
        LocalDriver::TASK.open("", &threads("1")).unwrap(),
        LocalDriver::TASK.open("", &threads("3")).unwrap(),
    ]
}

fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(60))
}

/// An executable with one kernel of one binding: it looks at the first word until that is 0, then sets the second one
/// to 7.
fn executable(device: &D) -> Arc<dyn Executable> {
    let mut f = FunctionBuilder::new("0rrriiiiiiiii_v");
    let [again, end] = [f.label(), f.label()];
    let mut op = |op: Op, args: &[Arg]| {
        f.op(op, args).unwrap();
    };
    op(Op::ConstI32, &[0.into(), cell(9).into()]);
    op(Op::ListGetRef, &[r(2).into(), cell(9).into(), Arg::U32(0), r(3).into()]);
    op(Op::ConstI64, &[0_i64.into(), cell(10).into()]);
    op(Op::ConstI64, &[1_i64.into(), cell(12).into()]);
    op(Op::ConstI32, &[7.into(), cell(14).into()]);
    op(Op::Br, &[again.into()]);
    f.block(again);
    f.op(Op::BufferLoadI32, &[r(3).into(), cell(10).into(), cell(15).into()]).unwrap();
    f.op(Op::CondBr, &[cell(15).into(), again.into(), end.into()]).unwrap();
    f.block(end);
    f.op(Op::BufferStoreI32, &[r(3).into(), cell(12).into(), cell(14).into()]).unwrap();
    f.op(Op::Return, &[Vec::<Reg>::new().into()]).unwrap();
    let mut builder = ModuleBuilder::new("kernels");
    builder.ty("!vm.buffer");
    builder.function(Some("wait"), f).unwrap();
    let mut def = builder.finish();
    def.functions[0].signature.attrs = vec![Attr { key: "binding_count".into(), value: "1".into() }];
    let data = Bytes::from(write_module(&def, &WriteOptions::default()).unwrap());
    let format = "vmvx-bytecode-fb".to_owned();
    let (constants, label, subgroup_sizes) = (Vec::new(), "wait".to_owned(), Vec::new());
    device.create_executable(ExecutableDesc { format, data, constants, label, subgroup_sizes }).unwrap()
}

/// Submits a dispatch on a buffer of this length; its end.
fn dispatch(device: &D, buffer: &Arc<dyn Buffer>) -> Fence {
    let commands = vec![Command::Dispatch {
        executable: executable(device),
        function: 0,
        counts: DispatchCounts::Direct([1, 1, 1]),
        constants: [].into_iter().collect(),
        bindings: [BufferSpan::whole(buffer.clone()).into()].into_iter().collect(),
        flags: DispatchFlags::empty(),
    }];
    let list = CommandList {
        mode: CommandBufferMode::empty(),
        categories: CommandCategory::ANY,
        affinity: QueueAffinity::ANY,
        binding_capacity: 0,
        commands,
    };
    let command_buffer = device.create_command_buffer(list).unwrap();
    let end = Fence::new(device.create_semaphore(0).unwrap(), 1);
    let op = QueueOp::Execute { command_buffer, bindings: BindingTable::default() };
    device.queue_submit(QueueAffinity::ANY, &Fence::default(), &end, op).unwrap();
    end
}

fn buffer(device: &D, content: &[u32]) -> Arc<dyn Buffer> {
    let bytes: Vec<u8> = content.iter().flat_map(|word| word.to_le_bytes()).collect();
    let buffer = device.allocate_buffer(&BufferParams::DEVICE, bytes.len() as u64).unwrap();
    buffer.write(0, &bytes).unwrap();
    buffer
}

fn second_word(buffer: &Arc<dyn Buffer>) -> u32 {
    let mut word = [0; 4];
    buffer.read(4, &mut word).unwrap();
    u32::from_le_bytes(word)
}

#[test]
fn kernels_run_one_after_the_other() {
    for d in devices() {
        let buffers: Vec<_> = (0..20).map(|_| buffer(&d, &[0, 0])).collect();
        let ends: Vec<_> = buffers.iter().map(|b| dispatch(&d, b)).collect();
        for (end, b) in ends.iter().zip(&buffers) {
            end.wait(soon()).unwrap();
            assert_eq!(second_word(b), 7);
        }
        d.wait_idle(soon()).unwrap();
    }
}

#[test]
fn a_failing_kernel_fails_its_fence() {
    for d in devices() {
        let short = buffer(&d, &[0]);
        let status = dispatch(&d, &short).wait(soon()).unwrap_err();
        assert_eq!(status.code(), Code::OutOfRange);
        assert!(status.to_string().contains("kernels.wait"), "{status}");
    }
}

#[test]
fn deadlines_hold_while_a_kernel_does_not_end() {
    for d in devices() {
        let stuck = buffer(&d, &[1, 0]);
        let end = dispatch(&d, &stuck);
        let short = || Deadline::after(Duration::from_millis(30));
        assert_eq!(end.wait(short()).unwrap_err().code(), Code::DeadlineExceeded);
        assert_eq!(d.wait_idle(short()).unwrap_err().code(), Code::DeadlineExceeded);
        // What is submitted meanwhile has its turn later.
        let next = buffer(&d, &[0, 0]);
        let next_end = dispatch(&d, &next);
        assert_eq!(next_end.wait(short()).unwrap_err().code(), Code::DeadlineExceeded);
        assert_eq!((second_word(&stuck), second_word(&next)), (0, 0));
        stuck.write(0, &[0; 4]).unwrap();
        end.wait(soon()).unwrap();
        next_end.wait(soon()).unwrap();
        assert_eq!((second_word(&stuck), second_word(&next)), (7, 7));
    }
}

#[test]
fn a_device_may_go_while_a_kernel_runs() {
    for d in devices() {
        let stuck = buffer(&d, &[1, 0]);
        let end = dispatch(&d, &stuck);
        drop(d);
        assert!(!end.query().unwrap());
        stuck.write(0, &[0; 4]).unwrap();
        end.wait(soon()).unwrap();
        assert_eq!(second_word(&stuck), 7);
    }
}
