//! The native module `vmvx`, version 0: the microkernels that bytecode for CPUs may call on whole tiles.
//!
//! iree-compile emits these calls with `--iree-vmvx-enable-microkernels`. Names and signatures are IREE's
//! (`runtime/src/iree/modules/vmvx/exports.inl`); offsets and strides count elements. Operands are read in pieces and
//! results written in pieces, so an operand may be the result.

mod elementwise;
mod matmul;
mod region;
mod tiles;

use std::any::Any;

use halite_abi::{Result, ResultExt, status};
use halite_vm::{Arguments, NativeFunction, NativeModule, Results};

const UNARY: &str = "0rIIIrIIIII_v";
const BINARY: &str = "0rIIIrIIIrIIIII_v";

/// What implements a function.
#[derive(Clone, Copy)]
enum Implementation {
    Unary(fn(u32) -> u32),
    Binary(fn(u32, u32) -> Result<u32>),
    /// Copies elements of this many bytes.
    Copy(usize),
    Other(fn(&mut Arguments, &mut Results) -> Result<()>),
}

struct Entry {
    name: &'static str,
    signature: &'static str,
    kernel: Implementation,
}

const fn unary(name: &'static str, function: fn(u32) -> u32) -> Entry {
    Entry { name, signature: UNARY, kernel: Implementation::Unary(function) }
}

const fn binary(name: &'static str, function: fn(u32, u32) -> Result<u32>) -> Entry {
    Entry { name, signature: BINARY, kernel: Implementation::Binary(function) }
}

const fn copy(name: &'static str, width: usize) -> Entry {
    Entry { name, signature: UNARY, kernel: Implementation::Copy(width) }
}

const fn other(
    name: &'static str,
    signature: &'static str,
    function: fn(&mut Arguments, &mut Results) -> Result<()>,
) -> Entry {
    Entry { name, signature, kernel: Implementation::Other(function) }
}

/// All functions, by name.
const FUNCTIONS: &[Entry] = &[
    unary("abs.2d.f32", |a| float(a, f32::abs)),
    binary("add.2d.f32", |a, b| floats(a, b, |a, b| a + b)),
    binary("add.2d.i32", |a, b| Ok(a.wrapping_add(b))),
    binary("and.2d.i32", |a, b| Ok(a & b)),
    unary("ceil.2d.f32", |a| float(a, f32::ceil)),
    copy("copy.2d.x16", 2),
    copy("copy.2d.x32", 4),
    copy("copy.2d.x64", 8),
    copy("copy.2d.x8", 1),
    unary("ctlz.2d.i32", u32::leading_zeros),
    binary("div.2d.f32", |a, b| floats(a, b, |a, b| a / b)),
    binary("divs.2d.i32", |a, b| {
        divisor(b).map(|b| a.cast_signed().wrapping_div(b.cast_signed()).cast_unsigned())
    }),
    binary("divu.2d.i32", |a, b| divisor(b).map(|b| a / b)),
    unary("exp.2d.f32", |a| float(a, f32::exp)),
    other("fill.2d.x32", "0irIIII_v", elementwise::fill),
    unary("floor.2d.f32", |a| float(a, f32::floor)),
    unary("log.2d.f32", |a| float(a, f32::ln)),
    other("mmt4d", "0rIIrIIrIIIIIiiii_v", matmul::mmt4d),
    binary("mul.2d.f32", |a, b| floats(a, b, |a, b| a * b)),
    binary("mul.2d.i32", |a, b| Ok(a.wrapping_mul(b))),
    unary("neg.2d.f32", |a| float(a, |a| -a)),
    binary("or.2d.i32", |a, b| Ok(a | b)),
    other("pack", "0rIIIrIIIIIIIIIIi_v", tiles::pack),
    other("query_tile_sizes.2d", "0IIi_II", matmul::query_tile_sizes),
    unary("rsqrt.2d.f32", |a| float(a, |a| 1.0 / a.sqrt())),
    // C leaves shifts by 32 and more open; the processor takes the amount modulo 32.
    binary("shl.2d.i32", |a, b| Ok(a.wrapping_shl(b))),
    binary("shrs.2d.i32", |a, b| Ok(a.cast_signed().wrapping_shr(b).cast_unsigned())),
    binary("shru.2d.i32", |a, b| Ok(a.wrapping_shr(b))),
    binary("sub.2d.f32", |a, b| floats(a, b, |a, b| a - b)),
    binary("sub.2d.i32", |a, b| Ok(a.wrapping_sub(b))),
    other("unpack", "0rIIIrIIIIIIIIIi_v", tiles::unpack),
    binary("xor.2d.i32", |a, b| Ok(a ^ b)),
];

fn float(a: u32, f: impl Fn(f32) -> f32) -> u32 {
    f(f32::from_bits(a)).to_bits()
}

#[expect(clippy::unnecessary_wraps, reason = "the table holds functions that may fail")]
fn floats(a: u32, b: u32, f: impl Fn(f32, f32) -> f32) -> Result<u32> {
    Ok(f(f32::from_bits(a), f32::from_bits(b)).to_bits())
}

fn divisor(b: u32) -> Result<u32> {
    if b == 0 { Err(status!(InvalidArgument, "integer division by zero")) } else { Ok(b) }
}

/// The module. Stateless.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Kernels;

impl NativeModule for Kernels {
    fn name(&self) -> &str {
        "vmvx"
    }

    fn version(&self) -> u32 {
        0
    }

    fn lookup(&self, name: &str) -> Option<NativeFunction> {
        let ordinal = FUNCTIONS.iter().position(|f| f.name == name)?;
        Some(NativeFunction { ordinal: ordinal as u32, signature: FUNCTIONS[ordinal].signature })
    }

    fn call(
        &self,
        _state: &mut (dyn Any + Send),
        ordinal: u32,
        args: &mut Arguments,
        results: &mut Results,
    ) -> Result<()> {
        let entry = FUNCTIONS
            .get(ordinal as usize)
            .ok_or_else(|| status!(Internal, "module 'vmvx' has no function {ordinal}"))?;
        let done = match entry.kernel {
            Implementation::Unary(function) => elementwise::unary(args, function),
            Implementation::Binary(function) => elementwise::binary(args, function),
            Implementation::Copy(width) => elementwise::copy(args, width),
            Implementation::Other(function) => function(args, results),
        };
        done.context(|| format!("while invoking native function vmvx.{}", entry.name))
    }
}

#[cfg(test)]
mod tests;
