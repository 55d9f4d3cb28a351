//! The least sum of squares, by the method of Levenberg and Marquardt with differences in the place of derivatives.

/// Steps at most.
const MOST_STEPS: usize = 80;
/// How far a value is moved for a difference.
const MOVED: f64 = 1e-4;
/// How far a step goes at most.
const FARTHEST: f64 = 0.7;
/// A step that saves less of the sum than this part is the last one.
const LITTLE: f64 = 1e-9;

/// Where the sum of squares of `residuals` is least near `at`, and the sum there.
pub(super) fn minimum(mut at: Vec<f64>, residuals: impl Fn(&[f64]) -> Vec<f64>) -> (Vec<f64>, f64) {
    let mut now = residuals(&at);
    let mut sum = squares(&now);
    let mut damping = 1e-2;
    for _ in 0..MOST_STEPS {
        let slopes = slopes(&at, &now, &residuals);
        let before = sum;
        while damping < 1e9 {
            let step = step(&slopes, &now, damping);
            let there: Vec<f64> = at.iter().zip(&step).map(|(at, step)| at + step).collect();
            let then = residuals(&there);
            let less = squares(&then);
            if less < sum {
                (at, now, sum) = (there, then, less);
                damping = (damping / 4.0).max(1e-9);
                break;
            }
            damping *= 4.0;
        }
        if before - sum <= LITTLE * before {
            break;
        }
    }
    (at, sum)
}

fn squares(residuals: &[f64]) -> f64 {
    residuals.iter().map(|one| one * one).sum()
}

/// For each value, how residuals change with it.
fn slopes(at: &[f64], now: &[f64], residuals: &impl Fn(&[f64]) -> Vec<f64>) -> Vec<Vec<f64>> {
    let one = |index: usize| {
        let mut moved = at.to_vec();
        moved[index] += MOVED;
        residuals(&moved).iter().zip(now).map(|(there, here)| (there - here) / MOVED).collect()
    };
    (0..at.len()).map(one).collect()
}

/// The step that makes the sum least where residuals are straight, shorter with more damping.
fn step(slopes: &[Vec<f64>], now: &[f64], damping: f64) -> Vec<f64> {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mut rows: Vec<Vec<f64>> = Vec::new();
    for (index, slope) in slopes.iter().enumerate() {
        let mut row: Vec<f64> = slopes.iter().map(|other| dot(slope, other)).collect();
        row[index] += damping * row[index] + 1e-12;
        row.push(-dot(slope, now));
        rows.push(row);
    }
    let step = solved(rows);
    let longest = step.iter().fold(0.0f64, |most, one| most.max(one.abs()));
    let shorter = if longest > FARTHEST { FARTHEST / longest } else { 1.0 };
    step.into_iter().map(|one| one * shorter).collect()
}

/// The solution of linear equations, whose right sides are the last column; by elimination.
fn solved(mut rows: Vec<Vec<f64>>) -> Vec<f64> {
    let count = rows.len();
    for column in 0..count {
        let size = |row: &usize| rows[*row][column].abs();
        let largest =
            (column..count).filter(|row| size(row) > 0.0).max_by(|a, b| size(a).total_cmp(&size(b)));
        // Of values that nothing is said of, rows stay where they are.
        let Some(largest) = largest else { continue };
        rows.swap(column, largest);
        let pivot = rows[column].clone();
        for row in rows.iter_mut().skip(column + 1) {
            let times = row[column] / pivot[column];
            row.iter_mut().zip(&pivot).for_each(|(value, above)| *value -= times * above);
        }
    }
    let mut solution = vec![0.0; count];
    for column in (0..count).rev() {
        let row = &rows[column];
        let known: f64 = (column + 1..count).map(|other| row[other] * solution[other]).sum();
        solution[column] = if row[column] == 0.0 { 0.0 } else { (row[count] - known) / row[column] };
    }
    solution
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equations_are_solved() {
        let solution = solved(vec![vec![0.0, 2.0, 4.0], vec![3.0, 1.0, 5.0]]);
        assert_eq!(solution, [1.0, 2.0]);
        // What nothing is said of stays.
        assert_eq!(solved(vec![vec![0.0, 0.0, 0.0], vec![0.0, 2.0, 4.0]]), [0.0, 2.0]);
    }

    #[test]
    fn the_valley_of_rosenbrock_is_followed_to_its_end() {
        let residuals = |at: &[f64]| vec![10.0 * (at[1] - at[0] * at[0]), 1.0 - at[0]];
        let (at, sum) = minimum(vec![-1.2, 1.0], residuals);
        assert!(sum < 1e-9 && (at[0] - 1.0).abs() < 1e-3, "{at:?} {sum}");
    }
}
