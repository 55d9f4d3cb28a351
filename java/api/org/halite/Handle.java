package org.halite;

import java.util.concurrent.atomic.AtomicLong;

/** Something of the native half. After {@link #close} its methods fail; closing twice does nothing. */
abstract class Handle implements AutoCloseable {
    private final AtomicLong number;

    Handle(long number) {
        this.number = new AtomicLong(number);
    }

    /** The number; the native half refuses zero, which it is once it was closed. */
    final long number() {
        return number.get();
    }

    /** Whether it was closed. */
    public final boolean isClosed() {
        return number.get() == 0;
    }

    /** Lets go of it. Work that uses it on another thread goes on with it until it ends. */
    @Override
    public void close() {
        long last = number.getAndSet(0);
        if (last != 0) {
            Native.free(last);
        }
    }
}
