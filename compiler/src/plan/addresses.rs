//! Where things lie in the transient memory of a call: for known sizes as tightly as they can, for open ones in slots that hold
//! for all sizes.

use std::rc::Rc;

use halite_abi::BINDING_ALIGNMENT;
use halite_sizes::Size;

use super::{
    flow::{Flow, StorageClass, StorageId},
    lives::Lives,
    memory::{Need, arrange, whole_size},
    schedule::{Memory, Span},
};
use crate::{CompileError, backend::Choice, control::Watch};

/// Offsets in the transient memory.
pub(super) struct Addresses {
    /// Of each storage, with its era; 0 for those that are elsewhere.
    offsets: Vec<EraOffset>,
    /// Of each step's scratch buffers.
    scratch: Vec<Vec<EraOffset>>,
    /// The bytes of each era's memory.
    pub(super) bytes: Vec<Size>,
    pub(super) unshared_bytes: Size,
    pub(super) in_place: usize,
}

/// Where something is: the era, and the offset in its memory.
type EraOffset = (u32, Size);

/// Something that needs memory from one time to another.
#[derive(Clone, Copy)]
struct OpenNeed {
    era: usize,
    bytes: Size,
    from: usize,
    to: usize,
}

impl Addresses {
    pub(super) fn of(
        flow: &Flow,
        choices: &[Option<Rc<Choice>>],
        watch: Watch<'_>,
    ) -> Result<Self, CompileError> {
        let mut lives = Lives::of(flow, watch)?;
        let in_place = lives.share(flow, choices);
        let (mut needs, mut index_of) = (Vec::new(), vec![None; flow.storages.len()]);
        for (id, life) in lives.of.iter().enumerate() {
            if let Some((from, to)) = life.filter(|_| lives.group[id] == id) {
                index_of[id] = Some(needs.len());
                let era = flow.era(flow.storages[id].bytes);
                let (from, to) = (flow.levels[from], flow.levels[to]);
                needs.push(OpenNeed { era, bytes: whole_size(flow.storages[id].bytes), from, to });
            }
        }
        let shared: Size = needs.iter().map(|need| need.bytes).sum();
        let saved = (0..lives.group.len()).filter(|id| lives.group[*id] != *id);
        let unshared: Size = saved.map(|id| whole_size(flow.storages[id].bytes)).sum();
        let (tensors, mut extra) = (needs.len(), Size::constant(0));
        for (step, choice) in choices.iter().enumerate() {
            for bytes in choice.iter().flat_map(|choice| &choice.scratch) {
                let time = flow.levels[step];
                let (era, bytes) = (flow.era(*bytes), whole_size(*bytes));
                needs.push(OpenNeed { era, bytes, from: time, to: time });
                extra += bytes;
            }
        }
        let (places, bytes) = eras(&needs, flow, watch)?;
        let none = (0, Size::constant(0));
        let place = |id: usize| index_of[lives.group[id]].map_or(none, |index: usize| places[index]);
        let offset = |id: usize| match flow.storages[id].class {
            StorageClass::Part(of, at) => {
                let (era, offset) = place(of.index());
                (era, offset + at)
            }
            StorageClass::Runs(of, _) => place(of.index()),
            _ => place(id),
        };
        let mut rest = places[tensors..].iter().copied();
        let count = |choice: &Option<Rc<Choice>>| choice.as_ref().map_or(0, |c| c.scratch.len());
        Ok(Addresses {
            offsets: (0..flow.storages.len()).map(offset).collect(),
            scratch: choices.iter().map(|choice| rest.by_ref().take(count(choice)).collect()).collect(),
            bytes,
            unshared_bytes: shared + unshared + extra,
            in_place,
        })
    }

    /// Where a storage in the transient memory begins.
    pub(super) fn place(&self, id: StorageId) -> (Memory, Size) {
        let (era, offset) = self.offsets[id.index()];
        (Memory::Transient(era), offset)
    }

    /// A scratch buffer of a step.
    pub(super) fn scratch(&self, step: usize, index: usize, bytes: Size) -> Span {
        let (era, offset) = self.scratch[step][index];
        Span { memory: Memory::Transient(era), offset, bytes: whole_size(bytes) }
    }
}

/// The place of each, and the bytes of each era.
fn eras(
    needs: &[OpenNeed],
    flow: &Flow,
    watch: Watch<'_>,
) -> Result<(Vec<EraOffset>, Vec<Size>), CompileError> {
    let mut all: Vec<EraOffset> = vec![(0, Size::constant(0)); needs.len()];
    let mut bytes = Vec::with_capacity(flow.reads.len() + 1);
    for era in 0..=flow.reads.len() {
        let mine: Vec<usize> = (0..needs.len()).filter(|index| needs[*index].era == era).collect();
        let own: Vec<OpenNeed> = mine.iter().map(|index| needs[*index]).collect();
        let (offsets, end) = places(&own, if era == 0 { flow.reserved_bytes } else { 0 }, watch)?;
        mine.iter().zip(offsets).for_each(|(index, offset)| all[*index] = (era as u32, offset));
        bytes.push(end);
    }
    Ok((all, bytes))
}

/// The offset of each, and the bytes of all.
fn places(needs: &[OpenNeed], reserved: u64, watch: Watch<'_>) -> Result<(Vec<Size>, Size), CompileError> {
    if needs.iter().any(|need| !need.bytes.is_constant()) {
        return Ok(slots(needs, reserved));
    }
    let needs: Vec<Need> =
        needs.iter().map(|need| Need { bytes: need.bytes.value(), from: need.from, to: need.to }).collect();
    let arranged = arrange(&needs, reserved, watch)?;
    Ok((arranged.offsets.into_iter().map(Size::from).collect(), arranged.bytes.into()))
}

/// Puts things into slots one behind the other, each as large as the largest of what it holds: no two things in one slot are
/// needed at one time, so that slots keep apart what has to be apart whatever the sizes are. The example's largest come first.
fn slots(needs: &[OpenNeed], reserved: u64) -> (Vec<Size>, Size) {
    let mut order: Vec<usize> = (0..needs.len()).collect();
    order.sort_by_key(|i| (std::cmp::Reverse(needs[*i].bytes.value()), needs[*i].from, *i));
    let mut slots: Vec<(Size, Vec<usize>)> = Vec::new();
    for index in order {
        let need = &needs[index];
        let apart = |other: &usize| needs[*other].to < need.from || need.to < needs[*other].from;
        let grows = |bytes: &Size| !Size::max(*bytes, need.bytes).is(*bytes);
        // A slot that need not grow, or else any that is free.
        let free: Vec<usize> = (0..slots.len()).filter(|slot| slots[*slot].1.iter().all(apart)).collect();
        match free.iter().find(|slot| !grows(&slots[**slot].0)).or(free.first()) {
            Some(slot) => {
                let (bytes, held) = &mut slots[*slot];
                *bytes = Size::max(*bytes, need.bytes);
                held.push(index);
            }
            None => slots.push((need.bytes, vec![index])),
        }
    }
    let mut offsets = vec![Size::constant(0); needs.len()];
    let mut end = Size::from(reserved.next_multiple_of(BINDING_ALIGNMENT));
    for (bytes, held) in slots {
        held.into_iter().for_each(|index| offsets[index] = end);
        end += bytes.next_multiple_of(BINDING_ALIGNMENT);
    }
    (offsets, end)
}
