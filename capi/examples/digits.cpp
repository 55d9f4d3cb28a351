// Reads a picture of a digit and prints which one it is: digits MODEL PICTURE DIGIT [DEVICE]
#include <algorithm>
#include <iostream>

#include <halite/halite.hpp>

#include "picture.h"

int main(int count, char **arguments) try {
    std::vector<float> pixels(PICTURE_SIZE);
    if (count < 4 || !read_picture(arguments[2], pixels.data())) {
        std::cerr << "usage: " << arguments[0] << " MODEL PICTURE DIGIT [DEVICE]\n";
        return 2;
    }
    for (const auto &device : halite::devices()) std::cout << device.uri << ": " << device.name << '\n';

    auto session = halite::Session::open(arguments[1], count > 4 ? arguments[4] : "vulkan");
    for (const auto &signature : session.signatures()) std::cout << signature.text << '\n';

    // The tensor keeps the vector: nothing is copied here.
    auto picture = halite::Tensor::of(std::move(pixels), {1, 1, 16, 16});
    auto outputs = session.run({{"picture", picture}});
    auto probabilities = outputs.tensor("probabilities").to_vector<float>();

    const auto best = std::max_element(probabilities.begin(), probabilities.end());
    const auto digit = best - probabilities.begin();
    std::cout << "This is a " << digit << " (" << 100 * *best << " %).\n";

    try {
        session.run({{"photo", picture}});
        return 1;
    } catch (const halite::Error &error) {
        std::cout << "As it should: " << error.what() << '\n';
        if (error.kind() != halite::ErrorKind::InvalidInput && error.kind() != halite::ErrorKind::NotFound) return 1;
    }
    return digit == std::stoi(arguments[3]) ? 0 : 1;
} catch (const std::exception &error) {
    std::cerr << error.what() << '\n';
    return 1;
}
