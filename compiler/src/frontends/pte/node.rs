//! A call of an operator as importers see it: typed access to its arguments, and its results.

use halite_formats::pte::{Call, VulkanTensor, VulkanValue};
use halite_ops::DType;

use super::{
    Result,
    delegate::{Delegate, Passed},
    types::element_inside,
};
use crate::{
    CompileError,
    build::Builder,
    graph::{ElementType, TensorId},
};

/// A call. Arguments are counted from 0; the last one is the result.
pub(super) struct Node<'n, 'd> {
    pub(super) delegate: &'n mut Delegate<'d>,
    pub(super) call: &'d Call,
}

impl<'d> Node<'_, 'd> {
    /// What makes the graph.
    pub(super) fn b(&mut self) -> &mut Builder {
        &mut self.delegate.builder
    }

    pub(super) fn invalid(&self, reason: impl Into<String>) -> CompileError {
        self.delegate.builder.invalid(reason)
    }

    pub(super) fn unsupported(&self, reason: impl Into<String>) -> CompileError {
        self.delegate.builder.unsupported(reason)
    }

    /// Number of arguments before the result.
    pub(super) fn count(&self) -> usize {
        self.call.args.len().saturating_sub(1)
    }

    fn id(&self, i: usize) -> Result<usize> {
        let found = self.call.args.get(i).filter(|_| i < self.count()).copied();
        found.ok_or_else(|| self.invalid(format!("argument {i} is missing; there are {}", self.count())))
    }

    fn value(&self, i: usize) -> Result<&'d VulkanValue> {
        Ok(&self.delegate.graph.values[self.id(i)?])
    }

    fn wrong<T>(&self, i: usize, wanted: &str) -> Result<T> {
        let found = self.value(i)?;
        Err(self.invalid(format!("argument {i} is {found:?}, not {wanted}")))
    }

    /// Whether an argument is none.
    pub(super) fn is_none(&self, i: usize) -> Result<bool> {
        Ok(*self.value(i)? == VulkanValue::Null)
    }

    /// A tensor.
    pub(super) fn tensor(&mut self, i: usize) -> Result<TensorId> {
        let id = self.id(i)?;
        self.delegate.tensor(id)
    }

    /// A tensor or none.
    pub(super) fn optional(&mut self, i: usize) -> Result<Option<TensorId>> {
        if self.is_none(i)? { Ok(None) } else { self.tensor(i).map(Some) }
    }

    /// A list of tensors, some of which may be none.
    pub(super) fn tensors(&mut self, i: usize) -> Result<Vec<Option<TensorId>>> {
        let VulkanValue::List(items) = self.value(i)? else { return self.wrong(i, "a list of tensors") };
        let graph = self.delegate.graph;
        let read = |id: &usize| match &graph.values[*id] {
            VulkanValue::Null => Ok(None),
            _ => self.delegate.tensor(*id).map(Some),
        };
        items.iter().map(read).collect()
    }

    /// An integer; one that depends on sizes is known by now.
    pub(super) fn int(&self, i: usize) -> Result<i64> {
        match self.value(i)? {
            VulkanValue::Int(_) | VulkanValue::SymInt(_) => self.delegate.number(self.id(i)?),
            VulkanValue::Double(v) if v.fract() == 0.0 && v.abs() < 9e15 => Ok(*v as i64),
            VulkanValue::Bool(v) => Ok(i64::from(*v)),
            _ => self.wrong(i, "an integer"),
        }
    }

    /// An integer, or another where it is none.
    pub(super) fn int_or(&self, i: usize, other: i64) -> Result<i64> {
        if self.is_none(i)? { Ok(other) } else { self.int(i) }
    }

    /// A size.
    pub(super) fn size(&self, i: usize) -> Result<u64> {
        let value = self.int(i)?;
        u64::try_from(value).map_err(|_| self.invalid(format!("argument {i} is {value}, which is no size")))
    }

    /// A number.
    pub(super) fn float(&self, i: usize) -> Result<f64> {
        match self.value(i)? {
            VulkanValue::Double(v) => Ok(*v),
            _ => self.int(i).map(|v| v as f64).or_else(|_| self.wrong(i, "a number")),
        }
    }

    /// A number or none.
    pub(super) fn optional_float(&self, i: usize) -> Result<Option<f64>> {
        if self.is_none(i)? { Ok(None) } else { self.float(i).map(Some) }
    }

    /// True or false.
    pub(super) fn flag(&self, i: usize) -> Result<bool> {
        match self.value(i)? {
            VulkanValue::Bool(v) => Ok(*v),
            VulkanValue::Int(v) => Ok(*v != 0),
            VulkanValue::Null => Ok(false),
            _ => self.wrong(i, "a boolean"),
        }
    }

    /// A text; empty when it is none.
    pub(super) fn text(&self, i: usize) -> Result<&'d str> {
        match self.value(i)? {
            VulkanValue::String(text) => Ok(text),
            VulkanValue::Null => Ok(""),
            _ => self.wrong(i, "a text"),
        }
    }

    /// Integers; none where there are none.
    pub(super) fn ints(&self, i: usize) -> Result<Vec<i64>> {
        match self.value(i)? {
            VulkanValue::IntList(items) => Ok(items.clone()),
            VulkanValue::List(items) => items.iter().map(|id| self.delegate.number(*id)).collect(),
            VulkanValue::Null => Ok(Vec::new()),
            VulkanValue::Int(v) => Ok(vec![*v]),
            // An empty list says nothing of what it is a list of.
            VulkanValue::BoolList(items) if items.is_empty() => Ok(Vec::new()),
            VulkanValue::DoubleList(items) if items.is_empty() => Ok(Vec::new()),
            _ => self.wrong(i, "a list of integers"),
        }
    }

    /// Sizes; none where there are none.
    pub(super) fn sizes(&self, i: usize) -> Result<Vec<u64>> {
        let ints = self.ints(i)?;
        let each: Result<Vec<u64>, _> = ints.iter().map(|v| u64::try_from(*v)).collect();
        each.map_err(|_| self.invalid(format!("argument {i} is {ints:?}, which are no sizes")))
    }

    /// Numbers; none where there are none.
    pub(super) fn floats(&self, i: usize) -> Result<Vec<f64>> {
        match self.value(i)? {
            VulkanValue::DoubleList(items) => Ok(items.clone()),
            _ => Ok(self.ints(i)?.into_iter().map(|v| v as f64).collect()),
        }
    }

    /// A dimension of a tensor of `rank` dimensions, which may count from the end.
    pub(super) fn axis(&self, i: usize, rank: usize) -> Result<usize> {
        self.axis_of(self.int(i)?, rank)
    }

    /// The same for a number.
    pub(super) fn axis_of(&self, axis: i64, rank: usize) -> Result<usize> {
        let from_front = if axis < 0 { axis.saturating_add(rank as i64) } else { axis };
        let found = usize::try_from(from_front).ok().filter(|axis| *axis < rank);
        found.ok_or_else(|| self.invalid(format!("dimension {axis} of {rank}")))
    }

    /// Dimensions of a tensor of `rank` dimensions, in the order in which they are told.
    pub(super) fn axes(&self, i: usize, rank: usize) -> Result<Vec<usize>> {
        self.ints(i)?.into_iter().map(|axis| self.axis_of(axis, rank)).collect()
    }

    /// What the file says of the result.
    pub(super) fn declared(&self) -> Result<&'d VulkanTensor> {
        self.declared_as(self.result_id()?)
    }

    fn result_id(&self) -> Result<usize> {
        self.call.args.last().copied().ok_or_else(|| self.invalid("a call without arguments"))
    }

    fn declared_as(&self, id: usize) -> Result<&'d VulkanTensor> {
        match &self.delegate.graph.values[id] {
            VulkanValue::Tensor(tensor) => Ok(tensor),
            other => Err(self.invalid(format!("the result {id} is {other:?}, not a tensor"))),
        }
    }

    /// The type of the result.
    pub(super) fn element(&self) -> Result<ElementType> {
        Ok(element_inside(self.declared()?.datatype))
    }

    /// The result, in the type that the file says.
    pub(super) fn finish(&mut self, made: TensorId) -> Result<()> {
        let id = self.result_id()?;
        self.finish_as(id, made)
    }

    fn finish_as(&mut self, id: usize, made: TensorId) -> Result<()> {
        let declared = self.declared_as(id)?;
        let made = self.b().cast(made, element_inside(declared.datatype))?;
        let bounds: Vec<u64> = declared.dims.iter().map(|d| u64::from(*d)).collect();
        let dims = self.delegate.builder.dims(made);
        let within = dims.len() == bounds.len() && dims.iter().zip(&bounds).all(|(d, most)| d <= most);
        if !within || self.delegate.exact && dims != bounds {
            let at_most = if self.delegate.exact { "" } else { "at most " };
            let what = self.delegate.builder.describe(&[made]);
            return Err(self.invalid(format!("the result is {what}; the file says {at_most}{bounds:?}")));
        }
        self.delegate.set(id, Passed::Tensor(made))
    }

    /// Items of the result, which is a list.
    fn items(&self) -> Result<&'d [usize]> {
        match &self.delegate.graph.values[self.result_id()?] {
            VulkanValue::List(items) => Ok(items),
            other => Err(self.invalid(format!("the result is {other:?}, not a list"))),
        }
    }

    /// Number of dimensions of item `k` of the result, which is a list.
    pub(super) fn item_rank(&self, k: usize) -> Result<usize> {
        let items = self.items()?;
        let id = items.get(k).ok_or_else(|| self.invalid(format!("the result has {} items", items.len())))?;
        Ok(self.declared_as(*id)?.dims.len())
    }

    /// Whether somebody reads item `k` of the result, which is a list.
    pub(super) fn wants(&self, k: usize) -> Result<bool> {
        Ok(self.items()?.get(k).is_some_and(|id| self.delegate.is_read(*id)))
    }

    /// The first items of the result, which is a list; those that nobody reads may be none.
    pub(super) fn finish_list(&mut self, made: &[Option<TensorId>]) -> Result<()> {
        let items = self.items()?;
        for (k, id) in items.iter().enumerate() {
            match made.get(k).copied().flatten() {
                Some(made) => self.finish_as(*id, made)?,
                None if self.delegate.is_read(*id) => {
                    return Err(self.invalid(format!("item {k} of the result is read, but not computed")));
                }
                None => {}
            }
        }
        Ok(())
    }

    /// The result, which is a number that depends on sizes.
    pub(super) fn finish_number(&mut self, number: i64) -> Result<()> {
        let id = self.result_id()?;
        if !matches!(self.delegate.graph.values[id], VulkanValue::SymInt(_)) {
            return Err(self.invalid(format!("the result {id} is no number")));
        }
        self.delegate.set(id, Passed::Number(number))
    }

    /// Tensors as one type that holds all of their values: a float where one is a float, else the widest.
    pub(super) fn common(&mut self, tensors: &[TensorId]) -> Result<Vec<TensorId>> {
        let elements: Vec<ElementType> =
            tensors.iter().map(|id| self.delegate.builder.element(*id)).collect();
        let order = |element: &ElementType| match element {
            ElementType::Bool => (0, 0),
            ElementType::Of(DType::BF16 | DType::F16) => (2, 0),
            ElementType::Of(dtype) if dtype.is_float() => (2, dtype.size()),
            ElementType::Of(dtype) => (1, dtype.size()),
        };
        let Some(widest) = elements.into_iter().max_by_key(order) else { return Ok(Vec::new()) };
        tensors.iter().map(|id| self.b().cast(*id, widest)).collect()
    }
}
