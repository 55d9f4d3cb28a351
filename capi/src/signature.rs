//! Signatures: the inputs and outputs of a function.

use std::{
    ffi::{CString, c_char},
    ptr,
};

use halite::{Dimension, FunctionInfo, ValueInfo, ValueType};

use crate::{
    error::{call, halite_error},
    failure::quiet,
    raw::{self, Grows, Out},
    tensor::halite_element_type,
    value::{HALITE_VALUE_LIST, HALITE_VALUE_OTHER, HALITE_VALUE_TENSOR, halite_value_kind},
};

/// The inputs and outputs of a function. It belongs to the session, function or model that you asked, and never changes.
pub struct halite_signature {
    texts: [CString; 3],
    inputs: Vec<Described>,
    outputs: Vec<Described>,
    states: Vec<(CString, CString)>,
}

/// What kind of dimension a dimension is: one of `HALITE_DIMENSION_…`.
pub type halite_dimension_kind = u32;

/// Open.
pub const HALITE_DIMENSION_OPEN: halite_dimension_kind = 0;
/// Known: `size`.
pub const HALITE_DIMENSION_FIXED: halite_dimension_kind = 1;
/// Open, the same wherever the `name` is.
pub const HALITE_DIMENSION_NAMED: halite_dimension_kind = 2;
/// Open, and at most `size`.
pub const HALITE_DIMENSION_AT_MOST: halite_dimension_kind = 3;

/// A dimension of an input or output.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct halite_dimension {
    /// Its name, if it has one; otherwise NULL.
    pub name: *const c_char,
    /// Its size, or the most that it can be; otherwise 0.
    pub size: usize,
    /// What kind of dimension it is.
    pub kind: halite_dimension_kind,
}

/// A function as a whole. Begin with `HALITE_SIGNATURE_INFO_INIT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct halite_signature_info {
    /// `sizeof(halite_signature_info)`.
    pub struct_size: usize,
    /// Its name within its module.
    pub name: *const c_char,
    /// The module that it belongs to; empty for functions of models.
    pub module: *const c_char,
    /// The signature as text: `main('picture' f32[1,1,16,16]) -> ('probabilities' f32[1,10])`.
    pub text: *const c_char,
    /// Number of inputs.
    pub input_count: usize,
    /// Number of outputs.
    pub output_count: usize,
    /// Number of inputs that are state.
    pub state_count: usize,
}

// SAFETY: the size comes first; zeros are pointers that are not set.
unsafe impl Grows for halite_signature_info {
    const NAME: &'static str = "halite_signature_info";
    const FIRST: usize = std::mem::offset_of!(halite_signature_info, state_count) + 1;
}

/// An input or output. Begin with `HALITE_VALUE_INFO_INIT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct halite_value_info {
    /// `sizeof(halite_value_info)`.
    pub struct_size: usize,
    /// Its name: the model's own; for modules of other compilers what they left of it, or `input0`, `output0`, ….
    pub name: *const c_char,
    /// The value as text: `'picture' f32[1,1,16,16]`.
    pub text: *const c_char,
    /// The dimensions of a tensor.
    pub dimensions: *const halite_dimension,
    /// Number of dimensions.
    pub rank: usize,
    /// Whether the number of dimensions is known.
    pub has_rank: bool,
    /// Whether it may be left out.
    pub is_optional: bool,
    /// `HALITE_VALUE_TENSOR`, `HALITE_VALUE_LIST` (a list of tensors), or `HALITE_VALUE_OTHER`, which the text names.
    pub kind: halite_value_kind,
    /// Type of a tensor's elements; 0 where it is not known.
    pub element_type: halite_element_type,
}

// SAFETY: the size comes first; zeros are pointers that are not set, and false.
unsafe impl Grows for halite_value_info {
    const NAME: &'static str = "halite_value_info";
    const FIRST: usize = std::mem::offset_of!(halite_value_info, element_type) + 1;
}

/// An input or output with its texts for C.
struct Described {
    texts: [CString; 2],
    dimensions: Vec<halite_dimension>,
    /// What the dimensions point to.
    _names: Vec<CString>,
    has_rank: bool,
    is_optional: bool,
    kind: halite_value_kind,
    element_type: halite_element_type,
}

// SAFETY: the pointers are into texts that it owns and that do not change.
unsafe impl Send for Described {}
// SAFETY: as above.
unsafe impl Sync for Described {}

impl Described {
    fn of(info: &ValueInfo) -> Described {
        let (mut kind, mut element_type, mut stated) = (HALITE_VALUE_OTHER, 0, None);
        match &info.value_type {
            ValueType::Tensor { element_type: element, shape } => {
                kind = HALITE_VALUE_TENSOR;
                element_type = element.map_or(0, |element| element.0);
                stated = shape.as_deref();
            }
            ValueType::Sequence => kind = HALITE_VALUE_LIST,
            _ => {}
        }
        let (mut dimensions, mut names) = (Vec::new(), Vec::new());
        for dimension in stated.unwrap_or_default() {
            let (kind, size) = match dimension {
                Dimension::Fixed(size) => (HALITE_DIMENSION_FIXED, *size),
                Dimension::AtMost(size) => (HALITE_DIMENSION_AT_MOST, *size),
                Dimension::Named(_) => (HALITE_DIMENSION_NAMED, 0),
                _ => (HALITE_DIMENSION_OPEN, 0),
            };
            let mut name = ptr::null();
            if let Dimension::Named(text) = dimension {
                names.push(raw::c_text(text));
                name = names.last().map_or(ptr::null(), |text: &CString| text.as_ptr());
            }
            dimensions.push(halite_dimension { name, size, kind });
        }
        Described {
            texts: [&info.name, &info.to_string()].map(|text| raw::c_text(text)),
            dimensions,
            _names: names,
            has_rank: stated.is_some(),
            is_optional: info.is_optional,
            kind,
            element_type,
        }
    }

    fn info(&self) -> halite_value_info {
        halite_value_info {
            struct_size: 0,
            name: self.texts[0].as_ptr(),
            text: self.texts[1].as_ptr(),
            dimensions: self.dimensions.as_ptr(),
            rank: self.dimensions.len(),
            has_rank: self.has_rank,
            is_optional: self.is_optional,
            kind: self.kind,
            element_type: self.element_type,
        }
    }
}

impl halite_signature {
    pub(crate) fn of(info: &FunctionInfo) -> Self {
        halite_signature {
            texts: [&info.name, &info.module, &info.to_string()].map(|text| raw::c_text(text)),
            inputs: info.inputs.iter().map(Described::of).collect(),
            outputs: info.outputs.iter().map(Described::of).collect(),
            states: info
                .states
                .iter()
                .map(|pair| (raw::c_text(&pair.input), raw::c_text(&pair.output)))
                .collect(),
        }
    }
}

/// What a function is called, and how much it takes and gives.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_signature_get(
    signature: *const halite_signature,
    info: *mut halite_signature_info,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_signature_get", || unsafe {
        let own = raw::handle(signature, "signature")?;
        let value = halite_signature_info {
            struct_size: 0,
            name: own.texts[0].as_ptr(),
            module: own.texts[1].as_ptr(),
            text: own.texts[2].as_ptr(),
            input_count: own.inputs.len(),
            output_count: own.outputs.len(),
            state_count: own.states.len(),
        };
        raw::fill(info, value)
    })
}

/// An input of a function, by its place.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_signature_input(
    signature: *const halite_signature,
    index: usize,
    info: *mut halite_value_info,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_signature_input", || unsafe {
        raw::fill(info, raw::at(&raw::handle(signature, "signature")?.inputs, index, "input")?.info())
    })
}

/// An output of a function, by its place.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_signature_output(
    signature: *const halite_signature,
    index: usize,
    info: *mut halite_value_info,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_signature_output", || unsafe {
        raw::fill(info, raw::at(&raw::handle(signature, "signature")?.outputs, index, "output")?.info())
    })
}

/// Pair number `index` of an input that is state and the output that replaces it. Returns false after the last.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_signature_state(
    signature: *const halite_signature,
    index: usize,
    input: *mut *const c_char,
    output: *mut *const c_char,
) -> bool {
    // SAFETY: the contract of the interface.
    quiet("halite_signature_state", false, || unsafe {
        let (input, output) = (Out::value(input, "input")?, Out::value(output, "output")?);
        let found = raw::handle(signature, "signature")?.states.get(index);
        input.set(found.map_or(ptr::null(), |(name, _)| name.as_ptr()));
        output.set(found.map_or(ptr::null(), |(_, name)| name.as_ptr()));
        Ok(found.is_some())
    })
}
