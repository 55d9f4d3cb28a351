//! Bringing matrices into tiles and back.

use halite_abi::{Result, bail};
use halite_vm::{Arguments, Results};

use super::region::{Region, Size, count, product, scratch};

/// The element type, in the low byte of the flags.
const TYPE_MASK: u32 = 0xFF;
const F32: u32 = 1;
const I8: u32 = 2;
const I32: u32 = 3;
/// Elements within a tile are stored column by column.
const TRANSPOSE_INNER: u32 = 0x100;
/// Tiles are stored column by column.
const TRANSPOSE_OUTER: u32 = 0x200;

/// How a matrix is cut into tiles: as the matrix sees it, and where each tile is stored.
#[derive(Clone, Copy, Debug)]
struct Layout {
    /// Rows and columns of tiles.
    outer: [usize; 2],
    /// Rows and columns of a tile.
    tile: [usize; 2],
    transpose_inner: bool,
    transpose_outer: bool,
}

impl Layout {
    /// From the four sizes as they are stored.
    fn new(sizes: [usize; 4], flags: u32) -> Self {
        let [mut outer, mut tile] = [[sizes[0], sizes[1]], [sizes[2], sizes[3]]];
        let (transpose_inner, transpose_outer) = (flags & TRANSPOSE_INNER != 0, flags & TRANSPOSE_OUTER != 0);
        if transpose_outer {
            outer.reverse();
        }
        if transpose_inner {
            tile.reverse();
        }
        Layout { outer, tile, transpose_inner, transpose_outer }
    }

    /// Size of the stored form as rows of tiles.
    fn stored(sizes: [usize; 4]) -> Result<Size> {
        Ok(Size { rows: sizes[0], columns: product("row of tiles", &sizes[1..])? })
    }

    fn tile_elements(self) -> usize {
        self.tile[0] * self.tile[1]
    }

    /// Row and column of the stored form at which a tile begins.
    fn place(self, row: usize, column: usize) -> (usize, usize) {
        let (row, column) = if self.transpose_outer { (column, row) } else { (row, column) };
        (row, column * self.tile_elements())
    }

    /// Position of an element within its stored tile.
    fn inner(self, row: usize, column: usize) -> usize {
        if self.transpose_inner { column * self.tile[0] + row } else { row * self.tile[1] + column }
    }
}

fn sizes<const N: usize>(args: &mut Arguments) -> Result<[usize; N]> {
    let mut sizes = [0; N];
    for size in &mut sizes {
        *size = count("size", args.i64()?)?;
    }
    Ok(sizes)
}

fn width(flags: u32, with_bytes: bool) -> Result<usize> {
    match flags & TYPE_MASK {
        F32 | I32 => Ok(4),
        I8 if with_bytes => Ok(1),
        other => bail!(InvalidArgument, "element type {other:#x} cannot be brought into tiles or back"),
    }
}

/// Cuts a matrix into tiles: `(in, offset, strides x2, out, offset, strides x2, in sizes x2, out sizes x4, padding,
/// flags)`. What lies in tiles but beyond the matrix is padding.
pub(super) fn pack(args: &mut Arguments, _: &mut Results) -> Result<()> {
    let input = Region::read(args, 1, [None, None])?;
    let out = Region::read(args, 1, [None, None])?.dense();
    let [rows, columns] = sizes(args)?;
    let stored = sizes::<4>(args)?;
    let padding = args.i64()?.to_le_bytes();
    let flags = args.i32()?.cast_unsigned();
    let width = width(flags, true)?;
    let (input, out) = (input.with_width(width), out.with_width(width));
    let (layout, size) = (Layout::new(stored, flags), Size { rows, columns });
    let stored = Layout::stored(stored)?;
    input.check(size)?;
    out.check(stored)?;
    if stored.is_empty() {
        return Ok(());
    }
    let mut tile = scratch(layout.tile_elements() * width)?;
    let mut line = scratch(layout.tile[1].min(columns) * width)?;
    for row in 0..layout.outer[0] {
        for column in 0..layout.outer[1] {
            args.invocation().check()?;
            tile.chunks_exact_mut(width).for_each(|element| element.copy_from_slice(&padding[..width]));
            let part = Part::of(layout, size, row, column);
            for inner in 0..part.rows {
                let line = &mut line[..part.columns * width];
                input.load(part.first_row + inner, part.first_column, line)?;
                for (i, element) in line.chunks_exact(width).enumerate() {
                    tile[layout.inner(inner, i) * width..][..width].copy_from_slice(element);
                }
            }
            let place = layout.place(row, column);
            out.store(place.0, place.1, &tile)?;
        }
    }
    Ok(())
}

/// The reverse: `(in, offset, strides x2, out, offset, strides x2, in sizes x4, out sizes x2, flags)`. Padding is left
/// out.
pub(super) fn unpack(args: &mut Arguments, _: &mut Results) -> Result<()> {
    let input = Region::read(args, 1, [None, None])?.dense();
    let out = Region::read(args, 1, [None, None])?;
    let stored = sizes::<4>(args)?;
    let [rows, columns] = sizes(args)?;
    let flags = args.i32()?.cast_unsigned();
    let width = width(flags, false)?;
    let (input, out) = (input.with_width(width), out.with_width(width));
    let (layout, size) = (Layout::new(stored, flags), Size { rows, columns });
    let stored = Layout::stored(stored)?;
    input.check(stored)?;
    out.check(size)?;
    if stored.is_empty() || size.is_empty() {
        return Ok(());
    }
    let mut tile = scratch(layout.tile_elements() * width)?;
    let mut line = scratch(layout.tile[1].min(columns) * width)?;
    for row in 0..layout.outer[0] {
        for column in 0..layout.outer[1] {
            args.invocation().check()?;
            let part = Part::of(layout, size, row, column);
            let place = layout.place(row, column);
            input.load(place.0, place.1, &mut tile)?;
            for inner in 0..part.rows {
                let line = &mut line[..part.columns * width];
                for (i, element) in line.chunks_exact_mut(width).enumerate() {
                    element.copy_from_slice(&tile[layout.inner(inner, i) * width..][..width]);
                }
                out.store(part.first_row + inner, part.first_column, line)?;
            }
        }
    }
    Ok(())
}

/// The part of a tile that lies within the matrix.
struct Part {
    first_row: usize,
    first_column: usize,
    rows: usize,
    columns: usize,
}

impl Part {
    fn of(layout: Layout, size: Size, row: usize, column: usize) -> Self {
        let (first_row, first_column) =
            (row.saturating_mul(layout.tile[0]), column.saturating_mul(layout.tile[1]));
        Part {
            first_row,
            first_column,
            rows: size.rows.saturating_sub(first_row).min(layout.tile[0]),
            columns: size.columns.saturating_sub(first_column).min(layout.tile[1]),
        }
    }
}
