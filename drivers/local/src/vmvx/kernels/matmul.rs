//! The matrix product of tiles.

use std::{
    num::Wrapping,
    ops::{Add, Mul},
};

use halite_abi::{Result, bail};
use halite_vm::{Arguments, Results};

use super::region::{Region, Size, count, product, scratch};

/// The element types, in the low byte of the flags.
const TYPE_MASK: u32 = 0xFF;
const F32: u32 = 1;
const S8_S32: u32 = 2;
/// The result is added to what `out` holds.
const ACCUMULATE: u32 = 0x100;

/// Tile sizes that a dimension of a tile may have at most.
const MAX_TILE: i32 = 0x7FFF;

/// Numbers of tiles (`m`, `n`, `k`) and their sizes (`m0`, `n0`, `k0`).
#[derive(Clone, Copy, Debug)]
struct Shape {
    m: usize,
    n: usize,
    k: usize,
    m0: usize,
    n0: usize,
    k0: usize,
}

impl Shape {
    fn read(args: &mut Arguments) -> Result<Self> {
        let mut tiles = || count("number of tiles", args.i64()?);
        let (m, n, k) = (tiles()?, tiles()?, tiles()?);
        let mut tile = || match args.i32()? {
            size @ 0..=MAX_TILE => Ok(size as usize),
            size => bail!(InvalidArgument, "tile size {size} is not in the range 0 to {MAX_TILE}"),
        };
        Ok(Shape { m, n, k, m0: tile()?, n0: tile()?, k0: tile()? })
    }
}

/// `out[i][j] = (out[i][j] +) sum over k of lhs[i][k] * transposed(rhs[j][k])`, where each is a tile: `lhs` is
/// m x k tiles of m0 x k0, `rhs` is n x k tiles of n0 x k0, `out` is m x n tiles of m0 x n0. All but the outermost
/// dimension are dense.
pub(super) fn mmt4d(args: &mut Arguments, _: &mut Results) -> Result<()> {
    let mut panels = || Region::read(args, 1, [None, Some(1)]);
    let (lhs, rhs, out) = (panels()?, panels()?, panels()?);
    let shape = Shape::read(args)?;
    let flags = args.i32()?.cast_unsigned();
    let width = match flags & TYPE_MASK {
        F32 => 4,
        S8_S32 => 1,
        other => bail!(InvalidArgument, "element types {other:#x}; f32 (1) and i8 to i32 (2) are possible"),
    };
    let (lhs, rhs, out) = (lhs.with_width(width), rhs.with_width(width), out.with_width(4));
    let lhs_size = Size { rows: shape.m, columns: product("panel", &[shape.k, shape.m0, shape.k0])? };
    let rhs_size = Size { rows: shape.n, columns: product("panel", &[shape.k, shape.n0, shape.k0])? };
    let out_size = Size { rows: shape.m, columns: product("row", &[shape.n, shape.m0, shape.n0])? };
    if out_size.is_empty() || (shape.k == 0 && flags & ACCUMULATE != 0) {
        return Ok(());
    }
    lhs.check(lhs_size)?;
    rhs.check(rhs_size)?;
    out.check(out_size)?;
    let product = Product { shape, lhs, rhs, out, accumulate: flags & ACCUMULATE != 0 };
    if width == 4 {
        product.run(args, f32::from_le_bytes, f32::from_le_bytes, f32::to_le_bytes)
    } else {
        let widen = |byte| Wrapping(i32::from(i8::from_le_bytes(byte)));
        product.run(args, widen, |word| Wrapping(i32::from_le_bytes(word)), |sum| sum.0.to_le_bytes())
    }
}

/// A product whose regions were checked.
struct Product {
    shape: Shape,
    lhs: Region,
    rhs: Region,
    out: Region,
    accumulate: bool,
}

impl Product {
    /// Computes in numbers of type `T`, that `element` makes of the operands, and `load` and `store` of the result.
    fn run<T: Copy + Default + Add<Output = T> + Mul<Output = T>, const N: usize>(
        &self,
        args: &Arguments,
        element: impl Fn([u8; N]) -> T,
        load: impl Fn([u8; 4]) -> T,
        store: impl Fn(T) -> [u8; 4],
    ) -> Result<()> {
        let Shape { m, n, k, m0, n0, k0 } = self.shape;
        let (mut lhs_bytes, mut rhs_bytes) = (scratch(k * m0 * k0 * N)?, scratch(k * n0 * k0 * N)?);
        let mut out_bytes = scratch(m0 * n0 * 4)?;
        let (mut lhs, mut rhs, mut out) = (Vec::new(), Vec::new(), Vec::new());
        for i in 0..m {
            self.lhs.load(i, 0, &mut lhs_bytes)?;
            lhs.clear();
            lhs.extend(lhs_bytes.as_chunks().0.iter().map(|bytes| element(*bytes)));
            for j in 0..n {
                args.invocation().check()?;
                self.rhs.load(j, 0, &mut rhs_bytes)?;
                rhs.clear();
                rhs.extend(rhs_bytes.as_chunks().0.iter().map(|bytes| element(*bytes)));
                out.clear();
                if self.accumulate {
                    self.out.load(i, j * m0 * n0, &mut out_bytes)?;
                    out.extend(out_bytes.as_chunks().0.iter().map(|bytes| load(*bytes)));
                } else {
                    out.resize(m0 * n0, T::default());
                }
                multiply(self.shape, &lhs, &rhs, &mut out);
                for (bytes, sum) in out_bytes.as_chunks_mut().0.iter_mut().zip(&out) {
                    *bytes = store(*sum);
                }
                self.out.store(i, j * m0 * n0, &out_bytes)?;
            }
        }
        Ok(())
    }
}

/// Adds the product of two panels to a tile, in the order of k.
fn multiply<T: Copy + Add<Output = T> + Mul<Output = T>>(shape: Shape, lhs: &[T], rhs: &[T], out: &mut [T]) {
    let Shape { m0, n0, k0, .. } = shape;
    if m0 == 0 || n0 == 0 || k0 == 0 {
        return;
    }
    for (lhs, rhs) in lhs.chunks_exact(m0 * k0).zip(rhs.chunks_exact(n0 * k0)) {
        for (lhs, out) in lhs.chunks_exact(k0).zip(out.chunks_exact_mut(n0)) {
            if let [a] = lhs {
                // The usual depth of f32 tiles, in a form that is computed several at a time.
                out.iter_mut().zip(rhs).for_each(|(sum, b)| *sum = *sum + *a * *b);
                continue;
            }
            for (sum, rhs) in out.iter_mut().zip(rhs.chunks_exact(k0)) {
                *sum = lhs.iter().zip(rhs).fold(*sum, |sum, (a, b)| sum + *a * *b);
            }
        }
    }
}

/// What a matrix is in a product, in the low byte of the flags.
const ROLE_MASK: u32 = 0xFF;
/// Which product, in the next byte.
const OPERATION_MASK: u32 = 0xFF00;
const OPERATION_F32: u32 = 0x100;
const OPERATION_I8: u32 = 0x200;
const OPERATION_LAST: u32 = 0x600;

/// Sizes of tiles that suit the processor, for a matrix of a product. Any are correct as long as the three matrices
/// agree.
pub(super) fn query_tile_sizes(args: &mut Arguments, results: &mut Results) -> Result<()> {
    let _size = (args.i64()?, args.i64()?);
    let flags = args.i32()?.cast_unsigned();
    let (m, n, k) = match flags & OPERATION_MASK {
        OPERATION_F32 => (8, 8, 1),
        OPERATION_I8 => (8, 8, 2),
        operation if operation > OPERATION_I8 && operation <= OPERATION_LAST => (8, 8, 4),
        other => bail!(InvalidArgument, "operation {other:#x} is no matrix product"),
    };
    let (rows, columns) = match flags & ROLE_MASK {
        1 => (m, k),
        2 => (n, k),
        3 => (m, n),
        other => bail!(InvalidArgument, "role {other:#x} is none of lhs (1), rhs (2), result (3)"),
    };
    results.i64(rows);
    results.i64(columns);
    Ok(())
}
