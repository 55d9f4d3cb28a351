//! Weights that are folded with Hadamard matrices (`prism.hadamard.*`): rows are turned before a product with them, so that the product is
//! what it was, and rows that are looked up in folded tables are turned back.
//!
//! A row is cut into blocks. To turn it, its elements get signs, and each block is multiplied with Sylvester's matrix, whose elements are
//! plus or minus one, over the root of its size. The matrix is its own inverse, so turning back is the same in the other order.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use halite_formats::gguf::{Array, Value};
use halite_ops::{DType, blocks::BlockFormat, expression::Function};
use halite_sizes::Size;

use super::{
    Result,
    errors::{invalid, unsupported},
};
use crate::{
    build::{Builder, RowFormat, RowMatrix},
    graph::TensorId,
};

/// The beginning of keys that tell of such weights.
const PREFIX: &str = "prism.hadamard.";
const TRANSFORM: &str = "normalized-sylvester-walsh-hadamard";
const AXIS: &str = "input-last-dimension";
const TABLE: &str = "token_embd.weight";
const HEAD: &str = "output.weight";
/// Most elements of a block.
const MOST: u64 = 1 << 13;

/// What is folded, and how.
#[derive(Debug)]
pub(super) struct Folds {
    /// Elements of a block.
    block: u64,
    /// Signs by the length of rows, times what makes the matrix keep lengths; without lists of signs none.
    signs: Option<HashMap<u64, Bytes>>,
    /// Names of weights before which rows are turned.
    before: HashSet<String>,
    /// Whether rows of the table of tokens are turned back.
    table: bool,
    /// Lengths of the parts of rows of linear attention, `[outer, inner]` groups of value heads as layers make them, which come the other
    /// way round in folded weights.
    grouped: Option<[u64; 2]>,
}

/// What is read of a model's files: metadata by their keys, and dimensions of tensors, the outermost first.
pub(super) trait Described {
    /// A value of the metadata.
    fn value(&self, key: &str) -> Option<&Value>;
    /// Whether a key begins so.
    fn has_prefix(&self, prefix: &str) -> bool;
    /// A tensor's dimensions.
    fn dims(&self, name: &str) -> Option<&[u64]>;
}

/// The keys.
struct Keys<'a>(&'a dyn Described);

impl<'a> Keys<'a> {
    fn value(&self, name: &str) -> Option<&'a Value> {
        self.0.value(&format!("{PREFIX}{name}"))
    }

    fn wrong(name: &str, what: &str) -> crate::CompileError {
        invalid(format!("the metadata key '{PREFIX}{name}' is {what}"))
    }

    fn count(&self, name: &str) -> Result<u64> {
        match self.value(name) {
            Some(Value::Int(count)) => u64::try_from(*count).map_err(|_| Self::wrong(name, "no count")),
            _ => Err(Self::wrong(name, "no count")),
        }
    }

    fn flag(&self, name: &str) -> Result<bool> {
        match self.value(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(Self::wrong(name, "neither true nor false")),
        }
    }

    /// Which of some texts a key has.
    fn one_of(&self, name: &str, known: &[&str]) -> Result<usize> {
        let Some(Value::Text(own)) = self.value(name) else { return Err(Self::wrong(name, "no text")) };
        known.iter().position(|known| own == known).ok_or_else(|| {
            unsupported(format!("'{PREFIX}{name}' is '{own}'; there are: {}", known.join(", ")))
        })
    }

    fn array(&self, name: &str) -> Result<Option<&'a Array>> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::Array(array)) => Ok(Some(array)),
            Some(_) => Err(Self::wrong(name, "no list")),
        }
    }

    fn names(&self, name: &str) -> Result<HashSet<String>> {
        let Some(array) = self.array(name)? else { return Ok(HashSet::new()) };
        let all: HashSet<String> =
            array.texts().map(|text| String::from_utf8_lossy(text).into_owned()).collect();
        match all.len() as u64 == array.len() {
            true => Ok(all),
            false => Err(Self::wrong(name, "no list of names, or names one twice")),
        }
    }

    fn numbers(&self, name: &str) -> Result<Vec<i64>> {
        let Some(array) = self.array(name)? else { return Err(Self::wrong(name, "missing")) };
        let number = |value: Value| match value {
            Value::Int(value) => i64::try_from(value).ok(),
            _ => None,
        };
        let all: Option<Vec<i64>> = array.scalars().map(number).collect();
        let all = all.filter(|all| all.len() as u64 == array.len());
        all.ok_or_else(|| Self::wrong(name, "no list of numbers"))
    }

    /// Signs by the length of rows, if there are lists of them.
    fn signs(&self, block: u64) -> Result<Option<HashMap<u64, Bytes>>> {
        if self.one_of("sign_mode", &["identity", "explicit"])? == 0 {
            return Ok(None);
        }
        let (widths, values) = (self.numbers("sign_widths")?, self.numbers("sign_values")?);
        let (mut all, mut rest) = (HashMap::new(), &values[..]);
        for width in widths {
            let length = u64::try_from(width).ok().filter(|width| *width > 0 && width.is_multiple_of(block));
            let taken = length.and_then(|length| rest.split_at_checked(usize::try_from(length).ok()?));
            let (Some(length), Some((own, behind))) = (length, taken) else {
                let what = format!("{width} long, in blocks of {block}, with {} signs left", rest.len());
                return Err(Self::wrong("sign_widths", &what));
            };
            if own.iter().any(|sign| ![1, -1].contains(sign)) {
                return Err(Self::wrong("sign_values", "not of 1 and -1 alone"));
            }
            if all.insert(length, scaled(own.iter().map(|sign| *sign as f32), block)).is_some() {
                return Err(Self::wrong("sign_widths", "a list with one length twice"));
            }
            rest = behind;
        }
        match rest.is_empty() && !all.is_empty() {
            true => Ok(Some(all)),
            false => Err(Self::wrong("sign_values", "of another number than 'sign_widths' in sum")),
        }
    }
}

/// Signs times what makes the matrix of a block keep lengths.
fn scaled(signs: impl Iterator<Item = f32>, block: u64) -> Bytes {
    let scale = (1.0 / (block as f64).sqrt()) as f32;
    signs.flat_map(|sign| (sign * scale).to_le_bytes()).collect::<Vec<u8>>().into()
}

impl Folds {
    /// Reads what the metadata say, if they say something.
    pub fn read(file: &impl Described) -> Result<Option<Folds>> {
        if !file.has_prefix(PREFIX) {
            return Ok(None);
        }
        let keys = Keys(file);
        let (version, tied) = (keys.count("version")?, keys.flag("tied_output")?);
        if ![1, 2].contains(&version) {
            return Err(unsupported(format!("'{PREFIX}version' is {version}; there are 1 and 2")));
        }
        let block = keys.count("block_size")?;
        if !block.is_power_of_two() {
            return Err(Keys::wrong("block_size", &format!("{block}, and no power of two")));
        }
        if block > MOST {
            return Err(unsupported(format!("'{PREFIX}block_size' is {block}; blocks have up to {MOST}")));
        }
        keys.one_of("transform", &[TRANSFORM])?;
        keys.one_of("axis", &[AXIS])?;
        let (mut before, back) = (keys.names("weight_names")?, keys.names("inverse_weight_names")?);
        if before.is_empty() {
            return Err(Keys::wrong("weight_names", "empty, or missing"));
        }
        if let Some(name) = back.iter().find(|name| *name != TABLE) {
            return Err(unsupported(format!(
                "rows of '{name}' that are turned back ('{PREFIX}inverse_weight_names')"
            )));
        }
        let table = !back.is_empty();
        let is_last = table && file.dims(HEAD).is_none();
        if (version == 2) != tied || tied && !is_last || is_last && !tied {
            return Err(invalid(format!(
                "'{PREFIX}version' is 2 where 'tied_output' is true, and '{TABLE}' is folded and the last matrix, too"
            )));
        }
        let all = before.iter().chain(&back);
        for name in all {
            let Some(length) = file.dims(name).and_then(|dims| dims.last()) else {
                return Err(invalid(format!("there is no tensor '{name}' ('{PREFIX}weight_names')")));
            };
            if !length.is_multiple_of(block) {
                return Err(invalid(format!("rows of '{name}' of {length} elements, in blocks of {block}")));
            }
        }
        if tied {
            before.insert(TABLE.to_owned());
        }
        let grouped = if keys.flag("gdn_v_grouped")? { value_heads(file)? } else { None };
        Ok(Some(Folds { block, signs: keys.signs(block)?, before, table, grouped }))
    }

    /// Whether rows are turned before a product with these weights.
    pub fn is_before(&self, name: &str) -> bool {
        self.before.contains(name)
    }

    /// Whether rows of a table are turned back.
    pub fn is_table(&self, name: &str) -> bool {
        self.table && name == TABLE
    }

    /// Whether heads of rows before these weights come in another order.
    pub fn is_grouped(&self, name: &str) -> bool {
        self.grouped.is_some() && name.ends_with(".ssm_out.weight")
    }

    /// `x` with the heads of its rows in the order that folded weights have.
    pub fn in_groups(&self, b: &mut Builder, x: TensorId) -> Result<TensorId> {
        let Some([outer, inner]) = self.grouped else { return Ok(x) };
        let [rows, width] = b.sizes(x)[..] else { return Err(b.invalid("no rows to turn")) };
        let length = width.exact();
        if !length.is_multiple_of(outer * inner) {
            let what = format!("rows of {length} elements, of {outer} times {inner} heads");
            return Err(invalid(what));
        }
        let parts = [rows, outer.into(), inner.into(), (length / outer / inner).into()];
        let made = b.reshape_to(x, &parts)?;
        let made = b.transpose(made, &[0, 2, 1, 3])?;
        b.reshape_to(made, &[rows, width])
    }

    /// `x` times the signs of its rows.
    pub fn signed(&self, b: &mut Builder, x: TensorId, name: &str) -> Result<TensorId> {
        let width = b.sizes(x).last().map_or(0, |width| width.exact());
        let signs = match &self.signs {
            None => scaled(std::iter::repeat_n(1.0, width as usize), self.block),
            Some(all) => all.get(&width).cloned().ok_or_else(|| {
                invalid(format!("'{PREFIX}sign_widths' has no signs of {width} elements, as '{name}' needs"))
            })?,
        };
        let signs = b.constant("signs", DType::F32.into(), &[width], signs)?;
        b.binary(Function::Mul, x, signs)
    }

    /// `x` with each block of its rows times the matrix of plus and minus ones.
    pub fn multiplied(&self, b: &mut Builder, x: TensorId) -> Result<TensorId> {
        let dims = b.sizes(x).to_vec();
        if self.block == 1 {
            return Ok(x);
        }
        let Some((width, rows)) = dims.split_last() else { return Err(b.invalid("no rows to turn")) };
        let each = Size::from(width.exact() / self.block);
        let blocks = rows.iter().fold(each, |all, rows| all * *rows);
        let apart = b.reshape_to(x, &[blocks, self.block.into()])?;
        let matrix = sylvester(b, self.block)?;
        let made = b.row_product(apart, &matrix)?;
        b.reshape_to(made, &dims)
    }
}

/// Groups of value heads of linear attention, and the groups' key heads, as layers make them: `[heads of a group, groups]`.
fn value_heads(file: &impl Described) -> Result<Option<[u64; 2]>> {
    let Some(Value::Text(name)) = file.value("general.architecture") else { return Ok(None) };
    let count = |key: &str| match file.value(&format!("{name}.ssm.{key}")) {
        Some(Value::Int(count)) => u64::try_from(*count).ok().filter(|count| (1..1 << 20).contains(count)),
        _ => None,
    };
    match (count("time_step_rank"), count("group_count")) {
        (Some(values), Some(keys)) if values.is_multiple_of(keys) => {
            Ok(Some([values / keys, keys]).filter(|[each, _]| *each > 1))
        }
        (None, None) => Ok(None),
        _ => Err(Keys::wrong("gdn_v_grouped", "true, and value heads are no groups of key heads")),
    }
}

/// Sylvester's matrix of a size, of plus and minus ones: a bit of each where rows have whole blocks of bits.
fn sylvester(b: &mut Builder, size: u64) -> Result<RowMatrix> {
    const BITS: u64 = 128;
    const ONE: [u8; 2] = [0x00, 0x3C];
    let is_plus = |row: u64, column: u64| (row & column).count_ones().is_multiple_of(2);
    let mut bytes = Vec::new();
    let format = if size.is_multiple_of(BITS) {
        for start in (0..size * size).step_by(8) {
            let (row, column) = (start / size, start % size);
            if column.is_multiple_of(BITS) {
                bytes.extend(ONE);
            }
            bytes.push((0..8).fold(0, |byte, bit| byte | u8::from(is_plus(row, column + bit)) << bit));
        }
        RowFormat::Blocks(BlockFormat::Q1_0)
    } else {
        let all =
            (0..size * size).map(|place| if is_plus(place / size, place % size) { 1.0f32 } else { -1.0 });
        bytes.extend(all.flat_map(f32::to_le_bytes));
        RowFormat::Floats(DType::F32)
    };
    b.row_matrix("sylvester", format, [size, size], &bytes.into())
}
