package org.halite;

/** Why a model writes no further. */
public enum Stop {
    /** It ended what it says. */
    END,
    /** It wrote as many tokens as it was allowed to. */
    LENGTH,
    /** The context is full. */
    CONTEXT,
    /** The listener has enough. */
    CALLER,
    /** One of the texts came that end an answer. */
    TEXT
}
