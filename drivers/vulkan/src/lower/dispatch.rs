//! The translation of dispatches: bindings to descriptors or addresses, constants, counts, and the limits that only a dispatch
//! can break.

use std::sync::Arc;

use ash::vk;
use halite_hal::{Binding, DispatchCounts, Executable, Result, status};

use super::{Arguments, Counts, MemoryRange, PreparedCommands, Resolver, Step, TablePatch};
use crate::{
    descriptors::DescriptorWrite,
    device::Core,
    executable::VulkanExecutable,
    pipeline::{Kernel, KernelBinding},
    queue::{Keeper, Weight},
};

/// u32 words of the root struct that kernels with address tables begin their push constants with.
pub(crate) const ROOT_WORDS: usize = 8;

/// Most Vulkan dispatches that one dispatch becomes. With 65535 workgroups each, they cover more memory than exists,
/// and what a program asks for cannot keep the recording busy.
const MOST_PARTS: u64 = 4096;

/// A dispatch as recorded.
pub(super) struct Call<'a> {
    pub executable: &'a dyn Executable,
    pub function: u32,
    pub counts: &'a DispatchCounts,
    pub constants: &'a [u32],
    pub bindings: &'a [Binding],
}

impl PreparedCommands {
    pub(super) fn dispatch(&mut self, core: &Core, resolver: &Resolver<'_>, call: &Call<'_>) -> Result<()> {
        let own = call.executable.as_any().downcast_ref::<VulkanExecutable>();
        let own = own.ok_or_else(|| {
            status!(InvalidArgument, "an executable of another driver was given to a Vulkan device")
        })?;
        let kernel = own.kernel(call.function)?;
        if matches!(call.counts, DispatchCounts::Direct(counts) if counts.contains(&0)) {
            return Ok(());
        }
        check_arguments(kernel, call)?;
        let counts = self.counts(core, resolver, kernel, call.counts)?;
        let (pipeline, layout) = match counts {
            Counts::Parts { total, .. } => {
                let split = kernel.split(total)?;
                (split.pipeline, split.layout)
            }
            _ => (kernel.pipeline()?, kernel.layout.handle()),
        };
        let first_constant = self.constants.len();
        let arguments = if kernel.layout.addresses {
            self.addresses(core, resolver, call)?
        } else {
            self.descriptors(core, resolver, kernel, call)?
        };
        self.constants.extend_from_slice(call.constants);
        let groups = match call.counts {
            DispatchCounts::Direct(counts) => Some(*counts),
            DispatchCounts::Indirect(_) => None,
        };
        let weight = Weight::new(self.steps.len(), kernel.id, groups, call.constants);
        let whole = !core.ctx.divides_dispatches();
        self.weights.push(if whole { weight } else { weight.divisible() });
        self.dispatches += 1;
        self.steps.push(Step::Dispatch {
            kernel: kernel.clone(),
            pipeline,
            layout,
            arguments,
            constants: first_constant..self.constants.len(),
            counts,
        });
        self.owned.push(Keeper::Kernel(kernel.clone()));
        Ok(())
    }

    fn counts(
        &mut self,
        core: &Core,
        resolver: &Resolver<'_>,
        kernel: &Kernel,
        counts: &DispatchCounts,
    ) -> Result<Counts> {
        match counts {
            DispatchCounts::Direct(counts) => {
                let most = core.ctx.facts.limits.max_compute_workgroup_count;
                if counts.iter().zip(most).any(|(count, most)| *count > most) {
                    return parts(core, kernel, *counts, most.map(|m| m.max(1)));
                }
                Ok(Counts::Direct(*counts))
            }
            DispatchCounts::Indirect(reference) => {
                let place = resolver.some_range(reference, "an indirect dispatch")?;
                if place.length < 12 || !place.start().is_multiple_of(4) {
                    return Err(status!(
                        InvalidArgument,
                        "indirect workgroup counts of kernel '{}' need 12 bytes at a multiple of 4, given are {} \
                         bytes at {}",
                        kernel.name,
                        place.length,
                        place.offset
                    ));
                }
                self.keep(&place);
                Ok(Counts::Indirect(place.buffer(), place.start()))
            }
        }
    }

    fn descriptors(
        &mut self,
        core: &Core,
        resolver: &Resolver<'_>,
        kernel: &Kernel,
        call: &Call<'_>,
    ) -> Result<Arguments> {
        let layout = &kernel.layout;
        let (first_set, first_push) = (self.shapes.len(), self.pushes.len());
        for (index, (reference, binding)) in call.bindings.iter().zip(&layout.bindings).enumerate() {
            let place = self.bound(core, resolver, reference)?;
            let range = descriptor_range(core, kernel, index, binding, &place)?;
            let set = first_set + binding.set as usize;
            let write = DescriptorWrite { set, binding: binding.binding, kind: binding.kind, range };
            if layout.pushed { self.pushes.push(write) } else { self.writes.push(write) }
        }
        if layout.pushed {
            return Ok(Arguments::Pushed(first_push..self.pushes.len()));
        }
        self.shapes.extend_from_slice(&layout.sets);
        Ok(Arguments::Sets(first_set..self.shapes.len()))
    }

    /// Entries for the address table and room for the root struct; `place_table` fills it.
    fn addresses(&mut self, core: &Core, resolver: &Resolver<'_>, call: &Call<'_>) -> Result<Arguments> {
        self.patches.push(TablePatch { constant: self.constants.len(), entry: self.table.len() });
        self.constants.extend([0; ROOT_WORDS]);
        for reference in call.bindings {
            let place = self.bound(core, resolver, reference)?;
            self.table.push(place.allocation.device_address() + place.offset);
        }
        Ok(Arguments::Sets(0..0))
    }

    /// The bytes of a binding; a small dummy where there are none, because Vulkan has no empty bindings.
    fn bound(&mut self, core: &Core, resolver: &Resolver<'_>, reference: &Binding) -> Result<MemoryRange> {
        let place = match resolver.place(reference)? {
            Some(place) if place.length > 0 => place,
            _ => {
                let allocation = core.dummy()?;
                self.owned.push(Keeper::Allocation(allocation.clone()));
                return Ok(MemoryRange { allocation, offset: 0, length: 4 });
            }
        };
        self.keep(&place);
        Ok(place)
    }

    /// Puts the address table in memory and its address into the root structs.
    pub(super) fn place_table(&mut self, core: &Core) -> Result<()> {
        if self.patches.is_empty() {
            return Ok(());
        }
        // Kernels without bindings have a table too, of no entries: its address must still be one.
        self.table.push(0);
        let bytes: Vec<u8> = self.table.iter().flat_map(|a| a.to_le_bytes()).collect();
        let staging = core.stage(&bytes)?;
        let base = staging.device_address();
        for patch in &self.patches {
            let address = base + 8 * patch.entry as u64;
            self.constants[patch.constant] = address as u32;
            self.constants[patch.constant + 1] = (address >> 32) as u32;
        }
        self.owned.push(Keeper::Allocation(staging));
        Ok(())
    }
}

/// Cuts a dispatch that is larger than the device allows.
fn parts(core: &Core, kernel: &Kernel, total: [u32; 3], most: [u32; 3]) -> Result<Counts> {
    let count = total.iter().zip(most).map(|(t, m)| u64::from(t.div_ceil(m))).product::<u64>();
    if count > MOST_PARTS {
        return Err(status!(
            OutOfRange,
            "kernel '{}' is dispatched with {total:?} workgroups, maxComputeWorkGroupCount of device '{}' is {most:?}; \
             that is more than {MOST_PARTS} times what it does at once; use smaller inputs or recompile with larger \
             workgroups",
            kernel.name,
            core.ctx.info.name
        ));
    }
    Ok(Counts::Parts { first: [0; 3], groups: total, total, most, offset: kernel.split_offset() })
}

fn check_arguments(kernel: &Arc<Kernel>, call: &Call<'_>) -> Result<()> {
    let layout = &kernel.layout;
    if call.bindings.len() != layout.binding_count as usize
        || call.constants.len() != layout.constant_count as usize
    {
        return Err(status!(
            InvalidArgument,
            "kernel '{}' takes {} bindings and {} constants, the dispatch gives {} and {}",
            kernel.name,
            layout.binding_count,
            layout.constant_count,
            call.bindings.len(),
            call.constants.len()
        ));
    }
    Ok(())
}

/// The descriptor of a binding. Kernels address whole 32-bit words; memory is padded so that the last one is there.
fn descriptor_range(
    core: &Core,
    kernel: &Kernel,
    index: usize,
    binding: &KernelBinding,
    place: &MemoryRange,
) -> Result<vk::DescriptorBufferInfo> {
    let limits = &core.ctx.facts.limits;
    let (alignment, most, what) = match binding.kind {
        vk::DescriptorType::UNIFORM_BUFFER => {
            (limits.min_uniform_buffer_offset_alignment, limits.max_uniform_buffer_range, "UniformBuffer")
        }
        _ => (limits.min_storage_buffer_offset_alignment, limits.max_storage_buffer_range, "StorageBuffer"),
    };
    let (offset, range) = (place.start(), place.length.next_multiple_of(4));
    if !offset.is_multiple_of(alignment.max(1)) {
        return Err(status!(
            InvalidArgument,
            "binding {index} of kernel '{}' begins at byte {}, min{what}OffsetAlignment of device '{}' is \
             {alignment}; recompile with --iree-stream-resource-min-offset-alignment={alignment}",
            kernel.name,
            place.offset,
            core.ctx.info.name
        ));
    }
    if range > u64::from(most) {
        return Err(status!(
            ResourceExhausted,
            "binding {index} of kernel '{}' has {range} bytes, max{what}Range of device '{}' is {most}; split the \
             tensor, or recompile with --iree-vulkan-dispatch-abi=bda where the device has bufferDeviceAddress",
            kernel.name,
            core.ctx.info.name
        ));
    }
    Ok(vk::DescriptorBufferInfo { buffer: place.buffer(), offset, range })
}
