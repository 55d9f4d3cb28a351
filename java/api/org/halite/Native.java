package org.halite;

import java.nio.ByteBuffer;

/** The native half. Objects are handles: numbers that are freed once. */
final class Native {
    /** The system property that names the library's file, where it is not on the library path. */
    private static final String FILE = "halite.library";

    static {
        String file = System.getProperty(FILE);
        if (file != null) {
            System.load(file);
        } else {
            System.loadLibrary("halite");
        }
    }

    private Native() {}

    static native String version();

    static native void free(long handle);

    static native String[] devices();

    static native long session(
            String[] settings,
            byte[] array,
            ByteBuffer buffer,
            int file,
            long offset,
            long length,
            long timeout,
            long token,
            Progress listener);

    static native long generator(
            String[] settings,
            byte[] array,
            ByteBuffer buffer,
            int file,
            long offset,
            long length,
            long context,
            String keys,
            String values,
            boolean scoring,
            String tokenizer,
            String chooseOn,
            long batch,
            long timeout,
            long token,
            Progress listener);

    static native long embedder(
            String[] settings,
            byte[] array,
            ByteBuffer buffer,
            int file,
            long offset,
            long length,
            long timeout,
            long token,
            Progress listener);

    static native String[] functions(long session);

    static native String[] values(long session, String function, boolean isOutputs);

    static native String sessionDevice(long session);

    static native long[] recordings(long session);

    static native void resetState(long session);

    static native long run(
            long session,
            String function,
            String[] names,
            long[] tensors,
            long timeout,
            long token,
            Progress listener);

    static native String[] outputNames(long outputs);

    static native long[] outputTensors(long outputs);

    static native long state(long session, String function);

    static native long stateRun(
            long state, String[] names, long[] tensors, long timeout, long token, Progress listener);

    static native void stateReset(long state);

    static native String[] stateNames(long state);

    static native long stateGet(long state, String name);

    static native void stateSet(long state, String name, long tensor);

    static native long stateFork(long state);

    static native byte[] stateSave(long state);

    static native void stateLoad(long state, byte[] saved);

    static native long generatorSize(long generator, boolean ofVocabulary);

    static native int[] generatorTokenize(long generator, String text, boolean withControl);

    static native String generatorText(long generator, int[] tokens);

    static native boolean generatorIsEnd(long generator, int token);

    static native String generatorChat(long generator, String[] rolesAndContents, String tools, String values);

    static native String generatorDevice(long generator);

    static native long generatorBatch(long generator);

    static native int[] generatorStep(
            long generator, long[] sequences, long[] samplers, long timeout, long token, Progress listener);

    static native long sampler(
            long generator,
            float temperature,
            float topP,
            float minP,
            float penalty,
            int topK,
            int penaltyLast,
            long seed,
            boolean ignoreEnd,
            String jsonSchema);

    static native long sequence(long generator);

    static native long sequencePrompt(
            long sequence, int[] tokens, long timeout, long token, Progress listener);

    static native void sequenceAppend(
            long sequence, int[] tokens, long timeout, long token, Progress listener);

    static native double[] sequenceScore(
            long sequence, int[] tokens, long timeout, long token, Progress listener);

    static native String sequenceGenerate(
            long sequence,
            float temperature,
            float topP,
            float minP,
            float penalty,
            int topK,
            int penaltyLast,
            long seed,
            long most,
            boolean ignoreEnd,
            String[] stops,
            String jsonSchema,
            Texts texts,
            long timeout,
            long token,
            Progress listener);

    static native void sequenceTruncate(long sequence, long count);

    static native int[] sequenceTokens(long sequence);

    static native float[] sequenceLogits(long sequence);

    static native long sequenceBytes(long sequence);

    static native long sequenceFork(long sequence);

    static native byte[] sequenceSave(long sequence);

    static native void sequenceLoad(long sequence, byte[] saved);

    static native long embedderLongest(long embedder);

    static native int[] embedderTokenize(long embedder, String text);

    static native float[] embedderEmbed(
            long embedder, int[] tokens, boolean normalize, long timeout, long token, Progress listener);

    static native long tensor(
            String elementType, long[] shape, ByteBuffer elements, int offset, int length, long session);

    static native String tensorType(long tensor);

    static native long[] tensorShape(long tensor);

    static native long tensorBytes(long tensor);

    static native boolean tensorIsOnDevice(long tensor);

    static native void tensorRead(long tensor, ByteBuffer target, int offset, int length);

    static native long[] memorySupport(long session, String kind);

    static native byte[] memoryUuids(long session);

    static native long memoryCreate(long session, String kind, long bytes);

    static native long memoryOpen(long session, long external);

    static native long memoryOfBuffer(long session, ByteBuffer buffer, int offset, int length);

    static native long memoryOfHardwareBuffer(long session, Object buffer, long bytes);

    static native long memoryExport(long memory, String kind);

    static native long memoryBytes(long memory);

    static native long memoryTensor(long memory, String elementType, long[] shape, long offset);

    static native void memoryWrite(long memory, long offset, long tensor);

    static native void memoryAcquire(long memory);

    static native void memoryRelease(long memory);

    static native long external(
            String kind, int descriptor, long bytes, int memoryType, boolean isDedicated);

    static native long[] externalFacts(long external);

    static native int externalDetach(long external);

    static native long token();

    static native void cancel(long token);

    static native boolean isCancelled(long token);
}
