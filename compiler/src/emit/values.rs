//! The function that tells whether an input has a certain value.

use halite_abi::{import::hal, object};
use halite_vm::{
    asm::{Reg, reference},
    isa::Op,
};

use super::{
    code::{Code, Part},
    globals::DEVICE,
    module::Writer,
    needs,
};
use crate::CompileError;

/// Writes the function (tensor, bytes, fence to wait for) -> whether the tensor's bytes are these. The tensor has as many.
pub fn equals(writer: &mut Writer) -> Result<u32, CompileError> {
    let mut code = Code::new("0rrr_i", 3);
    let (view, data, wait) = (reference(0), reference(1), reference(2));
    let [device, buffer, staging, allocated, copied] = [(); 5].map(|()| code.reference());
    let (status, found, wanted) = (code.word(), code.word(), code.word());
    let (bytes, at, left) = (code.pair(), code.pair(), code.pair());
    writer.load(&mut code, DEVICE, object::DEVICE, device);
    writer.call(&mut code, hal::BUFFER_VIEW_BUFFER, &[view], &[buffer]);
    code.op(Op::BufferLength, &[data.into(), bytes.into()]);
    writer.new_fence(&mut code, device, allocated);
    let (queue, zero) = (code.i64(needs::ANY_QUEUE), code.i64(0));
    let (memory, usage) = (code.u32(needs::HOST_READS.bits()), code.u32(needs::READBACK_USAGE.bits()));
    let nothing = code.null();
    let args = [device, queue, nothing, allocated, zero, memory, usage, bytes, zero];
    writer.call(&mut code, hal::DEVICE_QUEUE_ALLOCA, &args, &[staging]);
    let parts = [Part::One(zero), Part::Span(2, &[wait, allocated])];
    writer.call_variadic(&mut code, hal::FENCE_JOIN, &parts, &[allocated]);
    writer.new_fence(&mut code, device, copied);
    let args = [device, queue, allocated, copied, buffer, zero, staging, zero, bytes, zero];
    writer.call(&mut code, hal::DEVICE_QUEUE_COPY, &args, &[]);
    writer.wait(&mut code, copied, status);
    let compare = Compare { staging, data, bytes, at, left, found, wanted };
    compare.write(writer, &mut code);
    writer.function("equals", false, code)
}

/// Registers of a comparison.
struct Compare {
    staging: Reg,
    data: Reg,
    bytes: Reg,
    at: Reg,
    left: Reg,
    found: Reg,
    wanted: Reg,
}

impl Compare {
    /// Compares word by word, and the rest byte by byte.
    fn write(&self, writer: &mut Writer, code: &mut Code) {
        let [next, more, word, byte, same, other] = [(); 6].map(|()| code.label());
        let Compare { at, left, bytes, found, wanted, .. } = *self;
        code.op(Op::ConstI64Zero, &[at.into()]);
        code.jump(next);
        code.block(next);
        code.op(Op::SubI64, &[bytes.into(), at.into(), left.into()]);
        code.op(Op::CmpNzI64, &[left.into(), found.into()]);
        code.branch(found, more, same);
        code.block(more);
        let four = code.i64(4);
        code.op(Op::CmpLtI64S, &[left.into(), four.into(), found.into()]);
        code.branch(found, byte, word);
        for (block, shift, load) in [(word, 2, Op::BufferLoadI32), (byte, 0, Op::BufferLoadI8U)] {
            code.block(block);
            let size = 1 << shift;
            let count = code.i32(size);
            writer.call(code, hal::BUFFER_LOAD, &[self.staging, at, count], &[found]);
            // Buffers of the VM count in elements.
            let shift = code.i32(shift);
            code.op(Op::ShrI64U, &[at.into(), shift.into(), left.into()]);
            code.op(load, &[self.data.into(), left.into(), wanted.into()]);
            let step = code.i64(size.into());
            code.op(Op::AddI64, &[at.into(), step.into(), at.into()]);
            code.op(Op::CmpEqI32, &[found.into(), wanted.into(), found.into()]);
            code.branch(found, next, other);
        }
        for (block, answer) in [(same, 1), (other, 0)] {
            code.block(block);
            let answer = code.i32(answer);
            code.op(Op::Return, &[vec![answer].into()]);
        }
    }
}
