package org.halite;

import androidx.annotation.NonNull;
import androidx.annotation.Nullable;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** A device that sessions can run on. */
public final class Device {
    /** How many texts the native half tells of each. */
    private static final int TEXTS = 5;

    /** What kind of device it is. */
    public enum Kind {
        /** A GPU with memory of its own. */
        DISCRETE_GPU,
        /** A GPU that shares the processor's memory, as in phones. */
        INTEGRATED_GPU,
        /** A GPU seen through virtualization. */
        VIRTUAL_GPU,
        /** The processor, also behind a GPU's interface. */
        CPU,
        /** Something else. */
        OTHER
    }

    private final String uri;
    private final String name;
    private final Kind kind;
    private final String target;
    private final String unusable;

    private Device(String uri, String name, Kind kind, String target, String unusable) {
        this.uri = uri;
        this.name = name;
        this.kind = kind;
        this.target = target;
        this.unusable = unusable;
    }

    /** All devices, those that cannot be used among them. */
    public static @NonNull List<Device> list() {
        String[] texts = Native.devices();
        List<Device> all = new ArrayList<>();
        for (int i = 0; i + TEXTS <= texts.length; i += TEXTS) {
            all.add(new Device(texts[i], texts[i + 1], kind(texts[i + 2]), texts[i + 3], texts[i + 4]));
        }
        return Collections.unmodifiableList(all);
    }

    private static Kind kind(String name) {
        for (Kind kind : Kind.values()) {
            if (kind.name().equals(name)) {
                return kind;
            }
        }
        return Kind.OTHER;
    }

    /** The text that opens exactly this device: {@link Session.Builder#device} takes it. */
    public @NonNull String uri() {
        return uri;
    }

    /** Its name for people. */
    public @NonNull String name() {
        return name;
    }

    /** What kind of device it is. */
    public @NonNull Kind kind() {
        return kind;
    }

    /** What modules are compiled for to run on it best, such as {@code valhall-g78-android30}; empty where that is not known. */
    public @NonNull String target() {
        return target;
    }

    /** Why it cannot be used; null where it can. */
    public @Nullable String unusable() {
        return unusable.isEmpty() ? null : unusable;
    }

    @Override
    public @NonNull String toString() {
        return name + " (" + uri + ")";
    }
}
