// Writes text with a language model, token by token: generate MODEL.gguf [DEVICE] [PROMPT]
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <halite/halite.h>

// Ends the program when a call has failed.
static void check(halite_error *error) {
    if (error == NULL) return;
    fprintf(stderr, "%s\n", halite_error_text(error));
    halite_error_free(error);
    exit(1);
}

struct told {
    size_t tokens;
    size_t most;
};

static bool tell(void *context, const halite_piece *piece) {
    struct told *told = context;
    fwrite(piece->text, 1, piece->text_size, stdout);
    fflush(stdout);
    if (piece->token != HALITE_NO_TOKEN) ++told->tokens;
    return told->tokens < told->most;
}

int main(int count, char **arguments) {
    if (count < 2) {
        fprintf(stderr, "usage: %s MODEL.gguf [DEVICE] [PROMPT]\n", arguments[0]);
        return 2;
    }
    const char *text = count > 3 ? arguments[3] : "in the";

    halite_session_builder *builder = halite_session_builder_create();
    halite_session_builder_model_path(builder, arguments[1]);
    halite_session_builder_device(builder, count > 2 ? arguments[2] : "vulkan");
    halite_generator_options wanted = HALITE_GENERATOR_OPTIONS_INIT;
    wanted.context = 64;
    halite_generator *generator = NULL;
    check(halite_session_builder_generator(builder, &wanted, NULL, &generator));
    halite_session_builder_free(builder);

    halite_tokens *tokens = NULL;
    halite_sequence *sequence = NULL;
    check(halite_generator_tokenize(generator, text, false, &tokens));
    check(halite_generator_sequence(generator, &sequence));
    check(halite_sequence_prompt(sequence, halite_tokens_data(tokens), halite_tokens_count(tokens), NULL, NULL));

    // Always the most likely token; twenty at most, and the callback has enough after eight.
    printf("%s", text);
    struct told told = {0, 8};
    halite_generation generation = HALITE_GENERATION_INIT;
    generation.most = 20;
    generation.told = tell;
    generation.context = &told;
    halite_stop stop = 0;
    check(halite_sequence_generate(sequence, &generation, NULL, &stop));
    printf("\n%zu tokens, ended by %u\n", told.tokens, (unsigned)stop);
    const size_t before = halite_tokens_count(tokens), after = halite_sequence_count(sequence);
    const bool right = stop == HALITE_STOP_END || (stop == HALITE_STOP_CALLER && told.tokens == 8);

    halite_tokens_free(tokens);
    halite_sequence_free(sequence);
    halite_generator_free(generator);
    return right && after == before + told.tokens ? 0 : 1;
}
