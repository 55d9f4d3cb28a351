//! Dispatches that may outlast a submission are divided: their workgroups go in several dispatches, between which a recording can be
//! cut. Only where processors compute (`DeviceContext::divides_dispatches`).
//!
//! The pipeline that a kernel has anyway runs any piece of its workgroups, by `vkCmdDispatchBase`, unless its code asks how many
//! there are: Vulkan answers with those of the piece. Such kernels need their second pipeline (`pipeline/split.rs`). Building it takes
//! long, so their dispatches are divided once it is known that they are slow, and not for fear of it.

use std::{cmp::Reverse, ops::Range, sync::Arc};

use ash::vk;
use halite_hal::Status;

use super::{Arguments, Counts, PreparedCommands, Step};
use crate::{
    pipeline::Kernel,
    queue::{Pace, Weight},
};

/// How a dispatch is divided.
struct Division {
    kernel: Arc<Kernel>,
    pipeline: vk::Pipeline,
    layout: vk::PipelineLayout,
    arguments: Arguments,
    constants: Range<usize>,
    /// All workgroups.
    total: [u32; 3],
    /// Most workgroups of a piece.
    most: [u32; 3],
    /// Where the second pipeline finds the piece's place in all workgroups.
    place: Option<u32>,
}

impl Division {
    /// `None` where the step stays whole.
    fn of(step: &Step, weight: &mut Weight, pace: &Pace) -> Option<Division> {
        let Step::Dispatch { kernel, pipeline, layout, arguments, constants, counts } = step else {
            return None;
        };
        let (total, limit) = match *counts {
            Counts::Direct(total) => (total, total),
            Counts::Parts { total, most, .. } => (total, most),
            Counts::Piece { .. } | Counts::Indirect(..) => return None,
        };
        let pieces = pace.pieces(weight);
        if pieces == 1 {
            return None;
        }
        let (mut pipeline, mut layout, mut place) = (*pipeline, *layout, None);
        if matches!(counts, Counts::Parts { .. }) {
            place = Some(kernel.split_offset());
        } else if kernel.counts_workgroups() {
            if !pace.knows(weight) {
                return None;
            }
            let split = kernel.split(total);
            let refused = |e: &Status| log::debug!("kernel '{}' stays whole, however long: {e}", kernel.name);
            let Ok(split) = split.inspect_err(refused) else {
                *weight = weight.indivisible();
                return None;
            };
            (pipeline, layout, place) = (split.pipeline, split.layout, Some(kernel.split_offset()));
        }
        let most = most(total, pieces);
        let most = std::array::from_fn(|axis| most[axis].min(limit[axis]));
        let (kernel, arguments, constants) = (kernel.clone(), arguments.clone(), constants.clone());
        Some(Division { kernel, pipeline, layout, arguments, constants, total, most, place })
    }

    /// The first workgroup and the workgroups of each piece.
    fn pieces(&self) -> impl Iterator<Item = ([u32; 3], [u32; 3])> {
        pieces(self.total, self.most)
    }

    fn step(&self, first: [u32; 3], groups: [u32; 3]) -> Step {
        let counts = match self.place {
            Some(offset) => Counts::Parts { first, groups, total: self.total, most: groups, offset },
            None => Counts::Piece { first, groups },
        };
        Step::Dispatch {
            kernel: self.kernel.clone(),
            pipeline: self.pipeline,
            layout: self.layout,
            arguments: self.arguments.clone(),
            constants: self.constants.clone(),
            counts,
        }
    }
}

/// Most workgroups of each of so many pieces or a few more: the axes with the most are cut first.
fn most(total: [u32; 3], pieces: u64) -> [u32; 3] {
    let mut axes = [0, 1, 2];
    axes.sort_by_key(|axis| Reverse(total[*axis]));
    let (mut most, mut left) = (total, pieces);
    for axis in axes {
        let cuts = left.clamp(1, u64::from(total[axis].max(1)));
        most[axis] = u64::from(total[axis]).div_ceil(cuts) as u32;
        left = left.div_ceil(cuts);
    }
    most
}

/// The first workgroup and the workgroups of each piece of at most so many, in the order of a dispatch.
pub(super) fn pieces(total: [u32; 3], most: [u32; 3]) -> impl Iterator<Item = ([u32; 3], [u32; 3])> {
    let starts = move |axis: usize| (0..total[axis]).step_by(most[axis].max(1) as usize);
    let firsts = starts(2).flat_map(move |z| starts(1).flat_map(move |y| starts(0).map(move |x| [x, y, z])));
    firsts.map(move |first| (first, std::array::from_fn(|axis| most[axis].min(total[axis] - first[axis]))))
}

impl PreparedCommands {
    /// Divides the dispatches that may be slow.
    pub(super) fn divide(&mut self, pace: &Pace) {
        let steps = &self.steps;
        let division = |weight: &mut Weight| Division::of(&steps[weight.step], weight, pace);
        let divisions: Vec<_> = self.weights.iter_mut().map(division).collect();
        if divisions.iter().all(Option::is_none) {
            return;
        }
        let mut weighed = std::mem::take(&mut self.weights).into_iter().zip(divisions).peekable();
        for (index, step) in std::mem::take(&mut self.steps).into_iter().enumerate() {
            match weighed.next_if(|(weight, _)| weight.step == index) {
                Some((weight, Some(division))) => self.push_pieces(&weight, &division),
                Some((mut weight, None)) => {
                    weight.step = self.steps.len();
                    self.weights.push(weight);
                    self.steps.push(step);
                }
                None => self.steps.push(step),
            }
        }
    }

    fn push_pieces(&mut self, weight: &Weight, division: &Division) {
        let count = |groups: [u32; 3]| groups.iter().map(|n| u64::from(*n)).product();
        for (first, groups) in division.pieces() {
            self.weights.push(weight.piece(self.steps.len(), count(groups), count(division.total)));
            self.steps.push(division.step(first, groups));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_all_workgroups_once() {
        for (total, count) in
            [([7, 5, 3], 1), ([7, 5, 3], 4), ([100, 1, 1], 9), ([2, 9, 9], 50), ([3, 3, 3], 64)]
        {
            let most = most(total, count);
            let mut all: Vec<[u32; 3]> = Vec::new();
            let mut made = 0;
            for (first, groups) in pieces(total, most) {
                made += 1;
                assert!(groups.iter().all(|n| *n > 0), "{total:?} {count}");
                for z in 0..groups[2] {
                    for y in 0..groups[1] {
                        all.extend((0..groups[0]).map(|x| [first[0] + x, first[1] + y, first[2] + z]));
                    }
                }
            }
            let workgroups = total.iter().product::<u32>();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len() as u32, workgroups, "{total:?} {count}");
            assert!(
                made >= count.min(workgroups.into()) / 2 && made <= 2 * count,
                "{total:?} {count}: {made}"
            );
        }
        assert_eq!(
            pieces([4, 2, 1], [3, 2, 1]).collect::<Vec<_>>(),
            [([0, 0, 0], [3, 2, 1]), ([3, 0, 0], [1, 2, 1])]
        );
    }
}
