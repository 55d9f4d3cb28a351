//! Fits the constants of the cost model (`halite_shaders::Models`) to measured times, by least squares of logarithms. Estimates
//! are those of the crate itself. Shapes that a fit did not see tell how good it is on others.

mod data;
mod least_squares;

pub use data::{Data, FitError};

use std::{panic::resume_unwind, thread};

use halite_shaders::{Matrices, Models};
use serde_json::{Value as Json, json};

use super::Summary;
use data::Point;
use least_squares::minimum;

/// How strongly constants that times say nothing of stay where they are: a factor of e counts as much as one time that is off by so much.
const STAY: f64 = 0.02;
/// Factors of the constants that are there, from which the search begins.
const STARTS: [f64; 3] = [1.0, 0.5, 2.0];
/// Constants that are one where they are equal before.
const TIED: [(&str, &str); 2] = [("moved", "moved_right"), ("turn", "alone")];
/// The constant that counts in steps, which the search cannot follow.
const STEPPED: &str = "registers";

/// What is fitted, and how.
#[derive(Clone, Debug)]
pub struct Fit {
    /// Name of the set of constants, one of [`Models::NAMES`].
    pub set: String,
    /// Of so many parts of the shapes, each is held out once.
    pub folds: usize,
    /// Registers that are tried; none for those that are there.
    pub registers: Vec<f64>,
    /// Names of constants that stay as they are, of [`Matrices::NAMES`].
    pub keep: Vec<String>,
}

/// How good constants are on shapes.
#[derive(Clone, Copy, Debug)]
pub struct Quality {
    /// Times that were compared.
    pub times: usize,
    /// Root mean square of the differences of logarithms; times above the best of their shape count less.
    pub error: f64,
    /// What the choice among these variants takes.
    pub choice: Summary,
}

/// What a fit gives.
#[derive(Clone, Debug)]
pub struct Fitted {
    /// Name of the set.
    pub set: String,
    /// The constants, fitted to all shapes.
    pub constants: Matrices,
    /// How good those are that are there now.
    pub before: Quality,
    /// How good the new ones are on the shapes that they were fitted to.
    pub after: Quality,
    /// How good constants are on shapes that were held out of their fit.
    pub held_out: Quality,
}

impl Fit {
    /// Fits the constants to all shapes, and to all but a part of them for each part.
    ///
    /// # Errors
    /// There are too few shapes, or no such set.
    pub fn run(&self, data: &Data) -> Result<Fitted, FitError> {
        let points: Vec<&Point> = data.points.iter().filter(|point| point.set == self.set).collect();
        let start =
            *Models::default().set(&self.set).ok_or_else(|| FitError::UnknownSet(self.set.clone()))?;
        let shapes = self.shapes(&points)?;
        let folds = self.folds.max(2);
        let fold_of = |point: &Point| shapes.binary_search(&point.shape).unwrap_or_default() % folds;
        let of_fold = |fold: usize, held: bool| -> Vec<&Point> {
            points.iter().copied().filter(|point| (fold_of(point) == fold) == held).collect()
        };
        let fit = |points: Vec<&Point>| {
            Problem { data, points, set: &self.set, start, keep: &self.keep }.solved(&self.registers)
        };
        let (all, of_folds) = thread::scope(|scope| {
            let fit = &fit;
            let spawned = |fold| {
                let points = of_fold(fold, false);
                scope.spawn(move || fit(points))
            };
            let of_folds: Vec<_> = (0..folds).map(spawned).collect();
            let all = fit(points.clone());
            let join =
                |one: thread::ScopedJoinHandle<'_, Matrices>| one.join().unwrap_or_else(|p| resume_unwind(p));
            (all, of_folds.into_iter().map(join).collect::<Vec<_>>())
        });
        let mut held = Judged::default();
        for (fold, constants) in of_folds.iter().enumerate() {
            held.add(data, &of_fold(fold, true), &self.set, constants);
        }
        let quality = |constants: &Matrices| {
            let mut judged = Judged::default();
            judged.add(data, &points, &self.set, constants);
            judged.quality()
        };
        Ok(Fitted {
            set: self.set.clone(),
            constants: all,
            before: quality(&start),
            after: quality(&all),
            held_out: held.quality(),
        })
    }

    /// The shapes of times, of which there are enough.
    fn shapes(&self, points: &[&Point]) -> Result<Vec<usize>, FitError> {
        if let Some(name) = self.keep.iter().find(|name| !Matrices::NAMES.contains(&name.as_str())) {
            return Err(FitError::UnknownConstant(name.clone()));
        }
        let mut shapes: Vec<usize> = points.iter().map(|point| point.shape).collect();
        shapes.dedup();
        if shapes.len() < self.folds.max(2) {
            return Err(FitError::FewShapes {
                set: self.set.clone(),
                shapes: shapes.len(),
                wanted: self.folds.max(2),
            });
        }
        Ok(shapes)
    }
}

/// The default constants with others for one set.
fn models(set: &str, constants: &Matrices) -> Models {
    let mut models = Models::default();
    if let Some(place) = models.set(set) {
        *place = *constants;
    }
    models
}

/// Constants to be found for some times.
struct Problem<'a> {
    data: &'a Data,
    points: Vec<&'a Point>,
    set: &'a str,
    start: Matrices,
    keep: &'a [String],
}

impl Problem<'_> {
    /// The constants with the least squares, over all numbers of registers that are tried.
    fn solved(&self, registers: &[f64]) -> Matrices {
        let now = [self.start.registers];
        let tried = if registers.is_empty() { &now[..] } else { registers };
        let starts =
            tried.iter().flat_map(|registers| STARTS.iter().map(move |factor| (*registers, *factor)));
        let found =
            starts.map(|(registers, factor)| self.search(Matrices { registers, ..self.start }, factor));
        let best = found.min_by(|a, b| a.1.total_cmp(&b.1));
        best.map_or(self.start, |(constants, _)| constants)
    }

    /// The constants that a search finds, and the sum of squares there. Constants stay positive, since their logarithms are searched.
    fn search(&self, from: Matrices, factor: f64) -> (Matrices, f64) {
        let groups = free(&from, self.keep);
        let values = from.values();
        let origin: Vec<f64> = groups.iter().map(|group| values[group[0]].ln()).collect();
        let constants = |at: &[f64]| {
            let mut values = values;
            for (group, logarithm) in groups.iter().zip(at) {
                group.iter().for_each(|index| values[*index] = logarithm.exp());
            }
            Matrices::of(values)
        };
        let residuals = |at: &[f64]| {
            let models = models(self.set, &constants(at));
            let of_points = self.points.iter().map(|point| point.difference(&models, &self.data.target));
            let stay = at.iter().zip(&origin).map(|(at, origin)| STAY * (at - origin));
            of_points.chain(stay).collect::<Vec<f64>>()
        };
        let begin: Vec<f64> = origin.iter().map(|logarithm| logarithm + factor.ln()).collect();
        let (at, squares) = minimum(begin, residuals);
        (constants(&at), squares)
    }
}

/// The constants that are searched, by their places; several places are one constant. What is 0 or kept stays as it is.
fn free(constants: &Matrices, keep: &[String]) -> Vec<Vec<usize>> {
    let values = constants.values();
    let place = |name: &str| Matrices::NAMES.iter().position(|known| *known == name).unwrap_or_default();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (index, name) in Matrices::NAMES.iter().enumerate() {
        if *name == STEPPED || values[index] <= 0.0 || keep.iter().any(|kept| kept == name) {
            continue;
        }
        let tied = TIED.iter().find(|(_, second)| second == name).map(|(first, _)| place(first));
        let with = tied.filter(|first| values[*first] == values[index]);
        match groups.iter_mut().find(|group| with.is_some_and(|first| group.contains(&first))) {
            Some(group) => group.push(index),
            None => groups.push(vec![index]),
        }
    }
    groups
}

/// Differences and choices, summed up.
#[derive(Default)]
struct Judged {
    times: usize,
    squares: f64,
    weights: f64,
    ratios: Vec<f64>,
}

impl Judged {
    fn add(&mut self, data: &Data, points: &[&Point], set: &str, constants: &Matrices) {
        let models = models(set, constants);
        for shape in points.chunk_by(|a, b| a.shape == b.shape) {
            let estimated = |point: &&&Point| point.estimate(&models, &data.target).unwrap_or(f64::INFINITY);
            let chosen = shape.iter().min_by(|a, b| estimated(a).total_cmp(&estimated(b)));
            let fastest = shape.iter().map(|point| point.seconds).fold(f64::INFINITY, f64::min);
            self.ratios.extend(chosen.map(|chosen| chosen.seconds / fastest));
            for point in shape {
                self.squares += point.difference(&models, &data.target).powi(2);
                self.weights += point.weight;
                self.times += 1;
            }
        }
    }

    fn quality(&self) -> Quality {
        Quality {
            times: self.times,
            error: (self.squares / self.weights.max(f64::MIN_POSITIVE)).sqrt(),
            choice: Summary::of(&self.ratios),
        }
    }
}

impl Quality {
    fn text(&self) -> String {
        format!("{} times, {:.1} % off; {}", self.times, self.error.exp_m1() * 100.0, self.choice.text())
    }

    fn json(&self) -> Json {
        json!({"times": self.times, "error": self.error, "choice": self.choice.json()})
    }
}

impl Fitted {
    /// The constants as the source has them, behind how good they are.
    pub fn text(&self) -> String {
        let named = Matrices::NAMES.iter().zip(self.constants.values());
        let fields: Vec<String> = named.map(|(name, value)| format!("    {name}: {value:.4},")).collect();
        format!(
            "before:   {}\nfitted:   {}\nheld out: {}\nconst {}: Matrices = Matrices {{\n{}\n}};\n",
            self.before.text(),
            self.after.text(),
            self.held_out.text(),
            self.set,
            fields.join("\n")
        )
    }

    /// The same for programs.
    pub fn json(&self) -> Json {
        let named = Matrices::NAMES.iter().zip(self.constants.values());
        let constants: serde_json::Map<String, Json> =
            named.map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        json!({
            "set": self.set, "constants": constants, "before": self.before.json(), "after": self.after.json(),
            "held_out": self.held_out.json(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Constants unlike those that are there.
    fn others() -> Matrices {
        Matrices {
            launch: 4.0,
            begin: 1.1,
            turn: 0.2,
            alone: 0.05,
            turn_products: 0.04,
            products: 0.2,
            moved: 0.4,
            moved_right: 0.4,
            results: 0.8,
            slices: 0.5,
            add: 2.0,
            registers: 60.0,
        }
    }

    #[test]
    fn known_constants_are_found_again() {
        let models = Models { products: others(), ..Models::default() };
        let data = Data::made(&models, "matmul", 25, |_| 1.0);
        let fit = Fit { set: "PRODUCTS".to_owned(), folds: 5, registers: Vec::new(), keep: Vec::new() };
        let fitted = fit.run(&data).expect("there are shapes");
        // Each new fit moves the constants that are there, so only a part of this distance is asked for.
        assert!(fitted.before.error > 5.0 * fitted.held_out.error, "{}", fitted.text());
        assert!(fitted.after.error < 0.01 && fitted.held_out.error < 0.02, "{}", fitted.text());
        assert!(fitted.held_out.choice.mean < 1.01, "{}", fitted.text());
        for (name, (found, wanted)) in
            Matrices::NAMES.iter().zip(fitted.constants.values().into_iter().zip(others().values()))
        {
            assert!((found / wanted).ln().abs() < 0.1, "{name}: {found}, not {wanted}");
        }
        assert!(fitted.text().contains("const PRODUCTS: Matrices = Matrices {\n    launch: "));
    }

    #[test]
    fn noise_is_what_is_left_and_registers_are_found() {
        let images = Matrices { registers: 110.0, ..others() };
        let models = Models { images, ..Models::default() };
        // A deterministic disturbance of up to 5 %.
        let data = Data::made(&models, "conv2d", 40, |n| 0.95 + (n * 37 % 101) as f64 * 1e-3);
        let fit =
            Fit { set: "IMAGES".to_owned(), folds: 4, registers: vec![60.0, 90.0, 110.0], keep: Vec::new() };
        let fitted = fit.run(&data).expect("there are shapes");
        assert_eq!(fitted.constants.registers, 110.0, "{}", fitted.text());
        assert!((0.01..0.05).contains(&fitted.after.error), "{}", fitted.text());
        assert!(fitted.held_out.error < 0.06 && fitted.held_out.choice.mean < 1.05, "{}", fitted.text());
    }

    #[test]
    fn what_cannot_be_fitted_is_told() {
        let data = Data::made(&Models::default(), "matmul", 3, |_| 1.0);
        let fit = |set: &str| {
            Fit { set: set.to_owned(), folds: 5, registers: Vec::new(), keep: Vec::new() }.run(&data)
        };
        assert!(matches!(fit("PRODUCTS"), Err(FitError::FewShapes { wanted: 5, .. })));
        assert!(matches!(fit("OTHERS"), Err(FitError::UnknownSet(_))));
    }

    #[test]
    fn equal_constants_stay_equal_and_zero_stays_zero() {
        let groups = |constants: &Matrices| free(constants, &[]).len();
        let other = Matrices { turn: 0.1, alone: 0.1, slices: 0.0, ..others() };
        assert_eq!((groups(&others()), groups(&other)), (10, 8));
    }

    #[test]
    fn kept_constants_stay() {
        let models = Models { products: others(), ..Models::default() };
        let data = Data::made(&models, "matmul", 25, |_| 1.0);
        let keep = |name: &str| Fit {
            set: "PRODUCTS".to_owned(),
            folds: 5,
            registers: Vec::new(),
            keep: vec![name.to_owned()],
        };
        let start = Models::default().products;
        let fitted = keep("launch").run(&data).unwrap();
        assert_eq!(fitted.constants.launch, start.launch);
        assert_ne!(fitted.constants.turn, start.turn);
        let error = keep("lunch").run(&data).unwrap_err();
        assert!(error.to_string().contains("there is no constant 'lunch'; there are launch, "), "{error}");
    }
}
