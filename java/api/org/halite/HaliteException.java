package org.halite;

import androidx.annotation.NonNull;
import androidx.annotation.Nullable;

import java.util.Arrays;
import java.util.Collections;
import java.util.List;

/** A failure of the library. Programs decide by {@link #kind}; the message is for people. */
public final class HaliteException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** What kind of failure it is. */
    public enum Kind {
        /** A file, device, function, input or output that was named does not exist. */
        NOT_FOUND,
        /** Something given does not fit: an input of another shape or type, an object that was closed. */
        INVALID_INPUT,
        /** The model or module is damaged. */
        INVALID_MODEL,
        /** The model is right, and something in it is not supported, here or on this device. */
        UNSUPPORTED,
        /** No device can be used. */
        NO_DEVICE,
        /** Memory of the host or of the device did not suffice, or a limit that was set. */
        OUT_OF_MEMORY,
        /** The time that was given passed. */
        DEADLINE_EXCEEDED,
        /** A {@link CancelToken} stopped it. */
        CANCELLED,
        /** The device stopped working. Its sessions are of no use any more. */
        DEVICE_LOST,
        /** The system refused an access. */
        PERMISSION_DENIED,
        /** A file could not be read or written. */
        IO,
        /** Anything else, such as a fault of a driver or of Halite. */
        OTHER;

        /** By its name; a kind that this version does not know is {@link #OTHER}. */
        static @NonNull Kind of(@Nullable String name) {
            for (Kind kind : values()) {
                if (kind.name().equals(name)) {
                    return kind;
                }
            }
            return OTHER;
        }
    }

    private final Kind kind;
    private final String code;
    private final String context;

    /** Called by the native half. */
    HaliteException(@NonNull String message, @NonNull String kind, @NonNull String code, @NonNull String context) {
        super(message);
        this.kind = Kind.of(kind);
        this.code = code;
        this.context = context;
    }

    static @NonNull HaliteException invalid(@NonNull String message) {
        return new HaliteException(message, Kind.INVALID_INPUT.name(), "INVALID_ARGUMENT", "");
    }

    /** What kind of failure it is. */
    public @NonNull Kind kind() {
        return kind;
    }

    /** The name of the status code, such as {@code INVALID_ARGUMENT}. */
    public @NonNull String code() {
        return code;
    }

    /** What was being done, from the innermost step outwards. */
    public @NonNull List<String> context() {
        if (context.isEmpty()) {
            return Collections.emptyList();
        }
        return Collections.unmodifiableList(Arrays.asList(context.split("\n")));
    }
}
