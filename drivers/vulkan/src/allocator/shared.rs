//! Blocks of memory that is shared with others: taken from them, or made to be given away. Nothing of such a block is used for anything
//! else.

use std::sync::Arc;

use halite_abi::BUFFER_PADDING;
use halite_hal::{
    BufferParams, ExternalHandle, ExternalKind, ExternalMemory, MemoryType, Result, bail, external, status,
};

use super::{
    Allocation, Allocator, Block, Failure,
    block::Source,
    exhausted::{self, Request},
};
use crate::{
    external::{ExternalPlan, Told, ask, export, way},
    memory_types::{self, MemoryCandidate},
};

impl Allocator {
    /// Memory of others, and how many of its bytes a buffer has.
    pub fn import(&self, params: &BufferParams, memory: ExternalMemory) -> Result<(Arc<Allocation>, u64)> {
        let plan = self.plan(memory.handle.kind(), true)?;
        self.check(&memory)?;
        let ctx = &self.shared.ctx;
        let told = ask(ctx, &memory.handle)?;
        if told.size.is_some_and(|size| size < memory.size) {
            bail!(
                InvalidArgument,
                "the memory has {} bytes, and {} were stated",
                told.size.unwrap_or_default(),
                memory.size
            );
        }
        let length = memory.size / BUFFER_PADDING * BUFFER_PADDING;
        let mut block = Block::empty(ctx, self.shared.next_id(), length, Some(way(plan.support.kind)))
            .map_err(|failure| self.refused(plan.support.kind, memory.size, failure))?;
        let needs = block.needs();
        if needs.size > memory.size {
            bail!(
                InvalidArgument,
                "a buffer of {length} bytes needs {} bytes of memory on device '{}', and the memory has {}; allocate a multiple of {}",
                needs.size,
                ctx.info.name,
                memory.size,
                needs.alignment
            );
        }
        block.candidate = self.candidate(params, &memory, &told, needs.memory_type_bits)?;
        let dedicated = memory.dedicated || plan.dedicated_only;
        let size = told.size.unwrap_or(memory.size);
        block.other_owner = plan.other_owner;
        block
            .bind(Source::Take { handle: memory.handle, size, dedicated })
            .map_err(|failure| self.refused(plan.support.kind, size, failure))?;
        Ok((Arc::new(Allocation::unpooled(self.shared.clone(), Arc::new(block), length)), length))
    }

    /// Memory that can be given away as this kind.
    pub fn allocate_exportable(
        &self,
        params: &BufferParams,
        length: u64,
        kind: ExternalKind,
    ) -> Result<Arc<Allocation>> {
        let plan = self.plan(kind, false)?;
        let shared = &self.shared;
        let size = shared.padded(length, false)?;
        let facts = &shared.ctx.facts;
        let candidates =
            memory_types::candidates(params, &facts.memory, &shared.ctx.plan.memory, shared.type_bits);
        let mut tried = Vec::new();
        for candidate in candidates {
            let candidate = MemoryCandidate { mapped: false, ..candidate };
            match self.exportable(candidate, size, &plan) {
                Ok(allocation) => return Ok(allocation),
                Err(failure) => tried.push((candidate, failure)),
            }
            if tried.last().is_some_and(|(_, failure)| failure.is_final()) {
                break;
            }
        }
        let stats = shared.state.lock().stats;
        let request = Request { params, length, tried: &tried, stats, reserved: stats.reserved };
        Err(exhausted::status(&shared.ctx, &request))
    }

    fn exportable(
        &self,
        candidate: MemoryCandidate,
        size: u64,
        plan: &ExternalPlan,
    ) -> Result<Arc<Allocation>, Failure> {
        let shared = &self.shared;
        let limits = &shared.ctx.facts.limits;
        if size > limits.max_memory_allocation_size.min(limits.max_buffer_size) {
            return Err(Failure::TooLarge);
        }
        let kind = plan.support.kind;
        let mut block = Block::empty(&shared.ctx, shared.next_id(), size, Some(way(kind)))?;
        block.candidate = candidate;
        (block.other_owner, block.exportable) = (plan.other_owner, Some(kind));
        {
            let mut state = shared.state.lock();
            if let Some(limit) = shared.limit
                && state.stats.reserved.saturating_add(size) > limit.bytes()
            {
                return Err(Failure::OverLimit(limit));
            }
            state.count_shared(candidate.heap, size);
        }
        // From here on the allocation gives back what was counted.
        let bound = block.bind(Source::Give { kind, dedicated: plan.dedicated_only });
        let allocation = Allocation::new(shared.clone(), Arc::new(block), 0, size);
        bound.map(|()| Arc::new(allocation))
    }

    /// A handle for memory that was allocated for it.
    pub fn export(&self, allocation: &Allocation, kind: ExternalKind) -> Result<ExternalMemory> {
        let plan = self.plan(kind, false)?;
        let block = &allocation.block;
        if block.exportable != Some(kind) {
            bail!(
                FailedPrecondition,
                "the buffer's memory was not allocated to be given away as {kind}; allocate an exportable buffer of that kind"
            );
        }
        Ok(ExternalMemory {
            handle: export(&self.shared.ctx, block.memory, kind)?,
            size: block.allocated,
            memory_type: Some(block.candidate.index),
            dedicated: plan.dedicated_only,
        })
    }

    /// What only the driver can know to be wrong before Vulkan is asked: callers have checked kind, alignment and length.
    fn check(&self, memory: &ExternalMemory) -> Result<()> {
        let size = memory.size;
        if size < BUFFER_PADDING {
            bail!(InvalidArgument, "memory of {size} bytes is too small: {BUFFER_PADDING} is the least");
        }
        let limits = &self.shared.ctx.facts.limits;
        let largest = limits.max_buffer_size.min(limits.max_memory_allocation_size);
        if size > largest {
            bail!(
                InvalidArgument,
                "{size} bytes were stated, and no buffer of the device has more than {largest}"
            );
        }
        let behind = match &memory.handle {
            ExternalHandle::Host(bytes) => Some(bytes.len() as u64),
            #[cfg(unix)]
            ExternalHandle::OpaqueFd(file) | ExternalHandle::DmaBuf(file) => {
                crate::external::descriptor_size(file)
            }
            _ => None,
        };
        if let Some(behind) = behind.filter(|behind| *behind < size) {
            bail!(InvalidArgument, "{size} bytes were stated, and the memory has {behind}");
        }
        Ok(())
    }

    fn plan(&self, kind: ExternalKind, takes: bool) -> Result<ExternalPlan> {
        let ctx = &self.shared.ctx;
        let does = |plan: &&ExternalPlan| {
            plan.support.kind == kind && if takes { plan.support.import } else { plan.support.export }
        };
        ctx.plan
            .external
            .iter()
            .find(does)
            .copied()
            .ok_or_else(|| external::unsupported(&ctx.info, kind, takes))
    }

    /// The memory type that memory of others is.
    fn candidate(
        &self,
        params: &BufferParams,
        memory: &ExternalMemory,
        told: &Told,
        allowed: u32,
    ) -> Result<MemoryCandidate> {
        let ctx = &self.shared.ctx;
        let stated = memory.memory_type.filter(|_| told.type_bits.is_none());
        if let Some(index) = stated {
            let count = ctx.facts.memory.types.len() as u64;
            if u64::from(index) >= count || allowed & (1 << index) == 0 {
                bail!(
                    InvalidArgument,
                    "memory type {index} is none that buffers of device '{}' can be in, of its {count} types",
                    ctx.info.name
                );
            }
        }
        let bits = told.type_bits.or(stated.map(|index| 1 << index)).unwrap_or(u32::MAX) & allowed;
        // What it is was decided elsewhere.
        let memory_type = params.memory_type | MemoryType::OPTIMAL;
        let wanted = BufferParams { memory_type, ..*params };
        let found = memory_types::candidates(&wanted, &ctx.facts.memory, &ctx.plan.memory, bits);
        let found = found.into_iter().next().map(|found| MemoryCandidate { mapped: false, ..found });
        found.ok_or_else(|| {
            status!(
                InvalidArgument,
                "memory of the kind {} is of no type that buffers of device '{}' can be in (types {bits:#x} of {allowed:#x})",
                memory.handle.kind(),
                ctx.info.name
            )
        })
    }

    /// The error of memory that the device does not take.
    fn refused(&self, kind: ExternalKind, size: u64, failure: Failure) -> halite_hal::Status {
        let what = format!("{size} bytes of memory of the kind {kind}");
        match failure {
            Failure::Call { call, result } => {
                let told = self.shared.ctx.error(call, result, &what);
                told.annotate(
                    "is the handle of this kind, the size that of the whole allocation, and, for opaque handles, the device the same?"
                        .to_owned(),
                )
            }
            other => status!(ResourceExhausted, "{what} cannot be taken: {other:?}"),
        }
    }
}
