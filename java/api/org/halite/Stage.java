package org.halite;

import androidx.annotation.NonNull;

/** A stage of the way from a file to results. */
public enum Stage {
    /** A file is read. */
    READING,
    /** A model becomes a graph. */
    IMPORTING,
    /** The graph is rewritten to do less work. */
    OPTIMIZING,
    /** The order of the work is decided. */
    PLANNING,
    /** Kernels are chosen for a device. */
    CHOOSING_KERNELS,
    /** A module is written. */
    WRITING,
    /** Weights are copied to the device. */
    LOADING_WEIGHTS,
    /** The device's driver compiles kernels. */
    BUILDING_PIPELINES,
    /** Anything else; the detail names it. */
    OTHER;

    static @NonNull Stage of(@NonNull String name) {
        for (Stage stage : values()) {
            if (stage.name().equals(name)) {
                return stage;
            }
        }
        return OTHER;
    }
}
