//! Non-maximum suppression: of boxes that overlap, those with the best scores.

use halite_sizes::Size;
use serde::{Deserialize, Serialize};

#[cfg(any(test, feature = "testing"))]
use crate::Samples;
use crate::{DType, Op, TensorDesc, Tolerance, Values};

/// For each batch and class, boxes from the best score down that overlap none chosen before by more than a threshold, as ONNX
/// defines it (`NonMaxSuppression`): their numbers, -1 behind them. Of equal scores the first box is better. NaN is no score.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suppress {
    /// Number of batches.
    #[serde(default = "one")]
    pub batch: Size,
    /// Number of classes.
    #[serde(default = "one")]
    pub classes: Size,
    /// Number of boxes of each batch.
    pub boxes: Size,
    /// Most boxes of a class that are chosen.
    pub most: Size,
    /// Whether boxes are (x, y, width, height) around a centre, not two corners (y, x, y, x).
    #[serde(default)]
    pub center: bool,
}

fn one() -> Size {
    Size::constant(1)
}

/// Least and largest y, least and largest x.
type Corners = [f32; 4];

impl Suppress {
    fn corners(&self, of: [f32; 4]) -> Corners {
        if self.center {
            let [x, y, width, height] = of;
            return [y - height / 2.0, y + height / 2.0, x - width / 2.0, x + width / 2.0];
        }
        [of[0].min(of[2]), of[0].max(of[2]), of[1].min(of[3]), of[1].max(of[3])]
    }
}

/// Intersection over union; 0 where one of them has no area.
fn overlap(a: Corners, b: Corners) -> f32 {
    let area = |c: Corners| (c[1] - c[0]) * (c[3] - c[2]);
    let (high, wide) = (a[1].min(b[1]) - a[0].max(b[0]), a[3].min(b[3]) - a[2].max(b[2]));
    if !(high > 0.0 && wide > 0.0 && area(a) > 0.0 && area(b) > 0.0) {
        return 0.0;
    }
    let both = high * wide;
    let union = area(a) + area(b) - both;
    if union > 0.0 { both / union } else { 0.0 }
}

impl Op for Suppress {
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    fn inputs(&self) -> Vec<TensorDesc> {
        vec![
            TensorDesc::new("boxes", DType::F32, [self.batch, self.boxes, 4.into()]),
            TensorDesc::new("scores", DType::F32, [self.batch, self.classes, self.boxes]),
            TensorDesc::new("thresholds", DType::F32, [Size::constant(2)]),
        ]
    }

    fn outputs(&self) -> Vec<TensorDesc> {
        vec![TensorDesc::new("chosen", DType::I32, [self.batch, self.classes, self.most])]
    }

    fn types(&mut self) -> Vec<&mut DType> {
        Vec::new()
    }

    fn signature(&self) -> String {
        "f32".to_owned()
    }

    fn flops(&self) -> f64 {
        self.batch.as_f64() * self.classes.as_f64() * self.boxes.as_f64() * 20.0
    }

    fn reference(&self, inputs: &[Values]) -> Vec<Values> {
        let [batch, classes, boxes, most] =
            [self.batch, self.classes, self.boxes, self.most].map(Size::exact_usize);
        let value = |input: usize, at: usize| inputs[input].float(at) as f32;
        let (overlapping, least) = (value(2, 0), value(2, 1));
        let mut chosen = Vec::new();
        for line in 0..batch * classes {
            let first = line / classes.max(1) * boxes;
            let corners =
                |index: usize| self.corners([0, 1, 2, 3].map(|part| value(0, (first + index) * 4 + part)));
            let score = |index: usize| value(1, line * boxes + index);
            let mut order: Vec<usize> = (0..boxes).filter(|index| score(*index) > least).collect();
            order.sort_by(|a, b| score(*b).total_cmp(&score(*a)).then(a.cmp(b)));
            let mut mine: Vec<usize> = Vec::new();
            for index in order {
                let is_apart = |other: &usize| overlap(corners(*other), corners(index)) <= overlapping;
                if mine.len() < most && mine.iter().all(is_apart) {
                    mine.push(index);
                }
            }
            chosen.extend(mine.iter().map(|index| *index as i64));
            chosen.resize((line + 1) * most, -1);
        }
        vec![Values::Int(chosen)]
    }

    fn tolerance(&self, _magnitudes: &[f64]) -> Tolerance {
        Tolerance::EXACT
    }
}

#[cfg(any(test, feature = "testing"))]
impl Samples for Suppress {
    fn samples() -> Vec<Suppress> {
        let of = |(batch, classes, boxes, most, center): (u64, u64, u64, u64, bool)| Suppress {
            batch: batch.into(),
            classes: classes.into(),
            boxes: boxes.into(),
            most: most.into(),
            center,
        };
        [
            (1, 1, 1, 1, false),
            (1, 1, 6, 3, false),
            (1, 1, 6, 6, true),
            (2, 3, 100, 10, false),
            (1, 5, 129, 129, true),
            (1, 2, 700, 50, false),
            (3, 1, 0, 0, false),
            (1, 2, 5, 0, false),
        ]
        .map(of)
        .into()
    }

    fn sample_input(&self, index: usize, random: &mut dyn FnMut() -> u64) -> Option<Values> {
        // In 32nds, so that overlaps near a threshold are the same on every device, and some scores are equal.
        let mut part = |most: u64| (random() % (most + 1)) as f64 / 32.0;
        Some(Values::Float(match index {
            0 => (0..self.batch.exact() * self.boxes.exact())
                .flat_map(|_| [part(32), part(32), part(32), part(32)])
                .collect(),
            1 => (0..self.batch.exact() * self.classes.exact() * self.boxes.exact())
                .map(|_| part(64))
                .collect(),
            // No overlap of such boxes is this number.
            _ => vec![0.4142, 0.25],
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of ONNX's documentation.
    #[test]
    fn boxes_that_overlap_are_left_out() {
        let op =
            Suppress { batch: 1.into(), classes: 1.into(), boxes: 6.into(), most: 3.into(), center: false };
        let tops = [0.0, 0.1, -0.1, 10.0, 10.1, 100.0];
        let boxes = tops.iter().flat_map(|top| [0.0, *top, 1.0, top + 1.0]).collect();
        let scores = vec![0.9, 0.75, 0.6, 0.95, 0.5, 0.3];
        let inputs = [Values::Float(boxes), Values::Float(scores), Values::Float(vec![0.5, 0.0])];
        assert_eq!(op.reference(&inputs), [Values::Int(vec![3, 0, 5])]);
        let few = Suppress { most: 4.into(), ..op };
        assert_eq!(few.reference(&inputs), [Values::Int(vec![3, 0, 5, -1])]);
    }
}
