//! Products of matrices: NumPy's rules for batches and vectors, and integers with zero points.

use halite_ops::{
    DType, Operation, Values,
    expression::{self, Function, Operand, Scalar},
    matmul::MatMul,
    reduce::ReduceKind,
};
use halite_sizes::Size;

use super::{Builder, Result, budget::Cost, types::FLOATS};
use crate::graph::{ElementType, TensorId, elements};

/// Most products of a matrix product of integers that no kernel computes: each takes four bytes of memory.
const MOST_PRODUCTS: u64 = 1 << 28;

/// A product of matrices of which all is known but the types.
struct Shape {
    m: Size,
    n: Size,
    k: Size,
    /// Dimensions before the matrices.
    batch: Vec<Size>,
    /// Dimensions of the result.
    result: Vec<Size>,
}

impl Builder {
    /// The product of matrices by NumPy's rules: vectors are rows on the left and columns on the right, dimensions before
    /// the last two are broadcast. Floats are summed as `f32`, integers as `i32`, which wraps. The result has the type of
    /// the operands; bytes give `i32`.
    ///
    /// # Errors
    /// The sizes do not go together.
    pub fn matmul(&mut self, a: TensorId, b: TensorId) -> Result<TensorId> {
        self.product(a, b, false)
    }

    /// The same, with a right operand whose last two dimensions are columns and rows when `transposed`, as weights often
    /// lie.
    ///
    /// # Errors
    /// The sizes do not go together.
    pub fn product(&mut self, a: TensorId, b: TensorId, transposed: bool) -> Result<TensorId> {
        let (a, b) = self.summed_alike(a, b, transposed)?;
        let shape = self.product_shape(a, b, transposed)?;
        let (a_dims, b_dims) = (self.sizes(a).to_vec(), self.sizes(b).to_vec());
        let one = Size::constant(1);
        let a = if a_dims.len() == 1 { self.reshape_to(a, &[one, a_dims[0]])? } else { a };
        let b = match b_dims[..] {
            [k] if transposed => self.reshape_to(b, &[one, k])?,
            [k] => self.reshape_to(b, &[k, one])?,
            _ => b,
        };
        if shape.k == 0 {
            let element = self.product_element(a);
            let zero = self.float(element, 0.0)?;
            return self.expand_to(zero, &shape.result);
        }
        let (left, right) = (self.element(a).storage(), self.element(b).storage());
        if left.is_float() != right.is_float() {
            return Err(self.invalid(format!("a product of {}", self.describe(&[a, b]))));
        }
        let made = match (left, right) {
            (DType::I8, DType::I8) => self.dense_product(a, b, transposed, &shape, DType::I32)?,
            _ if left.is_float() => {
                let wide = |dtype: DType| !FLOATS.contains(&dtype);
                let common = if left != right || wide(left) { DType::F32 } else { left };
                let (a, b) = (self.cast(a, common)?, self.cast(b, common)?);
                let out = if common == DType::F16 { DType::F16 } else { DType::F32 };
                let made = self.dense_product(a, b, transposed, &shape, out)?;
                self.cast(made, left)?
            }
            _ => self.integer_product(a, b, transposed, &shape)?,
        };
        self.reshape_to(made, &shape.result)
    }

    /// The product of 8-bit integers less zero points, as `i32`, exactly. Zero points broadcast with their operands: one
    /// for all, or for each row of `a` and column of `b`.
    ///
    /// # Errors
    /// The sizes or types do not go together.
    pub fn product_of_bytes(
        &mut self,
        a: TensorId,
        a_zero: Option<TensorId>,
        b: TensorId,
        b_zero: Option<TensorId>,
    ) -> Result<TensorId> {
        let k = self.product_shape(a, b, false)?.k;
        let (a, a_offset) = self.signed_bytes(a, a_zero)?;
        let (b, b_offset) = self.signed_bytes(b, b_zero)?;
        // (a + p) * (b + q) = a * b + p * columns of b + q * rows of a + k * p * q, p and q being constant along sums.
        let mut sum = self.matmul(a, b)?;
        let (a_rank, b_rank) = (self.rank(a), self.rank(b));
        if let Some(p) = a_offset {
            let wide = self.cast(b, DType::I32)?;
            let columns = self.reduce(ReduceKind::Sum, wide, &[b_rank.saturating_sub(2)], a_rank > 1)?;
            sum = self.add_product(sum, p, columns, 1)?;
        }
        if let Some(q) = b_offset {
            let wide = self.cast(a, DType::I32)?;
            let rows = self.reduce(ReduceKind::Sum, wide, &[a_rank - 1], b_rank > 1)?;
            sum = self.add_product(sum, q, rows, 1)?;
        }
        if let (Some(p), Some(q)) = (a_offset, b_offset) {
            sum = self.add_product(sum, p, q, k.exact_signed())?;
        }
        Ok(sum)
    }

    /// Bytes less a zero point as `i8` and an `i32` that has to be added to each.
    pub(super) fn signed_bytes(
        &mut self,
        tensor: TensorId,
        zero: Option<TensorId>,
    ) -> Result<(TensorId, Option<TensorId>)> {
        let element = self.element(tensor);
        if element == ElementType::Of(DType::I8) {
            let offset = zero.map(|zero| {
                self.map(&[zero], DType::I32, |p, x| {
                    let zero = p.cast(expression::Type::Of(DType::I32), x[0]);
                    p.call(Function::Neg, &[zero])
                })
            });
            return Ok((tensor, offset.transpose()?));
        }
        if element != ElementType::Of(DType::U8) {
            return Err(
                self.unsupported(format!("products of {element} with zero points; there is i8 and u8"))
            );
        }
        let top = Operand::Constant(Scalar::Int(128, DType::U8));
        let turned = self.map(&[tensor], DType::U8, |p, x| p.call(Function::Xor, &[x[0], top]))?;
        let dims = self.sizes(tensor).to_vec();
        let signed = self.view(turned, DType::I8.into(), &dims)?;
        let offset = match zero {
            None => self.values(DType::I32, &[], &Values::Int(vec![128]))?,
            Some(zero) => self.map(&[zero], DType::I32, |p, x| {
                let zero = p.cast(expression::Type::Of(DType::I32), x[0]);
                p.call(Function::Sub, &[Operand::Constant(Scalar::Int(128, DType::I32)), zero])
            })?,
        };
        Ok((signed, Some(offset)))
    }

    /// `sum + a * b * factor`, all `i32`.
    pub(super) fn add_product(
        &mut self,
        sum: TensorId,
        a: TensorId,
        b: TensorId,
        factor: i64,
    ) -> Result<TensorId> {
        let factor = Operand::Constant(Scalar::Int(factor, DType::I32));
        self.map(&[sum, a, b], DType::I32, |p, x| {
            let product = p.call(Function::Mul, &[x[1], x[2]]);
            let product = p.call(Function::Mul, &[product, factor]);
            p.call(Function::Add, &[x[0], product])
        })
    }

    /// Both operands with one expression for the size that is summed over, where data decide that of either: the other's, which is that of
    /// weights.
    fn summed_alike(&mut self, a: TensorId, b: TensorId, transposed: bool) -> Result<(TensorId, TensorId)> {
        let (mut left, mut right) = (self.sizes(a).to_vec(), self.sizes(b).to_vec());
        let row = if transposed || right.len() < 2 { 1 } else { 2 };
        let places = left.len().checked_sub(1).zip(right.len().checked_sub(row));
        let Some((at, at_b)) = places else { return Ok((a, b)) };
        let (k, k_b) = (left[at], right[at_b]);
        if k.is(k_b) || !(k.is_data() || k_b.is_data()) || !k.agrees(k_b) {
            return Ok((a, b));
        }
        let common = if k.is_data() { k_b } else { k };
        (left[at], right[at_b]) = (common, common);
        Ok((self.reshape_to(a, &left)?, self.reshape_to(b, &right)?))
    }

    /// The type of a product of tensors of a type.
    fn product_element(&self, a: TensorId) -> ElementType {
        match self.element(a) {
            ElementType::Of(DType::I8) => DType::I32.into(),
            other => other,
        }
    }

    fn product_shape(&self, a: TensorId, b: TensorId, transposed: bool) -> Result<Shape> {
        let wrong = || self.invalid(format!("no product of {}", self.describe(&[a, b])));
        let (left, right) = (self.sizes(a), self.sizes(b));
        let one = Size::constant(1);
        let (a_batch, [m, k]) = match left {
            [] => return Err(wrong()),
            [k] => (&[][..], [one, *k]),
            [batch @ .., m, k] => (batch, [*m, *k]),
        };
        let (b_batch, [k_b, n]) = match right {
            [] => return Err(wrong()),
            [k] => (&[][..], [*k, one]),
            [batch @ .., n, k] if transposed => (batch, [*k, *n]),
            [batch @ .., k, n] => (batch, [*k, *n]),
        };
        if !k.agrees(k_b) {
            return Err(wrong());
        }
        let batch = expression::broadcast(&[a_batch.to_vec(), b_batch.to_vec()]).map_err(|_| wrong())?;
        let rows = (left.len() > 1).then_some(m);
        let columns = (right.len() > 1).then_some(n);
        let result = batch.iter().copied().chain(rows).chain(columns).collect();
        Ok(Shape { m, n, k, batch, result })
    }

    /// A product that a kernel computes. Both operands are matrices or batches of them.
    fn dense_product(
        &mut self,
        a: TensorId,
        b: TensorId,
        transposed: bool,
        shape: &Shape,
        out: DType,
    ) -> Result<TensorId> {
        let batch: Size = shape.batch.iter().product();
        let own = |b: &Self, id: TensorId| b.sizes(id)[..b.rank(id) - 2].iter().product::<Size>();
        let (lhs, rhs) = (self.element(a).storage(), self.element(b).storage());
        let mut made = MatMul {
            lhs,
            rhs,
            rhs_transposed: transposed,
            ..MatMul::new(shape.m, shape.n, shape.k, lhs, out)
        };
        let (a, b) = if own(self, b) == 1 {
            // One right operand: the rows of all left ones are those of one matrix.
            made.m = shape.m * batch;
            (a, b)
        } else {
            made.batch = batch;
            (self.whole_batch(a, &shape.batch)?, self.whole_batch(b, &shape.batch)?)
        };
        let mut dims = shape.batch.clone();
        dims.extend([shape.m, shape.n]);
        self.kernel1(Operation::MatMul(made), &[a, b], out.into(), &dims)
    }

    /// Matrices repeated for each of a batch.
    fn whole_batch(&mut self, tensor: TensorId, batch: &[Size]) -> Result<TensorId> {
        let own = self.sizes(tensor);
        let dims: Vec<Size> = batch.iter().chain(&own[own.len() - 2..]).copied().collect();
        self.expand_to(tensor, &dims)
    }

    /// Sums of products that no kernel computes as a matrix product: of integers that are not `i8`. They are computed in 32
    /// bits, so that values of 64 bits wrap.
    fn integer_product(
        &mut self,
        a: TensorId,
        b: TensorId,
        transposed: bool,
        shape: &Shape,
    ) -> Result<TensorId> {
        let element = self.element(a);
        if self.element(b) != element {
            return Err(self.invalid(format!("a product of {}", self.describe(&[a, b]))));
        }
        let products = shape.batch.iter().product::<Size>() * shape.m * shape.n * shape.k;
        if products > MOST_PRODUCTS {
            let what = self.describe(&[a, b]);
            return Err(
                self.unsupported(format!("a product of {what}: integers but i8 have small products only"))
            );
        }
        let (a, b) = (self.cast(a, DType::I32)?, self.cast(b, DType::I32)?);
        let b = if transposed { b } else { self.swap_last(b)? };
        let insert = |dims: &[Size], at: usize| {
            let mut dims = dims.to_vec();
            dims.insert(dims.len() - at, 1.into());
            dims
        };
        let (a_dims, b_dims) = (insert(self.sizes(a), 1), insert(self.sizes(b), 2));
        let (a, b) = (self.reshape_to(a, &a_dims)?, self.reshape_to(b, &b_dims)?);
        let products = self.binary(Function::Mul, a, b)?;
        let axis = self.rank(products) - 1;
        let sums = self.reduce(ReduceKind::Sum, products, &[axis], false)?;
        self.cast(sums, element)
    }

    /// The last two dimensions in the other order.
    pub fn swap_last(&mut self, tensor: TensorId) -> Result<TensorId> {
        let rank = self.rank(tensor);
        if rank < 2 {
            return Err(self.invalid(format!("{} is no matrix", self.describe(&[tensor]))));
        }
        let mut order: Vec<usize> = (0..rank).collect();
        order.swap(rank - 2, rank - 1);
        self.transpose(tensor, &order)
    }

    /// The columns of a matrix as rows: of a constant at once, whatever its size. What is computed when a version of a model is
    /// loaded is its own, while all versions on a device share constants.
    ///
    /// # Errors
    /// It is no matrix, or the constants that are computed are too many.
    pub fn turned(&mut self, matrix: TensorId) -> Result<TensorId> {
        let (known, element) = (self.tensor(matrix).constant.clone(), self.element(matrix));
        let Some(bytes) = known else { return self.swap_last(matrix) };
        let (name, dims) = (self.tensor(matrix).name.clone(), self.dims(matrix).to_vec());
        let size = element.storage().size();
        let whole = elements(&dims).checked_mul(size) == Some(bytes.len() as u64);
        let ([rows, columns], true) = (&dims[..], whole) else { return self.swap_last(matrix) };
        self.spend(Cost::Constant, bytes.len() as u64)?;
        let (width, size) = ((columns * size) as usize, size as usize);
        let mut made = Vec::with_capacity(bytes.len());
        for place in (0..width).step_by(size.max(1)) {
            for row in bytes.chunks_exact(width) {
                made.extend_from_slice(&row[place..place + size]);
            }
        }
        self.constant(&format!("turned {name}"), element, &[*columns, *rows], made.into())
    }
}
