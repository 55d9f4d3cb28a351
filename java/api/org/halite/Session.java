package org.halite;

import androidx.annotation.NonNull;
import androidx.annotation.Nullable;

import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;

/**
 * A model or module, ready to run. Many threads may run one session at once. Building one may take seconds, so on Android do it on
 * another thread than the main one.
 *
 * <pre>{@code
 * try (Session session = Session.builder().model(file).cache(folder).build();
 *         Tensor picture = Tensor.of(pixels, 1, 1, 16, 16);
 *         Outputs outputs = session.run(Collections.singletonMap("picture", picture))) {
 *     float[] probabilities = outputs.get("probabilities").floats();
 * }
 * }</pre>
 */
public final class Session extends Handle {
    private Session(long number) {
        super(number);
    }

    /** What a session is made from. */
    public static @NonNull Builder builder() {
        return new Builder();
    }

    /** The version of the native library. */
    public static @NonNull String version() {
        return Native.version();
    }

    /** Runs the default function: inputs by their names. */
    public @NonNull Outputs run(@NonNull Map<String, Tensor> inputs) {
        return run(null, inputs, null);
    }

    /** The same within bounds. */
    public @NonNull Outputs run(@NonNull Map<String, Tensor> inputs, @Nullable RunOptions options) {
        return run(null, inputs, options);
    }

    /** Runs a function by its name; the default one where that is null. */
    public @NonNull Outputs run(
            @Nullable String function, @NonNull Map<String, Tensor> inputs, @Nullable RunOptions options) {
        return run(function, new Inputs(inputs), options);
    }

    /** Runs the default function: inputs by their places. */
    public @NonNull Outputs run(@NonNull Tensor... inputs) {
        return run(null, new Inputs(inputs), null);
    }

    private Outputs run(String function, Inputs inputs, RunOptions options) {
        RunOptions bounds = options == null ? RunOptions.NONE : options;
        return new Outputs(
                Native.run(
                        number(),
                        function,
                        inputs.names,
                        inputs.tensors,
                        bounds.timeout(),
                        bounds.token(),
                        bounds.listener()));
    }

    /** A state of its own for a sequence of calls of the default function. */
    public @NonNull State state() {
        return state(null);
    }

    /** The same of a function by its name. */
    public @NonNull State state(@Nullable String function) {
        return new State(Native.state(number(), function));
    }

    /** Lets the state that a program keeps by itself begin anew. */
    public void resetState() {
        Native.resetState(number());
    }

    /** The names of all functions. */
    public @NonNull List<String> functions() {
        return Collections.unmodifiableList(Arrays.asList(Native.functions(number())));
    }

    /** The inputs of the default function. */
    public @NonNull List<ValueInfo> inputs() {
        return inputs(null);
    }

    /** The inputs of a function by its name. */
    public @NonNull List<ValueInfo> inputs(@Nullable String function) {
        return ValueInfo.of(Native.values(number(), function, false));
    }

    /** The outputs of the default function. */
    public @NonNull List<ValueInfo> outputs() {
        return outputs(null);
    }

    /** The outputs of a function by its name. */
    public @NonNull List<ValueInfo> outputs(@Nullable String function) {
        return ValueInfo.of(Native.values(number(), function, true));
    }

    /** The URI of its device; empty where it needs none. */
    public @NonNull String device() {
        return Native.sessionDevice(number());
    }

    /** How often its device's driver wrote recordings of work; zeros where it needs no device. */
    public @NonNull Recordings recordings() {
        return new Recordings(Native.recordings(number()));
    }

    /** What a session is made from: a model, and choices. */
    public static final class Builder {
        private final List<String> settings = new ArrayList<>();
        private byte[] array;
        private ByteBuffer buffer;
        private int file = -1;
        private long offset;
        private long length;

        private Builder() {}

        /** A file. It is mapped, and its weights go from there to the device; weights in files beside it are found. */
        public @NonNull Builder model(@NonNull File file) {
            return set("model", file.getPath(), "");
        }

        /** Bytes. */
        public @NonNull Builder model(@NonNull byte[] bytes) {
            array = bytes.clone();
            return this;
        }

        /** What remains in a direct buffer. It is copied when the session is built. */
        public @NonNull Builder model(@NonNull ByteBuffer bytes) {
            if (!bytes.isDirect()) {
                throw HaliteException.invalid("the buffer is not direct; make one with ByteBuffer.allocateDirect");
            }
            buffer = bytes;
            offset = bytes.position();
            length = bytes.remaining();
            return this;
        }

        /** All that a stream gives, such as a compressed asset. The caller closes it. */
        public @NonNull Builder model(@NonNull InputStream stream) throws IOException {
            ByteArrayOutputStream all = new ByteArrayOutputStream();
            byte[] piece = new byte[1 << 16];
            for (int count = stream.read(piece); count >= 0; count = stream.read(piece)) {
                all.write(piece, 0, count);
            }
            array = all.toByteArray();
            return this;
        }

        /**
         * A part of an open file: on Android {@code fd.getParcelFileDescriptor().getFd()}, {@code fd.getStartOffset()} and {@code
         * fd.getLength()} of an {@code AssetFileDescriptor}, or the number of a {@code ParcelFileDescriptor}. A negative length is all to
         * the end. It is read when the session is built, and has to stay open until then; its place does not move. The caller closes it.
         */
        public @NonNull Builder model(int fileDescriptor, long offset, long length) {
            if (fileDescriptor < 0 || offset < 0) {
                throw HaliteException.invalid("numbers of files and offsets are not negative");
            }
            this.file = fileDescriptor;
            this.offset = offset;
            this.length = length;
            return this;
        }

        /** A name for messages, for models that are no file. */
        public @NonNull Builder name(@NonNull String name) {
            return set("name", name, "");
        }

        /** A device by its URI or a part of it, such as {@code vulkan}. Without it the best one is taken. */
        public @NonNull Builder device(@NonNull String uri) {
            return set("device", uri, "");
        }

        /** The same, out of {@link Device#list}. */
        public @NonNull Builder device(@NonNull Device device) {
            return device(device.uri());
        }

        /** An option of the driver. */
        public @NonNull Builder option(@NonNull String name, @NonNull String value) {
            return set("option", name, value);
        }

        /**
         * Where compiled models are kept for the next time: on Android a folder of its own in {@code context.getCacheDir()}. Without it
         * the user's cache is taken, which Android apps do not have: they compile each time.
         */
        public @NonNull Builder cache(@NonNull File folder) {
            return set("cache", folder.getPath(), "");
        }

        /** Compiled models are not kept. */
        public @NonNull Builder withoutCache() {
            return set("cache", "", "");
        }

        /** Files are read at once, and may change afterwards. */
        public @NonNull Builder preload() {
            return set("preload", "", "");
        }

        /** A model computes with 16-bit floats inside. */
        public @NonNull Builder halfPrecision() {
            return set("f16", "", "");
        }

        /** The size of a dimension that the model left open; may be called again for other sizes. */
        public @NonNull Builder dimension(@NonNull String name, long size) {
            return set("dimension", name, Long.toString(size));
        }

        /** Names state: inputs and the outputs that replace them, such as {@code past_*} and {@code present_*}. */
        public @NonNull Builder state(@NonNull String input, @NonNull String output) {
            return set("state", input, output);
        }

        /** A file with the weights of a module. */
        public @NonNull Builder parameters(@NonNull String scope, @NonNull File file) {
            return set("parameters", scope, file.getPath());
        }

        private Builder set(String what, String first, String second) {
            Collections.addAll(settings, what, first, second);
            return this;
        }

        /** Reads the model, opens the device, compiles, and loads the weights. */
        public @NonNull Session build() {
            return build(null);
        }

        /** The same within bounds. */
        public @NonNull Session build(@Nullable RunOptions options) {
            RunOptions bounds = options == null ? RunOptions.NONE : options;
            return new Session(
                    Native.session(
                            settings.toArray(new String[0]),
                            array,
                            buffer,
                            file,
                            offset,
                            length,
                            bounds.timeout(),
                            bounds.token(),
                            bounds.listener()));
        }

        /** Makes a language model that writes text, of a GGUF file, instead of a session. */
        public @NonNull Generator generator(@Nullable GeneratorOptions wanted) {
            return generator(wanted, null);
        }

        /** The same within bounds. */
        public @NonNull Generator generator(@Nullable GeneratorOptions wanted, @Nullable RunOptions options) {
            GeneratorOptions chosen = Generator.orDefault(wanted);
            RunOptions bounds = options == null ? RunOptions.NONE : options;
            return new Generator(
                    Native.generator(
                            settings.toArray(new String[0]),
                            array,
                            buffer,
                            file,
                            offset,
                            length,
                            chosen.context,
                            chosen.keys.text,
                            chosen.values.text,
                            chosen.scoring,
                            chosen.tokenizer,
                            chosen.chooseOn.text,
                            chosen.batch,
                            bounds.timeout(),
                            bounds.token(),
                            bounds.listener()));
        }

        /** Makes a language model that makes vectors of texts, of a GGUF file, instead of a session. */
        public @NonNull Embedder embedder(@Nullable RunOptions options) {
            RunOptions bounds = options == null ? RunOptions.NONE : options;
            return new Embedder(
                    Native.embedder(
                            settings.toArray(new String[0]),
                            array,
                            buffer,
                            file,
                            offset,
                            length,
                            bounds.timeout(),
                            bounds.token(),
                            bounds.listener()));
        }
    }
}
