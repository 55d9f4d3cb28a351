//! How a prompt is cut: which calls take how many of its tokens.

/// Tokens that a call takes: one, few, whose products read weights once as those of one do, and pieces of prompts.
pub(super) const PIECES: [usize; 4] = [1, 8, 32, 512];
/// On a processor a call of eight takes as long as three or four of one, since it computes with all that it reads.
const FEW: usize = 4;
/// Up to this size a GPU takes as long for a call that is filled up as for one that is not: it waits for the weights.
const SHORT: usize = 32;

/// The size of the next call and how many of `left` tokens it takes, with room for `room` behind those that are there. What fills a call up
/// costs time, but less than the calls that it replaces.
pub(super) fn next(sizes: &[usize], left: usize, room: usize, is_processor: bool) -> (usize, usize) {
    let full = sizes.iter().copied().rfind(|size| *size <= left).unwrap_or(1);
    // The next larger one, filled up.
    let filled = sizes.iter().copied().find(|size| *size > left && *size <= room);
    let least = |size: usize| match (full, is_processor) {
        (1, true) => FEW,
        (_, false) if size <= SHORT => full + 1,
        _ => size / 2 + 1,
    };
    match filled {
        Some(size) if left >= least(size) => (size, left),
        _ => (full, full),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes of the calls for so many tokens.
    fn calls(mut left: usize, mut room: usize, is_processor: bool) -> Vec<usize> {
        let mut all = Vec::new();
        while left > 0 {
            let (size, count) = next(&PIECES, left, room, is_processor);
            assert!(count >= 1 && count <= size && size <= room, "{left} {room}");
            (left, room) = (left - count, room - count);
            all.push(size);
        }
        all
    }

    #[test]
    fn processors_compute_little_that_nobody_wants() {
        let of = |left| calls(left, 4096, true);
        assert_eq!([of(1), of(3), of(4), of(8)], [vec![1], vec![1; 3], vec![8], vec![8]]);
        assert_eq!([of(9), of(15), of(17)], [vec![8, 1], vec![8, 8], vec![32]]);
        assert_eq!([of(40), of(100), of(257)], [vec![32, 8], vec![32, 32, 32, 8], vec![512]]);
    }

    #[test]
    fn gpus_read_weights_as_seldom_as_they_can() {
        let of = |left| calls(left, 4096, false);
        assert_eq!([of(1), of(2), of(8), of(9)], [vec![1], vec![8], vec![8], vec![32]]);
        assert_eq!([of(34), of(44), of(300)], [vec![32, 8], vec![32, 32], vec![512]]);
    }

    #[test]
    fn nothing_is_written_behind_the_context() {
        for is_processor in [true, false] {
            for left in 1..70 {
                let all = calls(left, left, is_processor);
                assert_eq!(all.iter().sum::<usize>(), left);
            }
        }
        assert_eq!(calls(7, 9, true), [8]);
        assert_eq!(next(&[1, 8], 9, 9, false), (8, 8), "a small context has small calls only");
    }
}
