package org.halite;

/** What the native half calls. */
final class Texts {
    private final TextListener listener;

    Texts(TextListener listener) {
        this.listener = listener;
    }

    boolean tell(String text) {
        return listener.onText(text);
    }
}
