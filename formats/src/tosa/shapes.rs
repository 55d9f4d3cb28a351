//! Arithmetic on shapes, as drafts of TOSA 1.1 have it. All sizes in files are known, so it is done while they are read.

/// Most sizes that a shape may have: more than a tensor has axes, few enough to be no burden.
const MOST_SIZES: usize = 64;

/// The result of an operator on shapes; `None` if it is none of them or something overflows, divides by zero or does not
/// fit together.
pub(super) fn compute(name: &str, operands: &[&[i64]]) -> Option<Vec<i64>> {
    let made = match (name, operands) {
        ("CONCAT_SHAPE", parts) => {
            let count: usize = parts.iter().map(|part| part.len()).sum();
            (count <= MOST_SIZES).then(|| parts.concat())?
        }
        ("SLICE_SHAPE", [input, [start], [size]]) => {
            let start = usize::try_from(*start).ok()?;
            input.get(start..start.checked_add(usize::try_from(*size).ok()?)?)?.to_vec()
        }
        ("EXP2_SHAPE", [a]) => {
            let power = |a: &i64| 1i64.checked_shl(u32::try_from(*a).ok()?).filter(|made| *made > 0);
            a.iter().map(power).collect::<Option<_>>()?
        }
        ("LOG2_FLOOR_SHAPE", [a]) => a.iter().map(floor_log2).collect::<Option<_>>()?,
        ("LOG2_CEIL_SHAPE", [a]) => {
            let ceil = |a: &i64| Some(floor_log2(a)? + i64::from(a & (a - 1) != 0));
            a.iter().map(ceil).collect::<Option<_>>()?
        }
        (name, [a, b]) => {
            let of = binary(name)?;
            let pairs = a.len() == b.len();
            pairs.then(|| a.iter().zip(*b).map(|(a, b)| of(*a, *b)).collect::<Option<_>>())??
        }
        _ => return None,
    };
    Some(made)
}

fn floor_log2(a: &i64) -> Option<i64> {
    (*a > 0).then(|| i64::from(a.ilog2()))
}

fn binary(name: &str) -> Option<fn(i64, i64) -> Option<i64>> {
    Some(match name {
        "ADD_SHAPE" => i64::checked_add,
        "SUB_SHAPE" => i64::checked_sub,
        "MUL_SHAPE" => i64::checked_mul,
        "MAX_SHAPE" => |a, b| Some(a.max(b)),
        "MIN_SHAPE" => |a, b| Some(a.min(b)),
        "MOD_SHAPE" => i64::checked_rem,
        "DIV_FLOOR_SHAPE" => |a, b| {
            let quotient = a.checked_div(b)?;
            Some(quotient - i64::from(a % b != 0 && (a < 0) != (b < 0)))
        },
        "DIV_CEIL_SHAPE" => |a, b| {
            let quotient = a.checked_div(b)?;
            Some(quotient + i64::from(a % b != 0 && (a < 0) == (b < 0)))
        },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::compute;

    #[test]
    fn sizes_are_computed() {
        let made = |name, operands: &[&[i64]]| compute(name, operands);
        assert_eq!(made("ADD_SHAPE", &[&[1, 2], &[3, 4]]), Some(vec![4, 6]));
        assert_eq!(made("CONCAT_SHAPE", &[&[1], &[], &[3, 4]]), Some(vec![1, 3, 4]));
        assert_eq!(made("SLICE_SHAPE", &[&[1, 2, 3], &[1], &[2]]), Some(vec![2, 3]));
        assert_eq!(made("DIV_CEIL_SHAPE", &[&[7, 8, -7], &[2, 2, 2]]), Some(vec![4, 4, -3]));
        assert_eq!(made("DIV_FLOOR_SHAPE", &[&[7, 8, -7], &[2, 2, 2]]), Some(vec![3, 4, -4]));
        assert_eq!(made("LOG2_CEIL_SHAPE", &[&[1, 8, 9]]), Some(vec![0, 3, 4]));
        assert_eq!(made("LOG2_FLOOR_SHAPE", &[&[1, 8, 9]]), Some(vec![0, 3, 3]));
        assert_eq!(made("EXP2_SHAPE", &[&[0, 10]]), Some(vec![1, 1024]));
        let wrong: [(&str, &[&[i64]]); 7] = [
            ("MOD_SHAPE", &[&[1], &[0]]),
            ("ADD_SHAPE", &[&[1], &[1, 2]]),
            ("MUL_SHAPE", &[&[i64::MAX], &[2]]),
            ("EXP2_SHAPE", &[&[63]]),
            ("SLICE_SHAPE", &[&[1], &[1], &[1]]),
            ("LOG2_FLOOR_SHAPE", &[&[0]]),
            ("NEGATE_SHAPE", &[&[0]]),
        ];
        for (name, operands) in wrong {
            assert_eq!(made(name, operands), None, "{name}");
        }
    }
}
