//! The measured times that constants are fitted to, out of the JSON of `bench kernels`.

use std::{str::FromStr as _, sync::Arc};

use halite_ops::Operation;
use halite_shaders::{Matrices, Models, Plan, Variant};
use halite_targets::{Capabilities, Target};
use serde_json::Value as Json;

use super::super::hints;

/// Why nothing can be fitted.
#[derive(Debug, thiserror::Error)]
pub enum FitError {
    /// The JSON is not that of `bench kernels`.
    #[error("{place} is not what `bench kernels --json` writes")]
    Json {
        /// What is missing or wrong.
        place: String,
    },
    /// The JSON names a target, an operation or a variant that is not known here.
    #[error("the file was written by another version, or is none of `bench kernels --json`: {0}")]
    Unknown(String),
    /// Files of different devices.
    #[error("times of {one} and of {other} cannot be fitted together")]
    Targets {
        /// A target.
        one: String,
        /// Another.
        other: String,
    },
    /// No such constants.
    #[error("there are no constants '{0}'; there are {names}", names = Models::NAMES.join(", "))]
    UnknownSet(String),
    /// No such constant of a set.
    #[error("there is no constant '{0}'; there are {names}", names = Matrices::NAMES.join(", "))]
    UnknownConstant(String),
    /// Too few shapes to hold some out.
    #[error("{shapes} shapes have times of variants that use {set}, of {wanted} that are wanted at least")]
    FewShapes {
        /// The set of constants.
        set: String,
        /// How many there are.
        shapes: usize,
        /// How many there have to be.
        wanted: usize,
    },
}

/// One time.
#[derive(Debug)]
pub(super) struct Point {
    /// Number of the shape.
    pub shape: usize,
    pub operation: Arc<Operation>,
    pub variant: &'static Variant,
    pub plan: Plan,
    pub seconds: f64,
    /// Name of the constants that the estimate uses.
    pub set: &'static str,
    /// How much it counts: 1 for the fastest of its shape, less for slower ones.
    pub weight: f64,
}

impl Point {
    /// Microseconds.
    pub fn estimate(&self, models: &Models, target: &Capabilities) -> Option<f64> {
        models.estimate(&self.operation, self.variant, &self.plan, target).filter(|time| *time > 0.0)
    }

    /// By how much the logarithm of the estimate is off, weighted.
    pub fn difference(&self, models: &Models, target: &Capabilities) -> f64 {
        let estimate = self.estimate(models, target);
        // What had an estimate by some constants has one by all that are finite.
        let off = estimate.map_or(1e3, |micros| (micros * 1e-6 / self.seconds).ln());
        if off.is_finite() { self.weight.sqrt() * off } else { 1e3 }
    }
}

/// Times of a device.
#[derive(Debug)]
pub struct Data {
    pub(super) target: Capabilities,
    /// In the order of shapes.
    pub(super) points: Vec<Point>,
    /// Times whose estimate was another when they were measured.
    pub differing: usize,
}

impl Data {
    /// Reads what `bench kernels --json` wrote, once or several times on the same device. Shapes of which not all variants were measured,
    /// and variants without an estimate, do not count.
    ///
    /// # Errors
    /// It is something else, or of different devices.
    pub fn read(documents: &[Json]) -> Result<Data, FitError> {
        let mut data: Option<Data> = None;
        for document in documents {
            let target = target_of(document)?;
            let data =
                data.get_or_insert_with(|| Data { target: target.clone(), points: Vec::new(), differing: 0 });
            if target != data.target {
                let [one, other] = [&data.target, &target].map(|t| t.target.to_string());
                return Err(FitError::Targets { one, other });
            }
            let operations = document["operations"].as_array().ok_or_else(|| wrong("'operations'"))?;
            for operation in operations.iter().filter(|one| one["complete"] != false) {
                data.add(operation)?;
            }
        }
        data.ok_or_else(|| wrong("a file without times"))
    }

    /// How many times there are for each set of constants.
    pub fn sets(&self) -> Vec<(&'static str, usize)> {
        let count = |set: &&str| self.points.iter().filter(|point| point.set == *set).count();
        Models::NAMES.iter().map(|set| (*set, count(set))).filter(|(_, count)| *count > 0).collect()
    }

    fn add(&mut self, json: &Json) -> Result<(), FitError> {
        let text = json["operation"].as_str().ok_or_else(|| wrong("'operation'"))?;
        let operation = halite_shaders::parse(text).map_err(|e| FitError::Unknown(e.to_string()))?;
        let variants = json["variants"].as_array().ok_or_else(|| wrong("'variants'"))?;
        let times = variants.iter().filter_map(|row| {
            Some((row["variant"].as_str()?, row["median"].as_f64()?, row["estimate_microseconds"].as_f64()))
        });
        let mut measured = Vec::new();
        for (name, seconds, estimate) in times {
            let variant = Variant::named(name).map_err(|e| FitError::Unknown(e.to_string()))?;
            measured.push((variant, seconds, estimate));
        }
        self.add_shape(operation, &measured);
        Ok(())
    }

    /// Adds the times of a shape, each with its estimate at that time.
    fn add_shape(&mut self, operation: Operation, measured: &[(&'static Variant, f64, Option<f64>)]) {
        let shape = self.points.last().map_or(0, |point| point.shape + 1);
        let operation = Arc::new(operation);
        let models = Models::default();
        let first = self.points.len();
        for (variant, seconds, recorded) in measured {
            let (Some(set), Ok(plan)) =
                (Models::name_of(&operation, &variant.template), variant.plan(&operation))
            else {
                continue;
            };
            let (operation, seconds) = (operation.clone(), *seconds);
            let point = Point { shape, operation, variant, plan, seconds, set, weight: 1.0 };
            let Some(estimate) = point.estimate(&models, &self.target) else { continue };
            if seconds > 0.0 && seconds.is_finite() {
                self.differing += usize::from(recorded.is_some_and(|r| (r / estimate).ln().abs() > 1e-3));
                self.points.push(point);
            }
        }
        let of_shape = &mut self.points[first..];
        let best = of_shape.iter().map(|point| point.seconds).fold(f64::INFINITY, f64::min);
        of_shape.iter_mut().for_each(|point| point.weight = best / point.seconds);
    }
}

fn wrong(place: &str) -> FitError {
    FitError::Json { place: place.to_owned() }
}

fn target_of(document: &Json) -> Result<Capabilities, FitError> {
    let triple = document["target"].as_str().ok_or_else(|| wrong("'target'"))?;
    let target = Target::from_str(triple).map_err(|e| FitError::Unknown(e.to_string()))?;
    let mut capabilities = Capabilities::of(target);
    if document["hints"].is_object() {
        capabilities.hints = hints::read(&document["hints"]);
    }
    Ok(capabilities)
}

#[cfg(test)]
mod tests {
    use halite_shaders::{Tuning, rank};
    use serde_json::json;

    use super::{
        super::super::{Shapes, Size},
        *,
    };

    impl Data {
        /// Times of random shapes that follow from constants, each with a disturbance.
        pub fn made(models: &Models, name: &str, shapes: usize, disturb: impl Fn(usize) -> f64) -> Data {
            let target = Capabilities::of(Target::parse("hopper-h200-linux").expect("it is known"));
            let mut data = Data { target: target.clone(), points: Vec::new(), differing: 0 };
            let mut random = Shapes::new(11, Size::Gpu);
            for _ in 0..shapes {
                let operation = random.next_half(name).expect("there are some");
                let ranked = rank(&operation, &target, Tuning::shipped());
                let times = ranked.iter().enumerate().filter_map(|(n, c)| {
                    let micros = models.estimate(&operation, c.variant, c.plan()?, &target)?;
                    Some((c.variant, micros * 1e-6 * disturb(n), None))
                });
                let times: Vec<_> = times.collect();
                data.add_shape(operation, &times);
            }
            data
        }
    }

    fn document(target: &str, complete: bool) -> Json {
        json!({
            "target": target,
            "operations": [{
                "operation": "matmul:m=512,n=512,k=512,lhs=f16,rhs=f16,out=f16", "complete": complete,
                "variants": [
                    {"variant": "matmul.f16.coop128x128x64", "median": 2e-5, "estimate_microseconds": 1.0},
                    {"variant": "matmul.f16.coop64x64x64+bn=128", "median": 1e-5},
                    {"variant": "matmul.f16.tile64x64x16", "median": 1e-3},
                    {"variant": "matmul.f16.coop64x64x64", "failed": "wrong"},
                ],
            }],
        })
    }

    #[test]
    fn times_with_estimates_are_read() {
        let data = Data::read(&[document("hopper-h200-linux", true)]).unwrap();
        assert_eq!((data.sets(), data.differing), (vec![("PRODUCTS", 2)], 1));
        assert_eq!(data.points.iter().map(|point| point.weight).collect::<Vec<_>>(), [0.5, 1.0]);
        let data = Data::read(&[document("hopper-h200-linux", false)]).unwrap();
        assert!(data.sets().is_empty());
    }

    #[test]
    fn what_is_no_report_of_one_device_is_refused() {
        let [one, other] = ["hopper-h200-linux", "hopper-h100-linux"].map(|target| document(target, true));
        assert!(matches!(Data::read(&[one.clone(), other]), Err(FitError::Targets { .. })));
        let mut unknown = one.clone();
        unknown["operations"][0]["variants"][0]["variant"] = json!("matmul.f16.coop9");
        for wrong in [json!({}), json!([]), json!({"target": "hopper-h200-linux"})] {
            assert!(matches!(Data::read(&[wrong]), Err(FitError::Json { .. })));
        }
        for wrong in [json!({"target": "nothing at all"}), unknown] {
            assert!(matches!(Data::read(&[wrong]), Err(FitError::Unknown(_))));
        }
        assert!(matches!(Data::read(&[]), Err(FitError::Json { .. })));
    }
}
