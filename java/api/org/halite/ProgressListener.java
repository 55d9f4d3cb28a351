package org.halite;

import androidx.annotation.NonNull;

/** Is told how far a piece of work is. */
public interface ProgressListener {
    /**
     * Called on any thread, one call at a time. It should return soon, and must not use the session that it is told of. What it throws
     * stops the work, and is thrown by the call that does it.
     */
    void onProgress(@NonNull Stage stage, @NonNull String detail, long done, long total);
}
