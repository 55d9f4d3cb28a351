package org.halite;

import androidx.annotation.NonNull;

/** Memory as others know it: a descriptor, which this object owns and {@link #close} closes. */
public final class ExternalMemory extends Handle {
    private final MemoryKind kind;

    ExternalMemory(long number, MemoryKind kind) {
        super(number);
        this.kind = kind;
    }

    /**
     * Memory of this many bytes, of which no more is known. The descriptor stays yours, and this gets a duplicate; on Android it is {@code
     * ParcelFileDescriptor.getFd()}.
     *
     * @param kind {@link MemoryKind#OPAQUE_FD} or {@link MemoryKind#DMA_BUF}
     * @param bytes those of the whole allocation
     */
    public static @NonNull ExternalMemory of(@NonNull MemoryKind kind, int descriptor, long bytes) {
        return of(kind, descriptor, bytes, -1, false);
    }

    /**
     * The same, with what opaque descriptors have to state where the device would not choose it by itself.
     *
     * @param memoryType the index of the Vulkan memory type that it was allocated from; negative where that is not known
     * @param isDedicated whether it was allocated for one buffer alone
     */
    public static @NonNull ExternalMemory of(
            @NonNull MemoryKind kind, int descriptor, long bytes, int memoryType, boolean isDedicated) {
        return new ExternalMemory(Native.external(kind.text(), descriptor, bytes, memoryType, isDedicated), kind);
    }

    /** What it is known by. */
    public @NonNull MemoryKind kind() {
        return kind;
    }

    /** The descriptor, which stays this object's; {@code ParcelFileDescriptor.fromFd} duplicates it. */
    public int descriptor() {
        return (int) Native.externalFacts(number())[0];
    }

    /** The descriptor, which is yours then: for {@code ParcelFileDescriptor.adoptFd}, and for APIs that take descriptors over. */
    public int detach() {
        int descriptor = Native.externalDetach(number());
        close();
        return descriptor;
    }

    /** Bytes of the whole allocation. */
    public long byteLength() {
        return Native.externalFacts(number())[1];
    }

    /** The index of the Vulkan memory type that it was allocated from; -1 where that is not known. */
    public int memoryType() {
        return (int) Native.externalFacts(number())[2];
    }

    /** Whether it was allocated for one buffer alone. */
    public boolean isDedicated() {
        return Native.externalFacts(number())[3] != 0;
    }
}
