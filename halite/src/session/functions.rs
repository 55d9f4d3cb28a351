//! The functions of a model, as versions are made of them.
//!
//! A function with an input that says which of two branches runs, as decoders that Optimum merged have (`use_cache_branch`), is one for each
//! value, in which the other branch is not. A version for both would wait for the value, and sizes behind the branch would be the data's.

use std::collections::BTreeSet;

use halite_compiler::{
    graph::ElementType,
    signature::{BoundValue, Dim, Signature},
    states::Pairs,
};

use halite_hal::DeviceInfo;

use super::versions::Fixed;
use crate::{Result, Value};

/// A function.
pub(super) struct ModelFunction {
    pub(super) name: String,
    pub(super) inputs: Vec<Signature>,
    /// The outputs, those that the program keeps by itself last.
    pub(super) outputs: Vec<Signature>,
    /// Inputs that are state, and the outputs that replace them.
    pub(super) states: Pairs,
    /// The dimensions of state that are others in the outputs, by their names among open ones: those of caches that grow.
    pub(super) caches: BTreeSet<String>,
    /// Names of dimensions of the outputs that replace state.
    pub(super) totals: BTreeSet<String>,
    pub(super) fixed: Option<Fixed>,
    /// The value of an input that it is for.
    pub(super) bound: Option<Bound>,
    /// Where it has others for the values of an input.
    pub(super) switch: Option<Switch>,
    /// The place of the same function for calls on a [`State`](crate::State) whose caches grow in place; none where it has no state, and of
    /// that function itself.
    pub(super) growing: Option<usize>,
    /// Rows in a multiple of which such caches have memory; 0 where they do not grow in place.
    pub(super) row_step: u64,
    /// What the place in its memory is a multiple of where such a cache may begin, in bytes; 0 where it begins with it.
    pub(super) row_alignment: u64,
}

impl ModelFunction {
    /// The same function for one value of an input.
    pub(super) fn bound_to(&self, bound: Bound) -> ModelFunction {
        ModelFunction { bound: Some(bound), ..self.open() }
    }

    /// The same function, whose sizes calls decide.
    fn open(&self) -> ModelFunction {
        ModelFunction {
            name: self.name.clone(),
            inputs: self.inputs.clone(),
            outputs: self.outputs.clone(),
            states: self.states.clone(),
            caches: self.caches.clone(),
            totals: self.totals.clone(),
            fixed: None,
            bound: self.bound,
            switch: None,
            growing: None,
            row_step: 0,
            row_alignment: 0,
        }
    }
}

/// A cache that grows is copied once in so many rows, and has at most as many to spare. Reading it takes as long at each call as copying
/// it once, so that the copies are a fraction of this of the work.
const ROW_STEP: u64 = 256;

/// Bytes that kernels read at once.
const VECTOR: u64 = 16;

/// A truth that a function's versions are for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    /// The input's place.
    pub input: usize,
    pub holds: bool,
}

/// The function for each value of an input.
#[derive(Clone, Copy, Debug)]
pub(super) struct Switch {
    input: usize,
    /// Places of the functions where it does not hold, and where it does.
    places: [usize; 2],
}

impl Switch {
    /// The place of the function for these inputs; `None` where the value is not among them.
    pub fn place(&self, values: &[Value]) -> Result<Option<usize>> {
        let Some(tensor) = values.get(self.input).and_then(Value::as_tensor) else { return Ok(None) };
        let holds = tensor.to_bytes()?.first().is_some_and(|byte| *byte != 0);
        Ok(Some(self.places[usize::from(holds)]))
    }
}

impl Bound {
    /// The value, as what is compiled knows it.
    pub fn value(self, inputs: &[Signature]) -> Option<(String, BoundValue)> {
        let input = inputs.get(self.input)?;
        let known = |dim: &Dim| if let Dim::Known(size) = dim { *size } else { 1 };
        let dims = input.dims.iter().flatten().map(known).collect();
        let bytes = vec![u8::from(self.holds)].into();
        Some((input.name.clone(), BoundValue { element: ElementType::Bool, dims, bytes }))
    }
}

/// Gives functions whose sizes calls decide one more for each value of their first switch, behind all others.
pub(super) fn add_switches(functions: &mut Vec<ModelFunction>, switches: &dyn Fn(&str) -> Vec<String>) {
    for place in 0..functions.len() {
        let function = &functions[place];
        let Some(name) = switches(&function.name).into_iter().next().filter(|_| function.fixed.is_none())
        else {
            continue;
        };
        let Some(input) = function.inputs.iter().position(|input| input.name == name) else { continue };
        let [without, with] = [false, true].map(|holds| function.bound_to(Bound { input, holds }));
        let first = functions.len();
        functions.extend([without, with]);
        functions[place].switch = Some(Switch { input, places: [first, first + 1] });
    }
}

/// Gives functions with state one more for calls on a state, behind all others: there caches grow in place. Of sizes that the caller fixed
/// it is made where there are windows alone.
pub(super) fn add_growing(functions: &mut Vec<ModelFunction>) {
    for place in 0..functions.len() {
        let function = &functions[place];
        let is_of_many = function.fixed.as_ref().is_some_and(|fixed| fixed.bindings.len() != 1);
        if function.states.is_empty() || function.switch.is_some() || is_of_many {
            continue;
        }
        let fixed = function.fixed.as_ref().map(Fixed::anew);
        let growing = ModelFunction { row_step: ROW_STEP, fixed, ..function.open() };
        functions[place].growing = Some(functions.len());
        functions.push(growing);
    }
}

/// Lets the caches that grow in place begin where a device can bind memory, if they keep their last rows alone: a multiple of so many bytes
/// from the beginning of their memory, as kernels read whole vectors.
pub(super) fn aligned(mut functions: Vec<ModelFunction>, info: &DeviceInfo) -> Vec<ModelFunction> {
    let limit = info.facts.as_ref().map_or(0, |facts| facts.limits.min_storage_buffer_offset_alignment);
    let alignment = if limit > 0 { limit.max(VECTOR) } else { 0 };
    for function in &mut functions {
        function.row_alignment = if function.row_step > 0 { alignment } else { 0 };
        for bindings in function.fixed.iter_mut().flat_map(|fixed| &mut fixed.bindings) {
            (bindings.row_step, bindings.row_alignment) = (function.row_step, alignment);
        }
    }
    functions
}
