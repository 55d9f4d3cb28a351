// Deadlines, cancellation, progress and the log: cancel MODEL [DEVICE]
// The model computes next = 0.5 * state + 0.5 * sample, for any number of elements.
#include <stdio.h>
#include <stdlib.h>

#include <halite/halite.h>

static void check(halite_error *error) {
    if (error == NULL) return;
    fprintf(stderr, "%s\n", halite_error_text(error));
    halite_error_free(error);
    exit(1);
}

// Whether a call failed in this way; prints what it said.
static int failed_with(halite_error *error, halite_error_kind kind) {
    if (error == NULL) return 0;
    printf("%s\n", halite_error_text(error));
    const int is_kind = halite_error_get_kind(error) == kind;
    halite_error_free(error);
    return is_kind;
}

typedef struct {
    int reports;
    // What is set when there is progress; NULL for nothing.
    const halite_cancel_token *cancel;
} watcher;

static void watch(void *context, const halite_progress *progress) {
    watcher *own = context;
    own->reports += 1;
    printf("%s %d/%d\n", progress->detail, (int)progress->done, (int)progress->total);
    halite_cancel_token_cancel(own->cancel);
}

static void log_line(void *context, uint32_t level, const char *target, const char *message) {
    (void)context;
    printf("log %d %s: %s\n", (int)level, target, message);
}

// A session for arrays of this length. Nothing is cached, so that there is something to do.
static halite_error *build(char **arguments, int count, size_t length, const halite_run_options *options, halite_session **session) {
    halite_session_builder *builder = halite_session_builder_create();
    halite_session_builder_model_path(builder, arguments[1]);
    halite_session_builder_device(builder, count > 2 ? arguments[2] : "vulkan");
    halite_session_builder_dimension(builder, "n", length);
    halite_session_builder_no_cache(builder);
    halite_error *error = halite_session_builder_build(builder, options, session);
    halite_session_builder_free(builder);
    return error;
}

int main(int count, char **arguments) {
    if (count < 2) {
        fprintf(stderr, "usage: %s MODEL [DEVICE]\n", arguments[0]);
        return 2;
    }
    check(halite_log_set(log_line, NULL, 2));
    watcher seen = {0, NULL};
    halite_run_options options = HALITE_RUN_OPTIONS_INIT;
    options.progress = watch;
    options.progress_context = &seen;
    options.timeout_ns = 600ull * 1000 * 1000 * 1000;
    halite_session *session = NULL, *none = NULL;
    check(build(arguments, count, 16, &options, &session));
    int right = seen.reports > 0;

    // A deadline that has passed ends a call, and the error says at what.
    const size_t shape[] = {16};
    halite_tensor *zeros = NULL;
    check(halite_tensor_zeros(HALITE_ELEMENT_F32, shape, 1, &zeros));
    const halite_input inputs[] = {{.name = "state", .tensor = zeros}, {.name = "sample", .tensor = zeros}};
    halite_run_options late = HALITE_RUN_OPTIONS_INIT;
    late.timeout_ns = 1;
    halite_outputs *outputs = NULL;
    right &= failed_with(halite_session_run(session, inputs, 2, &late, &outputs), HALITE_ERROR_DEADLINE_EXCEEDED);
    right &= outputs == NULL;

    // Any thread may cancel: here, the one that hears of progress.
    halite_cancel_token *token = halite_cancel_token_create();
    seen.cancel = token;
    options.cancel = token;
    right &= failed_with(build(arguments, count, 32, &options, &none), HALITE_ERROR_CANCELLED);
    right &= none == NULL && halite_cancel_token_is_cancelled(token);

    // The session is as good as before.
    check(halite_session_run(session, inputs, 2, NULL, &outputs));
    // What was named wrongly is told with what there is.
    halite_tensor *nothing = NULL;
    right &= failed_with(halite_outputs_tensor(outputs, "nothing", &nothing), HALITE_ERROR_NOT_FOUND);

    check(halite_log_set(NULL, NULL, 0));
    halite_outputs_free(outputs);
    halite_cancel_token_free(token);
    halite_tensor_free(zeros);
    halite_session_free(session);
    return right ? 0 : 1;
}
