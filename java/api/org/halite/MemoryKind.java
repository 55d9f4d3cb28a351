package org.halite;

import androidx.annotation.NonNull;

/** What memory of others is known by. */
public enum MemoryKind {
    /** A descriptor that only the same driver of the same device understands: Vulkan, CUDA, OpenGL. */
    OPAQUE_FD("opaque-fd"),
    /** A descriptor of Linux's dma-buf, which cameras, decoders and other devices understand. */
    DMA_BUF("dma-buf"),
    /** Memory of the process, which the device only reads. */
    HOST("host"),
    /** Android's {@code HardwareBuffer}, of the format {@code BLOB}. */
    ANDROID_HARDWARE_BUFFER("android-hardware-buffer"),
    /** A handle of Windows; Java has none. */
    OPAQUE_WIN32("opaque-win32");

    private final String text;

    MemoryKind(String text) {
        this.text = text;
    }

    /** Its name in the library. */
    @NonNull
    String text() {
        return text;
    }
}
