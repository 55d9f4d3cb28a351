// Keeps state on the device between calls, as caches of a decoder are kept: state MODEL [DEVICE]
// The model computes next = 0.5 * state + 0.5 * sample, for any number of elements.
#include <iostream>
#include <thread>

#include <halite/halite.hpp>

namespace {

// What the state is after a step with this sample.
float step(halite::State &state, const halite::Tensor &sample) {
    state.run({{"sample", sample}});
    return state.tensor("state").to_vector<float>().at(0);
}

}  // namespace

int main(int count, char **arguments) try {
    if (count < 2) {
        std::cerr << "usage: " << arguments[0] << " MODEL [DEVICE]\n";
        return 2;
    }
    auto device = halite::Device::open(count > 2 ? arguments[2] : "vulkan");
    auto session = halite::Session::builder().model(arguments[1]).device(device).state("state", "next").build();
    auto sample = halite::Tensor::of(std::vector<float>{8, 8, 8}, {3}).to_device(device);

    auto state = session.state();
    if (state.names() != std::vector<std::string>{"state"} || state.tensor("state")) return 1;
    bool right = step(state, sample) == 4;
    const auto saved = state.save();
    auto fork = state.fork();
    right &= step(state, sample) == 6 && step(state, sample) == 7 && step(fork, sample) == 6;
    state.load(saved.bytes());
    right &= step(state, sample) == 6;
    state.reset();
    right &= step(state, sample) == 4;
    std::cout << "A state of " << state.byte_size() << " bytes, saved as " << saved.bytes().size() << ".\n";

    // A session and a function may be used by many threads, a state by each its own.
    auto function = session.function();
    std::vector<std::thread> threads;
    std::vector<float> last(4);
    for (float &result : last)
        threads.emplace_back([&] {
            auto own = function.state();
            for (int i = 0; i < 5; ++i) result = step(own, sample);
        });
    for (auto &thread : threads) thread.join();
    for (const float result : last) right &= result == 7.75f;

    // Moved from, a handle is empty; what was made from it lives on.
    auto moved = std::move(session);
    right &= !session && moved.device_count() == 1 && moved.device().is_same(device);
    return right ? 0 : 1;
} catch (const std::exception &error) {
    std::cerr << error.what() << '\n';
    return 1;
}
