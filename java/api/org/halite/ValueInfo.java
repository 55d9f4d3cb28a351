package org.halite;

import androidx.annotation.NonNull;
import androidx.annotation.Nullable;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;

/** An input or output of a function. */
public final class ValueInfo {
    /** How many texts the native half tells of each. */
    private static final int TEXTS = 4;

    private final String name;
    private final String type;
    private final List<String> shape;
    private final boolean isOptional;

    private ValueInfo(String name, String type, String shape, boolean isOptional) {
        this.name = name;
        this.type = type;
        this.shape =
                shape.isEmpty()
                        ? Collections.<String>emptyList()
                        : Collections.unmodifiableList(Arrays.asList(shape.split(",")));
        this.isOptional = isOptional;
    }

    static @NonNull List<ValueInfo> of(@NonNull String[] texts) {
        List<ValueInfo> all = new ArrayList<>();
        for (int i = 0; i + TEXTS <= texts.length; i += TEXTS) {
            all.add(new ValueInfo(texts[i], texts[i + 1], texts[i + 2], Boolean.parseBoolean(texts[i + 3])));
        }
        return Collections.unmodifiableList(all);
    }

    /** Its name in the model. */
    public @NonNull String name() {
        return name;
    }

    /** The type of its elements; null where that is not known, or where it is no tensor. */
    public @Nullable ElementType elementType() {
        return type.isEmpty() ? null : ElementType.of(type);
    }

    /** The name of that type, such as {@code f32}; empty where it is not known. */
    public @NonNull String elementTypeName() {
        return type;
    }

    /** Its dimensions, outermost first: numbers, names of sizes that calls decide, or {@code ?}. */
    public @NonNull List<String> shape() {
        return shape;
    }

    /** Whether it may be left out. */
    public boolean isOptional() {
        return isOptional;
    }

    @Override
    public @NonNull String toString() {
        return name + ": " + type + shape;
    }
}
