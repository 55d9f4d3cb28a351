//! The failures of reading and building FlatBuffers.

use thiserror::Error;

/// Why a FlatBuffer was refused. Offsets are bytes from the start of the file that holds it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FlatbufferError {
    /// Something lies outside the buffer or the table that should hold it.
    #[error(
        "{table}.{field}: {length} bytes at offset {offset} end past the limit {limit}; the file is damaged or cut short"
    )]
    OutOfRange {
        /// Table.
        table: &'static str,
        /// Field.
        field: &'static str,
        /// Where it would start.
        offset: u64,
        /// How long it would be.
        length: u64,
        /// First offset that is not readable.
        limit: u64,
    },
    /// An offset that must be a multiple of four is not.
    #[error(
        "{table}.{field}: offset {offset} is not a multiple of {align} from the buffer start; the file is damaged"
    )]
    Misaligned {
        /// Table.
        table: &'static str,
        /// Field.
        field: &'static str,
        /// The offset.
        offset: u64,
        /// The alignment.
        align: u64,
    },
    /// A vtable has an impossible length.
    #[error(
        "{table}.{field}: table at offset {offset} has vtable length {vtable_length} and table length {table_length}; both must be at least 4 and the former even"
    )]
    BadVtable {
        /// Table.
        table: &'static str,
        /// Field.
        field: &'static str,
        /// Where the table is.
        offset: u64,
        /// Bytes of the vtable.
        vtable_length: u16,
        /// Bytes of the table.
        table_length: u16,
    },
    /// A string is not UTF-8.
    #[error(
        "{table}.{field}: string of {length} bytes at offset {offset} is not UTF-8 from its byte {valid_up_to} on"
    )]
    NotUtf8 {
        /// Table.
        table: &'static str,
        /// Field.
        field: &'static str,
        /// Where the characters start.
        offset: u64,
        /// Bytes.
        length: u64,
        /// Bytes that are fine.
        valid_up_to: u64,
    },
    /// A string is not followed by a zero byte.
    #[error("{table}.{field}: string of {length} bytes at offset {offset} is not zero-terminated")]
    NotTerminated {
        /// Table.
        table: &'static str,
        /// Field.
        field: &'static str,
        /// Where the characters start.
        offset: u64,
        /// Bytes.
        length: u64,
    },
    /// A field that must be there is not.
    #[error("{table}.{field} is required but absent")]
    Missing {
        /// Table.
        table: &'static str,
        /// Field.
        field: &'static str,
    },
    /// A vector has no such element.
    #[error("{table}.{field}[{index}] asked for, but it has {length} elements")]
    NoElement {
        /// Table.
        table: &'static str,
        /// Field.
        field: &'static str,
        /// Index.
        index: u64,
        /// Elements there are.
        length: u64,
    },
    /// Offsets are shared so often that the decoded form would dwarf the file.
    #[error(
        "{table}.{field}: decoding would take more than {limit} bytes for a FlatBuffer of {length} bytes; its offsets overlap, which no compiler writes"
    )]
    TooLarge {
        /// Table.
        table: &'static str,
        /// Field.
        field: &'static str,
        /// The budget in bytes.
        limit: u64,
        /// The buffer's length.
        length: u64,
    },
    /// Tables are nested too deep.
    #[error("{table}.{field}: tables are nested deeper than {limit}")]
    TooDeep {
        /// Table.
        table: &'static str,
        /// Field.
        field: &'static str,
        /// The limit.
        limit: u32,
    },
    /// The identifier in front of the root table is another.
    #[error("FlatBuffer identifier at offset {offset} is {found:?}, expected {expected:?}")]
    Identifier {
        /// What was expected.
        expected: String,
        /// What is there.
        found: String,
        /// Where.
        offset: u64,
    },
    /// What was built does not fit the 31-bit offsets of the format.
    #[error(
        "FlatBuffer would be {length} bytes; its offsets reach {limit} bytes. Move large data to external segments"
    )]
    BuildTooLarge {
        /// Bytes.
        length: u64,
        /// Bytes that can be addressed.
        limit: u64,
    },
}
