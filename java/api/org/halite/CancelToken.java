package org.halite;

/** Stops work from any thread: give it to calls with {@link RunOptions#cancel}. Once set, it stays set. */
public final class CancelToken extends Handle {
    /** A token that is not set. */
    public CancelToken() {
        super(Native.token());
    }

    /** Stops the work. */
    public void cancel() {
        Native.cancel(number());
    }

    /** Whether it was set. */
    public boolean isCancelled() {
        return Native.isCancelled(number());
    }
}
