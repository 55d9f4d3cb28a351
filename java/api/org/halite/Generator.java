package org.halite;

import androidx.annotation.NonNull;
import androidx.annotation.Nullable;

import java.util.ArrayList;
import java.util.List;

/**
 * A language model that writes text, from a GGUF file: its session, tokenizer and chat template. Made by {@link Session.Builder#generator}.
 * Many threads may use it. Sequences share its weights; each has caches of its own.
 *
 * <pre>{@code
 * try (Generator generator = Session.builder().model(file).cache(folder).generator(null);
 *         Sequence sequence = generator.sequence()) {
 *     sequence.prompt(generator.tokenize(generator.chat(messages), true));
 *     sequence.generate(new Generation().most(256), text -> show(text), null);
 * }
 * }</pre>
 */
public final class Generator extends Handle {
    Generator(long number) {
        super(number);
    }

    /** How many tokens a sequence has room for. */
    public long context() {
        return Native.generatorSize(number(), false);
    }

    /** How many tokens the model knows. */
    public long vocabularySize() {
        return Native.generatorSize(number(), true);
    }

    /** The tokens of a text. Names of control tokens in it are plain text. */
    public @NonNull int[] tokenize(@NonNull String text) {
        return tokenize(text, false);
    }

    /** The same; with control tokens for what {@link #chat} made. */
    public @NonNull int[] tokenize(@NonNull String text, boolean withControl) {
        return Native.generatorTokenize(number(), text, withControl);
    }

    /** The text of tokens. Control tokens have none. */
    public @NonNull String text(@NonNull int... tokens) {
        return Native.generatorText(number(), tokens);
    }

    /** Whether a token ends what the model says. */
    public boolean isEnd(int token) {
        return Native.generatorIsEnd(number(), token);
    }

    /** The prompt of a conversation, by the model's chat template, up to where the model is to answer. */
    public @NonNull String chat(@NonNull List<Message> messages) {
        return chat(messages, null, null);
    }

    /**
     * The same with tools that the model may call, and values that its template may know, or null for none. {@code tools} is a list as JSON,
     * in OpenAI's form; {@code values} is an object as JSON, such as {@code {"enable_thinking": false}}.
     */
    public @NonNull String chat(@NonNull List<Message> messages, @Nullable String tools, @Nullable String values) {
        String[] parts = new String[2 * messages.size()];
        for (int i = 0; i < messages.size(); i += 1) {
            parts[2 * i] = messages.get(i).role();
            parts[2 * i + 1] = messages.get(i).content();
        }
        return Native.generatorChat(number(), parts, tools, values);
    }

    /**
     * Chooses tokens for sequences of this generator that make one JSON value, which follows the schema that {@link Generation#jsonSchema} stated,
     * and then end. The rest is as with {@link Sampler}.
     */
    public @NonNull Sampler schemaSampler(@NonNull Generation how) {
        if (how.jsonSchema == null) {
            throw HaliteException.invalid("no JSON schema is stated, and the sampler is to follow one");
        }
        return new Sampler(number(), how);
    }

    /** A sequence without tokens. */
    public @NonNull Sequence sequence() {
        return new Sequence(Native.sequence(number()));
    }

    /** How many sequences take a step together at most. */
    public long batch() {
        return Native.generatorBatch(number());
    }

    /**
     * The next token of each of these sequences, which is added to it: what is behind all of them is computed together, so that the model's
     * weights are read once. Sequences come and go between steps: who writes is who is in the list, once.
     */
    public @NonNull List<Next> step(@NonNull List<Writer> writers, @Nullable RunOptions options) {
        RunOptions bounds = options == null ? RunOptions.NONE : options;
        long[] sequences = new long[writers.size()];
        long[] samplers = new long[writers.size()];
        for (int i = 0; i < sequences.length; i += 1) {
            sequences[i] = writers.get(i).sequence().number();
            samplers[i] = writers.get(i).sampler().number();
        }
        int[] all =
                Native.generatorStep(number(), sequences, samplers, bounds.timeout(), bounds.token(), bounds.listener());
        List<Next> next = new ArrayList<>(all.length);
        for (int one : all) {
            next.add(new Next(one));
        }
        return next;
    }

    /** The URI of its device. */
    public @NonNull String device() {
        return Native.generatorDevice(number());
    }

    static GeneratorOptions orDefault(@Nullable GeneratorOptions options) {
        return options == null ? new GeneratorOptions() : options;
    }
}
