//! How a prompt is cut: which calls take how many of its tokens.

/// Tokens that a call takes: one, few, whose products read weights once as those of one do, and pieces of prompts.
pub(super) const PIECES: [usize; 6] = [1, 8, 32, 128, 256, 512];
/// Those of calls that tell how likely each token is.
const SCORED_FEW: usize = 8;
const SCORED: usize = 64;
/// On a processor a call of eight takes as long as three or four of one, since it computes with all that it reads.
const FEW: usize = 4;
/// Up to this size a GPU takes as long for a call that is filled up as for one that is not: it waits for the weights. With experts it
/// waits longer, since more tokens choose more of them.
const SHORT: usize = 32;
const SHORT_WITH_EXPERTS: usize = 128;

/// What decides how long a call takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    /// The device is a processor, which takes as long for a token that fills a call up as for any other.
    pub on_processor: bool,
    /// The model is a mixture of experts.
    pub experts: bool,
}

impl Costs {
    /// Tokens from which on a call of `size` is sooner done than calls of `full` and fewer.
    fn least(self, size: usize, full: usize) -> usize {
        let short = if self.experts { SHORT_WITH_EXPERTS } else { SHORT };
        match (full, self.on_processor) {
            (1, true) => FEW,
            (_, true) => size - size / 8,
            (_, false) if size <= short => full + 1,
            _ => size / 2 + 1,
        }
    }
}

/// Tokens of calls that tell how likely each is, of a context of so many: few, and many, which the logits of take memory.
pub(super) fn scored(context: usize) -> Vec<usize> {
    let mut sizes = [SCORED_FEW, SCORED].map(|size| size.min(context)).to_vec();
    sizes.dedup();
    sizes.retain(|size| *size > 1);
    sizes
}

/// The size of the next of such calls, and how many tokens it takes: as [`next`]. A GPU takes about as long for one of either size.
pub(super) fn next_scored(sizes: &[usize], left: usize, room: usize, costs: Costs) -> (usize, usize) {
    let fits = || sizes.iter().copied().filter(|size| *size <= room);
    let smallest = fits().find(|size| *size >= left).or_else(|| fits().next_back());
    match smallest {
        Some(size) if !costs.on_processor && left > 1 => (size, left.min(size)),
        _ => next(&[&[1], sizes].concat(), left, room, costs),
    }
}

/// The size of the next call and how many of `left` tokens it takes, with room for `room` behind those that are there. What fills a call up
/// costs time, but less than the calls that it replaces.
pub(super) fn next(sizes: &[usize], left: usize, room: usize, costs: Costs) -> (usize, usize) {
    let full = sizes.iter().copied().rfind(|size| *size <= left).unwrap_or(1);
    // The next larger one, filled up.
    let filled = sizes.iter().copied().find(|size| *size > left && *size <= room);
    match filled {
        Some(size) if left >= costs.least(size, full) => (size, left),
        _ => (full, full),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROCESSOR: Costs = Costs { on_processor: true, experts: false };
    const GPU: Costs = Costs { on_processor: false, experts: false };
    const WITH_EXPERTS: Costs = Costs { on_processor: false, experts: true };

    /// Sizes of the calls for so many tokens.
    fn calls(mut left: usize, mut room: usize, costs: Costs) -> Vec<usize> {
        let mut all = Vec::new();
        while left > 0 {
            let (size, count) = next(&PIECES, left, room, costs);
            assert!(count >= 1 && count <= size && size <= room, "{left} {room}");
            (left, room) = (left - count, room - count);
            all.push(size);
        }
        all
    }

    #[test]
    fn processors_compute_little_that_nobody_wants() {
        let of = |left| calls(left, 4096, PROCESSOR);
        assert_eq!([of(1), of(3), of(4), of(8)], [vec![1], vec![1; 3], vec![8], vec![8]]);
        assert_eq!([of(9), of(15), of(17), of(28)], [vec![8, 1], vec![8, 8], vec![8, 8, 1], vec![32]]);
        assert_eq!([of(40), of(100), of(257)], [vec![32, 8], vec![32, 32, 32, 8], vec![256, 1]]);
        assert_eq!([of(112), of(500)], [vec![128], vec![512]]);
    }

    #[test]
    fn gpus_read_weights_as_seldom_as_they_can() {
        let of = |left| calls(left, 4096, GPU);
        assert_eq!([of(1), of(2), of(8), of(9)], [vec![1], vec![8], vec![8], vec![32]]);
        assert_eq!([of(34), of(44), of(65)], [vec![32, 8], vec![32, 32], vec![128]]);
        assert_eq!([of(129), of(200), of(300), of(600)], [vec![256], vec![256], vec![512], vec![512, 128]]);
    }

    #[test]
    fn calls_of_33_and_more_tokens_read_each_expert_once() {
        let of = |left| calls(left, 4096, WITH_EXPERTS);
        assert_eq!([of(8), of(9), of(33), of(64)], [vec![8], vec![32], vec![128], vec![128]]);
        assert_eq!([of(128), of(129), of(257)], [vec![128], vec![256], vec![512]]);
    }

    #[test]
    fn few_tokens_are_told_by_a_small_call() {
        assert_eq!(
            [scored(4096), scored(40), scored(8), scored(5)],
            [vec![8, 64], vec![8, 40], vec![8], vec![5]]
        );
        assert_eq!(scored(1), [0; 0]);
        let of = |left, room, costs| next_scored(&scored(room), left, room, costs);
        assert_eq!(
            [of(1, 99, GPU), of(8, 99, GPU), of(9, 99, GPU), of(99, 99, GPU)],
            [(1, 1), (8, 8), (64, 9), (64, 64)]
        );
        assert_eq!(
            [of(1, 99, PROCESSOR), of(5, 99, PROCESSOR), of(20, 99, PROCESSOR)],
            [(1, 1), (8, 5), (8, 8)]
        );
        assert_eq!([of(60, 99, PROCESSOR), of(64, 99, PROCESSOR)], [(64, 60), (64, 64)]);
        // Near the end of the context.
        assert_eq!([next_scored(&[8, 64], 3, 7, GPU), next_scored(&[8, 64], 30, 30, GPU)], [(1, 1), (8, 8)]);
    }

    #[test]
    fn nothing_is_written_behind_the_context() {
        for costs in [PROCESSOR, GPU, WITH_EXPERTS] {
            for left in 1..70 {
                let all = calls(left, left, costs);
                assert_eq!(all.iter().sum::<usize>(), left);
            }
        }
        assert_eq!(calls(7, 9, PROCESSOR), [8]);
        assert_eq!(next(&[1, 8], 9, 9, GPU), (8, 8), "a small context has small calls only");
    }
}
