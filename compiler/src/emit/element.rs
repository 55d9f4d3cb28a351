//! Owns the element types of tensors as modules write them: numbers and names. Source: docs/formats/vmfb.md. Does not own:
//! the types.

use halite_ops::DType;

use crate::graph::ElementType;

/// The numerical kinds, which are the top byte of an element type.
mod kind {
    pub const INT: i32 = 0x10;
    pub const BOOL: i32 = 0x13;
    pub const FLOAT: i32 = 0x21;
    pub const BFLOAT: i32 = 0x22;
    pub const UINT: i32 = 0x12;
}

/// The number of an element type: kind and bits.
pub fn element_type(element: ElementType) -> i32 {
    let bits = element.storage().size() as i32 * 8;
    let kind = match element {
        ElementType::Bool => kind::BOOL,
        ElementType::Of(DType::BF16) => kind::BFLOAT,
        ElementType::Of(dtype) if dtype.is_float() => kind::FLOAT,
        ElementType::Of(dtype) if dtype.name().starts_with('u') => kind::UINT,
        ElementType::Of(_) => kind::INT,
    };
    kind << 24 | bits
}

/// The name of an element type in declarations.
pub fn element_name(element: ElementType) -> String {
    match element {
        ElementType::Bool => "i1".to_owned(),
        ElementType::Of(dtype) => {
            let name = dtype.name();
            name.strip_prefix('u').map_or_else(|| name.to_owned(), |bits| format!("ui{bits}"))
        }
    }
}
