// Compiles a model for a device, cancels that once, runs the module, and tells where the time goes: compile MODEL PICTURE DIGIT [DEVICE]
#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>

#include <halite/halite.hpp>

#include "picture.h"

// Whether a compilation ends that is cancelled when it first tells of progress; any thread may cancel.
static bool is_cancelled(const halite::Model &model, const halite::Device &device) try {
    const halite::CancelToken token;
    halite::RunOptions options;
    options.cancel(token).progress([&](const halite::Progress &) { token.cancel(); });
    halite::Compiler().target(device).compile(model, options);
    return false;
} catch (const halite::Error &error) {
    std::cout << "As it should: " << error.what() << '\n';
    return error.kind() == halite::ErrorKind::Cancelled;
}

int main(int count, char **arguments) try {
    std::vector<float> pixels(PICTURE_SIZE);
    if (count < 4 || !read_picture(arguments[2], pixels.data())) {
        std::cerr << "usage: " << arguments[0] << " MODEL PICTURE DIGIT [DEVICE]\n";
        return 2;
    }
    // A model may come from a reader: a socket, an archive, what an app has in its package.
    std::ifstream file(arguments[1], std::ios::binary);
    auto read = [&](std::uint8_t *target, std::size_t capacity) -> std::int64_t {
        file.read(reinterpret_cast<char *>(target), static_cast<std::streamsize>(capacity));
        return file.bad() ? -1 : file.gcount();
    };
    auto model = halite::Model::open(halite::Source::reader(read).named("digits"));
    std::cout << model.signatures().at(0).text << '\n';

    auto device = halite::Device::open(count > 4 ? arguments[4] : "vulkan");
    int reports = 0;
    halite::RunOptions options;
    options.timeout(std::chrono::minutes(10)).progress([&](const halite::Progress &) { ++reports; });
    auto compiled = halite::Compiler().target(device).module_name("digits").compile(model, options);
    std::cout << compiled.explain();
    const auto module = compiled.module();
    bool right = reports > 0 && compiled.explain_json().front() == '{' && is_cancelled(model, device);

    auto bytes = module.bytes();
    auto session = halite::Session::builder().model(halite::Source::copy(bytes)).device(device).no_cache().build();
    auto picture = halite::Tensor::of(std::move(pixels), {1, 1, 16, 16});
    auto function = session.function();
    function.prewarm();
    auto pending = function.start({picture});
    auto probabilities = pending.wait().tensor_at(0).to_vector<float>();
    const auto digit = std::max_element(probabilities.begin(), probabilities.end()) - probabilities.begin();
    std::cout << "This is a " << digit << ".\n";
    right &= digit == std::stoi(arguments[3]) && pending.is_done();

    try {
        halite::Outputs outputs;
        const auto profile = function.profile({picture}, &outputs);
        right &= profile.json().find("\"total_ns\"") != std::string::npos && !profile.trace().empty();
        right &= outputs.tensor_at(0).to_vector<float>() == probabilities;
    } catch (const halite::Error &error) {
        // A device without a clock.
        if (error.kind() != halite::ErrorKind::Unsupported) throw;
    }

    // Lists and numbers, which some modules take.
    const halite::Value numbers[] = {halite::Value::i64(7), halite::Value::f32(0.5f)};
    auto list = halite::Value::list(numbers);
    right &= list.size() == 2 && list.at(0).as_integer() == 7 && list.at(1).as_float() == 0.5;
    return right ? 0 : 1;
} catch (const std::exception &error) {
    std::cerr << error.what() << '\n';
    return 1;
}
