//! Which output of a delegate each value of a call gets, where exporters name an output once that several values are.

/// What is known of a value or an output: its dimensions.
pub(super) type Known = Option<Vec<u64>>;

/// Most values of a call that are outputs which others are, too, and most values of such a call.
const MOST: [usize; 2] = [8, 1024];

/// The output of each value. Outputs are in the order in which values name them first, and each is one. None where there is not
/// exactly one such way that fits the dimensions.
pub(super) fn outputs_of(values: &[Known], outputs: &[Known]) -> Option<Vec<usize>> {
    let repeats = values.len().checked_sub(outputs.len())?;
    if repeats == 0 {
        return Some((0..outputs.len()).collect());
    }
    if repeats > MOST[0] || values.len() > MOST[1] {
        return None;
    }
    let fits = |value: usize, output: usize| values[value].is_some() && values[value] == outputs[output];
    let before = |value: usize, next: usize| (0..next.min(outputs.len())).filter(move |j| fits(value, *j));
    // How many ways there are for the values from a place on, of which so many before it were repeats; two stand for more.
    let mut ways = vec![vec![0_usize; repeats + 2]; values.len() + 1];
    ways[values.len()][repeats] = 1;
    for value in (0..values.len()).rev() {
        for again in 0..=repeats.min(value) {
            let next = value - again;
            let new = if next < outputs.len() && fits(value, next) { ways[value + 1][again] } else { 0 };
            let old = match ways[value + 1][again + 1] {
                0 => 0,
                further => before(value, next).take(2).count() * further,
            };
            ways[value][again] = (new + old).min(2);
        }
    }
    if ways[0][0] != 1 {
        return None;
    }
    let (mut found, mut again) = (Vec::new(), 0);
    for value in 0..values.len() {
        let next = value - again;
        if next < outputs.len() && fits(value, next) && ways[value + 1][again] > 0 {
            found.push(next);
        } else {
            found.push(before(value, next).next()?);
            again += 1;
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::outputs_of;

    #[test]
    fn values_get_the_outputs_that_fit_in_order() {
        let all = |sizes: &[u64]| sizes.iter().map(|size| Some(vec![*size])).collect::<Vec<_>>();
        let of = |values: &[u64], outputs: &[u64]| outputs_of(&all(values), &all(outputs));
        assert_eq!(of(&[1, 2, 3], &[1, 2, 3]), Some(vec![0, 1, 2]));
        assert_eq!(of(&[1, 2, 2, 3], &[1, 2, 3]), Some(vec![0, 1, 1, 2]));
        assert_eq!(of(&[1, 2, 3, 1, 2], &[1, 2, 3]), Some(vec![0, 1, 2, 0, 1]));
        // Either of the last two may be the first again; a value that fits none; no output at all.
        assert_eq!(of(&[1, 1, 1], &[1, 1]), None);
        assert_eq!(of(&[1, 2, 4], &[1, 2]), None);
        assert_eq!(of(&[1], &[]), None);
        assert_eq!(of(&[1], &[1, 2]), None);
        assert_eq!(outputs_of(&[None, None], &[None]), None);
        assert_eq!(of(&[1; 20], &[1]), None, "too many");
        assert_eq!(of(&[1; 9], &[1]), Some(vec![0; 9]));
    }
}
