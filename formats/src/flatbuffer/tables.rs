//! The notation in which schemas are written down.

/// The default of a field.
macro_rules! default_of {
    ($kind:ty) => {
        <$kind as $crate::flatbuffer::Kind>::ZERO
    };
    ($kind:ty, $default:expr) => {
        $default
    };
}

/// `module "Table" { CONST id "field": kind [= default]; … }`: a module of fields for each table.
macro_rules! tables {
    ($($module:ident $table:literal { $($field:ident $id:literal $name:literal: $kind:ty $(= $default:expr)?;)* })*) => { $(
        pub mod $module {
            #[allow(unused_imports, reason = "each table uses only some of the kinds")]
            use super::*;
            $(pub const $field: Field<$kind> = Field {
                table: $table,
                name: $name,
                id: $id,
                default: $crate::flatbuffer::default_of!($kind $(, $default)?),
            };)*
        }
    )* };
}

pub(crate) use {default_of, tables};
