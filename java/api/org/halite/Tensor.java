package org.halite;

import androidx.annotation.NonNull;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * A dense array of numbers, on the host or on a device, which never changes. Results of calls stay on the device until they are read, and
 * go into the next call as they are. Close it when it is not needed any more: its memory is not Java's.
 */
public final class Tensor extends Handle {
    Tensor(long number) {
        super(number);
    }

    /** A tensor on the host with a copy of these elements. */
    public static @NonNull Tensor of(@NonNull float[] elements, @NonNull long... shape) {
        ByteBuffer bytes = fresh((long) elements.length * Float.BYTES);
        bytes.asFloatBuffer().put(elements);
        return of(ElementType.FLOAT32, bytes, shape);
    }

    /** A tensor on the host with a copy of these elements. */
    public static @NonNull Tensor of(@NonNull double[] elements, @NonNull long... shape) {
        ByteBuffer bytes = fresh((long) elements.length * Double.BYTES);
        bytes.asDoubleBuffer().put(elements);
        return of(ElementType.FLOAT64, bytes, shape);
    }

    /** A tensor on the host with a copy of these elements. */
    public static @NonNull Tensor of(@NonNull int[] elements, @NonNull long... shape) {
        ByteBuffer bytes = fresh((long) elements.length * Integer.BYTES);
        bytes.asIntBuffer().put(elements);
        return of(ElementType.INT32, bytes, shape);
    }

    /** A tensor on the host with a copy of these elements. */
    public static @NonNull Tensor of(@NonNull long[] elements, @NonNull long... shape) {
        ByteBuffer bytes = fresh((long) elements.length * Long.BYTES);
        bytes.asLongBuffer().put(elements);
        return of(ElementType.INT64, bytes, shape);
    }

    /** A tensor of this type on the host with a copy of these bytes. */
    public static @NonNull Tensor of(@NonNull ElementType type, @NonNull byte[] elements, @NonNull long... shape) {
        ByteBuffer bytes = fresh(elements.length);
        bytes.put(elements).flip();
        return of(type, bytes, shape);
    }

    /**
     * A tensor on the host with a copy of what remains in a buffer, whose position stays. Elements are little-endian, which is the native
     * order everywhere Halite runs; ask the buffer for {@code order(ByteOrder.nativeOrder())}. Nobody may write to it meanwhile.
     */
    public static @NonNull Tensor of(@NonNull ElementType type, @NonNull ByteBuffer elements, @NonNull long... shape) {
        return make(type, elements, 0, shape);
    }

    /** The same on the device of a session: the elements are copied there and nowhere else. */
    public static @NonNull Tensor onDevice(
            @NonNull Session session, @NonNull ElementType type, @NonNull ByteBuffer elements, @NonNull long... shape) {
        return make(type, elements, session.number(), shape);
    }

    private static Tensor make(ElementType type, ByteBuffer elements, long session, long[] shape) {
        if (type == ElementType.OTHER) {
            throw HaliteException.invalid("a tensor has one of the types of elements that have names");
        }
        ByteBuffer direct = elements;
        if (!elements.isDirect()) {
            direct = fresh(elements.remaining());
            direct.put(elements.duplicate()).flip();
        }
        return new Tensor(
                Native.tensor(type.text(), shape, direct, direct.position(), direct.remaining(), session));
    }

    /** Bytes of the native order. */
    private static ByteBuffer fresh(long bytes) {
        if (bytes > Integer.MAX_VALUE) {
            throw HaliteException.invalid(bytes + " bytes are more than a buffer of Java's can have");
        }
        return ByteBuffer.allocateDirect((int) bytes).order(ByteOrder.nativeOrder());
    }

    /** The type of its elements. */
    public @NonNull ElementType elementType() {
        return ElementType.of(elementTypeName());
    }

    /** The name of the type of its elements, such as {@code f32}. */
    public @NonNull String elementTypeName() {
        return Native.tensorType(number());
    }

    /** Its sizes, outermost first. */
    public @NonNull long[] shape() {
        return Native.tensorShape(number());
    }

    /** How many bytes its elements have. */
    public long byteLength() {
        return Native.tensorBytes(number());
    }

    /** Whether its elements are on a device. */
    public boolean isOnDevice() {
        return Native.tensorIsOnDevice(number());
    }

    /**
     * Copies its elements to a buffer, from its position on, which moves behind them. A direct buffer is written by the device's driver
     * itself. Nobody may use it meanwhile.
     */
    public void read(@NonNull ByteBuffer target) {
        if (target.isReadOnly()) {
            throw HaliteException.invalid("the buffer is for reading only");
        }
        long length = byteLength();
        if (length > target.remaining()) {
            throw HaliteException.invalid(
                    "the tensor has " + length + " bytes, and " + target.remaining() + " remain in the buffer");
        }
        if (target.isDirect()) {
            Native.tensorRead(number(), target, target.position(), (int) length);
            target.position(target.position() + (int) length);
        } else {
            target.put(bytes());
        }
    }

    /** A copy of its elements in a direct buffer of the native order. */
    public @NonNull ByteBuffer bytes() {
        ByteBuffer bytes = fresh(byteLength());
        Native.tensorRead(number(), bytes, 0, bytes.capacity());
        return bytes;
    }

    /** A copy of its elements, which are 32-bit floats. */
    public @NonNull float[] floats() {
        ByteBuffer bytes = bytesOf(ElementType.FLOAT32);
        float[] elements = new float[bytes.capacity() / Float.BYTES];
        bytes.asFloatBuffer().get(elements);
        return elements;
    }

    /** A copy of its elements, which are 64-bit floats. */
    public @NonNull double[] doubles() {
        ByteBuffer bytes = bytesOf(ElementType.FLOAT64);
        double[] elements = new double[bytes.capacity() / Double.BYTES];
        bytes.asDoubleBuffer().get(elements);
        return elements;
    }

    /** A copy of its elements, which are 32-bit integers. */
    public @NonNull int[] ints() {
        ByteBuffer bytes = bytesOf(ElementType.INT32);
        int[] elements = new int[bytes.capacity() / Integer.BYTES];
        bytes.asIntBuffer().get(elements);
        return elements;
    }

    /** A copy of its elements, which are 64-bit integers. */
    public @NonNull long[] longs() {
        ByteBuffer bytes = bytesOf(ElementType.INT64);
        long[] elements = new long[bytes.capacity() / Long.BYTES];
        bytes.asLongBuffer().get(elements);
        return elements;
    }

    private ByteBuffer bytesOf(ElementType wanted) {
        String name = elementTypeName();
        if (ElementType.of(name) != wanted) {
            throw HaliteException.invalid("the elements are " + name + ", not " + wanted.text());
        }
        return bytes();
    }
}
