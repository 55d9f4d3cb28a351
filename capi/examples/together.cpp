// Writes several texts with a language model together, and compares them with what each is alone: together MODEL.gguf [DEVICE]
#include <iostream>

#include <halite/halite.hpp>

namespace {

constexpr std::size_t most = 8;

// What a sequence writes by itself.
halite::Tokens alone(const halite::Generator &generator, const halite::Tokens &prompt, const halite::Generation &how) {
    auto sequence = generator.sequence();
    sequence.prompt(prompt);
    sequence.generate(how);
    return sequence.tokens();
}

}  // namespace

int main(int count, char **arguments) try {
    if (count < 2) {
        std::cerr << "usage: " << arguments[0] << " MODEL.gguf [DEVICE]\n";
        return 2;
    }
    halite::GeneratorOptions wanted;
    wanted.context = 64;
    wanted.batch = 3;
    auto builder = halite::Session::builder();
    auto generator = builder.model(arguments[1]).device(count > 2 ? arguments[2] : "vulkan").generator(wanted);

    std::vector<halite::Sequence> sequences;
    std::vector<halite::Sampler> samplers;
    std::vector<halite::Tokens> prompts;
    const auto how = halite::Generation().greedy().most(most).ignore_end();
    for (const char *text : {"in the", "the play", "un able"}) {
        prompts.push_back(generator.tokenize(text));
        sequences.push_back(generator.sequence());
        sequences.back().prompt(prompts.back());
        samplers.push_back(halite::Sampler::make(how));
    }
    std::vector<halite::Writer> writers;
    for (std::size_t i = 0; i < sequences.size(); ++i) writers.push_back({&sequences[i], &samplers[i]});
    bool right = generator.batch() == 3;
    for (std::size_t step = 0; step < most; ++step) {
        for (const halite::Next &next : generator.step(writers)) right &= !next.stopped();
    }
    for (std::size_t i = 0; i < sequences.size(); ++i) {
        const auto tokens = sequences[i].tokens();
        std::cout << generator.text(tokens) << '\n';
        right &= tokens == alone(generator, prompts[i], how);
    }
    return right ? 0 : 1;
} catch (const std::exception &error) {
    std::cerr << error.what() << '\n';
    return 1;
}
