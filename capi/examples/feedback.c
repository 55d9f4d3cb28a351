// Feeds results into the next call without a copy: feedback MODEL [DEVICE]
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

enum { LENGTH = 1000 };

// A tensor on the device that is full of one number.
static halite_tensor *filled(const halite_device *device, float number) {
    float values[LENGTH];
    for (int i = 0; i < LENGTH; ++i) values[i] = number;
    const size_t shape[] = {LENGTH};
    halite_tensor *host = NULL, *there = NULL;
    check(halite_tensor_create(HALITE_ELEMENT_F32, shape, 1, values, sizeof values, &host));
    check(halite_tensor_to_device(host, device, &there));
    halite_tensor_free(host);
    return there;
}

int main(int count, char **arguments) {
    if (count < 2) {
        fprintf(stderr, "usage: %s MODEL [DEVICE]\n", arguments[0]);
        return 2;
    }
    halite_device *device = NULL;
    check(halite_device_open(NULL, count > 2 ? arguments[2] : "vulkan", &device));

    halite_session_builder *builder = halite_session_builder_create();
    halite_session *session = NULL;
    halite_session_builder_model_path(builder, arguments[1]);
    halite_session_builder_open_device(builder, device);
    check(halite_session_builder_build(builder, NULL, &session));
    halite_session_builder_free(builder);

    // Both inputs are copied to the device once.
    halite_tensor *sample = filled(device, 8.0f), *state = filled(device, 0.0f);
    halite_device_stats before = HALITE_DEVICE_STATS_INIT, after = HALITE_DEVICE_STATS_INIT;
    check(halite_device_get_stats(device, &before));
    for (int i = 0; i < 10; ++i) {
        const halite_input inputs[] = {{.name = "state", .tensor = state}, {.name = "sample", .tensor = sample}};
        halite_outputs *outputs = NULL;
        check(halite_session_run(session, inputs, 2, NULL, &outputs));
        // The result lies on the device, where the next call reads it.
        halite_tensor_free(state);
        check(halite_outputs_tensor(outputs, "next", &state));
        halite_outputs_free(outputs);
    }
    check(halite_device_get_stats(device, &after));

    float values[LENGTH];
    check(halite_tensor_read_as(state, HALITE_ELEMENT_F32, values, LENGTH));
    printf("After 10 steps: %g\n", values[0]);
    printf("Copied in 10 calls: %d bytes.\n", (int)(after.uploaded_bytes - before.uploaded_bytes));

    halite_tensor_free(state);
    halite_tensor_free(sample);
    halite_session_free(session);
    halite_device_free(device);
    // 8 * (1 - 0.5^10), which is exact in binary.
    return values[0] == 7.9921875f && values[LENGTH - 1] == values[0] && after.uploaded_bytes == before.uploaded_bytes &&
                   after.downloaded_bytes == before.downloaded_bytes
               ? 0
               : 1;
}
