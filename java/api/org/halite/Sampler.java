package org.halite;

import androidx.annotation.NonNull;

/** Chooses the tokens of a sequence, one behind the other. One call at a time uses it; others wait. */
public final class Sampler extends Handle {
    /** One that chooses as this says: its choice of tokens, the seed, and whether the model writes on behind the end count. */
    public Sampler(@NonNull Generation how) {
        super(
                Native.sampler(
                        how.temperature,
                        how.topP,
                        how.minP,
                        how.penalty,
                        how.topK,
                        how.penaltyLast,
                        how.seed,
                        how.ignoreEnd));
    }
}
