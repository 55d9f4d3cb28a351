//! The checks of a recording, command by command.

use super::{
    range::{self, Uses},
    slots::{SlotPlan, SlotUse},
};
use halite_hal::{
    BufferRef, Command, CommandCategory, CommandList, CommandTarget, Device, DispatchCounts, DispatchFlags,
    FunctionInfo, Result, ResultExt, WHOLE_BUFFER, bail,
};

/// Most slots that a recording may declare. Drivers may size tables by the declared number.
pub const MAX_BINDING_CAPACITY: u32 = 1 << 16;

/// Bytes of three u32 workgroup counts.
const COUNTS_LENGTH: u64 = 12;

const INDIRECT_COUNTS: DispatchFlags =
    DispatchFlags::DYNAMIC_INDIRECT_PARAMETERS.union(DispatchFlags::STATIC_INDIRECT_PARAMETERS);

const UNSUPPORTED: DispatchFlags = DispatchFlags::CUSTOM_DIRECT_ARGUMENTS
    .union(DispatchFlags::DYNAMIC_INDIRECT_ARGUMENTS)
    .union(DispatchFlags::STATIC_INDIRECT_ARGUMENTS);

/// Checks a recording and gathers what it asks of binding tables.
pub(super) fn check(device: &dyn Device, list: &CommandList) -> Result<SlotPlan> {
    if list.binding_capacity > MAX_BINDING_CAPACITY {
        bail!(
            InvalidArgument,
            "command buffer declares {} binding slots, the limit is {MAX_BINDING_CAPACITY}",
            list.binding_capacity
        );
    }
    let mut checker = Checker { device, list, index: 0, open_groups: Vec::new(), plan: SlotPlan::default() };
    for (index, command) in list.commands.iter().enumerate() {
        checker.index = index;
        checker.command(command).context(|| format!("command {index} ({})", command.name()))?;
    }
    if let Some(index) = checker.open_groups.last() {
        bail!(
            FailedPrecondition,
            "the debug group that command {index} begins is never ended ({} open at the end)",
            checker.open_groups.len()
        );
    }
    Ok(checker.plan)
}

struct Checker<'a> {
    device: &'a dyn Device,
    list: &'a CommandList,
    index: usize,
    open_groups: Vec<usize>,
    plan: SlotPlan,
}

/// What a command asks of one of its ranges.
#[derive(Clone, Copy)]
struct Need {
    what: &'static str,
    uses: Uses,
    /// Powers of two; see [`SlotUse`].
    offset_unit: u64,
    length_unit: u64,
}

impl Need {
    fn new(what: &'static str, uses: Uses) -> Self {
        Need { what, uses, offset_unit: 1, length_unit: 1 }
    }
}

impl Checker<'_> {
    fn command(&mut self, command: &Command) -> Result<()> {
        match command {
            Command::Fill { target, pattern_length, .. } => self.fill(target, *pattern_length),
            Command::Update { source, target } => self.update(source.len() as u64, target),
            Command::Copy { source, target } => self.copy(source, target),
            Command::Dispatch { .. } => self.dispatch(command),
            Command::Barrier => Ok(()),
            Command::BeginDebugGroup(_) => {
                self.open_groups.push(self.index);
                Ok(())
            }
            Command::EndDebugGroup => match self.open_groups.pop() {
                Some(_) => Ok(()),
                None => bail!(FailedPrecondition, "no debug group is open here"),
            },
        }
    }

    fn category(&self, needed: CommandCategory) -> Result<()> {
        if !self.list.categories.contains(needed) {
            bail!(
                InvalidArgument,
                "the command buffer was created for {}, this command needs {}",
                self.list.categories,
                needed
            );
        }
        Ok(())
    }

    fn fill(&mut self, target: &BufferRef, pattern_length: u32) -> Result<()> {
        self.category(CommandCategory::TRANSFER)?;
        range::check_pattern_length(pattern_length)?;
        let unit = u64::from(pattern_length);
        let to_end = target.length == WHOLE_BUFFER;
        let need = Need {
            offset_unit: unit,
            length_unit: if to_end { unit } else { 1 },
            ..Need::new("target", Uses::TRANSFER_TARGET)
        };
        let length = self.reference(target, need)?.unwrap_or(0);
        range::check_pattern_fit(pattern_length, target.offset, length)
    }

    fn update(&mut self, source_length: u64, target: &BufferRef) -> Result<()> {
        self.category(CommandCategory::TRANSFER)?;
        match self.reference(target, Need::new("target", Uses::TRANSFER_TARGET))? {
            Some(length) => range::check_equal_lengths(source_length, length),
            None => bail!(
                InvalidArgument,
                "an update through a slot must say its length, which is that of its {source_length} source bytes"
            ),
        }
    }

    fn copy(&mut self, source: &BufferRef, target: &BufferRef) -> Result<()> {
        self.category(CommandCategory::TRANSFER)?;
        let from = self.reference(source, Need::new("source", Uses::TRANSFER_SOURCE))?;
        let to = self.reference(target, Need::new("target", Uses::TRANSFER_TARGET))?;
        if let (Some(from), Some(to)) = (from, to) {
            range::check_equal_lengths(from, to)?;
            let same = match (&source.target, &target.target) {
                (CommandTarget::Direct(a), CommandTarget::Direct(b)) => Some(std::sync::Arc::ptr_eq(a, b)),
                (CommandTarget::Slot(a), CommandTarget::Slot(b)) if a == b => Some(true),
                _ => None,
            };
            if same == Some(true) {
                range::check_disjoint(source.offset, target.offset, from)?;
            }
            if same.is_some() {
                return Ok(());
            }
        }
        self.plan.add_copy(self.index, source, target);
        Ok(())
    }

    fn dispatch(&mut self, command: &Command) -> Result<()> {
        let Command::Dispatch { executable, function, counts, constants, bindings, flags } = command else {
            return Ok(());
        };
        self.category(CommandCategory::DISPATCH)?;
        range::check_owner(self.device, "executable", executable.device_id())?;
        let functions = executable.functions();
        let Some(info) = usize::try_from(*function).ok().and_then(|i| functions.get(i)) else {
            bail!(
                OutOfRange,
                "function {function} asked of an executable that has {} functions",
                functions.len()
            );
        };
        check_flags(*flags, counts)?;
        check_counts(info, constants.len(), bindings.len())?;
        for (index, binding) in bindings.iter().enumerate() {
            self.reference(binding, Need::new("binding", Uses::BINDING))
                .context(|| format!("binding {index} of '{}'", info.name))?;
        }
        match counts {
            DispatchCounts::Direct(_) => Ok(()),
            DispatchCounts::Indirect(counts) => self.indirect_counts(counts),
        }
    }

    /// Twelve bytes must exist whatever length the recorder gave; more is not read.
    fn indirect_counts(&mut self, counts: &BufferRef) -> Result<()> {
        if counts.length < COUNTS_LENGTH {
            bail!(
                InvalidArgument,
                "workgroup counts take {COUNTS_LENGTH} bytes, the range has {}",
                counts.length
            );
        }
        if !counts.offset.is_multiple_of(4) {
            bail!(
                InvalidArgument,
                "workgroup counts must start at a multiple of 4, not at byte {}",
                counts.offset
            );
        }
        let need = Need { offset_unit: 4, ..Need::new("workgroup counts", Uses::COUNTS) };
        self.reference(counts, need)?;
        self.reference(&BufferRef { length: COUNTS_LENGTH, ..counts.clone() }, need)?;
        Ok(())
    }

    /// Checks a range as far as the recording tells. Returns its length, or `None` for the rest of a slot.
    fn reference(&mut self, reference: &BufferRef, need: Need) -> Result<Option<u64>> {
        let BufferRef { target, offset, length } = reference;
        match target {
            CommandTarget::Direct(buffer) => {
                range::check_owner(self.device, need.what, buffer.device_id())?;
                let length = range::resolve(need.what, *offset, *length, buffer.byte_length())?;
                if length > 0 {
                    range::check_uses(need.what, buffer.as_ref(), need.uses)?;
                }
                Ok(Some(length))
            }
            CommandTarget::Slot(slot) => {
                if *slot >= self.list.binding_capacity {
                    bail!(
                        OutOfRange,
                        "{} names slot {slot}, the command buffer was created with {} slots",
                        need.what,
                        self.list.binding_capacity
                    );
                }
                self.plan.add(
                    *slot,
                    &SlotUse {
                        command: self.index,
                        uses: need.uses,
                        offset: *offset,
                        length: *length,
                        offset_unit: need.offset_unit,
                        length_unit: need.length_unit,
                    },
                )?;
                Ok((*length != WHOLE_BUFFER).then_some(*length))
            }
        }
    }
}

fn check_flags(flags: DispatchFlags, counts: &DispatchCounts) -> Result<()> {
    if flags.intersects(UNSUPPORTED) {
        bail!(
            Unimplemented,
            "dispatch flags {} ask for arguments in another form than constants and bindings",
            flags & UNSUPPORTED
        );
    }
    if flags.contains(INDIRECT_COUNTS) {
        bail!(InvalidArgument, "workgroup counts in a buffer are either dynamic or static, not both");
    }
    if matches!(counts, DispatchCounts::Direct(_)) && flags.intersects(INDIRECT_COUNTS) {
        bail!(InvalidArgument, "flags say that the workgroup counts are in a buffer, but numbers were given");
    }
    Ok(())
}

fn check_counts(info: &FunctionInfo, constants: usize, bindings: usize) -> Result<()> {
    let (constants, bindings) = (constants as u64, bindings as u64);
    if constants != u64::from(info.constant_count) {
        bail!(
            InvalidArgument,
            "function '{}' takes {} constants, the dispatch gives {constants}",
            info.name,
            info.constant_count
        );
    }
    if bindings != u64::from(info.binding_count) {
        bail!(
            InvalidArgument,
            "function '{}' takes {} bindings, the dispatch gives {bindings}",
            info.name,
            info.binding_count
        );
    }
    Ok(())
}
