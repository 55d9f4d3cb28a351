//! The meaning of type-table entries.

use halite_abi::{Result, bail};

use crate::Ref;

/// Element type of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// 8-bit integer.
    I8,
    /// 16-bit integer.
    I16,
    /// 32-bit integer.
    I32,
    /// 64-bit integer.
    I64,
    /// 32-bit float.
    F32,
    /// 64-bit float.
    F64,
}

/// A resolved type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// A number.
    Scalar(Scalar),
    /// Anything.
    Any,
    /// A reference to objects with this type name.
    Ref(Box<str>),
}

impl Type {
    /// Resolves a name of the type table. INVALID_ARGUMENT when it is not a type name.
    pub fn parse(name: &str) -> Result<Type> {
        Ok(match name {
            "i8" => Type::Scalar(Scalar::I8),
            "i16" => Type::Scalar(Scalar::I16),
            "i32" => Type::Scalar(Scalar::I32),
            "i64" => Type::Scalar(Scalar::I64),
            "f32" => Type::Scalar(Scalar::F32),
            "f64" => Type::Scalar(Scalar::F64),
            "!vm.opaque" | "!vm.ref<?>" => Type::Any,
            _ => match name.strip_prefix('!') {
                Some(list) if list == "vm.list" || list.starts_with("vm.list<") => {
                    Type::Ref("vm.list".into())
                }
                Some(other) if other.split('.').count() >= 2 && other.split('.').all(|p| !p.is_empty()) => {
                    Type::Ref(other.into())
                }
                _ => bail!(
                    InvalidArgument,
                    "type '{name}' is not known; types are i8, i16, i32, i64, f32, f64 and '!module.type'"
                ),
            },
        })
    }

    /// Whether a reference of this type may hold the value; null fits every type.
    pub(crate) fn accepts(&self, value: &Ref) -> bool {
        match (self, value.type_name()) {
            (_, None) | (Type::Any, _) => true,
            (Type::Ref(wanted), Some(name)) => **wanted == *name,
            (Type::Scalar(_), Some(_)) => false,
        }
    }

    /// INVALID_ARGUMENT unless the value fits.
    pub(crate) fn check(&self, value: &Ref) -> Result<()> {
        if self.accepts(value) {
            return Ok(());
        }
        let actual = value.type_name().unwrap_or("null");
        match self {
            Type::Ref(wanted) => {
                bail!(InvalidArgument, "expected a {wanted} but the reference is a {actual}")
            }
            _ => bail!(InvalidArgument, "expected a scalar but found a reference to a {actual}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(Type::parse("!vm.list<i8>").unwrap(), Type::Ref("vm.list".into()));
        assert_eq!(Type::parse("!hal.buffer").unwrap(), Type::Ref("hal.buffer".into()));
        assert_eq!(Type::parse("!vm.opaque").unwrap(), Type::Any);
        for bad in ["", "i7", "!", "!hal", "!hal.", "hal.buffer"] {
            assert!(Type::parse(bad).is_err(), "{bad}");
        }
    }
}
