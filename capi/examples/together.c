// Writes several texts with a language model together: each step reads its weights once for all of them. together MODEL.gguf [DEVICE]
#include <stdio.h>
#include <stdlib.h>

#include <halite/halite.h>

#define TEXTS 3
#define MOST 8

// Ends the program when a call has failed.
static void check(halite_error *error) {
    if (error == NULL) return;
    fprintf(stderr, "%s\n", halite_error_text(error));
    halite_error_free(error);
    exit(1);
}

// Prints what a sequence has now, and ends its part.
static void end(halite_generator *generator, halite_writer *writer) {
    halite_tokens *tokens = NULL;
    halite_blob *text = NULL;
    check(halite_sequence_tokens(writer->sequence, &tokens));
    check(halite_generator_text(generator, halite_tokens_data(tokens), halite_tokens_count(tokens), &text));
    printf("%.*s\n", (int)halite_blob_size(text), (const char *)halite_blob_data(text));
    halite_blob_free(text);
    halite_tokens_free(tokens);
    halite_sequence_free(writer->sequence);
    halite_sampler_free(writer->sampler);
}

int main(int count, char **arguments) {
    if (count < 2) {
        fprintf(stderr, "usage: %s MODEL.gguf [DEVICE]\n", arguments[0]);
        return 2;
    }
    static const char *const prompts[TEXTS] = {"in the", "the play", "un able"};

    halite_session_builder *builder = halite_session_builder_create();
    halite_session_builder_model_path(builder, arguments[1]);
    halite_session_builder_device(builder, count > 2 ? arguments[2] : "vulkan");
    halite_generator_options wanted = HALITE_GENERATOR_OPTIONS_INIT;
    wanted.context = 64;
    wanted.batch = TEXTS;
    halite_generator *generator = NULL;
    check(halite_session_builder_generator(builder, &wanted, NULL, &generator));
    halite_session_builder_free(builder);

    // Each text draws its tokens by numbers of its own.
    halite_writer writers[TEXTS] = {{0}};
    for (size_t i = 0; i < TEXTS; ++i) {
        halite_generation generation = HALITE_GENERATION_INIT;
        check(halite_generation_sampling(&generation));
        generation.seed = i;
        check(halite_sampler_create(&generation, &writers[i].sampler));
        check(halite_generator_sequence(generator, &writers[i].sequence));
        halite_tokens *tokens = NULL;
        check(halite_generator_tokenize(generator, prompts[i], false, &tokens));
        const size_t length = halite_tokens_count(tokens);
        check(halite_sequence_prompt(writers[i].sequence, halite_tokens_data(tokens), length, NULL, NULL));
        halite_tokens_free(tokens);
    }

    // Who has said all leaves; the others go on.
    size_t left = TEXTS, told = 0;
    for (size_t step = 0; left > 0; ++step) {
        check(halite_generator_step(generator, writers, left, NULL));
        for (size_t i = left; i-- > 0;) {
            if (writers[i].stop == 0) ++told;
            if (writers[i].stop == 0 && step + 1 < MOST) continue;
            end(generator, &writers[i]);
            writers[i] = writers[--left];
        }
    }
    printf("%zu tokens, %zu at a time\n", told, halite_generator_batch(generator));
    halite_generator_free(generator);
    return told > 0 && told <= TEXTS * MOST ? 0 : 1;
}
