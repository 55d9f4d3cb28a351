package org.halite;

import androidx.annotation.NonNull;
import java.io.File;

/** What a {@link Generator} is made for. */
public final class GeneratorOptions {
    long context;
    CacheType keys = CacheType.F16;
    CacheType values = CacheType.F16;
    boolean scoring;
    String tokenizer;
    ChooseOn chooseOn = ChooseOn.AUTO;
    long batch = 1;

    /** How many tokens a sequence has room for, prompt and answer. Without it 4096, or what the model was trained for, if that is less. */
    public @NonNull GeneratorOptions context(long tokens) {
        if (tokens <= 0) {
            throw HaliteException.invalid("a context has room for one token or more");
        }
        context = tokens;
        return this;
    }

    /** How caches hold keys and values; without it as 16-bit floats. */
    public @NonNull GeneratorOptions cacheTypes(@NonNull CacheType keys, @NonNull CacheType values) {
        this.keys = keys;
        this.values = values;
        return this;
    }

    /** The file of the tokenizer, for models that have none of their own. Without it, it is looked for beside the model. */
    public @NonNull GeneratorOptions tokenizer(@NonNull File file) {
        tokenizer = file.getPath();
        return this;
    }

    /** Where {@link Sequence#generate} and {@link Generator#step} choose tokens; without it on the device, if that is a GPU. */
    public @NonNull GeneratorOptions chooseOn(@NonNull ChooseOn place) {
        chooseOn = place;
        return this;
    }

    /** How many sequences {@link Generator#step} takes a step of together at most; without it each takes its own. */
    public @NonNull GeneratorOptions batch(long most) {
        if (most <= 0) {
            throw HaliteException.invalid("one sequence or more takes a step");
        }
        batch = most;
        return this;
    }

    /** {@link Sequence#score} is wanted. */
    public @NonNull GeneratorOptions scoring() {
        scoring = true;
        return this;
    }
}
