// Reads a picture of a digit and prints which one it is: digits MODEL PICTURE DIGIT [DEVICE]
#include <stdlib.h>

#include <halite/halite.h>

#include "picture.h"

// Ends the program with the error's text.
static void check(halite_error *error) {
    if (error == NULL) return;
    fprintf(stderr, "%s\n", halite_error_text(error));
    halite_error_free(error);
    exit(1);
}

int main(int count, char **arguments) {
    if (count < 4) {
        fprintf(stderr, "usage: %s MODEL PICTURE DIGIT [DEVICE]\n", arguments[0]);
        return 2;
    }
    float pixels[PICTURE_SIZE];
    if (!read_picture(arguments[2], pixels)) {
        fprintf(stderr, "'%s' has no picture of 16x16 floats\n", arguments[2]);
        return 1;
    }

    // Reads the model, opens the device, compiles, and loads the weights.
    halite_session *session = NULL;
    check(halite_session_open(arguments[1], count > 4 ? arguments[4] : "vulkan", &session));

    const size_t shape[] = {1, 1, 16, 16};
    halite_tensor *picture = NULL;
    check(halite_tensor_create(HALITE_ELEMENT_F32, shape, 4, pixels, sizeof pixels, &picture));

    const halite_input inputs[] = {{.name = "picture", .tensor = picture}};
    halite_outputs *outputs = NULL;
    check(halite_session_run(session, inputs, 1, NULL, &outputs));

    halite_tensor *result = NULL;
    float probabilities[10];
    check(halite_outputs_tensor(outputs, "probabilities", &result));
    check(halite_tensor_read_as(result, HALITE_ELEMENT_F32, probabilities, 10));

    int digit = 0;
    for (int i = 1; i < 10; ++i)
        if (probabilities[i] > probabilities[digit]) digit = i;
    printf("This is a %d (%.1f %%).\n", digit, 100.0 * probabilities[digit]);

    // In any order: each keeps what it needs.
    halite_session_free(session);
    halite_tensor_free(result);
    halite_outputs_free(outputs);
    halite_tensor_free(picture);
    return digit == atoi(arguments[3]) ? 0 : 1;
}
