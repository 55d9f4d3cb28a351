package org.halite;

import androidx.annotation.NonNull;

/** A sequence that takes steps with others, and what chooses its tokens. Closing both is left to the program. */
public final class Writer {
    private final Sequence sequence;
    private final Sampler sampler;

    /** A sequence with its sampler. */
    public Writer(@NonNull Sequence sequence, @NonNull Sampler sampler) {
        if (sequence == null || sampler == null) {
            throw HaliteException.invalid("who writes has a sequence and a sampler");
        }
        this.sequence = sequence;
        this.sampler = sampler;
    }

    /** The sequence. */
    public @NonNull Sequence sequence() {
        return sequence;
    }

    /** What chooses its tokens. */
    public @NonNull Sampler sampler() {
        return sampler;
    }
}
