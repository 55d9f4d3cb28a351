//! A call of an operator as importers see it: typed access to its arguments, and its results.

use halite_formats::pte::Call;
use halite_ops::DType;
use halite_sizes::Size;

use super::{
    Result,
    scope::Scope,
    value::{Declared, Passed, Value},
};
use crate::{
    CompileError,
    build::Builder,
    graph::{ElementType, TensorId},
};

/// A call. Arguments are counted from 0; the last one is the result.
pub(super) struct Node<'n, 'd> {
    pub(super) scope: &'n mut Scope<'d>,
    pub(super) call: &'d Call,
}

impl<'d> Node<'_, 'd> {
    /// What makes the graph.
    pub(super) fn b(&mut self) -> &mut Builder {
        &mut self.scope.builder
    }

    pub(super) fn invalid(&self, reason: impl Into<String>) -> CompileError {
        self.scope.builder.invalid(reason)
    }

    pub(super) fn unsupported(&self, reason: impl Into<String>) -> CompileError {
        self.scope.builder.unsupported(reason)
    }

    /// Number of arguments before the result.
    pub(super) fn count(&self) -> usize {
        self.call.args.len().saturating_sub(1)
    }

    fn id(&self, i: usize) -> Result<usize> {
        let found = self.call.args.get(i).filter(|_| i < self.count()).copied();
        found.ok_or_else(|| self.invalid(format!("argument {i} is missing; there are {}", self.count())))
    }

    fn value(&self, i: usize) -> Result<&'d Value> {
        Ok(&self.scope.values[self.id(i)?])
    }

    fn wrong<T>(&self, i: usize, wanted: &str) -> Result<T> {
        let found = self.value(i)?;
        Err(self.invalid(format!("argument {i} is {found:?}, not {wanted}")))
    }

    /// Whether an argument is none.
    pub(super) fn is_none(&self, i: usize) -> Result<bool> {
        Ok(*self.value(i)? == Value::Null)
    }

    /// A tensor.
    pub(super) fn tensor(&mut self, i: usize) -> Result<TensorId> {
        let id = self.id(i)?;
        self.scope.tensor(id)
    }

    /// The sizes of a tensor.
    pub(super) fn tensor_dims(&mut self, i: usize) -> Result<Vec<u64>> {
        let id = self.tensor(i)?;
        Ok(self.scope.builder.dims(id).to_vec())
    }

    /// A tensor or none.
    pub(super) fn optional(&mut self, i: usize) -> Result<Option<TensorId>> {
        if self.is_none(i)? { Ok(None) } else { self.tensor(i).map(Some) }
    }

    /// A list of tensors, some of which may be none.
    pub(super) fn tensors(&mut self, i: usize) -> Result<Vec<Option<TensorId>>> {
        let Value::List(items) = self.value(i)? else { return self.wrong(i, "a list of tensors") };
        let values = self.scope.values;
        let read = |id: &usize| match &values[*id] {
            Value::Null => Ok(None),
            _ => self.scope.tensor(*id).map(Some),
        };
        items.iter().map(read).collect()
    }

    /// A number, float or boolean that is known by now.
    fn scalar(&self, i: usize, wanted: &str) -> Result<Passed> {
        match self.scope.scalar(self.id(i)?) {
            Some(known) => self.scope.known(known),
            None => self.wrong(i, wanted),
        }
    }

    /// A number, which the device may compute, as an `i64` tensor without dimensions.
    pub(super) fn number_tensor(&mut self, i: usize) -> Result<TensorId> {
        let id = self.id(i)?;
        self.scope.number_tensor(id)
    }

    /// An integer, which stays open where it depends on sizes or on data.
    pub(super) fn extent(&mut self, i: usize) -> Result<Size> {
        let Some(known) = self.scope.scalar(self.id(i)?) else { return self.wrong(i, "an integer") };
        match self.scope.counted(known)?.size() {
            Some(number) => Ok(number),
            None => self.wrong(i, "an integer"),
        }
    }

    /// The same, or another where it is none.
    pub(super) fn extent_or(&mut self, i: usize, other: i64) -> Result<Size> {
        if self.is_none(i)? { Ok(other.into()) } else { self.extent(i) }
    }

    /// Integers, which stay open where they depend on sizes; none where there are none.
    pub(super) fn extents(&mut self, i: usize) -> Result<Vec<Size>> {
        match &self.scope.values[self.id(i)?] {
            Value::List(items) => items.iter().map(|id| self.scope.size(*id)).collect(),
            Value::Int(_) | Value::Symbol => Ok(vec![self.extent(i)?]),
            _ => Ok(self.ints(i)?.into_iter().map(Size::from).collect()),
        }
    }

    /// An integer; one that depends on sizes is known by now.
    pub(super) fn int(&self, i: usize) -> Result<i64> {
        match self.scalar(i, "an integer")?.int() {
            Some(number) => Ok(number),
            None => self.wrong(i, "an integer"),
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
        match self.scalar(i, "a number")?.float() {
            Some(number) => Ok(number),
            None => self.wrong(i, "a number"),
        }
    }

    /// A number, float or boolean as it is, which the device may compute; none for what is none of them.
    pub(super) fn known(&self, i: usize) -> Result<Option<Passed>> {
        Ok(self.scope.scalar(self.id(i)?))
    }

    /// A number or none.
    pub(super) fn optional_float(&self, i: usize) -> Result<Option<f64>> {
        if self.is_none(i)? { Ok(None) } else { self.float(i).map(Some) }
    }

    /// True or false.
    pub(super) fn flag(&self, i: usize) -> Result<bool> {
        if self.is_none(i)? {
            return Ok(false);
        }
        match self.scalar(i, "a boolean")? {
            Passed::Truth(truth) => Ok(truth),
            Passed::Number(number) => Ok(number != 0),
            _ => self.wrong(i, "a boolean"),
        }
    }

    /// A text; empty when it is none.
    pub(super) fn text(&self, i: usize) -> Result<&'d str> {
        match self.value(i)? {
            Value::String(text) => Ok(text),
            Value::Null => Ok(""),
            _ => self.wrong(i, "a text"),
        }
    }

    /// Integers; none where there are none.
    pub(super) fn ints(&self, i: usize) -> Result<Vec<i64>> {
        match self.value(i)? {
            Value::IntList(items) => Ok(items.clone()),
            Value::List(items) => items.iter().map(|id| self.scope.number(*id)).collect(),
            Value::Null => Ok(Vec::new()),
            Value::Int(_) | Value::Symbol => Ok(vec![self.int(i)?]),
            // An empty list says nothing of what it is a list of.
            Value::BoolList(items) if items.is_empty() => Ok(Vec::new()),
            Value::DoubleList(items) if items.is_empty() => Ok(Vec::new()),
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
            Value::DoubleList(items) => Ok(items.clone()),
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
    pub(super) fn declared(&self) -> Result<&'d Declared> {
        self.declared_as(self.result_id()?)
    }

    fn result_id(&self) -> Result<usize> {
        self.call.args.last().copied().ok_or_else(|| self.invalid("a call without arguments"))
    }

    fn declared_as(&self, id: usize) -> Result<&'d Declared> {
        match &self.scope.values[id] {
            Value::Tensor(tensor) => Ok(tensor),
            other => Err(self.invalid(format!("the result {id} is {other:?}, not a tensor"))),
        }
    }

    /// The type of the result.
    pub(super) fn element(&self) -> Result<ElementType> {
        self.scope.element(self.declared()?)
    }

    /// The result, in the type that the file says.
    pub(super) fn finish(&mut self, made: TensorId) -> Result<()> {
        let id = self.result_id()?;
        self.finish_as(id, made)
    }

    fn finish_as(&mut self, id: usize, made: TensorId) -> Result<()> {
        let declared = self.declared_as(id)?;
        let element = self.scope.element(declared)?;
        let made = self.b().cast(made, element)?;
        self.scope.fits(made, declared)?;
        self.scope.set(id, Passed::Tensor(made))
    }

    /// Argument `i`, which the call changes where it is.
    pub(super) fn change(&mut self, i: usize, made: TensorId) -> Result<()> {
        let id = self.id(i)?;
        self.scope.change(id, made);
        Ok(())
    }

    /// Items of the result, which is a list.
    fn items(&self) -> Result<&'d [usize]> {
        match &self.scope.values[self.result_id()?] {
            Value::List(items) => Ok(items),
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
        Ok(self.items()?.get(k).is_some_and(|id| self.scope.is_read(*id)))
    }

    /// The first items of the result, which is a list; those that nobody reads may be none.
    pub(super) fn finish_list(&mut self, made: &[Option<TensorId>]) -> Result<()> {
        let items = self.items()?;
        for (k, id) in items.iter().enumerate() {
            match made.get(k).copied().flatten() {
                Some(made) => self.finish_as(*id, made)?,
                None if self.scope.is_read(*id) => {
                    return Err(self.invalid(format!("item {k} of the result is read, but not computed")));
                }
                None => {}
            }
        }
        Ok(())
    }

    /// The result, which is a number that depends on sizes.
    pub(super) fn finish_number(&mut self, number: impl Into<Size>) -> Result<()> {
        self.finish_scalar(Passed::Number(number.into()))
    }

    /// The result, which is a number, a float or a boolean.
    pub(super) fn finish_scalar(&mut self, scalar: Passed) -> Result<()> {
        let id = self.result_id()?;
        match &self.scope.values[id] {
            Value::Symbol | Value::Int(_) | Value::Double(_) | Value::Bool(_) => self.scope.set(id, scalar),
            other => Err(self.invalid(format!("the result {id} is {other:?}, not a number"))),
        }
    }

    /// Tensors as one type that holds all of their values: a float where one is a float, else the widest.
    pub(super) fn common(&mut self, tensors: &[TensorId]) -> Result<Vec<TensorId>> {
        let elements: Vec<ElementType> = tensors.iter().map(|id| self.scope.builder.element(*id)).collect();
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
