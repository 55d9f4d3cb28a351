//! FlatBuffers: bounds-checked tables and a builder.
