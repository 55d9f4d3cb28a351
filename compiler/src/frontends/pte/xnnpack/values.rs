//! The values of a graph of the XNNPACK delegate while it is put into a method's graph.

use std::collections::HashMap;

use halite_formats::pte::{
    Constant, Program, XnnGraph, XnnNode, XnnQuantization as Quantization, XnnScales as Scales, XnnType,
    XnnValue,
};
use halite_ops::DType;
use halite_sizes::Size;

use super::{
    Held, Result, dynamic,
    numbers::{self, element_of},
    offsets, packed,
};
use crate::{
    build::Builder,
    graph::{ElementType, TensorId, elements},
};

/// A delegate's graph while it is put into a method's graph.
pub(super) struct Values<'a> {
    pub(super) builder: Builder,
    program: &'a Program,
    pub(super) graph: &'a XnnGraph,
    /// What is known of the values: results, inputs, constants that were needed.
    slots: Vec<Option<Held>>,
    /// Weights of 4 bits that were needed as bytes.
    unpacked: HashMap<usize, TensorId>,
    /// Whether sizes in the file are exact: nothing that is handed in is smaller than its bound.
    exact: bool,
}

fn bounds(value: &XnnValue) -> Vec<u64> {
    value.dims.iter().map(|d| u64::from(*d)).collect()
}

/// Dimensions of more than one element.
fn wide(dims: &[Size]) -> Vec<Size> {
    dims.iter().copied().filter(|d| *d != 1).collect()
}

impl<'a> Values<'a> {
    pub(super) fn new(builder: Builder, program: &'a Program, graph: &'a XnnGraph) -> Self {
        let slots = graph.values.iter().map(|_| None).collect();
        Values { builder, program, graph, slots, unpacked: HashMap::new(), exact: true }
    }

    /// What the file says of a value.
    pub(super) fn about(&self, id: usize) -> &'a XnnValue {
        &self.graph.values[id]
    }

    /// The value that an operand of a node is.
    pub(super) fn operand(&self, node: &XnnNode, i: usize) -> Result<usize> {
        let found = node.inputs.get(i).copied().flatten();
        found.ok_or_else(|| self.builder.invalid(format!("operand {i} is none")))
    }

    /// The same, where it may be none.
    pub(super) fn optional(&self, node: &XnnNode, i: usize) -> Option<usize> {
        node.inputs.get(i).copied().flatten()
    }

    /// The value that a node computes.
    pub(super) fn result(&self, node: &XnnNode) -> Result<usize> {
        node.outputs.first().copied().ok_or_else(|| self.builder.invalid("a node without a result"))
    }

    /// Takes an input of the graph.
    pub(super) fn take(&mut self, id: usize, given: Held) -> Result<()> {
        let about = self.about(id);
        offsets::check_handed(&self.builder, about, self.builder.element(given.tensor))?;
        let (wanted, dims) = (bounds(about), given.sizes(&self.builder));
        let count = Size::from(elements(&wanted));
        // What has no dimensions has one of one element in the file.
        let given = if dims.len() != wanted.len() && dims.iter().product::<Size>().is(count) {
            let tensor = given.in_order(&mut self.builder)?;
            let tensor = self.builder.reshape(tensor, &wanted)?;
            Held::plain(&self.builder, tensor)
        } else {
            given
        };
        let dims = given.sizes(&self.builder);
        if dims.len() != wanted.len() || dims.iter().zip(&wanted).any(|(d, most)| *d > *most) {
            let what = self.builder.describe(&[given.tensor]);
            let reason = format!("{what} is handed to a delegate that takes at most {wanted:?}");
            return Err(self.builder.invalid(reason));
        }
        self.exact &= dims.iter().zip(&wanted).all(|(d, most)| d.is((*most).into()));
        let tensor = self.builder.cast(given.tensor, element_of(about.datatype))?;
        self.slots[id] = Some(given.with(tensor));
        Ok(())
    }

    /// The elements of a value as they are held: computed, handed in, or a constant.
    pub(super) fn value(&mut self, id: usize) -> Result<Held> {
        if let Some(known) = &self.slots[id] {
            return Ok(known.clone());
        }
        let about = self.about(id);
        let Some(constant) = about.constant else {
            return Err(self.builder.invalid(format!("value {} is read before it is computed", about.id)));
        };
        let mut dims = bounds(about);
        if about.datatype == XnnType::U4 {
            let Some(last) = dims.last_mut() else {
                return Err(self.builder.invalid(format!("value {} has 4 bits and no dimension", about.id)));
            };
            *last = last.div_ceil(2);
        }
        let tensor = self.constant(constant, element_of(about.datatype), &dims)?;
        let held = Held::plain(&self.builder, tensor);
        self.slots[id] = Some(held.clone());
        Ok(held)
    }

    /// A constant of the file.
    fn constant(&mut self, index: usize, element: ElementType, dims: &[u64]) -> Result<TensorId> {
        let bytes = match &self.graph.constants[index] {
            Constant::Inline(bytes) => bytes.clone(),
            Constant::Named { key, .. } => match self.program.data(key) {
                Some(data) => data.clone(),
                None => {
                    return Err(self.builder.unsupported(format!(
                        "constant {index} has its data under '{key}', which is neither in this file nor in a .ptd file beside it"
                    )));
                }
            },
        };
        let wants = elements(dims).saturating_mul(element.storage().size());
        if wants > bytes.len() as u64 {
            let has = bytes.len();
            return Err(self
                .builder
                .invalid(format!("constant {index}, {element}{dims:?}, has {has} bytes, not {wants}")));
        }
        // Writers may fill up data behind their end.
        self.builder.constant(&format!("constant {index}"), element, dims, bytes.slice(..wants as usize))
    }

    /// Scales as `f32`, which there are `count` of.
    pub(super) fn scales(&mut self, scales: &Scales, count: u64) -> Result<TensorId> {
        self.scales_of(scales, count, DType::F32)
    }

    /// The same, from constants of a type.
    pub(super) fn scales_of(&mut self, scales: &Scales, count: u64, stored: DType) -> Result<TensorId> {
        let there = match scales {
            Scales::Listed(all) => all.len() as u64,
            Scales::Constant { count, .. } => *count,
        };
        if there != count {
            return Err(self.builder.invalid(format!("{there} scales, where {count} are needed")));
        }
        match scales {
            Scales::Listed(all) => {
                let all = all.iter().map(|scale| f64::from(*scale)).collect();
                self.builder.values(DType::F32, &[count], &halite_ops::Values::Float(all))
            }
            Scales::Constant { index, .. } => {
                let made = self.constant(*index, stored.into(), &[count])?;
                self.builder.as_f32(made)
            }
        }
    }

    /// A value as floats: the numbers that it stands for when it is quantized. Other integers stay what they are.
    pub(super) fn floats(&mut self, id: usize) -> Result<Held> {
        let (held, about) = (self.value(id)?, self.about(id));
        match &about.quantization {
            Quantization::None => Ok(held),
            Quantization::Tensor { scale, zero } => {
                let made = numbers::dequantized(&mut self.builder, held.tensor, *scale, *zero)?;
                Ok(held.with(made))
            }
            Quantization::Dynamic { .. } => dynamic::floats(&mut self.builder, &held),
            Quantization::Channels { scales, axis } => self.floats_of_channels(id, scales, *axis),
            Quantization::Blocks { scales, size } => self.floats_of_blocks(id, scales, *size),
        }
    }

    fn floats_of_channels(&mut self, id: usize, scales: &Scales, axis: usize) -> Result<Held> {
        let signed = self.signed(id)?;
        let dims = self.builder.dims(signed).to_vec();
        let Some(count) = dims.get(axis).copied() else {
            return Err(self.builder.invalid(format!("scales for dimension {axis} of {dims:?}")));
        };
        let scale = self.scales(scales, count)?;
        let mut shape = vec![1; dims.len() - axis];
        shape[0] = count;
        let scale = self.builder.reshape(scale, &shape)?;
        let made = self.builder.dequantize(signed, scale, None, DType::F32.into())?;
        Ok(Held::plain(&self.builder, made))
    }

    fn floats_of_blocks(&mut self, id: usize, scales: &Scales, size: u64) -> Result<Held> {
        let signed = self.signed(id)?;
        let dims = self.builder.dims(signed).to_vec();
        let Some(blocks) = packed::blocks(&dims, size) else {
            return Err(self.builder.invalid(format!("blocks of {size} in weights of {dims:?}")));
        };
        let scale = self.scales_of(scales, dims[0] * blocks, packed::stored(scales))?;
        let scale = self.builder.reshape(scale, &[dims[0], blocks, 1])?;
        let apart = self.builder.reshape(signed, &[dims[0], blocks, size])?;
        let made = self.builder.dequantize(apart, scale, None, DType::F32.into())?;
        let made = self.builder.reshape(made, &dims)?;
        Ok(Held::plain(&self.builder, made))
    }

    /// Signed 8-bit integers of a value, also of one of 4 bits, which is unpacked once.
    pub(super) fn signed(&mut self, id: usize) -> Result<TensorId> {
        if let Some(known) = self.unpacked.get(&id) {
            return Ok(*known);
        }
        let held = self.value(id)?;
        let tensor = held.in_order(&mut self.builder)?;
        let about = self.about(id);
        let made = packed::signed(&mut self.builder, about, tensor)?;
        self.unpacked.insert(id, made);
        Ok(made)
    }

    /// Makes a node's result what was computed of the numbers that values stand for, within the node's limits.
    pub(super) fn finish(&mut self, node: &XnnNode, made: Held) -> Result<()> {
        let tensor = numbers::limited(&mut self.builder, made.tensor, node.limits)?;
        self.finish_as(self.result(node)?, made.with(tensor))
    }

    /// The same for a value.
    pub(super) fn finish_as(&mut self, id: usize, made: Held) -> Result<()> {
        let about = self.about(id);
        let made = match &about.quantization {
            Quantization::None => {
                let tensor = self.builder.cast(made.tensor, element_of(about.datatype))?;
                made.with(tensor)
            }
            Quantization::Tensor { scale, zero } => {
                let to = element_of(about.datatype).storage();
                let tensor = numbers::quantized(&mut self.builder, made.tensor, *scale, *zero, to)?;
                made.with(tensor)
            }
            Quantization::Dynamic { dims } => dynamic::quantized(&mut self.builder, &made, *dims)?,
            Quantization::Channels { .. } | Quantization::Blocks { .. } => {
                return Err(self.builder.unsupported("a result that is quantized by channels"));
            }
        };
        self.set(id, made)
    }

    /// Makes a node's result elements as they are held.
    pub(super) fn finish_held(&mut self, node: &XnnNode, made: Held) -> Result<()> {
        self.set(self.result(node)?, made)
    }

    fn set(&mut self, id: usize, made: Held) -> Result<()> {
        let about = self.about(id);
        if self.slots[id].is_some() || about.constant.is_some() {
            return Err(self.builder.invalid(format!("value {} is computed twice", about.id)));
        }
        let (bounds, mut dims, mut made) = (bounds(about), made.sizes(&self.builder), made);
        // Dimensions of one element that were reduced may stay or go.
        if dims.len() != bounds.len() && made.dynamic.is_none() && self.exact {
            let own: Vec<Size> = bounds.iter().map(Size::from).collect();
            if wide(&dims) == wide(&own) {
                let tensor = made.in_order(&mut self.builder)?;
                let tensor = self.builder.reshape(tensor, &bounds)?;
                (made, dims) = (Held::plain(&self.builder, tensor), own);
            }
        }
        // Of what stays inside, the file has sizes that nobody reads; some are those of another order of dimensions.
        let given = self.graph.outputs.iter().any(|port| port.value == id);
        let fits = |(d, most): (&Size, &u64)| if self.exact { *d == *most } else { *d <= *most };
        if given && (dims.len() != bounds.len() || !dims.iter().zip(&bounds).all(fits)) {
            let at_most = if self.exact { "" } else { "at most " };
            return Err(self
                .builder
                .invalid(format!("the result has the sizes {dims:?}; the file says {at_most}{bounds:?}")));
        }
        self.slots[id] = Some(made);
        Ok(())
    }

    /// Whether two values hold the same integers, or floats, for the same numbers.
    pub(super) fn same(&self, a: usize, b: usize) -> bool {
        let (a, b) = (self.about(a), self.about(b));
        let fixed = matches!(a.quantization, Quantization::None | Quantization::Tensor { .. });
        fixed && a.datatype == b.datatype && a.quantization == b.quantization
    }
}
