package org.halite;

import androidx.annotation.NonNull;
import androidx.annotation.Nullable;

import java.nio.ByteBuffer;
import java.util.Arrays;

/**
 * Memory that the device of a session shares with others: cameras, other processes, other APIs. Tensors lie in it without a copy.
 *
 * <p>Either the device has it, as at first, or the others, between {@link #release} and {@link #acquire}; meanwhile calls with its tensors
 * fail. Nobody waits for the others: they must have finished before {@link #acquire}. Close it when it is not needed any more: it stays as
 * long as its tensors and calls with them.
 */
public final class SharedMemory extends Handle {
    /** Bytes of one of Vulkan's UUIDs. */
    private static final int UUID = 16;

    /** What a device does with memory of a kind. */
    public static final class Support {
        private final long[] told;

        Support(long[] told) {
            this.told = told;
        }

        /** Whether it takes memory of others. */
        public boolean canOpen() {
            return told[0] != 0;
        }

        /** Whether it makes memory for others. */
        public boolean canCreate() {
            return told[1] != 0;
        }

        /** What addresses and sizes of {@link MemoryKind#HOST} are multiples of, mostly 4096; 1 for other kinds. */
        public long alignment() {
            return told[2];
        }
    }

    private final MemoryKind kind;

    private SharedMemory(long number, MemoryKind kind) {
        super(number);
        this.kind = kind;
    }

    /** What the device of a session does with memory of a kind. */
    public static @NonNull Support support(@NonNull Session session, @NonNull MemoryKind kind) {
        return new Support(Native.memorySupport(session.number(), kind.text()));
    }

    /**
     * Vulkan's UUID of a session's device, 16 bytes; null where it has none. Opaque descriptors have a meaning only where both sides have
     * this and {@link #driverUuid} in common.
     */
    public static @Nullable byte[] deviceUuid(@NonNull Session session) {
        byte[] both = Native.memoryUuids(session.number());
        return both == null ? null : Arrays.copyOf(both, UUID);
    }

    /** Vulkan's UUID of the driver of a session's device, 16 bytes; null where it has none. */
    public static @Nullable byte[] driverUuid(@NonNull Session session) {
        byte[] both = Native.memoryUuids(session.number());
        return both == null ? null : Arrays.copyOfRange(both, UUID, both.length);
    }

    /** Makes memory of at least so many bytes for others, who get it by {@link #export}. What it holds is not defined. */
    public static @NonNull SharedMemory create(@NonNull Session session, @NonNull MemoryKind kind, long bytes) {
        return new SharedMemory(Native.memoryCreate(session.number(), kind.text(), bytes), kind);
    }

    /** Takes memory of others by its handle, which stays the caller's. */
    public static @NonNull SharedMemory open(@NonNull Session session, @NonNull ExternalMemory memory) {
        return new SharedMemory(Native.memoryOpen(session.number(), memory.number()), memory.kind());
    }

    /**
     * Takes the memory of what remains in a direct buffer, which the device reads where it lies. Address and size are multiples of {@link
     * Support#alignment}: those of {@code FileChannel.map} are, and {@code allocateDirect(bytes + alignment).alignedSlice(alignment)} makes
     * such a buffer. It is held as long as the memory; nobody may write to it while a call uses it.
     */
    public static @NonNull SharedMemory of(@NonNull Session session, @NonNull ByteBuffer pages) {
        long number = Native.memoryOfBuffer(session.number(), pages, pages.position(), pages.remaining());
        return new SharedMemory(number, MemoryKind.HOST);
    }

    /**
     * Takes an {@code android.hardware.HardwareBuffer} of the format {@code BLOB}, and so many of its bytes, which are its width. The
     * device has a reference of its own: the caller may close the buffer. Fails elsewhere than on Android.
     */
    public static @NonNull SharedMemory ofHardwareBuffer(
            @NonNull Session session, @NonNull Object hardwareBuffer, long bytes) {
        long number = Native.memoryOfHardwareBuffer(session.number(), hardwareBuffer, bytes);
        return new SharedMemory(number, MemoryKind.ANDROID_HARDWARE_BUFFER);
    }

    /** What it is known by. */
    public @NonNull MemoryKind kind() {
        return kind;
    }

    /** Bytes that tensors can lie in. */
    public long byteLength() {
        return Native.memoryBytes(number());
    }

    /** A tensor of the bytes from an offset on, a multiple of 256. It keeps the memory. */
    public @NonNull Tensor tensor(@NonNull ElementType type, long offset, @NonNull long... shape) {
        return new Tensor(Native.memoryTensor(number(), type.text(), shape, offset));
    }

    /**
     * Copies a tensor to the bytes from an offset on, a multiple of 4, and waits for that. Tensors of the device do not go through the host.
     */
    public void write(long offset, @NonNull Tensor tensor) {
        Native.memoryWrite(number(), offset, tensor.number());
    }

    /** Gives the memory to the others, who see what calls that have returned wrote. Waits for the device. */
    public void release() {
        Native.memoryRelease(number());
    }

    /** Takes the memory back from the others, who must have finished; calls that begin afterwards see what they wrote. */
    public void acquire() {
        Native.memoryAcquire(number());
    }

    /** A new handle of memory from {@link #create}. */
    public @NonNull ExternalMemory export() {
        return new ExternalMemory(Native.memoryExport(number(), kind.text()), kind);
    }
}
