package org.halite;

import static org.halite.JavaTests.check;
import static org.halite.JavaTests.equal;
import static org.halite.JavaTests.invalid;
import static org.halite.JavaTests.thrown;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Tests of language models, which {@link JavaTests} runs. */
final class TextTests {
    /** Small models, and what llama.cpp made of them. */
    static File folder;

    private TextTests() {}

    static void add(Map<String, JavaTests.Test> tests) {
        tests.put("tokens are those of llama.cpp", TextTests::tokens);
        tests.put("texts end an answer and are not told", TextTests::stops);
        tests.put("texts go on behind their end where the program says", TextTests::ends);
        tests.put("tokens are chosen where the program says", TextTests::places);
        tests.put("decoders in other formats take the tokenizer of a file", TextTests::decoders);
        tests.put("what a reader throws comes back", TextTests::thrownByReader);
        tests.put("sequences are forked, saved, loaded and taken back", TextTests::sequences);
        tests.put("conversations become prompts", TextTests::conversations);
        tests.put("texts become vectors", TextTests::vectors);
        tests.put("steps of several sequences are those of each", TextTests::together);
        tests.put("answers follow a JSON schema", TextTests::schemas);
        tests.put("what does not fit a language model is said", TextTests::refused);
    }

    private static void tokens() throws IOException {
        int[] prompt = numbers("llama", "prompt");
        try (Generator generator = generator("llama", null); Sequence sequence = generator.sequence()) {
            equal(generator.context(), 64L);
            equal(generator.device().startsWith("vulkan://"), true);
            equal(sequence.prompt(prompt), 0L);
            equal((long) sequence.logits().length, generator.vocabularySize());
            int[] greedy = numbers("llama", "greedy");
            int count = 0;
            while (count < Math.min(greedy.length, 16) && !generator.isEnd(greedy[count])) {
                count += 1;
            }
            int[] wanted = Arrays.copyOf(greedy, count);
            StringBuilder text = new StringBuilder();
            int[] calls = {0};
            Stop stop =
                    sequence.generate(
                            new Generation().greedy().most(16),
                            piece -> {
                                text.append(piece);
                                calls[0] += 1;
                                return true;
                            },
                            null);
            equal(stop, count < Math.min(greedy.length, 16) ? Stop.END : Stop.LENGTH);
            equal(calls[0], count);
            equal(text.toString(), generator.text(wanted));
            int[] all = sequence.tokens();
            equal(all.length, prompt.length + count);
            check(Arrays.equals(Arrays.copyOfRange(all, prompt.length, all.length), wanted), "the tokens are others");
            equal(sequence.prompt(prompt), (long) prompt.length - 1);
        }
    }

    private static void stops() throws IOException {
        int[] prompt = numbers("llama", "prompt");
        try (Generator generator = generator("llama", null); Sequence sequence = generator.sequence()) {
            String all = written(sequence, prompt, new Generation().greedy().most(16), Stop.LENGTH, Stop.END);
            String part = all.substring(all.length() / 2);
            String cut = written(sequence, prompt, new Generation().greedy().most(16).stop("neither", part), Stop.TEXT);
            equal(cut, all.substring(0, all.indexOf(part)));
            String like = all.charAt(all.length() - 1) + " and no such text";
            equal(written(sequence, prompt, new Generation().greedy().most(16).stop(like), Stop.LENGTH, Stop.END), all);
            sequence.prompt(prompt);
            int[] calls = {0};
            equal(sequence.generate(new Generation().most(16), text -> ++calls[0] < 3, null), Stop.CALLER);
            equal(calls[0], 3);
            equal(sequence.tokens().length, prompt.length + 3);
            // The same seed draws the same.
            Generation drawn = new Generation().temperature(3).topK(0).topP(1).minP(0).repeatPenalty(1.1f, 8).seed(5).most(8);
            equal(written(sequence, prompt, drawn, Stop.values()), written(sequence, prompt, drawn, Stop.values()));
        }
    }

    private static void ends() {
        try (Generator generator = generator("llama", null); Sequence sequence = generator.sequence()) {
            for (int seed = 0; seed < 50; seed++) {
                Generation how = new Generation().temperature(3).topK(0).topP(1).minP(0).seed(seed).most(40);
                sequence.prompt(3);
                if (sequence.generate(how, null, null) != Stop.END) {
                    continue;
                }
                int[] ended = sequence.tokens();
                sequence.prompt(3);
                equal(sequence.generate(how.ignoreEnd(), null, null), Stop.LENGTH);
                int[] all = sequence.tokens();
                equal(all.length, 41);
                check(Arrays.equals(Arrays.copyOf(all, ended.length), ended), "the same until there");
                equal(generator.isEnd(all[ended.length]), true);
                return;
            }
        }
        check(false, "none of fifty texts ended");
    }

    private static void places() throws IOException {
        int[] prompt = numbers("llama", "prompt");
        int[] greedy = numbers("llama", "greedy");
        for (ChooseOn place : new ChooseOn[] {ChooseOn.HOST, ChooseOn.DEVICE}) {
            try (Generator generator = generator("llama", new GeneratorOptions().context(64).chooseOn(place));
                    Sequence sequence = generator.sequence()) {
                sequence.prompt(prompt);
                int[] calls = {0};
                equal(sequence.generate(new Generation().greedy().most(9), text -> ++calls[0] < 3, null), Stop.CALLER);
                int[] tokens = sequence.tokens();
                check(Arrays.equals(Arrays.copyOfRange(tokens, prompt.length, tokens.length), Arrays.copyOf(greedy, 3)), "other tokens");
                // What a device chose by stays there.
                equal(sequence.logits().length == 0, place == ChooseOn.DEVICE);
            }
        }
    }

    private static void decoders() {
        File decoder = new File(folder, "../../../../conformance/tests/data/state/decoder.onnx");
        GeneratorOptions wanted = new GeneratorOptions().context(64).tokenizer(new File(folder, "llama.gguf"));
        try (Generator generator = Session.builder().model(decoder).device(JavaTests.device).withoutCache().generator(wanted);
                Sequence sequence = generator.sequence()) {
            sequence.prompt(3, 7, 1, 9, 4);
            equal(sequence.generate(new Generation().greedy().most(6), null, null), Stop.LENGTH);
            // ONNX Runtime's most likely tokens.
            int[] all = {3, 7, 1, 9, 4, 36, 37, 36, 40, 49, 23};
            check(Arrays.equals(sequence.tokens(), all), Arrays.toString(sequence.tokens()));
        }
        invalid(() -> Session.builder().model(decoder).device(JavaTests.device).withoutCache().generator(null), "has no tokenizer");
    }

    private static void thrownByReader() throws IOException {
        try (Generator generator = generator("llama", null); Sequence sequence = generator.sequence()) {
            sequence.prompt(5, 6, 7);
            IllegalStateException own = new IllegalStateException("enough");
            try {
                sequence.generate(
                        new Generation(),
                        text -> {
                            throw own;
                        },
                        null);
                throw new AssertionError("nothing was thrown");
            } catch (IllegalStateException thrown) {
                check(thrown == own, "another exception came");
            }
            try (CancelToken token = new CancelToken()) {
                RunOptions bounds = new RunOptions().cancel(token);
                HaliteException ended =
                        thrown(
                                () ->
                                        sequence.generate(
                                                new Generation().temperature(3),
                                                text -> {
                                                    token.cancel();
                                                    return true;
                                                },
                                                bounds));
                equal(ended.kind(), HaliteException.Kind.CANCELLED);
            }
            // It goes on after that, also without a reader.
            equal(sequence.generate(new Generation().greedy().most(0), null, null), Stop.LENGTH);
        }
    }

    private static void sequences() throws IOException {
        int[] prompt = numbers("llama", "prompt");
        Generation four = new Generation().greedy().most(4);
        try (Generator generator = generator("llama", new GeneratorOptions().context(64).scoring());
                Sequence one = generator.sequence();
                Sequence other = generator.sequence()) {
            one.prompt(prompt);
            byte[] saved = one.save();
            try (Sequence fork = one.fork()) {
                one.append(new int[] {5, 6}, null);
                equal(one.tokens().length, prompt.length + 2);
                one.truncate(prompt.length);
                equal(one.logits().length, 0);
                other.load(saved);
                StringBuilder[] texts = {new StringBuilder(), new StringBuilder(), new StringBuilder()};
                one.generate(four, text -> texts[0].append(text) != null, null);
                other.generate(four, text -> texts[1].append(text) != null, null);
                fork.generate(four, text -> texts[2].append(text) != null, null);
                equal(texts[1].toString(), texts[0].toString());
                equal(texts[2].toString(), texts[0].toString());
            }
            check(one.byteSize() > 0, "the caches take memory");
            other.truncate(0);
            double[] scores = other.score(new int[] {5, 6, 7}, null);
            check(scores.length == 3 && scores[0] == 0 && scores[1] < 0 && scores[2] < 0, Arrays.toString(scores));
            invalid(() -> other.load(new byte[] {1, 2}), "no saved sequence");
        }
    }

    private static void together() {
        int[][] prompts = {{5, 6, 7}, {9, 40}, {11, 12, 13, 14}};
        for (ChooseOn place : new ChooseOn[] {ChooseOn.HOST, ChooseOn.DEVICE}) {
            GeneratorOptions wanted = new GeneratorOptions().context(64).batch(3).chooseOn(place);
            try (Generator generator = generator("llama", wanted); Sequence single = generator.sequence()) {
                equal(generator.batch(), 3L);
                List<Writer> writers = new ArrayList<>();
                for (int i = 0; i < prompts.length; i += 1) {
                    Sequence sequence = generator.sequence();
                    sequence.prompt(prompts[i]);
                    writers.add(new Writer(sequence, new Sampler(drawn(i))));
                }
                for (int step = 0; step < 7; step += 1) {
                    for (Next next : generator.step(writers, null)) {
                        check(next.isToken() && next.token() >= 0 && next.stop() == null, "the text goes on");
                    }
                }
                for (int i = 0; i < prompts.length; i += 1) {
                    single.prompt(prompts[i]);
                    single.generate(drawn(i).most(7), null, null);
                    check(Arrays.equals(writers.get(i).sequence().tokens(), single.tokens()), "text " + i);
                }
                Writer first = writers.get(0);
                invalid(() -> generator.step(Arrays.asList(first, first), null), "takes part in a step once");
                first.sampler().close();
                invalid(() -> generator.step(writers, null), "closed");
                single.prompt(new int[64]);
                try (Sampler greedy = new Sampler(new Generation().greedy().ignoreEnd())) {
                    List<Next> last = generator.step(Collections.singletonList(new Writer(single, greedy)), null);
                    equal(last.get(0).stop(), Stop.CONTEXT);
                }
                for (Writer writer : writers) {
                    writer.sequence().close();
                    writer.sampler().close();
                }
            }
        }
        invalid(() -> new GeneratorOptions().batch(0), "one sequence or more");
    }

    private static void schemas() {
        String schema = "{\"type\": \"object\", \"properties\": {\"a\": {\"enum\": [\"in the\", 12]}}, \"required\": [\"a\"]}";
        Pattern valid = Pattern.compile("\\s*\\{\\s*\"a\"\\s*:\\s*(\"in the\"|12)\\s*\\}\\s*");
        for (ChooseOn place : new ChooseOn[] {ChooseOn.HOST, ChooseOn.DEVICE}) {
            GeneratorOptions wanted = new GeneratorOptions().context(64).chooseOn(place);
            try (Generator generator = generator("llama", wanted); Sequence sequence = generator.sequence()) {
                Generation how = new Generation().temperature(1).topK(20).seed(1).most(50).jsonSchema(schema);
                int[] prompt = {5, 6, 7};
                String text = written(sequence, prompt, how, Stop.END);
                check(valid.matcher(text).matches(), text);
                // The same in steps, whatever came before.
                int[] tokens = sequence.tokens();
                sequence.prompt(prompt);
                try (Sampler sampler = generator.schemaSampler(how)) {
                    List<Writer> writers = Collections.singletonList(new Writer(sequence, sampler));
                    Next next = generator.step(writers, null).get(0);
                    while (next.isToken()) {
                        next = generator.step(writers, null).get(0);
                    }
                    equal(next.stop(), Stop.END);
                }
                check(Arrays.equals(sequence.tokens(), tokens), "the steps chose others");
                invalid(() -> new Sampler(how), "Generator.schemaSampler makes it");
                invalid(() -> generator.schemaSampler(new Generation()), "no JSON schema is stated");
                invalid(() -> new Generation().jsonSchema(null), "is a text");
                String[][] wrong = {{"{", "is no JSON"}, {"{\"not\": {}}", "'not'"}, {"false", "no value"}};
                for (String[] one : wrong) {
                    Generation refused = new Generation().jsonSchema(one[0]);
                    equal(thrown(() -> sequence.generate(refused, null, null)).getMessage().contains(one[1]), true);
                    equal(thrown(() -> generator.schemaSampler(refused)).getMessage().contains(one[1]), true);
                }
            }
        }
    }

    /** The first takes the most likely tokens, others draw. */
    private static Generation drawn(int seed) {
        return new Generation().temperature(seed == 0 ? 0 : 0.9f).topK(20).seed(seed).ignoreEnd();
    }

    private static void conversations() throws IOException {
        try (Generator generator = generator("gemma3", null)) {
            String prompt = generator.chat(Collections.singletonList(new Message("user", "in the")));
            check(prompt.endsWith("<|turn|>assistant\n"), prompt);
            List<Message> said = Collections.singletonList(new Message("user", "in the"));
            equal(generator.chat(said, null, "{\"enable_thinking\": false}"), prompt);
            String wrong = thrown(() -> generator.chat(said, null, "{\"messages\": []}")).getMessage();
            check(wrong.contains("'messages'"), wrong);
            String refused = thrown(() -> generator.chat(said, "[]", null)).getMessage();
            check(refused.contains("takes no tools"), refused);
            check(generator.tokenize(prompt).length > generator.tokenize(prompt, true).length, "control tokens are one each");
            equal(generator.text(generator.tokenize("in the")).trim(), "in the");
        }
    }

    private static void vectors() throws IOException {
        File model = new File(folder, "bert.gguf");
        try (Embedder embedder = Session.builder().model(model).device(JavaTests.device).withoutCache().embedder(null)) {
            float[] vector = embedder.embed("the");
            double length = 0;
            for (float number : vector) {
                length += number * number;
            }
            check(Math.abs(length - 1) < 1e-4, "its length is " + length);
            equal(embedder.longest(), 128L);
            equal(embedder.embed(embedder.tokenize("the"), false, null).length, vector.length);
            invalid(() -> embedder.embed(new int[0], true, null), "0 tokens");
        }
    }

    private static void refused() throws IOException {
        HaliteException error = thrown(() -> Session.builder().model(new File(folder, "bert.gguf")).device(JavaTests.device).generator(null));
        equal(error.kind(), HaliteException.Kind.UNSUPPORTED);
        check(error.getMessage().contains("is an encoder"), error.getMessage());
        invalid(() -> new Generation().stop(""), "not empty");
        invalid(() -> new Generation().temperature(-1), "not negative");
        invalid(() -> new GeneratorOptions().context(0), "one token or more");
        invalid(() -> new Message("user", null), "a role and a content");
        try (Generator generator = generator("llama", null); Sequence sequence = generator.sequence()) {
            invalid(() -> sequence.prompt(-1), "no negative number");
            invalid(() -> sequence.prompt(9999), "no token 9999");
            invalid(() -> sequence.prompt(), "at least one token");
            invalid(() -> sequence.score(new int[] {5}, null), "does not score");
            sequence.close();
            invalid(() -> sequence.tokens(), "closed");
        }
    }

    private static String written(Sequence sequence, int[] prompt, Generation how, Stop... expected) {
        sequence.prompt(prompt);
        StringBuilder text = new StringBuilder();
        Stop stop = sequence.generate(how, piece -> text.append(piece) != null, null);
        check(Arrays.asList(expected).contains(stop), "it stopped for " + stop);
        return text.toString();
    }

    private static Generator generator(String name, GeneratorOptions options) {
        GeneratorOptions wanted = options == null ? new GeneratorOptions().context(64) : options;
        return Session.builder().model(new File(folder, name + ".gguf")).device(JavaTests.device).withoutCache().generator(wanted);
    }

    /** A list of numbers in the file beside a model. */
    private static int[] numbers(String name, String key) throws IOException {
        String text = new String(Files.readAllBytes(new File(folder, name + ".json").toPath()), StandardCharsets.UTF_8);
        Matcher list = Pattern.compile("\"" + key + "\": *\\[([0-9, \\n]*)\\]").matcher(text);
        check(list.find(), "no " + key + " in " + name + ".json");
        return Arrays.stream(list.group(1).trim().split("[, \\n]+")).mapToInt(Integer::parseInt).toArray();
    }
}
