//! Calling conventions such as `0rIi_r`: parsing, and how arguments are laid out in registers.

use halite_abi::{Result, bail};

use crate::Value;

/// Kind of a value in a calling convention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `i`.
    I32,
    /// `I`.
    I64,
    /// `f`.
    F32,
    /// `F`.
    F64,
    /// `r`.
    Ref,
}

impl Kind {
    fn from_char(c: char) -> Option<Kind> {
        Some(match c {
            'i' => Kind::I32,
            'I' => Kind::I64,
            'f' => Kind::F32,
            'F' => Kind::F64,
            'r' => Kind::Ref,
            _ => return None,
        })
    }

    /// Whether it takes two cells.
    pub fn is_pair(self) -> bool {
        matches!(self, Kind::I64 | Kind::F64)
    }

    /// Name for messages.
    pub fn name(self) -> &'static str {
        match self {
            Kind::I32 => "i32",
            Kind::I64 => "i64",
            Kind::F32 => "f32",
            Kind::F64 => "f64",
            Kind::Ref => "ref",
        }
    }

    /// Kind of a value.
    pub fn of(value: &Value) -> Kind {
        match value {
            Value::I32(_) => Kind::I32,
            Value::I64(_) => Kind::I64,
            Value::F32(_) => Kind::F32,
            Value::F64(_) => Kind::F64,
            Value::Ref(_) => Kind::Ref,
        }
    }
}

/// One item of an argument list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Param {
    /// A plain value.
    One(Kind),
    /// A tuple that repeats, `C…D`. Only imports have these.
    Span(Vec<Kind>),
}

/// A parsed calling convention.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signature {
    /// Arguments.
    pub args: Vec<Param>,
    /// Results.
    pub results: Vec<Kind>,
}

impl Signature {
    /// Parses a calling convention. The empty string is a function without arguments and results.
    /// INVALID_ARGUMENT when it is malformed.
    pub fn parse(text: &str) -> Result<Signature> {
        if text.is_empty() {
            return Ok(Signature::default());
        }
        let Some(body) = text.strip_prefix('0') else {
            bail!(InvalidArgument, "calling convention '{text}' does not begin with version '0'");
        };
        let (args, results) = body.split_once('_').unwrap_or((body, "v"));
        let mut signature = Signature::default();
        let mut span: Option<Vec<Kind>> = None;
        for c in args.chars() {
            match (c, &mut span, Kind::from_char(c)) {
                (_, None, Some(kind)) => signature.args.push(Param::One(kind)),
                (_, Some(span), Some(kind)) => span.push(kind),
                ('v', None, None) => {}
                ('C', None, None) => span = Some(Vec::new()),
                ('D', Some(kinds), None) if !kinds.is_empty() => {
                    signature.args.push(Param::Span(std::mem::take(kinds)));
                    span = None;
                }
                _ => bail!(InvalidArgument, "calling convention '{text}' has an unexpected '{c}'"),
            }
        }
        if span.is_some() {
            bail!(InvalidArgument, "calling convention '{text}' has an unclosed span");
        }
        for c in results.chars().filter(|c| *c != 'v') {
            match Kind::from_char(c) {
                Some(kind) => signature.results.push(kind),
                None => bail!(InvalidArgument, "calling convention '{text}' has an unexpected result '{c}'"),
            }
        }
        Ok(signature)
    }

    /// Whether an argument is a span.
    pub fn is_variadic(&self) -> bool {
        self.args.iter().any(|p| matches!(p, Param::Span(_)))
    }

    /// Kinds of plain arguments (spans left out).
    pub fn plain_args(&self) -> impl Iterator<Item = Kind> + '_ {
        self.args.iter().filter_map(|p| match p {
            Param::One(kind) => Some(*kind),
            Param::Span(_) => None,
        })
    }
}

/// Assigns argument registers of a callee in signature order: cells and refs from 0, pairs on even cells.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ArgLayout {
    /// Cells used so far.
    pub cells: usize,
    /// Ref registers used so far.
    pub refs: usize,
}

impl ArgLayout {
    /// Register of the next argument.
    pub(crate) fn next(&mut self, kind: Kind) -> usize {
        let (register, bank, step) = match kind {
            Kind::Ref => (self.refs, &mut self.refs, 1),
            Kind::I32 | Kind::F32 => (self.cells, &mut self.cells, 1),
            Kind::I64 | Kind::F64 => {
                let even = self.cells.next_multiple_of(2);
                (even, &mut self.cells, 2)
            }
        };
        *bank = register.saturating_add(step);
        register
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_plain_and_variadic() {
        let s = Signature::parse("0rIiCiID_fF").unwrap();
        assert_eq!(s.args.len(), 4);
        assert_eq!(s.args[3], Param::Span(vec![Kind::I32, Kind::I64]));
        assert_eq!(s.results, [Kind::F32, Kind::F64]);
        assert!(s.is_variadic());
        assert_eq!(Signature::parse("0v_v").unwrap(), Signature::parse("").unwrap());
        assert_eq!(Signature::parse("0r").unwrap(), Signature::parse("0r_v").unwrap());
    }

    #[test]
    fn rejects_malformed() {
        for bad in ["1v_v", "v", "0x", "0CiC", "0Ci", "0D_v", "0CD_v", "0i_C", "0_i_i", "0é"] {
            assert!(Signature::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn pairs_are_aligned() {
        let mut layout = ArgLayout::default();
        let regs: Vec<usize> =
            [Kind::I32, Kind::I64, Kind::Ref, Kind::F32, Kind::Ref].map(|k| layout.next(k)).into();
        assert_eq!(regs, [0, 2, 0, 4, 1]);
    }
}
