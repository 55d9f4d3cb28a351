package org.halite;

import androidx.annotation.NonNull;

/**
 * How often a device's driver wrote recordings of work in its own form, since the device was opened: {@link Session#recordings}.
 * It does so once for given sizes and buffers, and for calls that grow step by step while the device works for the call before.
 * Work that is recorded for one execution does not count.
 */
public final class Recordings {
    private final long[] counts;

    Recordings(@NonNull long[] counts) {
        this.counts = counts;
    }

    /** Executions of recordings. */
    public long executed() {
        return counts[0];
    }

    /** Executions that waited for the recording to be written. */
    public long written() {
        return counts[1];
    }

    /** Recordings that were written ahead. */
    public long writtenAhead() {
        return counts[2];
    }

    /** Recordings among these that were executed. */
    public long foundAhead() {
        return counts[3];
    }

    @Override
    public @NonNull String toString() {
        return executed() + " executed, " + written() + " written, " + writtenAhead() + " written ahead, " + foundAhead()
                + " of them executed";
    }
}
