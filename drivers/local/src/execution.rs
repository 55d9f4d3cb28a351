//! Owns running a program: one command after the other, the workgroups of a dispatch on all threads that take part.
//! Does not own: threads (`pool`) or what a program is (`program`).

use std::sync::Arc;

use halite_hal::{BindingTable, Deadline};
use halite_status::{Result, ResultExt, bail, status};

use crate::{
    code::{Bindings, Call, Worker, workgroup_total},
    engine::Engine,
    memory::Block,
    operation::Progress,
    program::{Counts, Dispatch, Program, Ranges, Step},
    transfer,
};

/// A program on its way.
#[derive(Debug)]
pub(crate) struct Execution {
    program: Arc<Program>,
    /// Keeps the buffers alive.
    _table: BindingTable,
    ranges: Ranges,
    next: usize,
    bindings: Bindings,
    local_memory: Option<Block>,
}

impl Execution {
    /// A program with the buffers of this table.
    pub fn new(program: Arc<Program>, table: BindingTable) -> Result<Self> {
        let ranges = program.resolve(&table)?;
        let local_memory = match program.local_memory {
            0 => None,
            bytes => Some(Block::new(bytes).ok_or_else(|| {
                status!(ResourceExhausted, "no memory for {bytes} bytes of local memory of a kernel")
            })?),
        };
        Ok(Execution { program, _table: table, ranges, next: 0, bindings: Bindings::default(), local_memory })
    }

    /// What runs.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Runs commands until the end or the deadline.
    pub fn run(&mut self, _engine: &Arc<Engine>, deadline: Deadline) -> Result<Progress> {
        let program = self.program.clone();
        while let Some(step) = program.steps.get(self.next) {
            if deadline.remaining().is_some_and(|left| left.is_zero()) {
                return Ok(Progress::Interrupted);
            }
            match step {
                Step::Fill(target, pattern) => transfer::fill(target.range(&self.ranges)?, pattern),
                Step::Update(source, target) => transfer::update(target.range(&self.ranges)?, source)?,
                Step::Copy(source, target) => {
                    transfer::copy(source.range(&self.ranges)?, target.range(&self.ranges)?)?;
                }
                Step::Dispatch(dispatch) => self.dispatch(&program, dispatch)?,
            }
            self.next += 1;
        }
        Ok(Progress::Finished)
    }

    fn dispatch(&mut self, program: &Program, dispatch: &Dispatch) -> Result<()> {
        let executable = &program.executables[dispatch.executable as usize];
        let function = dispatch.function as usize;
        let name = || format!("dispatch of '{}'", executable.code().functions()[function].name);
        let counts = match dispatch.counts {
            Counts::Direct(counts) => counts,
            Counts::Indirect(place) => {
                let mut bytes = [0; 12];
                transfer::download(place.range(&self.ranges)?, &mut bytes)?;
                [0, 4, 8]
                    .map(|at| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]))
            }
        };
        let Some(total) = workgroup_total(counts) else {
            bail!(OutOfRange, "{counts:?} workgroups are more than 64 bits can count; {}", name());
        };
        program.bind(&self.ranges, dispatch, &mut self.bindings).context(name)?;
        let call = Call {
            function,
            counts,
            concurrency: 1,
            constants: &program.constants[dispatch.constants.clone()],
            bindings: &self.bindings,
        };
        let local_memory = self.local_memory.as_mut().map_or(&mut [][..], Block::bytes_mut);
        executable.code().run(&call, 0..total, &mut Worker { processor: 0, local_memory }).context(name)
    }
}
