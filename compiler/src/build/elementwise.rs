//! Elementwise operations of models: broadcasting, booleans, casts.

use halite_ops::{
    DType, Operation,
    elementwise::Elementwise,
    expression::{self, Expression, Function, Operand},
};
use halite_sizes::Size;

use super::{Builder, Result};
use crate::graph::{ElementType, Graph, TensorId};

/// What makes a program's result of its inputs and tables.
type Compute<'a> = dyn FnMut(&mut Expression, &[Operand], &[Operand]) -> Operand + 'a;

/// Most elements of a line that is computed part by part.
const MOST_PARTED: u64 = 16;

impl Builder {
    /// Dimensions of what tensors are broadcast to (NumPy's rule), as numbers to which the graph is fixed.
    ///
    /// # Errors
    /// They do not go together.
    pub fn broadcast(&self, ids: &[TensorId]) -> Result<Vec<u64>> {
        Ok(self.broadcast_sizes(ids)?.iter().map(|size| size.exact()).collect())
    }

    /// The same as sizes, which may be open.
    ///
    /// # Errors
    /// They do not go together.
    pub fn broadcast_sizes(&self, ids: &[TensorId]) -> Result<Vec<Size>> {
        let shapes: Vec<Vec<Size>> = ids.iter().map(|id| self.sizes(*id).to_vec()).collect();
        expression::broadcast(&shapes)
            .map_err(|reason| self.invalid(format!("{}: {reason}", self.describe(ids))))
    }

    /// An expression over the elements of tensors, which are broadcast. `compute` is given the program and an operand for
    /// each tensor, booleans as such, and gives the result, whose type `element` must be.
    pub fn map(
        &mut self,
        ids: &[TensorId],
        element: impl Into<ElementType>,
        compute: impl FnOnce(&mut Expression, &[Operand]) -> Operand,
    ) -> Result<TensorId> {
        self.map_with(ids, &[], element, |program, operands, _| compute(program, operands))
    }

    /// The same with tables that the program looks values up in. `compute` is given an operand for each of them too.
    pub fn map_with(
        &mut self,
        ids: &[TensorId],
        tables: &[TensorId],
        element: impl Into<ElementType>,
        compute: impl FnOnce(&mut Expression, &[Operand], &[Operand]) -> Operand,
    ) -> Result<TensorId> {
        let mut compute = Some(compute);
        self.map_once(ids, tables, element.into(), &mut |program, operands, tables| {
            let compute = compute.take().expect("it is called once");
            compute(program, operands, tables)
        })
    }

    /// The same; one function for all callers, of which there are more than a hundred.
    fn map_once(
        &mut self,
        ids: &[TensorId],
        tables: &[TensorId],
        element: ElementType,
        compute: &mut Compute<'_>,
    ) -> Result<TensorId> {
        let aligned = self.aligned(ids)?;
        let ids = &aligned[..];
        let dims = self.broadcast_sizes(ids)?;
        let mut program = Expression::default();
        let mut operands = Vec::new();
        for (index, id) in ids.iter().enumerate() {
            let input = Operand::Input(index);
            operands.push(match self.element(*id) {
                ElementType::Bool => program.cast(expression::Type::Bool, input),
                ElementType::Of(_) => input,
            });
        }
        let table_operands: Vec<Operand> = (0..tables.len()).map(Operand::Table).collect();
        let value = compute(&mut program, &operands, &table_operands);
        program.store(value, element.storage());
        if tables.is_empty()
            && let Some(parts) = self.by_parts(ids, &dims)?
        {
            let mut made = Vec::new();
            for ids in parts {
                let (operation, dims) = (
                    Elementwise::new(shapes(&self.graph, &ids), program.clone()),
                    self.broadcast_sizes(&ids)?,
                );
                made.push(self.kernel1(Operation::Elementwise(operation), &ids, element, &dims)?);
            }
            return self.concat(&made, 0);
        }
        let operation =
            Elementwise::new(shapes(&self.graph, ids), program).with_tables(shapes(&self.graph, tables));
        self.kernel1(Operation::Elementwise(operation), &[ids, tables].concat(), element, &dims)
    }

    /// What an operation on short lines of integers is given for each part of one that was joined of known and computed numbers, as shapes are: so
    /// what is known of them stays known. `None` where nothing would be gained.
    fn by_parts(&mut self, ids: &[TensorId], dims: &[Size]) -> Result<Option<Vec<Vec<TensorId>>>> {
        let [length] = dims else { return Ok(None) };
        let is_short = length.is_constant() && (2..=MOST_PARTED).contains(&length.value());
        if !is_short || !self.takes_data() || ids.iter().any(|id| self.element(*id).is_float()) {
            return Ok(None);
        }
        let joined = |id: &TensorId| {
            let parts =
                self.parts_of(*id).filter(|parts| self.size_values(*id).is_none() && parts.len() > 1)?;
            let is_line = |part: &TensorId| self.rank(*part) == 1 && self.tensor(*part).count().is_constant();
            let is_known = |part: &TensorId| self.size_values(*part).is_some();
            (parts.iter().all(is_line) && parts.iter().any(is_known)).then_some(parts)
        };
        let Some(lead) = ids.iter().find_map(joined) else { return Ok(None) };
        let (mut made, mut start) = (Vec::new(), 0);
        for part in lead {
            let count = self.tensor(part).elements();
            let mut own = Vec::new();
            for id in ids {
                let Some(piece) = self.piece(*id, start, count)? else { return Ok(None) };
                own.push(piece);
            }
            made.push(own);
            start += count;
        }
        Ok(Some(made))
    }

    /// Elements of a line, or the only one for all, as a tensor that is there or known.
    fn piece(&mut self, id: TensorId, start: u64, count: u64) -> Result<Option<TensorId>> {
        if self.tensor(id).count() == 1 {
            return Ok(Some(id));
        }
        if let Some(values) = self.size_values(id) {
            let own = values.get(start as usize..(start + count) as usize).map(<[Size]>::to_vec);
            return own.map(|own| self.computed(self.element(id), &[count], own)).transpose();
        }
        let mut at = 0;
        for part in self.parts_of(id).unwrap_or_default() {
            let own = self.tensor(part).count();
            if !own.is_constant() || at > start {
                return Ok(None);
            }
            if (at, own.value()) == (start, count) && self.rank(part) == 1 {
                return Ok(Some(part));
            }
            at += own.value();
        }
        Ok(None)
    }

    /// Tensors that are broadcast, with dimensions repeated that may have one element by what data decide.
    fn aligned(&mut self, ids: &[TensorId]) -> Result<Vec<TensorId>> {
        let is_data = |id: &TensorId| self.sizes(*id).iter().any(|size| size.is_data());
        if ids.len() < 2 || !ids.iter().any(is_data) {
            return Ok(ids.to_vec());
        }
        let rank = ids.iter().map(|id| self.rank(*id)).max().unwrap_or(0);
        let one = |size: Size| size.is(1.into());
        let (mut target, mut joins) = (vec![Size::constant(1); rank], false);
        for id in ids {
            let own = self.sizes(*id);
            for (dim, size) in target[rank - own.len()..].iter_mut().zip(own) {
                if size.is(*dim) || one(*size) {
                    continue;
                }
                if one(*dim) {
                    *dim = *size;
                } else if size.is_data() || dim.is_data() {
                    (*dim, joins) = (broadcast_of_data(*dim, *size), true);
                }
            }
        }
        if !joins {
            return Ok(ids.to_vec());
        }
        let mut made = Vec::new();
        for id in ids {
            let own = self.sizes(*id).to_vec();
            let target = &target[rank - own.len()..];
            let to = |(own, to): (&Size, &Size)| if one(*own) { *own } else { *to };
            let to: Vec<Size> = own.iter().zip(target).map(to).collect();
            made.push(self.expand_to(*id, &to)?);
        }
        Ok(made)
    }

    /// A function of one tensor; the result has its type.
    pub fn unary(&mut self, function: Function, tensor: TensorId) -> Result<TensorId> {
        let element = self.element(tensor);
        self.map(&[tensor], element, |program, x| program.call(function, &[x[0]]))
    }

    /// A function of two tensors of one type; the result has that type.
    pub fn binary(&mut self, function: Function, a: TensorId, b: TensorId) -> Result<TensorId> {
        let element = self.element(a);
        self.map(&[a, b], element, |program, x| program.call(function, x))
    }

    /// A comparison of two tensors of one type.
    pub fn compare(&mut self, function: Function, a: TensorId, b: TensorId) -> Result<TensorId> {
        self.map(&[a, b], ElementType::Bool, |program, x| program.call(function, x))
    }

    /// Elements of `a` where `condition` is true, of `b` elsewhere.
    pub fn select(&mut self, condition: TensorId, a: TensorId, b: TensorId) -> Result<TensorId> {
        let element = self.element(a);
        self.map(&[condition, a, b], element, |program, x| program.call(Function::Select, x))
    }

    /// The elements as another type: floats are truncated to integers, what is not 0 is true.
    pub fn cast(&mut self, tensor: TensorId, element: impl Into<ElementType>) -> Result<TensorId> {
        let element = element.into();
        if self.element(tensor) == element {
            return Ok(tensor);
        }
        self.map(&[tensor], element, |program, x| program.cast(element.value(), x[0]))
    }

    /// The elements as `f32`.
    pub fn as_f32(&mut self, tensor: TensorId) -> Result<TensorId> {
        self.cast(tensor, DType::F32)
    }
}

/// Types and sizes of tensors.
fn shapes(graph: &Graph, ids: &[TensorId]) -> Vec<(DType, Vec<Size>)> {
    let of = |id: &TensorId| (graph.tensor(*id).element.storage(), graph.tensor(*id).sizes().to_vec());
    ids.iter().map(of).collect()
}

/// What two sizes are broadcast to, one of which data decide: they are equal, or one of them is 1, which is promised.
fn broadcast_of_data(a: Size, b: Size) -> Size {
    for (known, other) in [(a, b), (b, a)] {
        if known.is_constant() {
            ((other - 1) * (other - known)).agrees(0);
            return known;
        }
    }
    ((a - 1) * (b - 1) * (a - b)).agrees(0);
    // Nothing beside a 1 is nothing.
    a.max(b) * a.min(1) * b.min(1)
}
