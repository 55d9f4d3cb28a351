package org.halite;

import androidx.annotation.NonNull;
import androidx.annotation.Nullable;

import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;

/**
 * What a sequence of calls keeps on the device between them, such as the caches of a decoder. Its calls take the other inputs alone. One
 * call at a time uses it; others wait.
 */
public final class State extends Handle {
    State(long number) {
        super(number);
    }

    /** One call, which goes on from where the last one ended. */
    public @NonNull Outputs run(@NonNull Map<String, Tensor> inputs) {
        return run(inputs, null);
    }

    /** The same within bounds. */
    public @NonNull Outputs run(@NonNull Map<String, Tensor> inputs, @Nullable RunOptions options) {
        Inputs given = new Inputs(inputs);
        RunOptions bounds = options == null ? RunOptions.NONE : options;
        return new Outputs(
                Native.stateRun(
                        number(),
                        given.names,
                        given.tensors,
                        bounds.timeout(),
                        bounds.token(),
                        bounds.listener()));
    }

    /** Begins anew. */
    public void reset() {
        Native.stateReset(number());
    }

    /** The names of what it keeps. */
    public @NonNull List<String> names() {
        return Collections.unmodifiableList(Arrays.asList(Native.stateNames(number())));
    }

    /** A tensor that it keeps, by the name of the input; null before the first call. The caller closes it. */
    public @Nullable Tensor get(@NonNull String name) {
        long tensor = Native.stateGet(number(), name);
        return tensor == 0 ? null : new Tensor(tensor);
    }

    /** Goes on from a tensor in the place of what it keeps. */
    public void set(@NonNull String name, @NonNull Tensor tensor) {
        Native.stateSet(number(), name, tensor.number());
    }

    /** Another state that goes on from the same place. */
    public @NonNull State fork() {
        return new State(Native.stateFork(number()));
    }

    /** What it keeps, as bytes that {@link #load} takes, also in another process. */
    public @NonNull byte[] save() {
        return Native.stateSave(number());
    }

    /** Goes on from saved bytes. */
    public void load(@NonNull byte[] saved) {
        Native.stateLoad(number(), saved);
    }
}
