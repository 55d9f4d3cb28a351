package org.halite;

import androidx.annotation.NonNull;

/** Chooses the tokens of a sequence, one behind the other. One call at a time uses it; others wait. */
public final class Sampler extends Handle {
    /**
     * One that chooses as this says: its choice of tokens, the seed, and whether the model writes on behind the end count. What follows a JSON
     * schema knows the tokens of a model: {@link Generator#schemaSampler} makes it.
     */
    public Sampler(@NonNull Generation how) {
        this(0, forAnyModel(how));
    }

    /** For sequences of a generator; zero for any model. */
    Sampler(long generator, @NonNull Generation how) {
        super(
                Native.sampler(
                        generator,
                        how.temperature,
                        how.topP,
                        how.minP,
                        how.penalty,
                        how.topK,
                        how.penaltyLast,
                        how.seed,
                        how.ignoreEnd,
                        how.jsonSchema));
    }

    private static Generation forAnyModel(Generation how) {
        if (how.jsonSchema != null) {
            throw HaliteException.invalid(
                    "a sampler that follows a JSON schema knows the tokens of a model: Generator.schemaSampler makes it");
        }
        return how;
    }
}
