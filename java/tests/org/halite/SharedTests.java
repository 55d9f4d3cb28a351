package org.halite;

import static org.halite.JavaTests.check;
import static org.halite.JavaTests.digits;
import static org.halite.JavaTests.equal;
import static org.halite.JavaTests.invalid;
import static org.halite.JavaTests.most;
import static org.halite.JavaTests.picture;
import static org.halite.JavaTests.thrown;

import java.io.File;
import java.io.FileInputStream;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.util.Arrays;
import java.util.Map;

/** Tests of memory that a device shares with others, which {@link JavaTests} runs. A second session stands for the others. */
final class SharedTests {
    private SharedTests() {}

    static void add(Map<String, JavaTests.Test> tests) {
        tests.put("a descriptor crosses to another session", SharedTests::descriptors);
        tests.put("results and inputs lie in shared memory", SharedTests::tensors);
        tests.put("the pages of a buffer are read where they lie", SharedTests::pages);
        tests.put("memory that cannot be shared is refused", SharedTests::refused);
    }

    /** Whether the device shares memory of a kind this way; says loudly where it does not. */
    private static boolean isMissing(Session session, MemoryKind kind, boolean withOpening, boolean withCreation) {
        SharedMemory.Support support = SharedMemory.support(session, kind);
        boolean missing = withOpening && !support.canOpen() || withCreation && !support.canCreate();
        if (missing) {
            System.out.println("SKIPPED: the device shares no memory of the kind " + kind);
        }
        return missing;
    }

    private static void descriptors() {
        try (Session session = digits(); Session other = digits()) {
            if (isMissing(session, MemoryKind.OPAQUE_FD, true, true)) {
                return;
            }
            byte[] own = SharedMemory.deviceUuid(session);
            equal(own.length, 16);
            check(Arrays.equals(own, SharedMemory.deviceUuid(other)), "the devices are one");
            check(Arrays.equals(SharedMemory.driverUuid(session), SharedMemory.driverUuid(other)), "so are the drivers");
            SharedMemory given = SharedMemory.create(session, MemoryKind.OPAQUE_FD, 1000);
            equal(given.byteLength(), 1024L);
            ExternalMemory handle = given.export();
            equal(handle.kind(), MemoryKind.OPAQUE_FD);
            check(handle.byteLength() >= 1024 && handle.memoryType() >= 0 && handle.descriptor() >= 0, "it is stated");
            ExternalMemory again =
                    ExternalMemory.of(
                            handle.kind(), handle.descriptor(), handle.byteLength(), handle.memoryType(), handle.isDedicated());
            check(again.descriptor() != handle.descriptor(), "it has a duplicate");
            SharedMemory taken = SharedMemory.open(other, handle);
            handle.close();
            invalid(() -> SharedMemory.open(other, handle), "closed");
            taken.release();
            try (Tensor values = Tensor.of(new float[] {1.5f, -2, 3}, 3)) {
                given.write(256, values);
            }
            given.release();
            try (Tensor gone = given.tensor(ElementType.FLOAT32, 256, 3)) {
                thrown(gone::floats);
            }
            taken.acquire();
            Tensor seen = taken.tensor(ElementType.FLOAT32, 256, 3);
            given.close();
            taken.close();
            check(Arrays.equals(seen.floats(), new float[] {1.5f, -2, 3}), "the tensor keeps the memory");
            seen.close();
            invalid(taken::acquire, "closed");
            // A descriptor that is given away stays open; whoever takes it closes it.
            int descriptor = again.detach();
            check(again.isClosed(), "it was given away");
            invalid(again::descriptor, "closed");
            ExternalMemory.of(MemoryKind.OPAQUE_FD, descriptor, 1024).close();
        }
    }

    private static void tensors() {
        try (Session session = digits()) {
            if (isMissing(session, MemoryKind.OPAQUE_FD, false, true)) {
                return;
            }
            try (SharedMemory memory = SharedMemory.create(session, MemoryKind.OPAQUE_FD, 2048);
                    Tensor picture = picture()) {
                memory.write(0, picture);
                try (Tensor there = memory.tensor(ElementType.FLOAT32, 0, 1, 1, 16, 16); Outputs outputs = session.run(there)) {
                    memory.write(1024, outputs.get(0));
                }
                try (Tensor results = memory.tensor(ElementType.FLOAT32, 1024, 1, 10)) {
                    check(results.isOnDevice(), "they are on the device");
                    equal(most(results.floats()), 7);
                }
                invalid(() -> memory.tensor(ElementType.FLOAT32, 4, 1), "multiple of 256");
                invalid(() -> memory.tensor(ElementType.FLOAT32, 0, 600), "does not lie in memory of 2048 bytes");
                invalid(() -> memory.tensor(ElementType.FLOAT32, -256, 1), "no offset");
                invalid(() -> memory.write(2046, picture), "multiple of 4");
            }
        }
    }

    private static void pages() throws Exception {
        try (Session session = digits()) {
            if (isMissing(session, MemoryKind.HOST, true, false)) {
                return;
            }
            int size = (int) Math.max(SharedMemory.support(session, MemoryKind.HOST).alignment(), 4096);
            File file = File.createTempFile("halite", ".pages");
            file.deleteOnExit();
            ByteBuffer pages;
            try (RandomAccessFile open = new RandomAccessFile(file, "rw"); Tensor picture = picture()) {
                pages = open.getChannel().map(FileChannel.MapMode.READ_WRITE, 0, size).order(ByteOrder.nativeOrder());
                picture.read(pages);
                pages.rewind();
            }
            Tensor there;
            try (SharedMemory memory = SharedMemory.of(session, pages)) {
                equal(memory.kind(), MemoryKind.HOST);
                equal(memory.byteLength(), (long) size);
                there = memory.tensor(ElementType.FLOAT32, 0, 1, 1, 16, 16);
                try (Tensor zero = Tensor.of(new float[1], 1)) {
                    equal(thrown(() -> memory.write(0, zero)).kind(), HaliteException.Kind.PERMISSION_DENIED);
                }
                pages.position(4);
                invalid(() -> SharedMemory.of(session, pages), "multiple");
            }
            System.gc();
            try (Tensor kept = there; Outputs outputs = session.run(kept)) {
                equal(most(outputs.get(0).floats()), 7);
            }
        }
    }

    private static void refused() throws Exception {
        try (Session session = digits()) {
            invalid(() -> SharedMemory.of(session, ByteBuffer.allocate(4096)), "not direct");
            invalid(() -> SharedMemory.create(session, MemoryKind.OPAQUE_FD, -1), "no memory has -1 bytes");
            invalid(() -> ExternalMemory.of(MemoryKind.OPAQUE_FD, -1, 64), "-1 is no descriptor");
            invalid(() -> ExternalMemory.of(MemoryKind.DMA_BUF, 1 << 20, 64), "duplicated");
            invalid(() -> ExternalMemory.of(MemoryKind.HOST, 0, 64), "has no descriptor");
            invalid(() -> SharedMemory.ofHardwareBuffer(session, new Object(), 64), "only Android");
            equal(thrown(() -> SharedMemory.create(session, MemoryKind.HOST, 64)).kind(), HaliteException.Kind.UNSUPPORTED);
            try (FileInputStream file = new FileInputStream("Cargo.toml")) {
                invalid(() -> ExternalMemory.of(MemoryKind.DMA_BUF, JavaTests.number(file.getFD()), -1), "-1 bytes");
            }
        }
    }
}
