package org.halite;

import androidx.annotation.NonNull;

/** Is told what a model writes, while it writes. */
public interface TextListener {
    /**
     * Called on the thread of {@link Sequence#generate}, once for each token. The text is what is sure by now, and may be empty: bytes of a
     * character may be missing, or it may be the beginning of a text that ends the answer. Returns whether the model is to write on. It must
     * not use the sequence. What it throws ends the writing, and is thrown by the call.
     */
    boolean onText(@NonNull String text);
}
