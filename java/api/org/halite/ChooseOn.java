package org.halite;

/** Where a {@link Sequence} that writes chooses its tokens. */
public enum ChooseOn {
    /** On the device, if it is a GPU; otherwise on the host. */
    AUTO("auto"),
    /** On the host. */
    HOST("host"),
    /**
     * On the device, where it can: it takes the most likely token, or draws among the most likely 64 at most, without a penalty. The host does
     * the rest.
     */
    DEVICE("device");

    final String text;

    ChooseOn(String text) {
        this.text = text;
    }
}
