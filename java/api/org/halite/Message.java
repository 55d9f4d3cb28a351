package org.halite;

import androidx.annotation.NonNull;

/** A message of a conversation. */
public final class Message {
    private final String role;
    private final String content;

    /** Who says it ({@code system}, {@code user}, {@code assistant}), and what is said. */
    public Message(@NonNull String role, @NonNull String content) {
        if (role == null || content == null) {
            throw HaliteException.invalid("a message has a role and a content");
        }
        this.role = role;
        this.content = content;
    }

    /** Who says it. */
    public @NonNull String role() {
        return role;
    }

    /** What is said. */
    public @NonNull String content() {
        return content;
    }
}
