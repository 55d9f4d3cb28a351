// Answers in a conversation, goes on in two ways, and compares texts by their vectors: generate MODEL.gguf EMBEDDER.gguf [DEVICE]
#include <cmath>
#include <iostream>

#include <halite/halite.hpp>

namespace {

// How near two texts are: 1 for the same.
float likeness(const halite::Embedder &embedder, const std::string &a, const std::string &b) {
    const auto first = embedder.embed(embedder.tokenize(a)).to_vector<float>();
    const auto second = embedder.embed(embedder.tokenize(b)).to_vector<float>();
    float sum = 0;
    for (std::size_t i = 0; i < first.size(); ++i) sum += first[i] * second[i];
    return sum;
}

}  // namespace

int main(int count, char **arguments) try {
    if (count < 3) {
        std::cerr << "usage: " << arguments[0] << " MODEL.gguf EMBEDDER.gguf [DEVICE]\n";
        return 2;
    }
    auto device = halite::Device::open(count > 3 ? arguments[3] : "vulkan");
    halite::GeneratorOptions wanted;
    wanted.context = 64;
    auto generator = halite::Session::builder().model(arguments[1]).device(device).generator(wanted);
    auto sequence = generator.sequence();
    const auto prompt = generator.tokenize(generator.chat(std::vector<halite::Message>{{"user", "in the"}}), true);
    bool right = sequence.prompt(prompt) == 0 && sequence.size() == prompt.size();

    auto other = sequence.fork();
    std::string text;
    halite::Generation generation;
    generation.greedy().most(6).told([&](const std::string &piece, std::uint32_t) {
        text += piece;
        return true;
    });
    const auto stop = sequence.generate(generation);
    std::cout << text << '\n';
    right &= stop == halite::Stop::Length || stop == halite::Stop::End;

    // The most likely tokens are the same once more; a text of them that ends the answer is not told.
    const std::string all = text;
    const auto half = all.size() / 2;
    text.clear();
    if (!all.empty()) {
        const auto again = other.generate(generation.stop({all.substr(half)}));
        right &= again == halite::Stop::Text && text == all.substr(0, all.find(all.substr(half)));
    }
    const auto saved = sequence.save();
    other.load(saved.bytes());
    right &= other.tokens() == sequence.tokens() && !other.logits();

    auto embedder = halite::Session::builder().model(arguments[2]).device(device).embedder();
    right &= std::abs(likeness(embedder, "the", "the") - 1) < 1e-4f && likeness(embedder, "the", "un play able") < 0.9999f;
    return right ? 0 : 1;
} catch (const std::exception &error) {
    std::cerr << error.what() << '\n';
    return 1;
}
