//! Owns updates of single elements, each with an index along a dimension.

use serde::{Deserialize, Serialize};

use super::{
    Op,
    conv2d::f32,
    gather::i32,
    gather_elements::check_shapes,
    moves::{
        Mover, coordinates, dense_strides, factor, in_range, index_words, list, narrow_all, product,
        sample_indices, whole_copy,
    },
    scatters::{Reduction, shares},
};
use crate::{DType, Params, Plan, Slot, TensorDesc, Tolerance, Unfit, Values, plan::narrow};

/// `out = data`, then `out[a, indices[a, b, …], …]` is combined with `updates[a, b, …]` for each update, with the index in
/// the place of dimension `axis`. Indices below 0 count from the end; updates whose index is out of range are left out.
///
/// Results are the same in every run, also when indices repeat: updates of an element come in the order in which they lie
/// along `axis`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScatterElements {
    /// Sizes of data and result, 6 at most.
    #[serde(deserialize_with = "list")]
    pub data: Vec<u64>,
    /// Sizes of indices and updates.
    #[serde(deserialize_with = "list")]
    pub indices: Vec<u64>,
    /// The dimension that is indexed.
    pub axis: usize,
    /// What becomes of an element and an update.
    #[serde(default)]
    pub reduction: Reduction,
    /// Type of data, updates and result.
    #[serde(default = "f32")]
    pub dtype: DType,
    /// Type of the indices: `i32` or `i64`.
    #[serde(default = "i32")]
    pub index: DType,
}

impl ScatterElements {
    pub(crate) fn samples() -> Vec<ScatterElements> {
        let op = |data: &[u64], indices: &[u64], axis| ScatterElements {
            data: data.to_vec(),
            indices: indices.to_vec(),
            axis,
            reduction: Reduction::None,
            dtype: DType::F32,
            index: DType::I32,
        };
        let shapes = [
            op(&[9], &[20], 0),
            op(&[7, 13], &[7, 5], 1),
            op(&[7, 13], &[30, 12], 0),
            op(&[3, 4, 5, 2, 3, 4], &[2, 4, 3, 6, 1, 3], 3),
            op(&[5, 6], &[0, 6], 0),
            op(&[0, 6], &[3, 6], 0),
            op(&[201, 3], &[200, 3], 0),
        ];
        let mut samples = Vec::new();
        for dtype in DType::ALL {
            for reduction in Reduction::ALL.into_iter().filter(|r| r.check(dtype).is_ok()) {
                let of = |shape: &ScatterElements| ScatterElements { reduction, dtype, ..shape.clone() };
                samples.extend(shapes.iter().map(of));
                samples.push(ScatterElements { index: DType::I64, ..of(&shapes[2]) });
            }
        }
        samples
    }

    /// Dimensions but the one that is indexed.
    fn others<'a, T: Copy>(&self, of: &'a [T]) -> impl DoubleEndedIterator<Item = T> + use<'a, T> {
        let axis = self.axis;
        of.iter().enumerate().filter(move |(d, _)| *d != axis).map(|(_, value)| *value)
    }

    fn scattered(&self, build: &str, params: &Params) -> Result<Plan, Unfit> {
        narrow_all(self.inputs().into_iter().chain(self.outputs()))?;
        if factor(params.get("unit")?, self.dtype)? != 1 {
            return Err(Unfit("is for elements of another size".into()));
        }
        let columns: u64 = self.others(&self.indices).product();
        let along = narrow("a dimension", self.indices[self.axis])?;
        let shares = shares(columns, along.into());
        let mut sizes = vec![shares.into()];
        sizes.extend(self.others(&self.indices));
        let (indices, data) = (dense_strides(&self.indices), dense_strides(&self.data));
        let mut push = Vec::new();
        for strides in [&indices, &data] {
            let wrapped = self.others(strides).rev().map(|stride| stride as u32);
            push.extend(wrapped.chain(std::iter::repeat(0)).take(5));
        }
        push.extend([along, indices[self.axis] as u32]);
        push.extend([narrow("a dimension", self.data[self.axis])?, data[self.axis] as u32, shares]);
        let constants = [index_words(self.index), self.reduction as u32];
        let bindings = vec![Slot::Input(1), Slot::Input(2), Slot::Output(0)];
        let scatter = Mover::new(build, params, &sizes)?.by_unit().step(&constants, &push, bindings)?;
        let copy = whole_copy(&self.outputs()[0], Slot::Input(0), Slot::Output(0))?;
        Ok(Plan { steps: vec![copy, scatter], scratch: Vec::new() })
    }
}

impl Op for ScatterElements {
    fn check(&self) -> Result<(), String> {
        check_shapes(&self.data, &self.indices, self.axis, self.index)?;
        self.reduction.check(self.dtype)
    }

    fn inputs(&self) -> Vec<TensorDesc> {
        vec![
            TensorDesc::new("data", self.dtype, self.data.clone()),
            TensorDesc::new("indices", self.index, self.indices.clone()),
            TensorDesc::new("updates", self.dtype, self.indices.clone()),
        ]
    }

    fn outputs(&self) -> Vec<TensorDesc> {
        vec![TensorDesc::new("out", self.dtype, self.data.clone())]
    }

    fn signature(&self) -> String {
        self.reduction.signature(self.dtype, self.index)
    }

    fn flops(&self) -> f64 {
        if self.reduction == Reduction::None { 0.0 } else { product(&self.indices) as f64 }
    }

    fn twin(&self, inputs: &[Values]) -> Vec<Values> {
        let mut out = inputs[0].clone();
        for update in 0..product(&self.indices) {
            let mut at = coordinates(update, &self.indices);
            let Some(place) = in_range(inputs[1].int(update as usize), self.data[self.axis]) else {
                continue;
            };
            at[self.axis] = place;
            let at = at.iter().zip(&self.data).fold(0, |place, (at, size)| place * size + at);
            self.reduction.apply(self.dtype, &mut out, at as usize, &inputs[2], update as usize);
        }
        vec![out]
    }

    fn sample_input(&self, index: usize, random: &mut dyn FnMut() -> u64) -> Option<Values> {
        (index == 1).then(|| sample_indices(product(&self.indices), self.data[self.axis], random))
    }

    fn tolerance(&self, _magnitudes: &[f64]) -> Tolerance {
        self.reduction.tolerance(self.dtype, self.indices[self.axis])
    }

    fn plan(&self, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
        match template {
            "columns" => self.scattered(build, params),
            other => Err(Unfit(format!("uses the unknown template '{other}'"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_twin_scatters() {
        // ONNX's example, with an index that repeats.
        let op = ScatterElements {
            data: vec![1, 5],
            indices: vec![1, 2],
            axis: 1,
            reduction: Reduction::Add,
            dtype: DType::F32,
            index: DType::I64,
        };
        let inputs = [
            Values::Float(vec![1.0, 2.0, 3.0, 4.0, 5.0]),
            Values::Int(vec![1, -4]),
            Values::Float(vec![1.5, 2.5]),
        ];
        assert_eq!(op.twin(&inputs)[0].floats(), [1.0, 6.0, 3.0, 4.0, 5.0]);
        let last = ScatterElements { reduction: Reduction::None, ..op };
        assert_eq!(last.twin(&inputs)[0].floats(), [1.0, 2.5, 3.0, 4.0, 5.0]);
    }
}
