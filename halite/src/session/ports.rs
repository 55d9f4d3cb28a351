//! What functions of models take and give, as callers see it: without what a program keeps by itself.

use std::collections::{BTreeMap, BTreeSet};

use halite_abi::ElementType;
use halite_compiler::{
    self as compiler,
    signature::{Arity, Dim, Signature, open_name},
    states::{Kept, Pairs},
};
use halite_runtime as runtime;

use crate::{
    Dimension, FunctionInfo, Result, ValueInfo, ValueType, compile,
    signature::{FirstValue, KeptValue},
};

/// Inputs and outputs of a function, and what it keeps, which stands last among both.
pub(crate) struct Ports {
    pub inputs: Vec<Signature>,
    pub outputs: Vec<Signature>,
    pub kept: Vec<Kept>,
}

impl Ports {
    /// Of a function of a model.
    pub fn of(model: &compiler::Model, name: &str) -> Result<Ports> {
        Ok(Ports {
            inputs: model.inputs(name).map_err(compile::error)?,
            outputs: model.outputs(name).map_err(compile::error)?,
            kept: model.kept(name).map_err(compile::error)?,
        })
    }

    /// Of a function of a model that is to be called.
    pub fn called(model: &compiler::Model, name: &str) -> Result<Ports> {
        model.takes_tensors(name).map_err(compile::error)?;
        Ports::of(model, name)
    }

    /// Those that callers see.
    pub fn visible(&self) -> (Vec<Signature>, Vec<Signature>) {
        let own = |all: &[Signature]| all[..all.len() - self.kept.len().min(all.len())].to_vec();
        (own(&self.inputs), own(&self.outputs))
    }

    /// Dimensions of inputs that are state, where the outputs that replace them have others, by their names among open ones: those of
    /// caches that grow.
    pub fn caches(&self, states: &Pairs) -> BTreeSet<String> {
        // A file may name thousands of layers, each of which has some.
        let (inputs, outputs) = (by_name(&self.inputs), by_name(&self.outputs));
        let mut names = BTreeSet::new();
        for (input, output) in states {
            let after = outputs.get(&output[..]).and_then(|output| output.dims.as_ref());
            let (Some(input), Some(after)) = (inputs.get(&input[..]), after) else { continue };
            let dims = input.dims.iter().flatten().zip(after).enumerate();
            let others = dims.filter(|(_, (own, after))| own != after && !matches!(own, Dim::Known(_)));
            names.extend(others.map(|(axis, _)| open_name(input, axis)));
        }
        // Exporters may give all dimensions of outputs names of their own: sizes that other inputs have too, as a batch, do not grow.
        let others = self.inputs.iter().filter(|input| !states.contains_key(&input.name));
        let shared: BTreeSet<String> = others
            .flat_map(|input| (0..input.dims.as_ref().map_or(0, Vec::len)).map(|axis| open_name(input, axis)))
            .collect();
        let own: BTreeSet<String> = names.difference(&shared).cloned().collect();
        if own.is_empty() { names } else { own }
    }

    /// Names of what those dimensions are in the outputs: how many rows there are with those of a call.
    pub fn totals(&self, states: &Pairs) -> BTreeSet<String> {
        let after: BTreeSet<&String> = states.values().collect();
        let dims = self
            .outputs
            .iter()
            .filter(|output| after.contains(&output.name))
            .flat_map(|output| output.dims.iter().flatten());
        dims.filter_map(|dim| if let Dim::Symbol(name) = dim { Some(name.clone()) } else { None }).collect()
    }

    /// What callers are told.
    pub fn info(&self, name: &str) -> FunctionInfo {
        let (inputs, outputs) = self.visible();
        let hidden = self.inputs[inputs.len()..].iter().zip(&self.outputs[outputs.len()..]).zip(&self.kept);
        let kept = hidden.map(|((input, output), kept)| KeptValue {
            input: value_info(input),
            output: value_info(output),
            first: kept.first.as_ref().map(|value| FirstValue {
                element: value.element.into(),
                shape: value.dims.iter().map(|dim| usize::try_from(*dim).unwrap_or(usize::MAX)).collect(),
                bytes: value.bytes.clone(),
            }),
        });
        FunctionInfo { kept: kept.collect(), ..info(name, &inputs, &outputs) }
    }
}

fn by_name(all: &[Signature]) -> BTreeMap<&str, &Signature> {
    all.iter().map(|own| (&own.name[..], own)).collect()
}

fn info(name: &str, inputs: &[Signature], outputs: &[Signature]) -> FunctionInfo {
    let values = |all: &[Signature]| all.iter().map(value_info).collect();
    FunctionInfo {
        name: name.to_owned(),
        module: String::new(),
        inputs: values(inputs),
        outputs: values(outputs),
        states: Vec::new(),
        kept: Vec::new(),
        shares_nothing: true,
        declaration: None,
        calling_convention: String::new(),
    }
}

fn value_info(signature: &Signature) -> ValueInfo {
    let size = |size: u64| usize::try_from(size).unwrap_or(usize::MAX);
    let dimension = |dim: &Dim| match dim {
        Dim::Known(own) => Dimension::Fixed(size(*own)),
        Dim::Symbol(name) => Dimension::Named(name.clone()),
        Dim::UpTo(most) => Dimension::AtMost(size(*most)),
        Dim::Unknown => Dimension::Open,
    };
    let value_type = match signature.arity {
        Arity::Sequence => ValueType::Sequence,
        Arity::Tensor => ValueType::Tensor {
            element_type: signature.element.map(ElementType::from),
            shape: signature.dims.as_ref().map(|dims| dims.iter().map(dimension).collect()),
        },
    };
    ValueInfo {
        name: signature.name.clone(),
        value_type,
        is_optional: signature.is_optional,
        kind: runtime::tensor::ArgumentKind::Reference,
        element: signature.element.map(ElementType::from),
    }
}
