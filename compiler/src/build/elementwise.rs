//! Elementwise operations of models: broadcasting, booleans, casts.

use halite_ops::{
    DType, Operation,
    elementwise::Elementwise,
    expression::{self, Expression, Function, Operand},
};
use halite_sizes::Size;

use super::{Builder, Result};
use crate::graph::{ElementType, TensorId};

/// What makes a program's result of its inputs and tables.
type Compute<'a> = dyn FnMut(&mut Expression, &[Operand], &[Operand]) -> Operand + 'a;

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
        let shapes = |ids: &[TensorId]| -> Vec<(DType, Vec<Size>)> {
            ids.iter().map(|id| (self.element(*id).storage(), self.sizes(*id).to_vec())).collect()
        };
        let operation = Elementwise::new(shapes(ids), program).with_tables(shapes(tables));
        self.kernel1(Operation::Elementwise(operation), &[ids, tables].concat(), element, &dims)
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
