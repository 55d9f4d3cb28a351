//! Samples of recurrent networks: each cell, directions, lengths, layers, and sizes that fill no block of units.

use crate::{
    Activation, DType, Op, Samples, Values,
    recurrent::{Cell, Direction, Recurrent},
};

impl Samples for Recurrent {
    fn samples() -> Vec<Recurrent> {
        let mut samples = Vec::new();
        for dtype in [DType::F32, DType::F16] {
            for cell in [Cell::Rnn, Cell::Gru, Cell::Lstm] {
                let of = |steps: u64, batch: u64, hidden| Recurrent {
                    cell,
                    steps: steps.into(),
                    batch: batch.into(),
                    hidden,
                    layers: 1,
                    direction: Direction::Forward,
                    activation: Activation::Tanh,
                    lengths: false,
                    dtype,
                };
                samples.extend([
                    of(1, 1, 1),
                    of(7, 1, 64),
                    of(3, 1, 128),
                    Recurrent { direction: Direction::Both, lengths: true, ..of(5, 3, 13) },
                    Recurrent { direction: Direction::Reverse, ..of(4, 9, 40) },
                    Recurrent { lengths: true, ..of(3, 2, 200) },
                    Recurrent { direction: Direction::Both, ..of(3, 5, 72) },
                    of(2, 1, 520),
                ]);
                if cell == Cell::Rnn {
                    samples.push(Recurrent { activation: Activation::Relu, ..of(4, 2, 30) });
                }
                samples.extend([
                    Recurrent { layers: 2, ..of(6, 1, 24) },
                    Recurrent { layers: 3, lengths: true, ..of(4, 3, 35) },
                    Recurrent { layers: 2, ..of(2, 2, 264) },
                    Recurrent { layers: 2, ..of(3, 9, 130) },
                ]);
            }
        }
        samples
    }

    /// Weights that let signals neither grow nor vanish; lengths of no, some and all steps.
    fn sample_input(&self, index: usize, random: &mut dyn FnMut() -> u64) -> Option<Values> {
        if Some(index) == self.length_input() {
            return Some(Values::Int(
                (0..self.batch.exact()).map(|_| (random() % (self.steps.exact() + 1)) as i64).collect(),
            ));
        }
        if index != 1 {
            return None;
        }
        let count = self.inputs()[index].elements().exact();
        let depth = self.depth(self.layers - 1);
        let mut weight = || {
            let even = (random() >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
            self.dtype.round(even / (depth as f64).sqrt())
        };
        Some(Values::Float((0..count).map(|_| weight()).collect()))
    }
}
