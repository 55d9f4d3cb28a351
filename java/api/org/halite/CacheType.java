package org.halite;

/** How the caches of a {@link Sequence} hold keys or values. */
public enum CacheType {
    /** 16-bit floats. */
    F16("f16"),
    /** Blocks of 32 elements: 8 bits for each, and a scale. */
    Q8_0("q8_0"),
    /** Blocks of 32 elements: 4 bits for each, and a scale. */
    Q4_0("q4_0");

    final String text;

    CacheType(String text) {
        this.text = text;
    }
}
