// The same as digits.cpp in a program without exceptions: returning MODEL PICTURE DIGIT [DEVICE]
#include <algorithm>
#include <cstdlib>

#include <halite/halite.hpp>

#include "picture.h"

namespace {

halite::Result<std::vector<float>> classify(const char *model, const char *device, std::vector<float> pixels) {
    auto session = halite::Session::open(model, device);
    if (!session) return session.error();
    auto picture = halite::Tensor::of(std::move(pixels), {1, 1, 16, 16});
    if (!picture) return picture.error();
    auto outputs = session->run({{"picture", *picture}});
    if (!outputs) return outputs.error();
    auto probabilities = outputs->tensor("probabilities");
    if (!probabilities) return probabilities.error();
    return probabilities->to_vector<float>();
}

}  // namespace

int main(int count, char **arguments) {
    std::vector<float> pixels(PICTURE_SIZE);
    if (count < 4 || !read_picture(arguments[2], pixels.data())) {
        std::fprintf(stderr, "usage: %s MODEL PICTURE DIGIT [DEVICE]\n", arguments[0]);
        return 2;
    }
    const char *device = count > 4 ? arguments[4] : "vulkan";
    auto missing = classify("no such model.onnx", device, pixels);
    if (missing || missing.error().kind() != halite::ErrorKind::NotFound) return 1;
    std::printf("As it should: %s\n", missing.error().what());

    auto probabilities = classify(arguments[1], device, std::move(pixels));
    if (!probabilities) {
        std::fprintf(stderr, "%s\n", probabilities.error().what());
        return 1;
    }
    const auto digit = std::max_element(probabilities->begin(), probabilities->end()) - probabilities->begin();
    std::printf("This is a %d.\n", static_cast<int>(digit));
    return digit == std::atoi(arguments[3]) ? 0 : 1;
}
