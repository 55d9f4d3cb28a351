//! Which recording of a segment a call runs, and when it is made.

use halite_abi::object;
use halite_vm::{
    asm::{Label, Reg, reference},
    isa::Op,
};

use super::{
    call::{self, Call, Version},
    code::Code,
    globals::{Globals, TARGET},
    module::Writer,
};
use crate::CompileError;

/// Writes the function that makes the recordings of a version with open sizes for the sizes that it is given, so that a call with these
/// finds them: a caller who knows them has it run while the device works for the call before. Its results are, for each segment, the
/// recording that there was, or null, and the one that there is now.
pub fn ahead(
    writer: &mut Writer,
    globals: &Globals,
    version: &Version<'_>,
    name: &str,
) -> Result<(), CompileError> {
    let Some(open) = &version.graphs[0].open else { return Ok(()) };
    let segments = version.used.len();
    let convention = format!("0{}_{}", "I".repeat(open.symbols.len()), "r".repeat(2 * segments));
    let code = Code::with_symbols(&convention, 0, &open.trace);
    let _entered = open.enter();
    let (mut call, _) = call::begin(writer, globals, version, code, reference(0));
    let results: Vec<Reg> = (0..2 * segments).map(|_| call.code.reference()).collect();
    for (segment, pair) in results.chunks_exact(2).enumerate() {
        call.code.begin_command();
        let global = call.globals.recording(version.function, version.versions[0], segment);
        call.writer.load(&mut call.code, global, object::COMMAND_BUFFER, pair[0]);
        call.recording(segment);
        call.code.op(Op::AssignRef, &[call.recording.into(), pair[1].into()]);
    }
    call.code.op(Op::Return, &[results.into()]);
    let Call { writer, code, .. } = call;
    writer.function(name, true, code).map(drop)
}

impl Call<'_> {
    /// Puts the recording of a segment into `self.recording`. The first call makes it, if loading has not.
    pub(super) fn recording(&mut self, segment: usize) {
        let (version, ty) = (self.version, object::COMMAND_BUFFER);
        let globals: Vec<u32> =
            version.versions.iter().map(|v| self.globals.recording(version.function, *v, segment)).collect();
        let [global] = globals[..] else { return self.recording_of_row(segment, &globals) };
        self.writer.load(&mut self.code, global, ty, self.recording);
        if version.graphs[0].open.is_some() {
            self.unless_other_sizes(segment);
        }
        let Some(recorders) = &version.recorders else { return };
        let made = self.unless_made(&recorders[segment]);
        self.writer.store(&mut self.code, global, ty, self.recording);
        self.code.jump(made);
        self.code.block(made);
    }

    /// Forgets the recording in `self.recording` where it was made for other sizes, and notes those at hand.
    fn unless_other_sizes(&mut self, segment: usize) {
        let version = self.version;
        let first = self.globals.recorded_sizes(version.function, version.versions[0], segment);
        let symbols = self.code.symbols();
        let (same, other) = (self.code.label(), self.code.label());
        let one = self.code.i32(1);
        let all = self.code.temporary();
        self.code.op(Op::OrI32, &[one.into(), one.into(), all.into()]);
        for (index, symbol) in (0..).zip(&symbols) {
            let (held, flag) = (self.code.temporary(), self.code.temporary());
            self.code.op(Op::GlobalLoadI64, &[(first + 8 * index).into(), held.into()]);
            self.code.op(Op::CmpEqI64, &[held.into(), (*symbol).into(), flag.into()]);
            self.code.op(Op::AndI32, &[all.into(), flag.into(), all.into()]);
        }
        self.code.branch(all, same, other);
        self.code.block(other);
        for (index, symbol) in (0..).zip(&symbols) {
            self.code.op(Op::GlobalStoreI64, &[(first + 8 * index).into(), (*symbol).into()]);
        }
        let null = self.code.null();
        self.code.op(Op::AssignRef, &[null.into(), self.recording.into()]);
        self.code.jump(same);
        self.code.block(same);
    }

    /// The same where the row decides which recording it is.
    fn recording_of_row(&mut self, segment: usize, globals: &[u32]) {
        let ty = self.writer.ty(object::COMMAND_BUFFER);
        let global = self.code.varied_word(globals);
        self.code.op(Op::GlobalLoadIndirectRef, &[global.into(), ty.into(), self.recording.into()]);
        let Some(recorders) = &self.version.recorders else { return };
        let made = self.unless_made(&recorders[segment]);
        let global = self.code.varied_word(globals);
        self.code.op(Op::GlobalStoreIndirectRef, &[global.into(), ty.into(), self.recording.into()]);
        self.code.jump(made);
        self.code.block(made);
    }

    /// Makes the recording on the target at work if there is none, and goes on with storing it; gives the block behind that.
    fn unless_made(&mut self, recorders: &[u32]) -> Label {
        let [made, make, store] = [(); 3].map(|()| self.code.label());
        self.code.op(Op::CmpNzRef, &[self.recording.into(), self.flag.into()]);
        self.code.branch(self.flag, made, make);
        self.code.block(make);
        let blocks: Vec<Label> = recorders.iter().map(|_| self.code.label()).collect();
        self.code.op(Op::GlobalLoadI32, &[TARGET.into(), self.flag.into()]);
        let edge = |label: Label| (label, Vec::new());
        let cases: Vec<_> = blocks[..1].iter().chain(&blocks).map(|block| edge(*block)).collect();
        self.code.op(Op::BrTable, &[self.flag.into(), cases.into()]);
        for (block, recorder) in blocks.into_iter().zip(recorders) {
            self.code.block(block);
            let args = self.code.row_arguments();
            self.code.call(*recorder, &args, &[self.recording]);
            self.code.jump(store);
        }
        self.code.block(store);
        made
    }
}
