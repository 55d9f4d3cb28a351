// Language models in C++: generators, sequences of tokens, vectors of texts.
#ifndef HALITE_CPP_GENERATE_HPP
#define HALITE_CPP_GENERATE_HPP

#include "session.hpp"

namespace halite {
inline namespace HALITE_DETAIL_NAMESPACE {

/// Tokens: numbers of parts of texts.
using Tokens = std::vector<std::uint32_t>;

/// Why a model writes no further.
enum class Stop : halite_stop {
    /// It ended what it says.
    End = HALITE_STOP_END,
    /// It wrote as many tokens as it was allowed to.
    Length = HALITE_STOP_LENGTH,
    Context = HALITE_STOP_CONTEXT,
    /// The function that is told has enough.
    Caller = HALITE_STOP_CALLER,
    /// One of the texts came that end an answer.
    Text = HALITE_STOP_TEXT,
};

/// How caches hold keys or values.
enum class CacheType : halite_cache_type {
    F16 = HALITE_CACHE_F16,
    Q8_0 = HALITE_CACHE_Q8_0,
    Q4_0 = HALITE_CACHE_Q4_0,
};

/// Where a sequence that writes chooses its tokens.
enum class ChooseOn : halite_choose_on {
    /// On the device, if it is a GPU; otherwise on the host.
    Auto = HALITE_CHOOSE_ON_AUTO,
    Host = HALITE_CHOOSE_ON_HOST,
    /// On the device, where it can.
    Device = HALITE_CHOOSE_ON_DEVICE,
};

/// What a generator is made for.
struct GeneratorOptions {
    /// How many tokens a sequence has room for; 0 is Halite's own choice.
    std::size_t context = 0;
    CacheType keys = CacheType::F16;
    CacheType values = CacheType::F16;
    /// Whether `Sequence::score` is wanted.
    bool scoring = false;
    /// The file of the tokenizer, for models that have none of their own; empty looks for one beside the model.
    std::string tokenizer;
    /// Where `Sequence::generate` and `Generator::step` choose tokens.
    ChooseOn choose_on = ChooseOn::Auto;
    /// How many sequences `Generator::step` takes a step of together at most; 0 is 1.
    std::size_t batch = 0;
};

/// A message of a conversation.
struct Message {
    std::string role;
    std::string content;
};

/// How a model writes on: Halite's own choices, until something else is said.
class Generation {
   public:
    /// Is told each piece of text and its token, which is `HALITE_NO_TOKEN` for text that was held back. Returns whether the model is to
    /// write on. It must not throw, and not use the sequence.
    using Told = std::function<bool(const std::string &text, std::uint32_t token)>;

    Generation() {
        raw_ = detail::structure<halite_generation>();
        halite_error_free(halite_generation_sampling(&raw_));
    }
    /// Always the most likely token.
    Generation &greedy() {
        raw_.temperature = 0;
        return *this;
    }
    Generation &temperature(float value) {
        raw_.temperature = value;
        return *this;
    }
    Generation &top_k(std::size_t count) {
        raw_.top_k = count;
        return *this;
    }
    Generation &top_p(float part) {
        raw_.top_p = part;
        return *this;
    }
    Generation &min_p(float part) {
        raw_.min_p = part;
        return *this;
    }
    Generation &repeat_penalty(float penalty, std::size_t last = 64) {
        raw_.repeat_penalty = penalty;
        raw_.repeat_last = last;
        return *this;
    }
    Generation &seed(std::uint64_t seed) {
        raw_.seed = seed;
        return *this;
    }
    /// Most tokens; 0 is no limit.
    Generation &most(std::size_t tokens) {
        raw_.most = tokens;
        return *this;
    }
    /// The model writes on behind the token that ends a text, which is a token like others then.
    Generation &ignore_end(bool ignored = true) {
        raw_.ignore_end = ignored;
        return *this;
    }
    /// Texts that end what is written.
    Generation &stop(std::vector<std::string> texts) {
        stops_ = std::move(texts);
        return *this;
    }
    /// A JSON schema: what is written is one JSON value that follows it, and then ends.
    Generation &json_schema(std::string schema) {
        schema_ = std::move(schema);
        follows_ = true;
        return *this;
    }
    Generation &told(Told told) {
        told_ = std::move(told);
        return *this;
    }

    /// Hands it to a function of the C interface.
    template <class Call>
    auto pass(Call &&call) const {
        std::vector<const char *> stops;
        for (const std::string &text : stops_) stops.push_back(text.c_str());
        halite_generation raw = raw_;
        raw.stops = stops.data();
        raw.stop_count = stops.size();
        raw.json_schema = follows_ ? schema_.c_str() : nullptr;
        if (told_) {
            raw.told = tell;
            raw.context = const_cast<Generation *>(this);
        }
        return call(&raw);
    }

   private:
    static bool tell(void *context, const halite_piece *piece) noexcept {
        const auto *own = static_cast<const Generation *>(context);
        return own->told_(std::string(piece->text, piece->text_size), piece->token);
    }

    halite_generation raw_;
    std::vector<std::string> stops_;
    std::string schema_;
    bool follows_ = false;
    Told told_;
};

namespace detail {
/// Tokens of a call that gives some.
template <class Call>
Result<Tokens> tokens(Call &&call) {
    halite_tokens *raw = nullptr;
    halite_error *error = call(&raw);
    const Object<halite_tokens> held(raw);
    Tokens own;
    if (raw != nullptr) own.assign(halite_tokens_data(raw), halite_tokens_data(raw) + halite_tokens_count(raw));
    return finish(error, std::move(own));
}
}  // namespace detail

/// A sequence of tokens, with caches on the device. One call at a time uses it.
class Sequence : public detail::Object<halite_sequence> {
   public:
    using Object::Object;

    /// Makes the sequence these tokens; gives how many it had already.
    Result<std::size_t> prompt(Span<const std::uint32_t> tokens, const RunOptions &options = {}) {
        const halite_run_options raw = options.raw();
        std::size_t kept = 0;
        halite_error *error = halite_sequence_prompt(get(), tokens.data(), tokens.size(), &raw, &kept);
        return detail::finish(error, std::move(kept));
    }
    /// Adds tokens and computes the logits behind them.
    Result<void> append(Span<const std::uint32_t> tokens, const RunOptions &options = {}) {
        const halite_run_options raw = options.raw();
        return detail::finish(halite_sequence_append(get(), tokens.data(), tokens.size(), &raw));
    }
    /// Adds tokens, and gives how likely each was, as natural logarithms.
    Result<std::vector<double>> score(Span<const std::uint32_t> tokens, const RunOptions &options = {}) {
        const halite_run_options raw = options.raw();
        std::vector<double> scores(tokens.size());
        halite_error *error = halite_sequence_score(get(), tokens.data(), tokens.size(), &raw, scores.data());
        return detail::finish(error, std::move(scores));
    }
    /// Lets the model write on.
    Result<Stop> generate(const Generation &generation = {}, const RunOptions &options = {}) {
        const halite_run_options raw = options.raw();
        halite_stop stop = 0;
        halite_error *error = generation.pass([&](const halite_generation *stated) {
            return halite_sequence_generate(get(), stated, &raw, &stop);
        });
        return detail::finish(error, static_cast<Stop>(stop));
    }
    /// Takes the tokens behind the first `count` back.
    void truncate(std::size_t count) noexcept { halite_sequence_truncate(get(), count); }
    std::size_t size() const noexcept { return halite_sequence_count(get()); }
    Result<Tokens> tokens() const {
        return detail::tokens([&](halite_tokens **out) { return halite_sequence_tokens(get(), out); });
    }
    /// Logits of the token that comes next; without a handle where they have to be computed first.
    Result<Tensor> logits() const {
        return detail::make<Tensor, halite_tensor>(
            [&](halite_tensor **out) { return halite_sequence_logits(get(), out); });
    }
    /// Bytes of its caches on the device.
    std::size_t byte_size() const noexcept { return halite_sequence_size(get()); }
    /// A second sequence with the same tokens and a copy of the caches.
    Result<Sequence> fork() {
        return detail::make<Sequence, halite_sequence>(
            [&](halite_sequence **out) { return halite_sequence_fork(get(), out); });
    }
    Result<Blob> save() {
        return detail::make<Blob, halite_blob>([&](halite_blob **out) { return halite_sequence_save(get(), out); });
    }
    Result<void> load(Span<const std::uint8_t> bytes) {
        return detail::finish(halite_sequence_load(get(), bytes.data(), bytes.size()));
    }
};

/// Chooses the tokens of a sequence, one behind the other. One call at a time uses it.
class Sampler : public detail::Object<halite_sampler> {
   public:
    using Object::Object;

    /// One that chooses as this says: its choice of tokens, the seed and `ignore_end` count.
    static Result<Sampler> make(const Generation &generation = {}) {
        return detail::make<Sampler, halite_sampler>([&](halite_sampler **out) {
            return generation.pass([&](const halite_generation *stated) { return halite_sampler_create(stated, out); });
        });
    }
};

/// A sequence that takes a step. Both objects outlive the step.
struct Writer {
    Sequence *sequence;
    Sampler *sampler;
};

/// What a sequence writes next.
struct Next {
    /// The token that the sequence has now; `HALITE_NO_TOKEN` where it has no other.
    std::uint32_t token;
    /// Why there is none; zero where there is one.
    halite_stop why;

    bool stopped() const noexcept { return why != 0; }
    Stop stop() const noexcept { return static_cast<Stop>(why); }
};

/// A language model that writes text, from a GGUF file. Any thread may use it.
class Generator : public detail::Object<halite_generator> {
   public:
    using Object::Object;

    Result<Session> session() const {
        return detail::make<Session, halite_session>(
            [&](halite_session **out) { return halite_generator_session(get(), out); });
    }
    std::size_t context() const noexcept { return halite_generator_context(get()); }
    std::size_t vocabulary_size() const noexcept { return halite_generator_vocabulary_size(get()); }
    bool is_end(std::uint32_t token) const noexcept { return halite_generator_is_end(get(), token); }
    /// The tokens of a text; with control tokens for what `chat` made.
    Result<Tokens> tokenize(Text text, bool with_control = false) const {
        return detail::tokens([&](halite_tokens **out) {
            return halite_generator_tokenize(get(), text.get(), with_control, out);
        });
    }
    Result<std::string> text(Span<const std::uint32_t> tokens) const {
        return blob([&](halite_blob **out) { return halite_generator_text(get(), tokens.data(), tokens.size(), out); });
    }
    /// The prompt of a conversation, by the model's chat template.
    Result<std::string> chat(Span<const Message> messages) const {
        const auto raw = stated(messages);
        return blob([&](halite_blob **out) { return halite_generator_chat(get(), raw.data(), raw.size(), out); });
    }
    /// The same with values that the template may know, an object as JSON, and tools that the model may call, a list as JSON, if it is
    /// not empty.
    Result<std::string> chat(Span<const Message> messages, const std::string &values, const std::string &tools = {}) const {
        const auto raw = stated(messages);
        return blob([&](halite_blob **out) {
            return halite_generator_chat_with(get(), raw.data(), raw.size(), tools.empty() ? nullptr : tools.c_str(),
                                              values.c_str(), out);
        });
    }
    /// A sequence without tokens.
    Result<Sequence> sequence() const {
        return detail::make<Sequence, halite_sequence>(
            [&](halite_sequence **out) { return halite_generator_sequence(get(), out); });
    }

    /// A sampler for sequences of this generator that follows the schema of `Generation::json_schema`.
    Result<Sampler> schema_sampler(const Generation &generation) const {
        return detail::make<Sampler, halite_sampler>([&](halite_sampler **out) {
            return generation.pass([&](const halite_generation *stated) {
                return halite_generator_schema_sampler(get(), stated, out);
            });
        });
    }

    /// How many sequences take a step together at most.
    std::size_t batch() const noexcept { return halite_generator_batch(get()); }
    /// The next token of each of these sequences, which is added to them; all take the step together.
    Result<std::vector<Next>> step(Span<const Writer> writers, const RunOptions &options = {}) const {
        std::vector<halite_writer> all;
        for (const Writer &own : writers) all.push_back({own.sequence->get(), own.sampler->get(), HALITE_NO_TOKEN, 0});
        const halite_run_options raw = options.raw();
        halite_error *error = halite_generator_step(get(), all.data(), all.size(), &raw);
        std::vector<Next> next;
        for (const halite_writer &own : all) next.push_back({own.token, own.stop});
        return detail::finish(error, std::move(next));
    }

   private:
    static std::vector<halite_message> stated(Span<const Message> messages) {
        std::vector<halite_message> raw;
        for (const Message &message : messages) raw.push_back({message.role.c_str(), message.content.c_str()});
        return raw;
    }
    template <class Call>
    static Result<std::string> blob(Call &&call) {
        halite_blob *raw = nullptr;
        halite_error *error = call(&raw);
        const Blob held(raw);
        return detail::finish(error, raw == nullptr ? std::string() : held.text());
    }
};

/// A language model that makes vectors of texts, from a GGUF file. Any thread may use it.
class Embedder : public detail::Object<halite_embedder> {
   public:
    using Object::Object;

    /// Most tokens of a text.
    std::size_t longest() const noexcept { return halite_embedder_longest(get()); }
    Result<Tokens> tokenize(Text text) const {
        return detail::tokens([&](halite_tokens **out) { return halite_embedder_tokenize(get(), text.get(), out); });
    }
    /// The vector of a text's tokens, of length 1 unless `normalize` is false.
    Result<Tensor> embed(Span<const std::uint32_t> tokens, bool normalize = true, const RunOptions &options = {}) const {
        const halite_run_options raw = options.raw();
        return detail::make<Tensor, halite_tensor>([&](halite_tensor **out) {
            return halite_embedder_embed(get(), tokens.data(), tokens.size(), normalize, &raw, out);
        });
    }
};

}  // namespace HALITE_DETAIL_NAMESPACE
}  // namespace halite

#endif
