package org.halite;

import androidx.annotation.NonNull;
import androidx.annotation.Nullable;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;

/** The tensors that a call gave. Closing them closes all that were not taken out with {@link #take}. */
public final class Outputs implements AutoCloseable {
    private final List<String> names;
    private final Tensor[] tensors;

    /** Takes what the native half holds. */
    Outputs(long number) {
        try {
            names = Collections.unmodifiableList(Arrays.asList(Native.outputNames(number)));
            long[] handles = Native.outputTensors(number);
            tensors = new Tensor[handles.length];
            for (int place = 0; place < handles.length; place += 1) {
                tensors[place] = new Tensor(handles[place]);
            }
        } finally {
            Native.free(number);
        }
    }

    /** Their names, in the order of the model. */
    public @NonNull List<String> names() {
        return names;
    }

    /** How many there are. */
    public int size() {
        return tensors.length;
    }

    /** An output by its name. It is closed with these outputs. */
    public @NonNull Tensor get(@NonNull String name) {
        return get(place(name));
    }

    /** An output by its place. It is closed with these outputs. */
    public @NonNull Tensor get(int place) {
        Tensor found = tensors[place];
        if (found == null) {
            throw HaliteException.invalid("the output '" + names.get(place) + "' was taken");
        }
        return found;
    }

    /** All that were not taken, in the order of the model. */
    public @NonNull List<Tensor> all() {
        List<Tensor> left = new ArrayList<>();
        for (@Nullable Tensor tensor : tensors) {
            if (tensor != null) {
                left.add(tensor);
            }
        }
        return left;
    }

    /** Takes an output out: the caller closes it. */
    public @NonNull Tensor take(@NonNull String name) {
        int place = place(name);
        Tensor taken = get(place);
        tensors[place] = null;
        return taken;
    }

    private int place(String name) {
        int place = names.indexOf(name);
        if (place < 0) {
            throw HaliteException.invalid("there is no output '" + name + "'; there are: " + names);
        }
        return place;
    }

    @Override
    public void close() {
        for (Tensor tensor : all()) {
            tensor.close();
        }
    }
}
