//! Models that ONNX Runtime optimized for its own processor and saved (`com.microsoft.nchwc`): channels lie in blocks of 8 or 16, filters
//! are stored in that order, and the file says nowhere how large blocks are.
//!
//! Tensors are imported with channels as they are everywhere else, up to the next multiple of a block: what is computed element by
//! element between the operators of this domain means the same in either order. Only reshapes that take blocks apart, so that a number for
//! each channel is broadcast, are left out.

use std::collections::{HashMap, HashSet};

use halite_formats::onnx::{Attribute, AttributeValue, DataType, Graph, Model, NoExternalData, Node, Tensor};

use super::order;

/// The domain of these operators.
pub(super) const DOMAIN: &str = "com.microsoft.nchwc";
/// The attribute that importers are told the size of blocks by.
pub(super) const SIZE: &str = "size of blocks";
/// Sizes of blocks that ONNX Runtime has: with AVX, and with AVX-512 or on ARM.
const SMALL: AttributeValue = AttributeValue::Int(8);
const LARGE: AttributeValue = AttributeValue::Int(16);

/// The blocks of a model.
pub(super) struct Blocks<'m> {
    /// As an attribute.
    size: &'static AttributeValue,
    /// Outputs of reshapes that take blocks apart.
    views: HashSet<&'m str>,
}

impl<'m> Blocks<'m> {
    /// Those of a model; none where it has no operators for them.
    pub(super) fn of(model: &'m Model) -> Option<Blocks<'m>> {
        if !model.opsets.iter().any(|opset| opset.domain == DOMAIN) {
            return None;
        }
        let mut found = Found::default();
        let mut open = vec![&model.graph];
        while let Some(graph) = open.pop() {
            found.graph(graph, &mut open);
        }
        found.any.then(|| {
            let large = found.size.map_or_else(of_this_processor, |size| size == 16);
            Blocks { size: if large { &LARGE } else { &SMALL }, views: found.views }
        })
    }

    /// The size of blocks as an attribute.
    pub(super) fn size(&self) -> &'static AttributeValue {
        self.size
    }

    /// Whether a node takes blocks apart, and does nothing where there are none.
    pub(super) fn is_view(&self, node: &Node) -> bool {
        node.op_type == "Reshape"
            && node.outputs.first().is_some_and(|name| self.views.contains(name.as_str()))
    }
}

/// Whether ONNX Runtime has blocks of 16 on this processor. A file that shows no size was saved for one like it, or ONNX Runtime does
/// not run it right here either.
#[cfg(target_arch = "x86_64")]
fn of_this_processor() -> bool {
    std::arch::is_x86_feature_detected!("avx512f")
}

#[cfg(not(target_arch = "x86_64"))]
fn of_this_processor() -> bool {
    true
}

/// What is seen of blocks while a model is read.
#[derive(Default)]
struct Found<'m> {
    any: bool,
    size: Option<i64>,
    /// Names of tensors with blocks.
    blocked: HashSet<&'m str>,
    /// Channels of results of convolutions.
    channels: HashMap<&'m str, u64>,
    constants: HashMap<&'m str, &'m Tensor>,
    views: HashSet<&'m str>,
}

impl<'m> Found<'m> {
    /// The nodes of a graph; graphs in it are open then.
    fn graph(&mut self, graph: &'m Graph, open: &mut Vec<&'m Graph>) {
        self.constants.extend(graph.initializers.iter().map(|tensor| (tensor.name.as_str(), tensor)));
        for node in &graph.nodes {
            match node.domain.as_str() {
                DOMAIN => self.own(node),
                _ => self.other(node),
            }
            open.extend(order::graphs(node));
        }
    }

    /// A node of the domain.
    fn own(&mut self, node: &'m Node) {
        self.any = true;
        let first = node.inputs.first().map_or("", String::as_str);
        let Some(output) = node.outputs.first() else { return };
        if node.op_type == "ReorderOutput" {
            let real = integer(&node.attributes, "channels");
            if let (Some(real), Some(held)) = (real, self.channels.get(first)) {
                // Channels are filled up to one block, and not to two.
                self.show((*held >= real.saturating_add(8)).then_some(16));
            }
            return;
        }
        self.blocked.insert(output);
        if node.op_type != "Conv" {
            return;
        }
        let filter = node.inputs.get(1).and_then(|name| self.constants.get(name.as_str()));
        if let Some([made, taken, ..]) = filter.map(|tensor| &tensor.dims[..]) {
            self.channels.insert(output, *made);
            self.show((made % 16 == 8).then_some(8));
            self.show((*taken > 8 && taken % 8 != 0).then_some(16));
            self.show((*taken > 16 && taken % 16 == 8).then_some(8));
        }
    }

    /// A node of another domain: results of blocks are in blocks, if they are no sizes.
    fn other(&mut self, node: &'m Node) {
        let reads = node.inputs.first().is_some_and(|name| self.blocked.contains(name.as_str()));
        let all = node.inputs.iter().any(|name| self.blocked.contains(name.as_str()));
        if !all || matches!(node.op_type.as_str(), "Shape" | "Size") {
            return;
        }
        self.blocked.extend(node.outputs.iter().map(String::as_str));
        if node.op_type == "Reshape"
            && reads
            && let Some([0, _, 0, 0, size @ (8 | 16)]) = self.integers(node).as_deref()
        {
            self.show(Some(*size));
            self.views.extend(node.outputs.first().map(String::as_str));
        }
    }

    /// The first size that is seen counts.
    fn show(&mut self, size: Option<i64>) {
        self.size = self.size.or(size);
    }

    /// The sizes that a reshape asks for.
    fn integers(&self, node: &Node) -> Option<Vec<i64>> {
        let tensor = self.constants.get(node.inputs.get(1)?.as_str())?;
        if tensor.data_type().ok()? != DataType::Int64 || tensor.dims != [5] {
            return None;
        }
        let bytes = tensor.bytes(&NoExternalData).ok()?;
        Some(bytes.chunks_exact(8).filter_map(|own| own.try_into().ok().map(i64::from_le_bytes)).collect())
    }
}

fn integer(attributes: &[Attribute], name: &str) -> Option<u64> {
    attributes.iter().find(|own| own.name == name).and_then(|own| match own.value {
        AttributeValue::Int(value) => u64::try_from(value).ok(),
        _ => None,
    })
}
