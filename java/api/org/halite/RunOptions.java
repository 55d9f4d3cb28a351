package org.halite;

import androidx.annotation.NonNull;
import androidx.annotation.Nullable;

/** Bounds a piece of work, lets it be stopped, and watches it. The same options may be used many times. */
public final class RunOptions {
    /** No bounds. */
    static final RunOptions NONE = new RunOptions();

    private long timeout = -1;
    private CancelToken token;
    private Progress listener;

    /** Gives up this long after the work begins. */
    public @NonNull RunOptions timeoutMillis(long milliseconds) {
        if (milliseconds < 0) {
            throw HaliteException.invalid("a time is not negative");
        }
        timeout = milliseconds;
        return this;
    }

    /** Stops when the token is set. */
    public @NonNull RunOptions cancel(@Nullable CancelToken token) {
        this.token = token;
        return this;
    }

    /** Tells how far the work is. */
    public @NonNull RunOptions progress(@Nullable ProgressListener told) {
        listener = told == null ? null : new Progress(told);
        return this;
    }

    long timeout() {
        return timeout;
    }

    /** Zero is none; a token that was closed is refused. */
    long token() {
        if (token == null) {
            return 0;
        }
        if (token.isClosed()) {
            throw HaliteException.invalid("the token was closed");
        }
        return token.number();
    }

    Progress listener() {
        return listener;
    }
}
