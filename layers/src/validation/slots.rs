//! What a recording asks of the binding table of each execution.

use std::{collections::BTreeMap, sync::Arc};

use super::range::{self, Uses};
use halite_hal::{
    BindingTable, BufferRef, BufferSpan, CommandTarget, Device, Result, ResultExt, WHOLE_BUFFER, bail, status,
};

/// Needs of all slots that the commands name, and the copies that only a table can settle.
#[derive(Debug, Default)]
pub(super) struct SlotPlan {
    /// By slot. A map, because a module chooses the numbers and its recording's size must bound memory.
    slots: BTreeMap<u32, SlotNeeds>,
    copies: Vec<LateCopy>,
}

/// What commands together ask of one slot's entry.
#[derive(Debug)]
struct SlotNeeds {
    uses: Uses,
    /// Bytes that the entry must have.
    extent: u64,
    /// The command that asks for them.
    extent_command: usize,
    /// The first command that touches bytes of it.
    touched_by: Option<usize>,
    /// The entry's offset is a multiple of this.
    offset_unit: u64,
    /// The entry's length is a multiple of this.
    length_unit: u64,
}

/// One command's need of one slot.
#[derive(Debug)]
pub(super) struct SlotUse {
    /// Index of the command.
    pub(super) command: usize,
    /// What it does.
    pub(super) uses: Uses,
    /// First byte in the entry.
    pub(super) offset: u64,
    /// Bytes that must exist from there; [`WHOLE_BUFFER`] for whatever there is.
    pub(super) length: u64,
    /// Power of two that the range's start in the buffer must be a multiple of.
    pub(super) offset_unit: u64,
    /// Power of two that the entry's length must be a multiple of.
    pub(super) length_unit: u64,
}

/// A copy through at least one slot.
#[derive(Debug)]
struct LateCopy {
    command: usize,
    source: BufferRef,
    target: BufferRef,
}

impl SlotPlan {
    /// Adds a command's need of a slot. OUT_OF_RANGE when the range can fit in no buffer.
    pub(super) fn add(&mut self, slot: u32, used: &SlotUse) -> Result<()> {
        let length = if used.length == WHOLE_BUFFER { 0 } else { used.length };
        let end = used.offset.checked_add(length).ok_or_else(|| {
            status!(OutOfRange, "slot {slot}: {length} bytes at offset {} fit in no buffer", used.offset)
        })?;
        let needs = self.slots.entry(slot).or_insert(SlotNeeds {
            uses: Uses::empty(),
            extent: 0,
            extent_command: used.command,
            touched_by: None,
            offset_unit: 1,
            length_unit: 1,
        });
        if used.length > 0 {
            needs.touched_by.get_or_insert(used.command);
            needs.uses |= used.uses;
            needs.offset_unit = needs.offset_unit.max(used.offset_unit);
            needs.length_unit = needs.length_unit.max(used.length_unit);
        }
        if end > needs.extent {
            (needs.extent, needs.extent_command) = (end, used.command);
        }
        Ok(())
    }

    /// Adds a copy whose ranges meet only when the table is known.
    pub(super) fn add_copy(&mut self, command: usize, source: &BufferRef, target: &BufferRef) {
        self.copies.push(LateCopy { command, source: source.clone(), target: target.clone() });
    }

    /// Checks an execution's table. Entries beyond the slots that commands name are only checked in themselves.
    pub(super) fn check_table(&self, device: &dyn Device, table: &BindingTable) -> Result<()> {
        for (slot, span) in table.entries.iter().enumerate() {
            if let Some(span) = span {
                range::check_span(device, "entry", span, Uses::empty())
                    .context(|| format!("slot {slot} of the binding table"))?;
            }
        }
        for (&slot, needs) in &self.slots {
            match (entry(table, slot), needs.touched_by) {
                (Some(span), _) => {
                    needs.check(span).context(|| format!("slot {slot} of the binding table"))?;
                }
                (None, Some(command)) => bail!(
                    InvalidArgument,
                    "command {command} uses slot {slot}, which is empty in a binding table of {} entries",
                    table.entries.len()
                ),
                (None, None) => {}
            }
        }
        self.copies
            .iter()
            .try_for_each(|copy| copy.check(table).context(|| format!("command {} (copy)", copy.command)))
    }
}

impl SlotNeeds {
    fn check(&self, span: &BufferSpan) -> Result<()> {
        if span.length < self.extent {
            bail!(
                OutOfRange,
                "command {} reaches to byte {} of the entry, which has {} bytes",
                self.extent_command,
                self.extent,
                span.length
            );
        }
        if !span.offset.is_multiple_of(self.offset_unit) {
            bail!(
                InvalidArgument,
                "commands need the entry at a multiple of {} bytes, its offset is {}",
                self.offset_unit,
                span.offset
            );
        }
        if !span.length.is_multiple_of(self.length_unit) {
            bail!(
                InvalidArgument,
                "a fill to the end of the entry needs a multiple of {} bytes, it has {}",
                self.length_unit,
                span.length
            );
        }
        range::check_uses("entry", span.buffer.as_ref(), self.uses)
    }
}

impl LateCopy {
    /// Entries and their extents were checked before.
    fn check(&self, table: &BindingTable) -> Result<()> {
        let (Some(source), Some(target)) =
            (place("source", &self.source, table)?, place("target", &self.target, table)?)
        else {
            return Ok(());
        };
        range::check_equal_lengths(source.length, target.length)?;
        if Arc::ptr_eq(&source.buffer, &target.buffer) {
            range::check_disjoint(source.offset, target.offset, source.length)?;
        }
        Ok(())
    }
}

/// Where a reference lies; `None` when it names an empty slot, which only references to no bytes may do.
fn place(what: &str, reference: &BufferRef, table: &BindingTable) -> Result<Option<BufferSpan>> {
    let base = match &reference.target {
        CommandTarget::Direct(buffer) => BufferSpan::whole(buffer.clone()),
        CommandTarget::Slot(slot) => match entry(table, *slot) {
            Some(span) => span.clone(),
            None => return Ok(None),
        },
    };
    let length = range::resolve(what, reference.offset, reference.length, base.length)?;
    base.subspan(reference.offset, length).map(Some)
}

fn entry(table: &BindingTable, slot: u32) -> Option<&BufferSpan> {
    usize::try_from(slot).ok().and_then(|slot| table.entries.get(slot)).and_then(Option::as_ref)
}
