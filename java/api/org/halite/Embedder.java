package org.halite;

import androidx.annotation.NonNull;
import androidx.annotation.Nullable;

/**
 * A language model that makes vectors of texts, from a GGUF file. Texts that mean the like have vectors that point in like directions. Made by
 * {@link Session.Builder#embedder}. Many threads may use it.
 */
public final class Embedder extends Handle {
    Embedder(long number) {
        super(number);
    }

    /** Most tokens of a text. */
    public long longest() {
        return Native.embedderLongest(number());
    }

    /** The tokens of a text, with those that the model is used to at its beginning and end. */
    public @NonNull int[] tokenize(@NonNull String text) {
        return Native.embedderTokenize(number(), text);
    }

    /** The vector of a text, of length 1. */
    public @NonNull float[] embed(@NonNull String text) {
        return embed(tokenize(text), true, null);
    }

    /** The vector of a text's tokens; of length 1 if {@code normalize} says so. */
    public @NonNull float[] embed(@NonNull int[] tokens, boolean normalize, @Nullable RunOptions options) {
        RunOptions bounds = options == null ? RunOptions.NONE : options;
        return Native.embedderEmbed(
                number(), tokens, normalize, bounds.timeout(), bounds.token(), bounds.listener());
    }
}
