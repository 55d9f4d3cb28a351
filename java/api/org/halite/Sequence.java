package org.halite;

import androidx.annotation.NonNull;
import androidx.annotation.Nullable;

/**
 * Tokens, with caches on the device of what a model computed of them. One call at a time uses it; others wait. A call that fails leaves the
 * tokens as they were.
 */
public final class Sequence extends Handle {
    Sequence(long number) {
        super(number);
    }

    /** Makes the sequence these tokens. What it has in common with them is kept, and not computed again; gives how many tokens that are. */
    public long prompt(@NonNull int... tokens) {
        return prompt(tokens, null);
    }

    /** The same within bounds. */
    public long prompt(@NonNull int[] tokens, @Nullable RunOptions options) {
        RunOptions bounds = options == null ? RunOptions.NONE : options;
        return Native.sequencePrompt(number(), tokens, bounds.timeout(), bounds.token(), bounds.listener());
    }

    /** Adds tokens and computes the logits behind them. */
    public void append(@NonNull int[] tokens, @Nullable RunOptions options) {
        RunOptions bounds = options == null ? RunOptions.NONE : options;
        Native.sequenceAppend(number(), tokens, bounds.timeout(), bounds.token(), bounds.listener());
    }

    /**
     * Adds tokens, and gives how likely each was behind those before it, as natural logarithms. For generators made with {@link
     * GeneratorOptions#scoring}.
     */
    public @NonNull double[] score(@NonNull int[] tokens, @Nullable RunOptions options) {
        RunOptions bounds = options == null ? RunOptions.NONE : options;
        return Native.sequenceScore(number(), tokens, bounds.timeout(), bounds.token(), bounds.listener());
    }

    /** Lets the model write on, and tells the text while it is written. The token that ends the text is neither told nor added. */
    public @NonNull Stop generate(
            @NonNull Generation how, @Nullable TextListener listener, @Nullable RunOptions options) {
        RunOptions bounds = options == null ? RunOptions.NONE : options;
        return Stop.valueOf(
                Native.sequenceGenerate(
                        number(),
                        how.temperature,
                        how.topP,
                        how.minP,
                        how.penalty,
                        how.topK,
                        how.penaltyLast,
                        how.seed,
                        how.most,
                        how.ignoreEnd,
                        how.stops,
                        how.jsonSchema,
                        listener == null ? null : new Texts(listener),
                        bounds.timeout(),
                        bounds.token(),
                        bounds.listener()));
    }

    /** Takes the tokens behind the first {@code count} back, which takes no time. */
    public void truncate(long count) {
        Native.sequenceTruncate(number(), count);
    }

    /** All tokens so far. */
    public @NonNull int[] tokens() {
        return Native.sequenceTokens(number());
    }

    /**
     * Logits of the token that comes next, one for each token that the model knows. Empty where they have to be computed first: before the
     * first token, and behind {@link #load} and {@link #truncate}.
     */
    public @NonNull float[] logits() {
        return Native.sequenceLogits(number());
    }

    /** Bytes of its caches on the device. */
    public long byteSize() {
        return Native.sequenceBytes(number());
    }

    /** Another sequence with the same tokens and a copy of the caches. */
    public @NonNull Sequence fork() {
        return new Sequence(Native.sequenceFork(number()));
    }

    /** Tokens and caches as bytes that {@link #load} takes, also in another process. */
    public @NonNull byte[] save() {
        return Native.sequenceSave(number());
    }

    /** Becomes what was saved, for the same model, context and types of caches. */
    public void load(@NonNull byte[] saved) {
        Native.sequenceLoad(number(), saved);
    }
}
