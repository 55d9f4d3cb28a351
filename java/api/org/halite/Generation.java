package org.halite;

import androidx.annotation.NonNull;
import androidx.annotation.Nullable;

/**
 * How a model writes on. What is not said is Halite's own choice, which draws among likely tokens. The steps of the choice go in this order:
 * penalty, top-k, top-p, min-p, temperature.
 */
public final class Generation {
    /** What was not said. */
    private static final int UNSAID = -1;

    float temperature = Float.NaN;
    float topP = Float.NaN;
    float minP = Float.NaN;
    float penalty = Float.NaN;
    int topK = UNSAID;
    int penaltyLast = UNSAID;
    long seed;
    long most = Long.MAX_VALUE;
    boolean ignoreEnd;
    String[] stops = {};
    @Nullable String jsonSchema;

    /** Always the most likely token. */
    public @NonNull Generation greedy() {
        return temperature(0);
    }

    /** Divides logits; 0 takes the most likely token. */
    public @NonNull Generation temperature(float value) {
        temperature = number(value);
        return this;
    }

    /** How many of the most likely tokens count; 0 for all. */
    public @NonNull Generation topK(int count) {
        topK = count(count);
        return this;
    }

    /** The part of all probability that the most likely tokens that count have; 1 for all. */
    public @NonNull Generation topP(float part) {
        topP = number(part);
        return this;
    }

    /** How likely a token is at least, as a part of how likely the first is; 0 for all. */
    public @NonNull Generation minP(float part) {
        minP = number(part);
        return this;
    }

    /** What logits of the last tokens are divided by, or multiplied where they are negative; 1 for nothing. */
    public @NonNull Generation repeatPenalty(float penalty, int lastTokens) {
        this.penalty = number(penalty);
        penaltyLast = count(lastTokens);
        return this;
    }

    /** Where random numbers begin: the same seed gives the same choices. */
    public @NonNull Generation seed(long seed) {
        this.seed = seed;
        return this;
    }

    /** Most tokens. Without it the model writes until it ends, or the context is full. */
    public @NonNull Generation most(long tokens) {
        if (tokens < 0) {
            throw HaliteException.invalid("a number of tokens is not negative");
        }
        most = tokens;
        return this;
    }

    /** The model writes on behind the token that ends a text, which is a token like others then. */
    public @NonNull Generation ignoreEnd() {
        ignoreEnd = true;
        return this;
    }

    /** Texts that end what is written; they are not told. */
    public @NonNull Generation stop(@NonNull String... texts) {
        for (String text : texts) {
            if (text == null || text.isEmpty()) {
                throw HaliteException.invalid("a text that ends what is written is not empty");
            }
        }
        stops = texts.clone();
        return this;
    }

    /**
     * A JSON schema as text: what is written is one JSON value that follows it, whatever the model likes, and then ends. Schemas that no value
     * follows, or that say what is not supported, are refused when they are used, with the reason.
     */
    public @NonNull Generation jsonSchema(@NonNull String schema) {
        if (schema == null) {
            throw HaliteException.invalid("a JSON schema is a text");
        }
        jsonSchema = schema;
        return this;
    }

    private static float number(float value) {
        if (Float.isNaN(value) || value < 0) {
            throw HaliteException.invalid("a choice of tokens is by numbers that are not negative");
        }
        return value;
    }

    private static int count(int value) {
        if (value < 0) {
            throw HaliteException.invalid("a number of tokens is not negative");
        }
        return value;
    }
}
