//! Two-dimensional regions of buffers: bounds, and moving rows between a buffer and host memory.

use std::sync::Arc;

use halite_abi::{Result, bail, status};
use halite_vm::{Arguments, Buffer};

/// Rows and columns, in elements. IREE's limit of 32 bits for each keeps products small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub rows: usize,
    pub columns: usize,
}

impl Size {
    /// Sizes from a program. INVALID_ARGUMENT when negative or beyond 32 bits.
    pub fn new(rows: i64, columns: i64) -> Result<Self> {
        Ok(Size { rows: count("size", rows)?, columns: count("size", columns)? })
    }

    /// Whether there are no elements.
    pub fn is_empty(self) -> bool {
        self.rows == 0 || self.columns == 0
    }
}

/// A count, offset or stride from a program. INVALID_ARGUMENT when negative or beyond 32 bits.
pub(super) fn count(what: &str, value: i64) -> Result<usize> {
    let fits = u32::try_from(value).ok().and_then(|v| usize::try_from(v).ok());
    fits.ok_or_else(|| status!(InvalidArgument, "{what} {value} is not in the range 0 to 2^32 - 1"))
}

/// The product of some counts. INVALID_ARGUMENT when it is beyond 32 bits.
pub(super) fn product(what: &str, factors: &[usize]) -> Result<usize> {
    let product = factors.iter().try_fold(1_usize, |all, factor| all.checked_mul(*factor));
    match product {
        Some(product) if u32::try_from(product).is_ok() => Ok(product),
        _ => bail!(InvalidArgument, "{what} of {factors:?} elements is beyond 2^32 - 1"),
    }
}

/// Where elements lie in a buffer: element (i, j) is at `offset + i * strides[0] + j * strides[1]`, in elements.
#[derive(Clone, Debug)]
pub(super) struct Region {
    buffer: Arc<Buffer>,
    offset: i64,
    strides: [usize; 2],
    width: usize,
}

impl Region {
    /// Reads the arguments buffer, offset, and the strides that are not given.
    pub fn read(args: &mut Arguments, width: usize, strides: [Option<usize>; 2]) -> Result<Self> {
        let buffer = args.object::<Buffer>("vm.buffer")?;
        let offset = args.i64()?;
        let mut stride = |given: Option<usize>| given.map_or_else(|| count("stride", args.i64()?), Ok);
        let strides = [stride(strides[0])?, stride(strides[1])?];
        Ok(Region { buffer, offset, strides, width })
    }

    /// The same place seen as elements of another width.
    pub fn with_width(self, width: usize) -> Self {
        Region { width, ..self }
    }

    /// The same place with consecutive elements in a row, whatever the inner stride was said to be.
    pub fn dense(self) -> Self {
        Region { strides: [self.strides[0], 1], ..self }
    }

    /// OUT_OF_RANGE unless all elements of this size exist.
    pub fn check(&self, size: Size) -> Result<()> {
        if size.is_empty() {
            return Ok(());
        }
        let length = || {
            let rows = (size.rows as u64 - 1).checked_mul(self.strides[0] as u64)?;
            let columns = (size.columns as u64 - 1).checked_mul(self.strides[1] as u64)?;
            let last = u64::try_from(self.offset).ok()?.checked_add(rows)?.checked_add(columns)?;
            last.checked_add(1)?.checked_mul(self.width as u64)
        };
        if length().is_none_or(|length| length > self.buffer.len()) {
            bail!(
                OutOfRange,
                "{}x{} elements of {} bytes with strides {:?} at offset {} do not fit in a buffer of {} bytes",
                size.rows,
                size.columns,
                self.width,
                self.strides,
                self.offset,
                self.buffer.len()
            );
        }
        Ok(())
    }

    /// Byte offset of an element that [`Region::check`] has covered.
    fn at(&self, row: usize, column: usize) -> u64 {
        let index = self.offset.cast_unsigned() + (row * self.strides[0] + column * self.strides[1]) as u64;
        index * self.width as u64
    }

    /// Copies consecutive elements of a row to `target`, which says how many.
    pub fn load(&self, row: usize, column: usize, target: &mut [u8]) -> Result<()> {
        if target.is_empty() {
            return Ok(());
        }
        match self.strides[1] {
            1 => self.buffer.read_at(self.at(row, column), target),
            0 if target.len() > self.width => {
                let (first, rest) = target.split_at_mut(self.width);
                self.buffer.read_at(self.at(row, column), first)?;
                rest.chunks_exact_mut(self.width).for_each(|element| element.copy_from_slice(first));
                Ok(())
            }
            _ => target
                .chunks_exact_mut(self.width)
                .enumerate()
                .try_for_each(|(i, element)| self.buffer.read_at(self.at(row, column + i), element)),
        }
    }

    /// Copies `source` to consecutive elements of a row.
    pub fn store(&self, row: usize, column: usize, source: &[u8]) -> Result<()> {
        if source.is_empty() {
            return Ok(());
        }
        if self.strides[1] == 1 {
            return self.buffer.write_at(self.at(row, column), source);
        }
        source
            .chunks_exact(self.width)
            .enumerate()
            .try_for_each(|(i, element)| self.buffer.write_at(self.at(row, column + i), element))
    }
}

/// Bytes of elements that are moved at a time.
pub(super) const PIECE: usize = 4096;

/// Calls `step` with row, column and number of elements of each piece, and looks at the clock in between.
pub(super) fn in_pieces(
    args: &Arguments,
    size: Size,
    width: usize,
    mut step: impl FnMut(usize, usize, usize) -> Result<()>,
) -> Result<()> {
    if size.is_empty() {
        return Ok(());
    }
    let most = PIECE / width;
    let mut until_check = 0;
    for row in 0..size.rows {
        let mut column = 0;
        while column < size.columns {
            let elements = (size.columns - column).min(most);
            if elements >= until_check {
                args.invocation().check()?;
                until_check = most * 16;
            }
            until_check -= elements;
            step(row, column, elements)?;
            column += elements;
        }
    }
    Ok(())
}

/// Zeroed scratch memory. Sizes are those of regions that exist, so buffers bound them.
pub(super) fn scratch(bytes: usize) -> Result<Vec<u8>> {
    halite_abi::room::zeros(bytes)
        .map_err(|e| status!(ResourceExhausted, "{bytes} bytes of scratch memory: {e}"))
}
