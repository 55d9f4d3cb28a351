package org.halite;

import java.io.ByteArrayInputStream;
import java.io.File;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.IOException;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Tests of the Java interface on a desktop virtual machine: {@code JavaTests DEMO DECODER LANGUAGE CACHE [DEVICE]}, where
 * DEMO is the folder demo/digits, DECODER a model with state, LANGUAGE the folder of small language models, and CACHE an empty folder. `cargo xtask java --check` runs them on each Vulkan driver.
 */
public final class JavaTests {
    private static File digits;
    private static File decoder;
    private static File cache;
    static String device;
    private static byte[] picture;

    interface Test {
        void run() throws Exception;
    }

    public static void main(String[] args) throws Exception {
        digits = new File(args[0], "digits.onnx");
        decoder = new File(args[1]);
        TextTests.folder = new File(args[2]);
        cache = new File(args[3]);
        device = args.length > 4 ? args[4] : "vulkan";
        byte[] npy = Files.readAllBytes(new File(args[0], "sample_7.npy").toPath());
        picture = Arrays.copyOfRange(npy, npy.length - 16 * 16 * 4, npy.length);

        Map<String, Test> tests = new java.util.LinkedHashMap<>();
        tests.put("devices are listed", JavaTests::devicesAreListed);
        tests.put("a picture is a seven, from everywhere a model can come from", JavaTests::modelsFromEverywhere);
        tests.put("functions, inputs and outputs have names", JavaTests::names);
        tests.put("tensors go in and out by arrays and buffers", JavaTests::tensors);
        tests.put("results go into the next call without a copy", JavaTests::deviceTensors);
        tests.put("failures are exceptions that say what to do", JavaTests::failures);
        tests.put("what was closed fails, on any thread", JavaTests::closed);
        tests.put("work is cancelled and ends in time", JavaTests::cancelled);
        tests.put("progress is told, and what a listener throws comes back", JavaTests::progress);
        tests.put("state goes on, is reset, forked, saved and loaded", JavaTests::state);
        tests.put("many threads run one session", JavaTests::threads);
        tests.put("compiled models are kept in the app's folder", JavaTests::caches);
        SharedTests.add(tests);
        TextTests.add(tests);
        tests.put("the interface says what may be null", JavaTests::nullness);
        int failed = 0;
        for (Map.Entry<String, Test> test : tests.entrySet()) {
            try {
                test.getValue().run();
                System.out.println("ok      " + test.getKey());
            } catch (Throwable why) {
                failed += 1;
                System.out.println("FAILED  " + test.getKey());
                why.printStackTrace(System.out);
            }
        }
        System.out.println(tests.size() - failed + " of " + tests.size() + " tests passed, Halite " + Session.version());
        System.exit(failed == 0 ? 0 : 1);
    }

    // What is tested.

    /** Kotlin takes what is not annotated for something that may be null or not, and no compiler helps then. */
    private static void nullness() throws Exception {
        int seen = 0;
        for (File source : new File("java/api/org/halite").listFiles((folder, name) -> !name.startsWith("package-"))) {
            String text = new String(Files.readAllBytes(source.toPath()), StandardCharsets.UTF_8).replaceAll("<[^<>]*>", "");
            Class<?> type = Class.forName("org.halite." + source.getName().replace(".java", ""), false, JavaTests.class.getClassLoader());
            if (!java.lang.reflect.Modifier.isPublic(type.getModifiers())) {
                continue;
            }
            // References in the head of a public method: each has one of the two annotations before it.
            java.util.regex.Matcher heads =
                    java.util.regex.Pattern.compile("\\n +public (?!enum|class|final class|static final class|interface)([^;{=]*?)\\(([^{;]*?)\\)[^{;]*[{;]").matcher(text);
            while (heads.find()) {
                String head = heads.group(1).trim();
                List<String> parts = new ArrayList<>(Arrays.asList(heads.group(2).split(",")));
                parts.add(head.contains(" ") ? head.replaceAll(" \\w+$", "") : "void");
                for (String part : parts) {
                    String plain = part.trim().replaceAll("\\b(static|final|synchronized)\\b", "").trim();
                    boolean primitive = plain.isEmpty() || plain.matches("(void|boolean|int|long|float|double|byte)( \\w+)?");
                    check(
                            primitive || plain.startsWith("@NonNull") || plain.startsWith("@Nullable"),
                            source.getName() + ": " + heads.group(0).trim() + ": is '" + plain + "' null?");
                    seen += primitive ? 0 : 1;
                }
            }
        }
        check(seen > 80, "only " + seen + " references were found");
    }

    private static void devicesAreListed() {
        List<Device> all = Device.list();
        check(all.stream().anyMatch(one -> one.uri().startsWith("vulkan://")), "no Vulkan device in " + all);
        Device processor = all.stream().filter(one -> one.uri().startsWith("local-task")).findFirst().get();
        equal(processor.kind(), Device.Kind.CPU);
        check(processor.unusable() == null && !processor.name().isEmpty(), "the processor can be used");
    }

    private static void modelsFromEverywhere() throws Exception {
        byte[] bytes = Files.readAllBytes(digits.toPath());
        ByteBuffer direct = ByteBuffer.allocateDirect(bytes.length + 8);
        direct.position(8);
        direct.put(bytes).position(8);
        File padded = File.createTempFile("halite", ".bin");
        padded.deleteOnExit();
        byte[] around = new byte[bytes.length + 300];
        System.arraycopy(bytes, 0, around, 100, bytes.length);
        Files.write(padded.toPath(), around);
        try (FileInputStream whole = new FileInputStream(digits); FileInputStream part = new FileInputStream(padded)) {
            List<Session.Builder> all =
                    Arrays.asList(
                            Session.builder().model(digits),
                            Session.builder().model(digits).preload(),
                            Session.builder().model(bytes).name("bytes"),
                            Session.builder().model(direct),
                            Session.builder().model(new ByteArrayInputStream(bytes)),
                            Session.builder().model(number(whole.getFD()), 0, -1),
                            Session.builder().model(number(part.getFD()), 100, bytes.length));
            for (Session.Builder one : all) {
                try (Session session = one.device(device).withoutCache().build()) {
                    equal(seen(session), 7);
                }
            }
            equal(part.read(), 0);
        }
    }

    private static void names() {
        try (Session session = digits()) {
            equal(session.functions().size(), 1);
            equal(session.inputs().size(), 1);
            ValueInfo input = session.inputs().get(0);
            equal(input.name(), "picture");
            equal(input.elementType(), ElementType.FLOAT32);
            equal(input.shape(), Arrays.asList("1", "1", "16", "16"));
            check(!input.isOptional(), "the picture is needed");
            equal(session.outputs().get(0).name(), "probabilities");
            check(session.device().startsWith("vulkan://"), session.device());
            try (Tensor picture = picture(); Outputs outputs = session.run(picture)) {
                equal(outputs.names(), Collections.singletonList("probabilities"));
                equal(outputs.get("probabilities").shape()[1], 10L);
            }
            Recordings recordings = session.recordings();
            check(recordings.executed() >= 1 && recordings.written() >= 1, recordings.toString());
            check(recordings.written() <= recordings.executed(), recordings.toString());
            check(recordings.foundAhead() <= recordings.writtenAhead(), recordings.toString());
        }
    }

    private static void tensors() {
        try (Tensor floats = Tensor.of(new float[] {1, -2, 3.5f, 0}, 2, 2);
                Tensor longs = Tensor.of(new long[] {Long.MIN_VALUE, 7}, 2);
                Tensor ints = Tensor.of(new int[] {1, 2, 3}, 3);
                Tensor doubles = Tensor.of(new double[] {0.1}, 1);
                Tensor bytes = Tensor.of(ElementType.UINT8, new byte[] {-1, 2}, 2);
                Tensor scalar = Tensor.of(new float[] {4})) {
            check(Arrays.equals(floats.floats(), new float[] {1, -2, 3.5f, 0}), "floats");
            check(Arrays.equals(floats.shape(), new long[] {2, 2}), "shape");
            check(Arrays.equals(longs.longs(), new long[] {Long.MIN_VALUE, 7}), "longs");
            check(Arrays.equals(ints.ints(), new int[] {1, 2, 3}), "ints");
            equal(doubles.doubles()[0], 0.1);
            equal(bytes.bytes().get(0), (byte) -1);
            equal(bytes.elementType(), ElementType.UINT8);
            equal(scalar.shape().length, 0);
            equal(floats.byteLength(), 16L);
            check(!floats.isOnDevice(), "it is on the host");

            ByteBuffer direct = ByteBuffer.allocateDirect(24).order(ByteOrder.nativeOrder());
            direct.position(4);
            floats.read(direct);
            equal(direct.position(), 20);
            equal(direct.getFloat(12), 3.5f);
            ByteBuffer onHeap = ByteBuffer.allocate(16).order(ByteOrder.nativeOrder());
            floats.read(onHeap);
            equal(onHeap.getFloat(4), -2f);
            invalid(() -> floats.read(ByteBuffer.allocateDirect(15)), "15 remain");
            invalid(() -> floats.read(direct.asReadOnlyBuffer()), "reading only");
            invalid(() -> floats.ints(), "f32, not i32");

            direct.position(4).limit(20);
            try (Tensor again = Tensor.of(ElementType.FLOAT32, direct, 4);
                    Tensor heap = Tensor.of(ElementType.FLOAT32, flipped(onHeap), 4)) {
                check(Arrays.equals(again.floats(), floats.floats()), "from a direct buffer");
                check(Arrays.equals(heap.floats(), floats.floats()), "from a buffer on the heap");
                equal(direct.position(), 4);
            }
        }
        invalid(() -> Tensor.of(new float[3], 2, 2), "");
        invalid(() -> Tensor.of(new float[4], -2, -2), "no shape");
    }

    private static void deviceTensors() {
        ByteBuffer direct = ByteBuffer.allocateDirect(picture.length).order(ByteOrder.nativeOrder());
        direct.put(picture).flip();
        try (Session session = digits();
                Tensor there = Tensor.onDevice(session, ElementType.FLOAT32, direct, 1, 1, 16, 16);
                Outputs outputs = session.run(Collections.singletonMap("picture", there))) {
            check(there.isOnDevice() && outputs.get(0).isOnDevice(), "both are on the device");
            equal(most(outputs.get(0).floats()), 7);
            try (Tensor taken = outputs.take("probabilities")) {
                invalid(() -> outputs.get("probabilities"), "was taken");
                outputs.close();
                equal(most(taken.floats()), 7);
            }
        }
    }

    private static void failures() throws IOException {
        HaliteException missing =
                thrown(() -> Session.builder().model(new File("no such model.onnx")).device(device).build());
        equal(missing.kind(), HaliteException.Kind.NOT_FOUND);
        check(missing.getMessage().contains("no such model.onnx"), missing.getMessage());
        HaliteException damaged =
                thrown(() -> Session.builder().model("no model".getBytes(StandardCharsets.UTF_8)).build());
        equal(damaged.kind(), HaliteException.Kind.INVALID_MODEL);
        HaliteException noDevice =
                thrown(() -> Session.builder().model(digits).device("vulkan://no-such-device").build());
        equal(noDevice.kind(), HaliteException.Kind.NOT_FOUND);
        invalid(() -> Session.builder().build(), "needs a model");
        invalid(() -> Session.builder().model(9999, 0, -1).build(), "cannot be read");
        try (Session session = digits()) {
            try (Tensor wrong = Tensor.of(new float[4], 4)) {
                HaliteException shape = invalid(() -> session.run(wrong), "picture");
                check(!shape.code().isEmpty() && shape.context() != null, shape.code());
                invalid(() -> session.run(Collections.singletonMap("image", wrong)), "picture");
            }
            equal(thrown(() -> session.state("nope")).kind(), HaliteException.Kind.NOT_FOUND);
            try (Tensor picture = picture(); Outputs outputs = session.run(picture)) {
                invalid(() -> outputs.get("nope"), "probabilities");
            }
        }
    }

    private static void closed() throws Exception {
        Session session = digits();
        Tensor tensor = picture();
        tensor.close();
        tensor.close();
        check(tensor.isClosed(), "it was closed");
        invalid(() -> session.run(tensor), "closed");
        invalid(tensor::floats, "closed");
        session.close();
        invalid(session::functions, "closed");
        CancelToken token = new CancelToken();
        token.close();
        invalid(() -> Session.builder().model(digits).build(new RunOptions().cancel(token)), "closed");
        // Closing while others run: each call ends well, or says that it was closed.
        Session shared = digits();
        List<Thread> threads = new ArrayList<>();
        List<Throwable> wrong = Collections.synchronizedList(new ArrayList<>());
        for (int i = 0; i < 4; i += 1) {
            Thread thread =
                    new Thread(
                            () -> {
                                try {
                                    while (true) {
                                        seen(shared);
                                    }
                                } catch (HaliteException end) {
                                    if (!end.getMessage().contains("closed")) {
                                        wrong.add(end);
                                    }
                                } catch (Throwable other) {
                                    wrong.add(other);
                                }
                            });
            thread.start();
            threads.add(thread);
        }
        seen(shared);
        shared.close();
        for (Thread thread : threads) {
            thread.join();
        }
        check(wrong.isEmpty(), wrong.toString());
    }

    private static void cancelled() {
        try (CancelToken token = new CancelToken(); Session session = digits(); Tensor picture = picture()) {
            check(!token.isCancelled(), "nobody set it");
            token.cancel();
            RunOptions options = new RunOptions().cancel(token);
            Map<String, Tensor> inputs = Collections.singletonMap("picture", picture);
            HaliteException before = thrown(() -> session.run(inputs, options));
            equal(before.kind(), HaliteException.Kind.CANCELLED);
            check(before.getMessage().contains("cancelled before the call began"), before.getMessage());
            equal(
                    thrown(() -> Session.builder().model(digits).device(device).withoutCache().build(options)).kind(),
                    HaliteException.Kind.CANCELLED);
            HaliteException late =
                    thrown(
                            () ->
                                    Session.builder()
                                            .model(digits)
                                            .device(device)
                                            .withoutCache()
                                            .build(new RunOptions().timeoutMillis(0)));
            equal(late.kind(), HaliteException.Kind.DEADLINE_EXCEEDED);
            equal(seen(session), 7);
        }
        // From a listener, on whatever thread that is told.
        try (CancelToken token = new CancelToken()) {
            RunOptions options =
                    new RunOptions().cancel(token).progress((stage, detail, done, total) -> token.cancel());
            HaliteException ended =
                    thrown(() -> Session.builder().model(digits).device(device).withoutCache().build(options));
            equal(ended.kind(), HaliteException.Kind.CANCELLED);
        }
    }

    private static void progress() {
        List<String> told = Collections.synchronizedList(new ArrayList<>());
        RunOptions watched =
                new RunOptions().progress((stage, detail, done, total) -> told.add(stage + " " + detail + " " + total));
        Session.builder().model(digits).device(device).withoutCache().build(watched).close();
        check(told.stream().anyMatch(line -> line.startsWith("CHOOSING_KERNELS")), told.toString());
        check(told.stream().noneMatch(line -> line.startsWith("null")), told.toString());
        RunOptions broken =
                new RunOptions()
                        .progress(
                                (stage, detail, done, total) -> {
                                    throw new UnsupportedOperationException("not here");
                                });
        try {
            Session.builder().model(digits).device(device).withoutCache().build(broken).close();
            check(false, "the listener's exception was lost");
        } catch (UnsupportedOperationException back) {
            equal(back.getMessage(), "not here");
        }
    }

    private static void state() {
        try (Session session =
                        Session.builder().model(decoder).dimension("size", 16).device(device).withoutCache().build();
                State state = session.state();
                Tensor nothing = Tensor.of(new float[0], 1, 1, 0, 16)) {
            equal(state.names().size(), 4);
            equal(state.get(state.names().get(0)), null);
            state.names().forEach(name -> state.set(name, nothing));
            List<Long> first = write(state, 0, 4);
            try (Tensor keys = state.get(state.names().get(0))) {
                equal(keys.shape()[2], 4L);
            }
            byte[] saved;
            List<Long> on;
            try (State fork = state.fork()) {
                saved = state.save();
                on = write(state, 4, 3);
                equal(write(fork, 4, 3), on);
            }
            state.reset();
            state.names().forEach(name -> state.set(name, nothing));
            equal(write(state, 0, 4), first);
            write(state, 4, 1);
            state.load(saved);
            equal(write(state, 4, 3), on);
            check(thrown(() -> state.load(new byte[] {1, 2, 3})).getMessage().length() > 0, "no reason");
            try (CancelToken token = new CancelToken(); Tensor one = Tensor.of(new long[] {1}, 1, 1)) {
                token.cancel();
                Map<String, Tensor> inputs = new HashMap<>();
                inputs.put("input_ids", one);
                inputs.put("attention_mask", one);
                equal(
                        thrown(() -> state.run(inputs, new RunOptions().cancel(token))).kind(),
                        HaliteException.Kind.CANCELLED);
            }
        }
    }

    private static void threads() throws Exception {
        try (Session session = digits()) {
            AtomicInteger right = new AtomicInteger();
            List<Thread> threads = new ArrayList<>();
            for (int i = 0; i < 8; i += 1) {
                Thread thread =
                        new Thread(
                                () -> {
                                    for (int n = 0; n < 5; n += 1) {
                                        if (seen(session) == 7) {
                                            right.incrementAndGet();
                                        }
                                    }
                                });
                thread.start();
                threads.add(thread);
            }
            for (Thread thread : threads) {
                thread.join();
            }
            equal(right.get(), 40);
        }
    }

    private static void caches() {
        File folder = new File(cache, "models");
        for (int i = 0; i < 2; i += 1) {
            try (Session session = Session.builder().model(digits).device(device).cache(folder).build()) {
                equal(seen(session), 7);
            }
            check(folder.isDirectory() && folder.list().length > 1, "nothing was kept in " + folder);
        }
    }

    // What tests share.

    static Session digits() {
        return Session.builder().model(digits).device(device).withoutCache().build();
    }

    static Tensor picture() {
        return Tensor.of(ElementType.FLOAT32, picture, 1, 1, 16, 16);
    }

    private static ByteBuffer flipped(ByteBuffer buffer) {
        buffer.flip();
        return buffer;
    }

    /** The digit that the network sees. */
    private static int seen(Session session) {
        try (Tensor picture = picture();
                Outputs outputs = session.run(Collections.singletonMap("picture", picture))) {
            return most(outputs.get("probabilities").floats());
        }
    }

    /** Words that the decoder writes, each the most likely one behind the last. */
    private static List<Long> write(State state, int before, int count) {
        List<Long> words = new ArrayList<>();
        long word = 3;
        for (int step = 0; step < count; step += 1) {
            long[] mask = new long[before + step + 1];
            Arrays.fill(mask, 1);
            Map<String, Tensor> inputs = new HashMap<>();
            inputs.put("input_ids", Tensor.of(new long[] {word}, 1, 1));
            inputs.put("attention_mask", Tensor.of(mask, 1, mask.length));
            try (Outputs outputs = state.run(inputs)) {
                equal(outputs.names(), Collections.singletonList("logits"));
                word = most(outputs.get("logits").floats());
                words.add(word);
            }
            inputs.values().forEach(Tensor::close);
        }
        return words;
    }

    static int most(float[] numbers) {
        int best = 0;
        for (int i = 1; i < numbers.length; i += 1) {
            best = numbers[i] > numbers[best] ? i : best;
        }
        return best;
    }

    /** The number of an open file, which Android tells and desktop Java hides. */
    static int number(FileDescriptor file) throws ReflectiveOperationException {
        Field field = FileDescriptor.class.getDeclaredField("fd");
        field.setAccessible(true);
        return field.getInt(file);
    }

    static HaliteException thrown(Test test) {
        try {
            test.run();
        } catch (HaliteException expected) {
            return expected;
        } catch (Exception other) {
            throw new AssertionError("another exception", other);
        }
        throw new AssertionError("nothing was thrown");
    }

    static HaliteException invalid(Test test, String part) {
        HaliteException error = thrown(test);
        equal(error.kind(), HaliteException.Kind.INVALID_INPUT);
        check(error.getMessage().contains(part), error.getMessage());
        return error;
    }

    static void equal(Object is, Object wanted) {
        check(java.util.Objects.equals(wanted, is), "it is " + is + ", not " + wanted);
    }

    static void check(boolean holds, String otherwise) {
        if (!holds) {
            throw new AssertionError(otherwise);
        }
    }
}
