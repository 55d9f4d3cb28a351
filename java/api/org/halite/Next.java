package org.halite;

import androidx.annotation.Nullable;

/** What a sequence writes next: a token, which it has now, or why there is none. */
public final class Next {
    private static final int END = -1;

    private final int number;

    Next(int number) {
        this.number = number;
    }

    /** Whether there is a token. */
    public boolean isToken() {
        return number >= 0;
    }

    /** The token; a negative number where there is none. */
    public int token() {
        return number;
    }

    /** Why there is none: {@link Stop#END} or {@link Stop#CONTEXT}; null where there is one. */
    public @Nullable Stop stop() {
        if (number >= 0) {
            return null;
        }
        return number == END ? Stop.END : Stop.CONTEXT;
    }
}
