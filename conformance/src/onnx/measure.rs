//! What is measured of a case besides whether it passes: differences, times, sizes, memory; and the table of it.

use std::{fmt, time::Duration};

use halite_compiler::{graph::ElementType, signature::BoundValue};
use halite_ops::{DType, Values};

/// What one run cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// From the graph to the bytes of the module.
    pub compile: Duration,
    /// Bytes of the module.
    pub module: u64,
    /// From the bytes to a session that can be called.
    pub load: Duration,
    /// The quickest call, with its inputs on the device.
    pub call: Duration,
    /// Most bytes of device memory in use at once.
    pub memory: u64,
}

/// What is measured of a case over all its data sets: the largest of each.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    /// Data sets.
    pub sets: usize,
    /// Largest difference of a float to the expected one.
    pub difference: f64,
    /// Largest float that is expected.
    pub largest: f64,
    /// Rows of outputs, along the last dimension, whose largest element is at the expected place.
    pub decided: u64,
    /// All such rows.
    pub rows: u64,
    /// What runs cost; none on the host.
    pub cost: Option<Cost>,
}

impl Measured {
    /// Counts one output.
    pub(super) fn output(&mut self, got: &BoundValue, expected: &BoundValue) {
        let is_float =
            matches!(expected.element, ElementType::Of(DType::F64 | DType::F32 | DType::F16 | DType::BF16));
        if !is_float || got.element != expected.element || got.dims != expected.dims {
            return;
        }
        let [got, wanted] =
            [got, expected].map(|v| Values::from_bytes(v.element.storage(), &v.bytes).floats());
        for (got, wanted) in got.iter().zip(&wanted).filter(|(_, wanted)| wanted.is_finite()) {
            self.difference = self.difference.max((got - wanted).abs());
            self.largest = self.largest.max(wanted.abs());
        }
        let width = expected.dims.last().and_then(|width| usize::try_from(*width).ok()).unwrap_or(1);
        if width < 2 {
            return;
        }
        for (got, wanted) in got.chunks(width).zip(wanted.chunks(width)) {
            self.rows += 1;
            self.decided += u64::from(place_of_largest(got) == place_of_largest(wanted));
        }
    }

    /// Counts the run of a data set.
    pub(super) fn set(&mut self, cost: Option<Cost>) {
        self.sets += 1;
        let Some(cost) = cost else { return };
        let all = self.cost.get_or_insert_default();
        *all = Cost {
            compile: all.compile.max(cost.compile),
            module: all.module.max(cost.module),
            load: all.load.max(cost.load),
            call: all.call.max(cost.call),
            memory: all.memory.max(cost.memory),
        };
    }
}

fn place_of_largest(row: &[f64]) -> Option<usize> {
    (0..row.len()).max_by(|a, b| row[*a].total_cmp(&row[*b]))
}

/// The heads of the table's columns, as Markdown.
pub const TABLE: &str = "\
| model | sets | largest difference | of | same places | compile, ms | module, KiB | load, ms | call, ms | memory, KiB |
|---|---|---|---|---|---|---|---|---|---|";

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a>(pub &'a str, pub &'a Measured);

impl fmt::Display for Row<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row(name, m) = self;
        let places = if m.rows == 0 { String::new() } else { format!("{}/{}", m.decided, m.rows) };
        write!(f, "| {name} | {} | {:.1e} | {:.3} | {places} |", m.sets, m.difference, m.largest)?;
        let Some(cost) = m.cost else { return write!(f, " | | | | |") };
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        write!(
            f,
            " {:.0} | {} | {:.0} | {:.1} | {} |",
            ms(cost.compile),
            cost.module.div_ceil(1024),
            ms(cost.load),
            ms(cost.call),
            cost.memory.div_ceil(1024)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_and_places_are_counted() {
        let value = |all: &[f64]| BoundValue {
            element: DType::F32.into(),
            dims: vec![2, 2],
            bytes: Values::Float(all.to_vec()).to_bytes(DType::F32).into(),
        };
        let mut measured = Measured::default();
        measured.output(&value(&[1.0, 2.0, 3.0, 4.5]), &value(&[1.0, 2.0, 5.0, 4.0]));
        measured.set(None);
        assert_eq!((measured.difference, measured.largest), (2.0, 5.0));
        assert_eq!((measured.decided, measured.rows), (1, 2));
        assert_eq!(Row("m", &measured).to_string(), "| m | 1 | 2.0e0 | 5.000 | 1/2 | | | | | |");
    }
}
