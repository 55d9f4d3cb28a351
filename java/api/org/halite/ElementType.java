package org.halite;

import androidx.annotation.NonNull;

/** Types of the elements of tensors. */
public enum ElementType {
    /** 32-bit floats. */
    FLOAT32("f32", 4),
    /** 64-bit floats. */
    FLOAT64("f64", 8),
    /** 16-bit floats, as the bits of a {@code short}. */
    FLOAT16("f16", 2),
    /** The upper halves of 32-bit floats. */
    BFLOAT16("bf16", 2),
    /** Signed bytes. */
    INT8("i8", 1),
    /** Signed 16-bit integers. */
    INT16("i16", 2),
    /** Signed 32-bit integers. */
    INT32("i32", 4),
    /** Signed 64-bit integers. */
    INT64("i64", 8),
    /** Unsigned bytes. */
    UINT8("ui8", 1),
    /** Unsigned 16-bit integers. */
    UINT16("ui16", 2),
    /** Unsigned 32-bit integers. */
    UINT32("ui32", 4),
    /** Unsigned 64-bit integers. */
    UINT64("ui64", 8),
    /** Truth values, a byte each: 0 or 1. */
    BOOL("i1", 1),
    /** Any other type; {@link ValueInfo#elementTypeName} and {@link Tensor#elementTypeName} tell its name. */
    OTHER("", 0);

    private final String text;
    private final int bytes;

    ElementType(String text, int bytes) {
        this.text = text;
        this.bytes = bytes;
    }

    /** The bytes of an element; 0 for {@link #OTHER}. */
    public int bytes() {
        return bytes;
    }

    /** Its name in the library. */
    @NonNull
    String text() {
        return text;
    }

    static @NonNull ElementType of(@NonNull String name) {
        // Modules tell of signed integers in two ways.
        String plain = name.startsWith("si") ? name.substring(1) : name;
        for (ElementType type : values()) {
            if (type.text.equals(plain) && type != OTHER) {
                return type;
            }
        }
        return OTHER;
    }
}
