//! Owns changing which bindings SPIR-V uses: variables move to other bindings, several to the same one, each from an offset
//! on. Does not own: which.
//!
//! Opcodes and layout: SPIR-V specification, <https://registry.khronos.org/SPIR-V/specs/unified1/SPIRV.html>.

use std::collections::{HashMap, HashSet};

use crate::{Module, Unfit};

/// Where a binding goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The new binding.
    pub binding: u32,
    /// Bytes from its start.
    pub offset: u64,
}

/// Words in front of the first instruction; the fourth is the bound of ids.
const HEADER: usize = 5;
const NAME: u32 = 5;
const MEMBER_NAME: u32 = 6;
const TYPE_INT: u32 = 21;
const TYPE_RUNTIME_ARRAY: u32 = 29;
const TYPE_STRUCT: u32 = 30;
const TYPE_POINTER: u32 = 32;
const CONSTANT: u32 = 43;
const FUNCTION: u32 = 54;
const FUNCTION_CALL: u32 = 57;
const VARIABLE: u32 = 59;
const LOAD: u32 = 61;
const STORE: u32 = 62;
const ACCESS_CHAIN: u32 = 65;
const IN_BOUNDS_ACCESS_CHAIN: u32 = 66;
const PTR_ACCESS_CHAIN: u32 = 67;
const ARRAY_LENGTH: u32 = 68;
const DECORATE: u32 = 71;
const MEMBER_DECORATE: u32 = 72;
const COPY_OBJECT: u32 = 83;
const I_ADD: u32 = 128;
const SELECT: u32 = 169;
const PHI: u32 = 245;
const DECORATION_ARRAY_STRIDE: u32 = 6;
const DECORATION_RESTRICT: u32 = 19;
const DECORATION_ALIASED: u32 = 20;
const DECORATION_BINDING: u32 = 33;

/// The code of a module with the variables of binding n at `places[n]`. Elements are those of one runtime array, the only
/// member of its block.
pub(super) fn rebind(module: &Module, places: &[Place]) -> Result<Vec<u32>, Unfit> {
    let words: Vec<u32> =
        module.to_bytes().as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    let code = Code::of(&words, places)?;
    code.rewritten(&words)
}

fn wrong(what: &str) -> Unfit {
    Unfit(format!("has code whose bindings cannot be moved: {what}"))
}

/// Instructions: opcode and all words of each.
fn instructions(words: &[u32]) -> impl Iterator<Item = (u32, &[u32])> {
    let mut at = HEADER;
    std::iter::from_fn(move || {
        let first = *words.get(at)?;
        let all = words.get(at..at + ((first >> 16) as usize).max(1))?;
        at += all.len();
        Some((first & 0xFFFF, all))
    })
}

/// What of a module matters here.
#[derive(Default)]
struct Code<'a> {
    /// The place of each variable.
    places: HashMap<u32, Place>,
    /// Bytes from element to element of each variable with an offset.
    strides: HashMap<u32, u64>,
    /// Variables that share a binding.
    aliased: HashSet<u32>,
    /// Integer types.
    ints: HashSet<u32>,
    /// Types of integers by id.
    types: HashMap<u32, u32>,
    /// Decorations, types and pointers by id.
    bindings: HashMap<u32, u32>,
    array_strides: HashMap<u32, u32>,
    defined: HashMap<u32, &'a [u32]>,
}

impl<'a> Code<'a> {
    fn of(words: &'a [u32], places: &[Place]) -> Result<Self, Unfit> {
        let mut code = Code::default();
        for (opcode, all) in instructions(words) {
            match (opcode, all) {
                (DECORATE, [_, id, DECORATION_BINDING, binding]) => {
                    code.bindings.insert(*id, *binding);
                }
                (DECORATE, [_, id, DECORATION_ARRAY_STRIDE, stride]) => {
                    code.array_strides.insert(*id, *stride);
                }
                (TYPE_INT, [_, id, 32, _]) => {
                    code.ints.insert(*id);
                }
                (TYPE_RUNTIME_ARRAY | TYPE_STRUCT | TYPE_POINTER, [_, id, ..]) => {
                    code.defined.insert(*id, all);
                }
                (VARIABLE, [_, pointer, id, ..]) => code.variable(*id, *pointer, places)?,
                (NAME | MEMBER_NAME | DECORATE | MEMBER_DECORATE, _) => {}
                (_, [_, ty, id, ..]) if code.ints.contains(ty) => {
                    code.types.insert(*id, *ty);
                }
                _ => {}
            }
        }
        let shared = |own: &Place| code.places.values().filter(|p| p.binding == own.binding).count() > 1;
        code.aliased = code.places.iter().filter(|(_, place)| shared(place)).map(|(id, _)| *id).collect();
        Ok(code)
    }

    fn variable(&mut self, id: u32, pointer: u32, places: &[Place]) -> Result<(), Unfit> {
        let Some(binding) = self.bindings.get(&id) else { return Ok(()) };
        let place = *places.get(*binding as usize).ok_or_else(|| wrong("there are more than are bound"))?;
        self.places.insert(id, place);
        if place.offset > 0 {
            let stride = self.stride(pointer).filter(|stride| place.offset.is_multiple_of(*stride));
            let stride = stride.ok_or_else(|| wrong("one is no array"))?;
            self.strides.insert(id, stride);
        }
        Ok(())
    }

    /// Bytes from element to element behind a pointer to a block of one array.
    fn stride(&self, pointer: u32) -> Option<u64> {
        let [_, _, _, block] = self.defined.get(&pointer)? else { return None };
        let [_, _, array] = self.defined.get(block)? else { return None };
        let [first, ..] = self.defined.get(array)? else { return None };
        let stride = self.array_strides.get(array).filter(|_| first & 0xFFFF == TYPE_RUNTIME_ARRAY)?;
        (*stride > 0).then_some(u64::from(*stride))
    }

    fn rewritten(&self, words: &[u32]) -> Result<Vec<u32>, Unfit> {
        let mut made = words[..HEADER.min(words.len())].to_vec();
        let mut constants: HashMap<(u32, u32), u32> = HashMap::new();
        let mut next = *words.get(3).ok_or_else(|| wrong("it is no module"))?;
        let mut body = Vec::new();
        let mut functions = None;
        for (opcode, all) in instructions(words) {
            if opcode == FUNCTION && functions.is_none() {
                functions = Some(body.len());
            }
            match (opcode, all) {
                (DECORATE, [head, id, DECORATION_BINDING, _]) if self.places.contains_key(id) => {
                    body.extend([*head, *id, DECORATION_BINDING, self.places[id].binding]);
                    if self.aliased.contains(id) {
                        body.extend([3 << 16 | DECORATE, *id, DECORATION_ALIASED]);
                    }
                }
                (DECORATE, [_, id, DECORATION_RESTRICT | DECORATION_ALIASED])
                    if self.aliased.contains(id) => {}
                (ACCESS_CHAIN | IN_BOUNDS_ACCESS_CHAIN, [_, _, _, base, ..])
                    if self.strides.contains_key(base) =>
                {
                    let [_, _, _, _, _, index, ..] = all else { return Err(wrong("an array is used whole")) };
                    let ty = *self.types.get(index).ok_or_else(|| wrong("an index has no plain type"))?;
                    let elements = u32::try_from(self.places[base].offset / self.strides[base])
                        .map_err(|_| wrong("an offset is too large"))?;
                    let mut fresh = || {
                        next += 1;
                        next - 1
                    };
                    let constant = *constants.entry((ty, elements)).or_insert_with(&mut fresh);
                    let sum = fresh();
                    body.extend([5 << 16 | I_ADD, ty, sum, *index, constant]);
                    let from = body.len();
                    body.extend_from_slice(all);
                    body[from + 5] = sum;
                }
                _ if self.uses_whole(opcode, all) => return Err(wrong("an array is used whole")),
                _ => body.extend_from_slice(all),
            }
        }
        let functions = functions.ok_or_else(|| wrong("it has no function"))?;
        made.extend_from_slice(&body[..functions]);
        let mut constants: Vec<_> = constants.into_iter().collect();
        constants.sort_by_key(|(_, id)| *id);
        for ((ty, value), id) in constants {
            made.extend([4 << 16 | CONSTANT, ty, id, value]);
        }
        made.extend_from_slice(&body[functions..]);
        made[3] = next;
        Ok(made)
    }

    /// Whether an instruction uses a variable with an offset in another way than to get at an element.
    fn uses_whole(&self, opcode: u32, all: &[u32]) -> bool {
        let operands = match opcode {
            STORE => 1..all.len(),
            LOAD | COPY_OBJECT | PTR_ACCESS_CHAIN | ARRAY_LENGTH | FUNCTION_CALL | SELECT | PHI => {
                3..all.len()
            }
            _ => return false,
        };
        all.get(operands).is_some_and(|ids| ids.iter().any(|id| self.strides.contains_key(id)))
    }
}
